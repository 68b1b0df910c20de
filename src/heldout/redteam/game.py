"""The game: an attacker against a release rule, played many times on exchangeable systems.

The systems are exchangeable, so the truth is known: no run gains anything (see `exchange`). What
stands on the board above the truth after an attack was fitted to the labels. All randomness of a
game comes from the seed and the game's number, so that every attack and every rule is played on the
same boards, and more games leave the earlier ones as they were.
"""

from dataclasses import dataclass

import numpy as np

from heldout.board.rules.release import standard_error
from heldout.redteam.attacks import Attack, Target
from heldout.redteam.boards import GameBoard, NamedRule
from heldout.redteam.releases import Exchange, GameLabels, Scores, guess, newcomer, weaken

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
