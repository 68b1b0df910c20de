"""How alike two runs are, held against plain sums over depths, published values and real runs."""

import csv
import gzip
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from heldout.board.policy.similarity import (
    DEPTH,
    INTERLEAVED,
    TOP,
    VARIANT,
    Likeness,
    classify,
    compare,
    list_alike,
    rank_biased_overlap,
)
from heldout.trec.runs import scan_run
from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.scans import Signature

Ranking = Sequence[object]

rankings = st.lists(st.integers(1, 40), min_size=1, max_size=20, unique=True)
runs = st.dictionaries(st.sampled_from("abcdef"), rankings, min_size=1)


def rows(rankings: Sequence[Ranking], width: int = DEPTH) -> NDArray[np.uint64]:
    filled = np.zeros((len(rankings), width), np.uint64)
    for row, ranking in zip(filled, rankings, strict=True):
        row[: len(ranking)] = hash_documents([str(d).encode() for d in ranking[:width]])
    return filled


def sign(run: dict[str, list[int]], width: int = DEPTH) -> Signature:
    queries = tuple(sorted(run))
    return Signature(queries=queries, documents=rows([run[q] for q in queries], width))


def rbo(first: Ranking, second: Ranking, p: float = 0.9) -> float:
    return float(rank_biased_overlap(rows([first]), rows([second]), p=p)[0])


def plain_rbo(first: Ranking, second: Ranking, p: float) -> float:
    """Equation 32 of Webber et al. (2010) as it stands, depth by depth."""
    short, long = sorted((list(first), list(second)), key=len)
    s, l = len(short), len(long)  # noqa: E741 - the equation's names

    def common(depth: int) -> int:
        return len(set(short[:depth]) & set(long[:depth]))

    seen = sum(common(d) / d * p**d for d in range(1, l + 1))
    seen += sum(common(s) * (d - s) / (s * d) * p**d for d in range(s + 1, l + 1))
    return (1 - p) / p * seen + ((common(l) - common(s)) / l + common(s) / s) * p**l


def sure(likeness: Likeness | None) -> Likeness:
    assert likeness is not None
    return likeness


def generated(seed: int, *, queries: int = 40, depth: int = DEPTH) -> dict[str, list[int]]:
    random = np.random.default_rng(seed)
    return {str(q): random.choice(300, depth, replace=False).tolist() for q in range(queries)}


@given(rankings, rankings, st.sampled_from([0.1, 0.5, 0.9, 0.98]))
def test_rank_biased_overlap_is_the_sum_over_depths(a: list[int], b: list[int], p: float) -> None:
    assert rbo(a, b, p) == pytest.approx(plain_rbo(a, b, p), abs=1e-12)


@given(rankings, rankings)
def test_rank_biased_overlap_is_a_symmetric_share(a: list[int], b: list[int]) -> None:
    assert 0 <= rbo(a, b) <= 1
    assert rbo(a, b) == rbo(b, a)
    assert rbo(a, a) == pytest.approx(1, abs=1e-12)
    assert rbo(a, [-d for d in b]) == 0


@pytest.mark.real
def test_rank_biased_overlap_equals_published_values(data: Callable[[str], Path]) -> None:
    """The published a-variant of a pair with ties is the mean over all ways to break them.

    So it is unless a tie ends below the last rank of the shorter ranking: there it says what
    an unseen document would add to a tied group.
    """
    even = uneven = 0
    with gzip.open(data("rbo-with-ties") / "cases.csv.gz", "rt", encoding="utf-8") as file:
        for case in csv.DictReader(file):
            groups = [tied for side in "xy" for tied in re.findall(r"\([^)]*\)", case[side])]
            if math.prod(math.factorial(len(tied.split())) for tied in groups) > 24:
                continue
            orders = [list(orders_of(case[side])) for side in "xy"]
            lengths = [len(side[0]) for side in orders]
            if any(len({tuple(order[min(lengths) :]) for order in side}) > 1 for side in orders):
                continue
            first, second = (rows(side) for side in zip(*itertools.product(*orders), strict=True))
            found = rank_biased_overlap(first, second, p=float(case["p"])).mean()
            assert found == pytest.approx(float(case["a.ext"]), abs=1e-9)
            even += lengths[0] == lengths[1]
            uneven += lengths[0] != lengths[1]
    assert (even, uneven) == (53, 135)


