"""An analysis of some of the queries, or of each kind of query apart: one way for all commands."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

import click

from heldout.answers.answer import Answer
from heldout.answers.table import Column, Table
from heldout.charts.labels import cut as shorten
from heldout.cli.console import waiting
from heldout.cli.facet_source import FacetSource, check_size, load_facet, load_only
from heldout.cli.reporting import Output, print_answer
from heldout.errors import InputError, printable

__all__ = ["Splittable", "keep_only", "print_each"]

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


def print_each(
    facets: FacetSource, output: Output, loaded: Loaded, analyse: Callable[[Loaded], Answer]
) -> None:
    """Analyse what was loaded, as a whole or each kind of query apart, and print it.

    Args:
        facets: which queries.
        output: in which form.
        loaded: scores on all queries.
        analyse: the analysis; called once for each kind.

    Raises:
        click.UsageError: a chart is asked for of each kind, or a file is missing.
        InputError: a file has errors; too few queries are left; or nothing can be said of any kind.
    """
    if facets.facet is not None and output.chart is not None:
        raise click.UsageError(
            "a chart shows one kind of query: --only FACET=KIND instead of --facet"
        )
    kept = keep_only(facets, loaded)
    with waiting("computing"):
        answer = analyse(kept) if facets.facet is None else _answer_each(facets, kept, analyse)
    if facets.only:
        told = f"{' and '.join(facets.only)}: {kept.size:,} of {loaded.size:,} queries"
        value = {**answer.value, "only": list(facets.only)}
        answer = replace(answer, facts=(*answer.facts, ("only", told)), value=value)
    print_answer(answer, output)


def keep_only(facets: FacetSource, loaded: Loaded) -> Loaded:
    """What was loaded, on the queries of `--only`.

    Raises:
        click.UsageError: it is not written as it should be.
        InputError: code `too-few-queries`; or a file has errors.
    """
    queries = load_only(facets)
    if queries is None:
        return loaded
    part = loaded.cut(queries)
    check_size(part.size, facets.least, path="--only")
    return part


def _answer_each(
    facets: FacetSource, loaded: Loaded, analyse: Callable[[Loaded], Answer]
) -> Answer:
    name = facets.facet or ""
    parts: dict[str, _Part] = {}
    errors = []
    for value, queries in load_facet(name, facets).items():
        part = loaded.cut(queries)
        try:
            check_size(part.size, facets.least, path=f"{name}={value}")
            parts[value] = _Part(size=part.size, answer=analyse(part))
        except InputError as error:
            errors.append(error)
            parts[value] = _Part(size=part.size, why=_say_why(error))
    if len(errors) == len(parts):
        raise errors[0]
    return _join(name, parts, facets.least)


def _say_why(error: InputError) -> str:
    first = error.problems[0]
    return f"{first.found}; this needs {first.expected}" if first.expected else first.found


def _join(name: str, parts: Mapping[str, _Part], least: int) -> Answer:
    made = {value: part.answer for value, part in parts.items() if part.answer is not None}
    undefined = len(parts) - len(made)
    told = f"{name}: {len(parts):,} kinds of query"
    return Answer(
        facts=(("facet", f"{told}, {undefined:,} of them undefined" if undefined else told),),
        tables=(
            _overview(name, parts, least),
            *(
                replace(table, title=f"{printable(shorten(value, _NAME))}: {table.title}")
                for value, answer in made.items()
                for table in answer.tables
            ),
        ),
        value={
            "facet": name,
            "least": least,
            "values": {value: _part_value(part) for value, part in parts.items()},
        },
    )


def _part_value(part: _Part) -> dict[str, Any]:
    answer = None if part.answer is None else dict(part.answer.value)
    return {"queries": part.size, "answer": answer, "why": part.why or None}


def _overview(name: str, parts: Mapping[str, _Part], least: int) -> Table:
    return Table(
        title=f"Each kind of query by {name}",
        columns=(Column(name="kind"), Column(name="queries", form="count"), Column(name="answer")),
        rows=tuple((shorten(value, _NAME), part.size, _say(part)) for value, part in parts.items()),
        notes=(
            f"A kind has at least {least} queries, else it is undefined.",
            (
                "Each kind is analysed alone, and nothing is corrected over kinds: what stands out "
                "on one of several may be chance. `heldout analyse facets` compares them."
            ),
        ),
    )


def _say(part: _Part) -> str:
    """What the analysis says first."""
    if part.answer is None:
        return f"undefined: {part.why}"
    name, text = next(iter(part.answer.facts), ("", ""))
    return f"{name}: {text}" if name else text
