"""Headers of runs: read as far as they are plain and small, refused with their line, written."""

import bz2
import gzip
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from naive_runs import scan

import heldout
from heldout.cli.program import main
from heldout.errors import InputError
from heldout.trec.ir_metadata import MOST_BYTES, Header, format_header, note_header, read_header
from heldout.trec.runs import scan_run

ROWS = b"1 Q0 a 1 2.5 t\n1 Q0 b 2 1.5 t\n"

# As the format's pages have it: a blank before each line, and lists of names.
FIRST = b"""\
# ir_metadata.start
# schema-version: 0.1
# run-version: 1.0
# tag: axiomatic
# research goal:
#   publication:
#     doi: https://doi.org/10.1000/182
# implementation:
#   source:
#     repository: https://example.org/code
#     commit: 0123456
# method:
#   automatic: true
#   retrieval:
#   - name: bm25
#     b: 0.4
#   - name: axiomatic reranker
#     reranks: bm25
# actor:
#   team: Lighthouse
#   name: 'A: B'
# ir_metadata.end
"""

# As a program that measures writes it: keys with blanks, amounts with units, no blank before.
SECOND = b"""\
#ir_metadata.start
#schema version: 0.2
#platform:
#  hardware:
#    cpu:
#      model: Some CPU
#resources:
#  runtime:
#    start time: "2026-11-20 10:00:00"
#    wallclock: 1200 ms
#  cpu:
#    energy used system: 36 J
#ir_metadata.end
"""


def read(data: bytes) -> Header | None:
    return read_header(BytesIO(data), path="run")


def found(data: bytes) -> Header:
    header = read(data)
    assert header is not None
    return header


def header(*lines: str) -> bytes:
    marked = ["ir_metadata.start", *lines, "ir_metadata.end"]
    return "".join(f"# {line}\n" for line in marked).encode()


def test_the_parts_of_a_header_are_read_as_texts() -> None:
    one = found(FIRST + ROWS)

    assert (one.first, one.last) == (1, 22)
    assert one.text("implementation", "source", "commit") == "0123456"
    assert one.text("method", "automatic") == "true"
    assert [stage["name"] for stage in one.get("method", "retrieval")] == [
        "bm25",
        "axiomatic reranker",
    ]
    assert one.text("actor", "name") == "A: B"
    assert one.text("actor", "mail") == one.text("tag", "deeper") == ""
    assert one.get("actor", "orcid") is None


@pytest.mark.parametrize("key", ["schema-version", "schema version", "Schema_Version"])
def test_keys_are_found_however_they_are_spelled(key: str) -> None:
    assert found(FIRST + ROWS).text(key) == "0.1"
    assert found(SECOND + ROWS).text(key) == "0.2"


def test_amounts_and_times_stay_as_they_stand() -> None:
    one = found(SECOND + ROWS)
    assert one.text("resources", "runtime", "wallclock") == "1200 ms"
    assert one.text("resources", "runtime", "start time") == "2026-11-20 10:00:00"


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, bz2.compress, zstandard.ZstdCompressor().compress],
    ids=["gzip", "bzip2", "zstd"],
)
def test_a_compressed_run_has_the_same_header(pack: Callable[[bytes], bytes]) -> None:
    assert found(pack(FIRST + ROWS)) == found(FIRST + ROWS)


def test_a_header_may_stand_below_other_comments_and_after_a_mark() -> None:
    assert found(b"\xef\xbb\xbf" + FIRST + ROWS).fields == found(FIRST + ROWS).fields
    one = found(b"# made by hand\n\n" + FIRST.replace(b"\n", b"\r\n") + ROWS)
    assert (one.first, one.last) == (3, 24)
    assert one.fields == found(FIRST + ROWS).fields


@pytest.mark.parametrize("data", [ROWS, b"# a comment\n" + ROWS, ROWS + FIRST, b"# none\n"])
def test_a_run_without_a_header_has_none(data: bytes) -> None:
    assert read(data) is None


