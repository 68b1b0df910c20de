"""Outcomes of pairs: counted as by hand, tested as scipy does, corrected as the paper should."""

from itertools import pairwise, permutations
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import stats

from heldout.analyses.outcomes.analysis import summary
from heldout.analyses.outcomes.curves import success_curves
from heldout.analyses.outcomes.options import Band, Correction, DeclaredRules, Margins
from heldout.analyses.outcomes.outcomes import (
    RunOrder,
    Verdict,
    all_pairs,
    analyse_outcomes,
    correct_lines,
    order_runs,
    pairs_with,
)
from heldout.analyses.outcomes.tests import Line, PairTests, compare_groups, compare_runs
from heldout.analyses.outcomes.words import verdict_summary
from heldout.answers.answer import to_document
from heldout.errors import InputError
from heldout.scoring.first_ranks import FirstRanks, MethodSide, first_ranks
from heldout.scoring.table import table_of
from trials import choose_trials

A, B = MethodSide(name="a", runs=("a",)), MethodSide(name="b", runs=("b",))
GROUPS = (
    MethodSide(name="a", runs=("a0", "a1", "a2")),
    MethodSide(name="b", runs=("b0", "b1", "b2")),
)


def _ranks(rows: dict[str, list[int]], *, k: int = 100) -> FirstRanks:
    scores = {
        name: {f"q{at}": 1 / rank if rank else 0.0 for at, rank in enumerate(row)}
        for name, row in rows.items()
    }
    return first_ranks(table_of(scores), k=k)


def _compare(ranks: FirstRanks, a: MethodSide = A, b: MethodSide = B) -> PairTests:
    (pair,) = compare_runs(ranks, [(a, b)], Margins(), level=0.95)
    return pair


def _judge(
    a: list[int], b: list[int], rules: DeclaredRules | None = None, *, k: int = 100
) -> Verdict:
    ranks = _ranks({"a": a, "b": b}, k=k)
    (pair,) = analyse_outcomes(ranks, [(A, B)], rules or DeclaredRules()).pairs
    return pair.verdict


# What is read off scores


@given(st.integers(1, 10_000))
def test_a_reciprocal_rank_gives_its_rank_back(rank: int) -> None:
    ranks = _ranks({"a": [rank, 0]}, k=10_000)
    assert ranks.ranks.tolist() == [[rank, 0]]


def test_what_stands_deeper_than_k_is_not_found() -> None:
    assert _ranks({"a": [3, 10, 11, 100]}, k=10).ranks.tolist() == [[3, 10, 0, 0]]


@pytest.mark.parametrize("score", [0.3333, 0.7, 1.5, -0.5, 1e-300, 2.0])
def test_scores_that_are_no_reciprocal_ranks_are_refused(score: float) -> None:
    with pytest.raises(InputError, match="not-reciprocal-ranks"):
        first_ranks(table_of({"a": {"q": score}}), k=100)


def test_a_missing_score_is_not_a_query_that_nothing_found() -> None:
    with pytest.raises(InputError, match="missing-scores"):
        first_ranks(table_of({"a": {"q": 1.0, "r": None}}), k=100)


def test_no_query_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="too-few-queries"):
        first_ranks(table_of({"a": {}}), k=100)


# Counts and tests


@given(hnp.arrays(np.int64, st.tuples(st.just(2), st.integers(2, 60)), elements=st.integers(0, 20)))
def test_counts_are_those_of_a_plain_count(table: NDArray[np.int64]) -> None:
    ranks = _ranks({"a": table[0].tolist(), "b": table[1].tolist()})
    pair = _compare(ranks)
    first, second = table
    both = (first > 0) & (second > 0)
    assert (pair.neither, pair.a_only, pair.b_only, pair.both) == (
        ((first == 0) & (second == 0)).sum(),
        ((first > 0) & (second == 0)).sum(),
        ((first == 0) & (second > 0)).sum(),
        both.sum(),
    )
    assert pair.neither + pair.a_only + pair.b_only + pair.both == table.shape[1]
    if pair.both:
        assert pair.esl.a == pytest.approx(first[both].mean())
        assert pair.rr.b == pytest.approx((1 / second[both]).mean())
    else:
        assert pair.esl.a is pair.esl.b is pair.rr.a is pair.rr.b is None


