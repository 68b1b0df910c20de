"""Columns of the table: each in every form (page, CSV, JSON), costs among them."""

import csv
import io
import json
import math
import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.filters import do_striptags
from page_documents import Document
from sample_boards import (
    BOARDS,
    RULES,
    baseline,
    busy,
    facts,
    hostile,
    row,
    seasonal,
    spec,
    standings,
)

from drawings import tips
from heldout.board.log.manifest import (
    LIMITS,
    Costs,
    Efficiency,
    Manifest,
    check_efficiency,
    empty_manifest,
    format_manifest,
    identity_fields,
    parse_manifest,
)
from heldout.board.rules.spec import View
from heldout.board.site import columns
from heldout.board.site.exports import format_csv, format_json
from heldout.board.site.figures import Figure, make_cost_figures, pareto_front
from heldout.board.site.pages import render_board
from heldout.board.site.rows import make_columns, public_row, public_rows
from heldout.board.standings.standings import Row
from heldout.charts.axes import log_axis
from heldout.charts.scores import ChartEntry, cost_chart
from heldout.errors import InputError

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "page.md"
WHOLE = row(
    "0.417",
    "0.433",
    days=40,
    id="20251011-whole",
    rank_low=1,
    rank_high=2,
    seeds=3,
    spreads={"eval": "0.004"},
    team="Zander Group",
    institution="Zebu University",
    description="Zither ranker",
    paper="https://paper.example.org/zinc",
    code="https://code.example.org/zoom",
    training_data="Zephyr queries",
    type="zero shot",
    efficiency=Efficiency(
        parameters=123,
        training_pairs=457,
        hardware="Zilog Z80",
        query_latency_ms=8.25,
        energy_kwh=0.75,
    ),
    costs=Costs(
        seconds=61.5,
        query_latency_ms=9.75,
        processor_seconds=119.5,
        memory_mib=734.5,
        energy_kwh=0.625,
        machine="Zuse Z3, 2 processors",
    ),
)
OTHERS = [row("0.3", days=3, id="b"), row("0.2", days=4, id="c", baseline=True)]
FILES = render_board(standings([WHOLE, *OTHERS]), spec(), facts())
SHOWN: Row = standings([WHOLE, *OTHERS]).rows[0]

ON_THE_PAGE = {
    "rank": 'data-value="1">1',
    "id": f'data-id="{WHOLE.id}"',
    "trophy": 'class="cup"',
    "embargoed": "",  # the name says it
    "baseline": '<span class="tag">baseline</span>',
    "rank_low": "1–2",
    "rank_high": "1–2",
    "seeds": "3 seeds",
}
"""What the page has of a column that stands in the cell of another one; of others all the words."""

ON_ITS_OWN_PAGE = {
    "rank": "Rank 1 of 2",
    "rank_low": "(range 1–2)",
    "rank_high": "(range 1–2)",
    "trophy": 'class="cup"',
    "embargoed": "",
    "baseline": "",
}


@pytest.mark.parametrize("column", columns.COLUMNS, ids=lambda column: column.key)
def test_a_column_is_in_every_form(column: columns.EntryColumn) -> None:
    value, words = column.of(SHOWN), columns.full_text(column, SHOWN)
    assert value is not None
    number = words.removesuffix(f" {column.unit}")
    index = FILES["leaderboard/index.html"].decode()
    assert ON_THE_PAGE.get(column.key, number) in index
    entry = FILES[f"leaderboard/entries/{WHOLE.id}.html"].decode()
    assert ON_ITS_OWN_PAGE.get(column.key, words) in entry.replace("\u00a0", " ")
    assert json.loads(FILES["leaderboard/leaderboard.json"])["rows"][0][column.key] == value
    table = csv.DictReader(io.StringIO(FILES["leaderboard/leaderboard.csv"].decode()))
    written = str(value).lower() if isinstance(value, bool) else str(value)
    assert next(table)[column.key] == written


def test_only_json_and_csv_have_what_no_entry_states() -> None:
    files = render_board(standings([row("0.3", days=1, training_data="")]), spec(), facts())
    index = files["leaderboard/index.html"].decode()
    (one,) = json.loads(files["leaderboard/leaderboard.json"])["rows"]
    for column in columns.STATED:
        assert f'data-key="{column.key}"' not in index
        assert (one[column.key], one["why"][column.key]) == (None, "not stated")


