"""Judges made up, of known strength: what each way of judging finds, and how much it costs.

Strengths of passages are normal, a judge prefers i to j with chance s(theta_i - theta_j), and the
true best is the strongest. Each way is played with the same functions that a campaign uses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations

import numpy as np
from numpy.random import PCG64, Generator
from scipy.special import expit

from heldout.answers.answer import Answer
from heldout.answers.table import Column, Table, columns
from heldout.judging.campaign.judgments import PairVotes
from heldout.judging.labels.choosing import prune, search
from heldout.judging.labels.labels import Find, find_strongest, find_unbeaten, play
from heldout.progress_bar import SILENT, Progress

SPREAD = 0.8
"""Standard deviation of strengths; a vote on two random passages is right 69% of the time."""

_BATCHES = 10_000
_CAP = 7
Duel = tuple[str, str]
PoolVotes = Mapping[Duel, PairVotes]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJudge:
    """A judge who prefers the stronger passage, more often the more it is stronger.

    Attributes:
        strengths: (query, document) -> strength in logits.
        rng: where answers come from.
        careless: share of answers that look at neither passage.
        left: logits by which the left passage is preferred for being on the left.
    """

    strengths: Mapping[tuple[str, str], float]
    rng: Generator = field(compare=False)
    careless: float = 0.0
    left: float = 0.0

    def choose(self, query: str, left: str, right: str) -> str:
        """The preferred one of two documents of a query.

        Raises:
            KeyError: the strength of one is not known.
        """
        ahead = self.strengths[query, left] - self.strengths[query, right]
        if self.rng.random() < self.careless:
            ahead = 0.0
        return left if self.rng.random() < expit(ahead + self.left) else right


Plan = Callable[[Sequence[str], PoolVotes], Mapping[Duel, int]]
"""Passages, votes so far -> votes to be asked next, by pair; empty when all is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A way of judging a pool.

    Attributes:
        words: what it is.
        plan: which votes it asks for next.
        find: how it finds the best.
    """

    words: str
    plan: Plan
    find: Find


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a design did on many pools.

    Attributes:
        design: its words.
        size: passages of a pool.
        pools: how many were played.
        found: how often the best was the true one; of several that tie one is drawn, which counts
            as the chance to draw it.
        error: standard error of `found`.
        judgments: mean number for a pool.
        correct: share of votes for the stronger of two.
    """

    design: str
    size: int
    pools: int
    found: float
    error: float
    judgments: float
    correct: float


def simulate_design(
    design: Design, *, size: int, pools: int, rng: Generator, spread: float = SPREAD
) -> Found:
    """Play a design on pools of made-up passages.

    Args:
        design: which one.
        size: passages of a pool, at least 2.
        pools: how many, at least 2.
        rng: where strengths and answers come from.
        spread: standard deviation of strengths.
    """
    names = [f"{place:04}" for place in range(size)]
    hits, asked, right = np.zeros(pools), np.zeros(pools), 0
    for pool in range(pools):
        strengths = dict(zip(names, rng.normal(0, spread, size).tolist(), strict=True))
        votes = _judge(design, strengths, rng)
        best = design.find(names, votes).best
        true = max(names, key=strengths.__getitem__)
        hits[pool] = (true in best) / len(best)
        asked[pool] = sum(found.total for found in votes.values())
        right += sum(
            found.first if strengths[a] > strengths[b] else found.second
            for (a, b), found in votes.items()
        )
    return Found(
        design=design.words,
        size=size,
        pools=pools,
        found=float(hits.mean()),
        error=float(hits.std(ddof=1) / pools**0.5),
        judgments=float(asked.mean()),
        correct=float(right / asked.sum()),
    )


def _judge(design: Design, strengths: Mapping[str, float], rng: Generator) -> PoolVotes:
    """The votes on a pool when nothing more is asked."""
    votes: dict[Duel, PairVotes] = {}
    names = list(strengths)
    for _ in range(_BATCHES):
        wanted = design.plan(names, votes)
        if not wanted:
            return votes
        for (a, b), count in wanted.items():
            won = int(rng.binomial(count, expit(strengths[a] - strengths[b])))
            before = votes.get((a, b), PairVotes(first=0, second=0))
            votes[a, b] = PairVotes(first=before.first + won, second=before.second + count - won)
    raise RuntimeError(f"{design.words} never ends")


