"""A sequential campaign through the database: failed tests, early ends, to the best passages."""

from collections import Counter

import judging_databases
import msgspec
import numpy as np
from small_campaign import NOW, SETTINGS, after, make_pools

from heldout.database.database import Database
from heldout.judging.campaign.judgments import Choice, count_votes, counted
from heldout.judging.campaign.rows import Item, Task
from heldout.judging.database.assignments import (
    Assignment,
    Worker,
    answer,
    exit_assignment,
    item,
    submit,
)
from heldout.judging.database.campaigns import load_campaign
from heldout.judging.database.claims import NoTask, Offer, claim, offer
from heldout.judging.database.organiser import set_launch
from heldout.judging.database.overviews import judgments
from heldout.judging.labels.choosing import (
    count_answers,
    count_planned,
    draw_batch,
    meeting_order,
    plan_batch,
    search,
)
from heldout.judging.labels.labels import find_unbeaten
from heldout.judging.studies.simulation import SimulatedJudge

database = judging_databases.database
_STOPS = 0.1
_FAILS = 0.15
_CANNOT = 0.05


def judge_until_nothing_waits(
    database: Database, judge: SimulatedJudge, rng: np.random.Generator, seen: Counter[str]
) -> None:
    """People come one after another; some stop, some fail tests, some cannot judge a pair."""
    for _ in range(500):
        worker = f"worker {seen['workers']}"
        seen["workers"] += 1
        found = offer(database, Worker(platform_id=worker, signed=True), now=NOW)
        if isinstance(found, NoTask):
            assert found.why == "done"
            return
        assert isinstance(found, Offer)
        sitting = claim(
            database, Worker(platform_id=worker, signed=True), batch=found.batch, now=NOW
        )
        assert isinstance(sitting, Assignment)
        fails, stops = rng.random(2) < (_FAILS, _STOPS)
        seen["failed"] += bool(fails)
        seen["stopped"] += bool(stops)
        for position in range(1, sitting.items + 1 - bool(stops)):
            shown = item(database, sitting.id, position)
            assert shown is not None
            left, right = shown.passages[0].doc, shown.passages[1].doc
            choice: Choice
            if "x" in left + right:
                choice = Choice(side="left" if ("x" in left) == fails else "right")
            elif rng.random() < _CANNOT:
                choice = Choice(side=None, reason="same")
            else:
                best = judge.choose(f"q{left[1:-1]}", left, right)
                choice = Choice(side="left" if best == left else "right")
            answer(
                database,
                sitting.id,
                position,
                choice,
                replaces=0,
                shown_at=NOW,
                now=after(minutes=1),
            )
        end = exit_assignment if stops else submit
        end(database, sitting.id, now=after(minutes=2))
    raise AssertionError("people come for ever")


def test_batches_go_on_until_every_query_has_its_best(database: Database) -> None:
    rng = np.random.default_rng(12)
    settings = msgspec.structs.replace(SETTINGS, mode="sequential", lead=2, cap=5, pairs=3, tests=1)
    pools = [
        msgspec.structs.replace(pool, candidates=pool.candidates[:3]) for pool in make_pools(7)
    ]
    tests = tuple(
        Item(query=f"q{n}", left=f"d{n}a", right=f"d{n}x", answer=f"d{n}a") for n in range(7)
    )
    strengths = {
        (pool.query, one.doc): float(rng.normal()) for pool in pools for one in pool.candidates
    }
    judge = SimulatedJudge(strengths=strengths, rng=rng)
    tasks: list[Task] = []
    seen: Counter[str] = Counter()
    for _ in range(30):
        recorded = judgments(database)
        wanted = plan_batch(pools, recorded, settings, planned=count_planned(tasks), method="duels")
        if not wanted:
            break
        batch = max((task.batch for task in tasks), default=0) + 1
        drawn = draw_batch(wanted, tests, settings, seed=0, batch=batch)
        tasks += drawn
        load_campaign(database, settings, make_pools(7), drawn, now=NOW)
        set_launch(database, "launched", now=NOW)
        judge_until_nothing_waits(database, judge, rng, seen)
    else:
        raise AssertionError("the campaign never ends")
    assert min(seen["failed"], seen["stopped"]) > 0
    valid = counted(judgments(database))
    votes = count_votes(valid)
    # "The same" is an answer too: a duel may end by the cap with fewer votes.
    answers = count_answers(judgments(database), settings)
    for pool in pools:
        given = {(a, b): count for (query, a, b), count in answers.items() if query == pool.query}
        found = search(meeting_order(pool), votes[pool.query], lead=2, cap=5, answers=given)
        assert found.challenger is None
        best = find_unbeaten([one.doc for one in pool.candidates], votes[pool.query]).best
        assert found.best in best
        assert all(one.total <= 5 for one in votes[pool.query].values())
    pairs_of_workers = Counter((one.worker, one.pair) for one in valid)
    assert max(pairs_of_workers.values()) == 1
