"""What was measured, as values and as JSON."""

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

__all__ = ["AGREES", "Results", "Role", "Row", "Table", "read_results", "write_results"]

Role = Literal["floor", "heldout", "peer"]
AGREES = "agrees"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One contender on one input.

    Attributes:
        name: of the contender.
        role: reading alone, ourselves, or another tool.
        seconds: wall time of each repeat; empty if it was not timed.
        cpu: seconds of cores in each repeat; empty where only wall time is measured.
        peak: most bytes in memory, of the largest process.
        tree: most bytes in memory, of all its processes together, as sampled.
        verdict: `agrees`, or what is wrong with its scores; empty for a floor.
        missing: why it could not be measured; empty if it could.
    """

    name: str
    role: Role
    seconds: tuple[float, ...] = ()
    cpu: tuple[float, ...] = ()
    peak: int = 0
    tree: int = 0
    verdict: str = ""
    missing: str = ""

    @property
    def median(self) -> float | None:
        """Seconds, `None` if it was not timed."""
        return statistics.median(self.seconds) if self.seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All contenders on one input, measured in one run.

    Attributes:
        title: what the input is.
        load: processes that wanted a core, on average, just before and just after.
        rows: by contender.
    """

    title: str
    load: tuple[float, float]
    rows: tuple[Row, ...]

    def row(self, name: str) -> Row | None:
        """The row of a contender."""
        return next((row for row in self.rows if row.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything.

    Attributes:
        facts: what matters of the machine and the tools, by name.
        tables: by input.
    """

    facts: Mapping[str, str]
    tables: Mapping[str, Table]


def write_results(results: Results, path: Path) -> None:
    """As JSON."""
    path.write_text(json.dumps(asdict(results), indent=1) + "\n", "utf-8")


def read_results(path: Path) -> Results:
    """What `write_results` wrote; nothing if the file does not exist."""
    if not path.exists():
        return Results(facts={}, tables={})
    found = json.loads(path.read_bytes())
    return Results(
        facts=found["facts"],
        tables={
            name: Table(
                title=table["title"],
                load=tuple(table["load"]),
                rows=tuple(
                    Row(**{**row, "seconds": tuple(row["seconds"]), "cpu": tuple(row["cpu"])})
                    for row in table["rows"]
                ),
            )
            for name, table in found["tables"].items()
        },
    )
