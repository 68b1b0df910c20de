"""Submissions sealed by real programs, and what an attacker makes of them.

Every attack declares the step that must refuse it:

    key         the key file gives no key
    metadata    the metadata file does not open under that key
    container   the sealed tarball does not open, or is not the tarball of this id
    binding     everything opens, and the metadata says it belongs to something else
    nothing     the form cannot see it; docs/reference/envelope.md says so
"""

import base64
import functools
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
import sealing
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from heldout.envelope import age, bundle, openssl
from heldout.envelope.archive import pack_runs, read_members
from heldout.envelope.keys import Binding, FileNames, Form, Sealed
from heldout.errors import TrustError
from heldout.ids import Digest, SubmissionId

both_forms = pytest.mark.parametrize("form", sealing.FORMS)

Files = Mapping[str, bytes]


@pytest.fixture(autouse=True, scope="module")
def _quick_keys() -> Iterator[None]:
    """Reading the same organiser's key once is enough; RSA keys take long to check."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openssl, "_private_key", functools.cache(openssl._private_key))
        yield


@both_forms
def test_a_vector_opens(form: Form) -> None:
    """What was sealed once opens for ever."""
    sound = sealing.vector(form)
    metadata, runs = sealing.open_all(form, sound.files, sound.identity)
    assert metadata == sound.metadata
    assert runs == {name: content for name, (_, content) in sound.runs.items()}


# ------------------------------------------------------------------ attacks


class Scene:
    """The vector, another submission to the same board, and what an outsider can make.

    The outsider knows every public file and the board's recipient, and no key but their own.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self.cipher = {"age": age, "openssl": openssl}[form]
        self.names: FileNames = bundle.file_names(form, sealing.ID)
        self.victim: sealing.Vector = sealing.vector(form)
        self.files: dict[str, bytes] = dict(self.victim.files)
        self.runs = {"dev": (".txt.bz2", b"mine"), "eval": (".txt.bz2", b"mine too")}
        self.other = self.sealed(sealing.OTHER_ID)

    def sealed(self, submission_id: SubmissionId) -> Sealed:
        return bundle.seal(
            self.form,
            submission_id,
            runs=self.runs,
            metadata=sealing.format_binding(sealing.bind_runs(submission_id, self.runs)),
            recipients=[self.victim.recipient],
        )

    def take(self, *parts: str) -> Files:
        """The victim's files with some of the other submission's in their places."""
        for part in parts:
            self.files[getattr(self.names, part)] = self.other.files[
                getattr(self.other.names, part)
            ]
        return self.files

    def put(self, part: str, blob: bytes) -> Files:
        return self.files | {getattr(self.names, part): blob}

    def key_file(self, text: bytes) -> Files:
        return self.put("key", self.cipher.seal_key(text, [self.victim.recipient]))

    def own(self, *, tar: bytes | None = None, binding: Binding | None = None) -> Files:
        """A whole submission under the victim's id, sealed by somebody else."""
        key = self.cipher.new_key()
        tar = pack_runs(sealing.ID, self.runs) if tar is None else tar
        metadata = sealing.format_binding(binding or sealing.bind_runs(sealing.ID, self.runs))
        return {
            self.names.tar: self.cipher.encrypt(tar, key),
            self.names.metadata: self.cipher.encrypt(metadata, key),
            self.names.key: bundle.seal_key(self.form, key, [self.victim.recipient]),
        }


def stage(scene: Scene, files: Files) -> str:
    """The step that refuses these files."""
    where = "key"
    try:
        key = bundle.open_key(scene.form, files[scene.names.key], [scene.victim.identity])
        where = "metadata"
        # Under a wrong key the openssl form opens once in 256 times, to noise that is no JSON.
        claimed = sealing.read_binding(
            bundle.open_metadata(scene.form, files[scene.names.metadata], key=key)
        )
        where = "container"
        digests = _digests(scene.cipher.decrypt(io.BytesIO(files[scene.names.tar]), key))
        where = "binding"
        bundle.check_binding(scene.form, claimed, submission_id=sealing.ID, digests=digests)
    except (TrustError, ValueError):
        return where
    return "nothing"


def _digests(plaintext: Iterator[bytes]) -> dict[str, Digest]:
    members = read_members(plaintext, submission_id=sealing.ID, runs=sealing.SETS, limit=1 << 20)
    digests = {}
    for member in members:
        member.finish()
        digests[member.run] = member.digest
    return digests