def test_what_is_null_says_why_and_nothing_else_does() -> None:
    hidden = row("0.4", days=2, embargoed=True, embargo_until=date(2027, 5, 20))
    board = standings([hidden, *OTHERS])
    rows = json.loads(render_board(board, spec(), facts())["leaderboard/leaderboard.json"])["rows"]
    for one in rows:
        nothing = {column.key for column in columns.COLUMNS if one[column.key] is None}
        nothing |= {f"scores.{view}" for view, score in one["scores"].items() if score is None}
        assert set(one["why"]) == nothing
        assert all(one["why"].values())


def test_the_page_explains_every_column_of_its_table() -> None:
    text = " ".join(Document(FILES["leaderboard/index.html"]).text.split())
    for column in columns.COLUMNS:
        if column in columns.STATED or column.key in ("rank", "date", "trophy"):
            assert column.means in text


def test_the_docs_have_the_table() -> None:
    lines = [f"| `{c.key}` | {c.title} | {c.unit} | {c.means} |" for c in columns.COLUMNS]
    assert "\n".join(lines) in DOCS.read_text("utf-8"), "\n".join(lines)


@pytest.mark.slow
def test_every_json_file_has_a_schema_number() -> None:
    names = ("busy", "trusted", "final")
    boards = [render_board(BOARDS[name], RULES[name], facts()) for name in names]
    several, rules = seasonal()
    boards.append(render_board(several[0].standings, rules, facts(), seasons=several))
    pages = [item for files in boards for item in files.items() if item[0].endswith(".json")]
    found = {path: json.loads(data).get("schema") for path, data in pages}
    assert {"leaderboard/leaderboard.json", "leaderboard/trust.json"} <= found.keys()
    assert set(found.values()) == {1}


ALL_STATED = Efficiency(
    parameters=110_000_000,
    training_pairs=502_939,
    hardware="1 GPU, 24 GB",
    query_latency_ms=12.54,
    energy_kwh=0.351,
)
UNITS = {"k": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


def costs(**changes: Any) -> dict[str, columns.EntryCell]:
    one = public_row(row("0.4", days=1, **({"efficiency": ALL_STATED} | changes)))
    return {column.key: columns.make_cell(column, one) for column in columns.STATED}


def test_three_digits_stand_in_the_table_and_all_in_the_title() -> None:
    found = {key: (cost.text, cost.value, cost.whole) for key, cost in costs().items()}
    assert found == {
        "parameters": ("110M", "110000000", "110,000,000"),
        "training_data": ("MS MARCO passages, train split",) * 3,
        "training_pairs": ("503k", "502939", "502,939"),
        "query_latency_ms": ("12.5", "12.54", "12.54"),
        "energy_kwh": ("0.351", "0.351", "0.351"),
        "hardware": ("1 GPU, 24 GB",) * 3,
    }


def test_what_is_not_stated_is_a_blank_and_never_a_zero() -> None:
    none = costs(efficiency=None, training_data="")
    assert {cost.whole for cost in none.values()} == {"not stated"}
    assert not any(cost.value or cost.text for cost in none.values())
    zero = costs(efficiency=Efficiency(parameters=0))
    assert (zero["parameters"].text, zero["training_pairs"].text) == ("0", "")


def test_an_embargo_withholds_every_cost() -> None:
    hidden = costs(embargoed=True, embargo_until=date(2027, 5, 20))
    assert {cost.whole for cost in hidden.values()} == {"withheld by an embargo"}
    assert not any(cost.value or cost.text for cost in hidden.values())


@given(st.integers(0, 10**15) | st.floats(0.0001, 10**9))
def test_a_short_number_is_that_number_to_three_digits(number: float) -> None:
    """Whatever its size: never an exponent, never more than a half per cent off."""
    cost = costs(efficiency=Efficiency(query_latency_ms=number))["query_latency_ms"]
    found = re.fullmatch(r"([0-9,]+(?:\.[0-9]+)?)([kMBT]?)", cost.text)
    assert found, cost.text
    shown = Decimal(found[1].replace(",", "")) * UNITS.get(found[2], 1)
    assert abs(shown - Decimal(repr(number))) <= Decimal(repr(number)) * Decimal("0.005")
    assert len(cost.text) <= max(len("1,000T"), len("0.000123"))
    assert Decimal(cost.value) == Decimal(repr(number))


def test_only_columns_with_something_in_them_are_shown() -> None:
    only = row("0.4", days=1, training_data="", efficiency=Efficiency(energy_kwh=0.5))
    rows = [public_row(one) for one in (only, baseline())]
    assert [column.key for column in columns.cost_columns(rows)] == ["energy_kwh"]
    files = render_board(standings([only, baseline()]), spec(), facts())
    page = files["leaderboard/index.html"].decode()
    assert 'data-key="energy_kwh"' in page
    assert 'data-key="parameters"' not in page
    assert page.count('title="not stated"') == 1


GOOD: dict[str, Any] = {"team": "Lighthouse", "model_description": "monoT5", "type": "full ranking"}

whole = st.none() | st.integers(0, 10**15)
amount = st.none() | st.floats(0.0001, 10**9)
stated = st.builds(
    Efficiency, parameters=whole, training_pairs=whole, query_latency_ms=amount, energy_kwh=amount
)


def stating(efficiency: Efficiency) -> Manifest:
    return msgspec.structs.replace(parse_manifest(json.dumps(GOOD).encode()), efficiency=efficiency)


def problems(efficiency: object) -> set[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        parse_manifest(json.dumps({**GOOD, "efficiency": efficiency}).encode())
    return {(problem.code, problem.path) for problem in caught.value.problems}


@given(stated)
def test_what_is_stated_is_read_as_it_was_written(efficiency: Efficiency) -> None:
    again = parse_manifest(format_manifest(stating(efficiency))).efficiency
    assert again == (None if efficiency == Efficiency() else efficiency)


@given(stated)
def test_any_json_writer_makes_the_bytes_that_are_sealed(efficiency: Efficiency) -> None:
    fields = identity_fields(stating(efficiency))
    ours = msgspec.json.encode(fields, order="deterministic").decode()
    assert ours == json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def test_a_draft_shows_what_may_be_stated_and_states_nothing() -> None:
    draft = format_manifest(empty_manifest(types=("full ranking",), embargo_until=None))
    assert list(json.loads(draft)["efficiency"]) == [*Efficiency.__struct_fields__]
    assert parse_manifest(draft).efficiency is None


ABSURD: tuple[object, ...] = (-1, 1e18, "12", True, [], {}, -0.5, 10**17)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, bad) for name in LIMITS for bad in ABSURD),
        *((name, 0) for name in ("query_latency_ms", "energy_kwh")),
        ("parameters", 1.5),
        *(("hardware", bad) for bad in (None, 7, "x" * 2001)),
    ],
)
def test_what_cannot_be_stated(name: str, value: object) -> None:
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


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
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


