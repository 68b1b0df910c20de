"""What judges do: how far they agree, how attentive they are, and which sides they prefer.

Low agreement alone is no sign of careless judges, nor of careful ones: where the two passages are
nearly as good, honest judges differ; tests show who is careless. What is expected of judges follows
from how often one is right.

Sides are drawn at random, so that judges without a habit prefer the left passage half the time,
whatever the passages are: that is tested exactly. Beside it a model gives the size of both effects
for passages that are equally good otherwise:

    logit P(left preferred) = b0 + b1 log(length left / length right) + theta_left - theta_right

theta, how good a passage is otherwise, is normal with the spread `SPREAD`. Length and quality are
not drawn at random. b1 says how much longer passages are preferred, and not why: long ones may say
more. Intervals take all of a query, or of a worker, as one observation, whichever makes them wider.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from math import log

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit

from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Table, shorten
from heldout.answers.texts import write, write_table
from heldout.judging.campaign.judgments import Judgment, Reason, failed_tests, last_answers
from heldout.judging.campaign.pools import Pool, normalise
from heldout.judging.campaign.settings import Settings
from heldout.judging.labels.source import Judged
from heldout.stats.agreement import krippendorff_alpha, krippendorff_interval
from heldout.stats.bradley_terry import CrowdAnswers, fit_crowd
from heldout.stats.regression import Choices, Effects, fit_effects
from heldout.stats.tests import compare_counts

STUDY_ACCURACY = 1228 / 1868
"""How often a worker preferred the known answer to the second document of a run that agreed with
it (Arabzadeh et al. 2021, table 2, category A)."""

_TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAgreement:
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
) -> StudyAgreement:
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
    return StudyAgreement(
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
    indices = {worker: index for index, worker in enumerate(workers)}
    items: dict[tuple[str, str], int] = {}
    known = [np.nan if one.answer is None else float(one.answer == one.left) for one in last]
    answers = CrowdAnswers(
        left=_ints(items.setdefault((one.query, one.left), len(items)) for one in last),
        right=_ints(items.setdefault((one.query, one.right), len(items)) for one in last),
        judge=_ints(indices[one.worker] for one in last),
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
            attentiveness=float(found.care[index]),
            habit=float(found.habit[index]),
        )
        for worker, index in indices.items()
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
class AnswerSeconds:
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
    shown: AnswerSeconds | None
    looked: AnswerSeconds | None

    @property
    def accuracy(self) -> float | None:
        """Share of tests that were passed; `None` without any."""
        return 1 - self.failed / self.tests if self.tests else None


def judging_quality(judgments: Sequence[Judgment], settings: Settings) -> JudgingQuality:
    """Return how pairs were judged.

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


def _spread(seconds: Iterable[float]) -> AnswerSeconds | None:
    found = list(seconds)
    if not found:
        return None
    low, middle, high = np.quantile(found, [0.25, 0.5, 0.75]).tolist()
    return AnswerSeconds(answers=len(found), quartiles=(low, middle, high))


SPREAD = 0.8
"""Standard deviation of strengths; a vote on two random passages is right 69% of the time."""


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


_UNBOUND = "the choices follow it without an exception, or another effect explains it"
_SAME = "all pairs have passages of the same length"
_ALONE = "one query and one worker have no interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An effect of the model.

    Attributes:
        value: in logits; of length, for texts e times as long; `None` where undefined.
        low: lower end of its interval; `None` where undefined.
        high: upper end; `None` where undefined.
        why: why it is undefined, else `None`.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    why: str | None = None


_NOT_FITTED = Effect(why="not asked for")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBias:
    """Effects of sides and lengths.

    Attributes:
        judgments: those that count and have known sides.
        unknown: those whose sides are not known, which are left out.
        left: how often the left passage was preferred.
        p: of the exact test that both sides are preferred as often; `None` without a judgment.
        low: least share of the left side, by an exact interval; `None` without a judgment.
        high: greatest.
        position: b0, of the left side.
        length: b1, of the logarithm of length in characters.
        queries: how many were judged.
        workers: how many are known to have judged.
        level: of each interval by itself.
    """

    judgments: int
    unknown: int
    left: int
    p: float | None
    low: float | None
    high: float | None
    position: Effect
    length: Effect
    queries: int
    workers: int
    level: float

    @property
    def share(self) -> float | None:
        """Share of answers that prefer the left passage."""
        return self.left / self.judgments if self.judgments else None


def text_lengths(pools: Iterable[Pool]) -> Mapping[tuple[str, str], int]:
    """(query, document) -> characters of its normalised text, of passages with a text."""
    return {
        (pool.query, doc): len(text)
        for pool in pools
        for one in pool.candidates
        if (text := normalise(one.text))
        for doc in one.ids
    }


def measure_bias(
    judgments: Iterable[Judgment],
    *,
    lengths: Mapping[tuple[str, str], int] | None = None,
    level: float = 0.95,
    effects: bool = True,
) -> SideBias:
    """Measure the effects of side and length.

    Args:
        judgments: those that count, as `counted` gives them. The sides of one without a place in a
            task and without a time are not known: four columns do not say what was shown left.
        lengths: (query, document) -> characters, at least 1; `None` where texts are not known.
            Length is fitted on the judgments of which both are known.
        level: of each interval by itself.
        effects: whether to fit them, which takes a second for some 15,000 judgments.
    """
    every = [one for one in judgments if one.preferred is not None]
    known = [one for one in every if one.position or one.shown_at]
    left = sum(one.preferred == one.left for one in known)
    test = compare_counts(len(known) - left, left, level=level)
    return SideBias(
        judgments=len(known),
        unknown=len(every) - len(known),
        left=left,
        p=test.p,
        low=None if test.low is None else (1 + test.low) / 2,
        high=None if test.high is None else (1 + test.high) / 2,
        position=_position(known, level) if effects else _NOT_FITTED,
        length=_length(known, lengths or {}, level) if effects else _NOT_FITTED,
        queries=len({one.query for one in known}),
        workers=len({one.worker for one in known if one.worker}),
        level=level,
    )


