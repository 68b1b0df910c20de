"""Attacks by a forge."""

from collections.abc import Iterator

from attack_table.attack import SAME, Attack, Group

__all__ = ["attacks"]

FAMILY = "A forge that answers nonsense"


def attacks() -> Iterator[Attack]:
    here = Group(family=FAMILY, module="scenario/test_attacks_by_forge.py")
    yield from here.cases(
        "test_a_forge_that_answers_nonsense",
        "a page to sign in",
        "nothing at all",
        "an object for a list",
        "brackets without end",
        "9 MB",
        "a commit that is an option",
        "a commit that is nowhere",
        "half an answer",
        tries="stop or deceive the inbox",
        becomes="reported or skipped; the rest continues" + SAME,
        prefix="a forge that answers with ",
    )
    yield here.one(
        "a forge that answers nonsense to a comment",
        "test_a_forge_that_answers_nonsense_to_a_comment",
        tries="stop a publication",
        becomes="the event stands, the page follows",
    )
    hostile = Group(family=FAMILY, module="board/test_forge_hostile.py")
    passing = Group(family=FAMILY, module="board/test_forge_passing.py")
    yield from hostile.cases(
        "test_nonsense_is_refused_in_one_line",
        "a page of HTML",
        "bytes that are no UTF-8",
        "half a document",
        "a list of numbers",
        "a list of nothing",
        "a number that is text",
        "a negative number",
        "a commit that is a path",
        "50 MB",
        "a small archive of a large text",
        "a teapot",
        "control characters in an error",
        tries="crash or mislead",
        becomes="refused in one line, on each of three forges",
        prefix="a hosted forge that says ",
    )
    for group, name, test, becomes in (
        (hostile, "a list without end", "test_a_list_without_end_is_given_up", "given up"),
        (
            hostile,
            "a page that comes again",
            "test_a_page_that_comes_again_and_again_ends_the_list",
            "the list ends",
        ),
        (
            hostile,
            "an answer that drips",
            "test_an_answer_that_drips_is_given_up",
            "given up after 120 s",
        ),
        (
            passing,
            "a limit that never ends",
            "test_a_limit_that_never_ends_is_given_up",
            "given up",
        ),
        (
            hostile,
            "a redirect elsewhere",
            "test_a_redirect_never_takes_the_token_elsewhere",
            "not followed with the token",
        ),
        (
            hostile,
            "a next page elsewhere",
            "test_a_next_page_elsewhere_is_not_asked_with_the_token",
            "not requested with the token",
        ),
        (
            hostile,
            "a forge that says the token back",
            "test_a_forge_that_says_the_token_back_does_not_get_it_shown",
            "the token is not shown",
        ),
        (
            passing,
            "an answer that is lost",
            "test_a_comment_whose_answer_is_lost_is_found_and_not_posted_again",
            "looked up, not posted again",
        ),
    ):
        yield group.one(
            name, test, tries="hang, steal the token, or get two answers", becomes=becomes
        )
