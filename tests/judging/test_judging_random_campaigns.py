"""Random judges come, answer, change, exit, are late and fail; the laws hold after every step."""

from datetime import timedelta
from typing import Any

import msgspec
from campaign_laws import check_laws
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from small_campaign import NOW, SETTINGS, answer_all, expire_leases, finish, load

import databases
from heldout.judging.campaign.judgments import Choice, Judgment
from heldout.judging.database.assignments import (
    Assignment,
    Worker,
    answer,
    exit_assignment,
    get_assignment,
    item,
    resume,
    submit,
)
from heldout.judging.database.claims import NoTask, Offer, claim, offer
from heldout.judging.database.organiser import assignments, progress
from heldout.judging.database.tables import CAMPAIGN

WORKERS = st.sampled_from(["ann", "bob", "cid"])
CHOICES = st.one_of(
    st.builds(Choice, side=st.sampled_from(["left", "right"])),
    st.builds(Choice, side=st.none(), reason=st.sampled_from(["same", "other"])),
)


class RandomCampaign(RuleBasedStateMachine):
    """A campaign of two queries and up to three judges each."""

    engine = "sqlite"

    @initialize(
        judges=st.integers(1, 3),
        tests=st.integers(0, 2),
        exclusion=st.sampled_from(["task", "worker"]),
        failures=st.integers(1, 2),
    )
    def begin(self, judges: int, tests: int, exclusion: str, failures: int) -> None:
        self.database = databases.wiped(self.engine, CAMPAIGN)
        terms = msgspec.structs.replace(
            SETTINGS, judges=judges, exclusion=exclusion, failures=failures
        )
        load(self.database, judges=judges, tests=tests, settings=terms)
        self.now = NOW
        self.found: tuple[Judgment, ...] = ()

    def under_way(self, worker: str) -> int | None:
        """The worker's newest assignment, whatever became of it."""
        own = [row for row in assignments(self.database) if row.platform_id == worker]
        return own[-1].assignment if own else None

    @rule(worker=WORKERS)
    def comes(self, worker: str) -> None:
        offered = offer(self.database, Worker(platform_id=worker, signed=True), now=self.now)
        found = claim(self.database, Worker(platform_id=worker, signed=True), batch=1, now=self.now)
        assert isinstance(offered, Offer) == isinstance(found, Assignment)
        if isinstance(found, NoTask):
            assert isinstance(offered, NoTask)
            assert found.why == offered.why
        else:
            assert (found.state, found.open, found.barred) == ("consented", True, False)

    @rule(worker=WORKERS, position=st.integers(1, 5), choice=CHOICES, stale=st.booleans())
    def answers(self, worker: str, position: int, choice: Choice, *, stale: bool) -> None:
        assignment = self.under_way(worker)
        shown: Any = item(self.database, assignment, position) if assignment else None
        if shown is None:
            return
        done: Any = answer(
            self.database,
            shown.assignment.id,
            position,
            choice,
            replaces=shown.revision + stale,
            shown_at=self.now,
            now=self.now,
        )
        given: Any = done.shown.given
        if done.outcome == "recorded":
            assert not stale
            assert (done.shown.revision, given.side) == (shown.revision + 1, choice.side)
        else:
            assert given == shown.given

    @rule(worker=WORKERS, fail=st.booleans())
    def judges_a_task(self, worker: str, *, fail: bool) -> None:
        if isinstance(
            offer(self.database, Worker(platform_id=worker, signed=True), now=self.now), Offer
        ):
            finish(self.database, worker, fail=fail, now=self.now)

    @rule(worker=WORKERS, fail=st.booleans())
    def answers_all(self, worker: str, *, fail: bool) -> None:
        found = claim(self.database, Worker(platform_id=worker, signed=True), batch=1, now=self.now)
        if isinstance(found, Assignment):
            answer_all(self.database, found, fail=fail, now=self.now)

    @rule(worker=WORKERS)
    def submits(self, worker: str) -> None:
        if assignment := self.under_way(worker):
            before = get_assignment(self.database, assignment)
            done = submit(self.database, assignment, now=self.now)
            finished = before.open and before.first_open is None
            assert done.state == ("submitted" if finished else before.state)

    @rule(worker=WORKERS)
    def exits(self, worker: str) -> None:
        if assignment := self.under_way(worker):
            before = get_assignment(self.database, assignment)
            done = exit_assignment(self.database, assignment, now=self.now)
            assert done.state == ("exited" if before.open else before.state)
            assert done.owed == before.owed

    @rule(worker=WORKERS)
    def asks_for_time(self, worker: str) -> None:
        if assignment := self.under_way(worker):
            resume(self.database, assignment, now=self.now)

    @rule(minutes=st.sampled_from([1, 30, 61]), told=st.booleans())
    def time_passes(self, minutes: int, *, told: bool) -> None:
        self.now += timedelta(minutes=minutes)
        if told:
            expire_leases(self.database, now=self.now)

    @invariant()
    def laws_hold(self) -> None:
        self.found = check_laws(self.database, self.found)

    def teardown(self) -> None:
        """Honest judges finish it: every task that was planned is done, none is lost."""
        if not hasattr(self, "found"):
            return
        self.now += timedelta(minutes=61)
        for number in range(20):
            name = f"honest {number}"
            if isinstance(
                offer(self.database, Worker(platform_id=name, signed=True), now=self.now), NoTask
            ):
                break
            finish(self.database, name, now=self.now)
        check_laws(self.database, self.found)
        (batch,) = progress(self.database)
        assert (batch.done, batch.held, batch.waiting) == (batch.tasks, 0, 0)


class RandomCampaignOnPostgres(RandomCampaign):
    """The same on the other engine."""

    engine = "postgresql"


TestOnSqlite = RandomCampaign.TestCase
TestOnSqlite.settings = settings(max_examples=8, stateful_step_count=20)
TestOnPostgres = RandomCampaignOnPostgres.TestCase
TestOnPostgres.settings = settings(max_examples=2, stateful_step_count=20)
