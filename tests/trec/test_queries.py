"""Queries and topics."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.trec.groups import read_candidates
from heldout.trec.queries import format_queries, parse_queries

IDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8
).filter(lambda text: text.isprintable() and text[0] not in "#<")
TEXTS = (
    st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=20)
    .map(str.strip)
    .filter(bool)
)


@given(st.dictionaries(IDS, TEXTS, min_size=1, max_size=5))
def test_round_trip(texts: dict[str, str]) -> None:
    queries = parse_queries(format_queries(texts), path="q")
    assert list(queries.texts.items()) == list(texts.items())


def test_blanks_at_the_ends_are_dropped() -> None:
    assert parse_queries(b"2\t Androgen  receptor define \r\n", path="q").texts == {
        "2": "Androgen  receptor define"
    }


def test_no_break_spaces_may_stand_in_a_text() -> None:
    assert parse_queries("2\ta\u00a0b\n".encode(), path="q").texts == {"2": "a\u00a0b"}


@pytest.mark.parametrize(
    "heading", ["qid\ttext", "query_id\tquery", "ID\tText", "Query ID\t Query Text ", "_id\ttitle"]
)
@pytest.mark.parametrize("before", ["", "\ufeff", "# queries\n\n"])
def test_names_of_columns_are_no_query(heading: str, before: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_queries(f"{before}{heading}\n1\twhat is it\n".encode(), path="q")
    (problem,) = caught.value.problems
    assert problem.code == "heading-line"
    assert problem.line == 1 + before.count("\n")


@pytest.mark.parametrize(
    "text", ["1\ttext\n", "qid\twhat is a qid\n", "1\ta\nid\ttext\n", "q1\tquery\n"]
)
def test_queries_about_such_words_are_queries(text: str) -> None:
    assert len(parse_queries(text.encode(), path="q").texts) == text.count("\n")


XML = b"""<?xml version="1.0"?>
<topics task="COVIDSearch 2020" batch="1">
  <topic number="1">
    <query>coronavirus
      origin</query>
    <question>what &amp; where</question>
  </topic>
  <topic number="2"><title>second</title><narrative>long</narrative></topic>
  <topic number="3">a patient &lt; 3 years</topic>
</topics>
"""
OPEN = b"""<top>

<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations.
</top>
<top>
<num> Number: 302
<title> Topic: Poliomyelitis &amp; Post-Polio
<narr>
Is it under control?
</top>
"""
CLOSED = b"""<top>
<num>1</num><title>
MEASUREMENT OF   DIELECTRIC
</title>
</top>
<top>
<num>2</num><title>
SECOND
</title>
"""


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (XML, {"1": "coronavirus origin", "2": "second", "3": "a patient < 3 years"}),
        (
            OPEN,
            {"301": "International Organized Crime", "302": "Poliomyelitis & Post-Polio"},
        ),
        (CLOSED, {"1": "MEASUREMENT OF DIELECTRIC", "2": "SECOND"}),
        (b"<xml>" + CLOSED + b"</xml>", {"1": "MEASUREMENT OF DIELECTRIC", "2": "SECOND"}),
    ],
    ids=["xml", "open", "closed", "closed-in-xml"],
)
def test_trec_topics(data: bytes, texts: dict[str, str]) -> None:
    assert parse_queries(data, path="t").texts == texts


LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE topics [<!ENTITY a "haha"><!ENTITY b "&a;&a;&a;&a;">]>
<topics><topic number="1"><query>&b;</query></topic></topics>
"""
EXTERNAL = b"""<!DOCTYPE t SYSTEM "file:///etc/passwd">
<topics><topic number="1"><query>x</query></topic></topics>"""


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"", "empty-file", None),
        (b"\n", "empty-file", None),
        (b"<topics></topics>", "empty-file", None),
        (b"1\ta\n2 b\n", "no-tab", 2),
        (b"1\ta\tb\n", "wrong-columns", 1),
        (b"\ta\n", "no-query-id", 1),
        (b"1 2\ta\n", "no-query-id", 1),
        ("1\u200b\ta\n".encode(), "no-query-id", 1),
        (b"1\t  \n", "empty-query", 1),
        (b"1\ta\n2\tb\n1\tc\n", "repeated-query", 3),
        (b"1\ta\xe9\n", "bad-utf8", 1),
        (b"1\ta\x1b[31m\n", "control-character", 1),
        (LAUGHS, "bad-topics", 2),
        (EXTERNAL, "bad-topics", 1),
        (b"<topics><topic number='1'>\n<query>x</topic></topics>", "bad-topics", 2),
        (b"<topics>\n<topic><query>x</query></topic></topics>", "no-query-id", 2),
        (b"<topics>\n<topic number='1'><query/></topic></topics>", "empty-query", 2),
        (b"<top>\n<num>1</num><title>a</title>\n</top>\n<top><num>1</num><title>a</title></top>",
         "repeated-query", 4),
        (b"<top>\n<title>a</title>\n</top>", "no-query-id", 1),
    ],
)  # fmt: skip
def test_refused(data: bytes, code: str, line: int | None) -> None:
    with pytest.raises(InputError) as caught:
        parse_queries(data, path="q")
    problem = caught.value.problems[0]
    assert (problem.code, problem.path, problem.line) == (code, "q", line)
    assert str(problem).isprintable()


def test_problems_of_all_lines_come_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_queries(b"1 a\n1\ta\n1\tb\n2\t\n", path="q")
    assert [(p.code, p.line) for p in caught.value.problems] == [
        ("no-tab", 1),
        ("repeated-query", 3),
        ("empty-query", 4),
    ]


CANDIDATES = {"1": frozenset({"a", "b"}), "2": frozenset({"a"})}


@pytest.mark.parametrize(
    "data",
    [
        b"1\ta\n1\tb\n2\ta\n1\tb\n",
        b"1 a 1\n1 b 2\n2 a 1\n",
        b"1 Q0 a 1 9.5 t\n1 Q0 b 2 9 t\n2 Q0 a 1 3 t\n",
        b"1\ta\tmy query\tits passage\n1\tb\tmy query\tnext\n2\ta\tq\tp\n",
    ],
    ids=["pairs", "msmarco", "trec", "top1000"],
)
def test_candidates(data: bytes) -> None:
    assert read_candidates(_stream(data), path="c") == CANDIDATES


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"", "empty-file", None),
        (b"#\n", "empty-file", None),
        (b"1 a\n1 a 1\n", "wrong-columns", 2),
        (b"1\n", "wrong-columns", 1),
        (b"1 \xff\n", "bad-utf8", 1),
    ],
)
def test_candidates_refused(data: bytes, code: str, line: int | None) -> None:
    with pytest.raises(InputError) as caught:
        read_candidates(_stream(data), path="c")
    assert (caught.value.problems[0].code, caught.value.problems[0].line) == (code, line)


def _stream(data: bytes) -> io.BytesIO:
    return io.BytesIO(data)
