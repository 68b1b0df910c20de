"""What is asked of a run that was just made: is it better than BM25, would fine-tuning pay?

The answers in words, tables and JSON.
"""

from dataclasses import asdict, dataclass
from typing import Any

from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer
from heldout.answers.sentence import name_one
from heldout.answers.table import Column, Table
from heldout.collections.source import SourcedCollection
from heldout.errors import InputError, plural
from heldout.progress_bar import SILENT, Progress
from heldout.rankers.options import Playbook
from heldout.rankers.playbook.fine_tuning import Advice, LearningCurve, advise, read_learning_curve
from heldout.rankers.playbook.playbook import (
    DEVIATIONS,
    FEWEST,
    TOP,
    Comparison,
    FittedLabels,
    compare,
    fit_labels,
    likely_detectable,
)
from heldout.rankers.run import Run, Task
from heldout.rankers.terms import Bm25Settings, rank_bm25
from heldout.scoring.measures import Measure, parse_measure
from heldout.scoring.names import read_own_measure

Facts = tuple[tuple[str, str], ...]

_SOME = 50
_BM25 = "BM25 (heldout rank --method bm25)"
_SAID = {
    "better": "better than BM25",
    "worse": "worse than BM25",
    "not better": "not better than BM25",
    "cannot tell": "cannot tell whether it is better than BM25",
}


def comparison_facts(found: Comparison, fitted: FittedLabels) -> Facts:
    """The verdict, what it rests on, and what to use."""
    return (
        ("verdict", f"{_SAID[found.verdict]}{_because(found)}"),
        ("", _scores(found)),
        ("", _describe_queries(found)),
        ("use", _use(found)),
        *_label_facts(found, fitted),
    )


def ask_for_labels(measure: str, ranker: str) -> Facts:
    """What is said where there are no labels.

    Args:
        measure: as it is written.
        ranker: its name; what labels would buy is known of those in `DEVIATIONS`.
    """
    lines = [
        ("verdict", "none: without labels it is unknown whether it is better than BM25 here"),
    ]
    deviations = DEVIATIONS.get(ranker)
    if measure == "nDCG@10" and deviations is not None:
        low, high = likely_detectable(_SOME, deviations)
        buys = f"{_SOME} labelled queries would find a true gain of about {low:.2f} to {high:.2f}"
        buys += f" {measure} (power 0.8, by {len(deviations)} other collections)"
        lines.append(("labels", buys))
    ask = "rank with --method bm25 too, and write qrels.txt: for some queries, which of the first "
    lines.append(
        ("next", f"{ask}documents of either run answer them (docs/how-to/playbook.md, step 4)")
    )
    return tuple(lines)


def comparison_tables(found: Comparison, ranker: str) -> tuple[Table, ...]:
    """Scores with both intervals, and who finds something.

    Args:
        found: the comparison.
        ranker: its name.
    """
    percent = f"{found.level:.0%}"
    t, bootstrap = found.t or (None, None), found.bootstrap or (None, None)
    scores = Table(
        title=f"{found.measure} on {plural(found.queries, 'labelled query', 'labelled queries')}",
        columns=(
            Column(name="run"),
            Column(name="mean", form="score"),
            Column(name="difference", form="difference"),
            Column(name=f"t {percent} from", form="difference"),
            Column(name="to", form="difference"),
            Column(name=f"bootstrap {percent} from", form="difference"),
            Column(name="to ", form="difference"),
            Column(name="p (t)", form="p"),
        ),
        rows=(
            ("BM25", found.baseline, None, None, None, None, None, None),
            (ranker, found.ranker, found.difference, *t, *bootstrap, found.p),
        ),
        notes=(
            f"by query: {found.wins:,} better, {found.ties:,} the same, {found.losses:,} worse",
        ),
    )
    found_by = found.found
    finders = Table(
        title=f"Queries with a relevant document among the first {TOP}",
        columns=(
            Column(name="found by"),
            Column(name="queries", form="count"),
            Column(name="share", form="share", decimals=3),
        ),
        rows=tuple(
            (name, count, count / found.queries)
            for name, count in (
                ("both", found_by.both),
                (f"{ranker} alone", found_by.ranker),
                ("BM25 alone", found_by.baseline),
                ("neither", found_by.neither),
            )
        ),
    )
    return scores, finders


def comparison_value(found: Comparison, fitted: FittedLabels) -> dict[str, Any]:
    """The whole comparison for JSON."""
    return asdict(found) | {
        "measure": str(found.measure),
        "places": asdict(found.places) | {"at_top": found.places.at_top},
        "unasked": fitted.unasked,
        "unknown": fitted.unknown,
    }


