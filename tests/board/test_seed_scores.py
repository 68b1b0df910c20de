"""Names of runs that differ by seed, and the one score that they make."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.scores.score import ViewScore, average_seeds
from heldout.board.scores.sets import check_seeds, group_seeds, list_runs
from heldout.errors import InputError
from heldout.ids import query_set_of, run_name, seed_of

SETS = ("dev", "eval")


def codes(names: list[str], *, most: int = 5) -> list[str]:
    return [p.code for p in check_seeds(names, sets=SETS, most=most, path="draft")]


def whole(seeds: int) -> list[str]:
    return [run_name(name, seed) for name in SETS for seed in range(1, seeds + 1)]


@given(st.from_regex(r"[A-Za-z0-9_-]{1,32}", fullmatch=True), st.integers(1, 99))
def test_a_name_says_its_set_and_its_seed(query_set: str, seed: int) -> None:
    name = run_name(query_set, seed)
    assert (query_set_of(name), seed_of(name)) == (query_set, seed)


@given(st.integers(1, 20))
def test_whole_seeds_have_no_fault_up_to_the_most(seeds: int) -> None:
    names = whole(seeds)
    assert codes(names, most=20) == []
    groups = group_seeds(dict.fromkeys(names, 0))
    assert {n: len(runs) for n, runs in groups.items()} == dict.fromkeys(SETS, seeds)
    assert seeds == 1 or codes(names, most=seeds - 1) == ["too-many-seeds"]


@given(st.integers(2, 9), st.data())
def test_any_missing_further_seed_is_told(seeds: int, data: st.DataObject) -> None:
    names = whole(seeds)
    gone = data.draw(st.sampled_from([name for name in names if "~" in name]))
    last = gone.endswith(f"~{seeds}")
    left = [name for name in names if name != gone]
    assert codes(left, most=9) == ["missing-seed"]
    both = [name for name in left if not (last and name.endswith(f"~{seeds}"))]
    assert codes(both, most=9) == ([] if last else ["missing-seed"])


@pytest.mark.parametrize("end", ["", "0", "1", "02", "2~2", "-2", "\u0662", " 2", "x", "9" * 5000])
def test_what_is_no_number_of_a_seed_is_told(end: str) -> None:
    assert "seed-name" in codes([*whole(1), f"eval~{end}"])


def test_a_great_number_is_one_problem_and_not_a_million() -> None:
    assert codes([*whole(1), "eval~999999"]) == ["too-many-seeds"]


def test_names_of_no_set_are_left_to_others() -> None:
    assert codes([*whole(1), "train~2", "~2"]) == []
    assert list_runs(["dev", "eval~2", "train~2"], sets=SETS) == ("dev", "eval", "eval~2")


def test_the_tenth_seed_comes_after_the_second() -> None:
    assert group_seeds({"eval~10": 10, "eval~2": 2, "eval": 1}) == {"eval": (1, 2, 10)}


def score(*values: float | None, zeros: int = 0) -> ViewScore:
    defined = [value for value in values if value is not None]
    n = len(defined) + zeros
    return ViewScore(
        measure="RR@10",
        mean=math.fsum(defined) / n,
        n=n,
        unanswered=0,
        without_relevant=0,
        per_query={f"q{i}": value for i, value in enumerate(values)},
    )


def test_one_run_is_left_as_it_is() -> None:
    one = score(0.5, None, 1.0)
    assert average_seeds([one]) is one


rows = st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=2, max_size=6)


@given(rows, st.integers(0, 3))
def test_the_mean_of_the_seeds_is_the_mean_over_the_queries(
    values: list[list[float]], zeros: int
) -> None:
    scores = [score(*row, zeros=zeros) for row in values]
    found = average_seeds(scores)
    assert found.n == 4 + zeros
    assert found.seeds == pytest.approx([one.mean for one in scores])
    assert found.mean == pytest.approx(math.fsum(found.seeds) / len(scores))
    defined = [value for value in found.per_query.values() if value is not None]
    assert found.mean == math.fsum(defined) / found.n


def test_a_query_that_one_seed_leaves_undefined_counts_for_none() -> None:
    found = average_seeds([score(0.2, None, 0.4), score(0.6, 1.0, 0.8)])
    assert found.per_query == {"q0": pytest.approx(0.4), "q1": None, "q2": pytest.approx(0.6)}
    assert found.n == 2
    assert found.seeds == pytest.approx((0.3, 0.7))


def test_seeds_without_a_common_defined_query_are_an_error_and_no_number() -> None:
    with pytest.raises(InputError, match="under every seed"):
        average_seeds([score(0.2, None), score(None, 0.3)])
