"""The drawing of the house: made from the import contract and the imports."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "architecture.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_drawing_is_that_of_the_contract_and_the_code(tool: ModuleType) -> None:
    drawn = (ROOT / "docs" / "images" / "architecture.svg").read_text("utf-8")

    assert drawn == tool.draw(), "run python tools/architecture.py"


def test_every_room_of_the_code_is_in_the_contract(tool: ModuleType) -> None:
    rooms = {room for layer in tool.read_layers() for room in layer}
    code = {
        path.stem
        for path in (ROOT / "src" / "heldout").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }

    assert code - rooms == {"__init__", "__main__"}
