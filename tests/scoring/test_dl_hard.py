"""DL-Hard: the authors' own trec_eval output beside each run, query by query, to 4 decimals."""

import gzip
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import parse_measure
from heldout.trec.qrels import read_qrels
from heldout.trec.runs import scan_run

pytestmark = [pytest.mark.real, pytest.mark.slow]

# by `trec_eval -l 2 -o -c -M1000 -q -m all_trec`: grades count for nDCG alone
MEASURES = {
    "map": "AP(rel=2)",
    "recip_rank": "RR(rel=2)",
    "bpref": "Bpref(rel=2)",
    "P_10": "P(rel=2)@10",
    "recall_1000": "R(rel=2)@1000",
    "ndcg_cut_10": "nDCG@10",
    "ndcg_cut_100": "nDCG@100",
}
HALF_A_DIGIT = 0.00005 + 1e-9


def published(path: Path) -> dict[str, dict[str, float]]:
    """Measure -> query -> score."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    with gzip.open(path, "rt") as file:
        for line in file:
            measure, query, value = line.split(maxsplit=2)
            if measure in MEASURES and query != "all":
                found[measure][query] = float(value)
    return found


@pytest.mark.parametrize(("task", "runs"), [("passage", 6), ("doc", 7)], ids=["passages", "docs"])
def test_every_score_of_every_query_is_the_authors(
    data: Callable[[str], Path], task: str, runs: int
) -> None:
    folder = data("dl-hard")
    with (folder / f"dl_hard-{task}.qrels.gz").open("rb") as file:
        judgments = read_qrels(file, path=task).judgments
    names = {theirs: parse_measure(ours) for theirs, ours in MEASURES.items()}
    paths = sorted((folder / task).glob("*.run.gz"))
    compared, wrong = 0, []
    for path in paths:
        with path.open("rb") as file:
            scan = scan_run(file, path=path.name, order="trec9", qrels=judgments)
        rows = evaluate(scan.rankings, judgments, list(names.values())).per_query()
        theirs = published(path.with_name(path.name.replace(".run.gz", ".run.eval.gz")))
        for measure, scores in theirs.items():
            for query, score in scores.items():
                ours = rows[query][names[measure]]
                compared += 1
                if ours is None or abs(ours - score) > HALF_A_DIGIT:
                    wrong.append((path.name, measure, query, score, ours))

    assert len(paths) == runs
    assert compared == runs * len(MEASURES) * 50
    assert wrong == []
