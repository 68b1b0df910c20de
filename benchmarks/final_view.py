"""A final on queries that were never used before: the luck of the best, and who wins.

    heldout demo demo
    python benchmarks/final_view.py demo              the table of decide-a-prize.md, minutes
    python benchmarks/final_view.py demo --games 200

The game is that of `heldout redteam` (redteam.md): two of the demo's runs, BM25 with stemming
and a fusion, are about equally good, and a coin for each query decides which of the two a run
takes there. So all runs have the same worth, the mean of both, and it is known. 1,000 queries are
drawn without replacement, 5,793 with it. u is the standard error of the difference of two
finalists: as they differ on half of the queries, that of the two systems over sqrt(2).

- `excess`: the highest score of F equal finalists less its worth. `printed`: the luck that
  `heldout board final` prints for them. `winner's`: the excess of the finalist that wins, the
  earliest that is not clearly below the best.
- `1 u wins` and so on: one finalist, at a random position in the order of receipt, is better than
  the others by so much.
- `carried`: on the season's queries an attacker reads 299 exact scores of random runs, and votes
  by them (Blum and Hardt 2015). The vote is then its finalist: its gain on queries of their own;
  in units of the two systems' u, as in redteam.md.
"""

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from numpy.typing import NDArray

from heldout.board.rules.release import LEADS, decide_final
from heldout.cli.program import main as heldout
from heldout.redteam.boards import Exchange, Run, exchange, guess

__all__ = ["Cell", "Mean", "carry_vote", "find_luck", "plant", "read_systems"]

FINALISTS = (2, 5, 10)
QUERIES = (1_000, 5_793)
SYSTEMS = ("bm25-stem", "fusion")
_ASKED = 299
_Z = 1.96

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over games with its 95% interval, in units of u."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half:.3f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What F finalists on n queries gave, in units of u.

    Attributes:
        excess: of the highest score over its worth.
        printed: the luck that is printed.
        winners: the excess of the winner's score.
    """

    excess: Mean
    printed: Mean
    winners: Mean


def _draw(pair: Exchange, queries: int, rng: np.random.Generator) -> Exchange:
    """The same systems on so many queries, with replacement if there are fewer."""
    chosen = rng.choice(pair.queries, queries, replace=queries > pair.queries)
    return exchange(pair.a[chosen], pair.b[chosen])


def read_systems(demo: Path) -> Exchange:
    """RR@10 by query of the two systems on the demo's dev set."""
    runs = [str(demo / "runs" / name / "dev.tsv.bz2") for name in SYSTEMS]
    asked = (
        "--qrels",
        str(demo / "board/qrels/dev.qrels"),
        "-m",
        "RR@10",
        "--per-query",
        "--json",
    )
    done = CliRunner().invoke(heldout, ["evaluate", *runs, *asked, "--no-cache"])
    if done.exit_code:
        raise SystemExit(done.stderr)
    rows = [run["per_query"] for run in json.loads(done.stdout)["runs"]]
    return exchange(*([row[query]["RR@10"] for query in sorted(rows[0])] for row in rows))


def play(pair: Exchange, count: int, rng: np.random.Generator) -> list[Floats]:
    """Scores by query of finalists that are equally good, on labels of their own."""
    labels = pair.toss(rng)
    return [labels.score(guess(rng, pair.queries)) for _ in range(count)]


def find_luck(pair: Exchange, count: int, *, games: int, rng: np.random.Generator) -> Cell:
    """How far the highest score of equal finalists lies above its worth, and what is printed."""
    found = [decide_final(play(pair, count, rng)) for _ in range(games)]
    unit = find_unit(pair)
    return Cell(
        excess=_mean([max(one.means) - pair.truth for one in found], unit),
        printed=_mean([one.luck or 0.0 for one in found], unit),
        winners=_mean([one.means[one.winner] - pair.truth for one in found], unit),
    )


