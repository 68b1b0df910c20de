"""Runs a stranger's image with docker or podman, within limits that are checked.

What a container gets: no network, a root file system that cannot be written, no capability and no
way to a namespace in which it would have some, a user who is not root, no device, no variable of
this machine, and limits of memory, processors, processes and time. It can write in `/tmp` and in
the engine's own small places, all of which lie in memory and count as it, and into the files that
are mounted to be written. These are there before it starts, in a folder that cannot be written: so
it makes no link, no device and no other file, and the longest file is a limit of the kernel
(`RLIMIT_FSIZE`).

The kernel and the engine are trusted. Each container has a label: what a killed call left running
is found by it and removed by the next one.

Sources: docker-run(1), podman-run(1); the kernel's "Control Group v2"; getrlimit(2),
user_namespaces(7), clone(2), seccomp(2).
"""

import io
import os
import platform
import posixpath
import re
import shlex
import shutil
import struct
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from heldout.board.log.manifest import Program
from heldout.errors import InputError, Problem, quote

ENGINES = ("podman", "docker")
"""Programs that can run containers, in the order in which they are looked for."""

LABEL = "heldout.vault"
"""The label of a container; its value says which vault it runs for."""

USER = "65532:65532"
"""User and group of the program in the container: neither exists in most images."""

