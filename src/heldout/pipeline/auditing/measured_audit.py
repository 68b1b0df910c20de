"""Computes again, from an archive, what a board told of its ranking beside the scores."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

import msgspec

from heldout.board.log.figures import Figures
from heldout.board.log.measured import Measured
from heldout.board.ranking.comparable import count_step
from heldout.board.rules.early_figures import list_early
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.errors import InputError, StoreError
from heldout.pipeline.auditing.unpacked import Unpacked
from heldout.pipeline.ranking.measured_ranks import find_near_scores
from heldout.pipeline.ranking.measuring import (
    Compared,
    choose_compared,
    measure_ranking,
    read_released,
)
from heldout.pipeline.ranking.ranked_facets import QueryFacet, read_query_facets
from heldout.pipeline.scoring.board_scores import assemble_scores
from heldout.store.repository import Repository
from heldout.store.vault import Vault

__all__ = ["check_measured", "tell_measured"]

_CHANGES = ("corrected", "reviewed", "changed-rules")
"""Kinds of events after which scores by query may be others than before."""

_MORE = frozenset(("progress", "drift", "facets", "why"))
"""What rests on more than the scores that an event commits to: baselines, dev scores, facets."""


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
        near, apart = find_near_scores(compared.table), compared.apart
        if any(near[name] - apart[name] for name in compared.table.systems):
            yield f"{place} compares entries whose scores differ for a few queries only"
        if _list_different(unpacked, one, compared) - _excused(unpacked, one):
            yield f"{place} tells figures that the scores by query do not give"


def tell_measured(unpacked: Unpacked) -> Iterator[str]:
    """What cannot be computed again, because scores were changed since."""
    for one in unpacked.history.measured:
        compared = _compare(unpacked, one)
        if not _may_differ(unpacked, one):
            continue
        if compared is None or not _is_same(unpacked, one, compared):
            yield (
                f"event {one.event} ('measured') cannot be computed again: scores by query or "
                "labels were changed since"
            )
        elif different := _list_different(unpacked, one, compared) & _MORE:
            yield (
                f"event {one.event} ('measured'): {', '.join(sorted(different))} cannot be "
                "computed again: baselines, scores or facets were changed since"
            )


def _list_different(unpacked: Unpacked, one: Measured, compared: Compared) -> frozenset[str]:
    """The fields of the figures that the scores do not give."""
    trust = parse_spec(unpacked.history.rules_at(one.at).encode()).trust
    if trust is None:
        return frozenset()  # `list_early` says so
    show = [part for part in trust.show if part in one.figures.told]
    found = measure_ranking(compared, show, seed=one.seed)
    fields = (field.name for field in msgspec.structs.fields(Figures))
    return frozenset(f for f in fields if getattr(found, f) != getattr(one.figures, f))


def _excused(unpacked: Unpacked, one: Measured) -> frozenset[str]:
    """The fields that may differ, for what they rest on was changed since."""
    return _MORE if _may_differ(unpacked, one) else frozenset()


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
    found = choose_compared(board, [s.id for s in compared], bar=here.baselines.bar)
    if found is None or one.figures.alike is None:
        return found
    return replace(
        found,
        released=read_released(before, one.view),
        alike=one.figures.alike,
        step=count_step(len(found.table.queries)) if one.figures.step else 0,
        facets=_read_facets(unpacked, here, one),
    )


def _read_facets(unpacked: Unpacked, spec: BoardSpec, one: Measured) -> Sequence[QueryFacet]:
    """None where no facets were told, and none where their file is not here."""
    if "facets" not in one.figures.told:
        return ()
    folder = Repository(unpacked.folder), Vault(unpacked.folder)
    try:
        return read_query_facets(*folder, spec, view=one.view)
    except (StoreError, InputError):
        return ()
