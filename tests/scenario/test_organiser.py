"""An organiser's odd days: wrong keys, repaired labels, refusals that stay, what a commit says."""

import shutil
from pathlib import Path

import pytest
from lab import NEXT, OTHER_TEAM, Answer, Lab, fresh_lab, git, run_text

from heldout.envelope.bundle import new_identity

BASELINE = "20261101-bm25"


lab = fresh_lab


def recipient(lab: Lab) -> str:
    return (lab.board / "keys" / "organisers.txt").read_text().strip()


def two_published(lab: Lab) -> tuple[str, str]:
    ids = lab.send("one"), lab.send("two", seed=2, team=OTHER_TEAM)
    lab.take_in()
    assert lab.publish(*ids).code == 0
    return ids


def add_baseline(lab: Lab, *, seed: int = 9) -> Answer:
    runs: list[str | Path] = []
    for query_set in ("dev", "eval"):
        (lab.root / f"{query_set}.run").write_text(run_text(query_set, seed))
        runs += [f"--{query_set}", lab.root / f"{query_set}.run"]
    return lab.organiser("board", "baseline", BASELINE, *runs, "--description", "BM25")


# keys


WRONG_RECIPIENTS = {
    "no key": 'recipients = ["age1zzz"]',
    "one good and one bad": 'recipients = ["{own}", "age1zzz"]',
    "a stranger's": 'recipients = ["{stranger}"]',
    "of the other form": 'envelope = "openssl"\nrecipients = ["{own}"]',
}


@pytest.mark.parametrize("wrong", WRONG_RECIPIENTS)
def test_recipients_that_would_lock_everything_are_never_logged(lab: Lab, wrong: str) -> None:
    own, stranger = recipient(lab), new_identity("age").recipient
    line = WRONG_RECIPIENTS[wrong].format(own=own, stranger=stranger)
    if "envelope" in line:
        lab.edit(('envelope = "age"\n', ""))
        lab.edit(("seeds = 5\n", ""))
    lab.edit((f'recipients = ["{own}"]', line))
    rows = (lab.board / "board.toml").read_text().splitlines()
    lines = [i for i, row in enumerate(rows, 1) if row.startswith(("recipients", "envelope"))]
    number = lines[0] if wrong == "of the other form" else lines[-1]
    for command in (["inbox"], ["rebuild"], ["board", "describe"]):
        lab.organiser(*command, now=NEXT).refused(
            f"board-spec  board.toml:{number if command != ['board', 'describe'] else ''}"
        )
    assert lab.kinds() == ["opened-board"]
    assert recipient(lab) == own


def test_a_second_organiser_is_added_by_rekey_alone_and_the_keys_follow(lab: Lab) -> None:
    own, second = recipient(lab), new_identity("age").recipient
    rules = (lab.board / "board.toml").read_text()
    lab.edit((f'["{own}"]', f'["{own}", "{second}"]'))
    said = lab.organiser("rebuild", now=NEXT)
    assert (said.code, lab.kinds()) == (2, ["opened-board"])
    assert "heldout board rekey" in said.err
    (lab.board / "board.toml").write_text(rules)
    added = ("--add", second, "--keep-key", "--why", "a colleague", "--yes")
    assert lab.organiser("board", "rekey", *added, now=NEXT).code == 0
    assert lab.kinds() == ["opened-board", "rekeyed"]
    assert (lab.board / "keys" / "organisers.txt").read_text() == f"{own}\n{second}\n"
    assert git(lab.board, "status", "--porcelain") == ""
    assert git(lab.board, "log", "-1", "--format=%s").startswith("rekeyed ")


# errata


def test_labels_that_cannot_be_used_are_never_logged(lab: Lab) -> None:
    one, _ = two_published(lab)
    before = lab.kinds()
    scores = (lab.vault / "scores" / f"{one}.json").read_bytes()
    for text in ["", "rubbish\n", "other 0 d1 1\n"]:
        (lab.vault / "labels" / "eval.qrels").write_text(text)
        lab.organiser("correct", one, "--why", "a typo", now=NEXT).refused()
        assert lab.kinds() == before
        assert (lab.vault / "scores" / f"{one}.json").read_bytes() == scores


def test_an_erratum_names_the_entries_that_still_have_earlier_labels(lab: Lab) -> None:
    one, two = two_published(lab)
    add_baseline(lab)
    old = {row["id"]: row["scores"]["eval"] for row in lab.rows()}
    lab.repair()
    said = lab.organiser("correct", one, "--why", "a wrong label", now=NEXT).out
    new = {row["id"]: row["scores"]["eval"] for row in lab.rows()}
    assert f"eval      {old[one]:.3f} -> {new[one]:.3f}\n" in said
    assert "as before" in said
    assert "2 entries are still scored with earlier labels" in said
    page = lab.board / f"leaderboard/entries/{one}.html"
    assert "a wrong label" in page.read_text("utf-8")
    assert f'heldout correct {two} {BASELINE} --why "…"' in said
    commits = int(git(lab.board, "rev-list", "--count", "HEAD"))
    rest = lab.organiser("correct", two, BASELINE, "--why", "the same", now=NEXT).done()
    assert "earlier labels" not in rest.out
    assert int(git(lab.board, "rev-list", "--count", "HEAD")) == commits + 1
    assert lab.kinds().count("corrected") == 3
    assert {row["id"] for row in lab.rows() if row["scores"]["eval"] != old[row["id"]]} == set(old)
    assert lab.audit()["ok"]


def test_a_submission_reviewed_before_labels_were_mended_is_scored_anew(lab: Lab) -> None:
    one = lab.send("one")
    two = lab.receive("two", team=OTHER_TEAM)
    lab.organiser("review", two)
    lab.publish(one)
    lab.repair()
    lab.organiser("correct", one, "--why", "a wrong label", now=NEXT)
    assert lab.publish(two, now=NEXT).code == 1, "the very run of another team needs a reason"
    args = ("publish", two, "--yes", "--why", "asked: they share the system")
    assert lab.organiser(*args, now=NEXT).code == 0
    scores = [row["scores"] for row in lab.rows()]
    assert scores[0] == scores[1]


def test_judgments_outside_the_query_file_do_not_count(lab: Lab) -> None:
    one, _ = two_published(lab)
    before = {row["id"]: row["scores"] for row in lab.rows()}[one]
    labels = lab.vault / "labels" / "eval.qrels"
    labels.write_text(labels.read_text() + "elsewhere 0 d1 1\n")
    lab.organiser("correct", one, "--why", "more labels", "--anyway", now=NEXT).done("n = 30 ")
    assert {row["id"]: row["scores"] for row in lab.rows()}[one] == before


# what is said


def test_a_vault_without_its_keys_says_so(lab: Lab) -> None:
    shutil.rmtree(lab.vault / "identities")
    lab.organiser("inbox").refused("identities is missing; restore it from the backup")


# founding


def test_a_no_is_said(lab: Lab) -> None:
    one = lab.receive("one")
    answer = lab.organiser("publish", one).declined()
    assert answer.err.endswith("nothing was published; --yes skips the question\n")
    assert "cannot be taken back" in answer.err
    assert "Aborted" not in answer.err
    assert "published" not in lab.kinds()
    lab.organiser("correct", one, "--why", "x").refused("not-published")
    assert "waiting: just now" in lab.organiser("review", one).out
