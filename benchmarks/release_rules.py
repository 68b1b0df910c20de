"""What attackers gain against each release rule, and what it costs honest teams.

    heldout demo demo
    python benchmarks/release_rules.py demo --chart docs/images/redteam.svg     everything
    python benchmarks/release_rules.py demo --release clear --seeds 20     a first look
    python benchmarks/release_rules.py demo --table replay years seasons     what seasons change

The systems are two rankers of the demo that are about equally good, on its dev queries with the
best known answer each (RR@10): BM25 with stemming, and a fusion. The weak baseline is tf-idf,
mixed with them until it lies 0, 8, 16, 32 or 48 u below. More queries than there are come by
drawing with replacement. Every attack plays `--seeds` games against each rule; the worst of each is
played again on fresh seeds. A game takes .05 to .3 seconds of a processor, so that everything takes
two hours of it; red-team.md lists the shorter commands that its tables are from.
"""

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from honest_years import CREEPING, LEAPS, play_honest, play_year, summarise_years
from numpy.typing import NDArray

from heldout.board.rules.release import ReleaseRule, is_clear
from heldout.board.rules.template import SPLIT_ABOVE
from heldout.charts.axes import score_axis
from heldout.charts.plot import Plot, PlotRow, stand_alone
from heldout.charts.svg import RECORD
from heldout.cli.redteam import describe_replay
from heldout.redteam.attacks import ATTACKS
from heldout.redteam.boards import (
    COMPARED,
    Exchange,
    GameLabels,
    NamedRule,
    Scores,
    guess,
    newcomer,
    parse_rule,
)
from heldout.redteam.game import (
    AttackCase,
    AttackLine,
    GamePlan,
    Weak,
    play_cases,
    play_worst_again,
)
from heldout.redteam.playing import SystemOptions, Systems, SystemsSource, draw, find_systems
from heldout.redteam.replay import (
    conclude_replay,
    read_history,
    replay,
    tabulate_replay,
)

DECIMALS = 3
GAPS = (0.0, 8.0, 16.0, 32.0, 48.0)
BOARDS = 1000
EQUAL_RUNS = (30, 300)
YEARS = 200
STEPS = {
    "1 to 6 u, six": LEAPS,
    ".5 u, twenty": (20, 0.5, 0.5),
    "1 u, twenty": CREEPING,
    "1.5 u, twenty": (20, 1.5, 1.5),
}
SEASONS = (4, 8, 12)
NAMED = 100
NOISES = (3.0, 10.0)
FEEDBACK = ReleaseRule().feedback
_LEFT = ("attack", "rule", "baseline", "n", "", "steps", "what is published")


def draw_chart(lines: Sequence[AttackLine]) -> str:
    """The chart as an SVG file, in the light or dark of whoever looks."""
    title = "The strongest attack on each rule with each baseline, in standard errors"
    return stand_alone(attack_chart(lines), title=title)


def attack_chart(lines: Sequence[AttackLine]) -> Plot:
    """Bars under the name of each rule, in the order of the lines.

    A bar is the larger of what stands on the board and what the attacker's last run is worth.

    Args:
        lines: at least one; of each rule and baseline the last one is drawn.
    """
    groups: dict[str, dict[str, float]] = {}
    for line in lines:
        groups.setdefault(line.release, {})[f"{line.baseline}: {line.attack}"] = line.harm
    bars = [
        (release if place == 0 else "", name, harm)
        for release, group in groups.items()
        for place, (name, harm) in enumerate(group.items())
    ]
    plot = Plot(
        x=score_axis([0.0, 1.0, *(harm for _, _, harm in bars)], room=0.02),
        rows=[
            PlotRow(name=name, note=f"{round(harm, 2) + 0.0:.2f}", head=head)
            for head, name, harm in bars
        ],
        foot="gain in u, the standard error of a difference",
    )
    for row, (_, name, harm) in enumerate(bars):
        plot.bar((min(0.0, harm), max(0.0, harm)), row, RECORD, f"{name}: {harm:.2f} u")
    return plot


def find(demo: Path, queries: int, measure: str = "RR@10") -> tuple[Systems, Scores]:
    """The systems on so many queries, and the weak one."""
    runs = {name: str(demo / "runs" / name / "dev.tsv.bz2") for name in ("bm25-stem", "fusion")}
    options = SystemOptions(
        runs=(runs["bm25-stem"], runs["fusion"]),
        baselines=(str(demo / "runs" / "tfidf" / "dev.tsv.bz2"),),
        qrels=str(demo / "board" / "qrels" / "dev.qrels"),
        measure=measure,
        order="msmarco",
    )
    systems = draw(find_systems(SystemsSource(options=options)), queries, seed=0)
    (weak,) = systems.baselines.values()
    return systems, weak


