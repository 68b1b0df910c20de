"""How an analysis answers: tables on the terminal, JSON, Markdown, LaTeX, a chart in a file."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from heldout.answers.answer import Answer
from heldout.answers.table import format_cells, to_latex, to_markdown
from heldout.charts.files import SUFFIXES
from heldout.cli.options import add_option, add_options
from heldout.cli.printing import (
    Console,
    answers,
    messages,
    print_facts,
    print_json,
    print_table,
)
from heldout.errors import printable
from heldout.options import Opt, Seed

__all__ = [
    "Output",
    "TableOutput",
    "output_options",
    "print_answer",
    "seed_option",
    "table_options",
]

seed_option = add_option("seed", Seed, 0)
"""`--seed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutput:
    """The form in which a command answers that has no picture.

    Raises:
        ValueError: two forms at once.
    """

    as_json: Annotated[bool, Opt("One JSON document.", names=("--json",))] = False
    markdown: Annotated[bool, Opt("Tables in Markdown.")] = False
    latex: Annotated[bool, Opt("Tables in LaTeX, with booktabs and longtable.")] = False

    def __post_init__(self) -> None:
        if self.as_json + self.markdown + self.latex > 1:
            raise ValueError("--json, --markdown and --latex exclude each other")


def _check_chart(path: Path) -> None:
    """Refuse what cannot be written before an analysis takes its time, not after."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path.name} ends in none of {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {printable(str(path.parent))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(TableOutput):
    """The same of a command that has one."""

    chart: Annotated[
        Path | None,
        Opt("Picture, as .svg or .png.", metavar="FILE", path="file", check=_check_chart),
    ] = None


table_options = add_options("output", TableOutput)
"""`--json`, `--markdown` and `--latex`, as one `output` argument."""

output_options = add_options("output", Output)
"""`--json`, `--markdown`, `--latex` and `--chart FILE`, as one `output` argument."""


def print_answer(answer: Answer, output: TableOutput) -> None:
    """Write an answer in the form that was asked for, and the chart where one was.

    Raises:
        click.UsageError: a chart was asked for, but there is none of this.
        SetupError: the `site` extra is not installed.
    """
    if isinstance(output, Output) and output.chart is not None:
        _write_chart(answer, output.chart)
    if output.as_json:
        print_json(answer.value)
    elif output.markdown or output.latex:
        form = to_markdown if output.markdown else to_latex
        click.echo("\n".join(form(table) for table in answer.tables), nl=False)
    else:
        _print_all(answers(), answer)


def _write_chart(answer: Answer, path: Path) -> None:
    from heldout.charts.files import picture  # noqa: PLC0415 - most calls draw nothing
    from heldout.store.files import write_whole  # noqa: PLC0415 - the same

    if answer.chart is None:
        raise click.UsageError("there is no picture of this: leave --chart away")
    written = write_whole(path, picture(answer.chart(), path, title=answer.title))
    with suppress(BrokenPipeError):
        print_facts(messages(), [("chart" if written else "as before", str(path))])


def _print_all(console: Console, answer: Answer) -> None:
    print_facts(console, answer.facts)
    for table in answer.tables:
        console.print()
        console.print(printable(table.title))
        console.print()
        print_table(
            console,
            [column.name for column in table.columns],
            format_cells(table),
            left=[column.name for column in table.columns if column.form == "text"],
        )
        for note in table.notes:
            print_facts(console, [("", note)])
