"""Tables of labels beside those of scores: pairs that labels win, and labels without each run."""

from collections.abc import Mapping, Sequence

from heldout.answers.table import Column, Table
from heldout.preferences.labels import Pairings
from heldout.preferences.leave_out import LeftOut

__all__ = ["left_out_table", "pairings_table"]


def pairings_table(found: Mapping[str, Pairings]) -> Table:
    """How each kind of labels did in the judged pairs that they are in."""
    return Table(
        title="How often labels win the judged pairs they are in",
        columns=(
            Column(name="labels"),
            Column(name="won", form="count"),
            Column(name="pairs", form="count"),
            Column(name="share", form="share", decimals=3),
            Column(name="by label", form="count"),
            Column(name="pairings", form="count"),
            Column(name="share by label", form="share", decimals=3),
        ),
        rows=tuple(
            (
                name,
                one.won,
                one.pairs,
                one.won / one.pairs if one.pairs else None,
                one.label_won,
                one.label_pairings,
                one.label_won / one.label_pairings if one.label_pairings else None,
            )
            for name, one in found.items()
        ),
        notes=(
            (
                "pairs counts each judged pair with a label once; pairings counts it for each "
                "label, so a pair of two labels twice, one of them lost."
            ),
        ),
    )


def left_out_table(found: Sequence[LeftOut]) -> Table:
    """Each run, on labels without what it alone contributed."""
    return Table(
        title="Without what one run alone contributed",
        columns=(
            Column(name="run"),
            Column(name="passages", form="count"),
            Column(name="pairs", form="count"),
            Column(name="changed", form="count"),
            Column(name="score", form="score"),
            Column(name="without", form="score"),
            Column(name="rank", form="count"),
            Column(name="rank without", form="count"),
            Column(name="tau", form="score", decimals=3),
        ),
        rows=tuple(
            (
                one.run,
                one.passages,
                one.pairs,
                one.changed,
                one.value,
                one.without,
                one.rank,
                one.rank_without,
                one.tau,
            )
            for one in found
        ),
        notes=(
            (
                "Passages that no other run and no label brought to a pool are taken out, with the "
                "judged pairs they were in, and labels are made again. changed: queries with other "
                "labels; tau: between the scores of all runs with and without."
            ),
        ),
    )
