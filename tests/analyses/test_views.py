"""The bootstrap on several views: shared systems, shared draws, and the command."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from numpy.typing import NDArray
from simulated_boards import board_of, entries_of, table, view_of

import calling
from heldout.analyses.stability import bootstrap_stability
from heldout.analyses.views import (
    SystemView,
    Views,
    ViewsOptions,
    bootstrap_views,
    summary,
    view_chart,
)
from heldout.charts.plot import inline
from heldout.cli.analyses.sources import Source, load_measures
from heldout.errors import InputError
from heldout.files.frames import write_parquet
from heldout.scoring.table import ScoreTable, table_of
from heldout.stats.rank_correlation import kendall

answer = partial(calling.answer, "analyse", "views")
call = partial(calling.call, "analyse", "views")
refused = partial(calling.refused, "analyse", "views")

RISING = np.linspace(0, 0.3, 6)


def scores(seed: int, systems: Sequence[str] = "abcdef", queries: int = 40) -> ScoreTable:
    rng = np.random.default_rng(seed)
    values = rng.random((len(systems), queries)).round(3) + RISING[: len(systems), np.newaxis]
    return table(dict(zip(systems, values.round(3), strict=True)))


def compare(*tables: ScoreTable, seed: int = 0, **options: Any) -> Views:
    views = [SystemView.of(f"v{n}", table) for n, table in enumerate(tables)]
    return bootstrap_views(views, Generator(PCG64(seed)), ViewsOptions(trials=200, **options))


def tau_of(found: Views, first: str, second: str) -> float | None:
    (tau,) = {p.tau for p in found.transfer.pairs if {p.first, p.second} == {first, second}}
    return tau


def test_a_view_alone_is_the_bootstrap_of_its_table() -> None:
    first, second = scores(1), scores(2, queries=25)
    found = compare(first, second)
    seed = int(Generator(PCG64(0)).integers(1 << 63))
    alone = bootstrap_stability(first, Generator(PCG64(seed)), trials=200)
    assert (found.stability["v0"].rank_counts == alone.rank_counts).all()
    assert [s.queries for s in found.stability.values()] == [40, 25]


def test_views_on_the_same_queries_draw_the_same_ones() -> None:
    table = scores(1)
    found = compare(table, scores(3, queries=30), table)
    counts = [s.rank_counts for s in found.stability.values()]
    assert (counts[0] == counts[2]).all()
    assert (counts[0] != counts[1]).any()
    assert tau_of(found, "v0", "v2") == 1


def test_systems_that_a_view_lacks_are_left_out_and_named() -> None:
    found = compare(scores(1, "abcdef"), scores(2, "fcbxa"))
    assert found.systems == ("a", "b", "c", "f")
    assert found.left_out == ("d", "e", "x")
    assert all(set(s.systems) == set("abcf") for s in found.stability.values())
    assert found.transfer.pairs[0].systems == 4


def test_a_system_that_lacks_a_score_is_not_on_that_view() -> None:
    part = {"a": {"q1": 1.0, "q2": 0.0}, "b": {"q1": 0.5}, "c": {"q1": 0.0, "q2": 0.25}}
    whole = {name: {"q1": 1.0, "q2": 0.0} | row for name, row in part.items()}
    found = compare(table_of(whole), table_of(part))
    assert found.systems == ("a", "c")
    assert found.left_out == ("b",)


def test_named_runs_are_looked_at_on_every_view() -> None:
    found = compare(scores(1), scores(2), named=["b", "a"])
    assert [(one.system, one.view) for one in found.ranks] == [
        ("b", "v0"),
        ("b", "v1"),
        ("a", "v0"),
        ("a", "v1"),
    ]
    for one in found.ranks:
        stability = found.stability[one.view]
        assert sum(one.probability) == pytest.approx(1)
        assert one.expected == pytest.approx(np.dot(one.probability, range(1, 7)))
        assert stability.systems[one.rank - 1] == one.system
        assert sum(one.probability[one.low - 1 : one.high]) >= 0.95
        assert sum(one.probability[: one.low - 1]) < 0.025
        assert sum(one.probability[one.high :]) <= 0.025


def test_by_default_the_best_of_each_view_are_named() -> None:
    first = scores(1)
    turned = table_of({s: {q: -v for q, v in _row(first, s).items()} for s in first.systems})
    found = compare(first, turned)
    assert found.named[:2] == (
        found.stability["v0"].systems[0],
        found.stability["v1"].systems[0],
    )
    assert len(found.named) == 3
    assert tau_of(found, "v0", "v1") == -1


def _row(table: ScoreTable, system: str) -> dict[str, float]:
    values = table.values[table.systems.index(system)].tolist()
    return dict(zip(table.queries, values, strict=True))


def test_where_lower_is_better_the_ranking_turns() -> None:
    first = scores(1)
    views = [SystemView.of("rr", first), SystemView.of("cost", first, better="lower")]
    found = bootstrap_views(views, Generator(PCG64(0)), ViewsOptions(trials=50))
    assert found.stability["rr"].systems == found.stability["cost"].systems[::-1]
    assert tau_of(found, "rr", "cost") == -1


def test_a_view_of_means_has_no_ranks_but_an_agreement() -> None:
    first = scores(1)
    means = {s: first.mean(s) or 0.0 for s in "abc"}
    views = [SystemView.of("eval", first), SystemView(name="old", means=means, table=None)]
    found = bootstrap_views(views, Generator(PCG64(0)), ViewsOptions(trials=50))
    assert (tuple(found.stability), found.means_only) == (("eval",), ("old",))
    assert (found.systems, found.left_out) == (first.systems, ())
    assert (found.transfer.pairs[0].systems, found.transfer.pairs[0].tau) == (3, 1)
    assert summary(found)[-1] == ("", "means alone are known of old: no ranks")


def test_bad_input_is_told() -> None:
    with pytest.raises(InputError, match="too-few-views views: found 1: v0"):
        compare(scores(1))
    with pytest.raises(InputError, match=r'unknown-system --run: found "z"'):
        compare(scores(1), scores(2), named=["a", "z"])
    with pytest.raises(InputError, match="too-few-systems"):
        compare(scores(1, "ab"), scores(2, "bc"))
    with pytest.raises(InputError, match="too-few-queries"):
        compare(scores(1, queries=1), scores(2))


def test_the_picture_has_a_row_for_each_run_on_each_view() -> None:
    found = compare(scores(1), scores(2), named=["a", "f"])
    drawn = inline(view_chart(found), 440)
    assert drawn.count(">v0<") == drawn.count(">v1<") == 2
    assert "f, v0: rank 1 in" in drawn


def write(path: Path, values: NDArray[np.float64], names: str) -> Path:
    rows = [f"query,{','.join(names)}"]
    rows += [f"q{n},{','.join(map(str, row))}" for n, row in enumerate(values.tolist())]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    rng = np.random.default_rng(5)
    better = np.array([0.0, 0.4, 0.9])
    return (
        write(tmp_path / "public.csv", (rng.random((40, 3)) + better).round(3), "xyz"),
        write(tmp_path / "reserve.csv", (rng.random((20, 3)) + better).round(3), "xyz"),
    )


def test_the_command_takes_a_table_for_each_view(files: tuple[Path, Path], tmp_path: Path) -> None:
    sources = ["--scores", files[0], "--scores", files[1]]
    text = call(*sources, "--explain").output
    assert text.startswith("public and reserve rank 3 systems with Kendall's tau 1.000.\n")
    assert "alike     public and reserve, tau 1.000 over 3 systems" in text
    assert "public 40, reserve 20" in text
    found = json.loads(call(*sources, "--json", "--run", "y", "--chart", tmp_path / "v.svg").stdout)
    assert [*found["stability"]] == ["public", "reserve"]
    assert [(one["system"], one["rank"]) for one in found["ranks"]] == [("y", 2), ("y", 2)]
    assert found["transfer"]["pairs"][0]["tau"] == 1
    assert (tmp_path / "v.svg").read_text().count(">reserve<") == 1
    assert "\\toprule" in call(*sources, "--latex").output


def test_the_command_takes_measures_and_judgments_of_runs(tmp_path: Path) -> None:
    for name, ranks in (("one", (1, 2, 3)), ("two", (2, 1, 3))):
        lines = [
            f"q{query} Q0 d{n} {rank} {9 - rank} {name}"
            for query in (1, 2)
            for n, rank in enumerate(ranks)
        ]
        (tmp_path / f"{name}.run").write_text("\n".join(lines) + "\n")
    (tmp_path / "sparse.qrels").write_text("q1 0 d0 1\nq2 0 d0 1\n")
    (tmp_path / "deep.qrels").write_text("q1 0 d1 1\nq2 0 d0 1\nq2 0 d1 1\n")
    found = answer(
        "--runs", tmp_path / "*.run", "--qrels", tmp_path / "sparse.qrels",
        "--qrels", tmp_path / "deep.qrels", "-m", "RR@10", "-m", "P@1")  # fmt: skip
    views = found["stability"]
    assert [*views] == [
        "RR@10 sparse", "P@1 sparse", "RR@10 deep", "P@1 deep",
    ]  # fmt: skip
    assert [view["systems"][0] for view in views.values()] == ["one", "one", "two", "two"]


def test_the_command_takes_all_views_of_a_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    rows = {"a": rng.random(20), "b": rng.random(20) + 1, "c": rng.random(20) + 2}
    views = view_of("eval", rows), view_of("reserve", rows, public=False)
    board = board_of(entries_of(list(rows)), *views)
    monkeypatch.setattr("heldout.cli.analyses.sources.load_board", lambda _: board)
    sources = ["--board", tmp_path, "--vault", tmp_path]
    found = answer(*sources)
    assert [*found["stability"]] == ["eval RR@10", "reserve RR@10"]
    assert "leave" in call(*sources, "--view", "eval").output


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_takes_means_of_collections(tmp_path: Path, suffix: str) -> None:
    means = tmp_path / f"means.{suffix}"
    if suffix == "csv":
        means.write_text("Collection,a,b,c\nMSMARCO,.3,.2,.1\nNQ,.5,.4,\nFEVER,.1,.2,.3\n")
    else:
        names = ["MSMARCO", "NQ", "FEVER"]
        systems = {"a": [0.3, 0.5, 0.1], "b": [0.2, 0.4, 0.2], "c": [0.1, None, 0.3]}
        write_parquet({"Collection": names, **systems}, means)
    text = call("--transfer", means).output
    assert "FEVER and MSMARCO least (tau -1.000)" in text
    found = answer("--transfer", means)
    assert found["scored"] == [3, 3, 2]
    assert [pair["systems"] for pair in found["pairs"]] == [3, 2, 2]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param([], "two views at least", id="nothing"),
        pytest.param(["--scores", "FIRST"], "two views at least", id="one view"),
        pytest.param(["--scores", "FIRST", "--scores", "FIRST"], "one name", id="a view twice"),
        pytest.param(["--runs", "*.run"], "runs need --qrels", id="runs alone"),
        pytest.param(["--transfer", "FIRST", "--scores", "FIRST"], "leave", id="means and scores"),
        pytest.param(
            ["--scores", "FIRST", "-m", "RR@10", "-m", "P@5"], "one measure", id="two measures"
        ),
    ],
)
def test_what_does_not_go_together_is_told(
    files: tuple[Path, Path], arguments: list[str], told: str
) -> None:
    assert told in refused(*(files[0] if one == "FIRST" else one for one in arguments))


@pytest.mark.slow
@pytest.mark.real
def test_measures_on_covid_runs(data: Callable[[str], Path]) -> None:
    folder = data("trec-covid-round1")
    found = answer(
        "--runs", folder / "runs-depth100" / "*", "--qrels", folder / "qrels-round1.txt.gz",
        "-m", "nDCG@10", "-m", "P@5", "--trials", 200)  # fmt: skip
    assert len(found["systems"]) == 143
    assert found["transfer"]["pairs"][0]["tau"] == pytest.approx(0.920, abs=5e-4)
    assert found["named"][0] == "run1"


@pytest.mark.real
@pytest.mark.parametrize(
    ("measure", "tau"),
    [pytest.param("nDCG@10", 0.77, id="ndcg"), pytest.param("RR@10", 0.61, id="rr")],
)
def test_random_halves_of_the_covid_topics_rank_as_alike_as_the_page_says(
    data: Callable[[str], Path], measure: str, tau: float
) -> None:
    """The yardstick of docs/results/validity-real.md: what tau chance alone leaves."""
    folder = data("trec-covid-round1")
    runs, qrels = str(folder / "runs-depth100" / "*"), str(folder / "qrels-round1.txt.gz")
    (loaded,) = load_measures(Source(runs=(runs,), qrels=qrels), [measure]).values()
    values, rng = loaded.table.values, np.random.default_rng(0)
    found = []
    for _ in range(200):
        order = rng.permutation(values.shape[1])
        halves = values[:, order[:15]].mean(axis=1), values[:, order[15:]].mean(axis=1)
        found.append(kendall(*(half.round(12) for half in halves)) or 0)
    assert np.mean(found) == pytest.approx(tau, abs=0.005)
