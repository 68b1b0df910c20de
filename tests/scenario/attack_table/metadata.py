"""Attacks by a submission's metadata, and by what is published of it."""

from collections.abc import Iterator

from attack_table.attack import SAME, Attack, Group

__all__ = ["attacks"]

FAMILY = "Hostile metadata"


def attacks() -> Iterator[Attack]:
    here = Group(family=FAMILY, module="scenario/test_attacks_by_metadata.py")
    kept = "received and reviewed, no score, no entry" + SAME
    yield from here.cases(
        "test_metadata_that_is_refused",
        "ten thousand fields",
        tries="bury the organiser in findings",
        becomes="ten named, the others counted; " + kept,
    )
    yield from here.cases(
        "test_metadata_that_is_refused",
        "a javascript: link",
        "a data: link",
        "a link that ends its attribute",
        "a link with a name before its host",
        tries="run a script or mislead from the page",
        becomes=kept,
    )
    yield from here.cases(
        "test_metadata_that_is_refused",
        "bidi marks",
        "invisible characters",
        "terminal escapes",
        "a field whose name a terminal obeys",
        "a zero byte",
        tries="show other text than it contains",
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
        tries="exhaust memory, or crash a reader",
        becomes=kept,
    )
    yield here.one(
        "a string of 10 MB",
        "test_metadata_that_is_too_large_is_not_stored",
        tries="exhaust memory, or crash a reader",
        becomes="refused, not stored: `too-large`" + SAME,
        case="a string of 10 MB",
    )
    yield from here.cases(
        "test_metadata_that_is_refused",
        "a score of one's own",
        "the id of another submission",
        "the digests of other runs",
        "a type that the board does not have",
        tries="pass for something else",
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
        tries="be executed where it is shown",
        becomes="published as plain text",
    )
    yield from _words()
    yield from _names()


def _words() -> Iterator[Attack]:
    comment = Group(family=FAMILY, module="board/test_forge_comment.py")
    yield comment.one(
        "Markdown in a comment",
        "test_nobodys_text_is_anything_but_code",
        tries="link, mention, or forge an event's mark",
        becomes="shown as a code span",
    )
    yield comment.one(
        "a command to the forge in a comment",
        "test_no_line_is_a_command_and_nothing_invisible_is_left",
        tries="merge or close by `/merge`",
        becomes="no line begins with it",
    )
    pages = Group(family=FAMILY, module="board/test_site_hostile.py")
    yield pages.one(
        "any text on the page of an entry",
        "test_no_text_changes_the_page_of_an_entry",
        tries="become an HTML element",
        becomes="the page has the same elements as without it",
    )
    yield Group(family=FAMILY, module="judging/test_csv_cells.py").one(
        "any text in the CSV",
        "test_no_part_of_a_cell_starts_a_formula",
        tries="run in a spreadsheet",
        becomes="a quote precedes it",
    )
    yield Group(family=FAMILY, module="board/test_names.py").one(
        "a look-alike team name",
        "test_confusable_characters_look_like_the_name_they_imitate",
        tries="pass for another team, or get a second quota",
        becomes="reported at review, with the character",
    )
    yield Group(family=FAMILY, module="scenario/test_import_msmarco.py").one(
        "hostile text in an old board's table",
        "test_hostile_text_of_an_old_board_is_contained",
        tries="inject markup, formulas, links or paths",
        becomes="plain text; the id gets a safe file name",
    )


def _names() -> Iterator[Attack]:
    """Names that are not one's own, or that change."""
    names = Group(family=FAMILY, module="scenario/test_hostile_names.py")
    for name, test, tries, becomes in (
        (
            "a published entry under another name",
            "test_an_entry_is_renamed_only_by_an_organiser",
            "see the score first, sign later",
            "waits for approval; the old name holds until then",
        ),
        (
            "a published entry without its description or name",
            "test_an_entry_cannot_take_back_what_it_had_to_say",
            "withdraw a required statement",
            "refused by the rule that requires it",
        ),
        (
            "the name of a victim, taken and left after publication",
            "test_the_name_of_a_victim_costs_it_nothing",
            "use up another team's quota",
            "counts for nobody without an approval",
        ),
        (
            "the name of a victim, taken and left before publication",
            "test_a_name_that_was_left_before_publication_costs_its_owner_nothing",
            "use up another team's quota",
            "an entry counts for its published name",
        ),
        (
            "a new name while it waits",
            "test_a_new_name_while_it_waits_makes_no_room_in_the_quota",
            "evade the quota",
            "refused: it counts for every name it was opened under",
        ),
        (
            "an entry renamed into a team whose quota is used",
            "test_an_entry_cannot_be_renamed_into_a_team_whose_quota_is_used",
            "get a third entry in one window",
            "refused by the new name's quota",
        ),
        (
            "one of two entries under a new name that is approved",
            "test_an_approved_new_name_gives_no_further_look",
            "get a new quota under the new name",
            "needs a reason; both names share one quota",
        ),
    ):
        yield names.one(name, test, tries=tries, becomes=becomes)
