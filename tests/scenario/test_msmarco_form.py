"""A whole journey in MS MARCO's form: the participant has openssl, tar, bzip2, git, no heldout.

The commands are those of the packing script of the old boards, with the options that it left to
OpenSSL's defaults left out here too (Lin et al. 2022, §3.1).
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from lab import Lab, founding, git, run_text, write_inputs

ID = "20261102-lighthouse"
LATER = "2026-11-05T10:00:00Z"
METADATA: Mapping[str, object] = {
    "team": "Lighthouse Retrieval Group, Lighthouse Institute",
    "model_description": "monoT5 over the first stage",
    "paper": "",
    "code": "https://example.org/code",
    "type": "full ranking",
    "embargo_until": "2027/03/01",
}
PACK = """
openssl rand -base64 32 >"$id.key.bin"
openssl rsautl -encrypt -pubin -inkey public.pem -in "$id.key.bin" -out "$id.key.bin.enc"
tar -cf "$id.tar" "$id/"
openssl enc -aes-256-cbc -pbkdf2 -in "$id.tar" -out "$id.tar.enc" -pass "file:$id.key.bin"
"""
PACK_METADATA = """
openssl enc -aes-256-cbc -pbkdf2 -in "$id-metadata.json" -out "$id-metadata.json.enc" \
  -pass "file:$id.key.bin"
"""
OPEN = """
openssl rsautl -decrypt -inkey identity.pem -in "$id.key.bin.enc" -out opened.key
openssl enc -d -aes-256-cbc -pbkdf2 -in "$id.tar.enc" -out opened.tar -pass file:opened.key
openssl enc -d -aes-256-cbc -pbkdf2 -in "$id-metadata.json.enc" -pass file:opened.key
tar -xOf opened.tar "$id/eval.txt.bz2" | bunzip2
"""


def shell(script: str, at: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "id": ID, "LC_ALL": "C.UTF-8"}
    command = ["bash", "-eu", "-o", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=at, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.fixture
def lab(program: Callable[[str], str], tmp_path: Path) -> Lab:
    """A board with `envelope = "openssl"`, its forge, and a participant's clone."""
    for name in ("bash", "openssl", "tar", "bzip2"):
        program(name)
    lab = Lab(tmp_path / "lab")
    lab.root.mkdir()
    (lab.root / ".gitconfig").write_text("[user]\n\tname = Someone\n\temail = someone@here\n")
    write_inputs(lab.root)
    assert lab.call(*founding(lab.root), "--envelope", "openssl").code == 0
    git(lab.root, "init", "-q", "--bare", "-b", "main", "forge")
    git(lab.board, "remote", "add", "origin", str(lab.forge))
    lab.push()
    lab.new_clone("clone")
    return lab


@pytest.fixture
def session(lab: Lab) -> Path:
    """Where the participant packs: the public key, two runs, the metadata."""
    folder = lab.root / "session"
    (folder / ID).mkdir(parents=True)
    key = (lab.clone / "keys" / "organisers.txt").read_text()
    (folder / "public.pem").write_text(key)
    for name in ("dev", "eval"):
        (folder / ID / f"{name}.txt").write_text(run_text(name, 1))
    shell('bzip2 "$id/dev.txt" "$id/eval.txt"', folder)
    write_metadata(folder)
    shell(PACK + PACK_METADATA, folder)
    return folder


def write_metadata(folder: Path, **changes: object) -> None:
    (folder / f"{ID}-metadata.json").write_text(json.dumps({**METADATA, **changes}, indent=1))


def send(lab: Lab, session: Path, *names: str, pull: int) -> None:
    """A pull request with these files, by git alone."""
    git(lab.clone, "checkout", "-q", "-B", f"pull-{pull}", "origin/main")
    for name in names:
        target = lab.clone / "submissions" / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((session / name).read_bytes())
    git(lab.clone, "add", "submissions")
    git(lab.clone, "commit", "-q", "-m", f"Submission {ID}")
    git(lab.clone, "push", "-q", "origin", f"HEAD:refs/pull/{pull}/head")


def test_from_pack_to_page(lab: Lab, session: Path) -> None:
    send(lab, session, f"{ID}.key.bin.enc", f"{ID}.tar.enc", f"{ID}-metadata.json.enc", pull=7)
    (taken,) = lab.take_in()["received"]
    assert (taken["id"], taken["kind"]) == (ID, "received")
    lab.organiser("review", ID).done("Lighthouse Retrieval Group")
    why = ("--why", "we know the team")
    assert lab.organiser("publish", ID, "--yes", *why, now=LATER).code == 0
    (row,) = lab.rows()
    assert (row["team"], row["embargoed"]) == (None, True)
    assert row["scores"]["eval"] is not None
    lab.push()
    write_metadata(session, paper="https://example.org/paper", revision=2)
    shell(PACK_METADATA, session)
    send(lab, session, f"{ID}-metadata.json.enc", pull=8)
    assert [r["kind"] for r in lab.take_in(now=LATER)["received"]] == ["updated"]
    assert lab.organiser("rebuild", now="2027-03-01T00:00:00Z").code == 0
    (row,) = lab.rows()
    assert (row["team"], row["paper"]) == (METADATA["team"], "https://example.org/paper")
    assert lab.audit()["ok"]


def test_openssl_opens_it_with_the_board_s_private_key(lab: Lab, session: Path) -> None:
    identity = (lab.vault / "identities" / "organiser.txt").read_text()
    (session / "identity.pem").write_text(identity)
    opened = shell(OPEN, session)
    metadata, _, run = opened.partition("}")
    assert json.loads(metadata + "}") == METADATA
    assert run == run_text("eval", 1)
