"""Bonferroni and Holm: by hand, in every order, and with p-values that are undefined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.stats.results import bonferroni, holm

PS = st.lists(st.none() | st.floats(1e-300, 1), max_size=20)


def test_both_by_hand() -> None:
    ps = [0.01, 0.04, 0.03, 0.005]
    assert bonferroni(ps) == pytest.approx((0.04, 0.16, 0.12, 0.02))
    assert holm(ps) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_what_is_undefined_counts_in_the_family_and_stays_undefined() -> None:
    assert bonferroni([0.01, None]) == (0.02, None)
    assert holm([None, 0.01, None]) == (None, 0.03, None)
    assert holm([]) == bonferroni([None] * 0) == ()


@given(PS)
def test_holm_lies_between_p_and_bonferroni_and_keeps_the_order(ps: list[float | None]) -> None:
    for p, stepped, plain in zip(ps, holm(ps), bonferroni(ps), strict=True):
        if p is None or stepped is None or plain is None:
            assert p is stepped is plain is None
        else:
            assert p <= stepped <= plain <= 1
    known = sorted((p, c) for p, c in zip(ps, holm(ps), strict=True) if p is not None and c)
    assert [c for _, c in known] == sorted(c for _, c in known)


@given(PS)
def test_the_order_of_the_family_changes_nothing(ps: list[float | None]) -> None:
    assert holm(ps[::-1]) == holm(ps)[::-1]
