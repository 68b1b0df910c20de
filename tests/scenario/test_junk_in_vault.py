"""What somebody with write access to the folder of a vault puts there in place of its files."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from town import OTHER_TEAM, Town, call, copy_town, found_town
from trusting import DAY, LAST, ONE

pytestmark = pytest.mark.slow
TWO = "20261102-two"
FILES = (
    "events.jsonl",
    "labels/eval.qrels",
    f"scores/{TWO}.json",
    f"signatures/{ONE}.npz",
    "sealed/",
    "identities/organiser.txt",
    "sketches/eval.npz",
)


def _fill(file: Path) -> None:
    os.truncate(file, 1 << 33)


def _swap(file: Path) -> None:
    other = next(one for one in sorted(file.parent.parent.rglob("*.json")) if one != file)
    shutil.copyfile(other, file)


def _make_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _make_folder(file: Path) -> None:
    file.unlink()
    (file / "x").mkdir(parents=True)


def _shorten(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


DAMAGES: Mapping[str, Callable[[Path], None]] = {
    "a huge file": _fill,
    "another file": _swap,
    "a named pipe": _make_pipe,
    "a folder": _make_folder,
    "half of it": _shorten,
}


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """One entry is published, another one reviewed."""
    town = found_town(tmp_path_factory.mktemp("junk"))
    town.send("one", now=DAY)
    town.send("two", now=DAY, seed=2, team=OTHER_TEAM)
    town.take_in(now=DAY)
    assert town.publish(ONE, now=DAY).code == 0
    assert town.organiser("review", TWO, now=DAY).code == 0
    return town


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_command_fails_on_it_or_publishes_another_score(
    waiting: Town, tmp_path: Path, damage: str
) -> None:
    """Each command ends with a message or does its work; `call` refuses a traceback."""
    true = json.loads((waiting.vault / f"scores/{TWO}.json").read_bytes())["views"]["eval"]
    for number, name in enumerate(FILES):
        town = copy_town(waiting, tmp_path / str(number))
        file = town.vault / name
        file = min(file.iterdir()) if file.is_dir() else file
        DAMAGES[damage](file)
        here = ("--board", town.board, "--vault", town.vault, "--now", LAST)
        audited = call(town.root, "audit", "--json", *here)
        if not name.startswith(("identities", "sketches")):  # nothing needs those
            assert audited.code != 0, (name, audited)
        told = call(town.root, "publish", TWO, "--yes", *here)
        if told.code == 0:
            (row,) = (one for one in town.rows() if one["id"] == TWO)
            assert float(row["scores"]["eval"]) == pytest.approx(true["mean"], abs=5e-4), name
        else:
            assert told.err, (name, told)
