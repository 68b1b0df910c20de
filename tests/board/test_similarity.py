"""How alike two runs are, what sketches let pass, and what the rules say of runs that are alike."""

import csv
import gzip
import hashlib
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
import pytest
from boardlog import BoardLog, make_case, make_manifest, make_spec
from certain import sure
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from heldout.board.policy import ensembles
from heldout.board.policy.checks import judge
from heldout.board.policy.ensembles import Ensemble, RunLikeness, Sampled
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
from heldout.board.policy.sketches import Screen, Sketches, propose_pairs, sketch, sketch_all
from heldout.board.rules.spec import Season
from heldout.board.scores.compared import find_likeness
from heldout.trec.runs import scan_run
from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.scans import Signature

Ranking = Sequence[object]
Lists: TypeAlias = dict[str, list[int]]

rankings = st.lists(st.integers(1, 40), min_size=1, max_size=20, unique=True)
drawn_runs = st.dictionaries(st.sampled_from("abcdef"), rankings, min_size=1)


def rows(rankings: Sequence[Ranking], width: int = DEPTH) -> NDArray[np.uint64]:
    filled = np.zeros((len(rankings), width), np.uint64)
    for row, ranking in zip(filled, rankings, strict=True):
        row[: len(ranking)] = hash_documents([str(d).encode() for d in ranking[:width]])
    return filled


def sign(run: Lists, width: int = DEPTH) -> Signature:
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


def generated(seed: int, *, queries: int = 40, depth: int = DEPTH) -> Lists:
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


@given(drawn_runs, drawn_runs)
def test_figures_are_those_of_the_lists(a: Lists, b: Lists) -> None:
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


@given(drawn_runs, drawn_runs)
def test_names_mean_nothing(a: Lists, b: Lists) -> None:
    def renamed(run: Lists) -> Lists:
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


def verdict(a: Lists, b: Lists) -> str:
    found = compare(sign(a), sign(b))
    return "none" if found is None else classify(found)


def change_some(run: Lists) -> Lists:
    random = np.random.default_rng(3)
    return {q: [-d if random.random() < 0.01 else d for d in ds] for q, ds in run.items()}


def shuffle(run: Lists) -> Lists:
    random = np.random.default_rng(3)
    return {q: random.permutation(ds).tolist() for q, ds in run.items()}


def weave(run: Lists) -> Lists:
    """Every second document is another run's: the own ones come first."""
    own = generated(2)
    pairs = {q: itertools.chain(*zip(own[q], ds, strict=True)) for q, ds in run.items()}
    return {q: list(dict.fromkeys(ds))[:DEPTH] for q, ds in pairs.items()}


def mix(share: int) -> Callable[[Lists], Lists]:
    """All queries but each of some number are another run's."""
    other = generated(2)
    return lambda run: {q: run[q] if int(q) % share == 0 else other[q] for q in run}


COPIES: Mapping[str, tuple[Callable[[Lists], Lists], str]] = {
    "the same": (lambda run: run, "identical"),
    "one percent of documents changed": (change_some, "variant"),
    "one document at the top": (lambda run: run | {"0": [-1, *run["0"][1:]]}, "variant"),
    "one document at the end": (lambda run: run | {"0": [*run["0"][:-1], -1]}, "variant"),
    "neighbours swapped everywhere": (
        lambda run: {q: [ds[i ^ 1] for i in range(len(ds))] for q, ds in run.items()},
        "variant",
    ),
    "another tail": (
        lambda run: {q: [*ds[:TOP], *(-d for d in ds[TOP:])] for q, ds in run.items()},
        "variant",
    ),
    "fewer queries": (lambda run: {q: run[q] for q in list(run)[:30]}, "variant"),
    "between the documents of an own run": (weave, "variant"),
    "one query in four": (mix(4), "variant"),
    "one query in six": (mix(6), "none"),
    "reversed": (lambda run: {q: ds[::-1] for q, ds in run.items()}, "none"),
    "shuffled": (shuffle, "none"),
    "another run": (lambda _: generated(2), "none"),
}


@pytest.mark.parametrize("case", COPIES)
def test_attack_copy_and_what_is_none(case: str) -> None:
    first = generated(1)
    copy, expected = COPIES[case]
    assert verdict(first, copy(first)) == verdict(copy(first), first) == expected
    if case in ("between the documents of an own run", "one query in four"):
        assert sure(compare(sign(first), sign(copy(first)))).rbo < VARIANT


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
    assert sure(compare(sign(first), sign(woven))).interleaved < INTERLEAVED
    assert verdict(first, woven) == verdict(woven, first) == "variant"
    assert [n.id for n in list_alike(sign(first), [("woven", sign(woven))])] == ["woven"]


