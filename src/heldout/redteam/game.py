"""The game: an attacker against a release, played many times on exchangeable systems.

The systems are exchangeable, so the truth is known: no run gains anything (see `exchange`). What
stands on the board above the truth after an attack was fitted to the labels. A game is one board:
its labels, the runs that other teams published, the attacker's submissions, and at the end a
system of the same team that really is better. All randomness of a game comes from the seed and the
game's number, so that every attack and every release is played on the same boards, and more games
leave the earlier ones as they were.
"""

from dataclasses import dataclass

import numpy as np

from heldout.board.release import Released, Told
from heldout.redteam.attacks import Attack, Heard, Moves, Published, Target
from heldout.redteam.exchange import Exchange, Labels, Scores, coins
from heldout.redteam.releases import Release

__all__ = ["PLANTED", "PUBLISHED", "Outcome", "Plan", "play"]

PLANTED = 4.5
"""How much better the planted system is, in its own paired standard errors."""

PUBLISHED = 10
"""Runs that other teams have published, one each, before the attack."""

_LABELS, _OTHERS, _ATTACKER, _PLANTED = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the game is played.

    Attributes:
        submissions: of the attacker, at least 2.
        seed: of all draws.
        shared: whether all teams are measured by one state of the release, else each by its own.
        published: how many runs other teams have published, at least 1.
        planted: how much better the planted system is, in units of u.
    """

    submissions: int
    seed: int
    shared: bool = False
    published: int = PUBLISHED
    planted: float = PLANTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one game.

    Attributes:
        gain: the score per query of the run that stands as the attacker's best, less the truth, in
            units of the measure; 0 if nothing was released.
        planted_released: whether the planted system gets a score.
        planted_above: whether that score is above all that the team was told before.
    """

    gain: float
    planted_released: bool
    planted_above: bool


@dataclass(slots=True, kw_only=True)
class _Team:
    """What a release remembers of a team, and what stands on the board for it.

    Attributes:
        release: the rule.
        told: what the team was told; of a shared state what anybody was.
        heard: the best score that the team was told.
        standing: the mean of the run that this score was released for, with all digits.
    """

    release: Release
    told: Told | None = None
    heard: Heard = None
    standing: float | None = None

    def submit(self, values: Scores) -> Released:
        """Send a run, by its scores per query."""
        released = self.release(values, self.told)
        self.told = released.told
        said = _hear(released)
        if said is not None and (self.heard is None or said > self.heard):
            self.heard, self.standing = said, float(values.mean())
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
    published, told = _publish(release, labels, plan, _rng(plan, number, _OTHERS))
    team = _Team(release=release, told=told)
    target = Target(queries=pair.queries, submissions=plan.submissions, published=published)
    start = _attack(attack.moves(target, _rng(plan, number, _ATTACKER)), target, labels, team)
    best, standing = team.heard, team.standing
    said = _hear(team.submit(_plant(pair, start, plan, _rng(plan, number, _PLANTED))))
    return Outcome(
        gain=0.0 if standing is None else standing - pair.truth,
        planted_released=said is not None,
        planted_above=said is not None and (best is None or said > best),
    )


def _rng(plan: Plan, number: int, part: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(plan.seed, spawn_key=(number, part)))


def _publish(
    release: Release, labels: Labels, plan: Plan, rng: np.random.Generator
) -> tuple[list[Published], Told | None]:
    """Other teams' runs, and what the attacker's team starts from."""
    published: list[Published] = []
    told: Told | None = None
    for _ in range(plan.published):
        run = coins(rng, len(labels.first))
        other = _Team(release=release, told=told)
        published.append(Published(run=run, heard=_hear(other.submit(labels.score(run)))))
        told = other.told if plan.shared else None
    return published, told


def _attack(moves: Moves, target: Target, labels: Labels, team: _Team) -> Scores:
    """Let the attacker send its runs.

    Returns:
        The scores per query of what stands after the first: that run, or what it is not above.
    """
    released = team.submit(labels.score(next(moves)))
    start = released.told.values
    for _ in range(target.submissions - 1):
        released = team.submit(labels.score(moves.send(_hear(released))))
    return start


def _plant(pair: Exchange, start: Scores, plan: Plan, rng: np.random.Generator) -> Scores:
    """Scores of a system that differs from a run as A from B, and is better on the whole."""
    swapped = np.where(coins(rng, pair.queries), pair.a - pair.b, pair.b - pair.a)
    return start + swapped + plan.planted * pair.unit
