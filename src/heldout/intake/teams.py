"""Teams that may upload: invitations, accounts, tokens, sign-in identities.

A team registers once, by an invitation link. What it then shows is a token: 256 random bits, of
which only the SHA-256 is stored, so that who reads the database can use none. A token of kind
`api` is for scripts, one of kind `session` is what a browser has after signing in.
"""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec
from sqlalchemy import Connection, Row, insert, select, update
from sqlalchemy import delete as remove

from heldout.board.log.manifest import team_key
from heldout.board.policy.names import compare_names, mixed_words
from heldout.database.database import Database, exclude_others
from heldout.errors import InputError, quote
from heldout.intake.mail import check_mail_address
from heldout.intake.tables import NAMED, identities, invitations, teams, tokens

TokenKind = Literal["api", "session"]

MOST_SESSIONS = 20
"""Sessions that a team has at once."""

_MARK = "heldout_"
_LONGEST_NAME = 100


class Team(msgspec.Struct, frozen=True, kw_only=True, rename=NAMED):
    """A team with an account.

    Attributes:
        id: of the row.
        name: as it will stand in the metadata of its submissions.
        mail: where notices go, "" for nowhere.
        created: when it registered, UTC.
        closed: since when it is shut out; `None` while it is not.
    """

    id: int
    name: str
    mail: str
    created: datetime
    closed: datetime | None


class Invitation(msgspec.Struct, frozen=True, kw_only=True, rename=NAMED):
    """An invitation as the organiser sees it.

    Attributes:
        id: of the row.
        note: whom it was given to.
        team: id of the team that it is for, or that registered by it; `None` before.
        created: when it was made, UTC.
        expires: when it ends.
        used: when it was used; `None` before.
    """

    id: int
    note: str
    team: int | None
    created: datetime
    expires: datetime
    used: datetime | None


def hash_secret(secret: str) -> str:
    """Return what is stored of a token: it has 256 random bits, so it needs no salt."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _new_secret() -> str:
    return _MARK + secrets.token_urlsafe(32)


# Invitations


def create_invitation(
    database: Database,
    *,
    note: str,
    now: datetime,
    valid: timedelta = timedelta(days=14),
    team: int | None = None,
) -> tuple[Invitation, str]:
    """Make an invitation for one use.

    Args:
        database: open.
        note: whom it is for; the organiser alone sees it.
        now: the time, UTC.
        valid: how long it may be used.
        team: id of a team that gets another token by it, as it lost its own; `None` for a new one.

    Returns:
        The invitation and its secret, which is stored nowhere.

    Raises:
        InputError: code `team-unknown`.
        DatabaseError: see `ErrorCode`.
    """
    secret = _new_secret()
    row: dict[str, Any] = {"hash": hash_secret(secret), "note": note, "team": team}
    row |= {"created_at": now, "expires_at": now + valid}

    def create(connection: Connection) -> Invitation:
        if team is not None:
            _team_row(connection, team)
        found = connection.execute(insert(invitations).values(row).returning(*invitations.c)).one()
        return _invitation(found)

    return database.write(create), secret


def find_invitation(database: Database, secret: str, *, now: datetime) -> Invitation:
    """The invitation of a secret, while it can be used.

    Raises:
        InputError: codes `invitation-unknown`, `invitation-used`, `invitation-expired`.
        DatabaseError: see `ErrorCode`.
    """
    return database.read(lambda connection: _open_invitation(connection, secret, now=now))


def list_invitations(database: Database) -> tuple[Invitation, ...]:
    """All invitations, the newest first.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    newest = select(invitations).order_by(invitations.c.id.desc())
    rows = database.read(lambda connection: connection.execute(newest).all())
    return tuple(_invitation(row) for row in rows)


def accept_invitation(
    database: Database, secret: str, *, name: str, mail: str, now: datetime
) -> Team:
    """Register a team by its invitation, or find the team that the invitation is for.

    Args:
        database: open.
        secret: of the invitation; it is used up.
        name: of a new team.
        mail: its address for notices, "" for none.
        now: the time, UTC.

    Raises:
        InputError: codes `invitation-unknown`, `invitation-used`, `invitation-expired`,
            `team-name`, `team-mail`, `team-taken`, `team-alike`.
        DatabaseError: see `ErrorCode`.
    """

    def accept(connection: Connection) -> Team:
        exclude_others(connection)
        found = _open_invitation(connection, secret, now=now)
        team = found.team or _add_team(connection, name=name, mail=mail, now=now)
        used = update(invitations).where(invitations.c.id == found.id)
        connection.execute(used.values(used_at=now, team=team))
        return _team(_team_row(connection, team))

    return database.write(accept)


