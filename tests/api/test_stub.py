"""The file of public names and signatures is what the code says."""

import subprocess
import sys
from pathlib import Path

import heldout as ho
from heldout.analyses.analysis import ANALYSES

ROOT = Path(__file__).resolve().parents[2]


def test_the_stub_is_as_the_code() -> None:
    command = [sys.executable, "tools/api.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_public_name_is_there_with_its_help() -> None:
    assert set(ANALYSES) <= set(ho.__all__)
    for name in ho.__all__:
        assert getattr(ho, name).__doc__


def test_importing_takes_nothing_with_it() -> None:
    code = "import heldout, sys; sys.exit(any(m in sys.modules for m in ('numpy', 'narwhals')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
