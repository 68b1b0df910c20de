"""The one way to run a test of two systems: by its name in the table (`table`).

What cannot be told is `None` with the reason; a p is never 0 and never NaN.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from heldout.errors import InputError, Problem, quote
from heldout.stats.exact import DECIMALS, ROUNDING, Oriented, differences, orient
from heldout.stats.rank_tests import (
    binomial_test,
    compare_wins,
    count_signs,
    rank_differences,
    rank_sum_test,
    sign_test,
    signed_rank_test,
    wins_p,
)
from heldout.stats.results import (
    Alternative,
    Ask,
    Found,
    Option,
    TestResult,
    check_ask,
    check_options,
    check_scores,
    choice,
    count,
    number,
    problem_of,
    switch,
)
from heldout.stats.student import compare_mean, paired_t_test, unpaired_t_test

# The bootstrap test of two systems by the shift method, and the interval that belongs to it.

_CELLS = 1 << 20
Scores = NDArray[np.float64]


def bootstrap_test(a: Scores, b: Scores, ask: Ask, *, draws: int, rng: Generator) -> Found:
    """Is the mean difference larger than resampling around 0 makes it?

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: direction and level.
        draws: of as many queries as there are, with replacement, >= 1.
        rng: where they come from.

    Returns:
        p is (1 + hits) / (1 + draws): resampled means, shifted to have mean 0, that are at least
        as far out. The interval is the basic one, reflected at the mean.
    """
    difference = differences(a, b)
    oriented = orient(difference, ask.alternative)
    values, centre = oriented.values, abs(oriented.mean)
    if not np.ptp(values):
        why = "every difference is the same: resampling moves nothing"
        return Found(used=len(a), difference=oriented.mean, why=why)
    moves = np.sort(_resample(values, draws, rng) - centre)
    close = ROUNDING * (1 + float(np.abs(values).max()))
    hits = _count_hits(moves, centre, close, oriented.alternative)
    place = math.floor(ask.alpha / 2 * (draws + 1) * (1 + ROUNDING))
    low, high = None, None
    if place:
        low, high = oriented.turn(centre - float(moves[-place]), centre - float(moves[place - 1]))
    return Found(
        used=len(a),
        difference=oriented.mean,
        low=low,
        high=high,
        statistic=oriented.mean,
        p=(1 + hits) / (1 + draws),
        why=None if place else f"too few draws for an interval: {draws}",
    )


def _count_hits(moves: Scores, centre: float, close: float, alternative: Alternative) -> int:
    """How many resampled means, shifted to 0, are at least as far out as the one found."""
    if alternative == "greater":
        return int(np.sum(moves >= centre - close))
    if alternative == "less":
        return int(np.sum(moves <= centre + close))
    return int(np.sum(np.abs(moves) >= centre - close))


def _resample(values: Scores, draws: int, rng: Generator) -> Scores:
    """Means of samples with replacement."""
    rows = max(1, _CELLS // len(values))
    parts = []
    for start in range(0, draws, rows):
        shape = (min(rows, draws - start), len(values))
        parts.append(values[rng.integers(0, len(values), size=shape)].mean(axis=1))
    return np.concatenate(parts)


# Is B as good as A, but for a margin? Equivalence and non-inferiority.
#
# No significant difference is no evidence of no difference. These tests turn the question round:
# under their null B is worse by the margin or more (non-inferiority), or the two differ by the
# margin or more (equivalence: two one-sided tests).

By = Literal["t", "signed-rank", "sign"]


def equivalence_test(a: Scores, b: Scores, ask: Ask, *, margin: float, by: By) -> Found:
    """Do A and B differ by less than the margin? Two one-sided tests (TOST).

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: level.
        margin: > 0, in the units of the test that it goes by.
        by: that test.

    Raises:
        InputError: code `test-option`: by `sign` the margin is 1 or more.

    Returns:
        p is the larger of the two. The interval has level 1 - 2 alpha: it lies within the
        margins where p is below alpha.
    """
    _check_margin(margin, by)
    difference = differences(a, b)
    sides = [
        _beyond(difference, null=-margin, by=by, alternative="greater"),
        _beyond(difference, null=margin, by=by, alternative="less"),
    ]
    return _frame(difference, ask, by, max(sides, key=_as_number))


def non_inferiority_test(a: Scores, b: Scores, ask: Ask, *, margin: float, by: By) -> Found:
    """Is B worse than A by less than the margin?

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: direction and level; `less` asks whether B is better by less than the margin.
        margin: > 0, in the units of the test that it goes by.
        by: that test.

    Raises:
        InputError: code `test-option`: by `sign` the margin is 1 or more.

    Returns:
        The interval has level 1 - 2 alpha, so that its end tells what p tells.
    """
    _check_margin(margin, by)
    difference = differences(a, b)
    null = -margin if ask.alternative == "greater" else margin
    side = _beyond(difference, null=null, by=by, alternative=ask.alternative)
    return _frame(difference, ask, by, side)


def _check_margin(margin: float, by: By) -> None:
    if by == "sign" and margin >= 1:
        raise InputError(
            Problem(
                code="test-option",
                path="margin",
                found=f"{margin:g}",
                expected="a share of wins between 0 and 1",
                hint="no difference of shares is larger than 1",
            )
        )


class _Side(NamedTuple):
    p: float | None
    statistic: float | None


def _as_number(side: _Side) -> float:
    return 2.0 if side.p is None else side.p


def _beyond(difference: Scores, *, null: float, by: By, alternative: Alternative) -> _Side:
    """One side: the test of a null that is not 0."""
    ask = Ask(alternative=alternative, level=0.95)
    if by == "sign":
        a_wins, b_wins = count_signs(difference, 0)
        if not a_wins + b_wins:
            return _Side(None, None)
        return _Side(wins_p(a_wins, b_wins, share=(1 + null) / 2, ask=ask), float(b_wins))
    if by == "t":
        found = compare_mean(difference, ask, null=null)
    else:
        moved = np.round(difference - null, DECIMALS)
        found = rank_differences(moved, ask, zeros="wilcox", continuity=True, method="auto")
    return _Side(found.p, found.statistic)


def _frame(difference: Scores, ask: Ask, by: By, side: _Side) -> Found:
    """The estimate and its interval, with what the deciding side says."""
    level = 1 - 2 * ask.alpha
    plain = Ask(alternative="two-sided", level=level)
    if by == "sign":
        found = compare_wins(*count_signs(difference, 0), plain)
    elif by == "t":
        found = compare_mean(difference, plain)
    else:
        # A difference of 0 speaks for equivalence: the interval is of all differences
        found = rank_differences(
            difference, plain, zeros="zsplit", continuity=True, method="approximate"
        )
    return Found(
        used=found.used,
        difference=found.difference,
        low=found.low,
        high=found.high,
        level=level,
        statistic=side.statistic,
        p=side.p,
        why=found.why if side.p is None or found.low is None else None,
    )


# The sign-flip permutation test of two systems, and the interval that belongs to it.
#
# Where A and B are exchangeable, each difference could as well have had the other sign. Flipping a
# set of queries makes the mean at least as large as it was just where the set's own differences
# sum to at most 0. So the means of all sets, in order, are the ends of the intervals that invert
# the test: Hartigan's typical values. One product of sets and differences serves both.

ENUMERATED = 16
"""Queries up to which every set is taken: 65,536 at most, and nothing is drawn."""

_PERMUTATION_CELLS = 1 << 22


def permutation_test(a: Scores, b: Scores, ask: Ask, *, draws: int, rng: Generator) -> Found:
    """Is the mean difference larger than flipped signs make it?

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: direction and level.
        draws: sets drawn where there are more than 16 queries, >= 1.
        rng: where they come from.

    Returns:
        p is (1 + hits) / (1 + draws), and hits / 2^n where all sets are taken.
    """
    difference = differences(a, b)
    oriented = orient(difference, ask.alternative)
    if not oriented.values.any():
        return Found(used=len(a), difference=0.0, why="every difference is 0")
    sets = _take_sets(oriented.values, draws=draws, rng=rng)
    close = ROUNDING * (len(a) + float(np.abs(oriented.values).sum()))
    all_sets = len(sets.sums) + 1  # the empty set is the data themselves, always a hit
    hits = _permutation_count_hits(sets.sums, oriented, close)
    low, high = _ends(np.sort(sets.sums / sets.sizes), ask.alpha / 2)
    low, high = oriented.turn(low, high)
    return Found(
        used=len(a),
        difference=oriented.mean,
        low=low,
        high=high,
        statistic=oriented.mean,
        p=(1 + hits) / all_sets,
        why=None if low is not None else f"too few sets of queries for an interval: {all_sets - 1}",
    )


class _Sets(NamedTuple):
    """Sets of queries that are not empty: sums of their differences, and sizes."""

    sums: Scores
    sizes: Scores


def _take_sets(values: Scores, *, draws: int, rng: Generator) -> _Sets:
    """All sets, or as many as are drawn."""
    parts = [
        (block @ values, block.sum(axis=1))
        for block in (
            _every_set(len(values))
            if len(values) <= ENUMERATED
            else _draw_sets(len(values), draws, rng)
        )
    ]
    sums, sizes = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Sets(sums[sizes > 0], sizes[sizes > 0])


def _every_set(size: int) -> Iterator[Scores]:
    members = np.arange(1 << size)[:, None] >> np.arange(size) & 1
    yield members.astype(np.float64)


def _draw_sets(size: int, draws: int, rng: Generator) -> Iterator[Scores]:
    rows = max(1, _PERMUTATION_CELLS // size)
    for start in range(0, draws, rows):
        shape = (min(rows, draws - start), size)
        yield rng.integers(0, 2, size=shape, dtype=np.int8).astype(np.float64)


def _permutation_count_hits(sums: Scores, oriented: Oriented, close: float) -> int:
    """How many flips give a mean at least as far out as it was."""
    rises = sums <= close
    if oriented.alternative == "greater":
        return int(np.sum(rises))
    if oriented.alternative == "less":
        return int(np.sum(sums >= -close))
    return int(np.sum(rises | (sums >= float(oriented.values.sum()) - close)))


def _ends(means: Scores, tail: float) -> tuple[float | None, float | None]:
    """The means that leave a tail on each side."""
    place = int(tail * (len(means) + 1) * (1 + ROUNDING))
    if place < 1:
        return None, None
    return float(means[place - 1]), float(means[-place])


# The table of tests of two systems: what each asks, assumes and leaves undefined.
#
# `tests` runs a row of it. Everywhere the difference is B - A, and the alternative `greater` means
# that B is better. An interval is two-sided whatever the alternative. docs/tests.md is held
# against this table by a test.

_ALL: tuple[Alternative, ...] = ("two-sided", "greater", "less")


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test, with what must be known to use it.

    Attributes:
        run: computes it from the scores of A and B, an `Ask` and the options.
        null: the hypothesis that a small p speaks against.
        difference: what the difference is.
        interval: where its interval comes from.
        assumes: what must hold.
        ties: what becomes of ties and of differences of 0.
        undefined: where p is `None`, besides no query and a single one.
        source: where it is from.
        paired: whether both systems must have the same queries.
        draws: whether it may draw, and takes a generator.
        alternatives: directions that it knows; the first is the default.
        options: by name.
    """

    __test__: ClassVar[bool] = False  # pytest looks for classes of this name

    run: Callable[..., Found]
    null: str
    difference: str
    interval: str
    assumes: str
    ties: str
    undefined: str
    source: str
    paired: bool = True
    draws: bool = False
    alternatives: tuple[Alternative, ...] = _ALL
    options: Mapping[str, Option] = field(default_factory=lambda: MappingProxyType({}))


