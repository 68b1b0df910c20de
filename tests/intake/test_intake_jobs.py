"""Jobs with leases: whoever works, each is done once, and what fails says why."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial

import intake_stage
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from intake_stage import NOW, Clock, Stage, files_of
from sqlalchemy import Connection, func, select

from databases import wiped
from heldout.database.database import Database
from heldout.errors import InputError
from heldout.intake.hand_over import KEPT_FOR
from heldout.intake.jobs import (
    Done,
    Job,
    JobKind,
    JobLaterError,
    LeaseLostError,
    Worker,
    add_job,
    claim_job,
    count_jobs,
    fail_job,
    finish_job,
    list_jobs,
    renew_job,
)
from heldout.intake.notices import add_notice, list_notices, notice_kind
from heldout.intake.tables import INTAKE, teams
from heldout.intake.teams import create_invitation, create_token, list_teams, set_mail
from heldout.intake.uploads import list_uploads

database = intake_stage.database
stage = intake_stage.stage
MINUTE = timedelta(minutes=1)


def nothing(_job: Job, _keep: Callable[[], None]) -> Done:
    return Done()


def write_row(connection: Connection, name: str) -> str:
    """A row that can be written once: what a job does to the database."""
    row = {"name": name, "key": name, "mail": "", "created_at": NOW}
    connection.execute(teams.insert().values(row))
    return name


KIND = JobKind(name="kind", work=nothing)


def add(database: Database, *keys: str, most: int = 3) -> None:
    for key in keys:
        database.write(partial(add_job, kind="kind", key=key, now=NOW, most=most))


def test_of_many_workers_each_job_has_one(database: Database) -> None:
    add(database, *map(str, range(12)))
    gate = threading.Barrier(6)

    def work(_: int) -> list[str]:
        gate.wait()
        mine = []
        while (job := claim_job(database, [KIND], now=NOW)) is not None:
            finish_job(database, job, lambda _: None, now=NOW)
            mine.append(job.key)
        return mine

    with ThreadPoolExecutor(6) as pool:
        done = Counter(key for keys in pool.map(work, range(6)) for key in keys)
    assert done == Counter(map(str, range(12)))
    assert count_jobs(database) == {("kind", "done"): 12}


def test_who_comes_back_after_its_lease_changes_nothing(database: Database) -> None:
    add(database, "a")
    slow = claim_job(database, [KIND], now=NOW)
    assert slow is not None
    assert claim_job(database, [KIND], now=NOW + MINUTE - timedelta(seconds=1)) is None
    quick = claim_job(database, [KIND], now=NOW + MINUTE)
    assert quick is not None
    late = NOW + MINUTE
    with pytest.raises(LeaseLostError):
        finish_job(database, slow, lambda one: write_row(one, "slow"), now=late)
    with pytest.raises(LeaseLostError):
        fail_job(database, KIND, slow, InputError.of("x", "", "", ""), now=late)
    with pytest.raises(LeaseLostError):
        renew_job(database, slow, until=late + MINUTE)
    finish_job(database, quick, lambda one: write_row(one, "quick"), now=late)
    (record,) = list_jobs(database)
    assert (record.state, record.result, record.attempts) == ("done", "quick", 2)
    names = database.read(lambda one: one.execute(select(teams.c.name)).scalars().all())
    assert names == ["quick"]


def test_a_lease_that_is_renewed_holds(database: Database) -> None:
    add(database, "a")
    job = claim_job(database, [KIND], now=NOW)
    assert job is not None
    renew_job(database, job, until=NOW + 3 * MINUTE)
    assert claim_job(database, [KIND], now=NOW + 2 * MINUTE) is None


def test_a_job_is_there_once_and_waits_for_who_can_do_it(database: Database) -> None:
    add(database, "a", "a")
    assert len(list_jobs(database)) == 1
    assert claim_job(database, [JobKind(name="other", work=nothing)], now=NOW) is None


def test_a_job_fails_after_so_many_attempts_and_says_why(database: Database) -> None:
    gave_up: list[tuple[str, str, str]] = []
    tries: list[int] = []

    def work(job: Job, _keep: Callable[[], None]) -> Done:
        tries.append(job.attempt)
        raise OSError("the disk is gone")

    def give_up(_: Connection, job: Job, code: str, why: str) -> None:
        gave_up.append((job.key, code, why))

    clock = Clock()
    kind = JobKind(name="kind", work=work, give_up=give_up)
    worker = Worker(database=database, kinds=[kind], clock=clock)
    add(database, "a")
    for _ in range(10):
        while worker.run_one():
            pass
        clock.move(MINUTE)
    assert tries == [1, 2, 3]
    assert set(gave_up) == {("a", "job-failed", "OSError: the disk is gone")}
    (record,) = list_jobs(database, kind="kind")
    assert (record.state, record.why) == ("failed", "OSError: the disk is gone")


def test_a_job_that_ends_its_worker_each_time_fails_in_the_end(database: Database) -> None:
    add(database, "a", "b")
    for attempt in range(3):
        for key in "ab":
            job = claim_job(database, [KIND], now=NOW + attempt * MINUTE)
            assert job is not None
            assert (job.key, job.attempt) == (key, attempt + 1)
    assert claim_job(database, [KIND], now=NOW + 3 * MINUTE) is None
    assert {one.state for one in list_jobs(database)} == {"failed"}
    assert "3 times" in list_jobs(database)[0].why


def test_a_job_that_has_to_wait_never_fails_for_it(database: Database) -> None:
    def work(_job: Job, _keep: Callable[[], None]) -> Done:
        if clock() < NOW + 20 * MINUTE:
            raise JobLaterError("no room", after=MINUTE)
        return Done(write=lambda _: {"tried": 1})

    clock = Clock()
    worker = Worker(database=database, kinds=[JobKind(name="kind", work=work)], clock=clock)
    add(database, "a")
    for _ in range(22):
        while worker.run_one():
            pass
        clock.move(MINUTE)
    (record,) = list_jobs(database)
    assert (record.state, record.result, record.why) == ("done", {"tried": 1}, "")


def test_what_a_job_writes_and_its_end_are_one(database: Database) -> None:
    """Where writing fails, the job is not done; where the lease is lost, nothing is written."""

    def work(_job: Job, _keep: Callable[[], None]) -> Done:
        def write(connection: Connection) -> str:
            write_row(connection, "half")
            if len(written) < 1:
                written.append(1)
                raise OSError("no")
            return "whole"

        return Done(write=write)

    written: list[int] = []
    clock = Clock()
    worker = Worker(database=database, kinds=[JobKind(name="kind", work=work)], clock=clock)
    add(database, "a")
    assert worker.run_one()
    assert database.read(lambda one: one.execute(select(func.count(teams.c.id))).scalar()) == 0
    clock.move(MINUTE)
    assert worker.run_one()
    assert [one.result for one in list_jobs(database)] == ["whole"]


def test_a_worker_in_a_thread_ends_when_it_is_stopped(database: Database) -> None:
    done = threading.Event()
    stop = threading.Event()
    kind = JobKind(name="kind", work=lambda _job, _keep: Done(after=done.set))
    worker = Worker(database=database, kinds=[kind], clock=lambda: NOW)
    thread = threading.Thread(target=worker.run, args=(stop,), kwargs={"pause": 0.01})
    thread.start()
    add(database, "a")
    assert done.wait(20)
    stop.set()
    thread.join(20)
    assert not thread.is_alive()


def test_a_job_that_meets_a_bug_ends_no_worker(database: Database) -> None:
    def give_up(*_: object) -> None:
        raise ValueError("a bug")

    seen = threading.Event()
    hostile = JobKind(name="kind", work=nothing, give_up=give_up)
    kinds = [hostile, JobKind(name="other", work=lambda _job, _keep: Done(after=seen.set))]
    add(database, "a", most=0)
    worker = Worker(database=database, kinds=kinds, clock=lambda: NOW)
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=(stop,), kwargs={"pause": 0.01})
    thread.start()
    database.write(lambda one: add_job(one, "other", "b", now=NOW - MINUTE))
    assert seen.wait(20)
    stop.set()
    thread.join(20)


def test_who_answers_a_request_does_jobs_of_one_kind(database: Database) -> None:
    done: list[str] = []
    kinds = [
        JobKind(name=name, work=lambda job, _keep: Done(after=lambda: done.append(job.kind)))
        for name in ("notice", "hand-over")
    ]
    worker = Worker(database=database, kinds=kinds, clock=lambda: NOW)
    for kind in ("notice", "hand-over"):
        database.write(partial(add_job, kind=kind, key="a", now=NOW))
    while worker.run_one("hand-over"):
        pass
    assert done == ["hand-over"]


def test_notices_are_sent_once_and_fail_with_a_reason(stage: Stage) -> None:
    sent: list[str] = []

    def send(notice: object) -> None:
        sent.append(repr(notice))
        if "nobody@" in repr(notice):
            raise InputError.of("mail-refused", "mail", "550", "an address that exists")

    first, second = stage.team("Harbor", mail="a@b.org"), stage.team("Quay")
    for team in (first.id, first.id, second.id):
        stage.database.write(
            partial(add_notice, team=team, kind="decided", key=str(team), details={}, now=NOW)
        )
    set_mail(stage.database, second.id, "nobody@b.org")
    stage.database.write(
        lambda one: add_notice(one, second.id, "decided", "later", {"x": "é"}, now=NOW)
    )
    kind = notice_kind(stage.database, send, clock=stage.clock)
    worker = Worker(database=stage.database, kinds=[kind], clock=stage.clock)
    while worker.run_one():
        pass
    good, bad = list_notices(stage.database)
    assert (good.team, good.state, good.recipient) == ("Harbor", "sent", "a@b.org")
    assert (bad.team, bad.state, bad.details) == ("Quay", "failed", {"x": "é"})
    assert "550" in bad.why
    assert len(sent) == 2
    assert list_notices(stage.database, team=second.id) == (bad,)


def test_what_has_ended_goes_after_its_term_and_nothing_else(stage: Stage) -> None:
    """By the worker, where it has nothing else to do; what a team is shown stays the same."""
    team = stage.team("Harbor", mail="a@b.org")
    stage.upload(team, files_of("one"))
    stage.work()
    create_invitation(stage.database, note="b@b.org", now=stage.clock())
    create_token(stage.database, team.id, kind="session", name="", now=NOW, valid=MINUTE)
    create_token(stage.database, team.id, kind="api", name="", now=NOW)
    add_note(stage, team.id, "sent")
    stage.clock.move(KEPT_FOR)
    add(stage.database, "waits")
    shown = list_uploads(stage.store, team.id)
    stage.worker().idle()
    assert rows(stage) == {"jobs": 3, "notices": 1, "invitations": 2, "tokens": 2}
    stage.clock.move(timedelta(days=15))
    add_note(stage, team.id, "fresh")
    stage.worker().idle()
    assert rows(stage) == {"jobs": 2, "notices": 1, "invitations": 0, "tokens": 1}
    assert [one.key for one in list_notices(stage.database)] == ["fresh"]
    assert sorted(one.kind for one in list_jobs(stage.database)) == ["kind", "notice"]
    assert list_uploads(stage.store, team.id) == shown
    assert [one.name for one in list_teams(stage.database)] == ["Harbor"]
    stage.clock.move(2 * KEPT_FOR)
    stage.worker().idle()
    add_note(stage, team.id, "later")  # SQLite numbers it as the one that is gone
    (later,) = list_notices(stage.database)
    (job,) = list_jobs(stage.database, kind="notice")
    assert (job.key, job.state) == (str(later.id), "waiting")


def add_note(stage: Stage, team: int, key: str) -> None:
    """A notice whose number is given again once it is removed."""
    stage.database.write(lambda one: add_notice(one, team, "decided", key, {}, now=stage.clock()))


def rows(stage: Stage) -> dict[str, int]:
    tables = {name: INTAKE.metadata.tables[name] for name in ROWS}
    return stage.database.read(
        lambda one: {
            name: one.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in tables.items()
        }
    )


ROWS = ("jobs", "notices", "invitations", "tokens")


ENDS: dict[str, Exception] = {
    "finish": ValueError(),
    "renew": ValueError(),
    "killed": ValueError(),
    "bad": InputError.of("upload-digest", "x", "y", "z"),
    "later": JobLaterError("full", after=MINUTE),
    "crash": OSError("crash"),
}


class RandomJobs(RuleBasedStateMachine):
    """Workers claim, renew, finish, fail, come back late or never; time goes on."""

    engine = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.database = wiped(self.engine, INTAKE)
        self.clock = Clock()
        self.held: list[Job] = []
        self.newest: dict[str, int] = {}
        self.added = 0
        self.add()
        self.add()
        self.written: Counter[str] = Counter()
        self.gave_up: Counter[str] = Counter()
        self.kind = JobKind(name="kind", work=nothing, give_up=self.note_end)

    def note_end(self, connection: Connection, job: Job, _code: str, why: str) -> None:
        assert why
        write_row(connection, job.key)
        self.gave_up[job.key] += 1

    @rule()
    def add(self) -> None:
        add(self.database, str(self.added))
        self.added += 1

    @rule(seconds=st.sampled_from([61, 0, 700]))
    def claim(self, seconds: int) -> None:
        """At once, or after leases have ended."""
        self.clock.move(timedelta(seconds=seconds))
        job = claim_job(self.database, [self.kind], now=self.clock())
        if job is not None:
            self.held.append(job)
            self.newest[job.key] = job.attempt

    @precondition(lambda self: self.held)
    @rule(oldest=st.booleans(), how=st.sampled_from(sorted(ENDS, reverse=True)))
    def go_on(self, oldest: bool, how: str) -> None:  # noqa: FBT001 - hypothesis names it
        """A worker ends its job or is killed; who was away may not know that others have it."""
        job = self.held.pop(0 if oldest else -1)
        if how == "killed":
            return
        with suppress(LeaseLostError):
            if how == "finish":
                self.end(job)
            elif how == "renew":
                renew_job(self.database, job, until=self.clock() + self.kind.lease)
                self.held.append(job)
            else:
                fail_job(self.database, self.kind, job, ENDS[how], now=self.clock())
            self.check_newest(job)

    def end(self, job: Job) -> None:
        finish_job(self.database, job, lambda one: write_row(one, job.key), now=self.clock())
        self.written[job.key] += 1

    def check_newest(self, job: Job) -> None:
        """What another worker has claimed since, nobody else changes."""
        assert job.attempt == self.newest.get(job.key, job.attempt)

    @invariant()
    def each_ends_once(self) -> None:
        assert max([0, *self.written.values()]) <= 1
        assert not set(self.written) & set(self.gave_up)
        live = [job for job in list_jobs(self.database) if job.state == "leased"]
        assert all(job.attempts >= 1 for job in live)

    def teardown(self) -> None:
        """Nothing is lost: with one worker that works, every job comes to its end."""
        for _ in range(60):
            job = claim_job(self.database, [self.kind], now=self.clock())
            if job is None:
                self.clock.move(timedelta(minutes=2))
                continue
            self.newest[job.key] = job.attempt
            self.end(job)
        ended = {job.key: job.state for job in list_jobs(self.database)}
        done = {key for key, state in ended.items() if state == "done"}
        assert set(ended) == set(map(str, range(self.added)))
        assert set(ended.values()) <= {"done", "failed"}
        assert done == set(self.written)
        rows = self.database.read(lambda one: one.execute(select(teams.c.name)).scalars().all())
        assert Counter(rows) == Counter(list(ended))


class RandomJobsPostgres(RandomJobs):
    """The same on the other engine."""

    engine = "postgresql"


TestRandomJobs = RandomJobs.TestCase
TestRandomJobsPostgres = RandomJobsPostgres.TestCase
TestRandomJobs.settings = settings(max_examples=25, stateful_step_count=25)
TestRandomJobsPostgres.settings = settings(max_examples=8, stateful_step_count=25)
