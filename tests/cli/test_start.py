"""What starting a command imports: a small run is scored in little more than numpy's own start."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import heldout
from heldout.__main__ import explain_version

HEAVY = {"rich", "xml", "urllib.request", "http", "concurrent", "multiprocessing", "scipy"}


def imported(tmp_path: Path, *arguments: str, status: int = 0) -> set[str]:
    """Modules after a call."""
    code = (
        "import json, sys; from heldout.cli import main\n"
        f"try: main({list(arguments)!r}, prog_name='heldout')\n"
        f"except SystemExit as end: assert (end.code or 0) == {status}, end.code\n"
        "finally: sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("command", [(), ("board",)])
def test_help_needs_next_to_nothing(tmp_path: Path, command: tuple[str, ...]) -> None:
    assert imported(tmp_path, *command, "--help").isdisjoint(HEAVY | {"numpy", "msgspec"})


@pytest.mark.parametrize("line", ["heldout ", "heldout analyse s"])
def test_completing_a_command_needs_next_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setenv("_HELDOUT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    assert imported(tmp_path).isdisjoint(HEAVY | {"numpy", "msgspec"})


def test_an_unknown_command_needs_next_to_nothing(tmp_path: Path) -> None:
    found = imported(tmp_path, "stabilty", status=2)
    assert found.isdisjoint(HEAVY | {"numpy", "msgspec"})


def test_a_score_needs_numpy_and_little_else(tmp_path: Path) -> None:
    (tmp_path / "run.tsv").write_text("q1\ta\t1\n", encoding="utf-8")
    (tmp_path / "qrels").write_text("q1 0 a 1\n", encoding="utf-8")
    (tmp_path / "queries").write_text("q1\ttext\n", encoding="utf-8")
    found = imported(tmp_path, "evaluate", "run.tsv", "--qrels", "qrels", "-m", "RR@10")
    assert found.isdisjoint(HEAVY)
    assert imported(tmp_path, "validate", "run.tsv", "--queries", "queries").isdisjoint(HEAVY)


@pytest.mark.parametrize("command", ["analyse stability", "analyse progress", "compare"])
def test_help_of_an_analysis_needs_no_board(tmp_path: Path, command: str) -> None:
    found = imported(tmp_path, *command.split(), "--help")
    assert found.isdisjoint({"heldout.board.scores", "heldout.envelope", "cryptography"})


def test_an_older_python_reads_what_it_needs_to_say_so() -> None:
    """Up to the answer nothing is imported that only a newer Python can parse."""
    package = Path(heldout.__file__).parent
    for name in ("__init__.py", "__main__.py", "lazy.py"):
        ast.parse((package / name).read_text("utf-8"), feature_version=(3, 8))
    assert "python3.12 -m heldout" in explain_version(3, 10)
    assert explain_version(3, 11) == explain_version(*sys.version_info[:2]) == ""
