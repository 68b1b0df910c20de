"""Names of runs that differ by seed, and the one score that they make."""

import math

import numpy as np
import pytest
from boardlog import RULES, find_problems
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.policy.similarity import compare_seeds, say_fault
from heldout.board.rules.release import release_spread
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores.score import ViewScore, average_seeds
from heldout.board.scores.sets import check_seeds, group_seeds, list_runs
from heldout.errors import InputError
from heldout.ids import query_set_of, run_name, seed_of
from heldout.trec.scans import Signature

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
def test_the_mean_of_seeds_is_the_mean_over_queries(values: list[list[float]], zeros: int) -> None:
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


scores = st.floats(0, 1, allow_nan=False)


def signature(rows: list[list[int]], queries: tuple[str, ...] | None = None) -> Signature:
    documents = np.zeros((len(rows), 100), np.uint64)
    for place, row in enumerate(rows):
        documents[place, : len(row)] = row
    ids = queries or tuple(f"q{i}" for i in range(len(rows)))
    return Signature(queries=ids, documents=documents)


ONE = signature([[1, 2, 3], [4, 5, 6]])
NEAR = signature([[2, 1, 3], [4, 5, 6]])
NEARER = signature([[1, 2, 3], [5, 4, 6]])
FAR = signature([[91, 92, 93], [94, 95, 96]])


def test_seeds_that_are_alike_have_no_fault() -> None:
    assert compare_seeds({"eval": ONE, "eval~2": NEAR, "eval~3": NEARER}) == ()
    assert compare_seeds({"eval": ONE}) == ()
    assert compare_seeds({}) == ()


def test_a_copy_is_found_between_any_two_seeds() -> None:
    faults = compare_seeds({"eval": ONE, "eval~2": NEAR, "eval~3": NEAR})
    assert [(f.first, f.second, f.copied) for f in faults] == [("eval~2", "eval~3", True)]
    assert "eval~3 has the same documents" in say_fault(faults[0])


def test_an_unlike_seed_is_told_once_against_the_first() -> None:
    faults = compare_seeds({"eval": ONE, "eval~2": FAR, "eval~10": NEAR})
    assert [(f.first, f.second, f.copied) for f in faults] == [("eval", "eval~2", False)]
    assert "eval~2 against eval" in say_fault(faults[0]) or "no query" in say_fault(faults[0])


def test_seeds_without_a_common_query_are_unlike() -> None:
    other = signature([[1, 2, 3], [4, 5, 6]], ("x", "y"))
    (fault,) = compare_seeds({"eval": ONE, "eval~2": other})
    assert say_fault(fault) == "eval~2 answers no query that eval answers"


def test_sets_are_never_compared_with_each_other() -> None:
    assert compare_seeds({"dev": ONE, "eval": ONE}) == ()


@given(st.lists(scores, min_size=2, max_size=20))
def test_the_spread_is_numpy_s_deviation_in_any_order(values: list[float]) -> None:
    text = release_spread(values, decimals=3)
    assert float(text) == pytest.approx(float(np.std(values, ddof=1)), abs=5.1e-4)
    assert text == release_spread(values[::-1], decimals=3)


def with_seeds(seeds: int) -> str:
    return RULES.replace("complete = true\n", f"complete = true\nseeds = {seeds}\n")


@pytest.mark.parametrize("seeds", [0, 21, -1])
def test_a_number_of_seeds_out_of_range_is_told(seeds: int) -> None:
    with pytest.raises(InputError, match="1 to 20"):
        parse_spec(with_seeds(seeds).encode())


def test_a_board_in_the_form_of_ms_marco_takes_no_seeds() -> None:
    rules = with_seeds(2).replace('envelope = "age"', 'envelope = "openssl"')
    assert any("openssl" in p.expected and "seeds" in str(p) for p in find_problems(rules))
    parse_spec(rules.replace("seeds = 2", "seeds = 1").encode())
