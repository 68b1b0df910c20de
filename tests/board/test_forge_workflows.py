"""The workflows that a board's forge runs: no secret, nothing of the pull request is run."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeGuard

import pytest
import yaml
from certain import sure

from heldout.board.rules import template
from heldout.board.rules.spec import ForgeKind, ForgeSpec
from heldout.board.store.arrivals import find_request
from heldout.board.store.git import Author, Git
from heldout.errors import StoreError
from heldout.ids import SubmissionId

AT = datetime(2026, 11, 2, 10, tzinfo=UTC)
SOMEONE = Author(name="Someone", email="someone@here")
ONE = SubmissionId("20261102-one")
ADDRESS = "git+https://example.org/heldout.git@v0.1.0"
ACTIONS: tuple[ForgeKind, ...] = ("github", "forgejo")
SEALED = {
    f"submissions/{ONE}{ending}": b"sealed"
    for ending in (".tar.age", "-metadata.json.age", ".key.age")
}


def parse(kind: ForgeKind) -> Mapping[Any, Any]:
    table = yaml.safe_load(template.format_workflow(kind, install=ADDRESS))
    assert isinstance(table, dict)
    return table


def walk(value: object) -> Iterator[object]:
    """Every key and value of a document."""
    yield value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


def scripts(kind: ForgeKind) -> list[str]:
    """What a runner gives to a shell."""
    table = parse(kind)
    if kind == "gitlab":
        return ["\n".join(table["form"]["script"])]
    return [step["run"] for step in table["jobs"]["form"]["steps"]]


@pytest.mark.parametrize("kind", template.WORKFLOW_PATHS)
def test_a_workflow_has_no_secret_and_no_writing_right(kind: ForgeKind) -> None:
    text = template.format_workflow(kind, install=ADDRESS).decode()
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for word in ("pull_request_target", "workflow_run", "secrets", "token", "write", "CI_JOB"):
        assert word not in code.lower() if word.islower() else word not in code
    assert "HELDOUT_" not in code


@pytest.mark.parametrize("kind", ACTIONS)
def test_an_action_workflow_runs_on_pull_requests_and_may_only_read(kind: ForgeKind) -> None:
    table = parse(kind)
    assert table[True] == "pull_request"  # YAML 1.1 reads the key `on` as a truth value
    assert table["permissions"] == {"contents": "read"}
    (job,) = table["jobs"].values()
    assert "permissions" not in job
    assert job["timeout-minutes"] <= 15


def test_the_pipeline_of_gitlab_runs_on_merge_requests_and_takes_no_sources() -> None:
    table = parse("gitlab")
    assert table["form"]["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "merge_request_event"'}]
    for job in ("pages", "due"):
        (rule,) = table[job]["rules"]
        assert '$CI_PIPELINE_SOURCE != "merge_request_event"' in rule["if"]
        assert "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH" in rule["if"]
    assert {table[job]["variables"]["GIT_STRATEGY"] for job in ("form", "pages", "due")} == {"none"}


@pytest.mark.parametrize("kind", template.WORKFLOW_PATHS)
def test_no_action_of_others_is_run(kind: ForgeKind) -> None:
    """So there is none to pin, and no checkout that could leave a token behind."""
    assert not {"uses", "include", "services"} & set(filter(_is_text, walk(parse(kind))))


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


@pytest.mark.parametrize("kind", template.WORKFLOW_PATHS)
def test_no_text_of_the_request_gets_into_a_shell(kind: ForgeKind) -> None:
    assert not any("${{" in script for script in scripts(kind))
    text = template.format_workflow(kind, install=ADDRESS).decode()
    told = set(re.findall(r"github\.event\.[\w.]+", text))
    allowed = {"github.event.pull_request.number", "github.event.pull_request.base.sha"}
    assert told <= allowed
    for script in scripts(kind):  # every variable is quoted
        assert not re.search(r'(?<!["$+/A-Z_:])\$[A-Z_]+(?=\s|$)', script)


@pytest.mark.parametrize("kind", template.WORKFLOW_PATHS)
def test_heldout_is_installed_from_its_address_and_never_by_name(kind: ForgeKind) -> None:
    text = template.format_workflow(kind, install=ADDRESS).decode()
    assert f'install --quiet "{ADDRESS}"' in text
    assert "@INSTALL@" not in text
    assert "install heldout\n" not in text
    assert "heldout==" not in text
    forge = ForgeSpec(kind=kind, url="https://git.example.org", project="owner/board")
    assert template.workflow_files(forge, install=ADDRESS) == {
        template.WORKFLOW_PATHS[kind]: text.encode()
    }
    assert template.workflow_files(forge, install="") == {}


def page_table(kind: ForgeKind) -> Mapping[Any, Any]:
    table = yaml.safe_load(template.format_page_workflow(kind, install=ADDRESS))
    assert isinstance(table, dict)
    return table


def test_the_page_s_workflow_runs_for_the_main_branch_alone_and_every_day() -> None:
    triggers = page_table("github")[True]
    assert triggers.keys() == {"push", "schedule", "workflow_dispatch"}
    assert triggers["push"] == {"branches": ["main"]}
    assert len(triggers["schedule"]) == 1


def test_only_the_job_that_publishes_may_write_and_it_runs_nothing_of_the_board() -> None:
    table = page_table("github")
    assert table["permissions"] == {}
    rights = {name: job["permissions"] for name, job in table["jobs"].items()}
    assert rights == {
        "build": {"contents": "read"},
        "publish": {"pages": "write", "id-token": "write"},
        "due": {},
    }
    steps = table["jobs"]["publish"]["steps"]
    assert [step["run"].split()[0] for step in steps if "run" in step] == ["echo"]


def test_the_actions_of_the_page_s_workflow_are_pinned() -> None:
    text = template.format_page_workflow("github", install=ADDRESS).decode()
    used = re.findall(r"uses: (\S+)", text)
    assert len(used) == 2
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one) for one in used)


@pytest.mark.parametrize("kind", template.PAGE_PATHS)
def test_the_page_is_built_without_a_secret_from_the_stated_heldout(kind: ForgeKind) -> None:
    text = template.format_page_workflow(kind, install=ADDRESS).decode()
    assert "@INSTALL@" not in text
    for word in ("secrets", "HELDOUT_", "CI_JOB_TOKEN", "github.token", "pull_request"):
        assert word not in text
    runs = [one for one in walk(page_table(kind)) if _is_text(one) and "heldout" in one]
    assert not any("${{" in one for one in runs)
    forge = ForgeSpec(kind=kind, url="https://git.example.org", project="owner/board")
    assert template.page_files(forge, install=ADDRESS) == {template.PAGE_PATHS[kind]: text.encode()}
    assert template.page_files(forge, install="") == {}
    assert template.is_generated_page(kind, text.encode())
    assert not template.is_generated_page(
        kind, text.replace("3.12", "3.13").replace("24.04", "22").encode()
    )


# run for true, with a `heldout` that writes down how it was called


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A forge's copy of a board, with two requests: honest and hostile."""
    monkeypatch.setenv("HOME", str(tmp_path))
    board = Git(tmp_path / "original")
    board.root.mkdir()
    board.init()
    (board.root / "README.md").write_text("a board")
    board.commit_paths(["README.md"], message="x", author=SOMEONE, at=AT)
    run(tmp_path, "git", "init", "-q", "--bare", "-b", "main", "lab/board.git")
    server = tmp_path / "lab" / "board.git"
    board.push(str(server), "main:main")
    touch = f"#!/bin/sh\ntouch {tmp_path}/evil\n".encode()
    evil = {"setup.py": touch, ".gitattributes": b"* filter=evil\n", "board.toml": b"evil"}
    for number, files in ((1, SEALED), (2, {**SEALED, **evil})):
        tip = board.commit_on(f"p{number}", "main", files, message="m", author=SOMEONE, at=AT)
        for ref in (f"refs/pull/{number}/head", f"refs/merge-requests/{number}/head"):
            board.push(str(server), f"{tip}:{ref}")
    return server


