"""A board is closed for good: who is asked first, whose runs are opened, what must be in order."""

import hashlib
from pathlib import Path

import pytest
from ended_board import Ended, audited, copy_open, end_board
from killer import kill_often
from lab import LAST, Lab, Patch, found_lab, sign_event
from trusting import BASELINE, ONE, Files, add_baseline, forge, read_files

from heldout.board.audit.archive_audit import audit_archive
from heldout.board.log.events import Draft, format_entry, link, parse_log
from heldout.board.scores import stored


@pytest.fixture
def ended() -> Ended:
    return end_board()


@pytest.fixture
def still_open(tmp_path: Path) -> Lab:
    return copy_open(tmp_path)


def test_closing_asks_first(still_open: Lab, tmp_path: Path) -> None:
    before = still_open.kinds()
    still_open.organiser("archive", tmp_path / "a.zip", now=LAST).declined(
        "closes the board for good"
    )
    assert still_open.kinds() == before
    assert not (tmp_path / "a.zip").exists()


def test_consent_is_withdrawn_until_the_closing(still_open: Lab, tmp_path: Path) -> None:
    still_open.fill(ONE, open_runs=False)
    assert still_open.participant("amend", ONE, now=LAST).code == 0
    still_open.take_in(now=LAST)
    vouched = ("--agreed", ONE, "--why", "they said so at lunch")
    still_open.organiser("archive", tmp_path / "a.zip", *vouched, "--yes", now=LAST).refused(
        "the team's own word"
    )
    assert "closed-board" not in still_open.kinds()
    answer = still_open.organiser("archive", tmp_path / "a.zip", "--yes", "--json", now=LAST)
    assert (answer.code, answer.json["archive"]["runs"]) == (0, [BASELINE])
    assert not [name for name in read_files(tmp_path / "a.zip") if ONE in name and "runs/" in name]


def test_an_organiser_vouches_in_public_and_with_a_reason(ended: Ended, tmp_path: Path) -> None:
    closing = ended.lab.events()[-1]["public"]
    hidden = ended.ids["hidden"]
    assert (closing["agreed"], closing["why"]) == ([hidden], "their letter of 1 December")
    assert closing["open_runs"] == sorted([BASELINE, ONE, hidden])
    ended.lab.organiser("archive", tmp_path / "b.zip", "--agreed", ONE, now=LAST).refused(
        "say how you know"
    )
    ended.lab.organiser("archive", tmp_path / "b.zip", "--why", "a letter", now=LAST).refused(
        "name it with --agreed"
    )


def test_the_opened_runs_stay_those_of_the_closing(still_open: Lab, tmp_path: Path) -> None:
    assert still_open.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST).code == 0
    name = next(row["id"] for row in still_open.rows() if "anon" in row["id"])
    vouched = ("--agreed", name, "--why", "a later letter")
    still_open.organiser("archive", tmp_path / "b.zip", *vouched, now=LAST).refused(
        "named when the board was closed"
    )
    assert not (tmp_path / "b.zip").exists()


def test_a_board_that_opens_all_runs_tells_it_before(tmp_path: Path) -> None:
    lab = found_lab(tmp_path)
    lab.rule(('runs = "with-consent"', 'runs = "always"'))
    name = lab.draft("one")
    for said in (None, False):
        lab.fill(name, open_runs=said)
        lab.participant("submit", name).declined(
            "this board opens the runs of every entry at its end"
        )
    lab.fill(name, open_runs=True)
    assert lab.participant("submit", name).code == 0
    lab.take_in()
    assert lab.publish(name).code == 0
    lab.push()
    lab.fill(name, open_runs=False)
    lab.participant("amend", name, now=LAST).declined("this board opens the runs of every entry")
    lab.send_unchecked(name, now=LAST)  # by other tools: the organisers refuse it all the same
    refused = lab.organiser("inbox", now=LAST)
    assert "this board opens the runs of every entry" in refused.out + refused.err
    assert lab.kinds()[-1] == "published"
    closed = lab.organiser("archive", tmp_path / "a.zip", "--yes", "--json", now=LAST)
    assert (closed.code, closed.json["archive"]["runs"]) == (0, [name])


