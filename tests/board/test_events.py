"""The chain: whatever is changed in a log is noticed, and what is sealed tells nothing."""

import dataclasses
import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from boardlog import BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log import events
from heldout.errors import StoreError
from heldout.ids import seal_preimage

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
fields = st.dictionaries(st.text(min_size=1, max_size=8), json_values, max_size=3)


def small_log() -> BoardLog:
    log = BoardLog(private=b"").open("short = 1\n")
    log.wait(hours=1).submit("20261101-a", make_manifest(), "0.403")
    return log


def chain(drafts: list[tuple[dict[str, object], dict[str, object]]]) -> BoardLog:
    log = BoardLog(private=b"")
    for public, sealed in drafts:
        log.wait(seconds=1).add("received", "20261101-a", public, sealed)
    return log


@given(st.lists(st.tuples(fields, fields), max_size=4))
def test_a_log_is_read_as_it_was_written(drafts: list[tuple[dict[str, object], ...]]) -> None:
    log = chain([(public, sealed) for public, sealed in drafts])
    entries = events.parse_log(log.data, path="log")
    assert list(entries) == log.entries
    assert b"".join(map(events.format_entry, entries)) == log.data


def test_every_changed_byte_is_noticed() -> None:
    data = small_log().data
    for place in range(len(data)):
        for bit in (0x01, 0x20, 0x80):
            changed = bytearray(data)
            changed[place] ^= bit
            with pytest.raises(StoreError):
                events.parse_log(bytes(changed), path="log")


def test_every_removed_or_added_byte_is_noticed() -> None:
    data = small_log().data
    for place in range(len(data) - 1):
        with pytest.raises(StoreError):
            events.parse_log(data[:place] + data[place + 1 :], path="log")
        with pytest.raises(StoreError):
            events.parse_log(data[:place] + b" " + data[place:], path="log")


@pytest.mark.parametrize(
    ("lines", "place"),
    [((1, 2, 3), 1), ((0, 2, 3), 2), ((0, 2, 1, 3), 2), ((0, 1, 1, 2, 3), 3), ((0, 0), 2)],
)
def test_moved_missing_and_repeated_events(lines: tuple[int, ...], place: int) -> None:
    whole = small_log().data.splitlines(keepends=True)
    with pytest.raises(StoreError, match=f"log:{place}: the chain is broken"):
        events.parse_log(b"".join(whole[line] for line in lines), path="log")


def test_a_beginning_of_a_log_is_a_log() -> None:
    log = small_log()
    lines = log.data.splitlines(keepends=True)
    for length in range(len(lines) + 1):
        assert events.parse_log(b"".join(lines[:length]), path="log") == tuple(log.entries[:length])


def rewrite(log: BoardLog, number: int, **changes: object) -> bytes:
    """The log with an event changed and its own hash made again, as a forger would."""
    lines = []
    for entry in log.entries:
        event = msgspec.to_builtins(entry.event)
        if entry.event.seq == number:
            event.update(changes)
        raw = msgspec.json.encode(event)
        line = {
            "event": msgspec.Raw(raw),
            "hash": hashlib.sha256(raw).hexdigest(),
            "opened": dict(entry.opened),
        }
        lines.append(msgspec.json.encode(line, order="deterministic") + b"\n")
    return b"".join(lines)


def test_the_forger_without_changes_changes_nothing() -> None:
    log = small_log()
    assert rewrite(log, 99) == log.data


@pytest.mark.parametrize(
    ("number", "changes", "message"),
    [
        (1, {"by": "someone"}, "log:3: the chain is broken"),
        (3, {"seq": 7}, "log:4: event number 7, expected 3"),
        (3, {"at": "2026-11-01T11:59:59Z"}, "log:4: dated before the event above it"),
        (3, {"at": "2026-11-1T13:0:0Z"}, "log:4: not an event"),
        (3, {"at": "2026-11-01T13:00:00+00:00"}, "log:4: not an event"),
        (3, {"kind": "made-up"}, "log:4: event 'made-up' of schema 2 is unknown here"),
        (3, {"schema": 3}, "log:4: event 'published' of schema 3 is unknown here"),
        (3, {"sealed": {}}, "log:4: field '.*' does not match its sealed digest"),
        (3, {"prev": events.GENESIS}, "log:4: the chain is broken"),
        (3, {"extra": 1}, "log:4: not an event"),
        (3, {"seq": "3"}, "log:4: not an event"),
    ],
)
def test_a_forged_event_is_noticed(number: int, changes: dict[str, object], message: str) -> None:
    with pytest.raises(StoreError, match=message):
        events.parse_log(rewrite(small_log(), number, **changes), path="log")


@pytest.mark.parametrize(
    "data",
    [
        b"\n", b"{}\n", b"null\n", b"[" * 100_000 + b"\n", b'{"event":' * 100_000 + b"\n",
        b"\xff\n", b"\x00" * 100 + b"\n",
    ],
)  # fmt: skip
def test_what_is_no_log(data: bytes) -> None:
    with pytest.raises(StoreError, match=r"log:1: not an event"):
        events.parse_log(data, path="log")


def test_an_unknown_kind_cannot_be_linked() -> None:
    with pytest.raises(ValueError, match="made-up"):
        BoardLog(private=b"").add("made-up", None)


def test_the_clock_cannot_go_backwards() -> None:
    log = small_log()
    log.now -= timedelta(seconds=1)
    with pytest.raises(StoreError, match="set the clock"):
        log.receive("20261101-b")
    assert len(log.entries) == 4


