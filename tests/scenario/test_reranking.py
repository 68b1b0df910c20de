"""A re-ranking run keeps to the official candidates where the board gives them."""

from pathlib import Path

import pytest
from lab import NEXT, QUERIES, Lab, found_lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab whose dev set has official candidates: just the documents of the lab's runs."""
    lab = found_lab(tmp_path)
    rows = [
        f"dev{number}\t{document}\ttext of the query\ttext of the document"
        for number in range(QUERIES)
        for document in (f"ddev{number}", *(f"n{number}-{i}" for i in range(4)))
    ]
    (lab.board / "candidates").mkdir()
    (lab.board / "candidates/dev.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    labels = 'qrels = "qrels/dev.qrels"\n'
    lab.rule((labels, f'{labels}candidates = "candidates/dev.tsv"\n'))
    return lab


def test_a_document_of_its_own_stands_against_publication(lab: Lab) -> None:
    submission = lab.draft("beyond")
    lab.fill(submission, type="reranking")
    run = lab.clone / ".git/heldout/drafts" / submission / "dev.run"
    run.write_text(run.read_text("utf-8").replace("\tn3-1\t", "\tn3-elsewhere\t"), "utf-8")
    lab.send_unchecked(submission)
    lab.take_in(now=NEXT)
    lab.organiser("review", submission, now=NEXT).declined(
        "candidates: dev: 1 or more documents outside the official candidates"
    )
    assert lab.publish(submission, now=NEXT).code == 1
