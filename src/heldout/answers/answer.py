"""The answer of a service: one sentence, the evidence, its JSON document and its picture."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from itertools import islice
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heldout.answers.table import Cell, Column, Table, to_latex, to_markdown
from heldout.files.frames import make_frame

if TYPE_CHECKING:
    from heldout.charts.plot import Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a service has to say, in every form; `cli` prints it.

    Attributes:
        answer: what was asked for, in one sentence of at most 200 characters, with its full stop.
        summary: what the sentence rests on: lines of `name      what there is to say`.
        tables: the evidence, with every row.
        document: for JSON; `answer` comes into it as its first key. A table of numbers is an array
            here, and many results are a tuple of them; `to_dict` makes lists of both.
        chart: draws the picture; called only where a picture is asked for.
        title: what the picture shows, for those who do not see it.
        short: the tables for a terminal; `None` for the rows of `tables` that matter most.
    """

    answer: str
    summary: Sequence[tuple[str, str]]
    tables: Sequence[Table]
    document: Mapping[str, Any]
    chart: "Callable[[], Chart] | None" = None
    title: str = ""
    short: Sequence[Table] | None = None

    def __post_init__(self) -> None:
        # First in the document, and the sentence of this answer where `replace` has another one
        document = {"answer": "", **self.document} | {"answer": self.answer}
        object.__setattr__(self, "document", document)

    def __repr__(self) -> str:
        return "\n".join([*self._lines(), *(f"table: {table.title}" for table in self.tables)])

    def __str__(self) -> str:
        """The answer, what it rests on, and every table in Markdown."""
        lines = "\n".join(self._lines())
        return "\n\n".join([lines, *map(to_markdown, self.tables)])

    def _lines(self) -> list[str]:
        width = max((len(name) for name, _ in self.summary), default=0)
        lines = [f"{name:{width}}  {text}".rstrip() for name, text in self.summary]
        return [self.answer, *lines] if self.answer else lines

    def to_dict(self) -> dict[str, Any]:
        """The document that the command prints with `--json`."""
        document: dict[str, Any] = _with_lists(dict(self.document))
        return document

    def columns(self, table: int = 0) -> dict[str, list[Any]]:
        """The cells of a table by the names of its columns; a name that is there twice is numbered.

        Args:
            table: which one, from 0.
        """
        shown = self.tables[table]
        names: dict[str, int] = {}
        for position, column in enumerate(shown.columns):
            name = column.name
            names[f"{name} {position + 1}" if name in names or not name else name] = position
        cells = list(zip(*shown.rows, strict=True)) or [()] * len(shown.columns)
        return {
            name: [_number(cell, shown.columns[position]) for cell in cells[position]]
            for name, position in names.items()
        }

    def to_pandas(self, table: int = 0) -> Any:
        """A table as a frame of pandas; `None` is undefined."""
        return make_frame(self.columns(table), "pandas")

    def to_polars(self, table: int = 0) -> Any:
        """A table as a frame of polars; `None` is undefined."""
        return make_frame(self.columns(table), "polars")

    def to_markdown(self, table: int = 0) -> str:
        """A table in Markdown, with its notes."""
        return to_markdown(self.tables[table])

    def to_latex(self, table: int = 0) -> str:
        r"""A table in LaTeX, with its notes; needs `\usepackage{booktabs}` and `longtable`."""
        return to_latex(self.tables[table])

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the picture, as .svg or .png.

        Raises:
            InputError: code `chart-form`.
            SetupError: a PNG needs the extra `png`.
            ValueError: there is no picture of this.
        """
        from heldout.charts.plot import picture  # noqa: PLC0415 - most calls draw nothing
        from heldout.files.durable import write_whole  # noqa: PLC0415 - the same

        if self.chart is None:
            raise ValueError("there is no picture of this")
        write_whole(Path(path), picture(self.chart(), Path(path), title=self.title))

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from heldout.answers.notebook import to_html  # noqa: PLC0415 - a command prints without

        drawn = None if self.chart is None else self.chart()
        return to_html(
            answer=self.answer,
            summary=self.summary,
            tables=self.tables,
            chart=drawn,
            title=self.title,
        )


def _number(cell: Cell, column: Column) -> Cell:
    """A cell for a frame: what a column of numbers leaves empty is missing."""
    return None if cell == "" and column.form != "text" else cell


def to_document(result: object, *properties: str) -> dict[str, Any]:
    """A result as a JSON document: its fields as they are, NaN as null.

    Args:
        result: a dataclass or a struct.
        properties: names of its properties that belong to the document too.

    Returns:
        Arrays are lists, but those of two dimensions stay arrays: of a thousand systems, lists
        would take ten times their memory, before anybody asks for them.

    Raises:
        TypeError: it holds what JSON cannot.
    """
    import msgspec  # noqa: PLC0415 - most calls need no document

    given = result
    if is_dataclass(result):
        given = {one.name: getattr(result, one.name) for one in fields(result)}
    more = {name: getattr(result, name) for name in properties}
    tables = {}
    if isinstance(given, dict):
        tables = {name: one for name, one in (given | more).items() if _is_table(one)}
        given, more = (
            {name: None if name in tables else one for name, one in part.items()}
            for part in (given, more)
        )
    plain = msgspec.to_builtins(given if tables else result, enc_hook=_to_list, str_keys=True)
    plain |= msgspec.to_builtins(more, enc_hook=_to_list, str_keys=True)
    document: dict[str, Any] = _without_nan(plain)
    return document | tables


def format_json(value: Any, *, newline: str = "\n") -> Iterator[str]:
    """JSON as `json.dumps` indents it by two, in pieces: row by row, and result by result.

    Args:
        value: what JSON can hold, values that `msgspec.to_builtins` knows, and among the values of
            dictionaries tables of numbers, and sequences of results.
        newline: between the lines.

    Raises:
        ValueError: it holds NaN or an infinite number outside of a table.
    """
    import json  # noqa: PLC0415 - most calls need none

    inner = f"{newline}  "
    if _is_results(value):
        yield from _format_results(value, newline)
    elif _is_table(value):
        yield "["
        for position, row in enumerate(value):
            yield f"{',' if position else ''}{inner}"
            cells = _without_nan(row.tolist())
            text = json.dumps(cells, allow_nan=False, separators=(f",{inner}  ", ": "))
            yield f"[{inner}  {text[1:-1]}{inner}]" if cells else "[]"
        yield f"{newline}]" if len(value) else "]"
    elif _holds_late(value):
        yield "{"
        for position, (key, one) in enumerate(value.items()):
            yield f"{',' if position else ''}{inner}{json.dumps(key)}: "
            yield from format_json(one, newline=inner)
        yield f"{newline}}}"
    else:
        yield _encode(value, newline)


def _format_results(results: Sequence[Any], newline: str) -> Iterator[str]:
    """Many results as a list, some at a time: four times as fast as `json.dumps` indents one."""
    import json  # noqa: PLC0415 - most calls need none

    import msgspec  # noqa: PLC0415 - the same

    yield "["
    rows = iter(results)
    comma = ""
    while some := list(islice(rows, _AT_ONCE)):
        text = msgspec.json.encode(some, enc_hook=_to_list)  # a NaN is null
        if not text.isascii():  # what moves a cursor is escaped, as everywhere
            text = json.dumps(json.loads(text)).encode()
        lines = msgspec.json.format(text, indent=2).decode()
        yield comma + lines[1:-2].replace("\n", newline)
        comma = ","
    yield f"{newline}]"


_AT_ONCE = 128


def _encode(value: Any, newline: str) -> str:
    import json  # noqa: PLC0415 - most calls need none

    import msgspec  # noqa: PLC0415 - the same

    plain = msgspec.to_builtins(value, str_keys=True)
    return json.dumps(plain, indent=2, allow_nan=False).replace("\n", newline)


def _is_table(value: Any) -> bool:
    """Check whether it is an array of two dimensions."""
    return getattr(value, "ndim", 0) == 2  # noqa: PLR2004 - rows and columns


def _is_results(value: Any) -> bool:
    """Check whether it is a sequence of results, which have no lists yet."""
    if isinstance(value, str | list) or not isinstance(value, Sequence):
        return False
    return len(value) > 0 and is_dataclass(value[0])


def _holds_late(value: Any) -> bool:
    return isinstance(value, dict) and any(
        _is_table(one) or _is_results(one) or _holds_late(one) for one in value.values()
    )


def _with_lists(value: Any) -> Any:
    """The same with lists in place of tables and results."""
    if _is_table(value):
        return _without_nan(value.tolist())
    if _is_results(value):
        return [to_document(one) for one in value]
    if _holds_late(value):
        return {key: _with_lists(one) for key, one in value.items()}
    return value


def _to_list(value: Any) -> Any:
    """Return what is no plain value: an array, another mapping, a fraction."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Fraction):
        return str(value)
    raise TypeError(f"no JSON form of {type(value).__name__}")


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value
