"""docs/architecture.md names rooms and functions that exist, and every room has a row."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import heldout

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text("utf-8")
NAMES = sorted(set(re.findall(r"`(heldout(?:\.\w+)+)`", PAGE)))
FILES = sorted(set(re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE)))
PACKAGE = Path(heldout.__file__).parent


def test_the_page_names_functions() -> None:
    assert len(NAMES) > 20
    assert len(FILES) > 5


@pytest.mark.parametrize("name", NAMES)
def test_every_function_named_exists(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    try:
        import_module(name)
    except ModuleNotFoundError:
        assert hasattr(import_module(module), attribute), name


@pytest.mark.parametrize("file", FILES)
def test_every_file_named_exists(file: str) -> None:
    assert (PACKAGE / file).is_file() or (PACKAGE.parents[1] / file).is_file()


def test_every_room_has_a_row() -> None:
    table = PAGE.split("## ")[0]
    rooms = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.stem.isidentifier() and not path.stem.startswith("_")
    } - {"py"}
    assert {room for room in rooms if f"`{room}`" not in table} == set()
