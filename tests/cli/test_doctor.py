"""`heldout doctor`: what it tells of machines that have everything, little, or something broken."""

import json
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement

import calling
from heldout import installation
from heldout.board.organiser import containers
from heldout.installation import PARTS, PartState, find_parts
from heldout.trec.scanning import scanners

call = partial(calling.call, "doctor")

module = import_module("heldout.cli.doctor")
ROOT = Path(__file__).parents[2]
OPTIONAL = [part.name for part in PARTS if part.group != "base"]


def find(name: str, environ: dict[str, str]) -> PartState:
    return next(found for found in find_parts(environ) if found.part.name == name)


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No container engine of this machine is asked: that takes longer than all the rest."""
    monkeypatch.delenv("HELDOUT_ENGINE", raising=False)
    monkeypatch.setattr(containers, "ENGINES", ())


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make packages look as if they were not installed."""

    def hide_packages(*names: str) -> None:
        def version(name: str) -> str:
            if name in names:
                raise metadata.PackageNotFoundError(name)
            return "1.0"

        def find_spec(name: str) -> object:
            return None if name.endswith("._scan") and "compiled" in names else name

        monkeypatch.setattr(metadata, "version", version)
        monkeypatch.setattr(installation, "find_spec", find_spec)

    return hide_packages


# the table


def test_the_table_has_every_dependency_and_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {"base": project["dependencies"], **project["optional-dependencies"]}
    del extras["test"], extras["test-core"], extras["docs"]
    named = {
        extra: {
            one.name
            for one in map(Requirement, requirements)
            if one.marker is None or one.marker.evaluate()  # this Python needs it
        }
        for extra, requirements in extras.items()
    }
    packages = [part for part in PARTS if part.kind == "package"]
    assert {part.name for part in packages} == set().union(*named.values())
    for part in packages:
        extra = re.search(r"heldout\[(\w+)\]", part.get)
        assert part.name in named[extra[1] if extra else "base"]


# machines