@settings(max_examples=25)
@given(st.integers(0, 1000))
def test_swapping_the_runs_swaps_all_that_is_said(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 8, (2, 60)).tolist()
    ranks = _ranks({"a": one, "b": other})
    rules = DeclaredRules(margins=Margins(found=0.2, esl=2))
    (there,) = analyse_outcomes(ranks, [(A, B)], rules).pairs
    (back,) = analyse_outcomes(ranks, [(B, A)], rules).pairs
    assert there.verdict.word == back.verdict.word
    assert {there.verdict.better, back.verdict.better} in ({None}, {"A", "B"})
    assert there.verdict.p_no_harm == pytest.approx(back.verdict.p_no_harm)
    for line, p in there.corrected.items():
        assert back.corrected[line] == pytest.approx(p)


def test_without_a_query_in_an_outcome_its_p_is_undefined_and_says_why() -> None:
    same = _compare(_ranks({"a": [1, 0, 2], "b": [1, 0, 2]}))
    assert {test.p for test in same.tests.values()} == {None}
    assert all(test.why for test in same.tests.values())
    apart = _compare(_ranks({"a": [1, 0], "b": [0, 1]}))
    assert apart.esl.a is None
    assert apart.tests["esl_t"].p is None
    assert apart.tests["esl_t"].why == "no query"
    assert apart.b_not_longer is None


def test_where_both_find_none_nothing_is_known_of_harm() -> None:
    verdict = _judge([0] * 50, [1] * 50)
    assert (verdict.word, verdict.p_no_harm) == ("no verdict", 1.0)


def test_where_only_the_first_document_counts_no_rank_can_be_higher() -> None:
    for both in (0, 7):
        verdict = _judge([*[1] * both, *[0] * 50], [1] * (both + 50), k=1)
        assert (verdict.word, verdict.better) == ("do no harm", "B")
        assert verdict.p_no_harm == pytest.approx(2 * 2 * 0.5**50)
    assert "none can be higher by 0.5" in _judge([0] * 50, [1] * 50, k=1).why


@pytest.mark.parametrize("both", [80, 800])
@pytest.mark.parametrize("later", [0, 1])
def test_a_constant_difference_below_the_margin_is_no_harm_on_enough_queries(
    later: int, both: int
) -> None:
    a, b = [5] * both + [0] * 100, [5 + later] * both + [2] * 100
    bound = 1.0 if later else (98.5 / 99) ** both
    for first, second, better in (({"a": a, "b": b}, (A, B), "B"), ({"a": b, "b": a}, (A, B), "A")):
        (judged,) = analyse_outcomes(_ranks(first), [second], DeclaredRules()).pairs
        assert judged.b_not_longer is judged.tests["esl_t"].p is None
        assert judged.verdict.p_no_harm == pytest.approx(min(1.0, 2 * bound))
        harmless = 2 * bound <= 0.05
        assert judged.verdict.better == (better if harmless else None)
        assert ("differs by the same" in judged.verdict.why) == harmless


def test_groups_of_equal_seeds_need_as_many_queries() -> None:
    for both, word in ((30, "no verdict"), (800, "do no harm")):
        rows = {name: [5] * both + [0] * 30 for name in ("a1", "a2")}
        rows |= {f"b{at}": [5] * both + [at] * 15 + [at + 1] * 15 for at in (1, 2)}
        rows["b1"][-1] = 0
        groups = MethodSide(name="a", runs=("a1", "a2")), MethodSide(name="b", runs=("b1", "b2"))
        (judged,) = analyse_outcomes(_ranks(rows), [groups], DeclaredRules()).pairs
        assert judged.b_not_longer is None
        assert judged.verdict.word == word


# Correction, with the p-values of the paper's table 2

