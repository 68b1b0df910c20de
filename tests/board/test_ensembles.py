"""Fusions of known runs are found with their parts; runs of their own are not called fusions."""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pytest
from certain import sure
from scipy.optimize import nnls

from heldout.board.policy import ensembles
from heldout.board.policy.ensembles import MOST_SYSTEMS, QUERIES, Ensemble, Sampled
from heldout.board.policy.similarity import DEPTH
from heldout.ids import DocId, QueryId
from heldout.trec.runs import scan_run
from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.scans import Signature

KNOWN = 12
"""Generated systems that are published; there are more that are not."""


def fit(new: Signature, earlier: Iterable[tuple[str, Signature]]) -> Ensemble | None:
    return Sampled(new, earlier).fit()


def explain(new: Signature, earlier: Iterable[tuple[str, Signature]]) -> Ensemble | None:
    return Sampled(new, earlier).explain()


class Hit(NamedTuple):
    document: DocId
    score: float


Run: TypeAlias = Mapping[QueryId, Sequence[Hit]]


def generate_run(system: int, *, queries: int = 60, own: float = 1.0) -> Run:
    """A system sees of each document how good it is, and besides something of its own."""
    quality, noise = np.random.default_rng(0), np.random.default_rng(system + 1)
    run = {}
    for query in range(queries):
        scores = quality.normal(size=250) + own * noise.normal(size=250)
        best = np.argsort(-scores)[:DEPTH]
        hits = [Hit(DocId(f"{query}-{d}"), float(scores[d])) for d in best]
        run[QueryId(f"q{query:03}")] = hits
    return run


def sign(run: Run) -> Signature:
    queries = tuple(sorted(run))
    documents = np.zeros((len(queries), DEPTH), np.uint64)
    for row, query in zip(documents, queries, strict=True):
        row[: len(run[query])] = hash_documents([h.document.encode() for h in run[query]])
    return Signature(queries=queries, documents=documents)


@cache
def known() -> tuple[list[Run], Mapping[str, Signature]]:
    systems = [generate_run(system) for system in range(KNOWN)]
    return systems, {f"s{number}": sign(run) for number, run in enumerate(systems)}


def fuse_reciprocal(runs: Sequence[Run], *, depth: int, k: float) -> Run:
    return fuse(runs, depth, lambda hits: [1 / (k + rank) for rank, _ in enumerate(hits, 1)])


def fuse_scores(runs: Sequence[Run], *, depth: int) -> Run:
    """Sums of scores, those of each ranking between 0 and 1."""

    def stretch(hits: Sequence[Hit]) -> list[float]:
        low, high = hits[-1].score, hits[0].score
        return [(hit.score - low) / (high - low) for hit in hits]

    return fuse(runs, depth, stretch)


def fuse(runs: Sequence[Run], depth: int, shares: Callable[[Sequence[Hit]], list[float]]) -> Run:
    fused = {}
    for query in runs[0]:
        sums: defaultdict[DocId, float] = defaultdict(float)
        for hits in (run[query] for run in runs):
            for hit, share in zip(hits, shares(hits), strict=True):
                sums[hit.document] += share
        best = sorted(sums, key=lambda one: (sums[one], one), reverse=True)[:depth]
        fused[query] = [Hit(one, sums[one]) for one in best]
    return fused


def interleave(*runs: Run) -> Run:
    """In turns, each time the next document that is not there yet."""
    woven = {}
    for query in runs[0]:
        turns = (h.document for hits in zip(*(r[query] for r in runs), strict=True) for h in hits)
        documents = list(dict.fromkeys(turns))[:DEPTH]
        woven[query] = [Hit(d, -float(place)) for place, d in enumerate(documents)]
    return woven


def names(found: Ensemble | None) -> set[str]:
    return set() if found is None else {part.id for part in found.parts}


FUSIONS: Mapping[str, Callable[[Sequence[Run]], Run]] = {
    "reciprocal ranks": lambda runs: fuse_reciprocal(runs, depth=DEPTH, k=60),
    "sums of scores": lambda runs: fuse_scores(runs, depth=DEPTH),
    "interleaved": lambda runs: interleave(*runs),
}


