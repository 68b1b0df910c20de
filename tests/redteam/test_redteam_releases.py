"""What attackers play against is what leaves the vault, by name."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.rules.release import ReleaseRule, Told, release
from heldout.errors import InputError
from heldout.redteam.releases import COMPARED, name_rule, parse_release

RULE = ReleaseRule(submissions=300)


def name_of(text: str) -> str:
    return parse_release(text, RULE, decimals=3, path="--release").name


def test_names_are_read_and_told_with_their_numbers() -> None:
    told = ["exact", "rounded", "ladder z=3.59", "ladder z=1", "step 0.01"]
    assert list(map(name_of, COMPARED)) == told
    assert name_of("ladder=2.5") == "ladder z=2.5"
    assert name_of("step=0.05") == "step 0.05"


def test_the_threshold_follows_from_the_submissions() -> None:
    few = parse_release("ladder", ReleaseRule(submissions=24), decimals=3, path="")
    assert few.name == "ladder z=2.87"


def test_a_z_of_the_board_does_not_move_the_ladder_that_is_named_without_one() -> None:
    found = parse_release("ladder", ReleaseRule(submissions=300, z=1.0), decimals=3, path="")
    assert found.name == "ladder z=3.59"
    assert name_rule(ReleaseRule(rule="ladder", z=1.0), decimals=3).name == "ladder z=1"


@pytest.mark.parametrize("rule", ["rounded", "ladder", "step"])
@given(st.integers(0, 2**32))
def test_a_board_s_rule_answers_as_the_vault_does(rule: str, seed: int) -> None:
    board = ReleaseRule(rule=rule, z=0.5, step=0.05)  # type: ignore[arg-type] # by parametrize
    rng = np.random.default_rng(seed)
    answer = name_rule(board, decimals=2).answer
    told: Told | None = None
    for _ in range(6):
        values = rng.random(8)
        expected = release(values, told, board, decimals=2)
        found = answer(values, told)
        assert found.text == expected.text
        told = found.told


def test_exact_has_every_digit() -> None:
    exact = parse_release("exact", RULE, decimals=3, path="").answer
    values = np.array([1 / 3, 1 / 7, 0.1])
    text = exact(values, None).text
    assert text is not None
    assert float(text) == pytest.approx(values.mean(), rel=1e-15)
    assert len(text) > 10


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ladder",
        "ladder=",
        "ladder=nan",
        "ladder=inf",
        "ladder=-1",
        "ladder=11",
        "step=0",
        "step=0.03",
        "step=1e-9",
        "rounded=2",
        "exact=1",
        "told",
        "ladder=1=2",
        "\x1b[2Jladder",
        "z" * 10_000,
    ],
)
def test_a_release_that_is_none(text: str) -> None:
    with pytest.raises(InputError) as caught:
        name_of(text)
    (problem,) = caught.value.problems
    assert problem.code == "redteam-release"
    assert problem.found.isprintable()
    assert len(problem.found) < 200


@given(st.text())
def test_any_text_is_a_release_or_a_problem(text: str) -> None:
    with suppress(InputError):
        assert name_of(text).split()[0] in ("exact", "rounded", "ladder", "step")
