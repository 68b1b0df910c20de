"""Inputs on which other tools disagree: our verdict on each, as traps.md tells it."""

import bz2
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from naive_runs import scan

from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import parse_measure
from heldout.trec.orders import Order
from heldout.trec.qrels import parse_qrels
from heldout.trec.scans import Expected, Scan

ROOT = Path(__file__).parents[2]
A_IS_RELEVANT = {"q": {"a": 1}}


def reciprocal_rank(found: Scan, query: str = "q") -> float:
    places = found.rankings[query].positions
    return 1 / int(places[0]) if len(places) else 0.0


def codes(found: Scan) -> set[str]:
    assert not found.ok
    return {problem.code for problem in found.problems if problem.severity == "error"}


def test_tie_with_the_relevant_document_first() -> None:
    data = b"q 0 a 1 1.0 t\nq 0 b 2 1.0 t\n"
    for order in ("trec", "trec9"):
        assert reciprocal_rank(scan(data, order, qrels=A_IS_RELEVANT)) == 0.5


def test_tie_with_the_relevant_document_last() -> None:
    data = b"q 0 b 1 1.0 t\nq 0 a 2 1.0 t\n"
    for order in ("trec", "trec9"):
        assert reciprocal_rank(scan(data, order, qrels=A_IS_RELEVANT)) == 0.5


def test_scores_that_differ_by_a_billionth() -> None:
    data = b"q 0 a 1 1.000000001 t\nq 0 b 2 1.0 t\n"
    assert reciprocal_rank(scan(data, "trec", qrels=A_IS_RELEVANT)) == 1.0
    assert reciprocal_rank(scan(data, "trec9", qrels=A_IS_RELEVANT)) == 0.5
    oracle: Any = pytrec_eval.RelevanceEvaluator(A_IS_RELEVANT, {"recip_rank"})
    assert oracle.evaluate({"q": {"a": 1.000000001, "b": 1.0}})["q"]["recip_rank"] == 0.5


def _mean_reciprocal_rank(
    data: bytes, qrels: dict[str, dict[str, int]]
) -> tuple[float | None, int]:
    found = scan(data, "trec", qrels=qrels, expected=Expected(queries=None))
    measure = parse_measure("RR")
    score = evaluate(found.rankings, qrels, [measure]).scores[measure]
    return score.mean, score.n


def test_query_missing_from_the_run() -> None:
    data = b"q 0 a 1 1.0 t\n"
    assert _mean_reciprocal_rank(data, {"q": {"a": 1}, "r": {"a": 1}}) == (0.5, 2)
    expected = {"q", "r"}
    strict = scan(data, "trec", expected=Expected(queries=expected, complete=True))
    assert codes(strict) == {"missing-query"}
    loose = scan(data, "trec", expected=Expected(queries=expected))
    assert loose.counts == {"missing-query": 1}
    assert list(loose.rankings) == ["q"]


def test_query_without_judgments() -> None:
    data = b"q 0 a 1 1.0 t\nr 0 a 1 1.0 t\n"
    assert _mean_reciprocal_rank(data, A_IS_RELEVANT) == (1.0, 1)
    found = scan(data, "trec", qrels=A_IS_RELEVANT)
    assert found.rankings["r"].positions.tolist() == []
    assert codes(scan(data, "trec", expected=Expected(queries=["q"]))) == {"unknown-query"}


def test_ids_are_text_and_not_numbers() -> None:
    data = b"007 0 05 1 1.0 t\n"
    found = scan(data, "trec", qrels={"7": {"5": 1}, "007": {"5": 1}})
    assert reciprocal_rank(found, "007") == 0.0
    assert codes(scan(data, "trec", expected=Expected(queries=["7"]))) == {"unknown-query"}


def test_document_twice_in_a_query() -> None:
    for data, order in DOUBLED:
        found = scan(data, order, qrels=A_IS_RELEVANT)
        assert codes(found) == {"repeated-document"}


DOUBLED: list[tuple[bytes, Order]] = [
    (b"q 0 b 1 2 t\nq 0 a 2 1 t\nq 0 b 3 0.5 t\n", "trec"),
    (b"q\tb\t1\nq\ta\t2\nq\tb\t3\n", "msmarco"),
]


def test_score_that_is_no_finite_number() -> None:
    for score in ("nan", "NaN", "inf", "-inf", "1e999"):
        data = f"q 0 a 1 {score} t\nq 0 b 2 1.0 t\n".encode()
        assert codes(scan(data, "trec")) <= {"score-nan", "score-infinite"}


def test_empty_run() -> None:
    assert codes(scan(b"", "trec")) == {"empty-file"}


def test_tag_with_a_space() -> None:
    assert codes(scan(b"q 0 a 1 1.0 my tag\n", "trec")) == {"wrong-columns"}


def test_negative_rank() -> None:
    data = b"q\ta\t-999\n"
    assert codes(scan(data, "msmarco")) == {"rank-negative"}
    noted = scan(b"q 0 a -999 1.0 t\n", "trec", qrels=A_IS_RELEVANT)
    assert (reciprocal_rank(noted), noted.counts) == (1.0, {"rank-negative": 1})


