"""The board that attackers play against: a release rule, what it remembers, what stands on it.

Nothing of a rule is built a second time here: `heldout.board.rules` decides, and the attackers hear
the text that it publishes. A board may send everybody a second number: the rounded score on a
feedback part of the queries, or the score with noise (docs/explanation/release.md).
"""

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.board.rules.parts import add_noise, draw_noise, feedback_queries
from heldout.board.rules.release import (
    CLEARLY,
    JITTER,
    ReleaseRule,
    Told,
    check_rule,
    draw_jitter,
    release,
    release_score,
    standard_error,
)
from heldout.board.rules.spec import BoardSpec
from heldout.errors import InputError, Problem, quote
from heldout.redteam.releases import Scores

COMPARED = ("rounded", "step", "ladder", "ratchet", "ratchet+feedback", "ratchet+noise")
"""The rules of the table, as `parse_rule` reads them."""

Beside = Literal["", "feedback", "noise"]
"""What everybody is sent beside the score that ranks."""

_KEYS = {"ladder": ("z", "begin"), "step": ("step", "begin")}
"""The settings of a rule; of other rules' settings it has none."""
_NOISE = 10.0
_VIEW = "redteam"
_MIDDLE = math.log(2)  # median of the exponential distribution with mean 1
_EXPECTED = "rounded, ladder, ladder=Z, step, step=S or ratchet, with +feedback or +noise after it"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRule:
    """A release rule as the table shows it.

    Attributes:
        rule: of the score that ranks; its numbers are right by `check_rule`.
        decimals: digits after the point, 1 to 6.
        beside: what everybody is sent besides.
        noise: standard errors of the noise, where there is any.
    """

    rule: ReleaseRule
    decimals: int
    beside: Beside = ""
    noise: float = _NOISE

    @property
    def name(self) -> str:
        """`rounded`, `ladder z=3.59`, `step 0.01`, `ratchet`, `ratchet+feedback`."""
        match self.rule.rule:
            case "ladder":
                said = f"ladder z={round(self.rule.threshold, 2):g}"
            case "step":
                said = f"step {self.rule.step:g}"
            case other:
                said = other
        return said + (f"+{self.beside}" if self.beside else "")

    @property
    def ranking_share(self) -> float:
        """Share of the queries that rank."""
        return 1 - self.rule.feedback if self.beside == "feedback" else 1.0


def parse_rule(text: str, rule: ReleaseRule, *, decimals: int, path: str) -> NamedRule:
    """Read the name of a rule.

    Args:
        text: as in `COMPARED`; also `ladder=Z` and `step=S`.
        rule: what the text leaves open: submissions, z, step, where a team begins, share of the
            feedback part.
        decimals: digits after the point, 1 to 6.
        path: where it stands, for the error.

    Raises:
        InputError: code `redteam-release`.
    """
    name, plus, beside = text.partition("+")
    name, equals, number = name.partition("=")
    key = {"ladder": "z", "step": "step"}.get(name)
    unknown = Problem(
        "redteam-release",
        path,
        quote(text),
        _EXPECTED,
        "Z is 0 to 10; S is one over a whole number, such as 0.01",
    )
    if (equals and not key) or (plus and beside not in get_args(Beside)[1:]):
        raise InputError(unknown)
    try:
        given = {key: float(number)} if key and equals else {}
        kept = {
            one: getattr(rule, one) for one in ("submissions", "feedback", *_KEYS.get(name, ()))
        }
        named = msgspec.convert(kept | given | {"rule": name}, ReleaseRule)
    except (ValueError, msgspec.ValidationError):
        raise InputError(unknown) from None
    if any(check_rule(named, decimals=decimals)):
        raise InputError(unknown)
    sent: Beside = "feedback" if beside == "feedback" else "noise" if beside else ""
    return NamedRule(rule=named, decimals=decimals, beside=sent)


