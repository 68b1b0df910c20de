"""Words, parts of identifiers, stems, n-grams."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import SetupError
from heldout.rankers.terms import TextSettings, character_ngrams, make_tokeniser, split_identifier

BOTH = (
    "readinto_buffer read into buffer calls httpserver http server serve_forever serve forever "
    "see init and utf8"
)
TEXT = "readInto_buffer calls HTTPServer.serve_forever(), see __init__ and utf8"


@pytest.mark.parametrize(
    ("identifiers", "terms"),
    [
        ("whole", "readinto_buffer calls httpserver serve_forever see init and utf8"),
        ("parts", "read into buffer calls http server serve forever see init and utf8"),
        ("both", BOTH),
    ],
)
def test_identifiers(identifiers: str, terms: str) -> None:
    settings = TextSettings(identifiers=identifiers)  # type: ignore[arg-type] # parametrised
    assert make_tokeniser(settings)(TEXT) == terms.split()


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


@given(st.text(max_size=40), st.text(max_size=40))
def test_terms_of_two_texts_follow_each_other(one: str, two: str) -> None:
    tokenise = make_tokeniser(TextSettings(identifiers="both"))
    assert tokenise(f"{one} {two}") == tokenise(one) + tokenise(two)


def test_character_ngrams_know_where_words_end() -> None:
    assert character_ngrams("To be", shortest=3, longest=4) == [
        *(" to", "to ", " to "),
        *(" be", "be ", " be "),
    ]


@given(st.from_regex(r"[a-z]{1,12}", fullmatch=True), st.integers(1, 5), st.integers(0, 3))
def test_character_ngrams_are_counted(word: str, shortest: int, more: int) -> None:
    lengths = range(shortest, shortest + more + 1)
    found = character_ngrams(word, shortest=shortest, longest=shortest + more)
    assert len(found) == sum(max(0, len(word) + 3 - length) for length in lengths)
    assert {len(gram) for gram in found} <= set(lengths)
