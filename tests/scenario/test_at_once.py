"""Two organisers at the same time: an event happens once, and a quota holds."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from town import Town, environment, fresh_town

pytestmark = [pytest.mark.slow, pytest.mark.night]
DAY = "2026-11-02T10:00:00Z"
WAIT = "another heldout is at work here"


town = fresh_town


def at_once(town: Town, *commands: Sequence[str]) -> list[tuple[int, str]]:
    """Start processes together; exit code and standard error of each."""
    program = str(Path(sys.executable).with_name("heldout"))
    place = ["--board", str(town.board), "--vault", str(town.vault), "--now", DAY]
    running = [
        subprocess.Popen(
            [program, *command, *place],
            env=environment(town.root),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    return [(process.wait(), process.communicate()[1]) for process in running]


def test_two_at_once_cannot_overshoot_a_quota(town: Town) -> None:
    """One is published, two wait, the quota is two: whoever comes first gets it."""
    first = town.enter("first", now=DAY, seed=1)
    rivals = []
    for seed, name in enumerate(("second", "third"), 2):
        rivals.append(town.draft(name, now=DAY, seed=seed))
        town.send_unchecked(rivals[-1], now=DAY)
    town.take_in(now=DAY)
    waiting = set(rivals)
    for _ in range(5):
        told = at_once(town, *[("publish", rival, "--yes") for rival in waiting])
        assert all(code in (0, 1) or (code == 2 and WAIT in err) for code, err in told), told
    rows = {row["id"] for row in town.rows()}
    assert town.kinds().count("published") == 2
    assert first in rows
    assert len(rows & waiting) == 1
    assert town.audit()["ok"]
