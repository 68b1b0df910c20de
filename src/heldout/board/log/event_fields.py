"""What each kind of event has to say, and after what it may come, checked before a log is read.

The chain of a log shows that nobody changed it, not that what it says makes sense: whoever writes
an event also writes its hash. So every field that is known here is checked against one table, and
every event against what its entry was before: a score of what was never received, or of what was
refused, can be chained as well as any other. What reads a log afterwards can rely on both. Fields
that the table does not name are left alone, and a sealed field is there, though nobody can say what
it holds.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from heldout.board.log.events import AFTER_CLOSING, Entry
from heldout.board.log.manifest import Identity
from heldout.board.log.measured import Figures, LeftOut
from heldout.board.log.registration import Registrant, SubmissionSignature
from heldout.errors import StoreError, quote

_Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]

_Score = Annotated[str, msgspec.Meta(pattern=r"^-?[0-9]{1,12}(\.[0-9]{1,12})?\Z")]

_Luck = Annotated[str, msgspec.Meta(pattern=r"^([0-9]{1,12}\.[0-9]{1,12})?\Z")]

_Team = Annotated[str, msgspec.Meta(pattern=r"^team-[0-9a-f]{16}\Z")]

_Digests = dict[str, _Digest]

_Scores = dict[str, _Score]

_Counts = dict[str, Annotated[int, msgspec.Meta(ge=0)]]

_Names = tuple[str, ...]


class _Fields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of an event; one without a default has to be there."""


class _Final(_Fields, frozen=True, kw_only=True):
    """`final`: scores that are told after the last day."""

    scores: _Scores
    queries: _Counts
    spreads: _Scores = msgspec.field(default_factory=dict)


class _Seeds(_Fields, frozen=True, kw_only=True):
    """`seeds`: of an entry whose scores are means over several runs."""

    runs: Annotated[int, msgspec.Meta(ge=2, le=99)]
    spreads: _Scores


