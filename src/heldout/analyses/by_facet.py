"""An analysis of each kind of query apart: one way for all."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeVar

from heldout.answers.answer import Answer
from heldout.answers.texts import write, write_table
from heldout.charts.svg import cut as shorten
from heldout.errors import InputError, printable
from heldout.scoring.query_facets import check_size

_NAME = 32


class Splittable(Protocol):
    """What an analysis looks at."""

    @property
    def size(self) -> int:
        """How many queries; of several sets the fewest."""
        ...

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries."""
        ...


Loaded = TypeVar("Loaded", bound=Splittable)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What there is to say of one kind of query; without an answer there is a reason."""

    size: int
    answer: Answer | None = None
    why: str = ""


def answer_each(
    name: str,
    kinds: Mapping[str, AbstractSet[str]],
    loaded: Loaded,
    analyse: Callable[[Loaded], Answer],
    *,
    least: int,
) -> Answer:
    """The answers for each kind of query, as one.

    Args:
        name: of the facet.
        kinds: queries by kind.
        loaded: what is analysed, on all queries.
        analyse: the analysis; called once for each kind.
        least: fewest queries of a kind that is analysed.

    Raises:
        InputError: nothing can be said of any kind.
    """
    parts: dict[str, _Part] = {}
    errors = []
    for value, queries in kinds.items():
        part = loaded.cut(queries)
        try:
            check_size(part.size, least, path=f"{name}={value}")
            parts[value] = _Part(size=part.size, answer=analyse(part))
        except InputError as error:
            errors.append(error)
            parts[value] = _Part(size=part.size, why=say_why(error))
    if len(errors) == len(parts):
        raise errors[0]
    return _join(name, parts, least)


def say_why(error: InputError) -> str:
    """Return why an analysis cannot be made, in words for a report."""
    first = error.problems[0]
    return f"{first.found}; this needs {first.expected}" if first.expected else first.found


def _join(name: str, parts: Mapping[str, _Part], least: int) -> Answer:
    made = {value: part.answer for value, part in parts.items() if part.answer is not None}
    rows = tuple((shorten(value, _NAME), part.size, _say(part)) for value, part in parts.items())
    overview = write_table("facets.kinds", rows, facet=name, least=least)
    return Answer(
        answer=write(
            "facets.by_kind", parts=len(parts), undefined=len(parts) - len(made), facet=name
        ),
        summary=(),
        short=(overview,),
        tables=(
            overview,
            *(
                replace(table, title=f"{printable(shorten(value, _NAME))}: {table.title}")
                for value, answer in made.items()
                for table in answer.tables
            ),
        ),
        document={
            "facet": name,
            "least": least,
            "values": {
                value: {
                    "queries": part.size,
                    "answer": None if part.answer is None else dict(part.answer.document),
                    "why": part.why or None,
                }
                for value, part in parts.items()
            },
        },
    )


def _say(part: _Part) -> str:
    return f"undefined: {part.why}" if part.answer is None else part.answer.answer
