"""Time stamps of the log by an authority that is nobody's here: RFC 3161, `timestamps/SEQ.tsr`.

Signatures do not show that the organisers made the whole log again, with other contents. A time
stamp does: an authority signs the hash of an event with the time at which it saw it, and the hash
fixes all that came before. Only public keys and files are needed to check it, and no network.

What is stamped is the line `heldout time stamp` and the event's hash as text, so that
`openssl ts -verify -data FILE` checks it too.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
from cryptography.x509 import Certificate, load_pem_x509_certificates

from heldout.board.log.events import Entry, format_time
from heldout.board.store.repository import TIMESTAMPS, Repository
from heldout.errors import InputError, SetupError, StoreError, plural, quote
from heldout.files.executors import work_within

_PURPOSE = b"heldout time stamp\n"
_MOST_BYTES = 1 << 17
_PATIENCE = 30.0
_NAME = re.compile(r"(\d{1,9})\.tsr", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeStamp:
    """A time stamp.

    Attributes:
        event: number of the event that existed at that time, with all before it.
        at: the time, by the authority's clock.
        file: where it lies in the board.
    """

    event: int
    at: datetime
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StampCheck:
    """What the time stamps of a board say.

    Attributes:
        stamps: those that hold, by event; without root certificates none.
        faults: what does not hold.
        notes: what holds and is worth knowing.
        unchecked: how many nobody could check, and why; "" for none.
    """

    stamps: tuple[TimeStamp, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unchecked: str = ""


def stamped_text(entry: Entry) -> bytes:
    """Return what an authority stamps for an event."""
    return _PURPOSE + entry.hash.encode()


def make_request(entry: Entry) -> bytes:
    """A request for a time stamp, DER: the same bytes for the same event.

    Raises:
        SetupError: the `timestamps` extra is not installed.
    """
    client = _need_client()
    builder = client.TimestampRequestBuilder(nonce=False).data(stamped_text(entry))
    request: bytes = builder.hash_algorithm(client.HashAlgorithm.SHA256).build().as_bytes()
    return request


def ask_authority(url: str, request: bytes) -> bytes:
    """Send a request to an authority; its response, DER.

    Raises:
        StoreError: it does not answer, or not with a response.
    """
    kind = {"Content-Type": "application/timestamp-query", "Accept-Encoding": "identity"}

    def ask() -> bytes:
        with httpx2.stream("POST", url, content=request, headers=kind, timeout=_PATIENCE) as answer:
            answer.raise_for_status()
            data = b""
            for piece in answer.iter_raw():
                data += piece
                if len(data) > _MOST_BYTES:
                    raise StoreError(f"{quote(url)} answers with more than {_MOST_BYTES:,} bytes")
            return data

    try:
        return work_within(_PATIENCE, ask)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise StoreError(f"{quote(url)} gives no time stamp: {quote(str(error))}") from None
    except TimeoutError:
        raise StoreError(f"{quote(url)} gives no time stamp within {_PATIENCE:g} s") from None


def store_response(
    repository: Repository,
    data: bytes,
    log: Sequence[Entry],
    roots: Sequence[Certificate],
    *,
    path: str,
) -> TimeStamp:
    """Store a response as `timestamps/SEQ.tsr`, whichever event of the log it is of.

    Args:
        repository: the board; its lock is held.
        data: the response, DER.
        log: the public log, verified.
        roots: certificates of the authority to check it against; none to leave that to an audit.
        path: where it comes from, for errors.

    Raises:
        InputError: it is none, was not granted, does not hold, or is of no event of this log.
        SetupError: the `timestamps` extra is not installed.
    """
    try:
        response = _parse(data)
        entry = _find_entry(response, log)
        if roots:
            _verify(response, entry, roots)
    except ValueError as error:
        raise InputError.of("not-a-timestamp", path, str(error)) from None
    file = f"{TIMESTAMPS}/{entry.event.seq}.tsr"
    repository.write_file(file, data)
    return TimeStamp(event=entry.event.seq, at=response.tst_info.gen_time, file=file)


def read_roots(path: Path) -> tuple[Certificate, ...]:
    """The certificates in a PEM file.

    Raises:
        InputError: there are none.
    """
    try:
        return tuple(load_pem_x509_certificates(path.read_bytes()))
    except ValueError as error:
        raise InputError.of("not-a-certificate", path.name, quote(str(error))) from None


def check_stamps(
    repository: Repository, log: Sequence[Entry], roots: Sequence[Certificate]
) -> StampCheck:
    """Check every time stamp of a board against its log; nothing is asked for over a network.

    Args:
        repository: the board.
        log: its public log, verified.
        roots: certificates of the authorities that are believed; none to check only whether the
            stamps are of this log.
    """
    if not (names := _list_names(repository)):
        return StampCheck()
    try:
        _need_client()
    except SetupError as error:
        return StampCheck(unchecked=f"{plural(len(names), 'time stamp')}: {error}")
    stamps, faults = [], []
    for name in names:
        try:
            stamps.append(_check_one(repository, name, log, roots))
        except (ValueError, StoreError) as error:
            faults.append(f"{TIMESTAMPS}/{name}: {error}")
    by_event = {entry.event.seq: entry for entry in log}
    notes = [
        f"event {one.event} says {by_event[one.event].event.at}, and was stamped before that, at "
        f"{format_time(one.at)}: the organiser's clock was ahead"
        for one in stamps
        if format_time(one.at) < by_event[one.event].event.at
    ]
    if not roots:
        why = "--timestamp-root FILE names the authority's certificate"
        return StampCheck(
            faults=tuple(faults), unchecked=f"{plural(len(names), 'time stamp')}: {why}"
        )
    return StampCheck(stamps=tuple(stamps), faults=tuple(faults), notes=tuple(notes))


def _list_names(repository: Repository) -> list[str]:
    if not repository.files.is_folder(TIMESTAMPS):
        return []
    names = filter(_NAME.fullmatch, repository.files.names(TIMESTAMPS))
    return sorted(names, key=lambda name: int(name.partition(".")[0]))


def _check_one(
    repository: Repository, name: str, log: Sequence[Entry], roots: Sequence[Certificate]
) -> TimeStamp:
    response = _parse(repository.files.read(f"{TIMESTAMPS}/{name}", limit=_MOST_BYTES))
    entry = _find_entry(response, log)
    if name != f"{entry.event.seq}.tsr":
        raise ValueError(f"a time stamp of event {entry.event.seq}, under another number")
    if roots:
        _verify(response, entry, roots)
    return TimeStamp(
        event=entry.event.seq, at=response.tst_info.gen_time, file=f"{TIMESTAMPS}/{name}"
    )


def _parse(data: bytes) -> Any:
    client = _need_client()
    response = client.decode_timestamp_response(data)
    if response.status != client.PKIStatus.GRANTED:
        reason = ", ".join(response.status_string)
        raise ValueError(f"the authority did not grant it: {quote(reason)}")
    return response


def _find_entry(response: Any, log: Sequence[Entry]) -> Entry:
    imprint = response.tst_info.message_imprint.message
    for entry in reversed(log):
        if hashlib.sha256(stamped_text(entry)).digest() == imprint:
            return entry
    raise ValueError(
        "a time stamp of no event of this log: it is another board's, or the log was made again"
    )


def _verify(response: Any, entry: Entry, roots: Sequence[Certificate]) -> None:
    client = _need_client()
    builder = client.VerifierBuilder()
    for certificate in roots:
        own = certificate.issuer == certificate.subject
        add = builder.add_root_certificate if own else builder.add_intermediate_certificate
        builder = add(certificate)
    try:
        builder.build().verify_message(response, stamped_text(entry))
    except client.VerificationError as error:
        raise ValueError(f"it does not hold: {quote(str(error))}") from None


def _need_client() -> ModuleType:
    try:
        return import_module("rfc3161_client")
    except ImportError:
        raise SetupError(
            "time stamps need rfc3161-client, which is not installed; "
            "pip install 'heldout[timestamps]'"
        ) from None
