"""Killed anywhere, nothing is lost and nothing happens twice: the next call goes on.

Each command is ended before its durable operations (killer.py says which these are),
called again, and held against an uninterrupted run: the same events, rows, files and commits, git
clean, the audit sound.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from finals import add_final, send_final
from town import OTHER_TEAM, Town, environment, found_town, founding, write_inputs

AT = "2026-11-03T10:00:00Z"
EARLIER = "2026-11-02T10:00:00Z"
REVEAL = "2026-12-01"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command to kill.

    Attributes:
        prepare: makes the town as it is before the command, and returns the command.
        least: fewest kill points that there must be.
        after: whose commands follow before states are compared.
        fresh: whether there is no board yet.
    """

    prepare: Callable[[Town], list[str]]
    least: int
    after: str = "audit"
    fresh: bool = False


def _found(town: Town) -> list[str]:
    write_inputs(town.root)
    return list(map(str, founding(town.root)))


def _baseline(town: Town) -> list[str]:
    town.draft("runs", now=EARLIER)
    runs = ["--dev", f"{town.root}/dev.run", "--eval", f"{town.root}/eval.run"]
    name = ["board", "baseline", "20261101-bm25"]
    return _organiser(town, *name, *runs, "--description", "BM25")


def _inbox(town: Town) -> list[str]:
    town.send("one", now=EARLIER)
    town.send("two", now=EARLIER, seed=2, team=OTHER_TEAM)
    uploads = town.root / "uploads"
    uploads.mkdir()
    (uploads / "20261102-half.tar.age").write_bytes(b"refused")
    return _organiser(town, "inbox", "--from", str(uploads))


def _received(town: Town, *, embargo: str | None = None) -> tuple[str, str]:
    ids = (
        town.send("one", now=EARLIER, embargo=embargo),
        town.send("two", now=EARLIER, seed=2, team=OTHER_TEAM),
    )
    town.take_in(now=EARLIER)
    return ids


def _review(town: Town) -> list[str]:
    return _organiser(town, "review", *_received(town), "--score")


def _publish(town: Town) -> list[str]:
    return _organiser(town, "publish", *_received(town), "--yes")


def _reject(town: Town) -> list[str]:
    return _organiser(town, "reject", *_received(town), "--why", "no")


def _ask(town: Town) -> list[str]:
    return _organiser(town, "ask", _received(town)[0], "Who are you?")


def _correct(town: Town) -> list[str]:
    ids = _received(town)
    town.publish(*ids, now=EARLIER)
    town.repair()
    return _organiser(town, "correct", *ids, "--why", "one label was on a wrong document")


def _correct_part(town: Town) -> list[str]:
    return [*_correct(town), "--shard", "1/1"]


def _extend(town: Town) -> list[str]:
    ids = _received(town, embargo=REVEAL)
    town.publish(*ids, now=EARLIER)
    return _organiser(town, "extend", ids[0], "2027-02-01", "--why", "a late review")


def _finalists(town: Town) -> list[str]:
    add_final(town)
    ids = [
        send_final(town, "one", seed=1, now=EARLIER),
        send_final(town, "two", seed=2, team=OTHER_TEAM, now=EARLIER),
    ]
    town.take_in(now=EARLIER)
    town.publish(*ids, now=EARLIER)
    return _organiser(town, "board", "finalists", *ids)


def _final(town: Town) -> list[str]:
    name, *ids = _finalists(town)[1:4]
    assert town.organiser("board", name, *ids, now=EARLIER).code == 0
    return _organiser(town, "board", "final", "--yes", now="2026-12-01T00:00:00Z")


def _rebuild(town: Town) -> list[str]:
    town.publish(*_received(town, embargo=REVEAL), now=EARLIER)
    town.edit(("quota = 2", "quota = 1"))
    return _organiser(town, "rebuild", "--accept-rules", now=f"{REVEAL}T00:00:00Z")


