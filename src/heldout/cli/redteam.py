"""`heldout redteam`: attackers against a board's release rule, before it opens."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from heldout.answers.answer import Answer
from heldout.answers.table import Table, columns
from heldout.cli import context, printing
from heldout.cli.options import Dask, command, open_cluster
from heldout.errors import OptionError
from heldout.options import Json, Opt
from heldout.redteam import boards, game, playing, replay

_LEVEL = 1.96
_COLUMNS = (
    *columns("text", "attack", "release", "baseline"),
    *columns("score", "gain", "in u", "±", "worth", "±", "any"),
    *columns("score", "4.5 u published", "6 u published"),
)
_LEGEND = (
    "gain: best run that stands for the attacker on the board, above the truth; 0 is right",
    "worth: its last run, published or not, above the truth, in u",
    "±: half of a 95% interval; in u beside gain and worth",
    "any: games in which the attacker gets a score that ranks",
    "published: games in which a system that is so much better gets a score afterwards",
)


@command
def redteam(
    *,
    systems: playing.SystemOptions,
    games: playing.GameOptions,
    history: Annotated[
        Path | None,
        Opt(
            "Table of a board, an MS MARCO one or a leaderboard.csv, to replay through each rule; "
            "with --queries.",
            names=("--replay",),
            metavar="FILE.csv",
            path="file",
        ),
    ] = None,
    as_json: Json = False,
    explain: printing.Explain = False,
    every: printing.Every = False,
    dask: Dask = None,
) -> None:
    """Play attacks against a board's release rule on dev data, before it opens.

    Two systems are exchanged at random, query by query, so that none is better than the other:
    whatever an attacker gains by choosing between them is fitted to the labels.
    docs/explanation/redteam.md explains the game, the attacks and the columns.

    \b
    Example:
      heldout redteam --runs bm25.tsv dense.tsv --qrels dev.qrels -m RR@10
      heldout redteam --board kb --vault vault --thorough
      heldout redteam --replay leaderboard.csv --queries 5793
    """
    if history is not None:
        _replay(history, games, as_json=as_json)
        return
    folder = systems.folder
    repository = context.open_board(folder) if folder or not systems.qrels else None
    source = playing.SystemsSource(
        options=systems,
        repository=repository,
        spec=None if repository is None else repository.tree_spec(),  # an edit may be tried
    )
    with open_cluster(dask) as executor:
        result = playing.play_board(source, games, progress=printing.TERMINAL, executor=executor)
    if as_json:
        printing.print_json(result.document)
    else:
        printing.print_answer(
            _answer(result, thorough=games.thorough),
            printing.TableOutput(explain=explain, every=every),
        )


def _replay(table: Path, games: playing.GameOptions, *, as_json: bool) -> None:
    if games.queries is None:
        known = "MS MARCO documents have 5,793, passages 6,837"
        raise OptionError(f"how many held-out queries has the board? --queries N ({known})")
    read = replay.read_history(table.read_bytes(), path=table.name)
    found = replay.replay(read, games.queries, seed=games.seed, progress=printing.TERMINAL)
    if as_json:
        printing.print_json(found.document)
        return
    answer = Answer(
        answer=replay.conclude_replay(found),
        summary=describe_replay(found),
        tables=replay.tabulate_replay(found),
        document=found.document,
    )
    printing.print_answer(answer, printing.TableOutput())


def describe_replay(found: replay.TableReplay) -> list[tuple[str, str]]:
    """Return what was played and assumed, as lines of a name and what there is to say."""
    return printing.fill_facts(
        "replay",
        found=found,
        history=found.history,
        named=found.history.name_entries(),
        empty=found.seasons - len(set((found.history.days // replay.SEASON).tolist())),
        days=replay.SEASON,
        ranking=found.queries - found.feedback,
    )


def _answer(result: playing.Played, *, thorough: bool) -> Answer:
    """The conclusion, what was played, and of each rule the worst attack; or every attack."""
    pair, below = result.systems.pair, None
    if result.systems.baselines:
        below = (pair.truth - float(playing.best_baseline(result.systems).mean())) / pair.unit
    facts = printing.fill_facts(
        "redteam",
        result=result,
        pair=pair,
        plan=result.plan,
        planted=game.PLANTED,
        own=game.OWN,
        below=below,
        apart=playing.units_apart(pair),
        spec=result.spec,
        rule="" if result.spec is None else boards.own_rule(result.spec).name,
        thorough=thorough,
    )
    fresh = "The worst attack for each rule and baseline, played again on fresh seeds"
    worst = "The worst attack on each rule, of all baselines, played again on fresh seeds"
    return Answer(
        answer=result.conclusion,
        summary=facts,
        tables=[_table("Every attack", result.lines, ()), _table(fresh, result.fresh, _LEGEND)],
        short=[_table(worst, game.strongest_lines(result.fresh).values(), _LEGEND)],
        document=result.document,
    )


def _table(title: str, lines: Iterable[game.AttackLine], method: tuple[str, ...]) -> Table:
    return Table(title=title, columns=_COLUMNS, rows=tuple(map(_cells, lines)), method=method)


def _cells(line: game.AttackLine) -> tuple[str, ...]:
    return (
        line.attack,
        line.release,
        line.baseline,
        _signed(line.mean_gain, 4),
        _signed(line.mean_gain_se, 2),
        _reach(line.gain_sd, line),
        _signed(line.worth, 2),
        _reach(line.worth_sd, line),
        *(_part(one, line) for one in (line.record_share, line.utility, line.utility_6)),
    )


def _reach(spread: float | None, line: game.AttackLine) -> str:
    """Half of a 95% interval of a mean."""
    return printing.number(
        None if spread is None else _LEVEL * spread / line.seeds**0.5, decimals=2
    )


def _part(share: float, line: game.AttackLine) -> str:
    """A share of the games with half of its 95% interval, by Agresti and Coull."""
    games = line.seeds + 4
    middle = (share * line.seeds + 2) / games
    return f"{share:.0%} ± {_LEVEL * (middle * (1 - middle) / games) ** 0.5:.0%}"


def _signed(value: float, decimals: int) -> str:
    """The value without the sign of what shows as zero."""
    return printing.number(round(value, decimals) + 0.0, decimals=decimals)
