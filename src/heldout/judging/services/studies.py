"""What judgments say of runs and of judges: contests, strengths, habits, ways of judging."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from heldout.answers.answer import Answer
from heldout.errors import InputError, Problem
from heldout.judging.campaign.judgments import Votes, count_votes, counted, pooled_tops
from heldout.judging.labels.contests import first_documents, hold_contests, stand_for
from heldout.judging.labels.source import Judged, JudgedSource, count_valid, load_judged, read_first
from heldout.judging.labels.strengths import compare_runs
from heldout.judging.studies import bias as bias_report
from heldout.judging.studies import categories as category_report
from heldout.judging.studies import contests as contest_report
from heldout.judging.studies import simulation as simulation_report
from heldout.judging.studies import strengths as strength_report
from heldout.judging.studies.bias import measure_bias, text_lengths
from heldout.judging.studies.categories import count_preferences, split_queries
from heldout.judging.studies.judges import measure_care
from heldout.judging.studies.simulation import DESIGNS, SPREAD, simulate_design
from heldout.options import Level, Opt, OptionError, Seed
from heldout.progress import SILENT, Progress
from heldout.stats.bradley_terry import PRIOR
from heldout.trec.tops import Tops

_TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestOptions:
    """How runs are compared by their first documents."""

    source: JudgedSource = field(default_factory=JudgedSource)
    split: Annotated[
        bool,
        Opt("One run against the labels: where it shows the known answer first, and where not."),
    ] = False
    level: Level = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthOptions:
    """How the strengths of runs are fitted."""

    source: JudgedSource = field(default_factory=JudgedSource)
    ties: Annotated[bool, Opt("Davidson's model of ties, instead of half a win each.")] = False
    prior: Annotated[float, Opt("Precision of the prior on strengths; 0 for none.", least=0)] = (
        PRIOR
    )
    draws: Annotated[
        int, Opt("Number of bootstrap samples of the queries.", least=20, most=100_000)
    ] = 1000
    level: Level = 0.95
    seed: Seed = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """Which ways of judging are played, on which made-up pools."""

    sizes: Annotated[
        tuple[int, ...],
        Opt("Number of passages of a pool. Repeatable.", names=("--size",), least=2, most=200),
    ] = (4, 6)
    designs: Annotated[
        tuple[str, ...],
        Opt("Way of judging. Repeatable [all].", names=("--design",), choices=tuple(DESIGNS)),
    ] = ()
    pools: Annotated[
        int,
        Opt("Number of made-up pools of each size for each design.", least=2, most=1_000_000),
    ] = 2000
    spread: Annotated[
        float,
        Opt(
            "Standard deviation of strengths, in logits; at 0.8 judges are right 69% of the time.",
            above=0,
            most=10,
        ),
    ] = SPREAD
    seed: Seed = 0


def compare_by_contests(options: ContestOptions, *, progress: Progress = SILENT) -> Answer:
    """On how many queries do people prefer each run's first document?

    Raises:
        InputError: a file has errors; codes `no-judgments`, `one-run`.
        OptionError: no runs are named, and there is no campaign.
    """
    source = options.source
    judged = load_judged(source, progress=progress)
    same = stand_for(judged.pools)
    votes = count_votes(count_valid(judged), same=same)
    if options.split:
        return _split(judged, votes, read_first(source, depth=_TWO, progress=progress), options)
    tops = _tops(source, judged, progress)
    found = hold_contests(
        first_documents(tops, judged.known or None, same=same), votes, level=options.level
    )
    return Answer(
        summary=contest_report.facts(found),
        tables=contest_report.tables(found),
        document=contest_report.value(found),
        chart=(lambda: contest_report.spec(found)) if found.contests else None,
        title=contest_report.title(found) if found.contests else "",
    )


def fit_strengths(options: StrengthOptions, *, progress: Progress = SILENT) -> Answer:
    """Bradley-Terry strengths of runs, from the preferences for their first documents.

    Raises:
        InputError, OptionError: as `compare_by_contests`.
    """
    judged = load_judged(options.source, progress=progress)
    valid = count_valid(judged)
    same = stand_for(judged.pools)
    tops = _tops(options.source, judged, progress)
    found = compare_runs(
        first_documents(tops, judged.known or None, same=same),
        count_votes(valid, same=same),
        rng=np.random.Generator(np.random.PCG64(options.seed)),
        prior=options.prior,
        ties=options.ties,
        level=options.level,
        draws=options.draws,
    )
    return Answer(
        summary=strength_report.facts(found),
        tables=strength_report.tables(found),
        document=strength_report.value(found) | {"seed": options.seed},
        chart=(lambda: strength_report.spec(found)) if found.differences else None,
        title=strength_report.title(found) if found.differences else "",
    )


def find_bias(source: JudgedSource, *, level: float, progress: Progress = SILENT) -> Answer:
    """Do judges prefer a side, or the longer passage, and how attentive are they?

    Args:
        source: judgments.
        level: of the intervals.
        progress: is told how many judgments are left out.

    Raises:
        InputError: a file has errors.
    """
    judged = load_judged(source, progress=progress)
    rules = judged.rules
    valid = counted(
        judged.judgments, exclusion=rules.exclusion, failures=rules.failures, until=rules.until
    )
    found = measure_bias(valid, lengths=text_lengths(judged.pools), level=level)
    care = measure_care(
        one
        for one in judged.judgments
        if (rules.until is None or one.answered_at <= rules.until)
        and (one.position or one.shown_at)
    )
    return Answer(
        summary=bias_report.facts(found, care),
        tables=bias_report.tables(found, care),
        document=bias_report.value(found, care),
    )


def simulate(options: SimulationOptions, *, progress: Progress = SILENT) -> Answer:
    """How often does each way of judging find the best passage, and for how many judgments?"""
    chosen = [DESIGNS[name] for name in options.designs or DESIGNS]
    found = []
    with progress.steps("playing pools", len(options.sizes) * len(chosen)) as done:
        for size in options.sizes:
            for number, design in enumerate(chosen):
                rng = np.random.Generator(np.random.PCG64([options.seed, size, number]))
                found.append(
                    simulate_design(
                        design, size=size, pools=options.pools, rng=rng, spread=options.spread
                    )
                )
                done()
    return Answer(
        summary=simulation_report.facts(found, spread=options.spread),
        tables=simulation_report.tables(found),
        document=simulation_report.value(found, spread=options.spread, seed=options.seed),
    )


def _tops(source: JudgedSource, judged: Judged, progress: Progress) -> Mapping[str, Tops]:
    """First documents of the runs named, or as the campaign's pools have them."""
    if source.runs:
        return read_first(source, progress=progress)
    if judged.folder is None:
        raise OptionError("which runs? --runs 'GLOB'")
    return pooled_tops(judged.pools)


def _split(
    judged: Judged, votes: Votes, tops: Mapping[str, Tops], options: ContestOptions
) -> Answer:
    if len(tops) != 1:
        raise InputError(
            Problem(
                code="one-run",
                path="--split",
                found=f"{len(tops):,} runs",
                expected="one run, whose first documents are compared with the labels",
                hint="--runs FILE",
            )
        )
    ((run, answered),) = tops.items()
    same, level = stand_for(judged.pools), options.level
    stands = {
        query: tuple(same.get(query, {}).get(doc, doc) for doc in docs)
        for query, docs in answered.items()
    }
    queries = [pool.query for pool in judged.pools]
    found = count_preferences(
        split_queries(stands, judged.known, queries=queries), votes, level=level
    )
    return Answer(
        summary=category_report.facts(run, found),
        tables=category_report.tables(run, found, level=level),
        document=category_report.value(run, found, level=level),
        chart=(lambda: category_report.spec(found)) if any(one.decided for one in found) else None,
        title=category_report.title(run),
    )