def fine_tuning_facts(advice: Advice, curve: LearningCurve) -> Facts:
    """Whether fine-tuning would pay, against what, and what the curve shows."""
    verdict = f"{_TUNING[advice.verdict]} against {curve.baseline.name}: {advice.why}"
    lines = [("tuning", verdict), ("", _largest(advice, curve))]
    if advice.per_doubling is not None and advice.per_doubling_interval is not None:
        gains = f"{advice.per_doubling:+.4f} {_span(advice.per_doubling_interval)}"
        lines.append(("", f"where the curve ends each doubling of the pairs gains {gains}"))
    if advice.last_step is not None:
        sure = "above noise" if advice.last_step[0] > 0 else "within noise"
        lines.append(("", f"its last step, per doubling: {_span(advice.last_step)}, {sure}"))
    if advice.pairs_needed is not None:
        ends = f"{advice.pairs_low:,}" if advice.pairs_low is not None else "?"
        ends += f" to {advice.pairs_high:,}" if advice.pairs_high is not None else " or more"
        lines.append(
            ("", f"about {advice.pairs_needed:,} pairs reach {advice.target:.4f} ({ends})")
        )
    lines.append(("", "the intervals are those of trainings, not of other queries"))
    ask = "compare the tuned ranker with it, on queries that no training saw (heldout compare)"
    lines.append(("next", f"this run is not in the curve, {curve.baseline.name} is: {ask}"))
    return tuple(lines)


def fine_tuning_value(advice: Advice, curve: LearningCurve) -> dict[str, Any]:
    """The advice for JSON."""
    return asdict(advice) | {
        "measure": curve.measure,
        "baseline": {"name": curve.baseline.name, "mean": curve.baseline.mean},
    }


_TUNING = {
    "pays": "fine-tuning pays",
    "would pay": "fine-tuning would pay",
    "does not pay": "fine-tuning does not pay",
    "cannot tell": "cannot tell whether fine-tuning would pay",
}


def _because(found: Comparison) -> str:
    if found.why:
        return f": {found.why}"
    if found.verdict == "not better":
        return f": a gain of {found.gain:g} is ruled out"
    return ": both intervals say so"


def _scores(found: Comparison) -> str:
    text = f"{found.measure} {found.ranker:.4f} against {found.baseline:.4f}"
    text += f", difference {found.difference:+.4f}"
    if found.t is not None:
        text += f" {_span(found.t)} by t"
    if found.bootstrap is not None:
        text += f", {_span(found.bootstrap)} by bootstrap"
    return text


def _describe_queries(found: Comparison) -> str:
    text = f"on {plural(found.queries, 'labelled query', 'labelled queries')}"
    if found.detectable is not None and found.queries >= FEWEST:
        text += f"; so many find a true gain of {found.detectable:.3f} (power 0.8)"
    return text


def _use(found: Comparison) -> str:
    if found.verdict == "better":
        return "this run"
    if found.verdict == "worse":
        return _BM25
    if found.verdict == "not better":
        return f"{_BM25} does as well, and costs less"
    return f"{_BM25} until labels say otherwise, which costs less; {_ask_for_more(found)}"


def _ask_for_more(found: Comparison) -> str:
    if found.queries < FEWEST or found.queries_for_gain is None:
        return f"label {_SOME} queries at least"
    more = found.queries_for_gain - found.queries
    if more > 0:
        return f"{more:,} more labelled queries would find a gain of {found.gain:g}"
    return f"the labels are enough for a gain of {found.gain:g}: there may be a smaller one"


def _label_facts(found: Comparison, fitted: FittedLabels) -> Facts:
    """What speaks against trusting the labels."""
    places = found.places
    lines = []
    if places.at_top:
        lines.append(
            f"{places.top / places.labels:.0%} of the {places.labels:,} relevant documents stand "
            f"among BM25's first {TOP}: if annotators saw no others, this favours BM25 "
            "(heldout survive depths)"
        )
    if found.without_relevant:
        none = plural(found.without_relevant, "query has", "queries have")
        lines.append(f"{none} no relevant document and count as ties")
    if fitted.unknown:
        gone = plural(fitted.unknown, "relevant document is", "relevant documents are")
        lines.append(f"{gone} not in the collection, so no run can retrieve them")
    if fitted.unasked:
        other = plural(fitted.unasked, "labelled query is", "labelled queries are")
        lines.append(f"{other} not asked here")
    if fitted.near:
        lines.append(f"of these, {fitted.near}: write them alike in both files")
    return tuple(("labels" if place == 0 else "", line) for place, line in enumerate(lines))


def _largest(advice: Advice, curve: LearningCurve) -> str:
    text = f"{curve.measure} {advice.mean:.4f}"
    if advice.interval is not None:
        text += f" {_span(advice.interval, signed=False)}"
    text += f" with {advice.pairs:,.0f} pairs, against {curve.baseline.mean:.4f} of "
    return f"{text}{curve.baseline.name}"


