"""One function for each analysis, made from the table of analyses; and `compare`.

A function takes what its analysis is computed from, and the options of its command by their names.
It gives the command's answer.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from csv import writer
from dataclasses import MISSING
from datetime import datetime
from inspect import Parameter, Signature, signature
from io import StringIO
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_args, get_type_hints

from heldout.analyses.agreement_of_judges import Ratings, rate_documents
from heldout.analyses.analysis import ANALYSES, Analysis, Draws, Source, load_analysis
from heldout.analyses.entries import (
    BoardScores,
    Dated,
    date_scores,
    parse_entries,
)
from heldout.analyses.facets import ScoresByKind
from heldout.analyses.outcomes.comparison import Comparison
from heldout.analyses.outcomes.failures import Failures
from heldout.analyses.outcomes.failures_of_runs import Documents, list_failures
from heldout.analyses.outcomes.options import CompareOptions
from heldout.analyses.views import LoadedViews, name_views, views_of_scores
from heldout.answers.answer import Answer
from heldout.api.evaluation import (
    EvaluationResult,
    QrelsLike,
    RunLike,
    label_of,
    name_measures,
    read_qrels,
)
from heldout.collections.named import load_queries, open_qrels
from heldout.errors import InputError
from heldout.files import executors, frames
from heldout.options import Declared, Nested, check_bounds, options_of
from heldout.scoring import given_runs, query_facets, run_files, score, table_files
from heldout.scoring.first_ranks import MethodSide
from heldout.scoring.sources import ComparedRuns, Scores, name_scores, read_scores
from heldout.scoring.table import table_of
from heldout.trec.orders import Order
from heldout.trec.qrels import unscale

Options = TypeVar("Options")


def keyword_of(option: Declared) -> str:
    """An option's name in Python: `--margin-esl` is `margin_esl`, `-k` is `k`."""
    if option.default is True or not option.opt.names:
        return option.field
    return max(option.opt.names, key=len).lstrip("-").replace("-", "_")


def list_options(made_of: type[Any]) -> Iterator[tuple[str, Declared]]:
    """All options of a class and of the classes in it, by their names in Python."""
    for option in options_of(made_of):
        if isinstance(option, Nested):
            yield from list_options(option.made_of)
        else:
            yield keyword_of(option), option


def build_options(made_of: type[Options], given: Mapping[str, Any]) -> Options:
    """An instance of an options class.

    Args:
        made_of: the class.
        given: values by their names in Python; others keep their defaults.

    Raises:
        TypeError: there is no such option.
        ValueError: a value lies outside of what its option allows.
    """
    known = dict(list_options(made_of))
    if unknown := sorted(given.keys() - known.keys()):
        raise TypeError(f"no option {', '.join(unknown)}; there are {', '.join(known) or 'none'}")
    for name, value in given.items():
        option = known[name]
        choices = option.type if isinstance(option.type, tuple) else ()
        for one in _several(value) if option.many else (value,):
            if choices and one is not None and one not in choices:
                raise ValueError(f"{name}: {one!r} is none of {', '.join(map(repr, choices))}")
    options = _build(made_of, given)
    check_bounds(options)
    return options


def _several(value: Any) -> tuple[Any, ...]:
    """The values of an option that may have several; one may stand alone."""
    alone = isinstance(value, str) or not isinstance(value, Iterable)
    return (value,) if alone else tuple(value)


def _build(made_of: type[Options], given: Mapping[str, Any]) -> Options:
    fields: dict[str, Any] = {}
    for option in options_of(made_of):
        if isinstance(option, Nested):
            fields[option.field] = _build(option.made_of, given)
        elif (name := keyword_of(option)) in given:
            value = given[name]
            fields[option.field] = _several(value) if option.many else value
    return made_of(**fields)


