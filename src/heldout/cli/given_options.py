"""Options that mean nothing where they were given: refused, and not silently left aside."""

from collections import Counter
from collections.abc import Collection
from difflib import get_close_matches

import click
from click.core import ParameterSource

__all__ = ["Group", "refuse_other_options"]


def refuse_other_options(allowed: Collection[str], *, why: str) -> None:
    """Refuse what was given to the present command on its command line, and does not belong there.

    Args:
        allowed: parameters that may be given, by the names of their values, as `as_json`.
        why: what the command was told to do, as `--ranks FILE is judged already`.

    Raises:
        click.UsageError: names the options that do not belong to it.
    """
    context = click.get_current_context()
    found = [
        _name(one)
        for one in context.command.get_params(context)
        if one.name not in allowed
        and context.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE
    ]
    if found:
        raise click.UsageError(f"{why}: without {', '.join(found)}")


def _name(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len)


class Group(click.Group):
    """Commands that take no option twice where one value counts; names the nearest commands.

    click lets the last of several values take the place of the others without a word. Flags may
    stand twice, and options that take many values.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises `click.UsageError` for an unknown command and for an option given twice."""
        written = args[0]
        if self.get_command(ctx, written) is None and not written.startswith("-"):
            near = _near(written, self.list_commands(ctx))
            ctx.fail(f"No such command {written!r}." + (f" Did you mean {near}?" if near else ""))
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _refuse_repeated(command, click.Context(command, parent=ctx, info_name=name), rest)
        return name, command, rest


def _near(written: str, names: Collection[str]) -> str:
    begun = [name for name in names if written and name.startswith(written)]
    return " or ".join(begun or get_close_matches(written, names, n=1))


def _refuse_repeated(command: click.Command, context: click.Context, args: list[str]) -> None:
    _, _, given = command.make_parser(context).parse_args(list(args))
    if command.get_help_option(context) in given:
        return
    for option, times in Counter(given).items():
        one_value = isinstance(option, click.Option) and not (
            option.multiple or option.is_flag or option.count
        )
        if one_value and times > 1:
            raise click.UsageError(
                f"{_name(option)} is given {times} times, and takes one value: give it once",
                ctx=context,
            )
