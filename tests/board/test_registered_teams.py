"""Registration by the log alone: what is signed, what is folded, what an audit finds."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from boardlog import RULES, BoardLog, find_problems, make_manifest
from certain import sure
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log import registration
from heldout.board.log.events import Entry, redact, verify
from heldout.board.log.history import read_history
from heldout.board.log.manifest import SubmissionSignature, join_signature, split_signature
from heldout.board.log.submission import Submission
from heldout.board.policy.registered import check_registrant, registration_faults, signature_faults
from heldout.board.rules.spec_file import parse_spec
from heldout.envelope.keys import new_signing_key, public_key, sign
from heldout.errors import HeldoutError, StoreError
from heldout.ids import digest_bytes

KEY = new_signing_key()
HANDLE = registration.team_handle(public_key(KEY))
TEAM_KINDS = ("changed-agreement", "registered", "revoked-registration")
TEXT = "The data are for research.\n"
REGISTRANT = registration.Registrant(team="Harbour", institution="", contact="", salt="0b" * 16)
HEX = st.binary(min_size=32, max_size=32).map(bytes.hex)
IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PARTS = st.tuples(HEX, IDS, st.integers(1, 9), HEX, HEX)


# what is signed


def test_the_vector_of_rfc_8032() -> None:
    """Section 7.1, test 2."""
    seed = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
    private = f"HELDOUT-TEAM-KEY-1 {seed}\n".encode()
    public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    signature = (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert public_key(private) == public
    assert sign(private, b"\x72") == signature
    assert verify(public, b"\x72", signature)


@given(st.binary(max_size=100), st.integers(0, 511), st.data())
def test_a_signature_holds_for_its_message(message: bytes, bit: int, data: st.DataObject) -> None:
    signature = bytes.fromhex(sign(KEY, message))
    assert verify(public_key(KEY), message, signature.hex())
    flipped = bytearray(signature)
    flipped[bit // 8] ^= 1 << bit % 8
    assert not verify(public_key(KEY), message, flipped.hex())
    other = data.draw(st.binary(max_size=100).filter(lambda b: b != message))
    assert not verify(public_key(KEY), other, signature.hex())


@given(HEX, st.binary(max_size=64).map(bytes.hex))
def test_nonsense_is_no_signature(key: str, signature: str) -> None:
    assert not verify(key, b"x", signature)
    assert not verify(key[:10], b"x", signature)


@pytest.mark.parametrize("text", [b"", b"AGE-SECRET-KEY-1", b"HELDOUT-TEAM-KEY-1 xy\n"])
def test_a_damaged_key_is_told_and_not_shown(text: bytes) -> None:
    with pytest.raises(StoreError, match="restore it from a backup") as caught:
        public_key(text)
    assert text == b"" or text.decode().strip() not in str(caught.value)


@given(PARTS, PARTS)
def test_two_submissions_never_have_one_message(one: Any, other: Any) -> None:
    def message(parts: Any) -> bytes:
        board, name, revision, agreement, metadata = parts
        return registration.submission_message(
            board, name, revision=revision, agreement=agreement, metadata=metadata
        )

    assert (message(one) == message(other)) == (one == other)


@given(IDS)
def test_a_registration_never_passes_for_a_submission(text: str) -> None:
    message = registration.submission_message("a", text, revision=1, agreement="", metadata="")
    assert registration.registration_message(text) != message
    assert not registration.registration_message(text).startswith(b"heldout submission\n")


@given(IDS)
def test_the_metadata_comes_back_byte_for_byte(text: str) -> None:
    metadata = text.encode()
    signature = SubmissionSignature(team=HANDLE, agreement="", value="ab" * 64)
    back, found = split_signature(join_signature(metadata, signature))
    assert back == metadata
    assert found == msgspec.structs.replace(signature, metadata=str(digest_bytes(metadata)))


@given(st.binary(max_size=200))
def test_what_is_not_signed_is_left_as_it_is(data: bytes) -> None:
    assert split_signature(data) == (data, None)


def test_a_digest_that_the_sender_claims_does_not_count() -> None:
    signature = SubmissionSignature(team=HANDLE, agreement="", value="ab" * 64, metadata="claimed")
    _, found = split_signature(join_signature(b"{}", signature))
    assert found is not None
    assert found.metadata == digest_bytes(b"{}")


# the log


def make_log() -> BoardLog:
    log = BoardLog().open()
    public = {"path": "a.md", "sha256": str(digest_bytes(TEXT.encode())), "text": TEXT}
    log.add("changed-agreement", None, public)
    return log


def make_registration(board: str, **changed: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    statement = registration.Statement(
        board=board,
        key=public_key(KEY),
        agreement=str(digest_bytes(TEXT.encode())),
        at="2026-11-01T12:00:00Z",
        private=str(registration.registrant_digest(REGISTRANT)),
    )
    text = msgspec.json.encode(statement).decode()
    signature = sign(KEY, registration.registration_message(text))
    public = {"team": HANDLE, "statement": text, "signature": signature, "source": "a folder"}
    sealed = {"registrant": msgspec.to_builtins(REGISTRANT)}
    return {**public, **{n: v for n, v in changed.items() if n in public}}, {
        **sealed,
        **{n: v for n, v in changed.items() if n in sealed},
    }


def with_team(**changed: Any) -> tuple[Entry, ...]:
    log = make_log()
    log.add("registered", None, *make_registration(str(log.entries[0].hash), **changed))
    return tuple(log.entries)


def test_a_sound_log_has_no_fault_in_the_open_and_in_the_vault() -> None:
    entries = with_team()
    assert list(registration_faults(entries)) == []
    assert list(registration_faults([redact(entry, ()) for entry in entries])) == []
    team = read_history(entries).teams[HANDLE]
    assert (team.registrant, team.revoked) == (REGISTRANT, None)
    assert read_history([redact(entry, ()) for entry in entries]).teams[HANDLE].registrant is None


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"signature": "ab" * 64}, "not that of its key"),
        ({"team": "team-0123456789abcdef"}, "not of the key"),
        ({"registrant": {**msgspec.to_builtins(REGISTRANT), "team": "Else"}}, "not the one"),
    ],
    ids=["signature", "handle", "names"],
)
def test_a_registration_that_the_organisers_made_up(changed: Mapping[str, Any], fault: str) -> None:
    (told,) = registration_faults(with_team(**changed))
    assert fault in told
    assert told.startswith("event 2:")


def test_a_registration_of_another_board_in_the_log() -> None:
    log = make_log()
    log.add("registered", None, *make_registration("ab" * 32))
    assert "another board" in next(registration_faults(log.entries))


def test_an_agreement_whose_text_was_changed() -> None:
    log = BoardLog().open()
    log.add("changed-agreement", None, {"path": "a.md", "sha256": "ab" * 32, "text": TEXT})
    (fault,) = registration_faults(log.entries)
    assert fault == "event 1: the agreement's text is not that of its digest"


def test_a_team_that_agrees_again_keeps_its_first_day_and_a_revocation_stays() -> None:
    log = make_log()
    fields = make_registration(str(log.entries[0].hash))
    revoked: tuple[str, Any, Any] = ("revoked-registration", {"team": HANDLE, "why": "x"}, {})
    for kind, public, sealed in (("registered", *fields), revoked, ("registered", *fields)):
        log.add(kind, None, public, sealed)
    team = read_history(log.entries).teams[HANDLE]
    assert team.registered == log.entries[2].time
    assert team.revoked == log.entries[3].time
    assert len(team.agreements) == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", HANDLE, "ab" * 32]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["team", "salt"]), inner, max_size=2)
    ),
    max_leaves=4,
)
FIELDS = st.dictionaries(
    st.sampled_from(
        ["team", "statement", "signature", "registrant", "why", "path", "sha256", "text"]
    ),
    JSON,
)


@given(st.lists(st.tuples(st.sampled_from(TEAM_KINDS), FIELDS, FIELDS), min_size=1, max_size=3))
def test_nonsense_about_teams(events: list[tuple[str, dict[str, Any], dict[str, Any]]]) -> None:
    log = make_log()
    for kind, public, sealed in events:
        log.add(kind, None, public, {n: v for n, v in sealed.items() if n not in public})
    try:
        read_history(log.entries)
        list(registration_faults(log.entries))
    except HeldoutError as error:
        assert str(error)  # noqa: PT017 - any refusal will do, as long as it is one


@pytest.mark.parametrize(
    "signature", [7, "x", {}, {"team": "x"}, []], ids=["number", "text", "empty", "half", "list"]
)
def test_a_signature_in_the_log_that_is_none(signature: object) -> None:
    log = make_log()
    log.receive("20261101-a")
    log.add("reviewed", "20261101-a", {}, {"signature": signature})
    with pytest.raises(StoreError):
        read_history(log.entries)


# the submission


AGREED = parse_spec(f'{RULES}\n[registration]\nagreement = "a.md"\n'.encode())


def signed(board: str, agreement: str) -> dict[str, str]:
    """The signature of the first revision of `20261101-a`, as the log keeps it."""
    metadata = "cd" * 32
    message = registration.submission_message(
        board, "20261101-a", revision=1, agreement=agreement, metadata=metadata
    )
    value = sign(KEY, message)
    return {"team": HANDLE, "agreement": agreement, "value": value, "metadata": metadata}


def published(agreement: str, *, team: str = REGISTRANT.team) -> tuple[BoardLog, Submission]:
    """A registered team's submission."""
    log = make_log()
    board = str(log.entries[0].hash)
    log.add("registered", None, *make_registration(board))
    log.receive("20261101-a")
    log.add("reviewed", "20261101-a", {}, {"signature": signed(board, agreement)})
    log.publish("20261101-a", make_manifest(team), "0.4")
    return log, log.history.submissions["20261101-a"]