def run(folder: Path, *command: str, **more: str) -> str:
    result = subprocess.run(
        command, cwd=folder, capture_output=True, check=False, env={**os.environ, **more}
    )
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout.decode()


def stand_in(tmp_path: Path) -> Path:
    """A folder with a `python3` whose `venv` makes a pip and a heldout that only take notes."""
    tools = tmp_path / "tools"
    tools.mkdir()
    note = f'#!/bin/sh\necho "$(basename "$0")" "$@" "in $PWD" >> {tmp_path}/notes\n'
    (tools / "note").write_text(note)
    make = '#!/bin/sh\nmkdir -p "$3/bin"\nfor tool in pip heldout\n'
    make += f'do cp {tools}/note "$3/bin/$tool"\ndone\n'
    (tools / "python3").write_text(make)
    for tool in tools.iterdir():
        tool.chmod(0o755)
    return tools


def run_workflow(kind: ForgeKind, number: int, server: Path, tmp_path: Path) -> Path:
    """Run a workflow's shell as a runner does; gives the clone that it made."""
    base = run(server, "git", "rev-parse", "main").strip()
    folder = "merge-requests" if kind == "gitlab" else "pull"
    values = {
        "BOARD": f"file://{server}",
        "BASE": "origin/main" if kind == "gitlab" else base,
        "HEAD": f"refs/{folder}/{number}/head",
        "RUNNER_TEMP": str(tmp_path),
        "PATH": f"{stand_in(tmp_path)}:{os.environ['PATH']}",
    }
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    bash = str(shutil.which("bash"))
    for script in scripts(kind):
        here = script.replace("/tmp/", f"{tmp_path}/")  # noqa: S108 - what is replaced
        run(workspace, bash, "-e", "-o", "pipefail", "-c", here, **values)
    assert list(workspace.iterdir()) == []
    return tmp_path / "board"


