"""`heldout doctor`: what is installed, what is missing and would bring, how fast it reads."""

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

import heldout
from heldout.cli.options import json_option
from heldout.cli.printing import (
    Console,
    answers,
    print_facts,
    print_json,
    print_table,
    progress,
)
from heldout.errors import plural
from heldout.files.cores import count_cores
from heldout.installation import (
    Finding,
    Folder,
    ScoreStore,
    find_parts,
    find_score_store,
    find_scratch,
    find_unknown_switches,
)
from heldout.trec.accelerators import Accelerators

if TYPE_CHECKING:
    from heldout.installation import Speed


_LITTLE = 1 << 30
"""Free bytes below which a large run may not find room."""
_KILO = 1000
_SEED = 0
_REPEATS = 3
_BUSY = 0.5
"""Load of a core from which on times mean little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """How this machine stands."""

    findings: tuple[Finding, ...]
    unknown: tuple[str, ...]
    scores: ScoreStore | None
    scratch: tuple[Folder, ...]

    @property
    def stopping(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.stops]

    @property
    def optional(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.part.group != "base"]


@click.command
@click.option(
    "--measure",
    "measures",
    is_flag=True,
    help="Also read a sample with and without each part that makes it faster; takes seconds.",
)
@json_option
@click.pass_context
def doctor(context: click.Context, *, measures: bool, as_json: bool) -> None:
    """Show what is installed, what each missing part would add, and how to get it.

    Parts that read runs are in use when they are there, and no score depends on any of them.
    HELDOUT_WITHOUT=lbzip2,isal,compiled, or some of these, switches them off.

    Exit code 1 where runs cannot be scored: a package that every command needs is
    missing. Anything else that is missing or broken, git too, is reported with exit code 0.

    \b
    Example:
      heldout doctor --measure
    """
    state = _look()
    speed = _measure(state.findings) if measures and not state.stopping else None
    if as_json:
        print_json(_document(state, speed))
    else:
        _print(answers(), state, speed)
    if state.stopping:
        context.exit(1)


def _look() -> _State:
    findings = find_parts(os.environ)
    whole = not any(finding.stops and finding.part.group == "base" for finding in findings)
    return _State(
        findings=findings,
        unknown=find_unknown_switches(os.environ),
        scores=find_score_store(os.environ) if whole else None,
        scratch=find_scratch(os.environ),
    )


def _measure(findings: Sequence[Finding]) -> "Speed":
    """Read a sample with what is in use.

    Raises:
        SetupError: a part changes what is found.
    """
    import numpy as np

    from heldout.installation import draw_sample, measure

    load = _load()
    with progress("reading a sample", _REPEATS) as done:
        sample = draw_sample(np.random.default_rng(_SEED))
        found = _in_use(findings)
        clock = time.perf_counter
        return measure(sample, found, clock=clock, repeats=_REPEATS, load=load, done=done)


def _load() -> float | None:
    """How many processes were at work in the last minute, where the system tells."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _in_use(findings: Sequence[Finding]) -> Accelerators:
    names = {finding.part.name for finding in findings if finding.state == "in use"}
    return Accelerators(
        scanner="compiled" if "compiled" in names else "numpy",
        bzip2="lbzip2" if "lbzip2" in names else "stdlib",
        gzip="isal" if "isal" in names else "stdlib",
        threads=count_cores(),
    )


def _print(console: Console, state: _State, speed: "Speed | None") -> None:
    console.print(_verdict(state))
    console.print()
    _print_parts(console, state)
    console.print()
    advice = [*_trouble_facts(state), *_missing_facts(state), *_unknown_facts(state)]
    if advice:
        print_facts(console, [*advice, ("", "")])
    print_facts(console, _machine_facts(state))
    console.print()
    if speed is None:
        print_facts(console, [("next", "heldout doctor --measure")])
    else:
        _print_speed(console, speed)


def _verdict(state: _State) -> str:
    if state.stopping:
        parts = ", ".join(_name(finding) for finding in state.stopping)
        return f"Runs cannot be scored here: {parts}."
    missing = sum(finding.state == "missing" for finding in state.optional)
    text = "All that scoring runs needs is here"
    if not missing:
        return f"{text}, and no optional part is missing."
    verb = "is" if missing == 1 else "are"
    return f"{text}; {missing} of {plural(len(state.optional), 'optional part')} {verb} missing."


def _name(finding: Finding) -> str:
    return f"{finding.part.name} is {finding.state}"


def _print_parts(console: Console, state: _State) -> None:
    rows = [
        (finding.part.name, finding.version or "-", finding.state, finding.part.use)
        for finding in state.findings
        if finding.part.group != "base" or finding.stops
    ]
    header = ("part", "version", "state", "for")
    print_table(console, header, rows, left=header)


def _trouble_facts(state: _State) -> list[tuple[str, str]]:
    """What is broken or off, and why."""
    facts = []
    for finding in state.findings:
        if finding.state == "off":
            facts.append(("off", f"{finding.part.name}, by {finding.why}"))
        if finding.state == "broken":
            facts.append(("broken", f"{finding.part.name}: {finding.why}"))
            facts.append(("", finding.part.get))
    return facts


