"""Would fine-tuning on labelled pairs pay? Read off a learning curve.

Where a curve ends, a ranker's score is taken to grow by the same amount with each doubling of the
training pairs. A line through its last three sizes says how much that is, and when it reaches a
score worth having; it is not followed further than three doublings. Effectiveness over the number
of pairs, with several trials for each: Craswell et al. 2021, Figure 2. Intervals are those of
trials: they know nothing of other queries than those the curve was measured on.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from scipy.special import stdtrit

from heldout.errors import InputError
from heldout.stats.tests import run_test

CURVE_FILE = "learning-curve.json"
"""What `heldout survive train --learning-curve` leaves in its folder."""
DOUBLINGS = 3
"""How far beyond the last size the line is followed: eight times its pairs."""

_SIZES = 3
_FEWEST_TRIALS = 5

Verdict = Literal["pays", "would pay", "does not pay", "cannot tell"]
Ends = tuple[float, float]
Score = Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)]


class CurveBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """What the trained ranker has to beat.

    Attributes:
        name: of the run.
        mean: its score on the queries of the curve.
    """

    name: str
    mean: Score


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A number of training pairs.

    Attributes:
        pairs: how many, from 0; a fraction where trials drew different numbers.
        trials: score of each training on so many pairs, on the queries of the curve.
    """

    pairs: Annotated[float, msgspec.Meta(ge=0, le=1e15)]
    trials: tuple[Score, ...]


class LearningCurve(msgspec.Struct, frozen=True, kw_only=True):
    """A curve as it is kept in a file.

    Attributes:
        measure: what was measured and on which queries, as in `RR@10 on stdlib-docs:dev`.
        baseline: what has to be beaten.
        points: by number of pairs, each number once, at least one trial each.
    """

    measure: str
    baseline: CurveBaseline
    points: Annotated[tuple[CurvePoint, ...], msgspec.Meta(min_length=1)]

    @property
    def measure_name(self) -> str:
        """The measure alone, as it is written."""
        return self.measure.partition(" on ")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a curve says of fine-tuning.

    Attributes:
        verdict: `pays`: the largest training beats the target, its interval above it;
            `would pay`: the line gets there within three doublings, and it rises for sure;
            `does not pay`: even the steepest line of its interval does not; else `cannot tell`.
        why: the reason in a sentence.
        target: the baseline's score and the gain asked for.
        pairs: of the largest training.
        mean: its mean score.
        interval: t interval of that mean over trials; `None` for a single trial.
        per_doubling: what the last sizes gain with each doubling of the pairs; `None` where there
            are too few of them.
        per_doubling_interval: likewise.
        last_step: Welch interval of the gain of the largest training over the one before, for
            each doubling between them; `None` where undefined.
        pairs_needed: where the line reaches the target; `None` where it does not within three
            doublings.
        pairs_low, pairs_high: by Fieller's interval; `None` where it has no such end.
    """

    verdict: Verdict
    why: str
    target: float
    pairs: float
    mean: float
    interval: Ends | None
    per_doubling: float | None
    per_doubling_interval: Ends | None
    last_step: Ends | None
    pairs_needed: int | None
    pairs_low: int | None
    pairs_high: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """Least squares over the logarithm of pairs to base 2.

    Attributes:
        x, y: the centre of the trials.
        slope: score for each doubling.
        error: residual standard deviation.
        spread: sum of squares of the logarithms about their centre.
        trials: how many.
        t: quantile of t for the interval.
    """

    x: float
    y: float
    slope: float
    error: float
    spread: float
    trials: int
    t: float

    @property
    def slope_interval(self) -> Ends:
        half = self.t * self.error / math.sqrt(self.spread)
        return self.slope - half, self.slope + half

    def reach(self, target: float) -> tuple[float, float, float]:
        """Where it reaches a score, with Fieller's interval; needs a slope that is above 0."""
        distance = (target - self.y) / self.slope
        g = (self.t * self.error / self.slope) ** 2 / self.spread
        root = math.sqrt((1 - g) / self.trials + distance**2 / self.spread)
        half = self.t * self.error / self.slope * root
        return (
            self.x + distance,
            self.x + (distance - half) / (1 - g),
            self.x + (distance + half) / (1 - g),
        )


def read_learning_curve(folder: Path) -> LearningCurve:
    """Read the curve that lies in a folder.

    Points of one number of pairs become one.

    Args:
        folder: holds `learning-curve.json`; the path of such a file does as well.

    Raises:
        InputError: code `curve-file`.
    """
    path = folder / CURVE_FILE if folder.is_dir() else folder
    try:
        curve = msgspec.json.decode(path.read_bytes(), type=LearningCurve)
    except OSError as error:
        raise _refusal(path, error.strerror or type(error).__name__) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refusal(path, str(error)) from error
    if not all(point.trials for point in curve.points):
        raise _refusal(path, "a number of pairs without a trial")
    sizes: dict[float, list[CurvePoint]] = {}
    for point in curve.points:
        sizes.setdefault(point.pairs, []).append(point)
    if any(len({len(point.trials) for point in same}) > 1 for same in sizes.values()):
        raise _refusal(path, "a number of pairs twice, with different numbers of trials")
    points = tuple(_merge(sizes[pairs]) for pairs in sorted(sizes))
    return msgspec.structs.replace(curve, points=points)