_ESL_T = (
    *(1.60e-07, 1.34e-05, 0.004918, 0.813828, 0.381946, 0.022938, 8.68e-08),
    *(4.33e-17, 1.46e-06, 1.61e-02, 2.82e-03, 0.866769, 0.024494, 0.009061),
)
_ESL_SIGNED_RANK = (
    *(3.22e-12, 4.62e-06, 0.000249, 0.609428, 0.886547, 0.279188, 7.94e-08),
    *(2.03e-16, 4.79e-06, 2.07e-03, 2.71e-04, 0.017467, 0.534906, 0.328843),
)
_R1_R13, _R12_R13 = 11, 13


def _table_2() -> dict[Line, NDArray[np.float64]]:
    """The paper has no p of case (2): there it is undefined, and counts in the family."""
    return {
        "binomial": np.full(len(_ESL_T), np.nan),
        "esl_signed_rank": np.array(_ESL_SIGNED_RANK),
        "esl_t": np.array(_ESL_T),
    }


def test_r12_against_r13_is_not_significant_on_the_t_test_once_corrected() -> None:
    p = _ESL_T[_R12_R13]
    assert p < 0.05 < p * len(_ESL_T) == pytest.approx(0.127, abs=5e-4)
    for correction in ("bonferroni", "holm"):
        rows = correct_lines(_table_2(), declared="esl_t", correction=correction)
        assert rows["esl_t"][_R12_R13] > 0.05
    rows = correct_lines(_table_2(), declared="esl_t", correction="bonferroni")
    assert rows["esl_t"][_R12_R13] == pytest.approx(p * 28)


def test_r1_against_r13_is_significant_on_signed_ranks_only_as_long_as_it_is_not_corrected() -> (
    None
):
    assert _ESL_SIGNED_RANK[_R1_R13] < 0.05
    for correction in ("bonferroni", "holm"):
        rows = correct_lines(_table_2(), declared="esl_signed_rank", correction=correction)
        assert rows["esl_signed_rank"][_R1_R13] > 0.05
    plain = correct_lines(_table_2(), declared="esl_signed_rank", correction="none")
    assert plain["esl_signed_rank"][_R1_R13] == 0.017467


def test_a_line_that_was_not_declared_does_not_enlarge_the_family() -> None:
    ps: dict[Line, NDArray[np.float64]] = {
        "binomial": np.array([0.01]),
        "esl_signed_rank": np.array([0.02]),
        "esl_t": np.array([0.5]),
        "rr_t": np.array([0.02]),
    }
    corrected = correct_lines(ps, declared="esl_signed_rank", correction="holm")
    alone = {"binomial": 0.02, "esl_signed_rank": 0.02, "esl_t": 0.5, "rr_t": 0.02}
    assert {line: p.tolist() for line, p in corrected.items()} == {
        line: [p] for line, p in alone.items()
    }
    other = correct_lines(ps, declared="esl_t", correction="bonferroni")
    assert other["esl_t"].tolist() == [1.0]


# Verdicts

_BOTH = [5, 6, 7, 8, 9] * 12


def test_strict_asks_for_more_found_and_for_a_lower_search_length() -> None:
    better = [rank - 4 for rank in _BOTH]
    verdict = _judge([*_BOTH, *[0] * 15], [*better, *[3] * 15], k=10)
    assert (verdict.word, verdict.better) == ("strict", "B")
    assert _judge([*better, *[3] * 15], [*_BOTH, *[0] * 15], k=10).better == "A"


def test_strict_by_search_length_needs_evidence_against_rare_harm() -> None:
    """At k = 100 one query in 200 could come 99 later, and 60 queries do not exclude that."""
    a, b = [*_BOTH, *[0] * 15], [*(rank - 4 for rank in _BOTH), *[3] * 15]
    verdict = _judge(a, b)
    assert (verdict.word, verdict.better) == ("do no harm", "B")
    assert verdict.p_strict == pytest.approx((98.5 / 103) ** 60)
    assert _judge(a, b, DeclaredRules(harm="plain")).word == "strict"
    assert _judge(a, b, DeclaredRules(by="rr")).word == "strict"
    a, b = [0] * 12 + [2] * 3 + [5] * 9, [1] * 12 + [0] * 3 + [4] * 8 + [6]  # p .035 and .039
    verdict = _judge(a, b, DeclaredRules(correction="none"))
    assert (verdict.word, verdict.better) == ("no verdict", None)
    assert "rare harm of 0.5 positions or more in the mean is not ruled out" in verdict.why


