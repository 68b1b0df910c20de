"""Two organisers at the same time: an event happens once, and a quota holds."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from lab import DAY, Lab, environment, fresh_lab

pytestmark = pytest.mark.night
WAIT = "another heldout is at work here"


lab = fresh_lab


def at_once(lab: Lab, *commands: Sequence[str]) -> list[tuple[int, str]]:
    """Start processes together; exit code and standard error of each."""
    program = str(Path(sys.executable).with_name("heldout"))
    place = ["--board", str(lab.board), "--vault", str(lab.vault), "--now", DAY]
    running = [
        subprocess.Popen(
            [program, *command, *place],
            env=environment(lab.root),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    return [(process.wait(), process.communicate()[1]) for process in running]


def test_two_at_once_cannot_overshoot_a_quota(lab: Lab) -> None:
    """One is published, two wait, the quota is two: whoever comes first gets it."""
    first = lab.enter("first", seed=1)
    rivals = []
    for seed, name in enumerate(("second", "third"), 2):
        rivals.append(lab.draft(name, seed=seed))
        lab.send_unchecked(rivals[-1])
    lab.take_in()
    waiting = set(rivals)
    for _ in range(5):
        said = at_once(lab, *[("publish", rival, "--yes") for rival in waiting])
        assert all(code in (0, 1) or (code == 2 and WAIT in err) for code, err in said), said
    rows = {row["id"] for row in lab.rows()}
    assert lab.kinds().count("published") == 2
    assert first in rows
    assert len(rows & waiting) == 1
    assert lab.audit()["ok"]
