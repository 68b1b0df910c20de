"""An organiser's odd days: wrong keys, repaired labels, refusals that stay, what a commit says."""

import shutil
from pathlib import Path

import pytest
from town import OTHER_TEAM, Answer, Town, call, founding, fresh_town, git, run_text

from heldout.envelope.bundle import new_identity

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
LATER = "2026-11-03T10:00:00Z"
BASELINE = "20261101-bm25"


town = fresh_town


def recipient(town: Town) -> str:
    return (town.board / "keys" / "organisers.txt").read_text().strip()


def subject(town: Town) -> str:
    return git(town.board, "log", "-1", "--format=%s")


def two_published(town: Town) -> tuple[str, str]:
    ids = town.send("one", now=DAY), town.send("two", now=DAY, seed=2, team=OTHER_TEAM)
    town.take_in(now=DAY)
    assert town.publish(*ids, now=DAY).code == 0
    return ids


def add_baseline(town: Town, *, seed: int = 9) -> Answer:
    runs: list[str | Path] = []
    for query_set in ("dev", "eval"):
        (town.root / f"{query_set}.run").write_text(run_text(query_set, seed))
        runs += [f"--{query_set}", town.root / f"{query_set}.run"]
    told = ["--description", "BM25"]
    return town.organiser("board", "baseline", BASELINE, *runs, *told, now=DAY)


# keys


WRONG_RECIPIENTS = {
    "no key": 'recipients = ["age1zzz"]',
    "one good and one bad": 'recipients = ["{own}", "age1zzz"]',
    "a stranger's": 'recipients = ["{stranger}"]',
    "of the other form": 'envelope = "openssl"\nrecipients = ["{own}"]',
}


@pytest.mark.parametrize("wrong", WRONG_RECIPIENTS)
def test_recipients_that_would_lock_everything_are_never_logged(town: Town, wrong: str) -> None:
    own, stranger = recipient(town), new_identity("age").recipient
    line = WRONG_RECIPIENTS[wrong].format(own=own, stranger=stranger)
    if "envelope" in line:
        town.edit(('envelope = "age"\n', ""))
        town.edit(("seeds = 5\n", ""))
    town.edit((f'recipients = ["{own}"]', line))
    rows = (town.board / "board.toml").read_text().splitlines()
    lines = [i for i, row in enumerate(rows, 1) if row.startswith(("recipients", "envelope"))]
    number = lines[0] if wrong == "of the other form" else lines[-1]
    for command in (["inbox"], ["rebuild"], ["board", "describe"]):
        answer = town.organiser(*command, now=LATER)
        assert (answer.code, answer.out) == (2, ""), command
        assert f"board-spec  board.toml:{number if command != ['board', 'describe'] else ''}" in (
            answer.err
        )
    assert town.kinds() == ["opened-board"]
    assert recipient(town) == own


def test_a_second_organiser_is_added_by_rekey_alone_and_the_keys_follow(town: Town) -> None:
    own, second = recipient(town), new_identity("age").recipient
    rules = (town.board / "board.toml").read_text()
    town.edit((f'["{own}"]', f'["{own}", "{second}"]'))
    told = town.organiser("rebuild", now=LATER)
    assert (told.code, town.kinds()) == (2, ["opened-board"])
    assert "heldout board rekey" in told.err
    (town.board / "board.toml").write_text(rules)
    added = ("--add", second, "--keep-key", "--why", "a colleague", "--yes")
    assert town.organiser("board", "rekey", *added, now=LATER).code == 0
    assert town.kinds() == ["opened-board", "rekeyed"]
    assert (town.board / "keys" / "organisers.txt").read_text() == f"{own}\n{second}\n"
    assert git(town.board, "status", "--porcelain") == ""
    assert subject(town).startswith("rekeyed ")


# errata


def test_labels_that_cannot_be_used_are_never_logged(town: Town) -> None:
    one, _ = two_published(town)
    before = town.kinds()
    scores = (town.vault / "scores" / f"{one}.json").read_bytes()
    for text in ["", "rubbish\n", "other 0 d1 1\n"]:
        (town.vault / "labels" / "eval.qrels").write_text(text)
        answer = town.organiser("correct", one, "--why", "a typo", now=LATER)
        assert (answer.code, answer.out) == (2, "")
        assert town.kinds() == before
        assert (town.vault / "scores" / f"{one}.json").read_bytes() == scores


