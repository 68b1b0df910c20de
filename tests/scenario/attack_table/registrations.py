"""Attacks by a registration or a signature."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["attacks"]

FAMILY = "A registration or signature that is not what it claims"


def attacks() -> Iterator[Attack]:
    here = Group(family=FAMILY, module="scenario/test_registration_attacks.py")
    against = "refused: `team-registered`"
    quiet = "; not logged"
    yield from here.cases(
        "test_a_signature",
        "of another submission",
        "for another board",
        "over another agreement",
        "of no team",
        tries="submit without having agreed",
        becomes=against,
        prefix="a submission with a signature ",
    )
    for name, test, tries in (
        (
            "a replayed signature of another submission",
            "test_a_replayed_signature_of_another_submission",
            "reuse an earlier signature",
        ),
        ("another team's key", "test_another_team_s_key", "use up another team's quota"),
        (
            "a registered team under another's name",
            "test_a_registered_team_under_another_s_name",
            "use up another team's quota",
        ),
        (
            "metadata that was changed after it was signed",
            "test_metadata_that_was_changed_after_it_was_signed",
            "change a team's statement",
        ),
        (
            "a signature that was taken off",
            "test_a_signature_that_was_taken_off",
            "submit unsigned",
        ),
    ):
        yield here.one(name, test, tries=tries, becomes=against)
    yield here.one(
        "new metadata without the team's signature",
        "test_new_metadata_without_the_team_s_signature",
        tries="change an entry with the submission's key alone",
        becomes="refused: `bad-signature`",
    )
    for case, becomes in {
        "for another board": "bad-signature",
        "of somebody else's key": "bad-signature",
        "of a key of small order": "bad-signature",
        "without the agreement": "other-agreement",
        "for another agreement": "other-agreement",
        "for other names than it seals": "untrusted",
        "of no time": "not-a-registration",
        "of a key that is a path": "not-a-registration",
    }.items():
        yield here.one(
            f"a registration {case}",
            "test_a_registration",
            tries="register without a valid signature",
            becomes=f"refused: `{becomes}`{quiet}",
            case=case,
        )
    for name, test, becomes in (
        ("an old registration sent again", "test_an_old_registration_sent_again", "stale"),
        ("a revoked registration sent again", "test_a_revoked_registration_sent_again", "revoked"),
    ):
        code = {"stale": "stale-registration", "revoked": "registration-revoked"}[becomes]
        yield here.one(
            name, test, tries="undo what came after it", becomes=f"known, or refused: `{code}`"
        )
    for name, test, code in (
        ("sealed names that were swapped", "test_sealed_names_that_were_swapped", "untrusted"),
        ("the name of a registered team", "test_the_name_of_a_registered_team", "name-registered"),
        ("a key under a second name", "test_a_key_under_a_second_name", "name-registered"),
        ("a huge registration", "test_a_huge_registration", "too-large"),
        (
            "a registration after the last day",
            "test_a_registration_after_the_last_day",
            "registration-closed",
        ),
        (
            "a registration that brings more",
            "test_a_registration_that_brings_more",
            "foreign-change",
        ),
        (
            "a file that is no registration",
            "test_a_file_that_is_no_registration",
            "not-a-registration",
        ),
    ):
        yield here.one(
            name, test, tries="misuse a registration", becomes=f"refused: `{code}`{quiet}"
        )
    yield from _registration_requests()
    story = Group(family=FAMILY, module="scenario/test_registration.py")
    yield story.one(
        "a revoked team that comes again under a new key",
        "test_who_was_revoked_and_comes_again_under_a_new_key_is_told_to_the_organisers",
        tries="appear as a new team",
        becomes="received; organisers see what both have in common",
    )
    yield story.one(
        "a reader who looks for one key under two submissions",
        "test_the_public_log_neither_names_a_team_nor_ties_its_submissions",
        tries="identify an embargoed team",
        becomes="names are sealed; key and handle appear only once",
    )


def _registration_requests() -> Iterator[Attack]:
    """Requests, as the workflow on the forge looks at them."""
    here = Group(family=FAMILY, module="scenario/test_registration_forms.py")
    for name, test, code in (
        (
            "a registration beside another file",
            "test_a_registration_beside_another_file",
            "foreign-change",
        ),
        ("two registrations at once", "test_two_registrations_at_once", "foreign-change"),
        (
            "a registration that is no plain file",
            "test_a_registration_that_is_no_plain_file",
            "foreign-change",
        ),
        (
            "a registration that takes a file away",
            "test_a_registration_that_takes_a_file_away",
            "foreign-change",
        ),
        ("a registration without end", "test_a_registration_without_end", "too-large"),
        (
            "a statement that its key did not sign",
            "test_a_statement_that_its_key_did_not_sign",
            "bad-signature",
        ),
        (
            "a registration under a name that is not its team's",
            "test_a_registration_under_a_name_that_is_not_its_team_s",
            "bad-signature",
        ),
    ):
        yield here.one(
            name,
            test,
            tries="pass for a registration in a pull request",
            becomes=f"refused: `{code}`, on the forge too",
        )
    yield Group(family=FAMILY, module="board/test_forge_registrations.py").one(
        "a registration whose request was closed",
        "test_an_open_registration_is_taken_in_and_answered_once_and_a_closed_one_is_not",
        tries="be received though the request was withdrawn",
        becomes="not received",
    )
