"""`heldout evaluate` and `heldout validate`: run files, looked at on their own."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import click
from rich.console import Console

from heldout.cli.printing import (
    answers,
    count_errors,
    messages,
    number,
    plural,
    print_facts,
    print_json,
    print_problems,
    print_table,
    problem_json,
    reports_errors,
)
from heldout.errors import InputError, Problem
from heldout.measures.evaluate import Evaluation, MeasureScores
from heldout.measures.evaluate import evaluate as evaluate_rankings
from heldout.measures.spec import Measure, parse_measure
from heldout.trec.problems import show
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.queries import read_queries
from heldout.trec.ranking import Order
from heldout.trec.runs import Expected, Scan, scan_run
from heldout.trec.streams import open_input

__all__ = ["evaluate", "run_name", "scan_file", "validate"]

_ORDERS = {
    "trec": "score descending, ties by document id descending; ranks ignored",
    "trec9": "as trec, with scores rounded to float32, as in trec_eval up to 9",
    "msmarco": "by rank",
}
_SUFFIXES = (".gz", ".bz2", ".zst", ".tsv", ".txt", ".run", ".trec")
_EXAMPLES = 3

_order_option = click.option(
    "--order",
    type=click.Choice(get_args(Order)),
    help="How documents are ordered: trec for 6 columns and msmarco for 3, if not given.",
)
_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


def run_name(path: str) -> str:
    """A run's name: that of its file, without suffixes like `.tsv.gz`."""
    name = Path(path).name
    while Path(name).suffix in _SUFFIXES and Path(name).stem:
        name = Path(name).stem
    return name


def scan_file(
    path: str,
    *,
    order: Order | None,
    qrels: Qrels | None = None,
    expected: Expected | None = None,
) -> Scan:
    """Scan a run; without an order by `trec` if it has scores, else by `msmarco`.

    Raises:
        InputError: code `unreadable-file`.
    """
    judgments = None if qrels is None else qrels.judgments

    def scan(chosen: Order) -> Scan:
        with open_input(Path(path)) as source:
            return scan_run(source, path=path, order=chosen, qrels=judgments, expected=expected)

    if order is not None:
        return scan(order)
    found = scan("trec")
    return scan("msmarco") if "no-scores" in found.counts else found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    """A run that could be scored."""

    name: str
    scan: Scan
    evaluation: Evaluation
    notes: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """A run that could not."""

    path: str
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    opened: bool = True


@click.command
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--qrels", "qrels_path", required=True, metavar="Q", help="The judgments.")
@click.option(
    "-m",
    "--measure",
    "names",
    multiple=True,
    required=True,
    metavar="MEASURE",
    help="For example RR@10, nDCG@10 or AP(rel=2); can be given many times.",
)
@click.option("--per-query", is_flag=True, help="Also the scores of each query.")
@_order_option
@_json_option
@click.pass_context
@reports_errors
def evaluate(
    context: click.Context,
    *,
    runs: tuple[str, ...],
    qrels_path: str,
    names: tuple[str, ...],
    per_query: bool,
    order: Order | None,
    as_json: bool,
) -> None:
    """Score run files on judgments.

    RUN is in MS MARCO form (3 columns) or TREC form (6 columns), plain, gz, bz2 or zst. A mean is
    over all queries with judgments; a query that the run does not answer counts 0.

    A file that cannot be scored is named at the end, and the others are scored.

    \b
    Example:
      heldout evaluate bm25.tsv dense.run.gz --qrels dev.qrels -m RR@10 -m 'AP(rel=2)'
    """
    measures = tuple(dict.fromkeys(parse_measure(name, path="-m") for name in names))
    with open_input(Path(qrels_path)) as source:
        qrels = read_qrels(source, path=qrels_path)
    scored, failed = _evaluate_all(runs, qrels, measures, order)
    if as_json:
        _print_json(scored, failed, per_query=per_query)
    else:
        _print_scores(answers(), scored, qrels_path, given=order)
        if per_query:
            _print_per_query(answers(), scored)
        _print_notes(messages(), scored, qrels)
        _print_failed(messages(), failed, among=len(runs))
    if failed:
        context.exit(1 if scored or any(run.opened for run in failed) else 2)


