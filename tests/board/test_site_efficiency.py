"""Costs that teams state: checked, sealed with the identity, shown, and drawn with their front."""

import csv
import json
import math
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.filters import do_striptags
from sample_boards import baseline, facts, row, spec, standings

from drawings import tips
from heldout.board.log.manifest import (
    LIMITS,
    Efficiency,
    Manifest,
    check_efficiency,
    empty_manifest,
    format_manifest,
    identity_fields,
    parse_manifest,
)
from heldout.board.site.columns import STATED, full_text
from heldout.board.site.exports import format_csv, format_json
from heldout.board.site.figures import Figure, make_cost_figures, pareto_front
from heldout.board.site.pages import render_board
from heldout.board.site.rows import make_columns, public_rows
from heldout.board.standings.standings import Row
from heldout.charts.axes import Axis, log_axis
from heldout.charts.scores import ChartEntry, cost_chart
from heldout.errors import InputError

GOOD: dict[str, Any] = {"team": "Lighthouse", "model_description": "monoT5", "type": "full ranking"}
COSTS = Efficiency(
    parameters=110_000_000,
    training_pairs=502_939,
    hardware="1 GPU, 24 GB",
    query_latency_ms=12.5,
    energy_kwh=0.35,
)
whole = st.none() | st.integers(0, 10**15)
amount = st.none() | st.floats(0.0001, 10**9)
stated = st.builds(
    Efficiency,
    parameters=whole,
    training_pairs=whole,
    query_latency_ms=amount,
    energy_kwh=amount,
)


def read(efficiency: object) -> Manifest:
    return parse_manifest(json.dumps({**GOOD, "efficiency": efficiency}).encode())


def stating(efficiency: Efficiency) -> Manifest:
    return msgspec.structs.replace(parse_manifest(json.dumps(GOOD).encode()), efficiency=efficiency)


def problems(efficiency: object) -> set[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        read(efficiency)
    return {(problem.code, problem.path) for problem in caught.value.problems}


@given(stated)
def test_what_is_stated_is_read_as_it_was_written(efficiency: Efficiency) -> None:
    manifest = msgspec.structs.replace(
        parse_manifest(json.dumps(GOOD).encode()), efficiency=efficiency
    )
    again = parse_manifest(format_manifest(manifest)).efficiency
    assert again == (None if efficiency == Efficiency() else efficiency)


@given(stated)
def test_any_json_writer_makes_the_bytes_that_are_sealed(efficiency: Efficiency) -> None:
    fields = identity_fields(stating(efficiency))
    ours = msgspec.json.encode(fields, order="deterministic").decode()
    theirs = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert ours == theirs


def test_a_draft_shows_what_may_be_stated_and_states_nothing() -> None:
    draft = format_manifest(empty_manifest(types=("full ranking",), embargo_until=None))
    assert list(json.loads(draft)["efficiency"]) == [*Efficiency.__struct_fields__]
    assert parse_manifest(draft).efficiency is None


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [-1, 1e18, "12", True, [], {}, -0.5, 10**17])
def test_an_absurd_number_is_refused(name: str, value: object) -> None:
    assert problems({name: value}) == {("wrong-field", f"metadata.json:efficiency.{name}")}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_is_refused_where_it_comes_as_a_value(value: float) -> None:
    (problem,) = check_efficiency({"energy_kwh": value}, path="x")
    assert problem.path == "x.energy_kwh"


@pytest.mark.parametrize("value", ["1e400", "NaN", "1" + "0" * 5_000])
def test_a_number_that_no_machine_holds_is_refused(value: str) -> None:
    text = json.dumps(GOOD)[:-1] + ', "efficiency": {"parameters": ' + value + "}}"
    with pytest.raises(InputError):
        parse_manifest(text.encode())


@pytest.mark.parametrize("name", ["query_latency_ms", "energy_kwh"])
def test_nothing_takes_no_time_and_no_energy(name: str) -> None:
    assert problems({name: 0}) == {("wrong-field", f"metadata.json:efficiency.{name}")}


def test_half_a_parameter_is_refused() -> None:
    assert problems({"parameters": 1.5}) == {("wrong-field", "metadata.json:efficiency.parameters")}


@pytest.mark.parametrize("value", [[], "fast", 7, True])
def test_what_is_no_object_is_refused(value: object) -> None:
    assert problems(value) == {("wrong-field", "metadata.json:efficiency")}


def test_every_problem_is_told_at_once() -> None:
    assert problems({"parameters": -1, "hardware": "a\u202eb", "latency": 7, "energy_kwh": 0}) == {
        ("wrong-field", "metadata.json:efficiency.parameters"),
        ("invisible-character", "metadata.json:efficiency.hardware"),
        ("unknown-field", "metadata.json:efficiency"),
        ("wrong-field", "metadata.json:efficiency.energy_kwh"),
    }


@pytest.mark.parametrize("value", [None, 7, "x" * 2001])
def test_hardware_is_a_text_of_some_length(value: object) -> None:
    assert problems({"hardware": value}) == {("wrong-field", "metadata.json:efficiency.hardware")}


def test_an_entry_s_page_says_what_is_stated_and_nothing_else() -> None:
    def said(efficiency: Efficiency | None) -> dict[str, str]:
        one = row("0.4", days=1, training_data="", efficiency=efficiency)
        return {c.title: words for c in STATED if (words := full_text(c, one))}

    assert said(COSTS) == {
        "Parameters": "110,000,000",
        "Training pairs": "502,939",
        "Query latency": "12.5 ms",
        "Energy": "0.35 kWh",
        "Hardware": "1 GPU, 24 GB",
    }
    assert said(Efficiency(parameters=0)) == {"Parameters": "0"}
    assert said(None) == said(Efficiency()) == {}


