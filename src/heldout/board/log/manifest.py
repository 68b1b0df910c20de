"""The metadata file of a submission: what a team says of its run.

The fields of the MS MARCO boards (Lin et al. 2022, §§3.1 and 3.3), with the
institution named by itself, the training data disclosed, and what binds the file to its runs. In
place of run files a team may name a program: the image of a container, with its digest, so that the
sealed metadata say which bytes run, and a command.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from heldout.board.log.events import Hex128
from heldout.errors import InputError, Problem, quote
from heldout.ids import digest_bytes

LONGEST_COMMAND = 64
"""Most words of a command."""

_LONGEST_WORD = 2000
_IMAGE_NAME = r"[a-z0-9]+(?:[._/:-]+[A-Za-z0-9]+)*"
_IMAGE = re.compile(rf"(?=.{{1,500}}@)({_IMAGE_NAME})@(sha256:[0-9a-f]{{64}})", re.ASCII)


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program that makes the runs.

    Attributes:
        image: `NAME@sha256:DIGEST`.
        command: its words; none for the image's own command.
    """

    image: str
    command: tuple[str, ...] = ()

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
        query_latency_ms: `seconds` by the number of queries of all sets.
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
    yield from _check_object(value, Program, path, "an object with image and command, or null")
    if not isinstance(value, dict):
        return
    image, command = value.get("image"), value.get("command", [])
    if not isinstance(image, str) or not _IMAGE.fullmatch(image):
        yield _wrong_image(f"{path}.image", image)
    words = isinstance(command, list) and all(
        isinstance(word, str) and 0 < len(word) <= _LONGEST_WORD and word.isprintable()
        for word in command
    )
    if not words or len(command) > LONGEST_COMMAND:
        yield _wrong(f"{path}.command", command, "a list of words, as a shell would split them")


def _check_object(
    value: object, kind: type[msgspec.Struct], path: str, expected: str
) -> Iterator[Problem]:
    """Yield that a value is no object, or has fields that are not known; nothing for `None`."""
    known = kind.__struct_fields__
    if isinstance(value, dict):
        yield from (_unknown(path, quote(name), known) for name in value if name not in known)
    elif value is not None:
        yield _wrong(path, value, expected)


def _wrong_image(where: str, image: object) -> Problem:
    hint = "podman image inspect NAME --format '{{.Digest}}' prints the digest"
    return _wrong(where, image, "NAME@sha256: and 64 hexadecimal digits", hint)


_MOST_CHARACTERS = 2000
_MOST_UNKNOWN = 10
_MOST_REVISIONS = 1_000_000
_TEAMS = 1 << 15  # names whose keys are kept: several rules ask for that of every entry
_IN_NO_LINK = frozenset(" <>\"'`\\")
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Letters, marks and symbols that show nothing: one of them would make another team of a name.
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0").union(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """What a system cost, as its team states it; `None` and "" are what it does not state.

    All of it is optional and nobody checks it, so it ranks nothing. Numbers of two teams were
    measured on two machines. Where others have a field for the same: `hardware` is what ir_metadata
    lists under `platform`, `hardware`; `query_latency_ms` is TIREx tracker's
    `TIME_ELAPSED_WALL_CLOCK_MS` by the number of queries; `energy_kwh` is the sum of its
    `CPU_ENERGY_SYSTEM_JOULES`, `RAM_ENERGY_SYSTEM_JOULES` and `GPU_ENERGY_SYSTEM_JOULES` by
    3,600,000. Neither has a field for parameters or training pairs.

    Attributes:
        parameters: of all models that it runs, summed; 0 where it has none.
        training_pairs: (query, document) pairs that it was trained on; 0 where there are none.
        hardware: what the times and the energy were measured on.
        query_latency_ms: mean wall-clock time per query, in milliseconds.
        energy_kwh: energy that making the submitted runs took, in kWh; training apart.
    """

    parameters: int | None = None
    training_pairs: int | None = None
    hardware: str = ""
    query_latency_ms: float | None = None
    energy_kwh: float | None = None


LIMITS: Mapping[str, tuple[float, float]] = {
    "parameters": (0, 10**15),
    "training_pairs": (0, 10**15),
    "query_latency_ms": (0.0001, 10**9),
    "energy_kwh": (0.0001, 10**9),
}
"""Field -> least and most it may state.

