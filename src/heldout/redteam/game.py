"""The game: an attacker against a release, played many times on exchangeable systems.

The systems are exchangeable, so the truth is known: no run gains anything (see `exchange`). What
stands on the board above the truth after an attack was fitted to the labels. A game is one board:
its labels, the runs that other teams published, the attacker's submissions, and at the end a
system of the same team that really is better. All randomness of a game comes from the seed and the
game's number, so that every attack and every release is played on the same boards, and more games
leave the earlier ones as they were.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from heldout.board.rules.release import Released, Told
from heldout.redteam.attacks import Attack, Heard, Moves, Published, Target
from heldout.redteam.exchange import Exchange, Labels, Scores, coins, guess
from heldout.redteam.releases import Release

__all__ = ["PLANTED", "PUBLISHED", "Outcome", "Plan", "State", "play"]

PLANTED = 4.5
"""How much better the planted system is, in its own paired standard errors."""

PUBLISHED = 10
"""Runs that other teams have published, one each, before the attack."""

State = Literal["team", "baseline", "board"]
"""Whose best a Ladder goes by: `team`, what the team itself was told; `baseline`, the same, but a
team begins from a baseline of the organisers; `board`, what anybody was told."""

_LABELS, _OTHERS, _ATTACKER, _PLANTED, _BASELINE = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the game is played.

    Attributes:
        submissions: of the attacker, at least 2.
        seed: of all draws.
        state: whose best a Ladder goes by.
        complete: whether the board refuses a run that leaves queries out.
        published: how many runs other teams have published, at least 1.
        planted: how much better the planted system is, in units of u.
    """

    submissions: int
    seed: int
    state: State = "team"
    complete: bool = True
    published: int = PUBLISHED
    planted: float = PLANTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one game.

    Attributes:
        gain: the score per query of the run that stands as the attacker's best, less the truth, in
            units of the measure; 0 if nothing was released.
        labels: queries on which that run takes the better of the two systems, less those on which
            it takes the worse: a label that was read counts 1, one that was guessed 0 on average.
        refused: how many of the attacker's runs were refused unscored.
        planted_released: whether the planted system gets a score.
        planted_above: whether that score is above all that the team was told before.
    """

    gain: float
    labels: int
    refused: int
    planted_released: bool
    planted_above: bool


@dataclass(slots=True, kw_only=True)
class _Team:
    """What a release remembers of a team, and what stands on the board for it.

    Attributes:
        release: the rule.
        told: what its next run is measured by.
        heard: the best score that the team was told.
        standing: the scores per query of the run that this score was released for.
    """

    release: Release
    told: Told | None = None
    heard: Heard = None
    standing: Scores | None = None

    def submit(self, values: Scores) -> Released:
        """Send a run, by its scores per query."""
        released = self.release(values, self.told)
        self.told = released.told
        said = _hear(released)
        if said is not None and (self.heard is None or said > self.heard):
            self.heard, self.standing = said, values
        return released


def _hear(released: Released) -> Heard:
    return None if released.text is None else float(released.text)


def play(attack: Attack, release: Release, pair: Exchange, plan: Plan, *, number: int) -> Outcome:
    """Play one game.

    Args:
        attack: how the attacker plays.
        release: what it plays against.
        pair: the exchangeable systems.
        plan: how often, and with what seed.
        number: of the game, from 0; its labels and draws follow from it and the seed.
    """
    labels = pair.toss(_rng(plan, number, _LABELS))
    told = _begin(release, labels, plan, number)
    published, last = _publish(release, labels, plan, told, _rng(plan, number, _OTHERS))
    team = _Team(release=release, told=last if plan.state == "board" else told)
    target = Target(queries=pair.queries, submissions=plan.submissions, published=published)
    whole = attack.partial and plan.complete
    moves = attack.moves(target, _rng(plan, number, _ATTACKER))
    start, refused = _attack(moves, target, labels, team, whole=whole)
    best, standing = team.heard, team.standing
    said = _hear(team.submit(_plant(pair, start, plan, _rng(plan, number, _PLANTED))))
    return Outcome(
        gain=0.0 if standing is None else float(standing.mean()) - pair.truth,
        labels=0 if standing is None else _count_labels(standing, labels),
        refused=refused,
        planted_released=said is not None,
        planted_above=said is not None and (best is None or said > best),
    )


def _rng(plan: Plan, number: int, part: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(plan.seed, spawn_key=(number, part)))


def _begin(release: Release, labels: Labels, plan: Plan, number: int) -> Told | None:
    """What every team starts from."""
    if plan.state != "baseline":
        return None
    baseline = guess(_rng(plan, number, _BASELINE), len(labels.first))
    return release(labels.score(baseline), None).told


def _publish(
    release: Release, labels: Labels, plan: Plan, told: Told | None, rng: np.random.Generator
) -> tuple[list[Published], Told | None]:
    """Other teams' runs, and what was told to the last of those teams."""
    published: list[Published] = []
    last = told
    for _ in range(plan.published):
        run = guess(rng, len(labels.first))
        other = _Team(release=release, told=last if plan.state == "board" else told)
        published.append(Published(run=run, heard=_hear(other.submit(labels.score(run)))))
        last = other.told
    return published, last


def _attack(
    moves: Moves, target: Target, labels: Labels, team: _Team, *, whole: bool
) -> tuple[Scores, int]:
    """Let the attacker send its runs.

    Args:
        moves: what it sends.
        target: how often.
        labels: of the game.
        team: the attacker's.
        whole: whether a run with a query unanswered is refused: it is not scored, nothing is told.

    Returns:
        Scores per query of what the team began with: its first run that was scored, with nothing
        spoilt, or the run that this was not above. And how many runs were refused.

    Raises:
        ValueError: all of them were.
    """
    run, heard, refused = next(moves), None, 0
    start: Scores | None = None
    for number in range(target.submissions):
        run = run if number == 0 else moves.send(heard)
        if whole and (run == 0).any():
            heard, refused = None, refused + 1
            continue
        released = team.submit(labels.score(run))
        heard = _hear(released)
        if start is None:
            unspoilt = labels.score(np.where(run == 0, np.int8(1), run))
            start = unspoilt if released.text is not None else released.told.values
    if start is None:
        raise ValueError("every run was refused")
    return start, refused


def _count_labels(standing: Scores, labels: Labels) -> int:
    """Queries with the higher of the two scores, less those with the lower."""
    differ = labels.first != labels.second
    best = np.maximum(labels.first, labels.second)
    worst = np.minimum(labels.first, labels.second)
    return int((differ & (standing == best)).sum()) - int((differ & (standing == worst)).sum())


def _plant(pair: Exchange, start: Scores, plan: Plan, rng: np.random.Generator) -> Scores:
    """Scores of a system that differs from a run as A from B, and is better on the whole."""
    swapped = np.where(coins(rng, pair.queries), pair.a - pair.b, pair.b - pair.a)
    return start + swapped + plan.planted * pair.unit
