"""Signatures of events: only a signer of the board adds one; cases are named after attacks."""

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from boardlog import BoardLog, make_manifest

from heldout.board.log import events as signers
from heldout.board.log.events import (
    Draft,
    EventSignature,
    event_message,
    format_entry,
    link,
    parse_log,
    redact,
    signers_of,
)
from heldout.board.log.history import read_history
from heldout.board.log.registration import registration_message
from heldout.envelope.keys import new_signing_key, public_key, sign
from heldout.errors import StoreError
from heldout.ids import Digest, digest_bytes

ANN, BOB, EVE = (new_signing_key("ORGANISER") for _ in range(3))
NAMES = {"Ann": public_key(ANN), "Bob": public_key(BOB)}


def signed_by(private: bytes) -> Callable[[Digest], EventSignature]:
    key = public_key(private)
    return lambda digest: EventSignature(key=key, value=sign(private, event_message(digest)))


def signed_log() -> BoardLog:
    log = BoardLog(private=ANN).open("short = 1\n")
    log.wait(hours=1).submit("20261101-a", make_manifest(), "0.403")
    return log


def change_signers(log: BoardLog, names: Mapping[str, Any], private: bytes | None = None) -> None:
    log.private = log.private if private is None else private
    log.rekey("short = 1\n", signers=names)


def test_a_signed_log_is_read_as_it_was_written() -> None:
    log = signed_log()
    assert parse_log(log.data, path="log") == tuple(log.entries)
    assert all(entry.signature is not None for entry in log.entries)
    assert signers_of(log.entries) == {"age1q8f": public_key(ANN)}
    assert read_history(log.entries).signers == signers_of(log.entries)


def test_what_is_sealed_again_or_opened_later_keeps_its_signature() -> None:
    public = tuple(redact(entry, ()) for entry in signed_log().entries)
    data = b"".join(map(format_entry, public))
    assert b"Lighthouse" not in data
    assert parse_log(data, path="log") == public


def appended(log: BoardLog, private: bytes | None, **fields: Any) -> bytes:
    """A log with one more event, signed with a key, or not at all."""
    told = {"kind": "asked", "by": "age1q8f", "submission": "20261101-a", "public": {"why": "x"}}
    draft = Draft(sealed={}, **{**told, **fields})
    sign_it = None if private is None else signed_by(private)
    entry = link(draft, log.entries[-1], at=log.now, new_salt=lambda: "00" * 16, sign=sign_it)
    return log.data + format_entry(entry)


def changed(log: BoardLog, number: int, **parts: Any) -> bytes:
    entries = [*log.entries]
    entries[number] = dataclasses.replace(entries[number], **parts)
    return b"".join(map(format_entry, entries))


def rebuilt(log: BoardLog, **fields: Any) -> bytes:
    """The last event with other fields and a sound hash, and the signature that it had."""
    last = log.entries[-1]
    event = msgspec.structs.replace(last.event, **fields)
    raw = msgspec.json.encode(event)
    made: dict[str, Any] = {"event": event, "hash": digest_bytes(raw), "raw": raw, "opened": {}}
    forged = dataclasses.replace(last, **made)
    return b"".join(map(format_entry, (*log.entries[:-1], forged)))


def dropped_signer() -> bytes:
    log = signed_log()
    change_signers(log, NAMES)
    change_signers(log, {"Ann": public_key(ANN)})
    return appended(log, BOB)


def let_in_by_themselves() -> bytes:
    log = signed_log()
    change_signers(log, {**NAMES, "Eve": public_key(EVE)}, EVE)
    return log.data


def ended() -> bytes:
    log = signed_log()
    change_signers(log, {})
    return log.data


def another_number() -> bytes:
    """The same question, asked before, with the signature that it had then."""
    log = signed_log()
    log.add("asked", "20261101-a", {"why": "x"})
    again = link(
        Draft(kind="asked", by="age1q8f", submission="20261101-a", public={"why": "x"}, sealed={}),
        log.entries[-1],
        at=log.now,
        new_salt=lambda: "00" * 16,
        sign=lambda _: log.entries[-1].signature,  # type: ignore[arg-type, return-value]
    )
    return log.data + format_entry(again)


