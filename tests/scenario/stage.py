"""A board that attacks are played against, and what it has to be like afterwards.

Every attack leaves a canary if anything of it is run. Where nothing may change, vault and board
are compared byte for byte, so that all such attacks are played against one and the same board.
"""

import atexit
import contextlib
import functools
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

import pytest
from attacks import ATTACKS
from town import OTHER_TEAM, Answer, Town, copy_town, found_town, git, run_text

from heldout.board.store.sharing import DERIVED_FOLDERS
from heldout.envelope.bundle import file_names, seal
from heldout.ids import SubmissionId

DAY = "2026-11-02T10:00:00Z"
LATER = "2026-11-03T10:00:00Z"
MINE = "20261103-mine"
Files = dict[str, tuple[str, bytes] | None]


def sealed_names(submission: str) -> list[str]:
    return [f"submissions/{name}" for name in file_names("age", SubmissionId(submission)).all]


def three(submission: str) -> Files:
    """Files named like a submission's, of nonsense: whoever opens them learns it."""
    return {name: ("100644", name.encode()) for name in sealed_names(submission)}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A board with one published entry and one submission that waits; the forge has both."""

    town: Town
    published: str
    waiting: str

    def state(self) -> Mapping[str, bytes]:
        """All of the vault and of the board, but for what the vault can make again at any time."""
        roots = (self.town.vault, self.town.board)
        files = {str(p): p.read_bytes() for root in roots for p in root.rglob("*") if p.is_file()}
        vault, board = self.town.vault, self.town.board
        own, private = f"{board}/.git/heldout/", f"{board}/.git/"
        dropped = (f"{vault}/refused", f"{vault}/lock", f"{own}lock")
        derived = tuple(f"{self.town.vault}/{folder}/" for folder in DERIVED_FOLDERS)
        left = (*derived, private)
        kept = {
            p: d
            for p, d in files.items()
            if p not in dropped and (p.startswith(own) or not p.startswith(left))
        }
        told = [git(self.town.board, *words) for words in (["rev-parse", "HEAD"], ["status", "-s"])]
        settings = (self.town.board / ".git" / "config").read_bytes()
        return {**kept, "HEAD": "\n".join(told).encode(), "config": settings}

    def nothing_ran(self) -> bool:
        return not [p for p in self.town.root.rglob("canary") if ".git" not in p.parts]


def sealed(stage: Stage, submission: str, metadata: bytes, *, seed: int = 5) -> Mapping[str, bytes]:
    """Sealed by a program of one's own: any bytes for metadata."""
    name = SubmissionId(submission)
    runs = {s: (".run", run_text(s, seed).encode()) for s in ("dev", "eval")}
    keys = (stage.town.board / "keys" / "organisers.txt").read_text().split()
    return seal("age", name, runs=runs, metadata=metadata, recipients=keys).files


@contextlib.contextmanager
def set_stage(folder: Path) -> Iterator[Stage]:
    """A stage in an empty folder, which is the working directory for as long as it is in use."""
    first = _template()
    town = copy_town(first.town, folder)
    with contextlib.chdir(town.root):
        yield Stage(town=town, published=first.published, waiting=first.waiting)


@functools.cache
def _template() -> Stage:
    folder = Path(tempfile.mkdtemp(prefix="heldout-stage-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    town = found_town(folder)
    published = town.enter("first", now=DAY)
    waiting = town.send("second", now=DAY, seed=2, team=OTHER_TEAM)
    town.take_in(now=DAY)
    town.share()
    return Stage(town=town, published=published, waiting=waiting)


@contextlib.contextmanager
def unchanged(stage: Stage) -> Iterator[None]:
    """Nothing changes and nothing runs."""
    before = stage.state()
    yield
    after = stage.state()
    changed = [p for p in {**before, **after} if before.get(p) != after.get(p)]
    assert not changed, changed
    assert stage.nothing_ran()


def is_calm(answer: Answer) -> bool:
    """Nothing that a terminal obeys or that turns text around."""
    text = answer.out + answer.err
    return not set(text) & set("\x1b\x07\x00\u202e\u2066\u200b") and len(text) < 100_000


def check_all_played(
    contained: AbstractSet[str], request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a module played is what the page says of it, or a part where a part was asked for.

    Of several processes that share the tests each plays a part.
    """
    here = f"scenario/{request.path.name}"
    own = {attack.name for attack in ATTACKS if attack.module == here}
    assert contained <= own
    told = f"{len(contained)} of {len(own)} attacks played here, all contained"
    with capsys.disabled():
        sys.stdout.write(f"\n{told}; the page has {len(ATTACKS)}\n")
    whole = len([item for item in request.session.items if item.path == request.path])
    shared = hasattr(request.config, "workerinput")
    assert contained == own or whole < len(own) or shared