_PATIENCE = 120.0
_STEPS = (0.02, 0.1)
_TAIL = 2000
_LAST_WORDS = 2.0
_STARTED = 40
_UNCHECKED = 10.0
_MOMENTS = 10
_MIB = 1 << 20
_VOLUME = re.compile(r"/[A-Za-z0-9][A-Za-z0-9._/-]{0,199}", re.ASCII)
_OURS = ("/queries", "/output")
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
_LONGEST_WORDS = 400
_NO_CALLS = frozenset(
    (
        *("add_key", "clone", "clone3", "fsconfig", "fsmount", "fsopen", "fspick", "keyctl"),
        *("mount", "mount_setattr", "move_mount", "open_tree", "pivot_root", "request_key"),
        *("setns", "socket", "socketcall", "umount", "umount2", "unshare"),
    )
)
_ENOSYS = 38
_NEW_NAMESPACE = 0x7E020000  # CLONE_NEW…: user, network, mounts and the others
_UNIX, _IP4, _IP6, _NETLINK, _AUDIT = 1, 2, 10, 16, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A file or folder of this machine that a container sees.

    Attributes:
        source: where it is here.
        target: where it is there.
        writable: whether its content can be changed.
    """

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerLimits:
    """What a container may use.

    Attributes:
        memory, disk: MiB of memory; of these in `/tmp`.
        processors, processes: at once.
        seconds: of wall-clock time.
        file_bytes: longest file that it can write.
    """

    memory: int
    disk: int
    processors: int
    processes: int
    seconds: float
    file_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be run.

    Attributes:
        image: id of an image that is here, as `find_image` gives it.
        command: its words; none for the image's own.
        mounts: what it sees of this machine.
        limits: what it may use.
        label: value of the container's label.
        seccomp: filter of system calls, as `write_filter` makes it; `None` for the engine's own.
    """

    image: "Image"
    command: Sequence[str]
    mounts: Sequence[Mount]
    limits: ContainerLimits
    label: str
    seccomp: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image that is here: its id, and the paths that it wants volumes at."""

    id: str
    volumes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A program that runs containers.

    Attributes:
        words: the program, and options that stand before its commands.
        flags: options of each container, after ours.
        version: as it says.
        environ: variables that it gets; a container gets none of them.
        patience: seconds within which it answers.
    """

    words: tuple[str, ...]
    flags: tuple[str, ...] = ()
    version: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)
    patience: float = _PATIENCE

    @property
    def is_podman(self) -> bool:
        """Whether it is podman, which knows a few options more."""
        return self.version.startswith("podman")

    def __str__(self) -> str:
        return " ".join([self.version, *self.flags])

    def ask(self, *words: str) -> str:
        """Return what it prints for a command.

        Raises:
            InputError: code `container-engine`: it is not there, fails, or does not answer.
        """
        done = self.call(*words)
        if done.returncode:
            raise _broken(self, f"{words[0]} fails: {_say(done.stderr)}")
        return done.stdout.decode(errors="replace").strip()

    def call(self, *words: str) -> "subprocess.CompletedProcess[bytes]":
        """The same without looking at how it ended."""
        try:
            return subprocess.run(  # noqa: S603 - the organiser named the program
                [*self.words, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=dict(self.environ),
                timeout=self.patience,
                check=False,
            )
        except FileNotFoundError:
            raise _broken(self, "no such program") from None
        except (OSError, subprocess.SubprocessError) as error:
            raise _broken(self, f"{words[0]}: {error}") from None


def find_engine(
    words: str, flags: str, environ: Mapping[str, str], *, patience: float = _PATIENCE
) -> Engine:
    """The program that runs containers.

    Args:
        words: the program and its options, as in a shell; "" for the first of `ENGINES` there is.
        flags: further options of each container, as in a shell.
        environ: variables of this process.
        patience: seconds within which it answers.

    Raises:
        InputError: code `container-engine`: there is none, or it does not run.
    """
    found = next((name for name in ENGINES if shutil.which(name, path=environ.get("PATH"))), "")
    engine = Engine(
        words=_split(words, "--engine") or (found or ENGINES[0],),
        flags=_split(flags, "--container-flags"),
        environ=environ,
        patience=patience,
    )
    version = engine.ask("--version").splitlines()
    if not version:
        raise _broken(engine, "it says no version")
    said = version[0].strip().lower().replace(" version ", " ").partition(",")[0]
    return replace(engine, version=said)


def _split(words: str, option: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(words))
    except ValueError as error:
        found = quote(words)
        expected = "words, as a shell would split them"
        raise InputError.of("container-engine", option, found, expected, str(error)) from None


def check_limits(engine: Engine) -> None:
    """Refuse an engine that says itself that it cannot limit what a container uses.

    Raises:
        InputError: code `container-limits`.
    """
    info = _ask_info(engine)
    if engine.is_podman:
        known = (info.get("host") or {}).get("cgroupControllers") or ()
        missing = [name for name in ("memory", "cpu", "pids") if name not in known]
    else:
        wanted = ("MemoryLimit", "SwapLimit", "CpuCfsQuota", "PidsLimit")
        missing = [name for name in wanted if info.get(name) is not True]
    if missing:
        raise _unlimited(f"an engine without limits of {', '.join(missing)}")


def check_start(engine: Engine) -> None:
    """Start a container that only ends, with the options of a program's, and remove it.

    On another processor than x86-64 and ARM64 none is started.

    Raises:
        InputError: code `container-engine`, `container-limits` or `program-failed`: none starts.
    """
    code = _ENDING.get(platform.machine().lower())
    if code is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "end.tar")
        with tarfile.open(file, "w") as tar:
            entry = tarfile.TarInfo("end")
            data = _make_executable(*code)
            entry.mode, entry.size = 0o755, len(data)
            tar.addfile(entry, io.BytesIO(data))
        image = engine.ask("import", str(file)).split()[-1:]
    if not image:
        raise _broken(engine, "import names no image")
    limits = ContainerLimits(
        memory=64, disk=1, processors=1, processes=16, seconds=engine.patience, file_bytes=_MIB
    )
    job = Job(image=Image(id=image[0]), command=("/end",), mounts=(), limits=limits, label="doctor")
    try:
        with started(engine, job) as running:
            running.wait()
    finally:
        engine.call("rmi", "--force", image[0])


_ENDING = {
    **dict.fromkeys(("x86_64", "amd64"), (62, bytes.fromhex("b83c000000 31ff 0f05"))),
    **dict.fromkeys(("aarch64", "arm64"), (183, bytes.fromhex("a80b80d2 000080d2 010000d4"))),
}
"""Processor -> its number in an executable, and code that ends a process of Linux with 0."""


