"""Sign-in against a provider with real keys: what holds, and each way in which one may lie."""

import base64
import gzip
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from joserfc.jwk import RSAKey
from openid_provider import CLIENT, ISSUER, ORCID, SECRET, OpenIdProvider

from heldout.errors import InputError, SetupError, StoreError
from heldout.intake.sign_in import Flow, Provider, SignIn, new_flow, read_providers

BACK = "https://board.example/sign-in/orcid/back"
PLAIN = Provider(
    key="github",
    title="GitHub",
    client_id=CLIENT,
    client_secret=SECRET,
    authorize=f"{ISSUER}/authorize",
    token=f"{ISSUER}/token",
    user=f"{ISSUER}/user",
)


@pytest.fixture(scope="module")
def key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "one"})


def sign_in(there: OpenIdProvider, provider: Provider = ORCID, *, flow: Flow | None = None) -> str:
    here = SignIn(provider=provider, client=there.client(), back=BACK)
    begun = new_flow(provider, ties=False)
    return here.subject(flow or begun, there.consent(here.address(begun)))


def test_a_person_comes_back_with_a_checked_id_token(key: RSAKey) -> None:
    there = OpenIdProvider(key=key)
    assert sign_in(there) == there.person
    (asked,) = there.asked
    assert asked["redirect_uri"] == BACK
    assert asked["scope"] == "openid"
    assert asked["code_challenge_method"] == "S256"
    assert len(asked["state"]) >= 32
    assert len(asked["nonce"]) >= 32


def test_plain_oauth_asks_who_the_person_is_and_for_no_address(key: RSAKey) -> None:
    there = OpenIdProvider(key=key)
    assert sign_in(there, PLAIN) == "4711"
    assert "scope" not in there.asked[0]


def test_another_flow_s_answer_is_refused(key: RSAKey) -> None:
    for other in ("state", "verifier", "nonce"):
        there = OpenIdProvider(key=key)
        here = SignIn(provider=ORCID, client=there.client(), back=BACK)
        begun, another = new_flow(ORCID, ties=False), new_flow(ORCID, ties=False)
        answer = there.consent(here.address(begun))
        fields = {name: getattr(begun, name) for name in begun.__struct_fields__}
        mixed = Flow(**{**fields, other: getattr(another, other)})
        with pytest.raises(InputError, match="sign-in"):
            here.subject(mixed, answer)


@pytest.mark.parametrize(
    "lies",
    [
        {"iss": "https://another.example"},
        {"aud": "another-client"},
        {"exp": int(time.time()) - 3600},
        {"nonce": None},
        {"sub": None},
    ],
    ids=lambda lies: next(iter(lies)),
)
def test_an_id_token_that_does_not_hold_is_refused(key: RSAKey, lies: dict[str, object]) -> None:
    there = OpenIdProvider(key=key, lies={k: v for k, v in lies.items() if v is not None})
    if None in lies.values():
        there.lies = dict.fromkeys(lies, "")
    with pytest.raises(InputError, match="sign-in"):
        sign_in(there)


def test_a_token_signed_by_another_key_is_refused(key: RSAKey) -> None:
    there = OpenIdProvider(key=key, signs_with=RSAKey.generate_key(2048, {"kid": "one"}))
    with pytest.raises(InputError, match="sign-in"):
        sign_in(there)