def orders_of(ranking: str) -> Iterator[list[str]]:
    """Every way to break the ties of a ranking in which groups of equals stand in parentheses."""
    groups = [(a or b).split() for a, b in re.findall(r"\(([^)]*)\)|(\S+)", ranking)]
    for way in itertools.product(*map(itertools.permutations, groups)):
        yield [item for group in way for item in group]


@given(runs, runs)
def test_figures_are_those_of_the_lists(a: dict[str, list[int]], b: dict[str, list[int]]) -> None:
    found = compare(sign(a), sign(b))
    both = sorted(a.keys() & b.keys())
    if not both:
        assert found is None
        return
    found = sure(found)
    assert (found.queries, found.only_first, found.only_second) == (
        len(both),
        len(a) - len(both),
        len(b) - len(both),
    )
    tops = [(a[q][:TOP], b[q][:TOP]) for q in both]
    assert found.rbo == pytest.approx(np.mean([plain_rbo(x, y, 0.9) for x, y in tops]))
    assert found.deep == pytest.approx(np.mean([plain_rbo(a[q], b[q], 0.9) for q in both]))
    assert found.same == np.mean([x == y for x, y in tops])
    assert found.equal == all(a[q] == b[q] for q in both)
    heads = [len(a[q]) >= 3 <= len(b[q]) and set(a[q][:3]) == set(b[q][:3]) for q in both]
    assert found.heads == np.mean(heads)
    within = [
        np.mean([len(x) >= 3 and [d for d in y[:TOP] if d in x[:3]] == x[:3] for x, y in sides])
        for sides in ([(a[q], b[q]) for q in both], [(b[q], a[q]) for q in both])
    ]
    assert found.interleaved == max(within)
    anyhow = [
        np.mean([len(x) >= 3 and {*x[:3]} <= {*y[:TOP]} for x, y in sides])
        for sides in ([(a[q], b[q]) for q in both], [(b[q], a[q]) for q in both])
    ]
    assert found.contained == max(anyhow)


@given(runs, runs)
def test_names_of_documents_and_queries_mean_nothing(
    a: dict[str, list[int]], b: dict[str, list[int]]
) -> None:
    def renamed(run: dict[str, list[int]]) -> dict[str, list[int]]:
        return {chr(ord("z") - ord(q) + ord("a")): [7 * d for d in run[q]] for q in run}

    found, other = compare(sign(a), sign(b)), compare(sign(renamed(a)), sign(renamed(b)))
    if found is None or other is None:
        assert found is other
        return
    assert (other.rbo, other.deep) == pytest.approx((found.rbo, found.deep))
    swapped = sure(compare(sign(b), sign(a)))
    assert (swapped.rbo, swapped.same, swapped.deep) == (found.rbo, found.same, found.deep)
    assert swapped.only_first == found.only_second


def test_places_without_a_document_are_not_a_common_document() -> None:
    found = sure(compare(sign({"q": [1, 2, 3]}), sign({"q": [4, 5]})))
    assert (found.rbo, found.deep, found.same) == (0, 0, 0)


def test_a_query_without_documents_is_not_answered() -> None:
    some = Signature(queries=("1", "2"), documents=rows([[1, 2], []]))
    both = sign({"1": [1, 2], "2": [3]})
    assert sure(compare(some, both)).queries == 1
    assert sure(compare(some, both)).only_second == 1
    nothing = Signature(queries=("1", "2"), documents=rows([[], []]))
    assert compare(nothing, both) is None
    assert compare(nothing, nothing) is None


