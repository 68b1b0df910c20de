"""Scores for an analysis: of runs by judgments, or read from a table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

from heldout.errors import InputError, plural
from heldout.scoring import first_ranks, other_measures, table_files, transforms
from heldout.scoring.measures import Measure, parse_measure
from heldout.scoring.names import read_measure, read_own_measure
from heldout.scoring.run_files import describe_orders, find_runs, name_paths, run_name
from heldout.scoring.score import Notes, Reading, Scored, collect_notes
from heldout.scoring.table import Better, ScoreTable, cut_table, table_of
from heldout.trec.memory import MemoryRun
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores by query, and where they come from.

    Attributes:
        table: systems by queries; every system has a score for every query.
        measure: what was measured, "" where a table does not say.
        facts: where it comes from, in lines of `name      what there is to say`.
        better: whether higher or lower scores are better.
        orders: of the runs' documents, each once; none where scores are no runs'.
        zeros: the sentences of these that say which queries count 0 for want of an answer, or of
            anything to be found.
        judgments: that runs were scored by; `None` where scores are no runs'.
        transformed: whether scores were turned into something else than the measure.
        notes: what is odd about the files that they were read from.
        engine: the library that computed them, with its version; "" where heldout did.
    """

    table: ScoreTable
    measure: str
    facts: tuple[tuple[str, str], ...] = ()
    better: Better = "higher"
    orders: tuple[Order, ...] = ()
    zeros: tuple[str, ...] = ()
    judgments: Qrels | None = None
    transformed: bool = False
    notes: tuple[Notes, ...] = ()
    engine: str = ""

    def __repr__(self) -> str:
        systems, queries = len(self.table.systems), len(self.table.queries)
        named = f" {self.measure}" if self.measure else ""
        return (
            f"<Scores{named}: {plural(systems, 'system')}, {plural(queries, 'query', 'queries')}>"
        )

    @property
    def document(self) -> dict[str, Any]:
        """What JSON says of them."""
        named = {"computed_by": self.engine} if self.engine else {}
        return {"measure": self.measure, "orders": list(self.orders), **named}

    @property
    def size(self) -> int:
        """How many queries."""
        return len(self.table.queries)

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries."""
        return replace(self, table=cut_table(self.table, queries))

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the table of scores, as Parquet where the name ends in .parquet, else as CSV.

        Raises:
            SetupError: nothing is installed that writes Parquet.
        """
        table_files.write_table(self.table, path)


_SHOWN = 3


def score_runs(
    runs: Mapping[str, str | MemoryRun],
    qrels: Qrels,
    measures: Iterable[str],
    reading: Reading,
    *,
    judgments: str,
    order: Order | None = None,
) -> Mapping[str, Scores]:
    """Scores of the same runs by several measures, in one pass over each run.

    Args:
        runs: paths of run files, and runs in memory, by the name of the system.
        qrels: the judgments.
        measures: names of measures.
        reading: how runs are read.
        judgments: what the judgments are called in `Scores.facts`.
        order: how documents are ordered; `None` for what fits a run's columns.

    Raises:
        InputError: a run has errors, or a system lacks a score.
    """
    parsed = {name: read_measure(name) for name in measures}
    scored = reading.score_whole(tuple(runs.values()), qrels, parsed.values(), order=order)
    return tabulate_scores(
        dict(zip(runs, scored, strict=True)), parsed, qrels, judgments=judgments, order=order
    )


def tabulate_scores(
    runs: Mapping[str, Scored],
    measures: Mapping[str, Measure],
    qrels: Qrels,
    *,
    judgments: str,
    order: Order | None = None,
) -> Mapping[str, Scores]:
    """Scores of runs as tables, one for each measure.

    Args:
        runs: by the name of the system.
        measures: those that the runs were scored by, by the names they go by.
        qrels: the judgments.
        judgments: what the judgments are called in `Scores.facts`.
        order: that was asked for; `None` where a run's columns decided.

    Raises:
        InputError: a system lacks a score, or all scores are 0.
    """
    scored = tuple(runs.values())
    notes = collect_notes(scored, qrels)
    orders = tuple(dict.fromkeys(run.order for run in scored))
    judged = plural(len(scored[0].evaluation.queries), "query", "queries")
    facts = (
        ("systems", f"{len(runs):,}"),
        ("queries", f"{judged} with judgments in {judgments}"),
    )

    def tabulate(measure: Measure) -> Scores:
        rows = {
            name: dict(
                zip(
                    run.evaluation.queries,
                    map(run.evaluation.scores[measure].value, range(len(run.evaluation.queries))),
                    strict=True,
                )
            )
            for name, run in runs.items()
        }
        zeros = tuple(_describe_zeros(scored, measure))
        lines = (("", line) for line in zeros)
        engine = other_measures.describe_engines([measure]).get(str(measure), "")
        return Scores(
            table=check_complete(table_of(rows), str(measure)),
            measure=str(measure),
            better=measure.kind.better,
            facts=(
                *facts,
                *lines,
                ("measure", str(measure)),
                *((("", f"computed by {engine}"),) if engine else ()),
                *describe_orders(orders, given=order),
            ),
            orders=orders,
            zeros=zeros,
            engine=engine,
            judgments=qrels,
            notes=notes,
        )

    return {name: tabulate(measure) for name, measure in measures.items()}


