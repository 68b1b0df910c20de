"""Engines of containers: what they are asked, what they answer, what the kernel counts."""

import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from certain import sure

from heldout.board.log.manifest import Program, check_program
from heldout.board.organiser.containers import (
    ContainerLimits,
    Engine,
    Image,
    Job,
    Mount,
    Running,
    Usage,
    check_limits,
    find_engine,
    find_image,
    list_flags,
    started,
    write_filter,
)
from heldout.board.organiser.running import find_meter, read_energy, round_cost
from heldout.cli.context import ended_in_order
from heldout.errors import InputError

IMAGE = "demo@sha256:" + "1" * 64
LIMITS = ContainerLimits(memory=64, disk=8, processors=2, processes=32, seconds=60, file_bytes=1000)
DOCKER = {"MemoryLimit": True, "SwapLimit": True, "CpuCfsQuota": True, "PidsLimit": True}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Any]:
    """An engine that answers each command with a text, or fails."""

    def engine(version: str = "podman version 5.1.0", **answers: object) -> Any:
        lines = ["#!/bin/sh", 'case "$1" in', f"--version) echo '{version}' ;;"]
        for number, (command, answer) in enumerate(answers.items()):
            file = tmp_path / f"answer-{number}"
            file.write_text(answer if isinstance(answer, str) else json.dumps(answer))
            lines.append(f"{command}) cat {file} ;;")
        script = tmp_path / "engine"
        script.write_text("\n".join([*lines, "*) echo broken >&2; exit 125 ;;", "esac", ""]))
        script.chmod(0o755)
        return find_engine(str(script), "--device x", {"PATH": os.defpath, "https_proxy": "h"})

    return engine


def code_of(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(InputError) as error:
        call()
    (problem,) = error.value.problems
    return problem.code, problem.found


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("/no/such/engine", "no such program"),
        ("false", "--version fails: "),
        ("printf ''", "it says no version"),
        ("podman 'open", '"podman \'open"'),
    ],
)
def test_an_engine_that_is_none(words: str, found: str) -> None:
    assert code_of(lambda: find_engine(words, "", dict(os.environ))) == ("container-engine", found)


def test_an_engine_says_its_version(make: Callable[..., Any]) -> None:
    assert str(make()) == "podman 5.1.0 --device x"
    assert make("Docker version 28.2.2, build e6534b4").version == "docker 28.2.2"


@pytest.mark.parametrize(
    ("version", "info", "missing"),
    [
        ("podman version 5", {"host": {"cgroupControllers": ["cpu"]}}, "memory, pids"),
        ("podman version 5", {"host": {}}, "memory, cpu, pids"),
        ("Docker version 28", {**DOCKER, "SwapLimit": False}, "SwapLimit"),
        ("Docker version 28", {}, "MemoryLimit, SwapLimit, CpuCfsQuota, PidsLimit"),
    ],
)
def test_without_limits(make: Callable[..., Any], version: str, info: object, missing: str) -> None:
    engine = make(version, info=info)
    expected = ("container-limits", f"an engine without limits of {missing}")
    assert code_of(lambda: check_limits(engine)) == expected


def test_an_engine_with_limits(make: Callable[..., Any]) -> None:
    check_limits(make(info={"host": {"cgroupControllers": ["cpu", "memory", "pids"]}}))
    check_limits(make("Docker version 28", info=DOCKER))
    assert code_of(lambda: check_limits(make(info="nonsense")))[0] == "container-engine"
    assert code_of(lambda: check_limits(make())) == ("container-engine", 'info fails: "broken"')


def test_an_image_is_found_by_its_digest_or_not_at_all(make: Callable[..., Any]) -> None:
    program = Program(image=IMAGE)
    found = [{"Id": "a1", "Config": {"Cmd": ["rank"], "Volumes": {"/data": {}, "/data/": {}}}}]
    assert find_image(make(image=found), program) == Image(id="a1", volumes=("/data",))
    assert code_of(lambda: find_image(make(), program))[0] == "image-missing"
    for nonsense in ("", "[]", "[1]", '[{"Config": {}}]'):
        engine = make(image=nonsense)
        assert code_of(partial(find_image, engine, program))[0] == "container-engine"


