"""What is told of a ranking beside the scores, computed from those of the vault and logged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from heldout.board.log.figures import LeftOut
from heldout.board.policy.similarity import TOP, list_alike
from heldout.board.ranking.comparable import choose_comparable, count_step
from heldout.pipeline.organiser.desk import Desk
from heldout.pipeline.ranking.due_figures import Due
from heldout.pipeline.ranking.measured_ranks import find_near_scores
from heldout.pipeline.ranking.measuring import choose_compared, measure_ranking, read_released
from heldout.pipeline.ranking.ranked_facets import QueryFacet, read_query_facets
from heldout.pipeline.scoring.board_scores import read_board_scores
from heldout.pipeline.scoring.comparing import signatures_of
from heldout.trec.scans import Signature
from heldout.validity.entries import BoardScores, ViewScores

__all__ = ["SEED", "log_figures"]

SEED = 0
"""Of everything that is drawn for a page; the event names it."""


def log_figures(desk: Desk, every_due: Sequence[Due]) -> None:
    """Compute and log the figures of each season in which some are due.

    Args:
        desk: its lock is held.
        every_due: at least one.

    Raises:
        StoreError: a run that has to be scored anew is missing.
        TrustError: such a run does not open.
    """
    board = read_board_scores(desk)
    for due in every_due:
        _log(desk, replace(board, primary=due.spec.primary), due)


def _log(desk: Desk, board: BoardScores, due: Due) -> None:
    view = board.view()
    complete = [name for name in _list_complete(view) if name in set(due.ranked)]
    alike = {
        name: set(others) for name, others in _find_alike(desk, complete, view.queries).items()
    }
    every = choose_compared(board, [name for name in due.ranked if name in complete])
    if every is None:
        return
    for name, others in find_near_scores(every.table).items():
        alike[name] |= others
    hidden = {name for name in due.ranked if _is_hidden(desk, name)}
    chosen = choose_comparable(complete, alike, hidden)
    compared = choose_compared(
        board, [name for name in due.ranked if name in chosen.entries], bar=due.spec.baselines.bar
    )
    if compared is None:
        return
    facets: Sequence[QueryFacet] = ()
    if "facets" in due.trust.show:
        facets = read_query_facets(desk.repository, desk.vault, due.spec, view=view.view)
    compared = replace(
        compared,
        released=read_released(desk.history().submissions.values(), view.view),
        alike=chosen.pairs,
        step=count_step(len(compared.table.queries)),
        facets=facets,
    )
    figures = measure_ranking(compared, due.trust.show, seed=SEED)
    incomplete: dict[str, LeftOut] = {
        name: "withheld" if name in hidden else "incomplete"
        for name in due.ranked
        if name not in complete
    }
    public = {
        "view": view.view,
        "season": due.season,
        "due": due.since.isoformat(),
        "seed": SEED,
        "entries": list(compared.table.systems),
        "left_out": {**incomplete, **chosen.left_out},
        "figures": msgspec.to_builtins(figures),
    }
    desk.log("measured", None, public=public, sealed={"table": str(compared.table.digest)})


def _list_complete(view: ViewScores) -> list[str]:
    """The ids with a score for each query, in the order they came."""
    if view.table is None:
        return []
    table = view.table
    return [name for row, name in enumerate(table.systems) if table.known[row].all()]


def _is_hidden(desk: Desk, entry: str) -> bool:
    return desk.history().submissions[entry].is_hidden(desk.now.date())


def _find_alike(desk: Desk, entries: Sequence[str], query_set: str) -> Mapping[str, frozenset[str]]:
    """Id -> the others whose run is nearly the same, whoever sent them."""
    submissions = desk.history().submissions
    found: dict[str, set[str]] = {name: set() for name in entries}
    runs: dict[str, Signature] = {}
    for name in entries:
        signatures = signatures_of(desk.vault, submissions[name], mend=lambda _: False)
        if query_set in signatures:
            run = signatures[query_set]
            cut = replace(run, documents=run.documents[:, :TOP].copy())
            found[name] |= {one.id for one in list_alike(cut, runs.items())}
            runs[name] = cut
    return {name: frozenset(others) for name, others in found.items()}