_BY = choice(
    "t",
    "signed-rank",
    "sign",
    meaning="the test that it goes by, and so the unit of the margin: score, score, share of wins",
)
_MARGIN = number(
    default=None,
    meaning="the smallest difference that would matter; must be given",
    expected="a number above 0",
    allows=lambda value: value > 0,
)

TESTS: Mapping[str, Test] = MappingProxyType(
    {
        "sign": Test(
            run=sign_test,
            null="each system wins as often as the other",
            difference="share of the won queries that B wins, less the share that A wins",
            interval="Clopper-Pearson, exact",
            assumes="independent queries",
            ties="differences of 0, or within `tolerance`, are dropped",
            undefined="no query is won",
            source="Conover 1999, section 3.4; Clopper and Pearson 1934",
            options={
                "tolerance": number(
                    default=0.0,
                    meaning="differences of at most so much are ties, rounded to 1e-12",
                    expected="a number from 0",
                    allows=lambda value: value >= 0,
                )
            },
        ),
        "binomial": Test(
            run=binomial_test,
            null="of the queries that one system alone answers, each answers as many",
            difference="share of these queries that B answers, less the share that A answers",
            interval="Clopper-Pearson, exact",
            assumes="independent queries",
            ties="queries that both answer, or neither, are dropped",
            undefined="no query is answered by one system alone",
            source="significant-improvements-2021, section 4; McNemar 1947; "
            "Clopper and Pearson 1934",
            options={
                "above": number(
                    default=0.0,
                    meaning="a query is answered by a score above this",
                    expected="a finite number",
                    allows=lambda _: True,
                )
            },
        ),
        "rank-sum": Test(
            run=rank_sum_test,
            null="a score of B exceeds one of A as often as the other way round",
            difference="P(B > A) - P(A > B) of two scores drawn at random",
            interval="by the variance of placements, with Welch's degrees of freedom",
            assumes="two independent samples of one shape; on paired runs it is conservative, "
            "since systems agree on what is hard",
            ties="tied scores share their mean rank; `mann-whitney` corrects the variance",
            undefined="all scores are the same; no interval where the samples do not overlap",
            source="Mann and Whitney 1947; Brunner and Munzel 2000 (interval); "
            "scipy `mannwhitneyu` (asymptotic), `ranksums`",
            paired=False,
            options={
                "kind": choice(
                    "mann-whitney",
                    "ranksums",
                    meaning="corrected for ties and continuity, or for neither",
                )
            },
        ),
        "signed-rank": Test(
            run=signed_rank_test,
            null="differences are symmetric about 0",
            difference="pseudomedian of the differences that are not 0 (`zsplit`: of all): the "
            "Hodges-Lehmann estimate",
            interval="of Walsh averages, by the untied null distribution, exact up to 50",
            assumes="independent queries; differences symmetric about their centre",
            ties="differences tied as rationals share their mean rank; differences of 0 by `zeros`",
            undefined="every difference is 0; no interval with fewer than 6 differences at 95%",
            source="Wilcoxon 1945; Pratt 1959 (zeros); Hollander, Wolfe and Chicken 2014, "
            "sections 3.1 to 3.3; scipy `wilcoxon`",
            options={
                "zeros": choice(
                    "wilcox",
                    "pratt",
                    "zsplit",
                    meaning="drop differences of 0 before ranking, after it, or split their ranks",
                ),
                "continuity": switch(
                    default=True, meaning="continuity correction of the normal approximation"
                ),
                "method": choice(
                    "auto",
                    "exact",
                    "approximate",
                    meaning="the distribution of the ranks at hand, tied or not, under all signs; "
                    "its normal approximation; or the first up to 50 differences that are not 0",
                ),
            },
        ),
        "t": Test(
            run=paired_t_test,
            null="the mean difference is 0",
            difference="mean difference",
            interval="Student's t",
            assumes="independent queries; a mean difference that is nearly normal",
            ties="count like any difference",
            undefined="every difference is the same",
            source="Student 1908; scipy `ttest_rel`",
        ),
        "unpaired-t": Test(
            run=unpaired_t_test,
            null="the means are equal",
            difference="difference of the means",
            interval="Student's t",
            assumes="two independent samples, means nearly normal; on paired runs it is "
            "conservative",
            ties="count like any score",
            undefined="the scores of each system are all the same; `welch` with a single score",
            source="Student 1908; Welch 1947; scipy `ttest_ind`",
            paired=False,
            options={
                "kind": choice("welch", "student", meaning="variances may differ, or are equal")
            },
        ),
        "permutation": Test(
            run=permutation_test,
            null="differences are symmetric about 0",
            difference="mean difference",
            interval="means of sets of queries (typical values): the test inverted",
            assumes="independent queries; exact for exchangeable systems",
            ties="count like any difference; flipped means that differ by 1e-12 are equal",
            undefined="every difference is 0; no interval where 1 - level leaves no set outside",
            source="Smucker, Allan and Carterette, CIKM 2007; Phipson and Smyth 2010 (p); "
            "Hartigan 1969 (interval)",
            draws=True,
            options={
                "draws": count(
                    default=10_000, meaning="sign flips drawn; with up to 16 queries all are taken"
                )
            },
        ),
        "bootstrap": Test(
            run=bootstrap_test,
            null="the mean difference is 0",
            difference="mean difference",
            interval="basic bootstrap: the test inverted",
            assumes="independent queries, and many: with few it finds too much",
            ties="count like any difference",
            undefined="every difference is the same; no interval from fewer draws than "
            "2 / (1 - level)",
            source="Smucker, Allan and Carterette, CIKM 2007 (shift method); "
            "Davison and Hinkley 1997, section 5.2",
            draws=True,
            options={"draws": count(default=10_000, meaning="samples of the queries")},
        ),
        "equivalence": Test(
            run=equivalence_test,
            null="A and B differ by the margin or more",
            difference="as of the test that it goes by; signed ranks: of all differences",
            interval="as of that test, at level 1 - 2 alpha",
            assumes="as that test; a margin declared before looking",
            ties="as of that test; signed ranks: of differences less the margin",
            undefined="as of that test",
            source="Schuirmann 1987; Lakens 2017",
            alternatives=("two-sided",),
            options={"margin": _MARGIN, "by": _BY},
        ),
        "non-inferiority": Test(
            run=non_inferiority_test,
            null="B is worse than A by the margin or more (`less`: better by the margin or more)",
            difference="as of the test that it goes by; signed ranks: of all differences",
            interval="as of that test, at level 1 - 2 alpha",
            assumes="as that test; a margin declared before looking",
            ties="as of that test; signed ranks: of differences less the margin",
            undefined="as of that test",
            source="Wellek 2010, chapters 1 and 2",
            alternatives=("greater", "less"),
            options={"margin": _MARGIN, "by": _BY},
        ),
    }
)
"""Every test by name, in the order of docs/tests.md."""


