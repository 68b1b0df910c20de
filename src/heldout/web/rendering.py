"""Templates to HTML: one environment for all pages, which escapes whatever it is given."""

from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined

__all__ = ["render_template"]


def render_template(name: str, page: object) -> str:
    """A page as HTML.

    Args:
        name: of the template, below `web/templates`.
        page: what the template knows as `page`; all of it is shown as text.
    """
    return _ENVIRONMENT.get_template(name).render(page=page)


def _read(name: str) -> str:
    return resources.files("heldout.web").joinpath("templates", name).read_text("utf-8")


_ENVIRONMENT = Environment(
    loader=FunctionLoader(_read),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
