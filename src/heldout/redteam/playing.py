"""All attacks on a board's rule and on others.

Attackers hold two systems with their scores by query: from run files, or from a board's vault.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from heldout.board.rules.release import ReleaseRule
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.describe import find_unit
from heldout.board.scores.stored import read_scores
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.collections.named import load_qrels
from heldout.errors import InputError, OptionError, SetupError
from heldout.options import Opt, Seed
from heldout.progress_bar import SILENT, Progress
from heldout.redteam import boards, game
from heldout.redteam.attacks import ATTACKS
from heldout.scoring import run_files, score
from heldout.scoring.measures import Measure, parse_measure
from heldout.scoring.names import read_own_measure
from heldout.scoring.options import RunOrder
from heldout.trec.qrels import Qrels

_DRAW = 0
"""Spawn key of the draw of queries; those of the games have two numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Systems:
    """Two systems on the same queries.

    Attributes:
        names: theirs.
        pair: their scores.
        measure: of what.
        baselines: name -> scores of the board's baselines, where they are known.
    """

    names: tuple[str, str]
    pair: boards.Exchange
    measure: str
    baselines: Mapping[str, boards.Scores] = field(default_factory=dict)


def _check_two(runs: tuple[str, str]) -> None:
    """Refuse an option in the place of the second run."""
    if any(run.startswith("--") for run in runs):
        raise ValueError(f"two runs are needed, --runs A B; found {' '.join(runs)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemOptions:
    """Where two systems come from; what is not named is taken from the board."""

    folder: Annotated[
        Path | None,
        Opt(
            "Board whose rule is attacked [without --qrels, the current folder's].",
            names=("--board",),
            metavar="DIR",
            path="folder",
        ),
    ] = None
    vault: Annotated[
        Path | None,
        Opt(
            "Vault whose dev scores give systems and baselines, without --runs [or HELDOUT_VAULT].",
            metavar="DIR",
            path="folder",
            env="HELDOUT_VAULT",
        ),
    ] = None
    runs: Annotated[
        tuple[str, str] | None,
        Opt(
            "Two runs that are about equally good: the attacker's systems.",
            metavar="A B",
            check=_check_two,
        ),
    ] = None
    baselines: Annotated[
        tuple[str, ...],
        Opt(
            "Baseline of the board, beside --runs. Repeatable.",
            names=("--baseline",),
            metavar="RUN",
        ),
    ] = ()
    qrels: Annotated[
        str | None, Opt("Judgments of the runs [the board's, of its dev set].", metavar="Q")
    ] = None
    measure: Annotated[
        str | None,
        Opt(
            "Measure of the scores [that of the board's primary view].",
            names=("-m", "--measure"),
            metavar="MEASURE",
        ),
    ] = None
    order: RunOrder = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemsSource:
    """Where two systems come from.

    Attributes:
        options: what was asked for.
        repository: the board, `None` for none.
        spec: its rules, `None` likewise.
    """

    options: SystemOptions
    repository: Repository | None = None
    spec: BoardSpec | None = None


def find_systems(source: SystemsSource) -> Systems:
    """Two systems: the runs that are named, else some that the vault has dev scores of.

    Raises:
        OptionError: something is not named.
        InputError: a file has errors, or the systems never differ.
        SetupError: the board has no open labels, or the vault no dev scores.
    """
    given, spec = source.options, source.spec
    measure = _choose_measure(given.measure, spec)
    if given.runs is None:
        if given.baselines:
            raise OptionError("--baseline goes with --runs A B, scored by the same judgments")
        return _find_scored(source, measure)
    order = spec.runs.order if given.order is None and spec is not None else given.order
    scored = score.Reading().score_whole(
        (*given.runs, *given.baselines), _read_qrels(source), [measure], order=order
    )
    a, b, *rows = (run.evaluation.scores[measure].values for run in scored)
    one, other = map(run_files.run_name, given.runs)
    return Systems(
        names=given.runs if one == other else (one, other),
        pair=_pair(a, b, "on any query"),
        measure=str(measure),
        baselines=dict(zip(map(run_files.run_name, given.baselines), rows, strict=True)),
    )


def draw(systems: Systems, queries: int, *, seed: int) -> Systems:
    """The same systems on queries drawn at random, with replacement if there are fewer.

    Raises:
        InputError: they do not differ on any of those.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_DRAW,)))
    known = systems.pair.queries
    chosen = rng.choice(known, queries, replace=queries > known)
    pair, where = systems.pair, f"on any of the {queries:,} queries drawn"
    pair = _pair(pair.a[chosen], pair.b[chosen], where)
    baselines = {name: scores[chosen] for name, scores in systems.baselines.items()}
    return replace(systems, pair=pair, baselines=baselines)


def _choose_measure(name: str | None, spec: BoardSpec | None) -> Measure:
    if name is None and spec is not None:
        name = spec.view(spec.primary).measure
    if name is None:
        raise OptionError("which measure? for example -m RR@10")
    measure = read_own_measure(name)
    if measure.kind.better != "higher":
        found = f"{measure}, where lower is better"
        raise InputError.of("redteam-measure", "-m", found)
    return measure


def _read_qrels(source: SystemsSource) -> Qrels:
    if source.options.qrels is not None:
        return load_qrels(source.options.qrels)
    if source.spec is None or source.repository is None:
        raise OptionError("which judgments? --qrels Q, or --board DIR")
    return source.repository.qrels(source.spec.sets[_dev_set(source.spec)].qrels or "")


def _dev_set(spec: BoardSpec) -> str:
    """The first query set whose labels are in the open."""
    found = next((name for name, files in spec.sets.items() if not files.held_out), None)
    if found is None:
        raise SetupError("the board has no labels in the open; name others: --qrels Q --runs A B")
    return found


def _find_scored(source: SystemsSource, measure: Measure) -> Systems:
    """Two systems that differ least, in units of u: baselines, else published entries too."""
    if source.spec is None or source.repository is None or source.options.vault is None:
        raise OptionError("which two systems? --runs A B, or a board and its --vault")
    root = source.repository.root
    vault = Vault.open(source.options.vault.absolute(), board=root, read_only=True)
    every = read_dev_scores(vault, source.spec, measure)
    known = vault.history().submissions
    baselines = {name: scores for name, scores in every.items() if known[name].baseline}
    unit = find_unit(baselines) or find_unit(every)
    if unit is not None:
        queries = sorted(every[unit.a].keys() & every[unit.b].keys())
        rows = {
            name: np.array([scores[query] for query in queries])
            for name, scores in every.items()
            if scores.keys() >= set(queries)
        }
        return Systems(
            names=(unit.a, unit.b),
            pair=_pair(rows[unit.a], rows[unit.b], "on any query"),
            measure=str(measure),
            baselines={name: row for name, row in rows.items() if name in baselines},
        )
    raise SetupError(
        "the vault has no dev scores of two baselines or published entries; name two runs: "
        "--runs A B, or add a baseline: heldout board baseline"
    )


def units_apart(pair: boards.Exchange) -> float:
    """Return how far the means of two systems lie apart, in units of u."""
    return abs(float(pair.a.mean()) - float(pair.b.mean())) / pair.unit


def read_dev_scores(vault: Vault, spec: BoardSpec, measure: Measure) -> dict[str, dict[str, float]]:
    """Published entry or baseline -> dev query -> score by this measure."""
    dev = _dev_set(spec)
    views = [
        view.name
        for view in spec.views
        if (view.set, view.labels) == (dev, None)
        and parse_measure(view.measure) == measure
        and not view.files
    ]
    found: dict[str, dict[str, float]] = {}
    for submission in vault.history().submissions.values():
        scores = read_scores(vault, submission.id) if submission.status == "published" else None
        known = {} if scores is None else scores.views
        for name in [name for name in views if name in known][:1]:
            per_query = known[name].per_query
            found[submission.id] = {q: s for q, s in per_query.items() if s is not None}
    return found


def _pair(a: boards.Scores, b: boards.Scores, where: str) -> boards.Exchange:
    """Make systems exchangeable; refuse two that never differ."""
    try:
        return boards.exchange(a, b)
    except ValueError:
        found = f"two systems whose scores do not differ {where}"
        raise InputError.of("redteam-runs", "--runs", found) from None


_DECIMALS = 3
_FEWEST = 3
"""Runs of an attacker: a question, another one, and what was learnt."""
_QUICK = ("weighted vote", "staircase", "staircase, last step free")
_USUAL_RULES = ("rounded", "clear")
_GAPS = (0.0, 8.0, 16.0, 32.0, 48.0)
_USUAL = 16.0
_SEEDS = 200
_FEW = 40
"""Games of each attack that answer within a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameOptions:
    """Which games are played, and how often."""

    queries: Annotated[
        int | None,
        Opt(
            "Number of queries to draw; with replacement if the set is smaller [all].",
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
    thorough: Annotated[
        bool,
        Opt("Every attack on every rule, with baselines 0 to 48 u below and 200 games each."),
    ] = False
    seeds: Annotated[
        int | None,
        Opt("Games of each attack [40; with --thorough 200].", least=1),
    ] = None
    seed: Seed = 0
    releases: Annotated[
        tuple[str, ...],
        Opt(
            "Rule to attack: rounded or clear, with +feedback or +noise after it; repeat it for "
            "more [the board's own and clear; rounded and clear without a board].",
            names=("--release",),
            metavar="RULE",
        ),
    ] = ()
    attacks: Annotated[
        tuple[str, ...],
        Opt(
            "Attack to play; repeat it for more [the strongest three].",
            names=("--attack",),
            choices=tuple(ATTACKS),
        ),
    ] = ()
    gaps: Annotated[
        tuple[float, ...],
        Opt(
            "Gap of the best baseline below the systems, in u. Repeatable [16, and the board's "
            "own].",
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
        left_out: baselines that could not be made.
    """

    systems: Systems
    plan: game.GamePlan
    spec: BoardSpec | None
    lines: tuple[game.AttackLine, ...]
    fresh: tuple[game.AttackLine, ...]
    left_out: tuple[float, ...]

    @property
    def own(self) -> str | None:
        """Name of the board's own rule."""
        return None if self.spec is None else boards.own_rule(self.spec).name

    @property
    def conclusion(self) -> str:
        """The strongest attack on the board's rule, and which rule to set."""
        return game.conclude(
            self.fresh,
            own=self.own or "",
            unit=self.systems.pair.unit,
            attacks=len({line.attack for line in self.lines}),
        )

    @property
    def document(self) -> dict[str, Any]:
        """The whole of it for JSON."""
        pair = self.systems.pair
        return {
            "answer": self.conclusion,
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
            "conclusion": self.conclusion,
        }


def play_board(
    source: SystemsSource,
    options: GameOptions,
    *,
    progress: Progress = SILENT,
    executor: Executor | None = None,
) -> Played:
    """Play attacks against rules: the strongest against the board's own, or all against all.

    Args:
        source: where the systems come from.
        options: which games, and how many.
        progress: hears of each attack.
        executor: where to play; `None` for processes here.

    Raises:
        OptionError, SetupError: as `find_systems`.
        InputError: as `find_systems`; codes `redteam-release`, `redteam-gap`.
    """
    spec = source.spec
    seeds = options.seeds or (_SEEDS if options.thorough else _FEW)
    systems = find_systems(source)
    if options.queries is not None:
        systems = draw(systems, options.queries, seed=options.seed)
    declared = ReleaseRule().submissions if spec is None else spec.release.submissions
    plan = game.GamePlan(
        submissions=options.submissions or max(declared, _FEWEST), seed=options.seed
    )
    rules = _choose_rules(options, spec)
    made, left_out = _choose_baselines(systems, options, rules)
    cases = [
        game.AttackCase(attack=attack, named=named, baseline=baseline)
        for named in rules
        for baseline in made
        for attack in options.attacks or (ATTACKS if options.thorough else _QUICK)
    ]
    with progress.steps("attacks", len(cases) + len(rules) * len(made)) as done:
        pair = systems.pair
        lines = [*game.play_cases(cases, pair, plan, games=seeds, done=done, executor=executor)]
        fresh = game.play_worst_again(
            lines, cases, pair, plan, games=seeds, done=done, executor=executor
        )
    return Played(
        systems=systems,
        plan=plan,
        spec=spec,
        lines=tuple(lines),
        fresh=tuple(fresh),
        left_out=left_out,
    )


def best_baseline(systems: Systems) -> boards.Scores:
    """Scores of the board's best baseline; there is at least one."""
    return max(systems.baselines.values(), key=np.mean)


def _choose_rules(options: GameOptions, spec: BoardSpec | None) -> list[boards.NamedRule]:
    """Those that were named, else the board's own and the recommended one, or all; each once."""
    decimals = _DECIMALS if spec is None else spec.decimals
    given = ReleaseRule() if spec is None else spec.release
    own = [] if options.releases or spec is None else [boards.own_rule(spec)]
    usual = boards.COMPARED if options.thorough else _USUAL_RULES[spec is not None :]
    chosen = [
        boards.parse_rule(name, given, decimals=decimals, path="--release")
        for name in options.releases or usual
    ]
    return list({named.name: named for named in (*own, *chosen)}.values())


def _choose_baselines(
    systems: Systems, options: GameOptions, rules: Sequence[boards.NamedRule]
) -> tuple[list[game.Baseline], tuple[float, ...]]:
    """Baselines so far below the systems, and the best of the board's own; and those left out.

    Raises:
        InputError: none of them can be made.
    """
    pair, gaps = systems.pair, options.gaps
    room = pair.truth / pair.unit * min(named.ranking_share for named in rules) ** 0.5
    weak = min(systems.baselines.values(), key=np.mean, default=np.zeros(pair.queries))
    usual = _GAPS if options.thorough else (min(_USUAL, np.floor(room)),)
    wanted = gaps or usual
    made: list[game.Baseline] = [game.Weak(gap=gap, scores=weak) for gap in wanted if gap <= room]
    if not gaps and systems.baselines:
        made.append(best_baseline(systems))
    if not made:
        found = f"{min(wanted):g} u, where the systems score {pair.truth:.4f}"
        raise InputError.of("redteam-gap", "--gap", found, room=room)
    return made, tuple(gap for gap in wanted if gap > room)
