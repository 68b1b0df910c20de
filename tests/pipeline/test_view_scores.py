"""Scores of views that are means over groups of queries, for one run and for several seeds."""

import io
from collections.abc import Mapping
from datetime import date
from statistics import fmean

import msgspec
import pytest

from heldout.board.rules.spec import BoardSpec, QuerySet, View
from heldout.errors import InputError
from heldout.ids import digest_bytes
from heldout.pipeline.query_sets.sets import SetData
from heldout.pipeline.query_sets.view_files import ViewFiles
from heldout.pipeline.scoring.score import ViewScore, score_views
from heldout.trec.qrels import parse_qrels
from heldout.trec.queries import parse_queries
from heldout.trec.runs import Scan, scan_run

QUERIES = [f"q{number}" for number in range(6)]
FACETS = {"A": frozenset(QUERIES[:3]), "B": frozenset(QUERIES[3:])}
PLACES = ([1, 1, 2, 1, 4, 4], [4, 4, 4, 1, 2, 2])
"""Place of the relevant document of each query, by seed."""
QRELS = "".join(f"{query} 0 good 1\n" for query in QUERIES)


def view(**keys: object) -> View:
    given = {"name": "v", "set": "eval", "measure": "RR@10", "facets": "labels/f.facets", **keys}
    return msgspec.convert({"min_group": 2, **given}, View)


def scan(places: list[int]) -> Scan:
    lines = []
    for query, place in zip(QUERIES, places, strict=True):
        documents = ["w", "x", "y", "z"]
        documents.insert(place - 1, "good")
        lines += [f"{query}\t{name}\t{rank}\n" for rank, name in enumerate(documents, 1)]
    qrels = parse_qrels(QRELS.encode(), path="qrels").judgments
    return scan_run(io.BytesIO("".join(lines).encode()), path="r", order="msmarco", qrels=qrels)


def score(one: View, scans: Mapping[str, Scan], *, excluded: str = "") -> ViewScore:
    spec = BoardSpec(
        name="b",
        title="b",
        task="t",
        opens=date(2026, 11, 1),
        primary="v",
        recipients=("k",),
        sets={"eval": QuerySet(queries="q.tsv")},
        views=(one,),
    )
    digest = digest_bytes(b"f")
    data = SetData(
        queries=parse_queries("".join(f"{q}\ttext\n" for q in QUERIES).encode(), path="q"),
        qrels=parse_qrels(QRELS.encode(), path="qrels"),
        digest=digest,
        excluded=frozenset(excluded.split()),
        candidates=None,
        files=ViewFiles(
            facets={"labels/f.facets": FACETS},
            queries={"labels/f.tail": frozenset({"q0", "q4", "elsewhere"})},
            digests={"labels/f.facets": digest, "labels/f.tail": digest},
        ),
    )
    return score_views(spec, {"eval": data}, scans)["v"]


def mean_of(group: str, seed: int) -> float:
    return fmean(1 / PLACES[seed][QUERIES.index(query)] for query in FACETS[group])


def test_the_worst_group_of_one_run() -> None:
    found = score(view(summary="worst"), {"eval": scan(PLACES[0])})
    assert found.groups == ("B",)
    assert found.mean == pytest.approx(mean_of("B", 0))
    assert (found.n, set(found.per_query)) == (3, set(FACETS["B"]))


def test_the_worst_group_of_two_seeds_is_that_of_their_mean() -> None:
    """Each seed has another worst group; the submission has one."""
    found = score(view(summary="worst"), {"eval": scan(PLACES[0]), "eval~2": scan(PLACES[1])})
    means = {group: fmean(mean_of(group, seed) for seed in range(2)) for group in FACETS}
    worst = min(means, key=means.__getitem__)
    assert found.groups == (worst,)
    assert found.mean == pytest.approx(means[worst])
    assert found.seeds == pytest.approx([mean_of(worst, seed) for seed in range(2)])


def test_the_gap_of_two_seeds_is_that_of_their_mean() -> None:
    found = score(view(summary="gap"), {"eval": scan(PLACES[0]), "eval~2": scan(PLACES[1])})
    means = {group: fmean(mean_of(group, seed) for seed in range(2)) for group in FACETS}
    assert found.mean == pytest.approx(max(means.values()) - min(means.values()))
    assert found.n == 6
    assert fmean(found.seeds) == pytest.approx(found.mean)


def test_queries_that_do_not_count_are_in_no_group() -> None:
    found = score(view(summary="worst"), {"eval": scan(PLACES[0])}, excluded="q4 q0")
    assert found.n == 2
    with pytest.raises(InputError) as caught:
        score(view(summary="gap"), {"eval": scan(PLACES[0])}, excluded="q4 q5")
    assert caught.value.problems[0].code == "undefined-score"
    assert caught.value.problems[0].found == "not two groups of 2 queries that count"


def test_some_of_the_queries() -> None:
    tail = view(facets=None, queries="labels/f.tail")
    found = score(tail, {"eval": scan(PLACES[0])})
    assert set(found.per_query) == {"q0", "q4"}
    assert found.mean == pytest.approx((1 + 1 / 4) / 2)
    with pytest.raises(InputError) as caught:
        score(tail, {"eval": scan(PLACES[0])}, excluded="q0 q4")
    assert caught.value.problems[0].code == "undefined-score"
