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
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

import heldout
from heldout.analyses.analysis import ANALYSES, load_analysis
from heldout.cli.options import refuse_repeated
from heldout.cli.printing import prepare_streams, reported_errors, written_out


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command that is loaded late.

    Attributes:
        module: below `heldout.cli`; there the command has its name, "-" as "_"; "" for an analysis.
        group: heading in the help.
        help: one line.
    """

    module: str
    group: str
    help: str


def _read_tables() -> dict[str, dict[str, CommandRow]]:
    """Read name, module and help of each group's commands, below the help's headings."""
    tables, heading = dict[str, dict[str, CommandRow]](), ""
    for line in Path(__file__).with_name("commands.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            table = tables.setdefault(line[1:-1].partition(" ")[2], {})
        elif line.startswith(" "):
            name, module, sentence = line.split(maxsplit=2)
            table[name] = CommandRow(module, heading, sentence)
        else:
            heading = line
    return tables


_REPORT = "all of these of a board, the reserve views too, in a private folder"

GROUPS: Mapping[str, Mapping[str, CommandRow]] = {
    **_read_tables(),
    "analyse": {
        **{name: CommandRow("", "Analyses", question) for name, question in ANALYSES.items()},
        "report": CommandRow("analyses.commands", "Analyses", _REPORT),
    },
}
"""The commands of each group, as `commands.txt` has them; `""` is the program itself."""

ALIASES: Mapping[str, str] = {"analyze": "analyse"}
"""Other spellings, which the help does not list."""

_SETTINGS = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
_EPILOG = "Documentation: docs/reference/commands.md. Start with: heldout demo"


class _Lazy(click.Group):
    """Commands that stand in a table and are imported when called.

    Each takes no option twice where one value counts: click lets the last of several values take
    the place of the others without a word. Flags may stand twice, and options of many values.
    """

    def __init__(self, *args: Any, table: Mapping[str, CommandRow], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        name = ALIASES.get(cmd_name, cmd_name)
        entry = self.table.get(name)
        if entry is None:
            return None
        if not entry.module:
            from heldout.cli.analyses.commands import make_command

            return make_command(load_analysis(name))
        attribute = "import_" if name == "import" else name.replace("-", "_")
        command: click.Command = getattr(import_module(f"heldout.cli.{entry.module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises `click.UsageError` for an unknown command and for an option given twice."""
        if ctx.resilient_parsing:  # a shell completes a line that is not finished
            return super().resolve_command(ctx, args)
        written = args[0]
        if self.get_command(ctx, written) is None and not written.startswith("-"):
            near = " or ".join(self._list_near(written))
            ctx.fail(f"No such command {written!r}." + (f" Did you mean {near}?" if near else ""))
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            refuse_repeated(command, click.Context(command, parent=ctx, info_name=name), rest)
        return name, command, rest

    def _list_near(self, written: str) -> list[str]:
        """List what an unknown name may mean: commands that begin so, else the most similar.

        Commands of other groups are compared too.
        """
        word = written.casefold()
        here = next(name for name, table in GROUPS.items() if table is self.table)
        program = "heldout " if here else ""
        known = dict[str, list[str]]()
        for group, table in GROUPS.items():
            for name in table if group != here else ():
                known.setdefault(name, []).append(program + f"{group} {name}".strip())
        known |= {name: [name] for name in self.table}
        begun = [name for name in self.table if word and name.startswith(word)]
        close = get_close_matches(word, known, n=1)
        return begun or known.get(word.replace("-", "_")) or (known[close[0]] if close else [])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """The names of the table, with what each is for; no command is imported for it."""
        names = [
            CompletionItem(name, help=entry.help)
            for name, entry in self.table.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """As click's; our own errors end in what they say."""
        with reported_errors():
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
    """The program itself, which ends in order whatever happens."""

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
            path = f"{error.filename}: " if error.filename else ""
            where = "" if path else " (--debug shows where)"
            _end(f"error     {path}{error.strerror}{where}", status=2)
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


@click.group(cls=_Program, table=GROUPS[""], epilog=_EPILOG, context_settings=_SETTINGS)
@click.version_option(heldout.__version__, prog_name="heldout")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(**_options: Any) -> None:
    """Leaderboards for ranking and retrieval whose results you can believe."""


@click.group(cls=_Lazy, table=GROUPS["board"])
def board() -> None:
    """Create a board, and look at what its query sets hold.

    \b
    Example:
      heldout board new kb --vault ../kb-vault --dev dev.tsv dev.qrels \\
      --eval eval.tsv eval.qrels -m RR@10
    """


@click.group(cls=_Lazy, table=GROUPS["analyse"])
def analyse() -> None:
    """Can a ranking be believed? From run files, a table of scores, or a board's vault.

    \b
    Example:
      heldout analyse stability --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 --chart ranks.svg
    """


@click.group(cls=_Lazy, table=GROUPS["prefer"])
def prefer() -> None:
    """Preference judging: from shallow pools to better labels.

    A campaign is a directory of your own; `heldout serve` shows its pages to judges.

    \b
    Example:
      heldout prefer pool runs/*.gz --qrels dev.qrels --queries dev.tsv \\
      --documents documents.tsv --sample 500 --out campaign
    """


@click.group(cls=_Lazy, table=GROUPS["survive"])
def survive() -> None:
    """Who was left out when annotators saw only the top of one system.

    An annotation is a record of what annotators were shown, in order, and what they selected.

    \b
    Example:
      heldout survive depths --annotations depth-qrels/ --runs 'runs/*.gz' -m RR@10
    """
