"""In which order refs are fetched, what waits, and what is remembered of it; no process is used."""

from pathlib import Path
from typing import Any

import pytest

from heldout.board.store import fetching
from heldout.board.store.git import Bounds, RemoteRefs, TooMuchError
from heldout.errors import StoreError
from memory_git import MemoryGit

HEAD = "refs/heads/submission/"
HERE = "refs/remotes/origin/submission/"


class Remote(MemoryGit):
    """A repository whose remote lists what a test says; nothing of it is fetched here."""

    def pack_refs(self, *, least: int) -> None:
        del least

    def list_remote(self, remote: str, *patterns: str) -> RemoteRefs:
        del remote, patterns
        return RemoteRefs(objects=listed, leaves_files_out=False)


listed: dict[str, str] = {}
Attempts = list[tuple[float, tuple[str, ...]]]


@pytest.fixture
def git() -> Remote:
    listed.clear()
    return Remote(Path("/board"))


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Attempts:
    """Seconds that an attempt may use, and what it asks for; `bad` uses all, `slow` fails late."""
    made: Attempts = []

    def fetch(*given: Any, bounds: Bounds, **_: object) -> None:
        names = tuple(ref.rpartition("/")[2] for ref in given[2])
        made.append((bounds.cpu, names))
        if any("bad" in name for name in names):
            raise TooMuchError("too much", seconds=bounds.cpu)
        if any("foreign" in name for name in names):
            raise fetching._ForeignError("another file")
        if any("gone" in name for name in names):
            raise StoreError("no answer")

    monkeypatch.setattr(fetching, "_fetch", fetch)
    return made


def call(git: Remote, **objects: str) -> fetching.Fetched:
    listed.clear()
    listed.update({HEAD + name: one for name, one in objects.items()} | {"HEAD": "m"})
    done = fetching.fetch_arrivals(git, {"origin": "origin"}, "age", requests=False)["origin"]
    assert isinstance(done, fetching.Fetched)
    return done


def last_names(attempts: Attempts) -> list[str]:
    return [names[0] for _, names in attempts if len(names) == 1]


def test_every_ref_has_a_small_share_before_a_large_one(git: Remote, attempts: Attempts) -> None:
    done = call(git, bad1="1", bad2="2", good="3")
    alone = [(cpu, *names) for cpu, names in attempts if len(names) == 1]
    small, middle, large = (share.cpu for share in fetching._SHARES)
    assert alone[:3] == [(small, "bad1"), (small, "bad2"), (small, "good")]
    assert [cpu for cpu, _ in alone[3:]] == [middle, middle, large]
    assert set(done.refused) == {f"{HERE}bad1"}
    assert done.waiting == (f"{HERE}bad2",)


def test_the_next_call_goes_on_where_the_last_one_ended(git: Remote, attempts: Attempts) -> None:
    """What was tried comes after what never was; a refused commit is not tried again."""
    call(git, bad1="1", bad2="2")
    attempts.clear()
    done = call(git, bad1="1", bad2="2", good="3")
    assert attempts == [(fetching._SHARES[0].cpu, ("good",)), (fetching._SHARES[-1].cpu, ("bad2",))]
    assert set(done.refused) == {f"{HERE}bad1", f"{HERE}bad2"}
    attempts.clear()
    assert call(git, bad1="1", bad2="2").refused == done.refused
    assert attempts == []


@pytest.mark.parametrize("pulled", [True, False])
def test_a_foreign_path_is_refused_for_good(
    git: Remote, attempts: Attempts, monkeypatch: pytest.MonkeyPatch, *, pulled: bool
) -> None:
    """Before that it may be the main branch's own, and is looked at again after all others."""
    monkeypatch.setattr(Remote, "contains", lambda *_: pulled)
    refused = {f"{HERE}foreign": "another file"}
    assert call(git, foreign="1", good="2").refused == refused
    attempts.clear()
    assert call(git, foreign="1", new="3").refused == refused
    assert last_names(attempts) == ["new"] + ["foreign"] * (not pulled)


def test_a_new_commit_of_a_refused_ref_comes_later(git: Remote, attempts: Attempts) -> None:
    call(git, a_bad="1")
    attempts.clear()
    call(git, a_bad="2", b_good="3", c_bad="4")
    assert last_names(attempts)[:3] == ["b_good", "c_bad", "a_bad"]


def test_a_thousand_that_fail_take_what_a_call_may_lose(git: Remote, attempts: Attempts) -> None:
    """Those that were not tried come first in the next call, so that each has its turn."""
    names = {f"bad{number:04}": str(number) for number in range(1000)}
    first = call(git, **names)
    assert sum(cpu for cpu, _ in attempts) <= fetching._MOST_LOST
    assert len(first.waiting) == 1000
    tried = set(last_names(attempts))
    attempts.clear()
    call(git, **names)
    assert len(tried) > 100
    assert not tried & set(last_names(attempts))


def test_refs_that_are_no_arrivals_are_left_alone(git: Remote, attempts: Attempts) -> None:
    """A remote asked for its HEAD lists whatever ends with that name."""
    listed.update({"HEAD": "m", "refs/heads/x/HEAD": "1", "refs/tags/HEAD": "2"})
    done = fetching.fetch_arrivals(git, {"origin": "origin"}, "age")["origin"]
    assert (done, attempts) == (fetching.Fetched(), [])


def test_one_bad_ref_among_many_costs_few_attempts(git: Remote, attempts: Attempts) -> None:
    """Else a single one would have thousands fetched one by one."""
    call(git, **{f"good{number:04}": str(number) for number in range(640)}, bad="x")
    assert len(attempts) < 60


@pytest.mark.parametrize(("name", "most"), [("_BUDGET", 0.0), ("_PATIENCE", 0.0)])
def test_without_time_everything_waits(
    git: Remote, attempts: Attempts, monkeypatch: pytest.MonkeyPatch, name: str, most: float
) -> None:
    monkeypatch.setattr(fetching, name, most)
    assert call(git, good="1").waiting == (f"{HERE}good",)
    assert attempts == []


def test_what_the_remote_does_not_send_is_no_bomb(git: Remote, attempts: Attempts) -> None:
    done = call(git, gone="1", good="2")
    assert set(done.failed) == {f"{HERE}gone"}
    assert done.waiting == ()
    assert ("good",) in [names for _, names in attempts]
