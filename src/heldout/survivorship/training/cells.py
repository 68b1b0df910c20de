"""The cells of a training experiment: each condition with each seed, and what each trains on."""

from collections.abc import Sequence

from heldout.errors import InputError, Problem, plural
from heldout.survivorship.training.conditions import Condition, select
from heldout.survivorship.training.experiment import Cell
from heldout.survivorship.training.triples import Places, Triple

__all__ = ["check_shares", "plan_cells"]


def plan_cells(
    sequence: Sequence[Triple],
    places: Places,
    conditions: Sequence[Condition],
    *,
    seeds: int,
    seed: int,
    limit: int,
    source: str,
) -> tuple[Cell, ...]:
    """Every seed of every condition; a whole seed before the next, so that early ends compare.

    Args:
        sequence: all triples, whose positives the annotations know.
        places: where selected documents were shown.
        conditions: in the order of the tables.
        seeds: how many of each, from 1.
        seed: added to each, for what is drawn at random.
        limit: how many triples there are steps for.
        source: where labels come from, for messages.

    Raises:
        InputError: code `no-triples`: a condition leaves none.
    """
    cells = tuple(
        Cell(
            condition=condition,
            seed=number,
            selection=select(sequence, places, condition, seed=seed + number, limit=limit),
        )
        for number in range(seeds)
        for condition in conditions
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
    return cells


def check_shares(
    cells: Sequence[Cell], sequence: Sequence[Triple], places: Places, *, seed: int, batch: int
) -> None:
    """Make sure that the shares of a learning curve differ, and that all their labels are seen.

    Where steps end before each label was seen once, a larger share has no more labels than a
    smaller one, nor all that the smaller one has.

    Args:
        cells: of shares only.
        sequence: all triples.
        places: where selected documents were shown.
        seed: as for `plan_cells`.
        batch: triples in a step, for the hint.

    Raises:
        InputError: code `curve-steps` or `equal-shares`.
    """
    queries: dict[tuple[int, int], Condition] = {}
    for cell in cells:
        whole = select(sequence, places, cell.condition, seed=seed + cell.seed)
        if cell.selection.labels < whole.labels:
            raise InputError(_too_few_steps(cell, whole.triples, whole.labels, batch))
        other = queries.setdefault((cell.seed, whole.queries), cell.condition)
        if other != cell.condition:
            raise InputError(
                Problem(
                    code="equal-shares",
                    path="--learning-curve",
                    found=f"{other.name} and {cell.condition.name} have the same "
                    f"{plural(whole.queries, 'query', 'queries')}",
                    expected="shares that differ by a query at least",
                )
            )


def _too_few_steps(cell: Cell, triples: Sequence[Triple], labels: int, batch: int) -> Problem:
    first: dict[object, int] = {}
    for number, triple in enumerate(triples, 1):
        first.setdefault((triple.query, triple.positive), number)
    steps = -(-max(first.values()) // batch)
    return Problem(
        code="curve-steps",
        path="--steps",
        found=f"{cell.selection.labels:,} of {labels:,} labels of {cell.condition.name} are seen",
        expected="steps enough to see each label once",
        hint=f"--steps {steps} or more, with --batch {batch}; or smaller shares",
    )