def test_to_find_more_without_a_longer_search_does_no_harm() -> None:
    """As the paper's R1 and R6, with evidence that the search is not longer by half a position."""
    a, b = [*_BOTH, *_BOTH, *[0] * 15], [*_BOTH, *_BOTH[:-1], _BOTH[-1] + 1, *[3] * 15]
    there, back = _judge(a, b, k=10), _judge(b, a, k=10)
    assert (there.word, there.better) == ("do no harm", "B")
    assert (back.word, back.better) == ("do no harm", "A")
    assert "its ESL is not higher by 0.5" in there.why
    assert _judge(a, b, k=100).word == "no verdict"  # one in 200 could come 99 later
    longer = [*(rank + at % 2 for at, rank in enumerate(_BOTH * 2)), *[3] * 15]
    assert _judge(a, longer, k=10).word == "no verdict"


def _assert_both_ways(rows: dict[str, list[int]], word: str, *, k: int = 100) -> None:
    """Check that the second group is better by this verdict, whichever is called B."""
    for sides, better in ((GROUPS, "B"), (GROUPS[::-1], "A")):
        (one,) = analyse_outcomes(_ranks(rows, k=k), [sides], DeclaredRules()).pairs
        assert one.verdict.word == word
        assert one.verdict.better == (None if word == "no verdict" else better)


def test_groups_that_find_more_without_a_longer_search_do_no_harm() -> None:
    rng = np.random.default_rng(1)
    rows = {}
    for at in range(3):
        noise = rng.integers(0, 2, (2, 400))
        rows[f"a{at}"] = [*(6 + noise[0]), *[0] * 60]
        rows[f"b{at}"] = [*(6 + noise[1]), *rng.integers(0, 3, 60)]
    _assert_both_ways(rows, "do no harm", k=10)


def test_two_ways_to_do_no_harm_have_half_of_alpha_each() -> None:
    """Seven queries more: p is 2 / 2**7, and the search is surely not longer by 50 positions."""
    a, b = [*_BOTH, *[0] * 7], [*_BOTH[:-1], _BOTH[-1] + 1, *[3] * 7]
    verdict = _judge(a, b, DeclaredRules(margins=Margins(esl=50)))
    assert verdict.p_no_harm == pytest.approx(2 * 2 / 2**7)


@pytest.mark.parametrize(("lost", "word"), [(0, "do no harm"), (80, "no verdict")])
def test_groups_that_rank_better_must_not_find_fewer(lost: int, word: str) -> None:
    rng = np.random.default_rng(6)
    rows = {}
    for at in range(3):
        noise = rng.integers(0, 2, (2, 400))
        rows[f"a{at}"] = [*(8 + noise[0]), at % 2]
        rows[f"b{at}"] = [*(5 + noise[1]), (at + 1) % 2]
        rows[f"b{at}"][:lost] = [0] * lost
    _assert_both_ways(rows, word)


def test_what_pulls_in_opposite_directions_has_no_verdict() -> None:
    """As the paper's R1 and R2: more is answered, and what both answer ranks lower."""
    worse = [rank + 4 for rank in _BOTH]
    for harm in ("margin", "plain"):
        verdict = _judge([*_BOTH, *[0] * 15], [*worse, *[3] * 15], DeclaredRules(harm=harm))
        assert (verdict.word, verdict.better) == ("no verdict", None)
        assert "they favour different runs" in verdict.why


def test_equal_shares_and_a_lower_search_length_do_no_harm() -> None:
    """As the paper's R1 and R8."""
    better = [rank - 4 for rank in _BOTH]
    a, b = [*_BOTH, 0, 2, *[1] * 40], [*better, 2, 0, *[1] * 40]
    assert _judge(a, b, DeclaredRules(harm="plain")).word == "do no harm"
    wide = DeclaredRules(margins=Margins(found=0.1))
    assert (_judge(a, b, wide).word, _judge(a, b, wide).better) == ("do no harm", "B")


