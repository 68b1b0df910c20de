"""What every command prints with: problems, tables, JSON, failures.

Answers go to standard output, everything else to standard error. Colour only repeats what the
words say, and is absent in a pipe. Nothing that somebody wrote reaches the terminal unchecked:
control and direction-changing characters are printed as escapes.
"""

import functools
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Protocol, TextIO

import click

from heldout import errors
from heldout.options import Opt
from heldout.progress_bar import Progress

if TYPE_CHECKING:
    import jinja2

    from heldout.answers.answer import Answer


# Where text goes: to a terminal through rich, to anything else as it is.
#
# A pipe is the common case of a short command, and rich costs more to import than a small run to
# score.


class Console(Protocol):
    """What is asked of a console; rich's own has it all."""

    @property
    def is_terminal(self) -> bool:
        """Whether a person sees it."""
        ...

    @property
    def width(self) -> int:
        """Columns."""
        ...

    def print(self, *objects: Any) -> None:
        """Print one line."""
        ...


@dataclass(frozen=True, slots=True)
class Pipe:
    """A console that no person sees: no colour, no progress, no line is broken."""

    stream: TextIO
    is_terminal: bool = False
    width: int = 80

    def print(self, *objects: Any) -> None:
        """Print one line."""
        self.stream.write(" ".join(map(str, objects)) + "\n")


