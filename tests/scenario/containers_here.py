"""Engines for the tests of programs: podman and docker with an image of busybox, and a script.

The script keeps its containers as files, and runs what it is given as a process of its own: the
logic around an engine is tried with it, where there is no podman too.
"""

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

# This machine may have control groups of version 1, no systemd, and no overlay file system.
_OPTIONS = ("--storage-driver=vfs", "--cgroup-manager=cgroupfs")
_FLAGS = "--ulimit=nofile=1024:1024 --ulimit=nproc=1024:1024"
_APPLETS = (
    "sh",
    "cat",
    "head",
    "sleep",
    "wget",
    "mkdir",
    "ln",
    "mv",
    "mknod",
    "touch",
    "true",
    "yes",
    "dd",
    "id",
    "env",
    "nc",
    "httpd",
    "ip",
    "grep",
    "kill",
    "ls",
    "mount",
    "unshare",
)
FAKE_IMAGE = "demo@sha256:" + "1" * 64
"""The image of the engine that is a script."""

_SCRIPT = """\
#!/bin/sh
here={here}
echo "$@" >> $here/calls
last() {{ for last; do :; done; }}
last "$@"
own=$here/containers/$last
case "$1" in
--version) echo "podman version 9.9.9" ;;
info) cat $here/info.json ;;
ps) ls $here/containers ;;
image) cat "$here/images/$(echo "$last" | tr / _)" 2>/dev/null || exit 125 ;;
create)
  id=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \\n')
  mkdir $here/containers/$id
  for word; do echo "$word"; done > $here/containers/$id/words
  echo $id ;;
start)
  IN=$(sed -n 's/^--volume=\\(.*\\):\\/queries:ro.*/\\1/p' $own/words)
  OUT=$(sed -n 's/^--volume=\\(.*\\):\\/output:ro.*/\\1/p' $own/words)
  export IN OUT
  sh $here/program &
  echo $! > $own/pid
  wait $!
  code=$?
  echo $code > $own/code
  exit $code ;;
container)
  case "$*" in
  *Pid*) cat $own/pid 2>/dev/null || echo 0 ;;
  *) test -d $own && echo "exited $(cat $own/code) false" ;;
  esac ;;
rm) kill -9 $(cat $own/pid) 2>/dev/null; rm -rf $own ;;
esac
"""


@dataclass(frozen=True, kw_only=True)
class Here:
    """An engine of a test.

    Attributes:
        words: as `--engine` takes them.
        flags: as `--container-flags` takes them.
        image: `NAME@sha256:…` of the image that it has.
        folder: of its containers.
    """

    words: str
    image: str
    folder: Path
    flags: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `heldout run`."""
        return ("--engine", self.words, "--container-flags", self.flags)

    def make_image(self, tag: str, *changes: str) -> str:
        """An image of the same files with other settings, each as in a Dockerfile; its name."""
        words = self.words.split()
        changed = [word for change in changes for word in ("--change", change)]
        tar = str(self.folder / "image.tar")
        subprocess.run([*words, "import", *changed, tar, tag], check=True, capture_output=True)
        field = "{{.Digest}}" if words[0] == "podman" else "{{.Id}}"
        asked = [*words, "image", "inspect", tag, "--format", field]
        digest = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
        return f"{'localhost/' if words[0] == 'podman' else ''}{tag}@{digest}"

    def containers(self, *, running: bool = False) -> list[str]:
        """Ids of the containers that are left, or run."""
        listed = [*self.words.split(), "ps", *([] if running else ["--all"]), "--quiet"]
        return subprocess.run(listed, capture_output=True, check=True, text=True).stdout.split()


def fake_engine(folder: Path, program: str) -> Here:
    """An engine that is a script; `program` is what its image does, in the words of a shell.

    It finds its queries in `$IN` and its runs in `$OUT`.
    """
    for name in ("containers", "images"):
        (folder / name).mkdir(parents=True)
    limits = ["cpu", "memory", "pids"]
    (folder / "info.json").write_text(json.dumps({"host": {"cgroupControllers": limits}}))
    (folder / "program").write_text(program)
    image = FAKE_IMAGE
    (folder / "images" / image).write_text('[{"Id":"' + "2" * 64 + '","Config":{"Cmd":["rank"]}}]')
    script = folder / "engine"
    script.write_text(_SCRIPT.format(here=folder))
    script.chmod(0o755)
    return Here(words=str(script), image=image, folder=folder)


def why_no_podman() -> str:
    """Why podman cannot be run here, "" where it can."""
    return _why_not("podman", "busybox")


def why_no_docker() -> str:
    """Why docker cannot be run here, "" where it can."""
    return _why_not("docker", "dockerd", "busybox")


def _why_not(*names: str) -> str:
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    return "" if os.geteuid() == 0 else "these tests run containers as root"


@functools.cache
def podman_here() -> Here:
    """Podman with storage of its own and one image: busybox, linked statically."""
    folder = _folder("podman")
    places = (f"--root={folder / 'root'}", f"--runroot={folder / 'run'}")
    runtime = "--runtime=runc " if shutil.which("runc") else ""
    words = ["podman", *_OPTIONS, *places]
    return _with_image(words, f"{runtime}{_FLAGS}", folder)


@functools.cache
def docker_here() -> Here:
    """Docker with a daemon of its own, which ends with the tests, and the same image."""
    folder = _folder("docker")
    address = f"unix://{folder / 'socket'}"
    places = (f"--data-root={folder / 'root'}", f"--exec-root={folder / 'exec'}")
    alone = ("--storage-driver=vfs", "--iptables=false", "--bridge=none")
    log = folder / "log"
    with log.open("wb") as out:
        daemon = subprocess.Popen(
            ["dockerd", f"--host={address}", f"--pidfile={folder / 'pid'}", *places, *alone],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    atexit.register(_end, daemon)
    words = ["docker", f"--host={address}"]
    for _ in range(300):
        if not subprocess.run([*words, "version"], capture_output=True, check=False).returncode:
            break
        if daemon.poll() is not None:
            pytest.skip(f"dockerd does not run here: {log.read_text()[-200:]}")
        time.sleep(0.1)
    return _with_image(words, _FLAGS, folder)


def _end(daemon: "subprocess.Popen[bytes]") -> None:
    daemon.terminate()
    daemon.wait(30)


def _folder(engine: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"heldout-{engine}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _with_image(words: list[str], flags: str, folder: Path) -> Here:
    files = folder / "files"
    (files / "bin").mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), files / "bin" / "busybox")
    for applet in _APPLETS:
        (files / "bin" / applet).symlink_to("busybox")
    tar = folder / "image.tar"
    subprocess.run(["tar", "-C", str(files), "-cf", str(tar), "."], check=True)
    here = Here(words=" ".join(words), flags=flags, image="", folder=folder)
    here = replace(here, image=here.make_image("demo"))
    # A sandbox may have the programs and lack the rights to run anything with them.
    tried = [*words, "run", "--rm", "--network=none", *flags.split(), "demo", "true"]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{words[0]} runs no container here: {done.stderr.strip()[-200:]}")
    return here