@pytest.mark.parametrize(
    "path",
    [
        *("/data:rw,size=9g", "/a/../proc", "/output", "/output/", "/output/dev.run", "/queries/x"),
        "/output//dev.run",
    ],
)
def test_a_volume_that_would_hide_what_a_program_gets(make: Callable[..., Any], path: str) -> None:
    hostile = [{"Id": "a1", "Config": {"Cmd": ["rank"], "Volumes": {path: {}}}}]
    code, found = code_of(lambda: find_image(make(image=hostile), Program(image=IMAGE)))
    assert (code, found) == ("image-volume", f'a volume at "{path}"')


def test_an_image_without_a_command_needs_one(make: Callable[..., Any]) -> None:
    engine = make(image=[{"Id": "a1", "Config": {"Env": ["A=b"]}}])
    code, found = code_of(lambda: find_image(engine, Program(image=IMAGE)))
    assert code == "program-failed"
    assert found == "no command: neither the image nor the submission names one"
    assert find_image(engine, Program(image=IMAGE, command=("rank",))).id == "a1"
    entry = [{"Id": "a1", "Config": {"Entrypoint": ["rank"]}}]
    assert find_image(make(image=entry), Program(image=IMAGE)).id == "a1"


def test_podman_s_filter_allows_no_namespaces(make: Callable[..., Any], tmp_path: Path) -> None:
    allow, refuse = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"
    own = {
        "defaultAction": refuse,
        "archMap": ["x"],
        "syscalls": [
            {
                "names": ["read", "clone", "clone3", "mount", "unshare", "socketcall"],
                "action": allow,
            },
            {"names": ["socket"], "action": allow, "args": [{"index": 0, "value": 16}]},
            {"names": ["setns", "chroot"], "action": refuse, "excludes": {"caps": ["A"]}},
        ],
    }
    profile = tmp_path / "seccomp.json"
    profile.write_text(json.dumps(own))
    security = {"security": {"seccompProfilePath": str(profile)}}
    file = sure(write_filter(make(info={"host": security}), tmp_path / "ours.json"))
    ours = json.loads(file.read_text())
    assert (ours["defaultAction"], ours["defaultErrnoRet"], ours["archMap"]) == (refuse, 38, ["x"])
    first, second, clone, *sockets = ours["syscalls"]
    assert first == {"names": ["read"], "action": allow}
    assert second["names"] == ["chroot"]
    assert clone["names"] == ["clone"]
    assert [a["op"] for a in clone["args"]] == ["SCMP_CMP_MASKED_EQ"]
    assert all(clone["args"][0]["value"] & flag for flag in (0x10000000, 0x20000, 0x40000000))
    assert not clone["args"][0]["value"] & 0x3D0F00  # those of a thread
    families = {rule["args"][0]["value"] for rule in sockets}
    assert families == {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16}
    assert {rule["args"][0]["op"] for rule in sockets} == {"SCMP_CMP_EQ"}


