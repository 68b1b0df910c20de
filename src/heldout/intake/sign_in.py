"""Sign-in by GitHub or ORCID, where the environment configures it: OAuth 2 and OpenID Connect.

The flow is Authlib's: state, PKCE with S256, and for OpenID the nonce and the checks of the ID
token. Who a person is at the provider opens a team only where that person was tied to it from the
team's own page, which an invitation opened: no mail address is asked for or compared.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
import msgspec

from heldout.errors import InputError, SetupError, StoreError
from heldout.files.executors import work_within
from heldout.web.signing import TokenError, read_value, sign_value

_SECONDS = 10.0
_MOST_BYTES = 1 << 20
_LEEWAY_SECONDS = 60
_LONGEST_NAME = 255  # OpenID Connect Core 1.0, section 2
_ALGORITHMS = ["RS256", "ES256"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Who says who somebody is.

    Attributes:
        key: short name, in addresses and the database.
        title: as people read it.
        client_id, client_secret: what the provider gave this server.
        issuer: of OpenID Connect, whose addresses and keys it publishes; "" for plain OAuth 2.
        authorize, token, user: the addresses of plain OAuth 2.
        subject: field of the user's document that names a person for ever.
    """

    key: str
    title: str
    client_id: str
    client_secret: str
    issuer: str = ""
    authorize: str = ""
    token: str = ""
    user: str = ""
    subject: str = "id"

    @property
    def origin(self) -> str:
        """The site to which people are sent."""
        parts = urlsplit(self.authorize or self.issuer)
        return f"{parts.scheme}://{parts.netloc}"


def read_providers(environ: Mapping[str, str]) -> tuple[Provider, ...]:
    """The providers that the environment configures.

    `HELDOUT_GITHUB` and `HELDOUT_ORCID` each hold CLIENT_ID:CLIENT_SECRET.

    Raises:
        SetupError: one of them is no such pair; the text does not show it.
    """
    found = []
    for variable, settings in _KNOWN.items():
        configured = environ.get(variable, "").strip()
        client, colon, secret = configured.partition(":")
        if configured and not (client and colon and secret):
            raise SetupError(f"{variable} is not CLIENT_ID:CLIENT_SECRET")
        if configured:
            found.append(Provider(client_id=client, client_secret=secret, **settings))
    return tuple(found)


_KNOWN: Mapping[str, Mapping[str, str]] = {
    "HELDOUT_GITHUB": {
        "key": "github",
        "title": "GitHub",
        "authorize": "https://github.com/login/oauth/authorize",
        "token": "https://github.com/login/oauth/access_token",
        "user": "https://api.github.com/user",
    },
    "HELDOUT_ORCID": {"key": "orcid", "title": "ORCID", "issuer": "https://orcid.org"},
}


