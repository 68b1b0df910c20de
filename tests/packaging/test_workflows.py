"""The workflows of this repository: valid, pinned, and of commands that exist."""

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / "src/heldout/board/rules/templates").glob("*.yml"))
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
def test_each_local_workflow_exists_and_each_job_ends(workflow: Path) -> None:
    used = re.findall(r"uses: .*", workflow.read_text("utf-8"))
    local = [line for line in used if "uses: ./" in line]
    assert all((ROOT / line.partition("./")[2]).is_file() for line in local)
    for job in jobs(workflow).values():
        assert "uses" in job or job["timeout-minutes"] <= 120


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_unless_a_job_says_why(workflow: Path) -> None:
    document = yaml.safe_load(workflow.read_text("utf-8"))
    assert document["permissions"] == {"contents": "read"}
    text = workflow.read_text("utf-8")
    assert len(re.findall(r": write\b", text)) == len(re.findall(r": write # \w", text))


def test_the_job_that_may_publish_runs_nothing_else() -> None:
    for workflow in WORKFLOWS:
        for job in jobs(workflow).values():
            rights = job.get("permissions", {})
            if "id-token" in rights:
                assert rights == {"id-token": "write"}
                used = [step["uses"].partition("@")[0] for step in job["steps"]]
                assert used == ["actions/download-artifact", "pypa/gh-action-pypi-publish"]
                assert not any("run" in step for step in job["steps"])
            installs = "pip" in str(job.get("steps"))
            assert not (installs and set(rights.values()) - {"read"})
    assert jobs(ROOT / ".github" / "workflows" / "release.yml").keys() == {
        *("wheels", "sbom", "publish", "release")
    }


NODE24 = {
    "actions/checkout": 5,
    "actions/setup-python": 6,
    "actions/upload-artifact": 6,
    "actions/download-artifact": 7,
    "actions/upload-pages-artifact": 5,
    "actions/deploy-pages": 5,
}
"""Action -> its first major version that declares node24, or that uses one that does."""


@pytest.mark.parametrize("workflow", [*WORKFLOWS, *TEMPLATES], ids=lambda path: path.name)
def test_each_action_is_pinned_and_of_a_version_that_runners_still_run(workflow: Path) -> None:
    text = workflow.read_text("utf-8")
    used = [line for line in re.findall(r"uses: .*", text) if "uses: ./" not in line]
    assert [line for line in used if not PINNED.search(line)] == []
    for action, major in re.findall(r"uses: (\S+)@\w+ # v(\d+)", text):
        assert int(major) >= NODE24.get(action, 1), action
    assert "-latest" not in text


def test_ci_installs_what_is_missing_one_by_one_and_goes_on_without_what_cannot_be_had(
    tmp_path: Path,
) -> None:
    """A runner's image: docker and Chrome are there, no package is called chromium or age."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    here = tmp_path / "bin"
    here.mkdir()
    for name in ("bash", "dirname", "id", "df", "tail", "mktemp", "chmod", "rm", "nproc", "sh"):
        (here / name).symlink_to(str(shutil.which(name)))
    for name in ("cc", "git", "openssl", "google-chrome", "docker", "runc"):
        write_program(here / name, "exit 0")
    write_program(here / "sudo", '"$@"')
    write_program(here / "make", 'echo "make $*" >> log')
    write_program(tmp_path / ".venv/bin/python", "exit 0")
    write_program(here / "apt-get", 'echo "$@" >> log\ncase "$*" in *" age"*) exit 100 ;; esac')
    done = subprocess.run(
        [here / "bash", ".ci/run", "all"],
        cwd=tmp_path,
        env={"PATH": str(here)},
        capture_output=True,
        text=True,
        check=False,
    )
    asked = "install -y -qq --no-install-recommends"
    assert (done.returncode, done.stderr) == (0, "not installed: age\n")
    assert (tmp_path / "log").read_text().splitlines() == [
        "update -qq",
        f"{asked} age",
        "make .venv/ready",
        f"{asked} podman",
        f"{asked} busybox-static",
        "make test-all bench-smoke",
    ]


def write_program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


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
