"""A table of where systems have their first passage that answers: scorer, query, document, rank.

The form of the published annotations of survivorship-bias, table 2: tab-separated, with a header;
a rank of `NA` says that none was found.
"""

from typing import BinaryIO

from heldout.errors import Problem, plural
from heldout.survivorship.discarded.answerable import FirstRanks
from heldout.trec.numbers import parse_integer
from heldout.trec.problems import ProblemLog, show
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.text import check_line

__all__ = ["read_first_ranks"]

_HEADER = ["scorer", "query_id", "doc_id", "rank"]
_NONE = b"NA"


def read_first_ranks(source: BinaryIO, *, path: str) -> FirstRanks:
    """Read such a table to its end: plain, gzip, bzip2 or zstd.

    Args:
        source: its bytes.
        path: its name for messages.

    Returns:
        System -> query -> rank, from 1, systems and queries in the order of the file.

    Raises:
        InputError: codes `wrong-columns`, also of the first line;
            `rank-not-a-number`: neither a rank from 1 nor NA; `repeated-query`: of one system;
            `missing-query`: a system lacks a query of another; `empty-file`, `bad-utf8`,
            `control-character`; and those of `TextReader`.
    """
    limits = Limits()
    log = ProblemLog(limits.problems)
    found: dict[str, dict[str, int | None]] = {}
    with TextReader(source, path=path, limits=limits) as reader:
        for number, line in read_lines(reader):
            problem = check_line(line.rstrip(b"\r"), path=path, number=number, prose=True)
            if problem is None and number == 1:
                problem = _check_header(line, path)
            elif problem is None:
                problem = _add(found, line, path, number)
            if problem is not None:
                log.add(problem)
    if not log.errors:
        log.extend(_missing(found, path))
    log.raise_errors()
    return found


def _check_header(line: bytes, path: str) -> Problem | None:
    if line.decode().split() == _HEADER:
        return None
    return Problem(
        code="wrong-columns",
        path=path,
        line=1,
        found=show(line),
        expected=f"a header: {', '.join(_HEADER)}, with tabs between",
    )


def _add(
    found: dict[str, dict[str, int | None]], line: bytes, path: str, number: int
) -> Problem | None:
    columns = line.rstrip(b"\r").split(b"\t")
    if len(columns) != len(_HEADER):
        return Problem(
            code="wrong-columns",
            path=path,
            line=number,
            found=f"{plural(len(columns), 'column')} in {show(line)}",
            expected="4 columns with tabs between: scorer, query, document, rank",
        )
    system, query = (column.decode() for column in columns[:2])
    rank = None if columns[3] == _NONE else parse_integer(columns[3])
    if columns[3] != _NONE and (rank is None or rank < 1):
        return Problem(
            code="rank-not-a-number",
            path=path,
            line=number,
            found=f"rank {show(columns[3])}",
            expected="a whole number from 1, or NA where no passage answers",
        )
    ranks = found.setdefault(system, {})
    if query in ranks:
        return Problem(
            code="repeated-query",
            path=path,
            line=number,
            found=f"{show(query)} of {show(system)} again",
            expected="each query of a system once",
        )
    ranks[query] = rank
    return None


def _missing(found: dict[str, dict[str, int | None]], path: str) -> list[Problem]:
    if not found:
        return [Problem(code="empty-file", path=path, found="no rank", expected="a line for each")]
    queries = {query: None for ranks in found.values() for query in ranks}
    return [
        Problem(
            code="missing-query",
            path=path,
            found=f"no rank of {show(system)} for {show(query)}",
            expected="the same queries for every system, NA where none was found",
        )
        for system, ranks in found.items()
        for query in queries
        if query not in ranks
    ]