def _make_executable(machine: int, code: bytes) -> bytes:
    """Make an executable of nothing but code: elf(5), a header and one segment of 64 bits."""
    at, start = 0x400000, 64 + 56
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, at + start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    size = start + len(code)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, at, at, size, size, 0x10000)
    return ident + head + segment + code


def _ask_info(engine: Engine) -> dict[str, Any]:
    try:
        return msgspec.json.decode(
            engine.ask("info", "--format", "{{json .}}"), type=dict[str, Any]
        )
    except msgspec.MsgspecError:
        raise _broken(engine, "info prints no JSON") from None


def write_filter(engine: Engine, file: Path) -> Path | None:
    """Podman's own filter of system calls, without those that make namespaces or use keys.

    Its own lets anyone make a user namespace, and in there be root over mounts and networks: far
    more of the kernel than a program needs. It also lets one talk to the machine that this virtual
    machine runs on (AF_VSOCK), which no network namespace holds back.

    Args:
        engine: podman or docker.
        file: where the filter is written.

    Returns:
        The file; `None` where the engine's own is used: docker's, or one that is not shown here.
    """
    if not engine.is_podman:
        return None
    path = (_ask_info(engine).get("host") or {}).get("security", {}).get("seccompProfilePath")
    try:
        own = msgspec.json.decode(Path(path or "").read_bytes(), type=dict[str, Any])
        rules = [{**one, "names": sorted({*one["names"]} - _NO_CALLS)} for one in own["syscalls"]]
    except (OSError, msgspec.MsgspecError, LookupError, TypeError):
        return None
    rules = [one for one in rules if one["names"]]
    rules.append(_allow("clone", (0, "MASKED_EQ", _NEW_NAMESPACE)))
    rules += [_allow("socket", (0, "EQ", family)) for family in (_UNIX, _IP4, _IP6)]
    rules.append(_allow("socket", (0, "EQ", _NETLINK), (2, "NE", _AUDIT)))
    # The flags of clone3 lie in memory, where no filter looks: without it, libraries take clone.
    file.write_bytes(msgspec.json.encode({**own, "defaultErrnoRet": _ENOSYS, "syscalls": rules}))
    return file


def _allow(name: str, *arguments: tuple[int, str, int]) -> dict[str, Any]:
    """A system call whose arguments (number, operation, value) are such; MASKED_EQ: none of it."""
    conditions = [
        {"index": number, "op": f"SCMP_CMP_{operation}", "value": value, "valueTwo": 0}
        for number, operation, value in arguments
    ]
    return {"names": [name], "action": "SCMP_ACT_ALLOW", "args": conditions}


def find_image(engine: Engine, program: Program) -> Image:
    """The image of a program, by its digest; nothing is fetched.

    The digest may be that of the manifest, as a registry has it, or of the configuration, which is
    the id of an image that was loaded from a file.

    Raises:
        InputError: code `image-missing`: it is not here; `image-digest`: the name is here with
            another digest; `image-volume`: it wants a volume at a path that cannot be one;
            `program-failed`: neither it nor the program names a command.
    """
    for name in (program.image, program.digest):
        done = engine.call("image", "inspect", name)
        if not done.returncode:
            return _read_image(engine, done.stdout, program)
    done = engine.call("image", "inspect", "--format", "{{.Id}} {{.RepoDigests}}", program.name)
    if not done.returncode:
        raise InputError.of(
            code="image-digest",
            path="metadata.json:program.image",
            found=f"{quote(program.name)} with other digests: {_say(done.stdout)}",
            expected=program.digest,
            hint="the team sealed this digest: ask it for the image, or for a new submission",
        )
    found = f"no image {program.image} here"
    expected = "the image on this machine: heldout fetches none"
    hint = f"{shlex.join(engine.words)} pull {program.image}, or load the team's file"
    raise InputError.of("image-missing", "metadata.json:program.image", found, expected, hint)


