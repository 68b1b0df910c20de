"""The program: one explicit table of commands, each loaded when it is called.

`heldout --help` imports none of numpy, scipy or torch.
"""

import atexit
import gc
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

import heldout
from heldout.analyses.analysis import ANALYSES, load_analysis
from heldout.cli.options import CommandGroup
from heldout.cli.printing import prepare_streams, reports_errors, written_out


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
    "doctor": Command("doctor:doctor", "start", "What is installed, and what is missing."),
    "evaluate": Command("evaluation:evaluate", "files", "Score run files."),
    "validate": Command(
        "evaluation:validate", "files", "Every problem of a run file, with its line."
    ),
    "compare": Command("analyses.commands:compare", "files", "Is one run better than another?"),
    "analyse": Command("program:analyse", "files", "Can a ranking be believed?"),
    "rank": Command("ranking:rank", "files", "Make a run."),
    "prefer": Command("program:prefer", "labels", "Preference judging, for better labels."),
    "survive": Command("program:survive", "labels", "Who was left out by shallow labels?"),
    "serve": Command("serving:serve", "labels", "The pages of a campaign or a board."),
    "register": Command("board.registering:register", "participant", "Register a team, once."),
    "draft": Command("board.participant:draft", "participant", "A dated id, its folder, metadata."),
    "check": Command("board.participant:check", "participant", "The organisers' own checks."),
    "pack": Command("board.participant:pack", "participant", "Seal a draft and look at it first."),
    "submit": Command("board.participant:submit", "participant", "Check, seal and send a draft."),
    "status": Command("board.participant:status", "participant", "How far a submission has come."),
    "amend": Command("board.participant:amend", "participant", "New metadata under the same key."),
    "withdraw": Command("board.participant:withdraw", "participant", "Take a submission back."),
    "board": Command("program:board", "organiser", "Create a board; look at its sets."),
    "inbox": Command("board.inbox:inbox", "organiser", "Take in what has arrived; what waits."),
    "invite": Command("serving:invite", "organiser", "A link by which a team joins."),
    "run": Command("board.inbox:run", "organiser", "Run a program that was sent for runs."),
    "review": Command("board.organiser:review", "organiser", "Open, score, show findings."),
    "publish": Command(
        "board.organiser:publish", "organiser", "Release the score; the page follows."
    ),
    "reject": Command("board.organiser:reject", "organiser", "Refuse a submission, with a reason."),
    "ask": Command("board.organiser:ask", "organiser", "Put a question to the team."),
    "correct": Command("board.organiser:correct", "organiser", "An erratum to a published entry."),
    "extend": Command("board.organiser:extend", "organiser", "Move the end of an embargo."),
    "rebuild": Command("board.organiser:rebuild", "organiser", "Make everything public again."),
    "redteam": Command(
        "redteam:redteam", "organiser", "Attacks against the release, before it opens."
    ),
    "audit": Command("board.trust:audit", "organiser", "Verify logs, a receipt, an archive."),
    "archive": Command("board.trust:archive", "organiser", "Close the board and open it."),
    "backup": Command("board.backups:backup", "organiser", "Board, vault, database in one file."),
    "restore": Command("board.backups:restore", "organiser", "Restore a backup, or check it."),
}
"""Every command of the program."""

ALIASES: Mapping[str, str] = {"analyze": "analyse"}
"""Other spellings, which the help does not list."""

BOARD_COMMANDS: Mapping[str, Command] = {
    "new": Command("board.creating:new", "board", "Make a board and its vault."),
    "describe": Command("board.creating:describe", "board", "What the query sets hold."),
    "baseline": Command("board.creating:baseline", "board", "Show an organiser's own run."),
    "publish-page": Command(
        "board.creating:publish_page", "board", "Put the page on GitHub or GitLab Pages."
    ),
    "finalists": Command("board.organiser:finalists", "board", "Name the entries of the final."),
    "final": Command("board.organiser:final", "board", "Open the final: its scores, and who wins."),
    "teams": Command("board.registering:teams", "board", "Who has registered."),
    "revoke": Command("board.registering:revoke", "board", "End a team's registration."),
    "rekey": Command("board.trust:rekey", "board", "Change the organisers' keys."),
    "signer": Command("board.trust:signer", "board", "Print the key with which you sign events."),
    "timestamp": Command("board.trust:timestamp", "board", "Have an authority stamp the log."),
    "import-msmarco": Command(
        "board.creating:import_msmarco", "board", "Make a record of an old MS MARCO board."
    ),
}
"""The commands of `heldout board`."""