def parameters_of(made_of: type[Any]) -> Iterator[Parameter]:
    """The options of a class as keyword parameters, in their order."""
    for option in options_of(made_of):
        if isinstance(option, Nested):
            yield from parameters_of(option.made_of)
            continue
        hint = get_type_hints(made_of)[option.field]
        if option.many:
            hint = get_args(hint)[0] | hint
        default = Parameter.empty if option.default is MISSING else option.default
        yield Parameter(
            keyword_of(option), Parameter.KEYWORD_ONLY, default=default, annotation=hint
        )


def describe_options(made_of: type[Any]) -> list[str]:
    """The options as lines of a docstring."""
    return [f"    {name}: {option.opt.help}" for name, option in list_options(made_of)]


ScoresLike: TypeAlias = EvaluationResult | Scores | str | PathLike[str] | Mapping[str, Any] | Any
"""Scores by query: of `evaluate`; of a table, CSV or Parquet; system -> query -> score; or a data
frame whose first column has the queries and the others a system each."""

_TEXTS: Mapping[str, Callable[[Mapping[str, str]], Mapping[str, frozenset[str]]]] = {
    "length": query_facets.by_length,
    "question": query_facets.by_question,
}
_SEED = Parameter("seed", Parameter.KEYWORD_ONLY, default=0, annotation=int)
_JOBS = Parameter("jobs", Parameter.KEYWORD_ONLY, default=1, annotation=int)


def open_scores(given: ScoresLike, measure: str | None = None) -> Scores:
    """Scores by query, complete: every system has one for every query.

    Args:
        given: in any of the forms of `ScoresLike`.
        measure: which one of an `EvaluationResult`; what a table is of.

    Raises:
        InputError: the table has errors, or a system lacks a score.
    """
    if isinstance(given, EvaluationResult):
        return given.scores(measure)
    if isinstance(given, Scores):
        return given
    if given_runs.is_path(given):
        return read_scores(fspath(given), measure)
    if frames.is_frame(given):
        return name_scores(table_files.table_of_frame(given, measure), measure)
    rows = given
    if not isinstance(rows, Mapping) or not all(isinstance(r, Mapping) for r in rows.values()):
        raise TypeError(
            f"no scores: {type(given).__name__}; a result of evaluate, a CSV table, system -> "
            "query -> score, or a data frame"
        )
    if any(isinstance(one, Mapping) for row in rows.values() for one in row.values()):
        raise TypeError("these are runs: score them first, with evaluate(runs, qrels, measures)")
    try:
        table = table_of({str(system): dict(row) for system, row in rows.items()})
    except ValueError as error:
        found = str(error)
        raise InputError.of("scores-number", "scores", found, "finite scores") from None
    return name_scores(table, measure)


def _open_kinds(kinds: Any, texts: Mapping[str, str] | None) -> Mapping[str, frozenset[str]]:
    """Queries by kind."""
    if isinstance(kinds, str):
        if kinds not in _TEXTS or texts is None:
            raise TypeError('kinds: "length" or "question" with texts, or a mapping')
        return _TEXTS[kinds](texts)
    if all(isinstance(one, str) for one in kinds.values()):
        grouped: dict[str, set[str]] = {}
        for query, kind in kinds.items():
            grouped.setdefault(kind, set()).add(query)
        return {kind: frozenset(grouped[kind]) for kind in sorted(grouped)}
    return {kind: frozenset(queries) for kind, queries in kinds.items()}


def _given_scores(scores: ScoresLike, measure: str | None = None) -> Scores:
    return open_scores(scores, measure)


def _given_kinds(
    scores: ScoresLike,
    kinds: str | Mapping[str, str] | Mapping[str, Collection[str]],
    measure: str | None = None,
    texts: Mapping[str, str] | None = None,
    least: int = 20,
) -> ScoresByKind:
    found = _open_kinds(kinds, texts)
    return ScoresByKind(scores=open_scores(scores, measure), kinds=found, least=least)


def _given_measure(measure: str) -> str:
    return measure


