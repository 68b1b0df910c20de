"""Batches of a sequential campaign: through the command line to its end, and in each way."""

from collections import Counter
from functools import partial
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calling
from heldout.judging.campaign.drawing import (
    count_planned,
    draw_batch,
    list_pairs,
    missing_votes,
    plan_batch,
)
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.campaign.rows import Item, Task
from heldout.judging.campaign.settings import Settings
from heldout.judging.studies.judges import SimulatedJudge

_SETTINGS = Settings(name="c", mode="sequential", lead=2, cap=5, tests=1, pairs=4)
_TESTS = (Item(query="other", left="good", right="bad", answer="good"),)


def make_pools(*sizes: int) -> tuple[Pool, ...]:
    return tuple(
        Pool(
            query=f"q{place}",
            text=f"query {place}",
            candidates=tuple(
                Candidate(doc=f"q{place}d{n:02}", text=f"text {n}", known=n == 0)
                for n in range(size)
            ),
        )
        for place, size in enumerate(sizes)
    )


def make_judge(pools: tuple[Pool, ...], seed: int) -> SimulatedJudge:
    rng = np.random.default_rng(seed)
    strengths = {(p.query, one.doc): float(rng.normal(0, 1)) for p in pools for one in p.candidates}
    strengths |= {("other", "good"): 50.0, ("other", "bad"): -50.0}
    return SimulatedJudge(strengths=strengths, rng=rng)


def do(task: Task, judge: SimulatedJudge) -> list[Judgment]:
    return [
        Judgment(
            query=item.query,
            left=item.left,
            right=item.right,
            preferred=judge.choose(item.query, item.left, item.right),
            worker=f"w-{task.task}",
            task=task.task,
            position=position,
            answer=item.answer,
            answered_at="2026-01-01T00:00:00.000Z",
        )
        for position, item in enumerate(task.items, 1)
    ]


def test_a_campaign_ends_and_stays_within_its_caps() -> None:
    pools = make_pools(1, 2, 5, 14, 21)
    judge = make_judge(pools, seed=3)
    tasks: list[Task] = []
    judged: list[Judgment] = []
    for _ in range(200):
        wanted = plan_batch(pools, judged, _SETTINGS, planned=count_planned(tasks))
        if not wanted:
            break
        batch = max((task.batch for task in tasks), default=0) + 1
        drawn = draw_batch(wanted, _TESTS, _SETTINGS, seed=1, batch=batch)
        planned = count_planned(drawn)
        assert planned == wanted
        tasks += drawn
        waiting = plan_batch(pools, judged, _SETTINGS, planned=count_planned(tasks))
        assert waiting == {}
        for task in drawn:
            judged += do(task, judge)
    else:
        pytest.fail("the campaign never ends")
    assert len({task.task for task in tasks}) == len(tasks)
    assert max(count_planned(tasks).values()) <= _SETTINGS.cap
    everything = sum(pool.pairs for pool in pools)
    assert len(count_planned(tasks)) < everything


call = partial(calling.answer, "prefer", "tasks")


def test_a_sequential_campaign_is_drawn_batch_by_batch_to_its_end(tmp_path: Path) -> None:
    folder = CampaignFolder(tmp_path)
    pools = make_pools(2, 3, 6, 1, 4)
    folder.create("sequential")
    toml = tmp_path / "campaign.toml"
    text = toml.read_text().replace('mode = "paper"', 'mode = "sequential"')
    text = text.replace("reward = 0 ", "reward = 200 ").replace("fee = 0 ", "fee = 40 ")
    toml.write_text(text.replace("tests = 3", "tests = 1"))
    folder.write_pools(pools)
    folder.write_tests(_TESTS)
    judge = make_judge(pools, seed=9)
    judged: list[Judgment] = []
    done: set[str] = set()
    prices = 0
    for _ in range(60):
        found = call(tmp_path, "--seed", 1)
        if not found["tasks"]:
            break
        assert call(tmp_path, "--seed", 1)["tasks"] == 0
        prices += found["price"]["total"]
        for task in folder.tasks():
            if task.task not in done:
                judged += do(task, judge)
                done.add(task.task)
        folder.write_judgments(judged)
    else:
        pytest.fail("the campaign never ends")
    assert prices == len(folder.tasks()) * 240
    pairs = count_planned(folder.tasks())
    assert Counter(query for query, _, _ in pairs) == {"q0": 1, "q1": 2, "q2": 5, "q4": 3}
    words = calling.call("prefer", "tasks", tmp_path).stdout
    assert "every query has its best passage" in words


@given(judges=st.lists(st.integers(1, 4), min_size=1, max_size=4), size=st.integers(2, 5))
@hypothesis.settings(max_examples=15)
def test_whoever_raises_the_judges_gets_the_missing_copies_and_no_more(
    judges: list[int], size: int
) -> None:
    pairs = list_pairs(make_pools(size, 2))
    tasks: list[Task] = []
    for batch, count in enumerate(judges, 1):
        wanted = missing_votes(pairs, count, planned=count_planned(tasks))
        tasks += draw_batch(wanted, _TESTS, _SETTINGS, seed=0, batch=batch)
        assert count_planned(tasks) == dict.fromkeys(pairs, max(judges[:batch]))
    assert len({task.task for task in tasks}) == len(tasks)
