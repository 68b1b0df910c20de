"""Words: what becomes of somebody's text, links, dates and counts."""

import unicodedata
from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sample_boards import HOSTILE, HOSTILE_LINKS

from heldout.answers.text import clean
from heldout.board.site.words import (
    SentencePart,
    count,
    file_stem,
    join_names,
    name,
    phrase,
    plain,
    safe_link,
    tie,
)
from heldout.charts.axes import day_words

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


def test_counts_have_their_unit() -> None:
    assert count(1, "query", "queries") == "1 query"
    assert count(1050, "query", "queries") == "1,050 queries"
    assert count(0, "team") == "0 teams"


def test_dates_do_not_depend_on_the_locale() -> None:
    assert day_words(date(2026, 11, 2)) == "2 Nov 2026"


def test_names_are_joined_and_stay_apart() -> None:
    sentence = phrase(join_names([name("a"), name("b"), name("c")]), " lead.")
    assert plain(sentence) == "a, b and c lead."
    assert [part.text for part in sentence if part.name] == ["a", "b", "c"]
    assert join_names([]) == ()
    assert phrase(SentencePart(text="x")) == (SentencePart(text="x"),)


def test_numbers_stay_with_their_units() -> None:
    tied = "As of 20\u00a0Nov\u00a02026: 1,050\u00a0held-out queries, 7\u00a0days, RR@10 0.4"
    assert tie(tied.replace("\u00a0", " ")) == tied
    assert tie("top 100 of nDCG@10") == "top 100\u00a0of nDCG@10"


@given(ANY_TEXT)
def test_a_tie_changes_nothing_but_spaces(text: str) -> None:
    assert tie(text).replace("\u00a0", " ") == text.replace("\u00a0", " ")
