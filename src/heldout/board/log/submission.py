"""A submission as the log knows it, and what each kind of event does to it.

The same fold serves the organiser, whose log has every field opened, and anybody with the public
log, where sealed fields are simply not known.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from typing import Any, Literal

import msgspec

from heldout.board.log.events import Entry
from heldout.board.log.manifest import Costs, Identity, SubmissionSignature, read_identity

Status = Literal["received", "reviewed", "asked", "withdrawn", "rejected", "published", "imported"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """New metadata of a published entry that waits for an organiser: its team has another name.

    Attributes:
        at: when it was taken in, UTC.
        files: name of each sealed file that is new -> SHA-256.
        identity: who and what, `None` while sealed.
        revision: of the metadata; 0 while sealed.
        signature: of the team, `None` where it has none, or sealed.
    """

    at: datetime
    files: Mapping[str, str]
    identity: Identity | None
    revision: int
    signature: SubmissionSignature | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One submission or baseline as the log knows it.

    Attributes:
        id: its id; for a baseline the organiser's name for it.
        received: official time of submission (UTC); a re-sent file moves it. Of an imported entry
            the first moment of the day that the old board claims.
        files: name of each sealed file -> SHA-256.
        status: how far it has come.
        type: submission type, `None` while sealed.
        identity: who and what, `None` while not yet reviewed, or sealed.
        teams: every team name that it was reviewed or published under, the latest last.
        counts_for: those of them whose quota it uses: while it waits all of them, else what an
            organiser published or approved, so that no team's count depends on what somebody else
            writes.
        embargo_until: the day of the reveal, `None` where there is no embargo.
        scores: view -> released score as text; empty until published, and while sealed.
        standard_errors: view for information only -> standard error of its score as text.
        final: view -> score that is released after the last day; empty while sealed.
        untold: the views whose score `clear` does not publish.
        exact: the views whose exact score a season's end published.
        bars: view -> the run above which its score had to be; empty while sealed, as it always is
            but in the vault and in an archive.
        counts: view -> number of queries averaged over.
        seeds: how many runs over each query set the scores are means over; 1 while sealed.
        spreads: view -> standard deviation over the seeds as text, of each score that is told and
            is a mean over several.
        revision: of the metadata in force.
        findings: codes of the findings it was published with.
        why: the organiser's reason for the last decision.
        errata: (time, reason) of each correction.
        repaired: times of those that did more than tell a score on a view that came later.
        published: time of approval, `None` before.
        score_shown: whether an organiser looked at the score before deciding.
        baseline: whether it is an organiser's baseline.
        old_trophy: whether an old board gave it a trophy; `None` where it was not imported.
        runs: query set -> SHA-256 of a run that lies in the vault: a baseline's, or one that the
            submission's program wrote; empty where sealed.
        costs: what running its program cost; `None` for run files, and while sealed.
        sealed_again: SHA-256 of its own key as sealed for the organisers of today; empty where
            they have not changed since it was received.
        evidence: view -> digest of what its score was published for (`board.scores`); empty
            where sealed, and for what was published before there was any.
        proposal: metadata that wait for an organiser, `None` mostly.
        signature: of its team, over the revision in force; `None` where it has none, or sealed.
        stored: folder of the vault (`scores`, `signatures`) -> SHA-256 of the file there that the
            last event which scored it was logged with; empty where sealed, or from before.
        events: (time, kind, hash) of every event about it, in order.
    """

    id: str
    received: datetime
    files: Mapping[str, str]
    status: Status
    type: str | None = None
    identity: Identity | None = None
    teams: tuple[str, ...] = ()
    counts_for: tuple[str, ...] = ()
    embargo_until: date | None = None
    scores: Mapping[str, str] = field(default_factory=dict)
    standard_errors: Mapping[str, str] = field(default_factory=dict)
    final: Mapping[str, str] = field(default_factory=dict)
    untold: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    bars: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    seeds: int = 1
    spreads: Mapping[str, str] = field(default_factory=dict)
    revision: int = 0
    findings: tuple[str, ...] = ()
    why: str = ""
    errata: tuple[tuple[datetime, str], ...] = ()
    repaired: tuple[datetime, ...] = ()
    published: datetime | None = None
    score_shown: bool = False
    baseline: bool = False
    old_trophy: bool | None = None
    runs: Mapping[str, str] = field(default_factory=dict)
    costs: Costs | None = None
    sealed_again: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)
    proposal: Proposal | None = None
    signature: SubmissionSignature | None = None
    stored: Mapping[str, str] = field(default_factory=dict)
    events: tuple[tuple[datetime, str, str], ...] = ()

    def is_hidden(self, day: date) -> bool:
        """Check whether an embargo hides on a day who sent it."""
        return self.embargo_until is not None and day < self.embargo_until

    @property
    def scored_files(self) -> Mapping[str, str]:
        """SHA-256 of every file that its scores are made of: sealed files, runs in the vault."""
        return {**self.files, **self.runs}

    @property
    def waits_since(self) -> datetime | None:
        """Since when an organiser has to decide on it or on a proposal, `None` where on neither."""
        if self.pending:
            return self.received
        return None if self.proposal is None else self.proposal.at

    @property
    def as_proposed(self) -> "Submission":
        """What it would be with what is proposed; itself where nothing is."""
        asked = self.proposal
        if asked is None:
            return self
        return replace(
            self,
            files={**self.files, **asked.files},
            identity=asked.identity,
            revision=asked.revision,
            signature=asked.signature,
            proposal=None,
        )

    @property
    def pending(self) -> bool:
        """Whether a decision is still to come."""
        return self.status in ("received", "reviewed", "asked")


