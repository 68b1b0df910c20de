"""`heldout redteam`: attackers against a board's release, before it opens."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import click
import msgspec

from heldout.board.rules.release import ReleaseRule
from heldout.board.rules.spec import BoardSpec
from heldout.charts.extras import need
from heldout.cli.console import progress
from heldout.cli.context import reports_disk
from heldout.cli.files import json_option, order_option
from heldout.cli.printing import (
    answers,
    number,
    plural,
    print_facts,
    print_json,
    print_table,
)
from heldout.cli.systems import Source, Systems, draw, find_systems, units_apart
from heldout.errors import printable
from heldout.redteam.attacks import ATTACKS
from heldout.redteam.chart import draw_chart
from heldout.redteam.game import PLANTED, Plan, State
from heldout.redteam.releases import COMPARED, NamedRelease, name_rule, parse_release
from heldout.redteam.report import Line, conclude, play_table
from heldout.store.repository import find_board
from heldout.trec.ranking import Order

__all__ = ["redteam"]

_DECIMALS = 3
_YEAR = 365.25
_PARTIAL = (
    "runs.complete is false: a run that answers one query is told about that query alone, and "
    "nobody has to look at it; docs/redteam.md says what it costs to keep it on"
)
_MOST_APART = 3.0
_UNEQUAL = (
    "take two that are about equally good: by as much as these differ u is too large, and every "
    "gain looks small in it"
)
_HEADER = (
    *("attack", "release", "gain", "in u", "±", "false ≥ u", "planted told", "planted above"),
    "labels",
)

_LEGEND = (
    ("gain", "what stands on the board for the attacker above the truth; 0 is right"),
    ("±", "standard error of the mean gain, in u"),
    ("false ≥ u", "games in which a score of u or more above the truth was released"),
    ("labels", "read: queries with the better system chosen, less those with the worse"),
    ("planted", "games in which the planted system is told a score, and one above all before"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """What was played, and what came of it.

    Attributes:
        systems: the exchangeable systems.
        plan: how a game is played.
        spec: the board's rules, `None` without a board.
        lines: one for each attack and release.
    """

    systems: Systems
    plan: Plan
    spec: BoardSpec | None
    lines: tuple[Line, ...]


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
    help="The board whose release is attacked [without --qrels, the one you stand in].",
)
@click.option(
    "--vault",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="HELDOUT_VAULT",
    metavar="DIR",
    help="Without --runs, take two systems from its scores [or HELDOUT_VAULT].",
)
@click.option(
    "--runs",
    nargs=2,
    metavar="A B",
    callback=_two_runs,
    help="Two runs that are about equally good.",
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
    type=click.IntRange(min=2, max=1_000_000),
    metavar="K",
    help="Submissions of an attacker [as many as the board declares, or 300].",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=200, show_default=True, help="Games of a kind."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of every draw."
)
@click.option(
    "--release",
    "releases",
    multiple=True,
    metavar="RULE",
    help="exact, rounded, ladder, ladder=Z, step or step=S; repeat it for more [all, and its own].",
)
@click.option(
    "--attack",
    "attacks",
    multiple=True,
    type=click.Choice(list(ATTACKS)),
    help="Repeat it for more [all].",
)
@click.option(
    "--state",
    type=click.Choice(get_args(State)),
    help="Whose best a Ladder goes by: the team's, the same begun at a baseline, or anybody's. "
    "If not given, as the board has it.",
)
@click.option(
    "--complete/--partial",
    "complete",
    default=None,
    help="Whether a run that leaves queries out is refused. If not given, as the board has it.",
)
@order_option
@json_option
@click.option("--markdown", is_flag=True, help="The table in Markdown.")
@click.option(
    "--chart",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.svg",
    help="Also draw the gains (pip install 'heldout[site]').",
)
@reports_disk
def redteam(
    *,
    folder: Path | None,
    vault: Path | None,
    runs: tuple[str, str] | None,
    qrels: str | None,
    measure: str | None,
    queries: int | None,
    submissions: int | None,
    seeds: int,
    seed: int,
    releases: tuple[str, ...],
    attacks: tuple[str, ...],
    state: State | None,
    complete: bool | None,
    order: Order | None,
    as_json: bool,
    markdown: bool,
    chart: Path | None,
) -> None:
    """Play attacks against a board's release on dev data, before it opens.

    Two systems are exchanged at random, query by query, so that nobody is better than anybody:
    whatever an attacker gains by choosing between them is fitted to the labels. docs/redteam.md
    explains the game, the attacks and the columns.

    \b
    Example:
      heldout redteam --runs bm25.tsv dense.tsv --qrels dev.qrels -m RR@10
      heldout redteam --board kb --runs bm25.tsv dense.tsv --seeds 50
    """
    if chart is not None:
        need("vl_convert")
    repository = find_board(folder or Path()) if folder or not qrels else None
    spec = None if repository is None else repository.tree_spec()  # an edit may be tried
    systems = find_systems(
        Source(
            repository=repository,
            spec=spec,
            vault=vault,
            runs=runs,
            qrels=qrels,
            measure=measure,
            order=order,
        )
    )
    systems = systems if queries is None else draw(systems, queries, seed=seed)
    rule = ReleaseRule() if spec is None else spec.release
    begin: State = "baseline" if rule.begin == "baseline" else "team"
    asks = complete if complete is not None else spec is None or spec.runs.complete
    plan = Plan(
        submissions=submissions or rule.submissions,
        seed=seed,
        state=state or begin,
        complete=asks,
    )
    played = _choose_releases(releases, spec, plan.submissions)
    chosen = attacks or tuple(ATTACKS)
    with progress("games", len(chosen) * len(played) * seeds) as done:
        lines = tuple(play_table(systems.pair, chosen, played, plan, games=seeds, done=done))
    result = _Result(systems=systems, plan=plan, spec=spec, lines=lines)
    if chart is not None:
        chart.write_text(draw_chart(lines), "utf-8")
    if as_json:
        print_json(_as_json(result))
    elif markdown:
        _print_markdown(result)
    else:
        _print(result)


def _choose_releases(
    names: Sequence[str], spec: BoardSpec | None, submissions: int
) -> list[NamedRelease]:
    """Those that were named, else those of the table and the board's own; each once."""
    decimals = _DECIMALS if spec is None else spec.decimals
    rule = ReleaseRule() if spec is None else spec.held_out_release
    views = 1 if spec is None else spec.held_out_views
    given = ReleaseRule() if spec is None else spec.release
    given = msgspec.structs.replace(given, submissions=submissions).over(views)
    chosen = [
        parse_release(name, given, decimals=decimals, path="--release")
        for name in names or COMPARED
    ]
    own = [] if names or spec is None else [name_rule(rule, decimals=decimals)]
    return list({release.name: release for release in (*chosen, *own)}.values())


