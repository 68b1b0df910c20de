"""The score test of paired shares: its likelihood is the largest, its level holds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from heldout.stats.rank_tests import share_not_lower_p


def _oracle(a_only: int, b_only: int, *, size: int, margin: float) -> float:
    """The same test with the likelihood maximised by search."""
    counts = (a_only, b_only, size - a_only - b_only)

    def loss(share: float) -> float:
        shares = (share, share - margin, 1 - 2 * share + margin)
        pairs = zip(counts, shares, strict=True)
        return -sum(count * math.log(max(part, 1e-300)) for count, part in pairs if count)

    bounds = (margin, (1 + margin) / 2)
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-13})
    variance = 2 * found.x - margin - margin**2
    z = (b_only - a_only + size * margin) / math.sqrt(size * variance)
    return 0.5 * math.erfc(z / math.sqrt(2))


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 200), st.floats(0.002, 0.3))
def test_it_is_the_score_test_with_the_likeliest_shares(
    a_only: int, b_only: int, more: int, margin: float
) -> None:
    size = a_only + b_only + more
    found = share_not_lower_p(a_only, b_only, size=size, margin=margin)
    assert found == pytest.approx(_oracle(a_only, b_only, size=size, margin=margin), abs=1e-4)


def test_no_difference_on_many_queries_is_evidence_and_on_few_is_not() -> None:
    assert share_not_lower_p(0, 0, size=1000, margin=0.01) < 0.001
    assert share_not_lower_p(0, 0, size=30, margin=0.01) > 0.2


def test_its_level_holds_at_the_margin() -> None:
    rng = np.random.default_rng(3)
    size, margin, trials = 1000, 0.02, 4000
    counts = rng.multinomial(size, [0.07, 0.05, 0.88], trials)
    ps = [share_not_lower_p(int(a), int(b), size=size, margin=margin) for a, b, _ in counts]
    assert 0.03 <= np.mean(np.array(ps) <= 0.05) <= 0.065


@given(st.integers(0, 500), st.integers(0, 500))
def test_p_is_never_0_nor_above_1(a_only: int, b_only: int) -> None:
    assert 0 < share_not_lower_p(a_only, b_only, size=max(1, a_only + b_only), margin=0.01) <= 1


@pytest.mark.parametrize(
    ("counts", "margin"), [((-1, 0, 5), 0.1), ((3, 3, 5), 0.1), ((1, 1, 5), 0.0), ((0, 0, 0), 0.1)]
)
def test_counts_and_margins_that_cannot_be_are_refused(
    counts: tuple[int, int, int], margin: float
) -> None:
    with pytest.raises(ValueError, match=r"[0-9]"):
        share_not_lower_p(counts[0], counts[1], size=counts[2], margin=margin)