def _missing_facts(state: _State) -> list[tuple[str, str]]:
    """What each missing part would bring and how to get it, said once for parts alike."""
    names: dict[tuple[str, str], list[str]] = {}
    for finding in state.findings:
        if finding.state == "missing":
            key = (finding.part.brings, finding.part.get)
            names.setdefault(key, []).append(finding.part.name)
    facts = []
    for (brings, get), parts in names.items():
        facts += [("missing", ", ".join(parts)), ("", brings), ("", get)]
    return facts


def _unknown_facts(state: _State) -> list[tuple[str, str]]:
    if not state.unknown:
        return []
    names = ", ".join(state.unknown)
    known = ", ".join(f.part.name for f in state.findings if f.part.group == "reading")
    return [("unknown", f"HELDOUT_WITHOUT names {names}; it can name {known}")]


def _machine_facts(state: _State) -> list[tuple[str, str]]:
    base = [finding for finding in state.findings if finding.part.group == "base"]
    versions = ", ".join(f"{f.part.name} {f.version}" for f in base if f.version)
    return [
        ("heldout", f"{heldout.__version__}, Python {platform.python_version()}"),
        ("with", versions or "nothing"),
        ("cores", f"{count_cores()}"),
        *_store_facts(state.scores),
        *_scratch_facts(state.scratch),
    ]


def _store_facts(store: ScoreStore | None) -> list[tuple[str, str]]:
    if store is None:
        return []
    if store.path is None:
        return [("scores", f"stored nowhere: {store.why}")]
    trouble = f"; {store.why}, so nothing is stored" if store.why else ""
    most = "without a limit" if store.limit is None else f"of at most {_size(store.limit)}"
    used = f"{_size(store.bytes)} {most}{trouble}"
    return [
        ("scores", f"stored in {store.path}, {used}"),
        ("", "HELDOUT_CACHE names another folder, or off"),
    ]


def _scratch_facts(folders: Sequence[Folder]) -> list[tuple[str, str]]:
    return [("" if place else "scratch", _describe(one)) for place, one in enumerate(folders)]


def _describe(folder: Folder) -> str:
    if folder.path is None:
        return f"no folder that can be written, so no {folder.use}; TMPDIR names one"
    little = ", which is little; TMPDIR names another folder" if folder.free < _LITTLE else ""
    return f"{folder.path} for {folder.use}, {_size(folder.free)} free{little}"


def _size(count: int) -> str:
    """Bytes as a person says them."""
    if count < _KILO:
        return plural(count, "byte")
    size, units = count / _KILO, iter(("kB", "MB", "GB"))
    unit = next(units)
    while size >= _KILO and unit != "GB":
        size, unit = size / _KILO, next(units)
    return f"{size:,.1f} {unit}"


def _print_speed(console: Console, speed: "Speed") -> None:
    sample = f"{speed.queries:,} queries × {speed.depth:,} in TREC form, from memory"
    how = f"read and checked on {plural(speed.threads, 'core')}, medians of {speed.repeats}"
    print_facts(console, [("measured", f"{sample}; {how}"), ("", "")])
    rows = [
        (
            timing.form,
            _size(timing.bytes),
            f"{timing.seconds:.3f} s",
            f"{timing.ratio:.1f} ×",
            ", ".join(timing.parts) or "nothing optional",
        )
        for timing in speed.timings
    ]
    print_table(console, ("run", "size", "time", "as fast", "with"), rows, left=("with",))
    console.print()
    print_facts(console, [("found", "the same each time"), *_busy_facts(speed)])


def _busy_facts(speed: "Speed") -> list[tuple[str, str]]:
    """Others at work make every time longer, and all those that use many cores most of all."""
    if speed.load is None or speed.load < _BUSY * speed.threads:
        return []
    load = f"a load of {speed.load:.1f} on {plural(speed.threads, 'core')}"
    return [("note", f"others were at work, {load}: measure again when they are done")]


def _document(state: _State, speed: "Speed | None") -> dict[str, object]:
    return {
        "ok": not state.stopping,
        "version": heldout.__version__,
        "python": platform.python_version(),
        "cores": count_cores(),
        "parts": [_part_json(finding) for finding in state.findings],
        "unknown": list(state.unknown),
        "scores": None if state.scores is None else _store_json(state.scores),
        "scratch": [
            {"path": folder.path and str(folder.path), "free": folder.free, "for": folder.use}
            for folder in state.scratch
        ],
        "measured": None if speed is None else _speed_json(speed),
    }


def _part_json(finding: Finding) -> dict[str, object]:
    part = finding.part
    return {
        "name": part.name,
        "group": part.group,
        "state": finding.state,
        "version": finding.version,
        "why": finding.why,
        "brings": part.brings,
        "get": part.get,
    }


def _store_json(store: ScoreStore) -> dict[str, object]:
    return {
        "path": store.path and str(store.path),
        "bytes": store.bytes,
        "limit": store.limit,
        "why": store.why,
    }


def _speed_json(speed: "Speed") -> dict[str, object]:
    return {
        "queries": speed.queries,
        "depth": speed.depth,
        "repeats": speed.repeats,
        "threads": speed.threads,
        "load": speed.load,
        "timings": [
            {
                "form": timing.form,
                "bytes": timing.bytes,
                "parts": list(timing.parts),
                "seconds": timing.seconds,
                "ratio": timing.ratio,
            }
            for timing in speed.timings
        ],
    }
