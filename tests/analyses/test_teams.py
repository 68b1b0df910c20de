"""Teams: counts, ranks, slopes that resample queries, groups of nearly identical runs."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress, t
from simulated_boards import board_of, entries_of, evolve, means_of, rng, view_of

from heldout.analyses import teams as report
from heldout.analyses.analysis import Draws
from heldout.analyses.entries import AlikeRuns, BoardScores, Dated, describe_view, read_institutions
from heldout.analyses.teams import TeamsOptions, look_at_teams
from heldout.answers.table import list_notes
from heldout.board.old_boards import parse_table, scores_of_old_table
from heldout.errors import InputError


def made(
    seed: int, *, teams: int = 1, each: int = 10, queries: int = 100, learned: float = 0.0
) -> BoardScores:
    """Teams that get better on both views; with `learned` on the public one alone as well."""
    draw = rng(seed)
    ids = [f"{team}-{n}" for team in range(teams) for n in range(each)]
    views = [
        np.concatenate(
            [evolve(draw, systems=each, queries=queries, drift=drift) for _ in range(teams)]
        )
        for drift in (0.02 + learned, 0.02)
    ]
    names = [f"team {team}" for team in range(teams) for _ in range(each)]
    return board_of(
        entries_of(ids, teams=names),
        view_of("eval", dict(zip(ids, views[0], strict=True))),
        view_of("reserve", dict(zip(ids, views[1], strict=True)), public=False),
    )


def look(board: BoardScores, alike: list[AlikeRuns] | None = None, *, trials: int = 400) -> Any:
    given = Dated(board=board, views=(), alike=None if alike is None else tuple(alike))
    return look_at_teams(given.beside(None, "reserve"), rng(), TeamsOptions(trials=trials))


def test_the_interval_over_queries_has_its_level_and_that_over_submissions_has_not() -> None:
    """No board here overfits, so every true slope is 0."""
    boards, wrong, wrong_by_ols = 100, 0, 0
    for seed in range(boards):
        (group,) = look(made(seed, each=15)).groups
        slope = group.slope
        wrong += not slope.low <= 0 <= slope.high
        wrong_by_ols += not slope.ols_low <= 0 <= slope.ols_high
    # 5% of 100 is 5; 13 or more have a chance of 0.2%
    assert wrong < 13
    assert wrong_by_ols > 0.4 * boards


def test_intervals_of_all_teams_hold_at_once() -> None:
    boards, wrong = 40, 0
    for seed in range(boards):
        slopes = [group.slope for group in look(made(seed, teams=6, each=5)).groups]
        wrong += any(
            slope is None
            or slope.low_all is None
            or slope.high_all is None
            or not slope.low_all <= 0 <= slope.high_all
            for slope in slopes
        )
    # 5% of 40 is 2; 7 or more have a chance of 0.3%
    assert wrong < 7


def test_a_team_that_learns_the_public_labels_is_found() -> None:
    (group,) = look(made(1, queries=400, learned=0.04)).groups
    assert group.slope.high_all < 0


def test_the_slope_and_the_line_over_submissions_are_those_of_scipy() -> None:
    board = made(2)
    (group,) = look(board).groups
    gaps = [
        board.views["reserve"].means[one] - board.views["eval"].means[one] for one in group.entries
    ]
    line = linregress(range(10), gaps)
    assert group.slope.per_submission == pytest.approx(line.slope, abs=1e-12)
    width = t.ppf(0.975, 8) * line.stderr
    assert group.slope.ols_low == pytest.approx(line.slope - width, abs=1e-12)
    assert group.slope.ols_high == pytest.approx(line.slope + width, abs=1e-12)


def test_names_of_a_team_that_differ_in_case_and_spaces_are_one_team() -> None:
    ids = ["a", "b", "c"]
    rows = dict(zip(ids, evolve(rng(), systems=3, queries=20), strict=True))
    entries = entries_of(ids, teams=["Search  Group", "search group", "SEARCH GROUP "])
    (group,) = look(
        board_of(entries, view_of("eval", rows), view_of("r", rows, public=False))
    ).groups
    assert group.name == "SEARCH GROUP "
    assert group.submissions == 3


def test_nobody_and_anonymous_are_no_team() -> None:
    ids = ["a", "b", "c", "d"]
    rows = dict(zip(ids, evolve(rng(), systems=4, queries=20), strict=True))
    entries = entries_of(ids, teams=["", "Anonymous", "anonymous", "Lamp"])
    result = look(board_of(entries, view_of("eval", rows), view_of("r", rows, public=False)))
    assert [group.name for group in result.groups] == ["Lamp"]
    assert result.nameless == 3
    assert result.groups[0].slope is None
    assert result.groups[0].why


def test_most_submissions_within_a_window_are_counted() -> None:
    ids = [f"s{n}" for n in range(6)]
    rows = dict(zip(ids, evolve(rng(), systems=6, queries=20), strict=True))
    entries = entries_of(ids, teams=["one"] * 6, days=[0, 29, 30, 31, 58, 200])
    board = board_of(entries, view_of("eval", rows), view_of("r", rows, public=False))
    assert look(board).groups[0].busiest == 4  # days 29, 30, 31 and 58


def test_ranks_leave_baselines_out() -> None:
    ids = ["base", "low", "high"]
    rows = {"base": np.full(4, 0.9), "low": np.full(4, 0.2), "high": np.full(4, 0.5)}
    other = {"base": np.full(4, 0.9), "low": np.full(4, 0.6), "high": np.full(4, 0.5)}
    board = board_of(
        entries_of(ids, baselines=["base"]),
        view_of("eval", rows),
        view_of("r", other, public=False),
    )
    found = {group.entries[0]: group for group in look(board).groups}
    assert (found["low"].best_public, found["low"].best_reserve) == (2, 1)
    assert (found["high"].best_public, found["high"].best_reserve) == (1, 2)


def test_constant_gaps_have_no_interval_and_no_number_out_of_it() -> None:
    ids = ["a", "b", "c"]
    rows = {one: np.full(5, 0.5) for one in ids}
    entries = entries_of(ids, teams=["one"] * 3)
    (group,) = look(
        board_of(entries, view_of("eval", rows), view_of("r", rows, public=False))
    ).groups
    assert group.slope.per_submission == 0
    assert (group.slope.low, group.slope.high, group.slope.low_all) == (None, None, None)


def test_means_alone_have_no_interval_over_queries() -> None:
    board = made(3)
    result = look(replace(board, views={n: means_of(v) for n, v in board.views.items()}))
    assert result.trials == 0
    assert result.groups[0].slope.low is None
    (table,) = report.tables(result)
    assert any("description only" in note for note in list_notes(table))


def test_links_across_teams_make_groups_and_links_within_a_team_do_not() -> None:
    board = made(4, teams=4, each=2)
    alike = [
        AlikeRuns(a="0-0", b="1-0", rbo=0.9),
        AlikeRuns(a="1-0", b="2-1", rbo=0.8),
        AlikeRuns(a="3-0", b="3-1", rbo=0.95),
    ]
    result = look(board, alike)
    assert result.variants is not None
    (group,) = result.variants
    assert group.entries == ("0-0", "1-0", "2-1")
    assert group.teams == ("team 0", "team 1", "team 2")
    assert group.least_rbo == 0.8


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12))
def test_groups_do_not_depend_on_the_order_of_links(pairs: list[tuple[int, int]]) -> None:
    ids = [f"s{n}" for n in range(8)]
    rows = {one: np.array([0.1, 0.2]) for one in ids}
    board = board_of(entries_of(ids), view_of("eval", rows), view_of("r", rows, public=False))
    links = [AlikeRuns(a=ids[a], b=ids[b], rbo=0.9) for a, b in pairs if a != b]
    result = look(board, links, trials=1)
    assert result.variants == look(board, links[::-1], trials=1).variants
    joined = [one for group in result.variants or () for one in group.entries]
    assert len(joined) == len(set(joined))


def test_a_board_without_a_reserve_says_what_to_add() -> None:
    rows = {"a": np.array([0.1])}
    board = board_of(entries_of(["a"]), view_of("eval", rows))
    with pytest.raises(InputError, match="public = false"):
        look(board)


GROUPS = """
Leonid Boytsov, Bosch Center for AI\tBosch
RONAK Pradeep,  Ruizhou Xu, Rodrigo Nogueira, and Jimmy Lin - University of Waterloo\tWaterloo
Ronak Pradeep, Rodrigo Nogueira, and Jimmy Lin - University of Waterloo\tWaterloo
Luyu Gao and Zhuyun Dai - LTI, CMU\tCMU
Luyu Gao, Zhuyun Dai - LTI, CMU\tCMU
"""


def answered(board: BoardScores, **chosen: Any) -> dict[str, Any]:
    given = Dated(board=board, views=(board.views["eval"], board.views["dev"]))
    options = report.TeamsOptions(by="institution", trials=10, **chosen)
    return dict(report.ANALYSIS.answer(given, options, Draws()).to_dict())


def test_teams_of_a_file_are_counted_by_institution_until_a_day(tmp_path: Path) -> None:
    ids = ["a", "b", "c", "d", "e"]
    rows = dict(zip(ids, evolve(rng(), systems=5, queries=20), strict=True))
    without = {name: row for name, row in rows.items() if name != "b"}
    entries = entries_of(ids, teams=["Ann, X", "Ann & Bob, X", "ann,  x", "Cid, Y", "Dan"])
    board = board_of(entries, view_of("eval", rows), view_of("dev", without, public=False))
    (tmp_path / "groups.tsv").write_text("ANN, X\tX\nAnn & Bob, X \t X\nCid, Y\tY\nNo, Z\tZ\n")
    chosen = {"groups": tmp_path / "groups.tsv"}

    def counts(**more: Any) -> dict[str, int]:
        groups = answered(board, **chosen, **more)["groups"]
        return {group["name"]: group["submissions"] for group in groups}

    assert counts() == {"X": 3, "Y": 1, "one university": 1}  # as the entry itself says
    until = entries[1].day
    assert counts(until=until) == {"X": 2}
    assert answered(board, **chosen, until=until)["until"] == until.isoformat()
    assert [group["submissions"] for group in answered(board)["groups"]] == [5]
    assert (
        describe_view(board, board.views["dev"])[0][1]
        == f"{board.board}: 4 entries; 1 more has no score here"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("team\n", "wrong-columns"),
        ("team\tone\ttwo\n", "wrong-columns"),
        ("team\t \n", "wrong-columns"),
        ("team\tone\nTEAM\ttwo\n", "repeated-group"),
    ],
)
def test_a_file_of_institutions_with_errors_is_refused(text: str, code: str) -> None:
    with pytest.raises(InputError, match=code) as caught:
        read_institutions(BytesIO(text.encode()), path="groups.tsv")
    assert [problem.path for problem in caught.value.problems] == ["groups.tsv"]


@pytest.mark.real
def test_institutions_of_the_document_board_until_the_papers_day(
    data: Callable[[str], Path], tmp_path: Path
) -> None:
    """Craswell et al. 2021, §3.3, counts 12, 11 and 7 of the busiest groups."""
    file = data("leaderboards/msmarco-doc-leaderboard.csv")
    board = scores_of_old_table(parse_table(file.read_bytes(), path=file.name))
    (tmp_path / "groups.tsv").write_text(GROUPS.lstrip())
    found = answered(board, groups=tmp_path / "groups.tsv", until=date(2021, 1, 31))
    counted = {group["name"]: group["submissions"] for group in found["groups"]}
    assert counted == {"Waterloo": 11, "Bosch": 7, "CMU": 3}
    assert sum(counted.values()) + found["nameless"] == 59  # every row until then but 3 baselines


@pytest.mark.real
def test_the_real_document_board(data: Callable[[str], Path]) -> None:
    """The three busiest groups of early 2021 had 12, 11 and 7 entries, by institution."""
    file = data("leaderboards/msmarco-doc-leaderboard.csv")
    board = scores_of_old_table(parse_table(file.read_bytes(), path=file.name))
    given = Dated(board=board, views=(board.views["dev"], board.views["eval"]))
    result = look_at_teams(given, rng(), TeamsOptions())
    assert sum(group.submissions for group in result.groups) + result.nameless == 114
    assert result.groups[0].submissions == 11
    assert all(group.slope is None or group.slope.low is None for group in result.groups)