def test_nothing_optional(hide: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    hide(*OPTIONAL)
    monkeypatch.setenv("PATH", "")
    result = call()
    assert result.exit_code == 0, result.output
    assert result.output.startswith("All that scoring runs needs is here; 30 of 30 ")
    for extra in ("fast", "cluster", "png", "web", "rankers", "neural", "timestamps", "measures"):
        assert f"pip install 'heldout[{extra}]'\n" in result.output
    assert "apt install git" in result.output
    document = json.loads(call("--json").output)
    assert document["ok"] is True
    states = {part["name"]: part["state"] for part in document["parts"]}
    assert {states[name] for name in OPTIONAL} == {"missing"}


def test_everything(hide: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    hide()
    ready = [PartState(part=part, state="ready", version="1.0") for part in PARTS]
    monkeypatch.setattr(module, "find_parts", lambda _: ready)
    result = call()
    assert result.exit_code == 0
    assert result.output.startswith(
        "All that scoring runs needs is here, and no optional part is missing.\n"
    )
    assert "missing   " not in result.output


def test_a_missing_dependency_is_the_answer_no(hide: Callable[..., None]) -> None:
    hide("scipy", "numpy", "compiled")
    result = call()
    assert result.exit_code == 1
    assert result.output.startswith(
        "Runs cannot be scored here: numpy is missing, scipy is missing.\n"
    )
    done = call("--json")
    assert done.exit_code == 1
    assert json.loads(done.output)["ok"] is False


def test_a_package_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(wanted: str) -> object:
        if wanted == "numpy":
            raise ImportError("wrong ELF class")
        return import_module(wanted)

    monkeypatch.setattr(installation, "import_module", fail)
    result = call()
    assert "broken    numpy: it does not load: wrong ELF class\n" in result.output
    assert result.exit_code == 1


def _fail_to_load(name: str) -> object:
    raise ImportError("undefined symbol", name=name)


def _load_an_old_one(_: str) -> object:
    return SimpleNamespace(INTERFACE=0)


@pytest.mark.parametrize(
    ("load", "why"),
    [(_load_an_old_one, "another version of heldout"), (_fail_to_load, "undefined symbol")],
)
def test_a_broken_scanner_is_told_and_not_used(
    load: Callable[[str], object], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("heldout.trec.scanning._scan")

    def only_the_scanner(name: str) -> object:
        return load(name) if name == "heldout.trec.scanning._scan" else import_module(name)

    monkeypatch.setattr(installation, "import_module", only_the_scanner)
    monkeypatch.setattr(scanners, "import_module", only_the_scanner)
    assert scanners.find_scanner() == "numpy"
    result = call()
    assert result.exit_code == 0
    assert re.search(f"broken +compiled: .*{why}", result.output)
    assert not find("compiled", {}).stops


# programs


def make_program(folder: Path, name: str, text: str) -> dict[str, str]:
    """An environment that has only this program."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return {"PATH": str(folder)}


def test_programs_tell_their_versions(tmp_path: Path) -> None:
    environ = make_program(tmp_path, "git", "echo git version 9.8; echo 1.2.3")
    found = find("git", environ)
    assert (found.state, found.version) == ("ready", "9.8")
    assert find("git", {"PATH": ""}).state == "missing"
    found = find("git", make_program(tmp_path, "git", "echo none of your business"))
    assert (found.state, found.version) == ("ready", None)


@pytest.mark.parametrize(
    ("version", "state"),
    [("2.25.4", "broken"), ("2.26.0", "ready"), ("2.39.5 (Apple Git-154)", "ready")],
)
def test_a_git_that_is_too_old_is_told(version: str, state: str, tmp_path: Path) -> None:
    found = find("git", make_program(tmp_path, "git", f"echo 'git version {version}'"))
    assert (found.state, found.version) == (state, version.split(maxsplit=1)[0])
    assert ("older than 2.26" in found.why) == (state == "broken")


@pytest.mark.parametrize("text", ["exit 3", "sleep 5", "kill -9 $$"])
def test_programs_that_do_not_run(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "_PATIENCE", 0.2)
    found = find("git", make_program(tmp_path, "git", f"exec {text}" if " 5" in text else text))
    assert found.state == "broken"
    assert found.why.startswith("it does not run: ")
    assert not found.stops


ENGINE = """case "$1" in
--version) echo podman version 5.4.2 ;;
info) echo '{"host": {"cgroupControllers": [%s]}}' ;;
import) test -s "$2" && echo sha256:b1 ;;
create) echo aaaaaaaaaaaaaaaa ;;
container) case "$4" in *Pid*) echo 0 ;; *) echo exited 0 false ;; esac ;;
rm|rmi) echo "$@" >> "$0.gone" ;;
esac"""
LIMITED = ENGINE % '"cpu", "memory", "pids"'
STARTS_NONE = (
    LIMITED.replace("echo exited", "echo created").removesuffix("esac")
    + "start) echo crun: setrlimit: Operation not permitted >&2; exit 126 ;;\nesac"
)


@pytest.mark.parametrize(
    ("text", "state", "why"),
    [
        (LIMITED, "ready", ""),
        (ENGINE % '"cpu"', "broken", "an engine without limits of memory, pids"),
        ("echo cannot connect >&2; exit 1", "broken", '--version fails: "cannot connect"'),
    ],
)
def test_what_runs_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, state: str, why: str
) -> None:
    monkeypatch.setattr(containers, "ENGINES", ("podman",))
    found = find("podman or docker", make_program(tmp_path, "podman", text))
    assert (found.state, found.why) == (state, why)
    assert found.version == ("podman 5.4.2" if state == "ready" else None)


def test_what_runs_containers_by_another_name(tmp_path: Path) -> None:
    environ = make_program(tmp_path, "engine", LIMITED)
    assert find("podman or docker", environ).state == "missing"
    named = {**environ, "HELDOUT_ENGINE": str(tmp_path / "engine")}
    assert find("podman or docker", named).state == "ready"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (STARTS_NONE, 'could not be started: "crun: setrlimit: Operation not permitted". Perhaps'),
        (LIMITED.replace("echo exited 0", "echo exited 3"), "no container: exit code 3"),
        (LIMITED.replace("echo aaaaaaaaaaaaaaaa", "exit 125"), "no container: create fails"),
        (LIMITED.replace("echo sha256:b1", "exit 1"), "no container: import fails"),
    ],
)
def test_an_engine_that_starts_no_container_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    drain = containers._drain

    def drain_late(*given: Any) -> None:
        time.sleep(0.1)
        drain(*given)

    monkeypatch.setattr(containers, "_drain", drain_late)
    environ = make_program(tmp_path, "engine", text)
    found = find("podman or docker", {**environ, "HELDOUT_ENGINE": str(tmp_path / "engine")})
    assert (found.state, found.version, why in found.why) == ("broken", "podman 5.4.2", True)
    assert "HELDOUT_CONTAINER_FLAGS" in found.why
    gone = tmp_path / "engine.gone"
    removed = gone.read_text().split() if gone.exists() else []
    assert ("aaaaaaaaaaaaaaaa" in removed) == ("create" not in why and "import" not in why)
    assert ("sha256:b1" in removed) == ("import" not in why)


# what is printed


@pytest.mark.slow
def test_a_look_imports_no_extra() -> None:
    code = (
        "import sys; from heldout.cli import main\n"
        "try: main(['doctor'])\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'scipy', 'jinja2', 'resvg_py', 'bm25s', 'Stemmer', 'torch'}\n"
        "assert heavy.isdisjoint(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
