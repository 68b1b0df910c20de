"""The release rules on real runs: TREC DL 2021 passages, resampled to 1,000 queries."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from heldout.cli.program import main

pytestmark = pytest.mark.real
GAMES = 16
FOLDER = "trec-dl-2021-passage"


def play(
    data: Callable[[str], Path], release: str, *attacks: str, gap: int = 8
) -> list[dict[str, Any]]:
    """The first lines, on two runs of different teams with nearly the same mean."""
    runs = [str(data(f"{FOLDER}/runs/{name}.gz")) for name in ("NLE_P_V1andV2", "p_f10_mt53b")]
    qrels = str(data(f"{FOLDER}/qrels.dl21-passage.txt.gz"))
    size = ("--queries", "1000", "--seeds", str(GAMES), "--submissions", "300", "--gap", str(gap))
    chosen = [word for attack in attacks for word in ("--attack", attack)]
    done = CliRunner().invoke(
        main,
        [
            "redteam",
            *("--runs", *runs, "--qrels", qrels, "-m", "RR(rel=2)@10", *size),
            *("--json", "--release", release, *chosen),
        ],
    )
    assert done.exit_code == 0, done.stderr
    lines: list[dict[str, Any]] = json.loads(done.stdout)["attacks"]
    return [line for line in lines if not line["fresh"]]


@pytest.mark.parametrize(
    ("attack", "release", "least"),
    [("weighted vote", "rounded", 4), ("names at the edge", "rounded", 4)],
)
def test_the_attacks_bite_where_the_release_is_weak(
    data: Callable[[str], Path], attack: str, release: str, least: float
) -> None:
    (line,) = play(data, release, attack)
    assert line["mean_gain_se"] >= least


def test_names_together_gain_nothing_on_a_clear_board(data: Callable[[str], Path]) -> None:
    attacks = ("names at the edge", "weighted vote")
    for line in play(data, "clear", *attacks):
        # One run of 300 is published, the first: its luck is what stands, sd u/2.
        assert abs(line["mean_gain_se"]) <= 0.2 + 3 * 0.5 / GAMES**0.5, line["attack"]
        assert line["worth"] <= 0.5 + 3 * 0.5 / GAMES**0.5, line["attack"]
        assert line["utility_6"] >= 0.9 - 3 * (0.9 * 0.1 / GAMES) ** 0.5, line["attack"]
