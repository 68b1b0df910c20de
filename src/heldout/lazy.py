"""Public names of a package that are imported when they are used."""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def import_name(package: str, homes: Mapping[str, Iterable[str]], name: str) -> Any:
    """A name out of the module that has it, for a package's `__getattr__`.

    Args:
        package: whose name it is.
        homes: public names by their module, as `heldout.api.evaluation` or `.services.values`.
        name: the one that is asked for.

    Raises:
        AttributeError: the package has no such name.
    """
    home = next((home for home, names in homes.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(home, package), name)


def offer_names(
    package: str, homes: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package; `homes` as in `import_name`."""
    names = sorted(name for found in homes.values() for name in found)

    def read(name: str) -> Any:
        found = import_name(package, homes, name)
        setattr(sys.modules[package], name, found)
        return found

    return read, lambda: names, names
