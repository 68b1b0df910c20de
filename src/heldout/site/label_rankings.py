"""How later labels change the ranking, in sentences: of released scores alone, nothing new."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise

from heldout.board.ranking.standings import Row
from heldout.board.rules.spec import BoardSpec, View
from heldout.site.wording import clean, count

__all__ = ["say_label_changes"]

_FEWEST = 2
_MOST_MOVES = 12


def say_label_changes(rows: Sequence[Row], spec: BoardSpec) -> tuple[str, ...]:
    """A sentence or two for each public view that has other labels and is else the one that ranks.

    Each is compared with the one before it, the first with the view that ranks.

    Args:
        rows: public rows; those with a score on both views are compared.
        spec: the board's rules.
    """
    ranks = spec.view(spec.primary)
    later = (
        view
        for view in spec.public_views
        if view.labels is not None
        and view.name != ranks.name
        and not view.ranks_nobody
        and (view.set, view.measure, view.files, view.part)
        == (ranks.set, ranks.measure, ranks.files, ranks.part)
    )
    return tuple(
        _say(both, before, after)
        for before, after in pairwise((ranks, *later))
        if len(both := [r for r in rows if {before.name, after.name} <= r.scores.keys()]) >= _FEWEST
    )


def _say(rows: Sequence[Row], before: View, after: View) -> str:
    # scipy, which this needs, takes 0.3 s to load, and mostly there is no such view
    import numpy as np  # noqa: PLC0415 - said above

    from heldout.preferences.tau_ranges import Both, find_taus  # noqa: PLC0415 - said above

    scores = [[float(row.scores[view.name]) for row in rows] for view in (before, after)]
    means = Both(before=np.array(scores[0]), after=np.array(scores[1]))
    taus = find_taus([row.id for row in rows], means)
    told = "; ".join(
        f"{'undefined' if one.tau is None else f'{one.tau:.2f}'} over {one.name}" for one in taus
    )
    head = f"By the labels {clean(str(after.labels))}, of {count(len(rows), 'system')}"
    moves = [*_list_moves(rows, before, after)]
    moved = "no rank changes" if not moves else f"other ranks: {_join(moves)}"
    return f"{head}: Kendall's tau with {_name(before)} is {told}; {moved}."


def _name(view: View) -> str:
    return "the ranking above" if view.labels is None else f"that by {clean(view.labels)}"


def _list_moves(rows: Sequence[Row], before: View, after: View) -> Iterator[str]:
    for row in rows:
        was, now = (
            1 + sum(Decimal(r.scores[v.name]) > Decimal(row.scores[v.name]) for r in rows)
            for v in (before, after)
        )
        if was != now:
            yield f"{row.id} from {was} to {now}"


def _join(moves: Sequence[str]) -> str:
    more = len(moves) - _MOST_MOVES
    rest = f", and {more:,} more" if more > 0 else ""
    return ", ".join(moves[:_MOST_MOVES]) + rest