def find_named(patterns: Sequence[str]) -> Mapping[str, str]:
    """The run files that paths and patterns name, by the names that systems go by.

    Raises:
        InputError: codes `no-run`, and `repeated-system` where a file is named twice, under two
            spellings: it would count as two systems.
    """
    paths = find_runs(patterns)
    known: dict[Path, str] = {}
    for path in paths:
        first = known.setdefault(Path(path).resolve(), path)
        if first != path:
            raise InputError.of(
                "repeated-system", path, f"the same file as {first}", "each run once"
            )
    return name_paths(paths)


def read_scores(path: str, measure: str | None = None) -> Scores:
    """The scores in a table, CSV or Parquet.

    Args:
        path: the file.
        measure: the measure that the scores are by, `None` where nobody says; of a Parquet file
            with several measures the one to take.

    Raises:
        InputError: the file has errors, a system lacks a score, or scores are not in the measure's
            range.
    """
    return name_scores(table_files.read_table(path, measure), measure, path=path)


def name_scores(table: ScoreTable, measure: str | None, *, path: str = "") -> Scores:
    """The scores of a table that no run stands behind.

    Args:
        table: of one measure.
        measure: the measure, `None` where nobody says.
        path: the file that it was read from, "" for none.

    Raises:
        InputError: a system lacks a score, or scores are not in the measure's range.
    """
    check_complete(table, path or "scores")
    wanted = None if measure is None else read_measure(measure)
    if wanted is not None and wanted.largest is not None:
        _check_range(table, wanted, path or "scores")
    better: Better = "higher" if wanted is None else wanted.kind.better
    facts = (
        ("systems", f"{len(table.systems):,}"),
        ("queries", f"{len(table.queries):,}" + (f", in {path}" if path else "")),
    )
    return Scores(table=table, measure=measure or "", facts=facts, better=better)


def transform_scores(
    scores: Scores, qrels: Qrels, transform: transforms.Transform, preferences: Path | None
) -> Scores:
    """Scores of runs turned into others.

    Args:
        scores: of runs.
        qrels: the judgments that the runs were scored by.
        transform: what the scores become.
        preferences: file of the judgments that `preference` is calibrated on.

    Raises:
        OptionError: `preference` without a file, or for a measure where lower is better.
        InputError: the measure has no attainable scores to count, or the file has errors.
    """
    measure = read_own_measure(scores.measure)
    if transform == "interval":
        table = transforms.to_interval(scores.table, measure, qrels.judgments)
        line = "interval: rank among the attainable scores of each query, from 0 to 1"
    else:
        table, line = transforms.prefer_scores(scores.table, measure, qrels, preferences)
    return replace(
        scores, table=table, facts=(*scores.facts, ("transform", line)), transformed=True
    )


def queries_with_several(qrels: Qrels, rel: int) -> frozenset[str]:
    """The queries with more than one relevant document.

    Args:
        qrels: the judgments.
        rel: lowest grade that is relevant.
    """
    return frozenset(
        query
        for query, grades in qrels.judgments.items()
        if sum(grade >= rel for grade in grades.values()) > 1
    )


def check_complete(table: ScoreTable, where: str) -> ScoreTable:
    """The table, refused where a system lacks a score: a missing score is not 0.

    Raises:
        InputError: code `missing-scores`; `all-zero`: nobody has a score other than 0.
    """
    lacking = [
        (system, int((~known).sum()))
        for system, known in zip(table.systems, table.known, strict=True)
        if not known.all()
    ]
    if not lacking:
        _check_zeros(table, where)
        return table
    shown = ", ".join(f"{system} ({count:,})" for system, count in lacking[:_SHOWN])
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    raise InputError.of("missing-scores", where, f"no score for some queries: {shown}{more}")


def _check_zeros(table: ScoreTable, where: str) -> None:
    if table.values.size and not table.values.any():
        raise InputError.of(
            "all-zero",
            where,
            systems=plural(len(table.systems), "system"),
            queries=plural(len(table.queries), "query", "queries"),
        )


