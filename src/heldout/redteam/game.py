"""The game: an attacker against a release rule, played many times on exchangeable systems.

The systems are exchangeable, so the truth is known: no run gains anything (see `boards`). What
stands on the board above the truth after an attack was fitted to the labels. All randomness of a
game comes from the seed and the game's number, so that every attack and every rule is played on the
same boards, and more games leave the earlier ones as they were.

Games amount to a line for each attack against each rule, and to one sentence.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from heldout.board.rules.release import standard_error
from heldout.redteam.attacks import ATTACKS, Attack, Target
from heldout.redteam.boards import (
    Exchange,
    GameBoard,
    GameLabels,
    NamedRule,
    Scores,
    guess,
    newcomer,
    weaken,
)

PLANTED = (4.5, 6.0)
"""How much better the planted systems are, in units of u."""

_LABELS, _BASELINE, _KEY, _ATTACKER, _PLANTED = range(5)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weak:
    """A baseline that lies so far below the attacker's systems.

    Attributes:
        gap: how far, in units of u over the queries that rank; at least 0.
        scores: per-query scores of a weak system, of which the baseline is made.
    """

    gap: float
    scores: Scores

    @property
    def name(self) -> str:
        """As the table has it: `8 u below`."""
        return f"{self.gap:g} u below" if self.gap else "equal"


Baseline = Weak | Scores
"""How the best baseline of a game is made, or its own per-query scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GamePlan:
    """How the game is played.

    Attributes:
        submissions: of the attacker, at least 3.
        seed: of all draws.
    """

    submissions: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GameOutcome:
    """What came of one game; in units of u over the queries that rank, if the systems differ there.

    Attributes:
        gain: score of the best run that stands for the attacker on the board, above the truth; 0 if
            none does.
        worth: score of its last run above the truth, published or not: what it has learnt.
        records: how many of its runs got a score that ranks.
        planted: for each of `PLANTED`, whether a system that is so much better than the attacker's,
            sent afterwards, gets a score.
    """

    gain: float
    worth: float
    records: int
    planted: tuple[bool, ...]


def rng_of(plan: GamePlan, number: int, part: int) -> np.random.Generator:
    """The generator for a part of a game."""
    return np.random.default_rng(np.random.SeedSequence(plan.seed, spawn_key=(number, part)))


def begin(
    named: NamedRule, pair: Exchange, baseline: Baseline, plan: GamePlan, *, number: int
) -> tuple[GameBoard, GameLabels]:
    """The board of a game, before anybody has sent a run, and its labels.

    Args:
        named: the rule.
        pair: the systems.
        baseline: the best one of the board.
        plan: the seed.
        number: of the game, from 0.

    Raises:
        ValueError: the systems score too low for a baseline so far below.
    """
    labels = pair.toss(rng_of(plan, number, _LABELS))
    rng = rng_of(plan, number, _BASELINE)
    if isinstance(baseline, Weak):
        run = labels.score(guess(rng, pair.queries))
        loss = baseline.gap * pair.unit / named.ranking_share**0.5
        scores = weaken(pair, run, baseline.scores, loss, rng=rng)
    else:
        scores = baseline
    key = rng_of(plan, number, _KEY).bytes(32)
    return GameBoard(named=named, baseline=scores, key=key), labels


def play(
    attack: Attack,
    named: NamedRule,
    pair: Exchange,
    baseline: Baseline,
    plan: GamePlan,
    *,
    number: int,
) -> GameOutcome:
    """Play one game.

    Args:
        attack: how the attacker plays.
        named: the rule that it plays against.
        pair: the exchangeable systems.
        baseline: the best one of the board.
        plan: how often, and with what seed.
        number: of the game, from 0; its labels and draws follow from it and the seed.

    Raises:
        ValueError: the systems score too low for a baseline so far below.
    """
    board, labels = begin(named, pair, baseline, plan, number=number)
    moves = attack.moves(_target(pair, board, plan), rng_of(plan, number, _ATTACKER))
    records, last, run = 0, pair.middle, next(moves)
    for _ in range(plan.submissions):
        last = labels.score(run)
        answer = board.submit(last)
        records += answer.score is not None
        try:
            run = moves.send(answer)
        except StopIteration:
            break
    truth = float(board.ranking(pair.middle).mean())
    differences = board.ranking(pair.a - pair.b)
    unit = float(np.sqrt(np.mean(differences**2) / len(differences))) or pair.unit
    best = truth if board.best is None else float(board.best[1].mean())
    planted = newcomer(pair, rng_of(plan, number, _PLANTED))
    return GameOutcome(
        gain=(best - truth) / unit,
        worth=(float(board.ranking(last).mean()) - truth) / unit,
        records=records,
        planted=tuple(board.would_publish(planted + more * unit) for more in PLANTED),
    )


