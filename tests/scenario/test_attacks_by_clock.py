"""Attacks by a clock that goes backwards."""

import re
from pathlib import Path

import pytest
from lab import Lab, found_lab
from target import PUBLISHED, WAITING, all_played, contained, shared_target, three

checked, lab = all_played, shared_target


BACK = "2026-11-02T09:59:59Z"  # one second before the last event
CLOCKS = {
    "inbox": ["inbox", "--from", "late"],
    "review": ["review", WAITING, "--score"],
    "publish": ["publish", WAITING, "--yes"],
    "reject": ["reject", WAITING, "--why", "x"],
    "ask": ["ask", WAITING, "Who are you?"],
    "correct": ["correct", PUBLISHED, "--why", "x", "--anyway"],
}


@pytest.mark.parametrize("command", CLOCKS)
def test_a_clock_that_goes_backwards(lab: Lab, command: str) -> None:
    """Nothing that was there changes; sealed files and scores may lie in the vault beforehand."""
    folder = lab.root / "late"
    folder.mkdir(exist_ok=True)
    for name, change in three("20261103-late").items():
        assert change is not None
        (folder / Path(name).name).write_bytes(change[1])
    before = lab.state()
    answer = lab.organiser(*CLOCKS[command], now=BACK).refused()
    assert re.search("the clock .* events are never dated before others", answer.err, re.DOTALL)
    after = lab.state()
    assert before.items() <= after.items()
    beforehand = tuple(f"{lab.vault}/{n}/" for n in ("sealed", "scores", "signatures"))
    assert [path for path in after.keys() - before.keys() if not path.startswith(beforehand)] == []
    contained.add(f"a clock that goes backwards: {command}")


def test_a_clock_that_goes_backwards_in_the_middle_of_a_change_of_keys(tmp_path: Path) -> None:
    """The new key is made before the event is dated: refused, nothing logged, no key lost."""
    lab = found_lab(tmp_path)
    submission = lab.receive("first")
    own = (lab.vault / "identities" / "organiser.txt").read_bytes()
    log = (lab.vault / "events.jsonl").read_bytes()
    change = ["board", "rekey", "--why", "x", "--yes"]
    lab.organiser(*change, now=BACK).refused("events are never dated before others")
    assert (lab.vault / "events.jsonl").read_bytes() == log
    assert own in [path.read_bytes() for path in (lab.vault / "identities").iterdir()]
    assert lab.organiser(*change).code == 0
    assert lab.kinds().count("rekeyed") == 1
    assert lab.publish(submission).code == 0
    assert lab.audit()["ok"]
    contained.add("a clock that goes backwards: rekey")
