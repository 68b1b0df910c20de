"""How far judges agree on pairs, and how far they should, being right as often as they are.

Low agreement alone is no sign of careless judges, nor of careful ones: where the two passages are
nearly as good, honest judges differ; tests show who is careless. What is expected of judges follows
from how often one is right.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from heldout.judging.campaign.judgments import Judgment, Reason, failed_tests, last_answers
from heldout.judging.campaign.settings import Settings
from heldout.stats.agreement import krippendorff_alpha, krippendorff_interval
from heldout.stats.bradley_terry import CrowdAnswers, fit_crowd

STUDY_ACCURACY = 1228 / 1868
"""How often a worker preferred the known answer to the second document of a run that agreed with
it (Arabzadeh et al. 2021, table 2, category A)."""

_TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """Agreement of judges.

    Attributes:
        alpha: Krippendorff's, nominal, over pairs; `None` where undefined.
        interval: of alpha, from drawing queries; `None` where undefined.
        pairs: judged at least twice.
        votes: on these.
        alike: share of two votes on one pair that prefer the same passage; `None` without such.
        why: why alpha is undefined, else `None`.
    """

    alpha: float | None
    interval: tuple[float, float] | None
    pairs: int
    votes: int
    alike: float | None
    why: str | None = None


def expected_alpha(accuracy: float) -> float:
    """Alpha of judges who are each right so often, independently, with sides drawn by chance.

    Two votes are alike with probability p^2 + (1 - p)^2, by chance with 1/2, so that alpha is about
    (2p - 1)^2: 0.10 at the accuracy of the study.

    Args:
        accuracy: share of votes for the better passage, 0 to 1.
    """
    return float((2 * accuracy - 1) ** 2)


def judge_agreement(
    votes: Iterable[Judgment], rng: np.random.Generator, *, level: float = 0.95, trials: int = 1000
) -> JudgeAgreement:
    """Agreement on pairs that were judged at least twice.

    Which passage of a pair is called the first means nothing. Each pair is therefore entered both
    ways round, so that alpha is the same whatever passages are called; two votes are alike by
    chance with 1/2.

    Args:
        votes: those that count, as `counted` gives them; others without a preference are passed
            over.
        rng: draws queries for the interval: pairs of one query share passages.
        level: of the interval.
        trials: how many draws; 0 for no interval.
    """
    given: dict[tuple[str, str, str], list[float]] = {}
    for one in votes:
        if one.preferred is not None:
            given.setdefault(one.pair, []).append(float(one.preferred == one.pair[1]))
    several = {pair: found for pair, found in given.items() if len(found) >= _TWO}
    one_way = np.full((max(map(len, several.values()), default=0), len(several)), np.nan)
    for column, found in enumerate(several.values()):
        one_way[: len(found), column] = found
    ratings = np.hstack([one_way, 1 - one_way])
    alpha = krippendorff_alpha(ratings)
    queries = np.array([query for query, _, _ in several] * _TWO)
    interval = None
    if trials:
        interval = krippendorff_interval(ratings, rng, groups=queries, level=level, trials=trials)
    return JudgeAgreement(
        alpha=alpha.value,
        interval=interval,
        pairs=len(several),
        votes=sum(map(len, several.values())),
        alike=_alike(several.values()),
        why=alpha.why,
    )


def _alike(several: Iterable[list[float]]) -> float | None:
    """Over all two votes on one pair, each couple alike."""
    same = couples = 0.0
    for found in several:
        size, ones = len(found), sum(found)
        couples += size * (size - 1) / 2
        same += (ones * (ones - 1) + (size - ones) * (size - ones - 1)) / 2
    return same / couples if couples else None


# How attentive each judge is: crowd Bradley-Terry over all that judges answered, tests among it.
#
# Says whom to look at. It excludes nobody: what counts is decided by tests alone, and never by
# whether a judge agrees with others.


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAttentiveness:
    """One judge.

    Attributes:
        worker: a pseudonym.
        answers: pairs with a preference, tests among them.
        tests: how many of them were tests.
        failed: tests failed, with those that were answered without a preference.
        attentiveness: how often the answer comes from the passages, in (0, 1).
        habit: otherwise, logit of the left side.
    """

    worker: str
    answers: int
    tests: int
    failed: int
    attentiveness: float
    habit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attentiveness:
    """All judges.

    Attributes:
        judges: the least attentive first, then by name.
        unknown: answers by nobody known, which are left out.
        converged: the search for the most likely figures came to an end.
    """

    judges: tuple[JudgeAttentiveness, ...]
    unknown: int
    converged: bool


def measure_attentiveness(judgments: Iterable[Judgment]) -> Attentiveness:
    """Measure how attentive judges are.

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
        JudgeAttentiveness(
            worker=worker,
            answers=answered[worker],
            tests=tested[worker],
            failed=failed[worker],
            attentiveness=float(found.care[place]),
            habit=float(found.habit[place]),
        )
        for worker, place in places.items()
    ]
    return Attentiveness(
        judges=tuple(sorted(judges, key=lambda one: (one.attentiveness, one.worker))),
        unknown=sum(not one.worker for one in recorded),
        converged=found.converged,
    )


def _ints(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(values), np.int64)


# How pairs were judged: tests failed, what could not be judged, and the time it took.

_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Seconds that answers took.

    Attributes:
        answers: how many are known.
        quartiles: lower, median, upper, in seconds.
    """

    answers: int
    quartiles: tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingQuality:
    """How pairs were judged; of changed answers the last is taken.

    Attributes:
        tests: answered in finished tasks.
        failed: of these.
        tasks: finished.
        excluded: finished tasks with so many failed tests that they exclude.
        answers: to pairs that nobody knows.
        cannot: of these without a preference, by reason.
        shown: from the page's leaving to the answer; `None` where unknown.
        looked: how long the page was looked at; `None` where unknown.
    """

    tests: int
    failed: int
    tasks: int
    excluded: int
    answers: int
    cannot: Mapping[Reason, int]
    shown: Spread | None
    looked: Spread | None

    @property
    def accuracy(self) -> float | None:
        """Share of tests that were passed; `None` without any."""
        return 1 - self.failed / self.tests if self.tests else None


def judging_quality(judgments: Sequence[Judgment], settings: Settings) -> JudgingQuality:
    """How pairs were judged.

    Args:
        judgments: all that were recorded.
        settings: what a failed test excludes.
    """
    last = last_answers(judgments)
    finished = [one for one in last if one.submitted]
    failed = failed_tests(finished)
    pairs = [one for one in last if one.answer is None]
    return JudgingQuality(
        tests=sum(one.answer is not None for one in finished),
        failed=sum(failed.values()),
        tasks=len(failed),
        excluded=sum(count >= settings.failures for count in failed.values()),
        answers=len(pairs),
        cannot=Counter(one.reason for one in pairs if one.reason is not None),
        shown=_spread(span for span in map(_seconds_shown, pairs) if span is not None),
        looked=_spread(one.active_ms / _MS for one in pairs if one.active_ms is not None),
    )


def _seconds_shown(one: Judgment) -> float | None:
    if not one.shown_at or not one.answered_at:
        return None
    span = datetime.fromisoformat(one.answered_at) - datetime.fromisoformat(one.shown_at)
    return span.total_seconds()


def _spread(seconds: Iterable[float]) -> Spread | None:
    found = list(seconds)
    if not found:
        return None
    low, middle, high = np.quantile(found, [0.25, 0.5, 0.75]).tolist()
    return Spread(answers=len(found), quartiles=(low, middle, high))
