"""What the attackers play against: a board's rule, and raw scores to compare it with.

Nothing of a rule is built anew here: `heldout.board.rules.release` decides, and the attackers hear
the text that it lets out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from heldout.board.rules.release import Released, ReleaseRule, Told, check_rule, release
from heldout.errors import InputError, Problem, quote
from heldout.redteam.exchange import Scores

__all__ = ["COMPARED", "NamedRelease", "Release", "name_ladder", "name_rule", "parse_release"]

Release = Callable[[Scores, Told | None], Released]
"""Scores per query and what the team was told before -> what it is told now."""

COMPARED = ("exact", "rounded", "ladder", "ladder=1", "step")
"""The releases of the table, as `parse_release` reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRelease:
    """A release with its name in the table.

    Attributes:
        name: `exact`, `rounded`, `ladder z=3.59`, `step 0.01`.
        answer: what it says.
    """

    name: str
    answer: Release


def parse_release(text: str, rule: ReleaseRule, *, decimals: int, path: str) -> NamedRelease:
    """Read the name of a release.

    Args:
        text: `exact`, `rounded`, `ladder`, `ladder=Z`, `step`, `step=S`.
        rule: what the text leaves open: submissions and step.
        decimals: digits after the point, 1 to 6; `exact` has all.
        path: where it stands, for the error.

    Raises:
        InputError: code `redteam-release`.
    """
    if text == "exact":
        return NamedRelease(name="exact", answer=_tell_all)
    name, equals, number = text.partition("=")
    key = {"ladder": "z", "step": "step"}.get(name)
    try:
        given = {key: float(number)} if key and equals else {}
        named = msgspec.convert(
            msgspec.to_builtins(rule) | {"z": None} | given | {"rule": name}, ReleaseRule
        )
    except (ValueError, msgspec.ValidationError):
        raise InputError(_unknown(text, path)) from None
    if (equals and not key) or any(check_rule(named, decimals=decimals)):
        raise InputError(_unknown(text, path))
    return name_rule(named, decimals=decimals)


def name_rule(rule: ReleaseRule, *, decimals: int) -> NamedRelease:
    """A board's own rule, as a release with its name.

    Args:
        rule: its numbers are right by `check_rule`.
        decimals: digits after the point, 1 to 6.
    """

    def answer(values: Scores, told: Told | None) -> Released:
        return release(values, told, rule, decimals=decimals)

    return NamedRelease(name=_describe(rule), answer=answer)


def name_ladder(submissions: int) -> str:
    """Name of the Ladder whose z follows from the number of submissions."""
    return _describe(ReleaseRule(rule="ladder", submissions=submissions))


def _describe(rule: ReleaseRule) -> str:
    """A rule's name with its number, as in `ladder z=3.59`."""
    match rule.rule:
        case "ladder":
            return f"ladder z={round(rule.threshold, 2):g}"
        case "step":
            return f"step {rule.step:g}"
        case "rounded":
            return "rounded"


def _tell_all(values: Scores, told: Told | None) -> Released:
    """The score with all its digits, which no board lets out."""
    del told
    text = repr(math.fsum(values.tolist()) / len(values))
    return Released(text=text, told=Told(text=text, values=values))


def _unknown(text: str, path: str) -> Problem:
    return Problem(
        code="redteam-release",
        path=path,
        found=quote(text),
        expected="exact, rounded, ladder, ladder=Z, step or step=S",
        hint="Z is 0 to 10; S is one over a whole number, such as 0.01",
    )
