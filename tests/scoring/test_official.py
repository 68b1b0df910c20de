"""Real runs against official tables: TREC-COVID round 1 and TREC DL 2021 passages."""

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from heldout.scoring.evaluate import Evaluation, evaluate
from heldout.scoring.measures import parse_measure
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.runs import scan_run
from heldout.trec.scans import Scan

pytestmark = pytest.mark.real

# under float64 these four differ from the official tables, whose scores collide in float32
COLLIDING = {"BERT", "ielab-uniCOIL", "pass_full_1000", "pass_full_1000e"}
COVID = {"ndcg@10": "nDCG@10", "p@5": "P@5"}
DL = {"nDCG@10": "ndcg_cut_10", "AP(rel=2)": "map", "RR(rel=2)": "recip_rank"}
RBP = "RBP(p=0.5,max_rel=2)"


def qrels_of(path: Path) -> Qrels:
    with path.open("rb") as file:
        return read_qrels(file, path=path.name)


def scan_of(path: Path, qrels: Qrels, order: Order) -> Scan:
    with path.open("rb") as file:
        return scan_run(file, path=path.name, order=order, qrels=qrels.judgments)


def scored(path: Path, qrels: Qrels, names: Sequence[str], order: Order) -> dict[str, float]:
    rankings = scan_of(path, qrels, order).rankings
    found: Evaluation = evaluate(rankings, qrels.judgments, list(map(parse_measure, names)))
    means = {str(measure): scores.mean for measure, scores in found.scores.items()}
    return {name: mean for name, mean in means.items() if mean is not None}


def covid_table(folder: Path) -> list[dict[str, str]]:
    with (folder / "leaderboard.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def dl_table(folder: Path) -> dict[str, dict[str, str]]:
    """Official figures by run: nDCG from the graded rows, the rest from those of grade 2."""
    found: dict[str, dict[str, str]] = {}
    with (folder / "official-results.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            wanted = (
                ["ndcg_cut_10"] if row["summary_kind"] == "passages-eval" else ["map", "recip_rank"]
            )
            found.setdefault(row["run"], {}).update({name: row[name] for name in wanted})
    return found


def covid_differences(folder: Path, order: Order) -> Iterator[tuple[str, str, float]]:
    qrels = qrels_of(folder / "qrels-round1.txt.gz")
    names = [*COVID.values(), RBP]
    for row in covid_table(folder):
        found = scored(folder / "runs-depth100" / f"{row['run']}.gz", qrels, names, order)
        for column, name in (COVID | {"RBP(p=.5)": RBP}).items():
            yield row["run"], name, abs(found[name] - float(row[column]))


def dl_differences(folder: Path, order: Order) -> Iterator[tuple[str, str, float]]:
    qrels = qrels_of(folder / "qrels.dl21-passage.txt.gz")
    official = dl_table(folder)
    for path in sorted((folder / "runs").glob("*.gz")):
        run = path.name.removesuffix(".gz")
        found = scored(path, qrels, list(DL), order)
        for name, column in DL.items():
            yield run, name, abs(found[name] - float(official[run][column]))


HALF_A_DIGIT = 0.00005 + 1e-9  # official figures have 4 decimals


@pytest.mark.slow
def test_all_runs_have_their_official_scores(data: Callable[[str], Path]) -> None:
    found = [
        *covid_differences(data("trec-covid-round1"), "trec9"),
        *dl_differences(data("trec-dl-2021-passage"), "trec9"),
    ]
    assert len({run for run, _, _ in found}) == 143 + 45
    assert [name for name in found if name[2] > HALF_A_DIGIT] == []


@pytest.mark.slow
def test_four_runs_differ_under_float64(data: Callable[[str], Path]) -> None:
    found = [
        *covid_differences(data("trec-covid-round1"), "trec"),
        *dl_differences(data("trec-dl-2021-passage"), "trec"),
    ]
    wrong = {run for run, _, difference in found if difference > HALF_A_DIGIT}
    assert wrong == COLLIDING


@pytest.mark.slow
def test_whole_runs_have_their_official_bpref_and_map(data: Callable[[str], Path]) -> None:
    folder = data("trec-covid-round1")
    qrels = qrels_of(folder / "qrels-round1.txt.gz")
    rows = {row["run"]: row for row in covid_table(folder)}
    paths = sorted((folder / "runs-full").glob("*.gz"))
    assert len(paths) == 24
    for path in paths:
        run = path.name.removesuffix(".gz")
        found = scored(path, qrels, ["Bpref", "AP"], "trec9")
        assert found["Bpref"] == pytest.approx(float(rows[run]["bpref"]), abs=HALF_A_DIGIT), run
        assert found["AP"] == pytest.approx(float(rows[run]["MAP"]), abs=HALF_A_DIGIT), run
