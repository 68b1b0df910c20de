"""How an analysis answers: tables on the terminal, JSON, Markdown, LaTeX, a chart in a file."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from heldout.answers.answer import Answer
from heldout.answers.table import format_cells, to_latex, to_markdown
from heldout.charts.files import SUFFIXES
from heldout.cli.options import one_argument
from heldout.cli.printing import (
    Console,
    answers,
    messages,
    print_facts,
    print_json,
    print_table,
)
from heldout.errors import printable

__all__ = [
    "Output",
    "TableOutput",
    "output_options",
    "print_answer",
    "seed_option",
    "table_options",
]

seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of every draw."
)
"""`--seed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutput:
    """How a command was asked to answer that has no picture.

    Raises:
        click.UsageError: two forms at once.

    Attributes:
        as_json: one JSON document instead of tables.
        markdown: tables in Markdown.
        latex: tables in LaTeX.
    """

    as_json: bool
    markdown: bool
    latex: bool

    def __post_init__(self) -> None:
        if self.as_json + self.markdown + self.latex > 1:
            raise click.UsageError("--json, --markdown and --latex exclude each other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(TableOutput):
    """The same of a command that has one.

    Attributes:
        chart: file for the chart, `None` for none.
    """

    chart: Path | None


def _check_form(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse what cannot be written before an analysis takes its time, not after."""
    del context, option
    if path is None:
        return None
    if path.suffix.lower() not in SUFFIXES:
        raise click.BadParameter(f"{path.name} ends in none of {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {printable(str(path.parent))}")
    return path


_TABLES = (
    click.option("--json", "as_json", is_flag=True, help="One JSON document."),
    click.option("--markdown", is_flag=True, help="Tables in Markdown."),
    click.option("--latex", is_flag=True, help="Tables in LaTeX, with booktabs and longtable."),
)

table_options = one_argument("output", TableOutput, *_TABLES)
"""`--json`, `--markdown` and `--latex`, as one `output` argument."""

output_options = one_argument(
    "output",
    Output,
    *_TABLES,
    click.option(
        "--chart",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        callback=_check_form,
        help="Write the picture, as .svg or .png.",
    ),
)
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
