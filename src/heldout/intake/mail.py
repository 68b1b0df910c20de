"""Notices to teams by mail: written as messages, and sent over SMTP where that is configured.

A mail says which submission and what became of it, and where to look. It has no score, no name
beside the team's own, and no token; an invitation has its link, which works once.
"""

import re
import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from urllib.parse import unquote, urlsplit

from heldout.errors import InputError, SetupError, StoreError, printable, quote

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
    raise InputError.of(
        "team-mail", "mail address", quote(address), "one address, as ada@example.org"
    )


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
    """How mail is sent, by the environment; `None` where it says nothing.

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