def own_rule(spec: BoardSpec) -> NamedRule:
    """The rule of a board's primary view, with what it publishes of the same set besides."""
    queries = spec.view(spec.primary).set
    views = [view for view in spec.public_views if view.set == queries]
    noise = next((view.noise for view in views if view.noise is not None), None)
    beside: Beside = "noise" if noise is not None else ""
    if any(view.part == "feedback" for view in views):
        beside = "feedback"
    return NamedRule(
        rule=spec.held_out_release,
        decimals=spec.decimals,
        beside=beside,
        noise=_NOISE if noise is None else noise,
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What the board says of a run.

    Attributes:
        score: the published score that ranks; `None` where it stays in the vault.
        other: the number on the feedback part, or with noise; `None` where the board sends none,
            as for a part without queries, or where the baseline's scores give no noise.
    """

    score: float | None
    other: float | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Board:
    """A board during one game.

    Attributes:
        named: its rule.
        baseline: per-query scores of its best baseline.
        key: the secret of split, jitter and noise.
        best: the highest published score, and the per-query scores of its run on the queries that
            rank; `None` before the first. The baseline does not count.
    """

    named: NamedRule
    baseline: Scores
    key: bytes
    best: tuple[float, Scores] | None = None
    _ranks: NDArray[np.bool_] = field(init=False)
    _start: Told = field(init=False)
    _states: dict[int, Told] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ranks = np.ones(len(self.baseline), np.bool_)
        if self.named.beside == "feedback":
            ids = [str(query) for query in range(len(self.baseline))]
            chosen = feedback_queries(self.key, ids, self.named.rule.feedback)
            self._ranks[[int(query) for query in chosen]] = False
        values = self.ranking(self.baseline)
        text = release_score(float(values.mean()), decimals=self.named.decimals)
        self._start = Told(text=text, values=values)

    def ranking(self, values: Scores) -> Scores:
        """The scores of the queries that rank."""
        return values if self._ranks.all() else values[self._ranks]

    def submit(self, name: int, values: Scores) -> Answer:
        """Answer a run; what it changes stays.

        Args:
            name: number of the name under which it is sent.
            values: its scores per query.
        """
        scores = self.ranking(values)
        published, state = self._decide(name, scores)
        self._states[self._row(name)] = state
        if published is not None and (self.best is None or published > self.best[0]):
            self.best = published, scores
        return Answer(published, self._beside(values))

    def would_publish(self, name: int, values: Scores) -> bool:
        """Whether a run would get a score now; nothing changes."""
        return self._decide(name, self.ranking(values))[0] is not None

    def _row(self, name: int) -> int:
        """A ratchet knows no names."""
        return 0 if self.named.rule.rule == "ratchet" else name

    def _decide(self, name: int, scores: Scores) -> tuple[float | None, Told]:
        rule = self.named.rule
        begins = rule.rule == "ratchet" or (rule.rule != "rounded" and rule.begin == "baseline")
        state = self._states.get(self._row(name), self._start if begins else None)
        jitter = 0.0
        if rule.rule == "ratchet":
            jitter = draw_jitter(self.key, _VIEW, scores, self._start.values)
        out = release(scores, state, rule, decimals=self.named.decimals, jitter=jitter)
        return None if out.text is None else float(out.text), out.told

    def _beside(self, values: Scores) -> float | None:
        decimals = self.named.decimals
        if self.named.beside == "feedback" and not self._ranks.all():
            mean = float(values[~self._ranks].mean())
            return float(release_score(mean, decimals=decimals))
        if self.named.beside == "noise" and np.ptp(self.baseline) > 0:
            drawn = draw_noise(self.key, _VIEW, values)
            errors = self.named.noise
            noisy = add_noise(values, self.baseline, errors=errors, drawn=drawn, decimals=decimals)
            return float(noisy)
        return None

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in `Answer.other`, in units of the measure.

        The rule is public, and so is this: infinite where the number says nothing of the queries
        that rank.
        """
        if self.named.beside != "noise":
            return math.inf
        return self.named.noise * standard_error(self.baseline)

    def margin(self, error: float, spread: float) -> float:
        """How far above the run before one has to lie to be published half the time.

        The rule is public, and so is this.

        Args:
            error: standard error of the difference of the two, in units of the measure.
            spread: that of the difference from the baseline.
        """
        rule = self.named.rule
        match rule.rule:
            case "ladder":
                return rule.threshold * error
            case "step":
                return rule.step
            case "ratchet":
                return CLEARLY * error + JITTER * _MIDDLE * spread
            case "rounded":
                return error
