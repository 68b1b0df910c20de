"""docs/how-to/many-machines.md is followed: what a scheduler would start is started here."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import click
import pytest
import yaml

from heldout.cli.program import main

PAGE = (Path(__file__).parents[2] / "docs/how-to/many-machines.md").read_text("utf-8")
BLOCKS = re.findall(r"```(?:bash|yaml)\n(.*?)```", PAGE, re.DOTALL)
HANDS, SLURM, KUBERNETES, PARALLEL, DASK = BLOCKS
PARTS = 2
PROGRAM = f'heldout() {{ {shlex.quote(sys.executable)} -m heldout "$@"; }}; export -f heldout'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the page has: runs, judgments, a folder that all machines see."""
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    for number in range(4):
        lines = [f"q1 Q0 d{d} {d} {(d * number) % 7} t\n" for d in range(1, 9)]
        Path(f"runs/r{number}.gz").write_text("".join(lines), encoding="utf-8")
    Path("dev.qrels").write_text("q1 0 d3 1\nq1 0 d5 2\n", encoding="utf-8")
    return tmp_path


def run(script: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euc", f"{PROGRAM}\n{script}"],
        env={**os.environ, "HELDOUT_CACHE": "scores", **(environ or {})},
        capture_output=True,
        text=True,
        check=True,
    )


def check_table(folder: Path) -> None:
    """The last call of the page finds all runs."""
    last = HANDS.splitlines()[-1]
    done = run(last, {"HELDOUT_CACHE": str(folder / "scores")})
    assert [line.split()[0] for line in done.stdout.splitlines()[:5]] == [
        *("run", "r0", "r1", "r2", "r3"),
    ]
    assert "shards    all 2 parts are scored\n" in done.stderr
    assert "stored    4 of 4 runs as stored" in done.stderr


def test_slurm_and_kubernetes_score_the_same_parts(folder: Path) -> None:
    """One part by each: they meet in the same folder."""
    assert "#SBATCH --array=1-20\n" in SLURM
    run(SLURM.replace("/20", f"/{PARTS}"), {"SLURM_ARRAY_TASK_ID": "1"})
    job = yaml.safe_load(KUBERNETES)["spec"]
    (container,) = job["template"]["spec"]["containers"]
    shell, option, script = container["command"]
    assert (shell, option, job["completionMode"]) == ("sh", "-c", "Indexed")
    (mount,) = container["volumeMounts"]
    (named,) = container["env"]
    assert named["name"] == "HELDOUT_CACHE"
    assert named["value"].startswith(mount["mountPath"])
    assert script.endswith(f"/{job['completions']}")
    part = script.replace(f"/{job['completions']}", f"/{PARTS}")
    run(part, {"JOB_COMPLETION_INDEX": "1", "HELDOUT_CACHE": str(folder / "scores")})
    check_table(folder)


@pytest.mark.skipif(shutil.which("parallel") is None, reason="GNU parallel is not installed")
def test_gnu_parallel(folder: Path) -> None:
    # It asks its parents for the shell, and `make` has one that knows no functions.
    shell = {"PARALLEL_SHELL": shutil.which("bash") or "bash"}
    run(PARALLEL.replace("/20", f"/{PARTS}").replace("seq 20", f"seq {PARTS}"), shell)
    check_table(folder)


def test_dask() -> None:
    typed = [shlex.split(line, comments=True) for line in DASK.splitlines()]
    for program, name, *rest in typed:
        command = (
            import_module(f"distributed.cli.dask_{name}").main
            if program == "dask"
            else main.get_command(click.Context(main), name)
        )
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), rest[0])
        assert command is not None
        known = {option for one in command.params for option in one.opts}
        assert {one for one in rest if one.startswith("-")} <= known
