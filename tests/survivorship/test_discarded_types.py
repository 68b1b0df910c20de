"""Which types of queries were discarded."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.discarded.query_types import (
    TypeCount,
    answer_types,
    compare_types,
    count_types,
)

TABLE_3 = {
    "description": (54_616, 25_519, 46.7),
    "numeric": (25_547, 12_048, 47.2),
    "entity": (8_677, 3_819, 44.0),
    "person": (6_425, 2_487, 38.7),
    "location": (5_828, 1_642, 28.2),
}
"""Gupta and MacAvaney 2022, table 3: queries, discarded ones, percent."""

counts = st.dictionaries(
    st.sampled_from("abcde"),
    st.tuples(st.integers(1, 300), st.floats(0, 1)).map(
        lambda pair: TypeCount(total=pair[0], discarded=round(pair[0] * pair[1]))
    ),
    min_size=1,
)


def test_table_3_comes_out_and_its_sum_is_not_that_of_the_text() -> None:
    found = compare_types(
        {kind: TypeCount(total=total, discarded=out) for kind, (total, out, _) in TABLE_3.items()}
    )

    assert [round(100 * one.share, 1) for one in found.types] == [p for *_, p in TABLE_3.values()]
    assert found.chi2 == pytest.approx(886.5, abs=0.05)
    assert found.freedom == 4
    assert found.p == pytest.approx(1e-190, rel=0.5)
    assert found.cramers_v == pytest.approx(0.0936, abs=0.0001)
    # The text says 45,551
    assert found.discarded == 45_515


@given(counts)
def test_the_test_is_that_of_scipy_and_intervals_hold_the_share(
    types: dict[str, TypeCount],
) -> None:
    found = compare_types(types)

    for one in found.types:
        assert 0 <= one.low <= one.share + 1e-12
        assert one.share - 1e-12 <= one.high <= 1
    if found.why:
        assert found.chi2 is None
        assert all(one.p is None for one in found.types)
        return
    table = [[one.discarded, one.total - one.discarded] for one in types.values()]
    assert found.chi2 == pytest.approx(chi2_contingency(table, correction=False).statistic)
    assert found.cramers_v is not None
    assert 0 <= found.cramers_v <= 1 + 1e-12


@given(st.integers(1, 100), st.integers(1, 100), st.integers(0, 100), st.integers(0, 100))
def test_of_two_types_the_squared_residual_is_chi_squared(a: int, b: int, x: int, y: int) -> None:
    found = compare_types(
        {
            "one": TypeCount(total=a, discarded=min(a, x)),
            "two": TypeCount(total=b, discarded=min(b, y)),
        }
    )
    for one in found.types:
        if one.residual is not None:
            assert one.residual**2 == pytest.approx(found.chi2, abs=1e-9)
            assert math.isclose(one.p or 0.0, found.p or 0.0, rel_tol=1e-6)


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ({"a": TypeCount(total=9, discarded=3)}, "one type alone"),
        ({k: TypeCount(total=9, discarded=0) for k in "ab"}, "no query was discarded"),
        ({k: TypeCount(total=9, discarded=9) for k in "ab"}, "all queries were discarded"),
    ],
)
def test_where_nothing_can_differ_there_is_a_reason(
    types: dict[str, TypeCount], words: str
) -> None:
    found = compare_types(types)

    assert words in found.why
    assert words in dict(answer_types(found).summary)["test"]
    assert answer_types(found).document["p"] is None
    assert answer_types(found).tables[0].notes[-1].endswith(found.why)


def test_few_expected_queries_make_the_test_doubtful_and_it_says_so() -> None:
    found = compare_types(
        {"a": TypeCount(total=4, discarded=1), "b": TypeCount(total=30, discarded=9)}
    )

    assert found.doubtful
    assert "doubtful" in dict(answer_types(found).summary)["test"]


def annotated(*kinds: tuple[str | None, bool], counts_discarded: bool = True) -> Annotations:
    return Annotations(
        source="made up",
        records=[
            Annotation(
                query=QueryId(f"q{at}"), kind=kind, selected={DocId("d"): 1} if survives else {}
            )
            for at, (kind, survives) in enumerate(kinds)
        ],
        depth=1,
        open_ended=False,
        counts_discarded=counts_discarded,
    )


def test_types_are_counted_from_annotations_those_without_one_too() -> None:
    found = count_types(annotated(("A", True), ("A", False), (None, False), ("B", True)))

    assert found == {
        "A": TypeCount(total=2, discarded=1),
        "": TypeCount(total=1, discarded=1),
        "B": TypeCount(total=1, discarded=0),
    }


def test_annotations_without_types_or_discarded_queries_are_refused() -> None:
    for annotations, code in (
        (annotated((None, True), (None, False)), "no-types"),
        (annotated(("A", True), counts_discarded=False), "no-discarded"),
    ):
        with pytest.raises(InputError) as refused:
            count_types(annotations)
        assert refused.value.problems[0].code == code
