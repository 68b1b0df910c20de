"""An OpenID provider for tests: real keys, real tokens, and the ways in which one may lie."""

import base64
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from joserfc import jwt
from joserfc.jwk import RSAKey

from heldout.intake.sign_in import Provider

ISSUER = "https://provider.example"
CLIENT = "heldout-at-home"
SECRET = "between-us"  # noqa: S105 - a test's
ORCID = Provider(key="orcid", title="ORCID", client_id=CLIENT, client_secret=SECRET, issuer=ISSUER)


@dataclass
class OpenIdProvider:
    """Answers discovery, keys, codes and tokens, like a provider over HTTP.

    `lies` are claims that replace those of the next ID token; `answers` replace whole answers, by
    path, and `forges` makes the ID token of its claims.
    """

    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    signs_with: RSAKey | None = None
    person: str = "0000-0002-1825-0097"
    lies: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    answers: dict[str, Callable[[], httpx2.Response]] = field(default_factory=dict)
    forges: Callable[[dict[str, Any]], str] | None = None
    called: list[str] = field(default_factory=list)

    def client(self) -> httpx2.Client:
        """A client whose calls it answers."""
        return httpx2.Client(transport=httpx2.MockTransport(self.answer), follow_redirects=False)

    def consent(self, address: str) -> dict[str, str]:
        """Somebody says yes at the address where they were sent; what the way back then says."""
        asked = dict(parse_qsl(urlsplit(address).query))
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        self.asked.append(asked)
        code = f"code-{len(self.asked)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        """Any call."""
        path = request.url.path
        self.called.append(str(request.url))
        if path in self.answers:
            return self.answers[path]()
        if path == "/.well-known/openid-configuration":
            return httpx2.Response(200, json=self.configuration())
        if path == "/keys":
            return httpx2.Response(200, json={"keys": [self.key.as_dict(private=False)]})
        if path == "/token":
            return self._token(dict(parse_qsl(request.content.decode())))
        if path == "/user":
            assert request.headers["authorization"] == "Bearer access"
            return httpx2.Response(200, json={"id": 4711, "login": "ada"})
        return httpx2.Response(404)

    def configuration(self) -> dict[str, str]:
        places = {"authorization_endpoint": "/authorize", "token_endpoint": "/token"}
        return {
            "issuer": ISSUER,
            "jwks_uri": f"{ISSUER}/keys",
            **{name: ISSUER + path for name, path in places.items()},
        }

    def _token(self, form: dict[str, str]) -> httpx2.Response:
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or form.get("client_secret") != SECRET:
            return httpx2.Response(400, json={"error": "invalid_grant"})
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if challenge != asked["code_challenge"] or asked["code_challenge_method"] != "S256":
            return httpx2.Response(400, json={"error": "invalid_grant"})
        if form["redirect_uri"] != asked["redirect_uri"]:
            return httpx2.Response(400, json={"error": "invalid_grant"})
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "sub": self.person,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked.get("nonce"),
            **self.lies,
        }
        key = self.signs_with or self.key
        signed = (
            self.forges(claims)
            if self.forges
            else jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)
        )
        token = {"access_token": "access", "token_type": "Bearer", "id_token": signed}
        return httpx2.Response(200, json=token)


def back_with(answer: dict[str, str]) -> str:
    """The query of the address that a provider sends somebody back to."""
    return urlencode(answer)
