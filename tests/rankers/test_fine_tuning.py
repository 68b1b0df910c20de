"""What a learning curve says of fine-tuning."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy import stats

from heldout.errors import InputError
from heldout.rankers.playbook.fine_tuning import (
    Advice,
    CurveBaseline,
    CurvePoint,
    LearningCurve,
    advise,
    read_learning_curve,
)

NOISE = (-0.01, -0.005, 0.0, 0.005, 0.01)


def curve(means: dict[int, float], *, baseline: float = 0.4, noise: float = 1.0) -> LearningCurve:
    points = tuple(
        CurvePoint(pairs=pairs, trials=tuple(mean + noise * one for one in NOISE))
        for pairs, mean in means.items()
    )
    return LearningCurve(
        measure="RR@10", baseline=CurveBaseline(name="bm25", mean=baseline), points=points
    )


def rising(slope: float, *, start: float, noise: float = 1.0) -> LearningCurve:
    means = {100 * 2**step: start + slope * step for step in range(4)}
    return curve(means, noise=noise)


def test_a_curve_that_is_above_the_target_pays() -> None:
    found = advise(rising(0.05, start=0.35), gain=0.02)
    assert found.verdict == "pays"
    assert found.pairs == 800
    assert found.target == pytest.approx(0.42)
    assert found.mean == pytest.approx(0.5)


def test_a_rising_curve_says_how_many_pairs_it_takes() -> None:
    found = advise(rising(0.05, start=0.15), gain=0.02)
    assert found.verdict == "would pay"
    assert found.per_doubling == pytest.approx(0.05)
    # From 0.30 at 800 pairs to 0.42: 2.4 doublings.
    assert found.pairs_needed == math.ceil(800 * 2**2.4)
    assert found.pairs_low is not None
    assert found.pairs_high is not None
    assert found.pairs_low < found.pairs_needed < found.pairs_high


def test_a_flat_curve_below_the_baseline_does_not_pay() -> None:
    found = advise(rising(0.0, start=0.2), gain=0.02)
    assert found.verdict == "does not pay"
    assert found.pairs_needed is None
    assert found.last_step is not None
    assert found.last_step[0] < 0 < found.last_step[1]


def test_a_rise_that_may_be_noise_says_nothing() -> None:
    found = advise(rising(0.01, start=0.36, noise=8), gain=0.02)
    assert found.verdict == "cannot tell"
    assert found.pairs_needed is None
    assert "not sure" in found.why


def test_the_line_is_not_followed_further_than_three_doublings() -> None:
    found = advise(rising(0.012, start=0.33, noise=1.5), gain=0.02)
    assert (found.verdict, found.pairs_needed) == ("cannot tell", None)
    assert "8 times" in found.why


@pytest.mark.parametrize(
    "points",
    [
        (CurvePoint(pairs=100, trials=(0.1, 0.2, 0.3, 0.4, 0.5)),),
        (CurvePoint(pairs=100, trials=(0.1,)), CurvePoint(pairs=200, trials=(0.2,))),
        (CurvePoint(pairs=0, trials=(0.1,) * 5), CurvePoint(pairs=200, trials=(0.1, 0.2))),
    ],
)
def test_too_few_trials_or_sizes_say_nothing(points: tuple[CurvePoint, ...]) -> None:
    baseline = CurveBaseline(name="bm25", mean=0.9)
    found = advise(LearningCurve(measure="RR", baseline=baseline, points=points), gain=0.02)
    assert (found.verdict, found.per_doubling, found.pairs_needed) == ("cannot tell", None, None)
    assert "fewer than" in found.why


def test_a_single_lucky_trial_above_the_baseline_is_no_proof() -> None:
    points = (CurvePoint(pairs=100, trials=(0.9,)),)
    baseline = CurveBaseline(name="bm25", mean=0.4)
    found = advise(LearningCurve(measure="RR", baseline=baseline, points=points), gain=0.02)
    assert (found.verdict, found.interval) == ("cannot tell", None)


def test_only_where_the_curve_ends_does_it_speak_of_what_comes_next() -> None:
    steep, flat = {25: 0.0, 50: 0.1, 100: 0.2}, {200: 0.3, 400: 0.3, 800: 0.3}
    found = advise(curve(steep | flat), gain=0.02)
    assert found.per_doubling == pytest.approx(0.0, abs=1e-12)
    assert found.verdict == "does not pay"


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=5), min_size=3, max_size=3).filter(
        lambda points: np.ptp([one for point in points for one in point]) > 1e-3
    )
)
def test_slope_and_its_interval_are_those_of_scipy(trials: list[list[float]]) -> None:
    points = tuple(
        CurvePoint(pairs=64 * 2**step, trials=tuple(one)) for step, one in enumerate(trials)
    )
    baseline = CurveBaseline(name="bm25", mean=0.4)
    found = advise(LearningCurve(measure="RR", baseline=baseline, points=points), gain=0.02)
    x = [6 + step for step, one in enumerate(trials) for _ in one]
    y = [value for one in trials for value in one]
    theirs = stats.linregress(x, y)
    half = stats.t.ppf(0.975, len(y) - 2) * theirs.stderr
    assert found.per_doubling == pytest.approx(theirs.slope, abs=1e-9)
    assert found.per_doubling_interval == pytest.approx(
        (theirs.slope - half, theirs.slope + half), abs=1e-6
    )


def test_the_interval_of_pairs_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    truth, held, told = 800 * 2**1.5, 0, 0
    for _ in range(300):
        points = tuple(
            CurvePoint(
                pairs=200 * 2**step, trials=tuple(0.3 + 0.04 * step + 0.01 * rng.normal(size=5))
            )
            for step in range(3)
        )
        baseline = CurveBaseline(name="bm25", mean=0.3 + 0.04 * 3.5 - 0.02)
        found: Advice = advise(
            LearningCurve(measure="RR", baseline=baseline, points=points), gain=0.02
        )
        if found.pairs_low is not None and found.pairs_high is not None:
            told += 1
            held += found.pairs_low <= truth <= found.pairs_high
    assert told > 290
    assert 0.91 <= held / told <= 0.98


def write(folder: Path, value: object) -> Path:
    (folder / "learning-curve.json").write_text(json.dumps(value))
    return folder


GOOD = {
    "measure": "RR@10",
    "baseline": {"name": "bm25", "mean": 0.3, "path": "x"},
    "points": [{"pairs": 200, "trials": [0.2, 0.3]}, {"pairs": 100.5, "trials": [0.1]}],
    "seed": 0,
}


def test_a_curve_is_read_by_its_size_and_more_keys_may_stand_in_it(tmp_path: Path) -> None:
    found = read_learning_curve(write(tmp_path, GOOD))
    assert [point.pairs for point in found.points] == [100.5, 200]
    assert read_learning_curve(tmp_path / "learning-curve.json") == found


def test_shares_that_were_cut_at_one_size_are_one_size(tmp_path: Path) -> None:
    points = [
        {"pairs": 8, "trials": [0.1, 0.3]},
        {"pairs": 4, "trials": [0.0, 0.1]},
        {"pairs": 8, "trials": [0.1, 0.3]},
        {"pairs": 8, "trials": [0.4, 0.6]},
    ]
    found = read_learning_curve(write(tmp_path, GOOD | {"points": points}))
    assert [point.pairs for point in found.points] == [4, 8]
    # Three shares of two trials are no six trials: they share draws and seeds.
    assert found.points[1].trials == pytest.approx((0.2, 0.4))


@pytest.mark.parametrize("measure", ["RR@10", "RR@10 on stdlib-docs:dev", "RR@10 on a on b"])
def test_the_measure_of_a_curve_has_a_name(measure: str) -> None:
    assert replace(curve({100: 0.4}), measure=measure).measure_name == "RR@10"


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        [],
        GOOD | {"points": []},
        GOOD | {"points": [{"pairs": -1, "trials": [0.1]}]},
        GOOD | {"points": [{"pairs": 1, "trials": []}]},
        GOOD | {"points": [{"pairs": 1, "trials": ["0.1"]}]},
        GOOD | {"points": [{"pairs": 1, "trials": [1e300]}]},
        GOOD | {"points": [{"pairs": 1, "trials": [0.1]}, {"pairs": 1, "trials": [0.2, 0.3]}]},
        GOOD | {"baseline": None},
    ],
)
def test_a_file_that_is_no_curve_is_refused(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(InputError) as caught:
        read_learning_curve(write(tmp_path, wrong))
    (problem,) = caught.value.problems
    assert problem.code == "curve-file"
    assert problem.path.endswith("learning-curve.json")


@pytest.mark.parametrize("content", [b"", b"{", b'{"measure": "\xff"}', b"[" * 100_000])
def test_broken_json_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "learning-curve.json").write_bytes(content)
    with pytest.raises(InputError):
        read_learning_curve(tmp_path)


def test_a_folder_without_a_curve_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_learning_curve(tmp_path)
    assert caught.value.problems[0].code == "curve-file"
