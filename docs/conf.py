"""The documentation site: `make docs` builds it into build/docs, offline."""

import re

from docutils import nodes
from sphinx.application import Sphinx

import heldout

project = "heldout"
author = "The heldout developers"
version = release = heldout.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
root_doc = "index"
default_role = "code"
highlight_language = "text"
smartquotes = False  # what a reader copies is what a shell takes

myst_heading_anchors = 4

autodoc_member_order = "bysource"
# Functions return instances of classes, nobody else makes them.
autodoc_class_signature = "separated"
autodoc_default_options = {"exclude-members": "__init__, __new__"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "heldout"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_last_updated_fmt = None
_FONTS = {
    "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
    "font-stack--monospace": "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
}
html_theme_options = {
    "light_css_variables": {
        **_FONTS,
        "color-brand-primary": "#1b1d1f",
        "color-brand-content": "#0b57a4",
    },
    "dark_css_variables": {"color-brand-primary": "#e8eaec", "color-brand-content": "#8cbef5"},
}
html_domain_indices = False

_LISTED = re.compile(r"^- \[[^\]]+\]\(([^):#]+)\.md\)", re.MULTILINE)
"""A page in the list of an index page."""


def _add_toctree(_app: Sphinx, name: str, source: list[str]) -> None:
    """Makes the table of contents out of the list that an index page has.

    So a page is listed once, and an index page reads well on a forge, too.
    """
    if name == "index" or name.endswith("/index"):
        pages = "\n".join(_LISTED.findall(source[0]))
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def _mark_examples(
    _app: Sphinx, _what: str, _name: str, _value: object, _options: object, lines: list[str]
) -> None:
    """Makes code of a docstring's example, which is indented below `Example:`."""
    for at in [at for at, line in enumerate(lines) if line.strip() == "Example:"][::-1]:
        lines[at : at + 1] = [".. code-block:: python", ""]


def _shorten_defaults(
    _app: Sphinx,
    _what: str,
    _name: str,
    _value: object,
    _options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str, str | None] | None:
    """Has `...` for a default that cannot be written in Python, such as the silent progress."""
    shorter = re.sub(r"<[\w.]+ object>", "...", signature or "")
    return (shorter, returned) if signature and shorter != signature else None


def _set_dashes(_app: Sphinx, document: nodes.document, _name: str) -> None:
    """Sets the dash between a parameter and its meaning."""
    for text in list(document.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" – "))


def setup(app: Sphinx) -> None:
    """Is called by Sphinx."""
    app.connect("source-read", _add_toctree)
    app.connect("autodoc-process-docstring", _mark_examples, priority=100)  # before napoleon
    app.connect("autodoc-process-signature", _shorten_defaults)
    app.connect("doctree-resolved", _set_dashes)