def test_a_newer_version_is_noted_and_read() -> None:
    (note,) = found(header("schema-version: 2.0", "tag: x") + ROWS).notes
    assert (note.code, note.line, note.severity) == ("ir-metadata-version", 1, "note")
    assert found(header("schema-version: 0.2-beta", "tag: x") + ROWS).notes == ()


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (FIRST.rpartition(b"# ir_metadata.end")[0] + ROWS, "ir-metadata-end", 1),
        (b"# mine\n# ir_metadata.start\n# tag: x\n", "ir-metadata-end", 2),
        (header("tag: x") * 2, None, None),
        (b"# ir_metadata.start\n" + header("tag: x") + ROWS, "ir-metadata-end", 1),
        (header("a: 1", "caches: l1: 2, l3: 4"), "ir-metadata-yaml", 3),
        (header("a: 1", "b: 2", "a: 3"), "ir-metadata-yaml", 4),
        (header("a: &big [1, 2]", "b: *big"), "ir-metadata-yaml", 3),
        (header("only words"), "ir-metadata-yaml", 2),
        (header("[a, b]: c"), "ir-metadata-yaml", 2),
        (header("a:", "\tb: 1"), "ir-metadata-yaml", 3),
        (header("a: " + "[" * 60_000), "ir-metadata-yaml", 2),
        (header("a: \x07"), "ir-metadata-yaml", 2),
        (header(*(["a: 1"] * (MOST_BYTES // 5))), "ir-metadata-size", 1),
    ],
)
def test_a_bad_header_is_refused_with_its_line(
    data: bytes, code: str | None, line: int | None
) -> None:
    if code is None:
        assert found(data).text("tag") == "x"
        return
    with pytest.raises(InputError) as caught:
        read(data)
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == (code, line)


def test_a_tag_of_another_program_makes_no_object() -> None:
    one = found(header("a: !!python/object/apply:os.getcwd []", "b: !!int 7"))
    assert one.fields == {"a": [], "b": "7"}


def test_a_header_is_no_oddity_of_a_run() -> None:
    noted = scan(b"# mine\n" + FIRST + b"# more\n" + ROWS, None)
    assert noted.ok
    assert noted.counts == {"comment-line": 2}
    assert scan(FIRST.rpartition(b"# ir")[0] + ROWS, None).counts == {"comment-line": 21}


@pytest.mark.parametrize("rows", [ROWS, b"1\ta\t1\n1\tb\t2\n"], ids=["trec", "msmarco"])
def test_a_long_header_of_three_words_a_line_hides_no_form(rows: bytes) -> None:
    # Two in three lines of what is read first would be rows of the other form.
    words = "{}: one two three" if rows != ROWS else "{}: one"
    long = header("libraries:", *(f" {words.format(f'k{n}')}" for n in range(2500)))
    with_header, without = scan(long + rows, None), scan(rows, None)

    assert with_header.ok
    assert (with_header.form, with_header.order) == (without.form, without.order)
    assert with_header.head == without.head
    assert with_header.facts.queries == 1


def test_what_is_written_is_read_again_by_us_and_by_others() -> None:
    fields = {
        "tag": "mono",
        "actor": {"team": "Universität: A # b", "mail": "", "orcid": None},
        "method": {"automatic": True, "description": "two\nlines"},
        "data": {"training data": [{"name": "MS MARCO"}]},
        "empty": {"all": [], "of": {}},
        "commit": "0123456",
    }
    data = format_header(fields)

    assert found(data + ROWS).fields == {
        "schema-version": "0.1",
        "tag": "mono",
        "actor": {"team": "Universität: A # b"},
        "method": {"automatic": "true", "description": "two lines"},
        "data": {"training data": [{"name": "MS MARCO"}]},
        "commit": "0123456",
    }
    lines = data.decode().splitlines()
    # As repro_eval reads it: without the first and the last line, and without the marks.
    document: Any = yaml.safe_load("\n".join(line.strip("#") for line in lines[1:-1]))
    assert document["commit"] == "0123456"
    assert document["method"]["automatic"] is True
    assert scan(data + ROWS, None).problems == ()


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=40), max_size=5))
def test_whatever_text_is_written_no_reader_of_runs_stumbles(fields: dict[str, str]) -> None:
    data = format_header({"actor": fields})
    assert scan(data + ROWS, None).problems == ()
    assert found(data).last == data.count(b"\n")


def test_what_is_wrong_with_a_header_is_a_note_on_its_run(tmp_path: Path) -> None:
    for data, codes in (
        (FIRST + ROWS, []),
        (ROWS, []),
        (header("a: 1", "a: 2") + ROWS, ["ir-metadata-yaml"]),
        (header("schema-version: 7") + ROWS, ["ir-metadata-version"]),
        (FIRST.rpartition(b"# ir_metadata.end")[0] + ROWS, ["comment-line", "ir-metadata-end"]),
    ):
        run = tmp_path / "run"
        run.write_bytes(data)
        with run.open("rb") as file:
            noted = note_header(scan_run(file, path=str(run), order=None))
        assert [problem.code for problem in noted.problems] == codes
        assert list(noted.counts) == codes
        assert noted.ok


def test_validate_says_what_is_wrong_with_a_header(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(header("a: 1", "a: 2") + ROWS)
    (tmp_path / "queries").write_text("1\ttext\n")
    asked = ["validate", str(tmp_path / "run"), "--queries", str(tmp_path / "queries")]
    said = CliRunner().invoke(main, asked)
    assert said.exit_code == 0
    assert f"note   ir-metadata-yaml  {tmp_path}/run:3" in said.stdout
    found = heldout.validate(tmp_path / "run", ["1"])
    assert [(one.code, one.line) for one in found.problems] == [("ir-metadata-yaml", 3)]
