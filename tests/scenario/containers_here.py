"""Engines for the tests of programs: podman with an image of busybox, and one that is a script.

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
from dataclasses import dataclass
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
)
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

    def containers(self) -> list[str]:
        """Ids of the containers that are left."""
        listed = [*self.words.split(), "ps", "--all", "--quiet"]
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
    image = "demo@sha256:" + "1" * 64
    (folder / "images" / image).write_text('[{"Id":"' + "2" * 64 + '","Config":{}}]')
    script = folder / "engine"
    script.write_text(_SCRIPT.format(here=folder))
    script.chmod(0o755)
    return Here(words=str(script), image=image, folder=folder)


def why_no_podman() -> str:
    """Why containers cannot be run here, "" where they can."""
    missing = [name for name in ("podman", "busybox") if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    return "" if os.geteuid() == 0 else "these tests run podman as root"


@functools.cache
def podman_here() -> Here:
    """Podman with storage of its own and one image: busybox, linked statically."""
    folder = Path(tempfile.mkdtemp(prefix="heldout-podman-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    places = (f"--root={folder / 'root'}", f"--runroot={folder / 'run'}")
    words = ["podman", *_OPTIONS, *places]
    runtime = "--runtime=runc" if shutil.which("runc") else ""
    files = folder / "files"
    (files / "bin").mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), files / "bin" / "busybox")
    for applet in _APPLETS:
        (files / "bin" / applet).symlink_to("busybox")
    tar = folder / "image.tar"
    subprocess.run(["tar", "-C", str(files), "-cf", str(tar), "."], check=True)
    subprocess.run([*words, "import", "-q", str(tar), "demo"], check=True, capture_output=True)
    # A sandbox may have the programs and lack the rights to run anything with them.
    flags = f"{runtime} {_FLAGS}"
    tried = [*words, "run", "--rm", "--network=none", *flags.split(), "demo", "true"]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"podman runs no container here: {done.stderr.strip()[-200:]}")
    asked = [*words, "image", "inspect", "demo", "--format", "{{.Digest}}"]
    digest = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    return Here(
        words=" ".join(words),
        flags=flags,
        image=f"localhost/demo@{digest}",
        folder=folder,
    )
