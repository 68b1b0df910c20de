"""Gaffke's p of a bounded mean against betting, which has a proof: errors and power.

    python benchmarks/bounded_means.py               the table of intervals.md, a minute
    python benchmarks/bounded_means.py --trials 200

The hypothesis is that the mean harm is the margin or more, where no harm exceeds k - 1. Betting
multiplies a stake by 1 + bet × (what harm leaves of the bound, less what the hypothesis leaves of
it): if the hypothesis holds no bet that is fixed before it sees a value gains in the mean, so 1 /
the final stake is a p (Ville 1939; Waudby-Smith and Ramdas 2023). Three ways to bet:

- `mixed`: one stake on each of 30 fixed bets, averaged. No order of the queries matters.
- `plug-in`: the bet follows the mean and the variance so far (empirical Bernstein, section 3), and
  the stakes of 50 seeded orders of the queries are averaged.
- `known`: the fixed bet that grows fastest in the world that is drawn, which nobody knows.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from harm_errors import ALPHA, MARGINS, WORLDS, World, draw
from numpy.typing import NDArray

from heldout.stats.exact import gather_samples
from heldout.stats.student import bounded_mean_p

__all__ = ["COMPARED", "alike_needed", "bet_mixed", "bet_plug_in", "reject"]

Floats = NDArray[np.float64]
Bet = Callable[[Floats, float, float], Floats]

_BETS = 30
_ORDERS = 50
_KNOWN = 200_000

COMPARED: Sequence[World] = tuple(world for world in WORLDS if world.k > 10)  # noqa: PLR2004


def bet_mixed(harm: Floats, null: float, bound: float) -> Floats:
    """One stake on each of fixed bets, from the largest that is allowed down to a thousandth of it.

    Args:
        harm: shape (samples, values), none above the bound.
        null: the mean harm of the hypothesis.
        bound: the largest harm.

    Returns:
        A p for each sample.
    """
    return _p(_wealth(harm, null, bound, np.geomspace(1e-3, 1.0, _BETS)))


def bet_plug_in(harm: Floats, null: float, bound: float) -> Floats:
    """Bets by the mean and the variance so far, averaged over seeded orders of the values."""
    left = (bound - harm) / (bound - null)
    rng = np.random.default_rng(0)
    logs = []
    for _ in range(_ORDERS):
        gains = left[:, rng.permutation(left.shape[1])] - 1
        seen = np.arange(1, gains.shape[1])
        # A value of 0 and a variance of 1/4 stand for what has not been seen
        mean = np.cumsum(gains[:, :-1], axis=1) / (seen + 1)
        square = (0.25 + np.cumsum(gains[:, :-1] ** 2, axis=1)) / (seen + 1)
        bets = np.clip(mean / square, 0.0, 1.0)
        bets = np.concatenate((np.zeros((len(gains), 1)), bets), axis=1)
        logs.append(np.log1p(np.maximum(bets * gains, -1 + 1e-12)).sum(axis=1))
    return _p(np.array(logs).T)


def _wealth(harm: Floats, null: float, bound: float, bets: Floats) -> Floats:
    """Logarithms of the final stakes, shape (samples, bets); a bet of 1 stakes all that it may."""
    gains = (bound - harm) / (bound - null) - 1
    return np.array([np.log1p(np.maximum(bet * gains, -1 + 1e-12)).sum(axis=1) for bet in bets]).T


def _p(logs: Floats) -> Floats:
    """1 / the mean of the stakes, at most 1."""
    top = logs.max(axis=1)
    mean = top + np.log(np.exp(logs - top[:, np.newaxis]).mean(axis=1))
    p: Floats = np.minimum(1.0, np.exp(-mean))
    return p


def gaffke(harm: Floats, null: float, bound: float) -> Floats:
    """The p that verdicts take."""
    samples = gather_samples(harm, np.ones(harm.shape, np.bool_))
    return np.asarray(bounded_mean_p(samples, null=null, bound=bound))


def reject(world: World, *, trials: int) -> Mapping[str, float]:
    """How often each way calls the harm of a world none, at .025."""
    rng = np.random.default_rng([WORLDS.index(world), 8])
    null, bound = MARGINS.esl, world.k - 1.0
    known = _known_bet(world, null, bound)
    ways: dict[str, Bet] = {
        "Gaffke": gaffke,
        "mixed": bet_mixed,
        "plug-in": bet_plug_in,
        "known": lambda harm, null, bound: _p(_wealth(harm, null, bound, np.array([known]))),
    }
    counts = dict.fromkeys(ways, 0)
    for start in range(0, trials, 50):
        a, b = draw(rng, world, min(50, trials - start))
        harm = (b - a)[:, : world.queries].astype(np.float64)
        for name, way in ways.items():
            counts[name] += int((way(harm, null, bound) <= ALPHA).sum())
    return {name: count / trials for name, count in counts.items()}


def _known_bet(world: World, null: float, bound: float) -> float:
    """The fixed bet that grows fastest in a world, by a sample of very many of its queries."""
    many = World(
        k=world.k, queries=_KNOWN, later=world.later, noise=world.noise, harm=world.harm,
        earlier=world.earlier,
    )  # fmt: skip
    a, b = draw(np.random.default_rng(9), many, 1)
    bets = np.linspace(0.0, 1.0, 101)
    grown = _wealth((b - a)[:, :_KNOWN].astype(np.float64), null, bound, bets)[0]
    return float(bets[grown.argmax()])


def alike_needed(bet: Bet, *, k: int) -> int:
    """How many queries that are ranked alike it takes before harm is called none, at .025."""
    low, high = 1, 1 << 14
    while low < high:
        middle = (low + high) // 2
        if bet(np.zeros((1, middle)), MARGINS.esl, k - 1.0)[0] <= ALPHA:
            high = middle
        else:
            low = middle + 1
    return low


def main(arguments: Sequence[str] | None = None) -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--trials", type=int, default=1000, help="samples of each world")
    given = parser.parse_args(arguments)
    print("| k | found by both | mean harm | later | by | earlier | noise ", end="")
    print("| Gaffke | mixed | plug-in | known |")
    print("| " + " | ".join(["---"] * 11) + " |")
    for world in COMPARED:
        shares = reject(world, trials=given.trials)
        print(
            f"| {world.k} | {world.queries:,} | {world.harm:g} | {world.share:.1%} "
            f"| {world.later} | {world.earlier:.0%} | {world.noise} | "
            + " | ".join(f"{share:.1%}" for share in shares.values())
            + " |",
            flush=True,
        )
    print("\n| k | queries ranked alike that it takes: Gaffke | mixed | plug-in |")
    print("| --- | --- | --- | --- |")
    for k in (10, 100):
        counts = [alike_needed(bet, k=k) for bet in (gaffke, bet_mixed, bet_plug_in)]
        print(f"| {k} | " + " | ".join(f"{count:,}" for count in counts) + " |", flush=True)


if __name__ == "__main__":
    main()
