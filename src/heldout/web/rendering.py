"""Templates to HTML: one environment for all pages, which escapes whatever it is given."""

import re
import unicodedata
from collections.abc import Iterator
from importlib import resources
from itertools import pairwise

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["LONGEST_RUN", "break_runs", "render_template"]

LONGEST_RUN = 10_000
"""Characters without a blank between two places where a line may be broken."""

_MARKS = 100
_LONG = re.compile(rf"\S{{{LONGEST_RUN + 1},}}")
_JOINER = "\u200d"


def render_template(name: str, page: object) -> str:
    """A page as HTML.

    Args:
        name: of the template, below `web/templates`.
        page: what the template knows as `page`; all of it is shown as text.
    """
    return _ENVIRONMENT.get_template(name).render(page=page)


def break_runs(text: str) -> Markup:
    """A text as HTML, with `<wbr>` in runs without a blank that are longer than `LONGEST_RUN`.

    Browsers take time with the square of such a run: minutes for a million letters. What is seen
    and copied stays the same.
    """
    ends = [0, *_cuts(text), len(text)]
    return Markup("<wbr>").join(text[start:end] for start, end in pairwise(ends))


def _cuts(text: str) -> Iterator[int]:
    for run in _LONG.finditer(text):
        for place in range(run.start() + LONGEST_RUN, run.end(), LONGEST_RUN):
            near = range(place, min(place + _MARKS, run.end()))
            yield next((cut for cut in near if not _joins(text, cut)), place)


def _joins(text: str, place: int) -> bool:
    """Whether the character at this place is drawn together with the one before."""
    joined = unicodedata.category(text[place]).startswith("M")
    return joined or _JOINER in text[place - 1 : place + 1]


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
_ENVIRONMENT.filters["break_runs"] = break_runs