_CAMPAIGN = "commands, in the order of a campaign"

PREFER_COMMANDS: Mapping[str, Command] = {
    "pool": Command(
        "judging.campaign:pool",
        _CAMPAIGN,
        "Start a campaign: the tops of runs and the known answers.",
    ),
    "price": Command("judging.campaign:price", _CAMPAIGN, "What judging the pools costs."),
    "tasks": Command(
        "judging.campaign:tasks",
        _CAMPAIGN,
        "Draw tasks from the pools: pairs, tests, order and sides.",
    ),
    "links": Command("judging.campaign:links", _CAMPAIGN, "A link of their own for each judge."),
    "export": Command(
        "judging.campaign:export",
        _CAMPAIGN,
        "Judgments, tasks and payments in the forms that platforms take.",
    ),
    "import": Command(
        "judging.campaign:import_",
        _CAMPAIGN,
        "A platform's results as judgments, and its approvals.",
    ),
    "judge": Command(
        "judging.labels:judge",
        _CAMPAIGN,
        "Ask a language model as one more judge, and compare it with people.",
    ),
    "contests": Command(
        "judging.labels:contests", _CAMPAIGN, "Whose first documents do people prefer?"
    ),
    "strengths": Command(
        "judging.labels:strengths", _CAMPAIGN, "How much more is one run preferred than another?"
    ),
    "bias": Command(
        "judging.labels:bias", _CAMPAIGN, "What do judges do beside judging: sides, length, care?"
    ),
    "labels": Command(
        "judging.labels:labels", _CAMPAIGN, "Labels from preferences, and every run scored again."
    ),
    "report": Command(
        "judging.labels:report", _CAMPAIGN, "The tables and figures of the study, of a campaign."
    ),
    "maintain": Command(
        "judging.campaign:maintain",
        _CAMPAIGN,
        "Update a board's preference labels as new runs come.",
    ),
}
"""The commands of `heldout prefer`."""

SURVIVE_COMMANDS: Mapping[str, Command] = {
    "depths": Command(
        "survivorship:depths", "commands", "Scores on the labels of a shallower annotation."
    ),
    "types": Command("survivorship:types", "commands", "Which types of queries were discarded?"),
    "triage": Command(
        "survivorship:triage",
        "commands",
        "Why was a query discarded? Pages that ask, and the counts.",
    ),
    "answerable": Command(
        "survivorship:answerable",
        "commands",
        "Could other systems have answered the discarded queries?",
    ),
    "triples": Command(
        "survivorship:triples",
        "commands",
        "Training triples that a shallower annotation would have left.",
    ),
    "train": Command(
        "survivorship:train",
        "commands",
        "Re-rankers trained on them, compared; learning curves.",
    ),
}
"""The commands of `heldout survive`."""

ANALYSE_COMMANDS: Mapping[str, Command] = {
    **{name: Command("", "Analyses", question) for name, question in ANALYSES.items()},
    "report": Command(
        "analyses.commands:report",
        "Analyses",
        "all of these of a board, the reserve views too, in a private folder",
    ),
}
"""The commands of `heldout analyse`: the analyses, and the report of all of them."""

GROUPS: Mapping[str, Mapping[str, Command]] = {
    "": COMMANDS,
    "analyse": ANALYSE_COMMANDS,
    "board": BOARD_COMMANDS,
    "prefer": PREFER_COMMANDS,
    "survive": SURVIVE_COMMANDS,
}
"""The commands of each group; `""` is the program itself."""

OTHER_NAMES: Mapping[str, str] = {
    "accept": "publish",
    "analysis": "analyse",
    "attack": "redteam",
    "bootstrap": "analyse stability",
    "create": "board new",
    "diff": "compare",
    "docker": "run",
    "encrypt": "pack",
    "evaluator": "evaluate",
    "execute": "run",
    "help": "--help",
    "index": "rank",
    "init": "board new",
    "ir_measures": "evaluate",
    "kappa": "analyse agreement",
    "kendall": "analyse agreement",
    "leaderboard": "rebuild",
    "lint": "validate",
    "measure": "evaluate",
    "podman": "run",
    "rerank": "rank",
    "retract": "withdraw",
    "retrieve": "rank",
    "score": "evaluate",
    "search": "rank",
    "send": "submit",
    "server": "serve",
    "significance": "compare",
    "signup": "register",
    "tau": "analyse agreement",
    "trec_eval": "evaluate",
    "ttest": "compare",
    "tutorial": "demo",
    "upload": "submit",
    "verify": "audit",
    "version": "--version",
}
"""Names that other programs have for a command, and what follows `heldout` here."""