class _Kept(_Fields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`kept`: what the vault keeps of a submission that was opened."""

    scores: _Digest | msgspec.UnsetType = msgspec.UNSET
    signatures: _Digest | msgspec.UnsetType = msgspec.UNSET


class _Nothing(_Fields, frozen=True, kw_only=True):
    """An event that says all by its kind."""


class _Rules(_Fields, frozen=True, kw_only=True):
    rules: str = msgspec.field(name="board.toml")
    labels: _Digests = msgspec.field(default_factory=dict)
    files: _Digests = msgspec.field(default_factory=dict)
    why: str = ""


class _Opened(_Rules, frozen=True, kw_only=True):
    signers: dict[str, _Digest] = msgspec.field(default_factory=dict)


class _Received(_Fields, frozen=True, kw_only=True):
    files: _Digests
    fingerprint: str = ""
    source: str = ""


class _Metadata(_Fields, frozen=True, kw_only=True):
    identity: Identity | None = None
    embargo_until: date | None = None
    revision: int = 0
    signature: SubmissionSignature | None = None


class _Reviewed(_Metadata, frozen=True, kw_only=True):
    type: str | None = None
    evidence: _Digests = msgspec.field(default_factory=dict)
    kept: _Kept | None = None


class _Updated(_Metadata, frozen=True, kw_only=True):
    files: _Digests
    type: str | None = None
    fingerprint: str = ""


class _Scored(_Metadata, frozen=True, kw_only=True):
    """What a score was told with; without scores where all is withheld until a day."""

    scores: _Scores = msgspec.field(default_factory=dict)
    queries: _Counts = msgspec.field(default_factory=dict)
    not_above: _Scores = msgspec.field(default_factory=dict)
    untold: _Names = ()
    bars: dict[str, str] = msgspec.field(default_factory=dict)
    final: _Final | None = None
    seeds: _Seeds | None = None
    evidence: _Digests = msgspec.field(default_factory=dict)
    compared: _Digests = msgspec.field(default_factory=dict)
    kept: _Kept | None = None


class _Published(_Scored, frozen=True, kw_only=True):
    type: str
    why: str | None = None
    findings: _Names = ()
    runs: _Digests = msgspec.field(default_factory=dict)


class _Corrected(_Scored, frozen=True, kw_only=True):
    why: str


class _Proposed(_Fields, frozen=True, kw_only=True):
    files: _Digests
    identity: Identity
    revision: int
    fingerprint: str = ""
    source: str = ""


class _Amended(_Proposed, frozen=True, kw_only=True):
    why: str = ""
    findings: _Names = ()


class _Reason(_Fields, frozen=True, kw_only=True):
    why: str


class _Extended(_Reason, frozen=True, kw_only=True):
    embargo_until: date


class _ImportedBoard(_Fields, frozen=True, kw_only=True):
    source: str
    sha256: _Digest
    header: _Names
    repairs: tuple[dict[str, Any], ...]


class _Imported(_Fields, frozen=True, kw_only=True):
    day: date
    trophy: bool
    baseline: bool
    identity: Identity
    type: str
    scores: _Scores
    line: int = 0
    cells: _Names = ()


class _Rekeyed(_Fields, frozen=True, kw_only=True):
    rules: str = msgspec.field(name="board.toml")
    added: _Names
    removed: _Names
    why: str
    old_keys: str
    grace_until: date | None
    sealed_again: _Digests
    not_opened: _Names
    files: _Digests = msgspec.field(default_factory=dict)
    signers: dict[str, _Digest] = msgspec.field(default_factory=dict)


class _ChangedAgreement(_Fields, frozen=True, kw_only=True):
    path: str
    sha256: _Digest
    text: str


class _Registered(_Fields, frozen=True, kw_only=True):
    team: _Team
    statement: str
    signature: str
    registrant: Registrant
    source: str = ""


class _RevokedRegistration(_Reason, frozen=True, kw_only=True):
    team: _Team


class _Measured(_Fields, frozen=True, kw_only=True):
    view: str
    season: str
    due: date
    seed: Annotated[int, msgspec.Meta(ge=0)]
    entries: _Names
    left_out: dict[str, LeftOut]
    figures: Figures
    table: _Digest


class _NamedFinalists(_Fields, frozen=True, kw_only=True):
    view: str
    finalists: _Names
    why: str


class _OpenedFinal(_Fields, frozen=True, kw_only=True):
    """`luck` is "" for one finalist, who has none."""

    view: str
    final_scores: _Scores
    queries: _Counts
    best: str
    below: _Names
    winner: str
    luck: _Luck
    why: str
    evidence: _Digests


class _Closed(_Fields, frozen=True, kw_only=True):
    open_runs: _Names
    agreed: _Names = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFields:
    """What events of a kind say.

    Attributes:
        fields: their types; one without a default has to be there, in the open or sealed.
        in_the_open: those of them that may not be sealed, for everybody goes by them.
        under_seal: those that may not stand in the open, where nothing would bind to them.
        about_board: whether they are about the board, and name no submission.
    """

    fields: type[msgspec.Struct]
    in_the_open: tuple[str, ...] = ()
    under_seal: tuple[str, ...] = ()
    about_board: bool = False


_RULES = EventFields(
    fields=_Rules,
    in_the_open=("board.toml", "files"),
    under_seal=("labels",),
    about_board=True,
)

FIELDS: Mapping[str, EventFields] = {
    "opened-board": EventFields(
        fields=_Opened,
        in_the_open=("board.toml", "files", "signers"),
        under_seal=("labels",),
        about_board=True,
    ),
    "changed-rules": _RULES,
    "baseline": EventFields(fields=_Published, in_the_open=("type",)),
    "received": EventFields(fields=_Received, in_the_open=("files",)),
    "reviewed": EventFields(fields=_Reviewed),
    "score-shown": EventFields(fields=_Nothing),
    "asked": EventFields(fields=_Reason),
    "updated": EventFields(fields=_Updated, in_the_open=("files",)),
    "proposed": EventFields(fields=_Proposed, in_the_open=("files",)),
    "amended": EventFields(fields=_Amended, in_the_open=("files",)),
    "declined": EventFields(fields=_Reason, in_the_open=("why",)),
    "withdrawn": EventFields(fields=_Updated, in_the_open=("files",)),
    "rejected": EventFields(fields=_Reason),
    "published": EventFields(fields=_Published, in_the_open=("type",)),
    "corrected": EventFields(fields=_Corrected, in_the_open=("why",)),
    "extended": EventFields(fields=_Extended, in_the_open=("embargo_until", "why")),
    "imported-board": EventFields(fields=_ImportedBoard, about_board=True),
    "imported": EventFields(
        fields=_Imported, in_the_open=("day", "type", "trophy", "baseline", "identity")
    ),
    "rekeyed": EventFields(
        fields=_Rekeyed,
        in_the_open=("board.toml", "files", "sealed_again", "signers"),
        about_board=True,
    ),
    "measured": EventFields(
        fields=_Measured,
        in_the_open=("view", "season", "due", "seed", "entries", "left_out", "figures"),
        under_seal=("table",),
        about_board=True,
    ),
    "named-finalists": EventFields(
        fields=_NamedFinalists, in_the_open=("view", "finalists", "why"), about_board=True
    ),
    "opened-final": EventFields(
        fields=_OpenedFinal,
        in_the_open=(
            *("view", "final_scores", "queries", "best", "below", "winner", "luck", "why"),
        ),
        under_seal=("evidence",),
        about_board=True,
    ),
    "closed-board": EventFields(fields=_Closed, in_the_open=("open_runs",), about_board=True),
    "changed-agreement": EventFields(
        fields=_ChangedAgreement, in_the_open=("path", "sha256", "text"), about_board=True
    ),
    "registered": EventFields(
        fields=_Registered, in_the_open=("team", "statement", "signature"), about_board=True
    ),
    "revoked-registration": EventFields(
        fields=_RevokedRegistration, in_the_open=("team", "why"), about_board=True
    ),
}
"""Every kind of event; a new one needs a line here."""


def place_of(entry: Entry) -> str:
    """How an error names an event: number, kind, and line of the log."""
    event = entry.event
    return f"event {event.seq} ('{event.kind}', line {event.seq + 1} of the log)"


def check_fields(entry: Entry) -> None:
    """Refuse an event that does not say what its kind has to say.

    Args:
        entry: of a verified log.

    Raises:
        StoreError: a field is missing, sealed where it may not be, or of another type; the event's
            number and the field are named.
    """
    event = entry.event
    place = place_of(entry)
    known = FIELDS[event.kind]
    if known.about_board != (event.submission is None):
        told = "names a submission" if known.about_board else "names no submission"
        raise StoreError(f"{place} {told}")
    for field in _fields_of(known.fields):
        name = field.encode_name
        hidden = name in event.sealed
        if name in event.public and name in known.under_seal:
            raise StoreError(f"{place}: field '{name}' stands in the open, where it may not be")
        if (hidden and name in known.in_the_open) or (
            field.required and not hidden and name not in event.public
        ):
            raise StoreError(f"{place}: field '{name}' is missing, or sealed where it may not be")
        if name in event.public or name in entry.opened:
            _check_type(field.type, entry.get(name), f"{place}: field '{name}'")


@cache
def _fields_of(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """What msgspec says of a kind's fields; it resolves all annotations anew at each call."""
    return msgspec.structs.fields(kind)


def _check_type(wanted: Any, value: object, place: str) -> None:
    try:
        msgspec.convert(value, wanted)
    except (msgspec.ValidationError, RecursionError) as error:
        raise StoreError(f"{place}: {quote(str(error))}") from None


State = Literal[
    "new",
    "received",
    "reviewed",
    "asked",
    "withdrawn",
    "rejected",
    "published",
    "imported",
    "baseline",
    "proposed",
    "embargoed",
]
"""What an entry is before an event: how far it has come; `new` for what no event named before.
A published one may also be `proposed`, under new metadata that wait, and `embargoed`."""

_PENDING: frozenset[State] = frozenset(("received", "reviewed", "asked"))

_SHOWN: frozenset[State] = frozenset(("published", "baseline"))

_PUBLISHED: frozenset[State] = frozenset(("published",))

_NEW: frozenset[State] = frozenset(("new",))

FOLLOWS: Mapping[str, AbstractSet[State]] = {
    "received": _NEW | _PENDING | {"rejected"},  # sent again, spoiled copies were refused before
    "reviewed": _PENDING | _SHOWN,  # of what is published: scored anew, and nothing told
    "score-shown": _PENDING,
    "asked": _PENDING,
    "updated": _PENDING | _PUBLISHED,
    "withdrawn": _PENDING,
    "rejected": _PENDING,
    "published": _PENDING,
    "corrected": _SHOWN,
    "proposed": _PUBLISHED,
    "amended": frozenset(("proposed",)),
    "declined": frozenset(("proposed",)),
    "extended": frozenset(("embargoed",)),
    "baseline": _NEW,
    "imported": _NEW,
}
"""Every kind of event about an entry, with what that may be before; a new one needs a line here."""


def check_order(entry: Entry, states: AbstractSet[State], *, closed: bool) -> None:
    """Refuse an event that cannot come where it stands.

    Args:
        entry: an event whose fields are right.
        states: what its entry is before it; empty for an event about the board.
        closed: whether the board was closed before.

    Raises:
        StoreError: with the event's number.
    """
    kind = entry.event.kind
    if closed and kind not in AFTER_CLOSING:
        raise StoreError(f"{place_of(entry)} came after the board was closed")
    if kind == "opened-board" and entry.event.seq:
        raise StoreError(f"{place_of(entry)} opens a board that is open")
    if states and not states & FOLLOWS[kind]:
        name, before = quote(entry.event.submission), " and ".join(sorted(states))
        raise StoreError(f"{place_of(entry)} cannot be: {name} is {before} before it")
