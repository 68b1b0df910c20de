"""Runs without a blank: where they may be broken, and that nothing else is changed."""

import re
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heldout.web.pages import LONGEST_RUN, break_runs

PIECES = st.sampled_from(
    ["<b>&amp;\"'", "x" * 4_000, "é\u0301" * 3_000, " ", "\n", "\u4e00" * 6_000]
)


@settings(max_examples=20)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_a_text_stays_the_same_and_no_run_is_long(text: str) -> None:
    html = break_runs(text)
    pieces = [unescape(one) for one in html.split("<wbr>")]
    assert "".join(pieces) == text
    assert not re.search("<(?!wbr>)", html)
    assert all(len(run) <= LONGEST_RUN + 100 for one in pieces for run in one.split())


@pytest.mark.parametrize("text", ["", "short", "x" * LONGEST_RUN, "word " * 50_000])
def test_what_a_browser_breaks_by_itself_has_no_break_added(text: str) -> None:
    assert "<wbr>" not in break_runs(text)


@pytest.mark.parametrize("pair", ["e\u0301", "\u0e01\u0e34", "\u270a\ufe0f"])
def test_a_mark_is_not_torn_from_its_letter(pair: str) -> None:
    text = "x" + pair * LONGEST_RUN
    assert str(break_runs(text).split("<wbr>")[1]).startswith(pair)


def test_marks_without_end_are_broken_all_the_same() -> None:
    assert break_runs("e" + "\u0301" * 5 * LONGEST_RUN).count("<wbr>") == 5
