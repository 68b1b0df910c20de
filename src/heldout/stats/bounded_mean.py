"""Is a mean below a null, whatever the distribution, where values have a largest one?

A t test takes the spread that was seen for the spread there is. Values that are rare and large are
in no small sample, and bring the mean to the null all the same. Here one more value is added to
each sample, the largest there can be, and all of them are weighed at random.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.stats.samples import Samples

__all__ = ["bounded_mean_p"]

Floats = NDArray[np.float64]

_HALVINGS = 24
_NEAR = 0.5
_STEP = 0.14
_NODES = 100
_FAR = 1e9
_NOTHING = 1e-12


def bounded_mean_p(samples: Samples, *, null: float, bound: float) -> Floats:
    """One-sided p of: the mean is the null or more.

    It is the chance that a mean with random weights reaches the null: of the values of the sample
    and of the bound once, with weights drawn evenly from all that add up to 1 (Dirichlet).

    Where all n values are the same h it is ((bound - null) / (bound - h))^n, which is exact. Let
    p(d) be the chance of a value d. All n are equal, and at most h, with a chance of the sum of
    p(d)^n over d up to h. That is convex in p, so it is largest in a corner of the set of all p
    with a mean of at least the null. A corner has at most two values: one d up to h, and one that
    makes up for it, which leaves d the more room the larger both are: h beside the bound.

    Where a value is either h or the bound it is exact too: the binomial. That it is right in
    general is a conjecture without a known exception. With many values it is as the t test, but
    for what skewness does to that.

    Args:
        samples: of independent values, some may be empty; none is above the bound.
        null: the mean under the null hypothesis.
        bound: the largest value there can be.

    Returns:
        For each sample, from 0 to 1, to some 10 digits. 0 where the null is above the bound; 1 of
        an empty sample, and where the mean with the bound as one more value is not below the null.

    Source:
        Gaffke 2005; Learned-Miller and Thomas 2019, A new confidence interval for the mean of a
        bounded random variable.
    """
    size, room = len(samples.sizes), bound - null
    if room < 0:
        return np.zeros(size)
    whole = Samples(
        values=np.concatenate((samples.values - null, np.full(size, room))),
        counts=np.concatenate((samples.counts, np.ones(size, np.int64))),
        owners=np.concatenate((samples.owners, np.arange(size))),
        sizes=samples.sizes + 1,
    )
    below = whole.sum(whole.counts * whole.values) < 0
    p = np.where(below, 0.0, 1.0)
    if room > 0:
        p[below] = _chance_above_zero(_scale(whole, below, room))
    return p


def _scale(samples: Samples, kept: NDArray[np.bool_], unit: float) -> Samples:
    """Some of the samples, in other units."""
    inside = kept[samples.owners]
    return Samples(
        values=samples.values[inside] / unit,
        counts=samples.counts[inside],
        owners=(np.cumsum(kept) - 1)[samples.owners[inside]],
        sizes=samples.sizes[kept],
    )


class _Path(NamedTuple):
    """A path on which the generating function is integrated, from the real axis upwards.

    Attributes:
        start: where it crosses the real axis.
        scale: a unit of length.
        bend: how far it leans to the right after one unit, in units.
        flat: 1 / how far it leans to the right at most, in units; 0 for ever further.
        weight: logarithm of the function at the start.
    """

    start: Floats
    scale: Floats
    bend: Floats
    flat: Floats
    weight: Floats


def _chance_above_zero(samples: Samples) -> Floats:
    """Chance that a sum is above 0, each value times an exponential variable of its own.

    Dirichlet weights are exponential variables over their sum, which has no sign. The generating
    function of the sum is the product of 1 / (1 - s x); divided by s it is integrated along nearly
    the path of steepest descent, where it falls off fastest and does not oscillate.

    Args:
        samples: of values with a mean below 0, the largest 1.
    """
    path = _descend(samples)
    slopes = (samples.values * path.scale[samples.owners]) / (
        1 - path.start[samples.owners] * samples.values
    )
    total, going = np.zeros(len(samples.sizes)), np.ones(len(samples.sizes), np.bool_)
    for node in range(_NODES):
        # Steps of equal length in asinh: even a tail that falls slowly ends
        up = np.sinh(_STEP * node)
        slower = 1 + path.bend * path.flat * up**2
        right = path.bend * up**2 / slower
        real, turned = 1 - right[samples.owners] * slopes, up * slopes
        fall = samples.sum(samples.counts * np.log(real * real + turned * turned)) / 2
        phase = samples.sum(samples.counts * np.arctan2(turned, real))
        here = path.start + path.scale * (right + 1j * up)
        part = np.exp(1j * phase - fall) / here * (2 * path.bend * up / slower**2 + 1j)
        term = (0.5 if node == 0 else 1.0) * np.cosh(_STEP * node) * part.imag
        total += np.where(going, term, 0.0)
        going &= np.abs(term) > _NOTHING * np.abs(total)
        if not going.any():
            break
    integral = np.exp(path.weight) * path.scale * _STEP / np.pi * total
    return np.asarray(np.clip(integral, 0.0, 1.0))


def _descend(samples: Samples) -> _Path:
    """The path from the saddle point, or from beside it where that is too near to the pole.

    It bends around the singularity at 1 and goes straight up where the function without that is
    smallest.
    """
    none = np.zeros(len(samples.sizes))
    near = _NEAR / np.sqrt(samples.sum(samples.counts * samples.values**2))
    start = np.maximum(_minimise(samples, none, none + 1), near)
    rest = 1 - start[samples.owners] * samples.values
    slopes = samples.values / rest
    scale = 1 / np.sqrt(samples.sum(samples.counts * slopes**2))
    bend = samples.sum(samples.counts * slopes**3) * scale**3 / 3
    others = replace(samples, counts=samples.counts * (samples.values < 1))
    second = none.copy()
    np.maximum.at(second, samples.owners, np.where(samples.values < 1, samples.values, 0.0))
    end = np.where(second > 0, 1 / np.maximum(second, 1 / _FAR), _FAR)
    room = _minimise(others, start, end) - start
    return _Path(
        start=start,
        scale=scale,
        bend=np.where(room > 0, np.maximum(bend, 0.0), 0.0),
        flat=scale / np.maximum(room, scale / _FAR),
        weight=-samples.sum(samples.counts * np.log(rest)),
    )


def _minimise(samples: Samples, left: Floats, right: Floats) -> Floats:
    """Where between two points the generating function is smallest."""
    for _ in range(_HALVINGS):
        middle = (left + right) / 2
        slope = samples.sum(
            samples.counts * samples.values / (1 - middle[samples.owners] * samples.values)
        )
        left, right = np.where(slope < 0, middle, left), np.where(slope < 0, right, middle)
    return left
