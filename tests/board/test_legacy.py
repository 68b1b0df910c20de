"""The tables of the old boards: every cell kept, every repair told, nothing guessed."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board import old_boards
from heldout.board.rules.spec_file import parse_spec
from heldout.errors import InputError

DOC, PASSAGE = old_boards.LAYOUTS
HEADER = "id,,description,team,paper,code,type,date,eval,dev,tweet"
COLUMNS = HEADER.split(",")
ROW = "20210809-cmu,🏆,coCondenser,Luyu Gao,,,full ranking,2021/08/09,0.428,0.443,"
DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "import.md"


def table(*rows: str, header: str = HEADER) -> old_boards.OldTable:
    return old_boards.parse_table("\n".join([header, *rows, ""]).encode(), path="old.csv")


def row(**cells: str) -> str:
    """The row of `ROW` with other cells; `mark` is the column without a name."""
    values = dict(zip(COLUMNS, ROW.split(","), strict=True))
    values |= {"" if name == "mark" else name: text for name, text in cells.items()}
    return ",".join(values.values())


def one(**cells: str) -> tuple[old_boards.OldEntry, Sequence[old_boards.Repair]]:
    read = table(row(**cells))
    return read.entries[0], read.repairs


def repairs(*rows: str) -> list[tuple[int, str, str, str]]:
    return [(r.line, r.column, r.kind, r.made) for r in table(*rows).repairs]


def refused(data: bytes) -> list[tuple[str, int | None]]:
    with pytest.raises(InputError) as caught:
        old_boards.parse_table(data, path="old.csv")
    return [(problem.code, problem.line) for problem in caught.value.problems]


def write(rows: Sequence[Sequence[str]]) -> bytes:
    """The old boards' own way: everything quoted, quotes with a backslash."""
    lines = (",".join('"' + cell.replace('"', '\\"') + '"' for cell in cells) for cells in rows)
    return "\n".join([*lines, ""]).encode()


def test_a_sound_row_is_taken_as_it_stands() -> None:
    entry, told = one()
    assert told == ()
    assert (entry.id, entry.day.isoformat(), entry.mark) == ("20210809-cmu", "2021-08-09", "trophy")
    assert entry.scores == {"dev": "0.443", "eval": "0.428"}
    assert entry.cells == tuple(ROW.split(","))


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\\"), max_size=12)


@given(st.lists(st.lists(CELLS, min_size=11, max_size=11), min_size=1, max_size=5), st.data())
def test_every_cell_stays_or_is_reported(rows: list[list[str]], drawn: st.DataObject) -> None:
    for cells in rows:
        cells[COLUMNS.index("date")] = drawn.draw(st.sampled_from(["2021/08/09", "2019-01-02"]))
    read = old_boards.parse_table(write([COLUMNS, *rows]), path="old.csv")
    assert [list(entry.cells) for entry in read.entries] == rows
    reported = {(repair.line, repair.column) for repair in read.repairs}
    for entry, cells in zip(read.entries, rows, strict=True):
        used = {
            "id": entry.id,
            "description": entry.description,
            "team": entry.team,
            "paper": entry.paper,
            "code": entry.code,
            "type": entry.type,
            "eval": entry.scores.get("eval", ""),
            "dev": entry.scores.get("dev", ""),
        }
        given = dict(zip(COLUMNS, cells, strict=True))
        differ = {name for name, text in used.items() if text != given[name]}
        assert {(entry.line, name) for name in differ} <= reported
    assert all(repair.kind in old_boards.REPAIRS for repair in read.repairs)
    assert len({entry.id.casefold() for entry in read.entries}) == len(rows)


@given(st.text('ab\\", \n', max_size=8))
def test_quotes_and_backslashes_are_read_as_the_boards_script_wrote_them(text: str) -> None:
    if text.endswith("\\"):
        text += "."  # that script could not write a cell that ends in a backslash either
    cells = ROW.split(",")
    cells[2] = text
    assert (
        old_boards.parse_table(write([COLUMNS, cells]), path="old.csv").entries[0].cells[2] == text
    )


@given(st.text(st.characters(codec="utf-8", exclude_characters="\\"), max_size=8))
def test_without_backslashes_it_is_what_the_csv_module_reads(text: str) -> None:
    cells = ROW.split(",")
    cells[2] = text
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([COLUMNS, cells])
    read = old_boards.parse_table(buffer.getvalue().encode(), path="old.csv")
    peer = list(csv.reader(io.StringIO(buffer.getvalue(), newline="")))
    assert [list(read.header), list(read.entries[0].cells)] == peer


