"""Files of triples: read as they pass by, written whole or not at all, filtered by a command."""

import bz2
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from heldout.cli.program import main
from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.survivorship.training.triple_files import PlacedTriple, read_triples, write_triples
from heldout.survivorship.training.triples import Triple

_id = st.text("abc019_-", min_size=1, max_size=4)


def parse(content: bytes) -> list[PlacedTriple]:
    return list(read_triples(BytesIO(content), path="t.tsv"))


def refusal(content: bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        parse(content)
    return caught.value


@given(st.lists(st.tuples(_id, _id, _id), min_size=1))
def test_what_is_written_is_read_again(rows: list[tuple[str, str, str]]) -> None:
    triples = [Triple(QueryId(q), DocId(f"p{p}"), DocId(f"n{n}")) for q, p, n in rows]
    text = "".join("\t".join(triple) + "\n" for triple in triples).encode()
    for packed in (text, gzip.compress(text), bz2.compress(text)):
        assert parse(packed) == [PlacedTriple(n, one) for n, one in enumerate(triples, 1)]


def test_equal_triples_give_equal_files(tmp_path: Path) -> None:
    name = "t.tsv.gz"
    found = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        with write_triples(folder / name) as write:
            for number in range(50):
                write(Triple(QueryId(f"q{number}"), DocId("p"), DocId("n")))
        found.append((folder / name).read_bytes())
        assert [path.name for path in folder.iterdir()] == [name]
    assert found[0] == found[1]
    assert len(parse(found[0])) == 50


def test_a_writer_that_fails_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv.gz"
    path.write_bytes(b"before")

    class FullDiskError(OSError):
        pass

    def fail() -> None:
        with write_triples(path) as write:
            write(Triple(QueryId("q"), DocId("p"), DocId("n")))
            raise FullDiskError

    with pytest.raises(FullDiskError):
        fail()
    assert path.read_bytes() == b"before"
    assert [one.name for one in tmp_path.iterdir()] == ["t.tsv.gz"]


def test_every_wrong_line_of_a_block_is_named_with_its_place() -> None:
    error = refusal(b"q p n\nq p\nq p n more\nq same same\n")
    assert [(one.code, one.line) for one in error.problems] == [
        ("wrong-columns", 2),
        ("wrong-columns", 3),
        ("same-document", 4),
    ]


def test_triples_of_texts_get_a_hint() -> None:
    error = refusal(b"what is a file\ta file is\tno file\n")
    assert "file of ids" in error.problems[0].hint


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty-file"),
        (b"q\tp\xff\tn\n", "bad-utf8"),
        (b"q\tp\x1b[2J\tn\n", "control-character"),
        ("q\tp\u202e\tn\n".encode(), "control-character"),
        (b"q\tp\x00\tn\n", "nul-byte"),
        (gzip.compress(b"q\tp\tn\n" * 99)[:-9], "truncated-archive"),
        (b"q\t" + b"p" * (1 << 17) + b"\tn\n", "line-too-long"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_files_are_refused(content: bytes, code: str) -> None:
    assert refusal(content).problems[0].code == code


# What annotators saw: q1 has its positive at place 1, q2 and q3 at place 3, q4 nowhere.
_SHOWN = "".join(
    f"q{query} Q0 d{query}{place} {place} {10 - place} x\n"
    for query in (1, 2, 3, 4)
    for place in range(1, 11)
)
_TRIPLES = "".join(
    f"q{query}\td{query}{place}\tnegative{turn}\n"
    for turn in range(4)
    for query, place in ((2, 3), (1, 1), (3, 3))
)


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    (tmp_path / "shown.run").write_text(_SHOWN)
    (tmp_path / "qrels").write_text("q1 0 d11 1\nq2 0 d23 1\nq3 0 d33 1\nq4 0 other 1\n")
    (tmp_path / "triples.tsv").write_text(_TRIPLES)
    return ["--shown", str(tmp_path / "shown.run"), "--qrels", str(tmp_path / "qrels")]


@pytest.fixture
def call(tmp_path: Path, places: list[str]) -> Callable[..., Result]:
    def run(*options: str) -> Result:
        out = ["--out", str(tmp_path / "out")]
        return CliRunner().invoke(main, ["survive", "triples", *options, *places, *out])

    return run


_KILLED = """
import os, signal, sys
from pathlib import Path
from heldout.survivorship.training.triple_files import write_triples
with write_triples(Path(sys.argv[1])) as write:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_is_gone_after_the_next_call(
    tmp_path: Path, call: Callable[..., Result]
) -> None:
    killed = [sys.executable, "-c", _KILLED, str(tmp_path / "out" / "r7.tsv.gz")]
    assert subprocess.run(killed, check=False).returncode < 0
    (left,) = (tmp_path / "out").iterdir()
    assert call(str(tmp_path / "triples.tsv")).exit_code == 0
    assert not left.exists()


def test_the_command_writes_each_condition_and_counts_what_it_left(
    tmp_path: Path, call: Callable[..., Result]
) -> None:
    found = call(str(tmp_path / "triples.tsv"), "--control", "1", "--json")
    assert found.exit_code == 0, found.stderr
    files = {one["condition"]: one for one in json.loads(found.stdout)["files"]}
    assert {name: one["triples"] for name, one in files.items()} == {
        "r=1": 4,
        "r=5": 12,
        "all": 12,
        "all, as few as r=1": 4,
    }
    assert files["r=1"]["left_out"] == 8
    assert files["all, as few as r=1"]["queries"] == 1
    first = gzip.decompress(Path(files["r=1"]["path"]).read_bytes()).decode()
    expected = [line for line in _TRIPLES.splitlines() if line.startswith("q1")]
    assert first.splitlines() == expected


def test_a_positive_that_nobody_selected_is_named_with_its_line_or_counted(
    tmp_path: Path, call: Callable[..., Result]
) -> None:
    path = tmp_path / "odd.tsv"
    path.write_text(f"{_TRIPLES}q1\td12\tn\nq9\td1\tn\n")
    found = call(str(path))
    assert found.exit_code == 2
    assert "unknown-positive" in found.stderr
    assert "odd.tsv:13" in found.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]
    skipped = call(str(path), "--skip-unknown", "--control", "5", "--json")
    assert skipped.exit_code == 0, skipped.stderr
    assert json.loads(skipped.stdout)["unknown"] == 2


def test_a_depth_that_leaves_nothing_writes_nothing(
    tmp_path: Path, call: Callable[..., Result]
) -> None:
    path = tmp_path / "deep.tsv"
    path.write_text("q2\td23\tn\n")
    found = call(str(path), "-r", "1")
    assert found.exit_code == 2
    assert "no-triples" in found.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]


def test_triples_are_made_of_labels_and_a_run(tmp_path: Path, call: Callable[..., Result]) -> None:
    options = ("--from-run", str(tmp_path / "shown.run"), "--negatives", "2")
    found = call(*options, "--json")
    assert found.exit_code == 0, found.stderr
    made = [one.triple for one in parse((tmp_path / "out" / "all.tsv.gz").read_bytes())]
    assert len(made) == 6
    assert {one.query for one in made} == {"q1", "q2", "q3"}
    again = call(*options, "--json")
    assert again.stdout == found.stdout


def test_a_positive_under_another_id_never_becomes_a_negative(
    tmp_path: Path, call: Callable[..., Result]
) -> None:
    """A run of another collection's ids lists the selected documents, and nobody can know it."""
    path = tmp_path / "renamed.run"
    path.write_text(_SHOWN.replace(" Q0 ", " Q0 other-"))
    found = call("--from-run", str(path))
    assert found.exit_code == 2
    assert "no-common-document" in found.stderr
    assert not (tmp_path / "out").exists()


def test_a_run_of_which_few_documents_are_drawn_needs_no_selected_one_among_them(
    tmp_path: Path, call: Callable[..., Result]
) -> None:
    path = tmp_path / "other.run"
    above = "".join(f"q{query} Q0 n{query} 1 99 x\n" for query in (1, 2, 3))
    path.write_text(above + _SHOWN)
    found = call("--from-run", str(path), "--negatives-from", "1", "-r", "5")
    assert found.exit_code == 0, found.stderr
    made = [one.triple for one in parse((tmp_path / "out" / "all.tsv.gz").read_bytes())]
    assert sorted(one.negative for one in made) == ["n1", "n2", "n3"]


def test_triples_from_nowhere_or_from_two_places_are_wrong_usage(
    tmp_path: Path, call: Callable[..., Result]
) -> None:
    assert call().exit_code == 2
    both = call(str(tmp_path / "triples.tsv"), "--from-run", str(tmp_path / "shown.run"))
    assert both.exit_code == 2
