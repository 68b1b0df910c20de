"""Where text goes: to a terminal through rich, to anything else as it is.

A pipe is the common case of a short command, and rich costs more to import than a small run to
score.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Protocol, TextIO

__all__ = [
    "Console",
    "Pipe",
    "answers",
    "messages",
    "prepare_streams",
    "progress",
    "waiting",
    "written_out",
]


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
    from rich.console import Console as Rich  # noqa: PLC0415 - only where a person looks

    return Rich(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=True)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error, gone at the end; nothing where nobody looks, or for one thing.

    Args:
        what: what is being done, as in `reading runs`.
        total: how many things.

    Yields:
        To be called as each is done.
    """
    if total == 1 or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console as Rich  # noqa: PLC0415 - only where a person looks
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415 - same

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Rich(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A clock on standard error while something is computed, gone at the end.

    Nothing where nobody looks.

    Args:
        what: what is being done, as in `computing`.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console as Rich  # noqa: PLC0415 - only where a person looks
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - same

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Rich(file=sys.stderr), transient=True) as clock:
        clock.add_task(what, total=None)
        yield
