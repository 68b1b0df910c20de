"""The rule that turns a true score into what leaves the vault: a text, or nothing.

`rounded` publishes every score. `ladder` and `step` publish a team's score only where it lies
clearly above what was published for that team before: Blum and Hardt 2015, section 3
(parameter-free and fixed-step Ladder). Both hold per team and per view, each by itself.

`ratchet` publishes a score only where it lies clearly above the best run that anybody has sent,
published or not. It holds per view, for the whole board, so that many names are one name
(docs/explanation/release.md has the reasons, docs/explanation/redteam.md what attackers gain).

Rounding is printf's: the exact binary value, rounded half to even at the last shown digit, as
trec_eval prints it. Everything that leaves uses the text made here: page, comment, CSV, JSON, log.
"""

import hashlib
import hmac
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from statistics import NormalDist, stdev
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.board.log.history import History, list_renamed, names_of
from heldout.board.log.manifest import team_key
from heldout.board.log.submission import Submission

RuleName = Literal["rounded", "ladder", "step", "ratchet"]

UNTOLD = "not above its bar"
"""What is said of such an entry while an embargo hides what it had to be above."""

NOT_CLEAR = "not clearly above the best run that was sent"
"""What is said, under the ratchet, of an entry whose score stays in the vault."""

_LEVEL = 0.05
CLEARLY = 2.0
"""Paired standard errors that make a clear difference: for the ratchet, and in a final."""
JITTER = 0.5
"""Standard errors of the difference from the baseline that it asks for besides, in the mean."""
_DECIMALS = range(1, 7)
_MOST_SUBMISSIONS = 1_000_000
_MOST_Z = 10.0
_LONGEST_STEP = 0.5

# A run that differs in one query lies exactly one standard error away, whichever query it is:
# rounding errors, which depend on the order of queries, must not decide that.
_TIE = 1e-9


class ReleaseRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[release]`: what a team is told of a true score.

    Attributes:
        rule: `rounded`: every score; `ladder`: a score that lies `threshold` paired standard
            errors above the best that the team was told; `step`: one that lies more than `step`
            above it, as the nearest multiple of `step`; `ratchet`: one that lies clearly above
            the best run that anybody has sent.
        submissions: the number that the board declares for its whole life, of all teams; 1 to
            1,000,000.
        z: standard errors of the Ladder, 0 to 10; absent, by `submissions` and the number of views.
        step: of the fixed-step Ladder, one over a whole number; above 0, at most 0.5.
        begin: what a team's first score has to be above, under `ladder` and `step`: the best
            `baseline`, if there is one, or nothing: `first`. Who begins at nothing can begin low
            on purpose and be told every rise from there (docs/explanation/redteam.md).
        feedback: share of a split set's queries that are its feedback part; above 0, below 1.
    """

    rule: RuleName = "rounded"
    submissions: int = 300
    z: float | None = None
    step: float = 0.01
    begin: Literal["first", "baseline"] = "baseline"
    feedback: float = 0.25

    @property
    def threshold(self) -> float:
        """Standard errors that the Ladder asks for in a single view: z, or that of `over` one."""
        return _quantile(self.submissions) if self.z is None else self.z

    def over(self, views: int) -> "ReleaseRule":
        """The same rule with its z written out: as given, or the normal quantile of 1 - .05/(K V).

        At the latter, of boards whose K submissions are no better than what was told before, and
        were not chosen by it, at most about 5% release a score in any of V views. For chosen ones
        ask the red team.

        Args:
            views: V, how many views a submission is scored and published in; 0 counts as 1.
        """
        if self.z is not None:
            return self
        return msgspec.structs.replace(self, z=_quantile(self.submissions * max(views, 1)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Told:
    """What a team has been told so far of one view.

    Attributes:
        text: the score that was released last; under `ladder` and `step` the team's best.
        values: the per-query scores that it was released for, in the order of `score_vector`.
    """

    text: str
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """What becomes of one score.

    Attributes:
        text: what leaves the vault; `None` where the entry is listed as `not_above(told.text)`,
            under the ratchet as `NOT_CLEAR`.
        told: what the team has been told from now on.
    """

    text: str | None
    told: Told


def check_rule(rule: ReleaseRule, *, decimals: int) -> Iterator[tuple[str, object, str, str]]:
    """What is wrong with the numbers of a rule: key, value, what is expected, a hint.

    Args:
        rule: as board.toml has it.
        decimals: digits after the point of every released score; a wrong number of them is
            somebody else's to tell.
    """
    if not 1 <= rule.submissions <= _MOST_SUBMISSIONS:
        hint = "how many submissions of all teams the board is meant for"
        yield ("release.submissions", rule.submissions, f"1 to {_MOST_SUBMISSIONS}", hint)
    if rule.z is not None and not 0 <= rule.z <= _MOST_Z:
        yield ("release.z", rule.z, f"0 to {_MOST_Z:g}", "left out, it follows from submissions")
    if rule.rule == "ratchet":
        yield from _check_ratchet(rule)
    if not 0 < rule.feedback < 1:
        hint = "a quarter, 0.25, leaves most queries to the part that decides"
        yield ("release.feedback", rule.feedback, "above 0, below 1", hint)
    if not 0 < rule.step <= _LONGEST_STEP:
        yield ("release.step", rule.step, f"above 0, at most {_LONGEST_STEP}", "")
    elif rule.rule == "step" and decimals in _DECIMALS:
        step = Fraction(str(rule.step))
        if step.numerator != 1 or 10**decimals % step.denominator:
            expected = f"one over a whole number, with at most {decimals} decimals"
            yield ("release.step", rule.step, expected, "such as 0.01, 0.02, 0.025, 0.05")


def _check_ratchet(rule: ReleaseRule) -> Iterator[tuple[str, object, str, str]]:
    """The keys of other rules: what looks like a setting and sets nothing is refused."""
    given = ReleaseRule()
    for key, meaning in (("z", "a Ladder"), ("step", "the fixed step"), ("begin", "a Ladder")):
        if getattr(rule, key) != getattr(given, key):
            hint = f"it is a setting of {meaning}, and the ratchet has none: leave it out"
            yield (f"release.{key}", getattr(rule, key), 'nothing, with rule = "ratchet"', hint)


def release_score(score: float, *, decimals: int) -> str:
    """A score as the text that may leave the vault.

    Args:
        score: finite.
        decimals: digits after the point, 1 to 6.
    """
    if not Decimal(score).is_finite():
        raise ValueError(score)
    return f"{score:.{decimals}f}"


def release_spread(seeds: Sequence[float], *, decimals: int) -> str:
    """The standard deviation over seeds, as the text that may leave the vault beside a mean.

    Args:
        seeds: each seed's score, finite, at least two.
        decimals: digits after the point, 1 to 6.

    Returns:
        The sample's deviation, with n - 1 in the denominator; the sums are exact, so that no order
        of seeds matters.
    """
    return release_score(stdev(seeds), decimals=decimals)


def not_above(text: str) -> str:
    """What is said of an entry whose score stays in the vault.

    Args:
        text: the best score that its team was told.
    """
    return f"not above {text}"


def say_withheld(text: str | None, rule: RuleName) -> str:
    """What is said of an entry whose score stays in the vault, by the rule of its day.

    Args:
        text: the best score that its team was told, `None` while an embargo hides it, and under the
            ratchet, which never says what the best run is.
        rule: the rule.
    """
    if rule == "ratchet":
        return NOT_CLEAR
    return UNTOLD if text is None else not_above(text)


def best_released(history: History, teams: Iterable[str], view: str) -> Submission | None:
    """The entry that a team's next score in a view has to be above; `None` before the first.

    Its score as text and its per-query scores, as they are today, are what the team was `Told`.
    An imported entry has none, and bars nothing.

    Args:
        history: the organisers', for the public one does not name embargoed teams.
        teams: every name that the submission has had: a new name does not begin again, nor does
            one that an organiser approved for another entry.
        view: name of the view; another season is another view.
    """
    keys = names_of(list_renamed(history), teams)
    told = [
        submission
        for submission in history.submissions.values()
        if submission.status == "published"
        and view in submission.scores
        and not submission.baseline
        and not keys.isdisjoint(map(team_key, submission.counts_for))
    ]
    return max(told, key=lambda submission: Decimal(submission.scores[view]), default=None)


def first_bar(history: History, rule: ReleaseRule, view: str) -> Submission | None:
    """The baseline that a team's first score in a view has to be above; `None` where it is told.

    Args:
        history: the organisers'.
        rule: the board's.
        view: name of the view.
    """
    if rule.begin == "first":
        return None
    shown = [
        submission
        for submission in history.submissions.values()
        if submission.baseline and view in submission.scores
    ]
    return max(shown, key=lambda submission: Decimal(submission.scores[view]), default=None)


def score_vector(per_query: Mapping[str, float | None], *, n: int) -> NDArray[np.float64]:
    """Per-query scores as `release` takes them: in the order of the query ids.

    Args:
        per_query: query -> score, `None` where the measure is undefined.
        n: how many queries the mean is taken over; those beyond the defined ones score 0, as a
            board with `denominator = "all"` has it.
    """
    defined = [value for _, value in sorted(per_query.items()) if value is not None]
    if len(defined) > n:
        raise ValueError(n)
    return np.array(defined + [0.0] * (n - len(defined)), np.float64)


def draw_jitter(key: bytes, view: str, values: ArrayLike, baseline: ArrayLike) -> float:
    """How far a run has to lie above the ratchet's bar, besides two standard errors.

    The same scores have the same jitter, so that sending a run again is no second try, and an
    audit can draw it again. Without the key nobody knows it. Its scale is the paired standard
    error of the difference from the baseline: where the baseline is weak, and leaves attackers
    room for many questions, each answer says less (docs/explanation/redteam.md).

    Args:
        key: the query set's secret key, of the vault.
        view: name of the view.
        values: per-query scores in the order of `score_vector`.
        baseline: those of the baseline with the best published score.

    Returns:
        In units of the measure: half that standard error times a draw of the exponential
        distribution with mean 1; 0 for a single query.
    """
    scores = np.ascontiguousarray(values, "<f8")
    message = b"\0".join((b"heldout ratchet", view.encode(), scores.tobytes()))
    drawn = hmac.new(key, message, hashlib.sha256).digest()
    draw = -math.log1p(-(int.from_bytes(drawn[:8]) >> 11) / 2**53)
    return JITTER * draw * standard_error(scores - np.asarray(baseline, np.float64))


def release(
    values: ArrayLike,
    told: Told | None,
    rule: ReleaseRule,
    *,
    decimals: int,
    jitter: float = 0.0,
) -> Released:
    """Decide what a team is told of one submission's score in one view.

    Under `rounded`, `ladder` and `step` the first score is always released. Under `ladder` and
    `step` a later one is not, unless its text is above the last one: what shows no rise at the
    shown digits says nothing.

    Under `ratchet` `told` is the best run that anybody has sent so far, a baseline at first; the
    result's `told` is the best run from now on, whether a score is released or not.

    Args:
        values: score of every query that the mean is over, higher is better, finite, at least one.
        told: what the team was told before, `None` at first. After labels have changed the values
            must be those under the new labels, of the same queries.
        rule: the board's; its numbers are right by `check_rule`.
        decimals: digits after the point, 1 to 6.
        jitter: under `ratchet` what `draw_jitter` gives for these values, in units of the measure.

    Raises:
        ValueError: a score is not a finite number, the two are not of the same queries, or a
            ratchet has no run to begin at.
    """
    scores = _check_values(values, told)
    if rule.rule == "ratchet":
        return _ratchet(scores, told, jitter, decimals=decimals)
    before = None if rule.rule == "rounded" else told
    if before is not None and not _is_above(scores, before, rule):
        return Released(text=None, told=before)
    text = release_score(_round_to_step(_mean(scores), rule), decimals=decimals)
    if before is not None and float(text) <= float(before.text):
        return Released(text=None, told=before)
    kept = scores.copy()
    kept.setflags(write=False)
    return Released(text=text, told=Told(text=text, values=kept))


def _ratchet(
    scores: NDArray[np.float64], bar: Told | None, jitter: float, *, decimals: int
) -> Released:
    if bar is None:
        raise ValueError("a ratchet begins at a baseline, and there is none")
    rise = scores - bar.values
    text = None
    # One query has no standard error, so it never shows a rise.
    needed = (CLEARLY * standard_error(rise) + jitter) * (1 + _TIE)
    if rise.size > 1 and float(rise.mean()) > needed:
        text = release_score(_mean(scores), decimals=decimals)
    if not is_higher(scores, bar.values):
        return Released(text=text, told=bar)
    kept = scores.copy()
    kept.setflags(write=False)
    return Released(text=text, told=Told(text=text or "", values=kept))


def is_higher(scores: NDArray[np.float64], before: NDArray[np.float64]) -> bool:
    """Whether a run's mean is higher than another's; where nearly equal, by exact sums.

    Args:
        scores: its scores by query, as `score_vector` has them.
        before: the other's, of the same queries.
    """
    mean = float((scores - before).mean())
    return mean > 0 if abs(mean) > _TIE else _mean(scores) > _mean(before)


def standard_error(values: NDArray[np.float64]) -> float:
    """Of the mean; 0 for a single query."""
    return float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else 0.0


def _check_values(values: ArrayLike, told: Told | None) -> NDArray[np.float64]:
    scores = np.asarray(values, np.float64)
    if scores.ndim != 1 or not scores.size or not np.isfinite(scores).all():
        raise ValueError("per-query scores are a row of finite numbers, at least one")
    if told is not None and told.values.shape != scores.shape:
        raise ValueError(f"{scores.size} queries now, {told.values.size} before")
    return scores


def _is_above(scores: NDArray[np.float64], told: Told, rule: ReleaseRule) -> bool:
    if rule.rule == "step":
        bar = Fraction(told.text) + Fraction(1, _steps(rule))
        return Fraction(_mean(scores)) > bar
    # One query has no standard error, so it never shows a rise.
    if scores.size == 1:
        return False
    rise = scores - told.values
    return float(rise.mean()) > rule.threshold * standard_error(rise) * (1 + _TIE)


def _mean(scores: NDArray[np.float64]) -> float:
    """As `measures.evaluate` takes it: the sum exact, so that no order of queries matters."""
    return math.fsum(scores.tolist()) / scores.size


def _round_to_step(score: float, rule: ReleaseRule) -> float:
    if rule.rule != "step":
        return score
    return round(Fraction(score) * _steps(rule)) / _steps(rule)


def _steps(rule: ReleaseRule) -> int:
    """How many steps there are in 1."""
    return round(1 / rule.step)


@cache
def _quantile(submissions: int) -> float:
    return -NormalDist().inv_cdf(_LEVEL / submissions)
