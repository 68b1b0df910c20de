"""`heldout doctor`: what is installed, and what each missing part would bring."""

import os
import platform
from collections.abc import Sequence

import click

import heldout
from heldout.cli.options import command
from heldout.cli.printing import Console, answers, print_facts, print_json, print_table
from heldout.errors import plural
from heldout.files.process import count_cores
from heldout.installation import PartState, find_parts
from heldout.options import Json


@command
@click.pass_context
def doctor(context: click.Context, *, as_json: Json = False) -> None:
    """Show what is installed, what each missing part would add, and how to get it.

    The compiled scanner of runs is in use where it is there, and no score depends on it.

    Exit code 1 where runs cannot be scored: a package that every command needs is
    missing. Anything else that is missing or broken, git too, is reported with exit code 0.

    \b
    Example:
      heldout doctor --json
    """
    findings = find_parts(os.environ)
    stopping = [one for one in findings if one.stops]
    if as_json:
        print_json(_document(findings))
    else:
        print_findings(answers(), findings)
    if stopping:
        context.exit(1)


def print_findings(console: Console, findings: Sequence[PartState]) -> None:
    """Print a verdict, the parts, what is broken or missing and how to get it, and the machine."""
    console.print(_judge(findings))
    console.print()
    header = ("part", "version", "state", "for")
    rows = [
        (one.part.name, one.version or "-", one.state, one.part.use)
        for one in findings
        if one.part.group != "base" or one.stops
    ]
    print_table(console, header, rows, left=header)
    console.print()
    advice: list[tuple[str, str]] = []
    for one in findings:
        if one.state == "broken":
            advice += [("broken", f"{one.part.name}: {one.why}"), ("", one.part.get)]
    missing: dict[tuple[str, str], list[str]] = {}  # parts alike are named together
    for one in findings:
        if one.state == "missing":
            missing.setdefault((one.part.brings, one.part.get), []).append(one.part.name)
    for (brings, get), parts in missing.items():
        advice += [("missing", ", ".join(parts)), ("", brings), ("", get)]
    base = [one for one in findings if one.part.group == "base" and one.version]
    machine = [
        ("heldout", f"{heldout.__version__}, Python {platform.python_version()}"),
        ("with", ", ".join(f"{one.part.name} {one.version}" for one in base) or "nothing"),
        ("cores", f"{count_cores()}"),
    ]
    print_facts(console, [*advice, *([("", "")] if advice else []), *machine])


def _judge(findings: Sequence[PartState]) -> str:
    if stopping := ", ".join(f"{one.part.name} is {one.state}" for one in findings if one.stops):
        return f"Runs cannot be scored here: {stopping}."
    optional = [one.state for one in findings if one.part.group != "base"]
    missing = optional.count("missing")
    text = "All that scoring runs needs is here"
    if not missing:
        return f"{text}, and no optional part is missing."
    verb = "is" if missing == 1 else "are"
    return f"{text}; {missing} of {plural(len(optional), 'optional part')} {verb} missing."


def _document(findings: Sequence[PartState]) -> dict[str, object]:
    return {
        "ok": not any(one.stops for one in findings),
        "version": heldout.__version__,
        "python": platform.python_version(),
        "cores": count_cores(),
        "parts": [
            {name: getattr(one.part, name) for name in ("name", "group", "brings", "get")}
            | {name: getattr(one, name) for name in ("state", "version", "why")}
            for one in findings
        ],
    }