@pytest.mark.parametrize("kind", template.WORKFLOW_PATHS)
def test_a_workflow_fetches_data_alone(kind: ForgeKind, server: Path, tmp_path: Path) -> None:
    clone = run_workflow(kind, 2, server, tmp_path)
    assert sorted(path.name for path in clone.iterdir()) == [".git", "README.md"]
    assert not (tmp_path / "evil").exists()
    pip, heldout = (tmp_path / "notes").read_text().splitlines()
    assert pip.startswith(f"pip install --quiet {ADDRESS} ")
    base, head = re.fullmatch(r"heldout check --form (\S+) (\S+) in (?:\S+)", heldout).groups()  # type: ignore[union-attr]
    assert heldout.endswith(f"in {clone}")
    arrival = sure(find_request(Git(clone), "age", base=base, head=head))
    assert {problem.code for problem in arrival.problems} == {"foreign-change"}


@pytest.mark.parametrize("kind", template.WORKFLOW_PATHS)
def test_an_honest_request_has_nothing_wrong(kind: ForgeKind, server: Path, tmp_path: Path) -> None:
    clone = run_workflow(kind, 1, server, tmp_path)
    folder = "merge-requests" if kind == "gitlab" else "pull"
    head = f"refs/{folder}/1/head"
    arrival = sure(find_request(Git(clone), "age", base="origin/main", head=head))
    assert (arrival.id, arrival.problems) == (ONE, ())


@pytest.mark.parametrize("head", ["refs/pull/9/head", "main", "refs/pull/*/head", "--all", ""])
def test_what_is_no_fetched_request_is_told(server: Path, head: str) -> None:
    with pytest.raises(StoreError, match="no pull request at"):
        find_request(Git(server), "age", base="main", head=head)
