"""What the envelope's tests share: the vectors of real programs, and one way to open everything."""

import bz2
import functools
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from heldout.envelope.bundle import file_names, new_identity, open_key, open_metadata, open_runs
from heldout.envelope.keys import Binding, Form, KeyPair
from heldout.ids import Digest, SubmissionId, digest_bytes

ID = SubmissionId("20261120-lighthouse")
OTHER_ID = SubmissionId("20261121-harbour")
FORMS: tuple[Form, ...] = ("age", "openssl")
SETS = ("dev", "eval")
VECTORS = Path(__file__).parent / "vectors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """A submission sealed by real programs."""

    identity: str
    recipient: str
    files: Mapping[str, bytes]
    metadata: bytes
    runs: Mapping[str, tuple[str, bytes]]


@functools.cache
def vector(form: Form) -> Vector:
    folder = VECTORS / form
    plain = VECTORS / "plain"
    identity = next(folder.glob("identity.*")).read_text()
    return Vector(
        identity=identity,
        recipient=_recipient(form, folder, identity),
        files={name: (folder / name).read_bytes() for name in file_names(form, ID).all},
        metadata=(plain / "metadata.json").read_bytes(),
        runs={name: (".txt.bz2", (plain / ID / f"{name}.txt.bz2").read_bytes()) for name in SETS},
    )


def _recipient(form: Form, folder: Path, identity: str) -> str:
    if form == "openssl":
        return (folder / "recipient.pem").read_text()
    return next(line.split()[-1] for line in identity.splitlines() if "public key" in line)


@functools.cache
def organiser(form: Form) -> KeyPair:
    """A key pair made once: RSA keys take a while."""
    return new_identity(form)


def read_binding(metadata: bytes) -> Binding:
    fields = json.loads(metadata)
    return Binding(
        submission_id=SubmissionId(fields["id"]),
        revision=fields["revision"],
        digests={name: Digest(digest) for name, digest in fields["digests"].items()},
    )


def format_binding(binding: Binding, **others: str) -> bytes:
    fields = {
        "id": binding.submission_id,
        "revision": binding.revision,
        "digests": dict(binding.digests),
    }
    return json.dumps(fields | others).encode()


def read_all(_name: str, stream: BinaryIO) -> bytes:
    return stream.read()


def open_tar(
    form: Form, sealed: bytes, key: bytes, *, binding: Binding | None, sets: tuple[str, ...] = SETS
) -> dict[str, bytes]:
    """Query set to run file."""
    opened = open_runs(
        form,
        io.BytesIO(sealed),
        key=key,
        submission_id=ID,
        runs=sets,
        binding=binding,
        consume=read_all,
    )
    return {name: run.value for name, run in opened.items()}


def padded(metadata: bytes) -> bytes:
    """What opens of sealed metadata: blanks fill up 4 KiB."""
    return metadata.ljust(-(-len(metadata) // 4096) * 4096)


def open_all(
    form: Form, files: Mapping[str, bytes], identity: str, *, submission_id: SubmissionId = ID
) -> tuple[bytes, dict[str, bytes]]:
    """Metadata and run files, as an organiser opens them from the files under an id."""
    names = file_names(form, submission_id)
    key = open_key(form, files[names.key], [identity])
    metadata = open_metadata(form, files[names.metadata], key=key)
    opened = open_runs(
        form,
        io.BytesIO(files[names.tar]),
        key=key,
        submission_id=submission_id,
        runs=SETS,
        binding=read_binding(metadata),
        consume=read_all,
    )
    return metadata, {name: run.value for name, run in opened.items()}


def unpacked(run: bytes) -> bytes:
    return bz2.decompress(run)


def bind_runs(
    submission_id: SubmissionId, runs: Mapping[str, tuple[str, bytes]], *, revision: int = 1
) -> Binding:
    """What the metadata must say about these runs."""
    digests = {run: digest_bytes(content) for run, (_, content) in runs.items()}
    return Binding(submission_id=submission_id, revision=revision, digests=digests)