def _read_image(engine: Engine, data: bytes, program: Program) -> Image:
    try:
        (facts,) = msgspec.json.decode(data, type=list[dict[str, Any]])
        config = facts.get("Config") or {}
        volumes = tuple(config.get("Volumes") or ())
        starts = bool(program.command or config.get("Entrypoint") or config.get("Cmd"))
        image = str(facts["Id"])
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError):
        raise _broken(engine, f"image inspect says nothing of {program.image}") from None
    for path in volumes:
        if not _VOLUME.fullmatch(path) or ".." in path or _is_ours(posixpath.normpath(path)):
            raise InputError.of(
                "image-volume", "metadata.json:program.image", f"a volume at {quote(path)}"
            )
    if not starts:
        raise _failed("no command: neither the image nor the submission names one")
    # Docker takes /data and /data/ for two, and would put a volume on the disk at one of them.
    return Image(id=image, volumes=tuple(dict.fromkeys(map(posixpath.normpath, volumes))))


def _is_ours(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in _OURS)


def list_flags(engine: Engine, job: Job) -> list[str]:
    """The options of `create`, the engine's own after ours."""
    limits = job.limits
    flags = [
        *("--label", f"{LABEL}={job.label}"),
        *("--pull=never", "--network=none", "--read-only", f"--user={USER}"),
        *("--cap-drop=all", "--security-opt=no-new-privileges", "--no-healthcheck"),
        *([] if job.seccomp is None else [f"--security-opt=seccomp={job.seccomp}"]),
        *("--log-driver=none", "--stop-timeout=1"),
        *(f"--memory={limits.memory}m", f"--memory-swap={limits.memory}m"),
        *(f"--cpus={limits.processors}", f"--pids-limit={limits.processes}"),
        *(f"--ulimit=fsize={limits.file_bytes}:{limits.file_bytes}", "--ulimit=core=0:0"),
    ]
    # Podman hands on those of its environment, docker those of its settings.
    flags += [f"--env={one}=" for name in _PROXIES for one in (name, name.upper())]
    in_memory = dict.fromkeys(("/tmp", *job.image.volumes))  # noqa: S108 - of the container
    how = f"rw,nosuid,nodev,size={limits.disk}m,mode=1777"
    flags += [f"--tmpfs={path}:{how}" for path in in_memory]
    if engine.is_podman:  # ends it also where this process was killed
        flags.append(f"--timeout={int(limits.seconds) + int(_PATIENCE)}")
    for mount in job.mounts:
        access = "rw" if mount.writable else "ro"
        flags.append(f"--volume={mount.source}:{mount.target}:{access},Z")
    return [*flags, *engine.flags]


def remove_leftovers(engine: Engine, label: str) -> int:
    """Remove the containers that killed calls left; how many there were.

    Raises:
        InputError: code `container-engine`: one cannot be removed.
    """
    listed = engine.ask("ps", "--all", "--quiet", "--no-trunc", f"--filter=label={LABEL}={label}")
    for container in listed.split():
        remove(engine, container)
    return len(listed.split())


def remove(engine: Engine, container: str) -> None:
    """Kill a container and remove it with all that it wrote; one that is gone is fine.

    Raises:
        InputError: code `container-engine`: it is still there.
    """
    at_once = ("--time=0",) if engine.is_podman else ()  # docker waits for nobody
    done = engine.call("rm", "--force", "--volumes", *at_once, container)
    if done.returncode and not engine.call("container", "inspect", container).returncode:
        raise _broken(engine, f"container {container[:12]} cannot be removed: {_say(done.stderr)}")


