"""Two systems with their scores per query: from run files, or from a board's vault."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np

from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.kept import read_scores
from heldout.board.standings.standings import FEWEST_DIFFERENT
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.errors import InputError, OptionError, Problem, SetupError
from heldout.options import Opt
from heldout.redteam.releases import Exchange, Scores, exchange
from heldout.scoring.measures import Measure, parse_measure
from heldout.scoring.options import RunOrder
from heldout.scoring.run_files import run_name
from heldout.scoring.score import Reading
from heldout.trec.accelerators import Accelerators
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.reading.sources import read_file

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
    pair: Exchange
    measure: str
    baselines: Mapping[str, Scores] = field(default_factory=dict)


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
            "The board whose rule is attacked [without --qrels, the one you stand in].",
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
            "A baseline of the board, beside --runs; repeat it for more.",
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
class Source:
    """Where two systems come from.

    Attributes:
        options: what was asked for.
        repository: the board, `None` for none.
        spec: its rules, `None` likewise.
        accelerators: how runs are read.
    """

    options: SystemOptions
    repository: Repository | None = None
    spec: BoardSpec | None = None
    accelerators: Accelerators = field(default_factory=Accelerators)


def find_systems(source: Source) -> Systems:
    """Two systems: the runs that are named, else some that the vault has dev scores of.

    Raises:
        OptionError: something is not named.
        InputError: a file has errors, or the systems never differ.
        SetupError: the board has no open labels, or the vault no dev scores.
    """
    measure = _choose_measure(source)
    if source.options.runs is None:
        if source.options.baselines:
            raise OptionError("--baseline goes with --runs A B, scored by the same judgments")
        return _find_scored(source, measure)
    files = (*source.options.runs, *source.options.baselines)
    a, b, *rows = _score_runs(files, source, measure)
    baselines = dict(zip(map(run_name, source.options.baselines), rows, strict=True))
    names = _names(*source.options.runs)
    return Systems(names=names, pair=_pair(a, b), measure=str(measure), baselines=baselines)


def draw(systems: Systems, queries: int, *, seed: int) -> Systems:
    """The same systems on queries drawn at random, with replacement if there are fewer.

    Raises:
        InputError: they do not differ on any of those.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_DRAW,)))
    known = systems.pair.queries
    chosen = rng.choice(known, queries, replace=queries > known)
    try:
        pair = exchange(systems.pair.a[chosen], systems.pair.b[chosen])
    except ValueError:
        raise InputError(_equal(f"on any of the {queries:,} queries drawn")) from None
    baselines = {name: scores[chosen] for name, scores in systems.baselines.items()}
    return replace(systems, pair=pair, baselines=baselines)


def _choose_measure(source: Source) -> Measure:
    name = source.options.measure
    if name is None and source.spec is not None:
        name = source.spec.view(source.spec.primary).measure
    if name is None:
        raise OptionError("which measure? for example -m RR@10")
    measure = parse_measure(name, path="-m")
    if measure.kind.better != "higher":
        raise InputError.of(
            "redteam-measure",
            "-m",
            f"{measure}, where lower is better",
            "a measure where higher is better",
        )
    return measure


def _choose_order(source: Source) -> Order | None:
    if source.options.order is None and source.spec is not None:
        return source.spec.runs.order
    return source.options.order


def _read_qrels(source: Source) -> Qrels:
    if source.options.qrels is not None:
        return read_file(read_qrels, source.options.qrels)
    if source.spec is None or source.repository is None:
        raise OptionError("which judgments? --qrels Q, or --board DIR")
    return source.repository.qrels(source.spec.sets[_dev_set(source.spec)].qrels or "")


def _dev_set(spec: BoardSpec) -> str:
    """The first query set whose labels are in the open."""
    found = next((name for name, files in spec.sets.items() if not files.held_out), None)
    if found is None:
        raise SetupError("the board has no labels in the open; name others: --qrels Q --runs A B")
    return found