def rules(names: Iterable[str], submissions: int) -> list[NamedRule]:
    """Rules by their names."""
    rule = ReleaseRule(submissions=submissions)
    return [parse_rule(name, rule, decimals=DECIMALS, path="--release") for name in names]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table in Markdown."""
    left = sum(name in _LEFT for name in header)
    aligned = ["---"] * left + ["--:"] * (len(header) - left)
    for row in (header, aligned, *rows):
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def harm(line: AttackLine) -> str:
    """The larger of gain and worth, with a 95% interval."""
    error = 1.96 * (line.error or 0.0)
    return f"{_zero(line.harm)} ({_zero(line.harm - error)} to {_zero(line.harm + error)})"


def _zero(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"


def every_attack(lines: Sequence[AttackLine], named: NamedRule, queries: int) -> None:
    """Gain and worth of every attack on one rule, gap by gap."""
    print(f"{named.name}, {queries:,} queries: gain on the board / worth of the last run, in u\n")
    gaps = list(dict.fromkeys(line.baseline for line in lines))
    found = {(line.attack, line.baseline): line for line in lines}

    def rows() -> Iterator[list[str]]:
        for attack in dict.fromkeys(line.attack for line in lines):
            cells = [found[attack, gap] for gap in gaps]
            yield [
                attack,
                *(
                    f"{_reach(c.mean_gain_se, c.gain_sd, c)} / {_reach(c.worth, c.worth_sd, c)}"
                    for c in cells
                ),
            ]

    table(["attack", *gaps], rows())


def _reach(mean: float, spread: float | None, line: AttackLine) -> str:
    return f"{_zero(mean)} ± {_zero(1.96 * (spread or 0.0) / line.seeds**0.5)}"


def play_attacks(given: argparse.Namespace, queries: int, plan: GamePlan) -> list[AttackLine]:
    """The tables of one number of queries; the strongest attacks are given back."""
    systems, weak = find(given.demo, queries, given.measure)
    games = given.seeds
    pair = systems.pair
    print(f"{queries:,} queries: u = {pair.unit:.5f}, {pair.truth:.4f} {systems.measure}\n")
    worst: list[AttackLine] = []
    for named in rules(given.release, plan.submissions):
        cases = [
            AttackCase(attack=attack, named=named, baseline=Weak(gap=gap, scores=weak))
            for gap in given.gap
            for attack in given.attack
        ]
        lines = list(play_cases(cases, pair, plan, games=games, done=_nothing))
        every_attack(lines, named, queries)
        worst += play_worst_again(lines, cases, pair, plan, games=games, done=_nothing)
    print(f"{queries:,} queries: the strongest attack of each kind, on {games} fresh seeds\n")
    header = [
        "rule",
        "baseline",
        "attack",
        "harm, u",
        "gain, u",
        "4.5 u published",
        "6 u published",
    ]
    table(header, map(_worst_cells, worst))
    return worst


def _worst_cells(line: AttackLine) -> list[str]:
    return [
        *(line.release, line.baseline, line.attack, harm(line), _zero(line.mean_gain_se)),
        *(f"{line.utility:.0%}", f"{line.utility_6:.0%}"),
    ]


def play_equal(demo: Path, queries: int, names: Sequence[str], seed: int) -> None:
    """Boards on which nobody attacks and all runs are equally good."""
    systems, weak = find(demo, queries)
    print(f"{queries:,} queries: equally good runs, and then a better one; {BOARDS:,} boards\n")
    rows = []
    for named in rules(names, max(EQUAL_RUNS)):
        case = AttackCase(attack="best of n", named=named, baseline=Weak(gap=0.0, scores=weak))
        for count in EQUAL_RUNS:
            plan = GamePlan(submissions=count, seed=seed)
            (line,) = play_cases([case], systems.pair, plan, games=BOARDS, done=_nothing)
            shares = (line.record_share, line.utility, line.utility_6)
            rows.append([named.name, str(count), *(f"{share:.1%}" for share in shares)])
    table(["rule", "equal runs", "any published", "4.5 u published", "6 u published"], rows)


def play_years(demo: Path, queries: int, names: Sequence[str], seed: int, years: int) -> None:
    """Years without an attacker."""
    systems, weak = find(demo, queries)
    print(f"{queries:,} queries: {years} years of 60 honest teams, baseline 8 u below\n")
    rows = []
    for named in rules(names, max(EQUAL_RUNS)):
        plan = GamePlan(submissions=3, seed=seed)
        line = play_honest(named, systems.pair, Weak(gap=8.0, scores=weak), plan, years=years)
        shares = [line.seen, line.false_records, line.at_once, line.in_time]
        cells = ["-" if share is None else f"{share:.1%}" for share in shares]
        days = "-" if line.days is None else f"{line.days:.1f}"
        missed = [f"{line.unpublished:.1f} u", f"{line.creeping:.1f} u"]
        rows.append([named.name, cells[0], f"{line.records:.1f}", *cells[1:], days, *missed])
    header = ["rule", "see a score", "records", "false", "3 u at once", "by the end", "days"]
    table([*header, "unpublished", "small steps unpublished"], rows)


def play_calendar(demo: Path, queries: int, seed: int, years: int) -> None:
    """Years without an attacker, as one season and as four with a part of the queries each."""
    systems, weak = find(demo, queries)
    name = "clear+feedback" if queries > SPLIT_ABOVE else "clear"
    print(f"{queries:,} queries: {years} years of 60 honest teams, baseline 8 u below, {name}\n")
    rows = []
    for seasons in (1, 4):
        rule = ReleaseRule(seasons=seasons)
        named = parse_rule(name, rule, decimals=DECIMALS, path="--release")
        for size, steps in STEPS.items():
            played = [
                play_year(
                    named,
                    systems.pair,
                    Weak(gap=8.0, scores=weak),
                    GamePlan(submissions=3, seed=seed),
                    number=number,
                    steps=steps,
                )
                for number in range(years)
            ]
            line = summarise_years(played, played, release=name)
            shares = [line.seen, line.at_once, line.in_time, line.false_records]
            cells = ["-" if share is None else f"{share:.1%}" for share in shares]
            lost = [
                "-" if u is None else f"{u:.1f} u"
                for u in (line.unpublished, line.first, line.short)
            ]
            rows.append([size, str(seasons), *cells, *lost])
    header = ["steps", "seasons", "see a score", "3 u at once", "3 u in the season", "false"]
    table([*header, "unpublished", "first below the best", "winner"], rows)


def replay_boards() -> None:
    """The histories of both MS MARCO boards, through every rule."""
    folder = Path(os.environ["HELDOUT_DATA"]) / "leaderboards"
    for name, queries in (("doc", 5793), ("passage", 6837)):
        path = folder / f"msmarco-{name}-leaderboard.csv"
        found = replay(read_history(path.read_bytes(), path=path.name), queries)
        print(f"{conclude_replay(found)}\n")
        for fact, said in describe_replay(found):
            print(f"- {fact}: {said}")
        for made in tabulate_replay(found):
            print(f"\n{made.title}\n")
            table(
                [one.name for one in made.columns],
                [[str(cell) for cell in row] for row in made.rows],
            )


def play_seasons(demo: Path, queries: int, seed: int, games: int) -> None:
    """What the exact numbers of all seasons but the last are worth in the last one.

    Of a hundred named entries a season half are the attacker's, which sends random choices. Its
    last run is a weighted vote: each number, less the mean of its season's, is its run's weight.
    """
    pair = find(demo, queries)[0].pair
    deciding = queries - round(queries * (FEEDBACK if queries > SPLIT_ABOVE else 0))
    print(f"{queries:,} queries, {deciding:,} of them rank; {games} games\n")
    rows = []
    for seasons in SEASONS:
        worth: dict[str, list[float]] = {}
        for game in range(games):
            rng = np.random.default_rng([seed, queries, seasons, game])
            for name, one in _play_seasons(pair, seasons, deciding, rng).items():
                worth.setdefault(name, []).append(one)
        for name, found in worth.items():
            error = 1.96 * float(np.std(found, ddof=1)) / games**0.5
            mean = float(np.mean(found))
            interval = f"{_zero(mean)} ({_zero(mean - error)} to {_zero(mean + error)})"
            rows.append([str(seasons), f"{deciding // seasons:,}", name, interval])
    table(["seasons", "queries of a part", "what is published", "u"], rows)


def _play_seasons(
    pair: Exchange, seasons: int, deciding: int, rng: np.random.Generator
) -> dict[str, float]:
    """The worth of the last run for each way to publish, then of a season's own board."""
    labels = pair.toss(rng)
    order = rng.permutation(pair.queries)[:deciding]
    half = (labels.first - labels.second) / 2  # what a choice wins or loses
    names = NAMED // 2
    sent = [guess(rng, pair.queries) for _ in range(names * (seasons - 1))]
    runs = np.array(sent, np.float32)
    unit = float(np.sqrt(np.mean((pair.a - pair.b) ** 2) / deciding))
    parts = np.array_split(order, seasons)
    own, whole = np.empty(len(runs)), np.empty(len(runs))
    for season, part in enumerate(parts[:-1]):
        mine = slice(season * names, (season + 1) * names)
        for numbers, asked in ((own, part), (whole, order)):
            scores = runs[mine][:, asked] @ half[asked].astype(np.float32) / len(asked)
            numbers[mine] = np.round(scores + pair.middle[asked].mean(), DECIMALS)

    def learn(numbers: NDArray[np.float64], asked: NDArray[np.intp]) -> float:
        """The worth of the vote on some queries, in their u."""
        weights = numbers.reshape(seasons - 1, names)
        weights = (weights - weights.mean(axis=1, keepdims=True)).ravel()
        vote = np.sign(weights.astype(np.float32) @ runs)[asked]
        error = unit * float(np.sqrt(deciding / len(asked)))
        return float((vote * half[asked]).mean()) / error

    # Two entries of a season differ by sqrt(seasons) u on a part; this noise makes it the same.
    equal = ((seasons - 1) / 2) ** 0.5
    found = {
        "own parts, exact: worth on the next part, in its u": learn(own, parts[-1]),
        "same queries, exact": learn(whole, order),
    }
    for noise in (equal, *NOISES):
        numbers = whole + noise * unit * rng.normal(size=len(whole))
        alike = ", as unclear as own parts" if noise == equal else ""
        found[f"same queries, noise of {noise:.1f} u{alike}"] = learn(numbers, order)
    return found | _end_season(pair, labels, parts[0], rng)


