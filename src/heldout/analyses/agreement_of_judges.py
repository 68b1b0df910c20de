"""How far judges agree: Cohen's kappa of each two, Fleiss' kappa, Krippendorff's alpha of all.

Documents of a query are judged one after the other and are easy or hard together, so intervals
draw queries and not documents.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import combinations
from typing import Annotated, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.analyses.agreement_of_runs import Interval, matrix_chart
from heldout.answers.table import Row, Table, ends_first
from heldout.answers.texts import write, write_facts, write_table
from heldout.charts.plot import Plot
from heldout.errors import InputError
from heldout.ids import Digest
from heldout.options import Level, Opt
from heldout.stats import agreement
from heldout.trec.judgments import Preference

# Judgments of several judges side by side: units by judges, from labels or from preferences.
#
# A unit is what a judge decides on: a document for a query, or which of two items is better for
# one.

RatingsKind = Literal["documents", "pairs"]
"""What was judged: documents by grade, or pairs of items by which is preferred."""

Judgments = Mapping[str, Mapping[str, float]]
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
        inside = np.array([query in queries for query in self.queries], np.bool_)
        digest = sha256(repr((self.digest, np.flatnonzero(inside).tolist())).encode())
        verdicts, ratings = self.verdicts[:, inside], self.ratings[:, inside]
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
    if len(judges) < _PAIR:
        raise InputError.of("too-few-judges", "judges", f"{len(judges)}: {', '.join(judges)}")
    units = sorted(
        {
            (query, document)
            for judgments in judges.values()
            for query, grades in judgments.items()
            for document in grades
        }
    )
    position = {unit: column for column, unit in enumerate(units)}
    verdicts = np.full((len(judges), len(units)), np.nan)
    for row, judgments in enumerate(judges.values()):
        for query, grades in judgments.items():
            for document, grade in grades.items():
                value = grade if relevant is None else int(grade >= relevant)
                verdicts[row, position[query, document]] = value
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


FEWEST = 10
"""Queries that an interval needs: of fewer, percentiles hold far too rarely."""

_PAIR = 2
_SHOWN_GRADES = 20
_MOST_GRADES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """How judges are compared."""

    scale: Annotated[agreement.Scale, Opt("Scale of the grades, for Krippendorff's alpha.")] = (
        "nominal"
    )
    weights: Annotated[
        agreement.KappaWeights,
        Opt("Weights of Cohen's kappa for judges who are several grades apart."),
    ] = "none"
    trials: Annotated[int, Opt("Number of bootstrap samples of the queries.", least=1)] = 1000
    level: Level = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePair:
    """Two judges on the units that both judged.

    Attributes:
        first, second: their names.
        units: how many both judged, at least 1.
        queries: of how many queries.
        same: share of them with the same grade.
        kappa: Cohen's.
        interval: of kappa, by drawing queries; `None` where undefined, and with too few queries.
        overlap: units with a grade above 0 from both, as a share of those with one from either
            (Voorhees 2000); `None` where there is none, and for preferences.
        confusion: units by the category of the first (rows) and of the second.
    """

    first: str
    second: str
    units: int
    queries: int
    same: float
    kappa: agreement.AgreementCoefficient
    interval: Interval | None
    overlap: float | None
    confusion: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """How far judges agree.

    Attributes:
        judges: names.
        judged: of how many units each has a verdict.
        kind: what was judged.
        categories: all grades that occur, ascending.
        units: how many were judged by anyone.
        queries: of how many queries.
        pairs: each two judges that share a unit, in the order of `judges`.
        fleiss: Fleiss' kappa on units that all judges judged; `None` where there is none.
        fleiss_units: how many those are.
        alpha: Krippendorff's, of every judgment.
        interval: of alpha, by drawing queries; `None` where undefined, and with too few queries.
        relevant: grades from here on became 1 and lower ones 0; `None` for grades as they were.
        options: the scale of alpha, the weights of kappa, and how intervals were drawn.
        digest: of the ratings.
    """

    judges: tuple[str, ...]
    judged: tuple[int, ...]
    kind: RatingsKind
    categories: tuple[float, ...]
    units: int
    queries: int
    pairs: tuple[JudgePair, ...]
    fleiss: agreement.AgreementCoefficient | None
    fleiss_units: int
    alpha: agreement.AgreementCoefficient
    interval: Interval | None
    relevant: int | None
    options: JudgeOptions
    digest: Digest


def judge_agreement(ratings: Ratings, rng: Generator, options: JudgeOptions) -> JudgeAgreement:
    """Compare judges, each two and all together.

    Args:
        ratings: what they said.
        rng: where draws of queries come from.
        options: coefficients and intervals.

    Raises:
        InputError: codes `bad-rating`: a grade below 0 on a ratio scale; `too-many-grades`;
            `too-few-queries`.
    """
    if not ratings.queries:
        raise InputError.of(
            "too-few-queries", "judges", "no query that anybody judged", "at least one"
        )
    categories = _find_categories(ratings)
    own = np.unique(np.array(ratings.queries, dtype=object), return_inverse=True)[1]
    found = [
        _compare(ratings, pair, rng, own=own, categories=categories, options=options)
        for pair in combinations(range(len(ratings.judges)), 2)
    ]
    complete = ~np.isnan(ratings.verdicts).any(axis=0)
    return JudgeAgreement(
        judges=ratings.judges,
        judged=tuple((~np.isnan(ratings.verdicts)).sum(axis=1).tolist()),
        kind=ratings.kind,
        categories=categories,
        units=len(ratings.queries),
        queries=int(own.max()) + 1,
        pairs=tuple(pair for pair in found if pair is not None),
        fleiss=_fleiss(ratings.verdicts[:, complete], categories),
        fleiss_units=int(complete.sum()),
        alpha=agreement.krippendorff_alpha(ratings.ratings, scale=options.scale),
        interval=_alpha_interval(ratings, own, options, rng),
        relevant=ratings.relevant,
        options=options,
        digest=ratings.digest,
    )


def _find_categories(ratings: Ratings) -> tuple[float, ...]:
    """All grades that occur: few, since every coefficient compares each with each."""
    found = np.unique(ratings.ratings[~np.isnan(ratings.ratings)]).tolist()
    if len(found) > _MOST_GRADES:
        raise InputError.of(
            "too-many-grades",
            "ratings",
            f"{len(found):,} different grades",
            most_grades=_MOST_GRADES,
        )
    return tuple(found)


def _alpha_interval(
    ratings: Ratings, own: NDArray[np.int64], options: JudgeOptions, rng: Generator
) -> Interval | None:
    """Of alpha; the queries that count have a unit with two judgments."""
    twice = (~np.isnan(ratings.ratings)).sum(axis=0) > 1
    if len(np.unique(own[twice])) < FEWEST:
        return None
    return agreement.krippendorff_interval(
        ratings.ratings,
        rng,
        scale=options.scale,
        groups=own,
        level=options.level,
        trials=options.trials,
    )


def _compare(
    ratings: Ratings,
    pair: tuple[int, int],
    rng: Generator,
    *,
    own: NDArray[np.int64],
    categories: tuple[float, ...],
    options: JudgeOptions,
) -> JudgePair | None:
    """Two judges; `None` where no unit has a verdict of both."""
    first, second = pair
    both = ~np.isnan(ratings.verdicts[[first, second]]).any(axis=0)
    if not both.any():
        return None
    a, b = ratings.verdicts[first, both], ratings.verdicts[second, both]
    lists, queries = (a.tolist(), b.tolist()), own[both]
    counted = len(np.unique(queries))
    interval = None
    if counted >= FEWEST:
        interval = agreement.cohen_interval(
            *lists,
            rng,
            weights=options.weights,
            categories=categories,
            groups=queries,
            level=options.level,
            trials=options.trials,
        )
    return JudgePair(
        first=ratings.judges[first],
        second=ratings.judges[second],
        units=len(a),
        queries=counted,
        same=float(np.mean(a == b)),
        kappa=agreement.cohen_kappa(*lists, weights=options.weights, categories=categories),
        interval=interval,
        overlap=_overlap(a > 0, b > 0) if ratings.kind == "documents" else None,
        confusion=tuple(
            tuple(int(((a == x) & (b == y)).sum()) for y in categories) for x in categories
        ),
    )


def _overlap(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float | None:
    either = int((a | b).sum())
    return int((a & b).sum()) / either if either else None


def _fleiss(verdicts: Floats, categories: Sequence[float]) -> agreement.AgreementCoefficient | None:
    """Of the units that all judged; `None` without one, and with a single judge."""
    if not verdicts.shape[1] or len(verdicts) < _PAIR:
        return None
    return agreement.fleiss_kappa(
        np.stack([(verdicts == one).sum(axis=0) for one in categories], axis=1)
    )


_UNITS = {"documents": "documents of queries", "pairs": "pairs of items"}
_SHOWN = 3


def headline(found: JudgeAgreement) -> str:
    """Return how far all judges agree beyond chance."""
    return write("agreement.judges_headline", found=found, units=_UNITS[found.kind])


def summary(found: JudgeAgreement) -> tuple[tuple[str, str], ...]:
    """Alpha, kappa, and who was compared."""
    return write_facts("agreement.judges_summary", found=found, units=_UNITS[found.kind])


def tables(found: JudgeAgreement) -> tuple[Table, ...]:
    """Tabulate all judges together, then each two, then of two alone where they differ."""
    two = len(found.pairs) == 1 and len(found.categories) <= _SHOWN_GRADES
    return (
        _all_table(found),
        *([_pair_table(found)] if found.pairs else []),
        *([_confusion_table(found, found.pairs[0])] if two else []),
    )


def title(found: JudgeAgreement) -> str:
    """Return what the picture shows."""
    return f"Cohen's kappa of each two of {len(found.judges):,} judges"


def chart(found: JudgeAgreement) -> Plot:
    """Kappa of each two judges; with at least one pair."""
    kappas = {(pair.first, pair.second): pair.kappa.value for pair in found.pairs}
    return matrix_chart(found.judges, kappas, "Cohen's kappa")


def _all_table(found: JudgeAgreement) -> Table:
    # Disagreement on other scales than the nominal one is no share of anything
    shares = found.options.scale == "nominal"
    shown = [(f"Krippendorff's alpha, {found.options.scale}", found.alpha, found.interval, shares)]
    if found.fleiss is not None:
        shown.append(("Fleiss' kappa, where all judged", found.fleiss, None, True))
    return write_table(
        "agreement.judges",
        tuple(
            (
                name,
                one.value,
                *(interval or (None, None)),
                *((one.observed, one.expected) if shares else (None, None)),
                one.units,
            )
            for name, one, interval, shares in shown
        ),
        found=found,
        units=_UNITS[found.kind],
        fewest=FEWEST,
        undefined=sorted({one.why for _, one, _, _ in shown if one.why}),
    )


def _pair_table(found: JudgeAgreement) -> Table:
    graded = found.kind == "documents"
    rows: list[Row] = []
    for pair in found.pairs:
        row = (pair.first, pair.second, pair.units, pair.same, pair.kappa.value)
        overlap = (pair.overlap,) if graded else ()
        rows.append((*row, *(pair.interval or (None, None)), *overlap))
    possible = len(found.judges) * (len(found.judges) - 1) // 2
    return write_table(
        "agreement.judge_pairs",
        tuple(rows),
        first=ends_first([pair.kappa.value for pair in found.pairs]),
        found=found,
        apart=possible - len(found.pairs),
        fewest=FEWEST,
        undefined=sorted({pair.kappa.why for pair in found.pairs if pair.kappa.why}),
    )


def _confusion_table(found: JudgeAgreement, pair: JudgePair) -> Table:
    """Return where two judges differ; of preferences the categories mean nothing."""
    names = [f"{grade:g}" for grade in found.categories]
    if found.kind == "pairs":
        names = ["first by id" if name == "0" else "second by id" for name in names]
    rows: list[Row] = [(name, *row) for name, row in zip(names, pair.confusion, strict=True)]
    return write_table("agreement.confusion", tuple(rows), pair=pair, names=names)