Nothing takes no time and no energy. Between these ends every JSON writer prints a number with the
same digits and without an exponent, so that anybody can make the digest of a sealed identity.
"""

_WHOLE = ("parameters", "training_pairs")


class Identity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who sent a submission, what it is and what its team agrees to: all that an embargo hides.

    This is the one list of these fields: the metadata file has them beside its own, events hold
    them as `identity`, and a row of the leaderboard has this value, or `None` under an embargo. A
    field with a default came with a later version of the log.

    Attributes:
        team: the group and those in it, so that a web search finds them.
        institution: the university, company or other organisation of the team.
        description: the system, as it stands on the page.
        paper: http(s) address or "".
        code: http(s) address or "".
        training_data: what the system was trained or tuned on; "none" is an answer.
        efficiency: what the system cost, `None` where nothing is stated.
        open_runs: whether the team agrees that its runs are opened at the board's end; `None`
            where it has not said, which is no agreement.
        season_entry: whether it stands for its team at the season's end, on a board under `clear`.
    """

    team: str
    institution: str
    description: str
    paper: str
    code: str
    training_data: str
    efficiency: Efficiency | None = None
    open_runs: bool | None = None
    season_entry: bool = False


class Manifest(Identity, frozen=True, kw_only=True):
    """A submission's metadata, version 1: the identity, and what binds the file to its runs.

    Attributes:
        description: `model_description` in the file, as on the MS MARCO boards.
        type: one of the board's submission types.
        embargo_until: the day on which the identity is revealed, or `None`.
        revision: 1, then higher with each update.
        withdrawn: true in an update that takes the submission back.
        id: the submission it belongs to; "" where the MS MARCO boards' own scripts sealed it.
        digests: query set -> SHA-256 of the run file as packed; empty there too.
        program: what makes the runs, where no run files are sent; `None` where they are.
        schema: version of this format.
    """

    description: str = msgspec.field(name="model_description")
    type: str
    embargo_until: date | None = None
    revision: int = 1
    withdrawn: bool = False
    id: str = ""
    digests: dict[str, str] = msgspec.field(default_factory=dict)
    program: Program | None = None
    schema: int = 1

    @property
    def identity(self) -> Identity:
        """The part of it that an embargo hides."""
        return Identity(**{name: getattr(self, name) for name in Identity.__struct_fields__})


_FIELDS = msgspec.structs.fields(Manifest)
_KNOWN = (*(field.encode_name for field in _FIELDS), "date")
_TEXTS = tuple(field.encode_name for field in _FIELDS if field.type is str)
LINKS = ("paper", "code")
"""The fields of an identity that are addresses."""

MEANINGS: Mapping[str, str] = {
    "team": "the team and those in it, so that a web search finds them",
    "institution": "the university, company or other organisation",
    "model_description": "the system, as it should stand on the page",
    "training_data": 'what the system was trained or tuned on; "none" is an answer',
    "type": "a submission type of this board",
    "paper": 'an http or https address, or ""',
    "code": 'an http or https address, or ""',
    "efficiency": 'what the system cost; null and "" say nothing',
    "open_runs": "true or false: whether your runs may be opened when the board ends",
    "season_entry": "true or false: whether this entry stands for your team at the season's end",
    "embargo_until": "the day on which your names appear, or null",
    "program": "an image and a command in place of run files, or null",
}
"""Field of the metadata file that a team fills in -> what belongs there."""

_NEEDED = ("team", "model_description", "type")


def identity_fields(who: Identity) -> dict[str, Any]:
    """An identity, or that of a manifest, as events hold it."""
    return {name: msgspec.to_builtins(getattr(who, name)) for name in Identity.__struct_fields__}


def read_identity(fields: Mapping[str, Any]) -> Identity:
    """The identity that a checked event holds; older ones lack what could not be stated yet."""
    efficiency = read_efficiency(fields.get("efficiency"))
    return Identity(**{**fields, "efficiency": efficiency})


def empty_manifest(*, types: tuple[str, ...], embargo_until: date | None) -> Manifest:
    """Return what `draft` writes for a team to fill in; only the type is guessed."""
    return Manifest(
        team="",
        institution="",
        description="",
        paper="",
        code="",
        training_data="",
        efficiency=Efficiency(),
        type=types[0],
        embargo_until=embargo_until,
    )


