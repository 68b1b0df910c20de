"""Whether the demo can be played, asked before it takes a minute of anybody's time."""

from importlib.util import find_spec
from pathlib import Path

from heldout.errors import SetupError, StoreError

__all__ = ["check_ready"]

_EXTRAS = {"rankers": ("bm25s", "Stemmer"), "site": ("jinja2", "vl_convert")}


def check_ready(folder: Path) -> None:
    """Refuse what would only fail later.

    Args:
        folder: where the demo would be played.

    Raises:
        StoreError: the folder holds something already, or is no folder.
        SetupError: an extra is missing; the text names all of these.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise StoreError(f"{folder} is not empty; name a folder that does not exist yet")
    missing = {
        extra: [module for module in modules if find_spec(module) is None]
        for extra, modules in _EXTRAS.items()
    }
    extras = ",".join(extra for extra, modules in missing.items() if modules)
    if extras:
        names = ", ".join(module for modules in missing.values() for module in modules)
        raise SetupError(f"the demo lacks {names}; pip install 'heldout[{extras}]'")