def test_runs_of_one_or_two_documents_have_no_first_three() -> None:
    short = {q: ds[:2] for q, ds in generated(1).items()}
    other = {q: [ds[1], -ds[0]] for q, ds in short.items()}
    for width in (1, 2, 3, DEPTH):
        assert sure(compare(sign(short, width), sign(short, width))).heads == 0
    assert verdict(short, other) == "none"


def test_attack_one_common_query_makes_no_variant_and_hides_none() -> None:
    first = generated(1)
    decoys = {f"decoy {n}": {"0": first["0"]} for n in range(9)}
    copy = {q: [-1, *ds[:-1]] for q, ds in first.items()}
    runs = {name: sign(run) for name, run in (decoys | {"copy": copy}).items()}
    found = list_alike(sign(first), runs.items())
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

    def like() -> Lists:
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


KEY = 0x9E3779B97F4A7C15


def compare_all(new: Signature, earlier: dict[str, Signature]) -> RunLikeness:
    """Without an index: every earlier run in full."""
    number_runs = earlier.items()
    return RunLikeness(
        neighbours=list_alike(new, number_runs), ensemble=Sampled(new, number_runs).explain()
    )


_NUMBERS = st.lists(st.integers(1, 14), max_size=13, unique=True)
number_runs = st.dictionaries(st.sampled_from("abcdef"), _NUMBERS, min_size=1)


@given(
    new=number_runs,
    earlier=st.lists(number_runs, max_size=4),
    width=st.sampled_from([2, 10, DEPTH]),
)
def test_no_variant_is_missed(new: Lists, earlier: list[Lists], width: int) -> None:
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


@given(st.lists(number_runs, max_size=6), st.sampled_from([2, 10, DEPTH]))
def test_no_pair_of_variants_is_missed(drawn: list[Lists], width: int) -> None:
    signed = [sign(run, width) for run in drawn]
    assert pair_all(signed) <= propose(signed)


def plant(run: Lists, how: int, much: float, seed: int) -> Lists:
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
    number_runs = [
        {str(query): (1 + chosen.permutation(250)[:DEPTH]).tolist() for query in range(25)}
        for _ in range(3)
    ]
    for number in range(18):
        source = number_runs[chosen.integers(3)]
        much = chosen.uniform(0.1, 0.9) if number % 6 < 5 else chosen.uniform(0.8, 1)
        number_runs.append(plant(source, number % 6, much, seed + number))
    signed = [sign({q: ds for q, ds in run.items() if ds}, width) for run in number_runs]
    assert pair_all(signed) <= propose(signed)


def test_among_many_runs_hardly_any_other_pair_is_proposed() -> None:
    signed = [generate(seed) for seed in range(60)]
    assert len(propose(signed)) <= 1
    assert [*propose_pairs([])] == []


