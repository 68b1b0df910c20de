"""Registrations: whether a submission is signed by a registered team, and what an audit asks."""

from collections.abc import Iterable, Iterator

import msgspec

from heldout.board.log import events, manifest, registration
from heldout.board.log.history import History, is_signed
from heldout.board.log.submission import Submission
from heldout.board.policy import identity, names
from heldout.board.rules.spec import BoardSpec
from heldout.errors import Problem, quote
from heldout.ids import digest_bytes

_AGAIN = "heldout register"


def check_registrant(registrant: registration.Registrant, spec: BoardSpec) -> Iterator[Problem]:
    """Yield what is wrong with the names in a registration.

    Args:
        registrant: who registers.
        spec: the board's rules; a team may not be called as the board.
    """
    fields = {"institution": registrant.institution, "contact": registrant.contact}
    reserved, most = (spec.name, spec.title), registration.LONGEST_NAME
    for evidence in identity.name_evidence(registrant.team, "team", reserved=reserved):
        yield Problem.of("team-named", "registration:team", evidence)
    for name, text in {"team": registrant.team, **fields}.items():
        if not text.isprintable() or len(text) > most:
            yield Problem.of("wrong-field", f"registration:{name}", quote(text), most=most)


def revoked_before(
    team: registration.RegisteredTeam, teams: Iterable[registration.RegisteredTeam]
) -> Iterator[str]:
    """List what a team has in common with those whose registration was revoked.

    The same institution says little by itself; a lost key is a good reason for the same name.

    Args:
        team: as it registered, opened.
        teams: all of the board.
    """
    for other in teams:
        if other.revoked is None or other.handle == team.handle:
            continue
        shared = [*_shared(team.registrant, other.registrant)]
        if shared:
            day = f"{other.revoked:%d %b %Y}"
            yield f"{', '.join(shared)}: {other.handle}, revoked on {day} ({other.why})"


def _shared(
    one: registration.Registrant | None, other: registration.Registrant | None
) -> Iterator[str]:
    if one is None or other is None:
        return
    pairs = {
        "name": (one.team, other.team),
        "institution": (one.institution, other.institution),
        "contact": (one.contact, other.contact),
    }
    for field, (mine, theirs) in pairs.items():
        if not manifest.team_key(mine) or not manifest.team_key(theirs):
            continue
        if manifest.team_key(mine) == manifest.team_key(theirs):
            yield f"the same {field}"
        elif names.compare_names(mine, theirs) is not None:
            yield f"nearly the same {field}, {quote(theirs)}"


def registration_faults(entries: Iterable[events.Entry]) -> Iterator[str]:
    """Yield what does not hold of the registrations and agreements in a log."""
    board = ""
    for entry in entries:
        board = board or str(entry.hash)
        event = f"event {entry.event.seq}"
        if entry.event.kind == "registered":
            yield from (f"{event}: {fault}" for fault in _statement_faults(entry, board))
        elif entry.event.kind == "changed-agreement":
            agreement = registration.read_agreement(entry)
            if digest_bytes(agreement.text.encode()) != agreement.digest:
                yield f"{event}: the agreement's text is not that of its digest"


def signature_faults(spec: BoardSpec, history: History, submission: Submission) -> Iterator[str]:
    """List what does not hold of a published submission's signature, where one was asked."""
    asked = spec.registration is not None and "team-registered" not in spec.policy.off
    if asked and not submission.baseline and submission.identity is not None:
        for fault in list_unsigned(spec, history, submission, submission.identity.team):
            yield f"{submission.id}: {fault}"


def list_unsigned(
    spec: BoardSpec, history: History, submission: Submission, name: str
) -> Iterator[str]:
    """List what a submission lacks to be signed by the registered team of this name."""
    signature = submission.signature
    if signature is None:
        if spec.registration is not None and spec.registration.required:
            yield (
                "not signed by a registered team; register once, then send it again: "
                f'{_AGAIN} --team "NAME"'
            )
        return
    team = history.teams.get(signature.team)
    if team is None:
        yield f"signed by {signature.team}, which is not registered: {_AGAIN}"
    elif not is_signed(history, submission):
        yield f"the signature of {signature.team} is not one of this submission"
    else:
        decided, who = submission.published, team.registrant
        # A registration that was revoked after publication takes nothing back.
        if team.revoked is not None and (decided is None or team.revoked <= decided):
            yield f"the registration of {team.handle} was revoked on {team.revoked:%d %b %Y}"
        yield from _agreed(spec, history, submission, signature, team)
        if who is not None and manifest.team_key(who.team) != manifest.team_key(name):
            yield f"the team is {quote(name)}, but the key is registered for {quote(who.team)}"


def _agreed(
    spec: BoardSpec,
    history: History,
    submission: Submission,
    signature: manifest.SubmissionSignature,
    team: registration.RegisteredTeam,
) -> Iterator[str]:
    """Yield a fault where a team agreed neither to the text in force then nor to a later one."""
    if spec.registration is None or spec.registration.agreement is None:
        return
    known = registration.agreements_since(history.agreements, submission.received)
    if not known:
        return
    if signature.agreement not in {one.digest for one in known} & {*team.agreements}:
        yield (
            f"{team.handle} has not agreed to {known[0].path} as it stands since "
            f"{known[0].since:%d %b %Y}; agree, then send it again: {_AGAIN}"
        )


def _statement_faults(entry: events.Entry, board: str) -> Iterator[str]:
    text = str(entry.get("statement"))
    try:
        statement = registration.parse_statement(text)
    except ValueError:
        yield "holds no registration"
        return
    if statement.board != board or board == events.GENESIS:
        yield "the registration is for another board"
    if registration.team_handle(statement.key) != entry.get("team"):
        yield "the registration is not of the key that its team is named after"
    if not events.verify(
        statement.key, registration.registration_message(text), str(entry.get("signature"))
    ):
        yield "the registration's signature is not that of its key"
    sealed = entry.get("registrant")
    registrant = None if sealed is None else msgspec.convert(sealed, registration.Registrant)
    if registrant is not None and registration.registrant_digest(registrant) != statement.private:
        yield "the registrant is not the one that was signed for"
