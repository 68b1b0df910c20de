"""Errata while scores are sealed: the log does not tell whose score changed."""

import json
from pathlib import Path

import pytest
from town import OTHER_TEAM, QUERIES, Town, found_town

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
THEN = "2026-11-04T10:00:00Z"
OVER = "2027-01-01T00:00:00Z"
FINAL = """
[[views]]
name = "reserve"
set = "eval"
measure = "R@1"
public = false
final = true
"""
KINDS = {"one-shot": ('kind = "one-shot"\n', ""), "final": ("", FINAL)}


@pytest.fixture(params=sorted(KINDS))
def town(request: pytest.FixtureRequest, tmp_path: Path) -> Town:
    """A board with two entries whose scores, or final ones, are told after its last day."""
    town = found_town(tmp_path)
    rules = town.board / "board.toml"
    head, tail = KINDS[request.param]
    text = rules.read_text().replace("primary = ", f"closes = 2026-12-31\n{head}primary = ", 1)
    rules.write_text(text + tail)
    assert town.organiser("rebuild", now=DAY).code == 0
    town.share()
    names = (
        town.send("one", now=DAY),
        town.send("two", now=DAY, seed=2, team=OTHER_TEAM),
    )
    town.take_in(now=DAY)
    assert town.publish(*names, now=DAY).code == 0
    return town


def repair(town: Town, lines: str) -> None:
    labels = town.vault / "labels" / "eval.qrels"
    labels.write_text(labels.read_text() + lines)


def corrected(town: Town, *, now: str) -> list[str]:
    """The errata that correcting both entries logs, as the public log has them."""
    before = len(town.events())
    names = sorted({e["submission"] for e in town.events() if e["kind"] == "published"})
    town.organiser("correct", *names, "--why", "labels were repaired", now=now).done()
    public = (town.board / "log.jsonl").read_text().splitlines()[before:]
    events = [json.loads(line)["event"] for line in public]
    assert "reviewed" not in {event["kind"] for event in events}
    return [event["submission"] for event in events if event["kind"] == "corrected"]


def test_every_entry_that_is_scored_anew_has_an_erratum_whether_it_changed_or_not(
    town: Town,
) -> None:
    repair(town, "".join(f"eval{i} 0 n{i}-0 1\n" for i in range(QUERIES)))  # seed 1 alone has these
    assert corrected(town, now=NEXT) == ["20261102-one", "20261102-two"]
    assert corrected(town, now=NEXT) == []  # nothing was made again
    repair(town, "eval1 0 nobody 0\n")  # changes no score at all
    assert corrected(town, now=THEN) == ["20261102-one", "20261102-two"]
    assert town.audit()["faults"] == []
    assert town.organiser("rebuild", now=OVER).code == 0
    for row in town.rows():
        scores = json.loads((town.vault / f"scores/{row['id']}.json").read_text())["views"]
        for view, score in row["scores"].items():
            assert score == pytest.approx(scores[view]["mean"], abs=5e-4), view
    assert town.audit()["faults"] == []