def test_an_erratum_names_the_entries_that_still_have_earlier_labels(town: Town) -> None:
    one, two = two_published(town)
    add_baseline(town)
    old = {row["id"]: row["scores"]["eval"] for row in town.rows()}
    town.repair()
    told = town.organiser("correct", one, "--why", "a wrong label", now=LATER).out
    new = {row["id"]: row["scores"]["eval"] for row in town.rows()}
    assert f"eval      {old[one]:.3f} -> {new[one]:.3f}\n" in told
    assert "as before" in told
    assert "2 entries are still scored with earlier labels" in told
    page = town.board / f"leaderboard/entries/{one}.html"
    assert "a wrong label" in page.read_text("utf-8")
    assert f'heldout correct {two} {BASELINE} --why "…"' in told
    commits = int(git(town.board, "rev-list", "--count", "HEAD"))
    rest = town.organiser("correct", two, BASELINE, "--why", "the same", now=LATER).done()
    assert "earlier labels" not in rest.out
    assert int(git(town.board, "rev-list", "--count", "HEAD")) == commits + 1
    assert town.kinds().count("corrected") == 3
    assert {row["id"] for row in town.rows() if row["scores"]["eval"] != old[row["id"]]} == set(old)
    assert town.audit()["ok"]


def test_a_submission_reviewed_before_labels_were_mended_is_scored_anew(town: Town) -> None:
    one = town.send("one", now=DAY)
    two = town.send("two", now=DAY, team=OTHER_TEAM)
    town.take_in(now=DAY)
    town.organiser("review", two, now=DAY)
    town.publish(one, now=DAY)
    town.repair()
    town.organiser("correct", one, "--why", "a wrong label", now=LATER)
    assert town.publish(two, now=LATER).code == 1, "the very run of another team needs a reason"
    told = ("publish", two, "--yes", "--why", "asked: they share the system")
    assert town.organiser(*told, now=LATER).code == 0
    scores = [row["scores"] for row in town.rows()]
    assert scores[0] == scores[1]


def test_judgments_outside_the_query_file_do_not_count(town: Town) -> None:
    one, _ = two_published(town)
    before = {row["id"]: row["scores"] for row in town.rows()}[one]
    labels = town.vault / "labels" / "eval.qrels"
    labels.write_text(labels.read_text() + "elsewhere 0 d1 1\n")
    answer = town.organiser("correct", one, "--why", "more labels", "--anyway", now=LATER).done()
    assert "n = 30 " in answer.out
    assert {row["id"]: row["scores"] for row in town.rows()}[one] == before


# what is said


def test_a_vault_without_its_keys_says_so(town: Town) -> None:
    shutil.rmtree(town.vault / "identities")
    answer = town.organiser("inbox", now=DAY)
    assert (answer.code, answer.out) == (2, "")
    assert "identities is missing; restore it from the backup" in answer.err


# founding


def test_sets_that_share_queries_and_foreign_judgments_are_warned_of_first(town: Town) -> None:
    arguments = list(founding(town.root))
    arguments[2], arguments[4] = town.root / "new", town.root / "new-vault"
    (town.root / "eval.tsv").write_text((town.root / "dev.tsv").read_text())
    (town.root / "eval.qrels").write_text("dev1 0 d1 1\nelsewhere 0 d2 1\n")
    told = call(town.root, *arguments).done()
    assert "warning   30 queries in both dev and eval" in told.out
    assert "warning   1 judgment of 1 query outside the query file of eval, ignored" in told.out
    assert told.out.index("warning") < told.out.index("|q|")
    assert told.out.count("in both dev and eval") == 1


def test_a_no_is_said(town: Town) -> None:
    one = town.send("one", now=DAY)
    town.take_in(now=DAY)
    answer = town.organiser("publish", one, now=DAY)
    assert answer.code == 1
    assert answer.err.endswith("nothing was published; --yes skips the question\n")
    assert "cannot be taken back" in answer.err
    assert "Aborted" not in answer.err
    assert "published" not in town.kinds()
    early = town.organiser("correct", one, "--why", "x", now=DAY)
    assert (early.code, "not-published" in early.err) == (2, True)
    assert "waiting: just now" in town.organiser("review", one, now=DAY).out
