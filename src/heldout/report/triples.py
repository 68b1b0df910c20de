"""What a filter of training triples left, in words, a table and JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heldout.answers.table import Column, Table
from heldout.errors import plural
from heldout.survivorship.training.triple_filter import Written

__all__ = ["TripleReport", "facts", "tables", "value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TripleReport:
    """What was filtered.

    Attributes:
        source: the file, or the run that negatives came from.
        written: the files.
        unknown: triples left out because the annotations do not know their positive.
    """

    source: str
    written: Sequence[Written]
    unknown: int


def facts(report: TripleReport) -> list[tuple[str, str]]:
    """Where the files are, and what could not be used."""
    lines = [
        ("wrote" if place == 0 else "", str(one.path)) for place, one in enumerate(report.written)
    ]
    if report.unknown:
        told = f"{plural(report.unknown, 'triple')} with positives that the annotations do not know"
        lines.append(("left out", told))
    return lines


def tables(report: TripleReport) -> list[Table]:
    """How much each condition has."""
    columns = (
        Column(name="condition"),
        Column(name="triples", form="count"),
        Column(name="left out", form="count"),
        Column(name="labels", form="count"),
        Column(name="queries", form="count"),
    )
    rows = tuple(
        (
            one.condition.name,
            one.counts.triples,
            one.dropped,
            one.counts.labels,
            one.counts.queries,
        )
        for one in report.written
    )
    notes = [
        f"{one.condition.name}: {plural(count, name)} too few, since the {drawn} drawn have no more"
        for one in report.written
        for count, name, drawn in (
            (one.missing_labels, "label", "queries"),
            (one.missing, "triple", "labels"),
        )
        if count
    ]
    title = f"Triples of {report.source}"
    return [Table(title=title, columns=columns, rows=rows, notes=tuple(notes))]


def value(report: TripleReport) -> dict[str, Any]:
    """As JSON."""
    return {
        "source": report.source,
        "unknown": report.unknown,
        "files": [
            {
                "condition": one.condition.name,
                "path": str(one.path),
                "triples": one.counts.triples,
                "left_out": one.dropped,
                "labels": one.counts.labels,
                "queries": one.counts.queries,
                "missing": one.missing,
                "missing_labels": one.missing_labels,
            }
            for one in report.written
        ],
    }