@dataclass(slots=True, kw_only=True)
class Running:
    """A container that was started.

    Attributes:
        engine: that runs it.
        id: of the container.
        process: the engine's `start --attach`, which ends when the container does.
        limits: what it may use.
        began: when it was started, by `clock`.
        clock: seconds.
        tail: the end of what it wrote to its standard error.
        reader: the thread that fills the tail.
        pid: of its first process, 0 where that is not known.
        usage: what was seen of its use so far.
        took: seconds until its end, `None` before.
    """

    engine: Engine
    id: str
    process: "subprocess.Popen[bytes]"
    limits: ContainerLimits
    began: float
    clock: Callable[[], float]
    tail: bytearray
    reader: threading.Thread
    usage: "Usage"
    pid: int = 0
    took: float | None = None

    @property
    def seconds(self) -> float:
        """Wall-clock time since it was started, until it ended."""
        return self.clock() - self.began if self.took is None else self.took

    @property
    def left(self) -> float:
        """Seconds that it may still run."""
        return self.limits.seconds - self.seconds

    @property
    def ended(self) -> bool:
        """Whether it ended."""
        return self.process.poll() is not None

    def look(self) -> None:
        """Measure what it uses, and hold it to its limits.

        Raises:
            InputError: code `container-limits`: the kernel does not limit it; `program-time`: it
                ran longer than it may.
        """
        self.usage.read(self.pid)
        if self.usage.checked and not self.usage.is_within(self.limits):
            raise _unlimited("a container that the kernel does not hold to the limits asked for")
        if not self.usage.checked and self.usage.can_check and self.seconds > _UNCHECKED:
            raise _unlimited("a container whose control group cannot be read")
        if self.left < 0:
            found = f"a program that still runs after {self.seconds:,.0f} s"
            raise InputError.of("program-time", "program", found, seconds=self.limits.seconds)

    def wait(self) -> None:
        """Wait for its end.

        Raises:
            InputError: as of `look`; `program-memory` and `program-failed`: it ended badly.
        """
        step, longest = _STEPS
        while not self.ended:
            self.look()
            time.sleep(step)
            step = min(longest, step * 1.2)
        self.took = self.seconds
        status = self.engine.ask(
            *("container", "inspect", "--format"),
            "{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}",
            self.id,
        ).split()
        self.reader.join(_LAST_WORDS)  # its end may be known before its last words are read
        last = _say(bytes(self.tail))
        if status[:1] == ["created"]:
            raise _failed(f"a program that could not be started: {last}")
        if status[1:] == ["0", "false"] and not self.usage.killed:
            return
        # Engines do not always notice that the kernel killed for memory. Nobody else kills here.
        if "true" in status or self.usage.killed or status[1:2] == ["137"]:
            raise InputError.of("program-memory", "program", memory=self.limits.memory)
        code = status[1] if len(status) > 1 else "?"
        raise _failed(f"exit code {code}" + (f", and at last it said: {last}" if last else ""))


