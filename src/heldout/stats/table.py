"""The table of tests of two systems: what each asks, assumes and leaves undefined.

`tests` runs a row of it. Everywhere the difference is B - A, and the alternative `greater` means
that B is better. An interval is two-sided whatever the alternative. docs/tests.md is held against
this table by a test.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from heldout.stats.bootstrap import bootstrap_test
from heldout.stats.margins import equivalence_test, non_inferiority_test
from heldout.stats.permutation import permutation_test
from heldout.stats.rank_tests import binomial_test, rank_sum_test, sign_test, signed_rank_test
from heldout.stats.results import Alternative, Found, Option, choice, count, number, switch
from heldout.stats.student import paired_t_test, unpaired_t_test

__all__ = ["TESTS", "Test"]

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
