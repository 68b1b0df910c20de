"""Killed anywhere, nothing is lost and nothing happens twice: the next call goes on.

Each command is ended before its durable operations (killer.py says which these are),
called again, and held against an uninterrupted run: the same events, rows, files and commits, git
clean, the audit sound.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import killer
import pytest
from finals import add_final, send_final
from lab import DAY, NEXT, OTHER_TEAM, Lab, found_lab, founding, write_inputs

memory = killer.memory
REVEAL = "2026-12-01"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command to kill.

    Attributes:
        prepare: makes the lab as it is before the command, and returns the command.
        least: fewest kill points that there must be.
        after: whose commands follow before states are compared.
        fresh: whether there is no board yet.
    """

    prepare: Callable[[Lab], list[str]]
    least: int
    after: str = "audit"
    fresh: bool = False


def _found(lab: Lab) -> list[str]:
    write_inputs(lab.root)
    return list(map(str, founding(lab.root)))


def _baseline(lab: Lab) -> list[str]:
    lab.draft("runs")
    runs = ["--dev", f"{lab.root}/dev.run", "--eval", f"{lab.root}/eval.run"]
    name = ["board", "baseline", "20261101-bm25"]
    return _organiser(lab, *name, *runs, "--description", "BM25")


def _inbox(lab: Lab) -> list[str]:
    lab.send("one")
    lab.send("two", seed=2, team=OTHER_TEAM)
    uploads = lab.root / "uploads"
    uploads.mkdir()
    (uploads / "20261102-half.tar.age").write_bytes(b"refused")
    return _organiser(lab, "inbox", "--from", str(uploads))


def _received(lab: Lab, *, embargo: str | None = None) -> tuple[str, str]:
    ids = (lab.send("one", embargo=embargo), lab.send("two", seed=2, team=OTHER_TEAM))
    lab.take_in()
    return ids


def _review(lab: Lab) -> list[str]:
    return _organiser(lab, "review", *_received(lab), "--score")


def _publish(lab: Lab) -> list[str]:
    return _organiser(lab, "publish", *_received(lab), "--yes")


def _reject(lab: Lab) -> list[str]:
    return _organiser(lab, "reject", *_received(lab), "--why", "no")


def _ask(lab: Lab) -> list[str]:
    return _organiser(lab, "ask", _received(lab)[0], "Who are you?")


def _correct(lab: Lab) -> list[str]:
    ids = _received(lab)
    lab.publish(*ids)
    lab.repair()
    return _organiser(lab, "correct", *ids, "--why", "one label was on a wrong document")


def _correct_part(lab: Lab) -> list[str]:
    return [*_correct(lab), "--shard", "1/1"]


def _extend(lab: Lab) -> list[str]:
    ids = _received(lab, embargo=REVEAL)
    lab.publish(*ids)
    return _organiser(lab, "extend", ids[0], "2027-02-01", "--why", "a late review")


def _finalists(lab: Lab) -> list[str]:
    add_final(lab)
    ids = [
        send_final(lab, "one", seed=1, now=DAY),
        send_final(lab, "two", seed=2, team=OTHER_TEAM, now=DAY),
    ]
    lab.take_in()
    lab.publish(*ids)
    return _organiser(lab, "board", "finalists", *ids)


def _final(lab: Lab) -> list[str]:
    name, *ids = _finalists(lab)[1:4]
    assert lab.organiser("board", name, *ids).code == 0
    return _organiser(lab, "board", "final", "--yes", now="2026-12-01T00:00:00Z")


def _rebuild(lab: Lab) -> list[str]:
    lab.publish(*_received(lab, embargo=REVEAL))
    lab.edit(("quota = 2", "quota = 1"))
    return _organiser(lab, "rebuild", "--accept-rules", now=f"{REVEAL}T00:00:00Z")


def _pack(lab: Lab) -> list[str]:
    return _participant(lab, "pack", lab.draft("one"))


def _submit(lab: Lab) -> list[str]:
    return _participant(lab, "submit", lab.draft("one"))


def _amend(lab: Lab) -> list[str]:
    name, _ = _received(lab)
    lab.fill(name, model_description="a better description")
    return _participant(lab, "amend", name)


def _withdraw(lab: Lab) -> list[str]:
    return _participant(lab, "withdraw", _received(lab)[0])


def _organiser(lab: Lab, *arguments: str, now: str = NEXT) -> list[str]:
    return [*arguments, *lab.options(now=now)]


def _participant(lab: Lab, *arguments: str) -> list[str]:
    return [*arguments, "--board", f"{lab.clone}", "--now", NEXT]


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
    lab = Lab(folder / "lab") if case.fresh else found_lab(folder)
    lab.root.mkdir(exist_ok=True)
    arguments = case.prepare(lab)
    after = [_organiser(lab, "audit", now="2026-12-02T00:00:00Z")]
    if case.after == "correct":
        after.insert(0, arguments[: arguments.index("--shard")])
    elif case.after != "audit":
        after.insert(0, _organiser(lab, "inbox"))
    if case.after == "submit":
        after.insert(0, _participant(lab, "submit", arguments[1]))
    return killer.kill_often(lab.root, arguments, after, every=1 if killer.NIGHT else 4)


@pytest.mark.parametrize(
    "name",
    ["publish", *(pytest.param(n, marks=pytest.mark.night) for n in CASES if n != "publish")],
)
def test_killed_anywhere_the_next_call_goes_on(
    name: str, memory: Path, record_property: Callable[[str, object], None]
) -> None:
    found = kill_everywhere(CASES[name], memory)
    record_property("kill points", f"{found['points']}, of which {found['tried']} tried")
    assert found["faults"] == {}
    assert found["points"] >= CASES[name].least