def _all_pairs(judges: int) -> Plan:
    def plan(names: Sequence[str], votes: PoolVotes) -> Mapping[Duel, int]:
        return {} if votes else dict.fromkeys(combinations(names, 2), judges)

    return plan


def _duels(lead: int, cap: int) -> Plan:
    def plan(names: Sequence[str], votes: PoolVotes) -> Mapping[Duel, int]:
        found = search(names, votes, lead=lead, cap=cap)
        if found.challenger is None:
            return {}
        first, second = sorted((found.best, found.challenger))
        return {(first, second): found.wanted}

    return plan


def _pruning(names: Sequence[str], votes: PoolVotes) -> Mapping[Duel, int]:
    return dict.fromkeys(prune("simulated", names, votes).wanted, 1)


DESIGNS: Mapping[str, Design] = {
    "tournament-1": Design(words="tournament, 1 vote a pair", plan=_all_pairs(1), find=play),
    "tournament-3": Design(words="tournament of majorities of 3", plan=_all_pairs(3), find=play),
    "strengths-3": Design(
        words="Bradley-Terry, 3 votes a pair", plan=_all_pairs(3), find=find_strongest
    ),
    "lead-2": Design(words="duels, lead 2, cap 7", plan=_duels(2, _CAP), find=find_unbeaten),
    "lead-3": Design(words="duels, lead 3, cap 7", plan=_duels(3, _CAP), find=find_unbeaten),
    "pruning": Design(words="pruning, then all pairs", plan=_pruning, find=find_strongest),
}
"""Every design by name. docs/explanation/preferences.md has a table of the first five."""


def simulate(
    sizes: Sequence[int],
    designs: Sequence[str],
    *,
    pools: int,
    spread: float = SPREAD,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Answer:
    """How often does each way of judging find the best passage, and for how many judgments?

    Args:
        sizes: passages of a pool.
        designs: names of `DESIGNS`; none for all of them.
        pools: made-up pools of each size for each design.
        spread: standard deviation of strengths, in logits.
        seed: of all draws.
        progress: counts designs and sizes.
    """
    chosen, found = [DESIGNS[name] for name in designs or DESIGNS], []
    with progress.steps("playing pools", len(sizes) * len(chosen)) as done:
        for size in sizes:
            for number, design in enumerate(chosen):
                rng = Generator(PCG64([seed, size, number]))
                found.append(
                    simulate_design(design, size=size, pools=pools, rng=rng, spread=spread)
                )
                done()
    return _answer(found, spread=spread, seed=seed)


def _answer(found: Sequence[Found], *, spread: float, seed: int) -> Answer:
    """One row for each design and size."""
    pools = f"{found[0].pools:,}" if len({one.pools for one in found}) == 1 else "some"
    right = [one.correct for one in found]
    size = max(one.size for one in found)
    best = max((one for one in found if one.size == size), key=lambda one: one.found)
    return Answer(
        answer=(
            f"With pools of {size:,} passages “{best.design}” finds the best one most often, in "
            f"{best.found:.1%} of pools with {best.judgments:.1f} judgments each."
        ),
        summary=(
            ("judges", f"made up: strengths normal with standard deviation {spread:g}"),
            ("correct", f"{min(right):.1%} to {max(right):.1%} of votes, by design"),
            ("pools", f"{pools} of each size for each design"),
        ),
        tables=(
            Table(
                title="How often the true best passage is found",
                columns=(
                    Column(name="design"),
                    *columns("count", "passages"),
                    *columns("share", "found", "standard error", decimals=3),
                    *columns("score", "judgments a pool", decimals=1),
                ),
                rows=tuple(
                    (one.design, one.size, one.found, one.error, one.judgments) for one in found
                ),
                notes=("Of several passages that tie for the best one is drawn.",),
            ),
        ),
        document={"designs": [asdict(one) for one in found], "spread": spread, "seed": seed},
    )
