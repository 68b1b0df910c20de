"""Errata while scores are sealed: the log does not tell whose score changed."""

import json
from pathlib import Path

import pytest
from lab import NEXT, OTHER_TEAM, QUERIES, Lab, found_lab

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
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Lab:
    """A board with two entries whose scores, or final ones, are told after its last day."""
    lab = found_lab(tmp_path)
    head, tail = KINDS[request.param]
    lab.rule(("primary = ", f"closes = 2026-12-31\n{head}primary = "), more=tail)
    names = (lab.send("one"), lab.send("two", seed=2, team=OTHER_TEAM))
    lab.take_in()
    assert lab.publish(*names).code == 0
    return lab


def repair(lab: Lab, lines: str) -> None:
    labels = lab.vault / "labels" / "eval.qrels"
    labels.write_text(labels.read_text() + lines)


def corrected(lab: Lab, *, now: str) -> list[str]:
    """The errata that correcting both entries logs, as the public log has them."""
    before = len(lab.events())
    names = sorted({e["submission"] for e in lab.events() if e["kind"] == "published"})
    lab.organiser("correct", *names, "--why", "labels were repaired", now=now).done()
    public = (lab.board / "log.jsonl").read_text().splitlines()[before:]
    events = [json.loads(line)["event"] for line in public]
    assert "reviewed" not in {event["kind"] for event in events}
    return [event["submission"] for event in events if event["kind"] == "corrected"]


def test_every_entry_that_is_scored_anew_has_an_erratum_whether_it_changed_or_not(lab: Lab) -> None:
    repair(lab, "".join(f"eval{i} 0 n{i}-0 1\n" for i in range(QUERIES)))  # seed 1 alone has these
    assert corrected(lab, now=NEXT) == ["20261102-one", "20261102-two"]
    assert corrected(lab, now=NEXT) == []  # nothing was made again
    repair(lab, "eval1 0 nobody 0\n")  # changes no score at all
    assert corrected(lab, now="2026-11-04T10:00:00Z") == ["20261102-one", "20261102-two"]
    assert lab.audit()["faults"] == []
    assert lab.organiser("rebuild", now="2027-01-01T00:00:00Z").code == 0
    for row in lab.rows():
        scores = json.loads((lab.vault / f"scores/{row['id']}.json").read_text())["views"]
        for view, score in row["scores"].items():
            assert score == pytest.approx(scores[view]["mean"], abs=5e-4), view
    assert lab.audit()["faults"] == []