def _pack(town: Town) -> list[str]:
    return _participant(town, "pack", town.draft("one", now=EARLIER))


def _submit(town: Town) -> list[str]:
    return _participant(town, "submit", town.draft("one", now=EARLIER))


def _amend(town: Town) -> list[str]:
    name, _ = _received(town)
    town.fill(name, model_description="a better description")
    return _participant(town, "amend", name)


def _withdraw(town: Town) -> list[str]:
    return _participant(town, "withdraw", _received(town)[0])


def _organiser(town: Town, *arguments: str, now: str = AT) -> list[str]:
    told = ["--board", f"{town.board}", "--vault", f"{town.vault}", "--now", now]
    return [*arguments, *told]


def _participant(town: Town, *arguments: str) -> list[str]:
    return [*arguments, "--board", f"{town.clone}", "--now", AT]


CASES = {
    "board new": Case(prepare=_found, least=80, fresh=True),
    "board baseline": Case(prepare=_baseline, least=35),
    "inbox": Case(prepare=_inbox, least=45),
    "review": Case(prepare=_review, least=28),
    "publish": Case(prepare=_publish, least=75),
    "reject": Case(prepare=_reject, least=19),
    "ask": Case(prepare=_ask, least=18),
    "correct": Case(prepare=_correct, least=40),
    "correct --shard": Case(prepare=_correct_part, least=6, after="correct"),
    "extend": Case(prepare=_extend, least=25),
    "board finalists": Case(prepare=_finalists, least=15),
    "board final": Case(prepare=_final, least=15),
    "rebuild": Case(prepare=_rebuild, least=30),
    "pack": Case(prepare=_pack, least=20, after="submit"),
    "submit": Case(prepare=_submit, least=26, after="inbox"),
    "amend": Case(prepare=_amend, least=15, after="inbox"),
    "withdraw": Case(prepare=_withdraw, least=15, after="inbox"),
}


def kill_everywhere(case: Case, folder: Path) -> Any:
    """Run killer.py on a case; its answer."""
    town = Town(folder / "town") if case.fresh else found_town(folder)
    town.root.mkdir(exist_ok=True)
    arguments = case.prepare(town)
    after = [_organiser(town, "audit", now="2026-12-02T00:00:00Z")]
    if case.after == "correct":
        after.insert(0, arguments[: arguments.index("--shard")])
    elif case.after != "audit":
        after.insert(0, _organiser(town, "inbox"))
    if case.after == "submit":
        after.insert(0, _participant(town, "submit", arguments[1]))
    shutil.copytree(town.root, folder / "start", symlinks=True)
    plan = folder / "plan.json"
    plan.write_text(
        json.dumps(
            {
                "root": str(town.root),
                "start": str(folder / "start"),
                "arguments": arguments,
                "after": after,
            }
        )
    )
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("killer.py"), plan],
        capture_output=True,
        env=environment(folder),
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    print(done.stderr)  # noqa: T201 - pytest shows it with a failure
    return json.loads(done.stdout)


@pytest.fixture
def memory() -> Iterator[Path | None]:
    """A folder in memory where there is one: every point restores two hundred files."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108 - a folder of its own is made below it
        yield None
        return
    with TemporaryDirectory(dir="/dev/shm", prefix="heldout-kills-") as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["publish", *(pytest.param(n, marks=pytest.mark.night) for n in CASES if n != "publish")],
)
def test_killed_anywhere_the_next_call_goes_on(
    name: str, tmp_path: Path, memory: Path | None, record_property: Callable[[str, object], None]
) -> None:
    found = kill_everywhere(CASES[name], memory or tmp_path)
    record_property("kill points", f"{found['points']}, of which {found['tried']} tried")
    assert found["faults"] == {}
    assert found["points"] >= CASES[name].least


def test_the_points_are_many() -> None:
    assert sum(case.least for case in CASES.values()) >= 450
