"""What the log says: events folded into the submissions of a board.

The same fold serves the organiser, whose log has every field opened, and anybody with the public
log, where sealed fields are simply not known. Policy, standings and pipeline read this and never
events.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from heldout.board.log.event_fields import check_fields, place_of
from heldout.board.log.event_order import State, check_order
from heldout.board.log.events import Entry
from heldout.board.log.final import Final, fold_final
from heldout.board.log.measured import Measured, read_measured
from heldout.board.log.signers import Signers, signers_after
from heldout.board.log.submission import (
    Proposal,
    Status,
    Submission,
    apply_event,
)
from heldout.board.log.teams import Agreement, Team, fold_team, read_agreement
from heldout.errors import StoreError

__all__ = [
    "MOST_BYTES",
    "MOST_DOTS",
    "Commitment",
    "History",
    "Proposal",
    "Status",
    "Submission",
    "find_recipients",
    "follow_history",
    "read_history",
]


_KEYS_ARE_FIXED = 2
"""The first schema in which `changed-rules` leaves the recipients as they are."""

MOST_BYTES = 1 << 16
"""Of a board.toml."""

MOST_DOTS = 64
"""In a line of a board.toml: reading takes the square of the parts of a dotted key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """What the organisers committed to: everything held out that a score depends on.

    Attributes:
        event: number of the event.
        at: its time.
        digest: the salted digest, which everybody sees from that moment on.
        files: name of each file -> SHA-256; `None` while that is sealed.
        why: the reason for a change; "" for the first one.
    """

    event: int
    at: datetime
    digest: str
    files: Mapping[str, str] | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything the log says.

    Attributes:
        submissions: id -> submission, in the order of their first events; baselines among them.
        rules: (time, text of board.toml) from the opening on, in order.
        labels: file that is held out, as `board.held_out` names it -> SHA-256; empty where sealed.
        commitments: to such files, in order; the last one holds.
        files: path of every public file that decides scores -> SHA-256, by the last event that has
            them; `None` in a log of before they were logged.
        closed: when the board was closed for good, `None` before.
        board: hash of the first event, by which signatures name this board.
        teams: handle -> registered team, in the order of registration.
        agreements: the texts that teams agree to, in order; the last one holds.
        measured: what was told of the ranking beside the scores, in order.
        signers: who may sign the next event; empty where events are not signed.
        final: its finalists and what their scores said; `None` before finalists were named.
    """

    submissions: Mapping[str, Submission]
    rules: tuple[tuple[datetime, str], ...]
    labels: Mapping[str, str]
    commitments: tuple[Commitment, ...] = ()
    files: Mapping[str, str] | None = None
    closed: datetime | None = None
    board: str = ""
    teams: Mapping[str, Team] = field(default_factory=dict)
    agreements: tuple[Agreement, ...] = ()
    measured: tuple[Measured, ...] = ()
    signers: Signers = field(default_factory=dict)
    final: Final | None = None

    def in_any_case(self, name: str) -> Submission | None:
        """What has an id or a name, upper and lower case alike: some disks know no difference."""
        wanted = name.casefold()
        alike = (s for s in self.submissions.values() if s.id.casefold() == wanted)
        return self.submissions.get(name) or next(alike, None)

    def rules_at(self, moment: datetime) -> str:
        """The board.toml in force at a moment; the first one for anything earlier."""
        texts = [text for since, text in self.rules if since <= moment]
        return texts[-1] if texts else self.rules[0][1]


def read_history(entries: Iterable[Entry]) -> History:
    """Fold a verified log into its submissions.

    Raises:
        StoreError: an event does not say what its kind has to say, or cannot come where it stands.
    """
    fold = _Fold()
    for entry in entries:
        fold.take(entry)
    return fold.now()


def follow_history(entries: Iterable[Entry]) -> Iterator[tuple[Entry, History]]:
    """Every event that told scores, or made them again, with what the log said before it.

    Raises:
        StoreError: an event does not say what its kind has to say, or cannot come where it stands.
    """
    fold = _Fold()
    for entry in entries:
        again = entry.event.kind == "reviewed" and "evidence" in entry.event.sealed
        if again or entry.event.kind in ("published", "corrected", "baseline", "opened-final"):
            yield entry, fold.now()
        fold.take(entry)


@dataclass(slots=True)
class _Fold:
    """A history that grows with each event."""

    submissions: dict[str, Submission] = field(default_factory=dict)
    rules: list[tuple[datetime, str]] = field(default_factory=list)
    commitments: list[Commitment] = field(default_factory=list)
    files: Mapping[str, str] | None = None
    closed: datetime | None = None
    board: str = ""
    teams: Mapping[str, Team] = field(default_factory=dict)
    agreements: list[Agreement] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    signers: Signers = field(default_factory=dict)
    final: Final | None = None

    def take(self, entry: Entry) -> None:
        self.board = self.board or str(entry.hash)
        check_fields(entry)
        self.signers = signers_after(self.signers, entry.event.kind, entry.event.public)
        if not self.rules and entry.event.kind != "opened-board":
            raise StoreError(f"event {entry.event.seq}: a log begins with 'opened-board'")
        name = entry.event.submission
        states = frozenset[State]() if name is None else self._states(name, entry.time.date())
        check_order(entry, states, closed=self.closed is not None)
        if name is not None:
            self.submissions[name] = apply_event(self.submissions.get(name), entry, name)
        elif entry.event.kind == "closed-board":
            self.closed = entry.time
        elif entry.event.kind == "changed-agreement":
            self.agreements.append(read_agreement(entry))
        elif entry.event.kind in ("named-finalists", "opened-final"):
            self.final = self._fold_final(entry)
        elif entry.event.kind == "measured":
            self.measured.append(_read_measured(entry, self.submissions))
        elif entry.event.kind in ("registered", "revoked-registration"):
            self.teams = fold_team(self.teams, entry)
        elif "board.toml" in entry.event.public:
            _check_recipients(entry, self.rules)
            self.rules.append((entry.time, str(entry.get("board.toml"))))
            self.files = entry.event.public.get("files", self.files)
            if entry.event.kind == "rekeyed":
                self.submissions |= dict(_sealed_again(self.submissions, entry))
            self.commitments += _committed(entry)

    def _fold_final(self, entry: Entry) -> Final:
        try:
            return fold_final(self.final, entry, self.submissions, closed=self.closed is not None)
        except ValueError as error:
            raise StoreError(f"{place_of(entry)}: {error}") from None

    def _states(self, name: str, day: date) -> frozenset[State]:
        """What an entry is on a day, as `event_order` names it."""
        known = self.submissions.get(name)
        if known is None:
            return frozenset(("new",))
        state: State = "baseline" if known.baseline and known.status != "imported" else known.status
        proposed: tuple[State, ...] = () if known.proposal is None else ("proposed",)
        embargoed: tuple[State, ...] = ("embargoed",) if _is_embargoed(known, day) else ()
        return frozenset((state, *proposed, *embargoed))

    def now(self) -> History:
        known = [one.files for one in self.commitments if one.files is not None]
        return History(
            submissions=dict(self.submissions),
            rules=tuple(self.rules),
            labels=known[-1] if known else {},
            commitments=tuple(self.commitments),
            files=self.files,
            closed=self.closed,
            board=self.board,
            teams=self.teams,
            agreements=tuple(self.agreements),
            measured=tuple(self.measured),
            signers=self.signers,
            final=self.final,
        )


def find_recipients(rules: str) -> object:
    """The recipients that a board.toml names, `None` where it names none or cannot be read."""
    # An enemy's text is not parsed where that would take long; reading the rules refuses it.
    if len(rules) > MOST_BYTES or any(line.count(".") > MOST_DOTS for line in rules.splitlines()):
        return None
    try:
        return tomllib.loads(rules).get("recipients")
    except (ValueError, RecursionError):
        return None


def _check_recipients(entry: Entry, rules: Sequence[tuple[datetime, str]]) -> None:
    """Refuse `changed-rules` with other keys: `rekeyed` says who comes, who goes, and why.

    Logs of schema 1 may have it; an audit notes it there. Rules that cannot be read have no
    recipients, and are refused by whoever reads them.
    """
    if entry.event.schema < _KEYS_ARE_FIXED or entry.event.kind != "changed-rules":
        return
    after = find_recipients(str(entry.get("board.toml")))
    known = (find_recipients(text) for _, text in reversed(rules))
    before = next((recipients for recipients in known if recipients is not None), None)
    if after is not None and after != before:
        raise StoreError(
            f"{place_of(entry)}: it changes the recipients, which only 'rekeyed' may do"
        )


def _read_measured(entry: Entry, submissions: Mapping[str, Submission]) -> Measured:
    event = entry.event
    shown = {s.id for s in submissions.values() if s.status == "published" and not s.baseline}
    try:
        return read_measured(
            event.public,
            event=event.seq,
            at=entry.time,
            digest=event.sealed["table"],
            known=shown,
        )
    except ValueError as error:
        raise StoreError(f"{place_of(entry)}: {error}") from None


def _is_embargoed(known: Submission, day: date) -> bool:
    return known.status == "published" and known.is_hidden(day)


def _committed(entry: Entry) -> Iterator[Commitment]:
    """What an event commits to, if it does: an old board's record commits to nothing."""
    if entry.event.kind not in ("opened-board", "changed-rules"):
        return
    digest = entry.event.sealed.get("labels")
    files = entry.get("labels")
    if digest is not None and files != {}:
        yield Commitment(
            event=entry.event.seq,
            at=entry.time,
            digest=digest,
            files=files,
            why=entry.get("why") or "",
        )


def _sealed_again(
    submissions: Mapping[str, Submission], entry: Entry
) -> Iterator[tuple[str, Submission]]:
    """The submissions whose own keys an event says were sealed for other organisers."""
    for name, digest in entry.get("sealed_again").items():
        if name in submissions:
            yield name, replace(submissions[name], sealed_again=digest)
