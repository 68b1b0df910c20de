"""Against the outputs that trec_eval ships with its own tests, per query, to 4 decimals.

Produced by trec_eval 10 (usnistgov/trec_eval f4253652c8, `test/`); each file's command is named
below. Read in place.
"""

import gzip
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from judged import from_list

from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import parse_measure

pytestmark = pytest.mark.real

CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
BINARY = {
    "map": "AP",
    "recip_rank": "RR",
    "bpref": "Bpref",
    **{f"map_cut_{k}": f"AP@{k}" for k in CUTS},
    **{f"P_{k}": f"P@{k}" for k in CUTS},
    **{f"recall_{k}": f"R@{k}" for k in CUTS},
    **{f"success_{k}": f"Success@{k}" for k in (1, 5, 10)},
}
GRADED = {
    "ndcg": "nDCG",
    **{f"ndcg_cut_{k}": f"nDCG@{k}" for k in CUTS},
    **{f"unj_{k}": f"Unjudged@{k}" for k in (5, 10, 20)},
}
RBP = {"rbp": "RBP(p=0.9,rel=1)"}  # its gains are grades over the highest grade of the query
MEAS_PARAMS = {
    **{f"P_{k}": f"P@{k}" for k in (3, 5, 7)},
    **{f"recall_{k}": f"R@{k}" for k in (20, 2000)},
    "ndcg_1=3,2=9,4=4.5": "nDCG(gains={1:3,2:9})",  # these qrels have grades 0 and 1 only
    **{f"ndcg_cut_{k}": f"nDCG@{k}" for k in (10, 20, 23)},
    **{f"success_{k}": f"Success@{k}" for k in (2, 5, 20)},
}


def at_level(names: dict[str, str], level: int) -> dict[str, str]:
    """The same measures with another relevance level."""
    return {
        theirs: "@".join([f"{name}(rel={level})", *cutoff])
        for theirs, ours in names.items()
        for name, *cutoff in [ours.split("@")]
    }


CASES = [
    ("out.test.aq", "qrels.test.gz", "results.test.gz", BINARY | GRADED | RBP, "-m all_trec -q"),
    ("out.test.aqc", "qrels.test.gz", "results.trunc", BINARY | GRADED | RBP, "-m all_trec -q -c"),
    (
        "out.test.aql",
        "qrels.rel_level.gz",
        "results.test.gz",
        at_level(BINARY, 2) | GRADED,
        "-m all_trec -mrelstring.20 -q -l2",
    ),
    (
        "out.test.meas_params",
        "qrels.test.gz",
        "results.test.gz",
        MEAS_PARAMS,
        "-q -m P.5,7,3 -m recall.20,2000 -mndcg.1=3,2=9,4=4.5 -mndcg_cut.10,20,23.4 -msuccess.2,5",
    ),
]


def lines(path: Path) -> list[list[str]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [line.split() for line in text.decode().splitlines()]


def read_run(path: Path) -> dict[str, list[str]]:
    """Score descending, then document id descending: trec_eval's order."""
    scored: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for query, _, document, _, score, *_ in lines(path):  # a tag may have spaces
        scored[query].append((float(score), document))
    return {
        query: [document for _, document in sorted(pairs, reverse=True)]
        for query, pairs in scored.items()
    }


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    for query, _, document, grade in lines(path):
        qrels[query][document] = int(grade)
    return qrels


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_reference_output(
    data: Callable[[str], Path], case: tuple[str, str, str, dict[str, str], str]
) -> None:
    output, qrels_name, run_name, names, command = case
    folder = data("trec_eval-reference")
    qrels = read_qrels(folder / qrels_name)
    run = read_run(folder / run_name)
    rankings = {query: from_list(documents, qrels[query]) for query, documents in run.items()}
    specs = {theirs: parse_measure(ours) for theirs, ours in names.items()}
    found = evaluate(rankings, qrels, list(specs.values()))
    per_query = found.per_query()
    compared: dict[str, int] = defaultdict(int)
    for name, query, value in lines(folder / output):
        if name not in specs or "'" in value:
            continue
        measure = specs[name]
        score = found.scores[measure].mean if query == "all" else per_query[query][measure]
        assert f"{score:.4f}" == value, f"{name} of {query}: trec_eval {command}"
        compared[name] += 1
    assert dict(compared) == dict.fromkeys(names, 4)  # topics 301 to 303, and their mean


def test_missing_query_counts_zero(data: Callable[[str], Path]) -> None:
    folder = data("trec_eval-reference")
    qrels = read_qrels(folder / "qrels.test.gz")
    run = read_run(folder / "results.trunc")
    rankings = {query: from_list(documents, qrels[query]) for query, documents in run.items()}
    found = evaluate(rankings, qrels, [parse_measure("AP")])
    assert (len(found.queries), found.unanswered) == (3, 1)
