"""Where does it fail? Two runs query by query: scores, both rankings, labels and texts.

`list_failures` reads runs and texts; `compare_lists` needs no file. Neither knows of a board or a
vault. What they give is a value; `failures_page` makes a page of it.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, get_args

from heldout.analyses.outcomes.outcomes import fits_labels
from heldout.collections.wanted_texts import cut_texts, find_texts
from heldout.errors import InputError, plural
from heldout.files.frames import PARQUET, Framed, read_parquet
from heldout.progress_bar import SILENT, Progress
from heldout.scoring.measures import Measure
from heldout.scoring.names import read_measure
from heldout.scoring.score import Reading
from heldout.scoring.sources import ComparedRuns, queries_with_several, score_runs
from heldout.scoring.table import Better, ScoreTable, cut_table
from heldout.stats.exact import differences
from heldout.trec.answers import SIGNATURE_DEPTH
from heldout.trec.memory import MemoryRun, run_from_frame
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import Rankings, memory_rankings, read_rankings

DEPTH = 10
"""Documents of each list that are shown, where nobody asks for more."""

MOST_DEPTH = SIGNATURE_DEPTH
"""The most that can be asked for."""

_LONGEST_TEXT = 2000
"""Characters of a document that are held: a page of 7,000 queries has up to 140,000 documents."""

Outcome = Literal["both", "A alone", "B alone", "neither"]
"""Which runs have a relevant document among the first k."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


