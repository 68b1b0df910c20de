"""How far judges agree, how far they should, and what habits they have: tables and JSON."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

from heldout.answers.table import Column, Table
from heldout.preferences.agreement import STUDY_ACCURACY, JudgeAgreement, expected_alpha
from heldout.preferences.bias import SideBias
from heldout.preferences.judge_care import CrowdCare
from heldout.report import side_bias

__all__ = ["Judges", "facts", "implied_accuracy", "tables", "value"]

_HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """What is known of the judges.

    Attributes:
        agreement: on pairs judged at least twice.
        bias: of sides and lengths.
        care: of each judge.
        counted: judgments that count.
        recorded: all of them.
        level: of intervals.
    """

    agreement: JudgeAgreement
    bias: SideBias
    care: CrowdCare
    counted: int
    recorded: int
    level: float


def implied_accuracy(alike: float) -> float | None:
    """How often a vote is right if judges are all alike, independent, and pairs equally hard.

    Two votes are then alike with probability p^2 + (1 - p)^2.

    Args:
        alike: share of two votes on one pair that are alike; below a half no such p is there.
    """
    return (1 + sqrt(2 * alike - 1)) / 2 if alike >= _HALF else None


def facts(found: Judges) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines."""
    own = found.agreement
    lines = [("judgments", f"{found.counted:,} of {found.recorded:,} count")]
    if own.alpha is None:
        lines.append(("alpha", f"undefined: {own.why}"))
    else:
        ends = "" if own.interval is None else f", {own.interval[0]:.3f} to {own.interval[1]:.3f}"
        expected = f"{expected_alpha(STUDY_ACCURACY):.2f} of judges as often right as the study's"
        lines.append(("alpha", f"{own.alpha:.3f}{ends}; {expected}"))
    return (*lines, *side_bias.facts(found.bias, found.care))


def tables(found: Judges) -> tuple[Table, ...]:
    """Agreement, then habits."""
    return (_agreement(found), *side_bias.tables(found.bias, found.care))


def value(found: Judges) -> dict[str, Any]:
    """For JSON."""
    own = found.agreement
    return {
        "recorded": found.recorded,
        "counted": found.counted,
        "alpha": own.alpha,
        "interval": None if own.interval is None else list(own.interval),
        "pairs": own.pairs,
        "votes": own.votes,
        "alike": own.alike,
        "accuracy_if_equally_hard": None if own.alike is None else implied_accuracy(own.alike),
        "expected_alpha": expected_alpha(STUDY_ACCURACY),
        "habits": side_bias.value(found.bias, found.care),
        "level": found.level,
        **({} if own.why is None else {"why": own.why}),
    }


def _agreement(found: Judges) -> Table:
    own = found.agreement
    ends = own.interval or (None, None)
    accuracy = None if own.alike is None else implied_accuracy(own.alike)
    return Table(
        title="Agreement of judges on pairs that were judged at least twice",
        columns=(
            Column(name="pairs", form="count"),
            Column(name="votes", form="count"),
            Column(name="alike", form="share", decimals=3),
            *(Column(name=name, form="score", decimals=3) for name in ("alpha", "low", "high")),
            Column(name="a vote is right", form="share", decimals=3),
            Column(name="expected alpha", form="score", decimals=3),
        ),
        rows=(
            (
                own.pairs,
                own.votes,
                own.alike,
                own.alpha,
                *ends,
                accuracy,
                expected_alpha(STUDY_ACCURACY),
            ),
        ),
        notes=(
            (
                "alpha: Krippendorff's, nominal; its interval draws queries. alike: of two votes "
                "on one pair. a vote is right: what that comes to if all pairs are equally hard. "
                f"expected alpha: of judges who are right in {STUDY_ACCURACY:.1%} of pairs, as in "
                "the study. Low agreement can mean that pairs are hard, or that judges are "
                "careless; failed tests tell which."
            ),
            *((f"alpha is undefined: {own.why}.",) if own.why else ()),
        ),
    )
