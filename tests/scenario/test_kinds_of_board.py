"""Boards of other kinds, through the command line: one-shot."""

import json

import pytest
from lab import NEXT, Lab, fresh_lab

LAST = "2026-12-31T23:59:59Z"
AFTER = "2027-01-01T00:00:00Z"


lab = fresh_lab


def test_a_one_shot_board_keeps_all_scores_to_itself_until_its_last_day_is_over(lab: Lab) -> None:
    lab.rule(("primary = ", 'closes = 2026-12-31\nkind = "one-shot"\nprimary = '))
    first = lab.enter("first", seed=1, shared=True)
    second = lab.enter("second", seed=2, now=NEXT, shared=True)
    log = (lab.board / "log.jsonl").read_text("utf-8")
    page = (lab.board / "leaderboard/index.html").read_text("utf-8")
    scores = json.loads((lab.vault / f"scores/{first}.json").read_text("utf-8"))["views"]
    shown = f"{scores['eval']['mean']:.3f}"
    assert shown not in log
    assert shown not in page
    assert "score shown after 31 Dec 2026" in page
    assert "2 entries, none ranked yet" in page
    rows = lab.rows()
    assert [(row["rank"], row["scores"]["eval"]) for row in rows] == [(None, None)] * 2
    assert {row["why"]["rank"] for row in rows} == {"score shown after 31 Dec 2026"}
    status = lab.participant("status", first, now=LAST).done()
    assert shown not in status.out
    assert "score     published after the last day, 31 Dec 2026, with everybody's" in status.out
    assert lab.organiser("rebuild", now=LAST).code == 0
    assert {row["rank"] for row in lab.rows()} == {None}
    third = lab.draft("third", seed=3, now=NEXT)
    lab.participant("submit", third, now=NEXT).declined(
        "you may submit again from 01 Jan 2027 00:00 UTC",
        "more than 2 runs of this team, the number that each has on this board",
    )
    assert lab.organiser("rebuild", now=AFTER).code == 0
    found = {row["id"]: row["scores"]["eval"] for row in lab.rows()}
    assert found[first] == pytest.approx(scores["eval"]["mean"], abs=5e-4)
    assert sorted(row["rank"] for row in lab.rows()) == [1, 2]
    assert not any(row["trophy"] for row in lab.rows())
    late = lab.enter("late", seed=4, now=AFTER, shared=True)
    row = next(row for row in lab.rows() if row["id"] == late)
    assert row["rank"] is None
    assert row["why"]["rank"] == "post hoc: came after 31 Dec 2026"
    assert row["scores"]["eval"] is not None
    assert second in found
    assert lab.audit()["ok"]
