"""Views side by side as tables and JSON: ranks of named runs, and how alike views rank."""

from collections.abc import Sequence
from typing import Any

from heldout.answers.table import Cell, Column, Table
from heldout.errors import plural
from heldout.validity.transfer import Transfer, ViewAgreement
from heldout.validity.views import Views

__all__ = ["facts", "tables", "transfer_facts", "transfer_tables", "transfer_value", "value"]

_SHOWN = 3


def facts(result: Views) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: which views rank most and least alike, and what is not known."""
    lines = transfer_facts(result.transfer)
    if not result.means_only:
        return lines
    return (*lines, ("", f"means alone are known of {', '.join(result.means_only)}: no ranks"))


def transfer_facts(transfer: Transfer) -> tuple[tuple[str, str], ...]:
    """Which views rank most and least alike."""
    known = sorted(
        ((pair.tau, pair) for pair in transfer.pairs if pair.tau is not None),
        key=lambda one: one[0],
    )
    if not known:
        return (("views", "no two views share systems that both tell apart"),)
    lines = [("alike", _tell(known[-1][1]))]
    if len(known) > 1:
        lines.append(("unlike", _tell(known[0][1])))
    return tuple(lines)


def tables(result: Views) -> tuple[Table, ...]:
    """Ranks of the named runs on each view, then the agreement between views."""
    ranks = (_rank_table(result),) if result.ranks else ()
    return (*ranks, *transfer_tables(result.transfer))


def transfer_tables(transfer: Transfer) -> tuple[Table, ...]:
    """Agreement between every two views; before it, with more than three views, by view."""
    by_view = (_view_table(transfer),) if len(transfer.views) > _SHOWN else ()
    return (*by_view, _pair_table(transfer))


def value(result: Views) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "systems": list(result.systems),
        "left_out": list(result.left_out),
        "named": list(result.named),
        "means_only": list(result.means_only),
        "views": [
            {
                "view": name,
                "queries": found.queries,
                "better": found.better,
                "systems": list(found.systems),
                "scores": list(found.means),
                "expected_rank": found.expected_rank.tolist(),
                "trials": found.trials,
                "ties": found.ties,
                "tied_trials": found.tied_trials,
                "digest": found.digest,
            }
            for name, found in result.stability.items()
        ],
        "ranks": [
            {
                "system": one.system,
                "view": one.view,
                "score": one.score,
                "rank": one.rank,
                "expected_rank": one.expected,
                "middle_low": one.low,
                "middle_high": one.high,
                "rank_probability": list(one.probability),
            }
            for one in result.ranks
        ],
        "agreement": transfer_value(result.transfer),
    }


def transfer_value(transfer: Transfer) -> dict[str, Any]:
    """Agreement between views for JSON."""
    return {
        "views": list(transfer.views),
        "scored": list(transfer.scored),
        "systems": transfer.systems,
        "top": transfer.top,
        "coefficients": {"tau": "Kendall's tau-b", "tau_ap": "tau_AP,b"},
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                "systems": pair.systems,
                "tau": pair.tau,
                "tau_ap": pair.tau_ap,
                "tau_first_top": pair.tau_first_top,
                "tau_second_top": pair.tau_second_top,
                "shared_top": pair.shared_top,
                "first_top": pair.first_top,
                "second_top": pair.second_top,
                "why": pair.why,
            }
            for pair in transfer.pairs
        ],
        "why": "null: fewer than two systems, or all of them have the same score on a view",
        "digest": transfer.digest,
    }


def _tell(pair: ViewAgreement) -> str:
    return f"{pair.first} and {pair.second}, tau {pair.tau:.3f} over {pair.systems:,} systems"


def _rank_table(result: Views) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.system, one.view, one.score, one.rank, one.expected, f"{one.low}–{one.high}")
        for one in result.ranks
    ]
    queries = ", ".join(f"{name} {s.queries:,}" for name, s in result.stability.items())
    first = next(iter(result.stability.values()))
    return Table(
        title=f"Ranks among the {len(result.systems):,} systems that all views have",
        columns=(
            Column(name="system"),
            Column(name="view"),
            Column(name="score", form="score"),
            Column(name="rank", form="count"),
            Column(name="expected rank", form="score", decimals=1),
            Column(name="middle 95%"),
        ),
        rows=tuple(rows),
        notes=(
            (
                f"{plural(first.trials, 'resampling')} of each view's queries "
                f"({queries}); ties: {first.ties}"
            ),
            "views on the same queries draw the same ones; nothing is tested here",
            "the middle of the trials' ranks describes and is no confidence interval",
            *_say_left_out(result),
        ),
    )


def _say_left_out(result: Views) -> list[str]:
    notes = []
    if result.left_out:
        named = ", ".join(result.left_out[:_SHOWN])
        notes.append(f"left out, since a view lacks them: {len(result.left_out):,} ({named}…)")
    return notes


def _view_table(transfer: Transfer) -> Table:
    rows = []
    for view, scored in zip(transfer.views, transfer.scored, strict=True):
        others = sorted(
            (pair.tau, pair.second if pair.first == view else pair.first)
            for pair in transfer.pairs
            if view in (pair.first, pair.second) and pair.tau is not None
        )
        rows.append(_view_row(view, scored, others))
    return Table(
        title=f"Each of {len(rows)} views against the others, {transfer.systems:,} systems",
        columns=(
            Column(name="view"),
            Column(name="systems", form="count"),
            Column(name="mean tau", form="score", decimals=3),
            Column(name="most alike"),
            Column(name="tau", form="score", decimals=3),
            Column(name="least alike"),
            Column(name="tau", form="score", decimals=3),
        ),
        rows=tuple(rows),
    )


def _view_row(view: str, scored: int, others: Sequence[tuple[float, str]]) -> tuple[Cell, ...]:
    if not others:
        return (view, scored, None, None, None, None, None)
    (least, apart), (most, alike) = others[0], others[-1]
    return (view, scored, sum(tau for tau, _ in others) / len(others), alike, most, apart, least)


def _pair_table(transfer: Transfer) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            pair.first,
            pair.second,
            pair.systems,
            pair.tau,
            pair.tau_ap,
            pair.tau_first_top,
            pair.tau_second_top,
            pair.shared_top,
        )
        for pair in transfer.pairs
    ]
    undefined = {pair.why for pair in transfer.pairs if pair.why}
    return Table(
        title="How alike two views rank the systems that both have",
        columns=(
            Column(name="view"),
            Column(name="other view"),
            Column(name="systems", form="count"),
            Column(name="tau", form="score", decimals=3),
            Column(name="tau AP", form="score", decimals=3),
            Column(name="top of view", form="score", decimals=3),
            Column(name="top of other", form="score", decimals=3),
            Column(name="in both tops", form="count"),
        ),
        rows=tuple(rows),
        notes=(
            "tau: Kendall's tau-b; tau AP: AP correlation tau_AP,b, where the top counts most",
            (
                f"top: tau-b over the {transfer.top} best of the one view and of the other, with "
                "all that tie with the last; few systems, so it moves much by chance"
            ),
            "no test, no interval: views of few queries differ by chance alone",
            *(f"undefined: {why}" for why in sorted(undefined)),
        ),
    )
