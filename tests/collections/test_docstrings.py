"""Docstrings of source files, which are parsed and never run."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.collections.stdlib_docs import parse_docstrings, split_paragraphs

LIBRARY = Path(__file__).parent / "fixtures" / "library.py"


def test_every_owner_is_found_and_nothing_is_run() -> None:
    names = [found.name for found in parse_docstrings(LIBRARY.read_bytes(), module="library")]
    assert names == [
        "library",
        "library.open_box",
        "library.open_box.Lid",
        "library.Cupboard",
        "library.Cupboard.close",
        "library.Cupboard.fill",
        "library.Cupboard.repeat",
        "library.Cupboard.twin_one",
        "library.Cupboard.twin_two",
        "library.Cupboard.echo",
        "library.Cupboard.alone",
        "library.hidden",
    ]


def test_a_coding_cookie_is_obeyed() -> None:
    source = '# -*- coding: latin-1 -*-\n"""Grüße."""\n'.encode("latin-1")
    assert [found.text for found in parse_docstrings(source, module="m")] == ["Grüße."]


def test_old_escapes_raise_no_warning() -> None:
    assert parse_docstrings(b'"""A \\d."""', module="m")[0].text == "A \\d."


@pytest.mark.parametrize("source", [b"def broken(:", b'"""\xff"""'])
def test_what_is_no_python_is_refused(source: bytes) -> None:
    with pytest.raises(SyntaxError):
        parse_docstrings(source, module="m")


def test_paragraphs_are_divided_at_blank_lines_only() -> None:
    text = "First line\n    goes on.\n  \t \n    Second\x08 one\x1f.\n\n\n    Third."
    assert split_paragraphs(text) == ["First line goes on.", "Second one .", "Third."]


@given(st.text(alphabet=st.characters(), max_size=60))
def test_paragraphs_are_single_clean_lines(text: str) -> None:
    for paragraph in split_paragraphs(text):
        assert paragraph == " ".join(paragraph.split())
        assert paragraph
        assert paragraph.encode().decode() == paragraph
        assert len(paragraph.splitlines()) == 1


@given(st.lists(st.from_regex(r"[a-z]{1,5}( [a-z]{1,5}){0,3}", fullmatch=True), max_size=5))
def test_joined_paragraphs_come_back(paragraphs: list[str]) -> None:
    assert split_paragraphs("\n\n".join(paragraphs)) == paragraphs