def test_no_significant_harm_is_no_evidence_of_none() -> None:
    """On 30 queries nothing excludes a loss of one query in a hundred; the plain rule asks not."""
    a, b = [9] * 20 + [0, 3] * 5, [1] * 20 + [3, 0] * 5
    assert _judge(a, b, DeclaredRules(harm="plain")).word == "do no harm"
    verdict = _judge(a, b)
    assert verdict.word == "no verdict"
    assert "harm is not ruled out" in verdict.why


@given(
    st.integers(0, 10_000),
    st.sampled_from(["esl", "rr"]),
    st.sampled_from(["holm", "bonferroni", "none"]),
)
def test_each_verdict_says_what_the_papers_rule_says(
    seed: int, by: Literal["esl", "rr"], correction: Correction
) -> None:
    random = np.random.default_rng(seed)
    rows = np.maximum(random.integers(0, 9, 80) + random.integers(-3, 5, (5, 80)), 0)
    rows[1] = np.maximum(rows[0] - 2, rows[0] > 0)  # as many, higher
    rows[2] = np.where(rows[0] == 0, 3, rows[0])  # more
    ranks = _ranks({f"s{at}": row.tolist() for at, row in enumerate(rows)})
    ours, theirs = (
        analyse_outcomes(
            ranks, all_pairs(ranks), DeclaredRules(by=by, correction=correction, harm=harm)
        ).pairs
        for harm in ("margin", "plain")
    )
    assert ours.plain.tolist() == theirs.plain.tolist() == theirs.better.tolist()
    assert [one.verdict.plain for one in ours] == [one.verdict.better for one in theirs]
    if by == "esl":
        assert ours.better.tolist() != theirs.better.tolist()


def test_a_verdict_other_than_the_papers_says_so() -> None:
    a, b = [9] * 20 + [0, 3] * 5, [1] * 20 + [3, 0] * 5
    said = ("", "By the rule of Lin et al. 2021, §5 (--harm plain): B is better.")
    for rules, differs in ((DeclaredRules(), True), (DeclaredRules(harm="plain"), False)):
        result = analyse_outcomes(_ranks({"a": a, "b": b}), [(A, B)], rules)
        assert (said in verdict_summary(result)) == differs
        assert to_document(result.pairs[0].verdict)["plain"] == "B"
        counted = ("", f"{said[1].partition(':')[0]}: 1 pair has a verdict.")
        assert (counted in summary(result)) == differs


def test_every_line_in_favour_of_one_run_is_no_verdict_yet() -> None:
    verdict = _judge([4, 9, 2, 0, 5, 5], [2, 8, 2, 3, 5, 4])
    assert verdict.why == "every line favours B, none significantly"


def test_of_runs_that_are_equal_nothing_is_said() -> None:
    verdict = _judge([1, 2, 0], [1, 2, 0])
    assert (verdict.word, verdict.p_strict, verdict.p_no_harm) == ("no verdict", None, None)


def test_false_verdicts_are_rarer_than_alpha_where_runs_are_exchangeable() -> None:
    rng = np.random.default_rng(11)
    trials, hits = choose_trials(push=80, night=150), 0
    rules = DeclaredRules(margins=Margins(found=0.1, esl=10))  # so wide that superiority decides
    for _ in range(trials):
        # Two draws of one distribution, correlated by query
        base = rng.integers(0, 30, 80)
        a, b = (np.maximum(0, base + rng.integers(-4, 5, 80)) for _ in range(2))
        hits += _judge(a.tolist(), b.tolist(), rules).word != "no verdict"
    assert hits / trials <= 0.08


def test_search_length_and_reciprocal_rank_can_choose_different_runs() -> None:
    a, b = [1] * 30 + [40] * 10, [2] * 30 + [10] * 10
    tests = _compare(_ranks({"a": a, "b": b}))
    assert tests.esl.b < tests.esl.a  # type: ignore[operator] # both find all
    assert tests.rr.b < tests.rr.a  # type: ignore[operator]


