"""ESL and RR on real runs: they can order two runs differently (Lin et al. 2021)."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heldout.analyses.outcomes.analysis import find_opposed
from heldout.analyses.outcomes.options import DeclaredRules
from heldout.analyses.outcomes.outcomes import Outcomes, all_pairs, analyse_outcomes
from heldout.analyses.outcomes.tests import Line
from heldout.analyses.outcomes.words import describe_ties
from heldout.cli.analyses.sources import Source, load_scores
from heldout.scoring.first_ranks import FirstRanks, first_ranks

Data = Callable[[str], Path]
K = 100


@pytest.fixture(scope="module")
def ranks(data: Data) -> FirstRanks:
    folder = data("trec-dl-2021-passage")
    source = Source(
        runs=(str(folder / "runs" / "*.gz"),),
        qrels=str(folder / "qrels.dl21-passage.txt.gz"),
        measure=f"RR(rel=2)@{K}",
        jobs=1,
    )
    return first_ranks(load_scores(source).table, k=K)


@pytest.fixture(scope="module")
def found(ranks: FirstRanks) -> Any:
    return analyse_outcomes(ranks, all_pairs(ranks), DeclaredRules())


def test_positions_are_those_of_the_official_run_files(data: Data, ranks: FirstRanks) -> None:
    folder = data("trec-dl-2021-passage")
    with gzip.open(folder / "qrels.dl21-passage.txt.gz", "rt") as file:
        rows = [line.split() for line in file]
    relevant = {(query, document) for query, _, document, grade in rows if int(grade) >= 2}
    with gzip.open(folder / "runs" / "p_bm25.gz", "rt") as file:
        lines = [line.split() for line in file]
    first: dict[str, int] = {}
    for query, _, document, rank, *_ in lines:
        if (query, document) in relevant and int(rank) <= K:
            first[query] = min(first.get(query, K), int(rank))
    row = ranks.rows(("p_bm25",))[0].tolist()
    ours = {query: rank for query, rank in zip(ranks.queries, row, strict=True) if rank}
    # The file's own ranks differ from the order by score only where scores are tied
    agree = sum(ours.get(query) == rank for query, rank in first.items())
    assert ours.keys() == first.keys()
    assert agree >= len(first) - 2


def test_the_counts_of_every_pair_are_those_of_a_plain_count(
    ranks: FirstRanks, found: Outcomes
) -> None:
    rows = dict(zip(ranks.systems, ranks.ranks, strict=True))
    for one in found.pairs:
        a, b = rows[one.a.name], rows[one.b.name]
        assert one.neither == ((a == 0) & (b == 0)).sum()
        assert one.a_only == ((a > 0) & (b == 0)).sum()
        assert one.b_only == ((a == 0) & (b > 0)).sum()
        assert one.esl.a == pytest.approx(a[(a > 0) & (b > 0)].mean())


def test_esl_and_rr_disagree_in_a_sixth_of_the_pairs_and_never_significantly(
    found: Any,
) -> None:
    opposed = tuple(found.pairs.take(np.flatnonzero(find_opposed(found.pairs))))
    assert (len(found.pairs), len(opposed)) == (990, 169)
    for pair in opposed:
        ps = pair.tests["esl_t"].p, pair.tests["rr_t"].p
        assert None in ps or max(p for p in ps if p is not None) > 0.05
    one_alone = [
        pair
        for pair in opposed
        if any((p := pair.tests[line].p) is not None and p <= 0.05 for line in ("esl_t", "rr_t"))
    ]
    assert len(one_alone) == 29


@pytest.mark.parametrize(
    ("line", "significant", "odd"), [("esl_signed_rank", 500, 83), ("rr_signed_rank", 526, 55)]
)
def test_where_signed_ranks_and_their_interval_contradict_each_other_it_is_told(
    found: Any, line: Line, significant: int, odd: int
) -> None:
    tests = [one.tests[line] for one in found.pairs]
    sure = [test for test in tests if test.p is not None and test.p <= 0.05]
    told = [test for test in tests if describe_ties(test)]
    assert (len(sure), len(told)) == (significant, odd)
    for test in told:
        assert test in sure
        assert test.low <= 0 <= test.high
    assert not any(describe_ties(one.tests["esl_t"]) for one in found.pairs)


def test_on_53_queries_no_margin_can_be_excluded(found: Any) -> None:
    assert {one.verdict.word for one in found.pairs} == {"no verdict"}
    assert found.order.verdicts == 0
