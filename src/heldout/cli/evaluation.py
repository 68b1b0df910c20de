"""`heldout evaluate` and `heldout validate`: scores of run files, and what is wrong with one."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import click

from heldout.cli.options import Dask, command, open_cluster, refuse_other_options
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
from heldout.collections.named import load_qrels, load_queries
from heldout.errors import InputError, OptionError, Problem, plural
from heldout.files import frames, process
from heldout.ids import find_near
from heldout.options import Jobs, Json, Opt
from heldout.scoring import options, other_measures, run_files, score, shards
from heldout.scoring.evaluate import KindScores, MeasureScores, score_kinds
from heldout.scoring.measures import Measure, needs_whole
from heldout.scoring.names import SETS, Asked, read_measure, read_measures
from heldout.scoring.output import check_sort, fold_notes, score_rows, sort_runs, to_csv, trec_lines
from heldout.trec import ir_metadata, orders, scans
from heldout.trec.qrels import Qrels

_SHOWN = 3
_OF_PARTS = frozenset({"part", "runs", "qrels_path", "names", "order", "jobs", "as_json"})
"""What `--shard` may stand beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOutput:
    """The form of the scores.

    Raises:
        ValueError: two forms at once.
    """

    per_query: Annotated[bool, Opt("Also the scores of each query.")] = False
    trec: Annotated[
        bool,
        Opt(
            "Lines of trec_eval -q: measure, query, score; the means last.",
            names=("-q", "--trec"),
        ),
    ] = False
    as_csv: Annotated[
        bool,
        Opt("CSV: a row for each run, or for each run and query.", names=("--csv",)),
    ] = False
    as_json: Json = False
    parquet: Annotated[
        Path | None,
        Opt("Parquet file for the scores; its columns are those of --csv.", path="file"),
    ] = None
    sort: Annotated[
        str | None, Opt("Measure to sort runs by, the best first.", metavar="MEASURE")
    ] = None

    def __post_init__(self) -> None:
        if self.trec + self.as_csv + self.as_json > 1:
            raise ValueError("-q, --csv and --json exclude each other")