def plant(
    pair: Exchange, count: int, *, leads: Sequence[float], games: int, rng: np.random.Generator
) -> list[float]:
    """For each lead in u the share of games that a finalist wins which is better by so much."""
    won = np.zeros(len(leads))
    for _ in range(games):
        scores = play(pair, count, rng)
        position = int(rng.integers(count))
        equal = scores[position]
        for number, lead in enumerate(leads):
            scores[position] = equal + lead * find_unit(pair)
            won[number] += decide_final(scores).winner == position
    return list(won / games)


def find_unit(pair: Exchange) -> float:
    """Find u of two equally good finalists, who differ on half of the queries."""
    return pair.unit * math.sqrt(0.5)


def carry_vote(pair: Exchange, *, games: int, rng: np.random.Generator) -> tuple[Mean, Mean]:
    """The gain of a vote on the season's queries, and of the same run on the final's."""
    season: list[float] = []
    final: list[float] = []
    for _ in range(games):
        vote = _vote(pair, rng, season)
        final.append(float(pair.toss(rng).score(vote).mean()) - pair.truth)
    return _mean(season, pair.unit), _mean(final, pair.unit)


def _vote(pair: Exchange, rng: np.random.Generator, gains: list[float]) -> Run:
    """Runs above the mean of all scores vote for themselves, those below against."""
    labels = pair.toss(rng)
    runs = np.array([guess(rng, pair.queries) for _ in range(_ASKED)])
    rise, base = (labels.first - labels.second) / 2, (labels.first + labels.second) / 2
    scores = base.mean() + runs @ rise / pair.queries
    votes = np.sign(scores - scores.mean()) @ runs
    vote = np.where(votes >= 0, np.int8(1), np.int8(-1))
    gains.append(float(labels.score(vote).mean()) - pair.truth)
    return vote


def _mean(values: Sequence[float], unit: float) -> Mean:
    units = np.array(values) / unit
    half = _Z * float(units.std(ddof=1)) / math.sqrt(units.size)
    return Mean(mean=float(units.mean()), half=half)


def _lines(pair: Exchange, games: int, seed: int) -> Iterator[str]:
    yield "| n | F | excess, u | printed, u | printed, RR@10 | winner's, u |"
    yield "| --: | --: | --: | --: | --: | --: |"
    wins: list[str] = []
    for queries in QUERIES:
        for count in FINALISTS:
            rng = np.random.default_rng([seed, queries, count])
            some = _draw(pair, queries, rng)
            cell = find_luck(some, count, games=games, rng=rng)
            printed = f"{cell.printed.mean:.3f} | {cell.printed.mean * find_unit(some):.4f}"
            yield f"| {queries:,} | {count} | {cell.excess} | {printed} | {cell.winners} |"
            shares = plant(some, count, leads=LEADS, games=games, rng=rng)
            cells = (
                f"{share:.1%} ± {_Z * math.sqrt(share * (1 - share) / games):.1%}"
                for share in shares
            )
            wins.append(f"| {queries:,} | {count} | {' | '.join(cells)} |")
    yield ""
    yield f"| n | F | {' | '.join(f'{lead:g} u wins' for lead in LEADS)} |"
    yield f"| --: | --: |{' --: |' * len(LEADS)}"
    yield from wins
    yield ""
    yield "| n | vote on the season's queries, u | carried onto the final's, u | contains 0 |"
    yield "| --: | --: | --: | --- |"
    for queries in QUERIES:
        rng = np.random.default_rng([seed, queries])
        season, final = carry_vote(_draw(pair, queries, rng), games=games // 4, rng=rng)
        inside = "yes" if abs(final.mean) <= final.half else "no"
        yield f"| {queries:,} | {season} | {final} | {inside} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("demo", type=Path, help="What `heldout demo` left.")
    parser.add_argument("--games", type=int, default=2_000, help="Of a kind.")
    parser.add_argument("--seed", type=int, default=0, help="Random seed.")
    given = parser.parse_args()
    pair = read_systems(given.demo)
    for line in _lines(pair, given.games, given.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