def _check_range(table: ScoreTable, measure: Measure, path: str) -> None:
    """Refuse scores that a measure from 0 to 1 cannot have: tests rely on its range."""
    low, high = float(table.values.min()), float(table.values.max())
    if low < 0 or high > 1:
        raise InputError.of("scores-range", path, low=low, high=high, measure=measure)


def _describe_zeros(runs: Sequence[Scored], measure: Measure) -> Iterator[str]:
    unanswered = sum(run.evaluation.unanswered > 0 for run in runs)
    if unanswered:
        yield f"{plural(unanswered, 'run')} did not answer all; unanswered ones count 0"
    empty = runs[0].evaluation.scores[measure].without_relevant
    if measure.kind.better == "higher" and empty:
        yield f"{empty:,} without a relevant document count 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRuns:
    """The runs of both sides.

    Attributes:
        a: what stands as A, by the names of its runs.
        b: what stands as B.
        runs: files, or runs in memory, by the run's name.
    """

    a: first_ranks.MethodSide
    b: first_ranks.MethodSide
    runs: Mapping[str, str | MemoryRun]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedScores:
    """The scores of all runs of both sides.

    Attributes:
        ranks: reciprocal ranks, which outcomes are counted from.
        measures: by the measures that were asked for, on the same queries.
        several: queries with more than one relevant document.
    """

    ranks: Scores
    measures: tuple[Scores, ...]
    several: frozenset[str]

    @property
    def size(self) -> int:
        """How many queries."""
        return self.ranks.size

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries."""
        measures = tuple(one.cut(queries) for one in self.measures)
        return replace(self, ranks=self.ranks.cut(queries), measures=measures)


def find_compared(a: str, b: str) -> ComparedRuns:
    """The files that stand as A and as B.

    Args:
        a: a path; or patterns and paths with commas between them, for runs that differ by seed.
        b: the same.

    Returns:
        Runs go by the names of their files, and by whole paths where names are the same.

    Raises:
        InputError: code `no-run`: a pattern names nothing; `same-run`: a file is named twice.
    """
    first, second = _find_side(a, "A"), _find_side(b, "B")
    _refuse_same_run({"A": first, "B": second})
    paths = name_paths((*first, *second))
    names = {path: name for name, path in paths.items()}
    titles = _title(a, first), _title(b, second)
    if titles[0] == titles[1] or any(name != run_name(path) for name, path in paths.items()):
        titles = a, b
    return ComparedRuns(
        a=first_ranks.MethodSide(name=titles[0], runs=tuple(names[path] for path in first)),
        b=first_ranks.MethodSide(name=titles[1], runs=tuple(names[path] for path in second)),
        runs=paths,
    )


def score_compared(
    runs: ComparedRuns,
    qrels: Qrels,
    *,
    judgments: str,
    order: Order | None,
    rel: int,
    k: int,
    measures: Sequence[str],
    reading: Reading,
) -> ComparedScores:
    """Their scores, in one pass over each file.

    Args:
        runs: from `find_compared`.
        qrels: the judgments.
        judgments: what they are called in `Scores.facts`.
        order: how documents are ordered; `None` for what fits a run's columns.
        rel: lowest grade that is relevant.
        k: documents of each list that are looked at.
        measures: those that were asked for.
        reading: how runs are read.

    Raises:
        InputError: a file has errors, or a measure has no value for some query.
    """
    ranks = str(parse_measure(f"RR(rel={rel})@{k}", path="--rel"))
    loaded = score_runs(
        runs.runs,
        qrels,
        dict.fromkeys((ranks, *measures)),
        reading,
        judgments=judgments,
        order=order,
    )
    return ComparedScores(
        ranks=loaded[ranks],
        measures=tuple(loaded[measure] for measure in measures),
        several=queries_with_several(qrels, rel),
    )


def _find_side(words: str, side: str) -> tuple[str, ...]:
    """The files of one side: a path, else patterns and paths between commas."""
    parts = [part for part in words.split(",") if part]
    patterns = parts if parts and not Path(words).is_file() else [words]
    return tuple(find_runs(patterns, option=side))


def _refuse_same_run(sides: Mapping[str, Sequence[str]]) -> None:
    seen: dict[Path, str] = {}
    for side, paths in sides.items():
        for path in paths:
            file = Path(path).resolve()
            if file in seen:
                twice = f"the same run as {seen[file]} and as {side}"
                if seen[file] == side:
                    twice = f"the same run twice in {side}"
                raise InputError.of("same-run", path, twice)
            seen[file] = side


def _title(words: str, paths: Sequence[str]) -> str:
    """The run's name; of a group its patterns without their folders."""
    if len(paths) == 1:
        return run_name(paths[0])
    return ", ".join(Path(part).name for part in words.split(",") if part)
