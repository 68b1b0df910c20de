"""`heldout board import-msmarco`: an old board's table becomes a board of its own."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from heldout.board.old_boards.legacy import OldTable, Repair, parse_table
from heldout.cli.context import json_option, now_option, reports_disk
from heldout.cli.printing import answers, plural, print_facts, print_json
from heldout.errors import InputError, Problem, quote
from heldout.pipeline.founding.import_msmarco import (
    Source,
    TakenOver,
    differing_trophies,
    import_board,
)

__all__ = ["import_msmarco"]

_MOST_SHOWN = 3


@click.command("import-msmarco")
@click.argument("table", metavar="CSV", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--vault", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Outside DIR."
)
@now_option
@json_option
@reports_disk
def import_msmarco(*, table: Path, folder: Path, vault: Path, now: datetime, as_json: bool) -> None:
    """Make a board of the CSV file of an MS MARCO leaderboard: a record, nothing is scored.

    Every cell is kept in the log, every repair is told. Days, scores and trophies stay as the old
    board published them.

    \b
    Example:
      heldout board import-msmarco msmarco-doc-leaderboard.csv old --vault ../old-vault
    """
    data = _read(table)
    source = Source(name=table.name, data=data, table=parse_table(data, path=str(table)))
    taken = import_board(folder, vault.absolute(), source, now=now)
    if as_json:
        print_json(_document(source, taken))
        return
    print_facts(answers(), _facts(folder, vault, source, taken))
    _print_repairs(source.table.repairs)
    page = (folder / "leaderboard" / "index.html").absolute()
    print_facts(answers(), [("", ""), ("page", page.as_uri())])


def _read(table: Path) -> bytes:
    try:
        return table.read_bytes()
    except OSError as error:
        raise InputError(
            Problem(
                code="unreadable-file",
                path=str(table),
                found=error.strerror or "no file",
                expected="the CSV file of a leaderboard",
            )
        ) from None


def _facts(folder: Path, vault: Path, source: Source, taken: TakenOver) -> list[tuple[str, str]]:
    before = "   (done before)" if taken.done_before else ""
    table = source.table
    without = len(taken.standings.unranked)
    none = f", {without} without an official score" if without else ""
    return [
        ("board", f"{folder}: board.toml, log, page; a git repository{before}"),
        ("vault", f"{vault}: the key {taken.desk.by}, the log, the file as it is{before}"),
        ("source", f"{source.name}, SHA-256 {table.digest}"),
        ("imported", f"{_count_entries(table)}{none}"),
        ("days", _say_days(table)),
        ("trophies", _say_trophies(table, differing_trophies(taken.standings))),
        ("scores", "as published; without runs and labels nothing can be scored again"),
    ]


def _count_entries(table: OldTable) -> str:
    baselines = sum(entry.mark == "baseline" for entry in table.entries)
    entries = plural(len(table.entries) - baselines, "entry", "entries")
    return f"{entries}, {plural(baselines, 'baseline')}"


def _say_days(table: OldTable) -> str:
    days = [entry.day for entry in table.entries]
    return f"{min(days)} to {max(days)}, as the old board claims"


def _say_trophies(table: OldTable, differing: Sequence[str]) -> str:
    given = sum(entry.mark == "trophy" for entry in table.entries)
    if not differing:
        return f"{given} as given; the rule gives the same"
    named = ", ".join(differing)
    return f"{given} as given; the rule says otherwise of {len(differing)}: {named}"


def _print_repairs(repairs: Sequence[Repair]) -> None:
    counts = Counter((repair.kind, repair.column) for repair in repairs)
    print_facts(answers(), [("", ""), ("repairs", f"{len(repairs):,}; log.jsonl has all of them")])
    for (kind, column), count in counts.items():
        places = [r for r in repairs if (r.kind, r.column) == (kind, column)]
        print_facts(answers(), [("", f"{kind}, column {column}: {count:,}")])
        shown = [("", f"  {_say_repair(repair)}") for repair in places[:_MOST_SHOWN]]
        more = len(places) - len(shown)
        print_facts(answers(), [*shown, *[("", f"  and {more:,} more")] * (more > 0)])


def _say_repair(repair: Repair) -> str:
    made = quote(repair.made) if repair.made else "nothing"
    return f"line {repair.line}: {quote(repair.found)} -> {made}"


def _document(source: Source, taken: TakenOver) -> dict[str, object]:
    table = source.table
    baselines = sum(entry.mark == "baseline" for entry in table.entries)
    return {
        "board": table.layout.name,
        "by": taken.desk.by,
        "source": source.name,
        "sha256": table.digest,
        "entries": len(table.entries) - baselines,
        "baselines": baselines,
        "without_official_score": [row.id for row in taken.standings.unranked],
        "trophies": [entry.id for entry in table.entries if entry.mark == "trophy"],
        "trophies_that_differ_by_rule": list(differing_trophies(taken.standings)),
        "repairs": [asdict(repair) for repair in table.repairs],
        "done_before": taken.done_before,
    }
