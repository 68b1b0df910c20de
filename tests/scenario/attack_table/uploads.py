"""Attacks on the page that takes uploads, and on the server beneath it."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["attacks"]

FAMILY = "Uploads and connections"


def attacks() -> Iterator[Attack]:
    folder = Group(family=FAMILY, module="board/test_uploads.py")
    pages = Group(family=FAMILY, module="web/test_upload_pages.py")
    lines = Group(family=FAMILY, module="web/test_connections.py")
    teams = Group(family=FAMILY, module="web/test_team_pages.py")
    api = Group(family=FAMILY, module="web/test_intake_api.py")
    people = Group(family=FAMILY, module="web/test_sign_in.py")
    mails = Group(family=FAMILY, module="web/test_mail.py")
    inbox = Group(family=FAMILY, module="scenario/test_hostile_branches.py")
    for group, name, test, tries, becomes in (
        (
            pages,
            "junk by upload under a team's id",
            "test_junk_under_an_id_keeps_no_team_out",
            "block the team's own update",
            "separate deliveries; the inbox receives what opens",
        ),
        (
            inbox,
            "junk by upload that stays",
            "test_uploads_go_when_the_inbox_is_done_with_them",
            "fill the upload folder",
            "removed at the inbox after its refusal",
        ),
        (
            folder,
            "a delivery that is a link, a pipe or a folder of somebody's",
            "test_what_is_no_plain_file_is_neither_followed_nor_replaced",
            "read other files, or write elsewhere",
            "neither followed nor replaced",
        ),
        (
            folder,
            "several uploads that each would fit",
            "test_room_is_set_apart_before_anything_is_read",
            "fill the disk",
            "refused before reading: `upload-full`",
        ),
        (
            folder,
            "uploads without a length",
            "test_room_is_set_apart_as_it_comes_where_nobody_said_how_much",
            "fill the disk",
            "refused at the common limit: `upload-full`",
        ),
        (
            folder,
            "all places from one address",
            "test_one_address_has_a_few_places_and_leaves_the_others",
            "block all other senders",
            "refused: `upload-busy`; others have slots",
        ),
        (
            pages,
            "a sender who is slow on purpose",
            "test_a_slow_sender_does_not_keep_a_place",
            "occupy a slot",
            "ended below the minimum rate",
        ),
        (
            teams,
            "an invitation that was used or has ended",
            "test_an_invitation_works_once_and_ends",
            "join without the organiser",
            "refused: `invitation-used`, `invitation-expired`",
        ),
        (
            teams,
            "a form of another session, or of another site",
            "test_a_session_s_cookie_is_locked_down_and_a_form_is_the_session_s_own",
            "act for a team that is signed in",
            "refused; nothing is done",
        ),
        (
            teams,
            "the server's database",
            "test_no_secret_lies_in_the_database",
            "use a token, an invitation or a session",
            "it has digests of them alone",
        ),
        (
            teams,
            "the answer to somebody else's sign-in",
            "test_a_sign_in_of_somebody_else_s_browser_is_refused",
            "sign a person in for the attacker's team, or send them elsewhere",
            "refused; no address of the request is followed",
        ),
        (
            people,
            "an ID token of another issuer, client, time, nonce or person",
            "test_an_id_token_that_does_not_hold_is_refused",
            "sign in as somebody else",
            "refused: `sign-in`",
        ),
        (
            people,
            "an ID token that another key signed",
            "test_a_token_signed_by_another_key_is_refused",
            "sign in as somebody else",
            "refused: `sign-in`",
        ),
        (
            api,
            "another team's upload",
            "test_nothing_of_another_team_is_seen",
            "read, finish, change or end it",
            "refused: `upload-unknown`",
        ),
        (
            api,
            "bytes that changed on their way",
            "test_what_changed_on_its_way_is_refused_and_uses_no_quota",
            "have another file handed over",
            "refused: `upload-digest`; no quota is used",
        ),
        (
            mails,
            "line ends in a name",
            "test_a_name_starts_no_header",
            "add receivers to a mail",
            "the name stays text",
        ),
        (
            lines,
            "connections that ask nothing",
            "test_a_connection_that_asks_nothing_is_closed",
            "block the server",
            "closed after some seconds",
        ),
        (
            lines,
            "a request's head in drips",
            "test_a_head_that_comes_in_drips_is_closed",
            "occupy a connection for ever",
            "closed after some seconds",
        ),
        (
            lines,
            "very many connections from one address",
            "test_idle_connections_of_one_address_leave_places",
            "block the server and fill its log",
            "closed at once beyond half of all slots",
        ),
        (
            lines,
            "requests that are logged again and again",
            "test_the_log_has_so_many_lines_a_minute",
            "fill the disk with a log",
            "lines per minute are limited",
        ),
    ):
        yield group.one(name, test, tries=tries, becomes=becomes)
