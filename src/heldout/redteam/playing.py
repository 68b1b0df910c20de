"""All attacks on a board's rule and on others, and what honest teams see of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np

from heldout.board.rules.release import ReleaseRule
from heldout.board.rules.spec import BoardSpec
from heldout.errors import InputError
from heldout.options import Opt, Seed
from heldout.progress import SILENT, Progress
from heldout.redteam.attacks import ATTACKS
from heldout.redteam.boards import COMPARED, NamedRule, own_rule, parse_rule
from heldout.redteam.game import Baseline, Plan, Weak
from heldout.redteam.honest import HonestLine, play_honest
from heldout.redteam.releases import Scores
from heldout.redteam.report import Case, Line, conclude, play_cases, play_worst_again
from heldout.redteam.systems import Source, Systems, draw, find_systems, units_apart

_DECIMALS = 3
_FEWEST = 3
"""Runs of an attacker: a question, another one, and what was learnt."""
_YEARS_PER_GAME = 10
_GAPS = (0.0, 8.0, 16.0)
_OTHERS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GameOptions:
    """Which games are played, and how often."""

    queries: Annotated[
        int | None,
        Opt(
            "Number of queries to draw, with replacement if there are fewer [all].",
            least=2,
            metavar="N",
        ),
    ] = None
    submissions: Annotated[
        int | None,
        Opt(
            "Runs of an attacker, under any number of names [as many as the board declares, or "
            "300].",
            least=_FEWEST,
            most=1_000_000,
            metavar="K",
        ),
    ] = None
    seeds: Annotated[
        int,
        Opt("Games of each attack on the board's rule, and of the worst on every rule.", least=1),
    ] = 200
    seed: Seed = 0
    releases: Annotated[
        tuple[str, ...],
        Opt(
            "Rule to attack: rounded, ladder, ladder=Z, step, step=S or ratchet, with +feedback or "
            "+noise after it; repeat it for more [all, and the board's own].",
            names=("--release",),
            metavar="RULE",
        ),
    ] = ()
    attacks: Annotated[
        tuple[str, ...],
        Opt(
            "Attack to play; repeat it for more [all].", names=("--attack",), choices=tuple(ATTACKS)
        ),
    ] = ()
    gaps: Annotated[
        tuple[float, ...],
        Opt(
            "A best baseline so many u below the systems; repeat it for more [0, 8, 16, and the "
            "board's own].",
            names=("--gap",),
            least=0,
            most=1000,
            metavar="U",
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What was played, and what came of it.

    Attributes:
        systems: the exchangeable systems.
        plan: how a game is played.
        spec: the board's rules, `None` without a board.
        lines: one for each attack, rule and baseline.
        fresh: the worst attack for each rule and baseline, on fresh seeds.
        honest: a line for each rule.
        left_out: baselines that could not be made.
    """

    systems: Systems
    plan: Plan
    spec: BoardSpec | None
    lines: tuple[Line, ...]
    fresh: tuple[Line, ...]
    honest: tuple[HonestLine, ...]
    left_out: tuple[float, ...]

    @property
    def own(self) -> str | None:
        """Name of the board's own rule."""
        return None if self.spec is None else own_rule(self.spec).name

    @property
    def conclusion(self) -> str:
        """The strongest attack on the board's rule, and which rule to set."""
        return conclude(self.fresh, own=self.own or "")

    @property
    def document(self) -> dict[str, Any]:
        """The whole of it for JSON."""
        pair = self.systems.pair
        return {
            "queries": pair.queries,
            "se": pair.unit,
            "truth": pair.truth,
            "apart": units_apart(pair),
            "measure": self.systems.measure,
            "systems": self.systems.names,
            "baselines": {name: float(s.mean()) for name, s in self.systems.baselines.items()},
            "seed": self.plan.seed,
            "own_release": self.own,
            "attacks": msgspec.to_builtins((*self.lines, *self.fresh)),
            "honest": msgspec.to_builtins(self.honest),
            "conclusion": self.conclusion,
        }


