"""Outcomes of all pairs at once are those of each pair by itself."""

import json
import math
from dataclasses import asdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import stats

from heldout.analyses.outcomes.options import DeclaredRules, Margins
from heldout.analyses.outcomes.outcomes import all_pairs, analyse_outcomes
from heldout.analyses.outcomes.tests import Line, PairTests, compare_runs
from heldout.answers.answer import format_json, to_document
from heldout.scoring.first_ranks import FirstRanks, first_ranks
from heldout.scoring.table import table_of
from heldout.stats.rank_tests import share_not_lower_p
from heldout.stats.results import TestResult
from heldout.stats.tests import compare_counts, run_test

Integers = NDArray[np.int64]
MARGINS = Margins(found=0.05, esl=0.7)


def ranks_of(table: Integers, k: int) -> FirstRanks:
    scores = {
        f"š{row}": {f"q{at}": 1 / rank if rank else 0.0 for at, rank in enumerate(ours)}
        for row, ours in enumerate(table.tolist())
    }
    return first_ranks(table_of(scores), k=k)


def close(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=2e-12)


def assert_same(found: TestResult, expected: TestResult) -> None:
    for name, value in asdict(expected).items():
        ours = getattr(found, name)
        same = close(ours, value) if isinstance(value, float) else ours == value
        assert same, (name, ours, value)


def one_by_one(first: Integers, second: Integers, level: float) -> dict[Line, TestResult]:
    """The tests of a pair, each called by itself."""
    both = (first > 0) & (second > 0)
    places = first[both], second[both]
    shares = 1 / places[0], 1 / places[1]
    wins = int(((first > 0) & ~both).sum()), int(((second > 0) & ~both).sum())
    return {
        "binomial": compare_counts(*wins, level=level),
        "esl_signed_rank": run_test("signed-rank", *places, level=level),
        "esl_t": run_test("t", *places, level=level),
        "rr_signed_rank": run_test("signed-rank", *shares, level=level),
        "rr_t": run_test("t", *shares, level=level),
    }


def assert_by_itself(pair: PairTests, first: Integers, second: Integers, level: float) -> None:
    both = (first > 0) & (second > 0)
    expected = one_by_one(first, second, level)
    assert list(pair.tests) == list(expected)
    for line, test in expected.items():
        assert_same(pair.tests[line], test)
    longer = (second - first)[both]
    for found, null, side in (
        (pair.a_not_longer, -0.7, "greater"),
        (pair.b_not_longer, 0.7, "less"),
    ):
        defined = expected["esl_t"].p is not None
        assert close(
            found, stats.ttest_1samp(longer, null, alternative=side).pvalue if defined else None
        )
    shares = {"size": len(first), "margin": 0.05}
    assert pair.a_not_fewer == share_not_lower_p(pair.b_only, pair.a_only, **shares)  # type: ignore[arg-type] # whole numbers of runs
    assert pair.b_not_fewer == share_not_lower_p(pair.a_only, pair.b_only, **shares)  # type: ignore[arg-type] # the same
    assert pair.neither + pair.a_only + pair.b_only + pair.both == len(first)
    for means, scale in ((pair.esl, 1), (pair.rr, -1)):
        for mean, one in ((means.a, first), (means.b, second)):
            own = one[both].astype(np.float64) ** scale
            assert close(mean, float(own.mean()) if len(own) else None)


@given(
    st.integers(0, 10_000),
    st.sampled_from([1, 2, 5, 30, 60, 300]),
    st.sampled_from([1, 2, 7, 100, 1000, 10_000]),
    st.sampled_from([0.5, 0.95]),
)
def test_every_figure_is_that_of_its_own_call(
    seed: int, queries: int, k: int, level: float
) -> None:
    random = np.random.default_rng(seed)
    deep = random.integers(0, k + 1, (2, queries))
    near = np.minimum(k, random.geometric(0.4, (2, queries)))
    near *= random.random((2, queries)) < 0.8
    table = np.concatenate((deep, near, near[:1]))
    ranks = ranks_of(table, k)
    pairs = all_pairs(ranks)
    for pair in compare_runs(ranks, pairs, MARGINS, level=level):
        first, second = (table[int(side.name[1:])] for side in (pair.a, pair.b))
        assert_by_itself(pair, first, second, level)


def test_no_pair_depends_on_the_pairs_beside_it() -> None:
    table = np.random.default_rng(5).integers(0, 40, (6, 90))
    ranks = ranks_of(table, 100)
    pairs = all_pairs(ranks)
    together = compare_runs(ranks, pairs, MARGINS, level=0.95)
    assert [*together] == [compare_runs(ranks, [p], MARGINS, level=0.95)[0] for p in pairs]


@given(hnp.arrays(np.int64, (4, 9), elements=st.integers(0, 5)), st.booleans())
def test_pairs_in_columns_are_written_as_each_result_is(table: Integers, harmful: bool) -> None:  # noqa: FBT001 - drawn
    ranks = ranks_of(table, 10)
    rules = DeclaredRules(harm="plain" if harmful else "margin", margins=MARGINS)
    judged = analyse_outcomes(ranks, all_pairs(ranks), rules).pairs
    rows = [to_document(one) for one in judged]
    text = "".join(format_json(judged))
    assert text.isascii()
    assert json.loads(text) == rows
