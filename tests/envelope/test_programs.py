"""The `age` and `openssl` programs open what we seal, and we open what they seal."""

import io
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from sealing import ID, bind_runs, format_binding, open_all, organiser, padded, unpacked, vector

from heldout.envelope import bundle
from heldout.envelope.archive import pack_runs
from heldout.envelope.keys import Form, Sealed
from heldout.errors import TrustError

Program = Callable[[str], str]
RUNS = vector("age").runs
METADATA = format_binding(bind_runs(ID, RUNS), team="Lighthouse")


def run(*command: str, at: Path, stdin: bytes = b"") -> bytes:
    done = subprocess.run(command, cwd=at, input=stdin, capture_output=True, check=True)
    return done.stdout


def sealed_at(form: Form, folder: Path, *recipients: str) -> Sealed:
    recipients = recipients or (organiser(form).recipient,)
    envelope = bundle.seal(form, ID, runs=RUNS, metadata=METADATA, recipients=recipients)
    for name, blob in envelope.files.items():
        (folder / name).write_bytes(blob)
    (folder / "identity").write_text(organiser(form).private)
    return envelope


def check_tar(tarball: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(tarball)) as opened:
        for name, (suffix, content) in RUNS.items():
            member = opened.extractfile(f"{ID}/{name}{suffix}")
            assert member is not None
            assert member.read() == content
            assert unpacked(content)


def test_age_opens_what_we_seal(program: Program, tmp_path: Path) -> None:
    age, names = program("age"), bundle.file_names("age", ID)
    envelope = sealed_at("age", tmp_path)
    key = run(age, "-d", "-i", "identity", names.key, at=tmp_path)
    assert key == envelope.key
    (tmp_path / "key").write_bytes(key)
    assert run(age, "-d", "-i", "key", names.metadata, at=tmp_path) == padded(METADATA)
    check_tar(run(age, "-d", "-i", "key", names.tar, at=tmp_path))


def test_age_opens_it_for_each_organiser(program: Program, tmp_path: Path) -> None:
    pairs = [bundle.new_identity("age") for _ in range(3)]
    envelope = sealed_at("age", tmp_path, *(pair.recipient for pair in pairs))
    for pair in pairs:
        (tmp_path / "identity").write_text(pair.private)
        command = (program("age"), "-d", "-i", "identity", envelope.names.key)
        assert run(*command, at=tmp_path) == envelope.key


def test_we_open_what_age_seals(program: Program, tmp_path: Path) -> None:
    age, keygen, names = program("age"), program("age-keygen"), bundle.file_names("age", ID)
    identity = run(keygen, at=tmp_path)
    recipient = bundle.recipient_of("age", identity.decode())
    assert run(keygen, "-y", at=tmp_path, stdin=identity).decode().strip() == recipient
    key = run(keygen, at=tmp_path).splitlines(keepends=True)[-1]
    sender = run(keygen, "-y", at=tmp_path, stdin=key).decode().strip()
    files = {
        names.key: run(age, "-r", recipient, at=tmp_path, stdin=key),
        names.metadata: run(age, "-r", sender, at=tmp_path, stdin=METADATA),
        names.tar: run(age, "-r", sender, at=tmp_path, stdin=pack_runs(ID, RUNS)),
    }
    metadata, runs = open_all("age", files, identity.decode())
    assert metadata == METADATA
    assert runs == {name: content for name, (_, content) in RUNS.items()}


def test_armoured_files_of_age_are_refused(program: Program, tmp_path: Path) -> None:
    sound = vector("age")
    armoured = run(program("age"), "-a", "-r", sound.recipient, at=tmp_path, stdin=b"x")
    with pytest.raises(TrustError):
        bundle.open_key("age", armoured, [sound.identity])


ENC = ("enc", "-aes-256-cbc", "-pbkdf2", "-md", "sha256", "-iter", "10000", "-pass", "file:key")
RSA = ("pkeyutl", "-pkeyopt", "rsa_padding_mode:pkcs1")


def test_openssl_opens_what_we_seal(program: Program, tmp_path: Path) -> None:
    openssl, names = program("openssl"), bundle.file_names("openssl", ID)
    envelope = sealed_at("openssl", tmp_path)
    unwrap = (*RSA, "-decrypt", "-inkey", "identity", "-in", names.key)
    key = run(openssl, *unwrap, at=tmp_path)
    assert key == envelope.key
    assert len(key) == 45
    assert len(envelope.files[names.key]) == 256
    (tmp_path / "key").write_bytes(key)
    assert run(openssl, *ENC, "-d", "-in", names.metadata, at=tmp_path) == padded(METADATA)
    check_tar(run(openssl, *ENC, "-d", "-in", names.tar, at=tmp_path))


def test_openssl_rsautl_opens_our_key(program: Program, tmp_path: Path) -> None:
    """The older command that the boards' scripts use; deprecated in OpenSSL 3 but there."""
    envelope = sealed_at("openssl", tmp_path)
    command = ("rsautl", "-decrypt", "-inkey", "identity", "-in", envelope.names.key)
    assert run(program("openssl"), *command, at=tmp_path) == envelope.key


@pytest.mark.parametrize("wrap", ["pkeyutl", "rsautl"])
@pytest.mark.parametrize("generate", ["genrsa", "genpkey"])
def test_we_open_what_openssl_seals(
    program: Program, tmp_path: Path, wrap: str, generate: str
) -> None:
    openssl, names = program("openssl"), bundle.file_names("openssl", ID)
    make = {
        "genrsa": ("genrsa", "-traditional", "2048"),
        "genpkey": ("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
    }[generate]
    identity = run(openssl, *make, at=tmp_path).decode()
    (tmp_path / "public.pem").write_text(bundle.recipient_of("openssl", identity))
    (tmp_path / "key").write_bytes(run(openssl, "rand", "-base64", "32", at=tmp_path))
    method = RSA if wrap == "pkeyutl" else ("rsautl",)
    files = {
        names.key: run(
            *(openssl, *method, "-encrypt", "-pubin", "-inkey", "public.pem", "-in", "key"),
            at=tmp_path,
        ),
        names.metadata: run(openssl, *ENC, at=tmp_path, stdin=METADATA),
        names.tar: run(openssl, *ENC, at=tmp_path, stdin=pack_runs(ID, RUNS)),
    }
    metadata, runs = open_all("openssl", files, identity)
    assert metadata == METADATA
    assert runs == {name: content for name, (_, content) in RUNS.items()}


def test_openssl_writes_the_same_public_key(program: Program, tmp_path: Path) -> None:
    pair = organiser("openssl")
    (tmp_path / "identity").write_text(pair.private)
    command = ("pkey", "-in", "identity", "-pubout")
    assert run(program("openssl"), *command, at=tmp_path).decode() == pair.recipient


def test_an_openssl_revision_of_the_metadata(program: Program, tmp_path: Path) -> None:
    envelope = sealed_at("openssl", tmp_path)
    (tmp_path / "key").write_bytes(envelope.key)
    later = run(program("openssl"), *ENC, at=tmp_path, stdin=b"second")
    assert bundle.open_metadata("openssl", later, key=envelope.key) == b"second"
    ours = bundle.seal_metadata("openssl", b"third", key=envelope.key)
    assert run(program("openssl"), *ENC, "-d", at=tmp_path, stdin=ours) == padded(b"third")
