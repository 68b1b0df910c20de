"""Templates to HTML: one way for every page and report; whatever is put into one is escaped."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


@cache
def load_templates(room: str, **filters: Callable[[str], str]) -> "jinja2.Environment":
    """The templates of a package, each compiled once for as long as the process lives.

    Args:
        room: the package, with a folder `templates`.
        filters: of the templates, by name.

    Raises:
        ImportError: Jinja2 is not installed.
    """
    import jinja2  # noqa: PLC0415 - most commands make no page

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(room),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters |= filters
    return environment