def test_a_run_of_no_queries_is_like_nothing() -> None:
    empty = Signature(queries=(), documents=np.empty((0, DEPTH), np.uint64))
    assert compare(empty, sign({"1": [1]})) is None
    assert compare(empty, empty) is None
    assert list_alike(empty, [("a", sign({"1": [1]}))]) == ()


def test_narrow_signatures_compare_as_if_filled_up() -> None:
    wide, narrow = generated(1), generated(2, depth=7)
    assert compare(sign(wide), sign(narrow, width=7)) == compare(sign(wide), sign(narrow))


def test_many_queries_are_compared_in_blocks() -> None:
    first, second = generated(1, queries=2500, depth=5), generated(2, queries=2500, depth=5)
    found = sure(compare(sign(first), sign(second)))
    overlaps = [plain_rbo(first[q], second[q], 0.9) for q in first]
    assert found.deep == pytest.approx(np.mean(overlaps))


def verdict(a: dict[str, list[int]], b: dict[str, list[int]]) -> str:
    found = compare(sign(a), sign(b))
    return "none" if found is None else classify(found)


def test_the_same_run_is_identical() -> None:
    assert verdict(generated(1), generated(1)) == "identical"


def test_one_percent_of_documents_changed_is_a_variant() -> None:
    random = np.random.default_rng(3)
    first = generated(1)
    changed = {q: [-d if random.random() < 0.01 else d for d in ds] for q, ds in first.items()}
    assert verdict(first, changed) == "variant"


def test_reversed_shuffled_and_foreign_runs_are_none() -> None:
    random = np.random.default_rng(3)
    first = generated(1)
    assert verdict(first, {q: ds[::-1] for q, ds in first.items()}) == "none"
    assert verdict(first, {q: random.permutation(ds).tolist() for q, ds in first.items()}) == "none"
    assert verdict(first, generated(2)) == "none"


def test_attack_copy_with_one_document_changed() -> None:
    first = generated(1)
    assert verdict(first, first | {"0": [-1, *first["0"][1:]]}) == "variant"
    assert verdict(first, first | {"0": [*first["0"][:-1], -1]}) == "variant"


def test_attack_copy_that_swaps_neighbours_everywhere() -> None:
    first = generated(1)
    swapped = {q: [ds[i ^ 1] for i in range(len(ds))] for q, ds in first.items()}
    assert sure(compare(sign(first), sign(swapped))).same == 0
    assert verdict(first, swapped) == "variant"


def test_attack_copy_with_another_tail() -> None:
    first = generated(1)
    tails = {q: [*ds[:TOP], *(-d for d in ds[TOP:])] for q, ds in first.items()}
    assert verdict(first, tails) == "variant"


def test_attack_copy_that_leaves_out_queries() -> None:
    first = generated(1)
    fewer = {q: first[q] for q in list(first)[:30]}
    assert verdict(first, fewer) == verdict(fewer, first) == "variant"


