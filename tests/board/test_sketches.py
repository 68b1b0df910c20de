"""What sketches let pass holds all that a full comparison finds, and fits choose the same runs."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heldout.board.policy import ensembles
from heldout.board.policy.ensembles import Ensemble, RunLikeness, Sampled
from heldout.board.policy.similarity import DEPTH, TOP, list_alike
from heldout.board.policy.sketches import Screen, Sketches, propose_pairs, sketch, sketch_all
from heldout.board.scores.compared import find_likeness
from heldout.trec.runs import scan_run
from heldout.trec.scans import Signature

KEY = 0x9E3779B97F4A7C15


def sign(run: dict[str, list[int]], width: int = DEPTH) -> Signature:
    documents = np.zeros((len(run), width), np.uint64)
    for row, query in zip(documents, sorted(run), strict=True):
        row[: len(run[query])] = run[query][:width]
    return Signature(queries=tuple(sorted(run)), documents=documents << np.uint64(32))


def compare_all(new: Signature, earlier: dict[str, Signature]) -> RunLikeness:
    """Without an index: every earlier run in full."""
    runs = earlier.items()
    return RunLikeness(neighbours=list_alike(new, runs), ensemble=Sampled(new, runs).explain())


rankings = st.lists(st.integers(1, 14), max_size=13, unique=True)
runs = st.dictionaries(st.sampled_from("abcdef"), rankings, min_size=1)


@given(new=runs, earlier=st.lists(runs, max_size=4), width=st.sampled_from([2, 10, DEPTH]))
def test_no_variant_is_missed(
    new: dict[str, list[int]], earlier: list[dict[str, list[int]]], width: int
) -> None:
    signed = {str(place): sign(run, width) for place, run in enumerate([*earlier, new])}
    found = find_likeness(sign(new, width), sketch_all(signed, KEY), signed.get)
    assert found == compare_all(sign(new, width), signed)


def pair_all(signed: list[Signature]) -> set[tuple[int, int]]:
    """Every pair of variants, each pair compared in full."""
    return {
        (other, place)
        for place, one in enumerate(signed)
        for other in range(place)
        if list_alike(one, [("", signed[other])])
    }


def propose(signed: list[Signature]) -> set[tuple[int, int]]:
    return {(other, place) for place, found in propose_pairs(signed) for other in found}


@given(st.lists(runs, max_size=6), st.sampled_from([2, 10, DEPTH]))
def test_no_pair_of_variants_is_missed_among_many(
    drawn: list[dict[str, list[int]]], width: int
) -> None:
    signed = [sign(run, width) for run in drawn]
    assert pair_all(signed) <= propose(signed)


def plant(run: dict[str, list[int]], how: int, much: float, seed: int) -> dict[str, list[int]]:
    """A copy that hides: other queries, lists, first documents, or documents in between."""
    chosen = np.random.default_rng(seed)
    made = {}
    for query, documents in run.items():
        other = (1_000 + chosen.permutation(2_000)[: len(documents)]).tolist()
        hit = chosen.random() < much
        if how == 0:  # the very same in some queries
            made[query] = documents if hit else other
        elif how == 1:  # the same first three in another order
            made[query] = [*chosen.permutation(documents[:3]).tolist(), *other] if hit else other
        elif how == 2:  # interleaved
            real = chosen.random(2 * len(documents)) < much
            ours, theirs = iter(documents), iter(other)
            woven = [next(ours if one else theirs, 0) for one in real]
            made[query] = [one for one in woven if one]
        elif how == 5:  # the same, and the first three of it in another order
            front = [*chosen.permutation(documents[:3]).tolist(), *documents[3:]]
            made[query] = [*other[: chosen.integers(0, 4)], *front] if hit else other
        elif how == 3:  # neighbours swapped, and cut
            swapped = np.argsort(np.arange(DEPTH) + chosen.normal(0, 4 * much, DEPTH))
            made[query] = [documents[at] for at in swapped[: chosen.integers(5, DEPTH)]]
        elif hit:  # only some queries
            made[query] = documents
    return made or run


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 1 << 20), st.sampled_from([2, 3, 5, 10, 100]))
def test_planted_variants_at_all_thresholds_are_proposed(seed: int, width: int) -> None:
    chosen = np.random.default_rng(seed)
    runs = [
        {str(query): (1 + chosen.permutation(250)[:DEPTH]).tolist() for query in range(25)}
        for _ in range(3)
    ]
    for number in range(18):
        source = runs[chosen.integers(3)]
        much = chosen.uniform(0.1, 0.9) if number % 6 < 5 else chosen.uniform(0.8, 1)
        runs.append(plant(source, number % 6, much, seed + number))
    signed = [sign({q: ds for q, ds in run.items() if ds}, width) for run in runs]
    wanted = pair_all(signed)
    assert wanted <= propose(signed)


def test_among_many_runs_hardly_any_other_pair_is_proposed() -> None:
    signed = [generate(seed) for seed in range(60)]
    assert len(propose(signed)) <= 1
    assert [*propose_pairs([])] == []


def test_runs_with_the_same_first_documents_in_other_orders_are_not_proposed() -> None:
    chosen = np.random.default_rng(7)
    runs = [
        {
            str(query): [
                *chosen.permutation([1, 2, 3, 4, start, start + 1]).tolist(),
                *range(start + 2, start + 16),
            ]
            for query in range(25)
        }
        for start in range(100, 700, 20)
    ]
    assert propose([sign(run) for run in runs]) == set()


def test_documents_whose_sketches_meet_hide_no_variant_and_make_none() -> None:
    run = sign({f"{query}": list(range(1, 30)) for query in range(8)})
    met = Signature(queries=run.queries, documents=np.full((8, DEPTH), 1 << 20, np.uint64))
    met.documents[:] += np.arange(DEPTH, dtype=np.uint64)
    assert (sketch(met, {"0": 0}, key=1) == 1).all()
    earlier = {"met": met, "copy": run}
    found = find_likeness(met, sketch_all(earlier, key=1), earlier.get)
    assert [n.id for n in found.neighbours] == ["met"]


def test_hardly_any_run_of_another_system_is_let_pass() -> None:
    earlier = {str(seed): generate(seed) for seed in range(60)}
    new = generate(99)
    every = sketch_all(earlier, KEY)
    columns = {query: column for column, query in enumerate(every.queries)}
    screen = Screen(sketch(new, columns, KEY), len(new.queries))
    assert not screen.admit(every.tops).any()


def generate(seed: int, *, queries: int = 60, own: float = 0.8) -> Signature:
    """A system that sees of each document how good it is, and something of its own besides."""
    quality, noise = np.random.default_rng(0), np.random.default_rng(seed + 1)
    scores = quality.normal(size=(queries, 250)) + own * noise.normal(size=(queries, 250))
    best = np.argsort(-scores, axis=1)[:, :DEPTH]
    ids = tuple(f"q{query:03}" for query in range(queries))
    return Signature(queries=ids, documents=(best + 1).astype(np.uint64) * np.uint64(KEY))


def fuse(*systems: Signature) -> Signature:
    """Reciprocal ranks, summed."""
    fused = []
    for rows in zip(*(system.documents for system in systems), strict=True):
        sums: dict[int, float] = {}
        for row in rows:
            for rank, document in enumerate(row.tolist(), 1):
                sums[document] = sums.get(document, 0.0) + 1 / (60 + rank)
        fused.append(sorted(sums, key=lambda one: (-sums[one], one))[:DEPTH])
    return Signature(queries=systems[0].queries, documents=np.array(fused, np.uint64))


def look_up(
    new: Signature, earlier: dict[str, Signature], every: Sketches
) -> tuple[Ensemble | None, int]:
    """What explains a run, and how many earlier runs were read for it."""
    read = set()

    def find(name: str) -> Signature:
        read.add(name)
        return earlier[name]

    return find_likeness(new, every, find).ensemble, len(read)


@pytest.mark.slow
def test_fusions_are_found_with_the_same_figures_and_few_runs_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ensembles, "PROPOSED", 4)
    earlier = {str(seed): generate(seed) for seed in range(150)}
    every = sketch_all(earlier, KEY)
    for parts in ((3, 90), (17, 60, 140), (5, 6, 7, 120)):
        new = fuse(*(earlier[str(part)] for part in parts))
        found, read = look_up(new, earlier, every)
        assert rounded(found) == rounded(Sampled(new, earlier.items()).explain())
        assert {part.id for part in found.parts} == set(map(str, parts)) if found else False
        assert read < 60
    assert look_up(generate(999), earlier, every)[0] is None


def test_a_run_with_queries_that_no_earlier_one_answers() -> None:
    earlier = {str(seed): generate(seed, queries=30) for seed in range(6)}
    new = fuse(earlier["1"], earlier["4"])
    more = generate(50, queries=34)
    wider = Signature(
        queries=more.queries, documents=np.concatenate([new.documents, more.documents[30:]])
    )
    found = find_likeness(wider, sketch_all(earlier, KEY), earlier.get)
    assert rounded(found.ensemble) == rounded(compare_all(wider, earlier).ensemble)
    assert found.ensemble is not None


def test_a_run_that_is_lost_explains_nothing() -> None:
    earlier = {str(seed): generate(seed, queries=30) for seed in range(6)}
    new = fuse(earlier["1"], earlier["4"])
    left = {name: run for name, run in earlier.items() if name != "4"}
    assert find_likeness(new, sketch_all(earlier, KEY), earlier.get).ensemble is not None
    found = find_likeness(new, sketch_all(earlier, KEY), left.get)
    assert rounded(found.ensemble) == rounded(compare_all(new, left).ensemble)


def scan(path: Path) -> Signature:
    with path.open("rb") as file:
        return scan_run(file, path=path.name, order="trec9", signature_depth=DEPTH).signature


@pytest.mark.real
def test_real_runs_and_their_fusions_are_found_as_by_comparing_all(
    data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`benchmarks/detection_lookup.py` does it with all 195 runs, 270 fusions and 780 copies."""
    monkeypatch.setattr(ensembles, "PROPOSED", 8)
    teams = sorted((data("trec-dl-2021-passage") / "runs").glob("*.gz"))[::3]
    for paths in (teams, sorted(data("trec-dl-2020-doc-one-team").glob("*.gz"))):
        runs = {path.name: scan(path) for path in paths}
        first, second, third, *_ = runs.values()
        cases = [(run, {n: r for n, r in runs.items() if n != name}) for name, run in runs.items()]
        cases += [(fuse(first, third), runs), (fuse(first, second, third), runs)]
        for new, earlier in cases:
            found = find_likeness(new, sketch_all(earlier, KEY), earlier.get)
            expected = compare_all(new, earlier)
            assert found.neighbours == expected.neighbours
            assert rounded(found.ensemble) == rounded(expected.ensemble)


def rounded(found: Ensemble | None) -> object:
    """Figures to 12 digits: runs that are not read change the order of a sum."""
    if found is None:
        return None
    figures = (found.agreement, found.alone, found.r2 or 0.0, *(p.weight for p in found.parts))
    names = [part.id for part in found.parts]
    return found.transform, names, [round(figure, 12) for figure in figures]


def test_sketches_have_ten_documents_of_16_bits() -> None:
    run = generate(1, queries=3)
    tops = sketch(run, {"q001": 0, "q000": 1}, KEY)
    assert (tops.shape, tops.dtype) == ((2, TOP), np.dtype(np.uint16))
    assert tops.all()
