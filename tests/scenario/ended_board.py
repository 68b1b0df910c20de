"""A board at its end, and the archive that came of it."""

import functools
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab import LAST, Answer, Lab, found_lab, session_folder
from trusting import settle


@dataclass(frozen=True, slots=True)
class Ended:
    """A board that is ready to be closed, and the archive that came of it."""

    lab: Lab
    ids: Mapping[str, str]
    archive: Path


@functools.cache
def end_board() -> Ended:
    """A board that was closed, once per session: who changes it takes a copy."""
    lab = found_lab(session_folder("ended"))
    ids = settle(lab)
    shutil.copytree(lab.root, lab.root.with_name("open"), symlinks=True)
    file = lab.root.parent / "kb.zip"
    args = ("--agreed", ids["hidden"], "--why", "their letter of 1 December", "--yes")
    lab.organiser("archive", file, *args, now=LAST).done()
    lab.push()
    return Ended(lab=lab, ids=ids, archive=file)


def copy_open(folder: Path) -> Lab:
    """A copy of the board as it was before it was closed."""
    return Lab(end_board().lab.root.with_name("open")).copy(folder)


def audited(lab: Lab, archive: Path, *, at: Path | None = None) -> Answer:
    return lab.participant("audit", archive, "--json", now=LAST, clone=at or lab.board)
