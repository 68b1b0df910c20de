"""Ways to a wrong figure that nothing would show: each is refused, or said beside the figure."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heldout.cli.program import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in; nothing is stored."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELDOUT_CACHE", "off")
    return tmp_path


def write(name: str, *lines: str) -> str:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


class TestScoresThatCollide:
    """`trec_eval` up to 9 compares float32, and most official tables were made with it."""

    def evaluate(self, *options: str) -> Result:
        write("qrels", "1 0 b 1", "2 0 b 1")
        write("a.run", "1 Q0 a 1 1.000000001 t", "1 Q0 b 2 1 t", "2 Q0 a 1 2 t", "2 Q0 b 2 1 t")
        return call("evaluate", "a.run", "--qrels", "qrels", "-m", "RR", *options)

    def test_one_line_names_the_queries_and_the_other_order(self) -> None:
        found = self.evaluate()

        assert "0.5000" in found.stdout
        assert "note   scores-collide  a.run" in found.stderr
        assert "scores of 1 query that are equal as float32" in found.stderr
        assert "--order trec9" in found.stderr

    def test_under_trec9_there_is_nothing_to_say(self) -> None:
        found = self.evaluate("--order", "trec9")

        assert "0.7500" in found.stdout
        assert "scores-collide" not in found.stderr

    def test_json_has_it_too(self) -> None:
        (run,) = json.loads(self.evaluate("--json").stdout)["runs"]
        assert [note["code"] for note in run["notes"]] == ["scores-collide"]
