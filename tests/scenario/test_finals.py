"""A final through the command line: finalists are named, and scored once on unused queries."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from town import OTHER_TEAM, QUERIES, TEAM, Town, copy_town, found_town, named, run_text

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
LAST = "2026-11-30T23:59:59Z"
AFTER = "2026-12-01T00:00:00Z"
LATER = "2026-12-02T00:00:00Z"
FINAL = """
[sets.final]
queries = "queries/final.tsv"

[[views]]
name = "final"
set = "final"
measure = "RR@10"
public = false
final = true
finalists = 3
"""


def add_final(town: Town) -> None:
    """A last day, and a view with finalists on a query set of its own."""
    numbers = range(QUERIES)
    queries = "".join(f"final{i}\twhat is thing {i} of final\n" for i in numbers)
    (town.board / "queries/final.tsv").write_text(queries)
    labels = "".join(f"final{i} 0 dfinal{i} 1\n" for i in numbers)
    (town.vault / "labels/final.qrels").write_text(labels)
    rules = town.board / "board.toml"
    text = rules.read_text().replace("# closes = 2027-03-31", "closes = 2026-11-30")
    assert "closes = 2026-11-30" in text
    rules.write_text(text + FINAL)
    answer = town.organiser("rebuild", now=DAY)
    assert answer.code == 0, answer
    town.push()
    town.pull()


def send(
    town: Town,
    name: str,
    *,
    seed: int,
    team: Mapping[str, Any] = TEAM,
    now: str = DAY,
    embargo: str | None = None,
) -> str:
    """Submit a run for each of the three sets."""
    files: list[str | Path] = []
    for query_set in ("dev", "eval", "final"):
        path = town.root / f"{query_set}.run"
        path.write_text(run_text(query_set, seed + 20 * (query_set == "final")))
        files += ["--run", f"{query_set}={path}"]
    told = ("--embargo", embargo) if embargo else ()
    answer = town.participant("draft", name, *files, *told, "--json", now=now)
    assert answer.code == 0, answer
    submission = str(answer.json["id"])
    town.fill(submission, **team)
    assert town.participant("submit", submission, now=now).code == 0
    return submission


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """Four published entries; the second is under an embargo."""
    town = found_town(tmp_path_factory.mktemp("played"))
    add_final(town)
    ids = [
        send(town, "one", seed=1),
        send(town, "two", seed=2, team=OTHER_TEAM, now=NEXT, embargo="2027-02-01"),
        send(town, "three", seed=3, team=named("Third"), now=NEXT),
        send(town, "four", seed=4, team=named("Fourth"), now=NEXT),
    ]
    town.take_in(now=NEXT)
    answer = town.publish(*ids, now=NEXT)
    assert answer.code == 0, answer
    return town


@pytest.fixture
def town(played: Town, tmp_path: Path) -> Town:
    return copy_town(played, tmp_path)


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
    answer = town.organiser("board", "finalists", *reversed(chosen), now=NEXT)
    assert answer.code == 0, answer
    assert town.audit()["faults"] == []
    early = town.organiser("board", "final", "--yes", now=LAST)
    assert early.code == 2
    assert "final-too-early" in early.err
    assert town.organiser("rebuild", now=AFTER).code == 0
    before = public_text(town)
    assert not any(true_score(town, name) in before for name in everybody)
    refused = town.organiser("archive", tmp_path / "early.zip", "--yes", now=AFTER)
    assert "is not opened" in refused.err
    opened = town.organiser("board", "final", "--yes", "--json", now=AFTER)
    assert opened.code == 0, opened
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
    closed = town.organiser("archive", tmp_path / "a.zip", "--yes", now=LATER)
    assert closed.code == 0, closed
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = archive.namelist()
        scores = {
            name: json.loads(archive.read(f"scores/{name}.json"))["views"] for name in everybody
        }
    assert {name for name, views in scores.items() if "final" in views} == set(chosen)
    assert "labels/final.qrels" in names
    checked = town.participant("audit", tmp_path / "a.zip", "--json", now=LATER)
    assert (checked.code, checked.json["faults"]) == (0, [])


def test_an_embargoed_finalist_stays_anonymous(town: Town) -> None:
    chosen = entries(town)[:3]
    hidden = next(n for n in chosen if "anon" in n)
    assert town.organiser("board", "finalists", *chosen, now=NEXT).code == 0
    assert town.organiser("board", "final", "--yes", now=AFTER).code == 0
    text = public_text(town)
    assert hidden in text
    assert OTHER_TEAM["team"] not in text
    telling = town.organiser("board", "final", "--why", f"{OTHER_TEAM['team']} asked", now=LATER)
    assert "telling-text" in telling.err


@pytest.mark.parametrize(
    ("choose", "told"),
    [
        (lambda ids: ids[:4], "4 finalists"),
        (lambda ids: [ids[0], ids[0]], "twice"),
        (lambda _: ["20261101-nobody"], "unknown-submission"),
    ],
)
def test_who_cannot_be_a_finalist(town: Town, choose: Any, told: str) -> None:
    answer = town.organiser("board", "finalists", *choose(entries(town)), now=NEXT)
    assert answer.code == 2
    assert told in answer.err
    assert "named-finalists" not in town.kinds()


def test_other_finalists_need_a_reason_and_the_last_list_holds(town: Town) -> None:
    one, two, three, _ = entries(town)
    assert town.organiser("board", "final", "--yes", now=AFTER).code == 2
    assert town.organiser("board", "finalists", one, two, now=NEXT).code == 0
    assert town.organiser("board", "finalists", two, one, now=NEXT).code == 0  # the same list
    assert town.kinds().count("named-finalists") == 1
    silent = town.organiser("board", "finalists", one, three, now=NEXT)
    assert "reason-missing" in silent.err
    told = town.organiser("board", "finalists", one, three, "--why", "a mistake", now=NEXT)
    assert told.code == 0, told
    answer = town.organiser("board", "final", "--yes", "--json", now=AFTER)
    assert answer.json["finalists"] == sorted([one, three], key=entries(town).index)
    assert town.audit()["faults"] == []


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
    assert town.organiser("correct", *entries(town), "--why", "wrong labels", now=AFTER).code == 0
    assert any("final were changed" in note for note in town.audit()["notes"])
    without = town.organiser("board", "final", now=LATER)
    assert "reason-missing" in without.err
    again = town.organiser("board", "final", "--why", "wrong labels", "--json", now=LATER)
    assert again.code == 0, again
    assert again.json["scores"] == {name: true_score(town, name) for name in chosen}
    assert town.kinds().count("opened-final") == 2
    audit = town.audit()
    assert (audit["ok"], audit["faults"]) == (True, [])
    closed = town.organiser("archive", tmp_path / "a.zip", "--yes", now=LATER)
    assert closed.code == 0, closed
    checked = town.participant("audit", tmp_path / "a.zip", "--json", now=LATER)
    assert (checked.code, checked.json["faults"]) == (0, [])