class Flow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A sign-in under way, as the browser's cookie holds it until it comes back.

    Attributes:
        provider: its key.
        state: comes back with the code.
        nonce: comes back inside the ID token.
        verifier: of PKCE.
        ties: whether the person is tied to the team that is signed in; else the person signs in.
    """

    provider: str
    state: str
    nonce: str
    verifier: str
    ties: bool


def sign_flow(flow: Flow, *, key: bytes) -> str:
    """The flow as a cookie that nobody else can make."""
    return sign_value(flow, key=key, purpose="intake.sign-in")


def read_flow(cookie: str, *, key: bytes) -> Flow | None:
    """The flow of a cookie; `None` where it is none of ours."""
    try:
        return read_value(cookie, Flow, key=key, purpose="intake.sign-in")
    except TokenError:
        return None


def new_flow(provider: Provider, *, ties: bool) -> Flow:
    """The secrets of one sign-in."""
    return Flow(
        provider=provider.key,
        state=secrets.token_urlsafe(24),
        nonce=secrets.token_urlsafe(24),
        verifier=secrets.token_urlsafe(48),
        ties=ties,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One provider, reached.

    Attributes:
        provider: who it is.
        client: makes the calls.
        back: this server's address to which the provider sends people back.
    """

    provider: Provider
    client: httpx2.Client
    back: str

    def address(self, flow: Flow) -> str:
        """Return where a person is sent.

        Raises:
            StoreError: the provider does not answer.
        """
        endpoint = self.provider.authorize or self._discover()["authorization_endpoint"]
        address, _ = self._oauth().create_authorization_url(
            endpoint, state=flow.state, code_verifier=flow.verifier, nonce=flow.nonce
        )
        return str(address)

    def subject(self, flow: Flow, answer: Mapping[str, str]) -> str:
        """Return who came back: the provider's lasting name of the person.

        Args:
            flow: as it was begun.
            answer: what stands in the address that the provider sent the person to.

        Raises:
            InputError: code `sign-in`: the answer is none to this flow, or a check failed.
            StoreError: the provider does not answer.
        """
        if not secrets.compare_digest(answer.get("state", "").encode(), flow.state.encode()):
            raise _refused("an answer to another sign-in")
        if not answer.get("code"):
            raise _refused("no consent")
        from authlib.oauth2.base import OAuth2Error  # noqa: PLC0415 - only where it is configured
        from joserfc.errors import JoseError  # noqa: PLC0415 - the same

        found = None if not self.provider.issuer else self._discover()
        endpoint = self.provider.token if found is None else found["token_endpoint"]
        try:
            token = self._oauth().fetch_token(
                endpoint,
                authorization_response=f"{self.back}?{urlencode(answer)}",
                state=flow.state,
                code_verifier=flow.verifier,
            )
            if found is None:
                return self._ask_user(str(token["access_token"]))
            return self._check_id_token(token, found, flow)
        except (OAuth2Error, JoseError, KeyError, TypeError, ValueError, RecursionError):
            raise _refused("an answer that does not hold") from None
        except httpx2.HTTPError as error:
            raise self._silent(error) from None

    def _oauth(self) -> Any:
        from authlib.oauth2.client import OAuth2Client  # noqa: PLC0415 - only where it is configured

        return OAuth2Client(
            _Session(self._call),
            client_id=self.provider.client_id,
            client_secret=self.provider.client_secret,
            token_endpoint_auth_method="client_secret_post",  # noqa: S106 - a method's name
            scope="openid" if self.provider.issuer else None,
            redirect_uri=self.back,
            code_challenge_method="S256",
        )

    def _discover(self) -> dict[str, Any]:
        issuer = self.provider.issuer
        found = self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise StoreError(f"{self.provider.title} names another issuer")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not str(found.get(name)).startswith("https://"):
                raise StoreError(f"{self.provider.title} names no address with https as its {name}")
        return found

    def _check_id_token(
        self, token: Mapping[str, Any], found: Mapping[str, Any], flow: Flow
    ) -> str:
        from authlib.oidc.core import CodeIDToken  # noqa: PLC0415 - only where it is configured
        from joserfc import jwt  # noqa: PLC0415 - the same
        from joserfc.jwk import KeySet  # noqa: PLC0415 - the same

        keys = KeySet.import_key_set(self._get(found["jwks_uri"]))  # type: ignore[arg-type]  # checked by it
        decoded = jwt.decode(str(token["id_token"]), keys, algorithms=_ALGORITHMS)
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            options={
                "iss": {"essential": True, "value": self.provider.issuer},
                "aud": {"essential": True, "value": self.provider.client_id},
                "nonce": {"essential": True, "value": flow.nonce},
            },
            params={
                "nonce": flow.nonce,
                "client_id": self.provider.client_id,
                "access_token": token.get("access_token"),
            },
        )
        claims.validate(leeway=_LEEWAY_SECONDS)
        return _lasting_name(claims["sub"])

    def _ask_user(self, token: str) -> str:
        subject = self._get(self.provider.user, {"Authorization": f"Bearer {token}"})
        return _lasting_name(subject[self.provider.subject])

    def _get(self, address: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        try:
            sent = {"Accept": "application/json", **(headers or {})}
            answer = self._call("GET", address, headers=sent)
            answer.raise_for_status()
            return msgspec.json.decode(answer.content, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise StoreError(f"{self.provider.title} answers no JSON object") from None
        except httpx2.HTTPError as error:
            raise self._silent(error) from None

    def _call(self, method: str, address: str, **sent: Any) -> httpx2.Response:
        """Ask, and read no more than a mebibyte and for no longer than ten seconds.

        Raises:
            StoreError: there is more to read.
        """
        end, too_much = time.monotonic() + _SECONDS, "answers too much, or too slowly"
        headers = {**sent.pop("headers", {}), "Accept-Encoding": "identity"}

        def ask() -> httpx2.Response:
            body = bytearray()
            with self.client.stream(method, address, headers=headers, **sent) as answer:
                if "content-encoding" in answer.headers:  # a small one can be a large text
                    raise StoreError(f"{self.provider.title} {too_much}")
                for piece in answer.iter_bytes():
                    body += piece
                    if len(body) > _MOST_BYTES or time.monotonic() > end:
                        raise StoreError(f"{self.provider.title} {too_much}")
            return httpx2.Response(answer.status_code, content=bytes(body), request=answer.request)

        try:
            return work_within(_SECONDS, ask)
        except TimeoutError:
            raise StoreError(f"{self.provider.title} {too_much}") from None

    def _silent(self, error: Exception) -> StoreError:
        return StoreError(f"{self.provider.title} does not answer ({type(error).__name__})")


@dataclass(frozen=True, slots=True)
class _Session:
    """What Authlib's client calls of a session, by httpx2; it is written for httpx and requests."""

    call: Callable[..., httpx2.Response]

    def post(
        self, url: str, *, data: Mapping[str, str], headers: Mapping[str, str], auth: Any
    ) -> httpx2.Response:
        """Send a form, with the client's own secret as `auth` says."""
        url, sent, body = auth.prepare("POST", url, dict(headers), urlencode(data))
        return self.call("POST", url, content=body, headers=sent)


def _lasting_name(name: object) -> str:
    """Return what a provider calls a person for ever.

    Raises:
        TypeError, ValueError: it names nobody.
    """
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise TypeError
    if not 0 < len(str(name).strip()) <= _LONGEST_NAME or not str(name).isprintable():
        raise ValueError
    return str(name)


def new_client() -> httpx2.Client:
    """A client that follows no redirect: a code or a secret would go along."""
    return httpx2.Client(timeout=_SECONDS, follow_redirects=False)


def _refused(found: str) -> InputError:
    return InputError.of("sign-in", "sign-in", found)
