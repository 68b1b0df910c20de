"""A section of the report on judging: what was found, or why it cannot be told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from heldout.answers.table import Table
from heldout.errors import InputError
from heldout.report.judging.examples import Example

__all__ = ["Drawing", "Section", "attempt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture.

    Attributes:
        chart: Vega-Lite dict.
        shows: what it shows, for those who do not see it; also its caption.
    """

    chart: Mapping[str, Any]
    shows: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section.

    Attributes:
        name: of its files; lower case, digits and hyphens.
        title: its heading.
        study: which tables and figures of the study it is; "" for none.
        facts: the answer, in lines of (name, words).
        examples: judged pairs with their texts.
        drawings: pictures.
        tables: the evidence.
        value: for JSON; `None` where nothing was found.
        why_not: why it cannot be told; "" where it can.
    """

    name: str
    title: str
    study: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    examples: tuple[Example, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    tables: tuple[Table, ...] = ()
    value: Mapping[str, Any] | None = None
    why_not: str = ""


def attempt(name: str, title: str, make: Callable[[], Section]) -> Section:
    """A section, or the same without findings and with the reason of the error.

    Args:
        name: of the section.
        title: its heading.
        make: makes it, or raises an `InputError`.
    """
    try:
        return make()
    except InputError as error:
        first = error.problems[0]
        why = f"{first.found}; this needs {first.expected}" if first.expected else first.found
        return Section(name=name, title=title, why_not=why)