def _target(pair: Exchange, board: GameBoard, plan: GamePlan) -> Target:
    middle, baseline = pair.middle, board.baseline
    share = board.named.ranking_share
    unit = pair.unit / share**0.5
    spread = float((middle - baseline).std(ddof=1)) / np.sqrt(pair.queries * share)
    spread = float(np.hypot(spread, unit / 2))  # and the attacker's own coins
    return Target(
        submissions=plan.submissions,
        typical=middle,
        sure=np.flatnonzero((pair.a == pair.b) & (pair.a >= pair.a.max())),
        unit=unit,
        share=share,
        baseline=float(baseline.mean()),
        noise=board.noise,
        blur=board.blur(max(standard_error(baseline), standard_error(middle))),
        digit=10.0**-board.named.decimals,
        spread=spread,
        chance=lambda above, error: board.chance(above, error, spread),
    )


OWN = "the board's own"
"""Name of a baseline that is the board's."""

_FRESH = 1_000_003
_FEW = 64
"""Games that are not worth another process."""
_PARTS = 8
"""Tasks of a case on an executor that is given: so many machines may share one."""
_LEAST_PUBLISHED = 0.5
"""A rule under which fewer better systems than this share get a score is not advised."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttackCase:
    """An attack against a rule and a baseline.

    Attributes:
        attack: a name of `ATTACKS`.
        named: the rule.
        baseline: how the best one of the board is made.
    """

    attack: str
    named: NamedRule
    baseline: Baseline

    @property
    def baseline_name(self) -> str:
        """As the table has it."""
        return self.baseline.name if isinstance(self.baseline, Weak) else OWN


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackLine:
    """Many games of one attack against one rule.

    Attributes:
        attack: a name of `ATTACKS`.
        release: name of the rule.
        baseline: name of the baseline.
        submissions: how many runs the attacker sent.
        seeds: how many games were played.
        mean_gain: mean gain on the board over the truth, in units of the measure.
        mean_gain_se: the same in units of u.
        gain_sd: standard deviation of the gains, in u; `None` for a single game.
        worth: mean worth of the attacker's last run, published or not, in u.
        worth_sd: its standard deviation, likewise.
        false_release_share: share of the games in which a score of u or more above the truth
            stands on the board.
        record_share: share of the games in which the attacker got any score that ranks.
        records: their mean number.
        utility: share of the games in which a system better by 4.5 u gets a score afterwards.
        utility_6: the same for one better by 6 u.
        fresh: whether this is the worst attack, played again on seeds that did not choose it.
    """

    attack: str
    release: str
    baseline: str
    submissions: int
    seeds: int
    mean_gain: float
    mean_gain_se: float
    gain_sd: float | None
    worth: float
    worth_sd: float | None
    false_release_share: float
    record_share: float
    records: float
    utility: float
    utility_6: float
    fresh: bool = False

    @property
    def harm(self) -> float:
        """The larger of the mean gain and the mean worth, in u."""
        return max(self.mean_gain_se, self.worth)

    @property
    def error(self) -> float | None:
        """Standard error of the harm; `None` for a single game."""
        sd = self.gain_sd if self.mean_gain_se >= self.worth else self.worth_sd
        return None if sd is None else sd / self.seeds**0.5


def play_case(case: AttackCase, pair: Exchange, plan: GamePlan, games: range) -> list[GameOutcome]:
    """Play some games of a case."""
    attack = ATTACKS[case.attack]
    return [play(attack, case.named, pair, case.baseline, plan, number=number) for number in games]


def play_cases(
    cases: Sequence[AttackCase],
    pair: Exchange,
    plan: GamePlan,
    *,
    games: int,
    done: Callable[[], None],
    processes: int | None = None,
    executor: Executor | None = None,
) -> Iterator[AttackLine]:
    """Play every case, in order.

    Args:
        cases: attacks against rules and baselines.
        pair: the exchangeable systems.
        plan: how a game is played.
        games: how many of each, at least 1; game i has the same labels everywhere.
        done: called after each case.
        processes: how many work side by side; as many as there are cores, if not given.
        executor: where to play instead.

    Raises:
        ValueError: the systems score too low for a baseline so far below.
    """
    count = (os.cpu_count() or 1) if processes is None else processes
    count = count if executor is None else min(games, _PARTS)
    alone = count == 1 or games * len(cases) < _FEW
    parts = [range(games)[start::count] for start in range(count)]
    own = nullcontext(executor) if alone or executor else ProcessPoolExecutor(count)
    with own as pool:
        waiting: list[list[Callable[[], list[GameOutcome]]]] = [
            [
                partial(play_case, case, pair, plan, part)
                if alone or pool is None
                else pool.submit(play_case, case, pair, plan, part).result
                for part in parts
            ]
            for case in cases
        ]
        for case, results in zip(cases, waiting, strict=True):
            played = [result() for result in results]
            done()
            outcomes = [played[i % count][i // count] for i in range(games)]
            yield summarise(outcomes, case, pair, plan)


def play_worst_again(
    lines: Sequence[AttackLine],
    cases: Sequence[AttackCase],
    pair: Exchange,
    plan: GamePlan,
    *,
    games: int,
    done: Callable[[], None],
    executor: Executor | None = None,
) -> list[AttackLine]:
    """The worst attack on each rule with each baseline, on seeds that did not choose it.

    The worst of many noisy means is too high, for it was chosen by its noise.

    Args:
        lines: what `play_cases` gave for `cases`, in this order.
        cases: what was played.
        pair: the exchangeable systems.
        plan: how the games were played; the seed changes.
        games: how many of each.
        done: called after each case.
        executor: where to play; `None` for processes here.
    """
    worst: dict[tuple[str, str], tuple[float, AttackCase]] = {}
    for line, case in zip(lines, cases, strict=True):
        key = (line.release, line.baseline)
        if key not in worst or line.harm > worst[key][0]:
            worst[key] = line.harm, case
    again = [case for _, case in worst.values()]
    fresh = replace(plan, seed=plan.seed + _FRESH)
    played = play_cases(again, pair, fresh, games=games, done=done, executor=executor)
    return [replace(line, fresh=True) for line in played]


def summarise(
    outcomes: Sequence[GameOutcome], case: AttackCase, pair: Exchange, plan: GamePlan
) -> AttackLine:
    """A line from its games, at least one."""
    gains = np.array([outcome.gain for outcome in outcomes])
    worths = np.array([outcome.worth for outcome in outcomes])
    planted = np.array([outcome.planted for outcome in outcomes]).mean(axis=0)
    several = len(outcomes) > 1
    return AttackLine(
        attack=case.attack,
        release=case.named.name,
        baseline=case.baseline_name,
        submissions=plan.submissions,
        seeds=len(outcomes),
        mean_gain=float(gains.mean()) * pair.unit,
        mean_gain_se=float(gains.mean()),
        gain_sd=float(gains.std(ddof=1)) if several else None,
        worth=float(worths.mean()),
        worth_sd=float(worths.std(ddof=1)) if several else None,
        false_release_share=float((gains >= 1).mean()),
        record_share=float(np.mean([outcome.records > 0 for outcome in outcomes])),
        records=float(np.mean([outcome.records for outcome in outcomes])),
        utility=float(planted[0]),
        utility_6=float(planted[1]),
    )


def conclude(fresh: Sequence[AttackLine], *, own: str, unit: float, attacks: int) -> str:
    """The strongest attack on the board's rule, its gain, and which rule to set.

    Args:
        fresh: the worst attack for each rule and baseline, on fresh seeds; of one or more rules.
        own: name of the board's own rule; "" without a board, or where it was not played.
        unit: u in units of the measure.
        attacks: how many were played on each rule.

    Returns:
        Short sentences on one line; "" where nothing was played.
    """
    worst = strongest_lines(fresh)
    published = {rule: min(one.utility for one in fresh if one.release == rule) for rule in worst}
    usable = [rule for rule in worst if published[rule] >= _LEAST_PUBLISHED] or [*worst]
    best = min(usable, key=lambda rule: worst[rule].harm, default="")
    if not best:
        return ""
    which = "the only attack played" if attacks == 1 else f"the strongest of {attacks:,} attacks"

    def gains(rule: str) -> str:
        harm = worst[rule].harm
        return f"{which} gains {harm * unit:.4f} ({harm:.1f} standard errors)"

    start = f"Your rule, {own}: {gains(own)}." if own in worst else f"{best}: {gains(best)}."
    if len(worst) == 1:
        return f"{start} No other rule was played: heldout redteam --thorough plays all."
    if own not in worst:
        start = f"Of {len(worst):,} rules {best} leaves least: {gains(best)}."
        return f"{start} Set {_say_setting(best)} in [release]."
    if best == own:
        return f"{start} None of the {len(worst) - 1:,} other rules leaves less: keep it."
    instead = f"{worst[best].harm * unit:.4f}"
    return f"{start} With {best}: {instead}. Set {_say_setting(best)} in [release]."


def strongest_lines(fresh: Sequence[AttackLine]) -> dict[str, AttackLine]:
    """Rule -> the line with the largest harm, over all baselines.

    Args:
        fresh: as for `conclude`.
    """
    worst: dict[str, AttackLine] = {}
    for line in fresh:
        if line.release not in worst or line.harm > worst[line.release].harm:
            worst[line.release] = line
    return worst


def _say_setting(release: str) -> str:
    """The keys of board.toml for a rule's name."""
    rule, _, beside = release.partition("+")
    return f'rule = "{rule}"' + (f", with a {beside} view," if beside else "")
