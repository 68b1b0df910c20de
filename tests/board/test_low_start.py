"""A run far below every baseline: who is asked about it, and who is not."""

import math
from datetime import timedelta
from statistics import NormalDist

import msgspec
import numpy as np
import pytest
from boardlog import START, BoardLog, make_case, make_manifest, make_spec
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from heldout.board.policy import checks
from heldout.board.rules.release import ReleaseRule, RuleName

LOW = (
    checks.Distance(baseline="bm25", errors=9.04),
    checks.Distance(baseline="tf-idf", errors=4.26),
)


def case_of(
    log: BoardLog,
    distances: tuple[checks.Distance, ...],
    rule: RuleName = "rounded",
    team: str = "Lighthouse",
) -> checks.Case:
    spec = msgspec.structs.replace(make_spec(), release=ReleaseRule(rule=rule))
    received = START + timedelta(days=8)
    return make_case(log, "20261109-low", team, spec=spec, received=received, distances=distances)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=40))
def test_the_distance_is_the_paired_t_statistic(pairs: list[tuple[float, float]]) -> None:
    run = {f"q{n}": one for n, (one, _) in enumerate(pairs)}
    baseline = {f"q{n}": other for n, (_, other) in enumerate(pairs)}
    found = checks.paired_distance(run, baseline, better="higher")
    gaps = np.array([other - one for one, other in pairs])
    if found is None:
        assert np.ptp(gaps) == 0
    elif np.ptp(gaps) > 1e-6:
        wanted = float(ttest_rel([b for _, b in pairs], [a for a, _ in pairs]).statistic)
        assert math.isclose(found, wanted, rel_tol=1e-6, abs_tol=1e-6)
        assert checks.paired_distance(run, baseline, better="lower") == -found
        assert checks.paired_distance(baseline, run, better="higher") == pytest.approx(-found)


@pytest.mark.parametrize(
    ("run", "baseline"),
    [
        ({}, {"a": 1.0, "b": 0.0}),
        ({"a": 0.1}, {"a": 1.0}),
        ({"a": 0.1, "b": 0.1}, {"a": 1.0, "b": 1.0}),
        ({"a": 0.1, "b": None}, {"a": 1.0, "b": 0.5}),
        ({"a": 0.1, "b": 0.3}, {"c": 1.0, "d": 0.5}),
    ],
)
def test_without_a_standard_error_nothing_is_said(
    run: dict[str, float | None], baseline: dict[str, float | None]
) -> None:
    assert checks.paired_distance(run, baseline, better="higher") is None


def test_a_first_run_far_below_all_baselines_is_told_to_the_organisers_alone() -> None:
    case = case_of(BoardLog().open(), LOW)
    (finding,) = [one for one in checks.judge(case) if one.rule == "far-below"]
    assert (finding.severity, finding.public) == ("review", False)
    assert "4.3 paired standard errors below tf-idf, the nearest baseline" in finding.evidence
    assert finding.evidence.endswith("9.0 below bm25 (limit 3.59)")


def test_a_run_that_is_near_one_baseline_is_no_low_start() -> None:
    near = (*LOW, checks.Distance(baseline="weak", errors=3.5))
    assert [*checks.check_far_below(case_of(BoardLog().open(), near))] == []


def test_a_board_without_baselines_says_nothing() -> None:
    assert [*checks.check_far_below(case_of(BoardLog().open(), ()))] == []


def test_single_labels_cannot_be_asked_for_after_an_honest_first_entry() -> None:
    log = BoardLog().open()
    log.submit("20261101-first", make_manifest("Lighthouse"), "0.400")
    for team in ("Lighthouse", "Harbour"):
        (evidence,) = checks.check_far_below(case_of(log, LOW, team=team))
        assert evidence.startswith("the run lies 4.3 paired standard errors below tf-idf")


def test_where_no_low_score_is_published_nobody_is_asked() -> None:
    assert [*checks.check_far_below(case_of(BoardLog().open(), LOW, rule="clear"))] == []


def test_the_limit_follows_from_declared_submissions_and_published_views() -> None:
    normal = NormalDist()
    views = make_spec().views
    for submissions in (1, 20, 300, 1_000_000):
        for more in (0, 1, 5):
            again = tuple(msgspec.structs.replace(views[1], name=f"v{n}") for n in range(more))
            release, more_views = ReleaseRule(submissions=submissions), (*views, *again)
            spec = msgspec.structs.replace(make_spec(), release=release, views=more_views)
            wanted = normal.inv_cdf(1 - 0.05 / (submissions * (1 + more)))
            assert checks.far_below_limit(spec) == pytest.approx(wanted, abs=1e-6)
    assert round(checks.far_below_limit(make_spec()), 2) == 3.59
