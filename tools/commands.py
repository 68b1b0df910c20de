"""Prints docs/reference/commands.md: python tools/commands.py > docs/reference/commands.md."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from textwrap import dedent

import click

from heldout.cli.program import GROUPS, CommandRow, analyse, board, main, prefer, survive

HEAD = """# Commands

The program's own help, printed by `python tools/commands.py`. Every command has `--help`, or `-h`.
With `--json`, standard output is one JSON document; progress and notes go to standard error. Exit
code 0: done. 1: the answer is no (a check failed, a submission was refused, some files failed).
2: wrong usage, or nothing that could be read.

An option that takes one value is refused when it is given twice. An unknown command is answered
with the nearest one: after `heldout eval` with `evaluate`, after `heldout stability` with
`analyse stability`.

## Shell completion

One line, in the file that your shell reads at its start; it completes commands, options, choices
and file names.

- bash 4.4 or newer, `~/.bashrc`: `eval "$(_HELDOUT_COMPLETE=bash_source heldout)"`
- zsh, `~/.zshrc`: `eval "$(_HELDOUT_COMPLETE=zsh_source heldout)"`
- fish, `~/.config/fish/completions/heldout.fish`: `_HELDOUT_COMPLETE=fish_source heldout | source`
"""


COMMON = """## Options of many commands

Where a command has one of these, its section names it after "Also".

| option | meaning |
| --- | --- |
"""

MANY = 8
"""As many commands have an option, with the same help and default, before it is listed once."""

SECTIONS = {
    "start": "Begin",
    "files": "Score and compare runs",
    "labels": "Judging pages",
    "participant": "Take part",
    "organiser": "Run a board",
    "analyse": "Analyses: `heldout analyse`",
    "board": "Create and maintain a board: `heldout board`",
    "prefer": "Judging: `heldout prefer`",
    "survive": "Survivorship: `heldout survive`",
}
"""Groups of the program's help, then its groups of commands -> heading."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A command as the page has it.

    Attributes:
        section: a key of `SECTIONS`.
        title: how it is called, with its arguments.
        help: one line.
        command: its options and its help.
    """

    section: str
    title: str
    help: str
    command: click.Command


def describe_commands() -> str:
    """The whole page: a list of all commands, then each with its options."""
    entries = [
        *_list(GROUPS[""], main, ""),
        *_list(GROUPS["analyse"], analyse, "analyse"),
        *_list(GROUPS["board"], board, "board"),
        *_list(GROUPS["prefer"], prefer, "prefer"),
        *_list(GROUPS["survive"], survive, "survive"),
    ]
    rows = Counter(_option(option) for entry in entries for option in _options(entry))
    # Of two helps of one name, the more frequent one: "Also" gives the name alone.
    names = {_names(row): row for row, count in reversed(rows.most_common()) if count >= MANY}
    common = [row for row in rows if row in names.values()]
    parts = [HEAD, COMMON + "\n".join(common) + "\n"]
    for section, heading in SECTIONS.items():
        chosen = [entry for entry in entries if entry.section == section]
        parts += [f"## {heading}\n", _overview(chosen)]
        for entry in chosen:
            parts += _describe(entry, common)
    return "\n".join(parts)


def _list(table: Mapping[str, CommandRow], group: click.Command, prefix: str) -> Iterator[_Entry]:
    context = click.Context(group)
    for name, one in table.items():
        command = group.get_command(context, name) if isinstance(group, click.Group) else None
        if command is not None and not isinstance(command, click.Group):
            arguments = [
                parameter.make_metavar(click.Context(command))
                for parameter in command.params
                if isinstance(parameter, click.Argument)
            ]
            title = " ".join(["heldout", *([prefix] if prefix else []), name, *arguments])
            yield _Entry(prefix or one.group, title, one.help, command)


def _overview(entries: Sequence[_Entry]) -> str:
    rows = [f"| [{entry.title}](#{_anchor(entry.title)}) | {entry.help} |" for entry in entries]
    return "\n".join(["| command | what it does |", "| --- | --- |", *rows, ""])


def _anchor(title: str) -> str:
    """The anchor that forges and the site give a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _describe(entry: _Entry, common: Sequence[str]) -> Iterator[str]:
    yield f"### {entry.title}\n"
    for paragraph in cleandoc(entry.command.help or "").split("\n\n"):
        yield _paragraph(paragraph) + "\n"
    rows = [_option(option) for option in _options(entry)]
    if own := [row for row in rows if row not in common]:
        yield "| option | meaning |\n| --- | --- |"
        yield "\n".join(own) + "\n"
    if also := [_names(row) for row in rows if row in common]:
        yield f"Also [{', '.join(also)}](#options-of-many-commands).\n"


def _names(row: str) -> str:
    return row.split(" | ", maxsplit=1)[0].removeprefix("| ")


def _options(entry: _Entry) -> list[click.Option]:
    return [p for p in entry.command.params if isinstance(p, click.Option)]


def _paragraph(text: str) -> str:
    """Text as it is; what click must not wrap as a block of its own."""
    if not text.startswith("\b"):
        return _link(text)
    lines = text.removeprefix("\b\n").removeprefix("Example:\n")
    return f"```\n{dedent(lines)}\n```"


def _link(text: str) -> str:
    """Text in which the pages that it names are links."""
    return re.sub(r"\bdocs/([a-z-]+/[a-z-]+\.md)", r"[\g<0>](../\1)", text)


def _option(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    text = _link((option.help or "").replace("|", "\\|"))
    # "[the one you stand in]" already says what holds without the option.
    default = None if "[" in text else option.default
    shown = (
        isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    )
    return f"| {names} | {text}{f' Default: {default}.' if shown else ''} |"


if __name__ == "__main__":
    sys.stdout.write(describe_commands())