def _another_id(binding: Binding) -> Binding:
    return replace(binding, submission_id=sealing.OTHER_ID)


ATTACKS: Mapping[str, tuple[str, Callable[[Scene], Files]]] = {
    # files of two submissions to the same board mixed
    "none": ("nothing", lambda scene: scene.files),
    "other-key": ("metadata", lambda scene: scene.take("key")),
    "other-metadata": ("metadata", lambda scene: scene.take("metadata")),
    "other-tar": ("container", lambda scene: scene.take("tar")),
    "other-key-and-metadata": ("container", lambda scene: scene.take("key", "metadata")),
    "other-key-and-tar": ("metadata", lambda scene: scene.take("key", "tar")),
    "other-metadata-and-tar": ("metadata", lambda scene: scene.take("metadata", "tar")),
    "copied-under-another-id": ("container", lambda scene: scene.take("key", "metadata", "tar")),
    # files of one submission mixed
    "metadata-as-tar": (
        "container",
        lambda scene: scene.put("tar", scene.files[scene.names.metadata]),
    ),
    "key-as-tar": ("container", lambda scene: scene.put("tar", scene.files[scene.names.key])),
    "metadata-as-key": ("key", lambda scene: scene.put("key", scene.files[scene.names.metadata])),
    # by the sender
    "metadata-of-another-id": (
        "binding",
        lambda scene: scene.own(binding=_another_id(sealing.bind_runs(sealing.ID, scene.runs))),
    ),
    "metadata-of-other-runs": (
        "binding",
        lambda scene: scene.own(binding=sealing.bind_runs(sealing.ID, scene.victim.runs)),
    ),
    "metadata-of-one-run-only": (
        "binding",
        lambda scene: scene.own(binding=sealing.bind_runs(sealing.ID, {"dev": scene.runs["dev"]})),
    ),
    "metadata-of-a-run-too-many": (
        "binding",
        lambda scene: scene.own(
            binding=sealing.bind_runs(sealing.ID, {**scene.runs, "test": ("", b"")})
        ),
    ),
    "revision-zero": (
        "binding",
        lambda scene: scene.own(binding=sealing.bind_runs(sealing.ID, scene.runs, revision=0)),
    ),
    "runs-swapped-in-the-tar": (
        "binding",
        lambda scene: scene.own(
            tar=pack_runs(sealing.ID, {"dev": scene.runs["eval"], "eval": scene.runs["dev"]})
        ),
    ),
    "tar-of-another-id": (
        "container",
        lambda scene: scene.own(tar=pack_runs(sealing.OTHER_ID, scene.runs)),
    ),
    # by an outsider, who knows the board's recipient
    "key-file-for-somebody-else": (
        "key",
        lambda scene: scene.put(
            "key",
            bundle.seal_key(scene.form, scene.other.key, [scene.cipher.new_identity().recipient]),
        ),
    ),
    "key-file-with-a-fresh-key": ("metadata", lambda scene: scene.key_file(scene.cipher.new_key())),
    "empty-key-text": ("key", lambda scene: scene.key_file(b"")),
    "key-text-without-newline": (
        "key",
        lambda scene: scene.key_file(scene.cipher.new_key().strip()),
    ),
    "two-keys-in-the-text": ("key", lambda scene: scene.key_file(scene.cipher.new_key() * 2)),
    "key-text-with-a-comment": (
        "key",
        lambda scene: scene.key_file(b"# mine\n" + scene.cipher.new_key()),
    ),
    "key-text-of-the-other-form": (
        "key",
        lambda scene: scene.key_file({"age": openssl, "openssl": age}[scene.form].new_key()),
    ),
    "key-text-with-a-wrong-letter": (
        "key",
        lambda scene: scene.key_file(scene.cipher.new_key()[:-2] + b"!\n"),
    ),
    "key-text-in-lower-case": (
        "key",
        lambda scene: scene.key_file(b"age-secret-key-1" + b"q" * 58 + b"\n"),
    ),
    "empty-key-file": ("key", lambda scene: scene.put("key", b"")),
    "huge-key-file": ("key", lambda scene: scene.put("key", bytes(1 << 20))),
    "empty-metadata-file": ("metadata", lambda scene: scene.put("metadata", b"")),
    "empty-tar-file": ("container", lambda scene: scene.put("tar", b"")),
}


