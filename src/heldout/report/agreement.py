"""Agreement of judges as tables, a picture and JSON."""

from typing import Any

from heldout.answers.table import Cell, Column, Table
from heldout.errors import plural
from heldout.report.agreement_chart import matrix_spec
from heldout.stats.agreement import Agreement
from heldout.validity.agreement import FEWEST, Interval, JudgeAgreement, JudgePair

__all__ = ["facts", "spec", "tables", "title", "value"]

_UNITS = {"documents": "documents of queries", "pairs": "pairs of items"}
_SHOWN = 3


def facts(found: JudgeAgreement) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: alpha, kappa, and who was compared."""
    lines = [("alpha", _tell(found.alpha, found.interval, found.level))]
    if len(found.pairs) == 1:
        pair = found.pairs[0]
        lines.append(("kappa", _tell(pair.kappa, pair.interval, found.level)))
        lines.append(("same", f"{pair.same:.1%} of {pair.units:,} {_UNITS[found.kind]}"))
    if found.fleiss is not None:
        units = f" on the {found.fleiss_units:,} that all judged"
        lines.append(("Fleiss", _tell(found.fleiss, None, found.level) + units))
    named = ", ".join(found.judges[:_SHOWN]) + ("…" if len(found.judges) > _SHOWN else "")
    judges = "1 judge" if len(found.judges) == 1 else f"{len(found.judges):,} judges"
    lines.append(("judges", f"{judges}: {named}"))
    lines.append(
        (
            "judged",
            f"{found.units:,} {_UNITS[found.kind]}, {plural(found.queries, 'query', 'queries')}",
        )
    )
    return tuple(lines)


def tables(found: JudgeAgreement) -> tuple[Table, ...]:
    """All judges together, then each two, then of two alone where they differ."""
    return (
        _all_table(found),
        *([_pair_table(found)] if found.pairs else []),
        *([_confusion_table(found, found.pairs[0])] if len(found.pairs) == 1 else []),
    )


def title(found: JudgeAgreement) -> str:
    """What the picture shows."""
    return f"Cohen's kappa of each two of {len(found.judges):,} judges"


def spec(found: JudgeAgreement) -> dict[str, Any]:
    """Kappa of each two judges; with at least one pair."""
    kappas = {(pair.first, pair.second): pair.kappa.value for pair in found.pairs}
    return matrix_spec(found.judges, kappas, "Cohen's kappa")


def value(found: JudgeAgreement) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "judges": list(found.judges),
        "judged": list(found.judged),
        "kind": found.kind,
        "categories": list(found.categories),
        "units": found.units,
        "queries": found.queries,
        "alpha": _coefficient(found.alpha, found.interval),
        "scale": found.scale,
        "fleiss": None if found.fleiss is None else _coefficient(found.fleiss, None),
        "fleiss_units": found.fleiss_units,
        "weights": found.weights,
        "relevant": found.relevant,
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                "units": pair.units,
                "queries": pair.queries,
                "same": pair.same,
                "kappa": _coefficient(pair.kappa, pair.interval),
                "overlap": pair.overlap,
                "confusion": [list(row) for row in pair.confusion],
            }
            for pair in found.pairs
        ],
        "level": found.level,
        "trials": found.trials,
        "interval": "percentiles over queries drawn with replacement, each by itself",
        "digest": found.digest,
    }


def _coefficient(found: Agreement, interval: Interval | None) -> dict[str, Any]:
    low, high = interval or (None, None)
    return {
        "value": found.value,
        "low": low,
        "high": high,
        "observed": found.observed,
        "expected": found.expected,
        "units": found.units,
        "why": found.why,
    }


def _tell(found: Agreement, interval: Interval | None, level: float) -> str:
    if found.value is None:
        return f"undefined: {found.why}"
    if interval is None:
        return f"{found.value:.3f}"
    return f"{found.value:.3f}, {level:.0%} interval {interval[0]:.3f} to {interval[1]:.3f}"


def _all_table(found: JudgeAgreement) -> Table:
    rows: list[tuple[Cell, ...]] = [
        _row(
            f"Krippendorff's alpha, {found.scale}",
            found.alpha,
            found.interval,
            shares=found.scale == "nominal",
        )
    ]
    if found.fleiss is not None:
        rows.append(_row("Fleiss' kappa, where all judged", found.fleiss, None))
    undefined = {found.alpha.why, None if found.fleiss is None else found.fleiss.why} - {None}
    return Table(
        title=f"All {len(found.judges):,} together" if len(found.judges) > 1 else "All judgments",
        columns=(
            Column(name="coefficient"),
            Column(name="value", form="score", decimals=3),
            Column(name="low", form="score", decimals=3),
            Column(name="high", form="score", decimals=3),
            Column(name="disagree", form="share", decimals=3),
            Column(name="by chance", form="share", decimals=3),
            Column(name="units", form="count"),
        ),
        rows=tuple(rows),
        notes=(
            f"units: {_UNITS[found.kind]} with at least two judgments",
            _interval_note(found),
            *(f"undefined: {why}" for why in sorted(map(str, undefined))),
        ),
    )


def _row(
    name: str, found: Agreement, interval: Interval | None, *, shares: bool = True
) -> tuple[Cell, ...]:
    """Disagreement on other scales than the nominal one is no share of anything."""
    low, high = interval or (None, None)
    observed, expected = (found.observed, found.expected) if shares else (None, None)
    return (name, found.value, low, high, observed, expected, found.units)


def _interval_note(found: JudgeAgreement) -> str:
    return (
        f"low, high: {found.level:.0%} for each by itself, percentiles of {found.trials:,} samples "
        f"of queries, at least {FEWEST} of them; nothing is tested"
    )


def _pair_table(found: JudgeAgreement) -> Table:
    graded = found.kind == "documents"
    shown = [
        Column(name="judge"),
        Column(name="other judge"),
        Column(name="units", form="count"),
        Column(name="same", form="share", decimals=3),
        Column(name="kappa", form="score", decimals=3),
        Column(name="low", form="score", decimals=3),
        Column(name="high", form="score", decimals=3),
        *([Column(name="overlap", form="share", decimals=3)] if graded else []),
    ]
    rows = []
    for pair in found.pairs:
        low, high = pair.interval or (None, None)
        row = (pair.first, pair.second, pair.units, pair.same, pair.kappa.value, low, high)
        rows.append((*row, pair.overlap) if graded else row)
    possible = len(found.judges) * (len(found.judges) - 1) // 2
    return Table(
        title=f"Each two of {len(found.judges):,} judges on what both judged",
        columns=tuple(shown),
        rows=tuple(rows),
        notes=tuple(_pair_notes(found, possible - len(found.pairs))),
    )


def _pair_notes(found: JudgeAgreement, apart: int) -> list[str]:
    notes = [f"kappa: Cohen's, weights {found.weights}", _interval_note(found)]
    if found.relevant is not None:
        notes.append(f"grades from {found.relevant} on count 1, lower ones 0")
    if found.kind == "documents":
        least = found.relevant or 1
        notes.append(f"overlap: relevant to both (grade {least} or more), of those to either")
    else:
        notes.append("a file that prefers either item as often has no verdict on their pair")
    if apart:
        notes.append(f"{apart:,} more pairs of judges have judged nothing in common")
    undefined = {pair.kappa.why for pair in found.pairs if pair.kappa.why}
    return [*notes, *(f"undefined: {why}" for why in sorted(undefined))]


def _confusion_table(found: JudgeAgreement, pair: JudgePair) -> Table:
    """Where two judges differ; of preferences the categories mean nothing."""
    names = [f"{grade:g}" for grade in found.categories]
    if found.kind == "pairs":
        names = ["first by id" if name == "0" else "second by id" for name in names]
    return Table(
        title=f"{pair.first} (rows) and {pair.second} (columns)",
        columns=(Column(name=""), *(Column(name=name, form="count") for name in names)),
        rows=tuple((name, *row) for name, row in zip(names, pair.confusion, strict=True)),
    )
