"""`heldout prefer`: one explicit table of its commands, each loaded when it is called."""

from collections.abc import Mapping
from importlib import import_module

import click

__all__ = ["PREFER_COMMANDS", "prefer"]

PREFER_COMMANDS: Mapping[str, str] = {
    "pool": "Begin a campaign: the tops of runs and the known answers.",
    "price": "What judging the pools costs.",
    "tasks": "Draw tasks from the pools: pairs, tests, order and sides.",
    "judge": "Ask a language model as one more judge, and compare it with people.",
    "contests": "Whose first documents do people prefer?",
    "labels": "Labels from preferences, and every run scored again.",
    "maintain": "Keep a board's preference labels alive as new runs come.",
}
"""Every command, with what it does; `heldout.cli.prefer.NAME` has it."""


class _Prefer(click.Group):
    """A group whose commands stand in a table and are imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(PREFER_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in PREFER_COMMANDS:
            return None
        module = import_module(f"heldout.cli.prefer.{cmd_name.replace('-', '_')}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table alone."""
        del ctx
        with formatter.section("Commands, in the order of a campaign"):
            formatter.write_dl(list(PREFER_COMMANDS.items()))


@click.group(cls=_Prefer)
def prefer() -> None:
    """Preference judging: from shallow pools to better labels.

    A campaign is a directory of your own; `heldout serve` shows its pages to judges.

    \b
    Example:
      heldout prefer pool runs/*.gz --qrels dev.qrels --queries dev.tsv \\
      --documents documents.tsv --sample 500 --out campaign
    """
