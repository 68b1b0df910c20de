"""How often other intervals of judging hold: python benchmarks/judging_intervals.py.

Worlds whose truth is known, each with what makes its interval weak: few queries, shares near 1, and
workers who each have a habit. The intervals of scores, strengths, win rates and tau have benchmarks
of their own (label_coverage.py, strength_coverage.py, win_rate_coverage.py, tau_coverage.py).
"""

import argparse
from collections.abc import Callable, Mapping

import numpy as np
from numpy.random import PCG64, Generator
from scipy.stats import binomtest

from heldout.judging.campaign.judgments import Judgment, PairVotes
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.labels.contests import hold_contests
from heldout.judging.models.calibration import ModelVerdict, calibrate
from heldout.judging.studies.judges import judge_agreement, measure_bias
from heldout.judging.studies.sample import order_agreement
from heldout.stats.regression import clustered_share
from heldout.trec.tops import RunPositions

__all__ = ["WORLDS", "Held", "cover"]

Held = bool | None
"""Whether an interval held the truth; `None` where there was none."""

Trial = Callable[[Generator], Held]
_SPREAD = 0.8


def _holds(low: float | None, high: float | None, truth: float) -> Held:
    return None if low is None or high is None else low <= truth <= high


def _logistic(value: float) -> float:
    return float(1 / (1 + np.exp(-value)))


def _judge(rng: Generator, queries: int, workers: int, habit: float) -> list[Judgment]:
    """Ten pairs a query; each worker prefers a side by a habit of their own, N(0, habit^2)."""
    habits = rng.normal(0, habit, workers) if habit else np.zeros(workers)
    found = []
    for query in range(queries):
        strength = rng.normal(0, _SPREAD, 5)
        for number in range(10):
            left, right = rng.choice(5, 2, replace=False).tolist()
            who = int(rng.integers(workers))
            chance = _logistic(strength[left] - strength[right] + habits[who])
            side = left if rng.random() < chance else right
            found.append(
                Judgment(
                    query=f"q{query}",
                    left=f"d{left}",
                    right=f"d{right}",
                    preferred=f"d{side}",
                    worker=f"w{who}",
                    task=f"{query}-{number}",
                    position=1,
                )
            )
    return found


def left_share(workers: int, habit: float) -> Trial:
    """The share of the left side, whose truth over all workers is a half."""

    def trial(rng: Generator) -> Held:
        found = measure_bias(_judge(rng, 30, workers, habit), effects=False)
        return _holds(found.low, found.high, 0.5)

    return trial


def side_effect(workers: int, habit: float) -> Trial:
    """b0, the effect of the left side, whose truth over all workers is 0."""

    def trial(rng: Generator) -> Held:
        found = measure_bias(_judge(rng, 30, workers, habit)).position
        return _holds(found.low, found.high, 0.0)

    return trial


def contest(queries: int, share: float) -> Trial:
    """How often one run's first passage is preferred, one judge a query."""

    def trial(rng: Generator) -> Held:
        first = {run: {f"q{n}": run for n in range(queries)} for run in ("a", "b")}
        votes = {
            f"q{n}": {("a", "b"): PairVotes(first=int(won), second=int(not won))}
            for n, won in enumerate((rng.random(queries) < share).tolist())
        }
        (found,) = hold_contests(first, votes).contests
        truth = share if found.a == "a" else 1 - share
        return _holds(found.low, found.high, truth)

    return trial


def split_share(queries: int, share: float) -> Trial:
    """The share of queries of a category that the labelled answer won, as `contests --split`."""

    def trial(rng: Generator) -> Held:
        ends = binomtest(int(rng.binomial(queries, share)), queries).proportion_ci(0.95, "exact")
        return _holds(float(ends.low), float(ends.high), share)

    return trial


def _agreeing(rng: Generator, queries: int, share: float) -> list[tuple[int, int]]:
    """Agreed and judged pairs of each query: its own share differs from that of others."""
    own = rng.beta(4 * share, 4 * (1 - share), queries)
    sizes = rng.integers(1, 11, queries)
    return [(int(rng.binomial(n, p)), int(n)) for n, p in zip(sizes, own, strict=True)]


def ordered(queries: int, share: float) -> Trial:
    """How often a run orders pairs as people do, pairs of a query being alike."""

    def trial(rng: Generator) -> Held:
        votes, found = {}, {}
        for number, (agreed, pairs) in enumerate(_agreeing(rng, queries, share)):
            found[f"q{number}"] = {f"a{n}": 1 + n % 5 for n in range(pairs)} | {
                f"b{n}": 6 + n % 5 for n in range(pairs)
            }
            votes[f"q{number}"] = {
                (f"a{n}", f"b{n}"): PairVotes(first=int(n < agreed), second=int(n >= agreed))
                for n in range(pairs)
            }
        places = RunPositions(found=found, retrieved=dict.fromkeys(found, 10))
        got = order_agreement(places, votes)
        return _holds(got.low, got.high, share)

    return trial


def model_agrees(queries: int, share: float) -> Trial:
    """How often a model agrees with people, pairs of a query being alike."""

    def trial(rng: Generator) -> Held:
        counts = _agreeing(rng, queries, share)
        values = [float(n < agreed) for agreed, pairs in counts for n in range(pairs)]
        groups = [number for number, (_, pairs) in enumerate(counts) for _ in range(pairs)]
        got = clustered_share(values, groups)
        return _holds(got.low, got.high, share)

    return trial