def signed_by_hand(header: dict[str, str], claims: dict[str, Any], secret: bytes | None) -> str:
    """A token with whatever header; without a signature, or with one of HMAC."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in (header, claims)
    ]
    text = b".".join(parts)
    mark = b"" if secret is None else hmac.new(secret, text, hashlib.sha256).digest()
    return (text + b"." + base64.urlsafe_b64encode(mark).rstrip(b"=")).decode()


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "None", "kid": "one"},
        {"alg": "HS256", "kid": "one"},
        {"alg": "HS256"},
        {"alg": "RS256", "kid": "one"},
        {"alg": "RS256", "kid": "../../one"},
        {"alg": "HS256", "kid": "one", "jku": "https://attacker.example/keys"},
        {},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["none", "pem", "json"])
def test_a_token_without_the_provider_s_signature_is_refused(
    key: RSAKey, header: dict[str, str], form: str
) -> None:
    """Also one that is signed with the public key as a secret, however it is written."""
    secrets = {
        "none": None,
        "pem": key.as_pem(private=False),
        "json": json.dumps(key.as_dict(private=False)).encode(),
    }
    there = OpenIdProvider(key=key)
    there.forges = lambda claims: signed_by_hand(header, claims, secrets[form])
    with pytest.raises(InputError, match="sign-in"):
        sign_in(there)
    assert all(url.startswith(ISSUER) for url in there.called)


@pytest.mark.parametrize(
    "lies",
    [
        {"sub": ""},
        {"sub": " "},
        {"sub": {"a": 1}},
        {"sub": ["0000-0002-1825-0097"]},
        {"sub": True},
        {"sub": "a\0b"},
        {"sub": "a\nb"},
        {"sub": "x" * 256},
        {"sub": "x" * 500_000},
        {"aud": []},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"aud": {"a": CLIENT}},
        {"iss": f"{ISSUER}/"},
        {"iss": [ISSUER]},
        {"nonce": ["x"]},
        {"nonce": None},
        {"exp": "tomorrow"},
        {"exp": None},
        {"exp": 1e999},
        {"iat": int(time.time()) + 3600},
        {"nbf": int(time.time()) + 3600},
        {"at_hash": "another"},
    ],
    ids=lambda lies: next(iter(lies)),  # no text of a value: the times differ between workers
)
def test_claims_that_are_strange_sign_nobody_in(key: RSAKey, lies: dict[str, object]) -> None:
    with pytest.raises(InputError, match="sign-in"):
        sign_in(OpenIdProvider(key=key, lies=lies))


def endless() -> Iterator[bytes]:
    while True:
        yield b" " * (1 << 16)


ANSWERS: dict[str, Callable[[], httpx2.Response]] = {
    "without end": lambda: httpx2.Response(200, content=endless()),
    "of 2 MiB": lambda: httpx2.Response(200, content=b" " * (2 << 20) + b"{}"),
    "a bomb": lambda: httpx2.Response(
        200, content=gzip.compress(b" " * (64 << 20)), headers={"content-encoding": "gzip"}
    ),
    "a redirect": lambda: httpx2.Response(302, headers={"location": "https://attacker.example/"}),
    "a redirect that keeps the form": lambda: httpx2.Response(
        307, headers={"location": "http://127.0.0.1:22/"}
    ),
    "no JSON": lambda: httpx2.Response(200, content=b"<html>"),
    "no text": lambda: httpx2.Response(200, content=b"\xff\xfe\x00"),
    "a list": lambda: httpx2.Response(200, json=[1]),
    "a number": lambda: httpx2.Response(200, content=b"1"),
    "null": lambda: httpx2.Response(200, content=b"null"),
    "an empty object": lambda: httpx2.Response(200, json={}),
    "deep JSON": lambda: httpx2.Response(200, content=b"[" * 500_000),
    "fields that are lists": lambda: httpx2.Response(
        200,
        json={
            name: [["x"]]
            for name in ("issuer", "keys", "access_token", "id_token", "id", "token_endpoint")
        },
    ),
    "an error": lambda: httpx2.Response(500, content=b"x"),
    "nothing": lambda: httpx2.Response(204),
}


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/keys", "/token", "/user"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_of_a_false_provider_is_refused_or_no_answer(
    key: RSAKey, path: str, answer: str
) -> None:
    """No other error, no endless memory, and no call elsewhere."""
    there = OpenIdProvider(key=key, answers={path: ANSWERS[answer]})
    provider = PLAIN if path == "/user" else ORCID
    with pytest.raises((InputError, StoreError)):
        sign_in(there, provider)
    assert all(url.startswith(ISSUER) for url in there.called)


@pytest.mark.parametrize("address", ["http://provider.example/x", "javascript:alert(1)", "", None])
@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
def test_a_provider_s_addresses_have_https(key: RSAKey, name: str, address: str | None) -> None:
    """Else the client's secret would go in the clear."""
    there = OpenIdProvider(key=key)
    false = {**there.configuration(), name: address}
    there.answers["/.well-known/openid-configuration"] = lambda: httpx2.Response(200, json=false)
    with pytest.raises(StoreError, match=name):
        sign_in(there)


def test_a_provider_that_answers_in_drips_is_given_up(
    key: RSAKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heldout.intake.sign_in._SECONDS", 0.2)

    def drips() -> Iterator[bytes]:
        while True:
            time.sleep(0.05)
            yield b" "

    for path in ("/keys", "/token"):
        there = OpenIdProvider(
            key=key, answers={path: lambda: httpx2.Response(200, content=drips())}
        )
        began = time.monotonic()
        with pytest.raises(StoreError, match="too slowly"):
            sign_in(there)
        assert time.monotonic() - began < 5


def test_no_consent_and_a_silent_provider_are_told_apart(key: RSAKey) -> None:
    there = OpenIdProvider(key=key)
    here = SignIn(provider=ORCID, client=there.client(), back=BACK)
    flow = new_flow(ORCID, ties=True)
    with pytest.raises(InputError, match="no consent"):
        here.subject(flow, {"state": flow.state, "error": "access_denied"})
    gone = Provider(
        key="x", title="X", client_id=CLIENT, client_secret=SECRET, issuer=f"{ISSUER}/elsewhere"
    )
    with pytest.raises(StoreError, match="X does not answer"):
        SignIn(provider=gone, client=there.client(), back=BACK).address(flow)


def test_providers_come_from_the_environment_and_a_secret_is_never_said() -> None:
    assert read_providers({}) == ()
    found = read_providers({"HELDOUT_GITHUB": "id:se:cret", "HELDOUT_ORCID": "id:secret"})
    assert [(one.key, one.client_secret) for one in found] == [
        ("github", "se:cret"),
        ("orcid", "secret"),
    ]
    with pytest.raises(SetupError, match="HELDOUT_GITHUB is not") as refused:
        read_providers({"HELDOUT_GITHUB": "hush-hush"})
    assert "hush" not in str(refused.value)
