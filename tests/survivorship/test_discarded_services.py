"""What the commands for discarded queries call: it prints nothing, and returns all of it."""

from pathlib import Path

import pytest
from question_samples import annotations, answer, shown_passages

from heldout.judging.campaign.questions import TRIAGE
from heldout.survivorship.discarded.campaign import count_ranks, count_triage, draw_triage
from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.survivorship.reading.source import AnnotationSource


def test_queries_are_drawn_and_counted_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_bytes(
        shown_passages(annotations({f"q{n}": ["a", "b"] for n in range(6)}))
    )
    folder = QuestionFolder(tmp_path / "triage", TRIAGE)
    source = AnnotationSource(annotations=tmp_path / "a.jsonl")
    drawn = draw_triage(folder, source, sample=2, split="dev", seed=1)
    more = draw_triage(folder, source, sample=1, split="dev", seed=1)
    assert [drawn.document["drawn"], more.document["questions"]] == [2, 3]
    assert "heldout serve" in dict(drawn.summary)["next"]
    query = folder.questions()[0].query
    folder.write_judgments([answer(query, "no_ans")])
    counted = count_triage(folder, seed=0, level=0.9)
    assert (counted.document["all"]["total"], counted.document["all"]["open"]) == (1, 2)
    assert counted.document["level"] == 0.9
    assert capsys.readouterr() == ("", "")


def test_a_table_of_ranks_that_is_less_deep_than_asked_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ranks.tsv"
    path.write_text("scorer\tquery_id\tdoc_id\trank\na\tq1\td\t2\na\tq2\td\tNA\n")
    shallow = count_ranks(path, depth=2, level=0.95)
    assert "note" not in shallow.document
    assert shallow.document["systems"][0]["within"]["2"]["count"] == 1
    assert "No rank in" in count_ranks(path, depth=10, level=0.95).document["note"]