@given(st.binary(max_size=60))
def test_hostile_bytes_give_a_table_or_an_error_and_never_a_traceback(tail: bytes) -> None:
    try:
        old_boards.parse_table(f"{HEADER}\n{ROW}\n".encode() + tail, path="old.csv")
    except InputError:
        return


# ids


def test_a_row_without_an_id_gets_one_of_its_day_and_number() -> None:
    read = table(row(), row(id="", date="2020/01/21"), row(id=" ", date="2020/05/08"))
    made = ["20210809-cmu", "20200121-row-002", "20200508-row-003"]
    assert [entry.id for entry in read.entries] == made
    assert ("id", "made-id", made[1]) in [(r.column, r.kind, r.made) for r in read.repairs]


def test_a_repeated_id_stays_with_the_first_whatever_its_case() -> None:
    assert repairs(row(), row(), row(id="20210809-CMU")) == [
        (3, "id", "repeated-id", "20210809-row-002"),
        (4, "id", "repeated-id", "20210809-row-003"),
    ]


def test_a_made_id_is_never_one_that_was_given() -> None:
    read = table(row(id=""), row(id="20210809-row-001"))
    assert [entry.id for entry in read.entries] == ["20210809-row-001-again", "20210809-row-001"]


# days


def test_rows_that_cannot_be_dated_are_all_named() -> None:
    rows = [row(), row(id="", date="May 2020"), row(id="dr-bert", date="20.5.2020")]
    data = "\n".join([HEADER, *rows]).encode()
    assert refused(data) == [("no-date", 3), ("no-date", 4)]


# types, signs, text, links


DEV = {"dev": "0.443"}
MARKUP = "<script>alert(1)</script> &amp; <b>BERT</b>"


@pytest.mark.parametrize(
    ("column", "text", "taken", "told"),
    [
        *(
            ("id", text, "20210809-row-001", "unfit-id")
            for text in ("../../etc/passwd", "a/b", "..", "-rf", "x" * 200, "é", "a b")
        ),
        *(
            ("date", text, date(2021, 8, 9), "date-from-id")
            for text in ("", "9 Aug 2021", "08/09/21", "2021/8/9", "2021/02/30", "0001/01/01")
        ),
        *(
            ("eval", text, {"eval": text, **DEV}, "")
            for text in ("0.4", "0.4280", "0", "1", "1.000", "0.3930000000000001")
        ),
        ("eval", "", DEV, "no-score"),
        ("dev", "", {"eval": "0.428"}, "no-score"),
        *(
            ("eval", text, DEV, "not-a-score")
            for text in ("nan", "inf", "-0.1", "1.01", "39.3", "0,393", "1e-3", "0x1", ".4", "=1")
        ),
        *(("eval", text, DEV, "not-a-score") for text in ("\u0660.\u0664", "--")),
        ("type", "reraking", "reranking", "misspelt-type"),
        ("type", "re-ranking", "re-ranking", "unknown-type"),
        ("mark", "", "", ""),
        ("mark", "🏆", "trophy", ""),
        ("mark", "🏛", "baseline", ""),
        ("mark", "🏛\ufe0f", "baseline", ""),
        ("mark", "🥇", "", "unknown-mark"),
        ("description", MARKUP, MARKUP, ""),
        *(
            ("paper", text, "", "not-a-link")
            for text in ("javascript:alert(1)", "arxiv.org/abs/1", "ftp://x.org", "n/a")
        ),
    ],
)
def test_a_cell_and_its_repair(column: str, text: str, taken: object, told: str) -> None:
    entry, found = one(**{column: f'"{text}"' if column == "eval" else text})
    field = {"date": "day", "eval": "scores", "dev": "scores"}.get(column, column)
    assert getattr(entry, field) == taken
    assert [(r.column, r.kind, r.found) for r in found] == [(column, told, text)] * bool(told)


def test_zero_width_and_bidirectional_characters_are_left_out_and_told() -> None:
    entry, told = one(team="Bai\u200bdu\u202e NLP", description='"two\nlines"')
    assert (entry.team, entry.description) == ("Baidu NLP", "two lines")
    assert {(r.column, r.kind, r.found) for r in told} == {
        ("team", "invisible-character", "Bai\u200bdu\u202e NLP"),
        ("description", "invisible-character", "two\nlines"),
    }


# files that are no such table


def test_the_document_table_has_its_own_headings() -> None:
    header = "id,date,,description,team,paper,code,type,MRR@100 (Dev),MRR@100 (Eval),tweet"
    read = table("20200811a,2020/08/11,🏛,Indri,MSMARCO Team,,,full ranking,,0.192,1", header=header)
    assert read.layout is DOC
    assert read.entries[0].scores == {"eval": "0.192"}


HEADERS = ("id,description", f"{HEADER},extra", HEADER.replace("dev", "eval"), "<html>", "\x00")


