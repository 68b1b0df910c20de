"""How far judges agree: Cohen's kappa of each two, Fleiss' kappa, Krippendorff's alpha of all.

Documents of a query are judged one after the other and are easy or hard together, so intervals
draw queries and not documents.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import combinations
from typing import Any, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.analyses.agreement.runs import matrix_spec
from heldout.answers.table import Cell, Column, Table
from heldout.charts.plot import Plot
from heldout.errors import InputError, Problem, plural
from heldout.ids import Digest
from heldout.stats.agreement import (
    Agreement,
    KappaWeights,
    Scale,
    cohen_interval,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    krippendorff_interval,
)
from heldout.trec.judgments import Preference

# Judgments of several judges side by side: units by judges, from labels or from preferences.
#
# A unit is what a judge decides on: a document for a query, or which of two items is better for
# one.

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


FEWEST = 10
"""Queries that an interval needs: of fewer, percentiles hold far too rarely."""

Interval = tuple[float, float]
_PAIR = 2
_MOST_GRADES = 100


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
    kappa: Agreement
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
        scale: of alpha.
        weights: of Cohen's kappa.
        relevant: grades from here on became 1 and lower ones 0; `None` for grades as they were.
        level: of the intervals, each by itself.
        trials: draws of each interval.
        digest: of the ratings.
    """

    judges: tuple[str, ...]
    judged: tuple[int, ...]
    kind: RatingsKind
    categories: tuple[float, ...]
    units: int
    queries: int
    pairs: tuple[JudgePair, ...]
    fleiss: Agreement | None
    fleiss_units: int
    alpha: Agreement
    interval: Interval | None
    scale: Scale
    weights: KappaWeights
    relevant: int | None
    level: float
    trials: int
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    categories: tuple[float, ...]
    weights: KappaWeights
    graded: bool
    level: float
    trials: int


def judge_agreement(
    ratings: Ratings,
    rng: Generator,
    *,
    scale: Scale = "nominal",
    weights: KappaWeights = "none",
    level: float = 0.95,
    trials: int = 1000,
) -> JudgeAgreement:
    """Compare judges, each two and all together.

    Args:
        ratings: what they said.
        rng: where draws of queries come from.
        scale: what grades mean to alpha.
        weights: what it costs Cohen's kappa to differ by several grades.
        level: of the intervals, in (0, 1).
        trials: draws of each interval, >= 1.

    Raises:
        InputError: codes `bad-rating`: a grade below 0 on a ratio scale; `too-many-grades`;
            `too-few-queries`.
    """
    if not ratings.queries:
        raise InputError(
            Problem(
                code="too-few-queries",
                path="judges",
                found="no query that anybody judged",
                expected="at least one",
            )
        )
    rules = _Rules(
        categories=_find_categories(ratings),
        weights=weights,
        graded=ratings.kind == "documents",
        level=level,
        trials=trials,
    )
    own = np.unique(np.array(ratings.queries, dtype=object), return_inverse=True)[1]
    found = [
        _compare(ratings, pair, own, rules, rng)
        for pair in combinations(range(len(ratings.judges)), 2)
    ]
    complete = ~np.isnan(ratings.verdicts).any(axis=0)
    return JudgeAgreement(
        judges=ratings.judges,
        judged=tuple((~np.isnan(ratings.verdicts)).sum(axis=1).tolist()),
        kind=ratings.kind,
        categories=rules.categories,
        units=len(ratings.queries),
        queries=int(own.max()) + 1,
        pairs=tuple(pair for pair in found if pair is not None),
        fleiss=_fleiss(ratings.verdicts[:, complete], rules.categories),
        fleiss_units=int(complete.sum()),
        alpha=krippendorff_alpha(ratings.ratings, scale=scale),
        interval=_alpha_interval(ratings, own, rng, scale=scale, level=level, trials=trials),
        scale=scale,
        weights=weights,
        relevant=ratings.relevant,
        level=level,
        trials=trials,
        digest=ratings.digest,
    )


def _find_categories(ratings: Ratings) -> tuple[float, ...]:
    """All grades that occur: few, since every coefficient compares each with each."""
    found = np.unique(ratings.ratings[~np.isnan(ratings.ratings)]).tolist()
    if len(found) > _MOST_GRADES:
        raise InputError(
            Problem(
                code="too-many-grades",
                path="ratings",
                found=f"{len(found):,} different grades",
                expected=f"at most {_MOST_GRADES}",
                hint="is the last column the grade?",
            )
        )
    return tuple(found)


def _alpha_interval(
    ratings: Ratings,
    own: NDArray[np.int64],
    rng: Generator,
    *,
    scale: Scale,
    level: float,
    trials: int,
) -> Interval | None:
    """Of alpha; the queries that count have a unit with two judgments."""
    twice = (~np.isnan(ratings.ratings)).sum(axis=0) > 1
    if len(np.unique(own[twice])) < FEWEST:
        return None
    return krippendorff_interval(
        ratings.ratings, rng, scale=scale, groups=own, level=level, trials=trials
    )


def _compare(
    ratings: Ratings,
    pair: tuple[int, int],
    own: NDArray[np.int64],
    rules: _Rules,
    rng: Generator,
) -> JudgePair | None:
    """Two judges; `None` where no unit has a verdict of both."""
    first, second = pair
    both = ~np.isnan(ratings.verdicts[[first, second]]).any(axis=0)
    if not both.any():
        return None
    a, b = ratings.verdicts[first, both], ratings.verdicts[second, both]
    a_list, b_list, queries = a.tolist(), b.tolist(), own[both]
    return JudgePair(
        first=ratings.judges[first],
        second=ratings.judges[second],
        units=len(a),
        queries=len(np.unique(queries)),
        same=float(np.mean(a == b)),
        kappa=cohen_kappa(a_list, b_list, weights=rules.weights, categories=rules.categories),
        interval=_kappa_interval(a_list, b_list, queries, rules, rng),
        overlap=_overlap(a > 0, b > 0) if rules.graded else None,
        confusion=_confuse(a, b, rules.categories),
    )


def _kappa_interval(
    first: list[float],
    second: list[float],
    queries: NDArray[np.int64],
    rules: _Rules,
    rng: Generator,
) -> Interval | None:
    if len(np.unique(queries)) < FEWEST:
        return None
    return cohen_interval(
        first,
        second,
        rng,
        weights=rules.weights,
        categories=rules.categories,
        groups=queries,
        level=rules.level,
        trials=rules.trials,
    )


def _overlap(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float | None:
    either = int((a | b).sum())
    return int((a & b).sum()) / either if either else None


def _confuse(a: Floats, b: Floats, categories: Sequence[float]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(((a == x) & (b == y)).sum()) for y in categories) for x in categories)


def _fleiss(verdicts: Floats, categories: Sequence[float]) -> Agreement | None:
    """Of the units that all judged; `None` without one, and with a single judge."""
    if not verdicts.shape[1] or len(verdicts) < _PAIR:
        return None
    return fleiss_kappa(np.stack([(verdicts == one).sum(axis=0) for one in categories], axis=1))


# Agreement of judges as tables, a picture and JSON.

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


def spec(found: JudgeAgreement) -> Plot:
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