def test_an_organiser_who_opens_runs_against_the_team_s_word(
    ended: Ended, still_open: Lab, tmp_path: Path
) -> None:
    """By a changed program, with a sound chain: whoever audits the archive is told."""
    still_open.fill(ONE, open_runs=False)
    assert still_open.participant("amend", ONE, now=LAST).code == 0
    still_open.take_in(now=LAST)
    assert still_open.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST).code == 0
    runs = {k: v for k, v in read_files(ended.archive).items() if k.startswith(f"runs/{ONE}/")}

    def opened(files: Files) -> None:
        *before, last = parse_log(files["log.jsonl"], path="log.jsonl")
        draft = Draft(
            kind="closed-board", by="x", submission=None, public={"open_runs": [ONE]}, sealed={}
        )
        closing = link(draft, before[-1], at=last.time, new_salt=lambda: "ab" * 16, sign=sign_event)
        files["log.jsonl"] = b"".join(map(format_entry, (*before, closing)))
        files |= runs
        for name in [name for name in files if name.startswith(f"runs/{BASELINE}/")]:
            del files[name]

    found = audit_archive(forge(tmp_path / "a.zip", opened, tmp_path / "x.zip"))
    assert found.faults == (f'the runs of "{ONE}" are opened, though nobody agreed to that',)


def test_an_unsound_board_is_not_closed(still_open: Lab, tmp_path: Path) -> None:
    still_open.repair("deval3 1", "other 1")
    still_open.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST).refused("not sound")
    assert "closed-board" not in still_open.kinds()


def test_without_the_labels_of_its_day_a_score_is_not_believed(
    still_open: Lab, tmp_path: Path, monkeypatch: Patch
) -> None:
    labels = still_open.vault / "labels" / "eval.qrels"
    left = still_open.vault / "sealed" / hashlib.sha256(labels.read_bytes()).hexdigest()
    labels.write_text(labels.read_text().replace("deval3 1", "n3-0 1"))
    assert still_open.organiser("correct", ONE, "--why", "a wrong document", now=LAST).code == 0
    left.unlink()
    assert "eval.qrels of an earlier version" in still_open.audit()["notes"][0]
    with monkeypatch.context() as only_here:
        only_here.setattr(stored, "find_mixed", lambda *_: ())
        refused = still_open.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST)
    assert (refused.code, (tmp_path / "a.zip").exists()) == (2, False)
    assert f'the labels that "{BASELINE}" was scored with are not here' in refused.err
    assert ONE not in refused.err
    assert "closed-board" not in still_open.kinds()
    # Scored again, it is told by labels that are here.
    assert still_open.organiser("correct", BASELINE, "--why", "the same", now=LAST).code == 0
    hidden = next(row["id"] for row in still_open.rows() if "anon" in row["id"])
    assert still_open.organiser("correct", hidden, "--why", "the same", now=LAST).code == 0
    assert still_open.organiser("archive", tmp_path / "b.zip", "--yes", now=LAST).code == 0
    assert audited(still_open, tmp_path / "b.zip").json["faults"] == []


@pytest.mark.night
def test_killed_on_its_way_the_next_call_goes_on(tmp_path: Path) -> None:
    lab = found_lab(tmp_path)
    add_baseline(lab)
    options = lab.options(now=LAST)
    closing = ["archive", f"{lab.root}/a.zip", "--yes", *options]
    found = kill_often(lab.root, closing, [["inbox", *options], ["audit", *options]], every=9)
    assert found["faults"] == {}
    assert found["points"] >= 20


def test_a_closed_board_takes_nothing(ended: Ended, tmp_path: Path) -> None:
    lab = ended.lab.copy(tmp_path)
    before = lab.kinds()
    lab.send("late", now=LAST, seed=7)
    (said,) = lab.take_in(now=LAST)["received"]
    assert (said["kind"], said["problems"][0]["code"]) == ("refused", "board-closed")
    runs = ("--dev", lab.root / "dev.run", "--eval", lab.root / "eval.run")
    baseline = ("board", "baseline", "20261202-b", *runs, "--description", "BM25")
    assert lab.organiser(*baseline, now=LAST).code == 2
    assert lab.kinds() == before
