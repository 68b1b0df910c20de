"""What a model judge did, and how it does against people, as tables and JSON."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from heldout.answers.table import UNDEFINED, Cell, Column, Table, format_p
from heldout.judging.models.calibration import ENOUGH, LEADS, Calibration, WinRate
from heldout.judging.models.judges import ModelJudgment
from heldout.stats.regression import MeanFit
from heldout.stats.student import PredictionPowered


def asked_facts(rows: Sequence[ModelJudgment], *, new: int) -> tuple[tuple[str, str], ...]:
    """What a model was asked in all, and what came of it.

    Args:
        rows: of one judge.
        new: how many of them are of this call.
    """
    failed = Counter(row.failure for row in _last(rows) if row.failure is not None)
    answered = len(_last(rows)) - failed.total()
    told = ", ".join(f"{count:,} {reason}" for reason, count in sorted(failed.items()))
    lines = [
        ("asked", f"{new:,} now, {len(_last(rows)):,} in all; a pair is asked in both orders"),
        ("answered", f"{answered:,}"),
    ]
    if failed:
        lines.append(("failed", f"{told}: no vote for anybody; failed calls are asked again"))
    counts = [row.input_tokens for row in rows], [row.output_tokens for row in rows]
    said = [[n for n in found if n is not None] for found in counts]
    if any(said):
        lines.append(("tokens", f"{sum(said[0]):,} in, {sum(said[1]):,} out, as the endpoint says"))
    return tuple(lines)


def asked_value(rows: Sequence[ModelJudgment], *, new: int) -> dict[str, Any]:
    """The same for JSON."""
    last = _last(rows)
    return {
        "asked": {"new": new, "all": len(last)},
        "answered": sum(row.failure is None for row in last),
        "failures": dict(sorted(Counter(row.failure for row in last if row.failure).items())),
    }


def facts(found: Calibration) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: how often it agrees, how often it flips, to what it leans."""
    lines = [
        ("compared", f"{found.compared:,} pairs on which people are not tied"),
        ("agrees", f"{_tell(found.accuracy, found.level)}; no preference counts as a half"),
        ("", f"{_tell(found.decided, found.level)} where it has a preference"),
        ("kappa", _tell_kappa(found)),
        ("flips", f"{_tell(found.flip_rate, found.level)} of {found.verdicts:,} pairs"),
        ("side", _tell_side(found)),
        ("length", _tell_length(found)),
        ("sure", _tell_error(found)),
    ]
    if found.compared < ENOUGH:
        lines.append(("note", f"under {ENOUGH} pairs: too few to rely on"))
    return tuple(lines)


def tables(found: Calibration, rates: Sequence[WinRate]) -> tuple[Table, ...]:
    """Agreement by people's lead of votes; win rates of runs with the model's help."""
    return (_strata_table(found), *([_rates_table(rates, found.level)] if rates else []))


def value(found: Calibration, rates: Sequence[WinRate]) -> dict[str, Any]:
    """The whole calibration for JSON; what is undefined is `null`."""
    return {
        "verdicts": found.verdicts,
        "compared": found.compared,
        "agree": found.agree,
        "disagree": found.disagree,
        "tied": found.tied,
        "accuracy": _mean(found.accuracy),
        "decided": _mean(found.decided),
        "kappa": {
            "value": found.kappa.value,
            "low": found.kappa_interval and found.kappa_interval[0],
            "high": found.kappa_interval and found.kappa_interval[1],
            "why": found.kappa.why,
        },
        "flips": found.flips,
        "flip_rate": _mean(found.flip_rate),
        "side": {"first": found.first_twice, "second": found.second_twice, "p": found.side_p},
        "length": {
            "value": found.length.values[1] if found.length.values else None,
            "low": found.length.low[1] if found.length.low else None,
            "high": found.length.high[1] if found.length.high else None,
            "why": found.length.why,
        },
        "calibration_error": {"value": found.error.value, "pairs": found.error.pairs},
        "strata": [
            {
                "lead": one.lead,
                "or_more": one.lead == LEADS[-1],
                "pairs": one.pairs,
                "agree": one.agree if one.lead else None,
                "disagree": one.disagree if one.lead else None,
                "flips": one.flips,
            }
            for one in found.strata
        ],
        "win_rates": [
            {
                "a": one.a,
                "b": one.b,
                "together": _estimate(one.together),
                "people": {
                    "value": one.people.value,
                    "low": one.people.low,
                    "high": one.people.high,
                    "labelled": one.people.queries,
                },
            }
            for one in rates
        ],
        "level": found.level,
    }


