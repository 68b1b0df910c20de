"""Who scans a run changes nothing: no problem, no integer, no bit of a score."""

import os
import random

import combinations
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_runs import SCANNERS
from odd_runs import GRADES, odd_runs

from heldout.scoring import measures as ranked
from heldout.trec.orders import ORDERS, Order
from heldout.trec.reading.streams import Limits
from heldout.trec.scans import Expected

QRELS = {"1": {"a": 1, "b": 0, "c": 3}, "2": {"a": 2}, "7": {"é": 1, "7": -1}}
REFUSED_ON_THE_WAY = {"no-scores", "nul-byte", "line-too-long", "too-many-lines", "query-too-large"}
"""A file is read no further; how much of it was read before depends on the blocks."""


def test_the_compiled_scanner_is_compared() -> None:
    if "compiled" not in SCANNERS:
        if os.environ.get("HELDOUT_REQUIRE_TOOLS") == "1":
            pytest.fail("not built: the compiled scanner, and HELDOUT_REQUIRE_TOOLS=1 needs it")
        pytest.skip("not built: the compiled scanner")


def test_all_measures_are_compared() -> None:
    judged = {name for name, kind in ranked.MEASURES.items() if not kind.exposure}
    assert {measure.name for measure in combinations.MEASURES} == judged


EXPECTED = st.sampled_from(
    [
        Expected(),
        Expected(),
        Expected(queries={"1", "7", "ü"}, complete=True),
        Expected(queries={"1", "q2"}, min_depth=2, max_depth=4),
        Expected(candidates={"1": {"a", "7"}, "7": {"é"}}),
    ]
)
LIMITS = st.sampled_from(
    [
        Limits(),
        Limits(),
        Limits(documents=3),
        Limits(queries=2),
        Limits(problems=2),
        Limits(lines=9),
        Limits(line_bytes=24),
        Limits(query_bytes=90),
    ]
)


@given(
    data=odd_runs(),
    order=st.sampled_from(ORDERS),
    qrels=GRADES,
    expected=EXPECTED,
    limits=LIMITS,
    size=st.integers(8, 300),
    kind=st.sampled_from(["plain", "plain", "gzip", "zstd", "bzip2"]),
)
def test_any_file_is_the_same_to_all(
    *,
    data: bytes,
    order: Order,
    qrels: dict[str, dict[str, int]],
    expected: Expected,
    limits: Limits,
    size: int,
    kind: str,
) -> None:
    with combinations.blocks_of(size):
        combinations.see_by_all(
            combinations.PACK[kind](data),
            order,
            qrels=qrels,
            expected=expected,
            limits=limits,
        )


def test_a_line_with_a_control_byte_is_no_row_to_all() -> None:
    data = b"1\ta\t1\n2\x0cb\t1\n1\tc\t2\n"
    combinations.see_by_all(data, "msmarco", qrels=QRELS, limits=Limits(queries=1))


@given(
    data=odd_runs(),
    order=st.sampled_from(ORDERS),
    qrels=GRADES,
    expected=EXPECTED,
    size=st.integers(8, 300),
)
def test_the_size_of_blocks_means_nothing(
    data: bytes,
    order: Order,
    qrels: dict[str, dict[str, int]],
    expected: Expected,
    size: int,
) -> None:
    for scanner in SCANNERS:
        whole = combinations.see(data, order, scanner, qrels=qrels, expected=expected)
        with combinations.blocks_of(size):
            parts = combinations.see(data, order, scanner, qrels=qrels, expected=expected)
        # The first block, here perhaps one line, says which form it is, and whether it is a run.
        same_form = whole.scan.form == parts.scan.form
        refused = {*whole.scan.counts, *parts.scan.counts} & {"looks-like-qrels", "no-scores"}
        if same_form and not refused and not REFUSED_ON_THE_WAY & set(whole.scan.counts):
            combinations.assert_agree(whole, parts)


def _large_run(seed: int) -> tuple[bytes, dict[str, dict[str, int]]]:
    """Regular, tied, unsorted and renumbered queries, many blocks of 4 KiB."""
    rng = random.Random(seed)  # noqa: S311 - a test's data
    lines = []
    qrels: dict[str, dict[str, int]] = {}
    for query in range(40):
        documents = rng.sample(range(10**6), rng.choice([1, 50, 300]))
        scores = [rng.choice([rng.random(), 0.5, 0.25]) for _ in documents]
        if query % 2:
            scores.sort(reverse=True)
        if query % 4 == 1:
            scores = [float(-rank) for rank in range(len(documents))]
        ranks = range(query % 3 and 1, len(documents) + 1)
        lines += [
            f"q{query} Q0 d{document:07d} {rank} {score!r} tag\n"
            for document, rank, score in zip(documents, ranks, scores, strict=False)
        ]
        judged = [*rng.sample(documents, min(len(documents), 20)), *rng.sample(range(10**6), 9)]
        qrels[f"q{query}"] = {f"d{d:07d}": rng.randrange(-1, 4) for d in judged}
    return "".join(lines).encode(), qrels


@pytest.mark.parametrize("kind", list(combinations.PACK))
def test_every_combination_reads_a_large_run_alike(kind: str) -> None:
    data, qrels = _large_run(1)
    reference = combinations.see(data, "trec", "plain", qrels=qrels)
    assert len(reference.scan.rankings) == 40
    packed = combinations.PACK[kind](data)
    with combinations.blocks_of(4096):
        seen = combinations.see_by_all(packed, "trec", qrels=qrels)
    assert seen.scores == reference.scores
    assert seen.scan.facts == reference.scan.facts


def test_very_many_short_queries() -> None:
    """More than any scanner hands over at a time; and the first one goes on at the end."""
    lines = [*(f"{query}\td{query % 7}\t1\n" for query in range(4200)), "0\td9\t2\n"]
    qrels = {str(query): {"d3": 1} for query in range(0, 4200, 3)}
    seen = combinations.see_by_all("".join(lines).encode(), "msmarco", qrels=qrels)
    assert seen.scan.facts.queries == 4200
    assert seen.scan.facts.max_depth == 2