@pytest.mark.parametrize("header", HEADERS)
def test_another_table_is_refused(header: str) -> None:
    cells = ",".join(["x"] * len(header.split(",")))
    assert refused(f"{header}\n{cells}\n".encode()) == [("unknown-table", 1)]


def test_rows_of_another_width_are_all_named() -> None:
    data = f"{HEADER}\n{ROW},more\n{ROW}\na,b\n".encode()
    assert refused(data) == [("wrong-columns", 2), ("wrong-columns", 4)]


def test_a_quote_that_is_never_closed_is_refused_with_its_line() -> None:
    assert refused(f'{HEADER}\n{ROW}\n"open,{ROW}\n'.encode()) == [("broken-csv", 3)]


def test_a_cell_of_ten_megabytes_is_refused() -> None:
    assert refused(f"{HEADER}\n{ROW}{'x' * 10_000_000}\n".encode()) == [("too-large", None)]
    assert refused(f"{HEADER}\n{ROW}{'x' * 1_000_000}\n".encode()) == [("broken-csv", 2)]


def test_a_table_of_rows_without_end_is_refused() -> None:
    rows = f"{ROW}\n" * 2001
    assert refused(f"{HEADER}\n{rows}".encode()) == [("too-large", None)]


@pytest.mark.parametrize("data", [b"", b"\n\n", f"{HEADER}\n".encode()])
def test_a_file_without_rows_is_refused(data: bytes) -> None:
    assert {code for code, _ in refused(data)} <= {"empty-file", "too-large"}


def test_bytes_that_are_not_utf_8_are_refused_with_their_line() -> None:
    assert refused(f"{HEADER}\n{ROW}\n".encode() + b"\xff") == [("bad-utf8", 3)]


def test_a_byte_order_mark_is_skipped_and_told() -> None:
    read = old_boards.parse_table(b"\xef\xbb\xbf" + f"{HEADER}\n{ROW}\n".encode(), path="old.csv")
    assert [r.kind for r in read.repairs] == ["byte-order-mark"]


def test_every_kind_of_repair_is_explained_in_its_order() -> None:
    page = DOCS.read_text("utf-8").split("## Repairs")[1].split("## ")[0]
    named = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert named == old_boards.REPAIRS


def test_the_rules_of_a_record_are_a_board_that_is_closed() -> None:
    read = table(row(eval="0.42805"), row(id="b", date="2019/01/02"))
    files = old_boards.record_files(replace(read, name='a "b" $c'), recipient="age1x")
    spec = parse_spec(files["board.toml"])
    assert (spec.name, spec.decimals) == ("msmarco-passage", 5)
    assert (str(spec.opens), str(spec.closes)) == ("2019-01-02", "2021-08-09")
    assert [v.name for v in spec.views] == ["dev", "eval"]
    assert {(v.measure, v.public) for v in spec.views} == {("RR@10", True)}


# the real tables


@pytest.fixture(scope="session")
def real(data: Callable[[str], Path]) -> Callable[[str], old_boards.OldTable]:
    def read(name: str) -> old_boards.OldTable:
        path = data(f"leaderboards/msmarco-{name}-leaderboard.csv")
        return old_boards.parse_table(path.read_bytes(), path=path.name)

    return read


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "rows", "told"),
    [
        ("doc", 117, {("no-score", "MRR@100 (Dev)"): 21}),
        (
            "passage",
            168,
            {("made-id", "id"): 126, ("no-score", "dev"): 13, ("misspelt-type", "type"): 1},
        ),
    ],
)
def test_the_real_tables_and_their_repairs(
    real: Callable[[str], old_boards.OldTable],
    name: str,
    rows: int,
    told: dict[tuple[str, str], int],
) -> None:
    read = real(name)
    assert len(read.entries) == rows
    assert Counter((r.kind, r.column) for r in read.repairs) == told
    assert Counter(entry.mark for entry in read.entries)["baseline"] == 3


@pytest.mark.real
@pytest.mark.parametrize("name", ["doc", "passage"])
def test_the_real_cells_are_those_of_a_plain_reader(
    data: Callable[[str], Path], real: Callable[[str], old_boards.OldTable], name: str
) -> None:
    """Neither table holds a backslash today, so that Python's own reader gives the same cells."""
    path = data(f"leaderboards/msmarco-{name}-leaderboard.csv")
    assert b"\\" not in path.read_bytes()
    with path.open(encoding="utf-8", newline="") as file:
        peer = list(csv.reader(file))
    read = real(name)
    assert [list(read.header), *(list(entry.cells) for entry in read.entries)] == peer
    raw = path.read_text("utf-8").splitlines()
    assert all(entry.cells[-1] in raw[entry.line - 1] for entry in read.entries)
