"""What is told of a ranking beside the scores, computed from those of the vault and logged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from heldout.board.figures import LeftOut
from heldout.board.similarity import TOP, nearest
from heldout.board.trust import keep_apart
from heldout.pipeline.board_scores import read_board_scores
from heldout.pipeline.comparing import signatures_of
from heldout.pipeline.desk import Desk
from heldout.pipeline.due_figures import Due
from heldout.pipeline.measuring import choose_compared, find_near_scores, measure_ranking
from heldout.trec.scans import Signature
from heldout.validity.entries import BoardScores

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
    arrived = [e.id for e in board.entries if e.id in set(due.ranked)]
    view = board.view()
    scored = [name for name in arrived if view.table is not None and name in view.table.systems]
    alike = _find_alike(desk, scored, view.queries)
    every = choose_compared(board, [name for name in due.ranked if name in scored])
    if every is not None:
        same = find_near_scores(every.table)
        alike = {name: alike.get(name, frozenset()) | same[name] for name in scored}
    kept, near = keep_apart(scored, alike)
    compared = choose_compared(
        board, [name for name in due.ranked if name in kept], bar=due.spec.baselines.bar
    )
    if compared is None:
        return
    figures = measure_ranking(compared, due.trust.show, seed=SEED)
    public = {
        "view": view.view,
        "season": due.season,
        "due": due.since.isoformat(),
        "seed": SEED,
        "entries": list(compared.table.systems),
        "left_out": {
            name: _say_why(desk, name, "near" if name in near else "incomplete")
            for name in due.ranked
            if name not in kept
        },
        "figures": msgspec.to_builtins(figures),
    }
    desk.log("measured", None, public=public, sealed={"table": str(compared.table.digest)})


def _say_why(desk: Desk, entry: str, why: LeftOut) -> LeftOut:
    hidden = desk.history().submissions[entry].is_hidden(desk.now.date())
    return "withheld" if hidden else why


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
            alike = nearest(cut, runs.items(), most=len(entries))
            found[name] |= {one.id for one in alike if one.verdict != "none"}
            runs[name] = cut
    return {name: frozenset(others) for name, others in found.items()}