@both_forms
@pytest.mark.parametrize("attack", ATTACKS)
def test_attack_is_refused_where_it_should_be(form: Form, attack: str) -> None:
    declared, make = ATTACKS[attack]
    scene = Scene(form)
    files = make(scene)
    assert stage(scene, files) == declared
    if declared != "nothing":
        with pytest.raises((TrustError, ValueError)):
            sealing.open_all(form, files, scene.victim.identity)


@both_forms
def test_another_organiser_opens_nothing(form: Form) -> None:
    stranger = {"age": age, "openssl": openssl}[form].new_identity()
    with pytest.raises(TrustError):
        sealing.open_all(form, sealing.vector(form).files, stranger.private)


@both_forms
def test_the_runs_of_others_cannot_be_handed_in_again(form: Form) -> None:
    """All three files copied under a new id: the folder in the tarball still has the old one."""
    names, copied = bundle.file_names(form, sealing.ID), bundle.file_names(form, sealing.OTHER_ID)
    files = {
        new: sealing.vector(form).files[old] for new, old in zip(copied.all, names.all, strict=True)
    }
    with pytest.raises(TrustError):
        sealing.open_all(form, files, sealing.vector(form).identity, submission_id=sealing.OTHER_ID)


# ------------------------------------------------------------------ replays, and what is not bound


def _claimed(revision: int) -> Binding:
    return sealing.bind_runs(sealing.ID, sealing.vector("age").runs, revision=revision)


@both_forms
@pytest.mark.parametrize(
    ("revision", "newer_than", "verdict"),
    [
        (1, 0, "accepted"),
        (2, 1, "accepted"),
        (7, 1, "accepted"),
        (1, 1, "refused"),
        (1, 2, "refused"),
        (0, 0, "refused"),
    ],
)
def test_a_revision_must_be_newer(form: Form, revision: int, newer_than: int, verdict: str) -> None:
    def check() -> None:
        bundle.check_binding(
            form,
            _claimed(revision),
            submission_id=sealing.ID,
            digests=_claimed(1).digests,
            newer_than=newer_than,
        )

    if verdict == "accepted":
        check()
    else:
        with pytest.raises(TrustError):
            check()


def test_the_age_form_demands_a_binding_and_the_openssl_form_does_not() -> None:
    digests = _claimed(1).digests
    bundle.check_binding("openssl", None, submission_id=sealing.ID, digests=digests)
    with pytest.raises(TrustError):
        bundle.check_binding("age", None, submission_id=sealing.ID, digests=digests)


# ------------------------------------------------------------------ what a file betrays


def _stanzas(blob: bytes) -> list[list[bytes]]:
    head, _, _ = blob.partition(b"\n---")
    return [line.split() for line in head.splitlines() if line.startswith(b"->")]


def _decoded(text: str) -> bytes:
    """The 32 bytes in a Bech32 text; its last six characters are the checksum."""
    alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    data = text.lower().rpartition("1")[2][:-6]
    bits = "".join(f"{alphabet.index(letter):05b}" for letter in data)
    return int(bits[:256], 2).to_bytes(32, "big")


def test_an_age_file_does_not_betray_its_recipient() -> None:
    """The later metadata proves its sender, because nobody else can know what to seal it to."""
    key = age.new_key()
    recipient = age.recipient_of(key.decode())
    first, second = (
        bundle.seal_metadata("age", b"{}", key=key),
        bundle.seal_metadata("age", b"{}", key=key),
    )
    encoded = base64.b64encode(_decoded(recipient)).rstrip(b"=")
    for blob in (first, second):
        for trace in (recipient.encode(), encoded, _decoded(recipient), key[16:-1]):
            assert trace not in blob
    # One ephemeral share each, a fresh one; besides it there is only noise of the library.
    shares = [stanza for stanza in _stanzas(first) + _stanzas(second) if stanza[1] == b"X25519"]
    assert len(shares) == 2
    assert shares[0][2] != shares[1][2]
    assert all(len(stanza) == 3 for stanza in shares)


def test_the_bytes_of_a_recipient_are_read_right() -> None:
    """Else the test above could not fail."""
    pair = age.new_identity()
    secret = X25519PrivateKey.from_private_bytes(_decoded(pair.private.strip()))
    assert secret.public_key().public_bytes_raw() == _decoded(pair.recipient)
