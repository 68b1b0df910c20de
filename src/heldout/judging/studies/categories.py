"""Where one run and the labels agree: category A, its first document is the known answer, or B.

Each query gives one pair: in A the known answer against the second document, in B against the
first (Arabzadeh et al. 2021, §3.1, tables 1 and 2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from heldout.answers.answer import Answer, to_document
from heldout.answers.sentence import name_one
from heldout.answers.table import Cell, Table, columns
from heldout.charts.axes import share_axis
from heldout.charts.plot import Plot, PlotRow
from heldout.charts.svg import LINK, RECORD
from heldout.judging.campaign.judgments import Votes
from heldout.judging.campaign.pools import stand_for
from heldout.judging.labels.source import Judged
from heldout.trec.tops import Tops

Category = Literal["A", "B"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryResult:
    """The pairs of one category.

    Attributes:
        category: `A` or `B`.
        queries: of the category.
        known_preferred: queries where more people preferred the known answer.
        other_preferred: where more preferred the other passage.
        drawn: where as many preferred either.
        unjudged: queries without a vote.
        p: of the exact two-sided binomial test of both preferences; `None` without a query.
        low, high: of `share`, by Clopper and Pearson; `None` without a query.
    """

    category: Category
    queries: int
    known_preferred: int
    other_preferred: int
    drawn: int
    unjudged: int
    p: float | None
    low: float | None
    high: float | None

    @property
    def decided(self) -> int:
        """Queries where more people preferred one of the two."""
        return self.known_preferred + self.other_preferred

    @property
    def top_preferred(self) -> int:
        """Queries where the run's first document was preferred: the known answer in A."""
        return self.known_preferred if self.category == "A" else self.other_preferred

    @property
    def share(self) -> float | None:
        """The share that preferred the run's first document; `None` without a query."""
        return self.top_preferred / self.decided if self.decided else None


def count_preferences(
    splits: Sequence[Split], votes: Votes, *, level: float = 0.95
) -> tuple[CategoryResult, CategoryResult]:
    """Both categories.

    Args:
        splits: each query's category and pair, by the documents that stand for their texts.
        votes: those that count.
        level: of the intervals.
    """
    return _count("A", splits, votes, level), _count("B", splits, votes, level)


def count_category(
    category: Category,
    *,
    known: int,
    other: int,
    drawn: int = 0,
    unjudged: int = 0,
    level: float = 0.95,
) -> CategoryResult:
    """A category from its counts.

    Args:
        category: which.
        known: queries where the known answer was preferred.
        other: where the other passage was.
        drawn: where as many preferred either.
        unjudged: without a vote.
        level: of the interval.
    """
    first = known if category == "A" else other
    p = low = high = None
    if known + other:
        from scipy.stats import binomtest  # noqa: PLC0415 - slow to load

        test = binomtest(first, known + other)
        interval = test.proportion_ci(level, "exact")
        p, low, high = float(test.pvalue), float(interval.low), float(interval.high)
    return CategoryResult(
        category=category,
        queries=known + other + drawn + unjudged,
        known_preferred=known,
        other_preferred=other,
        drawn=drawn,
        unjudged=unjudged,
        p=p,
        low=low,
        high=high,
    )


def _count(
    category: Category, splits: Sequence[Split], votes: Votes, level: float
) -> CategoryResult:
    tally = {"known": 0, "other": 0, "drawn": 0, "unjudged": 0}
    for one in splits:
        if one.category != category:
            continue
        pair = (min(one.known, one.other), max(one.known, one.other))
        cast = votes.get(one.query, {}).get(pair)
        if cast is None:
            tally["unjudged"] += 1
            continue
        lead = (cast.first - cast.second) * (1 if one.known < one.other else -1)
        tally["known" if lead > 0 else "other" if lead < 0 else "drawn"] += 1
    return count_category(category, **tally, level=level)


# One run against the labels, by category, as tables and JSON
# (Arabzadeh et al. 2021, tables 1 and 2).

Both = tuple[CategoryResult, CategoryResult]

