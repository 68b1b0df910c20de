"""Options that mean nothing where they were given: refused, and not silently left aside."""

from collections.abc import Collection

import click
from click.core import ParameterSource

__all__ = ["refuse_other_options"]


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
