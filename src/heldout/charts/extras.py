"""The `site` extra: Jinja2 and vl-convert, imported when a page is made and not before."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from heldout.errors import SetupError

__all__ = ["check_extra", "need"]

_MODULES = ("jinja2", "vl_convert")


def need(module: str) -> ModuleType:
    """A module of the `site` extra.

    Raises:
        SetupError: it is not installed; the text names the command that brings it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise SetupError(
            f"the page needs {module}, which is not installed; pip install 'heldout[site]'"
        ) from error


def check_extra() -> None:
    """Refuse to begin what ends with a page that cannot be made: events are for good.

    Raises:
        SetupError: a module of the `site` extra is not installed; the text names all of these.
    """
    missing = [module for module in _MODULES if find_spec(module) is None]
    if missing:
        be = "is" if len(missing) == 1 else "are"
        raise SetupError(
            f"the page needs {' and '.join(missing)}, which {be} not installed, so nothing was "
            "done; pip install 'heldout[site]'"
        )