def _given_views(
    views: Mapping[str, ScoresLike] | EvaluationResult | Sequence[EvaluationResult],
) -> LoadedViews:
    """Views by name; every measure of an `EvaluationResult` is one."""
    if isinstance(views, EvaluationResult):
        views = [views]
    if isinstance(views, Mapping):
        named = [(name, open_scores(one)) for name, one in views.items()]
    else:
        named = [(name, one.scores(name)) for one in views for name in one.measures]
    return name_views(views_of_scores(named))


def _given_dated(
    scores: ScoresLike | BoardScores,
    entries: Any = None,
    measure: str | None = None,
    view: str | None = None,
) -> Dated:
    return _date(scores, entries, measure).beside(view)


def _given_dev(
    scores: ScoresLike | BoardScores,
    entries: Any = None,
    dev: ScoresLike | str | None = None,
    measure: str | None = None,
    view: str | None = None,
) -> Dated:
    if isinstance(scores, BoardScores):
        return _date(scores, entries, measure).beside(view, "dev", _view_name("dev", dev))
    if dev is None:
        raise TypeError("dev: the scores of the same systems on dev")
    second = open_scores(dev, measure)
    dated = _date(scores, entries, measure, second=second, name="dev", held_out=False)
    return dated.beside(view, "dev")


def _given_reserve(
    scores: ScoresLike | BoardScores,
    entries: Any = None,
    reserve: ScoresLike | str | None = None,
    measure: str | None = None,
    view: str | None = None,
) -> Dated:
    if isinstance(scores, BoardScores):
        name = _view_name("reserve", reserve)
        return _date(scores, entries, measure).beside(view, "reserve", name)
    if reserve is None:
        raise TypeError("reserve: the scores of the same systems on the reserve")
    second = open_scores(reserve, measure)
    dated = _date(scores, entries, measure, second=second, name="reserve")
    return dated.beside(view, "reserve")


def _view_name(argument: str, given: object) -> str | None:
    if given is None or isinstance(given, str):
        return given
    raise TypeError(f"{argument}: the name of a view, where the scores are those of a board")


def _date(
    scores: ScoresLike | BoardScores,
    entries: Any,
    measure: str | None,
    *,
    second: Scores | None = None,
    name: str = "",
    held_out: bool = True,
) -> Dated:
    if isinstance(scores, BoardScores):
        return Dated(board=scores, views=())
    first = open_scores(scores, measure)
    if entries is None:
        raise TypeError("entries: when each system came: a CSV table or a data frame")
    text, path = _entries_text(entries)
    rows = parse_entries(text, path=path, systems=first.table.systems)
    return date_scores(
        first, rows, name=Path(path).stem, second=second, second_name=name, held_out=held_out
    )


def _entries_text(entries: Any) -> tuple[str, str]:
    """A table of entries as CSV: what a file has, or what a frame's columns say."""
    if given_runs.is_path(entries):
        return run_files.read_table_text(Path(entries)), Path(entries).name
    table = frames.open_frame(entries, path="entries")
    text = StringIO(newline="")
    rows = writer(text)
    rows.writerow(table.columns)
    rows.writerows(map(_entry_cell, row) for row in table.iter_rows())
    return text.getvalue(), "entries"


def _entry_cell(cell: Any) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, datetime):  # the days of a frame are often so
        return cell.date().isoformat()
    return "" if cell is None else str(cell)


def _given_judges(
    judges: Mapping[str, QrelsLike] | Mapping[str, Any], relevant: int | None = None
) -> Ratings:
    """Return what judges said: judge -> judgments in any form that `read_qrels` takes."""
    read = {name: open_qrels(one, name=name, whole_for=None) for name, one in judges.items()}
    return rate_documents({name: unscale(one) for name, one in read.items()}, relevant=relevant)


