"""The page of a board in every state."""

import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import get_origin, get_type_hints

import page_documents
import pytest
from certain import sure
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2 import meta
from page_documents import Document, entry_page, render_page, sources
from sample_boards import (
    AS_OF,
    BOARDS,
    HOSTILE,
    HOSTILE_LINKS,
    baseline,
    busy,
    facts,
    hostile,
    renamed,
    row,
    spec,
    standings,
)

from heldout.answers.text import clean
from heldout.board.log.event_fields import EVENTS, BoardFields
from heldout.board.log.events import KINDS
from heldout.board.rules.spec import Example
from heldout.board.site import pages
from heldout.board.site.entries import HISTORY_WORDS, EntryPage
from heldout.board.site.rows import TableRow, file_stem, make_table, read_template, safe_link, tie
from heldout.board.site.sections import BoardFacts
from heldout.board.standings.standings import Standings
from heldout.ids import Digest

shown = page_documents.shown


def test_the_empty_board_shows_baseline_day_and_commands(shown: Callable[[str], Document]) -> None:
    document = shown("empty/index.html")
    assert "No entries yet" in document.text
    assert document.text.count("heldout submit ID") == 2
    assert not [tag for tag, _ in document.elements if tag == "figure"]


def test_a_baseline_has_no_rank_and_no_trophy() -> None:
    page = pages.make_board_page(busy(), spec(), facts())
    base = next(r for r in page.table.rows if r.row.baseline)
    assert base.rank is None
    assert not base.row.trophy
    document = render_page(page)
    assert document.text.count("\u2013no rank") == 2
    trophies = sum(r.row.trophy for r in page.table.rows)
    assert document.text.count(" best when submitted") == trophies + 2  # and two keys


def test_ranks_and_order_are_those_of_the_standings() -> None:
    page = pages.make_board_page(busy(), spec(), facts())
    assert [r.id for r in page.table.rows] == [r.id for r in busy().rows]
    assert [r.rank for r in page.table.rows if r.rank] == list(range(1, 45))


def test_a_rank_range_is_shown_only_where_it_is_given() -> None:
    with_range = standings([row("0.4", days=1, rank_low=1, rank_high=3), baseline()])
    text = "".join(render_page(pages.make_board_page(with_range, spec(), facts())).text.split())
    assert "range1\u20133" in text
    assert "range1\u2013" not in render_page(pages.make_board_page(busy(), spec(), facts())).text


@pytest.mark.parametrize("path", ["busy/index.html", "empty/index.html", "hostile/index.html"])
def test_ids_are_unique_and_fragments_exist(shown: Callable[[str], Document], path: str) -> None:
    document = shown(path)
    ids = [a["id"] for _, a in document.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in document.links if link.startswith("#")} <= set(ids)


