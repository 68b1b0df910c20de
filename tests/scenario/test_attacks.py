"""The table of all attacks, `attacks.py`: every one has its test, and the page is the table."""

import ast
from pathlib import Path

import pytest
from attacks import ATTACKS, format_page

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]


def functions_and_texts(path: Path) -> tuple[set[str], set[str]]:
    """Names of a module's tests, and all of its string constants."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    texts = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return names, texts


@pytest.mark.parametrize("module", sorted({attack.module for attack in ATTACKS}))
def test_every_attack_points_at_a_test_that_is_there(module: str) -> None:
    names, texts = functions_and_texts(TESTS / module)
    for attack in (attack for attack in ATTACKS if attack.module == module):
        assert attack.function in names, attack
        assert not attack.case or attack.case in texts, attack


def test_no_two_attacks_have_one_name() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names)


def test_the_page_is_the_table() -> None:
    page = (TESTS.parent / "docs" / "reference" / "attacks.md").read_text("utf-8")
    assert page == format_page(ATTACKS)