def test_events_of_one_second_are_allowed() -> None:
    log = small_log()
    log.now += timedelta(milliseconds=999)
    log.receive("20261101-b")
    log.now -= timedelta(milliseconds=998)
    log.receive("20261101-c")
    assert log.entries[-1].event.at == "2026-11-01T13:00:00Z"
    assert len(events.parse_log(log.data, path="log")) == 6


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)))  # noqa: DTZ001 - made aware below
def test_times_are_in_utc_and_read_back(moment: datetime) -> None:
    second = moment.replace(microsecond=0, tzinfo=UTC)
    assert events.parse_time(events.format_time(moment.replace(tzinfo=UTC))) == second
    east = second.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert events.format_time(east) == events.format_time(second)


@pytest.mark.parametrize(
    "text", ["", "2026-11-20", "2026-11-20T17:10:00", "2026-1-20T17:10:00Z", "2026-11-20T17:10Z"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        events.parse_time(text)


def test_redacted_lines_keep_the_chain_and_lose_the_values() -> None:
    log = small_log()
    redacted = [events.redact(entry, ()) for entry in log.entries]
    data = b"".join(map(events.format_entry, redacted))
    read = events.parse_log(data, path="log")
    assert [entry.hash for entry in read] == [entry.hash for entry in log.entries]
    assert b"Lighthouse" in log.data
    assert b"Lighthouse" not in data
    assert read[3].get("identity") is None
    assert read[3].get("scores") == {"dev": "0.403", "eval": "0.403"}


def test_a_part_can_be_opened() -> None:
    entry = events.redact(small_log().entries[3], ("why", "no-such-field"))
    assert set(entry.opened) == {"why"}
    assert entry.get("identity") is None
    assert entry.get("why") == ""


@pytest.mark.parametrize(
    "salt", ["", "00", "zz" * 16, "AB" * 16, "0" * 33, "é" * 32, "0" * 30, "0" * 34, "0" * 64]
)
def test_a_salt_is_sixteen_bytes_of_lower_hexadecimal(salt: str) -> None:
    log = BoardLog(private=b"")
    log.add("received", "a", {}, {"x": 1})
    right = log.entries[0].opened["x"].salt
    changed = log.data.replace(right.encode(), salt.encode())
    with pytest.raises(StoreError, match="does not match its sealed digest"):
        events.parse_log(changed, path="log")


def test_equal_values_have_unequal_digests() -> None:
    log = BoardLog(private=b"")
    first = log.add("received", "a", {}, {"x": "yes", "y": "yes"})
    second = log.add("received", "b", {}, {"x": "yes"})
    digests = [*first.event.sealed.values(), *second.event.sealed.values()]
    assert len(set(digests)) == 3


@given(fields, st.text("0123456789abcdef", min_size=32, max_size=32))
def test_a_stranger_can_check_a_seal(sealed: dict[str, object], salt: str) -> None:
    """With nothing but hashlib and json, as docs/reference/log.md says."""
    entry = BoardLog(private=b"", salts=iter([salt] * 9)).add("received", "a", {}, sealed)
    for name, value in sealed.items():
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        preimage = b"heldout sealed field\n32:%b,%d:%b," % (salt.encode(), len(text), text)
        assert entry.event.sealed[name] == hashlib.sha256(preimage).hexdigest()


def test_a_sealed_reason_has_one_opening() -> None:
    """The attack: with a longer salt, the end of salt and value was another value.

    `"ab" * 16` and the number 1234 had the bytes of the salt `"ab" * 16 + "31"` and the number 234.
    """
    salt = "ab" * 16
    entry = BoardLog(private=b"", salts=iter([salt])).add("rejected", "a", {}, {"why": 1234})
    assert events.parse_log(events.format_entry(entry), path="log") == (entry,)
    other = {"why": events.Opening(value=234, salt=f"{salt}31")}
    forged = dataclasses.replace(entry, opened=other)
    with pytest.raises(StoreError, match="field 'why' does not match its sealed digest"):
        events.parse_log(events.format_entry(forged), path="log")


salts = st.text("0123456789abcdef", min_size=0, max_size=70)


@given(salts, salts, st.binary(max_size=40), st.binary(max_size=40), st.data())
def test_no_two_openings_have_the_same_preimage(
    salt: str, other_salt: str, value: bytes, other: bytes, data: st.DataObject
) -> None:
    """Of any salts: also of those that join with a value to the text of another pair."""
    made = seal_preimage(salt, value)
    for pair in (
        (other_salt, other),
        (salt, other),
        (other_salt, value),
        (salt + value.hex(), b""),
        (salt[:-2], salt[-2:].encode() + value),
        (salt, b"%d:%b," % (len(value), value)),
    ):
        assert (seal_preimage(*pair) == made) == (pair == (salt, value))
    cut = data.draw(st.integers(0, len(made)))
    assert read_back(made) == (salt, value)
    assert cut == len(made) or read_back(made[:cut]) is None


def read_back(preimage: bytes) -> tuple[str, bytes] | None:
    """The pair that a preimage is of: netstrings can be read, so nothing else has these bytes."""
    rest, parts = preimage.removeprefix(b"heldout sealed field\n"), []
    while rest:
        size, mark, rest = rest.partition(b":")
        if not mark or not size.isdigit() or rest[int(size) : int(size) + 1] != b",":
            return None
        parts.append(rest[: int(size)])
        rest = rest[int(size) + 1 :]
    return (parts[0].decode(), parts[1]) if len(parts) == 2 else None
