"""What each way of judging finds, by simulation, as a table and JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from heldout.answers.table import Column, Table
from heldout.preferences.simulation import Found

__all__ = ["facts", "tables", "value"]


def facts(found: Sequence[Found], *, spread: float) -> tuple[tuple[str, str], ...]:
    """How the judges were made."""
    pools = f"{found[0].pools:,}" if len({one.pools for one in found}) == 1 else "some"
    right = min(one.correct for one in found), max(one.correct for one in found)
    return (
        ("judges", f"made up: strengths normal with standard deviation {spread:g}"),
        ("correct", f"{right[0]:.1%} to {right[1]:.1%} of votes, by design"),
        ("pools", f"{pools} of each size for each design"),
    )


def tables(found: Sequence[Found]) -> tuple[Table, ...]:
    """One row for each design and size."""
    return (
        Table(
            title="How often the true best passage is found",
            columns=(
                Column(name="design"),
                Column(name="passages", form="count"),
                Column(name="found", form="share", decimals=3),
                Column(name="standard error", form="share", decimals=3),
                Column(name="judgments a pool", form="score", decimals=1),
            ),
            rows=tuple(
                (one.design, one.size, one.found, one.error, one.judgments) for one in found
            ),
            notes=("Of several passages that tie for the best one is drawn.",),
        ),
    )


def value(found: Sequence[Found], *, spread: float, seed: int) -> dict[str, Any]:
    """The whole result for JSON."""
    return {"designs": [asdict(one) for one in found], "spread": spread, "seed": seed}
