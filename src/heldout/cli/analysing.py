"""`heldout analyse`: one explicit table of analyses, each loaded when it is called."""

from collections.abc import Mapping
from importlib import import_module

import click

from heldout.analyses.registry import ANALYSES, load_analysis
from heldout.cli.options import Group

COMMANDS: Mapping[str, str] = {
    **ANALYSES,
    "report": "all of these of a board, the reserve views too, in a private folder",
}
"""Every command with what it answers: the analyses, and the report of all of them."""


class _Analyses(Group):
    """A group whose commands stand in a table and are imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name in ANALYSES:
            from heldout.cli.analyses.command import make_command  # noqa: PLC0415 - heavy, --help is not

            return make_command(load_analysis(cmd_name))
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(
            import_module(f"heldout.cli.analyses.{cmd_name}"), cmd_name
        )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the analyses from the table alone."""
        del ctx
        with formatter.section("Analyses"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Analyses)
def analyse() -> None:
    """Can a ranking be believed? From run files, a table of scores, or a board's vault.

    \b
    Example:
      heldout analyse stability --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 --chart ranks.svg
    """
