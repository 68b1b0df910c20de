"""Docstrings of modules without source, read by importing them in a process of its own.

`stdlib_docs` starts this file as a script, isolated and without `site`: it reads a JSON list
of module names from standard input and writes one JSON document,
`{"docstrings": [[name, text], ...], "skipped": [[module, reason], ...]}`. It must not import
anything of heldout.
"""

import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from types import ModuleType


def module_docstrings(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Names and docstrings of a module, its own classes and functions, and their members.

    Args:
        module: an imported built-in or extension module.

    Yields:
        Dotted name and docstring. What the module only re-exports is left to its owner, and
        so are constants, whose docstring is that of their type.
    """
    yield from _documented(module.__name__, vars(module).get("__doc__"))
    for name, value in sorted(vars(module).items()):
        if getattr(value, "__module__", None) not in (module.__name__, None):
            continue
        if inspect.isclass(value):
            yield from _class_docstrings(f"{module.__name__}.{name}", value)
        elif inspect.isroutine(value):
            yield from _documented(f"{module.__name__}.{name}", value.__doc__)


def main() -> None:
    """Import the modules named on standard input; write what was found to standard output."""
    docstrings: list[tuple[str, str]] = []
    skipped: list[tuple[str, str]] = []
    for name in json.load(sys.stdin):
        try:
            module = importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - a broken module may raise anything
            skipped.append((name, f"{type(error).__name__}: {error}"))
        else:
            docstrings.extend(module_docstrings(module))
    json.dump({"docstrings": docstrings, "skipped": skipped}, sys.stdout)


def _class_docstrings(name: str, owner: type) -> Iterator[tuple[str, str]]:
    members = dict(vars(owner))
    yield from _documented(name, members.pop("__doc__", None))
    for member, value in sorted(members.items()):
        described = inspect.isroutine(value) or inspect.isdatadescriptor(value)
        if described or isinstance(value, classmethod | staticmethod):
            yield from _documented(f"{name}.{member}", getattr(value, "__doc__", None))


def _documented(name: str, text: object) -> Iterator[tuple[str, str]]:
    if isinstance(text, str) and text.strip():
        yield name, text


if __name__ == "__main__":
    main()
