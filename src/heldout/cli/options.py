"""Options that are declared once (`heldout.options`), as options of the command line."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from heldout.cli.printing import messages, print_facts
from heldout.errors import OptionError, StoreError
from heldout.options import Declared, Nested, Opt, option_of, options_of, parameters_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

Dask = Annotated[
    str | None,
    Opt("Compute on a Dask cluster: its scheduler, as in tcp://HOST:8786.", metavar="ADDRESS"),
]
"""`--dask`; for `open_cluster`, or `heldout.files.executors.open_executor`."""


def open_cluster(address: str | None) -> AbstractContextManager["Executor | None"]:
    """The executor of the cluster that `--dask` names; `None` without one.

    Raises:
        SetupError: as `heldout.files.executors.open_executor`.
    """
    if address is None:
        return nullcontext()
    from heldout.files.executors import open_executor

    return open_executor(dask=address)


def check_reason(text: str) -> str:
    """The text, if it has a letter or a digit: it stays in the log, and most reasons are public.

    Raises:
        click.BadParameter: it says nothing.
    """
    if not any(map(str.isalnum, text)):
        raise click.BadParameter(f"{text!r} says nothing, and it would stay in the log for good")
    return text


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


def refuse_repeated(command: click.Command, context: click.Context, args: list[str]) -> None:
    """Refuse an option that takes one value and was given several.

    Args:
        command: whose options they are.
        context: its own.
        args: what was written behind its name.

    Raises:
        click.UsageError: names the option.
    """
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


Function = Callable[..., Any]
T = TypeVar("T")

_ATTEMPTS = 3
_FIRST_YEAR, _LAST_YEAR = 2000, 2200


class DecimalRange(click.FloatRange):
    """As click's, and never "not a number": that lies in every range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Raises `click.BadParameter` for what is no finite number of the range."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class _Time(click.ParamType[datetime]):
    """A day or a time of a day, in UTC unless it says another offset; whole seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        try:
            time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time like 2026-11-20T17:10:00Z", param, ctx)
        if not _FIRST_YEAR <= time.year <= _LAST_YEAR:
            self.fail(f"{value!r} is not between {_FIRST_YEAR} and {_LAST_YEAR}", param, ctx)
        utc = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        return utc.replace(microsecond=0)


class _Day(click.ParamType[date]):
    """A day, as 2027-05-20 and in no other way."""

    name = "day"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        try:
            day = value if isinstance(value, date) else date.fromisoformat(value)
        except ValueError:
            day = None
        if day is None or str(day) != str(value):
            self.fail(f"{value!r} is no day like 2027-05-20", param, ctx)
        return day


class Command(click.Command):
    """A command whose parameters declare its options, by themselves or in options classes.

    Where another organiser's event came first it is called again: what it did before it finds done.
    """

    def __init__(self, *args: Any, declared: Sequence[Declared | Nested], **settings: Any) -> None:
        own = [_parameter(one) for option in declared for one in _flat(option)]
        settings["params"] = [*own, *settings["params"]]
        super().__init__(*args, **settings)
        self.declared = declared

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's; what belongs to an options class is passed as one value of it."""
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # a shell completes a line that is not finished
            taken = {option.field: _take(option, ctx.params) for option in self.declared}
            ctx.params.update(taken)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """As click's, again where another organiser was first."""
        invoke = super().invoke
        return persist(lambda: invoke(ctx))


def command(function: Function, **declared: Any) -> Command:
    """Make a command of a function, its options of the parameters that declare some.

    Args:
        function: the command; parameters without an `Opt` are left to other decorators.
        declared: further options: name of a parameter -> an options class; or a type, as
            `heldout.options.Level`, and what is passed if the option is not given.
    """
    others = [
        option_of(name, *one)
        if isinstance(one, tuple)
        else Nested(field=name, made_of=one, options=options_of(one))
        for name, one in declared.items()
    ]
    options = [*parameters_of(function), *(one for one in others if one is not None)]
    return click.command(cls=Command, declared=options)(function)


def persist(step: Callable[[], T]) -> T:
    """Call what opens the organiser's session, again where another organiser was first.

    Raises:
        StoreError: that happened three times.
    """
    for _ in range(_ATTEMPTS):
        try:
            return step()
        except StoreError as error:
            if error.code != "overtaken":
                raise
            text = str(error)
            print_facts(messages(), [("note", text)])
    raise StoreError(f"{_ATTEMPTS} times {text}; call again")


def _flat(option: Declared | Nested) -> Iterator[Declared]:
    if isinstance(option, Declared):
        yield option
    else:
        for one in option.options:
            yield from _flat(one)


def _take(option: Declared | Nested, given: MutableMapping[str, Any]) -> Any:
    if isinstance(option, Declared):
        return given.pop(option.field)
    values = {one.field: _take(one, given) for one in option.options}
    try:
        return option.made_of(**values)
    except (ValueError, OptionError) as error:
        raise click.UsageError(str(error)) from error


def _parameter(option: Declared) -> click.Parameter:
    opt, default = option.opt, option.default
    settings: dict[str, Any] = {
        "type": _type(option),
        "nargs": option.values,
        "metavar": opt.metavar or ("DIR" if opt.path == "folder" and not opt.argument else None),
        "envvar": opt.env,
        "required": default is MISSING,
        "callback": _checked(option) if opt.check else None,
        "shell_complete": _complete_file if option.type is str else None,
    }
    if default is not MISSING:
        settings["default"] = default
    if opt.argument:
        if option.many:
            settings["nargs"] = -1
        return click.Argument([option.field], **settings)
    name = option.field.replace("_", "-")
    names = opt.names or ((f"--{name}/--no-{name}",) if default is True else (f"--{name}",))
    if option.type is bool:
        settings |= {"type": click.BOOL, "is_flag": True}
        if default is True and names[0].startswith("--no-"):
            settings |= {"flag_value": False}
    shown = default not in (MISSING, None, False, "", ()) and settings.get("flag_value") is None
    return click.Option(
        [*names, option.field],
        multiple=option.many,
        show_default=shown,
        help=opt.help,
        **settings,
    )


def _complete_file(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Complete text as the name of a file: many options take a name or a file."""
    return [CompletionItem(incomplete, type="file")]


def _type(option: Declared) -> click.ParamType[Any]:
    opt, kind = option.opt, option.type
    if isinstance(kind, tuple):
        return click.Choice(kind)
    bounds: dict[str, Any] = {
        "min": opt.least if opt.above is None else opt.above,
        "max": opt.most if opt.below is None else opt.below,
        "min_open": opt.above is not None,
        "max_open": opt.below is not None,
    }
    if kind is float:
        return DecimalRange(**bounds)
    if kind is int:
        return click.IntRange(**bounds)
    if kind is Path:
        return click.Path(
            path_type=Path,
            exists=opt.exists,
            file_okay=opt.path != "folder",
            dir_okay=opt.path != "file",
        )
    own = {datetime: _Time, date: _Day}.get(kind)
    return own() if own is not None else click.types.convert_type(kind)


def _checked(option: Declared) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def check(_context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        try:
            if option.opt.check is not None and value is not None:
                option.opt.check(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
        return value

    return check
