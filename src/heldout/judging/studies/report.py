"""The sections of the report on judging, in the order of the study.

What cannot be told of a campaign is a section that says why.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

from numpy.random import PCG64, Generator

from heldout.answers.table import Column, Table
from heldout.charts.axes import count_axis, place_axis
from heldout.charts.plot import Plot
from heldout.charts.svg import LINK, Chart
from heldout.errors import InputError, Problem
from heldout.judging.campaign.judgments import Judgment, counted
from heldout.judging.campaign.pools import Pool, PoolSizes, build_pools, sizes
from heldout.judging.labels.contests import PERFECT, first_documents, hold_contests, stand_for
from heldout.judging.labels.rescoring import ScoredLabels
from heldout.judging.labels.versions import Rules
from heldout.judging.studies import bias as side_bias
from heldout.judging.studies import categories, contests, examples, labels, sample
from heldout.judging.studies import categories as category_chart
from heldout.judging.studies import labels as label_chart
from heldout.judging.studies import sample as score_ranges
from heldout.judging.studies.bias import SideBias, measure_bias, text_lengths
from heldout.judging.studies.categories import count_preferences, split_queries
from heldout.judging.studies.examples import Example
from heldout.judging.studies.judges import (
    STUDY_ACCURACY,
    CrowdCare,
    JudgeAgreement,
    expected_alpha,
    judge_agreement,
    measure_care,
)
from heldout.judging.studies.labels import Relabelled
from heldout.judging.studies.sample import SampleScores, score_sample
from heldout.trec.tops import Places, Tops

# How far judges agree, how far they should, and what habits they have: tables and JSON.

_HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """What is known of the judges.

    Attributes:
        agreement: on pairs judged at least twice.
        bias: of sides and lengths.
        care: of each judge.
        counted: judgments that count.
        recorded: all of them.
        level: of intervals.
    """

    agreement: JudgeAgreement
    bias: SideBias
    care: CrowdCare
    counted: int
    recorded: int
    level: float


def implied_accuracy(alike: float) -> float | None:
    """How often a vote is right if judges are all alike, independent, and pairs equally hard.

    Two votes are then alike with probability p^2 + (1 - p)^2.

    Args:
        alike: share of two votes on one pair that are alike; below a half no such p is there.
    """
    return (1 + sqrt(2 * alike - 1)) / 2 if alike >= _HALF else None


def facts(found: Judges) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines."""
    own = found.agreement
    lines = [("judgments", f"{found.counted:,} of {found.recorded:,} count")]
    if own.alpha is None:
        lines.append(("alpha", f"undefined: {own.why}"))
    else:
        ends = "" if own.interval is None else f", {own.interval[0]:.3f} to {own.interval[1]:.3f}"
        expected = f"{expected_alpha(STUDY_ACCURACY):.2f} of judges as often right as the study's"
        lines.append(("alpha", f"{own.alpha:.3f}{ends}; {expected}"))
    return (*lines, *side_bias.facts(found.bias, found.care))


def tables(found: Judges) -> tuple[Table, ...]:
    """Agreement, then habits."""
    return (_agreement(found), *side_bias.tables(found.bias, found.care))


def value(found: Judges) -> dict[str, Any]:
    """For JSON."""
    own = found.agreement
    return {
        "recorded": found.recorded,
        "counted": found.counted,
        "alpha": own.alpha,
        "interval": None if own.interval is None else list(own.interval),
        "pairs": own.pairs,
        "votes": own.votes,
        "alike": own.alike,
        "accuracy_if_equally_hard": None if own.alike is None else implied_accuracy(own.alike),
        "expected_alpha": expected_alpha(STUDY_ACCURACY),
        "habits": side_bias.value(found.bias, found.care),
        "level": found.level,
        **({} if own.why is None else {"why": own.why}),
    }