def apply_event(before: Submission | None, entry: Entry, name: str) -> Submission:
    """A submission after an event about it.

    Args:
        before: what it was, `None` where this is its first event.
        entry: the event, of which it is known that it says what its kind has to say.
        name: the submission's id.
    """
    now = before or Submission(id=name, received=entry.time, files={}, status="received")
    changes = _CHANGES[entry.event.kind](now, entry)
    stamp = (entry.time, entry.event.kind, str(entry.hash))
    after = replace(now, events=(*now.events, stamp), **changes)
    if after.identity is None or entry.event.kind not in _JUDGED:
        return after
    return _name(after, after.identity.team, decided=entry.event.kind in _SHOWN)


def _name(submission: Submission, team: str, *, decided: bool) -> Submission:
    """A name that a person has seen; one that a decision put on the page begins the count again."""
    teams = tuple(dict.fromkeys((*submission.teams, team)))
    counted = (team,) if decided else tuple(dict.fromkeys((*submission.counts_for, team)))
    return replace(submission, teams=teams, counts_for=counted)


def _received(_: Submission, entry: Entry) -> dict[str, Any]:
    return {"received": entry.time, "files": entry.get("files"), "status": "received"}


def _updated(now: Submission, entry: Entry) -> dict[str, Any]:
    """New metadata: the official time stays, an undecided submission is reviewed again."""
    files = {**now.files, **entry.get("files")}
    status = "received" if now.pending else now.status
    return {"files": files, "status": status, "proposal": None, **_metadata(entry)}


def _proposed(_: Submission, entry: Entry) -> dict[str, Any]:
    said = _metadata(entry)
    return {
        "proposal": Proposal(
            at=entry.time,
            files=entry.get("files"),
            identity=said.get("identity"),
            revision=said.get("revision", 0),
            signature=said.get("signature"),
        )
    }


def _reviewed(now: Submission, entry: Entry) -> dict[str, Any]:
    status = "reviewed" if now.status == "received" else now.status
    evidence = entry.get("evidence")  # where a published run was scored again, and nothing told
    again = {} if evidence is None else {"evidence": evidence}
    return {"status": status, **_metadata(entry), **_stored(entry), **again}


def _ran(now: Submission, entry: Entry) -> dict[str, Any]:
    """Runs of a program: what was reviewed without them is reviewed again."""
    runs, costs = entry.get("runs"), entry.get("costs")
    known: dict[str, Any] = {} if runs is None else {"runs": runs}
    known |= {} if costs is None else {"costs": msgspec.convert(costs, Costs)}
    return {"status": "received" if now.status == "reviewed" else now.status, **known}


