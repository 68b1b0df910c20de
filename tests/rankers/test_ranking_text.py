"""Words, parts of identifiers, stems, n-grams."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import SetupError
from heldout.rankers.terms import TextSettings, character_ngrams, make_tokeniser, split_identifier

TEXT = "readInto_buffer calls HTTPServer.serve_forever(), see __init__ and utf8"


def test_identifiers_are_divided() -> None:
    terms = "read into buffer calls http server serve forever see init and utf8"
    assert make_tokeniser(TextSettings())(TEXT) == terms.split()


def test_function_words_can_be_left_out() -> None:
    assert make_tokeniser(TextSettings(stopwords=True))("Open the file and read it") == [
        "open",
        "file",
        "read",
    ]


def test_stems() -> None:
    assert make_tokeniser(TextSettings(stem=True))("reading files") == ["read", "file"]


def test_without_pystemmer_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(SetupError, match=r"pip install 'heldout\[rankers\]'"):
        make_tokeniser(TextSettings(stem=True))


@given(st.from_regex(r"\w{1,20}", fullmatch=True))
def test_parts_joined_are_the_word(word: str) -> None:
    parts = split_identifier(word)
    assert "".join(parts) == word.replace("_", "")
    assert all(parts)


@given(st.text(max_size=80))
def test_terms_are_clean_and_repeatable(text: str) -> None:
    tokenise = make_tokeniser(TextSettings())
    terms = tokenise(text)
    assert terms == tokenise(text)
    assert all(term and term == term.lower() and "_" not in term for term in terms)
    assert not any(character.isspace() for term in terms for character in term)


def test_character_ngrams_know_where_words_end() -> None:
    assert character_ngrams("To be", 3) == [" to", "to ", " be", "be "]


@given(st.from_regex(r"[a-z]{1,12}", fullmatch=True), st.integers(1, 8))
def test_character_ngrams_are_counted(word: str, length: int) -> None:
    found = character_ngrams(word, length)
    assert len(found) == max(0, len(word) + 3 - length)
    assert {len(gram) for gram in found} <= {length}
