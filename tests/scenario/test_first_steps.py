"""What `heldout board new` says: its commands can be called, and nothing that was given is lost."""

import re
import shlex
from pathlib import Path

import pytest
from town import FOUNDED, call, founding, run_text, write_inputs

pytestmark = pytest.mark.slow
LATER = "2026-11-03T10:00:00Z"


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder with queries and labels, whose name a shell would divide."""
    folder = tmp_path / "an organiser's"
    folder.mkdir()
    write_inputs(folder)
    return folder


def test_the_baseline_that_is_proposed_can_be_shown(given: Path) -> None:
    answer = call(given, *founding(given))
    assert answer.code == 0, answer
    (line,) = re.findall(r"heldout (board baseline .*)", answer.out)
    assert f" {FOUNDED[:10].replace('-', '')}-bm25 " in line
    files = []
    for name in ("dev", "eval"):
        (given / name).write_text(run_text(name, 1))
        files.append(given / name)
    words = [str(files.pop(0)) if word == "FILE" else word for word in shlex.split(line)]
    shown = call(given, *words, "--now", LATER)
    assert shown.code == 0, shown
    assert files == []


def test_a_board_without_a_dev_set_is_told_of_none(given: Path) -> None:
    arguments = founding(given)
    at = arguments.index("--dev")
    answer = call(given, *arguments[:at], *arguments[at + 3 :])
    assert "--eval FILE --description" in answer.out
    assert "--dev" not in answer.out


def test_a_second_measure_is_refused_not_taken_for_the_first(given: Path) -> None:
    answer = call(given, *founding(given), "-m", "nDCG@10", "-m", "RR@10")
    assert answer.code == 2
    assert "--measure is given 2 times, and takes one value: give it once" in answer.err
    assert not (given / "board").exists()
    assert call(given, *founding(given), "-m", "nDCG@10").code == 0
    assert 'measure = "nDCG@10"' in (given / "board" / "board.toml").read_text("utf-8")


def test_the_documents_are_described_where_they_are_given(given: Path) -> None:
    assert call(given, *founding(given)).code == 0
    folder = given / "documents"
    folder.mkdir()
    (folder / "documents.tsv").write_text("a\tone\nb\tone two\nc\tone two three four five six\n")
    (folder / "queries.tsv").write_text("1\tnone of the board's\n")
    told = ["board", "describe", "--board", str(given / "board"), "--collection", str(folder)]
    answer = call(given, *told)
    assert answer.code == 0, answer
    assert "collection 3 documents of 3.00 tokens on average, median 2" in answer.out
    found = call(given, *told, "--json").json["collection"]
    assert found == {"documents": 3, "mean_length": 3.0, "median_length": 2.0}
    missing = call(given, *told[:-1], str(given / "nowhere"))
    assert (missing.code, missing.out) == (2, "")
    assert "collection-file" in missing.err
    assert call(given, *told[:4], "--json").json["collection"] is None
