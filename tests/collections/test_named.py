"""Judgments and queries by what somebody names: files of every form, and names of ir_datasets."""

import gzip
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from registered import QRELS, QUERIES, SUBTOPICS, registered

from heldout.cli.program import main
from heldout.collections.named import load_qrels, load_queries
from heldout.errors import InputError, SetupError

__all__ = ["registered"]
JUDGMENTS = {"q1": {"d1": 2, "d2": 1}, "q2": {"d2": 0}}
TEXTS = {"q1": "who", "q2": "what now"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qrels", QRELS),
        ("qrels.tsv", QRELS.replace(b" ", b"\t")),
        ("qrels.gz", gzip.compress(QRELS)),
        ("test.tsv", b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t0\nq1\td2\t1\n"),
        (
            "test.tsv.gz",
            gzip.compress(b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t0\nq1\td2\t1\n"),
        ),
    ],
    ids=["TREC", "tabs", "packed", "BEIR", "BEIR packed"],
)
def test_judgments_in_every_form(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    found = load_qrels(tmp_path / name)
    assert found.judgments == JUDGMENTS
    assert load_qrels(str(tmp_path / name)).digest == found.digest


def test_judgments_in_parquet(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    rows = {"qid": ["q1", "q2", "q1"], "docno": ["d1", "d2", "d2"], "label": [2, 0, 1]}
    polars.DataFrame(rows).write_parquet(tmp_path / "qrels.parquet")
    assert load_qrels(tmp_path / "qrels.parquet").judgments == JUDGMENTS


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("queries.tsv", QUERIES.replace(b"  ", b" ")),
        ("queries.jsonl", b'{"_id": "q1", "text": "who"}\n{"_id": "q2", "text": "what now"}\n'),
        ("topics.gz", gzip.compress(QUERIES.replace(b"  ", b" "))),
        (
            "topics.xml",
            b'<t><topic number="q1">who</topic><topic number="q2">what now</topic></t>',
        ),
    ],
    ids=["tabs", "BEIR", "packed", "topics"],
)
def test_queries_in_every_form(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert load_queries(tmp_path / name).texts == TEXTS


@pytest.mark.usefixtures("registered")
def test_a_name_of_the_catalogue() -> None:
    found = load_qrels("irds:heldout-named/test")
    assert found.judgments == JUDGMENTS
    assert found.digest == load_qrels(Path("irds:heldout-named/test")).digest
    assert load_queries("irds:heldout-named/test").texts == TEXTS


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("named", "expected", "hint"),
    [
        ("irds:heldout-named/tset", "that has judgments", "did you mean irds:heldout-named/test"),
        ("irds:heldout-named/texts", "that has judgments", "such as beir/scifact/test"),
        ("irds:", "that has judgments", ""),
    ],
)
def test_an_unknown_name_is_refused_with_names_like_it(
    named: str, expected: str, hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        load_qrels(named)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("collection-name", named)
    assert expected in problem.expected
    assert hint in problem.hint


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    for load in (load_qrels, load_queries):
        with pytest.raises(SetupError, match=r"pip install 'heldout\[data\]'"):
            load("irds:vaswani")


@pytest.mark.usefixtures("registered")
def test_subtopics_of_a_file_and_of_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_bytes(b"# by hand\n" + SUBTOPICS + b"q1 2 d2 2\n")
    for named in (str(tmp_path / "qrels"), "irds:heldout-named/parts"):
        found = load_qrels(named, subtopics=True)
        assert found.subtopics == {"q1": {"1": {"d1": 1}, "2": {"d1": 0, "d2": 2}}}
        assert found.judgments == {"q1": {"d1": 1, "d2": 2}}
    with pytest.raises(InputError) as caught:
        load_qrels(tmp_path / "qrels")  # as if it had none
    assert "conflicting-judgment" in {problem.code for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b"q1 1 d1 1\nq1 d1 1\n", "wrong-columns", 2),
        (b"q1 1 d1 x\n", "grade-not-a-number", 1),
        (b"q1 1 d1 1\nq1 1 d1 2\n", "conflicting-judgment", 2),
        (b"q1 1 d\x001 1\n", "nul-byte", 1),
        (b"\n", "empty-file", None),
    ],
)
def test_subtopics_with_errors(content: bytes, code: str, line: int | None, tmp_path: Path) -> None:
    (tmp_path / "qrels").write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_qrels(tmp_path / "qrels", subtopics=True)
    assert (caught.value.problems[0].code, caught.value.problems[0].line) == (code, line)


@pytest.mark.usefixtures("registered")
def test_commands_take_names_and_beirs_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELDOUT_CACHE", "off")
    Path("a.run").write_text("q1 Q0 d2 1 2 t\nq1 Q0 d1 2 1 t\nq2 Q0 d1 1 1 t\n")
    Path("b.run").write_text("q1 Q0 d1 1 2 t\nq2 Q0 d2 1 1 t\n")
    Path("test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t0\nq1\td2\t1\n")
    Path("qrels").write_bytes(QRELS)

    def out(*arguments: str) -> str:
        done = CliRunner().invoke(main, list(arguments))
        assert done.exit_code == 0, done.output
        return done.stdout

    for command in (
        ("evaluate", "a.run", "b.run", "-m", "RR", "--csv"),
        ("compare", "a.run", "b.run", "--json"),
        ("analyse", "views", "--runs", "*.run", "-m", "RR", "-m", "AP", "--json"),
    ):
        expected = out(*command, "--qrels", "qrels")
        for named in ("irds:heldout-named/test", "test.tsv"):
            assert out(*command, "--qrels", named).replace(named, "qrels") == expected
    facet = ("--facet", "length", "--least", "2", "--queries", "irds:heldout-named/test")
    found = out("evaluate", "a.run", "--qrels", "qrels", "-m", "RR", *facet)
    assert "(2 queries)" in found
    found = out("validate", "a.run", "--queries", "irds:heldout-named/test")
    assert "2 of 2 queries" in found
