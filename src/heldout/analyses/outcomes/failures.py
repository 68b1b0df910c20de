"""Where does it fail? Two runs query by query: scores, both rankings, labels and texts.

`compare_lists` needs no file, and knows of no board or vault. `failures_of_runs` reads runs and
texts, and `failures_page` makes a page.
"""

import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, get_args

from heldout.scoring.table import Better
from heldout.stats.exact import differences
from heldout.trec.answers import SIGNATURE_DEPTH
from heldout.trec.tops import TopRankings

DEPTH = 10
"""Documents of each list that are shown, where nobody asks for more."""

MOST_DEPTH = SIGNATURE_DEPTH
"""The most that can be asked for."""


Outcome = Literal["both", "A alone", "B alone", "neither"]
"""Which runs have a relevant document among the first k."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


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
class Side:
    """One of the two runs.

    Attributes:
        name: what it is called.
        rankings: its first documents, and the places of all judged ones.
        scores: by query.
    """

    name: str
    rankings: TopRankings
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


def documents_of(query: QueryDifference) -> Iterator[str]:
    """The documents that a page shows for a query, some of them twice."""
    yield from query.a.documents
    yield from query.b.documents
    yield from (one.document for one in query.missed[:MOST_MISSED])


MOST_MISSED = 20
"""Relevant documents of a query that are shown beside the lists."""
