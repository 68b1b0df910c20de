"""A board that attacks are played against, and what it has to be like afterwards.

Every attack leaves a canary if anything of it is run. Where nothing may change, vault and board
are compared byte for byte, so that all such attacks are played against one and the same board.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from attacks import ATTACKS
from lab import OTHER_TEAM, Answer, Lab, build_once, run_text

from heldout.envelope.bundle import file_names, seal
from heldout.ids import SubmissionId

PUBLISHED, WAITING, MINE = "20261102-first", "20261102-second", "20261103-mine"
Files = dict[str, tuple[str, bytes] | None]


def sealed_names(submission: str) -> list[str]:
    return [f"submissions/{name}" for name in file_names("age", SubmissionId(submission)).all]


def three(submission: str) -> Files:
    """Files named like a submission's, of nonsense: whoever opens them learns it."""
    return {name: ("100644", name.encode()) for name in sealed_names(submission)}


def sealed(lab: Lab, submission: str, metadata: bytes, *, seed: int = 5) -> Mapping[str, bytes]:
    """Sealed by a program of one's own: any bytes for metadata."""
    name = SubmissionId(submission)
    runs = {s: (".run", run_text(s, seed).encode()) for s in ("dev", "eval")}
    keys = (lab.board / "keys" / "organisers.txt").read_text().split()
    return seal("age", name, runs=runs, metadata=metadata, recipients=keys).files


def _begin(lab: Lab) -> None:
    lab.enter("first")
    lab.receive("second", seed=2, team=OTHER_TEAM)
    lab.share()


_template = build_once(_begin)


@pytest.fixture
def own_target(tmp_path: Path) -> Iterator[Lab]:
    """A board for one attack, with one published entry and one submission that waits."""
    lab = _template().copy(tmp_path)
    with contextlib.chdir(lab.root):
        yield lab


@pytest.fixture(scope="module")
def shared_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The same for all attacks of a module; it is sound after them."""
    lab = _template().copy(tmp_path_factory.mktemp("attacks"))
    with contextlib.chdir(lab.root):
        yield lab
    assert lab.audit()["ok"]


@contextlib.contextmanager
def unchanged(lab: Lab) -> Iterator[None]:
    """Nothing changes and nothing runs."""
    before = lab.state()
    yield
    after = lab.state()
    changed = [p for p in {**before, **after} if before.get(p) != after.get(p)]
    assert not changed, changed
    assert lab.nothing_ran()


def is_calm(answer: Answer) -> bool:
    """Nothing that a terminal obeys or that turns text around."""
    text = answer.out + answer.err
    return not set(text) & set("\x1b\x07\x00\u202e\u2066\u200b") and len(text) < 100_000


contained: set[str] = set()
"""The attacks that were played."""


@pytest.fixture(scope="module", autouse=True)
def all_played(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a module plays is what the page says of it, or a part where a part was asked for.

    Of several processes that share the tests each plays a part.
    """
    yield
    here = f"scenario/{request.path.name}"
    own = {attack.name for attack in ATTACKS if attack.module == here}
    played = contained & own
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        sys.stdout.write(f"\n{len(played)} of {len(own)} attacks played here, all contained\n")
    whole = len([item for item in request.session.items if item.path == request.path])
    shared = hasattr(request.config, "workerinput")
    assert played == own or whole < len(own) or shared
    assert contained <= {attack.name for attack in ATTACKS}
