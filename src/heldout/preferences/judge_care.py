"""How careful each judge is: crowd Bradley-Terry over all that judges answered, tests among it.

Says whom to look at. It excludes nobody: what counts is decided by tests alone, and never by
whether a judge agrees with others.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.preferences.judgments import Judgment, failed_tests, last_answers
from heldout.stats.bradley_terry import CrowdAnswers, fit_crowd

__all__ = ["CrowdCare", "JudgeCare", "measure_care"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCare:
    """One judge.

    Attributes:
        worker: a pseudonym.
        answers: pairs with a preference, tests among them.
        tests: how many of them were tests.
        failed: tests failed, with those that were answered without a preference.
        care: how often the answer comes from the passages, in (0, 1).
        habit: otherwise, logit of the left side.
    """

    worker: str
    answers: int
    tests: int
    failed: int
    care: float
    habit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdCare:
    """All judges.

    Attributes:
        judges: the least careful first, then by name.
        unknown: answers by nobody known, which are left out.
        converged: the search for the most likely figures came to an end.
    """

    judges: tuple[JudgeCare, ...]
    unknown: int
    converged: bool


def measure_care(judgments: Iterable[Judgment]) -> CrowdCare:
    """Measure the care of judges.

    Args:
        judgments: all that were recorded, with tests and what is excluded; of answers to one place
            of a task the last counts. Sides should be known: of four columns habits mean nothing.
    """
    recorded = [one for one in judgments if one.submitted]
    last = last_answers(one for one in recorded if one.worker and one.preferred is not None)
    workers = sorted({one.worker for one in last})
    places = {worker: place for place, worker in enumerate(workers)}
    items: dict[tuple[str, str], int] = {}
    known = [np.nan if one.answer is None else float(one.answer == one.left) for one in last]
    answers = CrowdAnswers(
        left=_ints(items.setdefault((one.query, one.left), len(items)) for one in last),
        right=_ints(items.setdefault((one.query, one.right), len(items)) for one in last),
        judge=_ints(places[one.worker] for one in last),
        chose_left=np.array([one.preferred == one.left for one in last], bool),
        known=np.array(known, np.float64),
        items=len(items),
        judges=len(workers),
    )
    found = fit_crowd(answers)
    failed = dict.fromkeys(workers, 0)
    for (worker, _), count in failed_tests(recorded).items():
        if worker in failed:
            failed[worker] += count
    answered = Counter(one.worker for one in last)
    tested = Counter(one.worker for one in last if one.answer is not None)
    judges = [
        JudgeCare(
            worker=worker,
            answers=answered[worker],
            tests=tested[worker],
            failed=failed[worker],
            care=float(found.care[place]),
            habit=float(found.habit[place]),
        )
        for worker, place in places.items()
    ]
    return CrowdCare(
        judges=tuple(sorted(judges, key=lambda one: (one.care, one.worker))),
        unknown=sum(not one.worker for one in recorded),
        converged=found.converged,
    )


def _ints(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(values), np.int64)
