"""The benchmark's own parts: its data are what they say, its verdicts can be negative."""

import bz2
import hashlib
import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from agreement import compare
from definition import score_query
from generate import generate
from process import run_process
from report import format_report
from results import AGREES, Results, Role, Row, Table, read_results, write_results
from targets import check_targets

PAGE = Path(__file__).resolve().parents[2] / "docs" / "results" / "performance.md"
MEASURES = {"RR", "RR@10", "nDCG@10", "AP", "R@1000"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    generate(folder, queries=30, depth=40, seed=7)
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


def test_same_seed_same_bytes_other_seed_others(data: Path, tmp_path: Path) -> None:
    generate(tmp_path / "again", queries=30, depth=40, seed=7)
    generate(tmp_path / "other", queries=30, depth=40, seed=8)
    assert digests(tmp_path / "again") == digests(data)
    assert not digests(tmp_path / "other").items() & digests(data).items()


def naive_scores(run: Path, qrels: Path) -> dict[str, float]:
    """From the files, by sorting each query: score falling, then document id falling."""
    ranked: dict[str, list[tuple[float, str]]] = {}
    for line in run.read_text("ascii").splitlines():
        query, _, document, _, score, _ = line.split(" ")
        ranked.setdefault(query, []).append((float(score), document))
    judged: dict[str, list[tuple[int, int]]] = {}
    for line in qrels.read_text("ascii").splitlines():
        query, _, document, grade = line.split("\t")
        order = [d for _, d in sorted(ranked[query], reverse=True)]
        rank = order.index(document) + 1 if document in order else 0
        judged.setdefault(query, []).append((rank, int(grade)))
    scores = [score_query(rows) for rows in judged.values()]
    return {name: sum(each[name] for each in scores) / len(scores) for name in MEASURES}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("dev.trec", "dev"),
        ("dev.digits.trec", "dev"),
        ("dev.shuffled.trec", "dev"),
        ("dev.interleaved.trec", "dev"),
        ("dev.ties.trec", "dev.ties"),
        ("dl.trec", "dl"),
    ],
)
def test_expected_scores_are_those_of_the_files(data: Path, file: str, name: str) -> None:
    expected = json.loads((data / "expected.json").read_bytes())["scores"][name]
    found = naive_scores(data / file, data / f"{file.partition('.')[0]}.qrels")
    assert found == pytest.approx(expected, abs=1e-12)


def test_archives_hold_the_run(data: Path) -> None:
    assert bz2.decompress((data / "dev.tsv.bz2").read_bytes()) == (data / "dev.tsv").read_bytes()


def test_score_query_by_hand() -> None:
    # Ranks 2 and 5 of three relevant documents, one not found; grade 2 at rank 5.
    scores = score_query([(2, 1), (5, 2), (0, 1), (1, 0)])
    assert scores["RR"] == 0.5
    assert scores["AP"] == pytest.approx((1 / 2 + 2 / 5) / 3)
    assert scores["R@1000"] == pytest.approx(2 / 3)
    assert scores["nDCG@10"] == pytest.approx((0.6309297536 + 2 * 0.3868528072) / 3.1309297536)


def test_a_score_that_differs_is_named() -> None:
    right = {"RR": 0.5, "AP": 0.25}
    assert compare({"RR": 0.50004, "RR@10": 0.1}, right) == AGREES
    assert compare({"RR": 0.5002, "AP": 0.25}, right) == "RR 0.5002, not 0.5000"
    assert compare({"RR@10": 0.5}, right) == "computes none of the measures"


def test_a_process_is_measured() -> None:
    code = "import sys; data = bytearray(60 << 20); print(len(data)); sys.exit(3)"
    ran = run_process([sys.executable, "-c", code], environ={}, keep=True, watch=True)
    assert (ran.status, ran.output.strip()) == (3, str(60 << 20))
    assert ran.peak > 60 << 20
    assert 0 < ran.seconds < 60


def table(**seconds: float) -> Table:
    def row(name: str, role: Role, value: float) -> Row:
        return Row(name=name, role=role, seconds=(value,), tree=50 << 20, verdict=AGREES)

    rows = [row(name, "heldout" if name == "heldout" else "peer", s) for name, s in seconds.items()]
    return Table(title="t", load=(0.0, 0.0), rows=tuple(rows))


def test_targets_are_met_missed_or_unknown(tmp_path: Path) -> None:
    results = Results(facts={}, tables={"dev.trec": table(heldout=1.0, trec_eval=8.1, ranx=19.0)})
    met = {o.against: o.met for o in check_targets(results.tables) if o.what == "dev.trec, cold"}
    assert met == {"trec_eval": True, "ranx": False, "ir_measures": None}
    write_results(results, tmp_path / "results.json")
    assert read_results(tmp_path / "results.json") == results
    assert "| dev.trec, cold | ranx | 0.05 | 0.053 | **no** |" in format_report(results)


def test_the_page_begins_with_a_summary_of_its_own_tables() -> None:
    page = PAGE.read_text("utf-8")
    tables = {name: read_rows(text) for name, text in re.findall(r"### (\S+): .*\n([^#]*)", page)}
    known = Results(facts={}, tables=tables)
    short = format_report(known).split("\n\n")[1]

    assert len(short.splitlines()) == 6
    assert short in page


def read_rows(text: str) -> Table:
    """A table of the page, with the median for every repeat."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    rows = [row for row in cells if len(row) == 8 and row[1].replace(".", "").isdigit()]
    return Table(
        title="",
        load=(0, 0),
        rows=tuple(
            Row(
                name=row[0],
                role="heldout" if row[0].startswith("heldout") else "peer",
                seconds=(float(row[1]),),
                peak=int(row[5]) << 20 if row[5].isdigit() else 0,
            )
            for row in rows
        ),
    )
