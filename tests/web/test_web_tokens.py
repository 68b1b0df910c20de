"""Tokens: what was signed comes back, and nothing else does."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from itsdangerous import URLSafeSerializer

from heldout.web.signing import PageSigner, Stamp, TokenError

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SIGNER = PageSigner(key=b"a" * 32, pages="judging")
OTHER = PageSigner(key=b"b" * 32, pages="judging")

stamps = st.builds(
    Stamp,
    owner=st.text(max_size=100).filter(str.isprintable),
    item=st.text(max_size=100).filter(str.isprintable),
    shown_ms=st.integers(0, 99_999_999_999_999),
    replaces=st.integers(0, 10**6),
)


@given(owner=st.integers(1, 2**62).map(str))
def test_a_token_opens_its_owners_pages_until_it_is_over(owner: str) -> None:
    token = SIGNER.sign_owner(owner, expires=NOW + timedelta(days=1))
    assert SIGNER.read_owner(token, now=NOW) == owner
    with pytest.raises(TokenError) as over:
        SIGNER.read_owner(token, now=NOW + timedelta(days=1))
    assert over.value.status == 410


@given(stamp=stamps)
def test_a_stamp_comes_back_as_it_was(stamp: Stamp) -> None:
    assert SIGNER.read_stamp(SIGNER.sign_stamp(stamp)) == stamp


@given(text=st.text(max_size=300))
@example("")
@example(".")
@example("..")
@example(".eJw.x")
@example("é")
@example("\0")
@example("a" * 100_000)
@example("\ud800")
def test_a_text_that_nobody_signed_opens_nothing(text: str) -> None:
    with pytest.raises(TokenError):
        SIGNER.read_owner(text, now=NOW)
    with pytest.raises(TokenError):
        SIGNER.read_stamp(text)


@given(stamp=stamps, place=st.integers(0, 10_000), char=st.sampled_from("aA0-_.~"))
def test_no_other_text_is_taken_for_what_was_signed(stamp: Stamp, place: int, char: str) -> None:
    text = SIGNER.sign_stamp(stamp)
    place %= len(text)
    forged = text[:place] + char + text[place + 1 :]
    try:
        found = SIGNER.read_stamp(forged)
    except TokenError:
        return
    assert found == stamp  # the last letter of base64 has bits that carry nothing


@given(stamp=stamps)
def test_neither_another_key_nor_another_purpose_is_taken(stamp: Stamp) -> None:
    token = SIGNER.sign_owner(stamp.owner, expires=NOW + timedelta(days=1))
    for wrong in (lambda: OTHER.read_owner(token, now=NOW), lambda: SIGNER.read_stamp(token)):
        with pytest.raises(TokenError):
            wrong()
    signed = SIGNER.sign_stamp(stamp)
    with pytest.raises(TokenError):
        SIGNER.read_owner(signed, now=NOW)


@pytest.mark.parametrize(
    "payload",
    [[], ["1"], [1, 2], ["1", "99"], ["1", -1], ["1", 2, 3], {"owner": "1"}, None, [True, 9]],
)
def test_a_signed_value_of_another_shape_opens_nothing(payload: object) -> None:
    """Somebody with the key of another program that happens to be ours, or an older version."""
    text = URLSafeSerializer(SIGNER.key, salt="heldout.web.judging.owner").dumps(payload)
    with pytest.raises(TokenError):
        SIGNER.read_owner(str(text), now=NOW - timedelta(days=40_000 // 2))
