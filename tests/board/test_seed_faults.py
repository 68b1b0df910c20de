"""Seeds of one system are alike and none is a copy; a spread is a deviation, and has its bits."""

import math
from itertools import product
from statistics import stdev

import numpy as np
import pytest
from boardlog import RULES, BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.leaks.ledger import Ledger, make_ledger
from heldout.board.leaks.transcripts import count_spreads
from heldout.board.policy.seeds import compare_seeds, say_fault
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


@given(st.lists(scores, min_size=2, max_size=20))
def test_no_spread_is_wider_than_the_ledger_counts(values: list[float]) -> None:
    text = release_spread(values, decimals=3)
    assert round(float(text) * 1000) <= count_spreads(len(values), decimals=3) - 1


@pytest.mark.parametrize("seeds", [2, 3, 4, 5, 6])
def test_the_widest_spread_can_be_reached(seeds: int) -> None:
    widest = max(stdev(ends) for ends in product((0.0, 1.0), repeat=seeds))
    assert count_spreads(seeds, decimals=3) == 1 + round(widest * 1000)


def test_one_seed_has_no_spread_and_two_have_the_widest() -> None:
    counts = [count_spreads(seeds, decimals=3) for seeds in range(1, 21)]
    assert counts[0] == 1
    assert max(counts) == counts[1]


def with_seeds(seeds: int) -> str:
    return RULES.replace("complete = true\n", f"complete = true\nseeds = {seeds}\n")


def ledger_of(rules: str, *, runs: int, told: bool = True) -> Ledger:
    log = BoardLog().open(rules)
    log.submit("20261101-a", make_manifest(), "0.400")
    entry = log.entries.pop()
    public = dict(entry.event.public)
    if runs > 1:
        public["seeds"] = {"runs": runs, "spreads": {"eval": "0.010"} if told else {}}
    sealed = {name: opening.value for name, opening in entry.opened.items()}
    log.add("published", "20261101-a", public, sealed)
    return make_ledger(log.history)


def test_the_ledger_counts_the_bits_of_a_spread_told_or_not() -> None:
    one = ledger_of(with_seeds(5), runs=1)
    for told in (True, False):
        several = ledger_of(with_seeds(5), runs=3, told=told)
        extra = math.log2(count_spreads(3, decimals=3))
        assert several.teams[0].bits == pytest.approx(one.teams[0].bits + extra)
        assert several.board.bits == pytest.approx(one.board.bits + extra)


def test_a_board_that_takes_seeds_may_tell_more() -> None:
    without, several = ledger_of(RULES, runs=1), ledger_of(with_seeds(5), runs=1)
    further = 299 * math.log2(count_spreads(2, decimals=3))
    assert several.board.bits_at_most == pytest.approx(without.board.bits_at_most + further)
    assert several.teams[0].bits_at_most > without.teams[0].bits_at_most


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
