"""What judgments say of runs and of judges: contests, strengths, habits, ways of judging."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from heldout.answers.answer import Answer
from heldout.errors import InputError, OptionError
from heldout.judging.campaign.judgments import count_votes, pooled_tops
from heldout.judging.campaign.pools import stand_for
from heldout.judging.labels.contests import first_documents, hold_contests
from heldout.judging.labels.source import Judged, JudgedSource, count_valid, load_judged, read_first
from heldout.judging.labels.strengths import compare_runs
from heldout.judging.studies.bias import bias_answer, find_habits
from heldout.judging.studies.categories import split_answer
from heldout.judging.studies.contests import contests_answer
from heldout.judging.studies.simulation import DESIGNS, SPREAD, simulate_design, simulation_answer
from heldout.judging.studies.strengths import strengths_answer
from heldout.options import Level, Opt, Seed
from heldout.progress_bar import SILENT, Progress
from heldout.stats.bradley_terry import PRIOR
from heldout.trec.tops import Tops


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestOptions:
    """How runs are compared by their first documents."""

    source: JudgedSource = field(default_factory=JudgedSource)
    split: Annotated[
        bool,
        Opt(
            "Comparison of one run with the labels, split by whether it shows the known "
            "answer first."
        ),
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
    judged = load_judged(options.source, progress=progress)
    same = stand_for(judged.pools)
    votes = count_votes(count_valid(judged), same=same)
    if options.split:
        tops = read_first(options.source, depth=2, progress=progress)
        if len(tops) != 1:
            raise InputError.of(
                code="one-run",
                path="--split",
                found=f"{len(tops):,} runs",
                expected="one run, whose first documents are compared with the labels",
                hint="--runs FILE",
            )
        ((run, first_two),) = tops.items()
        return split_answer(run, first_two, judged, votes, level=options.level)
    first = _first_documents(options.source, judged, progress)
    return contests_answer(hold_contests(first, votes, level=options.level))


def first_of(judged: Judged, tops: Mapping[str, Tops]) -> Mapping[str, Mapping[str, str]]:
    """Run -> query -> the passage it shows first, the perfect run among them where labels are.

    Args:
        judged: judgments and what they are of.
        tops: run -> query -> first documents.
    """
    return first_documents(tops, judged.known or None, same=stand_for(judged.pools))


def fit_strengths(options: StrengthOptions, *, progress: Progress = SILENT) -> Answer:
    """Bradley-Terry strengths of runs, from the preferences for their first documents.

    Raises:
        InputError, OptionError: as `compare_by_contests`.
    """
    judged = load_judged(options.source, progress=progress)
    first = _first_documents(options.source, judged, progress)
    return answer_strengths(judged, first, options)


def answer_strengths(
    judged: Judged, first: Mapping[str, Mapping[str, str]], options: StrengthOptions
) -> Answer:
    """The same of judgments and first documents that are there already.

    Args:
        judged: judgments and what they are of.
        first: as `first_of` gives it.
        options: how strengths are fitted.

    Raises:
        InputError: code `no-judgments`: none counts.
    """
    votes = count_votes(count_valid(judged), same=stand_for(judged.pools))
    found = compare_runs(
        first,
        votes,
        rng=np.random.Generator(np.random.PCG64(options.seed)),
        prior=options.prior,
        ties=options.ties,
        level=options.level,
        draws=options.draws,
    )
    answer = strengths_answer(found)
    return replace(answer, document={**answer.document, "seed": options.seed})


def find_bias(source: JudgedSource, *, level: float, progress: Progress = SILENT) -> Answer:
    """Do judges prefer a side, or the longer passage, and how attentive are they?

    Args:
        source: judgments.
        level: of the intervals.
        progress: reports how many judgments are left out.

    Raises:
        InputError: a file has errors.
    """
    judged = load_judged(source, progress=progress)
    return bias_answer(*find_habits(judged, level=level))


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
    return simulation_answer(found, spread=options.spread, seed=options.seed)


def _first_documents(
    source: JudgedSource, judged: Judged, progress: Progress
) -> Mapping[str, Mapping[str, str]]:
    """What each run named shows first, or each run as the campaign's pools have it."""
    if not source.runs and judged.folder is None:
        raise OptionError("which runs? --runs 'GLOB'")
    tops = read_first(source, progress=progress) if source.runs else pooled_tops(judged.pools)
    return first_of(judged, tops)