_GIVEN: Mapping[Source, Callable[..., Any]] = {
    "scores": _given_scores,
    "kinds": _given_kinds,
    "measure": _given_measure,
    "views": _given_views,
    "dates": _given_dated,
    "dates-dev": _given_dev,
    "dates-reserve": _given_reserve,
    "judges": _given_judges,
}
"""By what an analysis is computed from: what its function takes, and what is made of it."""


def function_of(name: str) -> Callable[..., Answer]:
    """The Python function of an analysis, with its signature and its help.

    Args:
        name: as in `heldout analyse NAME`.
    """
    analysis = load_analysis(name)
    given = _GIVEN[analysis.source]
    taken = signature(given).parameters
    drawn = [_SEED] if analysis.seeded else []
    shared = [_JOBS] if analysis.parallel else []

    def analyse(*args: Any, **options: Any) -> Answer:
        seed, jobs = options.pop("seed", 0), options.pop("jobs", 1)
        own = {key: options.pop(key) for key in list(options) if key in taken}
        chosen = build_options(analysis.options, options)
        loaded = given(*args, **own)
        with executors.open_executor(jobs=jobs) as executor:
            return analysis.answer(loaded, chosen, Draws(seed=seed, executor=executor))

    parameters = [*taken.values(), *parameters_of(analysis.options), *drawn, *shared]
    analyse.__name__ = analyse.__qualname__ = name
    analyse.__module__ = "heldout"
    analyse.__doc__ = _describe(name, analysis)
    analyse.__signature__ = Signature(parameters, return_annotation=Answer)  # type: ignore[attr-defined]  # any function may have one
    return analyse


def _describe(name: str, analysis: Analysis[Any, Any]) -> str:
    question = ANALYSES[name]
    lines = [f"{question[0].upper()}{question[1:]}; as `heldout analyse {name}`.", "", "Args:"]
    lines += [f"    {key}: {_HELP[key]}" for key in signature(_GIVEN[analysis.source]).parameters]
    lines += describe_options(analysis.options)
    lines += ["    seed: Random seed."] if analysis.seeded else []
    lines += ["    jobs: Number of threads."] if analysis.parallel else []
    return "\n".join(lines)


_HELP: Mapping[str, str] = {
    "scores": "Scores by query: of `evaluate`, a CSV table, system -> query -> score, or a data "
    "frame with a column of queries and one for each system.",
    "measure": "Name of the measure; may be left out where `scores` has one alone.",
    "kinds": "Kind of each query: query -> kind, kind -> queries, or length or question.",
    "texts": "Query -> text, for length and question.",
    "least": "Fewest queries of a kind that is used.",
    "views": "Name of a view -> scores; or one or several results of `evaluate`, of which each "
    "measure is a view.",
    "entries": "When each system came: a CSV table or a data frame with id, date, and perhaps "
    "team, institution, description, baseline.",
    "view": "Name of a board's view, where `scores` are those of a board.",
    "dev": "Scores of the same systems on dev; the name of a view of a board.",
    "reserve": "Scores of the same systems on the reserve; the name of a view of a board.",
    "judges": "Judge -> judgments, in any form that `read_qrels` takes.",
    "relevant": "Lowest grade that counts as 1, others as 0; `None` for grades as they are.",
}


_PAGE = ("html", "documents", "depth")
_OTHER = ("a", "b", "qrels", "measure", "facet", "only", "queries", "least", *_PAGE)
COMPARE_OPTIONS: Mapping[str, Parameter] = {
    one.name: one for one in parameters_of(CompareOptions) if one.name not in _OTHER
}
"""The options of `compare`."""


