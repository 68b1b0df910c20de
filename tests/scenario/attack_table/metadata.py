"""Attacks by a submission's metadata, and by what is told of it."""

from collections.abc import Iterator

from attack_table.attack import SAME, Attack, Group

__all__ = ["attacks"]

FAMILY = "Hostile metadata"


def attacks() -> Iterator[Attack]:
    here = Group(family=FAMILY, module="scenario/test_attacks_by_metadata.py")
    kept = "received and reviewed in the log, no score, no entry" + SAME
    yield from here.cases(
        "test_metadata_that_is_refused",
        "ten thousand fields",
        tries="to bury the organiser in findings",
        becomes="ten are named, the others counted; " + kept,
    )
    yield from here.cases(
        "test_metadata_that_is_refused",
        "a javascript: link",
        "a data: link",
        "a link that ends its attribute",
        "a link with a name before its host",
        tries="to run a script, or to lead astray, from the page",
        becomes=kept,
    )
    yield from here.cases(
        "test_metadata_that_is_refused",
        "bidi marks",
        "invisible characters",
        "terminal escapes",
        "a field whose name a terminal obeys",
        "a zero byte",
        tries="to show other text than it holds",
        becomes=kept,
    )
    yield from here.cases(
        "test_metadata_that_is_refused",
        "a string of 900 kB",
        "deep JSON",
        "not a number",
        "a number of 4,000 digits",
        "half a character",
        "another encoding",
        tries="to fill memory, or to crash a reader",
        becomes=kept,
    )
    yield here.one(
        "a string of 10 MB",
        "test_metadata_that_is_too_large_is_not_stored",
        tries="to fill memory, or to crash a reader",
        becomes="refused as `too-large`, and not stored" + SAME,
        case="a string of 10 MB",
    )
    yield from here.cases(
        "test_metadata_that_is_refused",
        "a score of one's own",
        "the id of another submission",
        "the digests of other runs",
        "a type that the board does not have",
        tries="to be taken for what it is not",
        becomes=kept,
    )
    yield from here.cases(
        "test_metadata_that_is_shown_as_text",
        "HTML",
        "HTML that ends the page",
        "a formula",
        "a formula of another program",
        "a template",
        "shell characters",
        "the mark of a comment",
        "BibTeX that ends its field",
        "a field of another program's objects",
        tries="to be computed where it is shown",
        becomes="published as text: no element, no formula, nothing run",
    )
    yield from _words()
    yield from _ladder()
    yield from _names()


def _words() -> Iterator[Attack]:
    comment = Group(family=FAMILY, module="board/test_forge_comment.py")
    yield comment.one(
        "Markdown in a comment",
        "test_nobodys_text_is_anything_but_code",
        tries="to link, to mention, to forge the mark of an event",
        becomes="a code span, whatever it holds",
    )
    yield comment.one(
        "a command to the forge in a comment",
        "test_no_line_is_a_command_and_nothing_invisible_is_left",
        tries="to merge or close by `/merge`",
        becomes="no line begins with it",
    )
    pages = Group(family=FAMILY, module="board/test_site_hostile.py")
    yield pages.one(
        "any text on the page of an entry",
        "test_no_text_changes_the_page_of_an_entry",
        tries="to become an element",
        becomes="the page has the elements of a harmless one",
    )
    yield Group(family=FAMILY, module="judging/test_csv_cells.py").one(
        "any text in the CSV",
        "test_no_part_of_a_cell_starts_a_formula",
        tries="to be computed by a spreadsheet",
        becomes="a quote stands before it",
    )
    yield Group(family=FAMILY, module="board/test_names.py").one(
        "a look-alike team name",
        "test_confusable_characters_look_like_the_name_they_imitate",
        tries="to be taken for another team, or to have its own quota",
        becomes="told at review, with the character",
    )
    yield Group(family=FAMILY, module="scenario/test_import_msmarco.py").one(
        "hostile text in an old board's table",
        "test_hostile_text_of_an_old_board_is_contained",
        tries="markup, a formula, a script link, an id that climbs out of its folder",
        becomes="text; the id gets a file name of its own",
    )


def _ladder() -> Iterator[Attack]:
    """What is looked up on the page of an embargoed entry."""
    ladder = Group(family=FAMILY, module="scenario/test_ladder_embargo.py")
    for name, test in (
        (
            "the bar of an embargoed entry, looked up on the page",
            "test_the_bar_of_an_embargoed_entry_does_not_name_its_team",
        ),
        (
            "an embargoed entry's score, looked up as the bar of an open one",
            "test_the_score_of_an_embargoed_entry_is_not_the_bar_of_an_open_one",
        ),
        ("the bar in an erratum", "test_an_erratum_does_not_tell_it_either"),
        (
            "a bar under a name that only an embargoed entry ties to this one",
            "test_a_bar_does_not_tell_that_an_embargoed_entry_was_renamed",
        ),
    ):
        yield ladder.one(
            name,
            test,
            tries="to learn whose an embargoed entry is",
            becomes="the page says that it is not above its bar; which, is told at the reveal",
        )


def _names() -> Iterator[Attack]:
    """Names that are not one's own, or that change."""
    names = Group(family=FAMILY, module="scenario/test_hostile_names.py")
    for name, test, tries, becomes in (
        (
            "a published entry under another name",
            "test_an_entry_is_renamed_only_by_an_organiser",
            "to score first and put a name to it later",
            "waits as `proposed`; page, quota and Ladder know the old name until it is approved",
        ),
        (
            "a published entry without its description or name",
            "test_an_entry_cannot_take_back_what_it_had_to_say",
            "to take back what was said to be published",
            "refused by the rule that asked for it",
        ),
        (
            "the name of a victim, taken and left after publication",
            "test_the_name_of_a_victim_costs_it_nothing",
            "to use up another team's quota, or to raise its Ladder",
            "counts for nobody: no organiser approved it",
        ),
        (
            "the name of a victim, taken and left before publication",
            "test_a_name_that_was_left_before_publication_costs_its_owner_nothing",
            "to use up another team's quota",
            "an entry counts for the name it was published under",
        ),
        (
            "a new name while it waits",
            "test_a_new_name_while_it_waits_makes_no_room_in_the_quota",
            "to slip under the quota",
            "refused: it is held against every name that it was opened under",
        ),
        (
            "an entry renamed into a team whose quota is used",
            "test_an_entry_cannot_be_renamed_into_a_team_whose_quota_is_used",
            "to have a third entry in one window",
            "refused by the quota of the new name",
        ),
        (
            "one of two entries under a new name that is approved",
            "test_an_approved_new_name_gives_no_further_look",
            "to have a fresh quota under the new name",
            "a reason is asked for; the two names are one team, with one quota",
        ),
        (
            "a low entry under a new name that is approved",
            "test_an_approved_new_name_begins_no_new_ladder",
            "to begin a new Ladder below the team's best",
            "held against the best of all names that are joined",
        ),
    ):
        yield names.one(name, test, tries=tries, becomes=becomes)
