"""What the games amount to: a line for each attack against each release."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from heldout.redteam.attacks import ATTACKS
from heldout.redteam.exchange import Exchange
from heldout.redteam.game import Outcome, Plan, play
from heldout.redteam.releases import NamedRelease, name_ladder

__all__ = ["ADVICE", "Line", "conclude", "play_table", "summarise"]

ADVICE = """\
Rounding is no defence: an attacker makes 300 rounded scores into a gain of 4.2 standard errors
that is not there, and 24 of them into 1.5. With rule = "ladder" in [release] guessing gains
nothing, and a system that is better by 4.5 still gets its score in 4 of 5 cases. Two ways around
it remain where a team begins at nothing: spoilt runs that rise step by step (0.7), and the first
scores of ten teams (0.9). So a first score has to be above your best baseline, unless you say
otherwise (begin): show one that is as good as you can make it, and look at who the teams are.
Keep runs.complete = true in [runs]: on a board that takes partial runs, 300 rounded scores read
15 single labels (0.5). Alone it is not enough, as spoilt runs read as many: see who begins low."""
"""What an organiser should know before a board opens; the figures are those of docs/redteam.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Many games of one attack against one release.

    Attributes:
        attack: a name of `ATTACKS`.
        release: name of what it was played against.
        submissions: how many runs the attacker sent.
        seeds: how many games were played.
        mean_gain: mean gain over the truth, in units of the measure.
        mean_gain_se: the same in units of u, the standard error of A - B.
        gain_sd: standard deviation of the gains, in units of u; `None` for a single game.
        false_release_share: share of the games with a release of u or more above the truth.
        labels: mean of `Outcome.labels`: labels that the attacker has read.
        refused: mean number of its runs that were refused.
        utility: share of the games in which the planted system gets a score.
        planted_above: share in which that score is above all that the team was told before.
    """

    attack: str
    release: str
    submissions: int
    seeds: int
    mean_gain: float
    mean_gain_se: float
    gain_sd: float | None
    false_release_share: float
    labels: float
    refused: float
    utility: float
    planted_above: float


def play_table(
    pair: Exchange,
    attacks: Sequence[str],
    releases: Sequence[NamedRelease],
    plan: Plan,
    *,
    games: int,
    done: Callable[[], None],
) -> Iterator[Line]:
    """Play every attack against every release.

    Args:
        pair: the exchangeable systems.
        attacks: names of `ATTACKS`.
        releases: what they are played against.
        plan: how a game is played.
        games: how many of each, at least 1; game i has the same labels everywhere.
        done: called after each game.
    """
    for attack in attacks:
        for release in releases:
            outcomes: list[Outcome] = []
            for number in range(games):
                outcomes.append(play(ATTACKS[attack], release.answer, pair, plan, number=number))
                done()
            yield summarise(
                outcomes,
                unit=pair.unit,
                attack=attack,
                release=release.name,
                submissions=plan.submissions,
            )


def summarise(
    outcomes: Sequence[Outcome], *, unit: float, attack: str, release: str, submissions: int
) -> Line:
    """A line from its games.

    Args:
        outcomes: at least one.
        unit: u, in units of the measure.
        attack: name of the attack.
        release: name of the release.
        submissions: how many runs the attacker sent.
    """
    gains = np.array([outcome.gain for outcome in outcomes])
    return Line(
        attack=attack,
        release=release,
        submissions=submissions,
        seeds=len(outcomes),
        mean_gain=float(gains.mean()),
        mean_gain_se=float(gains.mean()) / unit,
        gain_sd=float(gains.std(ddof=1)) / unit if len(gains) > 1 else None,
        false_release_share=float((gains >= unit).mean()),
        labels=float(np.mean([outcome.labels for outcome in outcomes])),
        refused=float(np.mean([outcome.refused for outcome in outcomes])),
        utility=float(np.mean([outcome.planted_released for outcome in outcomes])),
        planted_above=float(np.mean([outcome.planted_above for outcome in outcomes])),
    )


_LEAST_TOLD = 0.5
"""A rule under which fewer better systems than this share get their score is not advised."""


def conclude(lines: Sequence[Line], measure: str, *, own: str) -> str:
    """The strongest attack on a board's rule, and which rule that was played leaves the least.

    Args:
        lines: one for each attack and release.
        measure: what the gains are in.
        own: name of the board's own release; "" without a board, or where it was not played.
    """
    worst: dict[str, Line] = {}
    for line in lines:
        if line.release != "exact":
            worst[line.release] = max(
                worst.get(line.release, line), line, key=lambda one: one.mean_gain
            )
    if not worst:
        return ""
    told = {
        name: float(np.mean([one.utility for one in lines if one.release == name]))
        for name in worst
    }
    usable = [name for name in worst if told[name] >= _LEAST_TOLD] or [*worst]
    best = min(usable, key=lambda name: worst[name].mean_gain)
    found = own if own in worst else best
    start = (
        f"Your rule, {own}" if own in worst else f"Of the rules played here, {best} leaves least"
    )
    said = (
        f"{start}: the strongest of {len({one.attack for one in lines})} attacks, "
        f"{worst[found].attack}, gains {_say_gain(worst[found], measure)}."
    )
    if found == best:
        keep = " No other rule that was played leaves less: keep it."
        return said + keep * (own in worst and len(worst) > 1)
    return (
        f"{said} With {best} the strongest, {worst[best].attack}, gains "
        f"{_say_gain(worst[best], measure)}, and a system that is really better gets its score in "
        f"{told[best]:.0%} of the games: set {_say_setting(worst[best])} in [release]. This holds "
        "for one team and a baseline as good as its systems; with a weaker baseline or many names "
        "an attacker gains more (docs/redteam.md)."
    )


def _say_gain(line: Line, measure: str) -> str:
    gain, units = round(line.mean_gain, 4) + 0.0, round(line.mean_gain_se, 1) + 0.0
    return f"{gain:.4f} {measure} ({units:.1f} u)"


def _say_setting(line: Line) -> str:
    """The keys of board.toml for a line's release; z is left out where it follows from K."""
    if line.release == name_ladder(line.submissions):
        return 'rule = "ladder"'
    name, _, number = line.release.partition(" ")
    key, value = ("z", number.removeprefix("z=")) if name == "ladder" else ("step", number)
    return f'rule = "{name}"' + (f" and {key} = {value}" if number else "")
