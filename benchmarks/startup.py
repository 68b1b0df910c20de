"""What a command costs before it does anything, and how many modules it walks through.

    heldout demo /tmp/demo
    python benchmarks/startup.py /tmp/demo --repeats 20

Times are medians over processes started in turn, beside an interpreter that does nothing and one
that imports numpy. Modules are those of heldout in which a function runs, seen by a profiler; what
runs in other processes is not seen. Commands run on a copy of the demo's folder.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["main"]

_NOTHING = ("-c", "pass")
_NUMPY = ("-c", "import numpy")
_HELP = ("--help",), ("publish", "--help"), ("compare", "--help"), ("analyse", "--help")

_WALK = """
import json, sys, threading
from pathlib import Path
import heldout
home = str(Path(heldout.__file__).parent)
entered, functions = set(), set()
inlined = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}
def look(frame, event, arg):
    code = frame.f_code
    # A comprehension is no function (Python 3.12 has no frame for it), and a template no module.
    ours = code.co_filename.startswith(home) and code.co_filename.endswith(".py")
    if event == "call" and code.co_flags & 1 and ours and code.co_name not in inlined:
        entered.add(code.co_filename)
        functions.add(code)
threading.setprofile(look)
sys.setprofile(look)
from heldout.cli.program import main
try:
    main(sys.argv[2:])
finally:
    sys.setprofile(None)
    Path(sys.argv[1]).write_text(json.dumps([len(entered), len(functions)]))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("demo", type=Path, help="folder of a demo, with its board and vault")
    parser.add_argument("--repeats", type=int, default=20)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder, "demo")
        shutil.copytree(asked.demo, demo)
        commands = _commands(demo, Path(folder))
        _print_seconds(commands["evaluate"], asked.repeats)
        print("\n| command | modules entered | functions |\n| --- | --- | --- |")
        for name, command in commands.items():
            modules, functions = _walk(command, Path(folder, "walk.json"))
            print(f"| {name} | {modules} | {functions} |")


def _commands(demo: Path, folder: Path) -> Mapping[str, tuple[str, ...]]:
    board = ("--board", str(demo / "board"), "--vault", str(demo / "vault"))
    runs = sorted(str(path) for path in demo.glob("runs/*/dev.tsv.bz2"))
    qrels = str(demo / "board/qrels/dev.qrels")
    name = max(path.name for path in (demo / "board/leaderboard/entries").iterdir())
    labels = ("--qrels", qrels, "--out", str(folder / "labels"))
    return {
        "evaluate": ("evaluate", runs[0], "--qrels", qrels, "-m", "RR@10"),
        "review": ("review", name.removesuffix(".html"), *board),
        "rebuild": ("rebuild", *board),
        "prefer labels": ("prefer", "labels", str(demo / "campaign"), "--runs", runs[0], *labels),
    }


def _print_seconds(evaluate: tuple[str, ...], repeats: int) -> None:
    heldout = ("-m", "heldout")
    started = {
        "python -c pass": _NOTHING,
        "python -c 'import numpy'": _NUMPY,
        **{" ".join(["heldout", *words]): (*heldout, *words) for words in _HELP},
        "heldout evaluate, one small run": (*heldout, *evaluate),
    }
    seconds: dict[str, list[float]] = {name: [] for name in started}
    for _ in range(repeats):
        for name, command in started.items():
            seconds[name].append(_time(command))
    middle = {name: statistics.median(times) for name, times in seconds.items()}
    nothing, numpy = list(middle.values())[:2]
    print("| command | seconds | of nothing | of numpy | beyond numpy |")
    print("| --- | --- | --- | --- | --- |")
    for name, each in middle.items():
        ratios = f"{each / nothing:.1f} | {each / numpy:.2f} | {each - numpy:+.3f}"
        print(f"| `{name}` | {each:.3f} | {ratios} |")


def _time(command: tuple[str, ...]) -> float:
    start = time.perf_counter()
    _start(*command)
    return time.perf_counter() - start


def _walk(command: tuple[str, ...], path: Path) -> tuple[int, int]:
    _start("-c", _WALK, str(path), *command)
    modules, functions = json.loads(path.read_bytes())
    return modules, functions


def _start(*command: str) -> None:
    environment = {**os.environ, "HELDOUT_CACHE": "off", "PYTHONDONTWRITEBYTECODE": ""}
    ended = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, check=False
    )
    if ended.returncode not in {0, 1}:  # 1: an answer that is no
        raise RuntimeError(f"{' '.join(command)}: {ended.stderr.decode()}")


if __name__ == "__main__":
    main()