def _as_json(result: _Result) -> dict[str, object]:
    pair = result.systems.pair
    return {
        "queries": pair.queries,
        "se": pair.unit,
        "truth": pair.truth,
        "apart": units_apart(pair),
        "measure": result.systems.measure,
        "systems": list(result.systems.names),
        "state": result.plan.state,
        "complete": result.plan.complete,
        "seed": result.plan.seed,
        "own_release": None if result.spec is None else _own(result.spec),
        "attacks": [asdict(line) for line in result.lines],
        "conclusion": _conclude(result),
    }


def _conclude(result: _Result) -> str:
    own = "" if result.spec is None else _own(result.spec)
    return conclude(result.lines, result.systems.measure, own=own)


def _own(spec: BoardSpec) -> str:
    return name_rule(spec.held_out_release, decimals=spec.decimals).name


def _facts(result: _Result) -> list[tuple[str, str]]:
    pair, plan = result.systems.pair, result.plan
    a, b = result.systems.names
    means = f"{number(float(pair.a.mean()))} and {number(float(pair.b.mean()))}"
    games = plural(result.lines[0].seeds, "game")
    facts = [
        ("systems", f"{a} and {b}: {result.systems.measure} {means}, exchanged per query"),
        ("queries", f"{pair.queries:,}; the truth of every run is {number(pair.truth)}"),
        ("u", f"{pair.unit:.5f}, the standard error of the systems' difference"),
        ("games", f"{games} of {plan.submissions:,} submissions, seed {plan.seed}"),
        ("planted", f"a system better by {PLANTED:g} u, sent after the attack"),
    ]
    apart = units_apart(pair)
    if apart > _MOST_APART:
        facts.append(("warning", f"the systems differ by {apart:.1f} u; {_UNEQUAL}"))
    facts += _refused_facts(result.lines)
    return facts if result.spec is None else [*facts, *_board_facts(result.spec, plan)]


def _refused_facts(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """Of which attacks most runs never came to be scored."""
    refused = {line.attack: line for line in lines if line.refused}
    why = "that leave queries out, and the board asks for all"
    return [
        ("refused", f"{name}: {line.refused:,.0f} of {line.submissions:,} runs {why}")
        for name, line in refused.items()
    ]


def _board_facts(spec: BoardSpec, plan: Plan) -> list[tuple[str, str]]:
    years = plan.submissions / spec.policy.quota * spec.policy.quota_days / _YEAR
    quota = f"{spec.policy.quota} in {plural(spec.policy.quota_days, 'day')}"
    facts = [
        ("release", f"the board's own: {_own(spec)}"),
        ("quota", f"{plan.submissions:,} submissions at {quota} take one team {years:.1f} years"),
    ]
    return facts if spec.runs.complete else [*facts, ("warning", _PARTIAL)]


def _print(result: _Result) -> None:
    console = answers()
    print_facts(console, _facts(result))
    console.print()
    print_table(console, _HEADER, [_cells(line) for line in result.lines], left=("release",))
    console.print()
    print_facts(console, _LEGEND)
    if said := _conclude(result):
        console.print()
        console.print(said)


def _print_markdown(result: _Result) -> None:
    rows = [_HEADER, ["---"] * 2 + ["--:"] * (len(_HEADER) - 2), *map(_cells, result.lines)]
    for row in rows:
        click.echo(f"| {' | '.join(printable(cell) for cell in row)} |")


def _cells(line: Line) -> list[str]:
    error = None if line.gain_sd is None else line.gain_sd / line.seeds**0.5
    return [
        line.attack,
        line.release,
        number(_unsigned_zero(line.mean_gain, 4)),
        number(_unsigned_zero(line.mean_gain_se, 2), decimals=2),
        number(error, decimals=2),
        f"{line.false_release_share:.1%}",
        f"{line.utility:.1%}",
        f"{line.planted_above:.1%}",
        number(_unsigned_zero(line.labels, 1), decimals=1),
    ]


def _unsigned_zero(value: float, decimals: int) -> float:
    """The value as shown, without the sign of what shows as zero."""
    return round(value, decimals) + 0.0
