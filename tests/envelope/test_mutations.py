"""Every byte flipped, every length cut: how many were tried, and what became of them.

The files are the vectors, sealed by real programs, so that the totals below are always the same.
"""

import contextlib
import functools
import io
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

import pytest
from sealing import ID, Vector, open_tar, read_binding, unpacked, vector

from heldout.envelope import age, openssl
from heldout.envelope.bundle import file_names, open_key, open_metadata, seal_metadata
from heldout.envelope.keys import Binding, Form
from heldout.errors import TrustError


def flips(data: bytes) -> Iterator[bytes]:
    """One bit of every byte, another bit from byte to byte."""
    for place in range(len(data)):
        yield flip(data, place)


def flip(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 1 << place % 8
    return bytes(changed)


def cuts(data: bytes) -> Iterator[bytes]:
    """Every shorter length, nothing at all too."""
    for size in range(len(data)):
        yield data[:size]


def outcomes(
    mutants: Iterator[bytes], read: Callable[[bytes], object], sound: bytes
) -> Counter[str]:
    """How many mutants were refused, opened garbled, or opened as if nothing had happened."""
    expected = read(sound)
    counts: Counter[str] = Counter()
    for mutant in mutants:
        try:
            found = read(mutant)
        except TrustError:
            counts["refused"] += 1
        else:
            counts["unnoticed" if found == expected else "garbled"] += 1
    return counts


class Sound:
    """The three files of a vector, each with the function that opens it."""

    def __init__(self, form: Form, *, bound: bool = True) -> None:
        self.vector: Vector = vector(form)
        names = file_names(form, ID)
        self.tar, self.metadata, self.key = (self.vector.files[name] for name in names.all)
        self.secret = open_key(form, self.key, [self.vector.identity])
        self.binding: Binding | None = read_binding(self.vector.metadata) if bound else None
        self.form: Form = form

    def read_key(self, blob: bytes) -> bytes:
        return open_key(self.form, blob, [self.vector.identity])

    def read_metadata(self, blob: bytes) -> bytes:
        return open_metadata(self.form, blob, key=self.secret)

    def read_tar(self, blob: bytes) -> dict[str, bytes]:
        return open_tar(self.form, blob, self.secret, binding=self.binding)


@pytest.fixture(name="_quick_derivation")
def _quick_derivation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deriving or reading the same key 7,000 times (all mutants but 8 share it) tests nothing."""
    for name in ("_derive", "_private_key"):
        monkeypatch.setattr(openssl, name, functools.cache(getattr(openssl, name)))


def test_age_flips_are_all_refused() -> None:
    sound = Sound("age")
    assert outcomes(flips(sound.key), sound.read_key, sound.key) == {"refused": 275}
    assert outcomes(flips(sound.metadata), sound.read_metadata, sound.metadata) == {"refused": 456}
    assert outcomes(flips(sound.tar), sound.read_tar, sound.tar) == {"refused": 3784}


def test_age_cuts_are_all_refused() -> None:
    sound = Sound("age")
    assert outcomes(cuts(sound.key), sound.read_key, sound.key) == {"refused": 275}
    assert outcomes(cuts(sound.metadata), sound.read_metadata, sound.metadata) == {"refused": 456}
    assert outcomes(cuts(sound.tar), sound.read_tar, sound.tar) == {"refused": 3784}


@pytest.mark.parametrize("tail", [b"\0", b"\n", b"age-encryption.org/v1\n", bytes(65_552)])
def test_age_appendices_are_refused(tail: bytes) -> None:
    sound = Sound("age")
    for read, blob in (
        (sound.read_key, sound.key),
        (sound.read_metadata, sound.metadata),
        (sound.read_tar, sound.tar),
    ):
        with pytest.raises(TrustError):
            read(blob + tail)


_CHUNK = 65_536 + 16


def _three_chunks() -> tuple[bytes, list[bytes], bytes]:
    """A sealed file's head (header and nonce), its three chunks, and the key that opens it."""
    key = Sound("age").secret
    blob = seal_metadata("age", bytes(37 * 4096), key=key)
    start = blob.index(b"\n", blob.index(b"\n--- ") + 1) + 1 + 16
    chunks = [blob[place : place + _CHUNK] for place in range(start, len(blob), _CHUNK)]
    assert len(chunks) == 3
    return blob[:start], chunks, key


@pytest.mark.parametrize(
    "order", [order for count in range(4) for order in product(range(3), repeat=count)], ids=str
)
def test_age_chunks_open_in_their_order_only(order: tuple[int, ...]) -> None:
    """By decryption alone: neither the tarball nor the digests help here."""
    head, chunks, key = _three_chunks()
    blob = head + b"".join(chunks[place] for place in order)
    plaintext = age.decrypt(io.BytesIO(blob), key)
    if order == (0, 1, 2):
        assert b"".join(plaintext) == bytes(37 * 4096)
    else:
        with pytest.raises(TrustError):
            b"".join(plaintext)


@pytest.mark.usefixtures("_quick_derivation")
def test_openssl_flips_with_bound_digests() -> None:
    sound = Sound("openssl")
    assert outcomes(flips(sound.key), sound.read_key, sound.key) == {"refused": 256}
    assert outcomes(flips(sound.tar), sound.read_tar, sound.tar) == {"refused": 3616}


@pytest.mark.usefixtures("_quick_derivation")
def test_openssl_flips_without_bound_digests() -> None:
    """As MS MARCO's own scripts seal: what the tarball does not betray is garbled content."""
    sound = Sound("openssl", bound=False)
    counts = outcomes(flips(sound.tar), sound.read_tar, sound.tar)
    assert counts == {"refused": 3544, "garbled": 72}
    counts = outcomes(flips(sound.metadata), sound.read_metadata, sound.metadata)
    assert counts == {"refused": 48, "garbled": 240}


@pytest.mark.usefixtures("_quick_derivation")
def test_openssl_garbled_runs_are_betrayed_by_bzip2() -> None:
    """Not the envelope's doing: the check that every bzip2 stream carries."""
    sound = Sound("openssl", bound=False)
    intact = {name: unpacked(run) for name, (_, run) in sound.vector.runs.items()}
    counts: Counter[str] = Counter()
    for mutant in flips(sound.tar):
        with contextlib.suppress(TrustError):
            counts[_unpacking(sound.read_tar(mutant), intact)] += 1
    assert counts == {"unpacking failed": 72}


@pytest.mark.usefixtures("_quick_derivation")
def test_openssl_garbled_metadata_is_betrayed_by_json() -> None:
    """By luck and not by design: the block that is hit turns to noise, which is rarely text."""
    sound = Sound("openssl", bound=False)
    counts: Counter[str] = Counter()
    for mutant in flips(sound.metadata):
        with contextlib.suppress(TrustError):
            counts[_parsing(sound.read_metadata(mutant))] += 1
    assert counts == {"not JSON": 240}


def _parsing(metadata: bytes) -> str:
    try:
        json.loads(metadata)
    except ValueError:
        return "not JSON"
    return "JSON"


def _unpacking(runs: dict[str, bytes], intact: dict[str, bytes]) -> str:
    try:
        found = {name: unpacked(run) for name, run in runs.items()}
    except (OSError, ValueError, EOFError):
        return "unpacking failed"
    return "same text" if found == intact else "other text"


@pytest.mark.usefixtures("_quick_derivation")
def test_openssl_cuts() -> None:
    sound = Sound("openssl", bound=False)
    assert outcomes(cuts(sound.key), sound.read_key, sound.key) == {"refused": 256}
    assert outcomes(cuts(sound.tar), sound.read_tar, sound.tar) == {"refused": 3616}
    counts = outcomes(cuts(sound.metadata), sound.read_metadata, sound.metadata)
    assert counts == {"refused": 288}


def test_a_long_header_is_refused_at_once() -> None:
    """The parser below needs minutes for this one."""
    header = b"age-encryption.org/v1\n" + b"-> a b\n\n" * 20_000
    sound = Sound("age")
    for read in (sound.read_key, sound.read_metadata, sound.read_tar):
        started = time.process_time()
        with pytest.raises(TrustError):
            read(header)
        assert time.process_time() - started < 1


def test_the_longest_header_is_refused_soon() -> None:
    mac = b"--- " + b"A" * 43 + b"\n"
    filler = b"-> a b\n\n" * ((age.HEADER_LIMIT - 22 - len(mac)) // 8)
    started = time.process_time()
    with pytest.raises(TrustError):
        Sound("age").read_metadata(b"age-encryption.org/v1\n" + filler + mac + bytes(100))
    assert time.process_time() - started < 2
