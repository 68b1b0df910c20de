"""Why queries were discarded, as tables and JSON: table 1 of survivorship-bias."""

from typing import Any

from heldout.answers.table import Cell, Column, Table
from heldout.errors import plural
from heldout.report.annotators import agreement_value, share_value
from heldout.survivorship.discarded.shares import Share
from heldout.survivorship.discarded.triage import TriageAgreement, TriageCounts, TriageResult

__all__ = ["facts", "tables", "value"]

_MEANS = {
    "no_ans": "no passage shown answers it",
    "partial_ans": "a passage answers it in part",
    "wrong_lab": "a passage answers it fully",
    "ill_form": "it is no sound question",
}


def facts(found: TriageResult, agreement: TriageAgreement) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines."""
    all_ = found.all
    asked = all_.total + all_.disputed + all_.open
    lines = [("queries", f"{all_.total:,} of {asked:,} drawn have a label")]
    if all_.total:
        lines += [
            ("mislabelled", f"{_tell(all_.labels['wrong_lab'])} were answered by what was shown"),
            ("unsound", f"{_tell(all_.labels['ill_form'])} are no sound questions"),
        ]
    if all_.disputed:
        told = plural(all_.disputed, "query", "queries")
        lines.append(("disputed", f"{told}: as many annotators say another thing; not counted"))
    if all_.open:
        lines.append(("open", f"{plural(all_.open, 'query', 'queries')} without an answer"))
    if found.cannot:
        lines.append(("cannot", f"{plural(found.cannot, 'answer')} that it can't be judged"))
    lines.append(("judges", _tell_agreement(found, agreement)))
    return tuple(lines)


def tables(found: TriageResult, agreement: TriageAgreement, *, level: float) -> tuple[Table, ...]:
    """Counts by split, the shares of all, and how far annotators agree."""
    kappa = (_kappa(agreement),) if agreement.kappa else ()
    return (_counts(found), _shares(found, level), *kappa)


def value(found: TriageResult, agreement: TriageAgreement, *, level: float) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "splits": [_count_value(one) for one in found.splits],
        "all": _count_value(found.all),
        "interval": "Wilson",
        "level": level,
        "annotators": list(found.annotators),
        "cannot": found.cannot,
        "agreement": {
            **agreement_value(agreement.alpha, agreement.interval, units="queries"),
            "kappa": [
                {"a": a, "b": b, "kappa": one.value, "queries": one.units, "why": one.why}
                for (a, b), one in agreement.kappa.items()
            ],
        },
    }


def _count_value(one: TriageCounts) -> dict[str, Any]:
    why = "no query has a label"
    return {
        "split": one.split,
        "labels": {label: share_value(share, why=why) for label, share in one.labels.items()},
        "total": one.total,
        "disputed": one.disputed,
        "open": one.open,
        **({} if one.total else {"why": why}),
    }


def _tell(share: Share) -> str:
    return f"{share.count:,} of {share.of:,} ({share.low:.1%} to {share.high:.1%})"


def _tell_agreement(found: TriageResult, agreement: TriageAgreement) -> str:
    names = plural(len(found.annotators), "annotator")
    alpha = agreement.alpha
    if alpha.value is None:
        return f"{names}; no agreement to tell: {alpha.why}"
    ends = agreement.interval
    between = f" ({ends[0]:.2f} to {ends[1]:.2f})" if ends else ""
    queries = plural(alpha.units, "query", "queries")
    return f"{names}; alpha {alpha.value:.2f}{between} on {queries} that several answered"


def _counts(found: TriageResult) -> Table:
    rows = tuple(_count_row(one) for one in _told(found))
    return Table(
        title="Discarded queries by reason they were unanswered",
        columns=(
            Column(name="split"),
            *(Column(name=label, form="count") for label in _MEANS),
            Column(name="total", form="count"),
        ),
        rows=rows,
        notes=tuple(f"{label}: {words}." for label, words in _MEANS.items()),
    )


def _told(found: TriageResult) -> tuple[TriageCounts, ...]:
    """Each split and all together; one split alone by its own name, where it has one."""
    if len(found.splits) == 1 and found.splits[0].split:
        return found.splits
    return (*(found.splits if len(found.splits) > 1 else ()), found.all)


def _count_row(one: TriageCounts) -> tuple[Cell, ...]:
    return (_split(one), *(share.count for share in one.labels.values()), one.total)


def _split(one: TriageCounts) -> str:
    return one.split or "(none)"


def _shares(found: TriageResult, level: float) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (_split(one), label, share.count, share.share, share.low, share.high)
        for one in _told(found)
        for label, share in one.labels.items()
    ]
    together = (
        "All: of the queries drawn together; it is no share of the collection, of whose splits "
        "different parts were drawn."
    )
    return Table(
        title="As shares of the queries with a label",
        columns=(
            Column(name="split"),
            Column(name="label"),
            Column(name="queries", form="count"),
            Column(name="share", form="share", decimals=3),
            Column(name="low", form="share", decimals=3),
            Column(name="high", form="share", decimals=3),
        ),
        rows=tuple(rows),
        notes=(
            f"low, high: {level:.0%} by Wilson, each by itself.",
            *((together,) if len(found.splits) > 1 else ()),
        ),
    )


def _kappa(agreement: TriageAgreement) -> Table:
    return Table(
        title="Agreement of two annotators",
        columns=(
            Column(name="annotator"),
            Column(name="and"),
            Column(name="queries", form="count"),
            Column(name="kappa", form="difference", decimals=2),
        ),
        rows=tuple((a, b, one.units, one.value) for (a, b), one in agreement.kappa.items()),
        notes=("kappa: Cohen's, unweighted, on queries that both answered.",),
    )