Documents = Mapping[str, str] | Sequence[str] | str | PathLike[str]
"""Text by document, or where texts are, as `find_texts` takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What one run says of a query.

    Attributes:
        documents: the first ones, best first.
        places: rank of each judged document that the run lists, however deep.
        retrieved: how many documents it lists; 0 where it does not answer the query.
        score: by the measure.
        first: rank of the first relevant document among the first k, 0 where there is none.
    """

    documents: tuple[str, ...]
    places: Mapping[str, int]
    retrieved: int
    score: float
    first: int

    def rank_of(self, document: str, *, judged: bool) -> int | None:
        """The rank of a document, 0 where the run does not list it, `None` where nobody knows.

        Only judged documents are looked for below the first ones.
        """
        if document in self.documents:
            return self.documents.index(document) + 1
        if judged:
            return self.places.get(document, 0)
        return 0 if self.retrieved <= len(self.documents) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A relevant document that one of the lists shown lacks, or both.

    Attributes:
        document: its id.
        grade: its label.
        a: its rank in A, 0 where A does not list it.
        b: the same of B.
    """

    document: str
    grade: int
    a: int
    b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDifference:
    """A query as both runs answer it.

    Attributes:
        query: its id.
        text: `None` where nobody gave it.
        a: what A says.
        b: what B says.
        difference: score of B less that of A; 0 where they differ by less than 1e-12.
        gain: the same, above 0 where B is better: the other sign if lower scores are better.
        grades: label of each judged document.
        rel: lowest grade that is relevant.
    """

    query: str
    text: str | None
    a: Ranking
    b: Ranking
    difference: float
    gain: float
    grades: Mapping[str, int]
    rel: int

    @property
    def outcome(self) -> Outcome:
        """Which runs have a relevant document among the first k."""
        if self.a.first and self.b.first:
            return "both"
        if self.a.first:
            return "A alone"
        return "B alone" if self.b.first else "neither"

    @property
    def missed(self) -> tuple[Missed, ...]:
        """Relevant documents that are not in both lists shown: highest grade first, then rank."""
        found = (
            Missed(
                document=document,
                grade=grade,
                a=self.a.places.get(document, 0),
                b=self.b.places.get(document, 0),
            )
            for document, grade in self.grades.items()
            if grade >= self.rel
            and not (document in self.a.documents and document in self.b.documents)
        )
        return tuple(sorted(found, key=_by_grade_and_rank))


def _by_grade_and_rank(one: Missed) -> tuple[int, float, str]:
    return (
        -one.grade,
        min((rank for rank in (one.a, one.b) if rank), default=math.inf),
        one.document,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures(Framed):
    """Two runs query by query.

    Attributes:
        a: name of A.
        b: name of B.
        qrels: what the labels are called.
        measure: that queries are scored by.
        better: which of its scores are better.
        cutoff: the deepest rank that it looks at; `None` for the whole list.
        chosen: whether it was chosen here, since nobody named one.
        k: documents of each list in which a first relevant one is looked for.
        rel: lowest grade that is relevant.
        depth: documents of each list that are shown.
        queries: largest loss of B first, largest gain last; queries alike by id.
        texts: of the documents shown, as far as they were found; long ones are cut and end with an
            ellipsis.
        missing_texts: how many documents were looked for and not found; 0 where none were given.
    """

    a: str
    b: str
    qrels: str
    measure: str
    better: Better
    cutoff: int | None
    chosen: bool
    k: int
    rel: int
    depth: int
    queries: tuple[QueryDifference, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
    missing_texts: int = 0

    @property
    def wins(self) -> int:
        """Queries on which B is better."""
        return sum(one.gain > 0 for one in self.queries)

    @property
    def losses(self) -> int:
        """Queries on which A is better."""
        return sum(one.gain < 0 for one in self.queries)

    @property
    def ties(self) -> int:
        """Queries on which neither is."""
        return len(self.queries) - self.wins - self.losses

    @property
    def mean_a(self) -> float:
        """Mean score of A."""
        return math.fsum(one.a.score for one in self.queries) / len(self.queries)

    @property
    def mean_b(self) -> float:
        """Mean score of B."""
        return math.fsum(one.b.score for one in self.queries) / len(self.queries)

    @property
    def outcomes(self) -> Mapping[Outcome, int]:
        """How many queries have each outcome."""
        counts = Counter(one.outcome for one in self.queries)
        return {outcome: counts[outcome] for outcome in OUTCOMES}

    @property
    def unjudged(self) -> tuple[float, float]:
        """Share of the documents shown of A, and of B, without a label; 0 where none is shown."""
        return (
            _unjudged([(one.a.documents, one.grades) for one in self.queries]),
            _unjudged([(one.b.documents, one.grades) for one in self.queries]),
        )

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        return (
            f"B is better on {plural(self.wins, 'query', 'queries')}, worse on {self.losses:,} and "
            f"equal on {self.ties:,}. "
            f"Mean {self.measure}: A {self.mean_a:.4f}, B {self.mean_b:.4f}."
        )

    def __repr__(self) -> str:
        return f"A {self.a}\nB {self.b}\n{self.answer}"

    def _repr_html_(self) -> str:
        """Show the answer, the picture, the largest losses and gains in a notebook."""
        from heldout.analyses.outcomes.failures_page import to_notebook  # noqa: PLC0415 - a circle

        return to_notebook(self)

    def write(self, path: Path | str) -> Path:
        """Write the page, with its data in a folder beside it, or nothing.

        Args:
            path: ends in `.html`. Something is there only if an earlier call wrote it.

        Returns:
            The folder, as `out_files` for `out.html`, which the page needs.

        Raises:
            InputError: code `page-name`.
            StoreError: there is something else of either name.
        """
        from heldout.analyses.outcomes.failures_page import write_page  # noqa: PLC0415 - a circle

        return write_page(self, Path(path))

    def columns(self) -> dict[str, list[Any]]:
        """A row for each query, as columns; no first relevant document is `None`."""
        found = self.queries
        return {
            "query": [one.query for one in found],
            "text": [one.text for one in found],
            "a": [one.a.score for one in found],
            "b": [one.b.score for one in found],
            "difference": [one.difference for one in found],
            "outcome": [one.outcome for one in found],
            "first_a": [one.a.first or None for one in found],
            "first_b": [one.b.first or None for one in found],
        }

    def to_dict(self) -> dict[str, Any]:
        """The answer, what it rests on, and a row for each query."""
        rows = self.columns()
        return {
            "answer": self.answer,
            "a": self.a,
            "b": self.b,
            "measure": self.measure,
            "better": self.better,
            "k": self.k,
            "rel": self.rel,
            "mean": {"a": self.mean_a, "b": self.mean_b},
            "wins": self.wins,
            "losses": self.losses,
            "ties": self.ties,
            "outcomes": dict(self.outcomes),
            "queries": [
                dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)
            ],
        }


def _unjudged(shown: Sequence[tuple[Sequence[str], Mapping[str, int]]]) -> float:
    total = sum(len(documents) for documents, _ in shown)
    known = sum(document in grades for documents, grades in shown for document in documents)
    return 1 - known / total if total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two runs.

    Attributes:
        name: what it is called.
        rankings: its first documents, and the places of all judged ones.
        scores: by query.
    """

    name: str
    rankings: Rankings
    scores: Mapping[str, float]


