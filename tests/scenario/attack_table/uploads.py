"""Attacks on the page that takes uploads, and on the server beneath it."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["attacks"]

FAMILY = "Uploads and connections"


def attacks() -> Iterator[Attack]:
    folder = Group(family=FAMILY, module="board/test_uploads.py")
    pages = Group(family=FAMILY, module="web/test_upload_pages.py")
    lines = Group(family=FAMILY, module="web/test_connections.py")
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
