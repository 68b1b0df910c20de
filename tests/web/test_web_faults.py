"""What goes wrong below the pages: a database that refuses or is gone, and a bug."""

import logging
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import judging_stage
import pytest
from judging_stage import Make, Stage, fields_of, words_of
from sqlalchemy import event

from heldout.database.errors import DatabaseError
from heldout.judging.database import assignments
from postgres import start_postgres

stage = judging_stage.stage
one = judging_stage.one
root = judging_stage.root


@pytest.fixture
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of its own."""
    with TemporaryDirectory(prefix="heldout-pg-") as folder:
        server = start_postgres(Path(folder))
        yield server
        server.cleanup()


def stop(server: Any) -> None:
    """Without a word to whoever is connected."""
    process = server.get_postmaster_info().process
    process.send_signal(signal.SIGQUIT)
    process.wait(10)


@contextmanager
def full_disk(stage: Stage) -> Iterator[None]:
    """The database may not grow by a page more."""

    def limit(pages: int) -> Callable[..., None]:
        return lambda connection, *_: connection.execute(f"PRAGMA max_page_count={pages}")

    narrow, wide = limit(1), limit(1_000_000)  # never below the pages that are there
    event.listen(stage.database.engine, "checkout", narrow)
    yield
    event.remove(stage.database.engine, "checkout", narrow)
    event.listen(stage.database.engine, "checkout", wide)


@contextmanager
def read_only(stage: Stage) -> Iterator[None]:
    def refuse(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute("PRAGMA query_only=1")

    def allow(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute("PRAGMA query_only=0")

    event.listen(stage.database.engine, "checkout", refuse)
    yield
    event.remove(stage.database.engine, "checkout", refuse)
    event.listen(stage.database.engine, "checkout", allow)


def test_a_disk_that_runs_full_loses_no_answer_that_was_taken(one: Stage, root: str) -> None:
    taken = 0
    with full_disk(one):
        answer = one.answer(root, 1, "a")
        while answer.status_code == 303:
            taken += 1
            assert taken < 1_000
            answer = one.answer(root, 1, "ab"[taken % 2])
    assert answer.status_code == 503
    assert "Not saved yet" in words_of(answer)
    assert len(one.judgments()) == taken > 0
    assert one.post(f"{root}/item/1", fields_of(answer)).status_code == 303
    assert len(one.judgments()) == taken + 1


def test_an_answer_that_cannot_be_saved_stays_on_the_page(one: Stage, root: str) -> None:
    one.answer(root, 1)
    page = one.client.get(f"{root}/item/2")
    fields = {**fields_of(page), "choice": "b", "active_ms": "0", "by": "key"}
    with read_only(one):
        answer = one.post(f"{root}/item/2", fields)
    assert answer.status_code == 503
    assert "Not saved yet" in words_of(answer)
    assert "Your choice is still on this page: Passage B. Press Next again" in words_of(answer)
    assert answer.headers["retry-after"]
    assert fields_of(answer) == fields
    assert len(one.judgments()) == 1
    again = one.post(f"{root}/item/2", fields_of(answer))
    assert again.headers["location"] == f"{root}/item/3"
    assert [row.by for row in one.judgments()] == ["form", "key"]


def test_the_last_answer_is_sent_again_where_only_its_end_was_lost(
    one: Stage, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    for position in (1, 2, 3):
        one.answer(root, position)

    def lost(*_: object, **__: object) -> None:
        raise DatabaseError("database-lost", "gone")

    with monkeypatch.context() as patched:
        patched.setattr(assignments, "submit", lost)
        answer = one.answer(root, 4)
    assert answer.status_code == 503
    assert len(one.judgments()) == 4
    assert one.post(f"{root}/item/4", fields_of(answer)).headers["location"] == f"{root}/done"
    assert [row.submitted for row in one.judgments()] == [True] * 4


def test_a_lost_server_keeps_the_choice_and_takes_it_when_it_is_back(
    stage: Make, postgres: Any
) -> None:
    one = stage(url=postgres.get_uri())
    root = one.begin()
    one.answer(root, 1, "b")
    fields = fields_of(one.client.get(f"{root}/item/2")) | {"choice": "b"}
    stop(postgres)
    answer = one.post(f"{root}/item/2", fields)
    assert answer.status_code == 503
    assert fields_of(answer) == fields
    for page in ("item/1", "exit", "done"):
        assert one.client.get(f"{root}/{page}").status_code == 503
    postgres.ensure_postgres_running()
    assert one.post(f"{root}/item/2", fields_of(answer)).status_code == 303
    assert "Done" in words_of(one.finish(root, 4))
    assert [row.preferred == row.right for row in one.judgments()][:2] == [True, True]


def test_nobody_begins_where_nothing_can_be_saved(one: Stage) -> None:
    fields = fields_of(one.client.get(one.link, params={"worker": "ada"}))
    with read_only(one):
        answer = one.client.post(f"{one.link}/consent", data=fields)
        assert answer.status_code == 503
        assert "load this page again" in words_of(answer)
        assert answer.headers["retry-after"]
    assert one.client.post(f"{one.link}/consent", data=fields).status_code == 303


def test_a_lost_database_is_told_on_every_page_and_logged_without_tokens(
    one: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, root: str
) -> None:

    def lost(*_: object, **__: object) -> None:
        raise DatabaseError("database-lost", "the server does not answer")

    for name in ("item", "get_assignment", "resume", "exit_assignment"):
        monkeypatch.setattr(assignments, name, lost)
    token = {"token": root.removeprefix("/a/")}
    answers = [one.client.get(f"{root}/{page}") for page in ("item/1", "exit", "done")]
    answers += [one.post(f"{root}/{page}", token) for page in ("exit", "item/1/keep")]
    for answer in answers:
        assert answer.status_code == 503
        assert "What you saved is safe" in words_of(answer)
        assert "does not answer" not in answer.text
    assert "database-lost" in caplog.text
    assert token["token"] not in caplog.text


def test_an_assignment_that_the_database_does_not_know_is_told(
    one: Stage, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    """The database was put back to an earlier day."""
    fields = fields_of(one.client.get(f"{root}/item/1")) | {"choice": "a"}

    def unknown(*_: object, **__: object) -> None:
        raise DatabaseError("unknown-assignment", "7")

    monkeypatch.setattr(assignments, "item", unknown)
    monkeypatch.setattr(assignments, "answer", unknown)
    assert one.client.get(f"{root}/item/1").status_code == 404
    assert one.post(f"{root}/item/1", fields).status_code == 404


def test_a_bug_shows_a_page_and_nothing_of_its_inside(
    one: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, root: str
) -> None:

    def bug(*_: object) -> None:
        raise RuntimeError("key 0123456789")

    monkeypatch.setattr(assignments, "item", bug)
    with caplog.at_level(logging.ERROR):
        page = one.client.get(f"{root}/item/1")
    assert page.status_code == 500
    assert "The server made a mistake" in words_of(page)
    assert "0123456789" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "key 0123456789" in caplog.text
