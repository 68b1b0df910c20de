"""A final through the command line: finalists are named, and scored once on unused queries."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from finals import add_final, add_final_files, found_prize, send_final
from town import OTHER_TEAM, QUERIES, Town, copy_of, found_town, named

from heldout.board.audit import archive
from heldout.board.organiser import finals

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
LAST = "2026-11-30T23:59:59Z"
AFTER = "2026-12-01T00:00:00Z"
LATER = "2026-12-02T00:00:00Z"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """Four published entries; the second is under an embargo."""
    town = found_town(tmp_path_factory.mktemp("played"))
    add_final(town)
    ids = [
        send_final(town, "one", seed=1),
        send_final(town, "two", seed=2, team=OTHER_TEAM, now=NEXT, embargo="2027-02-01"),
        send_final(town, "three", seed=3, team=named("Third"), now=NEXT),
        send_final(town, "four", seed=4, team=named("Fourth"), now=NEXT),
    ]
    town.take_in(now=NEXT)
    town.publish(*ids, now=NEXT).done()
    return town


town = copy_of("played")


def entries(town: Town) -> list[str]:
    return [str(e["submission"]) for e in town.events() if e["kind"] == "published"]


def true_score(town: Town, name: str) -> str:
    scores = json.loads((town.vault / f"scores/{name}.json").read_text())
    return f"{scores['views']['final']['mean']:.3f}"


def public_text(town: Town) -> str:
    paths = [town.board / "log.jsonl", *(town.board / "leaderboard").rglob("*.*")]
    return "\n".join(path.read_text() for path in paths)


def test_only_finalists_are_scored_in_public_and_once(town: Town, tmp_path: Path) -> None:
    everybody = entries(town)
    *chosen, left = everybody
    town.organiser("board", "finalists", *reversed(chosen), now=NEXT).done()
    assert town.audit()["faults"] == []
    early = town.organiser("board", "final", "--yes", now=LAST)
    assert early.code == 2
    assert "final-too-early" in early.err
    assert town.organiser("rebuild", now=AFTER).code == 0
    before = public_text(town)
    assert not any(true_score(town, name) in before for name in everybody)
    refused = town.organiser("archive", tmp_path / "early.zip", "--yes", now=AFTER)
    assert "is not opened" in refused.err
    opened = town.organiser("board", "final", "--yes", "--json", now=AFTER).done()
    found = opened.json
    assert found["scores"] == {name: true_score(town, name) for name in chosen}
    assert set(found["finalists"]) == set(chosen)
    assert found["winner"] == next(n for n in found["finalists"] if n not in found["below"])
    assert true_score(town, left) not in public_text(town)
    again = town.organiser("board", "final", "--json", now=LATER)
    assert (again.code, again.json["event"], again.json["scores"]) == (0, None, found["scores"])
    assert town.kinds().count("opened-final") == 1
    other = town.organiser("board", "finalists", left, "--why", "better", now=LATER)
    assert "final-opened" in other.err
    audit = town.audit()
    assert (audit["ok"], audit["faults"]) == (True, [])
    assert "the final, computed again" in town.organiser("audit", now=LATER).out
    town.organiser("archive", tmp_path / "a.zip", "--yes", now=LATER).done()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = archive.namelist()
        scores = {
            name: json.loads(archive.read(f"scores/{name}.json"))["views"] for name in everybody
        }
    assert {name for name, views in scores.items() if "final" in views} == set(chosen)
    assert "labels/final.qrels" in names
    checked = town.participant("audit", tmp_path / "a.zip", "--json", now=LATER)
    assert (checked.code, checked.json["faults"]) == (0, [])


def test_corrected_labels_open_the_final_again_with_a_reason(town: Town, tmp_path: Path) -> None:
    chosen = entries(town)[:2]
    assert town.organiser("board", "finalists", *chosen, now=NEXT).code == 0
    assert town.organiser("board", "final", "--yes", now=AFTER).code == 0
    labels = town.vault / "labels/final.qrels"
    labels.write_text("".join(f"final{i} 0 n{i}-80 1\n" for i in range(QUERIES)))
    silent = town.organiser("board", "final", "--yes", "--why", "labels", now=AFTER)
    assert silent.code == 2, "labels that nobody logged"
    assert town.organiser("correct", chosen[0], "--why", "wrong labels", now=AFTER).code == 0
    half = town.organiser("board", "final", "--why", "labels", now=AFTER)
    assert "scored with other labels" in half.err
    every = town.organiser("correct", *entries(town), "--why", "wrong labels", now=AFTER).done()
    assert 'heldout board final --why "…"' in every.out
    assert any("final were changed" in note for note in town.audit()["notes"])
    without = town.organiser("board", "final", now=LATER)
    assert "reason-missing" in without.err
    again = town.organiser("board", "final", "--why", "wrong labels", "--json", now=LATER).done()
    assert again.json["scores"] == {name: true_score(town, name) for name in chosen}
    assert town.kinds().count("opened-final") == 2
    audit = town.audit()
    assert (audit["ok"], audit["faults"]) == (True, [])
    town.organiser("archive", tmp_path / "a.zip", "--yes", now=LATER).done()
    checked = town.participant("audit", tmp_path / "a.zip", "--json", now=LATER)
    assert (checked.code, checked.json["faults"]) == (0, [])


def changed(**fields: Any) -> Any:
    """`final_fields`, of which an organiser changes some by hand."""
    honest = finals.final_fields

    def final_fields(*arguments: Any, **named: Any) -> dict[str, Any]:
        return {**honest(*arguments, **named), **fields}

    return final_fields


@pytest.mark.parametrize("field", ["final_scores", "winner", "luck", "queries"])
def test_an_organiser_who_opens_another_final_is_found(
    town: Town, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = entries(town)[:2]
    assert town.organiser("board", "finalists", *chosen, now=NEXT).code == 0
    wrong: dict[str, dict[str, Any]] = {
        "final_scores": {"final_scores": dict.fromkeys(chosen, "0.990"), "best": chosen[0]},
        "winner": {"winner": chosen[1], "below": [chosen[0]], "best": chosen[1]},
        "luck": {"luck": "0.0001"},
        "queries": {"queries": {"final": 29}},
    }
    if field == "winner":
        scores = {chosen[0]: "0.100", chosen[1]: "0.990"}
        wrong["winner"]["final_scores"] = scores
    with monkeypatch.context() as dishonest:
        dishonest.setattr(finals, "final_fields", changed(**wrong[field]))
        assert town.organiser("board", "final", "--yes", now=AFTER).code == 0
    faults = "\n".join(town.audit()["faults"])
    assert f"the final: {field} is" in faults, faults
    with monkeypatch.context() as dishonest:
        dishonest.setattr(archive, "check_closable", lambda _desk: None)
        dishonest.setattr(archive, "rehearse", lambda _desk, _closing: None)
        assert town.organiser("archive", tmp_path / "a.zip", "--yes", now=LATER).code == 0
    found = town.participant("audit", tmp_path / "a.zip", "--json", now=LATER)
    assert f"the final: {field} is" in "\n".join(found.json["faults"])


def test_finalist_scores_that_changed_in_silence_are_found(town: Town) -> None:
    chosen = entries(town)[:2]
    assert town.organiser("board", "finalists", *chosen, now=NEXT).code == 0
    assert town.organiser("board", "final", "--yes", now=AFTER).code == 0
    file = town.vault / f"scores/{chosen[0]}.json"
    scores = json.loads(file.read_text())
    scores["views"]["final"]["per_query"] = dict.fromkeys(
        scores["views"]["final"]["per_query"], 1.0
    )
    scores["views"]["final"]["mean"] = 1.0
    file.write_text(json.dumps(scores))
    assert f"the final was not opened with the scores of {chosen[0]}" in str(town.audit()["faults"])
    silent = town.organiser("board", "final", "--why", "a better one", now=LATER)
    assert silent.code == 2
    assert "no scores of" in silent.err


def test_a_finalist_learns_how_it_did(town: Town) -> None:
    one, two, three, _ = entries(town)
    assert town.organiser("board", "finalists", one, two, now=NEXT).code == 0
    town.push()
    before = town.participant("status", one, now=NEXT)
    assert "a finalist; the scores are published once, after the last day" in before.out
    assert town.organiser("board", "final", "--yes", now=AFTER).code == 0
    town.push()
    after = town.participant("status", one, now=AFTER)
    assert f"final {true_score(town, one)} (n = 30)" in after.out
    told = town.participant("status", one, "--json", now=AFTER).json["submissions"][0]["final"]
    assert told["score"] == float(true_score(town, one))
    other = town.participant("status", three, "--json", now=AFTER).json["submissions"][0]
    assert other["final"] is None


def test_a_prize_the_clear_rule_for_the_season_and_a_final(tmp_path: Path) -> None:
    """Whoever was told nothing all season can be a finalist, and win."""
    town = found_prize(tmp_path)
    ids = [
        send_final(town, "one", seed=1),
        send_final(town, "two", seed=2, team=OTHER_TEAM, now=NEXT),
    ]
    town.take_in(now=NEXT)
    assert town.publish(*ids, now=NEXT).code == 0
    withheld = [row["id"] for row in town.rows() if row["scores"]["eval"] is None]
    assert withheld, "nobody lies clearly above everything that was sent"
    refused = town.organiser("board", "finalists", "20261101-bm25", now=NEXT)
    assert "not-a-finalist" in refused.err
    assert town.organiser("board", "finalists", *ids, now=NEXT).code == 0
    opened = town.organiser("board", "final", "--yes", "--json", now=AFTER)
    assert opened.json["scores"] == {name: true_score(town, name) for name in ids}
    assert [set(one["scores"]) for one in opened.json["seasons"]] == [set(ids)]
    assert {row["why"].get("scores.eval") for row in town.rows()} == {None}
    assert town.audit()["faults"] == []
    town.push()
    told = town.participant("status", ids[0], now=AFTER)
    assert "the exact score is published" in told.out
    town.organiser("archive", tmp_path / "a.zip", "--yes", now=LATER).done()
    checked = town.participant("audit", tmp_path / "a.zip", "--json", now=LATER)
    assert (checked.code, checked.json["faults"]) == (0, [])


def test_no_command_shows_the_scores_of_a_final_that_is_closed(town: Town) -> None:
    name = entries(town)[0]
    told = [
        town.organiser("review", name, "--score", now=NEXT),
        town.organiser("analyse", "views", "--json", now=NEXT),
    ]
    for answer in told:
        assert answer.code == 0, answer
        assert true_score(town, name) not in answer.out
        assert "final RR@10" not in answer.out


def test_other_finalists_need_a_reason_and_the_last_list_holds(town: Town) -> None:
    one, two, three, _ = entries(town)
    assert town.organiser("board", "final", "--yes", now=AFTER).code == 2
    assert town.organiser("board", "finalists", one, two, now=NEXT).code == 0
    assert town.organiser("board", "finalists", two, one, now=NEXT).code == 0  # the same list
    assert town.kinds().count("named-finalists") == 1
    silent = town.organiser("board", "finalists", one, three, now=NEXT)
    assert "reason-missing" in silent.err
    town.organiser("board", "finalists", one, three, "--why", "a mistake", now=NEXT).done()
    answer = town.organiser("board", "final", "--yes", "--json", now=AFTER)
    assert answer.json["finalists"] == sorted([one, three], key=entries(town).index)
    assert town.audit()["faults"] == []


def test_queries_of_another_set_make_no_final(town: Town) -> None:
    fresh = town.root / "fresh"
    fresh.mkdir()
    other = found_town(fresh)
    add_final_files(other)
    dev = (other.board / "queries/dev.tsv").read_text().splitlines()[0]
    with (other.board / "queries/final.tsv").open("a") as file:
        file.write(f"final99\t{dev.split(chr(9))[1].upper()}\n")
    answer = other.organiser("rebuild", now=DAY)
    assert answer.code == 2
    assert "used-queries" in answer.err
