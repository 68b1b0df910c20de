"""The results as Markdown, and into a page between two marks.

python benchmarks/report.py RESULTS.json [--page docs/results/performance.md]
"""

import argparse
import statistics
from collections.abc import Mapping
from pathlib import Path

from results import AGREES, Results, Row, Table, read_results
from targets import Outcome, check_targets

__all__ = ["format_report", "format_tables", "write_page"]

_MIB = 1 << 20
_SIZE = "6,980 x 1,000"
_BEGIN = "<!-- results: written by benchmarks/report.py -->"
_END = "<!-- end of results -->"
_COMPARED = ("heldout", "trec_eval", "pytrec_eval", "ir_measures", "ranx", "polars")
_SHORT = ("dev.trec", "dev.trec.bz2", "dev.interleaved.trec", "dl.trec")
_MET = {True: "yes", False: "**no**", None: "not measured"}


def format_report(results: Results) -> str:
    """Everything: a summary, facts, targets, a table per input."""
    facts = "\n".join(f"| {name} | {value} |" for name, value in results.facts.items())
    targets = "\n".join(map(_target, check_targets(results.tables)))
    size = results.facts.get("queries x hits", "")
    small = "" if size.startswith(_SIZE) else f"At {size}; the targets are for {_SIZE}.\n\n"
    return (
        f"### In short\n\n{_summary(results.tables)}\n\n"
        f"### Machine and tools\n\n| | |\n| --- | --- |\n{facts}\n\n"
        f"### Targets\n\n{small}| what | against | at most | measured | met |\n"
        f"| --- | --- | ---: | ---: | --- |\n{targets}\n\n{format_tables(results)}\n"
    )


def format_tables(results: Results) -> str:
    """A table per input."""
    return "\n\n".join(_table(name, table) for name, table in results.tables.items())


def _summary(tables: Mapping[str, Table]) -> str:
    """Seconds and memory of the tools that most people know, on a few inputs."""
    rows = [
        f"| `{name}` | " + " | ".join(_cell(tables[name], tool) for tool in _COMPARED) + " |"
        for name in _SHORT
        if name in tables
    ]
    head = f"| file | {' | '.join(_COMPARED)} |\n| --- |{' ---: |' * len(_COMPARED)}"
    return "\n".join([head, *rows])


def _cell(table: Table, tool: str) -> str:
    unpacked = next((row for row in table.rows if row.name.startswith(f"{tool} behind ")), None)
    row = table.row(tool) or unpacked
    if row is None or row.median is None:
        return ""
    return f"{row.median:.2f} s, {row.peak / _MIB:,.0f} MiB"


def _target(outcome: Outcome) -> str:
    digits = {"x": 3, "MiB": 0, "s": 2}[outcome.unit]
    unit = "" if outcome.unit == "x" else f" {outcome.unit}"
    measured = "–" if outcome.measured is None else f"{outcome.measured:.{digits}f}{unit}"
    limit = f"{outcome.at_most:.{digits}f}".rstrip("0").rstrip(".") if digits else "64"
    return (
        f"| {outcome.what} | {outcome.against} | {limit}{unit} | {measured} | {_MET[outcome.met]} |"
    )


def _table(name: str, table: Table) -> str:
    head = (
        "contender | median s | least–most | x heldout | cpu s | peak MiB | with children | scores"
    )
    ours = next((row.median for row in table.rows if row.role == "heldout" and row.median), None)
    rows = "\n".join(_row(row, ours) for row in table.rows)
    load = f"Load before and after: {table.load[0]:.1f} and {table.load[1]:.1f}."
    return (
        f"### {name}: {table.title}\n\n{load}\n\n| {head} |\n"
        f"| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n{rows}"
    )


def _row(row: Row, ours: float | None) -> str:
    if row.median is None:
        return f"| {row.name} | – | – | – | – | – | – | {row.missing or row.verdict} |"
    spread = f"{min(row.seconds):.2f}–{max(row.seconds):.2f}"
    ratio = f"{row.median / ours:.2f}" if ours else "–"
    memory = " | ".join(f"{size / _MIB:.0f}" if size else "–" for size in (row.peak, row.tree))
    scores = "same" if row.verdict == AGREES else row.verdict
    cpu = f"{statistics.median(row.cpu):.2f}" if row.cpu else "–"
    return f"| {row.name} | {row.median:.3f} | {spread} | {ratio} | {cpu} | {memory} | {scores} |"


def write_page(results: Results, page: Path) -> None:
    """Replace what stands between the marks.

    Raises:
        ValueError: the page has no marks.
    """
    before, begin, rest = page.read_text("utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"no marks in the page: {_BEGIN} and {_END}")
    text = f"{before}{_BEGIN}\n\n{format_report(results)}\n{_END}{after}"
    page.write_text(text, "utf-8")


def main() -> None:
    """Print, or write into a page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, metavar="RESULTS.json")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    results = read_results(given.results)
    if given.page:
        write_page(results, given.page)
    else:
        print(format_report(results))


if __name__ == "__main__":
    main()
