"""Where one run and the labels agree: category A, its first document is the known answer, or B.

Each query gives one pair: in A the known answer against the second document, in B against the
first (Arabzadeh et al. 2021, §3.1, tables 1 and 2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table
from heldout.answers.texts import write, write_facts, write_table
from heldout.charts.axes import share_axis
from heldout.charts.plot import Plot, PlotRow
from heldout.charts.svg import LINK, RECORD
from heldout.judging.campaign.judgments import Votes
from heldout.judging.campaign.pools import stand_for
from heldout.judging.labels.contests import Contest, hold_contest
from heldout.judging.labels.source import Judged
from heldout.trec.tops import Tops

Category = Literal["A", "B"]
_MEANS: Mapping[Category, str] = {
    "A": "known answer first; compared with the second document",
    "B": "another document first; compared with the known answer",
}
_SIDES: Mapping[Category, tuple[str, str]] = {"A": ("known", "other"), "B": ("other", "known")}
_NAMES = {"known": "known answer", "other": "other passage"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A query's category and pair.

    Attributes:
        query: its id.
        category: `A`: the run puts the known answer first; `B`: another document.
        known: the known answer.
        other: the document that it is compared with.
    """

    query: str
    category: Category
    known: str
    other: str


def split_queries(
    tops: Tops, known: Mapping[str, Sequence[str]], *, queries: Iterable[str]
) -> tuple[Split, ...]:
    """Split queries by whether a run agrees with their labels.

    Args:
        tops: the run's first two documents of each query.
        known: query -> relevant documents in the order of their file; of several the first is
            taken, whatever the run says.
        queries: in this order.

    Returns:
        One for each query that has a known answer, and a document to compare it with: those the
        run does not answer, or answers with the known answer alone, are left out.
    """
    found = []
    for query in queries:
        documents, labels = tops.get(query, ()), known.get(query, ())
        if not documents or not labels:
            continue
        category: Category = "A" if documents[0] == labels[0] else "B"
        compared = documents[1:2] if category == "A" else documents[:1]
        found += [
            Split(query=query, category=category, known=labels[0], other=other)
            for other in compared
        ]
    return tuple(found)


# What people preferred where a run and the labels agree, and where they do not.
#
# In category A the run shows the known answer first, and that is compared with its second
# document; in B it shows another one, which is compared with the known answer. Labels that are the
# best answers would win both (Arabzadeh et al. 2021, §3.2, tables 1 and 2, figure 2).


Both = Mapping[Category, Contest]
"""Category -> the run's first document (a) against the one it is compared with (b)."""


def count_preferences(splits: Sequence[Split], votes: Votes, *, level: float = 0.95) -> Both:
    """Both categories.

    Args:
        splits: each query's category and pair, by the documents that stand for their texts.
        votes: those that count.
        level: of the intervals.
    """
    found: dict[Category, Contest] = {}
    for category in _MEANS:
        mine = [one for one in splits if one.category == category]
        sides = {"known": {one.query: one.known for one in mine}}
        sides["other"] = {one.query: one.other for one in mine}
        own = {one.query: votes.get(one.query, {}) for one in mine}
        found[category] = hold_contest(_SIDES[category], sides, own, level)
    return found


# One run against the labels, by category, as tables and JSON
# (Arabzadeh et al. 2021, tables 1 and 2).


def split_answer(run: str, tops: Tops, judged: Judged, votes: Votes, *, level: float) -> Answer:
    """Comparison of one run with the labels, split by whether it shows the known answer first.

    Args:
        run: its name.
        tops: its first two documents.
        judged: pools and known answers.
        votes: those that count.
        level: of the intervals.
    """
    same = stand_for(judged.pools)
    stands = {
        query: tuple(same.get(query, {}).get(doc, doc) for doc in docs)
        for query, docs in tops.items()
    }
    splits = split_queries(stands, judged.known, queries=[pool.query for pool in judged.pools])
    return categories_answer(run, count_preferences(splits, votes, level=level), level=level)


def categories_answer(run: str, found: Both, *, level: float = 0.95) -> Answer:
    """Queries of each category, and what was preferred in them; shares are of those that decide."""
    return Answer(
        answer=write("study.categories_headline", run=run, one=found["B"]),
        summary=write_facts("study.categories_summary", run=run, found=found, means=_MEANS),
        tables=(_sizes(run, found), _preferences(run, found, level)),
        document={
            "run": run,
            "categories": {
                name: to_document(one, "queries", "share") for name, one in found.items()
            },
            "share": "of the run's first document, a",
            "test": "binomial, exact, two-sided",
            "interval": "Clopper and Pearson",
            "level": level,
            "why": "share, low, high and p are null where no query decides",
        },
        chart=(lambda: draw_categories(found)) if _decided(found) else None,
        title=f"Queries where people prefer what {run} shows first, and where they prefer the "
        "passage that it is compared with, as shares of all that decide",
    )


def _decided(found: Both) -> int:
    return sum(one.queries for one in found.values())


def _sizes(run: str, found: Both) -> Table:
    sizes = {name: one.queries + one.drawn + one.unjudged for name, one in found.items()}
    total = sum(sizes.values())
    rows: list[tuple[Cell, ...]] = [
        (name, _MEANS[name], size, size / total if total else None) for name, size in sizes.items()
    ]
    rows.append(("total", "", total, 1.0 if total else None))
    return write_table("study.sizes", tuple(rows), run=run)


def _preferences(run: str, found: Both, level: float) -> Table:
    rows = tuple(row for name, one in found.items() for row in _rows(name, one, _decided(found)))
    return write_table("study.preferences", rows, run=run, found=found, level=level)


def _rows(name: Category, one: Contest, total: int) -> list[tuple[Cell, ...]]:
    """The known answer, then the other passage; the test is of what the run shows first."""
    rows: dict[str, tuple[Cell, ...]] = {}
    tests = (one.low, one.high, one.p), (None, None, None)
    counts = one.a_preferred, one.b_preferred
    for side, count, test in zip((one.a, one.b), counts, tests, strict=True):
        of_all = count / total if total else None
        of_category = count / one.queries if one.queries else None
        rows[side] = (name, _NAMES[side], count, of_all, of_category, *test)
    return [rows[side] for side in _NAMES]


# What people prefer where a run and the labels agree, and where not, as a picture.
#
# Arabzadeh et al. 2021, figure 2.

_WORDS: Mapping[Category, tuple[str, str]] = {
    "A": ("A: known answer first", "the next passage"),
    "B": ("B: another passage first", "the known answer"),
}


def draw_categories(found: Both) -> Plot:
    """A bar for each category, as long as its share of the queries; at least one decides."""
    total, rows = _decided(found), []
    for name, one in found.items():
        note = f"{one.a_preferred:,} to {one.b_preferred:,}" if one.queries else "nothing decides"
        rows.append(PlotRow(name=_WORDS[name][0], note=note))
    widest = max(one.queries for one in found.values()) / total
    plot = Plot(x=share_axis(widest * 1.02), rows=rows, foot="share of the queries that decide")
    for row, (name, one) in enumerate(found.items()):
        preferred, end = one.a_preferred / total, one.queries / total
        tip = f"{name}: {one.a_preferred:,} prefer what the run shows first"
        plot.bar((0.0, preferred), row, LINK, tip)
        tip = f"{name}: {one.b_preferred:,} prefer {_WORDS[name][1]}"
        plot.bar((preferred, end), row, RECORD, tip)
    plot.key("box", "first document of the run preferred", LINK)
    plot.key("box", "the other preferred", RECORD)
    return plot
