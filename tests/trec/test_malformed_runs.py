"""Everything that can be wrong with a run: one row per case, with its code and line."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from naive_runs import scan

from heldout.errors import InputError
from heldout.trec.orders import Order
from heldout.trec.reading.streams import Limits
from heldout.trec.scans import Expected

ANY = Expected()


@dataclass(frozen=True, kw_only=True)
class Case:
    """A broken run, and every error code in it with its first line."""

    name: str
    data: bytes
    errors: dict[str, int | None]
    order: Order = "msmarco"
    expected: Expected = ANY
    limits: Limits = field(default_factory=Limits)


def row(columns: str) -> bytes:
    return columns.encode() + b"\n"


M = b"1\ta\t1\n1\tb\t2\n"
T = b"1 Q0 a 1 2.5 t\n1 Q0 b 2 1.5 t\n"
SCORES: list[tuple[Order, str, tuple[str, ...]]] = [
    ("trec", "score-nan", ("nan", "nan(0)")),
    ("trec9", "score-nan", ("-NaN",)),
    ("trec", "score-infinite", ("inf", "-Infinity", "1e999")),
    ("trec9", "score-infinite", ("1e39",)),
    ("trec", "score-not-a-number", ("0x10", "1_000", "1,5", "12abc", "--1", "1e", "\uff11")),
]

CASES = [
    Case(name="empty", data=b"", errors={"empty-file": None}),
    Case(name="empty lines only", data=b"\n\n", errors={"empty-file": None}),
    Case(name="comments only", data=b"# none\n", errors={"empty-file": None}),
    Case(name="two columns", data=M + b"2 a\n", errors={"wrong-columns": 3}),
    Case(name="four columns", data=M + b"2\ta\t1\t0.5\n", errors={"wrong-columns": 3}),
    Case(name="all of two columns", data=b"1 a\n2 b\n", errors={"wrong-columns": 1}),
    Case(name="forms mixed", data=M + T, errors={"wrong-columns": 1}),
    Case(name="compensating columns", data=b"1 a\n1 b 2 x\n1 c 3\n",
         errors={"wrong-columns": 1, "rank-missing": 3}),
    Case(name="trec of five", data=T + b"2 Q0 a 1 2.5\n", order="trec",
         errors={"wrong-columns": 3}),
    Case(name="tag with a space", data=T + b"2 Q0 a 1 2.5 my tag\n", order="trec",
         errors={"wrong-columns": 3}),
    Case(name="no scores", data=M, order="trec", errors={"no-scores": 1}),
    Case(name="no scores, trec9", data=M, order="trec9", errors={"no-scores": 1}),
    Case(name="two carriage returns", data=M + b"2\ta\t1\n2\tb\t9\r\r\n2\tc\t2\n2\td\t3\n2\te\t4\n",
         errors={"control-character": 4}),
    Case(name="rank 0", data=b"1\ta\t0\n1\tb\t1\n", errors={"rank-zero": 1}),
    Case(name="rank 0 beside others", data=b"1\ta\t1\n1\tb\t2\n1\tc\t0\n", errors={"rank-zero": 3}),
    Case(name="rank -1", data=b"1\ta\t1\n1\tb\t-1\n", errors={"rank-negative": 2}),
    Case(name="rank -999", data=b"1\ta\t-999\n", errors={"rank-negative": 1}),
    *(
        Case(name=f"rank {rank[:9]}", data=row(f"1\ta\t{rank}"), errors={"rank-not-a-number": 1})
        for rank in ("1.0", "+1", "1_0", "0x1", "1e0", "NaN", "\uff11", "\u0661", "9" * 6000)
    ),
    Case(name="same rank twice", data=b"1\ta\t1\n1\tb\t2\n1\tc\t2\n",
         errors={"rank-repeated": 3}),
    Case(name="gap", data=b"1\ta\t1\n1\tb\t2\n1\tc\t5\n", errors={"rank-missing": 3}),
    Case(name="great gap", data=b"1\ta\t1\n1\tb\t999999999999999999\n", errors={"rank-missing": 2}),
    Case(name="first rank 2", data=b"1\ta\t2\n1\tb\t3\n", errors={"rank-missing": 1}),
    Case(name="swapped columns", data=b"1\t1\ta\n", errors={"rank-not-a-number": 1}),
    Case(name="trec ranks by rank", data=b"1 Q0 a 0 2 t\n", errors={"rank-zero": 1}),
    Case(name="repeated document", data=M + b"1\ta\t3\n", errors={"repeated-document": 3}),
    Case(name="repeated document, trec", data=T + b"1 Q0 a 3 0.5 t\n", order="trec",
         errors={"repeated-document": 3}),
    Case(name="repeated far apart", data=T + b"2 Q0 a 3 0.5 t\n1 Q0 b 1 9 t\n", order="trec",
         errors={"repeated-document": 4}),
    *(
        Case(name=f"score {score}, {order}", data=T + row(f"1 Q0 c 3 {score} t"), order=order,
             errors={code: 3})
        for order, code, scores in SCORES
        for score in scores
    ),
    *(
        Case(name=f"bytes {wrong!r}", data=M + b"1\t" + wrong + b"\t3\n", errors={"bad-utf8": 3})
        for wrong in (b"c\xff", b"\xc0\xaf", b"\xed\xa0\x80")
    ),
    Case(name="latin-1 tag", data=T + b"2 Q0 a 1 2.5 Universit\xe9\n", order="trec",
         errors={"bad-utf8": 3}),
    Case(name="form feed", data=M + b"1\tc\x0c3\n", errors={"control-character": 3}),
    Case(name="lone carriage return", data=b"1\ta\t1\r1\tb\t2\r", errors={"control-character": 1}),
    *(
        Case(name=f"document {name!r}", data=M + row(f"1\t{name}\t3"),
             errors={"control-character": 3})
        for name in ("\x1b[2Jc", "c\x7f", "\u202ec", "c\u200b", "c\u00a0")
    ),
    Case(name="NUL", data=M + b"1\tc\0\t3\n", errors={"nul-byte": 3}),
    Case(name="UTF-16", data="1\ta\t1\n".encode("utf-16"), errors={"nul-byte": 1}),
    Case(name="unknown query", data=M + b"3\ta\t1\n", expected=Expected(queries={"1", "2"}),
         errors={"unknown-query": 3}),
    Case(name="007 is not 7", data=b"007\ta\t1\n", expected=Expected(queries={"7"}),
         errors={"unknown-query": 1}),
    Case(name="run of another set", data=b"x\ta\t1\ny\ta\t1\n",
         expected=Expected(queries={"1", "2"}, complete=True), errors={"wrong-query-set": None}),
    Case(name="missing query", data=M, expected=Expected(queries=["1", "2"], complete=True),
         errors={"missing-query": None}),
    Case(name="too few", data=M + b"2\ta\t1\n", expected=Expected(min_depth=2),
         errors={"too-few-documents": 3}),
    Case(name="too few and broken", data=M + b"2\ta\t0\n", expected=Expected(min_depth=2),
         errors={"too-few-documents": 3, "rank-zero": 3}),
    Case(name="too many", data=M + b"1\tc\t3\n2\ta\t1\n", expected=Expected(max_depth=2),
         errors={"too-many-documents": 3}),
    Case(name="more documents than any", data=M + b"1\tc\t3\n1\td\t4\n",
         limits=Limits(documents=2), errors={"too-many-documents": 3}),
    Case(name="more queries than any", data=M + b"2\ta\t1\n3\ta\t1\n", limits=Limits(queries=2),
         errors={"too-many-queries": 4}),
    Case(name="not a candidate", data=M, expected=Expected(candidates={"1": {"a"}, "2": {"b"}}),
         errors={"not-a-candidate": 2}),
    Case(name="several at once",
         data=b"1\ta\t0\n1\ta\t1\n1\tb\n2\tc\t1\n2\td\tx\n9\te\t1\n\xff\tf\t1\n",
         expected=Expected(queries=["1", "2", "3"], complete=True),
         errors={"repeated-document": 2, "rank-zero": 1, "wrong-columns": 3,
                 "rank-not-a-number": 5, "unknown-query": 6, "bad-utf8": 7, "missing-query": None}),
    Case(name="page instead of a run", data=b"<!DOCTYPE html>\n<html lang='en'>\n",
         errors={"wrong-columns": 1}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_refused_with_code_and_line(case: Case) -> None:
    found = scan(case.data, case.order, expected=case.expected, limits=case.limits)
    errors: dict[str, int | None] = {}
    for problem in found.problems:
        assert problem.path == "run"
        assert str(problem).isprintable()
        assert problem.found
        assert problem.expected
        if problem.severity == "error":
            errors.setdefault(problem.code, problem.line)
    assert errors == case.errors
    assert not found.ok
    with pytest.raises(InputError):
        _ = found.rankings
    with pytest.raises(InputError):
        _ = found.signature


APART = {
    3: b"~1\ta\t1\n~2\ta\t1\n~1\tb\t2\n",
    6: b"~1 Q0 a 1 2 t\n~2 Q0 a 1 2 t\n~1 Q0 b 2 1 t\n",
}
WHOLE = {"no-scores", "empty-file", "nul-byte", "too-many-queries", "wrong-query-set"}


@pytest.mark.parametrize(
    "case", [c for c in CASES if not WHOLE & set(c.errors)], ids=lambda case: case.name
)
def test_the_same_is_found_where_a_query_stands_apart(case: Case) -> None:
    """A run whose queries are mixed is read a second time, in another way."""
    columns = 6 if b"Q0" in case.data else 3
    given = case.expected
    expected = Expected(
        queries=None if given.queries is None else {*given.queries, "~1", "~2"},
        max_depth=given.max_depth,
        min_depth=given.min_depth,
        candidates=given.candidates,
        complete=given.complete,
    )
    data = case.data.rstrip(b"\n") + b"\n" + APART[columns]
    found = scan(data, case.order, expected=expected, limits=case.limits)
    alone = scan(case.data, case.order, expected=case.expected, limits=case.limits)
    assert found.facts.lines == case.data.rstrip(b"\n").count(b"\n") + 4
    assert [p for p in found.problems if "~" not in p.found] == list(alone.problems)


TOLERATED = [
    ("rank 0, trec", b"1 Q0 a 0 2 t\n1 Q0 b 1 1 t\n", "trec", {"rank-zero": 1}),
    ("rank -999, trec", b"1 Q0 a -999 2 t\n", "trec9", {"rank-negative": 1}),
    ("rank x, trec", b"1 Q0 a x 2 t\n", "trec", {"rank-not-a-number": 1}),
    ("same rank, trec", b"1 Q0 a 1 2 t\n1 Q0 b 1 1 t\n", "trec", {"rank-repeated": 1}),
    ("gap, trec", b"1 Q0 a 1 2 t\n1 Q0 b 3 1 t\n", "trec", {"rank-missing": 1}),
    ("ranks disagree", b"1 Q0 a 2 2 t\n1 Q0 b 1 1 t\n", "trec", {"rank-disagrees": 1}),
    ("scores disagree", b"1 Q0 a 1 1 t\n1 Q0 b 2 9 t\n", "msmarco", {"rank-disagrees": 1}),
    ("score nan, by rank", b"1 Q0 a 1 nan t\n", "msmarco", {"score-nan": 1}),
    ("score x, by rank", b"1 Q0 a 1 x t\n", "msmarco", {"score-not-a-number": 1}),
    ("score -, by rank", b"1 Q0 a 1 - t\n2 Q0 a 1 - t\n1 Q0 b 2 - t\n", "msmarco",
     {"score-not-a-number": 3}),
    ("empty line", b"1\ta\t1\n\n1\tb\t2\n", "msmarco", {"blank-line": 1}),
    ("comment", b"# mine\n1\ta\t1\n", "msmarco", {"comment-line": 1}),
    ("byte order mark", b"\xef\xbb\xbf1\ta\t1\n", "msmarco", {"byte-order-mark": 1}),
    ("no last newline", b"1\ta\t1\n1\tb\t2", "msmarco", {}),
    ("CRLF", b"1\ta\t1\r\n1\tb\t2\r\n", "msmarco", {}),
    ("blanks instead of tabs", b"1 a 1\n1  b 2\n", "msmarco", {}),
    ("blanks at the ends", b" 1 Q0 a 1 2 t \n", "trec", {}),
    ("exponents and signs", b"1 Q0 a 1 1e5 t\n1 Q0 b 2 +.5 t\n1 Q0 c 3 -7. t\n", "trec", {}),
    ("leading zeros", b"1\ta\t01\n1\tb\t002\n", "msmarco", {}),
    ("beyond float32, float64", b"1 Q0 a 1 1e39 t\n", "trec", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "order", "notes"), TOLERATED, ids=lambda v: str(v)[:24])
def test_told_and_used(name: str, data: bytes, order: Order, notes: dict[str, int]) -> None:
    found = scan(data, order)
    assert found.ok, name
    assert {problem.severity for problem in found.problems} <= {"note"}
    assert found.counts == notes
    assert set(found.rankings) == {"1"} | ({"2"} if b"\n2 " in data else set())


def test_a_missing_query_is_a_note_where_short_runs_are_allowed() -> None:
    found = scan(M, "msmarco", expected=Expected(queries=["1", "2", "3"]))
    assert found.ok
    assert found.counts == {"missing-query": 2}
    assert [problem.severity for problem in found.problems] == ["note"]


def test_all_are_counted_and_the_first_of_each_code_shown() -> None:
    data = b"".join(b"1\td%d\t0\n" % number for number in range(500)) + b"1\td0\t1\n2\ta\n"
    found = scan(data, "msmarco", limits=Limits(problems=6))
    assert found.counts["rank-zero"] == 500
    assert found.counts["repeated-document"] == 1
    assert found.counts["wrong-columns"] == 1
    assert len(found.problems) == 6
    shown = {problem.code for problem in found.problems}
    assert shown == {"rank-zero", "rank-repeated", "repeated-document", "wrong-columns"}
    assert [problem.line or 0 for problem in found.problems] == sorted(
        problem.line or 0 for problem in found.problems
    )


def test_hints_name_the_earlier_line() -> None:
    (problem,) = scan(M + b"1\ta\t3\n", "msmarco").problems
    assert problem.found == "a again for 1, first on line 1"
    assert problem.location == "run:3"


def test_hostile_bytes_never_reach_a_terminal() -> None:
    data = b"1\t\x1b]0;owned\x07\xe2\x80\xae" + b"\xff" * 10 + b"x" * 500 + b"\n"
    (problem,) = scan(data, "msmarco").problems
    assert problem.found.isascii() or "…" in problem.found
    assert str(problem).isprintable()
    assert len(problem.found) < 200


def test_every_code_is_documented() -> None:
    root = Path(__file__).parents[2]
    documented = set(
        re.findall(
            r"^\| ([a-z0-9-]+) \|", (root / "docs/reference/errors.md").read_text(), re.MULTILINE
        )
    )
    codes = {code for case in CASES for code in case.errors} | {c for t in TOLERATED for c in t[3]}
    source = "".join(path.read_text() for path in (root / "src/heldout/trec").rglob("*.py"))
    literal = set(re.findall(r"\bcode=\"([a-z0-9-]+)\"", source))
    literal |= set(
        re.findall(r"(?:of|Problem|_rank_problem|_problem|_skipped)\(\s*\"([a-z0-9-]+)\"", source)
    )
    assert codes | literal <= documented
    assert len(literal) > 20
