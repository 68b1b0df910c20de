"""The worker of a server: what is due is done once, and nothing that it meets ends it."""

import threading
from datetime import timedelta
from pathlib import Path

import intake_stage
import pytest
from intake_stage import NOW, Stage, files_of
from sqlalchemy import func, select, update

from heldout.errors import InputError, StoreError
from heldout.files.durable import Folder
from heldout.intake import worker as handing
from heldout.intake.mail import Notice, add_notice, list_notices, send_notices
from heldout.intake.tables import INTAKE, teams
from heldout.intake.teams import Team, create_invitation, list_teams, open_session, replace_tokens
from heldout.intake.uploads import get_upload, list_uploads
from heldout.intake.worker import RETENTION, DueWorker

database = intake_stage.database
stage = intake_stage.stage
team = intake_stage.team
ROWS = ("notices", "invitations", "tokens")


def add_note(stage: Stage, team: int, key: str) -> None:
    about = {"kind": "decided", "key": key, "owner": key, "outcome": "é"}
    stage.database.write(lambda one: add_notice(one, team, **about, now=stage.clock()))


def test_notices_are_sent_once_and_fail_with_a_reason(stage: Stage) -> None:
    sent: list[Notice] = []

    def send(notice: Notice) -> None:
        sent.append(notice)
        if notice.recipient == "nobody@b.org":
            raise InputError.of("mail-refused", "mail", "550", "an address that exists")

    first, second = stage.team("Harbor", mail="a@b.org"), stage.team("Quay")
    for team in (first.id, first.id, second.id):  # one of each; none where there is no address
        add_note(stage, team, str(team))
    changed = update(teams).where(teams.c.id == second.id).values(mail="nobody@b.org")
    stage.database.write(lambda one: one.execute(changed))
    add_note(stage, second.id, "later")
    for _ in range(2):
        send_notices(stage.database, send, now=stage.clock())
    good, bad = list_notices(stage.database)
    assert (good.owner, good.state, good.recipient) == (str(first.id), "sent", "a@b.org")
    assert (bad.owner, bad.state, bad.outcome) == ("later", "failed", "é")
    assert "550" in bad.why
    assert len(sent) == 2


def test_a_mail_server_that_is_away_leaves_notices_waiting(stage: Stage) -> None:
    def send(_: Notice) -> None:
        raise StoreError("the mail server is away")

    stage.store.parts.mkdir()
    add_note(stage, stage.team("Harbor", mail="a@b.org").id, "x")
    worker = DueWorker(store=stage.store, clock=stage.clock, send=send)
    assert worker.work() == {"send"}
    assert [one.state for one in list_notices(stage.database)] == ["waiting"]
    worker.send = lambda _: None
    assert worker.work(waiting={"send"}) == set()
    assert [one.state for one in list_notices(stage.database)] == ["waiting"]
    assert worker.work() == set()
    assert [one.state for one in list_notices(stage.database)] == ["sent"]


def test_what_has_ended_goes_after_its_term_and_nothing_else(stage: Stage) -> None:
    """What a team is shown stays the same."""
    team = stage.team("Harbor", mail="a@b.org")
    stage.upload(team, files_of("one"))
    stage.work()
    create_invitation(stage.database, note="b@b.org", now=stage.clock())
    token = replace_tokens(stage.database, team.id, now=NOW)
    open_session(stage.database, token, now=NOW, valid=timedelta(minutes=1))
    add_note(stage, team.id, "sent")
    stage.clock.move(RETENTION)
    shown = list_uploads(stage.store, team.id)
    stage.work()
    assert rows(stage) == {"notices": 1, "invitations": 2, "tokens": 2}
    stage.clock.move(timedelta(days=15))
    add_note(stage, team.id, "fresh")
    stage.work()
    assert rows(stage) == {"notices": 1, "invitations": 0, "tokens": 1}
    assert [one.owner for one in list_notices(stage.database)] == ["fresh"]
    assert list_uploads(stage.store, team.id) == shown
    assert [one.name for one in list_teams(stage.database)] == ["Harbor"]


def rows(stage: Stage) -> dict[str, int]:
    tables = {name: INTAKE.metadata.tables[name] for name in ROWS}
    return stage.database.read(
        lambda one: {
            name: one.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in tables.items()
        }
    )


def test_of_several_processes_one_works_at_a_time(stage: Stage, team: Team) -> None:
    ready = stage.upload(team, files_of("one"))
    with Folder(stage.store.parts).lock("worker.lock"):
        stage.work()
        assert get_upload(stage.store, team.id, ready.id).state == "complete"
    stage.work()
    assert get_upload(stage.store, team.id, ready.id).state == "accepted"


def test_a_bug_that_one_upload_meets_ends_no_worker_and_stops_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = stage.team("Harbor")
    wrong, right = (stage.upload(team, files_of(name)) for name in ("one", "two"))
    whole = handing.hand_over

    def hand_over(store: object, name: str, **given: object) -> object:
        if name == wrong.id:
            raise RuntimeError(name)
        return whole(store, name, **given)  # type: ignore[arg-type]  # as given

    monkeypatch.setattr("heldout.intake.worker.hand_over", hand_over)
    assert stage.worker().work() == {wrong.id}
    states = [get_upload(stage.store, team.id, one.id).state for one in (wrong, right)]
    assert states == ["complete", "accepted"]


def test_a_worker_in_a_thread_ends_when_it_is_stopped(stage: Stage, tmp_path: Path) -> None:
    stop = threading.Event()
    stage.upload(stage.team("Harbor"), files_of("one"))
    thread = threading.Thread(target=stage.worker().run, args=(stop,), kwargs={"pause": 0.01})
    thread.start()
    while not list((tmp_path / "received").glob("delivery-*")):
        assert thread.is_alive()
        thread.join(0.01)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()


def test_mail_that_cannot_be_sent_holds_up_no_upload(stage: Stage) -> None:
    refused, stop = threading.Event(), threading.Event()

    def send(_: Notice) -> None:
        refused.set()
        raise StoreError("the mail server is away")

    team = stage.team("Harbor", mail="a@b.org")
    stage.store.parts.mkdir(exist_ok=True)
    add_note(stage, team.id, "x")
    worker = DueWorker(store=stage.store, clock=stage.clock, send=send)
    thread = threading.Thread(target=worker.run, args=(stop,), kwargs={"pause": 0.01})
    thread.start()
    try:
        assert refused.wait(30)
        sent = stage.upload(team, files_of("one"))
        for _ in range(3000):  # a minute would be too long
            if get_upload(stage.store, team.id, sent.id).state == "accepted":
                break
            stop.wait(0.01)
        else:
            pytest.fail("the upload waits for the mail server")
    finally:
        stop.set()
        thread.join()
