"""Sign-in against a provider with real keys: what holds, and each way in which one may lie."""

import time

import pytest
from joserfc.jwk import RSAKey
from openid_provider import CLIENT, ISSUER, SECRET, OpenIdProvider

from heldout.errors import InputError, SetupError, StoreError
from heldout.intake.sign_in import Flow, Provider, SignIn, new_flow, read_providers

BACK = "https://board.example/sign-in/orcid/back"
ORCID = Provider(key="orcid", title="ORCID", client_id=CLIENT, client_secret=SECRET, issuer=ISSUER)
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
    answer = there.consent(here.address(begun))
    return here.subject(flow or begun, answer)


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
