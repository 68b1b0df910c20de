"""How an analysis answers: one answer, in whichever form was asked for."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from heldout.answers.answer import Answer
from heldout.answers.table import Column, Table
from heldout.charts.axes import share_axis
from heldout.charts.plot import Plot, PlotRow
from heldout.cli.options import command
from heldout.cli.printing import Output, print_answer, reported_errors, waiting

TABLE = Table(
    title="Two systems",
    columns=(Column(name="system"), Column(name="mean", form="score"), Column(name="p", form="p")),
    rows=(("bm25", 0.25, None), ("dense", 0.5, 0.0002)),
    notes=("p: paired t test",),
    method=("Holm over 1 pair.",),
)
VALUE = {"systems": ["bm25", "dense"], "p": [None, 0.0002]}


def draw() -> Plot:
    plot = Plot(x=share_axis(), rows=[PlotRow(name="dense")])
    plot.dots([(0.5, 0, "dense")], "disc")
    return plot


def answer(*, drawn: bool = True) -> Answer:
    return Answer(
        answer="dense leads.",
        summary=[("queries", "50")],
        tables=[TABLE],
        short=[replace(TABLE, rows=TABLE.rows[:1], notes=("1 system left out here",))],
        document=VALUE,
        chart=draw if drawn else None,
        title="Means",
    )


@command
@reported_errors()
def drawing(output: Output) -> None:
    """Stands for an analysis with a picture."""
    print_answer(answer(), output)


@command
@reported_errors()
def telling(output: Output) -> None:
    """Stands for an analysis without one."""
    print_answer(answer(drawn=False), output)


def call(command: click.Command, *arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_the_terminal_says_the_answer_first_then_the_evidence() -> None:
    assert call(drawing).stdout == (
        "dense leads.\n"
        "\n"
        "queries   50\n"
        "\n"
        "Two systems\n"
        "\n"
        "system    mean  p\n"
        "bm25    0.2500  -\n"
        "          1 system left out here\n"
        "\n"
        "more      --all: all rows and tables; --explain: the method\n"
    )


def test_all_shows_every_row_and_explain_the_method() -> None:
    assert call(drawing, "--all", "--explain").stdout == (
        "dense leads.\n"
        "\n"
        "queries   50\n"
        "\n"
        "Two systems\n"
        "\n"
        "system    mean      p\n"
        "bm25    0.2500      -\n"
        "dense   0.5000  .0002\n"
        "          p: paired t test\n"
        "          Holm over 1 pair.\n"
    )


def test_json_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    result = call(drawing, "--json", "--chart", tmp_path / "a.svg")

    assert json.loads(result.stdout) == {"answer": "dense leads.", **VALUE}
    assert next(iter(json.loads(result.stdout))) == "answer"
    assert "a.svg" in result.stderr


def test_markdown_and_latex_have_the_cells_of_the_terminal() -> None:
    markdown, latex = call(drawing, "--markdown").stdout, call(drawing, "--latex").stdout
    assert markdown.startswith("dense leads.\n\n**Two systems**")
    assert "| dense | 0.5000 | .0002 |" in markdown
    assert latex.startswith("% dense leads.\n")
    assert r"dense & 0.5000 & .0002 \\" in latex


def test_markdown_has_the_method_where_it_is_asked_for_and_latex_always() -> None:
    assert "Holm" not in call(drawing, "--markdown").stdout
    assert "Holm over 1 pair." in call(drawing, "--markdown", "--explain").stdout
    assert "Holm over 1 pair." in call(drawing, "--latex").stdout


@pytest.mark.parametrize("forms", [("--json", "--latex"), ("--markdown", "--latex")], ids="+".join)
def test_two_forms_at_once_are_no_answer(forms: tuple[str, str]) -> None:
    result = call(drawing, *forms)

    assert result.exit_code == 2
    assert "exclude each other" in result.stderr


def test_a_chart_is_written_once_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"

    assert call(drawing, "--chart", path).stderr == f"chart     {path}\n"
    assert path.read_text().startswith("<svg ")
    assert call(drawing, "--chart", path).stderr == f"as before {path}\n"


def test_a_form_that_no_chart_has_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    @command
    def slow(output: Output) -> None:
        raise AssertionError(output)

    result = call(slow, "--chart", tmp_path / "a.pdf")

    assert result.exit_code == 2
    assert "a.pdf ends in none of .svg, .png" in result.stderr


def test_a_folder_that_is_not_there_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    result = call(drawing, "--chart", tmp_path / "typo" / "a.svg")

    assert result.exit_code == 2
    assert "there is no folder" in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_no_picture_none_is_made(tmp_path: Path) -> None:
    result = call(telling, "--chart", tmp_path / "a.svg")

    assert result.exit_code == 2
    assert "there is no picture of this" in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seen", [False, True])
def test_a_clock_runs_only_where_somebody_looks(
    seen: bool,  # noqa: FBT001 - a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Stream(StringIO):
        def isatty(self) -> bool:
            return seen

    stream = Stream()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with waiting("computing"):
        pass

    assert ("computing" in stream.getvalue()) == seen