def play_board(source: Source, options: GameOptions, *, progress: Progress = SILENT) -> Played:
    """Play all attacks against all rules.

    Args:
        source: where the systems come from.
        options: which games, and how many.
        progress: hears of each attack.

    Raises:
        OptionError, SetupError: as `find_systems`.
        InputError: as `find_systems`; codes `redteam-release`, `redteam-gap`.
    """
    spec, seeds = source.spec, options.seeds
    systems = find_systems(source)
    if options.queries is not None:
        systems = draw(systems, options.queries, seed=options.seed)
    declared = ReleaseRule().submissions if spec is None else spec.release.submissions
    plan = Plan(submissions=options.submissions or max(declared, _FEWEST), seed=options.seed)
    rules = _choose_rules(options.releases, spec, plan.submissions)
    made, left_out = _choose_baselines(systems, options.gaps, rules)
    cases = [
        Case(attack=attack, named=named, baseline=baseline)
        for named in rules
        for baseline in made
        for attack in options.attacks or ATTACKS
    ]
    own = None if spec is None else own_rule(spec).name
    main = [case for case in cases if options.releases or own in (None, case.named.name)]
    rest = [case for case in cases if case not in main]
    few = max(1, seeds // _OTHERS)
    with progress.steps("attacks", len(cases) + len(rules) * len(made)) as done:
        pair = systems.pair
        lines = [*play_cases(main, pair, plan, games=seeds, done=done)]
        lines += play_cases(rest, pair, plan, games=few, done=done)
        fresh = play_worst_again(lines, [*main, *rest], pair, plan, games=seeds, done=done)
    years = max(1, seeds // _YEARS_PER_GAME)
    own_is_there = bool(systems.baselines) and not options.gaps
    usual = made[-1] if own_is_there else made[len(made) // 2]
    return Played(
        systems=systems,
        plan=plan,
        spec=spec,
        lines=tuple(lines),
        fresh=tuple(fresh),
        honest=tuple(play_honest(named, pair, usual, plan, years=years) for named in rules),
        left_out=left_out,
    )


def best_baseline(systems: Systems) -> Scores:
    """Scores of the board's best baseline; there is at least one."""
    return max(systems.baselines.values(), key=np.mean)


def _choose_rules(
    names: Sequence[str], spec: BoardSpec | None, submissions: int
) -> list[NamedRule]:
    """Those that were named, else those of the table and the board's own; each once."""
    decimals = _DECIMALS if spec is None else spec.decimals
    views = 1 if spec is None else spec.held_out_views
    given = ReleaseRule() if spec is None else spec.release
    given = msgspec.structs.replace(given, submissions=submissions, z=None).over(views)
    own = [] if names or spec is None else [own_rule(spec)]
    chosen = [
        parse_rule(name, given, decimals=decimals, path="--release") for name in names or COMPARED
    ]
    return list({named.name: named for named in (*own, *chosen)}.values())


def _choose_baselines(
    systems: Systems, gaps: Sequence[float], rules: Sequence[NamedRule]
) -> tuple[list[Baseline], tuple[float, ...]]:
    """Baselines so far below the systems, and the best of the board's own; and those left out.

    Raises:
        InputError: none of them can be made.
    """
    pair = systems.pair
    room = pair.truth / pair.unit * min(named.ranking_share for named in rules) ** 0.5
    weak = min(systems.baselines.values(), key=np.mean, default=np.zeros(pair.queries))
    wanted = gaps or _GAPS
    made: list[Baseline] = [Weak(gap=gap, scores=weak) for gap in wanted if gap <= room]
    if not gaps and systems.baselines:
        made.append(best_baseline(systems))
    if not made:
        raise InputError.of(
            "redteam-gap",
            "--gap",
            f"{min(wanted):g} u, where the systems score {pair.truth:.4f}",
            f"at most {room:.1f} u: a baseline cannot score below 0",
        )
    return made, tuple(gap for gap in wanted if gap > room)
