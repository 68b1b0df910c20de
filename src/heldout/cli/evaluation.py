"""`heldout evaluate` and `heldout validate`: scores of run files, and what is wrong with one."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import click

from heldout.cli.options import with_options
from heldout.cli.printing import (
    TERMINAL,
    Console,
    answers,
    count_errors,
    messages,
    number,
    print_facts,
    print_json,
    print_notes,
    print_problems,
    print_table,
)
from heldout.errors import InputError, Problem, plural
from heldout.ids import find_near
from heldout.options import Jobs, Json, Opt
from heldout.scoring.evaluate import KindScores, MeasureScores, score_kinds
from heldout.scoring.measures import parse_measure
from heldout.scoring.options import FacetSource, RunOrder
from heldout.scoring.run_files import describe_orders, scan_file
from heldout.scoring.score import (
    Failed,
    Scored,
    collect_notes,
    describe_scored,
    find_reading,
    in_order,
    other_spelling,
)
from heldout.trec.accelerators import find_accelerators
from heldout.trec.ir_metadata import note_header
from heldout.trec.orders import DESCRIPTIONS, Order
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.reading.sources import keep_freed_memory, read_file
from heldout.trec.scans import Expected, Scan

_SHOWN = 3


@click.command
@with_options
@click.pass_context
def evaluate(
    context: click.Context,
    *,
    runs: Annotated[tuple[str, ...], Opt(argument=True, metavar="RUN...")],
    qrels_path: Annotated[str, Opt("The judgments.", names=("--qrels",), metavar="Q")],
    names: Annotated[
        tuple[str, ...],
        Opt(
            "For example RR@10, nDCG@10 or AP(rel=2); can be given many times.",
            names=("-m", "--measure"),
            metavar="MEASURE",
        ),
    ],
    per_query: Annotated[bool, Opt("Also the scores of each query.")] = False,
    order: RunOrder = None,
    facets: FacetSource,
    jobs: Jobs = None,
    use_cache: Annotated[bool, Opt("Neither use nor store scores.", names=("--no-cache",))] = True,
    as_json: Json = False,
) -> None:
    """Score run files on judgments.

    RUN is in MS MARCO form (3 columns) or TREC form (6 columns), plain, gz, bz2 or zst. A mean is
    over all queries with judgments; a query that the run does not answer counts 0.

    A file that cannot be scored is named at the end, and the others are scored.

    Scores are stored under the digests of the run, the judgments and the code, in HELDOUT_CACHE (a
    folder, or "off") or the user's cache, and not computed again while those hold.

    \b
    Example:
      heldout evaluate bm25.tsv dense.run.gz --qrels dev.qrels -m RR@10 -m 'AP(rel=2)'
    """
    keep_freed_memory()
    measures = dict.fromkeys(parse_measure(name, path="-m") for name in names)
    qrels = read_file(read_qrels, qrels_path)
    kinds: Mapping[str, frozenset[str]] = {}
    if facets.facet is not None:
        from heldout.scoring.query_facets import load_facet  # noqa: PLC0415 - few calls need it

        kinds = load_facet(facets.facet, facets)
    left_out = _left_out(qrels, facets)
    reading = find_reading(os.environ, jobs=jobs, cached=use_cache, progress=TERMINAL)
    outcomes = reading.score(runs, qrels, measures, order=order, excluded=left_out)
    scored = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    by_kind = [score_kinds(run.evaluation, kinds, least=facets.least) for run in scored if kinds]
    if as_json:
        _print_json(scored, failed, per_query=per_query, kinds=by_kind)
    else:
        console = answers()
        _print_scores(console, scored, qrels_path, given=order)
        if by_kind:
            _print_kinds(console, _labels(scored), by_kind)
        if per_query:
            _print_per_query(console, scored)
        console = messages()
        print_notes(console, collect_notes(scored, qrels))
        _print_spelling(console, facets.facet or "", kinds, qrels)
        _print_zeros(console, scored, qrels_path)
        _print_stored(console, scored)
        _print_failed(console, failed, among=len(runs))
    if failed:
        context.exit(1 if scored else 2)


def _left_out(qrels: Qrels, facets: FacetSource) -> frozenset[str]:
    """The judged queries that `--only` leaves out.

    Raises:
        InputError: code `too-few-queries`; or a file has errors.
    """
    if not facets.only:
        return frozenset()
    from heldout.scoring.query_facets import check_size, load_only  # noqa: PLC0415 - few need it

    only = load_only(facets) or frozenset()
    judged = frozenset(query for query, grades in qrels.judgments.items() if grades)
    check_size(len(judged & only), facets.least, path="--only")
    return judged - only


def _print_spelling(
    console: Console, facet: str, kinds: Mapping[str, frozenset[str]], qrels: Qrels
) -> None:
    """Say which queries of a facet would be judged if both files wrote them alike."""
    named = frozenset().union(*kinds.values())
    judged = qrels.judgments.keys()
    if near := find_near(named - judged, judged - named):
        console.print()
        print_problems(console, [other_spelling(facet, "queries", near)])


def _print_zeros(console: Console, scored: Sequence[Scored], qrels_path: str) -> None:
    """Say that all means are 0: mostly ids or a column of another form, and no result."""
    means = [scores.mean for run in scored for scores in run.evaluation.scores.values()]
    if means and not any(means) and None not in means:
        zeros = Problem(
            code="all-zero",
            path=qrels_path,
            found=f"0 for {plural(len(scored), 'run')}, whatever the measure",
            expected="another score for some run",
            hint="is the grade the last column of the qrels, and are documents named as there?",
            severity="note",
        )
        console.print()
        print_problems(console, [zeros])


def _labels(scored: Sequence[Scored]) -> list[str]:
    """Names of the runs, paths where names are the same."""
    names = [run.name for run in scored]
    return [run.path if names.count(run.name) > 1 else run.name for run in scored]


def _print_scores(
    console: Console, scored: Sequence[Scored], qrels_path: str, *, given: Order | None
) -> None:
    if not scored:
        return
    measures = list(scored[0].evaluation.scores)
    rows = [
        [
            label,
            *(number(scores.mean) for scores in run.evaluation.scores.values()),
            f"{run.evaluation.unanswered:,}",
        ]
        for label, run in zip(_labels(scored), scored, strict=True)
    ]
    print_table(console, ["run", *map(str, measures), "unanswered"], rows)
    console.print()
    print_facts(
        console,
        [
            *_query_facts(scored, qrels_path),
            *describe_orders((run.order for run in scored), given=given),
        ],
    )


def _query_facts(scored: Sequence[Scored], qrels_path: str) -> list[tuple[str, str]]:
    evaluation = scored[0].evaluation
    judged = plural(len(evaluation.queries), "query", "queries")
    facts = [("queries", f"{judged} with judgments in {qrels_path}; means are over these")]
    if evaluation.excluded:
        facts.append(("", f"{evaluation.excluded:,} other judged ones are left out by --only"))
    by_count: dict[int, list[str]] = {}
    for measure, scores in evaluation.scores.items():
        if measure.kind.better == "higher" and scores.without_relevant:
            by_count.setdefault(scores.without_relevant, []).append(str(measure))
    for count, names in by_count.items():
        facts.append(("", f"{count:,} without a relevant document count 0 ({', '.join(names)})"))
    if any(run.evaluation.unanswered for run in scored):
        facts.append(("", "unanswered ones count 0"))
    runs = list(zip(_labels(scored), scored, strict=True))
    ignored = [
        f"{plural(run.evaluation.ignored, 'query', 'queries')} of {label} without judgments ignored"
        for label, run in runs
        if run.evaluation.ignored
    ]
    undefined = [
        f"{scores.measure} of {label}: {_why(scores)}"
        for label, run in runs
        for scores in run.evaluation.scores.values()
        if not scores.defined.all() or scores.mean is None
    ]
    return [*facts, *_first(ignored), *_first(undefined)]


def _first(lines: Sequence[str]) -> list[tuple[str, str]]:
    """The first few lines, so that the table stays in sight, and how many there are more."""
    more = len(lines) - _SHOWN
    shown = [*lines[:_SHOWN], *([f"and {more:,} more like the last"] if more > 0 else [])]
    return [("", line) for line in shown]


def _why(scores: MeasureScores) -> str:
    """Why the mean, or the score of some query, is undefined."""
    if scores.mean is None:
        return scores.why
    undefined = len(scores.defined) - scores.n
    found = plural(scores.n, "query", "queries")
    return f"mean over {found}; in {undefined:,} nothing relevant was found"


def _print_per_query(console: Console, scored: Sequence[Scored]) -> None:
    for label, run in zip(_labels(scored), scored, strict=True):
        measures = list(map(str, run.evaluation.scores))
        rows = [
            [query, *(number(value) for value in row.values())]
            for query, row in in_order(run.evaluation).items()
        ]
        console.print()
        print_table(console, [label, *measures], rows)


def _print_stored(console: Console, scored: Sequence[Scored]) -> None:
    """Said to a person only: what a program reads is the same, stored or not."""
    stored = sum(run.stored for run in scored)
    if stored and console.is_terminal:
        console.print()
        runs = plural(len(scored), "run")
        print_facts(
            console, [("stored", f"{stored:,} of {runs} as stored; --no-cache scores them again")]
        )


def _print_failed(console: Console, failed: Sequence[Failed], *, among: int) -> None:
    for run in failed:
        console.print()
        print_problems(console, run.problems, counts=run.counts)
    if failed:
        console.print()
        console.print(f"{len(failed)} of {plural(among, 'file')} not scored:")
        for run in failed:
            errors = count_errors(run.problems, run.counts)
            print_facts(console, [("", f"{run.path}: {plural(errors, 'problem')}")])


def _print_json(
    scored: Sequence[Scored],
    failed: Sequence[Failed],
    *,
    per_query: bool,
    kinds: Sequence[Mapping[str, KindScores]],
) -> None:
    runs = [describe_scored(run, per_query=per_query) for run in scored]
    for run, by_kind in zip(runs, kinds, strict=False):
        run["facet"] = {
            kind: {"queries": one.queries, "scores": dict(one.means), "why": dict(one.why)}
            for kind, one in by_kind.items()
        }
    unread = [{"path": run.path, "problems": [*map(asdict, run.problems)]} for run in failed]
    print_json({"runs": runs, "failed": unread})


def _print_kinds(
    console: Console, labels: Sequence[str], scored: Sequence[Mapping[str, KindScores]]
) -> None:
    """A table for each kind of query."""
    for kind, first in scored[0].items():
        console.print()
        head = f"{kind} ({plural(first.queries, 'query', 'queries')})"
        if first.queries < first.least:
            print_facts(console, [(head, f"undefined; this needs {first.least}")])
            continue
        rows = [
            [label, *map(number, run[kind].means.values())]
            for label, run in zip(labels, scored, strict=True)
        ]
        print_table(console, [head, *first.means], rows)
        undefined = [
            ("", f"{name} of {label}: {why}")
            for label, run in zip(labels, scored, strict=True)
            for name, why in run[kind].why.items()
        ]
        print_facts(console, undefined)


@click.command
@with_options
@click.pass_context
def validate(
    context: click.Context,
    *,
    run: Annotated[str, Opt(argument=True, metavar="RUN")],
    queries_path: Annotated[str, Opt("The query set.", names=("--queries",), metavar="Q")],
    depth: Annotated[int | None, Opt("Most documents of a query.", least=1, metavar="N")] = None,
    order: RunOrder = None,
    as_json: Json = False,
) -> None:
    """List every problem of a run file, with its line.

    The run must answer every query of the query set and no other, name each document once, and
    keep to the depth. Notes are not problems: they say how something odd is read.

    \b
    Example:
      heldout validate bm25.tsv --queries dev-queries.tsv --depth 1000
    """
    from heldout.trec.queries import read_queries  # noqa: PLC0415 - evaluate needs none

    keep_freed_memory()
    try:
        queries = read_file(read_queries, queries_path)
        expected = Expected(queries=frozenset(queries.texts), max_depth=depth, complete=True)
        accelerators = find_accelerators(os.environ)
        scan = note_header(
            scan_file(run, order=order, expected=expected, accelerators=accelerators)
        )
    except InputError as error:
        if as_json:
            problems = [*map(asdict, error.problems)]
            print_json(
                {"path": run, "ok": False, "problems": problems, "counts": dict(error.counts)}
            )
        raise
    if as_json:
        print_json(scan.document())
    else:
        _print_scan(answers(), scan, queries=len(queries.texts))
    if not scan.ok:
        context.exit(1)


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
            ("order", f"{scan.order}: {DESCRIPTIONS[scan.order]}"),
        ],
    )
    if scan.problems:
        console.print()
        print_problems(console, scan.problems, counts=scan.counts)
    if not scan.ok:
        console.print()
        console.print("Fix the errors above, then run validate again.")
