"""Names and notes of annotators: one name for one person, and nothing that nobody sees."""

from hypothesis import given
from hypothesis import strategies as st

from heldout.survivorship.discarded.questions import annotator_name, note_fault, visible_note


@given(st.text())
def test_the_name_that_is_shown_is_the_name_that_comes_back(typed: str) -> None:
    name = annotator_name(typed)
    assert annotator_name(name) == name
    assert name == name.strip()


@given(st.text(st.characters(codec="latin-1")))
def test_case_and_blanks_make_no_other_annotator(typed: str) -> None:
    assert annotator_name(f" {typed} ") == annotator_name(typed)
    assert annotator_name(typed.lower()) == annotator_name(typed)


def test_people_of_other_names_stay_others() -> None:
    names = ["bob", "rob", "bób", "bo b", "\u0431\u043e\u0431", "ada", "李", "李四"]
    assert len({annotator_name(one) for one in names}) == len(names)


@given(st.text(max_size=300))
def test_a_note_that_is_kept_has_no_fault(typed: str) -> None:
    note = visible_note(typed)
    assert note_fault(note) == ""
    assert visible_note(note) == note


def test_what_is_seen_is_kept_as_it_is() -> None:
    note = "prix\u00a0: 5 €\n\t\u06a9\u062a\u0627\u0628\u200c\u0647\u0627 👩\u200d👧 e\u0301"
    assert visible_note(note) == note