@given(st.floats(-4, 15), st.floats(0.02, 19), st.integers(2, 12))
def test_ticks_of_logarithms_are_few_round_and_inside(low: float, wide: float, most: int) -> None:
    axis = log_axis([10**low, 10 ** (low + wide)], room=0)
    ticks = axis.ticks(most)
    assert 1 <= len(ticks) <= most
    assert all(-1e-9 <= axis.share(tick.at) <= 1 + 1e-9 for tick in ticks)
    assert all(one.at < two.at for one, two in pairwise(ticks))
    assert len({tick.label for tick in ticks}) == len(ticks)


COST_NAMES = (
    *("parameters", "training_data", "training_pairs"),
    *("query_latency_ms", "energy_kwh", "hardware"),
)
MEASURED = (
    *("measured_latency_ms", "measured_processor_s", "measured_memory_mib"),
    *("measured_energy_kwh", "measured_on"),
)
CSV_COLUMNS = [
    *("rank", "id", "date", "team", "institution", "description", "paper", "code", "type"),
    *("eval", "dev", "trophy", "embargoed", "baseline", "noise", "rank_low", "rank_high", "seeds"),
    *COST_NAMES,
    *MEASURED,
    *("eval_spread", "dev_spread"),
]


def read_csv(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))


def read_json(data: bytes) -> Any:
    return json.loads(data)


def test_csv_has_the_rows_in_their_order() -> None:
    board = busy()
    head, *rows = read_csv(format_csv(board, spec()))
    assert head == CSV_COLUMNS
    assert [r[1] for r in rows] == [r.id for r in board.rows]
    assert rows[0][9] == board.rows[0].scores["eval"]


