"""A re-ranking run keeps to the official candidates where the board gives them."""

from pathlib import Path

import pytest
from town import QUERIES, Town, found_town

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
LATER = "2026-11-03T10:00:00Z"


@pytest.fixture
def town(tmp_path: Path) -> Town:
    """A town whose dev set has official candidates: just the documents of the town's runs."""
    town = found_town(tmp_path)
    rows = [
        f"dev{number}\t{document}\ttext of the query\ttext of the document"
        for number in range(QUERIES)
        for document in (f"ddev{number}", *(f"n{number}-{i}" for i in range(4)))
    ]
    (town.board / "candidates").mkdir()
    (town.board / "candidates/dev.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    rules = town.board / "board.toml"
    text = rules.read_text("utf-8")
    labels = 'qrels = "qrels/dev.qrels"\n'
    assert labels in text
    given = 'candidates = "candidates/dev.tsv"\n'
    rules.write_text(text.replace(labels, labels + given), "utf-8")
    assert town.organiser("rebuild", now=DAY).code == 0
    town.share()
    return town


def leave_the_candidates(town: Town, submission: str) -> None:
    run = town.clone / ".git/heldout/drafts" / submission / "dev.run"
    run.write_text(run.read_text("utf-8").replace("\tn3-1\t", "\tn3-elsewhere\t"), "utf-8")


def test_a_document_of_its_own_stands_against_publication(town: Town) -> None:
    submission = town.draft("beyond", now=DAY)
    town.fill(submission, type="reranking")
    leave_the_candidates(town, submission)
    town.send_unchecked(submission, now=DAY)
    town.take_in(now=LATER)
    answer = town.organiser("review", submission, now=LATER)
    assert answer.code == 1
    assert "candidates: dev: 1 or more documents outside the official candidates" in answer.out
    assert town.publish(submission, now=LATER).code == 1
