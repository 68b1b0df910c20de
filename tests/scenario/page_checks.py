"""What a reader is shown of nobody's text: pages and tables, looked at as a whole."""

import csv
import re
from html.parser import HTMLParser
from pathlib import Path


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def check_page(path: Path) -> None:
    """Nobody's text has become an element, an attribute, a link that runs, or a computed value."""
    page = Elements(path.read_text("utf-8"))
    scripts = [attributes for tag, attributes in page.found if tag == "script"]
    assert all(str(s.get("src")).endswith("static/heldout.js") for s in scripts)
    assert sum(tag == "h1" for tag, _ in page.found) == 1
    for tag, attributes in page.found:
        assert not [name for name in attributes if name.startswith("on")]
        address = str(attributes.get("href") or attributes.get("src") or "").lower()
        assert not address.startswith(("javascript:", "vbscript:", "data:text"))
        assert tag != "img" or not address.startswith("x")
    assert not re.search(r"\b1337\b", page.text)


def check_cells(file: Path) -> None:
    rows = csv.reader(file.read_text("utf-8").splitlines())
    assert not [cell for row in rows for cell in row if cell.lstrip()[:1] in set("=+-@\t")]
