"""A database in a backup: from either engine into either, as of one moment, whole or not at all."""

import itertools
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
import pytest
from small_campaign import NOW, finish, load, take
from sqlalchemy import Connection, update

from databases import ENGINES, new_url
from heldout.backup.backing_up import Sources, back_up, list_schemas
from heldout.backup.restoring import check_backup, restore
from heldout.backup.sealed import new_backup, unpack
from heldout.database.copying import dump_database
from heldout.database.database import Database, open_database
from heldout.database.errors import DatabaseError
from heldout.envelope.age import new_identity
from heldout.errors import InputError
from heldout.intake.teams import accept_invitation, create_invitation, list_teams
from heldout.judging.database.tables import campaign, tasks

KEYS = new_identity()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a SQLite database with a campaign under way and some teams."""
    return fill(new_url("sqlite", tmp_path_factory.mktemp("filled")))


def fill(url: str) -> str:
    database = open_database(url, *list_schemas())
    load(database, queries=3)
    finish(database, "ada")
    take(database, "ben")
    for number in range(3):
        add_team(database, f"Team {number} ünïcode")
    database.close()
    return url


def add_team(database: Database, name: str) -> None:
    _, secret = create_invitation(database, note="", now=NOW)
    accept_invitation(database, secret, name=name, mail="a@example.org", now=NOW)


def backed_up(url: str, path: Path) -> Path:
    sources = Sources(database=url)
    back_up(path, sources, recipients=[KEYS.recipient], now=NOW, program="1")
    return path


def contents(url: str) -> dict[str, bytes]:
    """Every table, as lines."""
    found: dict[str, bytes] = {}
    dump_database(url, list_schemas(), lambda name, lines: found.update({name: b"".join(lines)}))
    return found


@pytest.mark.parametrize(("source", "target"), [ENGINES, ENGINES[::-1]])
def test_every_row_comes_back_and_the_next_one_can_be_added(
    filled: str, source: str, target: str, tmp_path: Path
) -> None:
    filled = filled if source == "sqlite" else fill(new_url(source))
    made = backed_up(filled, tmp_path / "b")
    url = new_url(target, tmp_path)
    restore(made, tmp_path / "new", identities=[KEYS.private], database=url)
    before = contents(filled)
    assert contents(url) == before
    assert before["judgments"].count(b"\n") > 3
    database = open_database(url, *list_schemas())
    add_team(database, "One more")
    assert len(list_teams(database)) == 4
    database.close()


def test_without_an_address_a_private_file_is_made(filled: str, tmp_path: Path) -> None:
    made = backed_up(filled, tmp_path / "b")
    done: Any = restore(made, tmp_path / "new", identities=[KEYS.private])
    (file,) = (tmp_path / "new").iterdir()
    assert (file.name, file.stat().st_mode & 0o777) == ("database.sqlite", 0o600)
    assert contents(f"sqlite:///{file}") == contents(filled)
    drill: Any = check_backup(made, identities=[KEYS.private], newer=None)
    assert drill.rows == sum(done.manifest.database.rows.values()) > 20


def test_a_database_that_holds_rows_is_never_written_over(filled: str, tmp_path: Path) -> None:
    made = backed_up(filled, tmp_path / "b")
    before = contents(filled)
    with pytest.raises(InputError, match="restore-place"):
        restore(made, tmp_path / "new", identities=[KEYS.private], database=filled)
    assert contents(filled) == before
    assert not (tmp_path / "new").exists()


def test_what_is_no_database_of_ours_is_refused_and_none_is_made(tmp_path: Path) -> None:
    for url, code in (
        (f"sqlite:///{tmp_path}/gone.sqlite", "database-address"),
        (new_url("sqlite", tmp_path), "database-address"),
    ):
        with pytest.raises(DatabaseError) as caught:
            backed_up(url, tmp_path / "b")
        assert caught.value.code == code
    assert not list(tmp_path.iterdir())
    empty = open_database(new_url("sqlite", tmp_path))
    empty.read(lambda connection: connection.exec_driver_sql("SELECT 1"))
    empty.close()
    with pytest.raises(DatabaseError, match="database-other"):
        backed_up(str(empty.engine.url), tmp_path / "b")


def test_a_backup_of_another_version_is_refused(filled: str, tmp_path: Path) -> None:
    made = backed_up(filled, tmp_path / "b")
    (tmp_path / "contents").mkdir()
    manifest: Any = unpack(made, [KEYS.private], tmp_path / "contents")
    assert manifest.database.versions.keys() == {"campaign", "intake"}
    manifest.database.versions["campaign"] = 9
    with new_backup(tmp_path / "later", [KEYS.recipient]) as writer:
        for content in (tmp_path / "contents" / "rows" / "database").iterdir():
            with content.open("rb") as rows:
                writer.add("rows", "database", content.name, rows)
        writer.finish(manifest)
    with pytest.raises(DatabaseError, match="database-other"):
        restore(tmp_path / "later", tmp_path / "new", identities=[KEYS.private])
    assert not (tmp_path / "new").exists()


PAIRED = (("campaign", "code"), ("tasks", "why"))


def column(lines: bytes, name: str) -> set[str]:
    """The different values of a column of a table."""
    names, *rows = map(msgspec.json.decode, lines.splitlines())
    return {row[names.index(name)] for row in rows}


def rename_all(word: str, connection: Connection) -> None:
    connection.execute(update(campaign).values(code=word))
    connection.execute(update(tasks).values(why=word))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_backup_is_of_one_moment_while_others_write(engine: str, tmp_path: Path) -> None:
    """Every transaction changes two tables alike: a backup that sees half of one shows it."""
    url = new_url(engine, tmp_path)
    database = open_database(url, *list_schemas())
    load(database, queries=3)
    database.write(partial(rename_all, "first"))
    stop, written = Event(), list[int]()

    def write() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            database.write(partial(rename_all, f"w{number}"))
            written.append(number)

    thread = Thread(target=write)
    thread.start()
    try:
        for _ in range(5):
            found = contents(url)
            codes, whys = (column(found[table], name) for table, name in PAIRED)
            assert codes == whys
    finally:
        stop.set()
        thread.join()
        database.close()
    assert len(written) > 2
