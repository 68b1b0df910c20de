"""The options that name annotations: every form is told by its content, and says what it read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import click
import pytest
from click.testing import CliRunner
from qna_files import as_columns, pack, query

from heldout.cli.options import command
from heldout.cli.printing import TERMINAL, reported_errors
from heldout.options import Opt
from heldout.survivorship.reading.passages import passage_id
from heldout.survivorship.reading.source import TypedSource, read_source

QUERIES = [query(1, [0, 1]), query(2, [0, 0])]
IDS = [passage_id(f"passage {place} of 1") for place in (1, 2)]
SHOWN = {
    "query_id": "1",
    "query": "who?",
    "passages": [
        {"rank": 1, "passage_id": "a", "passage_text": "A", "msmarco_label": 0},
        {"rank": 2, "passage_id": "b", "passage_text": "B", "msmarco_label": 1},
    ],
}


@command
@reported_errors()
def tell(*, source: TypedSource, texts: Annotated[bool, Opt()] = False) -> None:
    """What was read, as JSON."""
    found = read_source(source, texts=texts, progress=TERMINAL)
    rows = [
        [one.query, one.kind, list(one.shown), dict(one.selected), one.text, dict(one.texts)]
        for one in found.records
    ]
    click.echo(json.dumps(rows))


def told(*options: object, status: int = 0) -> tuple[list[list[object]], str]:
    found = CliRunner().invoke(tell, [str(option) for option in options])
    assert found.exit_code == status, found.output
    return (json.loads(found.stdout) if not status else []), found.stderr


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "columns.json.gz").write_bytes(pack(as_columns(QUERIES), compressed=True))
    (tmp_path / "shown.jsonl").write_text(json.dumps(SHOWN) + "\n")
    (tmp_path / "q.qrels").write_text(f"1 0 {IDS[0]} 1\n1 0 a 1\n")
    (tmp_path / "run").write_text("1 Q0 b 1 9 t\n1 Q0 a 2 8 t\n2 Q0 a 1 9 t\n2 Q0 b 2 8 t\n")
    return tmp_path


def shown_and_selected(rows: Sequence[Sequence[object]]) -> list[object]:
    return [[row[0], row[2], row[3]] for row in rows]


def test_qna_is_told_by_its_content(place: Path) -> None:
    rows, _ = told("--annotations", place / "columns.json.gz")
    assert shown_and_selected(rows)[0] == ["1", IDS, {IDS[1]: 2}]
    assert rows[0][1] == "DESCRIPTION"
    assert rows[1][3] == {}
    assert rows[0][4:] == [None, {}]
    rows, _ = told("--annotations", place / "columns.json.gz", "--texts")
    assert rows[0][4] == "what is 1"


def test_passages_of_qna_get_the_ids_of_a_collection(place: Path) -> None:
    table = place / "collection.tsv"
    table.write_text("77\tpassage 1 of 1\n78\tpassage 2 of 1\n79\tpassage 1 of 2\n")
    rows, message = told(
        "--annotations", place / "columns.json.gz", "--documents", table, "--texts"
    )
    assert shown_and_selected(rows)[0] == ["1", ["77", "78"], {"78": 2}]
    assert rows[0][5] == {"77": "passage 1 of 1", "78": "passage 2 of 1"}
    assert "1 passage missing of 4 that were shown" in message


def test_other_labels_a_list_of_queries_and_types(place: Path) -> None:
    rows, _ = told("--annotations", place / "columns.json.gz", "--qrels", place / "q.qrels")
    assert shown_and_selected(rows) == [["1", IDS, {IDS[0]: 1}]]
    (place / "only").write_text("2\n")
    (place / "types").write_text("1\tHOW\n2\tWHY\n")
    rows, _ = told(
        "--annotations",
        place / "columns.json.gz",
        "--query-list",
        place / "only",
        "--types",
        place / "types",
    )
    assert [row[:2] for row in rows] == [["2", "WHY"]]
    (place / "only").write_text("2\n9\n")
    _, message = told(
        "--annotations", place / "columns.json.gz", "--query-list", place / "only", status=2
    )
    assert "unknown-query" in message


def test_annotators_are_simulated_and_texts_come_from_files(place: Path) -> None:
    (place / "queries").write_text("1\twho?\n2\twhy?\n")
    (place / "documents").write_text("a\tA\nb\tB\nc\tC\n")
    rows, _ = told(
        *("--shown", place / "run", "--qrels", place / "q.qrels", "--shown-depth", 2),
        *("--queries", place / "queries", "--documents", place / "documents", "--texts"),
    )
    assert rows == [["1", None, ["b", "a"], {"a": 2}, "who?", {"a": "A", "b": "B"}]]
    _, message = told("--shown", place / "run", "--qrels", place / "q.qrels", status=2)
    assert "depth-beyond-list" in message


@pytest.mark.parametrize(
    ("content", "code", "found"),
    [
        ("", "no-annotations", "an empty file"),
        (" \n", "no-annotations", "an empty file"),
        ("q1 0 d1 1\nq2", "no-annotations", 'a file that begins "q1 0 d1 1"'),
        ("[1, 2]", "no-annotations", 'a file that begins "[1, 2]"'),
        ('{"query_id": "1", "msmarco_label": 1}\n', "bad-annotation", ""),
    ],
)
def test_a_file_of_no_known_form_is_refused(
    tmp_path: Path, content: str, code: str, found: str
) -> None:
    (tmp_path / "file").write_text(content)
    _, message = told("--annotations", tmp_path / "file", status=2)
    assert code in message
    assert found in " ".join(message.split())
    assert "Traceback" not in message


def test_places_without_annotations_are_refused(tmp_path: Path) -> None:
    _, message = told("--annotations", tmp_path, status=2)
    assert "no-annotations" in message
    _, message = told("--annotations", tmp_path / "absent", status=2)
    assert "unreadable-file" in message


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--shown", "run"],
        ["--qrels", "q"],
        ["--annotations", "a", "--shown", "run"],
        ["--annotations", "a", "--shown-depth", "3"],
    ],
)
def test_contradicting_options_are_refused_before_a_file_is_read(options: list[str]) -> None:
    _, message = told(*options, status=2)
    assert message.startswith("Usage")
