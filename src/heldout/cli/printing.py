"""What every command prints with: problems, tables, JSON, failures.

Answers go to standard output, everything else to standard error. Colour only repeats what the
words say, and is absent in a pipe. Nothing that somebody wrote reaches the terminal unchecked:
control and direction-changing characters are printed as escapes.
"""

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, NoReturn, ParamSpec, TypeVar

import click

from heldout.cli.console import Console, answers, messages, progress, waiting
from heldout.errors import (
    HeldoutError,
    InputError,
    OptionError,
    Problem,
    Severity,
    plural,
    printable,
)
from heldout.progress import Progress

__all__ = [
    "TERMINAL",
    "Console",
    "ago",
    "answers",
    "count_errors",
    "fail",
    "messages",
    "number",
    "plural",
    "print_facts",
    "print_json",
    "print_notes",
    "print_problems",
    "print_table",
    "problem_json",
    "reports_errors",
]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_STYLES = {"error": "bold red", "note": "yellow"}
_INDENT = 7  # under the code, after "error  "


def number(value: float | None, *, decimals: int = 4) -> str:
    """A score for display, `-` where it is undefined."""
    return "-" if value is None else f"{value:.{decimals}f}"


def count_errors(problems: Sequence[Problem], counts: Mapping[str, int]) -> int:
    """How many errors there are, with those that are only counted.

    Args:
        problems: at least one of each code.
        counts: how many there are of each code; a code that is absent has only those shown.
    """
    shown = Counter(problem.code for problem in problems)
    notes = {problem.code for problem in problems if problem.severity == "note"}
    return sum(counts.get(code, count) for code, count in shown.items() if code not in notes)


def ago(span: timedelta) -> str:
    """A span of time as a person says it: `3 hours`, `2 days`."""
    hours = int(span.total_seconds() // 3600)
    day = 24
    if hours >= 2 * day:
        return plural(hours // day, "day")
    return plural(hours, "hour") if hours else plural(int(span.total_seconds() // 60), "minute")


def print_facts(console: Console, facts: Sequence[tuple[str, str]]) -> None:
    """Lines of `name      what there is to say`; an empty name goes on with the one above."""
    for name, text in facts:
        _print_hanging(console, f"{printable(name):<9} ", text)


def print_problems(
    console: Console, problems: Sequence[Problem], *, counts: Mapping[str, int] | None = None
) -> None:
    """Each problem with its place, then found, expected and hint below it.

    What is expected and the hint are not said again where they are those of the problem before.

    Args:
        console: where to.
        problems: those to show, in this order.
        counts: how many there are of each code, where not all are shown.
    """
    for before, problem in zip((None, *problems), problems, strict=False):
        _print_problem(console, problem, again=before is not None and _alike(before, problem))
    for code, count in (counts or {}).items():
        hidden = count - sum(problem.code == code for problem in problems)
        if hidden > 0:
            console.print(f"{'':{_INDENT}}and {hidden:,} more of {printable(code)}")


def print_notes(
    console: Console, notes: Iterable[tuple[Sequence[Problem], Mapping[str, int]]]
) -> None:
    """What is odd about files: problems, and how many there are of each code."""
    for problems, counts in notes:
        console.print()
        print_problems(console, problems, counts=counts)


def _alike(one: Problem, other: Problem) -> bool:
    return (one.code, one.expected, one.hint) == (other.code, other.expected, other.hint)


def _print_problem(console: Console, problem: Problem, *, again: bool) -> None:
    place = f"{printable(problem.code)}  {printable(problem.place)}"
    console.print(_styled(console, f"{problem.severity:<{_INDENT}}", place, problem.severity))
    for name in ("found",) if again else ("found", "expected", "hint"):
        text = getattr(problem, name)
        if text:
            _print_hanging(console, f"{'':{_INDENT}}{name:<10}", text)


def _styled(console: Console, head: str, rest: str, severity: Severity) -> object:
    """A line whose head is coloured where a person looks."""
    if not console.is_terminal:
        return head + rest
    from rich.text import Text  # noqa: PLC0415 - only where a person looks

    return Text.assemble((head, _STYLES[severity]), rest)


def _print_hanging(console: Console, head: str, text: str) -> None:
    """A line that goes on below its own text, on a terminal; a pipe gets it whole."""
    for index, line in enumerate(_wrapped(console, printable(text), indent=len(head))):
        console.print(((head if index == 0 else " " * len(head)) + line).rstrip())


def _wrapped(console: Console, text: str, *, indent: int) -> list[str]:
    """At least one line."""
    room = console.width - indent
    if not console.is_terminal or room <= indent:
        return [text]
    from textwrap import wrap  # noqa: PLC0415 - only where a person looks

    return wrap(text, room) or [""]


def print_table(
    console: Console,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Collection[str] = (),
) -> None:
    """Columns under their names: the first and those named in `left` to the left, others right."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
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

    def problems(self, found: Sequence[Problem]) -> None:
        print_problems(messages(), found)

    def steps(self, what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
        return progress(what, total)

    def waiting(self, what: str) -> AbstractContextManager[None]:
        return waiting(what)


TERMINAL: Progress = _Terminal()
"""Reports on standard error; bars and clocks only where a person looks."""


def print_json(value: Any) -> None:
    """One JSON document on standard output.

    Raises:
        ValueError: it holds NaN or an infinite number, which JSON cannot say.
    """
    import json  # noqa: PLC0415 - most calls print tables

    click.echo(json.dumps(value, indent=2, allow_nan=False))


def problem_json(problem: Problem) -> dict[str, object]:
    """A problem as it stands in JSON output."""
    return {
        "code": problem.code,
        "severity": problem.severity,
        "path": problem.path,
        "line": problem.line,
        "found": problem.found,
        "expected": problem.expected,
        "hint": problem.hint,
    }


def fail(error: HeldoutError, *, status: int = 2) -> NoReturn:
    """Say on standard error what went wrong, and end with this exit code."""
    console = messages()
    if isinstance(error, InputError):
        print_problems(console, error.problems, counts=error.counts)
    else:
        _print_hanging(console, f"{'error':<{_INDENT}}", str(error))
    raise click.exceptions.Exit(status)


def reports_errors(command: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let a command end by `fail` where it raises one of our errors.

    With `--debug` on the outermost command the error goes on, with its traceback.
    """

    @functools.wraps(command)
    def guarded(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return command(*args, **kwargs)
        except OptionError as error:
            raise click.UsageError(str(error)) from error
        except HeldoutError as error:
            context = click.get_current_context(silent=True)
            if context is not None and context.find_root().params.get("debug"):
                raise
            fail(error)

    return guarded