def _score_runs(runs: Sequence[str], source: Source, measure: Measure) -> list[Scores]:
    reading = Reading(accelerators=source.accelerators)
    scored = reading.score_whole(runs, _read_qrels(source), [measure], order=_choose_order(source))
    return [run.evaluation.scores[measure].values for run in scored]


def _names(a: str, b: str) -> tuple[str, str]:
    """Names of two run files, paths where names are the same."""
    names = run_name(a), run_name(b)
    return (a, b) if names[0] == names[1] else names


def _find_scored(source: Source, measure: Measure) -> Systems:
    """Two systems that differ least, in units of u: baselines, else published entries too.

    Of a single system the other is the same one with its scores in another order of the queries.
    """
    if source.spec is None or source.repository is None or source.options.vault is None:
        raise OptionError("which two systems? --runs A B, or a board and its --vault")
    root = source.repository.root
    vault = Vault.open(source.options.vault.absolute(), board=root, read_only=True)
    every = _dev_scores(vault, source.spec, measure)
    baselines = {name: every[name] for name, s in vault.history().submissions.items() if s.baseline}
    pair = _nearest(baselines) or _nearest(every)
    if pair is not None:
        queries = sorted(every[pair.names[0]].keys() & every[pair.names[1]].keys())
        rows = {
            name: np.array([scores[query] for query in queries])
            for name, scores in baselines.items()
            if scores.keys() >= set(queries)
        }
        return replace(pair, measure=str(measure), baselines=rows)
    for name, scores in every.items():
        values = np.array(list(scores.values()))
        shuffled = np.random.default_rng(0).permutation(values)
        if (values != shuffled).any():
            names = (name, f"{name}, its scores in another order of the queries")
            return Systems(names=names, pair=_pair(values, shuffled), measure=str(measure))
    raise SetupError(
        "the vault has no dev scores of a baseline or a published entry; name two runs: "
        "--runs A B, or add a baseline: heldout board baseline"
    )


def _nearest(found: Mapping[str, Mapping[str, float]]) -> Systems | None:
    """The two that differ least by u, near copies last; `None` where no two differ."""
    made: list[tuple[bool, Systems]] = []
    for one, other in combinations(found, 2):
        queries = sorted(found[one].keys() & found[other].keys())
        a, b = (np.array([found[name][query] for query in queries]) for name in (one, other))
        if different := int((a != b).sum()):
            systems = Systems(names=(one, other), pair=_pair(a, b), measure="")
            made.append((different < FEWEST_DIFFERENT, systems))
    made.sort(key=lambda one: (one[0], units_apart(one[1].pair)))
    return made[0][1] if made else None


def units_apart(pair: Exchange) -> float:
    """How far the means of two systems lie apart, in units of u."""
    return abs(float(pair.a.mean()) - float(pair.b.mean())) / pair.unit


def _dev_scores(vault: Vault, spec: BoardSpec, measure: Measure) -> dict[str, dict[str, float]]:
    """Published entry or baseline -> dev query -> score by this measure."""
    dev = _dev_set(spec)
    views = [
        view.name
        for view in spec.views
        if view.set == dev
        and parse_measure(view.measure) == measure
        and view.labels is None
        and not view.files
    ]
    found: dict[str, dict[str, float]] = {}
    for submission in vault.history().submissions.values():
        taken = submission.status == "published"
        scores = read_scores(vault, submission.id) if taken else None
        known = {} if scores is None else scores.views
        for name in [name for name in views if name in known][:1]:
            per_query = known[name].per_query
            found[submission.id] = {q: s for q, s in per_query.items() if s is not None}
    return found


def _pair(a: Scores, b: Scores) -> Exchange:
    try:
        return exchange(a, b)
    except ValueError:
        raise InputError(_equal("on any query")) from None


def _equal(where: str) -> Problem:
    return Problem(
        "redteam-runs",
        "--runs",
        f"two systems whose scores do not differ {where}",
        "two systems that differ",
    )