def test_without_a_filter_the_engine_s_own_holds(make: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "ours.json"
    (tmp_path / "broken").write_text('{"syscalls": [{}]}')
    for path in (None, "", str(tmp_path / "none"), str(tmp_path / "broken")):
        engine = make(info={"host": {"security": {"seccompProfilePath": path}}})
        assert write_filter(engine, file) is None
    assert write_filter(make(info={}), file) is None
    assert write_filter(make("Docker version 28"), file) is None
    assert not file.exists()


@pytest.mark.parametrize(
    ("says", "code"),
    [
        (
            "echo 'WARNING: Your kernel does not support swap limit' >&2; echo $id",
            "container-limits",
        ),
        ("echo no such volume >&2; exit 125", "container-engine"),
        ("echo created", "container-engine"),
    ],
)
def test_a_container_that_cannot_be_made_as_asked_for(tmp_path: Path, says: str, code: str) -> None:
    script, gone = tmp_path / "engine", tmp_path / "gone"
    lines = ("#!/bin/sh", f"id={'a' * 64}", 'case "$1" in', "--version) echo podman version 5 ;;")
    script.write_text("\n".join([*lines, f"create) {says} ;;", f"rm) echo $@ > {gone} ;;", "esac"]))
    script.chmod(0o755)
    engine = find_engine(str(script), "", {"PATH": os.defpath})
    job = Job(image=Image(id="a1"), command=["rank"], mounts=(), limits=LIMITS, label="v")

    def start() -> None:
        with started(engine, job):
            pytest.fail("it was started")

    assert code_of(start)[0] == code
    assert gone.exists() == (code == "container-limits")


def test_the_flags_of_a_container(make: Callable[..., Any]) -> None:
    mounts = [Mount(source=Path("/q"), target="/queries")]
    mounts += [Mount(source=Path("/o/dev.run"), target="/output/dev.run", writable=True)]
    image = Image(id="a1", volumes=("/data",))
    job = Job(image=image, command=["rank"], mounts=mounts, limits=LIMITS, label="v")
    assert not [flag for flag in list_flags(make(), job) if "seccomp" in flag]
    job = replace(job, seccomp=Path("/f"))
    flags = list_flags(make(), job)
    assert flags[:2] == ["--label", "heldout.vault=v"]
    for flag in (
        *("--network=none", "--read-only", "--user=65532:65532", "--cap-drop=all"),
        *("--security-opt=no-new-privileges", "--pull=never", "--no-healthcheck"),
        *("--security-opt=seccomp=/f", "--env=HTTPS_PROXY=", "--env=no_proxy="),
        *("--memory=64m", "--memory-swap=64m", "--cpus=2", "--pids-limit=32"),
        *("--ulimit=fsize=1000:1000", "--log-driver=none", "--timeout=180"),
        "--tmpfs=/data:rw,nosuid,nodev,size=8m,mode=1777",
        *("--volume=/q:/queries:ro,Z", "--volume=/o/dev.run:/output/dev.run:rw,Z"),
    ):
        assert flag in flags
    assert flags[-2:] == ["--device", "x"]
    assert set(flags) - set(list_flags(make("Docker version 28"), job)) == {"--timeout=180"}


def write_groups(folder: Path, lines: str, files: dict[str, str]) -> Usage:
    (folder / "proc" / "7").mkdir(parents=True)
    (folder / "proc" / "7" / "cgroup").write_text(lines)
    for name, text in files.items():
        (folder / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "groups" / name).write_text(text)
    usage = Usage(proc=folder / "proc", groups=folder / "groups")
    usage.read(7)
    return usage


NEW = {
    "pod/memory.max": "67108864\n",
    "pod/pids.max": "32\n",
    "pod/in/memory.max": "max\n",
    "pod/in/pids.max": "max\n",
    "pod/in/memory.peak": "10485760\n",
    "pod/in/cpu.stat": "usage_usec 1500000\nuser_usec 1\n",
    "pod/in/memory.events": "low 0\noom 1\noom_kill 0\n",
}


def test_what_the_kernel_counts(tmp_path: Path) -> None:
    usage = write_groups(tmp_path, "0::/pod/in\n", NEW)
    assert usage.processor_seconds == pytest.approx(1.5)
    assert usage.memory_mib == 10.0
    assert usage.checked
    assert usage.is_within(LIMITS)
    assert not usage.killed
    for strict in ({"memory": 32}, {"processes": 16}):
        limits = ContainerLimits(**{**{n: getattr(LIMITS, n) for n in LIMITS.__slots__}, **strict})
        assert not usage.is_within(limits)


def test_what_was_killed_for_memory(tmp_path: Path) -> None:
    files = {**NEW, "pod/in/memory.events": "oom 1\noom_kill 2\n"}
    assert write_groups(tmp_path, "0::/pod/in\n", files).killed


def test_a_container_that_nothing_limits(tmp_path: Path) -> None:
    files = {"pod/memory.max": "max\n", "pod/pids.max": "max\n"}
    usage = write_groups(tmp_path, "0::/pod\n", files)
    assert usage.checked
    assert not usage.is_within(LIMITS)


@pytest.mark.parametrize("lines", ["0::/\n", "nonsense"])
def test_what_ended_or_is_not_known_gives_no_number(tmp_path: Path, lines: str) -> None:
    usage = write_groups(tmp_path, lines, {"memory.max": "max"})
    assert (usage.processor_seconds, usage.memory_mib, usage.checked) == (None, None, False)


def test_what_stays_at_the_top_is_limited_by_nothing(tmp_path: Path) -> None:
    usage = write_groups(tmp_path, "0::/\n", {"memory.peak": "1"})
    for _ in range(9):
        usage.read(7)
    assert usage.checked
    assert not usage.is_within(LIMITS)


@pytest.mark.parametrize(
    ("values", "energy"),
    [([b"null", b"null"], None), ([], None), ([b"1800000", "1800000"], 1.0), ([b"0"], None)],
)
def test_energy_where_there_is_a_counter(values: list[object], energy: float | None) -> None:
    assert read_energy(values) == energy


def test_a_tracker_of_energy_is_asked_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("CPU", "RAM", "GPU")
    measures = SimpleNamespace(**{f"{name}_ENERGY_SYSTEM_JOULES": name for name in names})
    results: dict[str, Any] = {}

    class Tracking:
        def __init__(self, wanted: list[str]) -> None:
            assert wanted == list(names)

        def __enter__(self) -> dict[str, Any]:
            return results

        def __exit__(self, *_: object) -> None:
            results["CPU"] = SimpleNamespace(value=b"3600000")

    tracker = SimpleNamespace(Measure=measures, tracking=Tracking)
    monkeypatch.setitem(__import__("sys").modules, "tirex_tracker", tracker)
    meter = sure(find_meter())
    with meter() as spent:
        assert spent() is None
    assert spent() == 1.0


# What stands in the metadata.


@pytest.mark.parametrize(
    "program",
    [
        None,
        {"image": IMAGE},
        {"image": IMAGE, "command": ["rank", "--fast"]},
        {"image": f"localhost:5000/a-b/c.d:v1@{IMAGE.partition('@')[2]}"},
    ],
)
def test_a_program_in_the_metadata(program: object) -> None:
    assert not [*check_program(program, path="p")]
    msgspec.convert(program, Program | None)


@pytest.mark.parametrize(
    ("program", "place"),
    [
        ("demo", "p"),
        ({}, "p.image"),
        ({"image": "demo"}, "p.image"),
        ({"image": "demo:latest"}, "p.image"),
        ({"image": f"--privileged@{IMAGE.partition('@')[2]}"}, "p.image"),
        ({"image": IMAGE + "0"}, "p.image"),
        ({"image": IMAGE, "command": "rank"}, "p.command"),
        ({"image": IMAGE, "command": [""]}, "p.command"),
        ({"image": IMAGE, "command": ["a\nb"]}, "p.command"),
        ({"image": IMAGE, "command": ["a"] * 65}, "p.command"),
        ({"image": IMAGE, "port": 8080}, "p"),
    ],
)
def test_what_is_no_program(program: object, place: str) -> None:
    assert {problem.path for problem in check_program(program, path="p")} == {place}


def running_for(seconds: float, usage: Usage) -> Running:
    """A container of which no process is known, as it stands after a time."""
    process: Any = SimpleNamespace(poll=lambda: None)
    engine = Engine(words=("podman",))
    given: dict[str, Any] = {"engine": engine, "id": "a", "process": process, "tail": bytearray()}
    given |= {"reader": threading.Thread(), "usage": usage}
    return Running(**given, limits=LIMITS, began=0.0, clock=lambda: seconds)


def test_a_container_whose_limits_cannot_be_read_is_ended(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    unknown = Usage(proc=tmp_path)
    running_for(11, unknown).look()  # a machine that shows no groups of anything
    (tmp_path / "self" / "cgroup").touch()
    running_for(9, unknown).look()
    assert code_of(running_for(11, unknown).look) == (
        "container-limits",
        "a container whose control group cannot be read",
    )
    over = running_for(61, Usage(proc=tmp_path / "none"))
    assert over.left == -1
    assert code_of(over.look) == ("program-time", "a program that still runs after 61 s")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_call_in_order(name: str) -> None:
    one = signal.Signals[name]
    before = signal.signal(one, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), ended_in_order():
            os.kill(os.getpid(), one)
        assert signal.getsignal(one) is signal.SIG_DFL
        signal.signal(one, signal.SIG_IGN)  # nohup
        with ended_in_order():
            os.kill(os.getpid(), one)
    finally:
        signal.signal(one, before)


@pytest.mark.parametrize(("number", "said"), [(0.0, 0.0), (1.2345, 1.2), (98765.4, 99000.0)])
def test_costs_have_no_digits_to_write_into(number: float, said: float) -> None:
    assert round_cost(number) == said