def _end_season(
    pair: Exchange, labels: GameLabels, part: NDArray[np.intp], rng: np.random.Generator
) -> dict[str, float]:
    """How lucky the attacker's entries are on the board of a season, in u of its part."""
    unit = float(np.sqrt(np.mean((pair.a - pair.b) ** 2) / len(part)))
    theirs = np.arange(NAMED) % 2 == 1
    rows = [
        labels.score(guess(rng, pair.queries))[part] if mine else newcomer(pair, rng)[part]
        for mine in theirs
    ]
    lucks = (np.array([row.mean() for row in rows]) - pair.middle[part].mean()) / unit
    best = max(rows, key=np.mean)
    winner = next(n for n, row in enumerate(rows) if not is_clear(best, row, jitter=0))
    return {
        "own parts: luck of the attacker's highest number": float(lucks[theirs].max()),
        "own parts: luck of the season's winner": float(lucks[winner]),
    }


def _nothing() -> None:
    """No progress is shown."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("demo", type=Path, help="folder of `heldout demo`")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--submissions", type=int, default=300)
    parser.add_argument("--queries", type=int, nargs="*", default=[1000, 5793])
    parser.add_argument("--chart", type=Path, help="SVG of the strongest attacks, first number")
    parser.add_argument("--release", nargs="*", default=list(COMPARED))
    parser.add_argument("--attack", nargs="*", choices=tuple(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--gap", nargs="*", type=float, default=GAPS)
    parser.add_argument("--measure", default="RR@10")
    tables = ("attacks", "equal", "replay", "years", "seasons")
    parser.add_argument("--table", nargs="*", choices=tables, default=[])
    given = parser.parse_args()
    for name in given.table:
        for queries in given.queries if name in ("years", "seasons") else ():
            play_one = play_calendar if name == "years" else play_seasons
            play_one(given.demo, queries, given.seed, given.seeds)
        if name == "replay":
            replay_boards()
    if not given.table or "attacks" in given.table:
        plan = GamePlan(submissions=given.submissions, seed=given.seed)
        strongest = [play_attacks(given, queries, plan) for queries in given.queries]
        if given.chart is not None:
            given.chart.write_text(draw_chart(strongest[0]), "utf-8")
    if not given.table or "equal" in given.table:
        for queries in given.queries:
            play_equal(given.demo, queries, given.release, given.seed)
    if not given.table:
        few = min(given.seeds, YEARS)
        play_years(given.demo, given.queries[0], given.release, given.seed, few)


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
