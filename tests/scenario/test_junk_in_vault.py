"""What somebody with write access to the folder of a vault puts there in place of its files."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from lab import LAST, OTHER_TEAM, Lab, prepared
from trusting import ONE

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


@prepared
def waiting(lab: Lab) -> None:
    """One entry is published, another one reviewed."""
    lab.send("one")
    lab.receive("two", seed=2, team=OTHER_TEAM)
    assert lab.publish(ONE).code == 0
    assert lab.organiser("review", TWO).code == 0


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.night) for n in range(1, len(DAMAGES)))]
)
def test_no_command_fails_on_it_or_publishes_another_score(
    waiting: Lab, tmp_path: Path, first: int
) -> None:
    """Each command ends with a message or does its work; `call` refuses a traceback."""
    damages = [*DAMAGES.values()]
    true = json.loads((waiting.vault / f"scores/{TWO}.json").read_bytes())["views"]["eval"]
    for number, name in enumerate(FILES):
        lab = waiting.copy(tmp_path / str(number))
        file = lab.vault / name
        file = min(file.iterdir()) if file.is_dir() else file
        damages[(first + number) % len(damages)](file)
        here = ("--board", lab.board, "--vault", lab.vault, "--now", LAST)
        audited = lab.call("audit", "--json", *here)
        if not name.startswith(("identities", "sketches")):  # nothing needs those
            assert audited.code != 0, (name, audited)
        said = lab.call("publish", TWO, "--yes", *here)
        if said.code == 0:
            (row,) = (one for one in lab.rows() if one["id"] == TWO)
            assert float(row["scores"]["eval"]) == pytest.approx(true["mean"], abs=5e-4), name
        else:
            assert said.err, (name, said)
