"""Attacks by a file that holds others."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["attacks"]

FAMILY = "A hostile container"


def attacks() -> Iterator[Attack]:
    streams = Group(family=FAMILY, module="trec/test_streams.py")
    for name, test in (
        ("a run that unpacks to more than is allowed", "test_a_bomb_is_refused_by_its_bytes"),
        ("a run that unpacks a thousandfold", "test_a_bomb_is_refused_by_its_ratio"),
    ):
        yield streams.one(name, test, tries="exhaust memory", becomes="refused: `archive-bomb`")
    yield Group(family=FAMILY, module="files/test_store_zipped.py").one(
        "a board's archive of many small members that unpack a thousandfold",
        "test_a_hostile_zip",
        tries="fill a disk from 75 MB",
        becomes="refused before unpacking: `archive-bomb`",
        case="a zip bomb of many small members",
    )
    archive = Group(family=FAMILY, module="envelope/test_archive.py")
    yield from archive.cases(
        "test_hostile_tarball_is_refused",
        "pax-path-hidden-in-a-time",
        "pax-huge",
        "data-hidden-in-the-filling",
        "cut-in-a-run",
        "garbage-after-the-end",
        "second-tarball-after-the-end",
        "endless-zeros-after-the-end",
        tries="leave its folder, hide a run, or exhaust memory",
        becomes="refused; nothing is written",
        prefix="a tarball: ",
    )
    zipped = Group(family=FAMILY, module="files/test_store_zipped.py")
    yield from zipped.cases(
        "test_a_hostile_zip",
        "a zip bomb",
        "a zip bomb of overlapping members",
        tries="exhaust the auditor's memory",
        becomes="refused by declared and by read bytes",
    )
