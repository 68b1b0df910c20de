"""Judges and runs that agree by a known degree, and whether its interval holds it."""

from functools import cache

import numpy as np
from interval_worlds import Held, Trial, holds
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.analyses.agreement_of_judges import JudgeOptions, judge_agreement, rate_documents
from heldout.analyses.agreement_of_runs import run_agreement
from heldout.stats.agreement import Scale, krippendorff_interval
from heldout.trec.tops import TiedTops

__all__ = ["judges", "labellers", "runs"]

Floats = NDArray[np.float64]


def draw_labels(rng: Generator, queries: int, documents: int) -> dict[str, Floats]:
    """Grades of two judges, shape (queries, documents); queries differ in how hard they are."""
    clear = rng.uniform(0.3, 0.9, (queries, 1))
    grade = rng.choice(3, (queries, documents), p=(0.6, 0.3, 0.1))
    return {
        judge: np.where(
            rng.random((queries, documents)) < clear,
            grade,
            rng.choice(3, (queries, documents), p=(0.6, 0.3, 0.1)),
        ).astype(np.float64)
        for judge in ("a", "b")
    }


def judges(*, kappa: bool, queries: int) -> Trial:
    """Kappa of two judges, or their alpha."""

    def trial(rng: Generator, level: float) -> Held:
        labels = {
            judge: {
                f"q{q}": {f"d{d}": int(grade) for d, grade in enumerate(row)}
                for q, row in enumerate(grades)
            }
            for judge, grades in draw_labels(rng, queries, 10).items()
        }
        options = JudgeOptions(trials=199, level=level)
        found = judge_agreement(rate_documents(labels), rng, options)
        low, high = (found.pairs[0].interval if kappa else found.interval) or (None, None)
        return holds(low, high, _judge_truth())

    return trial


@cache
def _judge_truth() -> float:
    """Kappa and alpha of very many: the judges have the same habits."""
    a, b = draw_labels(np.random.default_rng(12), 100_000, 10).values()
    shares = np.bincount(a.ravel().astype(int)) / a.size
    return float(1 - np.mean(a != b) / (1 - np.sum(shares**2)))


def draw_labellers(rng: Generator, units: int, clear: float) -> Floats:
    """One of four categories from each of three people, shape (people, units)."""
    shares = (0.5, 0.3, 0.15, 0.05)
    kind = rng.choice(4, units, p=shares)
    seen = rng.random((3, units)) < clear
    return np.where(seen, kind, rng.choice(4, (3, units), p=shares)).astype(np.float64)


def labellers(units: int, *, clear: float = 0.9, scale: Scale = "nominal") -> Trial:
    """Alpha of three people over queries that each of them labels, and sees with this chance."""

    def trial(rng: Generator, level: float) -> Held:
        labels = draw_labellers(rng, units, clear)
        ends = krippendorff_interval(labels, rng, scale=scale, level=level, trials=199)
        # Two people agree by sight with this chance, and else as strangers do: on any scale
        return None if ends is None else holds(*ends, clear**2)

    return trial


def draw_runs(rng: Generator, queries: int) -> tuple[TiedTops, TiedTops]:
    """Two runs that see the same 40 documents through noise, and keep 20."""
    made = []
    merit = rng.normal(size=(queries, 40))
    noise = rng.uniform(0.2, 1.5, (queries, 1))
    for _ in range(2):
        order = np.argsort(-(merit + noise * rng.normal(size=merit.shape)), axis=1)[:, :20]
        made.append(
            {f"q{n}": tuple((f"d{d}",) for d in row) for n, row in enumerate(order.tolist())}
        )
    return made[0], made[1]


def runs(figure: str, *, queries: int = 30) -> Trial:
    """A mean over the queries of two runs: `rbo`, `tau`."""

    def trial(rng: Generator, level: float) -> Held:
        a, b = draw_runs(rng, queries)
        mean = getattr(run_agreement({"a": a, "b": b}, depth=20, level=level).pairs[0], figure)
        return holds(mean.low, mean.high, _run_truth(figure))

    return trial


@cache
def _run_truth(figure: str) -> float:
    a, b = draw_runs(np.random.default_rng(13), 4000)
    value: float = getattr(run_agreement({"a": a, "b": b}, depth=20).pairs[0], figure).value
    return value
