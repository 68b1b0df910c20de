"""How pairs were judged: tests failed, what could not be judged, and the time it took."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from heldout.preferences.judgments import Judgment, Reason, failed_tests, last_answers
from heldout.preferences.settings import Settings

__all__ = ["JudgingQuality", "Spread", "judging_quality"]

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
