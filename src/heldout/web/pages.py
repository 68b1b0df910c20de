"""Templates to HTML: one way for every page and report; whatever is put into one is escaped.

Passages are shown as text, whatever they hold.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from markupsafe import Markup

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


LONGEST_RUN = 10_000
"""Characters without a blank between two positions where a line may be broken."""

_MARKS = 100
_LONG = re.compile(rf"\S{{{LONGEST_RUN + 1},}}")
_JOINER = "\u200d"


def render_template(name: str, page: object = None, **values: object) -> str:
    """A page as HTML.

    Args:
        name: of the template, below `web/templates`.
        page: what the template knows as `page`; all of it is shown as text.
        values: what else it knows, by name.
    """
    template = load_templates("heldout.web", break_runs=break_runs).get_template(name)
    return template.render({"page": page, **values})


def break_runs(text: str) -> Markup:
    """A text as HTML, with `<wbr>` in runs without a blank that are longer than `LONGEST_RUN`.

    Browsers take time with the square of such a run: minutes for a million letters. What is seen
    and copied stays the same.
    """
    ends = [0, *_cuts(text), len(text)]
    return Markup("<wbr>").join(text[start:end] for start, end in pairwise(ends))


def _cuts(text: str) -> Iterator[int]:
    for run in _LONG.finditer(text):
        for position in range(run.start() + LONGEST_RUN, run.end(), LONGEST_RUN):
            near = range(position, min(position + _MARKS, run.end()))
            yield next((cut for cut in near if not _joins(text, cut)), position)


def _joins(text: str, position: int) -> bool:
    """Check whether the character at this position is drawn together with the one before."""
    joined = unicodedata.category(text[position]).startswith("M")
    return joined or _JOINER in text[position - 1 : position + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What every page says of the study.

    Attributes:
        name: its title.
        contact: whom to write to; may be empty.
    """

    name: str = ""
    contact: str = ""
