"""The picture of a training study: every mark has its key, and every sign is a finding."""

from typing import Any

import numpy as np
import pytest

from heldout.survivorship.training.results import Amount, compare_conditions, correct_families
from heldout.survivorship.training.triples import ALL, Condition
from heldout.survivorship.training.words import TrainingResult, spec

R1, R5, LIKE1 = Condition(depth=1), Condition(depth=5), Condition(like=1)
FIRST = 0.6


def picture(gains: dict[Condition, float]) -> dict[str, Any]:
    """A study of three seeds, with a first stage above all models."""
    rng = np.random.default_rng(3)
    easy = rng.uniform(0.2, 0.5, 100)
    scores = {one: easy + gain + rng.normal(0, 0.02, (3, 100)) for one, gain in gains.items()}
    amounts = {one: [Amount(1, 1, 1)] * 3 for one in scores}
    found = compare_conditions(scores, np.full(100, FIRST), amounts, test="t", measure="RR@10")
    outcomes = correct_families([found], family="measure")
    return spec(TrainingResult(outcomes=outcomes, records=(), family="measure", level=0.95))


def texts(chart: dict[str, Any]) -> list[str]:
    rows = [row for layer in chart["layer"] for row in layer["data"]["values"]]
    return [row["text"] for row in rows if "text" in row]


def marks(chart: dict[str, Any], shape: str) -> int:
    """Layers of a shape: one in the key and one in the panel."""
    return sum(layer["mark"].get("shape") == shape for layer in chart["layer"])


def test_each_mark_is_in_the_key_and_the_first_stage_in_the_panel() -> None:
    chart = picture({R1: -0.1, R5: -0.05, ALL: 0.0, LIKE1: -0.1})

    assert [marks(chart, shape) for shape in ("circle", "diamond", "square")] == [2, 2, 2]
    dashes = [one for one in chart["layer"] if one["mark"].get("strokeDash") == [6, 4]]
    assert len(dashes) == 2
    (height,) = {row["y"] for row in dashes[1]["data"]["values"]}
    diamonds = [one for one in chart["layer"] if one["mark"].get("shape") == "diamond"]
    assert max(row["y"] for row in diamonds[1]["data"]["values"]) < height <= chart["height"]


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
    assert marks(chart, "square") == 0
    assert not any("at random" in text for text in texts(chart))