def format_manifest(manifest: Manifest) -> bytes:
    """The metadata as indented JSON, newline at the end."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def parse_manifest(data: bytes, *, path: str = "metadata.json") -> Manifest:
    """Read and check a metadata file; every problem is in the error.

    Args:
        data: the file's bytes.
        path: its name, for errors.

    Raises:
        InputError: not JSON, a field missing, unknown or of the wrong kind, a link that is not
            http(s), text that is too long or holds invisible characters.
    """
    manifest, problems = read_manifest(data, path=path)
    if problems:
        raise InputError(problems)
    return manifest


def read_manifest(
    data: bytes, *, path: str = "metadata.json"
) -> tuple[Manifest, tuple[Problem, ...]]:
    """As `parse_manifest`, with a field that is wrong or missing read as if it were empty.

    Raises:
        InputError: it is no JSON object.
    """
    fields = _decode(data, path)
    problems = [*_check_names(fields, path), *_check_texts(fields, path)]
    problems += [*_check_links(fields, path), *_check_others(fields, path)]
    problems += check_efficiency(fields.get("efficiency"), path=f"{path}:efficiency")
    problems += check_program(fields.get("program"), path=f"{path}:program")
    fields_of = (problem.path.removeprefix(f"{path}:") for problem in problems)
    wrong = {"date", *(name.partition(".")[0] for name in fields_of)}
    known: dict[str, Any] = dict.fromkeys(_TEXTS, "")
    known |= {n: value for n, value in fields.items() if n in _KNOWN and n not in wrong}
    day = known.get("embargo_until") or None
    known["embargo_until"] = parse_day(day) if day else None
    known["efficiency"] = read_efficiency(known.get("efficiency"))
    known["program"] = read_program(known.get("program"))
    return Manifest(description=known.pop("model_description"), **known), tuple(problems)


def parse_day(text: str) -> date:
    """A day as `yyyy-mm-dd` or, as the MS MARCO boards write it, `yyyy/mm/dd`."""
    if not re.fullmatch(r"\d{4}([-/])\d{2}\1\d{2}", text, re.ASCII):
        raise ValueError(text)
    return date.fromisoformat(text.replace("/", "-"))


@lru_cache(maxsize=_TEAMS)
def team_key(team: str) -> str:
    """The name under which a team's submissions are counted: case, width and spaces folded."""
    folded = unicodedata.normalize("NFKC", team).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def _decode(data: bytes, path: str) -> Mapping[str, Any]:
    try:
        value = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        line, found = _explain(error, data)
        hint = "a comma or quote is missing, or a comment is left in"
        raise InputError.of("not-json", path, found, hint=hint, line=line) from None
    if isinstance(value, dict):
        return value
    raise InputError.of("not-json", path, quote(value))


def _explain(error: Exception, data: bytes) -> tuple[int | None, str]:
    """The line and the fault of what is no JSON."""
    if isinstance(error, UnicodeDecodeError):
        return None, "bytes that are not UTF-8"
    if isinstance(error, RecursionError):
        return None, "brackets in brackets without end"
    text, _, at = str(error).removeprefix("JSON is malformed: ").partition(" (byte ")
    if not at[:-1].isdigit():
        return data.count(b"\n") + 1, quote(text)
    return data[: int(at[:-1])].count(b"\n") + 1, quote(text)


def _check_names(fields: Mapping[str, Any], path: str) -> Iterator[Problem]:
    unknown = [name for name in fields if name not in _KNOWN]
    found = [quote(name) for name in unknown[:_MOST_UNKNOWN]]
    if len(unknown) > _MOST_UNKNOWN:
        found.append(f"{len(unknown) - _MOST_UNKNOWN:,} more unknown fields")
    for name in found:
        yield _unknown(path, name, _KNOWN)
    for name in _NEEDED:
        if name not in fields:
            yield Problem.of("missing-field", f"{path}:{name}")


def _check_texts(fields: Mapping[str, Any], path: str) -> Iterator[Problem]:
    category = unicodedata.category
    texts = {name: fields[name] for name in (*_TEXTS, "date") if name in fields}
    efficiency = fields.get("efficiency")
    if isinstance(efficiency, dict) and "hardware" in efficiency:
        texts["efficiency.hardware"] = efficiency["hardware"]
    for name, value in texts.items():
        if not isinstance(value, str):
            yield _wrong(f"{path}:{name}", value, "text in quotes")
        elif len(value) > _MOST_CHARACTERS:
            found, most = f"{len(value):,} characters", f"at most {_MOST_CHARACTERS:,} characters"
            yield _wrong(f"{path}:{name}", found, most)
        elif bad := next((c for c in value if category(c) in _INVISIBLE or c in _BLANKS), None):
            found = f"U+{ord(bad):04X} {unicodedata.name(bad, 'control character')}"
            yield Problem.of("invisible-character", f"{path}:{name}", found)


