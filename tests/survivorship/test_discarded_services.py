"""What the commands for discarded queries call: it prints nothing, and returns all of it."""

from pathlib import Path

from heldout.survivorship.discarded.campaign import count_ranks


def test_a_table_of_ranks_that_is_less_deep_than_asked_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ranks.tsv"
    path.write_text("scorer\tquery_id\tdoc_id\trank\na\tq1\td\t2\na\tq2\td\tNA\n")
    shallow = count_ranks(path, depth=2, level=0.95)
    assert "note" not in shallow.document
    assert shallow.document["systems"][0]["within"]["2"]["count"] == 1
    assert "No rank in" in count_ranks(path, depth=10, level=0.95).document["note"]
