"""How `heldout serve` is told to take uploads."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from heldout.cli.serving import UPLOADS, UPLOADS_FORM, intake_of, upload_options
from heldout.errors import SetupError


@click.command
@upload_options
def told(*, uploads: Path | None, envelope: str) -> None:
    click.echo(f"{uploads} {envelope}")


def test_without_a_folder_no_uploads_are_taken() -> None:
    assert intake_of({}) is None
    assert intake_of({UPLOADS: ""}) is None
    assert CliRunner().invoke(told).output == "None age\n"


@pytest.mark.parametrize(
    ("form", "endings"),
    [
        ("age", (".tar.age", "-metadata.json.age", ".key.age")),
        ("openssl", (".tar.enc", "-metadata.json.enc", ".key.bin.enc")),
    ],
)
def test_a_folder_takes_the_files_of_its_envelope(
    tmp_path: Path, form: str, endings: tuple[str, ...]
) -> None:
    intake = intake_of({UPLOADS: str(tmp_path), UPLOADS_FORM: form})
    assert intake is not None
    assert (intake.folder.path, intake.folder.endings) == (tmp_path, endings)
    assert intake.folder.check_name("team-0123456789abcdef.json") == "team-0123456789abcdef"
    assert intake.clock().tzinfo is not None


def test_a_folder_or_an_envelope_that_is_none_is_told(tmp_path: Path) -> None:
    for environ in (
        {UPLOADS: str(tmp_path / "gone")},
        {UPLOADS: str(tmp_path), UPLOADS_FORM: "zip"},
    ):
        with pytest.raises(SetupError, match="no uploads"):
            intake_of(environ)
    refused = CliRunner().invoke(told, ["--uploads", str(tmp_path / "gone")])
    assert refused.exit_code == 2
    chosen = CliRunner().invoke(told, ["--uploads", str(tmp_path), "--envelope", "openssl"])
    assert chosen.output == f"{tmp_path} openssl\n"
