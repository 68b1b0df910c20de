"""A PostgreSQL server that answers as with a full disk (SQLSTATE 53100): the choice stays."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from judging_stage import Stage, Stages, fields_of, words_of

from postgres import start_postgres

pytestmark = pytest.mark.night

_REFUSE = """
CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON judgments EXECUTE FUNCTION no_room();
"""


def _run(address: str, command: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(command.encode())


@pytest.fixture
def server() -> Iterator[Any]:
    with TemporaryDirectory(prefix="heldout-pg-") as folder:
        started = start_postgres(Path(folder))
        yield started
        started.cleanup()


@pytest.fixture
def stage(server: Any, tmp_path: Path) -> Iterator[Stage]:
    with Stages(tmp_path) as stages:
        yield stages.make(url=server.get_uri())


def test_a_full_disk_keeps_the_choice(server: Any, stage: Stage) -> None:
    """What was acknowledged is there, and the rest is taken when there is room again."""
    root = stage.begin()
    assert stage.answer(root, 1).status_code == 303
    _run(server.get_uri(), _REFUSE)
    answer = stage.answer(root, 2, "b")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "Not saved yet" in words_of(answer)
    given = fields_of(answer)
    assert given["choice"] == "b"
    assert len(stage.judgments()) == 1
    assert stage.post(f"{root}/item/2", given).status_code == 503
    _run(server.get_uri(), "DROP TRIGGER full_disk ON judgments")
    assert stage.post(f"{root}/item/2", given).headers["location"] == f"{root}/item/3"
    assert len(stage.judgments()) == 2
    assert "Done" in words_of(stage.finish(root, 4))
