"""A board under `clear`, by its commands: from new rules to an archive that anybody checks."""

from pathlib import Path

import pytest
from town import OTHER_TEAM, found_town
from trusting import add_baseline

from heldout.board.rules.release import NOT_CLEAR
from heldout.board.store.repository import Repository

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
END = "2026-12-03T10:00:00Z"


def test_the_clear_rule_from_its_rules_to_its_archive(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    town.edit(('rule = "rounded"', 'rule = "clear"'))
    refused = town.organiser("rebuild", now=DAY, accepts=False)
    assert refused.code != 0
    assert "release.rule" in refused.out + refused.err
    accepted = town.organiser("rebuild", now=DAY).done()
    assert "labels/eval.key in the vault" in accepted.out
    assert "no baseline in eval: no score can be published there" in accepted.out
    town.share()
    first = town.send("first", now=DAY, seed=2)
    second = town.send("second", now=DAY, seed=1, team=OTHER_TEAM)
    taken = town.organiser("inbox", now=DAY)
    assert "no baseline in eval" in taken.out
    early = town.publish(first, now=DAY)
    assert early.code != 0
    assert "no-baseline" in early.err
    assert "heldout board baseline" in early.err
    add_baseline(town, seed=3)
    assert "no baseline" not in town.organiser("rebuild", now=DAY).out
    answer = town.organiser("publish", first, second, "--yes", "--why", "fine", now=NEXT).done()
    rows = {row["id"]: row for row in town.rows()}
    withheld = [name for name in (first, second) if rows[name]["scores"]["eval"] is None]
    assert withheld
    assert all(rows[name]["why"]["rank"] == NOT_CLEAR for name in withheld)
    assert NOT_CLEAR in answer.out
    assert town.audit()["ok"]
    # Whoever has the public log reads nothing of the best run.
    for entry in Repository(town.board).log():
        assert {"bars", "compared"}.isdisjoint((*entry.event.public, *entry.opened))
    town.organiser("archive", tmp_path / "end.zip", "--yes", now=END).done()
    town.participant("audit", tmp_path / "end.zip", now=END).done()