def test_every_page_that_is_linked_is_made() -> None:
    files = pages.render_board(busy(148), spec(), facts())
    document = Document(files["leaderboard/index.html"])
    linked = {link for link in document.links if link.startswith(("entries/", "leaderboard."))}
    assert {f"leaderboard/{link}" for link in linked} <= set(files)
    assert len([link for link in linked if link.startswith("entries/")]) == 150


ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY_TEXT)
@example("\ud800")
@example("\u202eabc\u2069")
@example("a\x00\r\n\tb")
def test_clean_text_can_be_encoded_and_is_one_line(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert all(unicodedata.category(c) not in ("Cc", "Cs") for c in cleaned)
    assert not set(cleaned) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert clean(cleaned) == cleaned


def test_clean_keeps_what_is_text() -> None:
    assert clean("monoT5 > BM25 & <b>, مسترجع 検索 🏆") == "monoT5 > BM25 & <b>, مسترجع 検索 🏆"
    assert clean(HOSTILE["controls"]) == "a b c\ufffdd\ufffde f"


@pytest.mark.parametrize("link", HOSTILE_LINKS)
def test_a_hostile_link_is_no_link(link: str) -> None:
    assert safe_link(link) == ""


@pytest.mark.parametrize(
    "link",
    [
        "https://arxiv.org/abs/2611.01234",
        "http://git.example.org:8080/a/b?x=1&y=2#readme",
        "HTTPS://example.org/",
        "https://münchen.example/",
    ],
)
def test_a_web_address_stays_as_it_is(link: str) -> None:
    assert safe_link(link) == link


@given(ANY_TEXT)
def test_a_link_is_empty_or_http(text: str) -> None:
    assert not safe_link(text) or text.lower().startswith(("http://", "https://"))


@given(ANY_TEXT)
@example("../../etc/passwd")
@example("..")
def test_a_file_stem_has_no_folder(text: str) -> None:
    stem = file_stem(text)
    assert "/" not in stem
    assert "\\" not in stem
    assert stem.isascii()


def test_an_id_is_its_own_file_name() -> None:
    assert file_stem("20261120-light_house.v2") == "20261120-light_house.v2"


@given(ANY_TEXT)
def test_a_tie_changes_nothing_but_spaces(text: str) -> None:
    assert tie(text).replace("\u00a0", " ") == text.replace("\u00a0", " ")


PAGES = (pages.BoardPage, EntryPage, pages.RowsPage)


@pytest.mark.parametrize("page", PAGES)
def test_a_template_receives_exactly_its_page(
    page: type[pages.BoardPage | EntryPage | pages.RowsPage],
) -> None:
    environment = read_template(pages.TEMPLATES[page]).environment
    used: set[str] = set()
    ours = re.compile(r"macro (\w+)|set ([A-Z]+) ")
    macros = {a or b for text in sources().values() for a, b in ours.findall(text)}
    for name in (pages.TEMPLATES[page], "base.html"):
        used |= meta.find_undeclared_variables(environment.parse(sources()[name]))
    assert used - macros == {field.name for field in fields(page)}


def _nested(page: type) -> Iterator[tuple[type, str]]:
    hints = get_type_hints(page).values()
    for hint in (one for one in hints if get_origin(one) is not Callable):
        for kind in (hint, *getattr(hint, "__args__", ())):
            own = getattr(kind, "__module__", "").startswith("heldout.board.site")
            if own and is_dataclass(kind) and isinstance(kind, type):  # not what the log has
                yield from ((kind, name) for name in _names(kind))
                yield from () if kind is TableRow else _nested(kind)


def _names(kind: type) -> Iterator[str]:
    """What a template may read; a line of the table says it out of a row of the standings."""
    if kind is TableRow:
        yield from (name for name, one in vars(kind).items() if isinstance(one, property))
        yield from ("star", "span", "lead_end")
    elif is_dataclass(kind):
        yield from (field.name for field in fields(kind))


@pytest.mark.parametrize("page", PAGES)
def test_no_field_of_a_page_goes_unread(page: type) -> None:
    text = "".join(sources().values())
    unread = {f"{kind.__name__}.{name}" for kind, name in _nested(page) if f".{name}" not in text}
    # `pieces`, `wide` and `narrow` read them for the template, and charts the last two.
    python = {"ViewColumn.measure", "Figure.chart", "Figure.width", "EntryColumn.heading"}
    assert unread <= python | {"EntryColumn.axis", "EntryColumn.caveat"}


def test_only_the_charts_are_not_escaped() -> None:
    text = "".join(sources().values())
    assert re.findall(r"\S+\|safe", text) == ["figure.wide|safe", "figure.narrow|safe"]
    assert "autoescape" not in text


def test_every_kind_of_event_has_words() -> None:
    about_board = {kind for kind, one in EVENTS.items() if issubclass(one.fields, BoardFields)}
    of_its_entries = {"ended-season"}  # it is in the history of each entry that it scores
    assert set(HISTORY_WORDS) == set(KINDS) - about_board | of_its_entries


CSS = pages._read("heldout.css").decode()
JUDGING = (files("heldout.web") / "static" / "judging.css").read_text("utf-8")


def palette(number: int, css: str = CSS) -> dict[str, str]:
    """The colours of the n-th `:root` block: light, dark."""
    block = re.findall(r":root \{(.*?)\}", css, re.DOTALL)[number]
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("ground", ["paper", "band"])
@pytest.mark.parametrize(
    ("name", "least"), [("ink", 5.5), ("muted", 5.5), ("link", 5.5), ("record", 5.5), ("rule", 3.0)]
)
def test_contrast(theme: int, ground: str, name: str, least: float) -> None:
    colours = palette(theme)
    assert contrast(colours[name], colours[ground]) >= least


def test_only_the_palette_has_colours() -> None:
    outside = re.sub(r":root \{.*?\}", "", CSS, flags=re.DOTALL)
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(", outside)


def test_a_reader_who_wants_no_theme_gets_the_light_one() -> None:
    assert palette(0)["paper"] == "#fcfcfa"
    assert palette(1)["paper"] == "#15181b"
    assert CSS.index("prefers-color-scheme: dark") > CSS.index(":root")


@pytest.mark.parametrize("theme", [0, 1])
def test_the_judging_pages_have_the_same_colours(theme: int) -> None:
    # Two style sheets, since neither server may reach for the other's files. Judges see no chart.
    shared = {name: colour for name, colour in palette(theme).items() if name != "soft"}
    assert palette(theme, JUDGING) == shared


SCRIPT = Path(__file__).with_name("sample_boards.py")


@pytest.mark.night
def test_two_processes_give_the_same_bytes(tmp_path: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(tmp_path / seed)],
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    assert [process.wait(timeout=60) for process in started] == [0, 0]
    first, second = (
        {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        for root in (tmp_path / "1", tmp_path / "2")
    )
    assert first == second
    assert len(first) > 200


_ALL = pages.render_board(BOARDS["many"], spec(), facts())
MANY = {path.removeprefix("leaderboard/"): data for path, data in _ALL.items()}
FACTS = facts()
TABLE_PAGES = ("index.html", "rows-2.html", "rows-3.html")


def ids(data: bytes) -> list[str]:
    """Of the rows, in their order."""
    return [a["data-id"] or "" for _, a in Document(data).elements if "data-id" in a]


def test_every_row_is_on_one_page_and_in_its_order() -> None:
    shown = [name for one in TABLE_PAGES for name in ids(MANY[one])]
    assert shown == [r.id for r in BOARDS["many"].rows]
    assert [len(ids(MANY[one])) for one in TABLE_PAGES] == [100, 100, 2]
    assert "rows-4.html" not in MANY


def test_every_page_links_to_all_pages() -> None:
    for one in TABLE_PAGES:
        links = [link for link in Document(MANY[one]).links if link in TABLE_PAGES]
        assert list(dict.fromkeys(links[-3:])) == list(TABLE_PAGES)


def test_the_script_gets_the_rows_of_the_page_as_they_are() -> None:
    for number in (2, 3):
        page = MANY[f"rows-{number}.html"].decode()
        rows = re.search(r"<tbody[^>]*>\n(.*)</tbody>", page, re.DOTALL)
        script = MANY[f"rows-{number}.js"].decode()
        assert rows is not None
        assert script.startswith(f"heldoutRows({number}, ")
        written = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), script)
        assert rows[1] in written


def test_an_entry_leads_back_to_the_page_with_its_row() -> None:
    for one in TABLE_PAGES:
        name = ids(MANY[one])[-1]
        assert f"../{one}#entry-{name}" in Document(MANY[f"entries/{name}.html"]).links


@pytest.mark.slow
@pytest.mark.parametrize("size", [150, 151, 2_000])
def test_no_page_of_the_table_is_over_300_kb_before_charts(size: int) -> None:
    files = render_table_pages(busy(size - 2))
    weights = {path: len(re.sub(rb"<svg.*?</svg>", b"", data)) for path, data in files.items()}
    assert max(weights.values()) <= 300_000, weights
    assert sum(len(ids(data)) for data in files.values()) == size


def render_table_pages(board: Standings) -> dict[str, bytes]:
    """The pages of the table alone: the entries' own would take most of the time."""
    first = {"index.html": pages._render(pages.make_board_page(board, spec(), facts()))}
    rows = (item for one in list_rows(board) for item in one.make().items())
    return first | {path: data for path, data in rows if path.endswith(".html")}


def list_rows(board: Standings, made_for: BoardFacts = FACTS) -> list[pages.PageSource]:
    """How its table goes on."""
    return [*pages._list_rows(make_table(board, spec()), board, spec(), made_for)]


def test_a_page_of_rows_changes_with_its_own_rows_alone() -> None:
    board = busy(400)
    last = board.rows[-1]
    more = replace(last, id="one-more", rank=(last.rank or 0) + 1)
    later = replace(board, rows=(*board.rows, more), as_of=board.as_of + timedelta(days=1))
    facts_then = replace(facts(), events=99, head=Digest("f" * 64))
    pairs = [*zip(list_rows(board), list_rows(later, facts_then), strict=True)]
    assert [one.digest for one, _ in pairs] == [one.digest for one in list_rows(board)]
    changed = [new.paths for old, new in pairs if old.digest != new.digest]
    assert changed == [("leaderboard/rows-5.html", "leaderboard/rows-5.js")]
    assert [new.paths for old, new in pairs if old.make() != new.make()] == changed


def test_the_policy_of_the_page_allows_no_inline_code(shown: Callable[[str], Document]) -> None:
    for path in ("busy/index.html", "hostile/entries/20251001-script.html"):
        document = shown(path)
        policy = sure(next(a["content"] for t, a in document.elements if a.get("http-equiv")))
        start = "default-src 'none'; style-src 'self' file:; script-src 'self' file:"
        assert policy.startswith(start)
        assert "unsafe" not in policy
        names = {name for _, attributes in document.elements for name in attributes}
        assert "style" not in names
        assert not [name for name in names if name.startswith("on")]
        scripts = [a for tag, a in document.elements if tag == "script"]
        assert len(scripts) == 1
        assert str(scripts[0]["src"]).endswith("static/heldout.js")


def test_nothing_is_loaded_from_elsewhere(shown: Callable[[str], Document]) -> None:
    for tag, attributes in shown("busy/index.html").elements:
        for name in ("src", "xlink:href", "srcset", "data", "action"):
            assert not str(attributes.get(name, "")).startswith(("http", "//")), (tag, name)
        if tag == "link":
            ours = ("static/", "data:image/svg+xml,", "feed.xml")
            assert str(attributes["href"]).startswith(ours)
    for name in pages.STATIC:
        assert not re.search(rb"@import|url\(|https?://|fetch\(|eval\(", pages._read(name))


def test_links_tell_nobody_where_they_stand(shown: Callable[[str], Document]) -> None:
    elements = shown("busy/index.html").elements
    outside = [a for tag, a in elements if tag == "a" and str(a["href"]).startswith("http")]
    assert len(outside) > 10
    assert all(a["rel"] == "nofollow noopener noreferrer" for a in outside)


def _is_ours(link: str) -> bool:
    start = (
        "#",
        "entries/",
        "../",
        "leaderboard.",
        "feed.xml",
        "index.html#verify",
        "https://git.example.org",
        "https://stdlib",
    )
    return link.startswith(start)


def test_every_link_of_a_hostile_board_is_ours(shown: Callable[[str], Document]) -> None:
    board = shown("hostile/index.html")
    assert all(map(_is_ours, board.links)), [x for x in board.links if not _is_ours(x)]
    for name in HOSTILE:
        document = shown(f"hostile/entries/20251001-{name}.html")
        assert all(map(_is_ours, document.links)), document.links


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_makes_no_element(name: str) -> None:
    harmless, attack = _twice(HOSTILE[name])
    assert attack.skeleton == harmless.skeleton
    if name in ("script", "image", "closing", "template", "svg", "css"):
        assert HOSTILE[name] in attack.text


def test_a_hostile_board_has_harmless_elements(shown: Callable[[str], Document]) -> None:
    board = hostile()
    plain = [renamed(r, team="x", institution="x", description="x") for r in board.rows]
    rows = [replace(r, type=f"t{n}") for n, r in enumerate(plain)]
    harmless = pages.render_board(replace(board, rows=tuple(rows)), spec(), facts())
    allowed = {tag for tag, _ in Document(harmless["leaderboard/index.html"]).elements}
    attacked = [tag for tag, _ in shown("hostile/index.html").elements]
    assert set(attacked) == allowed
    assert attacked.count("script") == attacked.count("h1") == 1
    assert "img" not in attacked


def _twice(text: str) -> tuple[Document, Document]:
    """The page of an entry, and the same with somebody's text in every field."""
    documents = []
    for words in ("x", f"x{text}"):
        fields = ("team", "institution", "description", "training_data", "type")
        texts = dict.fromkeys(fields, words)
        one = row("0.4", "0.5", days=1, **texts, findings=(words,), errata=((AS_OF, words),))
        documents.append(render_page(entry_page(replace(one, files={words: words}))))
    return documents[0], documents[1]


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_no_text_changes_the_page_of_an_entry(text: str) -> None:
    harmless, attack = _twice(text)
    assert attack.skeleton == harmless.skeleton


@settings(max_examples=20)
@given(st.text(st.characters(codec=None, exclude_categories=()), min_size=1))
def test_no_text_changes_the_page_of_a_board(text: str) -> None:
    documents = []
    for words in ("x", f"x{text}"):
        texts = dict.fromkeys(("team", "institution", "description", "type"), words)
        board = standings([baseline(**texts, code=words)])
        rules = spec(title=words, task=words, submit=words, contact=words)
        example = Example(query=words, document=words, text=words)
        page = pages.make_board_page(board, rules, facts(example=example, repository=words))
        documents.append(render_page(page))
    assert documents[1].skeleton == documents[0].skeleton


def test_a_strange_id_of_a_baseline_stays_in_its_folder() -> None:
    files = pages.render_board(standings([baseline(id="../../x y%")]), spec(), facts())
    assert "leaderboard/entries/..%2F..%2Fx%20y%25.html" in files
    links = Document(files["leaderboard/index.html"]).links
    assert "entries/..%252F..%252Fx%2520y%2525.html" in links
