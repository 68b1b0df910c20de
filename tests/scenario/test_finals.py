"""A final through the command line: finalists are named, and scored once on unused queries."""

import json
from pathlib import Path
from typing import Any

import pytest
from finals import add_final, found_prize, send_final
from lab import NEXT, OTHER_TEAM, QUERIES, Lab, Patch, named, prepared
from trusting import read_files

from heldout.board.audit import archive
from heldout.board.organiser import finals

LAST = "2026-11-30T23:59:59Z"
AFTER = "2026-12-01T00:00:00Z"
LATER = "2026-12-02T00:00:00Z"


@prepared
def lab(lab: Lab) -> None:
    """Four published entries; the second is under an embargo."""
    add_final(lab)
    ids = [
        send_final(lab, "one", seed=1),
        send_final(lab, "two", seed=2, team=OTHER_TEAM, now=NEXT, embargo="2027-02-01"),
        send_final(lab, "three", seed=3, team=named("Third"), now=NEXT),
        send_final(lab, "four", seed=4, team=named("Fourth"), now=NEXT),
    ]
    lab.take_in(now=NEXT)
    lab.publish(*ids, now=NEXT).done()


def entries(lab: Lab) -> list[str]:
    return [str(e["submission"]) for e in lab.events() if e["kind"] == "published"]


def true_score(lab: Lab, name: str) -> str:
    scores = json.loads((lab.vault / f"scores/{name}.json").read_text())
    return f"{scores['views']['final']['mean']:.3f}"


def public_text(lab: Lab) -> str:
    paths = [lab.board / "log.jsonl", *(lab.board / "leaderboard").rglob("*.*")]
    return "\n".join(path.read_text() for path in paths)


def test_only_finalists_are_scored_in_public_and_once(lab: Lab, tmp_path: Path) -> None:
    everybody = entries(lab)
    *chosen, left = everybody
    lab.organiser("board", "finalists", *reversed(chosen), now=NEXT).done()
    assert lab.audit()["faults"] == []
    lab.organiser("board", "final", "--yes", now=LAST).refused("final-too-early")
    assert lab.organiser("rebuild", now=AFTER).code == 0
    before = public_text(lab)
    assert not any(true_score(lab, name) in before for name in everybody)
    refused = lab.organiser("archive", tmp_path / "early.zip", "--yes", now=AFTER)
    assert "is not opened" in refused.err
    opened = lab.organiser("board", "final", "--yes", "--json", now=AFTER).done()
    found = opened.json
    assert found["scores"] == {name: true_score(lab, name) for name in chosen}
    assert set(found["finalists"]) == set(chosen)
    assert found["winner"] == next(n for n in found["finalists"] if n not in found["below"])
    assert true_score(lab, left) not in public_text(lab)
    again = lab.organiser("board", "final", "--json", now=LATER)
    assert (again.code, again.json["event"], again.json["scores"]) == (0, None, found["scores"])
    assert lab.kinds().count("opened-final") == 1
    other = lab.organiser("board", "finalists", left, "--why", "better", now=LATER)
    assert "final-opened" in other.err
    audit = lab.audit()
    assert (audit["ok"], audit["faults"]) == (True, [])
    assert "the final, computed again" in lab.organiser("audit", now=LATER).out
    files = read_files(lab.archive(now=LATER))
    scores = {name: json.loads(files[f"scores/{name}.json"])["views"] for name in everybody}
    assert {name for name, views in scores.items() if "final" in views} == set(chosen)
    assert "labels/final.qrels" in files


def test_corrected_labels_open_the_final_again_with_a_reason(lab: Lab) -> None:
    chosen = entries(lab)[:2]
    assert lab.organiser("board", "finalists", *chosen, now=NEXT).code == 0
    assert lab.organiser("board", "final", "--yes", now=AFTER).code == 0
    labels = lab.vault / "labels/final.qrels"
    labels.write_text("".join(f"final{i} 0 n{i}-80 1\n" for i in range(QUERIES)))
    lab.organiser("board", "final", "--yes", "--why", "labels", now=AFTER).refused()
    assert lab.organiser("correct", chosen[0], "--why", "wrong labels", now=AFTER).code == 0
    half = lab.organiser("board", "final", "--why", "labels", now=AFTER)
    assert "scored with other labels" in half.err
    lab.organiser("correct", *entries(lab), "--why", "wrong labels", now=AFTER).done(
        'heldout board final --why "…"'
    )
    assert any("final were changed" in note for note in lab.audit()["notes"])
    without = lab.organiser("board", "final", now=LATER)
    assert "reason-missing" in without.err
    again = lab.organiser("board", "final", "--why", "wrong labels", "--json", now=LATER).done()
    assert again.json["scores"] == {name: true_score(lab, name) for name in chosen}
    assert lab.kinds().count("opened-final") == 2
    audit = lab.audit()
    assert (audit["ok"], audit["faults"]) == (True, [])
    lab.archive(now=LATER)


def changed(**fields: Any) -> Any:
    """`final_fields`, of which an organiser changes some by hand."""
    honest = finals.final_fields

    def final_fields(*arguments: Any, **named: Any) -> dict[str, Any]:
        return {**honest(*arguments, **named), **fields}

    return final_fields


