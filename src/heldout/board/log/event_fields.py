"""What each kind of event has to say, and after what it may come, checked before a log is read.

The chain of a log shows that nobody changed it, not that what it says makes sense: whoever writes
an event also writes its hash. So every field that is known here is checked against one table, and
every event against what its entry was before: a score of what was never received, or of what was
refused, can be chained as well as any other. What reads a log afterwards can rely on both. Fields
that the table does not name are left alone, and a sealed field is there, though nobody can say what
it holds.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec

from heldout.board.log import events, manifest, registration
from heldout.board.log.final import Figures, LeftOut
from heldout.errors import StoreError, quote

_Held = TypeVar("_Held")

_Open = Annotated[_Held, msgspec.Meta(extra={"place": "open"})]
"""May not be sealed, for everybody goes by it."""

_Sealed = Annotated[_Held, msgspec.Meta(extra={"place": "sealed"})]
"""May not stand in the open, where nothing would bind to it."""

_Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]

_Score = Annotated[str, msgspec.Meta(pattern=r"^-?[0-9]{1,12}(\.[0-9]{1,12})?\Z")]

_Luck = Annotated[str, msgspec.Meta(pattern=r"^([0-9]{1,12}\.[0-9]{1,12})?\Z")]

_Team = Annotated[str, msgspec.Meta(pattern=r"^team-[0-9a-f]{16}\Z")]

_Digests = dict[str, _Digest]

_Scores = dict[str, _Score]

_Count = Annotated[int, msgspec.Meta(ge=0)]

_Counts = dict[str, _Count]

_Names = tuple[str, ...]


class _Fields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of an event; one without a default has to be there, in the open or sealed."""


class BoardFields(_Fields, frozen=True, kw_only=True):
    """Those of an event about the board, which names no submission."""


class _Final(_Fields, frozen=True, kw_only=True):
    """`final`: scores that are told after the last day."""

    scores: _Scores
    queries: _Counts
    spreads: _Scores = msgspec.field(default_factory=dict)


class _Seeds(_Fields, frozen=True, kw_only=True):
    """`seeds`: of an entry whose scores are means over several runs."""

    runs: Annotated[int, msgspec.Meta(ge=2, le=99)]
    spreads: _Scores


