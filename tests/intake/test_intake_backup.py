"""A backup of a server that goes on meanwhile: what was acknowledged is in it."""

import shutil
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import intake_stage
import pytest
from intake_stage import NOW, Stage, files_of, make_stage

from heldout.backup.backing_up import Sources, _Collected, back_up
from heldout.backup.restoring import restore
from heldout.backup.sealed import FolderState, Writer
from heldout.database.database import Database, open_database, sqlite_url
from heldout.envelope.age import new_identity
from heldout.intake.tables import INTAKE
from heldout.intake.uploads import list_uploads

url = intake_stage.url


def stage_in(place: Path, database: Database) -> Stage:
    """An intake whose folder is as the server's: the parts lie in that of the deliveries."""
    stage = make_stage(database, place.parent)
    folder = replace(stage.store.folder, path=place)
    stage.store = replace(stage.store, folder=folder, parts=place / ".parts")
    return stage


@pytest.mark.parametrize("moment", ["the first file", "the last file"])
def test_an_upload_that_is_handed_over_during_a_backup_is_in_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Its parts were listed and are gone, or its delivery came after the folder was listed."""
    place, restored, keys = tmp_path / "uploads", tmp_path / "restored", new_identity()
    place.mkdir()
    (place / ".first").write_text("x")
    with ExitStack() as ends:
        stage = stage_in(place, open_database(url, INTAKE))
        ends.callback(stage.database.close)
        team = stage.team("Harbor")
        stage.upload(team, files_of("one"))
        add, add_folder = Writer.add, _Collected.add_folder

        def work_at_first(writer: Writer, *given: Any) -> None:
            if given[2] == ".first" and moment == "the first file":
                stage.work()
            add(writer, *given)

        def work_at_last(*given: Any) -> FolderState:
            read = add_folder(*given)
            stage.work()
            return read

        monkeypatch.setattr(Writer, "add", work_at_first)
        monkeypatch.setattr(_Collected, "add_folder", work_at_last)
        sources = Sources(database=url, folders=[place])
        back_up(tmp_path / "b", sources, recipients=[keys.recipient], now=NOW, program="1")
        assert stage.delivered() == ["20261123-one"]
        shutil.rmtree(place)
        restore(tmp_path / "b", restored, identities=[keys.private])
        address = sqlite_url(restored / "database.sqlite")
        again = stage_in(restored / "uploads", open_database(address, INTAKE))
        ends.callback(again.database.close)
        again.clock.move(timedelta(hours=1))
        again.work()
        assert [one.state for one in list_uploads(again.store, team.id)] == ["accepted"]
        assert again.delivered() == ["20261123-one"]