def model_kappa(queries: int, share: float) -> Trial:
    """Kappa of a model and people, as `judge --calibrate`; both choose each side equally often."""

    def trial(rng: Generator) -> Held:
        verdicts, votes = [], {}
        for number, (agreed, pairs) in enumerate(_agreeing(rng, queries, share)):
            sides = rng.integers(0, 2, pairs).tolist()
            votes[f"q{number}"] = {
                (f"a{n}", f"b{n}"): PairVotes(first=side, second=1 - side)
                for n, side in enumerate(sides)
            }
            verdicts += [
                ModelVerdict(
                    pair=(f"q{number}", f"a{n}", f"b{n}"),
                    share=float(side if n < agreed else 1 - side),
                )
                for n, side in enumerate(sides)
            ]
        low, high = calibrate(verdicts, votes, rng=rng).kappa_interval or (None, None)
        return _holds(low, high, 2 * share - 1)

    return trial


def length_slope(queries: int, habit: float) -> Trial:
    """The slope of length, whose truth is 0: each query has its own, N(0, habit^2)."""

    def trial(rng: Generator) -> Held:
        verdicts, votes, pools = [], {}, []
        for number, own in enumerate(rng.normal(0, habit, queries).tolist()):
            sizes = rng.integers(20, 400, 16).tolist()
            docs = [f"d{n:02}" for n in range(16)]
            pools.append(
                Pool(
                    query=f"q{number}",
                    candidates=tuple(
                        Candidate(doc=doc, text="x" * size)
                        for doc, size in zip(docs, sizes, strict=True)
                    ),
                )
            )
            here = {}
            for n in range(0, 16, 2):
                people = int(rng.integers(0, 4))
                lean = (2 * people - 3) / 3
                longer = float(np.log(sizes[n] / sizes[n + 1]))
                won = rng.random() < _logistic(lean + own * longer)
                here[docs[n], docs[n + 1]] = PairVotes(first=people, second=3 - people)
                pair = (f"q{number}", docs[n], docs[n + 1])
                verdicts.append(ModelVerdict(pair=pair, share=float(won)))
            votes[f"q{number}"] = here
        found = calibrate(verdicts, votes, pools=pools, rng=rng).length
        return _holds(found.low[1], found.high[1], 0.0) if found.low else None

    return trial


def alpha(queries: int) -> Trial:
    """Krippendorff's alpha of two judges a pair, ten pairs a query, by a bootstrap of queries."""

    def judged(rng: Generator, many: int) -> list[Judgment]:
        found = []
        for query in range(many):
            strength = rng.normal(0, _SPREAD, 5)
            for number in range(10):
                a, b = sorted(rng.choice(5, 2, replace=False).tolist())
                chance = _logistic(strength[a] - strength[b])
                for who in range(2):
                    side = a if rng.random() < chance else b
                    found.append(
                        Judgment(
                            query=f"q{query}",
                            left=f"d{a}-{number}",
                            right=f"e{b}-{number}",
                            preferred=f"d{a}-{number}" if side == a else f"e{b}-{number}",
                            worker=f"w{who}",
                        )
                    )
        return found

    truth = judge_agreement(judged(Generator(PCG64(1)), 3000), Generator(PCG64(2)), trials=0).alpha

    def trial(rng: Generator) -> Held:
        got = judge_agreement(judged(rng, queries), rng, trials=200)
        low, high = got.interval or (None, None)
        return _holds(low, high, truth or 0.0)

    return trial


WORLDS: Mapping[str, Trial] = {
    "left share, 30 workers without habits": left_share(30, 0.0),
    "left share, 5 workers with habits of 1 logit": left_share(5, 1.0),
    "b0, 30 workers without habits": side_effect(30, 0.0),
    "b0, 30 workers with habits of 1 logit": side_effect(30, 1.0),
    "b0, 5 workers with habits of 1 logit": side_effect(5, 1.0),
    "contest, 10 queries, share .9": contest(10, 0.9),
    "contest, 50 queries, share .6": contest(50, 0.6),
    "share of a category, 10 queries, share .98": split_share(10, 0.98),
    "share of a category, 50 queries, share .6": split_share(50, 0.6),
    "ordered, 10 queries, share .63": ordered(10, 0.63),
    "ordered, 10 queries, share .95": ordered(10, 0.95),
    "ordered, 50 queries, share .95": ordered(50, 0.95),
    "model agrees, 10 queries, share .63": model_agrees(10, 0.63),
    "model agrees, 10 queries, share .95": model_agrees(10, 0.95),
    "model agrees, 50 queries, share .95": model_agrees(50, 0.95),
    "kappa of a model, 10 queries, share .8": model_kappa(10, 0.8),
    "kappa of a model, 50 queries, share .8": model_kappa(50, 0.8),
    "slope of length, 10 queries with their own": length_slope(10, 0.5),
    "slope of length, 50 queries with their own": length_slope(50, 0.5),
    "alpha, 10 queries": alpha(10),
    "alpha, 50 queries": alpha(50),
}


def cover(trial: Trial, *, trials: int, rng: Generator) -> tuple[float, int]:
    """How often an interval held, of the samples that had one, and how many had."""
    held = [one for one in (trial(rng) for _ in range(trials)) if one is not None]
    return float(np.mean(held)), len(held)


def main() -> None:
    """Print a line for each world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--only", default="", help="worlds with this in their name")
    asked = parser.parse_args()
    for name, trial in WORLDS.items():
        if asked.only in name:
            share, intervals = cover(trial, trials=asked.trials, rng=Generator(PCG64(3)))
            print(f"{name:46} held {share:.3f} of {intervals}", flush=True)


if __name__ == "__main__":
    main()