def _open_invitation(connection: Connection, secret: str, *, now: datetime) -> Invitation:
    wanted = select(invitations).where(invitations.c.hash == hash_secret(secret))
    row = connection.execute(wanted).first()
    if row is None:
        raise InputError.of("invitation-unknown", "invitation")
    if row.used_at is not None:
        raise InputError.of("invitation-used", "invitation")
    if row.expires_at <= now:
        raise InputError.of("invitation-expired", "invitation")
    return _invitation(row)


def _invitation(row: Row[Any]) -> Invitation:
    return msgspec.convert(row, Invitation, from_attributes=True)


def remove_ended(connection: Connection, *, before: datetime) -> int:
    """Remove invitations, tokens and sessions that were used up or ended before some time.

    Args:
        connection: of a transaction.
        before: the time, UTC.

    Returns:
        How many.
    """
    ended = (
        remove(invitations).where(
            (invitations.c.used_at < before) | (invitations.c.expires_at < before)
        ),
        remove(tokens).where((tokens.c.revoked_at < before) | (tokens.c.expires_at < before)),
    )
    return sum(connection.execute(one).rowcount for one in ended)


# Teams


def list_teams(database: Database) -> tuple[Team, ...]:
    """All teams, in the order in which they registered.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    all_of_them = select(teams).order_by(teams.c.id)
    rows = database.read(lambda connection: connection.execute(all_of_them).all())
    return tuple(_team(row) for row in rows)


def list_alike(name: str, teams: Iterable[Team]) -> tuple[Team, ...]:
    """The teams whose name is another, but equal to the eye or but for its spelling.

    Args:
        name: of a team.
        teams: compared with it.
    """
    alike = ("spelling", "confusable")
    return tuple(team for team in teams if compare_names(name, team.name) in alike)


def get_team(database: Database, team: int) -> Team:
    """A team.

    Raises:
        InputError: code `team-unknown`.
        DatabaseError: see `ErrorCode`.
    """
    return database.read(lambda connection: _team(_team_row(connection, team)))


def close_team(database: Database, team: int, *, now: datetime | None) -> None:
    """Shut a team out from now on: its tokens open nothing; `None` lets it in again.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    changed = update(teams).where(teams.c.id == team).values(closed_at=now)
    database.write(lambda connection: connection.execute(changed))


def _add_team(connection: Connection, *, name: str, mail: str, now: datetime) -> int:
    name = " ".join(name.split())
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InputError.of("team-name", "name", quote(name), longest=_LONGEST_NAME)
    if strange := mixed_words(name):
        found = f"{strange[0]!a}, with letters of several scripts in one word"
        raise InputError.of("team-name", "name", found, longest=_LONGEST_NAME)
    row = {"name": name, "key": team_key(name), "mail": check_mail_address(mail), "created_at": now}
    if connection.execute(select(teams.c.id).where(teams.c.key == row["key"])).first() is not None:
        raise InputError.of("team-taken", "name", quote(name))
    if list_alike(name, map(_team, connection.execute(select(teams)))):
        raise InputError.of(
            "team-alike",
            "name",
            f"{quote(name)}, which looks like the name of another team",
            "a name that nobody takes for another",
            "choose another name, or ask the organiser for a link to your account",
        )
    added = insert(teams).values(row).returning(teams.c.id)
    return int(connection.execute(added).scalar_one())


def _team_row(connection: Connection, team: int) -> Row[Any]:
    row = connection.execute(select(teams).where(teams.c.id == team)).first()
    if row is None:
        raise InputError.of("team-unknown", "team", str(team))
    return row


def _team(row: Row[Any]) -> Team:
    return msgspec.convert(row, Team, from_attributes=True)


# Tokens


def replace_tokens(
    database: Database, team: int, *, now: datetime, session: str | None = None
) -> str:
    """Give a team a new token; every token, session and identity that it had ends.

    It is one transaction: whoever has the old token opens no session meanwhile, and an identity
    that a thief tied to the team brings nobody back.

    Args:
        database: open.
        team: its id.
        now: the time, UTC.
        session: secret of the session that asks, which has to hold; `None` where none does.

    Returns:
        The new token's secret, which is stored nowhere.

    Raises:
        InputError: codes `team-unknown`; `team-token`: the session is over.
        DatabaseError: see `ErrorCode`.
    """

    def replace(connection: Connection) -> str:
        exclude_others(connection)
        _team_row(connection, team)
        if session is not None:
            _check_session(connection, team, session, now=now)
        held = tokens.c.revoked_at.is_(None) & (tokens.c.team == team)
        connection.execute(update(tokens).where(held).values(revoked_at=now))
        connection.execute(remove(identities).where(identities.c.team == team))
        return _add_token(connection, team, kind="api", now=now)

    return database.write(replace)


