"""Tasks: every pair for every judge, sides even, the same seed the same bytes; and prices."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.judging.campaign.drawing import draw_tasks, list_pairs, propose_tests
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.campaign.rows import Item
from heldout.judging.campaign.settings import Settings, format_money, price

_TESTS = [Item(query=f"t{n}", left="good", right="off", answer="good") for n in range(5)]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def pairs(count: int) -> list[tuple[str, str, str]]:
    return [(f"q{n % 7}", f"a{n}", f"b{n}") for n in range(count)]


@given(count=st.integers(0, 60), judges=st.integers(1, 5), seed=st.integers(0, 999))
def test_each_pair_is_in_one_task_of_each_judge_and_sides_are_even(
    count: int, judges: int, seed: int
) -> None:
    asked = Settings(name="x", judges=judges)
    tasks = draw_tasks(pairs(count), _TESTS, asked, rng=rng(seed))
    assert tasks == draw_tasks(pairs(count), _TESTS, asked, rng=rng(seed))
    assert len({task.task for task in tasks}) == len(tasks) == -(-count // 10) * judges
    shown = [item for task in tasks for item in task.items if item.answer is None]
    assert Counter(item.pair for item in shown) == dict.fromkeys(pairs(count), judges)
    left = Counter(item.pair for item in shown if item.left.startswith("a"))
    for pair in pairs(count):
        assert judges // 2 <= left[pair] <= -(-judges // 2)
    for task in tasks:
        assert sum(item.answer is not None for item in task.items) == 3
        assert len({item.pair for item in task.items}) == len(task.items)


def test_order_and_sides_are_not_those_of_the_pool() -> None:
    tasks = draw_tasks(pairs(1_000), _TESTS, Settings(name="x"), rng=rng())
    items = [item for task in tasks for item in task.items]
    left = sum(item.left.startswith("a") for item in items if item.answer is None)
    assert 430 < left < 570  # 1,000 coins: 7 is beyond four standard deviations
    places = Counter(
        place for task in tasks for place, item in enumerate(task.items) if item.answer
    )
    assert min(places.values()) > 5
    assert len(places) == 13


def test_too_few_tests_are_refused() -> None:
    with pytest.raises(InputError, match="too-few-tests"):
        draw_tasks(pairs(1), _TESTS[:2], Settings(name="x"), rng=rng())


def test_tests_are_of_other_queries_where_there_are_enough() -> None:
    asked = Settings(name="x", pairs=2, tests=3)
    (task,) = draw_tasks([("t0", "a", "b"), ("t1", "a", "b")], _TESTS, asked, rng=rng())
    assert {item.query for item in task.items if item.answer} == {"t2", "t3", "t4"}


def test_proposed_tests_share_no_word_with_query_or_answer() -> None:
    words = ["apple pear", "stone sand", "river lake", "apple stone", "wolf bear"]
    pools = [
        Pool(
            query=f"q{n}",
            text=f"asked {n}",
            candidates=(Candidate(doc=f"d{n}", text=text, known=True),),
        )
        for n, text in enumerate(words)
    ]
    tests = propose_tests(pools, count=5, rng=rng())
    text = {f"d{n}": set(words[n].split()) for n in range(5)}
    assert len(tests) == 5
    for test in tests:
        off = test.right if test.answer == test.left else test.left
        assert test.answer == f"d{test.query[1]}"
        assert not text[str(test.answer)] & text[off]


def test_list_pairs_is_every_pair_once() -> None:
    pool = Pool(query="q", candidates=tuple(Candidate(doc=doc) for doc in "cab"))
    assert set(list_pairs([pool])) == {("q", "a", "c"), ("q", "b", "c"), ("q", "a", "b")}


@pytest.mark.parametrize(
    ("count", "told"), [(6_980, "$1,675.20"), (4_210, "$1,010.40"), (141_887, "$34,053.60")]
)
def test_the_studys_prices(count: int, told: str) -> None:
    found = price(count, Settings(name="x", reward=200, fee=40))
    assert format_money(found.total, "USD") == told


def test_more_judges_cost_as_many_tasks_more() -> None:
    found = price(11, Settings(name="x", judges=3, reward=200, fee=40, currency="EUR"))
    assert (found.tasks, found.judgments, found.total) == (6, 33, 6 * 240)
    assert format_money(found.total, found.currency) == "14.40 EUR"


def test_words_of_many_pools_do_not_keep_passages_from_being_tests() -> None:
    """Prose has the same few words everywhere; a topic's own words still keep passages out."""
    topics = ["apples", "stones", "rivers", "wolves", "apples"] * 8
    pools = [
        Pool(
            query=f"q{n}",
            text="what are these and why",
            candidates=(
                Candidate(doc=f"d{n}", text=f"These are the {topic} {n} and that", known=True),
            ),
        )
        for n, topic in enumerate([f"{one}{n % 20}" for n, one in enumerate(topics)])
    ]
    tests = propose_tests(pools, count=40, rng=rng())
    assert len(tests) == 40
    words = {pool.query[1:]: pool.candidates[0].text.split()[3] for pool in pools}
    for test in tests:
        assert words[test.left[1:]] != words[test.right[1:]]


def test_passages_of_common_words_alone_are_no_tests() -> None:
    """Else a passage of two pools would be proposed against itself."""
    shared = Candidate(doc="same", text="these words are in all of them", known=True)
    pools = [Pool(query=f"q{n}", text=f"asked {n}", candidates=(shared,)) for n in range(20)]
    assert propose_tests(pools, count=20, rng=rng()) == ()
