"""The workflows of this repository: valid, pinned, and of commands that exist."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
PINNED = re.compile(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
TOOLS = {"build", "cibuildwheel", "pip", "venv"}  # `python -m …`; installed by a step before
PROGRAMS = {"cyclonedx-py", "gh", "grep"}


def jobs(workflow: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(workflow.read_text("utf-8"))["jobs"]
    return found


def commands(workflow: Path) -> list[list[str]]:
    return [
        shlex.split(line)
        for job in jobs(workflow).values()
        for step in job.get("steps", ())
        for line in step.get("run", "").splitlines()
    ]


def exists(command: list[str]) -> bool:
    program, *arguments = command
    if program == "make":
        return arguments[0] in TARGETS
    if program == "bash":
        return (ROOT / arguments[0]).is_file()
    if program.endswith("python"):
        module = arguments[1] if arguments[0] == "-m" else None
        return module in TOOLS if module else (ROOT / arguments[0]).is_file()
    return program in PROGRAMS


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_each_command_exists(workflow: Path) -> None:
    assert [command for command in commands(workflow) if not exists(command)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_each_action_is_pinned_and_each_job_ends(workflow: Path) -> None:
    used = re.findall(r"uses: .*", workflow.read_text("utf-8"))
    local = [line for line in used if "uses: ./" in line]
    assert all((ROOT / line.partition("./")[2]).is_file() for line in local)
    assert [line for line in used if line not in local and not PINNED.search(line)] == []
    for job in jobs(workflow).values():
        assert "uses" in job or job["timeout-minutes"] <= 120


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_unless_a_job_says_why(workflow: Path) -> None:
    document = yaml.safe_load(workflow.read_text("utf-8"))
    assert document["permissions"] == {"contents": "read"}
    text = workflow.read_text("utf-8")
    assert len(re.findall(r": write\b", text)) == len(re.findall(r": write # \w", text))


def test_commands_that_are_not_there_are_noticed() -> None:
    wrong = [
        "make nothing",
        "python tools/nothing.py",
        "bash nothing",
        "python -m nothing",
        "curl x",
    ]
    assert not any(exists(shlex.split(line)) for line in wrong)


def test_every_supported_python_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    found = jobs(ROOT / ".github" / "workflows" / "ci.yml")
    tested = [*found["newest"]["strategy"]["matrix"]["python"], oldest]
    named = {
        line.rpartition(" ")[2]
        for line in project["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    }
    assert set(tested) == named
    assert {job["steps"][1]["with"]["python-version"] for job in found.values()} >= {oldest}
