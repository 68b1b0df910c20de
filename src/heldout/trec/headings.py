"""Lines that name columns, where a row is expected: the usual first lines of other tools' files."""

__all__ = ["LEFT_OUT", "names_query"]

LEFT_OUT = "the line names columns: take it out"
"""What to do about such a line."""

_NAMES = frozenset(
    ("qid", "queryid", "id", "topic", "topicid", "topicnumber", "number", "num", "questionid")
)


def names_query(cell: str | bytes) -> bool:
    """Whether a cell names a column of query ids, as in `qid` or `query-id`.

    Args:
        cell: the first of a line.
    """
    text = cell.decode(errors="replace") if isinstance(cell, bytes) else cell
    return "".join(filter(str.isalnum, text.casefold())) in _NAMES