def compare_lists(
    a: Side,
    b: Side,
    judgments: Mapping[str, Mapping[str, int]],
    *,
    better: Better = "higher",
    k: int = 100,
    rel: int = 1,
    texts: Mapping[str, str] | None = None,
) -> tuple[QueryDifference, ...]:
    """The queries that both sides have scores for, largest loss of B first.

    Args:
        a: one run.
        b: the other.
        judgments: query -> document -> grade.
        better: which scores are better.
        k: documents of each list in which a first relevant one is looked for.
        rel: lowest grade that is relevant.
        texts: of the queries.
    """
    queries = [query for query in a.scores if query in b.scores]
    changes = differences(
        [a.scores[query] for query in queries], [b.scores[query] for query in queries]
    )
    sign = -1.0 if better == "lower" else 1.0
    found = []
    for query, change in zip(queries, changes.tolist(), strict=True):
        grades = judgments[query]
        relevant = frozenset(doc for doc, grade in grades.items() if grade >= rel)
        found.append(
            QueryDifference(
                query=query,
                text=(texts or {}).get(query),
                a=_ranking(a, query, relevant, k),
                b=_ranking(b, query, relevant, k),
                difference=change,
                gain=sign * change + 0.0,
                grades=grades,
                rel=rel,
            )
        )
    return tuple(sorted(found, key=lambda one: (one.gain, one.query)))


def _ranking(side: Side, query: str, relevant: AbstractSet[str], k: int) -> Ranking:
    places = side.rankings.places.found.get(query, {})
    first = min((rank for doc, rank in places.items() if doc in relevant), default=0)
    return Ranking(
        documents=side.rankings.tops.get(query, ()),
        places=places,
        retrieved=side.rankings.places.retrieved.get(query, 0),
        score=side.scores[query],
        first=first if first <= k else 0,
    )


def list_failures(
    runs: ComparedRuns,
    qrels: Qrels,
    *,
    judgments: str = "qrels",
    measure: str | None = None,
    queries: Mapping[str, str] | None = None,
    documents: Documents | None = None,
    only: AbstractSet[str] | None = None,
    depth: int | None = None,
    k: int = 100,
    rel: int = 1,
    order: Order | None = None,
    reading: Reading | None = None,
    progress: Progress = SILENT,
) -> Failures:
    """Compare two runs query by query.

    Args:
        runs: both sides, of one run each; `find_compared` finds files.
        qrels: the labels.
        judgments: what they are called on the page.
        measure: that queries are scored by; `None` for RR@10 where at most a fifth of the queries
            have several relevant documents, else nDCG@10.
        queries: text by query.
        documents: texts of the documents.
        only: the queries to look at; `None` for all that have labels.
        depth: documents of each list that are shown, 1 to 100; `None` for 10, or less where the
            measure looks at less.
        k: documents of each list in which a first relevant one is looked for.
        rel: lowest grade that is relevant.
        order: how documents are ordered; `None` for what fits a run's columns.
        reading: how runs are scored.
        progress: gets what is being read.

    Raises:
        InputError: a file has errors; codes `one-run`: a side is a group of runs;
            `too-few-queries`: no query is left; and those of `scoring.sources.score_runs`.
        ValueError: a depth that cannot be shown.
    """
    check_single(runs)
    wanted = choose_measure(measure, qrels, rel)
    shown = _depth(depth, wanted)
    name = str(wanted)
    scores = score_runs(
        runs.runs, qrels, [name], reading or Reading(), judgments=judgments, order=order
    )[name]
    table = scores.table if only is None else cut_table(scores.table, only)
    if not table.queries:
        raise InputError.of("too-few-queries", "queries", "no query with labels", "at least one")
    a, b = (
        Side(
            name=side.name,
            rankings=_read(runs.runs[side.runs[0]], qrels, shown, order),
            scores=_row(table, side.runs[0]),
        )
        for side in (runs.a, runs.b)
    )
    found = compare_lists(a, b, qrels.judgments, better=scores.better, k=k, rel=rel, texts=queries)
    texts, missing = _texts(found, documents, progress)
    return Failures(
        a=a.name,
        b=b.name,
        qrels=judgments,
        measure=name,
        better=scores.better,
        cutoff=wanted.cutoff,
        chosen=measure is None,
        k=k,
        rel=rel,
        depth=shown,
        queries=found,
        texts=texts,
        missing_texts=missing,
    )


