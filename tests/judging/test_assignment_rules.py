"""The rules of an assignment, without a database."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heldout.judging.campaign.rows import Item, Task, amount_owed, copy_task

ITEMS = st.lists(
    st.builds(
        lambda query, answer: Item(query=query, left="a", right="b", answer=answer),
        st.text("qrs", min_size=1, max_size=6),
        st.sampled_from([None, "a"]),
    ),
    min_size=1,
    max_size=15,
)


def test_five_of_thirteen_of_two_dollars_is_77_cents() -> None:
    assert amount_owed(reward=200, answered=5, items=13) == 77


@given(st.integers(0, 10**8), st.integers(1, 1_000), st.data())
def test_no_worker_is_owed_less_than_the_share_nor_a_hundredth_more(
    reward: int, items: int, data: st.DataObject
) -> None:
    answered = data.draw(st.integers(0, items))
    owed = amount_owed(reward=reward, answered=answered, items=items)
    assert 0 <= owed * items - reward * answered < items
    assert amount_owed(reward=reward, answered=items, items=items) == reward


@given(ITEMS, st.integers(0, 2**32), st.booleans())
def test_a_copy_has_the_same_pairs_and_answers(items: list[Item], seed: int, keep: bool) -> None:  # noqa: FBT001 - drawn
    task = Task(task="t", items=tuple(items), why="challenge", batch=3)
    rng = np.random.default_rng(seed)
    copy = copy_task(task, name="t~2", same_sides=keep, rng=rng)
    assert sorted((one.pair, one.answer or "") for one in copy.items) == sorted(
        (one.pair, one.answer or "") for one in items
    )
    assert (copy.task, copy.why, copy.batch) == ("t~2", "challenge", 3)
    if keep:
        assert all(one.left == "a" for one in copy.items if one.answer is None)


def test_a_copy_has_a_new_order_and_new_sides() -> None:
    items = tuple(Item(query=str(number), left="a", right="b") for number in range(40))
    copy = copy_task(
        Task(task="t", items=items), name="u", same_sides=False, rng=np.random.default_rng(0)
    )
    assert [one.query for one in copy.items] != [one.query for one in items]
    assert 5 < sum(one.left == "b" for one in copy.items) < 35
