"""Prints docs/reference/commands.md: python tools/commands.py > docs/reference/commands.md."""

import sys
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from textwrap import dedent

import click

from heldout.cli.program import (
    ANALYSE_COMMANDS,
    BOARD_COMMANDS,
    COMMANDS,
    PREFER_COMMANDS,
    SURVIVE_COMMANDS,
    Command,
    analyse,
    board,
    main,
    prefer,
    survive,
)

HEAD = """# Commands

The program's own help, printed by `python tools/commands.py`. Every command has `--help`, or `-h`.
With `--json`, standard output is one JSON document; progress and notes go to standard error. Exit
code 0: done. 1: the answer is no (a check failed, a submission was refused, some files failed).
2: wrong usage, or nothing that could be read.

An option that takes one value is refused when it is given twice. An unknown command is answered
with the nearest one: after `heldout score` with `evaluate`, after `heldout stability` with
`analyse stability`.

## Shell completion

One line, in the file that your shell reads at its start; it completes commands, options, choices
and file names.

- bash 4.4 or newer, `~/.bashrc`: `eval "$(_HELDOUT_COMPLETE=bash_source heldout)"`
- zsh, `~/.zshrc`: `eval "$(_HELDOUT_COMPLETE=zsh_source heldout)"`
- fish, `~/.config/fish/completions/heldout.fish`: `_HELDOUT_COMPLETE=fish_source heldout | source`
"""


def describe_commands() -> str:
    """The whole page."""
    commands = [
        *_group(COMMANDS, main, ""),
        *_group(ANALYSE_COMMANDS, analyse, "analyse "),
        *_group(BOARD_COMMANDS, board, "board "),
        *_group(PREFER_COMMANDS, prefer, "prefer "),
        *_group(SURVIVE_COMMANDS, survive, "survive "),
    ]
    return "\n".join([HEAD, *commands])


def _group(table: Mapping[str, Command], group: click.Command, prefix: str) -> Iterator[str]:
    context = click.Context(group)
    for name in table:
        command = group.get_command(context, name) if isinstance(group, click.Group) else None
        if command is not None and not isinstance(command, click.Group):
            yield from _command(f"{prefix}{name}", command)


def _command(name: str, command: click.Command) -> Iterator[str]:
    arguments = [
        p.make_metavar(click.Context(command))
        for p in command.params
        if isinstance(p, click.Argument)
    ]
    yield f"## heldout {' '.join([name, *arguments])}\n"
    for paragraph in cleandoc(command.help or "").split("\n\n"):
        yield _paragraph(paragraph) + "\n"
    options = [p for p in command.params if isinstance(p, click.Option)]
    if options:
        yield "| option | meaning |\n| --- | --- |"
        yield "\n".join(_option(option) for option in options) + "\n"


def _paragraph(text: str) -> str:
    """Text as it is; what click must not wrap as a block of its own."""
    if not text.startswith("\b"):
        return text
    lines = text.removeprefix("\b\n").removeprefix("Example:\n")
    return f"```\n{dedent(lines)}\n```"


def _option(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    text = (option.help or "").replace("|", "\\|")
    # "[the one you stand in]" already says what holds without the option.
    default = None if "[" in text else option.default
    shown = (
        isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    )
    return f"| {names} | {text}{f' Default: {default}.' if shown else ''} |"


if __name__ == "__main__":
    sys.stdout.write(describe_commands())
