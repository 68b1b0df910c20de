"""Options that several commands share, and how several options become one argument."""

import functools
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

__all__ = [
    "SHARE",
    "DecimalRange",
    "alike_option",
    "jobs_option",
    "level_option",
    "one_argument",
    "ties_option",
    "trials_option",
]

Decorator = Callable[[Callable[..., object]], Callable[..., object]]


class DecimalRange(click.FloatRange):
    """As click's, and never "not a number": that lies in every range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Raises `click.BadParameter` for what is no finite number of the range."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


SHARE = DecimalRange(0, 1, min_open=True, max_open=True)
"""A number between 0 and 1, neither of them."""

level_option = click.option(
    "--level", type=SHARE, default=0.95, show_default=True, help="Of intervals."
)
"""`--level`."""

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes side by side [up to one for each core, where that pays].",
)
"""`--jobs`."""

ties_option = click.option(
    "--ties",
    type=click.Choice(["earlier", "shared"]),
    default="earlier",
    show_default=True,
    help="Of equal means the earlier system has the better rank, or all share the best.",
)
"""`--ties`; a `stats.resample.TieRule`."""

alike_option = click.option(
    "--alike/--no-alike",
    default=True,
    show_default=True,
    help="Whether to compare the runs of different teams; half a minute for a hundred entries.",
)
"""`--alike`."""


def trials_option(number: int, words: str) -> Decorator:
    """`--trials`.

    Args:
        number: if not given.
        words: for the help.
    """
    return click.option(
        "--trials", type=click.IntRange(min=1), default=number, show_default=True, help=words
    )


def one_argument(name: str, made_of: type[Any], *options: Decorator) -> Decorator:
    """Several options as one argument of a command.

    Args:
        name: of the argument.
        made_of: a dataclass; each of its fields has the name of an option, or of an argument that
            other options became.
        options: in the order of the help.
    """
    names = [field.name for field in fields(made_of)]

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def called(*args: Any, **given: Any) -> object:
            own = {one: given.pop(one) for one in names}
            return function(*args, **{name: made_of(**own)}, **given)

        decorated: Callable[..., object] = called
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate
