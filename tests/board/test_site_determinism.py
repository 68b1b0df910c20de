"""Two processes with different hash seeds render the same bytes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("sample_boards.py")


@pytest.mark.slow
def test_two_processes_give_the_same_bytes(tmp_path: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(tmp_path / seed)],
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    assert [process.wait(timeout=60) for process in started] == [0, 0]
    first, second = (
        {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        for root in (tmp_path / "1", tmp_path / "2")
    )
    assert first == second
    assert len(first) > 200
