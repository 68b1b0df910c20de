"""Computes again, from an archive, what a board told of its ranking beside the scores."""

from collections.abc import Iterator
from decimal import Decimal

from heldout.board.early_figures import list_early
from heldout.board.measured import Measured
from heldout.board.spec_file import parse_spec
from heldout.pipeline.board_scores import assemble_scores
from heldout.pipeline.measuring import (
    Compared,
    choose_compared,
    find_near_scores,
    measure_ranking,
)
from heldout.pipeline.unpacked import Unpacked

__all__ = ["check_measured", "tell_measured"]

_CHANGES = ("corrected", "reviewed", "changed-rules")
"""Kinds of events after which scores by query may be others than before."""


def check_measured(unpacked: Unpacked) -> Iterator[str]:
    """What was told too early, or does not follow from the scores by query.

    Args:
        unpacked: whose scores were checked.

    Yields:
        A sentence for each fault.
    """
    yield from list_early(unpacked.history)
    for one in unpacked.history.measured:
        compared = _compare(unpacked, one)
        place = f"event {one.event} ('measured')"
        if compared is None or not _is_same(unpacked, one, compared):
            if not _may_differ(unpacked, one):
                yield f"{place} was not made from the scores by query that are here"
            continue
        if any(find_near_scores(compared.table).values()):
            yield f"{place} compares entries whose scores differ for a few queries only"
        show = parse_spec(unpacked.history.rules_at(one.at).encode()).trust
        if show is not None and one.figures != measure_ranking(
            compared, [part for part in show.show if part in one.figures.told], seed=one.seed
        ):
            yield f"{place} tells figures that the scores by query do not give"


def tell_measured(unpacked: Unpacked) -> Iterator[str]:
    """What cannot be computed again, because scores were changed since."""
    for one in unpacked.history.measured:
        compared = _compare(unpacked, one)
        same = compared is not None and _is_same(unpacked, one, compared)
        if not same and _may_differ(unpacked, one):
            yield (
                f"event {one.event} ('measured') cannot be computed again: scores by query or "
                "labels were changed since"
            )


def _is_same(unpacked: Unpacked, one: Measured, compared: Compared) -> bool:
    """Whether these are the scores that the event commits to."""
    return bool(unpacked.log[one.event].get("table") == str(compared.table.digest))


def _may_differ(unpacked: Unpacked, one: Measured) -> bool:
    return any(entry.event.kind in _CHANGES for entry in unpacked.log[one.event + 1 :])


def _compare(unpacked: Unpacked, one: Measured) -> Compared | None:
    """The entries that were compared, with the scores that are here; `None` where some lack."""
    history = unpacked.history
    spec = parse_spec(history.rules_at(one.at).encode(), path="the rules in the log")
    season = next((s for s in spec.seasons if s.name == one.season), None)
    here = spec if season is None else spec.in_season(season)
    before = [
        s
        for s in unpacked.published
        if s.published is not None and s.published <= one.at and unpacked.has_scores(s)
    ]
    before.sort(key=lambda submission: (submission.received, submission.id))
    known = {s.id: unpacked.scores(s).views for s in before}
    if one.view not in {view.name for view in here.views} or not set(one.entries) <= known.keys():
        return None
    board = assemble_scores(here, before, known, primary=one.view)
    compared = [s for s in before if s.id in one.entries and one.view in s.scores]
    compared.sort(key=lambda s: -Decimal(s.scores[one.view]))  # equal ones as they came
    return choose_compared(board, [s.id for s in compared], bar=here.baselines.bar)
