"""Chooses what `heldout demo --files` writes: docstrings that several Pythons have in common.

    python tools/stdlib_sample.py LIBRARY... > src/heldout/collections/stdlib_sample.tsv

A LIBRARY is the folder of a standard library, such as /usr/lib/python3.13. A docstring is taken if
all of them have it in the same module; so every reader gets the same files. The table has names
of modules and ids, and no text: the text is read from the Python that runs.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from heldout.collections.collection import Collection, split_queries
from heldout.collections.stdlib_docs import Docstring, build_collection, read_module

_MODULES = 60
_QUERIES = 400
_SEED = 18
# Some systems ship these in packages of their own.
_APART = {"tkinter", "turtle", "idlelib", "lib2to3", "distutils", "ensurepip", "venv", "curses"}
# Python 3.14 took classes out of these.
_SHRINKING = {"asyncio.events", "asyncio.unix_events", "importlib.abc", "urllib.request"}


def main() -> None:
    """Print the table."""
    first, *others = [dict(_docstrings(Path(folder))) for folder in sys.argv[1:]]
    shared = first.keys() & set.intersection(*(set(other) for other in others))
    modules = {name for name, _ in Counter(name for name, _ in shared).most_common(_MODULES)}
    chosen = [first[key] for key in shared if key[0] in modules]
    for module in sorted(modules):
        print("module", module, sep="\t")
    _print_ids(build_collection(chosen))


def _docstrings(library: Path) -> Iterator[tuple[tuple[str, str], Docstring]]:
    for path in sorted(library.rglob("*.py")):
        parts = path.relative_to(library).with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        private = any(part.startswith("_") and part != "__init__" for part in parts)
        if private or parts[0] in _APART or module in _SHRINKING:
            continue
        if {"test", "tests"} & set(parts) or "-" in parts[0]:  # as in site-packages
            continue
        try:
            found = read_module(library, module)
        except (OSError, SyntaxError, ValueError) as error:
            print(f"{library} {module} left out: {error}", file=sys.stderr)
            continue
        for docstring in found:
            yield (module, docstring.text.strip()), docstring


def _print_ids(collection: Collection) -> None:
    rng = np.random.default_rng(_SEED)
    some = rng.choice(list(collection.queries), _QUERIES, replace=False)
    split = split_queries(collection.restrict(frozenset(some.tolist())), dev=0.5, rng=rng)
    for name, half in (("dev", split.dev), ("eval", split.eval)):
        for query, grades in half.qrels.items():
            print(name, query, *grades, sep="\t")
    for document in collection.documents:
        print("document", document, sep="\t")


if __name__ == "__main__":
    main()