def prepare_streams() -> None:
    """Let standard output and error take whatever is written.

    What their encoding lacks is written as an escape, and what was closed is thrown away: a
    command that has done its work does not end in a traceback about its words.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _nowhere())
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def written_out() -> Iterator[None]:
    """See that all of standard output was taken; what was not is given up.

    Raises:
        OSError: as by a full disk, with `standard output` as the file; nothing waits to be written
            any more.
    """
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except OSError as error:
            sys.stdout = _nowhere()  # else Python tries once more
            raise OSError(error.errno, error.strerror, "standard output") from None


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def answers() -> Console:
    """A console on standard output."""
    return _console(sys.stdout)


def messages() -> Console:
    """A console on standard error."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    # The stream is looked up at each call, so that redirection is respected.
    if not stream.isatty() and not os.environ.get("FORCE_COLOR"):
        return Pipe(stream)
    from rich.console import Console as Rich

    return Rich(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=True)


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[], None]]:
    """A bar on standard error, gone at the end; nothing where nobody looks, or for one thing.

    Args:
        what: what is being done, as in `reading runs`.
        total: how many things; `None` shows a clock.

    Yields:
        To be called as each is done.
    """
    if total == 1 or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich import progress as shown
    from rich.console import Console as Rich

    text = shown.TextColumn("{task.description}")
    columns: tuple[shown.ProgressColumn, ...] = (
        text,
        shown.BarColumn(),
        shown.MofNCompleteColumn(),
    )
    if total is None:
        columns = (shown.SpinnerColumn(), text, shown.TimeElapsedColumn())
    with shown.Progress(*columns, console=Rich(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A clock on standard error while something is computed, as `progress`."""
    with progress(what, None):
        yield


_STYLES = {"error": "bold red", "note": "yellow"}
_AT_ONCE = 1 << 16
_INDENT = 7  # under the code, after "error  "


def number(value: float | None, *, decimals: int = 4) -> str:
    """A score for display, `-` where it is undefined."""
    return "-" if value is None else f"{value:.{decimals}f}"


def count_errors(problems: Sequence[errors.Problem], counts: Mapping[str, int]) -> int:
    """Return how many errors there are, with those that are only counted.

    Args:
        problems: at least one of each code.
        counts: how many there are of each code; a code that is absent has only those shown.
    """
    shown = Counter(problem.code for problem in problems)
    notes = {problem.code for problem in problems if problem.severity == "note"}
    return sum(counts.get(code, count) for code, count in shown.items() if code not in notes)


def print_facts(console: Console, facts: Sequence[tuple[str, str]]) -> None:
    """Lines of `name      what there is to say`; an empty name goes on with the one above."""
    for name, text in facts:
        _print_hanging(console, f"{errors.printable(name):<9} ", text)


@functools.cache
def _load_sentences() -> "jinja2.Environment":
    import jinja2

    environment = jinja2.Environment(  # noqa: S701 - for a terminal, which `printable` guards
        loader=jinja2.PackageLoader("heldout.cli"),
        finalize=lambda value: errors.printable(str(value)),
        undefined=jinja2.StrictUndefined,
        line_statement_prefix="%",
        keep_trailing_newline=True,
    )
    environment.filters |= {"commas": "{:,}".format, "quote": errors.quote}
    environment.globals |= {"number": number, "plural": errors.plural, "quote": errors.quote}
    return environment


def fill_facts(name: str, /, **values: object) -> list[tuple[str, str]]:
    """Return the facts of a template of `cli/templates`, for `print_facts`.

    Args:
        name: of the template. Each line of it is a fact, as `name | what there is to say`.
        values: what it knows. No text of theirs begins a line: it is `printable`.
    """
    text = _load_sentences().get_template(f"{name}.txt").render(values)
    parts = (line.partition("|") for line in text.splitlines())
    return [(head.strip(), said.removeprefix(" ").rstrip()) for head, _, said in parts]


def print_problems(
    console: Console, problems: Sequence[errors.Problem], *, counts: Mapping[str, int] | None = None
) -> None:
    """Each problem with its location, then found, expected and hint below it.

    What is expected and the hint are not said again where they are those of the problem before.

    Args:
        console: where to.
        problems: those to show, in this order.
        counts: how many there are of each code, where not all are shown.
    """
    before: tuple[str, ...] = ()
    for problem in problems:
        head, location = f"{problem.severity:<{_INDENT}}", errors.printable(problem.location)
        rest = f"{errors.printable(problem.code)}  {location}"
        console.print(_style(console, head, rest, problem.severity))
        same = (problem.code, problem.expected, problem.hint)
        for name in ("found",) if same == before else ("found", "expected", "hint"):
            if text := getattr(problem, name):
                _print_hanging(console, f"{'':{_INDENT}}{name:<10}", text)
        before = same
    for code, count in (counts or {}).items():
        hidden = count - sum(problem.code == code for problem in problems)
        if hidden > 0:
            console.print(f"{'':{_INDENT}}and {hidden:,} more of {errors.printable(code)}")


def print_notes(
    console: Console, notes: Iterable[tuple[Sequence[errors.Problem], Mapping[str, int]]]
) -> None:
    """Print what is odd about files: problems, and how many there are of each code."""
    for problems, counts in notes:
        console.print()
        print_problems(console, problems, counts=counts)


def print_notes_last(notes: Sequence[tuple[Sequence[errors.Problem], Mapping[str, int]]]) -> None:
    """The same on standard error when the present command ends: below its answer."""
    context = click.get_current_context(silent=True)
    if context is None:
        print_notes(messages(), notes)
    else:
        context.call_on_close(lambda: print_notes(messages(), notes))


def _style(console: Console, head: str, rest: str, severity: errors.Severity) -> object:
    """Return a line whose head is coloured where a person looks."""
    if not console.is_terminal:
        return head + rest
    from rich.text import Text

    return Text.assemble((head, _STYLES[severity]), rest)


def _print_hanging(console: Console, head: str, text: str) -> None:
    """A line that goes on below its own text, on a terminal; a pipe gets it whole."""
    lines, room = [errors.printable(text)], console.width - len(head)
    if console.is_terminal and room > len(head):
        from textwrap import wrap

        lines = wrap(lines[0], room) or [""]
    for index, line in enumerate(lines):
        console.print(((head if index == 0 else " " * len(head)) + line).rstrip())


def print_table(
    console: Console,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Collection[str] = (),
) -> None:
    """Columns under their names: the first and those named in `left` to the left, others right."""
    cells = [[errors.printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    aligns = ["<" if i == 0 or name in left else ">" for i, name in enumerate(header)]
    for row in cells:
        line = "  ".join(
            f"{text:{align}{width}}" for text, align, width in zip(row, aligns, widths, strict=True)
        )
        console.print(line.rstrip())


class _Terminal(Progress):
    def note(self, name: str, text: str) -> None:
        print_facts(messages(), [(name, text)])

    def problems(self, found: Sequence[errors.Problem]) -> None:
        print_problems(messages(), found)

    def steps(self, what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
        return progress(what, total)

    def waiting(self, what: str) -> AbstractContextManager[None]:
        return waiting(what)


TERMINAL: Progress = _Terminal()
"""Reports on standard error; bars and clocks only where a person looks."""


def print_json(value: Any) -> None:
    """One JSON document on standard output: as `msgspec.to_builtins` has values of our own types.

    Raises:
        ValueError: it holds NaN or an infinite number, which JSON cannot say.
    """
    from heldout.answers.answer import format_json

    pieces: list[str] = []
    size = 0
    for piece in format_json(value):
        pieces.append(piece)
        size += len(piece)
        if size >= _AT_ONCE:
            click.echo("".join(pieces), nl=False)
            pieces.clear()
            size = 0
    click.echo("".join(pieces))


def fail(error: errors.HeldoutError, *, status: int = 2) -> NoReturn:
    """Say on standard error what went wrong, and end with this exit code."""
    console = messages()
    if isinstance(error, errors.InputError):
        print_problems(console, error.problems, counts=error.counts)
    else:
        _print_hanging(console, f"{'error':<{_INDENT}}", str(error))
    raise click.exceptions.Exit(status)


@contextmanager
def reported_errors() -> Iterator[None]:
    """Let a command end by `fail` where it raises one of our errors.

    With `--debug` on the outermost command the error goes on, with its traceback.
    """
    try:
        yield
    except errors.OptionError as error:
        raise click.UsageError(str(error)) from error
    except errors.HeldoutError as error:
        context = click.get_current_context(silent=True)
        if context is not None and context.find_root().params.get("debug"):
            raise
        fail(error, status=error.status)


# How an analysis answers: tables on the terminal, JSON, Markdown, LaTeX, a chart in a file.

Explain = Annotated[bool, Opt("Method behind the figures: tests, corrections, draws, caveats.")]
"""`--explain`."""

Every = Annotated[
    bool, Opt("All rows and tables, where a terminal shows the first.", names=("--all",))
]
"""`--all`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutput:
    """The form in which a command answers that has no picture.

    Raises:
        ValueError: two forms at once.
    """

    as_json: Annotated[bool, Opt("One JSON document.", names=("--json",))] = False
    markdown: Annotated[bool, Opt("Tables in Markdown.")] = False
    latex: Annotated[bool, Opt("Tables in LaTeX, with booktabs and longtable.")] = False
    explain: Explain = False
    every: Every = False

    def __post_init__(self) -> None:
        if self.as_json + self.markdown + self.latex > 1:
            raise ValueError("--json, --markdown and --latex exclude each other")


def _check_chart(path: Path) -> None:
    """Refuse what cannot be written before an analysis takes its time, not after."""
    from heldout.charts.plot import SUFFIXES

    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path.name} ends in none of {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {errors.printable(str(path.parent))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(TableOutput):
    """The same of a command that has one."""

    chart: Annotated[
        Path | None,
        Opt("Picture, as .svg or .png.", path="file", check=_check_chart),
    ] = None


def print_answer(answer: "Answer", output: TableOutput) -> None:
    """Write an answer in the form that was asked for, and the chart where one was.

    Raises:
        click.UsageError: a chart was asked for, but there is none of this.
        SetupError: the `site` extra is not installed.
    """
    if isinstance(output, Output) and output.chart is not None:
        _write_chart(answer, output.chart)
    if output.as_json:
        print_json(answer.document)
    elif output.markdown or output.latex:
        click.echo("\n".join(_write_all(answer, output)), nl=False)
    else:
        _print_all(answers(), answer, output)


def _write_all(answer: "Answer", output: TableOutput) -> Iterator[str]:
    """The sentence and every table, in Markdown or in LaTeX, where the sentence is a comment."""
    from heldout.answers.files import plain_markdown
    from heldout.answers.table import to_latex, to_markdown

    if output.latex:
        yield f"% {errors.printable(answer.answer)}\n"
        yield from map(to_latex, answer.tables)
        return
    yield f"{plain_markdown(answer.answer)}\n"
    for table in answer.tables:
        yield to_markdown(table, explain=output.explain)


def _write_chart(answer: "Answer", path: Path) -> None:
    from heldout.charts.plot import picture
    from heldout.files.durable import write_whole

    if answer.chart is None:
        raise click.UsageError("there is no picture of this: leave --chart away")
    written = write_whole(path, picture(answer.chart(), path, title=answer.title))
    with suppress(BrokenPipeError):
        print_facts(messages(), [("chart" if written else "as before", str(path))])


_ROWS = 40
"""Of all tables together, shared evenly, that a terminal shows where nobody asks for more."""


def _print_all(console: Console, answer: "Answer", output: TableOutput) -> None:
    from heldout.answers.table import format_cells, list_notes, shorten

    _print_hanging(console, "", answer.answer)
    if answer.summary:
        console.print()
        print_facts(console, answer.summary)
    short = answer.short
    if short is None:
        most = _ROWS // max(len(answer.tables), 1)
        short = [shorten(table, most) for table in answer.tables]
    tables = answer.tables if output.every else short
    folded = [table.rows for table in tables] != [table.rows for table in answer.tables]
    for table in tables:
        console.print(f"\n{errors.printable(table.title)}\n")
        left = [column.name for column in table.columns if column.form == "text"]
        print_table(console, [one.name for one in table.columns], format_cells(table), left=left)
        for note in list_notes(table, explain=output.explain):
            print_facts(console, [("", note)])
    more = ["--all: all rows and tables"] * folded
    more += ["--explain: the method"] * (not output.explain and any(one.method for one in tables))
    if more:
        console.print()
        print_facts(console, [("more", "; ".join(more))])