def _agreement(found: Judges) -> Table:
    own = found.agreement
    ends = own.interval or (None, None)
    accuracy = None if own.alike is None else implied_accuracy(own.alike)
    return Table(
        title="Agreement of judges on pairs that were judged at least twice",
        columns=(
            Column(name="pairs", form="count"),
            Column(name="votes", form="count"),
            Column(name="alike", form="share", decimals=3),
            *(Column(name=name, form="score", decimals=3) for name in ("alpha", "low", "high")),
            Column(name="a vote is right", form="share", decimals=3),
            Column(name="expected alpha", form="score", decimals=3),
        ),
        rows=(
            (
                own.pairs,
                own.votes,
                own.alike,
                own.alpha,
                *ends,
                accuracy,
                expected_alpha(STUDY_ACCURACY),
            ),
        ),
        notes=(
            (
                "alpha: Krippendorff's, nominal; its interval draws queries. alike: of two votes "
                "on one pair. a vote is right: what that comes to if all pairs are equally hard. "
                f"expected alpha: of judges who are right in {STUDY_ACCURACY:.1%} of pairs, as in "
                "the study. Low agreement can mean that pairs are hard, or that judges are "
                "careless; failed tests tell which."
            ),
            *((f"alpha is undefined: {own.why}.",) if own.why else ()),
        ),
    )


# How large pools are, as a table, pictures and JSON (Arabzadeh et al. 2021, figures 3 and 4).


def table(found: Mapping[str, PoolSizes]) -> Table:
    """Sizes of each set of pools.

    Args:
        found: what is pooled -> its sizes.
    """
    return Table(
        title="Sizes of pools",
        columns=(
            Column(name="pools"),
            Column(name="queries", form="count"),
            Column(name="mean", form="score", decimals=2),
            Column(name="median", form="score", decimals=1),
            Column(name="of one passage", form="count"),
            Column(name="pairs", form="count"),
        ),
        rows=tuple(
            (name, one.queries, one.mean, one.median, one.single, one.pairs)
            for name, one in found.items()
        ),
        notes=("A pool of one passage leaves nothing to judge.",),
    )


def histogram(found: PoolSizes) -> Plot:
    """Queries by the size of their pools; at least one pool."""
    plot = Plot(
        x=place_axis(max(found.histogram)),
        y=count_axis(max(found.histogram.values())),
        head="queries",
        foot="passages in the pool",
        height=220,
    )
    for size, queries in found.histogram.items():
        tip = f"{size:,} passages: {queries:,} queries"
        plot.box((size - 0.4, size + 0.4), (0, queries), LINK, tip)
    return plot


def value_of_pools(found: Mapping[str, PoolSizes]) -> dict[str, Any]:
    """For JSON."""
    return {
        name: {
            "queries": one.queries,
            "mean": one.mean,
            "median": one.median,
            "single": one.single,
            "pairs": one.pairs,
            "histogram": {str(size): count for size, count in one.histogram.items()},
            **({} if one.queries else {"why": "no query was pooled"}),
        }
        for name, one in found.items()
    }


