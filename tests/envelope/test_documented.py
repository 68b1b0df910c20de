"""The commands in envelope.md do what it says, and its figures are those of the tests."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sealing import FORMS, ID, VECTORS, open_all, vector
from test_archive import HOSTILE
from test_vectors import ATTACKS

from heldout.envelope.archive import pack_runs
from heldout.envelope.bundle import file_names
from heldout.envelope.keys import Form

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "envelope.md").read_text(
    encoding="utf-8"
)
BLOCKS = dict(re.findall(r"```sh\n# (\w+, \w+)\n(.*?)```", PAGE, re.DOTALL))


def run_block(name: str, at: Path, **variables: str) -> None:
    # The page's own commands, which is what is tested.
    script = "set -eu\n" + BLOCKS[name]
    environment = {"PATH": os.environ["PATH"], "id": ID, **variables}
    subprocess.run(["sh", "-c", script], cwd=at, check=True, env=environment)


@pytest.fixture
def folder(program: Callable[[str], str], tmp_path: Path) -> Path:
    for name in ("sh", "age", "age-keygen", "openssl"):
        program(name)
    return tmp_path


def test_a_stranger_opens_the_age_form(folder: Path) -> None:
    shutil.copytree(VECTORS / "age", folder, dirs_exist_ok=True)
    run_block("open, age", folder)
    assert (folder / "metadata.json").read_bytes() == vector("age").metadata
    assert f"{ID}/dev.txt.bz2".encode() in (folder / "run.tar").read_bytes()


def test_a_stranger_opens_the_openssl_form(folder: Path) -> None:
    shutil.copytree(VECTORS / "openssl", folder, dirs_exist_ok=True)
    run_block("open, openssl", folder)
    assert (folder / "open-metadata.json").read_bytes() == vector("openssl").metadata
    assert f"{ID}/dev.txt.bz2".encode() in (folder / "open.tar").read_bytes()


@pytest.mark.parametrize("form", FORMS)
def test_a_stranger_seals(folder: Path, form: Form) -> None:
    sound = vector(form)
    (folder / "metadata.json").write_bytes(sound.metadata)
    (folder / "run.tar").write_bytes(pack_runs(ID, sound.runs))
    (folder / "recipient.pem").write_text(sound.recipient)
    run_block(f"seal, {form}", folder, recipient=sound.recipient)
    files = {name: (folder / name).read_bytes() for name in file_names(form, ID).all}
    metadata, runs = open_all(form, files, sound.identity)
    assert metadata == sound.metadata
    assert runs == {name: content for name, (_, content) in sound.runs.items()}


def test_the_figures_on_the_page() -> None:
    assert f"{len(HOSTILE)} hostile tarballs" in PAGE
    # One entry is the vector itself, untouched.
    assert f"{len(ATTACKS) - 1} attacks on whole" in PAGE
    for form, files in ((form, vector(form).files) for form in FORMS):
        assert f"{sum(map(len, files.values())):,}" in PAGE, form
