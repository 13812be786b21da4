"""Groups of commands whose options are given once, but for those that may be given several times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption
from typer.models import CommandFunctionType

_FIXES = {
    "terminology": "; onoma terminology merge makes one of several",
    "stages": "; divide several by commas",
}
"""What to do instead, by the name of a parameter."""


class Commands(typer.Typer):
    """Typer's group with our kind of command."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """See `typer.Typer.command`."""
        return super().command(name, **{"cls": _GivenOnce, **settings})


class _GivenOnce(TyperCommand):
    """Refuses an option that is given twice and takes one value: all but the last would be lost without a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            left = super().parse_args(ctx, list(args))  # first, as one may ask for help
        except typer.BadParameter as error:  # in the words of Pydantic, where Typer checks values with it
            error.message = error.message.removeprefix("Value error, ").partition(", unable to")[0]
            raise
        *_, given = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, times in Counter(given).items():
            takes_one = isinstance(parameter, TyperOption) and not (parameter.multiple or parameter.is_flag)
            if times > 1 and takes_one and not ctx.resilient_parsing:
                fix = _FIXES.get(str(parameter.name), "")
                ctx.fail(f"{max(parameter.opts, key=len)} is given {times} times, and takes one value{fix}.")
        return left