def compare(
    a: Any,
    b: Any,
    qrels: QrelsLike,
    measures: str | Sequence[Any] | Any = (),
    *,
    seed: int = 0,
    jobs: int = 1,
    **options: Any,
) -> Answer:
    """Is B better than A? As `heldout compare`.

    Args:
        a: a run in any form that `read_run` takes, or a list of runs that differ in their seed.
        b: the other.
        qrels: judgments in any form that `read_qrels` takes.
        measures: measures whose means are compared; they lead the answer. Without one the answer
            is a verdict on the first relevant document of each query, for labels with one relevant
            document per query.
        seed: of all draws.
        jobs: processes that read files side by side.
        options: of the command, by their names.

    Raises:
        InputError: what is wrong with a run, the judgments or a measure.

    Source: Ferrante et al. and others; docs/reference/tests.md has the tests.
    """
    named = name_measures(measures)
    if unknown := sorted(options.keys() - COMPARE_OPTIONS.keys()):
        raise TypeError(f"no option {', '.join(unknown)}; there are {', '.join(COMPARE_OPTIONS)}")
    given = {"a": "A", "b": "B", "qrels": label_of(qrels), "measure": tuple(named), **options}
    chosen = build_options(CompareOptions, given)
    comparison = Comparison(_sides(a, b), chosen, seed)
    reading = score.Reading(jobs=jobs)
    return comparison.answer(comparison.load(reading, read_qrels(qrels)))


compare.__signature__ = Signature(  # type: ignore[attr-defined]  # any function may have one
    [
        *(one for one in signature(compare).parameters.values() if one.name != "options"),
        *COMPARE_OPTIONS.values(),
    ],
    return_annotation=Answer,
)


def failures(
    a: RunLike,
    b: RunLike,
    qrels: QrelsLike,
    measure: str | None = None,
    *,
    queries: Mapping[str, str] | str | PathLike[str] | None = None,
    documents: Documents | None = None,
    depth: int | None = None,
    k: int = 100,
    rel: int = 1,
    order: Order | None = None,
) -> Failures:
    """Return where does B fail, query by query? As `heldout compare A B --html`.

    Args:
        a: a run in any form that `read_run` takes.
        b: the other.
        qrels: judgments in any form that `read_qrels` takes.
        measure: that queries are scored by; by default RR@10 where at most a fifth of the queries
            have several relevant documents, else nDCG@10.
        queries: query -> text, or the path of a query file.
        documents: document -> text, or paths of files with texts.
        depth: documents of each list that are shown, 1 to 100; by default 10.
        k: documents of each list in which a first relevant one is looked for.
        rel: lowest grade that is relevant.
        order: of documents; by default what fits each run's columns.

    Returns:
        Queries with both scores and both rankings; `write("page.html")` makes the page.

    Raises:
        InputError: what is wrong with a run, the judgments or a text file.

    Example:
        >>> found = ho.failures("bm25.run", "dense.run", "dev.qrels", queries="dev.tsv")
        >>> found.to_pandas().head()
    """
    if isinstance(queries, str | PathLike):
        queries = load_queries(fspath(queries)).texts
    return list_failures(
        _sides(a, b),
        read_qrels(qrels),
        judgments=label_of(qrels),
        measure=measure,
        queries=queries,
        documents=documents,
        depth=depth,
        k=k,
        rel=rel,
        order=order,
        reading=score.Reading(),
    )


def _sides(a: Any, b: Any) -> ComparedRuns:
    first, second = _side(a, "A"), _side(b, "B")
    for name in sorted(first.keys() & second.keys()):
        if first[name] == second[name]:
            raise InputError.of("same-run", name, "the same run as A and as B")
    if first.keys() & second.keys():
        first = {f"{name} (A)": one for name, one in first.items()}
        second = {f"{name} (B)": one for name, one in second.items()}
    return ComparedRuns(
        a=MethodSide(name=next(iter(first)) if len(first) == 1 else "A", runs=tuple(first)),
        b=MethodSide(name=next(iter(second)) if len(second) == 1 else "B", runs=tuple(second)),
        runs=first | second,
    )


def _side(given: Any, name: str) -> dict[str, Any]:
    """Its runs by name; one that has no name has that of its side."""
    unnamed = frames.is_frame(given) or given_runs.is_one_mapping(given)
    return given_runs.name_sources({name: given} if unnamed else given)