def test_no_cell_of_a_hostile_board_starts_a_formula() -> None:
    rows = read_csv(format_csv(hostile(), spec()))
    assert len(rows) == len(hostile().rows) + 1
    assert all(len(r) == len(CSV_COLUMNS) for r in rows)
    assert not [cell for r in rows for cell in r if cell.lstrip()[:1] in set("=+-@\t\r")]


def test_a_view_that_looks_like_a_formula_is_quoted_in_the_head() -> None:
    views = (View(name="-1", set="dev", measure="RR@10"), *spec().views)
    assert "'-1" in read_csv(format_csv(standings([baseline()]), spec(views=views)))[0]


def test_json_has_the_contract_s_keys() -> None:
    document = read_json(format_json(busy(), spec()))
    assert document["schema"] == 1
    assert document["board"] == "stdlib-docs"
    assert document["as_of"] == "2026-11-20T17:10:00Z"
    first = document["rows"][0]
    assert list(first) == [
        *("rank", "id", "date", "team", "institution", "description", "paper", "code", "type"),
        *("scores", "spreads"),
        *("trophy", "embargoed", "baseline", "noise", "rank_low", "rank_high", "seeds"),
        *COST_NAMES,
        *MEASURED,
        "why",
    ]
    assert set(first["scores"]) == {"dev", "eval"}


def test_seeds_are_told_with_the_released_digits_of_their_spread() -> None:
    several = row("0.400", "0.410", days=1, seeds=3, spreads={"eval": "0.010", "dev": "0.000"})
    held = row("0.300", days=2, seeds=3, spreads={})
    board = standings([several, held, baseline()])
    data = format_json(board, spec())
    assert b'"eval": 0.010' in data
    first, second, base = read_json(data)["rows"]
    assert (first["seeds"], first["spreads"]) == (3, {"eval": 0.01, "dev": 0.0})
    assert (second["seeds"], second["spreads"]) == (3, {})
    assert (base["seeds"], base["spreads"]) == (1, {})
    rows = read_csv(format_csv(board, spec()))
    found = [(r[rows[0].index("seeds")], *r[-2:]) for r in rows[1:]]
    assert found == [("3", "0.010", "0.000"), ("3", "", ""), ("1", "", "")]


def test_json_scores_are_numbers_with_the_released_digits() -> None:
    data = format_json(standings([row("0.400", "0.410", days=1)]), spec())
    assert b'"eval": 0.400' in data
    assert read_json(data)["rows"][0]["scores"] == {"eval": 0.4, "dev": 0.41}


def test_what_is_undefined_is_null_and_says_why() -> None:
    board = standings([baseline(), row("0.4", days=1, rank_low=1, rank_high=1)])
    entry, base = read_json(format_json(board, spec()))["rows"]
    assert (entry["scores"]["dev"], base["rank"]) == (None, None)
    assert entry["why"]["scores.dev"] == "not scored on this view"
    assert {entry["why"][name] for name in MEASURED} == {"not measured"}


@pytest.mark.parametrize(
    ("closes", "why"),
    [
        (date(2026, 12, 31), "published after the last day"),
        (date(2026, 11, 19), "it was not scored on this view; heldout correct scores it"),
    ],
)
def test_a_final_score_is_promised_only_until_its_day(closes: date, why: str) -> None:
    reserve = View(name="reserve", set="eval", measure="R@1", public=False, final=True)
    rules = spec(views=(*spec().views, reserve), closes=closes)
    (entry,) = read_json(format_json(standings([row("0.4", days=1)]), rules))["rows"]
    assert entry["why"]["scores.reserve"] == why


def test_before_a_day_of_all_scores_no_view_says_that_it_was_not_scored() -> None:
    later = "score shown after 31 Dec 2026"
    board = standings([])
    board = replace(board, unranked=(row("0.4", days=1, rank=None, scores={}, unranked=later),))
    (entry,) = read_json(format_json(board, spec()))["rows"]
    assert {entry["why"][f"scores.{view}"] for view in ("dev", "eval")} == {later}


@pytest.mark.parametrize("score", ["NaN", "Infinity", "0,4", "0.4; DROP", "\u0660.\u0664"])
def test_a_score_that_is_no_number_is_refused(score: str) -> None:
    broken = row("0.4", days=1)
    board = standings([row("0.4", days=1, scores={"eval": "0.4", "dev": score})])
    assert read_json(format_json(standings([broken]), spec()))
    with pytest.raises(ValueError, match=r".+"):
        format_json(board, spec())