def _evaluate_all(
    paths: Sequence[str], qrels: Qrels, measures: Sequence[Measure], order: Order | None
) -> tuple[list[_Scored], list[_Failed]]:
    scored: list[_Scored] = []
    failed: list[_Failed] = []
    console = messages()
    with console.status("") as status:
        for count, path in enumerate(paths, start=1):
            status.update(f"reading run {count} of {len(paths)}")
            outcome = _evaluate_one(path, qrels, measures, order)
            if isinstance(outcome, _Scored):
                scored.append(outcome)
            else:
                failed.append(outcome)
    return scored, failed


def _evaluate_one(
    path: str, qrels: Qrels, measures: Sequence[Measure], order: Order | None
) -> _Scored | _Failed:
    try:
        scan = scan_file(path, order=order, qrels=qrels)
    except InputError as error:
        return _Failed(path=path, problems=error.problems, counts={}, opened=False)
    if not scan.ok:
        return _Failed(path=path, problems=scan.problems, counts=scan.counts)
    overlap = _check_overlap(path, scan.rankings.keys(), qrels.judgments.keys())
    if any(problem.severity == "error" for problem in overlap):
        return _Failed(path=path, problems=overlap, counts={})
    evaluation = evaluate_rankings(scan.rankings, qrels.judgments, measures)
    notes = (*scan.problems, *overlap)
    return _Scored(name=run_name(path), scan=scan, evaluation=evaluation, notes=notes)


def _check_overlap(
    path: str, answered: AbstractSet[str], judged: AbstractSet[str]
) -> tuple[Problem, ...]:
    """An error where no answered query is judged: a mean of zeros would say nothing of the run."""
    common = len(answered & judged)
    if 2 * common >= max(len(answered), len(judged)):
        return ()
    own, other = (
        ", ".join(map(show, sorted(some - both)[:_EXAMPLES]))
        for some, both in ((answered, judged), (judged, answered))
    )
    if not common:
        return (
            Problem(
                code="no-common-query",
                path=path,
                found=f"{plural(len(answered), 'query', 'queries')} ({own}), none in the qrels",
                expected=f"answers to the {len(judged):,} judged queries ({other})",
                hint="are these the qrels of another query set? ids are text: 007 is not 7",
            ),
        )
    found = f"{common:,} of its {plural(len(answered), 'query', 'queries')} in the qrels"
    return (
        Problem(
            code="few-common-queries",
            path=path,
            found=f"{found}, which judge {len(judged):,}",
            expected="at least half of either in common",
            hint=f"not judged: {own}" if own else f"not answered, so 0: {other}",
            severity="note",
        ),
    )


def _labels(scored: Sequence[_Scored]) -> list[str]:
    """Names of the runs, paths where names are the same."""
    names = [run.name for run in scored]
    return [run.scan.path if names.count(run.name) > 1 else run.name for run in scored]