def test_rank_zero() -> None:
    assert codes(scan(b"q\ta\t0\nq\tb\t1\n", "msmarco")) == {"rank-zero"}
    noted = scan(b"q 0 b 0 2.0 t\nq 0 a 1 1.0 t\n", "trec", qrels=A_IS_RELEVANT)
    assert (reciprocal_rank(noted), noted.counts) == (0.5, {"rank-zero": 1})


def test_same_rank_twice() -> None:
    assert codes(scan(b"q\ta\t1\nq\tb\t1\n", "msmarco")) == {"rank-repeated"}
    assert scan(b"q 0 a 1 2.0 t\nq 0 b 1 1.0 t\n", "trec").counts == {"rank-repeated": 1}


def test_unfilled_rank_is_no_document() -> None:
    data = b"q\t7\t1\nq\t8\t3\n"
    found = scan(data, "msmarco", qrels={"q": {"0": 1}})
    assert codes(found) == {"rank-missing"}
    whole = scan(b"q\t7\t1\nq\t8\t2\n", "msmarco", qrels={"q": {"0": 1}})
    assert whole.rankings["q"].positions.tolist() == []


def test_grade_zero_is_a_judgment_and_not_relevance() -> None:
    qrels = parse_qrels(b"q 0 a 0\nq 0 b 1\n", path="q").judgments
    found = scan(b"q\ta\t1\nq\tb\t2\n", "msmarco", qrels=qrels)
    assert np.array_equal(found.rankings["q"].grades, [0, 1])
    measure = parse_measure("RR")
    assert evaluate(found.rankings, qrels, [measure]).scores[measure].mean == 0.5


def test_more_columns_than_the_form_has() -> None:
    assert codes(scan(b"q\ta\t1\t0.5\n", "msmarco")) == {"wrong-columns"}


def test_rank_column_that_disagrees_with_the_scores() -> None:
    data = b"q 0 a 1 0.5 t\nq 0 b 2 0.75 t\n"
    by_score = scan(data, "trec", qrels=A_IS_RELEVANT)
    assert (reciprocal_rank(by_score), by_score.counts) == (0.5, {"rank-disagrees": 1})
    by_rank = scan(data, "msmarco", qrels=A_IS_RELEVANT)
    assert (reciprocal_rank(by_rank), by_rank.counts) == (1.0, {"rank-disagrees": 1})
    (note,) = by_rank.problems
    assert note.found == "a at rank 1 for q, but place 2 by score"
    assert note.hint == "the score column is not used: ranks decide"


def test_lines_of_a_query_that_stand_apart() -> None:
    data = b"q 0 b 1 3 t\nr 0 a 1 3 t\nq 0 a 2 2 t\n"
    found = scan(data, "trec", qrels=A_IS_RELEVANT)
    assert (reciprocal_rank(found), found.rankings["q"].retrieved) == (0.5, 2)


def test_numbers_that_only_some_languages_read() -> None:
    for score in ("1_000", "0x10", "1,5", "12abc", "\uff11"):
        data = f"q 0 a 1 {score} t\n".encode()
        assert codes(scan(data, "trec")) == {"score-not-a-number"}
    for score in ("1e5", "+1.5", ".5", "5."):
        assert scan(f"q 0 a 1 {score} t\n".encode(), "trec").ok


def test_byte_order_mark() -> None:
    found = scan(b"\xef\xbb\xbfq 0 a 1 1.0 t\n", "trec", qrels=A_IS_RELEVANT)
    assert (reciprocal_rank(found), found.counts) == (1.0, {"byte-order-mark": 1})


def test_something_after_the_archive() -> None:
    data = bz2.compress(b"q\ta\t1\n")
    assert scan(data, "msmarco").ok
    assert codes(scan(data + b"q\tb\t2\n", "msmarco")) == {"trailing-bytes"}


def test_a_query_that_begins_as_an_archive_does() -> None:
    found = scan(b"BZhang\ta\t1\n", "msmarco", qrels={"BZhang": {"a": 1}})
    assert reciprocal_rank(found, "BZhang") == 1.0


def test_conflicting_judgments() -> None:
    with pytest.raises(Exception, match="conflicting-judgment"):
        parse_qrels(b"q 0 a 1\nq 0 a 0\n", path="q")


def test_every_trap_in_the_docs_names_a_test_that_exists() -> None:
    text = (ROOT / "docs" / "explanation" / "traps.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    traps = [row for row in rows if not row.startswith("| trap |")]
    named = [re.findall(r"`(test_\w+)`", row) for row in traps]
    assert len(traps) >= 20
    assert all(named)
    sources = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    defined = {
        name
        for source in sources
        for name in re.findall(r"^ *def (test_\w+)", source, re.MULTILINE)
    }
    assert {name for names in named for name in names} <= defined


def test_every_trap_tested_here_is_in_the_docs() -> None:
    text = (ROOT / "docs" / "explanation" / "traps.md").read_text()
    here = re.findall(r"^def (test_\w+)", Path(__file__).read_text(), re.MULTILINE)
    missing = [name for name in here if not name.startswith("test_every_trap") and name not in text]
    assert missing == []
