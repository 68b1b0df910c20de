"""`heldout doctor`: what is installed, and what each missing part would bring."""

import os
import platform
from dataclasses import dataclass

import click

import heldout
from heldout.cli.options import json_option
from heldout.cli.printing import Console, answers, print_facts, print_json, print_table
from heldout.errors import plural
from heldout.files.process import count_cores
from heldout.installation import PartState, find_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """How this machine stands."""

    findings: tuple[PartState, ...]

    @property
    def stopping(self) -> list[PartState]:
        return [finding for finding in self.findings if finding.stops]

    @property
    def optional(self) -> list[PartState]:
        return [finding for finding in self.findings if finding.part.group != "base"]


@click.command
@json_option
@click.pass_context
def doctor(context: click.Context, *, as_json: bool) -> None:
    """Show what is installed, what each missing part would add, and how to get it.

    The compiled scanner of runs is in use where it is there, and no score depends on it.

    Exit code 1 where runs cannot be scored: a package that every command needs is
    missing. Anything else that is missing or broken, git too, is reported with exit code 0.

    \b
    Example:
      heldout doctor --json
    """
    state = _State(findings=find_parts(os.environ))
    if as_json:
        print_json(_document(state))
    else:
        _print(answers(), state)
    if state.stopping:
        context.exit(1)


def _print(console: Console, state: _State) -> None:
    console.print(_verdict(state))
    console.print()
    _print_parts(console, state)
    console.print()
    advice = [*_trouble_facts(state), *_missing_facts(state)]
    if advice:
        print_facts(console, [*advice, ("", "")])
    print_facts(console, _machine_facts(state))


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


def _name(finding: PartState) -> str:
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
    """Say what is broken, and why."""
    facts = []
    for finding in state.findings:
        if finding.state == "broken":
            facts.append(("broken", f"{finding.part.name}: {finding.why}"))
            facts.append(("", finding.part.get))
    return facts


def _missing_facts(state: _State) -> list[tuple[str, str]]:
    """Return what each missing part would bring and how to get it, said once for parts alike."""
    names: dict[tuple[str, str], list[str]] = {}
    for finding in state.findings:
        if finding.state == "missing":
            key = (finding.part.brings, finding.part.get)
            names.setdefault(key, []).append(finding.part.name)
    facts = []
    for (brings, get), parts in names.items():
        facts += [("missing", ", ".join(parts)), ("", brings), ("", get)]
    return facts


def _machine_facts(state: _State) -> list[tuple[str, str]]:
    base = [finding for finding in state.findings if finding.part.group == "base"]
    versions = ", ".join(f"{f.part.name} {f.version}" for f in base if f.version)
    return [
        ("heldout", f"{heldout.__version__}, Python {platform.python_version()}"),
        ("with", versions or "nothing"),
        ("cores", f"{count_cores()}"),
    ]


def _document(state: _State) -> dict[str, object]:
    return {
        "ok": not state.stopping,
        "version": heldout.__version__,
        "python": platform.python_version(),
        "cores": count_cores(),
        "parts": [_part_json(finding) for finding in state.findings],
    }


def _part_json(finding: PartState) -> dict[str, object]:
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
