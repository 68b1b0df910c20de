"""188 real runs: read without an error, with the quirks that were counted independently."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from heldout.trec.orders import Order
from heldout.trec.qrels import read_qrels
from heldout.trec.queries import read_queries
from heldout.trec.reading.sources import open_input
from heldout.trec.runs import scan_run
from heldout.trec.scans import Expected, Scan

Data = Callable[[str], Path]
COVID = "trec-covid-round1"
DEEP = "trec-dl-2021-passage"

pytestmark = pytest.mark.real


def scan_file(path: Path, order: Order, queries: frozenset[str] | None = None) -> Scan:
    with open_input(path) as source:
        return scan_run(source, path=path.name, order=order, expected=Expected(queries=queries))


def statistics_of(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="") as file:
        return {row["run"]: row for row in csv.DictReader(file, delimiter="\t")}


def queries_of(path: Path) -> frozenset[str]:
    with open_input(path) as source:
        return frozenset(read_queries(source, path=path.name).texts)


@pytest.mark.parametrize(
    ("folder", "topics", "statistics", "runs"),
    [
        (f"{COVID}/runs-depth100", f"{COVID}/topics-round1.xml", COVID, 143),
        (f"{DEEP}/runs", f"{DEEP}/topics.tsv", DEEP, 45),
    ],
    ids=["covid", "deep"],
)
def test_all_runs_are_read(
    data: Data, folder: str, topics: str, statistics: str, runs: int
) -> None:
    queries = queries_of(data(topics))
    rows = statistics_of(data(f"{statistics}/run-statistics.tsv"))
    paths = {path.name.removesuffix(".gz"): path for path in data(folder).glob("*.gz")}
    assert len(paths) == runs
    for name, path in paths.items():
        found = scan_file(path, "trec9", queries)
        assert found.ok, found.problems
        assert {problem.severity for problem in found.problems} <= {"note"}
        assert ("rank-zero" in found.counts) == ("0" in rows[name]["first_rank_values"].split("/"))


@pytest.mark.parametrize(
    ("folder", "statistics"),
    [
        (f"{COVID}/runs-full", f"{COVID}/run-statistics.tsv"),
        (f"{DEEP}/runs", f"{DEEP}/run-statistics.tsv"),
    ],
    ids=["covid", "deep"],
)
def test_quirks_are_counted_as_in_the_statistics(data: Data, folder: str, statistics: str) -> None:
    rows = statistics_of(data(statistics))
    paths = sorted(data(folder).glob("*.gz"))[::3]
    assert len(paths) >= 8
    for path in paths:
        facts = scan_file(path, "trec").facts
        ours = {
            "lines": facts.lines,
            "topics": facts.queries,
            "min_depth": facts.min_depth,
            "max_depth": facts.max_depth,
            "tied_scores": facts.tied,
            "tied_scores_in_top10": facts.tied_top,
            "top10_positions_where_rank_column_disagrees_with_score_order": facts.displaced_top,
            "first_rank_values": "/".join(map(str, facts.first_ranks)),
        }
        theirs = rows[path.name.removesuffix(".gz")]
        assert {name: str(value) for name, value in ours.items()} == {
            name: theirs[name] for name in ours
        }, path.name


@pytest.mark.parametrize(
    ("name", "queries", "judgments"),
    [
        (f"{COVID}/qrels-round1.txt.gz", 30, 8691),
        (f"{DEEP}/qrels.dl21-passage.txt.gz", 53, 10828),
        ("qrels/qrels.msmarco-passage.dev-subset.txt.gz", 6980, 7437),
        ("qrels/qrels.dl20-doc.txt.gz", 45, 9098),
        ("small-collections/cranfield/cranqrel.trec.txt", 225, 1837),
        ("small-collections/vaswani/qrels", 93, 2083),
    ],
)
def test_qrels_are_read(data: Data, name: str, queries: int, judgments: int) -> None:
    with open_input(data(name)) as source:
        qrels = read_qrels(source, path=name)
    assert len(qrels.judgments) == queries
    assert sum(map(len, qrels.judgments.values())) == judgments


def test_labels_of_a_query_as_the_papers_count_them(data: Data) -> None:
    """Arabzadeh et al. 2021, §1; Gupta and MacAvaney 2022, §5.1: it prints 215 and 210."""
    found = {}
    for name in ("msmarco-passage.dev-subset", "dl19-passage", "dl20-passage"):
        with open_input(data(f"qrels/qrels.{name}.txt.gz")) as source:
            found[name] = [len(one) for one in read_qrels(source, path=name).judgments.values()]
    dev, *deep = found.values()
    assert f"{dev.count(1):,}" == "6,590"
    assert f"{dev.count(1) / len(dev):.0%}" == "94%"
    assert max(dev) == 4
    means = [(len(one), f"{sum(one) / len(one):.1f}") for one in deep]
    assert means == [(43, "215.3"), (54, "210.9")]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        (f"{COVID}/topics-round1.xml", 30),
        (f"{DEEP}/topics.tsv", 53),
        ("qrels/queries.msmarco-passage.dev-subset.tsv.gz", 6980),
        ("qrels/topics.dl20.txt", 200),
        ("small-collections/cranfield/cran.qry.xml", 225),
        ("small-collections/vaswani/query-text.trec", 93),
    ],
)
def test_queries_are_read(data: Data, name: str, number: int) -> None:
    assert len(queries_of(data(name))) == number
