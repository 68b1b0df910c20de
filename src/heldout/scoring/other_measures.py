"""Measures that ir_measures or trec_eval computes: read, computed, and named as theirs.

They are for local evaluation. No board takes one as a measure of a view, and no score of theirs is
stored: only what heldout computes itself is fixed by its own code.

An engine gets each list with the scores n, n - 1, ..., 1, in heldout's order of documents. Such
scores never tie, so how an engine breaks ties does not matter; and they are positive, for Compat of
ir_measures takes documents without a score as scored 0. Measures of one level go to pytrec_eval
together, any others one by one: ir_measures 0.4.3, asked for several at once, gives the list to the
first setting of a diversity measure alone, and may count with NumRet judged documents only.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from math import exp
from typing import Any

from heldout.errors import HeldoutError, InputError, SetupError
from heldout.scoring.families import ALIASES, FAMILIES, TREC_EVAL, Engine, Family
from heldout.scoring.measures import (
    LONGEST,
    SHAPE,
    Hits,
    Judgments,
    Kind,
    Measure,
    Params,
    read_parameters,
    read_value,
)

Lists = Mapping[str, Sequence[str]]
"""Query -> documents, best first."""

Grades = Mapping[str, Mapping[str, int]]
"""Query -> document -> grade."""

SubtopicGrades = Mapping[str, Grades]
"""Query -> subtopic -> document -> grade."""

_INSTALL = "pip install 'heldout[measures]'"
_BATCH = 1000
"""Queries handed over at once: an engine wants a dictionary for each."""
_NOWHERE = "heldout:no-document"
"""An id that no run lists; nobody writes a colon into a document's id that begins so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherMeasure(Measure):
    """A measure that heldout does not compute itself.

    Attributes:
        text: the measure as its engine writes it, with its parameters.
        engine: what computes it.
    """

    text: str
    engine: Engine

    @property
    def family(self) -> Family:
        """Its row in the tables of families."""
        return TREC_EVAL[self.name] if self.engine == "trec_eval" else FAMILIES[self.name]

    @property
    def kind(self) -> Kind:
        """What there is to say about it."""
        family = self.family
        return Kind(
            function=_elsewhere,
            parameters=(),
            cutoff="optional",
            help=family.help,
            source=self.engine,
            range=family.range,
            aggregate=family.aggregate,
        )

    def __str__(self) -> str:
        return self.text


def _elsewhere(_hits: Hits, _judgments: Judgments, _params: Params) -> float | None:
    raise ValueError("another library computes this measure: score_others")


def find_family(written: str) -> str:
    """The family of ir_measures that somebody named, in any case; "" where there is none."""
    names = {name.lower(): name for name in FAMILIES}
    names |= {alias.lower(): alias for alias in ALIASES}
    return names.get(written.lower(), "")


def parse_other(text: str, *, path: str = "measure") -> OtherMeasure:
    """Read a measure of ir_measures that heldout does not compute itself.

    Args:
        text: for example `Rprec(rel=2)` or `IPrec@0.1`.
        path: where it stands, for the error.

    Raises:
        InputError: code `measure-syntax`, `measure-name` or `measure-parameter`.
        SetupError: ir_measures is not installed.
    """
    name, measure = _parse(text, path)
    own = OtherMeasure(
        name=ALIASES.get(name, name),
        params=Params(cutoff=measure.params.get("cutoff"), rel=measure.params.get("rel")),
        text=str(measure),
        engine="ir_measures",
    )
    if own.family.cutoff and own.cutoff is None:
        raise _wrong(path, text, f"a cutoff, for example {name}@10")
    return own


def _parse(text: str, path: str) -> tuple[str, Any]:
    """The name that was meant, and the measure of ir_measures."""
    match = SHAPE.fullmatch(text) if len(text) <= LONGEST else None
    name = "" if match is None else find_family(match["name"])
    if match is None or not name:
        expected = "one of " + ", ".join(FAMILIES)
        raise InputError.of("measure-name", path, repr(text[:LONGEST]), expected)
    known = load_library(text).measures.registry[name]
    measure = known(**_read_arguments(match, known, text=text, path=path))
    try:
        measure.validate_params()
    except AssertionError as error:
        raise _wrong(path, text, str(error)) from None
    return name, measure