def _span(ends: tuple[float, float], *, signed: bool = True) -> str:
    low, high = (f"{end:+.4f}" if signed else f"{end:.4f}" for end in ends)
    return f"[{low}, {high}]"


_MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What will be asked of a run, read before it is made: it may take hours.

    Attributes:
        comparing: whether it is compared with BM25.
        measure: what is measured.
        gain: as in `Playbook`.
        labels: where labels come from, "" where there are none.
        fitted: labels of the task; None where there are none.
        curve: a learning curve; None where none was named.
    """

    comparing: bool
    measure: Measure
    gain: float
    labels: str
    fitted: FittedLabels | None
    curve: LearningCurve | None

    @property
    def any(self) -> bool:
        """Whether there is something to answer."""
        return self.comparing or self.curve is not None


def prepare_questions(
    options: Playbook, source: SourcedCollection, task: Task, *, comparing: bool
) -> Questions:
    """Read what the answers need.

    Raises:
        InputError: codes `curve-file`, `curve-measure`, `labels-match-nothing`, and those of
            measures.
    """
    curve = None if options.curve is None else read_learning_curve(options.curve)
    measure = _choose_measure(options, curve)
    labels = source.collection.qrels if comparing else {}
    return Questions(
        comparing=comparing,
        measure=measure,
        gain=options.gain,
        labels=source.labels,
        fitted=fit_labels(labels, task) if labels else None,
        curve=curve,
    )


def _choose_measure(options: Playbook, curve: LearningCurve | None) -> Measure:
    """What is measured: as asked, else as the curve was; `--gain` is a gain in one measure."""
    asked = None if options.measure is None else read_own_measure(options.measure, path="--measure")
    if curve is None:
        return asked or parse_measure(_MEASURE)
    drawn = parse_measure(curve.measure_name, path=str(options.curve))
    if asked in {None, drawn}:
        return drawn
    raise InputError.of(
        "curve-measure",
        "--measure",
        f"{asked}, and a curve of {drawn}",
        "the measure of the curve, since --gain is a gain in one measure",
        f"leave --measure out, or give --measure {drawn}; without --curve any will do",
    )


def answer_questions(
    questions: Questions,
    run: Run,
    task: Task,
    *,
    name: str,
    seed: int,
    progress: Progress = SILENT,
) -> Answer:
    """Compare a run with BM25 and read the curve.

    Args:
        questions: from `prepare_questions`.
        run: what was made.
        task: what it was made for.
        name: of the ranker.
        seed: of the bootstrap.
        progress: hears what is compared.
    """
    if questions.comparing and questions.fitted is not None:
        progress.note("comparing", "with BM25")
    found = _compare(questions, run, task, name, seed) if questions.comparing else None
    facts = [*found.summary] if found else []
    value = {**found.document} if found else {}
    said = found.answer if found else ""
    if questions.curve is not None:
        advice = advise(questions.curve, gain=questions.gain)
        against = name_one(questions.curve.baseline.name)
        said = said or f"{_capital(_TUNING[advice.verdict])} against {against}."
        facts += fine_tuning_facts(advice, questions.curve)
        value["fine_tuning"] = fine_tuning_value(advice, questions.curve)
    tables = found.tables if found else ()
    return Answer(answer=said, summary=facts, tables=tables, document=value)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _headline(found: Comparison, name: str) -> str:
    """Whether the ranker is better than BM25, and by how much."""
    gain = f"{found.measure} {found.ranker:.4f} against {found.baseline:.4f}"
    on = plural(found.queries, "labelled query", "labelled queries")
    if found.verdict == "cannot tell":
        return f"Whether {name_one(name)} is better than BM25 is not known: {gain} on {on}."
    return f"{name_one(name)} is {_SAID[found.verdict]} on {on}: {gain}."


def _compare(questions: Questions, run: Run, task: Task, name: str, seed: int) -> Answer:
    if questions.fitted is None:
        value = {"labels": None, "comparison": None, "why": "no labels"}
        asked = ask_for_labels(str(questions.measure), name)
        said = "Without labels it is unknown whether this run is better than BM25 here."
        return Answer(answer=said, summary=asked, tables=(), document=value)
    found = compare(
        run,
        rank_bm25(task, Bm25Settings()),
        questions.fitted.labels,
        questions.measure,
        Generator(PCG64(seed)),
        gain=questions.gain,
    )
    return Answer(
        answer=_headline(found, name),
        summary=comparison_facts(found, questions.fitted),
        tables=comparison_tables(found, name),
        document={
            "labels": questions.labels,
            "comparison": comparison_value(found, questions.fitted),
        },
    )
