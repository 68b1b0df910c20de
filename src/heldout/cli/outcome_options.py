"""What `heldout compare` and `heldout analyse outcomes` are told beforehand: tests and rules."""

import click

from heldout.cli.options import SHARE, DecimalRange, one_argument
from heldout.validity.outcome_tests import Margins
from heldout.validity.verdicts import Rules

__all__ = ["rules_options"]

_margin_options = one_argument(
    "margins",
    Margins,
    click.option(
        "--margin-found",
        "found",
        type=SHARE,
        default=Margins().found,
        show_default=True,
        help="Share of queries that may be lost.",
    ),
    click.option(
        "--margin-esl",
        "esl",
        type=DecimalRange(min=0, min_open=True),
        default=Margins().esl,
        show_default=True,
        help="Positions by which the mean search length may grow.",
    ),
)

rules_options = one_argument(
    "rules",
    Rules,
    click.option(
        "--decide",
        type=click.Choice(["signed-rank", "t"]),
        default="signed-rank",
        show_default=True,
        help="Which test of case (3) decides.",
    ),
    click.option(
        "--by",
        type=click.Choice(["esl", "rr"]),
        default="esl",
        show_default=True,
        help="What case (3) goes by: search length or reciprocal rank.",
    ),
    click.option(
        "--correction",
        type=click.Choice(["holm", "bonferroni", "none"]),
        default="holm",
        show_default=True,
        help="Over pairs × outcomes; of verdicts over pairs.",
    ),
    click.option(
        "--alpha",
        type=SHARE,
        default=0.05,
        show_default=True,
        help="Chance of a wrong verdict.",
    ),
    click.option(
        "--harm",
        type=click.Choice(["margin", "plain"]),
        default="margin",
        show_default=True,
        help="No harm: worse by less than a margin, or, as in the paper, not significantly.",
    ),
    _margin_options,
)
"""The options that declare tests, correction and rules, as one `rules` argument."""