def run_test(
    name: str,
    a: ArrayLike,
    b: ArrayLike,
    *,
    alternative: Alternative | None = None,
    level: float = 0.95,
    rng: Generator | None = None,
    **options: object,
) -> TestResult:
    """Run a test of system B against system A.

    Args:
        name: a key of `TESTS`.
        a: finite scores of A, one dimension, at most 1e50 in size.
        b: those of B; on the same queries in the same order where the test is paired.
        alternative: the direction; by default the test's first.
        level: of the two-sided interval, between 0 and 1; for tests with a margin 1 - alpha,
            above 0.5.
        rng: where draws come from, for tests that draw.
        options: the test's own; see its row.

    Raises:
        InputError: codes `test-name`, `test-option`, `test-lengths`, `not-finite`.
    """
    test = _find(name)
    values = check_options(options, test.options, test=name)
    ask = _ask(name, test, alternative, level)
    first, second = check_scores(a, "A"), check_scores(b, "B")
    if test.paired and len(first) != len(second):
        raise InputError(
            problem_of(
                "test-lengths",
                f"test {name}",
                f"{len(first)} scores of A and {len(second)} of B",
                "scores on the same queries",
            )
        )
    if not (len(first) and len(second)):
        found = Found(used=0, difference=None, why="no query")
    else:
        drawn = {"rng": _need_rng(name, rng)} if test.draws else {}
        found = test.run(first, second, ask, **values, **drawn)
        if max(len(first), len(second)) == 1:
            why = "a single query says nothing of others"
            found = Found(used=found.used, difference=found.difference, why=why)
    size = len(first) if test.paired else len(first) + len(second)
    return _result(name, size, found, ask, values)