@command
@click.pass_context
def evaluate(
    context: click.Context,
    *,
    runs: Annotated[tuple[str, ...], Opt(argument=True, metavar="RUN...")],
    qrels_path: Annotated[str, Opt(options.JUDGMENTS, names=("--qrels",), metavar="Q")],
    names: Annotated[
        tuple[str, ...],
        Opt(
            "Measure, such as RR@10, AP(rel=2), ndcg_cut_10 or official. Repeatable.",
            names=("-m", "--measure"),
            metavar="MEASURE",
        ),
    ],
    output: ScoreOutput,
    order: options.RunOrder = None,
    facets: options.FacetSource,
    jobs: Jobs = None,
    use_cache: Annotated[
        bool, Opt("No stored scores: compute all, store none.", names=("--no-cache",))
    ] = True,
    part: Annotated[
        str | None,
        Opt(
            "Part of the runs to score into HELDOUT_CACHE, without a table: 3/10 is the third of "
            "ten.",
            names=("--shard",),
            metavar="I/N",
        ),
    ] = None,
    dask: Dask = None,
) -> None:
    """Score run files on judgments.

    RUN is in MS MARCO form (3 columns) or TREC form (6 columns), plain, gz, bz2 or zst. A mean is
    over all queries with judgments; a query that the run does not answer counts 0.

    A measure may have its name in ir_measures (nDCG@10), in trec_eval (ndcg_cut_10) or a loose
    spelling (ndcg@10); official and all_trec are trec_eval's sets. What heldout does not compute
    itself, such as Rprec, ir_measures or trec_eval computes: pip install 'heldout[measures]'.

    A file that cannot be scored is named at the end, and the others are scored.

    Scores are stored under the digests of the run, the judgments and the code, in HELDOUT_CACHE (a
    folder, or "off") or the user's cache, and not computed again while those hold. So many runs
    can be scored on many machines: each scores one --shard, and a last call prints all scores.

    \b
    Examples:
      heldout evaluate bm25.tsv dense.run.gz --qrels dev.qrels -m RR@10 -m 'AP(rel=2)'
      heldout evaluate runs/*.gz --qrels dev.qrels -m ndcg_cut.10,20 --sort ndcg@10
      heldout evaluate bm25.run --qrels dev.qrels -m official -q
    """
    process.hold_freed_memory()
    asked = tuple(dict.fromkeys(one for name in names for one in read_measures(name)))
    measures = tuple(dict.fromkeys(one.measure for one in asked))
    _check_output(output, measures)
    shard = None if part is None else _read_part(part)
    whole_for, subtopics = needs_whole(measures), other_measures.need_subtopics(measures)
    qrels = load_qrels(qrels_path, subtopics=subtopics, whole_for=whole_for)
    if shard is not None:
        reading = score.find_reading(os.environ, jobs=jobs, progress=TERMINAL)
        found = shards.score_part(reading, runs, qrels, measures, shard, order=order)
        _print_part(context, found, as_json=output.as_json)
        return
    kinds = _load_kinds(facets, output)
    left_out = _left_out(qrels, facets)
    if dask is not None and jobs is not None:
        raise OptionError("--jobs counts processes here, and --dask computes on a cluster")
    with open_cluster(dask) as executor:
        reading = score.find_reading(
            os.environ, jobs=jobs, cached=use_cache, progress=TERMINAL, executor=executor
        )
        parts = shards.describe_parts(reading, runs, qrels, measures, order=order)
        print_facts(messages(), [("shards", parts)] if parts else [])  # before the rest is computed
        outcomes = reading.score(runs, qrels, measures, order=order, excluded=left_out)
    scored = [outcome for outcome in outcomes if isinstance(outcome, score.Scored)]
    failed = [outcome for outcome in outcomes if isinstance(outcome, score.Failed)]
    if output.sort is not None:
        scored = sort_runs(scored, read_measure(output.sort))
    by_kind = [score_kinds(run.evaluation, kinds, least=facets.least) for run in scored if kinds]
    if output.as_json:
        _print_json(scored, failed, per_query=output.per_query, kinds=by_kind)
    elif (output.trec or output.as_csv) and scored:
        tags = len(scored) > 1 or any(name in SETS for name in names)
        _print_rows(scored, asked, output, tags=tags)
    elif scored:
        _print_scores(answers(), scored, qrels_path, given=order)
        _print_kinds(answers(), _labels(scored), by_kind)
        _print_per_query(answers(), scored if output.per_query else ())
    if output.parquet is not None and scored:
        table = score_rows(scored, measures, _labels(scored), per_query=output.per_query)
        frames.write_parquet(table.as_columns(), output.parquet)
    if not output.as_json:
        console = messages()
        _print_notes(console, scored, qrels)
        _print_spelling(console, facets.facet or "", kinds, qrels)
        _print_zeros(console, scored, qrels_path)
        _print_stored(console, scored, always=bool(parts))
        _print_failed(console, failed, among=len(runs))
    if failed:
        context.exit(1 if scored else 2)


def _check_output(output: ScoreOutput, measures: Sequence[Measure]) -> None:
    """Refuse what cannot be done with the scores, before they are computed.

    Raises:
        InputError: code `sort-measure`.
        SetupError: nothing is installed that writes Parquet.
    """
    if output.sort is not None:
        check_sort(read_measure(output.sort, path="--sort"), measures)
    if output.parquet is not None:
        frames.find_parquet()


def _load_kinds(facets: options.FacetSource, output: ScoreOutput) -> Mapping[str, frozenset[str]]:
    """The queries of each subset that `--facet` names.

    Raises:
        click.UsageError: the form of the scores has no place for subsets.
        InputError: a file has errors.
    """
    if facets.facet is None:
        return {}
    if output.trec or output.as_csv:
        raise click.UsageError("-q and --csv have no place for subsets: --only FACET=SUBSET")
    from heldout.scoring.query_facets import load_facet

    return load_facet(facets.facet, facets)


