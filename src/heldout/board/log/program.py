"""A submission that is a program instead of run files: an image of a container, and a command.

What a team states of it in the metadata, and what an organiser measured when it ran. The image is
named with its digest, so that the metadata, which are sealed and bound to the submission, say
which bytes run.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec

from heldout.errors import InputError, Problem, quote

LONGEST_COMMAND = 64
"""Most words of a command."""

_LONGEST_WORD = 2000
_NAME = r"[a-z0-9]+(?:[._/:-]+[A-Za-z0-9]+)*"
_IMAGE = re.compile(rf"(?=.{{1,500}}@)({_NAME})@(sha256:[0-9a-f]{{64}})", re.ASCII)
_MOST_PORT = 65535
_LOWEST_PORT = 1024


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program that makes the runs.

    Attributes:
        image: `NAME@sha256:DIGEST`.
        command: its words; none for the image's own command.
        port: where it answers `GET /search/?q=…&k=…`; `None` for a program that reads queries from
            one folder and writes runs into another.
    """

    image: str
    command: tuple[str, ...] = ()
    port: int | None = None

    @property
    def name(self) -> str:
        """The image's name, without the digest."""
        return self.image.partition("@")[0]

    @property
    def digest(self) -> str:
        """The image's digest: of its manifest or of its configuration, `sha256:…`."""
        return self.image.partition("@")[2]


_Number = Annotated[float, msgspec.Meta(ge=0)]


class Costs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What running a program cost, as an organiser measured it; `None` for what was not measured.

    Two significant digits: they are published, and a program that wants to say a secret query to
    its team could write it into further ones.

    Attributes:
        seconds: wall-clock time, from the start of the container to its end.
        query_latency_ms: mean wall-clock time per query: of a server's answer, or `seconds` by the
            number of queries of all sets.
        processor_seconds: time that its processes used of all processors.
        memory_mib: most memory that they used at once, files in memory included.
        energy_kwh: energy that the whole machine used meanwhile.
        machine: what it was measured on.
    """

    seconds: _Number
    query_latency_ms: _Number
    processor_seconds: _Number | None = None
    memory_mib: _Number | None = None
    energy_kwh: _Number | None = None
    machine: str = ""


def read_program(value: object) -> Program | None:
    """A checked value as its struct; `None` for a submission of run files.

    Raises:
        msgspec.ValidationError: the value was not checked.
    """
    return msgspec.convert(value, Program | None)


def parse_image(image: str) -> Program:
    """A program that is an image and its own command.

    Raises:
        InputError: code `wrong-field`: the image is not named with its digest.
    """
    if not _IMAGE.fullmatch(image):
        raise InputError(_wrong_image("--image", image))
    return Program(image=image)


def check_program(value: object, *, path: str) -> Iterator[Problem]:
    """The problems of the metadata's field `program`.

    Args:
        value: what stands in the file, as JSON gives it.
        path: where it stands, for errors.
    """
    if value is None:
        return
    if not isinstance(value, dict):
        yield _wrong(path, value, "an object with image, command and port, or null")
        return
    known = Program.__struct_fields__
    for name in (one for one in value if one not in known):
        yield Problem(
            code="unknown-field",
            path=path,
            found=quote(name),
            expected="one of " + ", ".join(known),
            hint="remove it, or correct its spelling",
        )
    yield from _check_values(value, path)


def _check_values(value: Mapping[str, Any], path: str) -> Iterator[Problem]:
    image = value.get("image")
    if not isinstance(image, str) or not _IMAGE.fullmatch(image):
        yield _wrong_image(f"{path}.image", image)
    command = value.get("command", [])
    if (
        not isinstance(command, list)
        or len(command) > LONGEST_COMMAND
        or not all(isinstance(word, str) and 0 < len(word) <= _LONGEST_WORD for word in command)
        or not all(word.isprintable() for word in command)
    ):
        yield _wrong(f"{path}.command", command, "a list of words, as a shell would split them")
    port = value.get("port")
    if port is not None and (type(port) is not int or not _LOWEST_PORT <= port <= _MOST_PORT):
        yield _wrong(f"{path}.port", port, f"a number from {_LOWEST_PORT} to {_MOST_PORT}, or null")


def _wrong_image(place: str, image: object) -> Problem:
    hint = "podman image inspect NAME --format '{{.Digest}}' prints the digest"
    return _wrong(place, image, "NAME@sha256: and 64 hexadecimal digits", hint)


def _wrong(place: str, found: object, expected: str, hint: str = "") -> Problem:
    return Problem(code="wrong-field", path=place, found=quote(found), expected=expected, hint=hint)
