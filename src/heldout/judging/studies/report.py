"""The report on judging: its sections in the order of the study, and their files.

What a campaign does not say is a section with the reason. The page needs no other file and no
network; it holds judgments, texts and scores of a campaign, and is as private as that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import msgspec
from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer, to_document
from heldout.answers.files import render_alone, table_csv
from heldout.answers.table import Table, to_latex
from heldout.answers.text import clean
from heldout.answers.texts import write, write_facts, write_table
from heldout.charts import axes, svg
from heldout.charts.plot import Chart, Plot, stand_alone
from heldout.errors import InputError, plural
from heldout.judging.campaign.judgments import PairVotes, Votes
from heldout.judging.campaign.pools import Candidate, Pool, PoolSizes, build_pools, sizes, stand_for
from heldout.judging.labels import rescoring, source
from heldout.judging.labels.contests import PERFECT, first_documents, hold_contests
from heldout.judging.studies import judges, labels, sample
from heldout.judging.studies.categories import split_answer
from heldout.judging.studies.contests import contests_answer
from heldout.trec.tops import RunPositions, Tops

# How far judges agree, and how far they should.

_HALF = 0.5


def implied_accuracy(alike: float) -> float | None:
    """Return how often a vote is right if judges are alike and pairs equally hard.

    Two votes are then alike with probability p^2 + (1 - p)^2.

    Args:
        alike: share of two votes on one pair that are alike; below a half no such p is there.
    """
    return (1 + sqrt(2 * alike - 1)) / 2 if alike >= _HALF else None


def agreement_answer(found: judges.StudyAgreement) -> Answer:
    """Alpha beside what it would be if judges were right as often as those of the study."""
    expected = judges.expected_alpha(judges.STUDY_ACCURACY)
    accuracy = None if found.alike is None else implied_accuracy(found.alike)
    low, high = found.interval or (None, None)
    row = (found.pairs, found.votes, found.alike, found.alpha, low, high, accuracy, expected)
    return Answer(
        answer=write("study.agreement_headline", found=found),
        summary=write_facts("study.agreement_summary", found=found, expected=expected),
        tables=[
            write_table("study.agreement", (row,), found=found, accuracy=judges.STUDY_ACCURACY)
        ],
        document=to_document(found)
        | {"accuracy_if_equally_hard": accuracy, "expected_alpha": expected},
    )


# How large pools are (Arabzadeh et al. 2021, figures 3 and 4).


def sizes_table(found: Mapping[str, PoolSizes]) -> Table:
    """Sizes of each set of pools.

    Args:
        found: what is pooled -> its sizes.
    """
    rows = tuple(
        (name, one.queries, one.mean, one.median, one.single, one.pairs)
        for name, one in found.items()
    )
    return write_table("study.pools", rows)


def histogram(found: PoolSizes) -> Plot:
    """Queries by the size of their pools; at least one pool."""
    plot = Plot(
        x=axes.rank_axis(max(found.histogram)),
        y=axes.count_axis(max(found.histogram.values())),
        head="queries",
        foot="passages in the pool",
        height=220,
    )
    for size, queries in found.histogram.items():
        tip = f"{size:,} passages: {queries:,} queries"
        plot.box((size - 0.4, size + 0.4), (0, queries), svg.LINK, tip)
    return plot


# Judged pairs with their texts, drawn before anybody knows what was preferred
# (Arabzadeh et al. 2021, figure 1).


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedExample:
    """A judged pair.

    Attributes:
        query: its id.
        question: its text.
        first: the passage with more votes; with as many, the one with the lesser id.
        second: the other.
        votes: for the first, and for the second.
    """

    query: str
    question: str
    first: Candidate
    second: Candidate
    votes: tuple[int, int]

    @property
    def outcome(self) -> str:
        """The votes of people, in a line."""
        ahead, behind = self.votes
        if ahead == behind:
            return f"{ahead:,} preferred either"
        return f"{ahead:,} of {ahead + behind:,} preferred the first"


def draw_examples(
    pools: Sequence[Pool], votes: Votes, rng: Generator, *, count: int = 3
) -> tuple[JudgedExample, ...]:
    """Draw queries, and a judged pair of each, without a look at votes or texts.

    Args:
        pools: with texts; pools without a judged pair of two texts are passed over.
        votes: those that count, by the documents that stand for their texts.
        rng: of the draw.
        count: how many; all where there are fewer.

    Raises:
        InputError: code `no-text`: no judged pair has texts.
    """
    judged = [(pool, pairs) for pool in pools if (pairs := _pairs(pool, votes))]
    if not judged:
        hint = "pool the campaign with --documents"
        raise InputError.of("no-text", "pools", "no judged pair has its texts", hint=hint)
    chosen = rng.choice(len(judged), size=min(count, len(judged)), replace=False)
    found = []
    for index in chosen.tolist():
        pool, pairs = judged[index]
        pair = pairs[int(rng.integers(len(pairs)))]
        found.append(_example(pool, pair, votes[pool.query][pair]))
    return tuple(found)


def _pairs(pool: Pool, votes: Votes) -> list[tuple[str, str]]:
    texts = {one.doc for one in pool.candidates if one.text}
    return [pair for pair in votes.get(pool.query, {}) if texts >= set(pair)]


def _example(pool: Pool, pair: tuple[str, str], cast: PairVotes) -> JudgedExample:
    by_doc = {one.doc: one for one in pool.candidates}
    shown = [(by_doc[pair[0]], cast.first), (by_doc[pair[1]], cast.second)]
    (first, ahead), (second, behind) = sorted(shown, key=lambda one: -one[1])
    return JudgedExample(
        query=pool.query, question=pool.text, first=first, second=second, votes=(ahead, behind)
    )


# A section of the report on judging: what it says, or why it says nothing.


Drawing = tuple[Chart, str]
"""A picture, and what it shows for those who do not see it, which is its caption too."""

_NOTHING = Answer(answer="", summary=(), tables=(), document={})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """A section.

    Attributes:
        name: of its files; lower case, digits and hyphens.
        title: its heading.
        study: which tables and figures of the study it is; "" for none.
        answer: what it says.
        examples: judged pairs with their texts.
        drawings: pictures.
        why_not: why it says nothing; "" where it does.
    """

    name: str
    title: str
    study: str = ""
    answer: Answer = _NOTHING
    examples: tuple[JudgedExample, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    why_not: str = ""

    def saying(self, answer: Answer, *more: Drawing) -> "ReportSection":
        """The section with an answer, its picture and further ones."""
        chart = answer.chart
        own = () if chart is None else ((chart(), answer.title),)
        return replace(self, answer=answer, drawings=(*own, *more))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """What the report is of.

    Attributes:
        judged: pools, judgments, rules and known answers.
        tops: run -> query -> first documents, two where run files are known.
        ranks: run -> where it has the labelled documents; none without run files.
        before: the labels there were, of all queries; `None` where only the pools' are known.
        relabelled: new labels, and every run scored on them.
        split: the run that is compared with the labels; `None` for the best on them.
        count: examples.
        seed: of every draw.
        level: of intervals.
    """

    judged: source.Judged
    tops: Mapping[str, Tops]
    ranks: Mapping[str, RunPositions]
    before: rescoring.ScoredLabels | None
    relabelled: labels.Relabelled
    split: str | None = None
    count: int = 3
    seed: int = 0
    level: float = 0.95

    @property
    def pools(self) -> Sequence[Pool]:
        """What was pooled."""
        return self.judged.pools

    @property
    def votes(self) -> Votes:
        """Those that count."""
        return self.relabelled.made.votes

    def rng(self) -> Generator:
        """A generator at its start."""
        return Generator(PCG64(self.seed))


def write_sections(given: ReportInput) -> Iterator[ReportSection]:
    """The sections, one after the other; one that raises an `InputError` has its reason.

    Args:
        given: what the report is of.
    """
    for name, title, study, make in _SECTIONS:
        section = ReportSection(name=name, title=title, study=study)
        try:
            yield make(section, given)
        except InputError as error:
            first = error.problems[0]
            why = f"{first.found}; this needs {first.expected}" if first.expected else first.found
            yield replace(section, study="", why_not=why)


def first_tops(tops: Mapping[str, Tops]) -> Mapping[str, Tops]:
    """The first document alone of each run and query.

    Args:
        tops: run -> query -> documents.
    """
    return {run: {query: docs[:1] for query, docs in found.items()} for run, found in tops.items()}


def _examples(section: ReportSection, given: ReportInput) -> ReportSection:
    found = draw_examples(given.pools, given.votes, given.rng(), count=given.count)
    drawn = f"{plural(len(found), 'judged pair')} of different queries, drawn by seed {given.seed}."
    document = to_document({"examples": found})
    answer = Answer(answer=drawn, summary=(), tables=(), document=document)
    return replace(section.saying(answer), examples=found)


def _categories(section: ReportSection, given: ReportInput) -> ReportSection:
    run = given.split or _best(given)
    if run not in given.tops:
        found = f"no run file of {run}" if run else "no run files"
        raise InputError.of("one-run", "--split", found, "one run with its first two documents")
    top = given.tops[run]
    return section.saying(split_answer(run, top, given.judged, given.votes, level=given.level))


def _pools(section: ReportSection, given: ReportInput) -> ReportSection:
    found = {"judged": sizes(given.pools)}
    if given.ranks:
        known = given.judged.known
        queries = {query: "" for query, docs in sorted(known.items()) if docs}
        every = build_pools(first_tops(given.tops), known, queries=queries)
        found = {f"all queries, {len(given.tops):,} runs": sizes(every)} | found
    drawings = [
        (histogram(one), f"Sizes of {one.queries:,} pools: {which}")
        for which, one in found.items()
        if one.queries
    ]
    answer = Answer(
        answer=write("study.pools_headline", judged=found["judged"]),
        summary=(),
        tables=(sizes_table(found),),
        document=to_document(found),
    )
    return section.saying(answer, *drawings)


def _runs(section: ReportSection, given: ReportInput) -> ReportSection:
    rescored = given.relabelled.rescored
    if rescored is None:
        raise _no_runs()
    found: sample.SampleScores | str = "the labels of other queries are not known"
    if given.before is not None:
        judged = {pool.query for pool in given.pools}
        try:
            found = sample.score_sample(given.ranks, given.before, judged)
        except InputError as error:
            found = error.problems[0].found
    return section.saying(sample.runs_answer(rescored, found))


def _contests(section: ReportSection, given: ReportInput) -> ReportSection:
    same = stand_for(given.pools)
    first = first_documents(first_tops(given.tops), given.judged.known or None, same=same)
    if len(first) <= 1:
        raise _no_runs()
    return section.saying(contests_answer(hold_contests(first, given.votes, level=given.level)))


def _no_runs() -> InputError:
    return InputError.of("one-run", "--runs", "no runs are named", "--runs 'GLOB'")


def _judges(section: ReportSection, given: ReportInput) -> ReportSection:
    valid, recorded = given.judged.valid, given.relabelled.made.version.recorded
    agreement = agreement_answer(judges.judge_agreement(valid, given.rng(), level=given.level))
    habits = judges.bias_answer(given.judged, level=given.level)
    counts = f"{len(valid):,} of {recorded:,} count"
    answer = Answer(
        answer=agreement.answer,
        summary=[("judgments", counts), *agreement.summary, *habits.summary],
        tables=[*agreement.tables, *habits.tables],
        document={
            "recorded": recorded,
            "counted": len(valid),
            **agreement.document,
            "habits": habits.document,
            "level": given.level,
        },
    )
    return section.saying(answer)


def _labels(section: ReportSection, given: ReportInput) -> ReportSection:
    rescored = given.relabelled.rescored
    ranges = () if rescored is None else sample.draw_score_ranges(rescored)
    return section.saying(labels.labels_answer(given.relabelled), *ranges)


def _best(given: ReportInput) -> str:
    """The best run on the labels before; "" where none was scored."""
    rescored = given.relabelled.rescored
    runs = () if rescored is None else rescored.runs
    return next((one.run for one in runs if one.run != PERFECT), "")


_SECTIONS: Sequence[tuple[str, str, str, Callable[[ReportSection, ReportInput], ReportSection]]] = (
    ("examples", "Judged pairs, drawn blind", "Figure 1", _examples),
    ("categories", "One run against the labels", "Tables 1 and 2, Figure 2", _categories),
    ("pools", "Pools", "Figures 3 and 4", _pools),
    ("runs", "Runs, and whether the judged queries stand for all", "Table 3, Figure 5", _runs),
    ("contests", "Contests between runs", "Table 4", _contests),
    ("judges", "Agreement and habits of judges", "", _judges),
    (
        "labels",
        "Preference labels, and runs scored on them",
        "Sections 5.1 and 5.2, Figure 6",
        _labels,
    ),
)
"""Name, title, tables and figures of the study, and what makes the section."""


def render_judging_report(
    sections: Sequence[ReportSection], *, name: str, words: str, language: str = "en"
) -> dict[str, bytes]:
    """Every file of the report's folder.

    Args:
        sections: in the order of the page.
        name: of the campaign, or of the file of judgments.
        words: one line on what it rests on.
        language: of the texts, as in HTML.

    Returns:
        `index.html`, `report.json`, `tables/*.csv` and `*.tex`, `charts/*.svg`: path -> bytes.

    Raises:
        SetupError: the `site` extra is not installed.
    """
    made = [one for one in sections if not one.why_not]
    left_out = [one for one in sections if one.why_not]
    document = {
        "name": name,
        "sections": {
            one.name: {"why": one.why_not} if one.why_not else one.answer.document
            for one in sections
        },
    }
    top = {"name": name, "words": words, "language": language}
    files = {
        "index.html": render_alone("judging_report.html", top=top, made=made, left_out=left_out),
        "report.json": msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n",
    }
    for section in made:
        for number, table in enumerate(section.answer.tables, start=1):
            files[f"tables/{section.name}-{number}.csv"] = table_csv(table)
            files[f"tables/{section.name}-{number}.tex"] = to_latex(table).encode()
        for number, (chart, shows) in enumerate(section.drawings, start=1):
            picture = stand_alone(chart, title=clean(shows))
            files[f"charts/{section.name}-{number}.svg"] = picture.encode()
    return files
