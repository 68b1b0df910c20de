"""Writes `__init__.pyi` of heldout, judging and survivorship: every public name, from the code.

    python tools/api.py            write them
    python tools/api.py --check    whether they are what the code says; 1 if not

A type checker and an editor read them, and so does a test: a change of the API is a change of them.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from heldout.analyses.analysis import load_analysis
from heldout.api.analyses import _GIVEN, compare, function_of

heldout: Any = import_module("heldout")
SOURCE = Path(__file__).parents[1] / "src"
_HEAD = """\
# The public names of heldout, written by `python tools/api.py`.

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

"""


def format_stub() -> str:
    """The whole file."""
    parts = [_HEAD, *_imports(), "\n", "__version__: str\n", _all()]
    parts += [_function(name) for name in heldout._ANALYSES]
    parts.append(_compare())
    return "".join(parts)


def format_room(room: str) -> str:
    """The file of a package that has functions of its own."""
    package = import_module(room)
    lines = [
        f"from {room}{home} import {name} as {name}\n"
        for home, names in sorted(package._HOMES.items())
        for name in sorted(names)
    ]
    head = f"# The public names of {room}, written by `python tools/api.py`.\n\n"
    names = "".join(f'    "{name}",\n' for name in package.__all__)
    return head + "".join(lines) + f"\n__all__ = [\n{names}]\n"


def _imports() -> Iterator[str]:
    yield "from heldout import judging as judging\n"
    yield "from heldout import survivorship as survivorship\n"
    homes = {**heldout._HOMES, "heldout.api.analyses": ("ScoresLike", "failures")}
    homes["heldout.api.evaluation"] = ("QrelsLike", *homes["heldout.api.evaluation"])
    homes["heldout.analyses.entries"] = ("BoardScores",)
    public = {name for names in heldout._HOMES.values() for name in names}
    for home, names in sorted(homes.items()):
        listed = (f"{name} as {name}" if name in public else name for name in sorted(names))
        yield "".join(f"from {home} import {one}\n" for one in listed)


def _all() -> str:
    names = "".join(f'    "{name}",\n' for name in heldout.__all__)
    return f"__all__ = [\n{names}]\n"


def _function(name: str) -> str:
    analysis = load_analysis(name)
    given = _GIVEN[analysis.source]
    first = [
        (one.arg, ast.unparse(_annotation(one)), _default(given, one.arg))
        for one in _arguments(given)
    ]
    taken = {one for one, _, _ in first}
    signature = inspect.signature(function_of(name))
    others = [
        (one.name, _type(one.annotation), _show(one.default))
        for one in signature.parameters.values()
        if one.name not in taken
    ]
    lines = [f"    {one}: {hint}{default}," for one, hint, default in first]
    lines += ["    *,", *(f"    {one}: {hint}{default}," for one, hint, default in others)]
    return f"\ndef {name}(\n" + "\n".join(lines) + "\n) -> Answer: ...\n"


def _compare() -> str:
    written = {one.arg: one for one in _arguments(compare)}
    lines = []
    for name, one in inspect.signature(compare).parameters.items():
        given = written.get(name)
        hint = _type(one.annotation) if given is None else ast.unparse(_annotation(given))
        lines += ["    *,"] if name == "seed" else []
        lines.append(f"    {name}: {hint}{_show(one.default)},")
    return "\ndef compare(\n" + "\n".join(lines) + "\n) -> Answer: ...\n"


def _annotation(argument: ast.arg) -> ast.expr:
    if argument.annotation is None:
        raise TypeError(argument.arg)
    return argument.annotation


def _arguments(function: Callable[..., Any]) -> list[ast.arg]:
    (tree,) = ast.parse(dedent(inspect.getsource(function))).body
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(function)
    return [*tree.args.args, *tree.args.kwonlyargs]


def _default(function: Callable[..., Any], name: str) -> str:
    return _show(inspect.signature(function).parameters[name].default)


def _show(default: Any) -> str:
    return "" if default is inspect.Parameter.empty else f" = {default!r}"


def _type(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(map(_type, get_args(hint)))
    if get_origin(hint) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(hint)))}]"
    if get_origin(hint) is tuple:
        inside = ("..." if one is Ellipsis else _type(one) for one in get_args(hint))
        return f"tuple[{', '.join(inside)}]"
    return "None" if hint is type(None) else str(hint.__name__)


def main() -> int:
    """Write the files, or compare them."""
    texts = {"heldout": format_stub()}
    texts |= {room: format_room(room) for room in ("heldout.judging", "heldout.survivorship")}
    stubs = {SOURCE / one.replace(".", "/") / "__init__.pyi": text for one, text in texts.items()}
    if "--check" in sys.argv[1:]:
        same = all(
            path.exists() and path.read_text("utf-8") == text for path, text in stubs.items()
        )
        print("as the code" if same else f"differs: python tools/{Path(__file__).name}")
        return 0 if same else 1
    for path, text in stubs.items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
