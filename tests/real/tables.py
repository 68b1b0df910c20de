"""The tables of docs/results/real-runs.md, made from the real runs."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from journey import Board, open_board, play
from outcome import Figure, compare, expected_trophies, page_rows
from quirks import QUIRKS, Quirks, count_quirks, find_quirks
from real_collections import COLLECTIONS

__all__ = ["differences_table", "find_all_quirks", "play_colliding", "quirks_table", "scores_table"]


def find_all_quirks(data: Path) -> Mapping[str, Sequence[Quirks]]:
    """Collection -> its runs, of those boards that hold each of the 188 runs once."""
    return {
        name: find_quirks(COLLECTIONS[name], data)
        for name in ("trec-covid-round1", "trec-dl-2021-passage")
    }


def play_colliding(data: Path, folder: Path, quirks: Mapping[str, Sequence[Quirks]]) -> list[Board]:
    """Boards of order `trec` with the runs on which the two orders may differ."""
    boards = []
    for name, runs in quirks.items():
        entries = [run.entry for run in runs if run.collides]
        boards.append(open_board(COLLECTIONS[name], data, folder, entries=entries, order="trec"))
        play(boards[-1], way="folder")
    return boards


def scores_table(boards: Iterable[Board]) -> str:
    """What was published on each board, beside the official table."""
    rows = []
    for board in boards:
        figures = tuple(compare(board))
        entries = board.ids().values()
        rows.append(
            (
                board.collection.title,
                len(page_rows(board)),
                len({entry.team for entry in entries}),
                len(board.calendar),
                ", ".join(f"`{measure}`" for measure in board.collection.views.values()),
                len(figures),
                sum(figure.is_equal for figure in figures),
                len(expected_trophies(board)),
            )
        )
    header = ("board", "runs", "teams", "days", "measures", "figures", "equal", "trophies")
    return _markdown(header, rows)


def quirks_table(collections: Mapping[str, Sequence[Quirks]]) -> str:
    """How many runs of each collection have each quirk.

    Args:
        collections: collection -> its runs.
    """
    counts = {name: count_quirks(runs) for name, runs in collections.items()}
    header = ("runs with", *(f"`{name}` ({len(runs)})" for name, runs in collections.items()))
    rows = [(quirk, *(count[quirk] for count in counts.values())) for quirk in QUIRKS]
    return _markdown(header, rows)


def differences_table(single: Iterable[Figure], double: Iterable[Figure]) -> str:
    """Figures that are official under `trec9` and are not under `trec`, with both."""
    official = {(figure.run, figure.view): figure for figure in single}
    rows = [
        (
            figure.run,
            figure.view,
            figure.official,
            official[figure.run, figure.view].published,
            figure.published,
        )
        for figure in sorted(double, key=lambda figure: (figure.run, figure.view))
        if not figure.is_official
    ]
    return _markdown(("run", "view", "official", "`trec9`", "`trec`"), rows)


def _markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)