def compare_counts(
    a_wins: int,
    b_wins: int,
    *,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
) -> TestResult:
    """The exact binomial test where only counts are known.

    Args:
        a_wins: queries that A alone answers, or wins.
        b_wins: those of B.
        alternative: the direction.
        level: of the interval.

    Returns:
        As of `binomial`, with n the queries counted.

    Raises:
        InputError: code `test-option`: a count is negative, or the level is none.
    """
    ask = _ask("binomial", TESTS["binomial"], alternative, level)
    if min(a_wins, b_wins) < 0:
        raise InputError(
            problem_of("test-option", "test binomial", f"{a_wins} and {b_wins}", "counts from 0")
        )
    return _result("binomial", a_wins + b_wins, compare_wins(a_wins, b_wins, ask), ask, {})


def _result(
    name: str, size: int, found: Found, ask: Ask, options: Mapping[str, object]
) -> TestResult:
    return TestResult(
        test=name,
        n=size,
        used=found.used,
        difference=found.difference,
        low=found.low,
        high=found.high,
        level=ask.level if found.level is None else found.level,
        alternative=ask.alternative,
        statistic=found.statistic,
        p=found.p,
        why=found.why,
        options=dict(options),
    )


def _find(name: str) -> Test:
    if name not in TESTS:
        raise InputError(problem_of("test-name", "test", quote(name), f"one of {', '.join(TESTS)}"))
    return TESTS[name]


def _ask(name: str, test: Test, alternative: Alternative | None, level: float) -> Ask:
    chosen = test.alternatives[0] if alternative is None else alternative
    least = 0.5 if "margin" in test.options else 0.0
    return check_ask(name, test.alternatives, chosen, level=level, least=least)


def _need_rng(name: str, rng: Generator | None) -> Generator:
    if rng is None:
        raise ValueError(f"the test {name} draws: give it a numpy.random.Generator")
    return rng