_HALF = 0.5
_MEANS = {
    "A": "known answer first; compared with the second document",
    "B": "another document first; compared with the known answer",
}


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
    lines = [("run", run)]
    for one in found:
        share = "nothing is judged"
        if one.share is not None:
            share = f"{one.share:.1%} prefer what it shows"
        lines.append((one.category, f"{_MEANS[one.category]}: {share} first"))
    return Answer(
        answer=_headline(run, found),
        summary=lines,
        tables=(_sizes(run, found), _preferences(run, found, level)),
        document={
            "run": run,
            "categories": {one.category: to_document(one, "decided", "share") for one in found},
            "share": "of the run's first document",
            "test": "binomial, exact, two-sided",
            "interval": "Clopper and Pearson",
            "level": level,
            "why": "share, low, high and p are null where no query decides",
        },
        chart=(lambda: spec(found)) if any(one.decided for one in found) else None,
        title=f"Queries where people prefer what {run} shows first, and where they prefer the "
        "passage that it is compared with, as shares of all that decide",
    )


def _headline(run: str, found: Both) -> str:
    """Return where the run and the labels differ, which of the two people prefer."""
    apart = next(one for one in found if one.category == "B")
    if apart.share is None or apart.low is None or apart.high is None:
        return f"Where {name_one(run)} and the labels differ nothing is judged."
    sure = ""
    if apart.low <= _HALF <= apart.high:
        sure = ", which may be chance"
    return (
        f"Where {name_one(run)} does not show the known answer first, people prefer what it shows "
        f"to the known answer on {apart.share:.1%} of {apart.decided:,} queries{sure}."
    )


def _sizes(run: str, found: Both) -> Table:
    total = sum(one.queries for one in found)
    rows: list[tuple[Cell, ...]] = [
        (one.category, _MEANS[one.category], one.queries, one.queries / total if total else None)
        for one in found
    ]
    return Table(
        title=f"Where {run} and the labels agree",
        columns=(
            *columns("text", "category", "the run shows"),
            *columns("count", "queries"),
            *columns("share", "share"),
        ),
        rows=(*rows, ("total", "", total, 1.0 if total else None)),
    )


def _preferences(run: str, found: Both, level: float) -> Table:
    total = sum(one.decided for one in found)
    return Table(
        title=f"What people prefer where {run} and the labels agree, and where not",
        columns=(
            *columns("text", "category", "preferred"),
            *columns("count", "queries"),
            *columns("share", "of all", "of category", "low", "high"),
            *columns("p", "p"),
        ),
        rows=tuple(row for one in found for row in _rows(one, total)),
        notes=(
            *(
                f"{one.category}: {one.drawn:,} queries with as many votes for either, "
                f"{one.unjudged:,} without a vote"
                for one in found
                if one.drawn or one.unjudged
            ),
        ),
        method=(
            (
                f"low, high: {level:.0%} by Clopper and Pearson, of what the run shows first. "
                "p: exact binomial, two-sided, each by itself."
            ),
        ),
    )


def _rows(one: CategoryResult, total: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
    def row(name: str, count: int, *, shown: bool) -> tuple[Cell, ...]:
        ends = (one.low, one.high, one.p) if shown else (None, None, None)
        of_category = count / one.decided if one.decided else None
        return (one.category, name, count, count / total if total else None, of_category, *ends)

    return (
        row("known answer", one.known_preferred, shown=one.category == "A"),
        row("other passage", one.other_preferred, shown=one.category == "B"),
    )


# What people prefer where a run and the labels agree, and where not, as a picture.
#
# Arabzadeh et al. 2021, figure 2.

_WORDS = {
    "A": ("A: known answer first", "the next passage"),
    "B": ("B: another passage first", "the known answer"),
}


def spec(found: tuple[CategoryResult, CategoryResult]) -> Plot:
    """A bar for each category, as long as its share of the queries; at least one decides."""
    total = sum(one.decided for one in found)
    rows = []
    for one in found:
        lost = one.decided - one.top_preferred
        note = f"{one.top_preferred:,} to {lost:,}" if one.decided else "nothing decides"
        rows.append(PlotRow(name=_WORDS[one.category][0], note=note))
    widest = max(one.decided for one in found) / total
    plot = Plot(x=share_axis(widest * 1.02), rows=rows, foot="share of the queries that decide")
    for row, one in enumerate(found):
        preferred, end = one.top_preferred / total, one.decided / total
        tip = f"{one.category}: {one.top_preferred:,} prefer what the run shows first"
        plot.bar((0.0, preferred), row, LINK, tip)
        lost = one.decided - one.top_preferred
        tip = f"{one.category}: {lost:,} prefer {_WORDS[one.category][1]}"
        plot.bar((preferred, end), row, RECORD, tip)
    plot.key("box", "first document of the run preferred", LINK)
    plot.key("box", "the other preferred", RECORD)
    return plot