def check_single(runs: ComparedRuns) -> None:
    """Refuse groups of runs: two rankings can be shown side by side, those of six seeds cannot.

    Raises:
        InputError: code `one-run`.
    """
    for side, given in (("A", runs.a), ("B", runs.b)):
        if len(given.runs) > 1:
            raise InputError.of(
                "one-run",
                side,
                f"{len(given.runs)} runs",
                "one run on each side, to show both rankings of a query",
                "name one seed of the group; without the page groups are compared by their means",
            )


def choose_measure(named: str | None, qrels: Qrels, rel: int) -> Measure:
    """The measure that queries are scored by.

    Args:
        named: `None` where nobody named one: RR@10 fits labels with one relevant document, of which
            at most a fifth of the queries may have more; nDCG@10 fits the others.
        qrels: the labels.
        rel: lowest grade that is relevant.

    Raises:
        InputError: the measure is unknown.
    """
    if named is None:
        several = len(queries_with_several(qrels, rel))
        fits = fits_labels(several, len(qrels.judgments))
        named = f"RR(rel={rel})@10" if fits else "nDCG@10"
    return read_measure(named)


def _depth(asked: int | None, measure: Measure) -> int:
    if asked is None:
        return min(DEPTH, measure.cutoff or DEPTH)
    if not 1 <= asked <= MOST_DEPTH:
        raise ValueError(f"depth: {asked}, which is not from 1 to {MOST_DEPTH}")
    return asked


def _read(run: str | MemoryRun, qrels: Qrels, depth: int, order: Order | None) -> Rankings:
    judgments = qrels.judgments
    if isinstance(run, str) and run.lower().endswith(PARQUET):
        run = run_from_frame(read_parquet(run), name=run)
    if isinstance(run, MemoryRun):
        return memory_rankings(run, depth=depth, documents=judgments, order=order)
    with open_input(Path(run)) as file:
        return read_rankings(
            file, path=run, depth=depth, documents=judgments, order=order, limits=OWN_FILES
        )


def _row(table: ScoreTable, run: str) -> Mapping[str, float]:
    return dict(zip(table.queries, table.values[table.systems.index(run)].tolist(), strict=True))


def documents_of(query: QueryDifference) -> Iterator[str]:
    """The documents that a page shows for a query, some of them twice."""
    yield from query.a.documents
    yield from query.b.documents
    yield from (one.document for one in query.missed[:MOST_MISSED])


MOST_MISSED = 20
"""Relevant documents of a query that are shown beside the lists."""


def _texts(
    queries: Sequence[QueryDifference],
    documents: Documents | None,
    progress: Progress,
) -> tuple[Mapping[str, str], int]:
    """The texts of the documents that are shown, and how many are missing."""
    if documents is None:
        return {}, 0
    wanted = frozenset(document for query in queries for document in documents_of(query))
    if isinstance(documents, Mapping):
        known = {doc: documents[doc] for doc in wanted if doc in documents}
        found = cut_texts(known, _LONGEST_TEXT)
    else:
        sources = (fspath(documents),) if isinstance(documents, str | PathLike) else documents
        found = find_texts(sources, wanted, longest=_LONGEST_TEXT, progress=progress)
    return found, len(wanted) - len(found)