def _check_links(fields: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for name in LINKS:
        value = fields.get(name, "")
        if isinstance(value, str) and value and not is_link(value):
            bare = value.split("://")[-1]
            hint = f'"https://{bare[:100]}"' if is_link(f"https://{bare}") else ""
            yield Problem.of("not-a-link", f"{path}:{name}", quote(value), MEANINGS[name], hint)


def is_link(text: str) -> bool:
    """Check whether a text is an http or https address that is safe to show as a link."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    tidy = text.isprintable() and _IN_NO_LINK.isdisjoint(text)
    return parts.scheme in ("http", "https") and "." in host and parts.username is None and tidy


_KINDS: Mapping[str, tuple[Any, str]] = {
    "open_runs": (bool | None, "true, false, or null"),
    "season_entry": (bool, "true or false"),
    "revision": (
        Annotated[int, msgspec.Meta(ge=1, le=_MOST_REVISIONS)],
        "a whole number from 1 up",
    ),
    "withdrawn": (bool, "true or false"),
    "schema": (Literal[1], "1"),
    "digests": (
        dict[str, Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]],
        "query set -> 64 hexadecimal digits",
    ),
}
"""Field of the metadata that is no text -> its type, and what an error says of that."""


def _check_others(fields: Mapping[str, Any], path: str) -> Iterator[Problem]:
    day = fields.get("embargo_until")
    if day not in (None, "") and not _is_day(day):
        yield _wrong(f"{path}:embargo_until", day, "a day as yyyy-mm-dd, or null")
    for name in (one for one in _KINDS if one in fields):
        kind, expected = _KINDS[name]
        try:
            msgspec.convert(fields[name], kind)
        except msgspec.ValidationError:
            yield _wrong(f"{path}:{name}", fields[name], expected)


def _is_day(value: object) -> bool:
    try:
        return isinstance(value, str) and parse_day(value) is not None
    except ValueError:
        return False


def _wrong(where: str, found: object, expected: str, hint: str = "") -> Problem:
    return Problem.of("wrong-field", where, quote(found), expected, hint)


def _unknown(where: str, found: str, known: Iterable[str]) -> Problem:
    return Problem.of("unknown-field", where, found, known=", ".join(known))


def read_efficiency(value: object) -> Efficiency | None:
    """A checked value as its struct, or what the log says of it.

    Args:
        value: an object in which `check_efficiency` finds nothing, or `None`.

    Returns:
        `None` where nothing is stated.

    Raises:
        msgspec.ValidationError: the value was not checked.
    """
    stated = msgspec.convert(value, Efficiency | None)
    return None if stated == Efficiency() else stated


def check_efficiency(value: object, *, path: str) -> Iterator[Problem]:
    """The problems of the metadata's field; the text in `hardware` is the caller's to check.

    Args:
        value: what stands in the file, as JSON gives it.
        path: where it stands, for errors.
    """
    expected = "an object with any of " + ", ".join(Efficiency.__struct_fields__)
    yield from _check_object(value, Efficiency, path, expected)
    for name, (least, most) in LIMITS.items():
        number = value.get(name) if isinstance(value, dict) else None
        kinds = (int,) if name in _WHOLE else (int, float)
        if number is None or (type(number) in kinds and least <= number <= most):
            continue
        kind = "a whole number" if name in _WHOLE else "a number"
        yield _wrong(f"{path}.{name}", number, f"{kind} from {least:,} to {most:,}, or null")


class SubmissionSignature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A team's signature of one revision of a submission.

    Attributes:
        team: of `team_handle`.
        agreement: the one that the team had agreed to when it signed, "" for none.
        value: of `submission_message`.
        metadata: SHA-256 of the metadata that was signed; the reader takes it of what came.
    """

    team: Annotated[str, msgspec.Meta(pattern=r"^team-[0-9a-f]{16}\Z")]
    agreement: Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?\Z")]
    value: Hex128
    metadata: str = ""


class _SignedMetadata(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    signed: str
    signature: SubmissionSignature


def join_signature(metadata: bytes, signature: SubmissionSignature) -> bytes:
    """The metadata with its signature around it, as it goes into the seal."""
    signed = _SignedMetadata(signed=metadata.decode(), signature=signature)
    return msgspec.json.format(msgspec.json.encode(signed), indent=2) + b"\n"


def split_signature(data: bytes) -> tuple[bytes, SubmissionSignature | None]:
    """The metadata in what came out of the seal, and its signature, `None` where it has none.

    The signature names the digest of this metadata, whatever it was made for.
    """
    try:
        found = msgspec.json.decode(data, type=_SignedMetadata)
        metadata = found.signed.encode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return data, None
    digest = str(digest_bytes(metadata))
    return metadata, msgspec.structs.replace(found.signature, metadata=digest)
