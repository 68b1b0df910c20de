"""Sessions of the organiser's pages, and the limit on what each address may try.

A token opens a session, stored in a signed cookie. The token is long and random, so that it cannot
be guessed; whoever tries all the same is slowed down. Judges never come here and get no cookie.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from heldout.errors import SetupError
from heldout.web.signing import TokenError, read_value, sign_value

COOKIE = "heldout-organiser"
"""The session's cookie."""

SESSION = timedelta(hours=12)
"""How long a session lasts."""

_SHORTEST = 16
_MOST_FAILURES = 5
_WINDOW = timedelta(minutes=15)
_MOST_ADDRESSES = 10_000


def check_token(token: str) -> str:
    """A token that is fit to be one, without blanks around it.

    Raises:
        SetupError: it is shorter than 16 characters, and could be guessed.
    """
    plain = token.strip()
    if len(plain) < _SHORTEST:
        raise SetupError(
            f"the organiser's token has {len(plain)} characters: give at least {_SHORTEST}, or "
            "none to have one made"
        )
    return plain


class OrganiserSession(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An organiser who signed in.

    Attributes:
        id: random.
        expires: seconds since 1970 in UTC.
        sign_outs: how many sign-outs there had been; another one ends it.
        token: digest of the token it was opened with; a changed token ends it.
    """

    id: str
    expires: Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999)]
    sign_outs: Annotated[int, msgspec.Meta(ge=0)]
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSigner:
    """Opens sessions and knows them again.

    Attributes:
        key: the campaign's secret.
        token: what opens a session.
    """

    key: bytes
    token: str

    def open(self, given: str, *, sign_outs: int, now: datetime) -> str | None:
        """The cookie of a new session; `None` where the token is another.

        Args:
            given: the token that was typed.
            sign_outs: how many there have been.
            now: the time.
        """
        if not hmac.compare_digest(_digest(given.strip()), _digest(self.token)):
            return None
        session = OrganiserSession(
            id=secrets.token_urlsafe(18),
            expires=int((now + SESSION).timestamp()),
            sign_outs=sign_outs,
            token=self._mark(),
        )
        return sign_value(session, key=self.key, purpose="organiser.session")

    def read(self, cookie: str, *, sign_outs: int, now: datetime) -> OrganiserSession | None:
        """The session of a cookie; `None` where it is forged, or over."""
        try:
            session = read_value(
                cookie, OrganiserSession, key=self.key, purpose="organiser.session"
            )
        except TokenError:
            return None
        fits = hmac.compare_digest(session.token, self._mark())
        alive = now.timestamp() < session.expires and session.sign_outs == sign_outs
        return session if fits and alive else None

    def form_token(self, session: OrganiserSession) -> str:
        """Return what each form of this session has to send back."""
        return sign_value(session.id, key=self.key, purpose="organiser.form")

    def is_form_token(self, session: OrganiserSession, text: str) -> bool:
        """Check that a form was one of this session."""
        return text.isascii() and hmac.compare_digest(self.form_token(session), text)

    def _mark(self) -> str:
        return hmac.new(self.key, _digest(self.token), hashlib.sha256).hexdigest()[:32]


@dataclass(slots=True)
class Attempts:
    """What each address may do five times in 15 minutes, as one process has seen it.

    Attributes:
        failures: when it was done, by address.
    """

    failures: dict[str, list[datetime]] = field(default_factory=dict)

    def wait(self, address: str, *, now: datetime) -> timedelta | None:
        """Return how long this address has to wait; `None` where it may try."""
        recent = [at for at in self.failures.get(address, ()) if now - at < _WINDOW]
        return None if len(recent) < _MOST_FAILURES else recent[-_MOST_FAILURES] + _WINDOW - now

    def note(self, address: str, *, now: datetime) -> None:
        """Remember one; of very many addresses the oldest are forgotten."""
        recent = [at for at in self.failures.pop(address, ()) if now - at < _WINDOW]
        while len(self.failures) >= _MOST_ADDRESSES:
            self.failures.pop(next(iter(self.failures)), None)  # another thread may be first
        self.failures[address] = [*recent, now][-_MOST_FAILURES:]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
