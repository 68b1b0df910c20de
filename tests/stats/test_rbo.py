"""Rank-biased overlap: the authors' reference cases, the laws, and all ways to break ties."""

import csv
import gzip
import re
from collections.abc import Callable
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.policy import similarity
from heldout.errors import InputError
from heldout.stats import rank_correlation
from heldout.stats.rank_correlation import RboTies, rank_biased_overlap

TIES: tuple[RboTies, ...] = ("w", "a", "b")
Groups = list[tuple[int, ...]]


@st.composite
def rankings(draw: st.DrawFn) -> Groups:
    items = draw(st.lists(st.integers(0, 9), unique=True, min_size=1, max_size=8))
    ends = sorted(draw(st.sets(st.integers(1, len(items)), max_size=8)) | {len(items)})
    starts = [0, *ends[:-1]]
    return [tuple(items[start:end]) for start, end in zip(starts, ends, strict=True)]


def read(text: str) -> list[tuple[str, ...]]:
    return [tuple(one.strip("()").split()) for one in re.findall(r"\([^)]*\)|\S+", text)]


@pytest.mark.real
@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.night)])
def test_all_reference_cases_within_1e_12(data: Callable[[str], Path], every: int) -> None:
    with gzip.open(data("rbo-with-ties/cases.csv.gz"), "rt") as file:
        cases = list(csv.DictReader(file))
    assert len(cases) == 5000
    worst = 0.0
    for case in cases[::every]:
        x, y, p = read(case["x"]), read(case["y"]), float(case["p"])
        for ties in TIES:
            found = rank_biased_overlap(x, y, p, ties=ties)
            for name in ("ext", "min", "max", "res"):
                worst = max(worst, abs(getattr(found, name) - float(case[f"{ties}.{name}"])))
    assert worst <= 1e-12


@given(rankings(), rankings(), st.floats(0.05, 0.99), st.sampled_from(TIES))
def test_bounds_hold_and_the_rankings_may_change_places(
    x: Groups, y: Groups, p: float, ties: RboTies
) -> None:
    found = rank_biased_overlap(x, y, p, ties=ties)
    assert 0 <= found.min <= found.max + 1e-12 <= 1 + 1e-12
    assert found.min <= found.ext + 1e-12
    assert found.res == found.max - found.min
    turned = rank_biased_overlap(y, x, p, ties=ties)
    for name in ("ext", "min", "max"):
        assert getattr(found, name) == pytest.approx(getattr(turned, name), abs=1e-12)


@given(rankings(), st.floats(0.05, 0.99))
def test_a_ranking_agrees_with_itself_where_ties_are_equality_or_corrected(
    x: Groups, p: float
) -> None:
    assert rank_biased_overlap(x, x, p, ties="w").ext == pytest.approx(1)
    assert rank_biased_overlap(x, x, p, ties="b").ext == pytest.approx(1)
    assert rank_biased_overlap(x, x, p, ties="a").ext <= 1


def test_unknown_order_is_the_mean_over_all_orders() -> None:
    x, y = [(1, 2), (3,), (4, 5)], [(2,), (6, 1, 3), (4,)]

    def orders(ranking: Groups) -> list[Groups]:
        ways = product(*(permutations(group) for group in ranking))
        return [[(item,) for group in way for item in group] for way in ways]

    broken = [rank_biased_overlap(a, b, 0.8).ext for a, b in product(orders(x), orders(y))]
    assert rank_biased_overlap(x, y, 0.8).ext == pytest.approx(np.mean(broken), abs=1e-12)


def test_without_ties_the_treatments_are_one_and_by_hand() -> None:
    x, y = [("a",), ("b",)], [("b",), ("a",)]
    found = {rank_biased_overlap(x, y, 0.5, ties=ties).ext for ties in TIES}
    # Nothing at depth 1, all from depth 2 on: the weight of the depths from 2 is p
    assert found == {0.5}
    apart = rank_biased_overlap([("a",)], [("b",)], 0.5)
    assert (apart.ext, apart.min) == (0, 0)


@pytest.mark.parametrize("p", [0, 1, -0.1, 2, float("nan")], ids=str)
def test_a_persistence_that_is_none_is_refused(p: float) -> None:
    with pytest.raises(InputError, match="bad-persistence"):
        rank_biased_overlap([("a",)], [("a",)], p)


@pytest.mark.parametrize(
    "ranking",
    [
        pytest.param([], id="empty"),
        pytest.param([("a",), ()], id="an empty group"),
        pytest.param([("a",), ("a",)], id="an item twice"),
        pytest.param([("a", "a")], id="an item twice in a group"),
        pytest.param(["ab"], id="a string for a group"),
    ],
)
def test_what_is_no_ranking_is_refused(ranking: list[tuple[str, ...]]) -> None:
    with pytest.raises(InputError, match="bad-ranking the second ranking"):
        rank_biased_overlap([("a",)], ranking, 0.9)


@given(st.permutations(range(1, 9)), st.integers(1, 8), st.integers(1, 8))
def test_without_ties_it_is_the_overlap_by_which_boards_compare_runs(
    order: list[int], first: int, second: int
) -> None:
    x, y = np.zeros((2, 1, 8), np.uint64)
    x[0, :first], y[0, :second] = range(1, first + 1), order[:second]
    boards = similarity.rank_biased_overlap(x, y, p=0.9)
    groups = [[(int(item),) for item in ranking[ranking > 0]] for ranking in (x[0], y[0])]
    assert rank_biased_overlap(groups[0], groups[1], 0.9).ext == pytest.approx(boards[0], abs=1e-12)


@given(st.permutations(range(12)), st.integers(1, 12), st.sampled_from(TIES))
def test_rankings_of_one_length_without_ties_need_no_row_for_each_item(
    order: list[int], length: int, ties: RboTies
) -> None:
    x, y = ([(item,) for item in items[:length]] for items in (range(12), order))
    short, long = rank_correlation._look_untied(x, y), rank_correlation._look(x, y, ties)

    assert (short.shorter, short.longer) == (long.shorter, long.longer)
    assert short.common == pytest.approx(long.common)
    assert np.array(short.sizes) == pytest.approx(np.array(long.sizes))
    assert rank_correlation._most_unseen(short) == pytest.approx(
        rank_correlation._most_unseen(long)
    )