def _published(_: Submission, entry: Entry) -> dict[str, Any]:
    return {
        "status": "published",
        "published": entry.time,
        "findings": tuple(entry.get("findings") or ()),
        "why": entry.get("why") or "",
        **_metadata(entry),
        **_scores(entry),
        **_stored(entry),
    }


def _baseline(_: Submission, entry: Entry) -> dict[str, Any]:
    runs = entry.get("runs") or {}
    return {**_published(_, entry), "received": entry.time, "baseline": True, "runs": runs}


def _imported(_: Submission, entry: Entry) -> dict[str, Any]:
    """An old board's entry: its day is a claim, and all that is known of the time."""
    claimed = datetime.combine(date.fromisoformat(str(entry.get("day"))), time(), UTC)
    return {
        "status": "imported",
        "received": claimed,
        "published": entry.time,
        "baseline": bool(entry.get("baseline")),
        "old_trophy": bool(entry.get("trophy")),
        **_metadata(entry),
        **_scores(entry),
    }


def _corrected(now: Submission, entry: Entry) -> dict[str, Any]:
    errata = (*now.errata, (entry.time, str(entry.get("why"))))
    scores = _scores(entry)
    repaired = (
        now.repaired  # every score stays as it was told, and some view has one that had none
        if now.scores.items() < scores["scores"].items()
        else (*now.repaired, entry.time)
    )
    return {"errata": errata, "repaired": repaired, **scores, **_stored(entry)}


def _decided(status: Status) -> Callable[[Submission, Entry], dict[str, Any]]:
    return lambda _, entry: {"status": status, "why": entry.get("why") or ""}


def _scores(entry: Entry) -> dict[str, Any]:
    names = {"scores": "scores", "standard_errors": "standard_errors", "counts": "queries"}
    found = {field: entry.get(name) or {} for field, name in names.items()}
    final = entry.get("final") or {"scores": {}, "queries": {}}
    found["counts"] = {**found["counts"], **final["queries"]}
    seeds = entry.get("seeds") or {"runs": 1, "spreads": {}}
    found["spreads"] = {**seeds["spreads"], **final.get("spreads", {})}
    found["seeds"] = seeds["runs"]
    found["untold"] = tuple(entry.get("untold") or ())
    found["bars"] = entry.get("bars") or {}
    return {**found, "final": final["scores"], "evidence": entry.get("evidence") or {}}


def _stored(entry: Entry) -> dict[str, Any]:
    """The digests of the kept files; an event that says nothing of them leaves them as they are."""
    stored = entry.get("kept")
    return {} if stored is None else {"stored": stored}


def _metadata(entry: Entry) -> dict[str, Any]:
    """Return what the event says of who and what; a field that it lacks stays."""
    identity = entry.get("identity")
    changes: dict[str, Any] = {"identity": read_identity(identity)} if identity else {}
    for name in ("type", "revision"):
        if entry.get(name) is not None:
            changes[name] = entry.get(name)
    if "signature" in entry.opened:
        changes["signature"] = _signature(entry.get("signature"))
    if "embargo_until" in entry.event.public or "embargo_until" in entry.opened:
        changes["embargo_until"] = _day(entry.get("embargo_until"))
    return changes


def _signature(fields: Mapping[str, Any] | None) -> SubmissionSignature | None:
    return None if fields is None else msgspec.convert(fields, SubmissionSignature)


def _day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


_SHOWN = ("published", "baseline", "imported")
_JUDGED = (*_SHOWN, "reviewed", "amended")

_CHANGES: Mapping[str, Callable[[Submission, Entry], dict[str, Any]]] = {
    "received": _received,
    "reviewed": _reviewed,
    "ran": _ran,
    "score-shown": lambda _now, _entry: {"score_shown": True},
    "asked": _decided("asked"),
    "updated": _updated,
    "withdrawn": lambda now, entry: {**_updated(now, entry), "status": "withdrawn"},
    "rejected": _decided("rejected"),
    "proposed": _proposed,
    "amended": _updated,
    "declined": lambda _now, _entry: {"proposal": None},
    "published": _published,
    "baseline": _baseline,
    "corrected": _corrected,
    "extended": lambda _now, entry: {"embargo_until": _day(entry.get("embargo_until"))},
    "imported": _imported,
}
