"""The page of all attacks: every line has its test, and the counts are right."""

import ast
from collections import Counter
from pathlib import Path

import pytest
from attacks import ATTACKS, PAGE


@pytest.mark.parametrize("module", sorted({attack.module for attack in ATTACKS}))
def test_every_attack_points_at_a_test_that_is_there(module: str) -> None:
    nodes = ast.walk(ast.parse((Path(__file__).parents[1] / module).read_text("utf-8")))
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    assert {attack.function for attack in ATTACKS if attack.module == module} <= names


def test_no_two_attacks_have_one_name() -> None:
    assert max(Counter(attack.name for attack in ATTACKS).values()) == 1


def test_the_page_says_how_many_there_are() -> None:
    played = sum(one.module.startswith("scenario/test_attacks_by_") for one in ATTACKS)
    page = " ".join(PAGE.read_text("utf-8").split())
    assert f"**{len(ATTACKS)} attacks, all refused or contained.**" in page
    assert f"{played} attacks are played through the command line" in page