def _last(rows: Sequence[ModelJudgment]) -> list[ModelJudgment]:
    """The last row to each pair and order."""
    return list({(row.query, row.a, row.b): row for row in rows}.values())


def _tell(found: MeanFit, level: float) -> str:
    if found.value is None:
        return "undefined: no pair"
    if found.low is None or found.high is None:
        return f"{found.value:.1%}; one query, so no interval"
    return (
        f"{found.value:.1%}, {level:.0%} interval {_cut(found.low):.1%} to {_cut(found.high):.1%}"
    )


def _cut(share: float) -> float:
    return min(1.0, max(0.0, share))


def _tell_kappa(found: Calibration) -> str:
    if found.kappa.value is None:
        return f"undefined: {found.kappa.why}"
    told = f"{found.kappa.value:.3f}"
    if found.kappa_interval is None:
        return told
    low, high = found.kappa_interval
    return f"{told}, {found.level:.0%} interval {low:.3f} to {high:.3f}"


def _tell_side(found: Calibration) -> str:
    if found.side_p is None:
        return "no flip whose sides are known"
    told = f"of its flips {found.first_twice:,} to the passage shown first"
    return f"{told}, {found.second_twice:,} to the second, p {format_p(found.side_p)}"


def _tell_length(found: Calibration) -> str:
    if found.length.why is not None:
        return f"undefined: {found.length.why}"
    slope, low, high = (
        ends[1] for ends in (found.length.values, found.length.low, found.length.high)
    )
    interval = f"{found.level:.0%} interval {low:+.2f} to {high:+.2f}"
    return f"log odds {slope:+.2f} for a passage e times as long, {interval}, people's votes equal"


def _tell_error(found: Calibration) -> str:
    if found.error.value is None:
        return "no probabilities were recorded (--probabilities)"
    return f"expected calibration error {found.error.value:.3f} on {found.error.pairs:,} pairs"


def _strata_table(found: Calibration) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in found.strata:
        named = f"{one.lead} or more" if one.lead == LEADS[-1] else f"{one.lead}"
        decided = one.agree + one.disagree
        counts: tuple[Cell, ...] = (one.agree, one.disagree) if one.lead else (None, None)
        share = one.agree / decided if one.lead and decided else None
        rows.append((named, one.pairs, *counts, one.flips, share))
    return Table(
        title="The model against people, by their lead of votes",
        columns=(
            Column(name="lead"),
            Column(name="pairs", form="count"),
            Column(name="agree", form="count"),
            Column(name="disagree", form="count"),
            Column(name="flips", form="count"),
            Column(name="agree, if decided", form="share", decimals=3),
        ),
        rows=tuple(rows),
        notes=(
            "A flip: the model's answers in the two orders differ, so it has no preference.",
            f"{UNDEFINED}: people were tied, or the model decided no pair.",
        ),
    )


def _rates_table(rates: Sequence[WinRate], level: float) -> Table:
    return Table(
        title="How often people prefer a run's first passage: with the model, and from votes alone",
        columns=(
            Column(name="run"),
            Column(name="against"),
            Column(name="judged by both", form="count"),
            Column(name="by the model alone", form="count"),
            Column(name="with the model", form="share", decimals=3),
            Column(name="low", form="share", decimals=3),
            Column(name="high", form="share", decimals=3),
            Column(name="votes alone", form="share", decimals=3),
            Column(name="low", form="share", decimals=3),
            Column(name="high", form="share", decimals=3),
        ),
        rows=tuple(
            (
                one.a,
                one.b,
                one.together.labelled,
                one.together.unlabelled,
                *(one.together.value, one.together.low, one.together.high),
                *(one.people.value, one.people.low, one.people.high),
            )
            for one in rates
        ),
        notes=(
            f"With the model: PPI++, {level:.0%} intervals by Student's t, four queries added.",
            "Below five queries it has none. Votes alone: Clopper and Pearson.",
            "It holds where the pairs with votes are a random part of those the model judged.",
        ),
    )


def _mean(found: MeanFit) -> dict[str, Any]:
    return {"value": found.value, "low": found.low, "high": found.high, "queries": found.groups}


def _estimate(found: PredictionPowered) -> dict[str, Any]:
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "weight": found.weight,
        "labelled": found.labelled,
        "unlabelled": found.unlabelled,
    }
