"""Options of services as keyword arguments, named as on the command line."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING
from inspect import Parameter
from typing import Any, TypeVar, get_args, get_type_hints

from heldout.options import Declared, Nested, check_bounds, options_of

Options = TypeVar("Options")


def keyword_of(option: Declared) -> str:
    """An option's name in Python: `--margin-esl` is `margin_esl`, `-k` is `k`."""
    if option.default is True or not option.opt.names:
        return option.field
    return max(option.opt.names, key=len).lstrip("-").replace("-", "_")


def list_options(made_of: type[Any]) -> Iterator[tuple[str, Declared]]:
    """All options of a class and of the classes in it, by their names in Python."""
    for option in options_of(made_of):
        if isinstance(option, Nested):
            yield from list_options(option.made_of)
        else:
            yield keyword_of(option), option


def build_options(made_of: type[Options], given: Mapping[str, Any]) -> Options:
    """An instance of an options class.

    Args:
        made_of: the class.
        given: values by their names in Python; others keep their defaults.

    Raises:
        TypeError: there is no such option.
        ValueError: a value lies outside of what its option allows.
    """
    known = dict(list_options(made_of))
    if unknown := sorted(given.keys() - known.keys()):
        raise TypeError(f"no option {', '.join(unknown)}; there are {', '.join(known) or 'none'}")
    for name, value in given.items():
        option = known[name]
        choices = option.type if isinstance(option.type, tuple) else ()
        for one in _several(value) if option.many else (value,):
            if choices and one is not None and one not in choices:
                raise ValueError(f"{name}: {one!r} is none of {', '.join(map(repr, choices))}")
    options = _build(made_of, given)
    check_bounds(options)
    return options


def _several(value: Any) -> tuple[Any, ...]:
    """The values of an option that may have several; one may stand alone."""
    alone = isinstance(value, str) or not isinstance(value, Iterable)
    return (value,) if alone else tuple(value)


def _build(made_of: type[Options], given: Mapping[str, Any]) -> Options:
    fields: dict[str, Any] = {}
    for option in options_of(made_of):
        if isinstance(option, Nested):
            fields[option.field] = _build(option.made_of, given)
        elif (name := keyword_of(option)) in given:
            value = given[name]
            fields[option.field] = _several(value) if option.many else value
    return made_of(**fields)


def parameters_of(made_of: type[Any]) -> Iterator[Parameter]:
    """The options of a class as keyword parameters, in their order."""
    for option in options_of(made_of):
        if isinstance(option, Nested):
            yield from parameters_of(option.made_of)
            continue
        hint = get_type_hints(made_of)[option.field]
        if option.many:
            hint = get_args(hint)[0] | hint
        default = Parameter.empty if option.default is MISSING else option.default
        yield Parameter(
            keyword_of(option), Parameter.KEYWORD_ONLY, default=default, annotation=hint
        )


def describe_options(made_of: type[Any]) -> list[str]:
    """The options as lines of a docstring."""
    return [f"    {name}: {option.opt.help}" for name, option in list_options(made_of)]