def test_an_embargo_hides_what_is_stated() -> None:
    secret = row("0.4", days=1, efficiency=Efficiency(hardware="Kestrel", parameters=777))
    hidden = replace(secret, identity=None, embargo_until=date(2027, 1, 1))
    for one, shown in ((secret, True), (hidden, False)):
        files = render_board(standings([one]), spec(), facts())
        everything = b"".join(files.values())
        assert (b"Kestrel" in everything) is (b"777" in files["leaderboard/leaderboard.csv"])
        assert (b"Kestrel" in everything) is shown


def test_json_and_csv_hold_what_is_stated() -> None:
    board = standings([baseline(), row("0.4", days=1, efficiency=COSTS)])
    first, base = json.loads(format_json(board, spec()))["rows"]
    assert (first["parameters"], first["query_latency_ms"]) == (110_000_000, 12.5)
    assert not {"parameters", "query_latency_ms"} & set(first["why"])
    assert (base["parameters"], base["query_latency_ms"]) == (None, None)
    assert base["why"]["query_latency_ms"] == "not stated"
    rows = list(csv.DictReader(format_csv(board, spec()).decode().splitlines()))
    assert [(r["parameters"], r["query_latency_ms"]) for r in rows] == [
        ("110000000", "12.5"),
        ("", ""),
    ]


points = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12)


@given(points)
def test_the_front_is_what_no_other_point_beats(pairs: list[tuple[int, int]]) -> None:
    made = {(Decimal(cost), Decimal(score)) for cost, score in pairs}
    beaten = {
        one
        for one in made
        for other in made
        if other != one and other[0] <= one[0] and other[1] >= one[1]
    }
    assert pareto_front(made) == made - beaten


def figures(*rows: Row) -> dict[str, Figure]:
    shown = public_rows(standings(rows))
    return {f.key: f for f in make_cost_figures(shown, make_columns(spec()))}


def cost(score: str, name: str, **changes: Any) -> Row:
    return row(score, description=name, id=f"20260101-{name}", efficiency=Efficiency(**changes))


def test_a_chart_needs_three_entries_that_state_the_cost() -> None:
    rows = [cost("0.4", "a", parameters=1), cost("0.3", "b", parameters=9), cost("0.5", "c")]
    assert figures(*rows) == {}
    assert set(figures(*rows, cost("0.2", "d", parameters=8))) == {"cost-parameters"}
    assert figures(baseline(), row("0.4", days=1)) == {}


def test_the_chart_says_who_is_on_the_front() -> None:
    found = figures(
        baseline(),
        cost("0.400", "small", query_latency_ms=2.0),
        cost("0.300", "beaten", query_latency_ms=5.0),
        cost("0.500", "large", query_latency_ms=50.0),
        cost("0.450", "silent"),
    )["cost-query_latency_ms"]
    assert do_striptags(found.says) == (
        "3 of 4 entries state their query latency. On the Pareto front, where no other is at least "
        "as good at the same cost or less: large and small. The numbers are the teams' own, each "
        "measured on hardware of its own."
    )
    assert found.marks == (("diamond", "on the Pareto front"), ("circle", "other entry"))
    for name in ("small", "beaten", "large"):
        assert f"<title>{name}</title>" in found.wide
    assert "silent" not in found.wide


def test_a_system_without_parameters_is_on_the_front_but_not_on_the_axis() -> None:
    costs = {"bm25": 0, "weak": 5, "strong": 50, "stronger": 500}
    scores = {"bm25": "0.400", "weak": "0.300", "strong": "0.500", "stronger": "0.600"}
    found = figures(*(cost(scores[n], n, parameters=p) for n, p in costs.items()))
    says = do_striptags(found["cost-parameters"].says)
    assert "stronger, strong and bm25." in says
    assert "1 that states 0 cannot be drawn on an axis of logarithms." in says
    assert "bm25" not in found["cost-parameters"].wide


def test_an_embargoed_entry_is_in_no_chart() -> None:
    rows = [cost(f"0.{n}", f"s{n}", parameters=n) for n in (4, 5, 6)]
    hidden = replace(cost("0.9", "Secret", parameters=1), identity=None)
    found = figures(*rows, hidden)["cost-parameters"]
    assert "3 of 4 entries" in do_striptags(found.says)
    assert "Anonymous" not in found.wide


@given(st.lists(st.tuples(st.floats(0.0001, 1e15), st.floats(0, 1)), min_size=1, max_size=8))
def test_any_costs_can_be_drawn(pairs: list[tuple[float, float]]) -> None:
    marks = [
        ChartEntry(label=f"S{n}", day=date(2026, 1, 1), score=score, other=x, record=n % 2 == 0)
        for n, (x, score) in enumerate(pairs)
    ]
    chart = cost_chart(marks, head="RR", foot="ms")
    assert sorted(tips(chart)) == sorted(one.label for one in marks)


def decades(low: float, high: float) -> Axis:
    return log_axis([10**low, 10**high], room=0)


@given(st.floats(-4, 15), st.floats(0.02, 19), st.integers(2, 12))
def test_ticks_of_logarithms_are_few_round_and_inside(low: float, wide: float, most: int) -> None:
    axis = decades(low, low + wide)
    ticks = axis.ticks(most)
    assert 1 <= len(ticks) <= most
    assert all(-1e-9 <= axis.share(tick.at) <= 1 + 1e-9 for tick in ticks)
    assert all(one.at < two.at for one, two in pairwise(ticks))
    assert len({tick.label for tick in ticks}) == len(ticks)
