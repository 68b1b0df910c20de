"""Nothing is injected into a page, nothing is loaded from elsewhere, no link leads astray."""

import re
from collections.abc import Callable
from dataclasses import replace

import page_documents
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_documents import Document, entry_page, render_page
from sample_boards import AS_OF, HOSTILE, baseline, facts, hostile, renamed, row, spec, standings

from heldout.board.rules.spec import Example
from heldout.board.site.pages import STATIC, _read, make_board_page, render_board

shown = page_documents.shown


def test_the_policy_of_the_page_allows_no_inline_code(shown: Callable[[str], Document]) -> None:
    for path in ("busy/index.html", "hostile/entries/20251001-script.html"):
        document = shown(path)
        policy = next(a["content"] for t, a in document.elements if a.get("http-equiv"))
        assert policy is not None
        assert policy.startswith(
            "default-src 'none'; style-src 'self' file:; script-src 'self' file:"
        )
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
            assert str(attributes["href"]).startswith(
                ("static/", "data:image/svg+xml,", "feed.xml")
            )
    for name in STATIC:
        assert not re.search(rb"@import|url\(|https?://|fetch\(|eval\(", _read(name))


def test_links_of_participants_tell_nobody_where_they_stand(
    shown: Callable[[str], Document],
) -> None:
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


def test_a_hostile_board_has_the_elements_of_a_harmless_one(
    shown: Callable[[str], Document],
) -> None:
    board = hostile()
    rows = [
        replace(renamed(r, team="x", institution="x", description="x"), type=f"t{n}")
        for n, r in enumerate(board.rows)
    ]
    harmless = render_board(replace(board, rows=tuple(rows)), spec(), facts())
    allowed = {tag for tag, _ in Document(harmless["leaderboard/index.html"]).elements}
    attacked = [tag for tag, _ in shown("hostile/index.html").elements]
    assert set(attacked) == allowed
    assert attacked.count("script") == attacked.count("h1") == 1
    assert "img" not in attacked


def _twice(text: str) -> tuple[Document, Document]:
    """The page of an entry, and the same with somebody's text in every field."""
    documents = []
    for words in ("x", f"x{text}"):
        texts = dict.fromkeys(
            ("team", "institution", "description", "training_data", "type"), words
        )
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
        page = make_board_page(board, rules, facts(example=example, repository=words))
        documents.append(render_page(page))
    assert documents[1].skeleton == documents[0].skeleton


def test_a_strange_id_of_a_baseline_stays_in_its_folder() -> None:
    files = render_board(standings([baseline(id="../../x y%")]), spec(), facts())
    path = "leaderboard/entries/..%2F..%2Fx%20y%25.html"
    assert path in files
    links = Document(files["leaderboard/index.html"]).links
    assert "entries/..%252F..%252Fx%2520y%2525.html" in links
