"""How often the outlook of `heldout survive depths` holds: python benchmarks/depth_coverage.py.

Worlds of queries and two systems that are annotated down to twenty places; the outlook sees ten.
The hazard's logit and the scores are lines in the logarithm of the place, as the model has them,
or the places scatter about the line by 15%, or the hazard turns up after the fifth place as it
does in MS MARCO. Then what the paper's test does where depth means nothing; and what the test that
fits does there, by the number of queries and by how often a system scores above 0.
"""

import argparse
import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.scoring.measures import parse_measure
from heldout.survivorship.depths.extrapolation import extrapolate
from heldout.survivorship.depths.scores import DepthScores, compare_survivors, nested_error

SEEN, DEEP = 10, 20
ALPHA = 0.05
World = Literal["lines", "scatter", "turned"]
MS_MARCO = (8_197, 15_543, 22_060, 27_858, 33_062, 38_024, 42_669, 47_146, 51_344, 55_578)
"""Queries with a label at each depth, of the labels published with the paper."""


def draw_world(rng: Generator, *, queries: int, world: World = "lines") -> tuple[DepthScores, int]:
    """Scores down to the deepest place, and how many queries have no label there."""
    places = np.arange(1, DEEP + 1)
    logits = np.log(0.08 / 0.92) - 0.1 * np.log(places)
    if world == "scatter":
        logits += 0.15 * rng.standard_normal(DEEP)
    if world == "turned":
        logits += 0.4 * np.maximum(np.log(places / 5), 0)
    answered = rng.random((queries, DEEP)) < 1 / (1 + np.exp(-logits))
    first = answered.argmax(axis=1)[answered.any(axis=1)] + 1
    found = rng.random((2, len(first))) < np.array([[0.3], [0.5]]) + 0.05 * np.log(first)
    each = found * rng.choice([1.0, 0.5, 0.25], found.shape)
    known = first[:, np.newaxis] <= places
    scores = DepthScores(
        systems=("low", "high"),
        depths=tuple(places.tolist()),
        open_ended=False,
        measure=parse_measure("RR@10"),
        queries=tuple(f"q{one}" for one in range(len(first))),
        values=each[:, :, np.newaxis] * known,
        known=known,
        unanswered=np.zeros((2, DEEP), np.int64),
    )
    return scores, queries - len(first)


def cut(scores: DepthScores, places: int) -> tuple[DepthScores, int]:
    """As a shallower annotation has it, and how many queries that leaves out."""
    kept = scores.known[:, places - 1]
    shallow = replace(
        scores,
        depths=scores.depths[:places],
        queries=tuple(q for q, has in zip(scores.queries, kept, strict=True) if has),
        values=scores.values[:, kept, :places],
        known=scores.known[kept, :places],
        unanswered=scores.unanswered[:, :places],
    )
    return shallow, int((~kept).sum())


def cover(world: World, *, worlds: int, queries: int, seed: int) -> NDArray[np.float64]:
    """Share of worlds in which the 95% interval at depth 20 held: queries, both scores."""
    rng = np.random.default_rng(seed)
    held = np.zeros(3)
    for _ in range(worlds):
        deep, none = draw_world(rng, queries=queries, world=world)
        shallow, left = cut(deep, SEEN)
        outlook = extrapolate(shallow, rng, discarded=left + none, to=[DEEP], trials=200)
        (found,) = outlook.predicted
        truths = [deep.counts[-1], *(mean or 0.0 for mean in deep.means()[-1])]
        held += [
            one is not None and one.low <= truth <= one.high
            for one, truth in zip([found.queries, *found.scores], truths, strict=True)
        ]
    shares: NDArray[np.float64] = held / worlds
    return shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """What the test that fits does where depth means nothing.

    Attributes:
        wrong: share of studies in which any depth is significant at .05, corrected over nine.
        held: share of its 95% intervals, each by itself, that hold 0.
        tested: depths of nine that have enough queries for the test, a mean.
    """

    wrong: float
    held: float
    tested: float


def meaningless(rng: Generator, *, queries: int, found: float) -> DepthScores:
    """Scores of a system that do not depend on the depth of the first label, as MS MARCO has it."""
    shares = np.array(MS_MARCO) / MS_MARCO[-1]
    first = np.searchsorted(shares, rng.random(queries))
    each = (rng.random(queries) < found) * rng.choice([1.0, 0.5, 0.25, 0.1], queries)
    known = first[:, np.newaxis] <= np.arange(len(shares))
    return DepthScores(
        systems=("one",),
        depths=tuple(range(1, len(shares) + 1)),
        open_ended=False,
        measure=parse_measure("RR@10"),
        queries=tuple(f"q{one}" for one in range(queries)),
        values=each[np.newaxis, :, np.newaxis] * known,
        known=known,
        unanswered=np.zeros((1, len(shares)), np.int64),
    )


def err(*, queries: int, found: float, worlds: int, seed: int) -> Fits:
    """Studies in which depth means nothing, tested by `compare_survivors`."""
    rng = np.random.default_rng(seed)
    wrong = held = tested = 0
    for _ in range(worlds):
        tests = compare_survivors(meaningless(rng, queries=queries, found=found))
        known = [one for one in tests if one.low is not None and one.high is not None]
        wrong += any(one.p_corrected is not None and one.p_corrected <= ALPHA for one in tests)
        held += sum((one.low or 0) <= 0 <= (one.high or 0) for one in known)
        tested += len(known)
    share = held / tested if tested else math.nan
    return Fits(wrong=wrong / worlds, held=share, tested=tested / worlds)


def main() -> None:
    """Print a row for each world, then the errors of the paper's test, and of the one that fits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=400)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--studies", type=int, default=1000, help="of the test that fits")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("world     queries  low system  high system")
    worlds: tuple[World, ...] = ("lines", "scatter", "turned")
    for world in worlds:
        shares = cover(world, worlds=options.worlds, queries=options.queries, seed=options.seed)
        print(f"{world:8}  {shares[0]:7.1%}  {shares[1]:10.1%}  {shares[2]:11.1%}")
    print("depth  error of the paper's test at .05  at .05 / 9")
    for depth, count in enumerate(MS_MARCO[:-1], start=1):
        share = count / MS_MARCO[-1]
        plain, corrected = nested_error(share), nested_error(share, alpha=0.05 / 9)
        print(f"{depth:5}  {plain:33.4f}  {corrected:10.5f}")
    print("queries  above 0  errors of the test that fits  intervals hold  depths tested")
    for queries in (100, 300, 1000, 3000):
        for found in (0.1, 0.3, 0.5):
            fits = err(queries=queries, found=found, worlds=options.studies, seed=options.seed)
            print(
                f"{queries:7,}  {found:7.0%}  {fits.wrong:28.1%}  {fits.held:14.1%}  "
                f"{fits.tested:13.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
