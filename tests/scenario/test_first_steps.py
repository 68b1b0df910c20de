"""What `heldout board new` says: its commands can be called, and nothing that was given is lost."""

import io
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from lab import Patch, call, founding, write_inputs

from heldout.board.organiser.creation import GivenSet, choose_order
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.board.rules.template import PRICES
from heldout.cli.demo import _own_command
from heldout.trec.qrels import read_qrels
from heldout.trec.queries import read_queries


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder with queries and labels, whose name a shell would divide."""
    folder = tmp_path / "an organiser's"
    folder.mkdir()
    write_inputs(folder)
    return folder


def labels(*rows: str) -> GivenSet:
    """A set of queries of which each row is the judgments `query document grade`."""
    lines = [f"{query} 0 {document} {grade}" for query, document, grade in map(str.split, rows)]
    qrels = read_qrels(io.BytesIO("\n".join(lines).encode() + b"\n"), path="q")
    texts = "".join(f"{query}\ttext\n" for query in qrels.judgments)
    queries = read_queries(io.BytesIO(texts.encode()), path="t")
    return GivenSet(queries=queries, qrels=qrels, public=False)


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        (("1 a 1", "2 b 1"), "msmarco"),
        (("1 a 1", "1 c 1", "2 b 1", "3 d 1"), "msmarco"),
        (("1 a 1", "2 b 2"), "trec"),
        (("1 a 1", "1 b 1", "2 b 1", "2 c 1", "2 d 0"), "trec"),
        (("1 a 0",), "msmarco"),
    ],
)
def test_the_order_follows_the_labels(rows: tuple[str, ...], order: str) -> None:
    """Rank columns of TREC runs begin at 0, repeat or have gaps; those of MS MARCO runs count."""
    assert choose_order([labels(*rows)])[0] == order


def test_what_was_given_is_not_asked_for_again(given: Path) -> None:
    plain = call(given, *founding(given)).out
    assert "state in board.toml where heldout is installed from: install" in plain
    assert "git remote add origin URL" in plain
    shutil.rmtree(given / "board")
    shutil.rmtree(given / "vault")
    more = ("--forge", "https://github.com/lab/kb", "--install", "https://example.org/heldout.whl")
    said = call(given, *founding(given), *more).out
    assert "installed from" not in said
    assert "git remote add origin https://github.com/lab/kb.git; git push -u origin main" in said
    assert "URL" not in said


def test_the_demo_names_a_program_that_can_be_called(monkeypatch: Patch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [".venv/bin/heldout", "demo"])
    assert _own_command() == ".venv/bin/heldout"
    monkeypatch.setattr(sys, "argv", ["/x/heldout/__main__.py", "demo"])
    assert _own_command() == f"{sys.executable} -m heldout"


def rules_of(folder: Path) -> BoardSpec:
    return parse_spec((folder / "board" / "board.toml").read_bytes())


def test_without_a_terminal_a_board_is_of_known_teams_and_the_output_says_so(given: Path) -> None:
    answer = call(given, *founding(given))
    assert rules_of(given).release.rule == "rounded"
    assert "for known teams: every score is published, rounded" in answer.out
    assert "--stake open or prize sets another rule" in answer.out


def test_on_a_terminal_the_stake_is_asked_with_the_price_of_each_choice(given: Path) -> None:
    """A terminal of its own: click's test runner has none."""
    command = [sys.executable, "-m", "heldout", *map(str, founding(given))]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdin=theirs, stdout=PIPE, stderr=PIPE, text=True)
    os.write(ours, b"open\n")
    _, said = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0, said
    assert all(f"for {price}" in said for price in PRICES.values())
    assert rules_of(given).release.rule == "clear"


def test_the_documents_are_described_where_they_are_given(given: Path) -> None:
    assert call(given, *founding(given)).code == 0
    folder = given / "documents"
    folder.mkdir()
    (folder / "documents.tsv").write_text("a\tone\nb\tone two\nc\tone two three four five six\n")
    (folder / "queries.tsv").write_text("1\tnone of the board's\n")
    args = ["board", "describe", "--board", str(given / "board"), "--collection", str(folder)]
    call(given, *args).done("collection 3 documents of 3.00 tokens on average, median 2")
    found = call(given, *args, "--json").json["collection"]
    assert found == {"documents": 3, "mean_length": 3.0, "median_length": 2.0}
    call(given, *args[:-1], str(given / "nowhere")).refused("collection-file")
    assert call(given, *args[:4], "--json").json["collection"] is None