_SETTINGS = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
_EPILOG = "Documentation: docs/reference/commands.md. Start with: heldout demo"


class _Lazy(CommandGroup):
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

    def near(self, ctx: click.Context, written: str) -> list[str]:
        """As `Group.near`, and commands of other groups or under the names of other programs."""
        word = written.casefold()
        own = {name: [name] for name in self.list_commands(ctx)}
        begun = [name for name in own if word and name.startswith(word)]
        known = self._elsewhere() | own
        close = get_close_matches(word, known, n=1)
        return begun or known.get(word.replace("-", "_")) or (known[close[0]] if close else [])

    def _elsewhere(self) -> dict[str, list[str]]:
        """Return what to type for words that are no command of this group."""
        here = next(name for name, table in GROUPS.items() if table is self.table)
        program = "heldout " if here else ""
        meant = {word: [program + other] for word, other in OTHER_NAMES.items()}
        for group, table in GROUPS.items():
            for name in table if group != here else ():
                meant.setdefault(name, []).append(program + f"{group} {name}".strip())
        return meant

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """The names of the table, with what each is for; no command is imported for it."""
        names = [
            CompletionItem(name, help=entry.help)
            for name, entry in self.table.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    @reports_errors
    def invoke(self, ctx: click.Context) -> Any:
        """As click's; our own errors end in what they say."""
        return super().invoke(ctx)

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
        # A log of 100,000 events is a million objects, none of which is garbage: looking for some
        # at every 700 new ones takes an eighth of the time.
        gc.set_threshold(50_000, 20, 20)
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


def run() -> None:
    """The command line as a process of its own, which ends without freeing its memory.

    The system takes it back whole. One by one, the objects of a board of 10,000 entries take a
    tenth of the time of `heldout publish`.
    """
    status: list[int] = []

    def leave() -> None:
        if status:
            with suppress(OSError):
                sys.stderr.flush()
            with suppress(OSError):
                sys.stdout.flush()
            os._exit(status[0])

    atexit.register(leave)  # before any other, so that it is called after all others
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int):
            status.append(end.code)
        raise


def _end(words: str, *, status: int) -> NoReturn:
    click.echo(words, err=True)
    sys.exit(status)


def _is_interrupted(error: BaseException | None) -> bool:
    """Check whether Ctrl-C is behind an error: some libraries make an ImportError of it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


class _Board(_Lazy):
    table = BOARD_COMMANDS


class _Analyse(_Lazy):
    table = ANALYSE_COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in ANALYSES:
            return super().get_command(ctx, cmd_name)
        from heldout.cli.analyses.commands import make_command

        return make_command(load_analysis(cmd_name))


class _Prefer(_Lazy):
    table = PREFER_COMMANDS


class _Survive(_Lazy):
    table = SURVIVE_COMMANDS


@click.group(cls=_Program, epilog=_EPILOG, context_settings=_SETTINGS)
@click.version_option(heldout.__version__, prog_name="heldout")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(**_options: Any) -> None:
    """Leaderboards for ranking and retrieval whose results you can believe."""


@click.group(cls=_Board)
def board() -> None:
    """Create a board, and look at what its query sets hold.

    \b
    Example:
      heldout board new kb --vault ../kb-vault --dev dev.tsv dev.qrels \\
      --eval eval.tsv eval.qrels -m RR@10
    """


@click.group(cls=_Analyse)
def analyse() -> None:
    """Can a ranking be believed? From run files, a table of scores, or a board's vault.

    \b
    Example:
      heldout analyse stability --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 --chart ranks.svg
    """


@click.group(cls=_Prefer)
def prefer() -> None:
    """Preference judging: from shallow pools to better labels.

    A campaign is a directory of your own; `heldout serve` shows its pages to judges.

    \b
    Example:
      heldout prefer pool runs/*.gz --qrels dev.qrels --queries dev.tsv \\
      --documents documents.tsv --sample 500 --out campaign
    """


@click.group(cls=_Survive)
def survive() -> None:
    """Who was left out when annotators saw only the top of one system.

    An annotation is a record of what annotators were shown, in order, and what they selected.

    \b
    Example:
      heldout survive depths --annotations depth-qrels/ --runs 'runs/*.gz' -m RR@10
    """
