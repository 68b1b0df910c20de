"""The organiser's side of registration: what arrives, what is revoked.

A registration that is refused is told and leaves no event, as with submissions. One that is taken
in stands until an organiser revokes it, for a reason.
"""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from heldout.board.log.events import parse_time
from heldout.board.log.history import History
from heldout.board.log.manifest import team_key
from heldout.board.log.registration import (
    Agreement,
    Registrant,
    RegistrationFile,
    Statement,
    Team,
    bad_signature,
    read_registration,
    registrant_digest,
    team_handle,
)
from heldout.board.organiser.receive import Receipt, refused
from heldout.board.participant.team import (
    current_agreement,
    registration_closed,
    require_registration,
)
from heldout.board.policy.registered import check_registrant, revoked_before
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.session import Session
from heldout.board.store.arrivals import Arrival
from heldout.envelope.bundle import Letter, open_letter
from heldout.errors import InputError, Problem, TrustError, quote


def receive_registrations(session: Session, arrivals: Iterable[Arrival]) -> tuple[Receipt, ...]:
    """Log every registration that is new and holds; the others are told and leave no event."""
    told = session.vault.told()
    receipts = [_take(session, arrival) for arrival in arrivals]
    return tuple(replace(r, told_before=True) if r.mark in told else r for r in receipts)


def revoke(session: Session, team: str, *, why: str) -> int | None:
    """End a registration, for a reason; both are public. What was published stays.

    Returns:
        Number of the event, `None` where it was revoked before.

    Raises:
        InputError: no such team has registered.
    """
    known = session.history().teams.get(team)
    if known is None:
        raise InputError(
            Problem(
                code="unknown-team",
                path="TEAM",
                found=quote(team),
                expected="a registered team, as team-0123456789abcdef",
                hint="heldout board teams",
            )
        )
    if known.revoked is not None:
        return None
    public = {"team": team, "why": why}
    return session.log("revoked-registration", None, public=public).event.seq


def _take(session: Session, arrival: Arrival) -> Receipt:
    if arrival.problems:
        return refused(arrival, arrival.problems)
    try:
        return _log(session, arrival)
    except InputError as error:
        return refused(arrival, error.problems)


def _log(session: Session, arrival: Arrival) -> Receipt:
    session.check_open("registered")
    spec, history = session.spec(), session.history()
    require_registration(spec)
    ((path, data),) = arrival.read().items()
    file, statement = read_registration(data, path=path)
    team = team_handle(statement.key)
    if _is_known(session, team, file):
        return Receipt(source=arrival.source, id=None, kind="known", team=team)
    _check_own(path, statement, history)
    _check_current(session, spec, history, statement)
    registrant = _open(session, spec, path, file, statement)
    _check_names(spec, history, team, registrant)
    public = {
        "team": team,
        "statement": file.statement,
        "signature": file.signature,
        "source": arrival.source,
    }
    sealed = {"registrant": msgspec.to_builtins(registrant)}
    session.log("registered", None, public=public, sealed=sealed)
    teams = session.history().teams
    return Receipt(
        source=arrival.source,
        id=None,
        kind="registered",
        team=team,
        notes=tuple(revoked_before(teams[team], teams.values())),
    )


def _is_known(session: Session, team: str, file: RegistrationFile) -> bool:
    """By what was signed: the same under another name, or sealed by somebody else, is not new."""
    return any(
        entry.event.kind == "registered"
        and entry.get("team") == team
        and entry.get("statement") == file.statement
        for entry in session.vault.entries()
    )


def _check_own(path: str, statement: Statement, history: History) -> None:
    """Refuse what was signed for another board, or by a key that only looks like the team's."""
    known = history.teams.get(team_handle(statement.key))
    if statement.board != history.board:
        raise bad_signature(path, "a registration for another board")
    if known is not None and known.key != statement.key:
        raise bad_signature(path, "another key that has the same short digest")


def _check_current(
    session: Session, spec: BoardSpec, history: History, statement: Statement
) -> None:
    """Refuse a registration that is late, old, revoked, or for another text."""
    registration = require_registration(spec)
    known = history.teams.get(team_handle(statement.key))
    closes = registration.closes
    if known is None and closes is not None and session.now.date() > closes:
        raise InputError(registration_closed(registration, session.now))
    if known is not None:
        _check_newer(known, statement)
    agreement = current_agreement(spec, history)
    if statement.agreement != ("" if agreement is None else agreement.digest):
        raise InputError(_other_agreement(agreement))


def _check_newer(known: Team, statement: Statement) -> None:
    if known.revoked is not None:
        code, found = "registration-revoked", f"revoked on {known.revoked:%d %b %Y}: {known.why}"
        expected = "a registration that stands"
    elif parse_time(statement.at) <= known.signed:
        code, found = "stale-registration", f"signed at {statement.at}"
        expected = f"one signed after {known.signed:%d %b %Y %H:%M:%S} UTC, as the one in force"
    else:
        return
    raise InputError(Problem(code=code, path=known.handle, found=found, expected=expected))


def _other_agreement(agreement: Agreement | None) -> Problem:
    text = "none, for this board has no agreement"
    if agreement is not None:
        text = f"{agreement.path} as it stands since {agreement.since:%d %b %Y}"
    return Problem(
        code="other-agreement",
        path="registration:agreement",
        found="another text that was agreed to",
        expected=text,
        hint="git pull, then heldout register shows the text and asks again",
    )


def _open(
    session: Session, spec: BoardSpec, path: str, file: RegistrationFile, statement: Statement
) -> Registrant:
    """Who registers; refused where it is not what was signed for."""
    letter = Letter(key=file.key, words=file.registrant)
    try:
        words = open_letter(spec.envelope, letter, session.vault.identities())
        registrant = msgspec.json.decode(words, type=Registrant)
        if registrant_digest(registrant) == statement.private:
            return registrant
    except (TrustError, msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    raise InputError(
        Problem(
            code="untrusted",
            path=quote(path),
            found="sealed names that do not open, or are not those that were signed for",
            expected="the file that heldout register writes, unchanged",
            hint="if the organisers' keys changed since: git pull, then heldout register once more",
        )
    )


def _check_names(spec: BoardSpec, history: History, team: str, registrant: Registrant) -> None:
    """Refuse a name that does not do, is another team's, or is not the one of this key."""
    problems = [*check_registrant(registrant, spec)]
    for other in history.teams.values():
        if other.registrant is None or other.revoked is not None:
            continue
        same = team_key(other.registrant.team) == team_key(registrant.team)
        if same != (other.handle == team):
            problems.append(_other_name(other, registrant))
    if problems:
        raise InputError(problems)


def _other_name(other: Team, registrant: Registrant) -> Problem:
    return Problem(
        code="name-registered",
        path="registration:team",
        found=f"{quote(registrant.team)}, of another key or name than before",
        expected=f"one key for each team, and one name for each key: see {other.handle}",
        hint=f'a lost key is replaced after: heldout board revoke {other.handle} --why "…"',
    )