def _position(known: Sequence[Judgment], level: float) -> Effect:
    if not known:
        return Effect(why="no judgment has known sides")
    return _effect(_fit(known, np.ones((len(known), 1)), level), 0)


def _length(
    known: Sequence[Judgment], lengths: Mapping[tuple[str, str], int], level: float
) -> Effect:
    rows, ahead = [], []
    for one in known:
        left, right = lengths.get((one.query, one.left)), lengths.get((one.query, one.right))
        if left and right:
            rows.append(one)
            ahead.append(log(left / right))
    if not rows:
        return Effect(why="no judged pair has both its texts")
    if not any(ahead):
        return Effect(why=_SAME)
    return _effect(_fit(rows, np.column_stack([np.ones(len(rows)), ahead]), level), 1)


def _fit(rows: Sequence[Judgment], columns: NDArray[np.float64], level: float) -> Effects | None:
    choices = Choices(
        columns=columns,
        pair=_number(one.pair for one in rows),
        turned=np.array([one.left > one.right for one in rows]),
        chose_left=np.array([one.preferred == one.left for one in rows]),
    )
    clusterings = [_number(one.query for one in rows)]
    if all(one.worker for one in rows):
        clusterings.append(_number(one.worker for one in rows))
    return fit_effects(choices, clusterings, spread=SPREAD, level=level)


def _number(names: Iterable[Hashable]) -> NDArray[np.int64]:
    """The number of each name, in the order in which they come."""
    indices: dict[Hashable, int] = {}
    return np.array([indices.setdefault(name, len(indices)) for name in names], np.int64)


def _effect(found: Effects | None, index: int) -> Effect:
    if found is None:
        return Effect(why=_UNBOUND)
    value = float(found.values[index])
    if found.low is None or found.high is None:
        return Effect(value=value, why=_ALONE)
    return Effect(value=value, low=float(found.low[index]), high=float(found.high[index]))


# Habits of judges as an answer: sides, length, and how attentive each one is.

_TWICE = 2
_MOST = 20


def bias_answer(judged: Judged, *, level: float) -> Answer:
    """Do judges prefer a side, or the longer passage, and how attentive is each of them?

    Effects are in logits; the judges come the least attentive first.

    Args:
        judged: judgments, and pools with texts.
        level: of the intervals.
    """
    until = judged.rules.until
    known = (
        one
        for one in judged.judgments
        if (until is None or one.answered_at <= until) and (one.position or one.shown_at)
    )
    found = measure_bias(judged.valid, lengths=text_lengths(judged.pools), level=level)
    judges = measure_attentiveness(known)
    odds = ""
    if found.length.value is not None:
        odds = f"; twice as long: odds of {_TWICE**found.length.value:.2f}"
    lines = [
        ("position", describe_effect(found.position, found.level)),
        ("length", describe_effect(found.length, found.level) + odds),
    ]
    if found.unknown:
        lines.append(("left out", f"{found.unknown:,} judgments whose sides are not known"))
    tables = [_effects(found), *([_judges(judges)] if judges.judges else [])]
    return Answer(
        answer=_headline(found),
        summary=lines,
        tables=tables,
        short=[shorten(table, _MOST, what="judge") for table in tables],
        document=to_document(found, "share")
        | {
            "test": "binomial, exact, two-sided",
            "interval": "by query or by worker, the wider one",
            "judges": to_document(judges),
        },
    )


def _headline(found: SideBias) -> str:
    """Return whether judges prefer a side, and whether the longer passage."""
    side = _say_effect(found.position, "a side", "the left side", "the right side")
    length = _say_effect(found.length, "a length", "longer passages", "shorter passages")
    return write("judges.headline", found=found, side=side, length=length)


def _say_effect(effect: Effect, none: str, above: str, below: str) -> str:
    if effect.value is None or effect.low is None or effect.high is None:
        return f"no test of a preference for {none}"
    if effect.low <= 0 <= effect.high:
        return f"no significant preference for {none}"
    return f"a significant preference for {above if effect.low > 0 else below}"


def describe_effect(effect: Effect, level: float) -> str:
    """An effect in logits with its interval, or why there is none."""
    if effect.value is None:
        return f"undefined: {effect.why}"
    size = f"{effect.value:+.3f} logits"
    if effect.low is None:
        return f"{size}; {effect.why}"
    return f"{size}, {level:.0%} interval {effect.low:+.3f} to {effect.high:+.3f}"


def _effects(found: SideBias) -> Table:
    named = {"on the left": found.position, "e times as long": found.length}
    rows = tuple((name, one.value, one.low, one.high) for name, one in named.items())
    return write_table("judges.effects", rows, found=found)


def _judges(found: Attentiveness) -> Table:
    rows = tuple(astuple(one) for one in found.judges)
    return write_table("judges.attentiveness", rows, converged=found.converged)
