"""Histories of boards, played through the release rules again."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from click.testing import CliRunner

from heldout.board.rules.release import CLEARLY
from heldout.cli.program import main
from heldout.errors import InputError
from heldout.redteam import replay as replaying
from heldout.redteam.replay import (
    ASSUMED,
    RULES,
    SEASON,
    Assumed,
    BoardHistory,
    publish,
    read_history,
)

N = 400
PLAIN = Assumed(0.3, 0.2, 0.4)
OWN = (
    "rank,id,date,team,description,type,eval,dev,feedback (for information only),trophy,baseline\n"
    ",base,2026-01-01,,BM25,full ranking,0.200,0.210,0.2,false,true\n"
    "1,one,2026-01-05,A,,full ranking,0.500,0.400,0.5,true,false\n"
    ",two,2026-01-09,a ,,full ranking,,0.300,0.5,false,false\n"
    "2,three,2026-02-01,A,,full ranking,0.400,,0.5,false,false\n"
)


def history_of(
    means: list[float], *, teams: list[int] | None = None, days: list[int] | None = None
) -> BoardHistory:
    return BoardHistory(
        board="b",
        first=date(2026, 1, 1),
        days=np.array(days or range(len(means)), np.intp),
        means=np.array(means),
        teams=np.array(teams or range(len(means)), np.intp),
        open=np.full(len(means), np.nan),
        open_view="",
        start=0.2,
        start_name="BM25",
        left_out=0,
    )


def shares(history: BoardHistory, *, ranking: int = N, seasons: int = 0) -> list[float]:
    """The share of draws in which each entry is published on its day, without jitter."""
    rng = np.random.default_rng(1)
    shown = publish(history, PLAIN, (ranking, N), rng, seasons=seasons, jitter=0)
    return [float(share) for share in (shown == history.days).mean(axis=0)]


@pytest.mark.parametrize(
    ("teams", "deviation"), [([0, 1], PLAIN.other), ([0, 0], PLAIN.same)], ids=["other", "same"]
)
def test_an_entry_needs_two_standard_errors_above_the_best_run_that_was_sent(
    teams: list[int], deviation: float
) -> None:
    needed = CLEARLY * deviation / N**0.5
    for factor, published in ((0.999, 0), (1.001, 1)):
        history = history_of([0.4, 0.4 + factor * needed], teams=teams)
        assert shares(history) == [1, published]
    high = history_of([0.4, 0.4 + 0.9 * needed, 0.4 + 1.8 * needed], teams=[*teams, 2])
    assert shares(high)[1:] == [0, 0]  # the second raised the threshold, unpublished


@pytest.mark.parametrize("against", ["baseline", "other", "same"])
def test_a_part_has_the_deviations_of_a_draw_without_replacement(against: str) -> None:
    deviation, part = getattr(PLAIN, against), N // 4
    error = deviation / part**0.5
    rise = CLEARLY * error + error * (1 - part / N) ** 0.5  # one deviation above what is needed
    means = [0.2 + rise] if against == "baseline" else [0.9, 0.9 + rise]
    history = history_of(means, teams=[0, 0] if against == "same" else None)
    assert shares(history, ranking=part)[-1] == pytest.approx(NormalDist().cdf(1), abs=0.05)


def test_at_a_seasons_end_every_teams_named_entry_has_a_score_and_the_next_begins_afresh() -> None:
    # Team 0 names what it knows to be best, team 1 its latest.
    history = history_of(
        [0.8, 0.7, 0.6, 0.5, 0.4], teams=[0, 0, 1, 1, 0], days=[0, 1, 2, 3, SEASON]
    )
    history = replace(history, open=np.array([0.1, 0.9, np.nan, np.nan, np.nan]))
    shown = publish(history, PLAIN, (N, N), np.random.default_rng(1), seasons=2, jitter=0)
    expected = [0, SEASON, np.nan, SEASON, SEASON]
    assert np.array_equal(shown, np.tile(expected, (len(shown), 1)), equal_nan=True)
    assert history.name_entries() == ([1, 3, 4], 2)


def test_the_figures_of_a_history_made_by_hand() -> None:
    clearly = 4 * ASSUMED[0].other / 2000**0.5
    means = [0.5, 0.5 + clearly, 0.5 + 1.1 * clearly]
    found = replaying.replay(history_of(means, teams=[0, 1, 1], days=[0, 10, SEASON + 9]), 2000)
    assert (found.feedback, found.seasons, found.part) == (500, 2, 750)
    usual = {line.rule: line.figures for line in found.lines[:: len(ASSUMED)]}
    rounded, plain, seasons = (usual[rule] for rule in RULES)
    assert (rounded["entries"].mean, rounded["silence"].mean, rounded["behind"].mean) == (3, 90, 0)
    assert (seasons["teams"].low, seasons["longest_days"].high) == (2, SEASON - 10)
    assert (seasons["silence"].high, seasons["behind_days"].high) == (SEASON, SEASON - 10)
    assert plain["teams"].mean is not None
    assert plain["teams"].mean < 2
    assert plain["behind"].high == pytest.approx(4.4)


def test_a_boards_own_table_is_read() -> None:
    history = read_history(OWN.encode(), path="leaderboard.csv")
    assert history.means.tolist() == [0.5, 0.4]
    assert history.days.tolist() == [0, 27]
    assert history.teams.tolist() == [0, 0]
    assert (history.start, history.start_name, history.left_out) == (0.2, "BM25", 1)
    assert (history.open_view, history.open[0]) == ("dev", 0.4)
    without = read_history(OWN.replace("true\n", "false\n").encode(), path="leaderboard.csv")
    assert (without.means.tolist(), without.start_name) == ([0.5, 0.4], "BM25, the first entry")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (OWN.replace("0.500", "high"), "replay-table"),
        (OWN.replace("trophy", "cup"), "replay-table"),
        ("\n".join(OWN.splitlines()[:2]), "replay-empty"),
        ("a,b\n1,2\n", "unknown-table"),
    ],
)
def test_a_table_that_cannot_be_played_is_refused(text: str, code: str) -> None:
    with pytest.raises(InputError) as raised:
        read_history(text.encode(), path="leaderboard.csv")
    assert [problem.code for problem in raised.value.problems] == [code]


def test_a_season_without_two_queries_is_refused() -> None:
    history = history_of([0.5, 0.6], days=[0, SEASON])
    with pytest.raises(InputError) as raised:
        replaying.replay(history, 3)
    assert [problem.code for problem in raised.value.problems] == ["replay-queries"]


def test_the_command_asks_how_many_queries_there_are(tmp_path: Path) -> None:
    table = tmp_path / "leaderboard.csv"
    table.write_text(OWN)
    asked = CliRunner().invoke(main, ["redteam", "--replay", str(table)])
    assert asked.exit_code == 2
    assert "--queries N" in asked.stderr
    answered = CliRunner().invoke(main, ["redteam", "--replay", str(table), "--queries", "800"])
    assert answered.stdout.startswith("With a season's end each quarter 1 of 1 teams have a score")
    assert all(rule in answered.stdout for rule in RULES)


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "sizes", "entries", "silence"),
    [("doc", (5793, 49), (2.2, 3.1), 510), ("passage", (6837, 74), (4.5, 6.5), 845)],
)
def test_real_boards_publish_almost_nothing_without_a_seasons_end_and_every_team_with_it(
    name: str,
    sizes: tuple[int, int],
    entries: tuple[float, float],
    silence: int,
    data: Callable[[str], Path],
) -> None:
    queries, teams = sizes
    path = data(f"leaderboards/msmarco-{name}-leaderboard.csv")
    history = read_history(path.read_bytes(), path=path.name)
    # An independent replay, with a jitter of half a standard error: 2.6 and 5.1 entries.
    rng = np.random.default_rng(0)
    shown = publish(history, ASSUMED[0], (queries, queries), rng, seasons=0, jitter=0.5)
    published = ~np.isnan(shown)
    assert entries[0] < published.sum(axis=1).mean() < entries[1]
    last = history.days.max()
    gaps = [np.diff(np.unique([0, *history.days[row], last])).max() for row in published]
    assert np.mean(gaps) == pytest.approx(silence, rel=0.1)
    answer = CliRunner().invoke(
        main, ["redteam", "--replay", str(path), "--queries", str(queries), "--json"]
    )
    found = json.loads(answer.stdout)
    for line in found["lines"][-len(ASSUMED) :]:
        assert (line["teams"]["low"], found["teams"]) == (teams, teams)
        assert line["longest_days"]["high"] <= SEASON
