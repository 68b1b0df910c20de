"""One table of columns: each is in every form, and docs/reference/page.md has it."""

import csv
import io
import json
from datetime import date
from pathlib import Path

import pytest
from page_documents import Document
from sample_boards import BOARDS, RULES, facts, row, seasonal, spec, standings

from heldout.board.log.manifest import Costs, Efficiency
from heldout.board.site.columns import COLUMNS, STATED, EntryColumn, full_text
from heldout.board.site.pages import render_board
from heldout.board.standings.standings import Row

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


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.key)
def test_a_column_is_in_every_form(column: EntryColumn) -> None:
    value, words = column.of(SHOWN), full_text(column, SHOWN)
    assert value is not None
    number = words.removesuffix(f" {column.unit}")
    index = FILES["leaderboard/index.html"].decode()
    assert ON_THE_PAGE.get(column.key, number) in index
    entry = FILES[f"leaderboard/entries/{WHOLE.id}.html"].decode()
    assert ON_ITS_OWN_PAGE.get(column.key, words) in entry.replace("\u00a0", " ")
    first = json.loads(FILES["leaderboard/leaderboard.json"])["rows"][0]
    assert first[column.key] == value
    table = csv.DictReader(io.StringIO(FILES["leaderboard/leaderboard.csv"].decode()))
    written = str(value).lower() if isinstance(value, bool) else str(value)
    assert next(table)[column.key] == written


def test_only_json_and_csv_have_what_no_entry_states() -> None:
    files = render_board(standings([row("0.3", days=1, training_data="")]), spec(), facts())
    index = files["leaderboard/index.html"].decode()
    (one,) = json.loads(files["leaderboard/leaderboard.json"])["rows"]
    for column in STATED:
        assert f'data-key="{column.key}"' not in index
        assert (one[column.key], one["why"][column.key]) == (None, "not stated")


def test_what_is_null_says_why_and_nothing_else_does() -> None:
    hidden = row("0.4", days=2, embargoed=True, embargo_until=date(2027, 5, 20))
    board = standings([hidden, *OTHERS])
    rows = json.loads(render_board(board, spec(), facts())["leaderboard/leaderboard.json"])["rows"]
    for one in rows:
        nothing = {column.key for column in COLUMNS if one[column.key] is None}
        nothing |= {f"scores.{view}" for view, score in one["scores"].items() if score is None}
        assert set(one["why"]) == nothing
        assert all(one["why"].values())


def test_the_page_explains_every_column_of_its_table() -> None:
    text = " ".join(Document(FILES["leaderboard/index.html"]).text.split())
    for column in COLUMNS:
        if column in STATED or column.key in ("rank", "date", "trophy"):
            assert column.means in text


def test_the_docs_have_the_table() -> None:
    lines = [f"| `{c.key}` | {c.title} | {c.unit} | {c.means} |" for c in COLUMNS]
    assert "\n".join(lines) in DOCS.read_text("utf-8"), "\n".join(lines)


@pytest.mark.slow
def test_every_json_file_has_a_schema_number() -> None:
    boards = [render_board(board, RULES[name], facts()) for name, board in BOARDS.items()]
    several, rules = seasonal()
    boards.append(render_board(several[0].standings, rules, facts(), seasons=several))
    found = {
        path: json.loads(data).get("schema")
        for files in boards
        for path, data in files.items()
        if path.endswith(".json")
    }
    assert {"leaderboard/leaderboard.json", "leaderboard/trust.json"} <= found.keys()
    assert set(found.values()) == {1}
