"""`heldout redteam`: attackers against a board's release rule, before it opens."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import msgspec
import numpy as np

from heldout.board.rules.release import ReleaseRule
from heldout.board.rules.spec import BoardSpec
from heldout.board.store.repository import find_board
from heldout.cli.options import add_option, json_option
from heldout.cli.printing import answers, number, print_facts, print_json, print_table, progress
from heldout.errors import InputError, plural, printable
from heldout.redteam.attacks import ATTACKS
from heldout.redteam.boards import COMPARED, NamedRule, own_rule, parse_rule
from heldout.redteam.game import PLANTED, Baseline, Plan, Weak
from heldout.redteam.honest import HonestLine, play_honest
from heldout.redteam.releases import Scores
from heldout.redteam.report import (
    OWN,
    Case,
    Line,
    conclude,
    draw_chart,
    play_cases,
    play_worst_again,
)
from heldout.redteam.systems import Source, Systems, draw, find_systems, units_apart
from heldout.scoring.options import RunOrder
from heldout.trec.accelerators import find_accelerators
from heldout.trec.orders import Order

_DECIMALS = 3
_FEWEST = 3
"""Runs of an attacker: a question, another one, and what was learnt."""
_YEAR = 365.25
_YEARS_PER_GAME = 10
_GAPS = (0.0, 8.0, 16.0)
_OTHERS = 5
_MOST_APART = 3.0
_PARTIAL = (
    "runs.complete is false: a run that answers one query gets the score of that query alone, and "
    "no review sees it (docs/redteam.md)"
)
_UNEQUAL = (
    "take two that are about equally good: by as much as these differ u is too large, and every "
    "gain looks small in it"
)
_HEADER = (
    *("attack", "release", "baseline", "gain", "in u", "±", "worth", "±", "any"),
    *("4.5 u published", "6 u published"),
)
_HONEST = (
    *("release", "see a score", "records", "false", "steps at once", "by the end", "days"),
    *("unpublished", "small steps unpublished"),
)
_LEGEND = (
    ("gain", "best run that stands for the attacker on the board, above the truth; 0 is right"),
    ("worth", "its last run, published or not, above the truth, in u"),
    ("±", "standard error, in u"),
    ("any", "games in which the attacker gets a score that ranks"),
    ("published", "games in which a system that is so much better gets a score afterwards"),
)
_HONEST_LEGEND = (
    ("a year", "60 teams, 240 runs, 6 of them steps of 1 to 6 u beyond everybody, no attacker"),
    ("steps", "those of 3 u or more: the system, or one as good, has a published score"),
    ("days", "median wait for it"),
    ("unpublished", "how much better the best system sent is than the best with a score, in u"),
    ("", "and so with 27 steps of 0.2 to 1.2 u instead"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
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


def _two_runs(
    _context: click.Context, _option: click.Parameter, runs: tuple[str, str] | None
) -> tuple[str, str] | None:
    """Refuse an option in the place of the second run."""
    if runs is not None and any(run.startswith("--") for run in runs):
        raise click.BadParameter(f"two runs are needed, --runs A B; found {' '.join(runs)}")
    return runs


@click.command()
@click.option(
    "--board",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The board whose rule is attacked [without --qrels, the one you stand in].",
)
@click.option(
    "--vault",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="HELDOUT_VAULT",
    metavar="DIR",
    help="Without --runs, take systems and baselines from its dev scores [or HELDOUT_VAULT].",
)
@click.option(
    "--runs",
    nargs=2,
    metavar="A B",
    callback=_two_runs,
    help="Two runs that are about equally good: the attacker's systems.",
)
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="RUN",
    help="A baseline of the board, beside --runs; repeat it for more.",
)
@click.option("--qrels", metavar="Q", help="Their judgments [the board's, of its dev set].")
@click.option("-m", "--measure", metavar="MEASURE", help="[that of the board's primary view]")
@click.option(
    "--queries",
    type=click.IntRange(min=2),
    metavar="N",
    help="Draw so many queries, with replacement if there are fewer [all].",
)
@click.option(
    "--submissions",
    type=click.IntRange(min=_FEWEST, max=1_000_000),
    metavar="K",
    help="Runs of an attacker, under any number of names [as many as the board declares, or 300].",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Games of each attack on the board's rule, and of the worst on every rule.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed."
)
@click.option(
    "--release",
    "releases",
    multiple=True,
    metavar="RULE",
    help="rounded, ladder, ladder=Z, step, step=S or ratchet, with +feedback or +noise after it; "
    "repeat it for more [all, and the board's own].",
)
@click.option(
    "--attack",
    "attacks",
    multiple=True,
    type=click.Choice(list(ATTACKS)),
    help="Repeat it for more [all].",
)
@click.option(
    "--gap",
    "gaps",
    multiple=True,
    type=click.FloatRange(min=0, max=1000),
    metavar="U",
    help="A best baseline so many u below the systems; repeat it for more [0, 8, 16, and the "
    "board's own].",
)
@add_option("order", RunOrder, None)
@json_option
@click.option("--markdown", is_flag=True, help="The tables in Markdown.")
@click.option(
    "--chart",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.svg",
    help="Also draw the worst attacks, as SVG.",
)
def redteam(
    *,
    folder: Path | None,
    vault: Path | None,
    runs: tuple[str, str] | None,
    baselines: tuple[str, ...],
    qrels: str | None,
    measure: str | None,
    queries: int | None,
    submissions: int | None,
    seeds: int,
    seed: int,
    releases: tuple[str, ...],
    attacks: tuple[str, ...],
    gaps: tuple[float, ...],
    order: Order | None,
    as_json: bool,
    markdown: bool,
    chart: Path | None,
) -> None:
    """Play attacks against a board's release rule on dev data, before it opens.

    Two systems are exchanged at random, query by query, so that none is better than the other:
    whatever an attacker gains by choosing between them is fitted to the labels. docs/redteam.md
    explains the game, the attacks and the columns.

    \b
    Example:
      heldout redteam --runs bm25.tsv dense.tsv --qrels dev.qrels -m RR@10
      heldout redteam --board kb --runs bm25.tsv dense.tsv --baseline tfidf.tsv --seeds 50
    """
    repository = find_board(folder or Path()) if folder or not qrels else None
    spec = None if repository is None else repository.tree_spec()  # an edit may be tried
    systems = find_systems(
        Source(
            repository=repository,
            spec=spec,
            vault=vault,
            runs=runs,
            baselines=baselines,
            qrels=qrels,
            measure=measure,
            order=order,
            accelerators=find_accelerators(os.environ),
        )
    )
    systems = systems if queries is None else draw(systems, queries, seed=seed)
    declared = ReleaseRule().submissions if spec is None else spec.release.submissions
    plan = Plan(submissions=submissions or max(declared, _FEWEST), seed=seed)
    rules = _choose_rules(releases, spec, plan.submissions)
    made, left_out = _choose_baselines(systems, gaps, rules)
    cases = [
        Case(attack=attack, named=named, baseline=baseline)
        for named in rules
        for baseline in made
        for attack in attacks or ATTACKS
    ]
    own = None if spec is None else own_rule(spec).name
    main = [case for case in cases if releases or own in (None, case.named.name)]
    rest = [case for case in cases if case not in main]
    few = max(1, seeds // _OTHERS)
    with progress("attacks", len(cases) + len(rules) * len(made)) as done:
        pair = systems.pair
        lines = [*play_cases(main, pair, plan, games=seeds, done=done)]
        lines += play_cases(rest, pair, plan, games=few, done=done)
        fresh = play_worst_again(lines, [*main, *rest], pair, plan, games=seeds, done=done)
    years = max(1, seeds // _YEARS_PER_GAME)
    own_is_there = bool(systems.baselines) and not gaps
    usual = made[-1] if own_is_there else made[len(made) // 2]
    honest = [play_honest(named, pair, usual, plan, years=years) for named in rules]
    result = _Result(
        systems=systems,
        plan=plan,
        spec=spec,
        lines=tuple(lines),
        fresh=tuple(fresh),
        honest=tuple(honest),
        left_out=left_out,
    )
    if chart is not None:
        chart.write_text(draw_chart(fresh), "utf-8")
    if as_json:
        print_json(_as_json(result))
    elif markdown:
        _print_markdown(result)
    else:
        _print(result)


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
        made.append(_best(systems))
    if not made:
        raise InputError.of(
            "redteam-gap",
            "--gap",
            f"{min(wanted):g} u, where the systems score {pair.truth:.4f}",
            f"at most {room:.1f} u: a baseline cannot score below 0",
        )
    return made, tuple(gap for gap in wanted if gap > room)


def _best(systems: Systems) -> Scores:
    return max(systems.baselines.values(), key=np.mean)


def _as_json(result: _Result) -> dict[str, object]:
    pair = result.systems.pair
    return {
        "queries": pair.queries,
        "se": pair.unit,
        "truth": pair.truth,
        "apart": units_apart(pair),
        "measure": result.systems.measure,
        "systems": list(result.systems.names),
        "baselines": {name: float(s.mean()) for name, s in result.systems.baselines.items()},
        "seed": result.plan.seed,
        "own_release": None if result.spec is None else own_rule(result.spec).name,
        "attacks": [asdict(line) for line in (*result.lines, *result.fresh)],
        "honest": [asdict(line) for line in result.honest],
        "conclusion": _conclude(result),
    }


def _conclude(result: _Result) -> str:
    own = "" if result.spec is None else own_rule(result.spec).name
    return conclude(result.fresh, own=own)


def _facts(result: _Result) -> list[tuple[str, str]]:
    pair, plan = result.systems.pair, result.plan
    a, b = result.systems.names
    means = f"{number(float(pair.a.mean()))} and {number(float(pair.b.mean()))}"
    games = plural(result.fresh[0].seeds, "game")
    facts = [
        ("systems", f"{a} and {b}: {result.systems.measure} {means}, exchanged per query"),
        ("queries", f"{pair.queries:,}; the truth of every run is {number(pair.truth)}"),
        ("u", f"{pair.unit:.5f}, the standard error of the systems' difference"),
        ("games", f"{games} of {plan.submissions:,} submissions, seed {plan.seed}"),
        ("planted", f"systems better by {PLANTED[0]:g} and {PLANTED[1]:g} u, sent afterwards"),
    ]
    if result.systems.baselines:
        below = (pair.truth - float(_best(result.systems).mean())) / pair.unit
        facts.append(("baseline", f"{OWN} best one lies {below:.1f} u below the systems"))
    facts += [
        ("left out", f"a baseline {gap:g} u below: the systems do not score so high")
        for gap in result.left_out
    ]
    apart = units_apart(pair)
    if apart > _MOST_APART:
        facts.append(("warning", f"the systems differ by {apart:.1f} u; {_UNEQUAL}"))
    return facts if result.spec is None else [*facts, *_board_facts(result.spec, plan)]


def _board_facts(spec: BoardSpec, plan: Plan) -> list[tuple[str, str]]:
    years = plan.submissions / spec.policy.quota * spec.policy.quota_days / _YEAR
    quota = f"{spec.policy.quota} in {plural(spec.policy.quota_days, 'day')}"
    facts = [
        ("release", f"the board's own: {own_rule(spec).name}"),
        ("quota", f"{plan.submissions:,} submissions at {quota} take one team {years:.1f} years"),
    ]
    return facts if spec.runs.complete else [*facts, ("warning", _PARTIAL)]


def _print(result: _Result) -> None:
    console = answers()
    print_facts(console, _facts(result))
    for title, header, rows, legend in _tables(result):
        console.print()
        console.print(title)
        print_table(console, header, rows, left=("release", "baseline"))
        if legend:
            console.print()
            print_facts(console, legend)
    if said := _conclude(result):
        console.print()
        console.print(said)


_Table = tuple[str, Sequence[str], list[list[str]], Sequence[tuple[str, str]]]


def _tables(result: _Result) -> list[_Table]:
    """Title, header, rows, legend."""
    fresh = "The worst attack for each rule and baseline, played again on fresh seeds"
    return [
        ("Every attack", _HEADER, [_cells(line) for line in result.lines], _LEGEND),
        (fresh, _HEADER, [_cells(line) for line in result.fresh], ()),
        (
            f"Honest teams, {plural(result.honest[0].years, 'year')} of each kind",
            _HONEST,
            [_honest_cells(line) for line in result.honest],
            _HONEST_LEGEND,
        ),
    ]


def _print_markdown(result: _Result) -> None:
    for title, header, rows, _ in _tables(result):
        click.echo(f"{title}\n")
        left = sum(name in ("attack", "release", "baseline") for name in header)
        for row in [header, ["---"] * left + ["--:"] * (len(header) - left), *rows]:
            click.echo(f"| {' | '.join(printable(cell) for cell in row)} |")
        click.echo("")


def _cells(line: Line) -> list[str]:
    root = line.seeds**0.5
    return [
        line.attack,
        line.release,
        line.baseline,
        _signed(line.mean_gain, 4),
        _signed(line.mean_gain_se, 2),
        number(None if line.gain_sd is None else line.gain_sd / root, decimals=2),
        _signed(line.worth, 2),
        number(None if line.worth_sd is None else line.worth_sd / root, decimals=2),
        f"{line.record_share:.0%}",
        f"{line.utility:.0%}",
        f"{line.utility_6:.0%}",
    ]


def _honest_cells(line: HonestLine) -> list[str]:
    return [
        line.release,
        f"{line.seen:.0%}",
        number(line.records, decimals=1),
        _share(line.false_records),
        _share(line.at_once),
        _share(line.in_time),
        number(line.days, decimals=0),
        f"{line.unpublished:.1f} u",
        f"{line.creeping:.1f} u",
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _signed(value: float, decimals: int) -> str:
    """The value without the sign of what shows as zero."""
    return number(round(value, decimals) + 0.0, decimals=decimals)
