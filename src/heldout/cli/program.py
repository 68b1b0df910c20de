"""The program: one explicit table of commands, each loaded when it is called.

`heldout --help` imports none of numpy, scipy or torch.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

import click

import heldout
from heldout.cli.options import Group
from heldout.cli.printing import prepare_streams, written_out


@dataclass(frozen=True, slots=True)
class Command:
    """A command that is loaded late.

    Attributes:
        place: `module:attribute` below `heldout.cli`.
        group: heading in the help.
        help: one line.
    """

    place: str
    group: str
    help: str


COMMANDS: Mapping[str, Command] = {
    "demo": Command("demo:demo", "start", "The whole story on the embedded collection."),
    "doctor": Command("doctor:doctor", "start", "What is installed, what is missing, how fast."),
    "evaluate": Command("evaluation:evaluate", "files", "Score run files."),
    "validate": Command(
        "evaluation:validate", "files", "Every problem of a run file, with its line."
    ),
    "compare": Command("comparison:compare", "files", "Is one run better than another?"),
    "analyse": Command("analysing:analyse", "files", "Can a ranking be believed?"),
    "rank": Command("ranking:rank", "files", "Make a run."),
    "prefer": Command("preferring:prefer", "labels", "Preference judging, for better labels."),
    "survive": Command("surviving:survive", "labels", "Who was left out by shallow labels?"),
    "serve": Command("serving:serve", "labels", "The judging pages of a campaign."),
    "register": Command("board.registering:register", "participant", "Register a team, once."),
    "draft": Command("board.drafting:draft", "participant", "A dated id, its folder, metadata."),
    "check": Command("board.drafting:check", "participant", "The organisers' own checks."),
    "pack": Command("board.sending:pack", "participant", "Seal a draft and look at it first."),
    "submit": Command("board.sending:submit", "participant", "Check, seal and send a draft."),
    "status": Command("board.sending:status", "participant", "How far a submission has come."),
    "amend": Command("board.sending:amend", "participant", "New metadata under the same key."),
    "withdraw": Command("board.sending:withdraw", "participant", "Take a submission back."),
    "board": Command("program:board", "organiser", "Found a board; look at its sets."),
    "inbox": Command("board.inbox:inbox", "organiser", "Take in what has arrived; what waits."),
    "review": Command("board.organiser:review", "organiser", "Open, score, show findings."),
    "publish": Command(
        "board.organiser:publish", "organiser", "Release the score; the page follows."
    ),
    "reject": Command("board.organiser:reject", "organiser", "Refuse a submission, with a reason."),
    "ask": Command("board.organiser:ask", "organiser", "Put a question to the team."),
    "correct": Command("board.organiser:correct", "organiser", "An erratum to a published entry."),
    "extend": Command("board.organiser:extend", "organiser", "Move the end of an embargo."),
    "rebuild": Command("board.organiser:rebuild", "organiser", "Make everything public anew."),
    "redteam": Command(
        "redteam:redteam", "organiser", "Attacks against the release, before it opens."
    ),
    "audit": Command("board.trust:audit", "organiser", "Verify logs, a receipt, an archive."),
    "archive": Command("board.trust:archive", "organiser", "Close the board and open it."),
}
"""Every command of the program."""

ALIASES: Mapping[str, str] = {"analyze": "analyse"}
"""Other spellings, which the help does not list."""

BOARD_COMMANDS: Mapping[str, Command] = {
    "new": Command("board.founding:new", "board", "Make a board and its vault."),
    "describe": Command("board.founding:describe", "board", "What the query sets hold."),
    "baseline": Command("board.founding:baseline", "board", "Show an organiser's own run."),
    "finalists": Command("board.organiser:finalists", "board", "Name the entries of the final."),
    "final": Command("board.organiser:final", "board", "Open the final: its scores, and who wins."),
    "teams": Command("board.registering:teams", "board", "Who has registered."),
    "revoke": Command("board.registering:revoke", "board", "End a team's registration."),
    "rekey": Command("board.trust:rekey", "board", "Change the organisers' keys."),
    "signer": Command("board.trust:signer", "board", "Print the key with which you sign events."),
    "timestamp": Command("board.trust:timestamp", "board", "Have an authority stamp the log."),
    "import-msmarco": Command(
        "board.founding:import_msmarco", "board", "Make a record of an old MS MARCO board."
    ),
}
"""The commands of `heldout board`."""

_SETTINGS = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
_EPILOG = "Documentation: docs/commands.md. Start with: heldout demo"


class _Lazy(Group):
    """A group whose commands stand in a table and are imported when called."""

    table: Mapping[str, Command]

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        entry = self.table.get(ALIASES.get(cmd_name, cmd_name))
        if entry is None:
            return None
        module, name = entry.place.split(":")
        command: click.Command = getattr(import_module(f"heldout.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under their headings, from the table alone."""
        del ctx
        for group in dict.fromkeys(entry.group for entry in self.table.values()):
            with formatter.section(group):
                formatter.write_dl(
                    [(name, e.help) for name, e in self.table.items() if e.group == group]
                )


class _Program(_Lazy):
    table = COMMANDS

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """As click's; Ctrl-C and what cannot be printed end in a line, not in a traceback."""
        prepare_streams()
        try:
            with written_out():
                return super().main(*args, **kwargs)
        except OSError as error:
            if error.strerror is None or "--debug" in sys.argv:
                raise
            place = f"{error.filename}: " if error.filename else ""
            where = "" if place else " (--debug shows where)"
            _end(f"error     {place}{error.strerror}{where}", status=2)
        except Exception as error:
            if not _is_interrupted(error):
                raise
            _end("Aborted!", status=1)


def _end(words: str, *, status: int) -> NoReturn:
    click.echo(words, err=True)
    sys.exit(status)


def _is_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: some libraries make an ImportError of it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


class _Board(_Lazy):
    table = BOARD_COMMANDS


@click.group(cls=_Program, epilog=_EPILOG, context_settings=_SETTINGS)
@click.version_option(heldout.__version__, prog_name="heldout")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(**_options: Any) -> None:
    """Leaderboards for ranking and retrieval that stay valid."""


@click.group(cls=_Board)
def board() -> None:
    """Found a board, and look at what its query sets hold.

    \b
    Example:
      heldout board new kb --vault ../kb-vault --dev dev.tsv dev.qrels \\
      --eval eval.tsv eval.qrels -m RR@10
    """
