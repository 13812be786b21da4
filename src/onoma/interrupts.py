"""Ctrl-C while this process waits."""

from __future__ import annotations

import signal


def end_waits() -> None:
    """Let Ctrl-C end a wait without a limit, which is to be called before one: of a lock, or of a read.

    Once polars is loaded, the system takes up such a wait again (SA_RESTART), and Python hears of the signal only when
    what was waited for has come.
    """
    if hasattr(signal, "siginterrupt"):  # not on Windows
        signal.siginterrupt(signal.SIGINT, True)
