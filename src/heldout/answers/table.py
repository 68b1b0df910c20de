"""A table of results, written for a terminal, for Markdown and for LaTeX.

A cell that is `None` is undefined: it is shown as a dash and never as a number. A p-value is never
shown as 0.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
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
            make: the row at a place, from 0.
        """
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        if isinstance(place, slice):
            return tuple(self._make(one) for one in range(*place.indices(self._count)))
        return self._make(range(self._count)[place])

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
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    notes: tuple[str, ...] = ()
    method: tuple[str, ...] = ()

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


def fold_rows(rows: Sequence[Row], place: int = 0) -> list[tuple[Row, int]]:
    """Rows that follow each other and differ in one name alone, as one row.

    Args:
        rows: cells.
        place: of the name.

    Returns:
        Rows with how many each stands for; a name that stands for several counts the others.
    """
    groups = groupby(rows, key=lambda row: (*row[:place], *row[place + 1 :]))
    folded = []
    for _, group in groups:
        first, *others = group
        if others:
            name = f"{first[place]} and {len(others):,} more"
            first = (*first[:place], name, *first[place + 1 :])
        folded.append((first, 1 + len(others)))
    return folded


def shorten(table: Table, most: int, *, what: str = "row") -> Table:
    """The first rows of a long table, with a note of how many are left out.

    Args:
        table: returned as it is where it has no more rows.
        most: rows that are left; those that differ in their first cell alone are one.
        what: what a row is of, as `system`.
    """
    if len(table.rows) <= most:
        return table
    folded = fold_rows(table.rows)[:most]
    left = len(table.rows) - sum(count for _, count in folded)
    said = f"{plural(left, f'more {what} is', f'more {what}s are')} left out here"
    notes = (said, *table.notes) if left else table.notes
    return replace(table, rows=tuple(row for row, _ in folded), notes=notes)


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
