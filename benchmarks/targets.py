"""The targets, and whether they are met."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from results import AGREES, Row, Table

__all__ = ["MANY", "WARM", "Outcome", "check_targets"]

WARM = "warm"
MANY = "143 runs"
_MIB = 1 << 20

Tables = Mapping[str, Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One target.

    Attributes:
        what: what is measured.
        against: what it is measured against.
        at_most: the target.
        measured: the figure, `None` where a part of it could not be measured.
        unit: of both; `x` for a ratio of medians.
    """

    what: str
    against: str
    at_most: float
    measured: float | None
    unit: str = "x"

    @property
    def met(self) -> bool | None:
        """Whether it is met, `None` where that is not known."""
        return None if self.measured is None else self.measured <= self.at_most


def check_targets(tables: Tables) -> list[Outcome]:
    """Every target on what was measured."""
    return [
        *_warm(tables),
        *_cold(tables),
        *_against_peers(tables),
        _memory(tables),
        _small(tables),
        _ratio(
            tables, MANY, "heldout", "ir_measures, one process", 1 / 10, what="143 TREC-COVID runs"
        ),
    ]


def _warm(tables: Tables) -> Iterator[Outcome]:
    for name in ("dev.tsv.bz2", "dev.trec.bz2"):
        for scanner, limit in (("compiled", 1.05), ("numpy", 1.2)):
            label = f"{name}, stdlib"
            yield _ratio(
                tables,
                WARM,
                f"{label}, {scanner}",
                f"{label}, alone",
                limit,
                what=f"{name}, warm, {scanner} scanner",
            )


def _cold(tables: Tables) -> Iterator[Outcome]:
    for name in ("dev.tsv.bz2", "dev.trec.bz2"):
        yield _ratio(tables, name, "heldout", "stdlib alone", 1.2)
    yield _ratio(tables, "dev.tsv.bz2", "heldout", "ms_marco_eval.py", 1 / 5)


def _against_peers(tables: Tables) -> Iterator[Outcome]:
    for peer, limit in (("trec_eval", 1 / 8), ("ranx", 1 / 20), ("ir_measures", 1 / 25)):
        yield _ratio(tables, "dev.trec", "heldout", peer, limit)
    yield _ratio(tables, "dev.tsv", "heldout", "ms_marco_eval.py", 1 / 8)


def _ratio(
    tables: Tables, table: str, ours: str, other: str, at_most: float, *, what: str = ""
) -> Outcome:
    """A ratio of medians within one table; unknown if either is missing or ours is wrong."""
    own, base = _row(tables, table, ours), _row(tables, table, other)
    measured = None
    if own and base and own.median and base.median and own.verdict == AGREES:
        measured = own.median / base.median
    return Outcome(what=what or f"{table}, cold", against=other, at_most=at_most, measured=measured)


def _row(tables: Tables, table: str, name: str) -> Row | None:
    return tables[table].row(name) if table in tables else None


def _memory(tables: Tables) -> Outcome:
    """The most that any variant of ours took on one run, with its children."""
    found = [
        (max(row.tree, row.peak), f"{row.name} on {name}")
        for name, table in tables.items()
        if name not in {WARM, MANY}
        for row in table.rows
        if row.role == "heldout" and row.tree
    ]
    most, whose = max(found, default=(0, ""))
    return Outcome(
        what="peak memory on any run, with child processes",
        against=whose,
        at_most=64,
        measured=most / _MIB if found else None,
        unit="MiB",
    )


def _small(tables: Tables) -> Outcome:
    own, base = (_row(tables, "dl.trec", name) for name in ("heldout", "import of numpy"))
    measured = None
    if own and base and own.median and base.median and own.verdict == AGREES:
        measured = own.median - base.median
    return Outcome(
        what="a small run, cold, beyond the import of numpy",
        against="import of numpy",
        at_most=0.1,
        measured=measured,
        unit="s",
    )
