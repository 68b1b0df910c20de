"""What `heldout compare` and `heldout analyse outcomes` are told beforehand: tests and rules."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from heldout.validity.outcome_tests import Margins
from heldout.validity.verdicts import By, Correction, Decide, Harm, Rules

__all__ = ["level_option", "rules_options"]

Function = TypeVar("Function", bound=Callable[..., object])

level_option = click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of intervals.",
)
"""`--level`."""


def rules_options(function: Function) -> Function:
    """The options that declare tests, correction and rules, as one `rules` argument."""

    @click.option(
        "--decide",
        type=click.Choice(["signed-rank", "t"]),
        default="signed-rank",
        show_default=True,
        help="Which test of case (3) decides.",
    )
    @click.option(
        "--by",
        type=click.Choice(["esl", "rr"]),
        default="esl",
        show_default=True,
        help="What case (3) goes by: search length or reciprocal rank.",
    )
    @click.option(
        "--correction",
        type=click.Choice(["holm", "bonferroni", "none"]),
        default="holm",
        show_default=True,
        help="Over pairs × outcomes; of verdicts over pairs.",
    )
    @click.option(
        "--alpha",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.05,
        show_default=True,
        help="Chance of a wrong verdict.",
    )
    @click.option(
        "--harm",
        type=click.Choice(["margin", "plain"]),
        default="margin",
        show_default=True,
        help="No harm: worse by less than a margin, or, as in the paper, not significantly.",
    )
    @click.option(
        "--margin-found",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=Margins().found,
        show_default=True,
        help="Share of queries that may be lost.",
    )
    @click.option(
        "--margin-esl",
        type=click.FloatRange(min=0, min_open=True),
        default=Margins().esl,
        show_default=True,
        help="Positions by which the mean search length may grow.",
    )
    @functools.wraps(function)
    def wrapped(
        *args: Any,
        decide: Decide,
        by: By,
        correction: Correction,
        alpha: float,
        harm: Harm,
        margin_found: float,
        margin_esl: float,
        **rest: Any,
    ) -> object:
        rules = Rules(
            alpha=alpha,
            decide=decide,
            by=by,
            correction=correction,
            harm=harm,
            margins=Margins(found=margin_found, esl=margin_esl),
        )
        return function(*args, rules=rules, **rest)

    return wrapped  # type: ignore[return-value] # click's decorators keep the callable
