"""CSV and JSON: the rows of the page, safe to open in a spreadsheet."""

import csv
import io
import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from sample_boards import baseline, busy, hostile, row, spec, standings

from heldout.board.log.manifest import Efficiency
from heldout.board.rules.spec import View
from heldout.board.site.exports import format_csv, format_json

COSTS = (
    *("parameters", "training_data", "training_pairs"),
    *("query_latency_ms", "energy_kwh", "hardware"),
)
MEASURED = (
    *("measured_latency_ms", "measured_processor_s", "measured_memory_mib"),
    *("measured_energy_kwh", "measured_on"),
)
COLUMNS = [
    *("rank", "id", "date", "team", "institution", "description", "paper", "code", "type"),
    *("eval", "dev", "trophy", "embargoed", "baseline", "noise", "rank_low", "rank_high", "seeds"),
    *COSTS,
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
    assert head == COLUMNS
    assert [r[1] for r in rows] == [r.id for r in board.rows]
    assert rows[0][9] == board.rows[0].scores["eval"]


def test_no_cell_of_a_hostile_board_starts_a_formula() -> None:
    rows = read_csv(format_csv(hostile(), spec()))
    assert len(rows) == len(hostile().rows) + 1
    assert all(len(r) == len(COLUMNS) for r in rows)
    assert not [cell for r in rows for cell in r if cell.lstrip()[:1] in set("=+-@\t\r")]


def test_a_view_that_looks_like_a_formula_is_quoted_in_the_head() -> None:
    views = (View(name="-1", set="dev", measure="RR@10"), *spec().views)
    head = read_csv(format_csv(standings([baseline()]), spec(views=views)))[0]
    assert "'-1" in head


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
        *COSTS,
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
    assert entry["scores"]["dev"] is None
    assert entry["why"] == {
        "scores.dev": "not scored on this view",
        **dict.fromkeys({"paper", "code", *COSTS} - {"training_data"}, "not stated"),
        **dict.fromkeys(MEASURED, "not measured"),
    }
    assert entry["training_data"] == "MS MARCO passages, train split"
    assert base["rank"] is None
    unsaid = {"institution", "paper", "code", *COSTS, *MEASURED}
    assert set(base["why"]) == {"rank", "rank_low", "rank_high", *unsaid}


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


def test_every_cost_of_the_table_is_exported_and_none_of_an_embargoed_entry() -> None:
    stated = Efficiency(
        parameters=7, training_pairs=8, hardware="one GPU", query_latency_ms=2.5, energy_kwh=0.5
    )
    told = {**dict.fromkeys(COSTS), "parameters": 7, "training_data": "dev", "training_pairs": 8}
    told |= {"query_latency_ms": 2.5, "energy_kwh": 0.5, "hardware": "one GPU"}
    shown = row("0.5", days=1, efficiency=stated, training_data="dev")
    hidden = replace(shown, id="hidden", identity=None, embargo_until=date(2027, 5, 20))
    board = standings([shown, hidden])
    first, second = read_json(format_json(board, spec()))["rows"]
    assert {name: first[name] for name in COSTS} == told
    assert {second[name] for name in COSTS} == {None}
    assert {second["why"][name] for name in COSTS} == {"withheld by an embargo"}
    head, one, two = read_csv(format_csv(board, spec()))
    assert [one[head.index(name)] for name in COSTS] == [str(told[name]) for name in COSTS]
    assert {two[head.index(name)] for name in COSTS} == {""}
