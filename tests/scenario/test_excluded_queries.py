"""The list of queries that don't count is read like any other file: what is no list moves no score.

Scores are told by it and logged for good, so a byte order mark, a comma or a comment must not
decide which queries are in a mean.
"""

from pathlib import Path

import pytest
from lab import QUERIES, Lab, found_lab

DAY = "2026-11-05T10:00:00Z"
OUT = ("eval0", "eval1", "eval2")
GOOD = "".join(f"{query}\n" for query in OUT)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, str]:
    """A board with one published entry, and its id."""
    lab = found_lab(tmp_path_factory.mktemp("masked"))
    name = lab.send("lamp", now="2026-11-03T09:00:00Z", seed=3)
    lab.take_in(now=DAY)
    assert lab.publish(name, now=DAY).code == 0
    return lab, name


def mask(lab: Lab) -> Path:
    return lab.vault / "labels" / "eval.exclude"


NO_LISTS = {
    "several on a line, with commas": (b"eval0,eval1,eval2\n", "unknown-query"),
    "several on a line": (b"eval0 eval1 eval2\n", "wrong-columns"),
    "with a tab": (b"eval0\teval1\n", "wrong-columns"),
    "another set's ids": (b"dev0\ndev1\n", "unknown-query"),
    "one id of many misspelt": (GOOD.encode() + b"xeval3\n", "unknown-query"),
    "an id twice": (b"eval0\neval0\n", "repeated-query"),
    "UTF-16": (GOOD.encode("utf-16"), ""),
    "Latin-1": (b"eval0\ncaf\xe9\n", "bad-utf8"),
    "nothing": (b"", "empty-file"),
}


@pytest.mark.parametrize("case", NO_LISTS)
def test_what_is_no_list_of_its_queries_is_refused_and_logs_nothing(
    published: tuple[Lab, str], case: str
) -> None:
    lab, name = published
    text, code = NO_LISTS[case]
    before, rows = lab.kinds(), lab.rows()
    mask(lab).write_bytes(text)
    try:
        for answer in (
            lab.organiser("correct", name, "--why", "broken queries", now=DAY),
            lab.organiser("rebuild", now=DAY),
        ):
            assert answer.code == 2
            assert code in answer.err
            assert "labels/eval.exclude" in answer.err
    finally:
        mask(lab).unlink()
    assert (lab.kinds(), lab.rows()) == (before, rows)


def test_a_mean_over_fewer_queries_is_published_again_even_with_the_same_digits(
    tmp_path: Path,
) -> None:
    """The relevant document of each query stands second, so that no mask moves the mean."""
    lab = found_lab(tmp_path)
    said: list[str | Path] = []
    for name in ("dev", "eval"):
        file = tmp_path / f"{name}.run"
        lines = [f"{name}{n}\tx{n}\t1\n{name}{n}\td{name}{n}\t2\n" for n in range(QUERIES)]
        file.write_text("".join(lines))
        said += [f"--{name}", file]
    base = ("board", "baseline", "20261105-even", *said, "--description", "Second")
    assert lab.organiser(*base, now=DAY).code == 0
    mask(lab).write_text(GOOD)
    lab.organiser("correct", "20261105-even", "--why", "broken queries", now=DAY).done()
    last = lab.events()[-1]
    assert (last["kind"], last["public"]["scores"]["eval"]) == ("corrected", "0.500")
    assert last["public"]["queries"]["eval"] == QUERIES - len(OUT)
    assert lab.organiser("archive", tmp_path / "kb.zip", "--yes", now=DAY).code == 0


def test_a_views_list_of_other_queries_is_refused(tmp_path: Path) -> None:
    lab = found_lab(tmp_path)
    view = '\n[[views]]\nname = "hard"\nset = "dev"\nmeasure = "RR@10"\nqueries = "queries/hard"\n'
    lab.edit(more=view)
    (lab.board / "queries" / "hard").write_text("dev1\neval2\n")
    lab.organiser("rebuild", now=DAY).refused("unknown-query  queries/hard")
