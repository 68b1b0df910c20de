"""Seeds of one system are alike and none is a copy; a spread is a deviation."""

import numpy as np
import pytest
from boardlog import RULES
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.policy.similarity import compare_seeds, say_fault
from heldout.board.rules.release import release_spread
from heldout.board.rules.spec_file import parse_spec
from heldout.errors import InputError
from heldout.trec.scans import Signature

scores = st.floats(0, 1, allow_nan=False)


def signature(rows: list[list[int]], queries: tuple[str, ...] | None = None) -> Signature:
    documents = np.zeros((len(rows), 100), np.uint64)
    for place, row in enumerate(rows):
        documents[place, : len(row)] = row
    return Signature(
        queries=queries or tuple(f"q{i}" for i in range(len(rows))), documents=documents
    )


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
    with pytest.raises(InputError) as caught:
        parse_spec(rules.encode())
    assert any("openssl" in p.expected and "seeds" in str(p) for p in caught.value.problems)
    parse_spec(rules.replace("seeds = 2", "seeds = 1").encode())
