"""Words: what becomes of somebody's text, links, dates and counts."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sample_boards import HOSTILE, HOSTILE_LINKS

from heldout.answers.text import clean
from heldout.board.site.rows import (
    file_stem,
    safe_link,
    tie,
)

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
