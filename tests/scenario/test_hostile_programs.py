"""Hostile programs, each in a real container: what they get is an answer, and nothing is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from containers_here import Here, docker_here, podman_here, why_no_docker, why_no_podman
from lab import Patch

from heldout.board.log.manifest import Program
from heldout.board.organiser import containers, running
from heldout.board.organiser.running import Ran, RunPlan, run_plan
from heldout.board.rules.spec import Programs
from heldout.board.store.vault import Vault
from heldout.errors import InputError

QUERIES = {"q1": "what is a decorator", "q2": "a\ttab and\nanother line"}
RUN = "echo q1 Q0 d1 1 1.0 x > /output/dev.run"
Play = Callable[..., Ran]


def unless(why: str) -> tuple[pytest.MarkDecorator, ...]:
    skipped = pytest.mark.skipif(bool(why), reason=f"no containers: {why}")
    return pytest.mark.containers, skipped


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(podman_here, marks=unless(why_no_podman()), id="podman"),
        pytest.param(docker_here, marks=unless(why_no_docker()), id="docker"),
    ],
)
def here(request: pytest.FixtureRequest) -> Here:
    """Podman and docker, one after the other."""
    engine: Here = request.param()
    return engine


@pytest.fixture(scope="module")
def engine(here: Here) -> containers.Engine:
    """The engine, which can limit what a container uses: that is asked once."""
    hidden = {"HTTP_PROXY": "http://secret.example.org", "HELDOUT_FORGE_TOKEN": "secret"}
    found = containers.find_engine(here.words, here.flags, {**os.environ, **hidden})
    containers.check_limits(found)
    return found


@pytest.fixture
def play(here: Here, engine: containers.Engine, tmp_path: Path, monkeypatch: Patch) -> Play:
    """Run the words of a shell as a program within small limits."""
    monkeypatch.setattr(containers, "check_limits", lambda _: None)

    def run(script: str, *, seconds: float = 20, image: str = "") -> Ran:
        monkeypatch.setattr(running, "_MINUTE", seconds)
        monkeypatch.setattr(running, "RUN_LIMIT", 1 << 20)
        vault = Vault(tmp_path / "vault")
        command = ("/bin/sh", "-c", script) if script else ()
        program = Program(image=image or here.image, command=command)
        plan = RunPlan(
            id="20261102-one",
            program=program,
            files={},
            programs=Programs(memory=48, disk=4, processors=1, processes=24, minutes=1),
            queries={"dev": QUERIES},
            candidates={},
            depth=10,
            vault=vault,
        )
        try:
            return run_plan(plan, engine)
        finally:
            assert here.containers() == []
            assert sorted(p.name for p in (vault.root / "running").iterdir()) == ["lock"]

    return run


def refused(play: Play, script: str, **given: Any) -> tuple[str, str]:
    """Code and words of what a program gets."""
    with pytest.raises(InputError) as error:
        play(script, **given)
    (problem,) = error.value.problems
    return problem.code, problem.found


def test_what_a_program_reads_and_writes_and_what_is_measured(play: Play) -> None:
    spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
    fill = "for n in 1 2 3; do dd if=/dev/zero of=/tmp/$n bs=1M count=1; done"
    ran = play(f"cat /queries/dev.tsv > /output/dev.run; {fill}; {spin}")
    assert ran.runs == {"dev": b"q1\twhat is a decorator\nq2\ta tab and another line\n"}
    costs = ran.costs
    assert 0 < costs.seconds < 20
    assert costs.query_latency_ms == pytest.approx(500 * costs.seconds, rel=0.1)
    assert costs.processor_seconds is not None
    assert costs.memory_mib is not None
    assert 0.02 < costs.processor_seconds <= costs.seconds * 1.3
    assert 3 < costs.memory_mib < 48
    assert costs.energy_kwh is None
    assert ran.engine.startswith(("podman ", "docker "))


def test_what_a_program_sees(play: Play) -> None:
    looks = "id; env; grep Cap /proc/self/status; grep NoNew /proc/self/status; ls /queries /output"
    script = f"({looks}; touch /x; cat /labels/*; ls /root) > /output/dev.run 2>&1; true"
    seen = play(script).runs["dev"].decode()
    assert "uid=65532" in seen
    assert "secret" not in seen
    assert {line.split()[1] for line in seen.splitlines() if line.startswith("Cap")} == {"0" * 16}
    assert "NoNewPrivs:\t1" in seen
    assert "dev.tsv" in seen
    assert {line for line in seen.splitlines() if "PROXY" in line} == {
        f"{name}_PROXY=" for name in ("ALL", "FTP", "HTTP", "HTTPS", "NO")
    }
    assert "touch: /x: Read-only file system" in seen
    assert "can't open '/labels/*'" in seen


def test_a_namespace_of_its_own_in_which_it_would_be_root(play: Play) -> None:
    tries = ("unshare -U", "unshare -U -r", "unshare -n", "unshare -m", "mount -t tmpfs x /tmp")
    words = "; ".join(f"{one} /bin/true && echo made" for one in tries)
    seen = play(f"({words}; echo end) > /output/dev.run 2>&1").runs["dev"].decode()
    assert "made" not in seen
    assert seen.endswith("end\n")


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("VOLUME /output", "image-volume"),
        ("VOLUME /queries/dev.tsv", "image-volume"),
        ("VOLUME /proc", "program-failed"),
        ("ENV A=b", "program-failed"),  # and no command
        ('CMD ["/bin/nothing"]', "program-failed"),
    ],
)
def test_an_image_whose_settings_stop_it(play: Play, here: Here, setting: str, code: str) -> None:
    assert refused(play, "", image=here.make_image("bad", setting))[0] == code


def test_an_image_whose_settings_would_take_protection_away(play: Play, here: Here) -> None:
    settings = ["USER 0", "VOLUME /data/", "VOLUME /tmp", "ENV HTTP_PROXY=x"]
    image = here.make_image("bold", *settings, f"LABEL {containers.LABEL}=x")
    looks = "id; env; touch /x /bin/x; grep -c data /proc/mounts; grep data /proc/mounts"
    # A volume is memory, so more than fits into it ends as a disk that is full.
    fill = "for f in data/1 data/2 data/3 data/4 data/5 tmp/1 tmp/2 tmp/3 tmp/4 tmp/5; do "
    fill += "dd if=/dev/zero of=/$f bs=1M count=1 || echo full; done"
    seen = play(f"({looks}; {fill}) > /output/dev.run 2>&1; true", image=image).runs["dev"].decode()
    assert "uid=65532" in seen
    assert "HTTP_PROXY=\n" in seen
    assert seen.count("Read-only file system") == 2
    assert "\n1\ntmpfs /data tmpfs" in seen
    assert seen.count("full\n") == seen.count("No space left") == 2


def test_a_network(play: Play) -> None:
    script = "(cat /proc/net/dev /proc/net/route; echo; ip link; wget -T 1 -O - http://192.0.2.1/)"
    seen = play(f"{script} > /output/dev.run 2>&1; true").runs["dev"].decode()
    table, _, links = seen.partition("\n\n")
    assert [line.split(":")[0].strip() for line in table.splitlines() if ":" in line] == ["lo"]
    assert table.splitlines()[-1].startswith("Iface")  # the table of routes has its head alone
    assert links.count("mtu") == 1
    assert "saving to" not in links


def test_links_devices_names_and_thousands_of_files(play: Play) -> None:
    name = "n" * 250
    tries = (
        "ln -s /etc/passwd /output/link; mknod /output/device c 1 3; mkdir /output/folder; "
        f"touch /output/{name}; i=0; while [ $i -lt 300 ]; do touch /output/$i; i=$((i+1)); done; "
        "mv /output/dev.run /output/other; ln -sf /etc/passwd /output/dev.run; "
        "ls /output > /tmp/seen; cat /tmp/seen > /output/dev.run"
    )
    assert play(f"({tries}) 2> /dev/null").runs == {"dev": b"dev.run\n"}


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("dd if=/dev/zero of=/output/dev.run bs=64k", "program-failed"),
        ("trap '' XFSZ; dd if=/dev/zero of=/output/dev.run bs=64k; true", "program-output"),
        ("dd if=/dev/zero of=/tmp/x bs=64k", "program-failed"),
    ],
)
def test_a_full_disk(play: Play, script: str, code: str) -> None:
    assert refused(play, script)[0] == code


def test_too_much_memory(play: Play) -> None:
    assert refused(play, f"{RUN}; dd if=/dev/zero of=/dev/null bs=200M count=1") == (
        "program-memory",
        "a program that was killed, as the kernel does when memory runs out",
    )


def test_files_in_memory_are_memory(play: Play) -> None:
    places = "/dev/shm /run /var/tmp"  # noqa: S108 - of the container
    script = f"{RUN}; for p in {places}; do dd if=/dev/zero of=$p/x bs=1M count=60; done"
    assert refused(play, script)[0] in ("program-memory", "program-failed")


def test_forks_without_end(play: Play) -> None:
    began = time.monotonic()
    code, _ = refused(play, "f() { f | f & }; f; f; f; sleep 2; exit 3", seconds=3)
    assert code in ("program-failed", "program-time", "program-memory")
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "script", ["sleep 1000", "trap '' TERM INT HUP; yes >&2 & while true; do :; done"]
)
def test_a_program_that_never_ends(play: Play, script: str) -> None:
    began = time.monotonic()
    code, found = refused(play, f"{RUN}; {script}", seconds=1)
    assert (code, found) == ("program-time", "a program that still runs after 1 s")
    assert time.monotonic() - began < 20


def test_a_program_that_fails_says_why_without_what_a_terminal_obeys(play: Play) -> None:
    code, found = refused(play, "printf '\\033[2Jno model\\n' >&2; exit 7")
    assert code == "program-failed"
    assert "exit code 7" in found
    assert "no model" in found
    assert "\x1b" not in found


def test_what_a_killed_call_left_is_removed_by_the_next_one(
    here: Here, engine: containers.Engine
) -> None:
    image = containers.find_image(engine, Program(image=here.image, command=("sleep", "9")))
    limits = containers.ContainerLimits(
        memory=32, disk=4, processors=1, processes=8, seconds=60.0, file_bytes=1 << 20
    )

    for label in ("ours", "another"):
        args = ("--label", f"{containers.LABEL}={label}", "--network=none", *here.flags.split())
        engine.ask("create", *args, image.id, "sleep", "1000")
    assert containers.remove_leftovers(engine, "ours") == 1
    assert len(here.containers()) == 1
    assert containers.remove_leftovers(engine, "another") == 1
    job = containers.Job(image=image, command=["sleep", "9"], mounts=(), limits=limits, label="x")
    with pytest.raises(KeyboardInterrupt), containers.started(engine, job):
        raise KeyboardInterrupt
    assert here.containers() == []


def test_a_killed_call_leaves_what_the_next_one_removes(
    play: Play, here: Here, tmp_path: Path
) -> None:
    """SIGKILL, which nobody can answer; the container runs on until the next call."""
    script = Path(__file__).with_name("killed_program.py")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, str(script), str(tmp_path / "vault"), here.image, *here.options]
    with subprocess.Popen(words, env=environ) as process:
        while not (left := here.containers(running=True)):
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    assert here.containers(running=True) == left
    assert play(RUN).runs  # which looks that none is left
