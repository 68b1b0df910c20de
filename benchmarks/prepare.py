"""An environment of the benchmark's own: heldout as its users install it, the peers, trec_eval."""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from workplace import HERE

__all__ = ["prepare", "prepared_python"]

_SOURCES = ("src", "pyproject.toml", "setup.py", "README.md", "LICENSE")
_BUILT = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")


def prepared_python(folder: Path) -> Path:
    """The interpreter of a prepared folder."""
    return folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"


def prepare(folder: Path) -> None:
    """Make the environment, or bring it up to date with the checkout.

    Args:
        folder: gets `venv` and, where there is a C compiler, `trec_eval`.

    Raises:
        subprocess.CalledProcessError: heldout could not be installed. Peers that cannot be
            installed are named and left out.
    """
    python = prepared_python(folder)
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
    names = [
        line
        for line in (HERE / "requirements.txt").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    for name in names:
        if not _install(python, name):
            print(f"not installed: {name}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as copy:
        # A copy: building leaves folders behind, and what was built in the checkout stays there.
        for source in _SOURCES:
            _copy(HERE.parent / source, Path(copy) / source)
        command = ["--force-reinstall", "--no-deps", copy]
        if not (_install(python, copy) and _install(python, *command)):
            raise subprocess.CalledProcessError(1, "pip install heldout")
    _build_trec_eval(python, folder / "trec_eval")


def _install(python: Path, *what: str) -> bool:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*command, *what], check=False).returncode == 0


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=_BUILT)
    elif source.exists():
        shutil.copy(source, target)


def _build_trec_eval(python: Path, target: Path) -> None:
    """Link trec_eval.c with the routines in pytrec_eval-terrier's wheel."""
    found = sorted(python.parent.parent.glob("lib/python*/site-packages/pytrec_eval_ext*.so"))
    compiler = shutil.which("cc")
    if not found or compiler is None:
        print("trec_eval not built: no C compiler or no pytrec_eval-terrier", file=sys.stderr)
        return
    library = found[0].resolve()
    # Lazily: what the library wants of Python is not there, and is never asked for.
    link = [f"-Wl,-rpath,{library.parent}", "-Wl,--allow-shlib-undefined", "-Wl,-z,lazy"]
    subprocess.run(
        [compiler, "-O3", "-o", str(target), str(HERE / "trec_eval.c"), str(library), *link],
        check=True,
    )
