"""A board at its end, and the archive that came of it."""

import atexit
import functools
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from town import Answer, Town, copy_town, found_town
from trusting import LAST, settle


@dataclass(frozen=True, slots=True)
class Ended:
    """A board that is ready to be closed, and the archive that came of it."""

    town: Town
    ids: Mapping[str, str]
    archive: Path


@functools.cache
def end_board() -> Ended:
    """A board that was closed, once per session: who changes it takes a copy."""
    folder = Path(tempfile.mkdtemp(prefix="heldout-ended-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    town = found_town(folder)
    ids = settle(town)
    shutil.copytree(town.root, town.root.with_name("open"), symlinks=True)
    file = town.root.parent / "kb.zip"
    told = ("--agreed", ids["hidden"], "--why", "their letter of 1 December", "--yes")
    town.organiser("archive", file, *told, now=LAST).done()
    town.push()
    return Ended(town=town, ids=ids, archive=file)


def copy_open(folder: Path) -> Town:
    """A copy of the board as it was before it was closed."""
    return copy_town(Town(end_board().town.root.with_name("open")), folder)


def audited(town: Town, archive: Path, *, at: Path | None = None) -> Answer:
    return town.participant("audit", archive, "--json", now=LAST, clone=at or town.board)
