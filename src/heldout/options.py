"""An option declared once: its type, its default and its help stand in one options class.

An options class is a frozen dataclass. Each field is one option:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class StabilityOptions:
        samples: Annotated[int, Opt("Number of bootstrap samples.", least=1)] = 1000
        seed: Seed = 0

The command line makes `--samples` and `--seed` of it; Python code calls `StabilityOptions(...)`.
A field whose type is another options class adds that class's options at its place. A `ValueError`
that `__post_init__` raises is wrong usage. The parameters of a command are read the same way.

Nothing here knows of the command line's library.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class Opt:
    """What the type and the default of a field do not say about its option.

    Attributes:
        help: a noun phrase that stands alone. What holds without the option stands at the end in
            brackets where the default is `None`: `Number of processes [one per core].`
        names: as on the command line, `("-m", "--measure")`; without names `--the-field`. Where a
            flag is on by default, `("--no-cache",)` switches it off.
        least, most: bounds that are allowed themselves.
        above, below: bounds that are not.
        choices: the texts that are allowed, where they are no `Literal`.
        metavar: what stands for the value in the help, such as `FILE` or `SECONDS`.
        path: what a `Path` may be, where something is there already.
        exists: whether a `Path` has to be there.
        env: environment variable that is read where the option is not given.
        argument: whether it is given by its position, without a name.
        check: raises `ValueError` for a value that cannot be used.
    """

    help: str = ""
    names: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    path: Literal["any", "file", "folder"] = "any"
    exists: bool = False
    env: str | None = None
    argument: bool = False
    check: Callable[[Any], object] | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """One option, as its field declares it.

    Attributes:
        field: name of the field.
        opt: its declaration.
        type: of one value: `int`, `float`, `str`, `bool`, `Path`, `datetime`, `date`, or the
            choices of a `Literal`.
        many: whether it may be given several times: `tuple[X, ...]`.
        values: how many values it takes at a time: 2 for `tuple[X, X]`.
        default: `MISSING` where it has to be given.
    """

    field: str
    opt: Opt
    type: type[Any] | tuple[Any, ...]
    many: bool
    values: int
    default: Any


@dataclass(frozen=True, slots=True)
class Nested:
    """A field that is an options class itself.

    Attributes:
        field: name of the field.
        made_of: the class.
        options: of the class.
    """

    field: str
    made_of: type[Any]
    options: "tuple[Declared | Nested, ...]"


def options_of(made_of: type[Any]) -> tuple[Declared | Nested, ...]:
    """The options of a class, in the order of its fields.

    Raises:
        TypeError: a field has neither an `Opt` nor an options class as its type.
    """
    hints = get_type_hints(made_of, include_extras=True)
    found = []
    for field in fields(made_of):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        option = option_of(field.name, hints[field.name], default)
        if option is None:
            raise TypeError(f"{made_of.__name__}.{field.name} is no option: annotate it with Opt")
        found.append(option)
    return tuple(found)


def parameters_of(function: Callable[..., Any]) -> Iterator[Declared | Nested]:
    """The options among a function's parameters, in their order; other parameters are left out."""
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        default = MISSING if parameter.default is parameter.empty else parameter.default
        option = option_of(name, hints.get(name), default)
        if option is not None:
            yield option


def option_of(field: str, hint: Any, default: object = MISSING) -> Declared | Nested | None:
    """One option, or a class of options; `None` if its type declares neither."""
    opt = next((one for one in get_args(hint)[1:] if isinstance(one, Opt)), None)
    if opt is None:
        return Nested(field, hint, options_of(hint)) if _has_options(hint) else None
    hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        hint = next(one for one in get_args(hint) if one is not NoneType)
    many, values = False, 1
    if get_origin(hint) is tuple:
        many = get_args(hint)[-1] is Ellipsis
        hint, values = get_args(hint)[0], 1 if many else len(get_args(hint))
        if get_origin(hint) is tuple:
            hint, values = get_args(hint)[0], len(get_args(hint))
    kind = get_args(hint) if get_origin(hint) is Literal else opt.choices or hint
    return Declared(field, opt, kind, many, values, default)


def check_bounds(chosen: object) -> None:
    """Refuse a value outside of what its option allows, where no command line has done so.

    Args:
        chosen: an instance of an options class.

    Raises:
        ValueError: names the field.
    """
    for one in options_of(type(chosen)):
        value = getattr(chosen, one.field)
        if isinstance(one, Nested):
            check_bounds(value)
            continue
        low, high = one.opt.least, one.opt.most
        for number in value if isinstance(value, tuple | list) else (value,):
            if isinstance(number, int | float) and not (
                (low is None or number >= low)
                and (high is None or number <= high)
                and (one.opt.above is None or number > one.opt.above)
                and (one.opt.below is None or number < one.opt.below)
            ):
                raise ValueError(f"{one.field}: {number}; expected {_say_bounds(one.opt)}")


def _say_bounds(opt: Opt) -> str:
    bounds = {"at least": opt.least, "above": opt.above, "at most": opt.most, "below": opt.below}
    return " and ".join(f"{word} {bound}" for word, bound in bounds.items() if bound is not None)


def _has_options(hint: Any) -> bool:
    if not (isinstance(hint, type) and is_dataclass(hint)):
        return False
    return any(
        _has_options(one) or any(isinstance(part, Opt) for part in get_args(one)[1:])
        for one in get_type_hints(hint, include_extras=True).values()
    )


Seed = Annotated[int, Opt("Random seed.", least=0)]
"""`--seed`; its default is 0."""

Level = Annotated[float, Opt("Confidence level of the intervals.", above=0, below=1)]
"""`--level`; its default is 0.95."""

Alpha = Annotated[float, Opt("Significance level.", above=0, below=1)]
"""`--alpha`; its default is 0.05."""

Jobs = Annotated[
    int | None,
    Opt("Number of parallel processes [up to one per core, where it pays].", least=1, metavar="N"),
]
"""`--jobs`; its default is `None`."""

Now = Annotated[
    datetime | None,
    Opt("Pretend that it is this time (UTC).", names=("--now",), metavar="ISO8601"),
]
"""`--now`; its default is `None`, for the clock's time."""

Json = Annotated[bool, Opt("One JSON document.", names=("--json",))]
"""`--json`; its default is `False`."""
