"""The picture of a training study: every mark has its key, and every sign is a finding."""

import numpy as np
import pytest
from test_training_results import equal

from drawings import root_of, texts
from heldout.charts.plot import Sheet
from heldout.survivorship.training import results
from heldout.survivorship.training.triples import ALL, Condition

R1, R5, LIKE1 = Condition(depth=1), Condition(depth=5), Condition(like=1)


def picture(gains: dict[Condition, float]) -> Sheet:
    """A study of three seeds, with a first stage above all models."""
    rng = np.random.default_rng(3)
    easy = rng.uniform(0.2, 0.5, 100)
    scores = {one: easy + gain + rng.normal(0, 0.02, (3, 100)) for one, gain in gains.items()}
    scored = results.TestScores(
        test="t",
        measure="RR@10",
        scores=scores,
        first_stage=np.full(100, 0.6),
        first_name="BM25",
    )
    found = results.compare_conditions(scored, equal(scores))
    answer = results.answer_training([found], [], level=0.95)
    assert answer.chart is not None
    chart = answer.chart()
    assert isinstance(chart, Sheet)
    return chart


def fills(chart: Sheet) -> list[str]:
    """The fill of each group of marks: those of the key and of the panel."""
    return [one.get("fill", "") for one in root_of(chart).iter("g") if one.get("fill")]


def test_each_mark_is_in_the_key_and_the_first_stage_in_the_panel() -> None:
    chart = picture({R1: -0.1, R5: -0.05, ALL: 0.0, LIKE1: -0.1})

    assert {"a model: one seed", "mean of the seeds", "the first stage, which is re-ranked"} <= {
        *texts(chart)
    }
    assert "mean, on as few labels drawn at random" in texts(chart)
    assert {"var(--paper)", "var(--record)", "var(--ink)"} <= {*fills(chart)}
    dashes = [
        one.get("d", "") for one in root_of(chart).iter("path") if one.get("stroke-dasharray")
    ]
    assert len(dashes) == 2
    (height,) = {float(point.split()[1]) for point in dashes[1][1:].split("L")}
    means = [
        float(mark.get("d", "").split()[1].partition("l")[0])
        for mark in root_of(chart).iter("path")
        if (title := mark.find("title")) is not None and "seed" not in (title.text or "")
    ]
    assert len(means) == 3
    assert height < min(means)


def test_a_star_is_a_difference_from_all_and_a_dagger_one_from_the_next_deeper() -> None:
    told = texts(picture({R1: -0.1, R5: -0.05, ALL: 0.0, LIKE1: -0.1}))
    # In the key, then above r=1, r=5 and the control
    assert [text for text in told if set(text) <= {"*", "†"}] == ["*", "†", "*†", "*", "*"]


@pytest.mark.parametrize(
    ("gains", "signs"),
    [({R1: 0.0, R5: 0.0, ALL: 0.0}, []), ({R1: -0.1, ALL: 0.0}, ["*", "*"])],
)
def test_what_is_nowhere_in_the_picture_has_no_key(
    gains: dict[Condition, float], signs: list[str]
) -> None:
    chart = picture(gains)
    assert [text for text in texts(chart) if set(text) <= {"*", "†"}] == signs
    assert "var(--ink)" not in fills(chart)
    assert not any("at random" in text for text in texts(chart))
