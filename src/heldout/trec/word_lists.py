"""Lists of words or phrases, one in each line, as they are used to cut a domain out of queries."""

from typing import BinaryIO

from heldout.errors import Problem
from heldout.trec.problems import ProblemLog
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.text import check_line

__all__ = ["read_word_list"]


def read_word_list(source: BinaryIO, *, path: str, limits: Limits | None = None) -> tuple[str, ...]:
    """Read a list to its end: plain, gzip, bzip2 or zstd; blank lines and `#` lines are skipped.

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read.

    Returns:
        The lines without blanks at their ends, at least one.

    Raises:
        InputError: all problems up to `limits.problems`: `empty-file`, `bad-utf8`,
            `control-character`, and those of `TextReader`.
    """
    limits = limits or Limits()
    log = ProblemLog(limits.problems)
    found = []
    with TextReader(source, path=path, limits=limits) as reader:
        for number, line in read_lines(reader):
            problem = check_line(line, path=path, number=number, prose=True)
            if problem is None:
                found.append(line.decode().strip())
            elif problem.severity == "error":
                log.add(problem)
    if not found and not log.errors:
        log.add(Problem(code="empty-file", path=path, found="no word", expected="at least one"))
    log.raise_errors()
    return tuple(found)
