"""A table of results, written for a terminal, for Markdown and for LaTeX.

A cell that is `None` is undefined: it is shown as a dash and never as a number. A p-value is never
shown as 0.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, overload

from heldout.errors import plural, printable

Cell = str | int | float | None
"""What a cell may hold."""

Row = tuple[Cell, ...]
"""The cells of a row."""

Form = Literal["text", "count", "score", "difference", "share", "p"]
"""How a column's numbers are written."""

UNDEFINED = "-"
"""What stands for a value that is not defined."""

_SMALLEST_P = 1e-4
_LONG = 40
_ENDS = (".", "!", "?", ":", ";")
_MARKDOWN = str.maketrans({mark: f"\\{mark}" for mark in r"\`*_|<>[]"})
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
    "−": "$-$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    "τ": r"$\tau$",
    "α": r"$\alpha$",
    "★": r"$\star$",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        name: its heading.
        form: `text` to the left; `count` whole numbers; `score` and `share` with `decimals`
            digits, `difference` with its sign too; `p` as a p-value.
        decimals: digits behind the point of a score, difference or share.
    """

    name: str
    form: Form = "text"
    decimals: int = 4


def columns(form: Form, *names: str, decimals: int = 4) -> tuple[Column, ...]:
    """Columns whose numbers are written alike."""
    return tuple(Column(name=name, form=form, decimals=decimals) for name in names)


class LateRows(Sequence[Row]):
    """Rows that are made when they are asked for: half a million as tuples take 200 MB."""

    def __init__(self, count: int, make: Callable[[int], Row]) -> None:
        """Take what makes rows.

        Args:
            count: how many there are.
            make: the row at a position, from 0.
        """
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, position: int) -> Row: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, position: int | slice) -> Row | tuple[Row, ...]:
        if isinstance(position, slice):
            return tuple(self._make(one) for one in range(*position.indices(self._count)))
        return self._make(range(self._count)[position])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with all that has to be said of it.

    Attributes:
        title: what it shows, in a few words.
        columns: at least one.
        rows: each as long as `columns`; a tuple, or `LateRows`.
        notes: sentences below it, without which it is misread: what a column means, which rows
            are left out, why a value is undefined. Two lines as a rule.
        method: sentences on how it was made: tests, families, corrections, draws. A terminal
            prints them with `--explain`.
        first: positions of the rows to show where there is not room for all, those that matter most
            first; none where that is the order of the rows.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    notes: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    first: Sequence[int] = ()

    def __post_init__(self) -> None:
        for row in () if isinstance(self.rows, LateRows) else self.rows:
            if len(row) != len(self.columns):
                raise ValueError(row)
            if any(isinstance(cell, float) and not isfinite(cell) for cell in row):
                raise ValueError(f"a number is not finite: {row}")


def format_p(p: float | None) -> str:
    """A p-value with two to four digits: `.24`, `.042`, `.0003`, `<.0001`, never 0."""
    if p is None:
        return UNDEFINED
    if p < _SMALLEST_P:
        return "<.0001"
    digits = 2 if p >= 0.1 else 3 if p >= 0.01 else 4  # noqa: PLR2004 - two digits that say something
    text = f"{p:.{digits}f}"
    return text.removeprefix("0") if p < 1 else text


def format_cell(cell: Cell, column: Column) -> str:
    """A cell as text, the same in every form of the table."""
    if cell is None:
        return UNDEFINED
    if isinstance(cell, str):
        return cell
    if column.form == "p":
        return format_p(cell)
    if column.form in ("score", "share"):
        return f"{cell:z.{column.decimals}f}"
    if column.form == "difference":
        return f"{cell:+z.{column.decimals}f}"
    return f"{cell:,}"


def format_cells(table: Table) -> list[list[str]]:
    """All rows as text."""
    return [
        [format_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]


def shorten(table: Table, most: int, *, what: str = "row") -> Table:
    """Return the rows of a long table that matter most, with a note of how many are left out.

    Args:
        table: returned as it is where it has no more rows.
        most: rows that are left; those that differ in their first cell alone are one.
        what: what a row is of, as `system`.
    """
    count = len(table.rows)
    if count <= most:
        return table
    groups: dict[Row, list[Cell]] = {}
    for position in table.first or range(count):
        name, *others = table.rows[position]
        if len(groups) == most and tuple(others) not in groups:
            break
        groups.setdefault(tuple(others), []).append(name)
    rows = tuple(
        (names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more", *others)
        for others, names in groups.items()
    )
    left = count - sum(map(len, groups.values()))
    said = f"{plural(left, f'more {what} is', f'more {what}s are')} left out here"
    return replace(table, rows=rows, notes=(said, *table.notes) if left else table.notes, first=())


def ends_first(values: Sequence[float | None]) -> list[int]:
    """Return the positions of values: the largest, the smallest, the next largest and so on.

    Args:
        values: undefined ones come last.
    """
    known = [position for position, value in enumerate(values) if value is not None]
    known.sort(key=lambda position: -(values[position] or 0.0))
    turns = [one for pair in zip(known, reversed(known), strict=True) for one in pair]
    undefined = [position for position, value in enumerate(values) if value is None]
    return [*turns[: len(known)], *undefined]


def list_notes(table: Table, *, explain: bool = True) -> tuple[str, ...]:
    """The sentences below a table.

    Args:
        table: whose.
        explain: whether those on the method too.
    """
    return (*table.notes, *(table.method if explain else ()))


def to_markdown(table: Table, *, explain: bool = True) -> str:
    """A Markdown table under its title in bold, its notes below.

    Args:
        table: what is written.
        explain: whether the notes on the method are too.
    """
    aligns = [":--" if column.form == "text" else "--:" for column in table.columns]
    names = [column.name for column in table.columns]
    lines = [names, aligns, *format_cells(table)]
    escaped = [
        line if line is aligns else [_flat(cell).translate(_MARKDOWN) for cell in line]
        for line in lines
    ]
    body = "\n".join(f"| {' | '.join(line)} |" for line in escaped)
    notes = "".join(
        f"\n{_flat(note).translate(_MARKDOWN)}\n" for note in list_notes(table, explain=explain)
    )
    return f"**{_flat(table.title).translate(_MARKDOWN)}**\n\n{body}\n{notes}"


def to_latex(table: Table) -> str:
    r"""A table with `booktabs` rules, all its notes below, each a paragraph with a full stop.

    One of more than 40 rows is a `longtable`, which goes on over the pages. Needs
    `\usepackage{booktabs}` and `\usepackage{longtable}`.
    """
    aligns = "".join("l" if column.form == "text" else "r" for column in table.columns)
    head = " & ".join(_escape_latex(column.name) for column in table.columns)
    rows = "\n".join(
        f"{' & '.join(_escape_latex(cell) for cell in row)} \\\\" for row in format_cells(table)
    )
    caption = f"\\caption{{{_escape_latex(_stopped(table.title))}}}"
    top = f"\\toprule\n{head} \\\\\n\\midrule\n"
    notes = "".join(f"{_escape_latex(_stopped(note))}\\par\n" for note in list_notes(table))
    below = f"\\par\\smallskip\n{{\\footnotesize\\raggedright\n{notes}}}\n" if notes else ""
    if len(table.rows) > _LONG:
        return (
            f"\\begin{{longtable}}{{{aligns}}}\n{caption}\\\\\n{top}\\endfirsthead\n"
            f"{top}\\endhead\n\\bottomrule\n\\endfoot\n{rows}\n\\end{{longtable}}\n{below}"
        )
    return (
        f"\\begin{{table}}\n\\centering\n{caption}\n"
        f"\\begin{{tabular}}{{{aligns}}}\n{top}{rows}\n\\bottomrule\n\\end{{tabular}}\n"
        f"{below}\\end{{table}}\n"
    )


def _stopped(text: str) -> str:
    """A note as a sentence: with a full stop where it has no mark at its end."""
    return text if text.rstrip().endswith(_ENDS) else f"{text.rstrip()}."


def _flat(text: str) -> str:
    """On one line, with nothing that moves a cursor or turns the direction of reading."""
    return printable(re.sub(r"\s+", " ", text))


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in _flat(text))
