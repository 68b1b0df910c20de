"""Drift: a constant factor is no drift, a learned dev set is, and means alone are described."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import theilslopes
from simulated_boards import board_of, entries_of, evolve, means_of, rng, view_of

from drawings import tips
from heldout.analyses import drift as report
from heldout.analyses.drift import find_drift, median_slopes
from heldout.analyses.entries import BoardScores, Dated
from heldout.analyses.views import pair_views
from heldout.answers.table import list_notes
from heldout.board.old_boards import parse_table, scores_of_old_table


def made(
    seed: int, *, mask: float = 0.0, learned: float = 0.0, systems: int = 15, queries: int = 300
) -> BoardScores:
    """A board on which scores rise; `mask` of the eval queries score nothing for anybody."""
    draw = rng(seed)
    ids = [f"s{n}" for n in range(systems)]
    dev = evolve(draw, systems=systems, queries=queries, drift=0.02 + learned)
    official = evolve(draw, systems=systems, queries=queries, drift=0.02)
    official *= draw.random(queries) >= mask
    return board_of(
        entries_of(ids, days=[30 * n for n in range(systems)]),
        view_of("eval", dict(zip(ids, official, strict=True))),
        view_of("dev", dict(zip(ids, dev, strict=True)), held_out=False),
    )


def found(board: BoardScores, *, trials: int = 200) -> Any:
    return find_drift(Dated(board=board, views=()).beside(None, "dev"), rng(), trials=trials)


def constant_factor(factor: float) -> BoardScores:
    """Official scores are exactly a factor of rising dev scores."""
    ids = [f"s{n}" for n in range(8)]
    dev = np.linspace(0.2, 0.4, 8)[:, np.newaxis] + rng().normal(0, 0.01, (1, 40))
    rows = dict(zip(ids, dev, strict=True))
    official = dict(zip(ids, dev * factor, strict=True))
    return board_of(
        entries_of(ids, days=[60 * n for n in range(8)]),
        view_of("eval", official, queries="both"),
        view_of("dev", rows, queries="both", held_out=False),
    )


@given(st.floats(0.5, 0.95))
@settings(max_examples=15)
def test_a_constant_factor_is_told_apart_from_drift(factor: float) -> None:
    board = constant_factor(factor)
    result = found(board)
    assert result.verdict == "mask or difficulty"
    assert result.ratio == pytest.approx(factor)
    assert result.remainder.per_year == pytest.approx(0, abs=1e-9)
    views = {name: means_of(view) for name, view in board.views.items()}
    means = found(replace(board, views=views))
    assert means.remainder.per_year == result.remainder.per_year


def test_a_dev_set_that_is_learned_is_found() -> None:
    results = [found(made(seed, learned=0.05, queries=500)) for seed in range(8)]
    assert sum(result.verdict == "not explained" for result in results) >= 7
    for result in results:
        assert result.difference.high < 0


def test_boards_that_learn_nothing_are_rarely_called_drifting() -> None:
    called = [found(made(seed, mask=0.1, systems=10, queries=100)).verdict for seed in range(40)]
    # 40 boards at 5%: 7 or more have a chance of 0.3%
    assert called.count("not explained") < 7


@given(
    st.lists(st.integers(0, 40), min_size=3, max_size=12).filter(lambda days: len(set(days)) > 1),
    st.integers(0, 2**32 - 1),
)
def test_the_median_slope_is_that_of_scipy(days: list[int], seed: int) -> None:
    values = rng(seed).normal(size=(3, len(days)))
    times = np.array(days, np.float64)
    ours = median_slopes(values, times)
    theirs = [theilslopes(row, times).slope for row in values]
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_means_alone_are_described_and_carry_no_interval() -> None:
    board = made(1)
    views = {name: means_of(view) for name, view in board.views.items()}
    result = found(replace(board, views=views))
    assert result.trials == 0
    assert result.digests == ()
    assert (result.difference.low, result.difference.high) == (None, None)
    assert result.verdict == "undefined"
    assert "means alone do not show how much of a trend is luck" in result.why
    assert report.headline(result) == (
        f"The gap between eval and dev scores changes by {result.difference.per_year:+.4f} a year, "
        f"and by {result.remainder.per_year:+.4f} beside a constant ratio of {result.ratio:.3f}; "
        "neither is tested, since means alone are known."
    )
    notes = [note for table in report.tables(result) for note in list_notes(table)]
    assert any("without intervals or a verdict" in note for note in notes)


def test_means_of_boards_without_drift_are_never_called_drifting() -> None:
    """By the trend of means that the ratio leaves, 9 in 10 of them were `not explained`."""
    for seed in range(20):
        board = made(seed, systems=10, queries=100)
        views = {name: means_of(view) for name, view in board.views.items()}
        assert found(replace(board, views=views)).verdict == "undefined"


def test_an_entry_that_scores_nothing_in_some_draws_takes_no_interval_away() -> None:
    """One of ten scores on a single dev query: in a third of the draws its dev mean is 0."""
    board = made(2, learned=0.05, systems=10, queries=200)
    alone = found(board)
    dev: Any = board.views["dev"]
    values = dev.table.values.copy()
    values[4] = 0.0
    values[4, 0] = 1.0
    weak = replace(dev, table=replace(dev.table, values=values))
    weak = replace(weak, means={**dev.means, "s4": float(values[4].mean())})
    result = found(replace(board, views={**board.views, "dev": weak}))
    for trend in (result.difference, result.remainder, result.ratio_trend):
        assert trend.low < trend.per_year < trend.high
    assert alone.difference is not None
    assert result.difference.high < 0  # as without it
    assert result.verdict == alone.verdict == "not explained"


def test_baselines_and_entries_without_a_dev_score_say_nothing_of_drift() -> None:
    board = made(3)
    first, second, *rest = board.entries
    dev = board.views["dev"]
    means = {one: mean for one, mean in dev.means.items() if one != second.id}
    views = {"eval": means_of(board.views["eval"]), "dev": replace(means_of(dev), means=means)}
    entries = (replace(first, baseline=True), second, *rest)
    result = found(replace(board, entries=entries, views=views))
    assert {point.entry.id for point in result.points} == {entry.id for entry in rest}


@pytest.mark.parametrize("days", [[0, 10], [5, 5, 5]])
def test_too_few_entries_or_one_day_alone_are_undefined(days: list[int]) -> None:
    ids = [f"s{n}" for n in range(len(days))]
    scores = evolve(rng(), systems=len(days), queries=10)
    rows = dict(zip(ids, scores, strict=True))
    board = board_of(
        entries_of(ids, days=days), view_of("eval", rows), view_of("dev", rows, held_out=False)
    )
    result = found(board)
    assert result.verdict == "undefined"
    assert result.difference is None
    assert "needs" in result.why
    assert result.difference is None


def test_an_entry_whose_dev_score_is_0_has_no_ratio_and_is_left_out() -> None:
    ids = ["a", "b", "c"]
    board = board_of(
        entries_of(ids),
        view_of("eval", {one: np.array([0.5, 1.0]) for one in ids}),
        view_of("dev", {one: np.zeros(2) for one in ids}, held_out=False),
    )
    result = found(board)
    assert result.points == ()
    assert result.ratio is None
    assert result.verdict == "undefined"


def test_queries_of_both_views_are_drawn_for_both() -> None:
    ids = [f"s{n}" for n in range(4)]
    scores = evolve(rng(5), systems=4, queries=30)
    rows = dict(zip(ids, scores, strict=True))
    part = dict(zip(ids, scores[:, :12], strict=True))
    whole, same = view_of("eval", rows, queries="q"), view_of("again", rows, queries="q")
    board = board_of(entries_of(ids), whole, same, view_of("tail", part, queries="q"))
    first, second = pair_views(board, whole, same).resample(rng(), trials=50)
    assert np.allclose(first, second, atol=1e-12)
    first, second = pair_views(board, whole, board.views["tail"]).resample(rng(), trials=4000)
    # 12 of the 30 queries are in both, so their means go together
    expected = first.var(axis=0) * 30 * 12 / (12 * 30)
    covariance = [np.cov(a, b)[0, 1] for a, b in zip(first.T, second.T, strict=True)]
    within = scores[:, :12].var(axis=1) / 30
    assert np.allclose(covariance, within, rtol=0.25)
    assert (expected > 0).all()


def test_another_set_with_the_same_query_names_is_drawn_apart() -> None:
    ids = [f"s{n}" for n in range(3)]
    scores = evolve(rng(6), systems=3, queries=40)
    rows = dict(zip(ids, scores, strict=True))
    board = board_of(entries_of(ids), view_of("eval", rows), view_of("dev", rows, held_out=False))
    pair = pair_views(board, board.views["eval"], board.views["dev"])
    first, second = pair.resample(rng(), trials=2000)
    assert abs(np.corrcoef(first[:, 0], second[:, 0])[0, 1]) < 0.1


def test_a_factor_is_named_as_a_possible_cause_where_nothing_is_tested() -> None:
    def named(board: BoardScores) -> list[str]:
        return [text for name, text in report.summary(found(board)) if name == "perhaps"]

    board = constant_factor(0.9)
    alone = replace(board, views={name: means_of(view) for name, view in board.views.items()})
    (cause,) = named(alone)
    assert cause.endswith("whether one is the cause is not tested")
    assert named(board) == []
    higher = constant_factor(1.1)
    views = {name: means_of(view) for name, view in higher.views.items()}
    assert named(replace(higher, views=views)) == []


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "entries", "ratio", "verdict"),
    [("doc", 96, 0.878, "undefined"), ("passage", 152, 0.974, "undefined")],
)
def test_the_real_boards(
    data: Callable[[str], Path], name: str, entries: int, ratio: float, verdict: str
) -> None:
    file = data(f"leaderboards/msmarco-{name}-leaderboard.csv")
    result = found(scores_of_old_table(parse_table(file.read_bytes(), path=file.name)))
    assert len(result.points) == entries
    assert result.ratio == pytest.approx(ratio, abs=0.0005)
    assert result.verdict == verdict
    for plot in ("time", "dev"):
        assert len(tips(report.chart(result, plot))) == entries
    trends = {"doc": ("-0.0151", "-0.0029"), "passage": ("-0.0017", "-0.0011")}[name]
    assert all(f"by {trend} " in report.headline(result) for trend in trends)
