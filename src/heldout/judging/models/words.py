"""What a model judge did, and how it does against people, as tables and JSON."""

from collections import Counter
from collections.abc import Sequence

from heldout.answers.answer import Answer, to_document
from heldout.answers.table import UNDEFINED, Cell, Column, Table, columns, format_p
from heldout.judging.models.calibration import ENOUGH, LEADS, Calibration, WinRate
from heldout.judging.models.judges import ModelJudgment
from heldout.stats.regression import MeanFit


def asked_answer(rows: Sequence[ModelJudgment], *, new: int) -> Answer:
    """What a model was asked in all, and what came of it.

    Args:
        rows: of one judge.
        new: how many of them are of this call.
    """
    last = {(row.query, row.a, row.b): row for row in rows}.values()
    failed = Counter(row.failure for row in last if row.failure is not None)
    answered = len(last) - failed.total()
    failures = dict(sorted(failed.items()))
    lines = [
        ("asked", f"{new:,} now, {len(last):,} in all; a pair is asked in both orders"),
        ("answered", f"{answered:,}"),
    ]
    if failures:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in failures.items())
        lines.append(("failed", f"{counts}: no vote for anybody; failed calls are asked again"))
    counted = [
        [count for row in rows if (count := getattr(row, name)) is not None]
        for name in ("input_tokens", "output_tokens")
    ]
    if any(counted):
        came, went = map(sum, counted)
        lines.append(("tokens", f"{came:,} in, {went:,} out, as the endpoint says"))
    document = {
        "asked": {"new": new, "all": len(last)},
        "answered": answered,
        "failures": failures,
    }
    return Answer(summary=lines, tables=(), document=document)


def calibration_answer(found: Calibration, rates: Sequence[WinRate]) -> Answer:
    """How often it agrees, how often it flips, to what it leans; win rates with its help."""
    shares = {
        name: _describe_share(share, found.level)
        for name, share in (
            ("accuracy", found.accuracy),
            ("decided", found.decided),
            ("flips", found.flip_rate),
        )
    }
    lines = [
        ("compared", f"{found.compared:,} pairs on which people are not tied"),
        ("agrees", f"{shares['accuracy']}; no preference counts as a half"),
        ("", f"{shares['decided']} where it has a preference"),
        ("kappa", _describe_kappa(found)),
        ("flips", f"{shares['flips']} of {found.verdicts:,} pairs"),
        ("side", _describe_side(found)),
        ("length", _describe_length(found)),
        ("sure", _describe_error(found)),
    ]
    if found.compared < ENOUGH:
        lines.append(("note", f"under {ENOUGH} pairs: too few to rely on"))
    return Answer(
        summary=lines,
        tables=(_strata_table(found), *([_rates_table(rates, found.level)] if rates else [])),
        document={
            "calibration": to_document(found) | to_document({"win_rates": rates}),
        },
    )


def _describe_share(found: MeanFit, level: float) -> str:
    if found.value is None:
        return "undefined: no pair"
    if found.low is None or found.high is None:
        return f"{found.value:.1%}; one query, so no interval"
    return (
        f"{found.value:.1%}, {level:.0%} interval {_cut(found.low):.1%} to {_cut(found.high):.1%}"
    )


def _cut(share: float) -> float:
    return min(1.0, max(0.0, share))


def _describe_kappa(found: Calibration) -> str:
    if found.kappa.value is None:
        return f"undefined: {found.kappa.why}"
    kappa = f"{found.kappa.value:.3f}"
    if found.kappa_interval is None:
        return kappa
    low, high = found.kappa_interval
    return f"{kappa}, {found.level:.0%} interval {low:.3f} to {high:.3f}"


def _describe_side(found: Calibration) -> str:
    if found.side_p is None:
        return "no flip whose sides are known"
    first = f"of its flips {found.first_twice:,} to the passage shown first"
    return f"{first}, {found.second_twice:,} to the second, p {format_p(found.side_p)}"


def _describe_length(found: Calibration) -> str:
    if found.length.why is not None:
        return f"undefined: {found.length.why}"
    slope, low, high = (
        ends[1] for ends in (found.length.values, found.length.low, found.length.high)
    )
    interval = f"{found.level:.0%} interval {low:+.2f} to {high:+.2f}"
    return f"log odds {slope:+.2f} for a passage e times as long, {interval}, people's votes equal"


def _describe_error(found: Calibration) -> str:
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
            *columns("count", "pairs", "agree", "disagree", "flips"),
            *columns("share", "agree, if decided", decimals=3),
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
            *columns("text", "run", "against"),
            *columns("count", "judged by both", "by the model alone"),
            *columns("share", "with the model", "low", "high", decimals=3),
            *columns("share", "votes alone", "low", "high", decimals=3),
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
