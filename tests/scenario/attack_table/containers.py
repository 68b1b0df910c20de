"""Attacks by a file that holds others, and by programs that an organiser runs in a container."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["attacks"]

FAMILY = "A hostile container"
PROGRAMS = "A hostile program"


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
    yield from _programs()


def _programs() -> Iterator[Attack]:
    made = Group(family=PROGRAMS, module="scenario/test_hostile_programs.py")
    asked = Group(family=PROGRAMS, module="board/test_containers.py")
    whole = Group(family=PROGRAMS, module="scenario/test_code_submissions.py")
    answered = "a coded answer; no container, file or event is left"
    for group, name, test, tries, becomes in (
        (
            made,
            "a program that asks the network",
            "test_a_network",
            "send secret queries out",
            "it sees its own loopback and nothing else",
        ),
        (
            made,
            "a program that looks around",
            "test_what_a_program_sees",
            "read labels, keys or variables",
            "they are not there",
        ),
        (
            made,
            "a program that makes namespaces",
            "test_a_namespace_of_its_own_in_which_it_would_be_root",
            "be root over mounts and networks",
            "the calls are refused",
        ),
        (
            asked,
            "a program that talks to the machine below its virtual machine",
            "test_podman_s_filter_loses_what_makes_namespaces",
            "reach a service past the network's namespace",
            "no such sockets (podman)",
        ),
        (
            made,
            "links, devices and thousands of files beside its run",
            "test_links_devices_names_and_thousands_of_files",
            "make heldout read or remove other files",
            "none can be made",
        ),
        (made, "a run that fills the disk", "test_a_full_disk", "stop the board", answered),
        (made, "too much memory", "test_too_much_memory", "stop the machine", answered),
        (
            made,
            "files in /dev/shm and other places in memory",
            "test_files_in_memory_are_memory",
            "exceed the memory past /tmp",
            answered,
        ),
        (made, "forks without end", "test_forks_without_end", "stop the machine", answered),
        (
            made,
            "a program that never ends and ignores signals",
            "test_a_program_that_never_ends",
            "run for ever",
            answered,
        ),
        (
            made,
            "last words that a terminal obeys",
            "test_a_program_that_fails_says_why_without_what_a_terminal_obeys",
            "change what the organiser sees",
            "escaped",
        ),
        (
            made,
            "an image with volumes, another user and proxies",
            "test_an_image_whose_settings_would_take_protection_away",
            "write to the disk, or be root",
            "volumes are memory; the user stays 65532",
        ),
        (
            asked,
            "an image with a volume over what a program gets",
            "test_a_volume_that_would_hide_what_a_program_gets",
            "write its run elsewhere",
            "refused: `image-volume`",
        ),
        (
            whole,
            "an image that changed after it was sealed",
            "test_an_image_with_another_digest",
            "run other code than was sealed",
            "refused: `image-digest`",
        ),
        (
            asked,
            "an engine that leaves a limit out with a warning",
            "test_a_container_that_cannot_be_made_as_asked_for",
            "run without limits",
            "refused: `container-limits`; the container is removed",
        ),
        (
            made,
            "a program whose `heldout run` is killed",
            "test_a_killed_call_leaves_what_the_next_one_removes",
            "outlive the call",
            "the next call removes it",
        ),
        (
            asked,
            "measured costs that spell a query",
            "test_costs_have_no_digits_to_write_into",
            "tell its team a secret query",
            "two significant digits",
        ),
    ):
        yield group.one(name, test, tries=tries, becomes=becomes)
