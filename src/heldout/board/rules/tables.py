"""What is wrong with a table of board.toml: its keys and the kinds of its values, all at once."""

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from difflib import get_close_matches
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from heldout.errors import quote

__all__ = ["Mistake", "check_table"]

Mistake = tuple[str, str, str, str]
"""Key path as `views[1].set`, what was found there, what is expected, a hint or nothing."""

_SIMPLE: Mapping[type, tuple[type, str]] = {
    inspect.IntType: (int, "a whole number"),
    inspect.FloatType: (float, "a number"),
    inspect.StrType: (str, "text in quotes"),
    inspect.BoolType: (bool, "true or false"),
    inspect.DateType: (date, "a day as 2026-11-01, without quotes"),
}


def check_table(table: Mapping[str, Any], struct: type[msgspec.Struct]) -> Iterator[Mistake]:
    """Hold a table against a struct: unknown and missing keys, and values of a wrong kind.

    Args:
        table: as `tomllib` reads it.
        struct: its attributes are the keys; nested structs, mappings and tuples are followed.
    """
    kind = _layout(struct)
    if isinstance(kind, inspect.StructType):
        yield from _check_keys("", table, kind)


@cache
def _layout(struct: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(struct)


def _check(key: str, value: object, kind: inspect.Type) -> Iterator[Mistake]:
    kind = _given(kind)
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        yield from _check_keys(f"{key}.", value, kind)
    elif isinstance(kind, inspect.DictType) and isinstance(value, dict):
        for name, one in value.items():
            yield from _check(f"{key}.{name}", one, kind.value_type)
    elif isinstance(kind, inspect.VarTupleType) and isinstance(value, list):
        for index, one in enumerate(value):
            yield from _check(f"{key}[{index}]", one, kind.item_type)
    elif not _fits(value, kind):
        yield (key, f"{key} = {quote(value)}", _words(key, kind), "")


def _check_keys(
    prefix: str, table: Mapping[str, Any], kind: inspect.StructType
) -> Iterator[Mistake]:
    fields = {field.encode_name: field for field in kind.fields}
    meant = set()
    for name, value in table.items():
        if name in fields:
            yield from _check(f"{prefix}{name}", value, fields[name].type)
            continue
        close = get_close_matches(name, fields.keys() - table.keys(), 1)
        meant.update(close)
        key = f"{prefix}{name}"
        hint = f"did you mean {close[0]}?" if close else "remove it; docs/board.md has every key"
        yield (key, f"{key}, an unknown key", "one of " + ", ".join(fields), hint)
    for name, field in fields.items():
        if field.required and name not in table and name not in meant:
            key = f"{prefix}{name}"
            yield (key, f"no {key}", _words(key, _given(field.type)), "")


def _given(kind: inspect.Type) -> inspect.Type:
    """The kind of a value that is there: TOML has no null."""
    if isinstance(kind, inspect.UnionType):
        return next(one for one in kind.types if not isinstance(one, inspect.NoneType))
    return kind


def _fits(value: object, kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.LiteralType):
        return value in kind.values
    plain = _SIMPLE.get(type(kind))
    if isinstance(kind, inspect.FloatType):
        return isinstance(value, int | float) and type(value) is not bool and math.isfinite(value)
    if plain is not None and plain[0] is date and isinstance(value, str):
        return _is_day(value)
    return plain is not None and type(value) is plain[0]


def _is_day(text: str) -> bool:
    with suppress(ValueError):
        return bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) and date.fromisoformat(text))
    return False


def _words(key: str, kind: inspect.Type) -> str:
    """What belongs there, for people."""
    if isinstance(kind, inspect.LiteralType):
        return "one of " + ", ".join(f'"{value}"' for value in kind.values)
    if isinstance(kind, inspect.VarTupleType):
        if isinstance(kind.item_type, inspect.StructType):
            return f"a table [[{key}]] for each"
        return f"a list in brackets, each of it {_words(key, kind.item_type)}"
    if isinstance(kind, inspect.DictType):
        return f"a table [{key}.NAME] for each"
    plain = _SIMPLE.get(type(kind))
    return f"a table [{key}]" if plain is None else plain[1]