@pytest.mark.parametrize("field", ["final_scores", "winner", "luck", "queries"])
def test_an_organiser_who_opens_another_final_is_found(
    lab: Lab, field: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    chosen = entries(lab)[:2]
    assert lab.organiser("board", "finalists", *chosen, now=NEXT).code == 0
    wrong: dict[str, dict[str, Any]] = {
        "final_scores": {"final_scores": dict.fromkeys(chosen, "0.990"), "best": chosen[0]},
        "winner": {"winner": chosen[1], "below": [chosen[0]], "best": chosen[1]},
        "luck": {"luck": "0.0001"},
        "queries": {"queries": {"final": 29}},
    }
    if field == "winner":
        wrong["winner"]["final_scores"] = {chosen[0]: "0.100", chosen[1]: "0.990"}
    with monkeypatch.context() as dishonest:
        dishonest.setattr(finals, "final_fields", changed(**wrong[field]))
        assert lab.organiser("board", "final", "--yes", now=AFTER).code == 0
    faults = "\n".join(lab.audit()["faults"])
    assert f"the final: {field} is" in faults, faults
    with monkeypatch.context() as dishonest:
        dishonest.setattr(archive, "check_closable", lambda _desk: None)
        dishonest.setattr(archive, "rehearse", lambda _desk, _closing: None)
        assert lab.organiser("archive", tmp_path / "a.zip", "--yes", now=LATER).code == 0
    found = lab.participant("audit", tmp_path / "a.zip", "--json", now=LATER)
    assert f"the final: {field} is" in "\n".join(found.json["faults"])


def test_finalist_scores_that_changed_in_silence_are_found(lab: Lab) -> None:
    chosen = entries(lab)[:2]
    assert lab.organiser("board", "finalists", *chosen, now=NEXT).code == 0
    assert lab.organiser("board", "final", "--yes", now=AFTER).code == 0
    file = lab.vault / f"scores/{chosen[0]}.json"
    scores = json.loads(file.read_text())
    scores["views"]["final"]["per_query"] = dict.fromkeys(
        scores["views"]["final"]["per_query"], 1.0
    )
    scores["views"]["final"]["mean"] = 1.0
    file.write_text(json.dumps(scores))
    assert f"the final was not opened with the scores of {chosen[0]}" in str(lab.audit()["faults"])
    lab.organiser("board", "final", "--why", "a better one", now=LATER).refused("no scores of")


def test_a_finalist_learns_how_it_did(lab: Lab) -> None:
    one, two, three, _ = entries(lab)
    assert lab.organiser("board", "finalists", one, two, now=NEXT).code == 0
    lab.push()
    before = lab.participant("status", one, now=NEXT)
    assert "a finalist; the scores are published once, after the last day" in before.out
    assert lab.organiser("board", "final", "--yes", now=AFTER).code == 0
    lab.push()
    after = lab.participant("status", one, now=AFTER)
    assert f"final {true_score(lab, one)} (n = 30)" in after.out
    said = lab.participant("status", one, "--json", now=AFTER).json["submissions"][0]["final"]
    assert said["score"] == float(true_score(lab, one))
    other = lab.participant("status", three, "--json", now=AFTER).json["submissions"][0]
    assert other["final"] is None


def test_a_prize_the_clear_rule_for_the_season_and_a_final(tmp_path: Path) -> None:
    """Whoever was told nothing all season can be a finalist, and win."""
    lab = found_prize(tmp_path)
    ids = [
        send_final(lab, "one", seed=1),
        send_final(lab, "two", seed=2, team=OTHER_TEAM, now=NEXT),
    ]
    lab.take_in(now=NEXT)
    assert lab.publish(*ids, now=NEXT).code == 0
    withheld = [row["id"] for row in lab.rows() if row["scores"]["eval"] is None]
    assert withheld, "nobody lies clearly above everything that was sent"
    refused = lab.organiser("board", "finalists", "20261101-bm25", now=NEXT)
    assert "not-a-finalist" in refused.err
    assert lab.organiser("board", "finalists", *ids, now=NEXT).code == 0
    opened = lab.organiser("board", "final", "--yes", "--json", now=AFTER)
    assert opened.json["scores"] == {name: true_score(lab, name) for name in ids}
    assert [set(one["scores"]) for one in opened.json["seasons"]] == [set(ids)]
    assert {row["why"].get("scores.eval") for row in lab.rows()} == {None}
    assert lab.audit()["faults"] == []
    lab.push()
    told = lab.participant("status", ids[0], now=AFTER)
    assert "the exact score is published" in told.out
    lab.archive(now=LATER)


def test_no_command_shows_the_scores_of_a_final_that_is_closed(lab: Lab) -> None:
    name = entries(lab)[0]
    said = [
        lab.organiser("review", name, "--score", now=NEXT),
        lab.organiser("analyse", "views", "--json", now=NEXT),
    ]
    for answer in said:
        assert answer.code == 0, answer
        assert true_score(lab, name) not in answer.out
        assert "final RR@10" not in answer.out


def test_other_finalists_need_a_reason_and_the_last_list_holds(lab: Lab) -> None:
    one, two, three, _ = entries(lab)
    assert lab.organiser("board", "final", "--yes", now=AFTER).code == 2
    assert lab.organiser("board", "finalists", one, two, now=NEXT).code == 0
    assert lab.organiser("board", "finalists", two, one, now=NEXT).code == 0  # the same list
    assert lab.kinds().count("named-finalists") == 1
    silent = lab.organiser("board", "finalists", one, three, now=NEXT)
    assert "reason-missing" in silent.err
    lab.organiser("board", "finalists", one, three, "--why", "a mistake", now=NEXT).done()
    answer = lab.organiser("board", "final", "--yes", "--json", now=AFTER)
    assert answer.json["finalists"] == sorted([one, three], key=entries(lab).index)
    assert lab.audit()["faults"] == []