def trec_eval_measure(name: str, text: str) -> OtherMeasure:
    """A measure that only trec_eval has.

    Args:
        name: in `TREC_EVAL`.
        text: as trec_eval prints it, as in `relative_P_10`.
    """
    return OtherMeasure(name=name, params=Params(rel=1), text=text, engine="trec_eval")


def _read_arguments(match: Any, known: Any, *, text: str, path: str) -> dict[str, Any]:
    """The parameters as ir_measures wants them, those of the name itself included."""
    allowed = tuple(known.SUPPORTED_PARAMS)
    given = dict(
        read_parameters(match["inside"], name=match["name"], allowed=allowed, text=text, path=path)
    )
    if match["cutoff"] is not None:
        at = known.AT_PARAM
        if at in given or at not in allowed:
            what = f"one {at}" if at in allowed else f"{match['name']} without @"
            raise _wrong(path, text, what)
        given[at] = read_value(match["cutoff"])
    for name, value in given.items():
        given[name] = _fit(value, known.SUPPORTED_PARAMS[name].dtype)
        _check_value(name, given[name], text=text, path=path)
    return dict(known.params) | given


def _fit(value: object, dtype: type | None) -> object:
    """A whole number where ir_measures wants a decimal; nothing that is no value of its type."""
    if dtype is float and type(value) is int:
        return float(value)
    if dtype is int and isinstance(value, bool):
        return None
    return value


_SHARES = ("recall", "alpha", "beta", "p")
"""Parameters from 0 to 1; of SetF beta is a weight, and may be more."""


def _check_value(name: str, value: object, *, text: str, path: str) -> None:
    if value is None:
        raise _wrong(path, text, f"a value for {name}")
    if name in ("cutoff", "rel", "max_rel") and (not isinstance(value, int) or value < 1):
        raise _wrong(path, text, f"{name} as a whole number from 1")
    weight = name == "beta" and find_family(text.partition("(")[0].strip()) == "SetF"
    if isinstance(value, float) and (value < 0 or (value > 1 and name in _SHARES and not weight)):
        raise _wrong(path, text, f"{name} from 0 to 1" if name in _SHARES else f"{name} from 0 on")


def _wrong(path: str, text: str, expected: str) -> InputError:
    return InputError.of("measure-parameter", path, repr(text), expected)


def load_library(wanted: str) -> Any:
    """ir_measures.

    Args:
        wanted: what it is needed for.

    Raises:
        SetupError: it is not installed.
    """
    try:
        import ir_measures  # noqa: PLC0415 - extra `measures`
    except ImportError as error:
        raise SetupError(f"{wanted} is computed by ir_measures: {_INSTALL}") from error
    return ir_measures


def describe_engines(measures: Iterable[Measure]) -> Mapping[str, str]:
    """Return which program computes each measure that heldout does not compute itself.

    Args:
        measures: any.

    Returns:
        Name -> program and version, as in `ir_measures 0.4.3`.
    """
    return {str(one): _engine(one) for one in measures if isinstance(one, OtherMeasure)}


def _engine(measure: OtherMeasure) -> str:
    if measure.engine == "ir_measures":
        return f"ir_measures {version('ir_measures')}"
    return f"trec_eval in pytrec_eval-terrier {version('pytrec_eval-terrier')}"