@pytest.mark.parametrize("way", FUSIONS)
@pytest.mark.parametrize("parts", [(0, 1), (2, 5, 7), (1, 3, 8, 9)])
def test_fusions_are_found(way: str, parts: Sequence[int]) -> None:
    if way == "interleaved" and len(parts) > 3:
        return
    systems, earlier = known()
    found = explain(sign(FUSIONS[way]([systems[part] for part in parts])), earlier.items())
    assert names(found) == {f"s{part}" for part in parts}


def test_weights_say_what_is_heavier() -> None:
    systems, earlier = known()
    fused = fuse_scores([systems[4], systems[4], systems[4], systems[6], systems[6]], depth=DEPTH)
    found = sure(explain(sign(fused), earlier.items()))
    assert [part.id for part in found.parts] == ["s4", "s6"]
    assert found.parts[0].weight == pytest.approx(0.6, abs=0.05)


def test_systems_of_their_own_are_no_ensembles() -> None:
    """They rank the same documents by the same quality, as independent good systems do."""
    _, earlier = known()
    for system in range(KNOWN, KNOWN + 8):
        assert not sure(fit(sign(generate_run(system)), earlier.items())).explains


def test_copy_and_variant_are_no_fusions() -> None:
    systems, earlier = known()
    random = np.random.default_rng(5)

    def shake(hit: Hit) -> float:
        return hit.score + 0.1 * random.normal()

    near = {q: sorted(hits, key=shake, reverse=True) for q, hits in systems[3].items()}
    for run in (systems[3], near):
        found = sure(fit(sign(run), earlier.items()))
        assert found.parts[0].id == "s3"
        assert found.alone > 0.7
        assert not found.explains


def test_an_unknown_part_explains_nothing() -> None:
    systems, earlier = known()
    fused = fuse_scores([systems[0], generate_run(KNOWN)], depth=DEPTH)
    assert explain(sign(fused), earlier.items()) is None


def test_figures_keep_their_bounds() -> None:
    _, earlier = known()
    for system in (0, KNOWN, KNOWN + 1):
        found = sure(fit(sign(generate_run(system)), earlier.items()))
        assert 1 <= len(found.parts) <= MOST_SYSTEMS
        assert sum(part.weight for part in found.parts) == pytest.approx(1)
        assert all(part.weight > 0 for part in found.parts)
        assert 0 <= found.alone <= 1
        assert 0 <= found.agreement <= 1
        assert sure(found.r2) <= 1
        assert found.queries == 30


def test_the_order_of_runs_is_nothing() -> None:
    systems, earlier = known()
    new = sign(fuse_reciprocal(systems[:3], depth=DEPTH, k=60))
    backwards = reversed(list(earlier.items()))
    assert fit(new, backwards) == fit(new, earlier.items())


def test_earlier_runs_are_read_once() -> None:
    _, earlier = known()
    read = []

    def stream() -> Iterator[tuple[str, Signature]]:
        for name, signature in earlier.items():
            read.append(name)
            yield name, signature

    fit(sign(generate_run(0)), stream())
    assert read == list(earlier)


def test_earlier_runs_of_other_queries() -> None:
    systems, earlier = known()
    others = {
        "few": sign({query: systems[0][query] for query in list(systems[0])[:5]}),
        "foreign": sign({QueryId(f"x{q}"): hits for q, hits in systems[0].items()}),
        "none": Signature(queries=(), documents=np.empty((0, DEPTH), np.uint64)),
    }
    new = sign(fuse_reciprocal(systems[:2], depth=DEPTH, k=60))
    assert names(explain(new, (others | dict(earlier)).items())) == {"s0", "s1"}


def test_shallow_signatures_are_used() -> None:
    systems, earlier = known()
    shallow = {
        name: Signature(queries=run.queries, documents=run.documents[:, :10])
        for name, run in earlier.items()
    }
    new = sign(fuse_reciprocal(systems[:2], depth=DEPTH, k=60))
    assert {"s0", "s1"} <= names(fit(new, shallow.items()))


def test_nothing_is_said_of_nothing() -> None:
    _, earlier = known()
    assert fit(sign(generate_run(0, queries=19)), earlier.items()) is None
    assert fit(sign(generate_run(0)), []) is None
    foreign = {query: [Hit(DocId("x"), 1.0)] for query in generate_run(0)}
    assert fit(sign(foreign), earlier.items()) is None
    empty = Signature(queries=(), documents=np.empty((0, DEPTH), np.uint64))
    assert fit(empty, earlier.items()) is None


