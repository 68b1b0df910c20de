"""The cells of a training experiment: each condition with each seed, and what each trains on."""

from collections.abc import Sequence
from dataclasses import dataclass

from heldout.errors import InputError, Problem, plural
from heldout.ids import QueryId
from heldout.survivorship.training.conditions import Condition
from heldout.survivorship.training.experiment import Cell
from heldout.survivorship.training.selections import ReadTriples, select_triples, share_queries
from heldout.survivorship.training.triples import Label, SelectedPlaces, TripleCounts

__all__ = ["Plan", "check_shares", "plan_cells"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be trained.

    Attributes:
        cells: a whole seed before the next, so that early ends compare.
        counts: of the sequence that all of them train on.
    """

    cells: tuple[Cell, ...]
    counts: TripleCounts


def plan_cells(
    read: ReadTriples,
    places: SelectedPlaces,
    conditions: Sequence[Condition],
    *,
    seeds: int,
    seed: int,
    limit: int,
    source: str,
) -> Plan:
    """Every seed of every condition.

    Args:
        read: the sequence of triples.
        places: where selected documents were shown.
        conditions: in the order of the tables.
        seeds: how many of each, from 1.
        seed: added to each, for what is drawn at random.
        limit: how many triples there are steps for.
        source: where labels come from, for messages.

    Raises:
        InputError: code `no-triples`: a condition leaves none.
    """
    wanted = [(condition, number) for number in range(seeds) for condition in conditions]
    found = select_triples(
        read, places, [(condition, seed + number) for condition, number in wanted], limit=limit
    )
    cells = tuple(
        Cell(condition=condition, seed=number, selection=selection)
        for (condition, number), selection in zip(wanted, found.selections, strict=True)
    )
    for cell in cells:
        if not cell.selection.triples:
            raise InputError(
                Problem(
                    code="no-triples",
                    path=source,
                    found=f"no triple for {cell.condition.name}",
                    expected="at least one for each condition",
                )
            )
    return Plan(cells=cells, counts=found.counts)


def check_shares(plan: Plan, read: ReadTriples, *, seed: int, batch: int) -> None:
    """Make sure that the shares of a learning curve differ, and that all their labels are seen.

    Where steps end before each label was seen once, a larger share has no more labels than a
    smaller one, nor all that the smaller one has.

    Args:
        plan: of shares only.
        read: the sequence of triples.
        seed: as for `plan_cells`.
        batch: triples in a step, for the hint.

    Raises:
        InputError: code `curve-steps` or `equal-shares`.
    """
    shares: dict[tuple[int, int], Condition] = {}
    # The largest share first: it wants the most steps.
    for cell in sorted(plan.cells, key=lambda one: -one.condition.share):
        queries = share_queries(plan.counts, cell.condition.share, seed=seed + cell.seed)
        labels = sum(query in queries for query, _ in plan.counts.per_label)
        if cell.selection.labels < labels:
            steps = -(-_triples_until_all(read, queries) // batch)
            raise InputError(_too_few_steps(cell, labels, steps, batch))
        other = shares.setdefault((cell.seed, len(queries)), cell.condition)
        if other != cell.condition:
            raise InputError(
                Problem(
                    code="equal-shares",
                    path="--learning-curve",
                    found=f"{other.name} and {cell.condition.name} have the same "
                    f"{plural(len(queries), 'query', 'queries')}",
                    expected="shares that differ by a query at least",
                )
            )


def _triples_until_all(read: ReadTriples, queries: frozenset[QueryId]) -> int:
    """How many triples of these queries there are up to the one that has the last new label."""
    seen: set[Label] = set()
    number = last = 0
    for triple in read():
        label = triple.query, triple.positive
        if triple.query in queries:
            number += 1
            if label not in seen:
                seen.add(label)
                last = number
    return last


def _too_few_steps(cell: Cell, labels: int, steps: int, batch: int) -> Problem:
    return Problem(
        code="curve-steps",
        path="--steps",
        found=f"{cell.selection.labels:,} of {labels:,} labels of {cell.condition.name} are seen",
        expected="steps enough to see each label once",
        hint=f"--steps {steps} or more, with --batch {batch}; or smaller shares",
    )
