"""Notices to teams by mail: written as messages, and sent over SMTP where that is configured.

A mail says which submission and what became of it, and where to look. It has no score, no name
beside the team's own, and no token; an invitation has its link, which works once.

A notice is written in the transaction of what it is about, so it is neither lost nor sent for
something that did not happen; the worker sends it. A server that is killed while it sends may send
it twice: `Notice.id` and `Notice.created` belong into the mail's Message-ID, by which mail programs
know that it is the same. The number alone does not do: it is given again where a notice was
removed.
"""

import re
import smtplib
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec
from sqlalchemy import Connection, delete, insert, select, update

from heldout.database.database import Database
from heldout.errors import InputError, SetupError, StoreError, printable, quote
from heldout.intake.tables import NAMED, notices, teams

NoticeState = Literal["waiting", "sent", "failed"]

SERVER = "HELDOUT_SMTP"
"""Name of the variable with the mail server: smtp://USER:PASSWORD@HOST:587, or smtps://…."""

SENDER = "HELDOUT_MAIL_FROM"
"""Name of the variable with the address that mails come from."""

LONGEST_ADDRESS = 254
"""Most characters of a mail address (RFC 5321, section 4.5.3.1.3, less the angle brackets)."""

_MAIL = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+", re.ASCII
)
_SECONDS = 20.0
_PORTS = {"smtp": 587, "smtps": 465}
_HERE = ("127.0.0.1", "::1", "localhost")


def check_mail_address(text: str) -> str:
    """A mail address, or "" for none.

    Raises:
        InputError: code `team-mail`.
    """
    address = text.strip()
    if not address or (len(address) <= LONGEST_ADDRESS and _MAIL.fullmatch(address)):
        return address
    raise InputError.of("team-mail", "mail address", quote(address))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailer:
    """How mail is sent.

    Attributes:
        host, port: of the mail server.
        tls: from the first byte (smtps); else STARTTLS, which only this machine may lack.
        user, password: to log in with; "" without.
        sender: the address that mails come from.
    """

    host: str
    port: int
    tls: bool
    user: str
    password: str
    sender: str

    def send(self, message: EmailMessage) -> None:
        """Send one message.

        Raises:
            StoreError: the mail server did not take it; the text has no password.
        """
        context = ssl.create_default_context()
        try:
            if self.tls:
                server: smtplib.SMTP = smtplib.SMTP_SSL(
                    self.host, self.port, timeout=_SECONDS, context=context
                )
            else:
                server = smtplib.SMTP(self.host, self.port, timeout=_SECONDS)
            with server:
                if not self.tls and self.host not in _HERE:
                    server.starttls(context=context)
                if self.user:
                    server.login(self.user, self.password)
                server.send_message(message)
        except (OSError, smtplib.SMTPException) as error:
            raise StoreError(f"{self.host} did not take a mail ({type(error).__name__})") from None


def read_mailer(environ: Mapping[str, str]) -> Mailer | None:
    """Return how mail is sent, by the environment; `None` where it says nothing.

    Raises:
        SetupError: it says something that cannot be; the text has no password.
    """
    text = environ.get(SERVER, "").strip()
    if not text:
        return None
    try:
        parts = urlsplit(text)
        port = parts.port or _PORTS[parts.scheme]
        sender = check_mail_address(environ.get(SENDER, ""))
    except (ValueError, KeyError, InputError):
        raise SetupError(f"{SERVER} or {SENDER} is wrong; {_EXAMPLE}") from None
    if not parts.hostname or not sender:
        raise SetupError(f"{SERVER} needs a host, and {SENDER} an address; {_EXAMPLE}")
    return Mailer(
        host=parts.hostname,
        port=port,
        tls=parts.scheme == "smtps",
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        sender=sender,
    )


_EXAMPLE = "as smtp://USER:PASSWORD@mail.example:587 and board@example.org"


def make_message(
    to: str, subject: str, *paragraphs: str, sender: str, now: datetime
) -> EmailMessage:
    """Return a mail; whatever somebody wrote into a name starts no header.

    Args:
        to: the address, from `check_mail_address`.
        subject: one line.
        paragraphs: what it says; nothing of it is a secret but an invitation's link.
        sender: the address that it comes from.
        now: its date, UTC.
    """
    message = EmailMessage(policy=SMTP)
    message["From"] = Address(addr_spec=check_mail_address(sender))
    message["To"] = Address(addr_spec=check_mail_address(to))
    message["Subject"] = " ".join(printable(subject).split())[:200]
    message["Date"] = format_datetime(now)
    message["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
    message["Auto-Submitted"] = "auto-generated"
    message.set_content("\n\n".join(printable(line) for line in paragraphs) + "\n")
    return message


class Notice(msgspec.Struct, frozen=True, kw_only=True, rename=NAMED):
    """A notice to a team.

    Attributes:
        id: of it.
        recipient: mail address.
        owner: id of the submission, or handle of the team that registers.
        outcome: what became of it, in words.
        state: whether it was sent.
        created: when it was written, UTC.
        why: why it failed; "" for nothing.
    """

    id: int
    recipient: str
    owner: str
    outcome: str
    state: NoticeState
    created: datetime
    why: str


def add_notice(
    connection: Connection,
    team: int,
    *,
    kind: str,
    key: str,
    owner: str,
    outcome: str,
    now: datetime,
) -> None:
    """Write a notice, in the transaction of what it reports; there is one of a kind and a key.

    Args:
        connection: of a transaction.
        team: id of the team; one without an address gets none.
        kind: what it reports.
        key: what it is about.
        owner: id of the submission, or handle of the team that registers.
        outcome: what became of it, in words.
        now: the time, UTC.
    """
    recipient = connection.execute(select(teams.c.mail).where(teams.c.id == team)).scalar_one()
    there = select(notices.c.id).where(notices.c.kind == kind, notices.c.key == key)
    if not recipient or connection.execute(there).first() is not None:
        return
    row = {"team": team, "recipient": recipient, "kind": kind, "key": key, "state": "waiting"}
    row |= {"owner": owner, "outcome": outcome, "created_at": now, "why": ""}
    connection.execute(insert(notices).values(row))


def list_notices(database: Database, *states: NoticeState) -> tuple[Notice, ...]:
    """Return the notices in some states, or all, in the order in which they were written.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    wanted = select(notices).order_by(notices.c.id)
    if states:
        wanted = wanted.where(notices.c.state.in_(states))
    rows = database.read(lambda connection: connection.execute(wanted).all())
    return tuple(msgspec.convert(row, Notice, from_attributes=True) for row in rows)


def send_notices(database: Database, send: Callable[[Notice], None], *, now: datetime) -> None:
    """Send every notice that waits; one whose sending raises `InputError` has failed.

    Args:
        database: open.
        send: sends one.
        now: the time, UTC.

    Raises:
        StoreError: the mail server is away; those that are left wait.
        DatabaseError: see `ErrorCode`.
    """
    for notice in list_notices(database, "waiting"):
        values = {"state": "sent", "ended_at": now}
        try:
            send(notice)
        except InputError as error:
            values |= {"state": "failed", "why": str(error)}
        ended = update(notices).where(notices.c.id == notice.id).values(values)
        database.write(lambda connection, ended=ended: connection.execute(ended))  # type: ignore[misc]  # a default binds it


def remove_notices(connection: Connection, *, before: datetime) -> int:
    """Remove notices that were written before some time, sent or not; return their number."""
    old = delete(notices).where(notices.c.created_at < before)
    return connection.execute(old).rowcount
