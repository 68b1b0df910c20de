"""The notebooks run from their first cell to their last, and are stored without outputs."""

import ast
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@each
def test_is_stored_without_outputs_and_names_no_machine(path: Path) -> None:
    notebook = json.loads(path.read_text("utf-8"))
    assert notebook["metadata"] == METADATA
    for cell in notebook["cells"]:
        assert cell["metadata"] == {}
    for cell in code_cells(notebook):
        assert (cell["outputs"], cell["execution_count"]) == ([], None)


@each
def test_imports_what_exists(path: Path) -> None:
    cells = code_cells(json.loads(path.read_text("utf-8")))
    lines = [line for cell in cells for line in cell["source"] if not line.startswith("%")]
    taken = [
        one for one in ast.walk(ast.parse("\n".join(lines))) if isinstance(one, ast.ImportFrom)
    ]
    assert taken
    for one in taken:
        for name in one.names:
            assert hasattr(import_module(str(one.module)), name.name)


@pytest.fixture
def kernel_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Jupyter and IPython store their files; kernels of the home directory are not seen."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


@pytest.mark.night
@each
def test_runs_without_an_error_or_a_warning(path: Path, kernel_home: Path) -> None:
    client: Any = pytest.importorskip("nbclient")
    notebook: Any = pytest.importorskip("nbformat").read(path, as_version=4)
    where = {"metadata": {"path": str(kernel_home)}}
    client.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    first, *others = code_cells(notebook)
    assert not first["outputs"]  # it imports
    for cell in others:
        assert cell["outputs"], cell["source"]
        assert not [one for one in cell["outputs"] if one.get("name") == "stderr"], cell["outputs"]
