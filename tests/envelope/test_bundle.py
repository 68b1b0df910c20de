"""Round trips, and what `open_runs` does with its consumer."""

import bz2
import io
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, TypeVar

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sealing import FORMS, ID, SETS, bind_runs, format_binding, organiser, padded, read_all

from heldout.envelope import bundle
from heldout.envelope.keys import Form, Sealed
from heldout.errors import InputError, Problem, SetupError, TrustError
from heldout.ids import digest_bytes

T = TypeVar("T")
Runs = Mapping[str, tuple[str, bytes]]

RUNS: Runs = {
    "dev": (".txt", b"1\tD1\t1\n"),
    "eval": (".txt.bz2", bz2.compress(b"2\tD2\t1\n" * 50)),
}
# More than the decrypting thread's queue holds, so that it waits for its reader.
LARGE: Runs = {name: (".bin", os.urandom(600_000)) for name in SETS}

both_forms = pytest.mark.parametrize("form", FORMS)


def sealed(form: Form, runs: Runs = RUNS) -> Sealed:
    return bundle.seal(
        form,
        ID,
        runs=runs,
        metadata=format_binding(bind_runs(ID, runs)),
        recipients=[organiser(form).recipient],
    )


def opened(
    form: Form,
    envelope: Sealed,
    consume: Callable[[str, BinaryIO], T],
    *,
    runs: Runs = RUNS,
    source: type[io.BytesIO] = io.BytesIO,
    limit: int = 1 << 30,
) -> dict[str, bundle.OpenedRun[T]]:
    return bundle.open_runs(
        form,
        source(envelope.files[envelope.names.tar]),
        key=envelope.key,
        submission_id=ID,
        runs=tuple(runs),
        binding=bind_runs(ID, runs),
        consume=consume,
        limit=limit,
    )


def cut(envelope: Sealed, size: int) -> Sealed:
    files = dict(envelope.files)
    files[envelope.names.tar] = files[envelope.names.tar][:-size]
    return Sealed(names=envelope.names, files=files, key=envelope.key)


def refuse(name: str, _stream: BinaryIO) -> None:
    raise InputError(Problem(code="row", path=name, found="x", expected="y"))


@pytest.fixture(autouse=True)
def _no_leaks() -> Iterator[None]:
    """Every test leaves as many threads and open files as it found."""
    before = _held()
    yield
    assert _held() == before


def _held() -> tuple[int, int]:
    return threading.active_count(), len(list(Path("/dev/fd").iterdir()))


@both_forms
def test_what_is_known_of_a_run(form: Form) -> None:
    run = opened(form, sealed(form), lambda name, stream: (name, stream.name))["eval"]
    assert run.value == ("eval", f"{ID}/eval.txt.bz2")
    assert (run.member, run.size) == (f"{ID}/eval.txt.bz2", len(RUNS["eval"][1]))
    assert run.digest == digest_bytes(RUNS["eval"][1])


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("age", (f"{ID}.tar.age", f"{ID}-metadata.json.age", f"{ID}.key.age")),
        ("openssl", (f"{ID}.tar.enc", f"{ID}-metadata.json.enc", f"{ID}.key.bin.enc")),
    ],
)
def test_file_names(form: Form, names: tuple[str, str, str]) -> None:
    assert bundle.file_names(form, ID).all == names
    assert set(sealed(form).files) == set(names)


@pytest.mark.slow
@both_forms
@settings(max_examples=20)
@given(data=st.data())
def test_round_trip(form: Form, data: st.DataObject) -> None:
    names = st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True)
    suffixes = st.from_regex(r"(\.[a-z0-9_-]{1,5}){0,3}", fullmatch=True)
    content = st.binary(max_size=3000)
    runs = data.draw(
        st.dictionaries(names, st.tuples(suffixes, content), min_size=1, max_size=4), label="runs"
    )
    metadata = data.draw(st.binary(max_size=100_000), label="metadata")
    recipients = [organiser(form).recipient]
    envelope = bundle.seal(form, ID, runs=runs, metadata=metadata, recipients=recipients)
    key = bundle.open_key(form, envelope.files[envelope.names.key], [organiser(form).private])
    assert key == envelope.key
    again = bundle.seal(form, ID, runs=runs, metadata=metadata, recipients=recipients, key=key)
    assert again.key == key
    assert bundle.open_metadata(form, envelope.files[envelope.names.metadata], key=key) == padded(
        metadata
    )
    found = opened(form, envelope, read_all, runs=runs)
    assert {name: run.value for name, run in found.items()} == {
        name: content for name, (_, content) in runs.items()
    }


@both_forms
def test_two_seals_of_the_same_have_nothing_in_common(form: Form) -> None:
    first, second = sealed(form), sealed(form)
    assert first.key != second.key
    for name in first.names.all:
        assert first.files[name] != second.files[name]


@both_forms
def test_a_later_revision_opens_under_the_first_key(form: Form) -> None:
    envelope = sealed(form)
    later = bundle.seal_metadata(form, b"second", key=envelope.key)
    key = bundle.open_key(form, envelope.files[envelope.names.key], [organiser(form).private])
    assert bundle.open_metadata(form, later, key=key) == padded(b"second")