def _print_scores(
    console: Console, scored: Sequence[_Scored], qrels_path: str, *, given: Order | None
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
    print_facts(console, [*_query_facts(scored, qrels_path), *_order_facts(scored, given)])


def _query_facts(scored: Sequence[_Scored], qrels_path: str) -> list[tuple[str, str]]:
    evaluation = scored[0].evaluation
    judged = plural(len(evaluation.queries), "query", "queries")
    facts = [("queries", f"{judged} with judgments in {qrels_path}; means are over these")]
    by_count: dict[int, list[str]] = {}
    for measure, scores in evaluation.scores.items():
        if measure.kind.better == "higher" and scores.without_relevant:
            by_count.setdefault(scores.without_relevant, []).append(str(measure))
    for count, names in by_count.items():
        facts.append(("", f"{count:,} without a relevant document count 0 ({', '.join(names)})"))
    if any(run.evaluation.unanswered for run in scored):
        facts.append(("", "unanswered ones count 0"))
    for label, run in zip(_labels(scored), scored, strict=True):
        if run.evaluation.ignored:
            ignored = plural(run.evaluation.ignored, "query", "queries")
            facts.append(("", f"{ignored} of {label} without judgments ignored"))
        facts += [
            ("", f"{scores.measure} of {label}: {_why(scores)}")
            for scores in run.evaluation.scores.values()
            if not scores.defined.all() or scores.mean is None
        ]
    return facts


def _why(scores: MeasureScores) -> str:
    """Why the mean, or the score of some query, is undefined."""
    if scores.mean is None:
        return scores.why
    undefined = len(scores.defined) - scores.n
    found = plural(scores.n, "query", "queries")
    return f"mean over {found}; in {undefined:,} nothing relevant was found"


def _order_facts(scored: Sequence[_Scored], given: Order | None) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    for order in dict.fromkeys(run.scan.order for run in scored):
        facts.append(("" if facts else "order", f"{order}: {_ORDERS[order]}"))
        if given is None:
            columns = 3 if order == "msmarco" else 6
            facts.append(("", f"chosen for files of {columns} columns; --order chooses another"))
    return facts


def _print_per_query(console: Console, scored: Sequence[_Scored]) -> None:
    for label, run in zip(_labels(scored), scored, strict=True):
        measures = list(map(str, run.evaluation.scores))
        rows = [
            [query, *(number(value) for value in row.values())]
            for query, row in run.evaluation.per_query().items()
        ]
        console.print()
        print_table(console, [label, *measures], rows)


def _print_notes(console: Console, scored: Sequence[_Scored], qrels: Qrels) -> None:
    noted = [(qrels.notes, {}), *((run.notes, run.scan.counts) for run in scored)]
    for problems, counts in noted:
        if problems:
            console.print()
            print_problems(console, problems, counts=counts)


def _print_failed(console: Console, failed: Sequence[_Failed], *, among: int) -> None:
    for run in failed:
        console.print()
        print_problems(console, run.problems, counts=run.counts)
    if failed:
        console.print()
        console.print(f"{len(failed)} of {plural(among, 'file')} not scored:")
        for run in failed:
            errors = count_errors(run.problems, run.counts)
            print_facts(console, [("", f"{run.path}: {plural(errors, 'problem')}")])


def _print_json(scored: Sequence[_Scored], failed: Sequence[_Failed], *, per_query: bool) -> None:
    print_json(
        {
            "runs": [_run_json(run, per_query=per_query) for run in scored],
            "failed": [
                {"path": run.path, "problems": [problem_json(p) for p in run.problems]}
                for run in failed
            ],
        }
    )


def _run_json(run: _Scored, *, per_query: bool) -> dict[str, object]:
    found = run.evaluation
    scores = {str(measure): scores for measure, scores in found.scores.items()}
    value: dict[str, object] = {
        "run": run.name,
        "path": run.scan.path,
        "order": run.scan.order,
        "queries": len(found.queries),
        "unanswered": found.unanswered,
        "ignored": found.ignored,
        "scores": {name: score.mean for name, score in scores.items()},
        "why": {name: score.why for name, score in scores.items() if score.mean is None},
        "n": {name: score.n for name, score in scores.items()},
        "without_relevant": {name: score.without_relevant for name, score in scores.items()},
        "notes": [problem_json(problem) for problem in run.notes],
    }
    if per_query:
        value["per_query"] = {
            query: {str(measure): score for measure, score in row.items()}
            for query, row in found.per_query().items()
        }
    return value


@click.command
@click.argument("run", metavar="RUN")
@click.option("--queries", "queries_path", required=True, metavar="Q", help="The query set.")
@click.option("--depth", type=click.IntRange(min=1), metavar="N", help="Most documents of a query.")
@_order_option
@_json_option
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
    try:
        with open_input(Path(queries_path)) as source:
            queries = read_queries(source, path=queries_path)
        expected = Expected(queries=frozenset(queries.texts), max_depth=depth, complete=True)
        scan = scan_file(run, order=order, expected=expected)
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
            ("order", f"{scan.order}: {_ORDERS[scan.order]}"),
        ],
    )
    if scan.problems:
        console.print()
        print_problems(console, scan.problems, counts=scan.counts)
    if not scan.ok:
        console.print()
        console.print("Mend the errors, then validate again.")
