"""AWRF of real runs, scanned as they are, against plain loops over their lists."""

import gzip
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.spatial.distance import jensenshannon

from heldout.scoring.evaluate import evaluate
from heldout.scoring.fairness import Exposures, read_target
from heldout.scoring.measures import parse_measure
from heldout.trec.groups import read_document_groups
from heldout.trec.qrels import read_qrels
from heldout.trec.runs import scan_run

pytestmark = pytest.mark.real
MEASURE = parse_measure("AWRF@20")


def lists_of(path: Path) -> dict[str, list[str]]:
    rows: dict[str, list[tuple[float, str]]] = defaultdict(list)
    with gzip.open(path, "rt") as file:
        for query, _, document, _, score, _ in map(str.split, file):
            rows[query].append((float(score), document))
    return {query: [d for _, d in sorted(found, reverse=True)] for query, found in rows.items()}


def group_of(document: str) -> str | None:
    """By the third of the collection's files that a passage lies in; the last file is unknown."""
    part = int(document.split("_")[2])
    return None if part == 69 else ("first", "second", "third")[part // 24]


@pytest.mark.parametrize("name", ["NLE_P_v1", "bm25"])
def test_awrf_of_a_trec_run(data: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    folder = data("trec-dl-2021-passage")
    runs = sorted((folder / "runs").glob("*.gz"))
    path = next((run for run in runs if name in run.name), runs[0])
    lists = lists_of(path)
    documents = sorted({document for found in lists.values() for document in found})
    grouped = [f"{d}\t{group_of(d)}\n" for d in documents if group_of(d) is not None]
    file = tmp_path / "x.groups"
    file.write_text("".join(grouped))
    with file.open("rb") as source:
        groups = read_document_groups(source, path="x.groups")
    with (folder / "qrels.dl21-passage.txt.gz").open("rb") as source:
        qrels = read_qrels(source, path="qrels").judgments
    with path.open("rb") as source:
        scan = scan_run(source, path=path.name, order="trec", qrels=qrels)
    target = {"first": 0.5, "second": 0.25, "third": 0.25}
    shares = read_target(groups, target, path="x.groups")
    exposures = Exposures(signature=scan.signature, groups=groups, target=shares)
    scores = evaluate(scan.rankings, qrels, [MEASURE], exposures=exposures).per_query()
    assert len(scores) > 50
    for query, found in scores.items():
        exposure = dict.fromkeys(target, 0.0)
        for place, document in enumerate(lists[query][:20], start=1):
            group = group_of(document)
            if group is not None:
                exposure[group] += 1 / math.log2(max(place, 2))
        distance = float(jensenshannon(list(exposure.values()), list(target.values())))
        assert found[MEASURE] == pytest.approx(1 - distance**2, abs=1e-12), query