def plaintext_size(form: Form, blob: bytes) -> int:
    """Bytes that a sealed file holds, as anybody can compute them from the file (openssl: with up
    to 16 bytes of its own padding)."""
    if form == "openssl":
        return len(blob) - len(b"Salted__") - 8
    start = blob.index(b"\n", blob.index(b"\n--- ") + 1) + 1 + 16
    chunks = -(-(len(blob) - start) // (65_536 + 16))
    return len(blob) - start - 16 * chunks


@both_forms
@pytest.mark.parametrize(
    ("size", "told"), [(1, 4096), (4096, 4096), (4097, 8192), (70_000, 73_728)]
)
def test_the_size_of_sealed_words_does_not_tell_their_length(
    form: Form, size: int, told: int
) -> None:
    words, envelope = b"x" * size, sealed(form)
    recipients = [organiser(form).recipient]
    submission = bundle.seal(form, ID, runs=RUNS, metadata=words, recipients=recipients)
    blobs = [
        submission.files[submission.names.metadata],
        bundle.seal_metadata(form, words, key=envelope.key),
        bundle.seal_message(form, words, recipients).words,
    ]
    own = 16 if form == "openssl" else 0
    assert [plaintext_size(form, blob) - own for blob in blobs] == [told] * 3


@both_forms
def test_the_key_for_another_organiser(form: Form) -> None:
    envelope, successor = sealed(form), bundle.new_identity(form)
    blob = bundle.seal_key(form, envelope.key, [successor.recipient])
    assert bundle.open_key(form, blob, [organiser(form).private, successor.private]) == envelope.key
    with pytest.raises(TrustError):
        bundle.open_key(form, blob, [organiser(form).private])


def test_every_organiser_alone_opens_the_age_form() -> None:
    pairs = [bundle.new_identity("age") for _ in range(3)]
    envelope = bundle.seal(
        "age", ID, runs=RUNS, metadata=b"", recipients=[pair.recipient for pair in pairs]
    )
    for pair in pairs:
        key = bundle.open_key("age", envelope.files[envelope.names.key], [pair.private])
        assert key == envelope.key


def test_thirty_organisers_are_not_too_many_and_hundred_are() -> None:
    pair = bundle.new_identity("age")
    blob = bundle.seal_key("age", sealed("age").key, [pair.recipient] * 30)
    assert bundle.open_key("age", blob, [pair.private])
    with pytest.raises(SetupError, match="100 recipients"):
        bundle.seal_key("age", sealed("age").key, [pair.recipient] * 100)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("recipients", [[], ["age1q8f"], ["-----BEGIN PUBLIC KEY-----"], [""]])
def test_a_wrong_recipient_is_the_setup_s_fault(form: Form, recipients: list[str]) -> None:
    with pytest.raises(SetupError):
        bundle.seal(form, ID, runs=RUNS, metadata=b"", recipients=recipients)


def test_the_openssl_form_has_one_organiser() -> None:
    with pytest.raises(SetupError, match="exactly one recipient, found 2"):
        bundle.seal(
            "openssl", ID, runs=RUNS, metadata=b"", recipients=[organiser("openssl").recipient] * 2
        )


@both_forms
@pytest.mark.parametrize("text", ["AGE-SECRET-KEY-1SECRET", "-----BEGIN PRIVATE KEY-----\nSECRET"])
def test_a_malformed_identity_is_told_without_being_shown(form: Form, text: str) -> None:
    blob = sealed(form).files[bundle.file_names(form, ID).key]
    with pytest.raises(SetupError) as failure:
        bundle.open_key(form, blob, [text])
    assert "SECRET" not in str(failure.value)
    with pytest.raises(SetupError):
        bundle.recipient_of(form, text)


@both_forms
def test_no_identity_opens_nothing(form: Form) -> None:
    with pytest.raises(TrustError):
        bundle.open_key(form, sealed(form).files[bundle.file_names(form, ID).key], [])


def test_recipients_cut_short() -> None:
    recipient = organiser("age").recipient
    assert bundle.short_recipient("age", recipient) == recipient[:7] + "…"
    assert bundle.short_recipient("openssl", organiser("openssl").recipient).startswith("rsa-")


@both_forms
def test_metadata_limit(form: Form) -> None:
    key = sealed(form).key
    blob = bundle.seal_metadata(form, bytes(100_000), key=key)
    assert len(bundle.open_metadata(form, blob, key=key, limit=102_400)) == 102_400
    with pytest.raises(TrustError):
        bundle.open_metadata(form, blob, key=key, limit=102_399)


@both_forms
def test_words_up_to_the_limit_open(form: Form) -> None:
    pair, words = organiser(form), b"x" * (1 << 14)
    message = bundle.seal_message(form, words, [pair.recipient])
    assert bundle.open_message(form, message, [pair.private]) == words


@both_forms
@pytest.mark.parametrize("limit", [599_999, 600_000])
def test_run_limit(form: Form, limit: int) -> None:
    envelope = sealed(form, LARGE)

    if limit == 600_000:
        found = opened(form, envelope, read_all, runs=LARGE, limit=limit)
        assert found["dev"].value == LARGE["dev"][1]
    else:
        with pytest.raises(TrustError):
            opened(form, envelope, read_all, runs=LARGE, limit=limit)


def read_nothing(_name: str, _stream: BinaryIO) -> int:
    return 0


def read_one(_name: str, stream: BinaryIO) -> int:
    return len(stream.read(1))


def close_early(_name: str, stream: BinaryIO) -> int:
    stream.read(10)
    stream.close()
    return 0


def wrap_as_text(_name: str, stream: BinaryIO) -> int:
    # Its garbage collection closes what it wraps.
    return len(io.TextIOWrapper(stream, encoding="latin-1").read(3))


@both_forms
@pytest.mark.parametrize("consume", [read_nothing, read_one, close_early, wrap_as_text])
def test_a_consumer_need_not_read_to_the_end(
    form: Form, consume: Callable[[str, BinaryIO], int]
) -> None:
    found = opened(form, sealed(form, LARGE), consume, runs=LARGE)
    assert [run.digest for run in found.values()] == [
        digest_bytes(content) for _, content in LARGE.values()
    ]


@both_forms
def test_a_stream_kept_by_the_consumer_is_dead_afterwards(form: Form) -> None:
    kept: list[BinaryIO] = []
    opened(form, sealed(form), lambda _, stream: kept.append(stream))
    for stream in kept:
        with pytest.raises(ValueError, match="closed"):
            stream.read(1)


@both_forms
def test_the_problems_of_all_runs_come_together(form: Form) -> None:
    with pytest.raises(InputError) as failure:
        opened(form, sealed(form), refuse)
    assert [found.path for found in failure.value.problems] == ["dev", "eval"]


@both_forms
@pytest.mark.parametrize("size", [1, 16, 5000, 900_000])
def test_a_cut_file_takes_precedence_over_what_the_consumer_finds(form: Form, size: int) -> None:
    with pytest.raises(TrustError):
        opened(form, cut(sealed(form, LARGE), size), refuse, runs=LARGE)


@both_forms
def test_other_digests_take_precedence_over_what_the_consumer_finds(form: Form) -> None:
    with pytest.raises(TrustError):
        opened(form, sealed(form), refuse, runs=LARGE)


@both_forms
def test_a_consumer_cannot_swallow_the_refusal(form: Form) -> None:
    def swallow(_name: str, stream: BinaryIO) -> int:
        try:
            return len(stream.read())
        except TrustError:
            return 0

    with pytest.raises(TrustError):
        opened(form, cut(sealed(form, LARGE), 900_000), swallow, runs=LARGE)


@both_forms
def test_a_bug_in_the_consumer_comes_through(form: Form) -> None:
    with pytest.raises(ZeroDivisionError):
        opened(form, sealed(form, LARGE), lambda _name, _stream: 1 // 0, runs=LARGE)


@both_forms
@pytest.mark.parametrize("after", [0, 10, 300, 100_000])
def test_a_failing_disk_is_not_the_sender_s_fault(form: Form, after: int) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() >= after:
                raise OSError("the disk failed")
            return super().read(min(size or 0, after) if after else size)

    with pytest.raises(OSError, match="the disk failed"):
        opened(form, sealed(form, LARGE), read_all, runs=LARGE, source=Failing)


@both_forms
def test_a_refusal_says_nothing_of_its_cause(form: Form) -> None:
    with pytest.raises(TrustError) as failure:
        opened(form, cut(sealed(form), 1), read_all)
    assert str(failure.value) == "this submission cannot be opened"
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None or failure.value.__suppress_context__


def test_two_identities_have_no_one_recipient() -> None:
    text = organiser("age").private * 2
    with pytest.raises(SetupError, match="found 2"):
        bundle.recipient_of("age", text)


def test_a_key_that_is_not_rsa_is_the_setup_s_fault() -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    secret = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(SetupError, match="RSA public"):
        bundle.seal_key("openssl", sealed("openssl").key, [public.decode()])
    with pytest.raises(SetupError, match="RSA private"):
        bundle.recipient_of("openssl", secret)


def _mistyped(key: bytes) -> bytes:
    """The key with its letter before the last exchanged: in the age form, the checksum fails."""
    other = b"Q" if key[-3:-2] != b"Q" else b"P"
    return key[:-3] + other + key[-2:]


def _misspelt(key: bytes) -> bytes:
    return b"#" + key[1:]


@both_forms
@pytest.mark.parametrize("spoil", [_mistyped, _misspelt, bytes.strip, lambda _: b""])
def test_a_spoilt_key_opens_and_seals_nothing(form: Form, spoil: Callable[[bytes], bytes]) -> None:
    envelope = sealed(form)
    key = spoil(envelope.key)
    with pytest.raises(TrustError):
        opened(form, replace(envelope, key=key), read_all)
    if spoil is not _mistyped or form == "age":
        with pytest.raises(TrustError):
            bundle.seal_metadata(form, b"", key=key)