# Many runs


def test_a_baseline_is_compared_with_every_other_run() -> None:
    ranks = _ranks({name: [1, 2, 0, 4] for name in "abcd"})
    assert [b.name for _, b in pairs_with(ranks, "c")] == ["a", "b", "d"]
    assert len(all_pairs(ranks)) == 6
    with pytest.raises(InputError, match="no-run"):
        pairs_with(ranks, "e")


def test_a_run_against_itself_and_a_lone_run_are_refused() -> None:
    ranks = _ranks({"a": [1, 2], "b": [2, 1]})
    with pytest.raises(InputError, match="same-run"):
        analyse_outcomes(ranks, [(A, A)], DeclaredRules())
    with pytest.raises(InputError, match="too-few-systems"):
        analyse_outcomes(ranks, [], DeclaredRules())


def _order(names: str, means: list[float], beats: set[tuple[str, str]]) -> RunOrder:
    return order_runs(names, means, {(names.index(a), names.index(b)) for a, b in beats})


@given(st.sets(st.sampled_from(sorted(permutations("abcdef", 2)))))
def test_the_line_respects_every_verdict_outside_of_circles(beats: set[tuple[str, str]]) -> None:
    once = {pair for pair in beats if pair[::-1] not in beats or pair < pair[::-1]}
    order = _order("abcdef", [0.6, 0.5, 0.5, 0.3, 0.2, 0.1], once)
    assert sorted(order.systems) == sorted("abcdef")
    place = {name: at for at, name in enumerate(order.systems)}
    circle = {name: group for group in order.cycles for name in group}
    for better, worse in once:
        if circle.get(better, better) != circle.get(worse, worse):
            assert place[better] < place[worse]


def test_a_circle_is_reported_and_stands_together() -> None:
    beats = {("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")}
    order = _order("dcba", [0.9, 0.3, 0.2, 0.1], beats)
    assert order.systems == ("c", "b", "a", "d")
    assert order.cycles == (("c", "b", "a"),)
    assert order.circles == (("c", "a", "b"),)  # c beats a, a beats b, b beats c


@given(st.sets(st.sampled_from(sorted(permutations("abcdef", 2)))))
def test_a_circle_closes_and_each_run_of_it_beats_the_next(beats: set[tuple[str, str]]) -> None:
    once = {pair for pair in beats if pair[::-1] not in beats or pair < pair[::-1]}
    order = _order("abcdef", [0.6, 0.5, 0.5, 0.3, 0.2, 0.1], once)
    assert len(order.circles) == len(order.cycles)
    for circle, cycle in zip(order.circles, order.cycles, strict=True):
        assert {*circle} <= {*cycle}
        assert len({*circle}) == len(circle) > 2
        assert once >= {*pairwise((*circle, circle[0]))}


def test_without_verdicts_the_mean_decides_and_says_so() -> None:
    order = _order("abc", [0.1, 0.3, 0.3], set())
    assert order.systems == ("b", "c", "a")
    assert order.by_verdict == (False, False)


# Curves of Success@j


def test_curves_count_what_is_found_so_far() -> None:
    ranks = _ranks({"a": [1, 2, 0, 3], "b": [1, 1, 2, 0]}, k=3)
    curves = success_curves(ranks, A, B, np.random.default_rng(0))
    assert curves.success_a == (0.25, 0.5, 0.75)
    assert curves.success_b == (0.5, 0.75, 0.75)


def test_equal_runs_have_no_interval() -> None:
    ranks = _ranks({"a": [1, 0, 2], "b": [1, 0, 2]}, k=3)
    curves = success_curves(ranks, A, B, np.random.default_rng(0))
    assert curves.low == curves.high == (None, None, None)