def test_runs_with_the_same_first_documents_in_other_orders_are_not_proposed() -> None:
    chosen = np.random.default_rng(7)
    number_runs = [
        {
            str(query): [
                *chosen.permutation([1, 2, 3, 4, start, start + 1]).tolist(),
                *range(start + 2, start + 16),
            ]
            for query in range(25)
        }
        for start in range(100, 700, 20)
    ]
    assert propose([sign(run) for run in number_runs]) == set()


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
def test_fusions_are_found_and_few_runs_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.slow
@pytest.mark.real
def test_real_runs_are_found(data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """`benchmarks/detection_lookup.py` does it with all 195 runs, 270 fusions and 780 copies."""
    monkeypatch.setattr(ensembles, "PROPOSED", 8)
    teams = sorted((data("trec-dl-2021-passage") / "runs").glob("*.gz"))[::3]
    for paths in (teams, sorted(data("trec-dl-2020-doc-one-team").glob("*.gz"))):
        number_runs = {path.name: scan(path) for path in paths}
        first, second, third, *_ = number_runs.values()
        cases = [
            (run, {n: r for n, r in number_runs.items() if n != name})
            for name, run in number_runs.items()
        ]
        cases += [(fuse(first, third), number_runs), (fuse(first, second, third), number_runs)]
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
    tops = sketch(generate(1, queries=3), {"q001": 0, "q000": 1}, KEY)
    assert (tops.shape, tops.dtype) == ((2, TOP), np.dtype(np.uint16))
    assert tops.all()


QUERIES = 20


def signature(name: str, *, changed: int = 0) -> Signature:
    """A run made of its name, some queries of which have other documents."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])
    documents = np.random.default_rng(seed).integers(1, 2**63, (QUERIES, 100), dtype=np.uint64)
    documents[:changed] += np.uint64(1)
    return Signature(queries=tuple(f"q{n:02}" for n in range(QUERIES)), documents=documents)


def findings(
    log: BoardLog,
    new: Signature,
    earlier: dict[str, Signature],
    team: str,
    *,
    seasons: tuple[Season, ...] = (),
) -> dict[str, list[str]]:
    log.wait(days=60)
    spec = msgspec.structs.replace(make_spec(), seasons=seasons)
    likenesses = {"eval": find_likeness(new, sketch_all(earlier, key=1), earlier.get)}
    case = make_case(log, f"{log.now:%Y%m%d}-new", team, spec=spec, likenesses=likenesses)
    found: dict[str, list[str]] = {}
    for finding in judge(case):
        found.setdefault(finding.rule, []).append(finding.evidence)
    return found


@pytest.mark.parametrize("copies", [5, 6, 9])
def test_an_own_variant_does_not_hide_behind_equal_runs_of_others(copies: int) -> None:
    log = BoardLog().open()
    log.submit("20261101-own", make_manifest("Harbour"), "0.400")
    for number in range(copies):
        log.submit(f"20261101-x{number}", make_manifest(f"Team {number} of all"), "0.400")
    run = signature("one")
    earlier = {f"20261101-x{number}": run for number in range(copies)}
    earlier["20261101-own"] = signature("one", changed=3)
    found = findings(log, run, earlier, "Harbour")
    assert set(found) == {"others-run", "small-change"}
    assert [text.partition(":")[0] for text in found["small-change"]] == ["near 20261101-own"]
    told = found["others-run"]
    assert all(any(name in text for text in told) for name in earlier if name != "20261101-own")
    assert len(told) == min(copies, 5) + (copies > 5)
    if copies == 9:
        names = "20261101-x5, 20261101-x6, 20261101-x7, 20261101-x8"
        assert told[-1] == f"the same is to be said of 4 more: {names}"


def test_an_earlier_run_under_a_name_that_was_given_up_is_one_s_own() -> None:
    log = BoardLog().open()
    log.submit("20261101-one", make_manifest("Alpha Crew"), "0.400")
    log.submit("20261101-two", make_manifest("Alpha Crew"), "0.300")
    log.amend("20261101-one", make_manifest("Zeta House"))
    earlier = {"20261101-two": signature("two", changed=2)}
    assert set(findings(log, signature("two"), earlier, "Zeta House")) == {"small-change"}
    assert set(findings(log, signature("two"), earlier, "Stranger")) == {"near-others"}


@pytest.mark.parametrize(("changed", "own"), [(0, "same-run"), (2, "small-change")])
def test_a_team_may_send_its_system_again_in_a_new_season(changed: int, own: str) -> None:
    log = BoardLog().open()
    log.submit("20261101-one", make_manifest("Alpha Crew"), "0.400")
    earlier = {"20261101-one": signature("one", changed=changed)}
    new = date(2026, 12, 1)
    one = Season(name="one", view="eval", opens=date(2026, 11, 1), closes=date(2026, 11, 30))
    two = Season(name="two", view="eval", opens=new)
    for seasons, team, expected in (
        ((one, two), "Alpha Crew", set()),
        ((one, two), "Stranger", {"same-run": "others-run"}.get(own, "near-others")),
        ((msgspec.structs.replace(two, opens=one.opens),), "Alpha Crew", own),
    ):
        found = findings(log, signature("one"), earlier, team, seasons=seasons)
        assert set(found) == ({expected} if expected else set())


def test_a_baseline_is_named_as_one() -> None:
    log = BoardLog().open()
    log.baseline("20261101-bm25", "0.200")
    found = findings(log, signature("a"), {"20261101-bm25": signature("a")}, "Harbour")
    (told,) = found["others-run"]
    assert told.startswith("the same first 100 documents as the baseline 20261101-bm25 in the same")
    found = findings(log, signature("a", changed=2), {"20261101-bm25": signature("a")}, "Harbour")
    assert found["near-others"][0].startswith("near the baseline 20261101-bm25: eval:")
