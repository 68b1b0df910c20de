"""Which systems could have answered discarded queries: pools, table 2, tests between systems."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from question_samples import answer, question
from statsmodels.stats.contingency_tables import mcnemar

from heldout.errors import InputError
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.survivorship.discarded import answerable
from heldout.survivorship.discarded.campaign import count_ranks
from heldout.survivorship.discarded.judging import judge_agreement, judged_passages

TABLE_2 = {
    "BM25": (22, 28, 17),
    "ANCE": (22, 28, 17),
    "ColBERT": (18, 32, 28),
    "monoT5": (16, 34, 30),
}
RANKS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.lists(st.none() | st.integers(1, 14), min_size=8, max_size=8),
    min_size=1,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.real
def test_the_published_table_comes_out(data: Callable[[str], Path]) -> None:
    place = data("msmarco-annotation-depth") / "discarded_rankings_by_model.tsv"
    with place.open("rb") as file:
        ranks = answerable.read_first_ranks(file, path=str(place))
    found = answerable.reach(ranks)
    assert {
        one.system: (one.no_answer.count, one.within[10].count, one.within[3].count)
        for one in found.systems
    } == TABLE_2
    assert (found.queries, found.unanswered.count) == (50, 15)
    pairs = answerable.compare_reach(ranks)
    assert len(pairs) == 12
    shown = {(one.a, one.b, one.depth): one for one in pairs}
    top = shown["BM25", "monoT5", 3]
    table = [[0, top.a_only], [top.b_only, 0]]
    assert top.b_only - top.a_only == 30 - 17
    assert top.p == pytest.approx(mcnemar(table, exact=True).pvalue)


def test_an_answer_counts_down_to_the_depth_itself_and_no_further() -> None:
    found = answerable.reach({"bm25": {"q1": 3, "q2": 4, "q3": 10, "q4": 11, "q5": None}})
    (one,) = found.systems
    assert (one.within[3].count, one.within[10].count, one.no_answer.count) == (1, 3, 2)
    assert answerable.reach({"bm25": {"q1": 3}}, depth=3).systems[0].within.keys() == {3}


@given(RANKS)
def test_every_query_is_answered_or_not(ranks: dict[str, list[int | None]]) -> None:
    table = {name: {f"q{n}": r for n, r in enumerate(own)} for name, own in ranks.items()}
    found = answerable.reach(table)
    for one in found.systems:
        assert one.no_answer.count + one.within[10].count == found.queries == 8
        assert one.within[3].count <= one.within[10].count
        assert found.unanswered.count <= one.no_answer.count


@given(RANKS)
def test_tests_between_systems_are_mcnemars(ranks: dict[str, list[int | None]]) -> None:
    table = {name: {f"q{n}": r for n, r in enumerate(own)} for name, own in ranks.items()}
    for one in answerable.compare_reach(table):
        if one.a_only + one.b_only == 0:
            assert one.p is one.p_corrected is None
            continue
        expected = mcnemar([[0, one.a_only], [one.b_only, 0]], exact=True).pvalue
        assert one.p == pytest.approx(min(1.0, expected))
        assert one.p is not None
        assert one.p_corrected is not None
        assert one.p <= one.p_corrected <= 1


def test_a_pool_has_each_text_once_and_neither_system_nor_order() -> None:
    tops = {"bm25": {"q1": ("d1", "d2")}, "dense": {"q1": ("d3", "d4")}}
    documents = {"d1": "Same  text", "d2": "two", "d3": "same text", "d4": "four"}
    (found,) = answerable.pool_questions(
        tops, queries={"q1": "why"}, documents=documents, rng=rng()
    )
    assert sorted((one.doc, one.same) for one in found.candidates) == [
        ("d1", ("d3",)),
        ("d2", ()),
        ("d4", ()),
    ]
    orders = {
        tuple(
            one.doc
            for one in answerable.pool_questions(
                tops, queries={"q1": "why"}, documents=documents, rng=rng(seed)
            )[0].candidates
        )
        for seed in range(30)
    }
    assert len(orders) == 6


def test_a_query_for_which_no_system_has_a_document_is_named() -> None:
    with pytest.raises(InputError, match=r"missing-query.*q2"):
        answerable.pool_questions(
            {"bm25": {"q1": ("d1",)}},
            queries={"q1": "why", "q2": "how"},
            documents={"d1": "text"},
            rng=rng(),
        )


def test_an_answer_stands_for_every_document_of_its_text() -> None:
    shown = Pool(
        query="q1",
        text="why",
        candidates=(
            Candidate(doc="d1", text="same", same=("d3",)),
            Candidate(doc="d2", text="two"),
        ),
    )
    judged = judged_passages([shown], [answer("q1", "answered", "d1")])
    assert (judged["q1"].answering, judged["q1"].others) == (("d1", "d3"), ("d2",))
    tops = [
        answerable.SystemTop(system="bm25", query="q1", docs=("d2", "d1")),
        answerable.SystemTop(system="dense", query="q1", docs=("d3",)),
        answerable.SystemTop(system="unanswered", query="q1", docs=("d2",)),
        answerable.SystemTop(system="bm25", query="unjudged", docs=("d1",)),
    ]
    ranks = answerable.first_ranks(judged, tops)
    assert ranks == {"bm25": {"q1": 2}, "dense": {"q1": 1}, "unanswered": {"q1": None}}


def test_half_of_the_annotators_are_not_enough() -> None:
    asked = [question("q1", "d1", "d2"), question("q2", "d1")]
    answers = [
        answer("q1", "answered", "d1"),
        answer("q1", "answered", "d1", "d2", by="bob"),
        answer("q2", "cannot"),
    ]
    judged = judged_passages(asked, answers)
    assert judged.keys() == {"q1"}
    one = judged["q1"]
    assert (one.answering, one.others, one.disputed, one.annotators) == (("d1",), (), ("d2",), 2)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("system\tquery\tdoc\trank\nBM25\tq1\td1\t1\n", "wrong-columns", 1),
        ("{header}BM25\tq1\t1\n", "wrong-columns", 2),
        ("{header}BM25\tq1\td1\t0\n", "rank-not-a-number", 2),
        ("{header}BM25\tq1\td1\tsoon\n", "rank-not-a-number", 2),
        ("{header}BM25\tq1\td1\t1\nBM25\tq1\td2\t2\n", "repeated-query", 3),
        ("{header}BM25\tq1\td1\t1\nANCE\tq2\td2\t2\n", "missing-query", None),
        ("{header}", "empty-file", None),
    ],
)
def test_a_broken_table_is_named_with_its_place(text: str, code: str, line: int | None) -> None:
    content = text.replace("{header}", "scorer\tquery_id\tdoc_id\trank\n")
    with pytest.raises(InputError) as caught:
        answerable.read_first_ranks(io.BytesIO(content.encode()), path="ranks.tsv")
    assert {(one.code, one.line) for one in caught.value.problems} == {(code, line)}


def test_bytes_of_a_table_that_are_no_utf8_are_named() -> None:
    content = b"scorer\tquery_id\tdoc_id\trank\nBM25\tq\xe9\td1\t1\n"
    with pytest.raises(InputError) as caught:
        answerable.read_first_ranks(io.BytesIO(content), path="ranks.tsv")
    assert [(one.code, one.line) for one in caught.value.problems] == [("bad-utf8", 2)]


def test_annotators_agree_on_passages_beyond_chance_or_not() -> None:
    asked = [question(f"q{n}", "d1", "d2") for n in range(4)]
    answers = [answer(one.query, "answered", "d1") for one in asked]
    same = judge_agreement(
        asked, [*answers, *(answer(o.query, "answered", "d1", by="bob") for o in asked)], rng()
    )
    assert (same.alpha.value, same.alpha.units, same.annotators) == (1.0, 8, ("ada", "bob"))
    apart = judge_agreement(
        asked, [*answers, *(answer(o.query, "answered", "d2", by="bob") for o in asked)], rng()
    )
    assert apart.alpha.value is not None
    assert apart.alpha.value < 0
    assert apart.disputed == 8
    alone = judge_agreement(asked, [*answers[:2], answer("q3", "cannot", by="bob")], rng())
    assert (alone.alpha.value, alone.judged, alone.asked, alone.cannot) == (None, 2, 4, 1)


def test_a_table_of_ranks_that_is_less_deep_than_asked_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ranks.tsv"
    path.write_text("scorer\tquery_id\tdoc_id\trank\na\tq1\td\t2\na\tq2\td\tNA\n")
    shallow = count_ranks(path, depth=2, level=0.95)
    assert "note" not in shallow.document
    assert shallow.document["systems"][0]["within"]["2"]["count"] == 1
    assert "No rank in" in count_ranks(path, depth=10, level=0.95).document["note"]
