"""Words for a page: cleaned text, safe links, dates, counts, and phrases that keep names apart.

Everything a participant wrote passes `clean` once, before it reaches a template, a chart, a CSV
or a JSON file, so all of them say the same.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from heldout.answers.text import clean
from heldout.board.rules.release import INDEPENDENT
from heldout.charts.axes import day_words
from heldout.web.pages import load_templates

if TYPE_CHECKING:
    from jinja2 import Template

_NOT_IN_LINKS = re.compile(r"""[\s"<>\\^`{|}]""")
_PLAIN_LINK = re.compile("https?://[a-z0-9.-]+(/[A-Za-z0-9._~/-]*)?")
"""Most addresses; to take one apart takes longer than all else that is done with a row."""
_TIES = re.compile(r"(?<=[0-9]) (?=[A-Za-z])|(?<=[a-z]{2}) (?=[12][0-9]{3}\b)")


def join_names(texts: Iterable[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`, cleaned."""
    *most, last = map(clean, texts)
    return f"{', '.join(most)} and {last}" if most else last


def safe_link(text: str) -> str:
    """The address if it is http or https with a host and nothing odd in it, else "".

    Odd: white space, control characters, a user name, and what RFC 3986 allows nowhere.
    """
    if _PLAIN_LINK.fullmatch(text):
        return text
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        return ""
    odd = text != clean(text) or _NOT_IN_LINKS.search(text)
    if odd or parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        return ""
    return text


@lru_cache(maxsize=1 << 15)  # each page of a board asks for most of them
def file_stem(submission: str) -> str:
    """A file name without its ending for an id; ids of submissions stay as they are."""
    return quote(clean(submission), safe="")


def count(number: int, one: str, many: str = "") -> str:
    """A number with its unit: `1 query`, `1,050 queries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def tie(text: str) -> str:
    """Our own words with no-break spaces where a line should not end: `20 Nov 2026`, `7 days`."""
    return _TIES.sub("\u00a0", text)


def read_template(name: str) -> "Template":
    """A template of a page, with the words that it may need as filters.

    Raises:
        ImportError: Jinja2 is not installed.
    """
    environment = load_templates("heldout.board.site", tie=tie)
    environment.globals["INDEPENDENT"] = INDEPENDENT
    environment.filters |= {"clean": clean, "count": count, "day": day_words, "names": join_names}
    return environment.get_template(name)