def test_a_submission_has_the_signature_that_the_log_keeps() -> None:
    log, submission = published("")
    kept = signed(log.entries[0].hash, "")
    assert submission.signature == msgspec.convert(kept, SubmissionSignature)


def test_a_signed_submission_of_a_team_that_agreed_has_no_fault() -> None:
    log, submission = published(str(digest_bytes(TEXT.encode())))
    assert list(signature_faults(AGREED, log.history, submission)) == []


def test_a_signature_that_names_no_agreement_is_one_without_consent() -> None:
    log, submission = published("")
    (fault,) = signature_faults(AGREED, log.history, submission)
    assert f"{HANDLE} has not agreed to a.md as it stands since 01 Nov 2026" in fault


@pytest.mark.parametrize("team", ["Anonymous", "", "Knowledge base"])
def test_a_name_that_no_team_may_have_is_told_by_the_rule_of_submissions(team: str) -> None:
    named = msgspec.structs.replace(REGISTRANT, team=team)
    (problem,) = check_registrant(named, AGREED)
    assert (problem.code, problem.path) == ("team-named", "registration:team")


# the agreement


@given(st.lists(st.integers(0, 9), max_size=5).map(sorted), st.integers(0, 9))
def test_the_agreement_in_force_comes_first(days: list[int], day: int) -> None:
    start = datetime(2026, 11, 1, tzinfo=UTC)
    known = [
        registration.Agreement(since=start + timedelta(d), path="a", digest=str(n), text="")
        for n, d in enumerate(days)
    ]
    found = registration.agreements_since(known, start + timedelta(day))
    before = [a for a in known if a.since <= start + timedelta(day)]
    assert found[: len(before[-1:])] == tuple(before[-1:])
    assert {a.digest for a in known} - {a.digest for a in found} == {a.digest for a in before[:-1]}


# board.toml


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ('agreement = "../secret"', "registration.agreement"),
        ('agreement = "/etc/passwd"', "registration.agreement"),
        ('agreement = ""', "registration.agreement"),
        ("closes = 2020-01-01", "registration.closes"),
        ('required = "yes"', "registration.required"),
        ("requires = true", "registration.requires"),
    ],
)
def test_a_wrong_key_is_told_with_its_line(table: str, place: str) -> None:
    text = f"{RULES}\n[registration]\n{table}\n"
    (problem,) = find_problems(text)
    assert place.split(".")[1] in problem.found
    assert text.splitlines()[sure(problem.line) - 1] in (table, "[registration]")


def test_registration_may_close_on_the_day_that_the_board_opens() -> None:
    spec = parse_spec(f"{RULES}\n[registration]\ncloses = 2026-11-01\n".encode())
    assert sure(spec.registration).closes == spec.opens


def test_scripts_of_ms_marco_cannot_sign_so_their_boards_cannot_ask_for_it() -> None:
    text = RULES.replace('envelope = "age"', 'envelope = "openssl"') + "\n[registration]\n"
    assert any("no place for a signature" in str(problem) for problem in find_problems(text))
