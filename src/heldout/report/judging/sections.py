"""The sections of the report on judging, in the order of the study.

What cannot be told of a campaign is a section that says why.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from numpy.random import PCG64, Generator

from heldout.errors import InputError, Problem
from heldout.preferences.agreement import judge_agreement
from heldout.preferences.bias import measure_bias, text_lengths
from heldout.preferences.categories import split_queries
from heldout.preferences.category_results import count_preferences
from heldout.preferences.contests import PERFECT, first_documents, hold_contests, stand_for
from heldout.preferences.judge_care import measure_care
from heldout.preferences.judgments import Judgment, counted
from heldout.preferences.label_scores import ScoredLabels
from heldout.preferences.pools import Pool, build_pools, sizes
from heldout.preferences.sample_scores import SampleScores, score_sample
from heldout.preferences.versions import Rules
from heldout.report import categories, contests, label_chart, labels
from heldout.report.judging import category_chart, examples, judges, sample, score_ranges
from heldout.report.judging import pools as pool_report
from heldout.report.judging.judges import Judges
from heldout.report.judging.section import Drawing, Section, attempt
from heldout.report.labels import Relabelled
from heldout.trec.places import Places
from heldout.trec.tops import Tops

__all__ = ["Given", "first_tops", "write_sections"]

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
                chart=pool_report.histogram(one),
                shows=f"Sizes of {one.queries:,} pools: {which}",
            )
            for which, one in found.items()
            if one.queries
        ),
        tables=(pool_report.table(found),),
        value=pool_report.value(found),
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
        facts=judges.facts(found),
        tables=judges.tables(found),
        value=judges.value(found),
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
                    chart=score_ranges.spec(found.rescored, which),
                    shows=score_ranges.title(found.rescored, which),
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