@pytest.mark.parametrize("band", ["simultaneous", "pointwise"])
def test_a_band_of_one_seed_is_one_band_and_pointwise_is_the_narrower(band: Band) -> None:
    rng = np.random.default_rng(7)
    ranks = _ranks(
        {"a": rng.integers(0, 9, 90).tolist(), "b": rng.integers(0, 9, 90).tolist()}, k=9
    )
    once, again = (
        success_curves(ranks, A, B, np.random.default_rng(3), band=band) for _ in range(2)
    )
    assert (once.low, once.high) == (again.low, again.high)
    point = success_curves(ranks, A, B, np.random.default_rng(3), band="pointwise")
    for wide, narrow in zip(once.high, point.high, strict=True):
        assert wide is not None
        assert narrow is not None
        assert wide >= narrow


def test_a_simultaneous_band_holds_at_all_depths_at_once() -> None:
    rng = np.random.default_rng(4)
    k, size, trials, held = 20, 150, choose_trials(push=100, night=200), 0
    # Both runs find at a depth from 1 to k + 10, and B at one depth less where A is odd
    for _ in range(trials):
        first = rng.integers(1, k + 11, size)
        second = np.where(rng.random(size) < 0.5, rng.integers(1, k + 11, size), first)
        rows = {n: np.where(r > k, 0, r).tolist() for n, r in (("a", first), ("b", second))}
        curves = success_curves(_ranks(rows, k=k), A, B, rng, draws=500)
        pairs = zip(curves.low, curves.high, strict=True)
        held += all(low is None or high is None or low <= 0 <= high for low, high in pairs)
    assert 0.90 <= held / trials <= 0.99


# Groups of seeds


def test_groups_are_averaged_over_pairs_of_seeds() -> None:
    ranks = _ranks({"a": [1, 0, 2, 4], "b": [2, 3, 0, 2], "c": [1, 3, 1, 0]})
    group = MethodSide(name="b, c", runs=("b", "c"))
    (pair,) = compare_groups(ranks, A, group, Margins(), level=0.95)
    one, other = (_compare(ranks, A, MethodSide(name=name, runs=(name,))) for name in "bc")
    assert pair.both == (one.both + other.both) / 2
    assert pair.a_only == (one.a_only + other.a_only) / 2
    lengths = [(1 + 4) + 0, (1 + 2)]
    assert pair.esl.a == pytest.approx(sum(lengths) / (one.both + other.both))


def test_one_method_with_other_seeds_is_not_told_from_itself() -> None:
    """A test of two of the runs over queries calls the luck of a seed significant."""
    rng = np.random.default_rng(9)
    runs = [f"{name}{at}" for name in "ab" for at in range(4)]
    groups = MethodSide(name="a", runs=tuple(runs[:4])), MethodSide(name="b", runs=tuple(runs[4:]))
    trials, hits, naive = choose_trials(push=80, night=200), 0, 0
    for _ in range(trials):
        hard = rng.exponential(8, 120)
        luck = np.exp(rng.normal(0, 0.3, (8, 1)) + rng.normal(0, 0.5, (8, 120)))
        drawn = np.ceil(hard * luck).astype(int)
        drawn[drawn > 30] = 0
        ranks = _ranks(dict(zip(runs, drawn.tolist(), strict=True)))
        across = compare_groups(ranks, *groups, Margins(), level=0.95).tests["esl_crossed_t"][0].p
        first, second = drawn[0], drawn[4]
        both = (first > 0) & (second > 0)
        hits += across is not None and across <= 0.05
        naive += stats.ttest_rel(first[both], second[both]).pvalue <= 0.05
    assert hits / trials <= 0.08
    assert naive / trials > 0.3


def test_groups_are_judged_by_the_test_across_seeds() -> None:
    rng = np.random.default_rng(1)
    base = rng.integers(6, 12, 100)
    rows = {f"a{at}": (base + rng.integers(0, 3, 100)).tolist() for at in range(3)}
    rows |= {f"b{at}": (base - 5 + rng.integers(0, 3, 100)).tolist() for at in range(3)}
    found = analyse_outcomes(_ranks(rows), [GROUPS], DeclaredRules())
    (judged,) = found.pairs
    assert judged.declared == "esl_crossed_t"
    assert judged.tests["found_crossed_t"].p is None  # every seed finds every query
    assert judged.verdict.word == "no verdict"
    assert "B has the lower ESL, significantly" in judged.verdict.why
