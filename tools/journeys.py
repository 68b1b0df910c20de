"""Lists the modules that take part in the journeys of one submission and of one evaluation.

    python tools/journeys.py

A journey is a command, or a call of the Python API, in a new process on the small board that
`heldout demo --files` makes. A module takes part if one of its functions runs, also while it is
imported. What makes the methods of a dataclass is no function of the module that has it, though
Python runs it there. Two modules call each other both ways if each calls a function of the other.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

_DAY, _NEXT = (f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}" for days in (1, 2))
_ID = f"{_DAY[:10].replace('-', '')}-journey"
_ORGANISER = ("--board", "files/board", "--vault", "files/vault", "--now", _NEXT)
_RUN, _QRELS, _MEASURE = "files/runs/dev/tfidf.run.gz", "files/dev.qrels", "RR@10"
_IN_PYTHON = "ho.evaluate"
_JOURNEYS: Mapping[str, tuple[str, ...]] = {
    "inbox": ("inbox", *_ORGANISER),
    "review": ("review", _ID, *_ORGANISER),
    "publish": ("publish", _ID, "--yes", *_ORGANISER),
    "evaluate": ("evaluate", _RUN, "--qrels", _QRELS, "-m", _MEASURE),
    _IN_PYTHON: (_RUN, _QRELS, _MEASURE),
}
_METADATA = {
    "team": "Lighthouse Retrieval Group",
    "institution": "Lighthouse Institute",
    "model_description": "Query likelihood with Dirichlet smoothing",
    "training_data": "none",
    "type": "full ranking",
    "open_runs": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """The modules that took part.

    Attributes:
        modules: names of modules in which a function ran, sorted.
        both_ways: pairs of them, sorted, in which each called a function of the other.
    """

    modules: tuple[str, ...]
    both_ways: tuple[tuple[str, str], ...]


def measure_journeys() -> Mapping[str, Journey]:
    """Play every journey once, in order.

    Raises:
        RuntimeError: a command failed; the message is what it printed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _prepare(folder)
        return {name: _play(name, folder) for name in _JOURNEYS}


def _prepare(folder: Path) -> None:
    """Make a board with a submission on its way."""
    heldout = (sys.executable, "-m", "heldout")
    _run(folder, *heldout, "demo", "--files", "files")
    _run(folder, "git", "clone", "-q", "files/board", "clone")
    runs = (f"--{name}=files/runs/{name}/ql-dirichlet.run.gz" for name in ("dev", "eval"))
    participant = ("--board", "clone", "--now", _DAY)
    _run(folder, *heldout, "draft", "journey", *runs, *participant)
    metadata = folder / f"clone/.git/heldout/drafts/{_ID}/metadata.json"
    metadata.write_text(json.dumps(_METADATA), "utf-8")
    _run(folder, *heldout, "submit", _ID, *participant)


def _play(name: str, folder: Path) -> Journey:
    calls = folder / "calls.json"
    _run(folder, sys.executable, __file__, name, "calls.json")
    found = {(caller, called) for caller, called in json.loads(calls.read_text("utf-8"))}
    both = {(a, b) for a, b in found if a < b and (b, a) in found}
    return Journey(
        modules=tuple(sorted({called for _, called in found})), both_ways=tuple(sorted(both))
    )


def _run(folder: Path, *command: str) -> None:
    scores = {**os.environ, "HELDOUT_CACHE": str(folder / "scores")}  # none of an earlier journey
    result = subprocess.run(
        command, cwd=folder, env=scores, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}: {result.stdout}{result.stderr}")


def _watch(name: str, calls: Path) -> None:
    """Play a journey in this process and write who called whom, module by module."""
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_name != "__create_fn__":
            called, before = frame.f_globals.get("__name__", ""), frame.f_back
            if called.startswith("heldout"):
                seen.add((before.f_globals.get("__name__", "") if before else "", called))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        _walk(name)
    finally:
        sys.setprofile(None)
        calls.write_text(json.dumps(sorted((a, b) for a, b in seen if a != b)), "utf-8")


def _walk(name: str) -> None:
    # Imported here: what their modules do when they are imported belongs to the journey.
    if name == _IN_PYTHON:
        import heldout as ho  # noqa: PLC0415

        str(ho.evaluate(*_JOURNEYS[name]))
        return
    from heldout.cli.program import main as program  # noqa: PLC0415

    program(_JOURNEYS[name])


def _describe(journeys: Mapping[str, Journey]) -> Iterator[str]:
    for name, journey in journeys.items():
        yield f"{name}: {len(journey.modules)} modules"
        yield from (f"  {module}" for module in journey.modules)
        yield f"  {len(journey.both_ways)} pairs call each other both ways"
        yield from (f"    {a} and {b}" for a, b in journey.both_ways)


def main() -> None:
    """Print the list, or play one journey for it."""
    if sys.argv[1:]:
        _watch(sys.argv[1], Path(sys.argv[2]))
    else:
        print("\n".join(_describe(measure_journeys())))


if __name__ == "__main__":
    main()
