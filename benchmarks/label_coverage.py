"""How often intervals of scores on preference labels hold: python benchmarks/label_coverage.py.

A world: each query has six passages of strengths N(0, 0.8^2), each pair is judged by some people
who prefer the stronger one with probability 1 / (1 + exp(-difference)), and two runs order the
passages by their strengths with noise. The truth is the mean score on labels of as many votes over
very many queries. A trial draws queries, votes and runs, makes labels and asks which interval holds
it.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.random import PCG64, Generator

from heldout.judging.campaign.judgments import PairVotes, Votes
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.labels.labels import make_labels
from heldout.judging.labels.rescoring import (
    RunRescored,
    ScoredLabels,
    grade,
    redraw_labels,
    rescore,
    score_labels,
)
from heldout.scoring.measures import parse_measure
from heldout.trec.tops import RunPositions

__all__ = ["World", "draw_world", "true_means"]

_DOCS = "abcdef"
_SPREAD = 0.8
_RUNS: Mapping[str, float] = {"good": 0.4, "poor": 1.2}
_LARGE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A sample.

    Attributes:
        pools: the passages of each query.
        votes: on all their pairs.
        runs: where each has them.
    """

    pools: Sequence[Pool]
    votes: Votes
    runs: Mapping[str, RunPositions]

    @property
    def labels(self) -> ScoredLabels:
        """Preference labels, with RR@10."""
        labels = grade(make_labels(self.pools, self.votes).labels)
        return ScoredLabels(name="labels", labels=labels, measure=parse_measure("RR@10"))


def draw_world(queries: int, judges: int, rng: Generator) -> World:
    """Draw queries, votes and runs."""
    pools, votes = [], {}
    places: dict[str, dict[str, dict[str, int]]] = {run: {} for run in _RUNS}
    for number in range(queries):
        query = f"q{number:05}"
        strengths = rng.normal(0, _SPREAD, len(_DOCS))
        pools.append(Pool(query=query, candidates=tuple(Candidate(doc=doc) for doc in _DOCS)))
        votes[query] = {
            (_DOCS[one], _DOCS[other]): _vote(strengths[one] - strengths[other], judges, rng)
            for one, other in combinations(range(len(_DOCS)), 2)
        }
        for run, noise in _RUNS.items():
            order = np.argsort(-(strengths + rng.normal(0, noise, len(_DOCS))))
            places[run][query] = {_DOCS[doc]: place for place, doc in enumerate(order, 1)}
    runs = {
        run: RunPositions(found=found, retrieved=dict.fromkeys(found, len(_DOCS)))
        for run, found in places.items()
    }
    return World(pools=pools, votes=votes, runs=runs)


def true_means(judges: int, rng: Generator) -> Mapping[str, float]:
    """Mean scores over very many queries, each with noisy labels of its own."""
    world = draw_world(_LARGE, judges, rng)
    queries = [pool.query for pool in world.pools]
    means = score_labels(world.runs, world.labels, queries=queries).mean(axis=1)
    return dict(zip(world.runs, means.tolist(), strict=True))


def _vote(difference: float, judges: int, rng: Generator) -> PairVotes:
    first = int(rng.binomial(judges, 1 / (1 + np.exp(-difference))))
    return PairVotes(first=first, second=judges - first)


def _trial(world: World, rng: Generator) -> Sequence[RunRescored]:
    redrawn = redraw_labels(world.pools, world.votes, draws=20, rng=rng)
    return rescore(world.runs, world.labels, world.labels, rng, redrawn=redrawn, trials=300).runs


def main() -> None:
    """Print a line for each number of judges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judges", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--queries", type=int, default=80)
    asked = parser.parse_args()
    for judges in asked.judges:
        rng = Generator(PCG64([judges, 6]))
        truth = true_means(judges, rng)
        held = {"t": 0, "BCa": 0, "queries and judgments": 0}
        widths = dict.fromkeys(held, 0.0)
        intervals = 0
        for _ in range(asked.trials):
            for one in _trial(draw_world(asked.queries, judges, rng), rng):
                ends = (one.after.t, one.after.bca, one.noisy)
                for name, interval in zip(held, ends, strict=True):
                    low, high = interval or (np.inf, -np.inf)
                    held[name] += low <= truth[one.run] <= high
                    widths[name] += high - low
                intervals += 1
        for name, count in held.items():
            print(
                f"judges {judges}  {name:22} held {count / intervals:.3f} of {intervals}, "
                f"width {widths[name] / intervals:.3f}"
            )


if __name__ == "__main__":
    main()
