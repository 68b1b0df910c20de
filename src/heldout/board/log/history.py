"""What the log says: events folded into the submissions of a board.

The same fold serves the organiser, whose log has every field opened, and anybody with the public
log, where sealed fields are simply not known. Policy, standings and services read this and never
events. Beside it: what a team changed in its metadata, revision by revision; the names that are one
team's; and which of several copies of a log is the newest, for remotes can be behind, as forks are.

A team is known by its name. Where an organiser approves another name for a published entry, the old
name and the new one are of one team from then on, with all entries under either. A name that
somebody only writes joins nothing.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from typing import Any, Literal

import msgspec

from heldout.board.log import manifest, registration
from heldout.board.log.event_fields import State, check_fields, check_order, name_event
from heldout.board.log.events import Entry, Signers, signers_after, verify
from heldout.board.log.final import (
    Final,
    Measured,
    SeasonEnd,
    apply_season_end,
    fold_final,
    fold_season_end,
    read_measured,
)
from heldout.board.log.submission import Submission, apply_event
from heldout.errors import StoreError

_WITH_SCORES = frozenset({"published", "corrected", "baseline", "opened-final", "ended-season"})
_WITH_METADATA = frozenset({"reviewed", "updated", "withdrawn", "published", "amended"})

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
            them.
        closed: when the board was closed for good, `None` before.
        board: hash of the first event, by which signatures name this board.
        teams: handle -> registered team, in the order of registration.
        agreements: the texts that teams agree to, in order; the last one holds.
        measured: what was told of the ranking beside the scores, in order.
        signers: who may sign the next event.
        final: its finalists and what their scores said; `None` before finalists were named.
        season_ends: season, or "" on a board without seasons -> what its exact scores said.
    """

    submissions: Mapping[str, Submission]
    rules: tuple[tuple[datetime, str], ...]
    labels: Mapping[str, str]
    commitments: tuple[Commitment, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    closed: datetime | None = None
    board: str = ""
    teams: Mapping[str, registration.RegisteredTeam] = field(default_factory=dict)
    agreements: tuple[registration.Agreement, ...] = ()
    measured: tuple[Measured, ...] = ()
    signers: Signers = field(default_factory=dict)
    final: Final | None = None
    season_ends: Mapping[str, SeasonEnd] = field(default_factory=dict)

    def in_any_case(self, name: str) -> Submission | None:
        """Find what has an id or a name in any case: some disks know no difference."""
        wanted = name.casefold()
        alike = (s for s in self.submissions.values() if s.id.casefold() == wanted)
        return self.submissions.get(name) or next(alike, None)

    def rules_at(self, moment: datetime) -> str:
        """The board.toml in force at a moment; the first one for anything earlier."""
        texts = [text for since, text in self.rules if since <= moment]
        return texts[-1] if texts else self.rules[0][1]


def read_history(entries: Iterable[Entry]) -> History:
    """Fold a verified log into its submissions; the last few tuples are folded once.

    Raises:
        StoreError: an event does not say what its kind has to say, or cannot come where it stands.
    """
    known = next((history for read, history in _READ if read is entries), None)
    if known is not None:
        return known
    fold = Fold()
    for entry in entries:
        fold.take(entry)
    history = fold.now()
    if isinstance(entries, tuple):
        _READ[:] = [*_READ[1 - _MOST_READ :], (entries, history)]
    return history


_MOST_READ = 3
_READ: list[tuple[tuple[Entry, ...], History]] = []
"""The last logs, and what they say: the steps of a command ask for the same."""


def follow_history(entries: Iterable[Entry]) -> Iterator[tuple[Entry, History]]:
    """Every event that told scores, or made them again, with what the log said before it.

    Raises:
        StoreError: an event does not say what its kind has to say, or cannot come where it stands.
    """
    fold = Fold()
    for entry in entries:
        again = entry.event.kind == "reviewed" and "evidence" in entry.event.sealed
        if again or entry.event.kind in _WITH_SCORES:
            yield entry, fold.now()
        fold.take(entry)


@dataclass(slots=True)
class Fold:
    """A history that grows with each event.

    What it holds is all that the next event depends on, so that it can be stored and gone on with.
    """

    submissions: dict[str, Submission] = field(default_factory=dict)
    rules: list[tuple[datetime, str]] = field(default_factory=list)
    commitments: list[Commitment] = field(default_factory=list)
    files: Mapping[str, str] = field(default_factory=dict)
    closed: datetime | None = None
    board: str = ""
    teams: Mapping[str, registration.RegisteredTeam] = field(default_factory=dict)
    agreements: list[registration.Agreement] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    signers: Signers = field(default_factory=dict)
    final: Final | None = None
    season_ends: dict[str, SeasonEnd] = field(default_factory=dict)

    def copy(self) -> "Fold":
        """Return the same, which grows on its own."""
        return replace(
            self, **{field.name: copy(getattr(self, field.name)) for field in fields(self)}
        )

    def _held(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def take(self, entry: Entry) -> None:
        """Go on by one event.

        Raises:
            StoreError: it lacks what its kind has to say, or cannot come here.
        """
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
            self.agreements.append(registration.read_agreement(entry))
        elif entry.event.kind in ("named-finalists", "opened-final", "ended-season", "measured"):
            self._measure(entry)
        elif entry.event.kind in ("registered", "revoked-registration"):
            self.teams = registration.fold_team(self.teams, entry)
        elif "board.toml" in entry.event.public:
            _check_recipients(entry, self.rules)
            self.rules.append((entry.time, str(entry.get("board.toml"))))
            self.files = entry.event.public.get("files", self.files)
            if entry.event.kind == "rekeyed":
                self.submissions |= {
                    name: replace(self.submissions[name], sealed_again=digest)
                    for name, digest in entry.get("sealed_again").items()
                    if name in self.submissions
                }
            self.commitments += _committed(entry)

    def _measure(self, entry: Entry) -> None:
        """Take what was published of a ranking, of a final, or of a season's end."""
        known = self.submissions
        shown = {s.id for s in known.values() if s.status == "published" and not s.baseline}
        try:
            if entry.event.kind == "measured":
                self.measured.append(read_measured(entry, known=shown))
            elif entry.event.kind == "ended-season":
                name, closed = entry.get("season"), self.closed is not None
                end = fold_season_end(self.season_ends.get(name), entry, known, closed=closed)
                self.season_ends[name] = end
                self.submissions |= apply_season_end(entry, known)
            else:
                self.final = fold_final(self.final, entry, known, closed=self.closed is not None)
        except ValueError as error:
            raise StoreError(f"{name_event(entry)}: {error}") from None

    def _states(self, name: str, day: date) -> frozenset[State]:
        """Return what an entry is on a day, as `event_order` names it."""
        known = self.submissions.get(name)
        if known is None:
            return frozenset(("new",))
        state: State = "baseline" if known.baseline and known.status != "imported" else known.status
        states = {state}
        if known.proposal is not None:
            states.add("proposed")
        if known.status == "published" and known.is_hidden(day):
            states.add("embargoed")
        return frozenset(states)

    def now(self) -> History:
        """Return what the log says so far."""
        known = [one.files for one in self.commitments if one.files is not None]
        held = self._held().items()
        frozen: dict[str, Any] = {
            name: tuple(one) if isinstance(one, list) else copy(one) for name, one in held
        }
        return History(labels=known[-1] if known else {}, **frozen)


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

    Rules that cannot be read have no recipients, and are refused by whoever reads them.
    """
    if entry.event.kind != "changed-rules":
        return
    after = find_recipients(str(entry.get("board.toml")))
    known = (find_recipients(text) for _, text in reversed(rules))
    before = next((recipients for recipients in known if recipients is not None), None)
    if after is not None and after != before:
        raise StoreError(
            f"{name_event(entry)}: it changes the recipients, which only 'rekeyed' may do"
        )


def _committed(entry: Entry) -> Iterator[Commitment]:
    """Yield what an event commits to, if it does: an old board's record commits to nothing."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """One field that is not what it was.

    Attributes:
        at: time of the event that brought it.
        field: its name in the log.
        before: what it said; "" for nothing.
        after: what it says from then on.
    """

    at: datetime
    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LastProposal:
    """Metadata that a published entry's team asked for and that are not in force.

    Attributes:
        at: time of the request, or of the refusal.
        files: name of each sealed file that it brought -> SHA-256.
        state: whether an organiser is still to decide, or has refused it.
        why: the reason of the refusal; "" while it waits.
    """

    at: datetime
    files: Mapping[str, str]
    state: Literal["waits", "declined"]
    why: str = ""


def last_proposal(entries: Iterable[Entry], submission: str) -> LastProposal | None:
    """Return what became of a team's last request, `None` where nothing waits or was refused.

    Args:
        entries: a log, the public one too.
        submission: its id.
    """
    found: LastProposal | None = None
    for entry in entries:
        if entry.event.submission != submission:
            continue
        if entry.event.kind == "proposed":
            found = LastProposal(at=entry.time, files=entry.get("files"), state="waits")
        elif entry.event.kind == "declined" and found is not None:
            found = replace(found, at=entry.time, state="declined", why=str(entry.get("why")))
        elif entry.event.kind in ("amended", "updated"):
            found = None
    return found


def list_amendments(entries: Iterable[Entry], submission: str) -> tuple[Amendment, ...]:
    """Every change of a submission's metadata, in order.

    Args:
        entries: a log; by the public one only what is revealed is seen.
        submission: its id.
    """
    return tuple(_changes(entries, submission))


def list_proposed(submission: Submission) -> tuple[Amendment, ...]:
    """Return what a published entry's team asks to change, and an organiser has not decided on."""
    proposal, now = submission.proposal, submission.identity
    if proposal is None or proposal.identity is None or now is None:
        return ()
    before, after = (_flatten(msgspec.to_builtins(one)) for one in (now, proposal.identity))
    return tuple(
        Amendment(
            at=proposal.at, field=name, before=before.get(name, ""), after=after.get(name, "")
        )
        for name in {**before, **after}
        if before.get(name, "") != after.get(name, "")
    )


def _changes(entries: Iterable[Entry], submission: str) -> Iterator[Amendment]:
    known: dict[str, str] = {}
    for entry in entries:
        if entry.event.submission != submission or entry.event.kind not in _WITH_METADATA:
            continue
        said = _said(entry)
        gone = {name: "" for name in known if name.startswith("efficiency.")} if said else {}
        for key, after in {**gone, **said}.items():
            if known and known.get(key, "") != after:
                yield Amendment(at=entry.time, field=key, before=known.get(key, ""), after=after)
        known |= {**gone, **said}


def _said(entry: Entry) -> dict[str, str]:
    """The metadata that an event brings, as text."""
    said = _flatten(entry.get("identity") or {})
    for name in ("type", "embargo_until"):
        if name in entry.opened or name in entry.event.public:
            said[name] = _text(entry.get(name))
    return said


def _flatten(identity: Mapping[str, Any]) -> dict[str, str]:
    fields = dict(identity)
    costs = fields.pop("efficiency", None) or {}
    fields |= {f"efficiency.{name}": value for name, value in costs.items()}
    return {name: _text(value) for name, value in fields.items()}


def _text(value: object) -> str:
    """As the metadata file has it, without quotes; "" for nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def list_renamed(history: History) -> tuple[Submission, ...]:
    """The published entries that count for more than one name.

    Args:
        history: by the public log alone those under an embargo are not seen.
    """
    return tuple(
        submission
        for submission in history.submissions.values()
        if submission.status == "published" and len(submission.counts_for) > 1
    )


def names_of(renamed: Iterable[Submission], teams: Iterable[str]) -> frozenset[str]:
    """Every name of the teams that some names belong to, as `team_key` folds them.

    Args:
        renamed: as `list_renamed` gives them.
        teams: names as teams write them; their own keys are among those returned.
    """
    found = set(map(manifest.team_key, teams))
    joined = [frozenset(map(manifest.team_key, submission.counts_for)) for submission in renamed]
    while more := [keys for keys in joined if keys & found and not keys <= found]:
        found.update(*more)
    return frozenset(found)


def hides_tie(
    renamed: Iterable[Submission], teams: Iterable[str], other: Submission, *, day: date
) -> bool:
    """Check whether only names that an embargo hides show that an entry is of some team too.

    Args:
        renamed: as `list_renamed` gives them.
        teams: names of the team.
        other: the entry.
        day: an embargo that ends later hides its entry, and the names that it joins.
    """
    renamed, teams = tuple(renamed), tuple(teams)
    open_ones = (submission for submission in renamed if not submission.is_hidden(day))
    theirs = set(map(manifest.team_key, other.counts_for))
    return not theirs.isdisjoint(names_of(renamed, teams)) and theirs.isdisjoint(
        names_of(open_ones, teams)
    )


def is_signed(history: History, submission: Submission) -> bool:
    """Check whether a registered key has signed the revision in force."""
    signature = submission.signature
    team = None if signature is None else history.teams.get(signature.team)
    if signature is None or team is None:
        return False
    message = registration.submission_message(
        history.board,
        submission.id,
        revision=submission.revision,
        agreement=signature.agreement,
        metadata=signature.metadata,
    )
    return verify(team.key, message, signature.value)


def goes_on(earlier: Sequence[Entry], later: Sequence[Entry]) -> bool:
    """Check whether a verified log is another one with events added, at least one."""
    if len(later) <= len(earlier):
        return False
    return not earlier or later[len(earlier) - 1].hash == earlier[-1].hash


def newest_copy(here: Sequence[Entry], remotes: Iterable[Sequence[Entry]]) -> Sequence[Entry]:
    """The log to go by.

    Args:
        here: the copy of the clone that one works in.
        remotes: those of its remotes.

    Returns:
        The longest of the remotes' copies, or the one here where it goes on from that. Of two that
        are no longer one history the remotes' counts: others see it, too.
    """
    published = max(remotes, key=len, default=())
    return here if goes_on(published, here) else published


def check_continues(earlier: Sequence[Entry], later: Sequence[Entry]) -> Iterator[str]:
    """Tell where a log is not an earlier copy of it with events added.

    Args:
        earlier: a copy from before.
        later: the log of today.
    """
    for before, now in zip(earlier, later, strict=False):
        number = before.event.seq
        if before.hash != now.hash:
            yield f"event {number} is another one than in the earlier copy: history was rewritten"
            return
        if hidden := before.opened.keys() - now.opened.keys():
            yield f"event {number} showed {', '.join(sorted(hidden))} before, and hides it now"
    if len(later) < len(earlier):
        yield f"the last {len(earlier) - len(later)} events of the earlier copy were cut off"
