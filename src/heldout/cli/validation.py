"""`heldout validate`: every problem of a run file."""

import os
from pathlib import Path

import click

from heldout.cli.files import ORDERS, json_option, order_option, scan_file
from heldout.cli.printing import (
    Console,
    answers,
    count_errors,
    plural,
    print_facts,
    print_json,
    print_problems,
    problem_json,
    reports_errors,
)
from heldout.errors import InputError
from heldout.trec.accelerators import find_accelerators
from heldout.trec.queries import read_queries
from heldout.trec.ranking import Order
from heldout.trec.reading.allocator import keep_freed_memory
from heldout.trec.reading.streams import open_input
from heldout.trec.runs import Expected, Scan

__all__ = ["validate"]


@click.command
@click.argument("run", metavar="RUN")
@click.option("--queries", "queries_path", required=True, metavar="Q", help="The query set.")
@click.option("--depth", type=click.IntRange(min=1), metavar="N", help="Most documents of a query.")
@order_option
@json_option
@click.pass_context
@reports_errors
def validate(
    context: click.Context,
    *,
    run: str,
    queries_path: str,
    depth: int | None,
    order: Order | None,
    as_json: bool,
) -> None:
    """Tell every problem of a run file, with its line.

    The run must answer every query of the query set and no other, name each document once, and
    keep to the depth. Notes are no problems: they tell how something odd is read.

    \b
    Example:
      heldout validate bm25.tsv --queries dev-queries.tsv --depth 1000
    """
    keep_freed_memory()
    try:
        with open_input(Path(queries_path)) as source:
            queries = read_queries(source, path=queries_path)
        expected = Expected(queries=frozenset(queries.texts), max_depth=depth, complete=True)
        accelerators = find_accelerators(os.environ)
        scan = scan_file(run, order=order, expected=expected, accelerators=accelerators)
    except InputError as error:
        if as_json:
            print_json(_failed_json(run, error))
        raise
    if as_json:
        print_json(_scan_json(scan))
    else:
        _print_scan(answers(), scan, queries=len(queries.texts))
    if not scan.ok:
        context.exit(1)


def _failed_json(run: str, error: InputError) -> dict[str, object]:
    return {
        "path": run,
        "ok": False,
        "problems": [problem_json(problem) for problem in error.problems],
        "counts": dict(error.counts),
    }


def _scan_json(scan: Scan) -> dict[str, object]:
    return {
        "path": scan.path,
        "ok": scan.ok,
        "order": scan.order,
        "form": scan.form,
        "queries": scan.facts.queries,
        "documents": scan.facts.documents,
        "problems": [problem_json(problem) for problem in scan.problems],
        "counts": dict(scan.counts),
    }


def _print_scan(console: Console, scan: Scan, *, queries: int) -> None:
    notes = sum(problem.severity == "note" for problem in scan.problems)
    errors = count_errors(scan.problems, scan.counts)
    verdict = "no problems" if scan.ok else plural(errors, "problem")
    facts = scan.facts
    depth = plural(facts.documents, "document")
    print_facts(
        console,
        [
            ("run", scan.path),
            ("found", verdict + (f", {plural(notes, 'note')}" if notes else "")),
            ("read", f"{facts.queries:,} of {plural(queries, 'query', 'queries')}, {depth}"),
            ("order", f"{scan.order}: {ORDERS[scan.order]}"),
        ],
    )
    if scan.problems:
        console.print()
        print_problems(console, scan.problems, counts=scan.counts)
    if not scan.ok:
        console.print()
        console.print("Mend the errors, then validate again.")