def score_others(
    lists: Lists,
    judgments: Grades,
    measures: Sequence[OtherMeasure],
    *,
    subtopics: SubtopicGrades | None = None,
) -> Mapping[OtherMeasure, Mapping[str, float]]:
    """Scores of one run by the measures of other libraries.

    Args:
        lists: the run's documents in heldout's order; queries without judgments are ignored.
        judgments: of the queries that count, each with a judgment at least.
        measures: what to compute.
        subtopics: judgments by subtopic, where there are any.

    Returns:
        Measure -> query -> score, for every judged query. A query that the run does not answer has
        the library's score of an empty list, which is 0. A query is missing where the library has
        no score for it: Accuracy, without a relevant document in the list.

    Raises:
        InputError: code `needs-subtopics`: there are none; `measure-failed`: the library could not
            compute the measure on these files.
        SetupError: a library is not installed.
    """
    answered = {query: lists[query] for query in judgments if lists.get(query)}
    found: dict[OtherMeasure, Mapping[str, float]] = {}
    for group in _group(measures):
        engine = _open(group, judgments, subtopics)
        scores: dict[OtherMeasure, dict[str, float]] = {measure: {} for measure in group}
        for run in _batches(answered):
            for measure, query, value in _compute(group, engine, run):
                if query in run:
                    scores[measure][query] = value
        for measure in group:
            if measure.name != "Accuracy":
                none = 1e-5 if measure.family.aggregate == "geometric mean" else 0.0
                scores[measure] |= {q: none for q in judgments if q not in answered}
        found |= scores
    return {measure: found[measure] for measure in measures}


def check_others(measures: Iterable[OtherMeasure], subtopics: SubtopicGrades | None = None) -> None:
    """Check that everything is here that measures need, before a run is read.

    Args:
        measures: of other libraries.
        subtopics: judgments by subtopic, where there are any.

    Raises:
        InputError: code `needs-subtopics`; `measure-parameter`: ir_measures takes parameters that
            nothing computes.
        SetupError: a library is not installed.
    """
    for measure in measures:
        if measure.engine == "trec_eval":
            _load_trec_eval(measure)
            continue
        library = load_library(str(measure))
        _find_provider(library, measure, _parse(str(measure), "measure")[1])
        if measure.family.subtopics:
            _check_subtopics(measure, subtopics)


def need_subtopics(measures: Iterable[Measure]) -> bool:
    """Check whether some measure asks for judgments by subtopic."""
    return any(isinstance(one, OtherMeasure) and one.family.subtopics for one in measures)


_Engine = Callable[[Mapping[str, Mapping[str, float]]], Iterator[tuple[OtherMeasure, str, float]]]


def _group(measures: Sequence[OtherMeasure]) -> list[list[OtherMeasure]]:
    """Measures that an engine may get at once."""
    groups: dict[object, list[OtherMeasure]] = {}
    for measure in measures:
        together = measure.engine == "trec_eval" or (
            measure.name in _PYTREC_EVAL and "judged_only" not in measure.text
        )
        key = (measure.engine, measure.params.rel or 1) if together else measure
        groups.setdefault(key, []).append(measure)
    return list(groups.values())


_PYTREC_EVAL = frozenset({"infAP", "IPrec", "NumQ", "NumRel", "NumRet", "Rprec"})


def _batches(lists: Lists) -> Iterator[Mapping[str, Mapping[str, float]]]:
    """Some queries at a time, with scores that cannot tie, are positive and exact as float32."""
    rest = iter(lists.items())
    while batch := list(islice(rest, _BATCH)):
        yield {
            query: {doc: float(len(docs) - at) for at, doc in enumerate(docs)}
            for query, docs in batch
        }


def _compute(
    group: Sequence[OtherMeasure], engine: _Engine, run: Mapping[str, Mapping[str, float]]
) -> list[tuple[OtherMeasure, str, float]]:
    found: list[tuple[OtherMeasure, str, float]] = _guarded(group, lambda: list(engine(run)))
    return found


def _guarded(group: Sequence[OtherMeasure], call: Callable[[], Any]) -> Any:
    """Return what a library gives; any error of it is ours to explain.

    Raises:
        InputError: code `measure-failed`.
    """
    try:
        return call()
    except HeldoutError:
        raise
    except Exception as error:
        names = ", ".join(map(str, group))
        cause = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise InputError.of("measure-failed", names, cause, engine=_engine(group[0])) from error