def _merge(same: Sequence[CurvePoint]) -> CurvePoint:
    """Points of one size as one: each trial is the mean of the trials of that number.

    Two shares have as many pairs where a training stops before it has seen the larger one. Their
    trials of one number share draw and seed, so they are one trial and not two.
    """
    trials = zip(*(point.trials for point in same), strict=True)
    return CurvePoint(pairs=same[0].pairs, trials=tuple(float(np.mean(one)) for one in trials))


def advise(curve: LearningCurve, *, gain: float, level: float = 0.95) -> Advice:
    """Say whether more labelled pairs would make fine-tuning pay.

    Args:
        curve: scores by number of pairs, in their order.
        gain: how far above the baseline is worth the labels, from 0, in the measure's unit.
        level: of the intervals, in (0, 1).
    """
    last = curve.points[-1]
    target = curve.baseline.mean + gain
    interval = _mean_interval(last.trials, level)
    line = _fit(curve.points, level)
    reached = _reach(line, target, last)
    verdict, why = _judge(line, interval, target=target, pairs=last.pairs)
    return Advice(
        verdict=verdict,
        why=why,
        target=target,
        pairs=last.pairs,
        mean=float(np.mean(last.trials)),
        interval=interval,
        per_doubling=line.slope if line else None,
        per_doubling_interval=line.slope_interval if line else None,
        last_step=_last_step(curve.points, level),
        pairs_needed=reached[0],
        pairs_low=reached[1],
        pairs_high=reached[2],
    )


def _judge(
    line: _Line | None, interval: Ends | None, *, target: float, pairs: float
) -> tuple[Verdict, str]:
    if interval is not None and interval[0] >= target:
        return "pays", f"{pairs:,.0f} pairs are enough"
    if line is None:
        return "cannot tell", (
            f"the curve has fewer than two sizes above 0, or fewer than {_FEWEST_TRIALS} trials "
            "at its last three"
        )
    low, high = line.slope_interval
    limit = math.log2(pairs) + DOUBLINGS
    factor = 2**DOUBLINGS
    if line.y + max(high, 0.0) * (limit - line.x) < target:
        return "does not pay", f"{factor} times the pairs would not get there"
    if low <= 0:
        return "cannot tell", "it is not sure that more pairs help at all"
    if line.reach(target)[0] > limit:
        return "cannot tell", f"the line gets there at more than {factor} times the pairs, if ever"
    return "would pay", "with more labelled pairs"


def _fit(points: Sequence[CurvePoint], level: float) -> _Line | None:
    """A line through the last three sizes; a training on nothing has no logarithm."""
    kept = [point for point in points if point.pairs > 0][-_SIZES:]
    x = np.array([math.log2(point.pairs) for point in kept for _ in point.trials])
    y = np.array([trial for point in kept for trial in point.trials])
    if len(kept) < 2 or len(y) < _FEWEST_TRIALS:  # noqa: PLR2004 - a line needs two
        return None
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * y).sum()) / spread
    rest = y - y.mean() - slope * (x - x.mean())
    freedom = len(y) - 2
    return _Line(
        x=float(x.mean()),
        y=float(y.mean()),
        slope=slope,
        error=math.sqrt(float((rest**2).sum()) / freedom),
        spread=spread,
        trials=len(y),
        t=float(stdtrit(freedom, (1 + level) / 2)),
    )


def _reach(
    line: _Line | None, target: float, last: CurvePoint
) -> tuple[int | None, int | None, int | None]:
    """Pairs at which the line reaches the target, and the ends of their interval."""
    if line is None or line.slope_interval[0] <= 0:
        return None, None, None
    centre, low, high = line.reach(target)
    if centre > math.log2(last.pairs) + DOUBLINGS:
        return None, None, None
    far = math.log2(last.pairs) + 2 * DOUBLINGS
    return _pairs(centre), _pairs(low), _pairs(high) if high <= far else None


def _pairs(logarithm: float) -> int:
    return max(1, math.ceil(2**logarithm))


def _mean_interval(trials: Sequence[float], level: float) -> Ends | None:
    if len(trials) < 2 or len(set(trials)) == 1:  # noqa: PLR2004 - one says nothing of others
        return None
    half = float(stdtrit(len(trials) - 1, (1 + level) / 2) * np.std(trials, ddof=1))
    half /= math.sqrt(len(trials))
    centre = float(np.mean(trials))
    return centre - half, centre + half


def _last_step(points: Sequence[CurvePoint], level: float) -> Ends | None:
    """Gain of the last size over the one before, for each doubling of pairs between them."""
    kept = [point for point in points if point.pairs > 0][-2:]
    if len(kept) < 2 or min(len(point.trials) for point in kept) < 2:  # noqa: PLR2004 - spread
        return None
    before, last = kept
    found = run_test("unpaired-t", before.trials, last.trials, level=level)
    if found.low is None or found.high is None:
        return None
    doublings = math.log2(last.pairs / before.pairs)
    return found.low / doublings, found.high / doublings


def _refusal(path: Path, found: str) -> InputError:
    return InputError.of(
        "curve-file",
        str(path),
        found,
        f"{CURVE_FILE}: a measure, a baseline and points of pairs and trials",
        "heldout survive train --learning-curve writes it",
    )