@pytest.mark.parametrize("kept", [3, 4])
def test_attack_copy_with_made_up_documents_below_the_first(kept: int) -> None:
    """What a reciprocal rank hangs on is kept, and changed a little to climb; decoys hide it."""
    first = generated(1)
    decoys = {q: [*ds[:kept], *(-d for d in ds[kept:])] for q, ds in first.items()}
    for query in ("3", "7"):
        decoys[query][:2] = decoys[query][1::-1]
    found = sure(compare(sign(first), sign(decoys)))
    assert found.rbo < VARIANT
    assert (found.same, found.heads) == (0, 1)
    assert verdict(first, decoys) == verdict(decoys, first) == "variant"
    reordered = {q: [*ds[2::-1], *(-d for d in ds[3:])] for q, ds in first.items()}
    assert verdict(first, reordered) == "variant"
    half = decoys | {str(n): generated(2)[str(n)] for n in range(20)}
    assert verdict(first, half) == "variant"
    assert verdict(first, half | {"20": generated(2)["20"]}) == "none"


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_attack_copy_interleaved_with_made_up_documents(share: float) -> None:
    """All documents of another run in their order; the made-up ones lie anywhere between them."""
    random = np.random.default_rng(5)
    first = generated(1)
    places = {q: iter(random.permutation(DEPTH) >= share * DEPTH) for q in first}
    woven = {
        q: [ds.pop(0) if real else -1 - place for place, real in enumerate(places[q])]
        for q, ds in ((q, list(ds)) for q, ds in first.items())
    }
    assert verdict(first, woven) == verdict(woven, first) == "variant"
    assert [n.id for n in list_alike(sign(first), [("woven", sign(woven))])] == ["woven"]


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_attack_copy_interleaved_and_with_the_first_three_in_another_order(share: float) -> None:
    """The same, and the order of the first three changes in every query."""
    random = np.random.default_rng(5)
    first = generated(1)
    woven = {}
    for query, documents in first.items():
        ours = iter([documents[2], documents[0], documents[1], *documents[3:]])
        real = random.permutation(DEPTH) >= share * DEPTH
        woven[query] = [next(ours) if one else -1 - place for place, one in enumerate(real)]
    found = sure(compare(sign(first), sign(woven)))
    assert found.interleaved < INTERLEAVED
    assert verdict(first, woven) == verdict(woven, first) == "variant"
    assert [n.id for n in list_alike(sign(first), [("woven", sign(woven))])] == ["woven"]


def test_attack_copy_between_the_documents_of_an_own_run() -> None:
    """Every second document is another run's: the own ones come first."""
    first, own = generated(1), generated(2)
    pairs = {q: itertools.chain(*zip(own[q], ds, strict=True)) for q, ds in first.items()}
    woven = {q: list(dict.fromkeys(ds))[:DEPTH] for q, ds in pairs.items()}
    found = sure(compare(sign(first), sign(woven)))
    assert (found.rbo < VARIANT, found.same, found.heads) == (True, 0, 0)
    assert verdict(first, woven) == "variant"


def test_runs_of_one_or_two_documents_have_no_first_three() -> None:
    short = {q: ds[:2] for q, ds in generated(1).items()}
    other = {q: [ds[1], -ds[0]] for q, ds in short.items()}
    for width in (1, 2, 3, DEPTH):
        assert sure(compare(sign(short, width), sign(short, width))).heads == 0
    assert verdict(short, other) == "none"


def test_attack_copy_that_changes_most_queries() -> None:
    first, other = generated(1), generated(2)
    mixed = {q: first[q] if int(q) % 4 == 0 else other[q] for q in first}
    assert sure(compare(sign(first), sign(mixed))).rbo < VARIANT
    assert verdict(first, mixed) == "variant"
    fewer = {q: first[q] if int(q) % 6 == 0 else other[q] for q in first}
    assert verdict(first, fewer) == "none"


def test_attack_one_common_query_makes_no_variant_and_hides_none() -> None:
    first = generated(1)
    decoys = {f"decoy {n}": {"0": first["0"]} for n in range(9)}
    copy = {q: [-1, *ds[:-1]] for q, ds in first.items()}
    found = list_alike(
        sign(first), ((name, sign(run)) for name, run in (decoys | {"copy": copy}).items())
    )
    assert [(n.id, n.verdict) for n in found] == [("copy", "variant")]


def test_attack_many_variants_do_not_hide_the_identical_run() -> None:
    first = generated(1)
    crowd = [(f"v{n}", sign(first | {"1": [*first["1"][:50], *range(900, 950)]})) for n in range(9)]
    found = list_alike(sign(first), [*crowd[:5], ("same", sign(first)), *crowd[5:]])
    verdicts = [("same", "identical"), *((f"v{n}", "variant") for n in range(9))]
    assert [(n.id, n.verdict) for n in found] == verdicts