def _print_rows(
    scored: Sequence[score.Scored], asked: Sequence[Asked], output: ScoreOutput, *, tags: bool
) -> None:
    """Lines for other programs, on standard output."""
    labels = _labels(scored)
    if output.as_csv:
        measures = tuple(dict.fromkeys(one.measure for one in asked))
        table = score_rows(scored, measures, labels, per_query=output.per_query)
        click.echo(to_csv(table), nl=False)
        return
    for line in trec_lines(scored, asked, labels, tags=tags):
        click.echo(line)


def _print_notes(console: Console, scored: Sequence[score.Scored], qrels: Qrels) -> None:
    """Print what is odd about files; of several runs a line for each kind."""
    if len(scored) == 1:
        print_notes(console, score.collect_notes(scored, qrels))
        return
    print_notes(console, [note for note in score.collect_notes((), qrels) if note.problems])
    folded = fold_notes(scored, _labels(scored))
    if not folded:
        return
    console.print()
    for at, note in enumerate(folded):
        more = len(note.runs) - _SHOWN
        shown = ", ".join(note.runs[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
        meaning = f" ({note.meaning})" if note.meaning else ""
        text = f"{plural(len(note.runs), 'run')}: {note.code}{meaning}: {shown}"
        print_facts(console, [("" if at else "notes", text)])
    print_facts(console, [("", "--json has each with its file and line")])


def _left_out(qrels: Qrels, facets: options.FacetSource) -> frozenset[str]:
    """The judged queries that `--only` leaves out.

    Raises:
        InputError: code `too-few-queries`; or a file has errors.
    """
    if not facets.only:
        return frozenset()
    from heldout.scoring.query_facets import check_size, load_only

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
        print_problems(console, [score.other_spelling(facet, "queries", near)])


def _print_zeros(console: Console, scored: Sequence[score.Scored], qrels_path: str) -> None:
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


def _labels(scored: Sequence[score.Scored]) -> list[str]:
    """Names of the runs, paths where names are the same."""
    names = [run.name for run in scored]
    return [run.path if names.count(run.name) > 1 else run.name for run in scored]


def _print_scores(
    console: Console, scored: Sequence[score.Scored], qrels_path: str, *, given: orders.Order | None
) -> None:
    measures = list(scored[0].evaluation.scores)
    rows = [
        [
            label,
            *(_score(scores.measure, scores.mean) for scores in run.evaluation.scores.values()),
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
            *_engine_facts(measures),
            *run_files.describe_orders((run.order for run in scored), given=given),
        ],
    )


def _score(measure: Measure, value: float | None) -> str:
    """A score for display; a count without decimals."""
    if value is not None and measure.kind.aggregate == "sum":
        return f"{value:,.0f}"
    return number(value)


def _engine_facts(measures: Sequence[Measure]) -> list[tuple[str, str]]:
    """Return who computes what heldout does not, and what is no mean."""
    by_engine: dict[str, list[str]] = {}
    for name, engine in other_measures.describe_engines(measures).items():
        by_engine.setdefault(engine, []).append(name)
    order = "in heldout's order of documents"
    said = [f"by {engine}, {order}: {', '.join(own)}" for engine, own in by_engine.items()]
    facts = [*zip(("computed", *[""] * len(said)), said, strict=False)]
    for aggregate in sorted({one.kind.aggregate for one in measures} - {"mean"}):
        own = [str(one) for one in measures if one.kind.aggregate == aggregate]
        facts.append(("", f"{aggregate} over the queries, and no mean: {', '.join(own)}"))
    return facts


def _query_facts(scored: Sequence[score.Scored], qrels_path: str) -> list[tuple[str, str]]:
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
        f"{scores.measure} of {label}: {_say_undefined(scores)}"
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


def _say_undefined(scores: MeasureScores) -> str:
    """Return why the mean, or the score of some query, is undefined."""
    undefined, found = len(scores.defined) - scores.n, plural(scores.n, "query", "queries")
    text = f"mean over {found}; in {undefined:,} nothing relevant was found"
    return scores.why if scores.mean is None else text


def _print_per_query(console: Console, scored: Sequence[score.Scored]) -> None:
    for label, run in zip(_labels(scored), scored, strict=True):
        measures = list(map(str, run.evaluation.scores))
        rows = [
            [query, *(_score(measure, value) for measure, value in row.items())]
            for query, row in score.in_order(run.evaluation).items()
        ]
        console.print()
        print_table(console, [label, *measures], rows)


def _read_part(text: str) -> shards.Shard:
    """The part that `--shard` names.

    Raises:
        click.UsageError: with it is given what says how a table is printed.
        InputError: code `bad-shard`.
    """
    refuse_other_options(_OF_PARTS, why="--shard stores scores, and prints no table")
    return shards.parse_shard(text)


def _print_part(context: click.Context, found: shards.PartScored, *, as_json: bool) -> None:
    """Print what was done of a part; end as the whole would."""
    if as_json:
        print_json(found.document())
    else:
        runs = plural(found.all_runs, "run")
        before = f"{found.stored:,} of them stored before"
        print_facts(
            answers(),
            [
                ("shard", f"{found.shard}: {len(found.outcomes):,} of {runs}"),
                ("scored", f"{len(found.outcomes) - len(found.failed):,}, {before}"),
                ("stored", f"in {found.root}"),
                ("plan", f"{found.plan.name}, the same for all parts of these runs"),
            ],
        )
        _print_failed(messages(), found.failed, among=len(found.outcomes))
    if found.failed:
        context.exit(1 if len(found.failed) < len(found.outcomes) else 2)


def _print_stored(console: Console, scored: Sequence[score.Scored], *, always: bool) -> None:
    """Said to a person, and where parts were scored: what a program reads is the same anyway."""
    stored = sum(run.stored for run in scored)
    if always or (stored and console.is_terminal):
        console.print()
        runs = plural(len(scored), "run")
        print_facts(
            console, [("stored", f"{stored:,} of {runs} as stored; --no-cache scores them again")]
        )


def _print_failed(console: Console, failed: Sequence[score.Failed], *, among: int) -> None:
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
    scored: Sequence[score.Scored],
    failed: Sequence[score.Failed],
    *,
    per_query: bool,
    kinds: Sequence[Mapping[str, KindScores]],
) -> None:
    runs = [score.describe_scored(run, per_query=per_query) for run in scored]
    for run, by_kind in zip(runs, kinds, strict=False):
        run["facet"] = {
            kind: {"queries": one.queries, "scores": dict(one.means), "why": dict(one.why)}
            for kind, one in by_kind.items()
        }
    unread = [{"path": run.path, "problems": [*map(asdict, run.problems)]} for run in failed]
    engines = other_measures.describe_engines(scored[0].evaluation.scores) if scored else {}
    named = {"computed_by": dict(engines)} if engines else {}
    print_json({"runs": runs, "failed": unread, **named})


def _print_kinds(
    console: Console, labels: Sequence[str], scored: Sequence[Mapping[str, KindScores]]
) -> None:
    """A table for each kind of query."""
    for kind, first in scored[0].items() if scored else ():
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


@command
@click.pass_context
def validate(
    context: click.Context,
    *,
    run: Annotated[str, Opt(argument=True, metavar="RUN")],
    queries_path: Annotated[str, Opt(options.QUERIES, names=("--queries",), metavar="Q")],
    depth: Annotated[int | None, Opt("Most documents of a query.", least=1, metavar="N")] = None,
    order: options.RunOrder = None,
    as_json: Json = False,
) -> None:
    """List every problem of a run file, with its line.

    The run must answer every query of the query set and no other, name each document once, and
    keep to the depth. Notes are not problems: they say how unusual input is read.

    \b
    Example:
      heldout validate bm25.tsv --queries dev-queries.tsv --depth 1000
    """
    process.hold_freed_memory()
    try:
        queries = load_queries(queries_path)
        expected = scans.Expected(queries=frozenset(queries.texts), max_depth=depth, complete=True)
        scan = ir_metadata.note_header(run_files.scan_file(run, order=order, expected=expected))
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


def _print_scan(console: Console, scan: scans.Scan, *, queries: int) -> None:
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
            ("order", f"{scan.order}: {orders.DESCRIPTIONS[scan.order]}"),
        ],
    )
    if scan.problems:
        console.print()
        print_problems(console, scan.problems, counts=scan.counts)
    if not scan.ok:
        console.print()
        console.print("Fix the errors above, then run validate again.")