# A section of the report on judging: what was found, or why it cannot be told.


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture.

    Attributes:
        chart: the picture.
        shows: what it shows, for those who do not see it; also its caption.
    """

    chart: Chart
    shows: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section.

    Attributes:
        name: of its files; lower case, digits and hyphens.
        title: its heading.
        study: which tables and figures of the study it is; "" for none.
        facts: the answer, in lines of (name, words).
        examples: judged pairs with their texts.
        drawings: pictures.
        tables: the evidence.
        value: for JSON; `None` where nothing was found.
        why_not: why it cannot be told; "" where it can.
    """

    name: str
    title: str
    study: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    examples: tuple[Example, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    tables: tuple[Table, ...] = ()
    value: Mapping[str, Any] | None = None
    why_not: str = ""


def attempt(name: str, title: str, make: Callable[[], Section]) -> Section:
    """A section, or the same without findings and with the reason of the error.

    Args:
        name: of the section.
        title: its heading.
        make: makes it, or raises an `InputError`.
    """
    try:
        return make()
    except InputError as error:
        first = error.problems[0]
        why = f"{first.found}; this needs {first.expected}" if first.expected else first.found
        return Section(name=name, title=title, why_not=why)


_NO_RUNS = "no runs are named; this needs --runs 'GLOB'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the report is of.

    Attributes:
        pools: what was pooled.
        judgments: all that were recorded.
        rules: which of them count.
        known: query -> relevant documents, the known answer first.
        tops: run -> query -> first documents, two where run files are known.
        places: run -> where it has the labelled documents; none without run files.
        before: the labels there were, of all queries; `None` where only the pools' are known.
        relabelled: new labels, and every run scored on them.
        split: the run that is compared with the labels; `None` for the best on them.
        count: examples.
        seed: of every draw.
        level: of intervals.
    """

    pools: Sequence[Pool]
    judgments: Sequence[Judgment]
    rules: Rules
    known: Mapping[str, Sequence[str]]
    tops: Mapping[str, Tops]
    places: Mapping[str, Places]
    before: ScoredLabels | None
    relabelled: Relabelled
    split: str | None = None
    count: int = 3
    seed: int = 0
    level: float = 0.95

    def rng(self) -> Generator:
        """A generator at its start."""
        return Generator(PCG64(self.seed))


def write_sections(given: Given) -> Iterator[Section]:
    """The sections, one after the other.

    Args:
        given: what the report is of.
    """
    for name, title, make in (
        ("examples", "Judged pairs, drawn blind", _examples),
        ("categories", "One run against the labels", _categories),
        ("pools", "Pools", _pools),
        ("runs", "Runs, and whether the judged queries stand for all", _runs),
        ("contests", "Contests between runs", _contests),
        ("judges", "Agreement and habits of judges", _judges),
        ("labels", "Preference labels, and runs scored on them", _labels),
    ):
        yield attempt(name, title, partial(make, given, name, title))


def first_tops(tops: Mapping[str, Tops]) -> Mapping[str, Tops]:
    """The first document alone of each run and query.

    Args:
        tops: run -> query -> documents.
    """
    return {run: {query: docs[:1] for query, docs in found.items()} for run, found in tops.items()}


def _examples(given: Given, name: str, title: str) -> Section:
    votes = given.relabelled.made.votes
    found = examples.draw_examples(given.pools, votes, given.rng(), count=given.count)
    return Section(
        name=name,
        title=title,
        study="Figure 1",
        facts=(("drawn", f"{len(found):,} queries by seed {given.seed}, a judged pair of each"),),
        examples=found,
        value=examples.value(found),
    )


def _categories(given: Given, name: str, title: str) -> Section:
    run = given.split or _best(given)
    if run not in given.tops:
        raise InputError(
            Problem(
                code="one-run",
                path="--split",
                found=f"no run file of {run}" if run else "no run files",
                expected="one run with its first two documents",
            )
        )
    same = stand_for(given.pools)
    stands = {
        query: tuple(same.get(query, {}).get(doc, doc) for doc in docs)
        for query, docs in given.tops[run].items()
    }
    splits = split_queries(stands, given.known, queries=[pool.query for pool in given.pools])
    found = count_preferences(splits, given.relabelled.made.votes, level=given.level)
    chart = category_chart.spec(found) if any(one.decided for one in found) else None
    return Section(
        name=name,
        title=title,
        study="Tables 1 and 2, Figure 2",
        facts=categories.facts(run, found),
        drawings=() if chart is None else (Drawing(chart=chart, shows=category_chart.title(run)),),
        tables=categories.tables(run, found, level=given.level),
        value=categories.value(run, found, level=given.level),
    )


def _pools(given: Given, name: str, title: str) -> Section:
    found = {"judged": sizes(given.pools)}
    if given.places:
        queries = {query: "" for query, docs in sorted(given.known.items()) if docs}
        every = build_pools(first_tops(given.tops), given.known, queries=queries)
        found = {f"all queries, {len(given.tops):,} runs": sizes(every)} | found
    return Section(
        name=name,
        title=title,
        study="Figures 3 and 4",
        drawings=tuple(
            Drawing(
                chart=histogram(one),
                shows=f"Sizes of {one.queries:,} pools: {which}",
            )
            for which, one in found.items()
            if one.queries
        ),
        tables=(table(found),),
        value=value_of_pools(found),
    )


def _runs(given: Given, name: str, title: str) -> Section:
    rescored = given.relabelled.rescored
    if rescored is None:
        return Section(name=name, title=title, why_not=_NO_RUNS)
    found, why = _sample(given)
    value = {"queries": rescored.queries, "why": why} if found is None else sample.value(found)
    return Section(
        name=name,
        title=title,
        study="Table 3, Figure 5",
        facts=(("sample", why),) if found is None else sample.facts(found),
        drawings=()
        if found is None
        else (Drawing(chart=sample.spec(found), shows=sample.title(found)),),
        tables=(
            sample.run_table(rescored, found),
            *(() if found is None else (sample.tau_table(found),)),
        ),
        value=value,
    )


def _sample(given: Given) -> tuple[SampleScores | None, str]:
    """Scores on all labelled queries, or why they are not compared."""
    if given.before is None:
        return None, "the labels of other queries are not known"
    judged = {pool.query for pool in given.pools}
    try:
        return score_sample(given.places, given.before, judged), ""
    except InputError as error:
        return None, error.problems[0].found


def _contests(given: Given, name: str, title: str) -> Section:
    first = first_documents(
        first_tops(given.tops), given.known or None, same=stand_for(given.pools)
    )
    if len(first) <= 1:
        return Section(name=name, title=title, why_not=_NO_RUNS)
    found = hold_contests(first, given.relabelled.made.votes, level=given.level)
    return Section(
        name=name,
        title=title,
        study="Table 4",
        facts=contests.facts(found),
        drawings=(Drawing(chart=contests.spec(found), shows=contests.title(found)),),
        tables=contests.tables(found),
        value=contests.value(found),
    )


def _judges(given: Given, name: str, title: str) -> Section:
    rules = given.rules
    valid = counted(
        given.judgments, exclusion=rules.exclusion, failures=rules.failures, until=rules.until
    )
    found = Judges(
        agreement=judge_agreement(valid, given.rng(), level=given.level),
        bias=measure_bias(valid, lengths=text_lengths(given.pools), level=given.level),
        care=measure_care(
            one
            for one in given.judgments
            if (rules.until is None or one.answered_at <= rules.until)
            and (one.position or one.shown_at)
        ),
        counted=len(valid),
        recorded=given.relabelled.made.version.recorded,
        level=given.level,
    )
    return Section(
        name=name,
        title=title,
        facts=facts(found),
        tables=tables(found),
        value=value(found),
    )


def _labels(given: Given, name: str, title: str) -> Section:
    found = given.relabelled
    drawings: tuple[Drawing, ...] = ()
    if found.rescored is not None:
        drawings = (
            Drawing(
                chart=label_chart.spec(found.rescored), shows=label_chart.title(found.rescored)
            ),
            *(
                Drawing(
                    chart=score_ranges.spec_of_score_ranges(found.rescored, which),
                    shows=score_ranges.title_of_score_ranges(found.rescored, which),
                )
                for which in score_ranges.BOTH
            ),
        )
    return Section(
        name=name,
        title=title,
        study="Sections 5.1 and 5.2, Figure 6",
        facts=labels.facts(found),
        drawings=drawings,
        tables=labels.tables(found),
        value=labels.value(found),
    )


def _best(given: Given) -> str:
    """The best run on the labels before; "" where none was scored."""
    rescored = given.relabelled.rescored
    runs = () if rescored is None else rescored.runs
    return next((one.run for one in runs if one.run != PERFECT), "")
