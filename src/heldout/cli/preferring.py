"""`heldout prefer`: one explicit table of its commands, each loaded when it is called."""

from collections.abc import Mapping
from importlib import import_module
from keyword import iskeyword

import click

from heldout.cli.options import Group

PREFER_COMMANDS: Mapping[str, str] = {
    "pool": "Begin a campaign: the tops of runs and the known answers.",
    "price": "What judging the pools costs.",
    "tasks": "Draw tasks from the pools: pairs, tests, order and sides.",
    "links": "A link of their own for each judge.",
    "export": "Judgments, tasks and payments in the forms that platforms take.",
    "import": "A platform's results as judgments, and its approvals.",
    "judge": "Ask a language model as one more judge, and compare it with people.",
    "contests": "Whose first documents do people prefer?",
    "strengths": "How much more is one run preferred than another?",
    "bias": "What do judges do beside judging: sides, length, care?",
    "labels": "Labels from preferences, and every run scored again.",
    "report": "The tables and figures of the study, of a campaign.",
    "maintain": "Keep a board's preference labels alive as new runs come.",
    "simulate": "What each way of judging finds, and for how many judgments.",
}
"""Every command, with what it does; `heldout.cli.prefer.NAME` has it."""

_MODULES: Mapping[str, str] = {
    "pool": "judging.pool",
    "price": "judging.pool",
    "tasks": "judging.pool",
    "links": "judging.labels",
    "export": "judging.exchange",
    "import": "judging.exchange",
    "judge": "judging.judge",
    "contests": "judging.studies",
    "strengths": "judging.studies",
    "bias": "judging.studies",
    "labels": "judging.labels",
    "report": "judging.report",
    "maintain": "judging.maintain",
    "simulate": "judging.studies",
}


class _Prefer(Group):
    """A group whose commands stand in a table and are imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(PREFER_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in PREFER_COMMANDS:
            return None
        name = cmd_name.replace("-", "_") + ("_" if iskeyword(cmd_name) else "")
        command: click.Command = getattr(
            import_module(f"heldout.cli.{_MODULES[name.rstrip('_')]}"), name
        )
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
