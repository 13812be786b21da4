"""Run as a process: map a table and die, in one way or another, at a chosen moment.

    python interrupted.py LINKER INPUT OUTPUT WORKERS HOW WHAT NUMBER [CONTEXT]

HOW: kill (this process, SIGKILL), kill-worker (one worker, SIGKILL), interrupt (as from the keyboard).
WHAT, NUMBER: the moment: when the file whose path holds WHAT is about to appear for the NUMBERth time; or, if WHAT is
"told", when progress is told for the NUMBERth time in the stage of linking.
CONTEXT: the column of the contexts; mentions are then prepared (`PREPARATION`).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from onoma.linking.expansion import AbbreviationTable
from onoma.linking.mentions import Preparation
from onoma.mapping import collecting, map_table, parts

PREPARATION = Preparation(
    table=AbbreviationTable({"DM": "diabetes mellitus", "OT": "old table"}, {}),
    finder="schwartz-hearst",
    composites=True,
    spelling=True,
    strengths=True,
    codes=True,
)


def processes(parent: int | None = None) -> list[tuple[int, str]]:
    """Number and command of each process, or of those that one started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it is gone
            continue
        if parent is None or fields[1] == str(parent):
            found.append((int(folder.name), command))
    return sorted(found)


def die(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "kill-worker":
        os.kill(processes(os.getpid())[0][0], signal.SIGKILL)
    else:
        raise KeyboardInterrupt


def main() -> None:
    linker, source, output, workers, how, what, number, *context = sys.argv[1:]
    parts.PART_ROWS, collecting.TASK_MENTIONS = 7, 5
    left = int(number)

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            die(how)

    replace: Callable[[Path, Path], Path] = Path.replace

    def watched(self: Path, target: Path) -> Path:
        if what in str(target):
            count()
        return replace(self, target)

    link: Callable[[Path, Path], None] = os.link

    def watched_link(aside: Path, target: Path) -> None:
        if what in str(target):
            count()
        link(aside, target)

    Path.replace = watched  # type: ignore[assignment,method-assign]
    os.link = watched_link  # type: ignore[assignment]
    map_table(
        linker,
        source,
        output,
        column="mention",
        top_k=2,
        context=context[0] if context else None,
        preparation=PREPARATION if context else None,
        workers=int(workers),
        progress=lambda _done, _total, stage: count() if what == "told" and stage == "linking" else None,
    )


if __name__ == "__main__":
    main()
