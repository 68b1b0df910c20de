"""`heldout survive`: one explicit table of its commands, each loaded when it is called."""

from collections.abc import Mapping
from importlib import import_module

import click

from heldout.cli.options import Group

SURVIVE_COMMANDS: Mapping[str, str] = {
    "depths": "Scores on the labels of a shallower annotation.",
    "types": "Which types of queries were discarded?",
    "triage": "Why was a query discarded? Pages that ask, and the counts.",
    "answerable": "Could other systems have answered the discarded queries?",
    "triples": "Training triples that a shallower annotation would have left.",
    "train": "Re-rankers trained on them, compared; learning curves.",
}
"""Every command, with what it does; `heldout.cli.survive.NAME` has it."""

_MODULES: Mapping[str, str] = {
    "depths": "survivorship.depths",
    "types": "survivorship.depths",
    "triage": "survivorship.triage",
    "answerable": "survivorship.answerable",
    "triples": "survivorship.train",
    "train": "survivorship.train",
}


class _Survive(Group):
    """A group whose commands stand in a table and are imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(SURVIVE_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in SURVIVE_COMMANDS:
            return None
        command: click.Command = getattr(
            import_module(f"heldout.cli.{_MODULES[cmd_name.rstrip('_')]}"), cmd_name
        )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table alone."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(SURVIVE_COMMANDS.items()))


@click.group(cls=_Survive)
def survive() -> None:
    """Who was left out when annotators saw only the top of one system.

    An annotation is a record of what annotators were shown, in order, and what they selected.

    \b
    Example:
      heldout survive depths --annotations depth-qrels/ --runs 'runs/*.gz' -m RR@10
    """
