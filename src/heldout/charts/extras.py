"""The `site` extra: Jinja2 and vl-convert, imported when a page is made and not before."""

from importlib import import_module
from types import ModuleType

from heldout.errors import SetupError

__all__ = ["need"]


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
