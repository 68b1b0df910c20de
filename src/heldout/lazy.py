"""Public names of a package that are imported when they are used."""

from collections.abc import Iterable, Mapping
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