class _StoredDigests(_Fields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`kept`: what the vault keeps of a submission that was opened."""

    scores: _Digest | msgspec.UnsetType = msgspec.UNSET
    signatures: _Digest | msgspec.UnsetType = msgspec.UNSET


class _Nothing(_Fields, frozen=True, kw_only=True):
    """An event that says all by its kind."""


class _Rules(BoardFields, frozen=True, kw_only=True):
    rules: _Open[str] = msgspec.field(name="board.toml")
    labels: _Sealed[_Digests] = msgspec.field(default_factory=dict)
    files: _Open[_Digests] = msgspec.field(default_factory=dict)
    why: str = ""


class _Opened(_Rules, frozen=True, kw_only=True):
    signers: Annotated[dict[str, _Digest], msgspec.Meta(min_length=1, extra={"place": "open"})]


class _Received(_Fields, frozen=True, kw_only=True):
    files: _Open[_Digests]
    fingerprint: str = ""
    source: str = ""


class _Metadata(_Fields, frozen=True, kw_only=True):
    identity: manifest.Identity | None = None
    embargo_until: date | None = None
    revision: int = 0
    signature: manifest.SubmissionSignature | None = None


class _Reviewed(_Metadata, frozen=True, kw_only=True):
    type: str | None = None
    evidence: _Digests = msgspec.field(default_factory=dict)
    stored: _StoredDigests | None = msgspec.field(default=None, name="kept")


class _Ran(_Fields, frozen=True, kw_only=True):
    program: _Sealed[manifest.Program]
    runs: _Sealed[_Digests]
    costs: _Sealed[manifest.Costs]
    engine: _Sealed[str]


class _Updated(_Metadata, frozen=True, kw_only=True):
    files: _Open[_Digests]
    type: str | None = None
    fingerprint: str = ""


class _Scored(_Metadata, frozen=True, kw_only=True):
    """What a score was told with; without scores where all is withheld until a day."""

    scores: _Scores = msgspec.field(default_factory=dict)
    standard_errors: _Scores = msgspec.field(default_factory=dict)
    queries: _Counts = msgspec.field(default_factory=dict)
    untold: _Names = ()
    bars: dict[str, str] = msgspec.field(default_factory=dict)
    final: _Final | None = None
    seeds: _Seeds | None = None
    evidence: _Digests = msgspec.field(default_factory=dict)
    compared: _Digests = msgspec.field(default_factory=dict)
    stored: _StoredDigests | None = msgspec.field(default=None, name="kept")


class _Published(_Scored, frozen=True, kw_only=True):
    type: _Open[str]
    why: str | None = None
    findings: _Names = ()
    runs: _Digests = msgspec.field(default_factory=dict)


class _Corrected(_Scored, frozen=True, kw_only=True):
    why: _Open[str]


class _Proposed(_Fields, frozen=True, kw_only=True):
    files: _Open[_Digests]
    identity: manifest.Identity
    revision: int
    fingerprint: str = ""
    source: str = ""


class _Amended(_Proposed, frozen=True, kw_only=True):
    why: str = ""
    findings: _Names = ()


class _Reason(_Fields, frozen=True, kw_only=True):
    why: str


class _Declined(_Fields, frozen=True, kw_only=True):
    why: _Open[str]


class _Extended(_Declined, frozen=True, kw_only=True):
    embargo_until: _Open[date]


class _ImportedBoard(BoardFields, frozen=True, kw_only=True):
    source: str
    sha256: _Digest
    header: _Names
    repairs: tuple[dict[str, Any], ...]


class _Imported(_Fields, frozen=True, kw_only=True):
    day: _Open[date]
    trophy: _Open[bool]
    baseline: _Open[bool]
    identity: _Open[manifest.Identity]
    type: _Open[str]
    scores: _Scores
    line: int = 0
    cells: _Names = ()


class _Rekeyed(BoardFields, frozen=True, kw_only=True):
    rules: _Open[str] = msgspec.field(name="board.toml")
    added: _Names
    removed: _Names
    why: str
    old_keys: str
    grace_until: date | None
    sealed_again: _Open[_Digests]
    not_opened: _Names
    files: _Open[_Digests] = msgspec.field(default_factory=dict)
    signers: _Open[dict[str, _Digest]] = msgspec.field(default_factory=dict)


class _ChangedAgreement(BoardFields, frozen=True, kw_only=True):
    path: _Open[str]
    sha256: _Open[_Digest]
    text: _Open[str]


class _Registered(BoardFields, frozen=True, kw_only=True):
    team: _Open[_Team]
    statement: _Open[str]
    signature: _Open[str]
    registrant: registration.Registrant
    source: str = ""


class _RevokedRegistration(BoardFields, frozen=True, kw_only=True):
    team: _Open[_Team]
    why: _Open[str]


class _Measured(BoardFields, frozen=True, kw_only=True):
    view: _Open[str]
    season: _Open[str]
    due: _Open[date]
    seed: _Open[_Count]
    entries: _Open[_Names]
    left_out: _Open[dict[str, LeftOut]]
    figures: _Open[Figures]
    table: _Sealed[_Digest]


class _NamedFinalists(BoardFields, frozen=True, kw_only=True):
    view: _Open[str]
    finalists: _Open[_Names]
    why: _Open[str]


class _Exact(BoardFields, frozen=True, kw_only=True):
    """Scores of several entries; `luck` is "" for one entry, which has none."""

    view: _Open[str]
    final_scores: _Open[_Scores]
    queries: _Open[_Counts]
    luck: _Open[_Luck]
    why: _Open[str]


class _OpenedFinal(_Exact, frozen=True, kw_only=True):
    best: _Open[str]
    below: _Open[_Names]
    winner: _Open[str]
    evidence: _Sealed[_Digests]


class _EndedSeason(_Exact, frozen=True, kw_only=True):
    season: _Open[str]
    named: _Open[_Names]
    spreads: _Open[_Scores]


class _Closed(BoardFields, frozen=True, kw_only=True):
    open_runs: _Open[_Names]
    agreed: _Names = ()
    why: str = ""


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


class Kind(NamedTuple):
    """A kind of event.

    Attributes:
        fields: what it has to say.
        after: what its entry may be before it; empty for an event about the board.
        late: whether it may come after `closed-board`: what repairs or was due, and nothing new.
    """

    fields: type[msgspec.Struct]
    after: AbstractSet[State] = frozenset()
    late: bool = False


EVENTS: Mapping[str, Kind] = {
    # the board exists; its rules and the digests of its held-out labels
    "opened-board": Kind(_Opened),
    # board.toml or held-out labels changed; from here on they hold
    "changed-rules": Kind(_Rules, late=True),
    # an organiser's baseline is scored and shown
    "baseline": Kind(_Published, _NEW),
    # sealed files arrived: the official time; sent again, spoiled copies were refused before
    "received": Kind(_Received, _NEW | _PENDING | {"rejected"}),
    # opened and scored, sealed; of what is published: scored again, and nothing told
    "reviewed": Kind(_Reviewed, _PENDING | _SHOWN, late=True),
    # an organiser ran the submission's program; the runs that it wrote, and what it cost
    "ran": Kind(_Ran, _PENDING),
    # an organiser looked at the score before deciding
    "score-shown": Kind(_Nothing, _PENDING),
    # an organiser put a question to the team
    "asked": Kind(_Reason, _PENDING),
    # the team replaced the metadata under the same key
    "updated": Kind(_Updated, _PENDING | _PUBLISHED),
    # the team asks to publish an entry under another team or institution
    "proposed": Kind(_Proposed, _PUBLISHED),
    # an organiser approved what the team proposed, or refused it: the entry stays as it is
    "amended": Kind(_Amended, frozenset(("proposed",))),
    "declined": Kind(_Declined, frozenset(("proposed",))),
    # the team took the submission back before it was published
    "withdrawn": Kind(_Updated, _PENDING),
    # an organiser refused the submission
    "rejected": Kind(_Reason, _PENDING),
    # an organiser approved the submission; the released scores
    "published": Kind(_Published, _PENDING),
    # an erratum to a published entry
    "corrected": Kind(_Corrected, _SHOWN, late=True),
    # an organiser moved the end of an embargo
    "extended": Kind(_Extended, frozenset(("embargoed",)), late=True),
    # an old board's table was taken over; its entries follow, as that board published them
    "imported-board": Kind(_ImportedBoard),
    "imported": Kind(_Imported, _NEW),
    # the organisers' keys changed; which go, which come, what was sealed again
    "rekeyed": Kind(_Rekeyed, late=True),
    # what board.toml allows by now to be told of the ranking beside the scores
    "measured": Kind(_Measured, late=True),
    # an organiser named the entries that the final view scores
    "named-finalists": Kind(_NamedFinalists),
    # the finalists' scores on the final view, and who wins
    "opened-final": Kind(_OpenedFinal, late=True),
    # a season is over: the exact scores of the entries that stand for their teams
    "ended-season": Kind(_EndedSeason, late=True),
    # the board takes nothing any more; its labels are opened
    "closed-board": Kind(_Closed),
    # the text that teams agree to changed; from here on it holds
    "changed-agreement": Kind(_ChangedAgreement),
    # a team registered, or agreed to a changed text
    "registered": Kind(_Registered),
    # an organiser ended a team's registration
    "revoked-registration": Kind(_RevokedRegistration),
}
"""Every kind of event; a new one needs a line here, and its name in `events.KINDS`."""


def name_event(entry: events.Entry) -> str:
    """Return how an error names an event: number, kind, and line of the log."""
    event = entry.event
    return f"event {event.seq} ('{event.kind}', line {event.seq + 1} of the log)"


def check_fields(entry: events.Entry) -> None:
    """Refuse an event that does not say what its kind has to say.

    Args:
        entry: of a verified log.

    Raises:
        StoreError: a field is missing, sealed where it may not be, or of another type; the event's
            number and the field are named.
    """
    event = entry.event
    where = name_event(entry)
    fields = EVENTS[event.kind].fields
    about_board = issubclass(fields, BoardFields)
    if about_board != (event.submission is None):
        names = "a submission" if about_board else "no submission"
        raise StoreError(f"{where} names {names}")
    for field, wanted in _fields_of(fields):
        name = field.encode_name
        hidden = name in event.sealed
        if name in event.public and wanted == "sealed":
            raise StoreError(f"{where}: field '{name}' stands in the open, where it may not be")
        if (hidden and wanted == "open") or (
            field.required and not hidden and name not in event.public
        ):
            raise StoreError(f"{where}: field '{name}' is missing, or sealed where it may not be")
        if name in event.public or name in entry.opened:
            _check_type(field.type, entry.get(name), f"{where}: field '{name}'")


@cache
def _fields_of(kind: type[msgspec.Struct]) -> Sequence[tuple[msgspec.structs.FieldInfo, str]]:
    """A kind's fields, with where they have to be; msgspec resolves annotations at each call."""
    found = []
    for field in msgspec.structs.fields(kind):
        marks = [one.extra["place"] for one in getattr(field.type, "__metadata__", ()) if one.extra]
        found.append((field, marks[0] if marks else ""))
    return found


def _check_type(wanted: Any, value: object, where: str) -> None:
    try:
        msgspec.convert(value, wanted)
    except (msgspec.ValidationError, RecursionError) as error:
        raise StoreError(f"{where}: {quote(str(error))}") from None


def check_order(entry: events.Entry, states: AbstractSet[State], *, closed: bool) -> None:
    """Refuse an event that cannot come where it stands.

    Args:
        entry: an event whose fields are right.
        states: what its entry is before it; empty for an event about the board.
        closed: whether the board was closed before.

    Raises:
        StoreError: with the event's number.
    """
    kind = entry.event.kind
    if closed and not EVENTS[kind].late:
        raise StoreError(f"{name_event(entry)} came after the board was closed")
    if kind == "opened-board" and entry.event.seq:
        raise StoreError(f"{name_event(entry)} opens a board that is open")
    if states and not states & EVENTS[kind].after:
        name, before = quote(entry.event.submission), " and ".join(sorted(states))
        raise StoreError(f"{name_event(entry)} cannot be: {name} is {before} before it")
