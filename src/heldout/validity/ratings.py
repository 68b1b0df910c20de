"""Judgments of several judges side by side: units by judges, from labels or from preferences.

A unit is what a judge decides on: a document for a query, or which of two items is better for one.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.ids import Digest
from heldout.trec.preferences import Preference

__all__ = ["Ratings", "RatingsKind", "rate_documents", "rate_preferences"]

RatingsKind = Literal["documents", "pairs"]
"""What was judged: documents by grade, or pairs of items by which is preferred."""

Judgments = Mapping[str, Mapping[str, int]]
Floats = NDArray[np.float64]
Pairs = dict[tuple[str, str, str], list[int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ratings:
    """What each judge said of each unit.

    Attributes:
        judges: names; a file of preferences is a judge, whoever gave them.
        queries: of each unit, the query it belongs to.
        verdicts: shape (judges, units), a judge's own grade; NaN where there is none, and where
            a file's preferences for a pair are as often for the one item as for the other.
        ratings: shape (rows, units), every single judgment, also several of one file for a pair;
            NaN elsewhere. The same as `verdicts` where every judge judges a unit once.
        kind: what was judged. Preferences are 0 for the item whose id is lower and 1 for the
            other, so which category is which means nothing.
        relevant: grades from here on became 1 and lower ones 0; `None` for grades as they were.
        digest: of all of the above.
    """

    judges: tuple[str, ...]
    queries: tuple[str, ...]
    verdicts: Floats
    ratings: Floats
    kind: RatingsKind
    relevant: int | None
    digest: Digest

    @property
    def size(self) -> int:
        """How many queries."""
        return len(set(self.queries))

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries."""
        kept = np.array([query in queries for query in self.queries], np.bool_)
        digest = sha256(repr((self.digest, np.flatnonzero(kept).tolist())).encode())
        verdicts, ratings = self.verdicts[:, kept], self.ratings[:, kept]
        for values in (verdicts, ratings):
            values.setflags(write=False)
        return replace(
            self,
            queries=tuple(query for query in self.queries if query in queries),
            verdicts=verdicts,
            ratings=ratings,
            digest=Digest(digest.hexdigest()),
        )


def rate_documents(judges: Mapping[str, Judgments], *, relevant: int | None = None) -> Ratings:
    """Labels as ratings.

    Args:
        judges: judge -> query -> document -> grade.
        relevant: grades from here on count 1 and lower ones 0; `None` for grades as they are.

    Raises:
        InputError: code `too-few-judges`.
    """
    if len(judges) < 2:  # noqa: PLR2004 - two to agree
        raise _too_few(f"{len(judges)}: {', '.join(judges)}")
    units = sorted(
        {
            (query, document)
            for judgments in judges.values()
            for query, grades in judgments.items()
            for document in grades
        }
    )
    place = {unit: column for column, unit in enumerate(units)}
    verdicts = np.full((len(judges), len(units)), np.nan)
    for row, judgments in enumerate(judges.values()):
        for query, grades in judgments.items():
            for document, grade in grades.items():
                value = grade if relevant is None else int(grade >= relevant)
                verdicts[row, place[query, document]] = value
    return _ratings(tuple(judges), units, verdicts, verdicts, relevant=relevant)


def rate_preferences(files: Mapping[str, Sequence[Preference]]) -> Ratings:
    """Preferences as ratings of pairs of items, whichever of the two stands first.

    Args:
        files: the judgments by the name of their file; a pair may be judged many times.
    """
    votes = {name: _collect(preferences) for name, preferences in files.items()}
    units = sorted({pair for pairs in votes.values() for pair in pairs})
    verdicts = np.full((len(files), len(units)), np.nan)
    rows: list[Floats] = []
    for row, pairs in enumerate(votes.values()):
        own = np.full((max(map(len, pairs.values()), default=0), len(units)), np.nan)
        for column, unit in enumerate(units):
            given = pairs.get(unit, [])
            own[: len(given), column] = given
            if given and 2 * sum(given) != len(given):
                verdicts[row, column] = 2 * sum(given) > len(given)
        rows.append(own)
    return _ratings(tuple(files), units, verdicts, np.concatenate(rows), kind="pairs")


def _collect(preferences: Sequence[Preference]) -> Pairs:
    pairs: Pairs = {}
    for one in preferences:
        low, high = sorted((one.preferred, one.other))
        pairs.setdefault((one.query, low, high), []).append(int(one.preferred == high))
    return pairs


def _ratings(
    judges: tuple[str, ...],
    units: Sequence[tuple[str, ...]],
    verdicts: Floats,
    ratings: Floats,
    *,
    kind: RatingsKind = "documents",
    relevant: int | None = None,
) -> Ratings:
    digest = sha256(repr((judges, units, kind, relevant)).encode())
    for values in (verdicts, ratings):
        values.setflags(write=False)
        digest.update(values.astype("<f8").tobytes())
    return Ratings(
        judges=judges,
        queries=tuple(unit[0] for unit in units),
        verdicts=verdicts,
        ratings=ratings,
        kind=kind,
        relevant=relevant,
        digest=Digest(digest.hexdigest()),
    )


def _too_few(found: str) -> InputError:
    return InputError(
        Problem(
            code="too-few-judges",
            path="judges",
            found=found,
            expected="at least two judges",
            hint="name another file of judgments, or one whose second column names judges",
        )
    )
