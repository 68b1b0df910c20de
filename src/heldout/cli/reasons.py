"""The reason of a decision, as an option or an argument: it stays in the log, so it says something.

Every decision on somebody else's work has one, and most are public.
"""

from collections.abc import Callable
from typing import Any

import click

__all__ = ["REASON", "Reason", "why_option"]


class Reason(click.types.StringParamType):
    """A text with a letter or a digit in it: blanks, dots and what nobody sees are no reason."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Raises `click.BadParameter` for a text that says nothing."""
        text: str = super().convert(value, param, ctx)
        if not any(map(str.isalnum, text)):
            self.fail(f"{text!r} says nothing, and it would stay in the log for good", param, ctx)
        return text


REASON = Reason()
"""What a reason has to be."""


def why_option(text: str) -> Callable[..., Any]:
    """`--why`, which has to be given.

    Args:
        text: what the command's help says of it.
    """
    return click.option("--why", type=REASON, required=True, metavar="TEXT", help=text)
