"""The leak ledger as an organiser reads it."""

from typing import Any

from heldout.board.leaks.ledger import STATEMENT, Ledger, LedgerRow
from heldout.cli.console import Console
from heldout.cli.printing import print_facts, print_table

__all__ = ["ledger_json", "print_ledger"]


def print_ledger(console: Console, ledger: Ledger) -> None:
    """Print the bits that each team, and the board, could have been told.

    Args:
        console: where to.
        ledger: the organisers'.
    """
    rows = [*ledger.teams, ledger.baselines]
    rows += [ledger.figures] * bool(ledger.figures.releases)
    rows.append(ledger.board)
    head = ["team", "entries", "told", "bits", "at most", "bits then"]
    console.print()
    print_table(console, head, [_cells(row) for row in rows])
    counted = ", ".join(ledger.views) or "no view on held-out labels"
    facts = [("ledger", f"what releases on {counted} could have carried")]
    if ledger.figures.releases:
        facts.append(("figures", "of the ranking, by [trust] in board.toml: docs/release.md"))
    if ledger.uncounted:
        facts.append(
            ("", f"not counted, for scores without a highest: {', '.join(ledger.uncounted)}")
        )
    print_facts(console, [*facts, ("", STATEMENT)])


def ledger_json(ledger: Ledger) -> dict[str, Any]:
    """The same for a program."""
    return {
        "views": list(ledger.views),
        "uncounted": list(ledger.uncounted),
        "teams": [_row_json(row) for row in ledger.teams],
        "baselines": _row_json(ledger.baselines),
        "figures": _row_json(ledger.figures),
        "board": _row_json(ledger.board),
        "statement": STATEMENT,
    }


def _cells(row: LedgerRow) -> list[str]:
    return [
        row.name,
        f"{row.submissions:,}",
        f"{row.releases:,}",
        f"{row.bits:.2f}",
        f"{row.most:,}",
        f"{row.bits_at_most:,.0f}",
    ]


def _row_json(row: LedgerRow) -> dict[str, Any]:
    return {
        "team": row.name,
        "submissions": row.submissions,
        "releases": row.releases,
        "bits": row.bits,
        "most": row.most,
        "bits_at_most": row.bits_at_most,
    }
