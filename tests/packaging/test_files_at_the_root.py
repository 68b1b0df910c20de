"""Container, citation and hooks: what they name exists. No image is built here."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import Command, Context

from heldout.cli.program import main

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONTAINER = (ROOT / "Containerfile").read_text("utf-8")


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
    if name == "--help":
        return
    command = main.get_command(Context(main), name)
    assert isinstance(command, Command)
    options = {opt for parameter in command.params for opt in parameter.opts}
    assert {one for one in arguments if one.startswith("--")} <= options


def test_the_health_check_asks_for_a_file_that_is_served() -> None:
    (name,) = re.findall(r"8000/static/([\w.-]+)", CONTAINER)
    assert (ROOT / "src/heldout/web/static" / name).is_file()


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
