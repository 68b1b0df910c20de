"""The targets of the Ladder on real runs: TREC DL 2021 passages, resampled to 1,000 queries."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from heldout.cli.redteam import redteam

pytestmark = pytest.mark.real
GAMES = 16
FOLDER = "trec-dl-2021-passage"


def play(data: Callable[[str], Path], release: str, *attacks: str) -> list[dict[str, Any]]:
    """Lines of games on two runs of different teams with nearly the same mean."""
    runs = [str(data(f"{FOLDER}/runs/{name}.gz")) for name in ("NLE_P_V1andV2", "p_f10_mt53b")]
    qrels = str(data(f"{FOLDER}/qrels.dl21-passage.txt.gz"))
    size = ("--queries", "1000", "--seeds", str(GAMES))
    fixed = ("-m", "RR(rel=2)@10", *size, "--state", "team", "--json")
    chosen = [word for attack in attacks for word in ("--attack", attack)]
    done = CliRunner().invoke(
        redteam, ["--runs", *runs, "--qrels", qrels, *fixed, "--release", release, *chosen]
    )
    assert done.exit_code == 0, done.stderr
    lines: list[dict[str, Any]] = json.loads(done.stdout)["attacks"]
    return lines


def test_at_300_submissions_the_ladder_holds_against_a_team_s_own_probing(
    data: Callable[[str], Path],
) -> None:
    probing = ("best of n", "boosting", "hill-climbing", "decoding")
    for line in play(data, "ladder", *probing):
        assert line["release"] == "ladder z=3.59"
        assert line["mean_gain_se"] <= 0.2 + 3 * line["gain_sd"] / GAMES**0.5
        assert line["false_release_share"] <= 0.08 + 3 * (0.08 * 0.92 / GAMES) ** 0.5
        assert line["utility"] >= 0.82 - 3 * (0.82 * 0.18 / GAMES) ** 0.5


@pytest.mark.parametrize(
    ("attack", "release", "least"),
    [("boosting", "exact", 3), ("hill-climbing", "ladder=1", 2)],
)
def test_the_attacks_bite_where_the_release_is_weak(
    data: Callable[[str], Path], attack: str, release: str, least: float
) -> None:
    (line,) = play(data, release, attack)
    assert line["mean_gain_se"] >= least