@given(st.integers(0, 2**32 - 1))
def test_the_screen_leaves_out_nothing_that_a_full_comparison_would_name(seed: int) -> None:
    random = np.random.default_rng(seed)
    first = generated(seed, queries=6, depth=12)

    def like() -> dict[str, list[int]]:
        share = random.choice([0, 0.1, 0.3, 0.6, 1])
        answered = [q for q in first if random.random() < 0.8] or ["0"]
        return {q: [-d if random.random() < share else d for d in first[q]] for q in answered}

    earlier = {f"{n}": sign(like()) for n in range(8)}
    found = list_alike(sign(first), earlier.items())

    def key(likeness: Likeness) -> tuple[float, ...]:
        every = likeness.queries + likeness.only_first + likeness.only_second
        verdict = ("none", "variant", "identical").index(classify(likeness))
        near = likeness.queries / every * likeness.rbo
        return verdict, round(near, 9)

    every = [sure(compare(sign(first), signature)) for signature in earlier.values()]
    named = [likeness for likeness in every if classify(likeness) != "none"]
    assert [key(n.likeness) for n in found] == sorted(map(key, named), reverse=True)
    assert all(n.likeness == compare(sign(first), earlier[n.id]) for n in found)
    assert [n.verdict for n in found] == [classify(n.likeness) for n in found]


def test_earlier_runs_are_held_one_at_a_time() -> None:
    alive = 0

    class Counted(Signature):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def stream() -> Iterator[tuple[str, Signature]]:
        nonlocal alive
        for seed in range(20):
            signature = sign(generated(seed, queries=3))
            alive += 1
            assert alive <= 2
            yield str(seed), Counted(queries=signature.queries, documents=signature.documents)

    assert [n.id for n in list_alike(sign(generated(3, queries=3)), stream())] == ["3"]


def scan(path: Path) -> Signature:
    with path.open("rb") as file:
        return scan_run(file, path=path.name, order="trec9", signature_depth=DEPTH).signature


@pytest.mark.real
def test_runs_of_one_team_and_runs_of_others(data: Callable[[str], Path]) -> None:
    folder = data("trec-covid-round1") / "runs-depth100"
    with (folder.parent / "leaderboard.csv").open(encoding="utf-8", newline="") as file:
        teams = {row["run"]: row["team"] for row in csv.DictReader(file)}
    earlier = {path.name.removesuffix(".gz"): scan(path) for path in sorted(folder.glob("*.gz"))}
    named = {}
    for name, signature in earlier.items():
        others = ((other, run) for other, run in earlier.items() if other > name)
        for found in list_alike(signature, others):
            named[name, found.id] = found.verdict
    identical = {pair for pair, verdict in named.items() if verdict == "identical"}
    assert identical == {
        ("CincyMedIR-run2", "CincyMedIR-run3"),
        ("uogTrDPH_QE", "uogTrDPH_QE_QQ"),
        ("wistud_bing", "wistud_indri"),
        ("wistud_bing", "wistud_noSearch"),
        ("wistud_indri", "wistud_noSearch"),
    }
    assert named["BBGhelani1", "BBGhelani2"] == "variant"
    assert named["bm25_baseline", "bm25_basline"] == "variant"
    assert len(named) == 29
    assert all(teams[a] == teams[b] for a, b in named)


@pytest.mark.real
def test_one_ranking_under_three_tags(data: Callable[[str], Path]) -> None:
    folder = data("trec-dl-2020-doc-one-team")
    earlier = {path.name.removesuffix(".gz"): scan(path) for path in sorted(folder.glob("*.gz"))}
    found = list_alike(earlier.pop("BIT.UA-run1"), earlier.items())
    same = {n.id for n in found if n.verdict == "identical"}
    assert same == {"BIT.UA-run2-1", "BIT.UA-run2-3"}
    assert {n.verdict for n in found} == {"identical", "variant"}
    assert min(n.likeness.rbo for n in found) > VARIANT