def open_session(
    database: Database, by: str | tuple[str, str], *, now: datetime, valid: timedelta
) -> str | None:
    """Open a session, in one transaction with the look at what opens it.

    The oldest session of a team ends where it has too many.

    Args:
        database: open.
        by: secret of a team's token, or provider and subject of an identity.
        now: the time, UTC.
        valid: how long it holds.

    Returns:
        The session's secret, which is stored nowhere; `None` where `by` opens nothing.

    Raises:
        DatabaseError: see `ErrorCode`.
    """

    def find(connection: Connection) -> Team | None:
        if isinstance(by, tuple):
            return _find_by_identity(connection, *by)
        return _find_by_token(connection, by, now=now, kind="api")

    if database.read(find) is None:  # a wrong one waits for no writer
        return None

    def begin(connection: Connection) -> str | None:
        exclude_others(connection)
        team = find(connection)
        if team is None:
            return None
        open_ones = (
            select(tokens.c.id)
            .where(tokens.c.team == team.id, tokens.c.kind == "session")
            .where(tokens.c.revoked_at.is_(None), tokens.c.expires_at > now)
            .order_by(tokens.c.id)
        )
        live = connection.execute(open_ones).scalars().all()
        for old in live[: max(0, len(live) - MOST_SESSIONS + 1)]:
            connection.execute(update(tokens).where(tokens.c.id == old).values(revoked_at=now))
        return _add_token(connection, team.id, kind="session", now=now, expires=now + valid)

    return database.write(begin)


def _add_token(
    connection: Connection,
    team: int,
    *,
    kind: TokenKind,
    now: datetime,
    expires: datetime | None = None,
) -> str:
    """Add a token in a transaction that keeps others out; return its secret."""
    secret = _new_secret()
    row = {"team": team, "hash": hash_secret(secret), "kind": kind}
    connection.execute(insert(tokens).values(**row, created_at=now, expires_at=expires))
    return secret


def find_team(database: Database, secret: str, *, now: datetime, kind: TokenKind) -> Team | None:
    """Return whose token it is; `None` where it opens nothing (any more).

    Args:
        database: open.
        secret: that was shown.
        now: the time, UTC.
        kind: that is asked for.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    return database.read(lambda connection: _find_by_token(connection, secret, now=now, kind=kind))


def close_session(database: Database, secret: str, *, now: datetime) -> None:
    """End a session.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    held = tokens.c.hash == hash_secret(secret), tokens.c.kind == "session"
    ended = update(tokens).where(*held, tokens.c.revoked_at.is_(None)).values(revoked_at=now)
    database.write(lambda connection: connection.execute(ended))


def _find_by_token(
    connection: Connection, secret: str, *, now: datetime, kind: TokenKind
) -> Team | None:
    wanted = select(tokens).where(tokens.c.hash == hash_secret(secret), tokens.c.kind == kind)
    row = connection.execute(wanted).first()
    if row is None or row.revoked_at is not None:
        return None
    if row.expires_at is not None and now >= row.expires_at:
        return None
    team = _team(_team_row(connection, row.team))
    return None if team.closed is not None else team


def _check_session(connection: Connection, team: int, session: str, *, now: datetime) -> None:
    """Refuse what a session asks that has ended by now: another request may have ended it.

    Raises:
        InputError: code `team-token`.
    """
    found = _find_by_token(connection, session, now=now, kind="session")
    if found is None or found.id != team:
        raise InputError.of("team-token", "session", "one that is over", "a session", "sign in")


# Identities of other sites, by which a team signs in


def link_identity(
    database: Database, team: int, provider: str, subject: str, *, now: datetime, session: str
) -> None:
    """Let an identity sign in as a team.

    Args:
        database: open.
        team: id of the team.
        provider: the site, as "github".
        subject: the person's id there, which never changes.
        now: the time, UTC.
        session: secret of the session that asks, which has to hold.

    Raises:
        InputError: codes `identity-taken`: it signs in as another team; `team-token`: the session
            is over.
        DatabaseError: see `ErrorCode`.
    """

    def link(connection: Connection) -> None:
        exclude_others(connection)
        _check_session(connection, team, session, now=now)
        found = connection.execute(_team_of_identity(provider, subject)).scalar()
        if found == team:
            return
        if found is not None:
            raise InputError.of("identity-taken", provider, quote(subject))
        row = {"provider": provider, "subject": subject, "team": team}
        connection.execute(insert(identities).values(**row, created_at=now))

    database.write(link)


def list_providers(database: Database, team: int) -> frozenset[str]:
    """Return the sites by which somebody signs in as a team.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    wanted = select(identities.c.provider).where(identities.c.team == team)
    found = database.read(lambda connection: connection.execute(wanted).scalars().all())
    return frozenset(found)


def _find_by_identity(connection: Connection, provider: str, subject: str) -> Team | None:
    found = connection.execute(_team_of_identity(provider, subject)).scalar()
    team = None if found is None else _team(_team_row(connection, found))
    return None if team is None or team.closed is not None else team


def _team_of_identity(provider: str, subject: str) -> Any:
    return select(identities.c.team).where(
        identities.c.provider == provider, identities.c.subject == subject
    )