def test_runs_of_one_document_have_no_variance_to_explain() -> None:
    systems, _ = known()
    first = sign({query: hits[:1] for query, hits in systems[0].items()})
    found = sure(fit(first, [("same", first)]))
    assert found.r2 is None
    assert found.agreement == found.alone == pytest.approx(1)
    assert not found.explains


def test_the_sample_is_bounded_and_the_same_for_the_same_run() -> None:
    drawn = ensembles._draw(sign(generate_run(0, queries=QUERIES + 50)))
    assert len(set(drawn)) == QUERIES
    assert drawn == ensembles._draw(sign(generate_run(0, queries=QUERIES + 50)))


def test_attack_fusion_that_spares_the_sampled_queries() -> None:
    """Whoever answers the queries of the sample otherwise gets another sample."""
    long = [generate_run(system, queries=1000) for system in (0, 1, 99)]
    fused = fuse_reciprocal(long[:2], depth=DEPTH, k=60)
    spared = set(ensembles._draw(sign(fused)))
    evading = {q: long[2][q] if q in spared else hits for q, hits in fused.items()}
    assert len(spared & set(ensembles._draw(sign(evading)))) < QUERIES / 4
    known = {"a": sign(long[0]), "b": sign(long[1])}
    assert names(explain(sign(evading), known.items())) == {"a", "b"}


def scan(path: Path) -> Signature:
    with path.open("rb") as file:
        return scan_run(file, path=path.name, order="trec9", signature_depth=DEPTH).signature


@pytest.mark.real
def test_a_real_fusion_is_found_with_its_parts(data: Callable[[str], Path]) -> None:
    folder = data("trec-covid-round1") / "runs-depth100"
    earlier = {path.name.removesuffix(".gz"): scan(path) for path in sorted(folder.glob("*.gz"))}
    found = sure(explain(earlier.pop("Technion-RRF"), earlier.items()))
    assert names(found) == {"Technion-JPD", "Technion-MEDMM"}
    assert found.transform == "1 / (60 + r)"
    assert found.agreement > 0.95
    assert all(part.weight == pytest.approx(0.5, abs=0.02) for part in found.parts)


@pytest.mark.slow
@pytest.mark.real
def test_no_run_is_called_a_fusion_of_other_teams(data: Callable[[str], Path]) -> None:
    folder = data("trec-dl-2021-passage")
    with (folder / "official-results.tsv").open(encoding="utf-8", newline="") as file:
        teams = {row["run"]: row["participant"] for row in csv.DictReader(file, delimiter="\t")}
    runs = {path.name.removesuffix(".gz"): scan(path) for path in (folder / "runs").glob("*.gz")}
    for name, signature in runs.items():
        others = ((o, run) for o, run in runs.items() if teams[o] != teams[name])
        assert explain(signature, others) is None, name


@pytest.mark.real
def test_a_fusion_of_near_variants_is_found_too(data: Callable[[str], Path]) -> None:
    """BIT.UA-run2 fuses run2-1 to run2-5, of which the first and the third are one ranking."""
    folder = data("trec-dl-2020-doc-one-team")
    earlier = {f"run2-{n}": scan(folder / f"BIT.UA-run2-{n}.gz") for n in range(1, 6)}
    found = explain(scan(folder / "BIT.UA-run2.gz"), earlier.items())
    assert names(found) == {"run2-1", "run2-2", "run2-4", "run2-5"}


@pytest.mark.parametrize("seed", range(20))
def test_weights_are_those_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = rng.random((40, 1 + seed % ensembles.MOST_SYSTEMS)) * (rng.random((40, 1)) < 0.7)
    if seed % 3 == 0:
        parts[:, -1] = parts[:, 0]
    target = np.maximum(parts @ rng.normal(size=parts.shape[1]), 0) + rng.random(40) * (seed % 2)
    found, peer = ensembles._regress(parts, target), nnls(parts, target)[0]
    assert (found >= 0).all()
    assert np.allclose(parts @ found, parts @ peer, atol=1e-9)