@contextmanager
def started(
    engine: Engine, job: Job, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[Running]:
    """A container that runs a job; removed at the end in every case.

    Raises:
        InputError: code `container-engine`: it cannot be made, or cannot be removed.
    """
    made = engine.call("create", *list_flags(engine, job), job.image.id, *job.command)
    if made.returncode:
        raise _broken(engine, f"create fails: {_say(made.stderr)}")
    container = (made.stdout.decode(errors="replace").split() or [""])[-1]
    if not re.fullmatch(r"[0-9a-f]{12,64}", container):
        raise _broken(engine, f"create says {quote(container)}")
    process, reader = None, threading.Thread()
    try:
        if b"kernel does not support" in made.stderr:  # and the engine goes on without the limit
            raise _unlimited(f"an engine that says {_say(made.stderr)}")
        began, tail = clock(), bytearray()
        process = subprocess.Popen(  # noqa: S603 - the organiser named the program
            [*engine.words, "start", "--attach", container],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=dict(engine.environ),
        )
        reader = threading.Thread(target=_drain, args=(process, tail), daemon=True)
        reader.start()
        running = Running(
            engine=engine,
            id=container,
            process=process,
            limits=job.limits,
            began=began,
            clock=clock,
            tail=tail,
            reader=reader,
            usage=Usage(),
        )
        running.pid = _find_pid(running)
        yield running
    finally:
        try:
            remove(engine, container)
        finally:
            if process is not None:
                process.kill()
                process.wait()
                reader.join()
                if process.stderr is not None:
                    process.stderr.close()


def _find_pid(running: Running) -> int:
    """The first process of a container once it runs; 0 where it ended before that was known."""
    for _ in range(_STARTED):
        done = running.engine.call("container", "inspect", "--format", "{{.State.Pid}}", running.id)
        said = done.stdout.strip()
        if done.returncode == 0 and said.isdigit() and int(said):
            return int(said)
        if running.ended:
            break
        time.sleep(_STEPS[0])
    return 0


def _drain(process: "subprocess.Popen[bytes]", tail: bytearray) -> None:
    """Keep the end of what a program says, however much it is."""
    if process.stderr is None:
        return
    with suppress(OSError, ValueError):
        while data := os.read(process.stderr.fileno(), 1 << 16):
            tail += data
            del tail[:-_TAIL]


@dataclass(slots=True)
class Usage:
    """Counts of the kernel for a container: its control group, of version 2.

    The counts are gone with the container, so they are read again and again: what it uses in its
    last tenth of a second may be missing.

    Attributes:
        processor_seconds, memory_mib: so far; `None` where the kernel did not say.
        killed: whether a process was killed for memory.
        checked: whether its limits were read.
        proc, groups: where the kernel shows processes and control groups.
    """

    processor_seconds: float | None = None
    memory_mib: float | None = None
    killed: bool = False
    checked: bool = False
    proc: Path = Path("/proc")
    groups: Path = Path("/sys/fs/cgroup")
    _group: Path | None = None
    _limits: dict[str, float] = field(default_factory=dict)
    _at_top: int = 0

    def read(self, pid: int) -> None:
        """Read the counts of the group that a process is in; without them nothing changes."""
        if not pid:
            return
        if self._group is None and (group := self._find(pid)) is not None:
            self._group, self.checked = group, group.is_dir()
            self._limits = {name: self._least(group, name) for name in ("memory.max", "pids.max")}
        spent = self._number("cpu.stat", r"usage_usec (\d+)")
        used = self._number("memory.peak", r"(\d+)")
        if spent is not None:
            self.processor_seconds = max(self.processor_seconds or 0, spent * 1e-6)
        if used is not None:
            self.memory_mib = max(self.memory_mib or 0, used / _MIB)
        self.killed |= bool(self._number("memory.events", r"oom_kill (\d+)"))

    @property
    def can_check(self) -> bool:
        """Whether this machine shows control groups of processes."""
        return (self.proc / "self" / "cgroup").exists()

    def is_within(self, limits: ContainerLimits) -> bool:
        """Check whether the kernel has these limits, or stricter ones."""
        memory, pids = self._limits["memory.max"], self._limits["pids.max"]
        return memory <= limits.memory * _MIB and pids <= limits.processes

    def _find(self, pid: int) -> Path | None:
        """Return the folder of a process's control group."""
        with suppress(OSError):
            lines = (self.proc / str(pid) / "cgroup").read_text("utf-8").splitlines()
            path = next((line[3:].lstrip("/") for line in lines if line.startswith("0::")), None)
            # What has just ended is shown at the top for a moment, as what has no group for good.
            self._at_top = 0 if path else self._at_top + 1
            if path or (path is not None and self._at_top >= _MOMENTS):
                return self.groups / path
        return None

    def _least(self, group: Path, file: str) -> float:
        """Return the strictest limit of a group and those above it."""
        least = float("inf")
        for folder in (group, *group.parents):
            if folder == self.groups:
                break
            with suppress(OSError, ValueError):
                least = min(least, float((folder / file).read_text("utf-8").strip()))
        return least

    def _number(self, file: str, pattern: str) -> int | None:
        with suppress(OSError, UnicodeDecodeError):
            text = "" if self._group is None else (self._group / file).read_text("utf-8")
            found = re.search(rf"^{pattern}$", text, re.MULTILINE)
            return None if found is None else int(found[1])
        return None


def _say(data: bytes) -> str:
    """The last line of what a program said, fit for a message."""
    lines = [line for line in data.decode(errors="replace").splitlines() if line.strip()]
    return quote(lines[-1].strip(), limit=_LONGEST_WORDS) if lines else ""


def _broken(engine: Engine, found: str) -> InputError:
    return InputError.of("container-engine", " ".join(engine.words), found)


def _unlimited(found: str) -> InputError:
    return InputError.of("container-limits", "engine", found)


def _failed(found: str) -> InputError:
    return InputError(Problem.of("program-failed", "program", found))
