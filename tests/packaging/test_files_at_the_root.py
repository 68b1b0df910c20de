"""Container, systemd unit, citation and hooks: what they name exists. No image is built here."""

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import Command, Context

from heldout.cli.program import main
from heldout.web.forms import make_application
from heldout.web.pages import Study

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONTAINER = (ROOT / "deploy/Containerfile").read_text("utf-8")
UNIT = ROOT / "deploy/heldout-serve.service"


def test_the_container_installs_extras_that_exist() -> None:
    named = {name for part in re.findall(r"\[(\w+)\]\"", CONTAINER) for name in part.split(",")}
    assert named
    assert named <= PROJECT["optional-dependencies"].keys()


def test_no_stage_ends_as_root_and_none_copies_more_than_the_sources() -> None:
    stages = re.split(r"^FROM ", CONTAINER, flags=re.MULTILINE)[1:]
    assert [stage.split()[2] for stage in stages] == ["build", "organiser", "serve"]
    for stage in stages[1:]:
        assert re.findall(r"^USER (\w+)", stage, re.MULTILINE)[-1] == "heldout"
    copied = (ROOT / ".containerignore").read_text("utf-8").splitlines()
    assert copied[1] == "*"
    kept = [line[1:] for line in copied if line.startswith("!")]
    assert all((ROOT / name).exists() for name in kept)
    licences = {path.split("/")[0] for path in PROJECT["license-files"]}
    assert {"src", "pyproject.toml", PROJECT["readme"], *licences} <= set(kept)


@pytest.mark.parametrize("line", re.findall(r"^CMD (\[.*\])", CONTAINER, re.MULTILINE))
def test_the_container_starts_commands_that_exist(line: str) -> None:
    name, *arguments = yaml.safe_load(line)
    if name != "--help":
        check_arguments(name, arguments)


def check_arguments(name: str, arguments: list[str]) -> None:
    """The program's own parser takes them; nothing is run."""
    command = main.get_command(Context(main), name)
    assert isinstance(command, Command)
    options = {opt for parameter in command.params for opt in parameter.opts}
    assert {one for one in arguments if one.startswith("--")} <= options


def test_the_health_check_asks_for_a_page_that_every_server_has() -> None:
    (path,) = re.findall(r"127.0.0.1:8000(/\w+)", CONTAINER)
    study = Study(name="any", contact="")
    assert path in {getattr(one, "path", "") for one in make_application(study, []).routes}


def test_the_unit_starts_a_command_that_exists() -> None:
    (line,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text("utf-8"), re.MULTILINE)
    program, name, *arguments = shlex.split(line)
    assert program.endswith("/heldout")
    check_arguments(name, arguments)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_reads_the_unit_and_finds_little_exposed(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    program = shutil.which("true") or "/bin/true"
    unit.write_text(UNIT.read_text("utf-8").replace("/opt/heldout/bin/heldout", program))
    for command in (["verify", "--man=no"], ["security", "--offline=yes", "--threshold=20"]):
        done = subprocess.run(
            ["systemd-analyze", *command, unit], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_the_citation_has_what_its_format_demands() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation.keys() >= {"cff-version", "message", "title", "authors"}
    assert citation["cff-version"] == "1.2.0"
    assert (citation["title"], citation["version"]) == (PROJECT["name"], PROJECT["version"])
    assert citation["license"] == PROJECT["license"].split(" AND ")[0]  # a list would mean "or"
    assert citation["authors"] == PROJECT["authors"]
    pages = re.findall(r"docs/\S+\.md", citation["message"])
    assert pages
    assert all((ROOT / page).is_file() for page in pages)


def test_each_hook_is_a_step_of_make_check() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for hook in local["hooks"]:
        tool, *arguments = shlex.split(hook["entry"].replace(" --force-exclude", ""))
        called = [tool.replace(".venv/bin", "$(BIN)"), *arguments]
        assert " ".join(called) in makefile