def another_board() -> bytes:
    log, other = signed_log(), BoardLog(private=ANN).open("short = 2\n")
    other.wait(hours=1).submit("20261101-a", make_manifest(), "0.403")
    other.add("asked", "20261101-a", {"why": "x"})
    log.add("asked", "20261101-a", {"why": "x"})
    return changed(log, 4, signature=other.entries[-1].signature)


def another_purpose() -> bytes:
    """What a signer signed as a team: the same key, another message."""
    log = signed_log()
    value = sign(ANN, registration_message(log.entries[-1].hash))
    return changed(log, 3, signature=EventSignature(key=public_key(ANN), value=value))


ATTACKS: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "an event without a signature": (lambda: appended(signed_log(), None), "is not signed"),
    "a signature taken away": (lambda: changed(signed_log(), 2, signature=None), "is not signed"),
    "a stranger's key": (lambda: appended(signed_log(), EVE), "which is no signer's"),
    "a dropped signer's key": (dropped_signer, "which is no signer's"),
    "a stranger who lets themselves in": (let_in_by_themselves, "which is no signer's"),
    "an end of signing": (ended, "field 'signers'"),
    "a signature of another event of the board": (another_number, "is not of this event"),
    "a signature of another board": (another_board, "is not of this event"),
    "a signature for another purpose": (another_purpose, "is not of this event"),
    "a swapped organiser": (lambda: rebuilt(signed_log(), by="bob"), "is not of this event"),
    "a swapped score": (
        lambda: rebuilt(signed_log(), public={"scores": {"eval": "0.999"}}),
        "is not of this event",
    ),
    "a stranger's key under a signer's signature": (
        lambda: changed(
            signed_log(), 1, signature=EventSignature(key=public_key(EVE), value=sign(ANN, b""))
        ),
        "which is no signer's",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_log_with_an_event_of_a_stranger_is_refused(attack: str) -> None:
    forge, told = ATTACKS[attack]
    with pytest.raises(StoreError, match=told):
        parse_log(forge(), path="log")


def test_the_same_ways_are_open_to_a_signer() -> None:
    log = signed_log()
    assert len(parse_log(appended(log, ANN), path="log")) == 5
    change_signers(log, NAMES)
    assert len(parse_log(appended(log, BOB), path="log")) == 6
    change_signers(log, {"Bob": public_key(BOB)})
    assert len(parse_log(appended(log, BOB), path="log")) == 7


def test_a_log_whose_beginning_has_other_signers_is_another_board() -> None:
    ours, theirs = signed_log(), BoardLog(private=EVE).open("short = 1\n")
    assert len(parse_log(theirs.data, path="log")) == 1
    assert read_history(theirs.entries).board != read_history(ours.entries).board


@pytest.mark.parametrize(
    "names",
    [
        [],
        {"Ann": "x"},
        {"Ann": public_key(ANN) + "\n"},
        {"": public_key(ANN)},
        {"a" * 65: public_key(ANN)},
        {"An\x1b[2Jn": public_key(ANN)},
        {"Ann": public_key(ANN), "Bob": public_key(ANN)},
    ],
)
def test_signers_that_are_none(names: Any) -> None:
    log = BoardLog(private=ANN)
    log.add("opened-board", None, {"board.toml": "short = 1\n", "signers": names})
    with pytest.raises(StoreError, match="log:1: field 'signers'"):
        parse_log(log.data, path="log")


def test_a_signature_is_verified_once_for_all_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    signers._is_signed.cache_clear()
    log, calls = signed_log(), []
    honest = signers.verify

    def verify(key: str, message: bytes, signature: str) -> bool:
        calls.append(key)
        return honest(key, message, signature)

    monkeypatch.setattr(signers, "verify", verify)
    public = b"".join(format_entry(redact(entry, ())) for entry in log.entries)
    for data in (log.data, public, log.data):
        parse_log(data, path="log")
    assert len(calls) == len(log.entries)


@pytest.mark.slow
def test_a_log_of_two_thousand_events_is_verified_at_once() -> None:
    log = BoardLog(private=ANN).open("short = 1\n")
    for number in range(2_000):
        log.add("asked", "20261101-a", {"why": str(number)})
    data = log.data
    start = time.process_time()
    assert len(parse_log(data, path="log")) == 2_001
    assert time.process_time() - start < 2