def _open(
    group: Sequence[OtherMeasure], judgments: Grades, subtopics: SubtopicGrades | None
) -> _Engine:
    """An engine with the judgments, ready to score parts of a run."""
    first = group[0]
    if first.engine == "trec_eval":
        return _open_trec_eval(group, _defined(judgments, 1))
    library = load_library(str(first))
    theirs = {_parse(str(one), "measure")[1]: one for one in group}
    provider = _find_provider(library, first, next(iter(theirs)))
    if first.family.subtopics:
        _check_subtopics(first, subtopics)
        rows: Any = list(_subtopic_rows(library, judgments, subtopics or {}))
    else:
        rows = _defined(judgments, first.params.rel or 1)
    evaluator = _guarded(group, lambda: provider.evaluator(list(theirs), rows))

    def score(run: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[OtherMeasure, str, float]]:
        for metric in evaluator.iter_calc(run):
            yield theirs[metric.measure], metric.query_id, float(metric.value)

    return score


def _load_trec_eval(measure: OtherMeasure) -> Any:
    try:
        import pytrec_eval  # noqa: PLC0415 - extra `measures`
    except ImportError as error:
        message = f"{measure} is computed by trec_eval, through pytrec_eval-terrier: {_INSTALL}"
        raise SetupError(message) from error
    return pytrec_eval


def _open_trec_eval(group: Sequence[OtherMeasure], judgments: Grades) -> _Engine:
    library = _load_trec_eval(group[0])
    evaluator = library.RelevanceEvaluator(judgments, {str(one) for one in group})

    def score(run: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[OtherMeasure, str, float]]:
        for query, values in evaluator.evaluate(run).items():
            for one in group:
                value = values[str(one)]
                geometric = one.family.aggregate == "geometric mean"
                yield one, query, exp(value) if geometric else float(value)

    return score


def _find_provider(library: Any, measure: OtherMeasure, theirs: Any) -> Any:
    """Return what computes it in ir_measures.

    Raises:
        InputError: code `measure-parameter`: nothing computes it with these parameters.
        SetupError: what computes it is not installed.
    """
    able = [one for one in library.DefaultPipeline.providers if one.supports(theirs)]
    ready = [one for one in able if one.NAME not in ("runtime", "heldout") and one.is_available()]
    if ready:
        return ready[0]
    if not able:
        raise _wrong("measure", str(measure), "parameters that ir_measures can compute")
    wanted = " or ".join(dict.fromkeys(one.install_instructions() or one.NAME for one in able))
    raise SetupError(f"ir_measures computes {measure} with {able[0].NAME}: {wanted}")


def _defined(judgments: Grades, level: int) -> dict[str, dict[str, int]]:
    """The judgments, as dictionaries that trec_eval can take at this level of relevance.

    It reads beyond its array of grades where no document of a query has grade `level` - 1 or more.
    There, a document that no run lists gets this grade; it is not relevant, so it changes no score.
    """
    found = {query: dict(grades) for query, grades in judgments.items()}
    for grades in found.values():
        if max(grades.values()) < level - 1:
            grades[_NOWHERE] = level - 1
    return found


def _check_subtopics(measure: OtherMeasure, subtopics: SubtopicGrades | None) -> None:
    if not subtopics or all(len(parts) == 1 for parts in subtopics.values()):
        found = "one subtopic for every query" if subtopics else "judgments without subtopics"
        raise InputError.of("needs-subtopics", str(measure), found)


def _subtopic_rows(library: Any, judgments: Grades, subtopics: SubtopicGrades) -> Iterator[Any]:
    """Judgments by subtopic as ir_measures has them, of the queries that count."""
    for query in judgments:
        for subtopic, grades in subtopics[query].items():
            for document, grade in grades.items():
                yield library.Qrel(query, document, grade, subtopic)
