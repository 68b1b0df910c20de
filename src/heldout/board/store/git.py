"""git: the only module that starts it. Plumbing on objects and refs; nothing is ever checked out.

A participant's branch is data here: its blobs are read by id and its paths are compared. No program
that a repository names is run, be it in its files or in its own settings: hook, filter, diff
driver, ssh command, credential helper. Those of the user's global settings are.
"""

import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Timer
from typing import IO

from heldout.errors import SetupError, StoreError, quote
from heldout.files.durable import write_whole

ATTRIBUTES = ".gitattributes"
"""Where a repository tells git how to write its files into a working tree."""

AS_IT_IS = b"* -text\n"
"""Its text where every file has a digest: a clone that makes Windows line ends would break them."""

_SAFE = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.quotePath=false"),
    *("-c", "core.autocrlf=false"),
    *("-c", "commit.gpgSign=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "protocol.ext.allow=never"),
    *("-c", "submodule.recurse=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "core.alternateRefsCommand=true"),
    *("-c", "init.defaultBranch=main"),
)
_SECONDS = 600
_GLANCE = 0.02
_HEADS = "refs/heads/"
_BYTE_FOR_BYTE = b"* -text -filter -ident -working-tree-encoding\n"
_MOST_CHANGES = 100
_MOST_COMMITS = 100_000
_MOST_LISTED = 1 << 28
_MOST_UNPACKING = 1 << 31
_SPARE = 1 << 28
_SMALL_PACK = 1 << 22
_TREE = "040000"
_ABSENT = re.compile("0+")
_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\n")
_EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
# Of the programs at the other end git takes the first that is set, so that only an option counts.
_UPLOAD = "--upload-pack=git-upload-pack"
_RECEIVE = "--receive-pack=git-receive-pack"
# What git runs as a program, and the value that makes it run none; "" clears a list of helpers.
_PROGRAMS: tuple[tuple[str, str], ...] = (
    (r"core\.sshcommand", "ssh"),
    (r"core\.askpass", ""),
    (r"credential\.(.+\.)?helper", ""),
    (r"filter\..+\.(clean|smudge|process)", ""),
    (r"filter\..+\.required", "false"),
    (r"hook\..+\.command", "true"),
)
# Folder and state of its settings -> where git stores its objects and settings, of repositories.
_STORAGE: dict[tuple[Path, tuple[int, int]], Path] = {}
# An empty line for the root of a working tree; in a bare repository it may be missing.
_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
"""Files of git's while a person is at something that a whole commit would end."""
_MANY_REFS = ("remotes", "pull", "merge-requests")
_ROOT = re.compile(r"(?:\n(?:true|false)|true)\n(.+)\n", re.DOTALL)
_LIMITED = re.compile(
    rb"[Oo]ut of memory|malloc failed|mmap failed|File too large|not enough memory"
)
# Ended by its limits, or, where the connection was cut, by that; the second is what fetch says when
# index-pack ends before it has said anything.
_ENDED = re.compile(rb"died of signal|invalid index-pack output")
_FILTERS = re.compile(rb"< fetch=[^\n]*\bfilter\b")  # in version 2 of the protocol
_CUT = re.compile(rb"early EOF|disconnect|hung up|[Cc]onnection")


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Name and address on a commit."""

    name: str
    email: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path that differs between two commits.

    Attributes:
        status: git's letter: A added, M modified, D deleted, T type changed.
        mode: mode of the new side, `100644` for a plain file, `040000` for a folder.
        blob: object id of the new side.
        path: path in the repository.
    """

    status: str
    mode: str
    blob: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What git may use for what strangers sent.

    On Linux all of them hold; elsewhere the time by the clock alone.

    Attributes:
        memory: bytes, of each process.
        cpu: seconds of a processor, of git and all that it starts.
        file: bytes of a file that it writes; its output is one.
        seconds: by the clock.
    """

    memory: int = 1 << 30
    cpu: float = 60
    file: int = 1 << 26
    seconds: float = _SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRefs:
    """What a remote lists.

    Attributes:
        objects: full ref name -> object.
        leaves_files_out: whether it can send commits and folders without the files.
    """

    objects: Mapping[str, str]
    leaves_files_out: bool


_USUAL = Bounds()


class TooMuchError(StoreError):
    """git ended at one of its bounds: what it looked at is too large, or made to be.

    Attributes:
        seconds: of a processor, that were used up to that bound.
    """

    def __init__(self, message: str, *, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True)
class Git:
    """A git repository, by the root of its working tree (or the folder of a bare one).

    Attributes:
        root: the folder.
        environment: what git gets beside the caller's environment, as a token for one remote.
    """

    root: Path
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def is_repository(self) -> bool:
        """Check whether this very folder is the root of a working tree, or a bare repository."""
        return self._storage() is not None

    def _storage(self) -> Path | None:
        """Find where git stores objects and settings; `None` where it is no repository."""
        mark = self.root, _config_mark(self.root)
        if mark not in _STORAGE:
            asked = ["--show-cdup", "--is-bare-repository", "--git-common-dir"]
            result = self._start(["rev-parse", *asked])
            answer = _ROOT.fullmatch(_name(result.stdout))
            if result.returncode != 0 or answer is None:
                return None
            _STORAGE[mark] = self.root / answer[1]
        return _STORAGE[mark]

    def require(self) -> None:
        """Look whether git is installed, before something is written that needs it.

        Raises:
            SetupError: it is not.
        """
        if shutil.which("git") is None:
            raise _no_git(Path())

    def init(self, branch: str = "main") -> None:
        """Make it a repository with an empty branch; nothing happens where it is one."""
        if self.is_repository():
            return
        self._run(["init", "-q", "."])
        if self.branch() != branch:  # before 2.28 git knows neither `-b` nor the setting
            self._run(["symbolic-ref", "HEAD", f"{_HEADS}{branch}"])

    def unignored(self, *paths: str) -> tuple[str, ...]:
        """Those of these paths that `git add` would take up; none outside a working tree.

        Args:
            paths: below the root; they need not exist. What is tracked already is never ignored.
        """
        # git takes a path that begins with a colon for a pattern, unless a folder comes first.
        asked = {b"./" + os.fsencode(path): path for path in paths}
        data = b"".join(path + b"\0" for path in asked)
        found = self._start(["check-ignore", "-z", "--stdin"], data=data)
        if found.returncode not in (0, 1):
            return ()
        ignored = found.stdout.split(b"\0")
        return tuple(path for given, path in asked.items() if given not in ignored)

    def tracked_of(self, *names: str) -> tuple[str, ...]:
        """Those of these names at the root that git tracks, or has something tracked below."""
        index = self._run(["ls-files", "-z", "--", *names], env={"GIT_LITERAL_PATHSPECS": "1"})
        tops = {_name(path).partition("/")[0] for path in index.split(b"\0")[:-1]}
        return tuple(name for name in names if name in tops)

    def top(self, commit: str) -> tuple[str, ...]:
        """The names at the root of a commit: of files, folders, links and submodules."""
        answer = self._run(["ls-tree", "-z", "--full-tree", "--name-only", commit])
        return tuple(_name(name) for name in answer.split(b"\0")[:-1])

    def clone(self, source: Path, name: str) -> "Git":
        """Clone a repository into a folder below this one, its main line checked out."""
        self.root.mkdir(parents=True, exist_ok=True)
        self._run(["clone", "-q", str(source.absolute()), name])
        return Git(self.root / name)

    def refs(self, *patterns: str, commits: bool = True) -> Mapping[str, str]:
        """Full ref name -> commit, for patterns as `git for-each-ref` takes them.

        Args:
            patterns: all refs where there is none.
            commits: whether a ref that names anything but a commit is left out.
        """
        # The type of an object is asked for where it counts: git opens each object for it.
        form = f"--format={'%(objecttype)' if commits else 'commit'} %(objectname) %(refname)"
        # Only \n ends a line here: a name is whatever bytes its owner pushed, U+2028 among them.
        lines = self._run(["for-each-ref", form, *patterns]).split(b"\n")[:-1]
        fields = [_name(line).split(" ", 2) for line in lines]
        return {name: commit for kind, commit, name in fields if kind == "commit"}

    def head(self) -> str | None:
        """The commit that is checked out; `None` before the first."""
        with suppress(OSError, UnicodeDecodeError):  # where refs are plain files, without a process
            storage = self.root / ".git"
            ref = (storage / "HEAD").read_text("utf-8").removeprefix("ref: ").rstrip("\n")
            commit = (storage / ref).read_text("utf-8") if ref.startswith(_HEADS) else ""
            if _COMMIT.fullmatch(commit):
                return commit.rstrip("\n")
        result = self._start(["rev-parse", "-q", "--verify", "HEAD^{commit}"])
        return result.stdout.decode().strip() if result.returncode == 0 else None

    def pack_refs(self, *, least: int) -> None:
        """Write the refs into one file where at least so many of others have a file of their own.

        git opens every such file whenever refs are listed. It packs them by itself when it collects
        garbage, which it never does here. Where it cannot now, nothing is lost.
        """
        folders = [self._path_of(f"refs/{name}") for name in _MANY_REFS]
        single = (file for folder in folders for *_, files in os.walk(folder) for file in files)
        if sum(1 for _ in islice(single, least)) == least:
            self._start(["pack-refs", "--all"])

    def branch(self) -> str:
        """Name of the branch that is checked out."""
        return _name(self._run(["symbolic-ref", "--short", "HEAD"])).removesuffix("\n")

    def main_branch(self) -> str:
        """Name of the main branch: origin's, as the clone knows it, else the one checked out.

        Where a commit is checked out and no branch, `main`.
        """
        for ref, start in (("refs/remotes/origin/HEAD", "refs/remotes/origin/"), ("HEAD", _HEADS)):
            answer = _name(self._start(["symbolic-ref", "-q", ref]).stdout).removesuffix("\n")
            if answer.startswith(start):
                return answer.removeprefix(start)
        return "main"

    def remotes(self) -> tuple[str, ...]:
        """Names of the remotes."""
        return tuple(_name(self._run(["remote"])).split("\n")[:-1])

    def unpushed(self) -> int:
        """Commits of the branch checked out that its remote's copy lacks.

        By the remote-tracking branch as it was last fetched or pushed: nobody is asked. 0 where
        there is no remote, and where no branch is checked out.
        """
        ref = self.tracked()
        if ref is None or self.head() is None:
            return 0
        known = [f"^{ref}"] if ref in self.refs(ref) else []
        return int(self._run(["rev-list", "--count", "HEAD", *known]).decode())

    def unpulled(self) -> int:
        """Commits of the remote's copy that the branch checked out lacks; nobody is asked."""
        ref = self.tracked()
        if ref is None or self.head() is None or ref not in self.refs(ref):
            return 0
        return int(self._run(["rev-list", "--count", ref, "^HEAD"]).decode())

    def tracked(self) -> str | None:
        """Return where the remote's copy of this branch is stored; `None` without either."""
        remotes = self.remotes()
        head = self._start(["symbolic-ref", "-q", "--short", "HEAD"]).stdout
        branch = _name(head).removesuffix("\n")
        remote = "origin" if "origin" in remotes else next(iter(remotes), "")
        return f"refs/remotes/{remote}/{branch}" if remote and branch else None

    def fetch(self, remote: str, *refspecs: str, prune: bool = False) -> None:
        """Fetch refs from a remote; tags and submodules stay away.

        With `prune`, refs that are gone there are removed here.
        """
        options = ["--no-tags", "--no-recurse-submodules", *["--prune"] * prune]
        self._run(["fetch", "-q", _UPLOAD, *options, "--", remote, *refspecs])

    def push(self, remote: str, refspec: str) -> None:
        """Push one ref."""
        self._run(["push", "-q", _RECEIVE, "--", remote, refspec])

    def list_remote(self, remote: str, *patterns: str) -> "RemoteRefs":
        """Return what a remote lists now.

        Raises:
            StoreError: it does not answer.
            TooMuchError: its list is longer than 64 MiB.
        """
        command = ["ls-remote", "-q", _UPLOAD, "--", remote, *patterns]
        # What a server can do is told on the wire alone. One that cannot leave files out must not
        # be asked to: over plain files, git 2.39 would start itself again and again.
        ran = self._start(command, env={"GIT_TRACE_PACKET": "1"}, bounds=Bounds())
        self._check(command, ran, bounded=True)
        fields = (_name(line).partition("\t") for line in ran.stdout.split(b"\n")[:-1])
        return RemoteRefs(
            objects={ref: found for found, _, ref in fields},
            leaves_files_out=_FILTERS.search(ran.stderr) is not None,
        )

    @contextmanager
    def quarantine(self) -> Iterator["Git"]:
        """The same repository; new objects lie aside until `take_over`, else they are removed.

        Refs made meanwhile are the repository's own: make none.
        """
        objects = self._path_of("objects").absolute()
        # git itself removes what is named so and was left behind.
        with TemporaryDirectory(dir=objects, prefix="tmp_objdir-heldout-") as aside:
            settings = {
                "GIT_OBJECT_DIRECTORY": aside,
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.fspath(objects),
            }
            yield replace(self, environment={**self.environment, **settings})

    def take_over(self, aside: "Git") -> None:
        """Take over what was fetched into a quarantine of this repository."""
        objects = Path(aside.environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"])
        new = Path(aside.environment["GIT_OBJECT_DIRECTORY"])
        for single in new.glob("[0-9a-f][0-9a-f]/*"):  # so a server of plain files sends them
            (objects / single.parent.name).mkdir(exist_ok=True)
            single.rename(objects / single.parent.name / single.name)
        for pack in sorted(new.glob("pack/*.pack")):
            if pack.stat().st_size <= _SMALL_PACK:  # else a pack for each submission, for ever
                self._run(["unpack-objects", "-q"], data=pack.read_bytes(), bounds=Bounds())
                continue
            for ending in (".pack", ".rev", ".idx"):  # the index last: it makes the pack count
                if (part := pack.with_suffix(ending)).exists():
                    part.rename(objects / "pack" / part.name)

    def bundle(self, file: Path) -> None:
        """Write every ref with all that it leads to into a new file, as `git bundle` has it."""
        self._run(["bundle", "create", "-q", str(file.absolute()), "--all"])

    def unbundle(self, file: Path, branch: str) -> None:
        """Take every ref of a bundle into an empty repository and check out a branch.

        No file of the working tree is written.

        Raises:
            StoreError: it is no bundle, or an object in it is damaged.
            TooMuchError: it unpacks to far more than it is.
        """
        env = add_settings(self.environment, {"fetch.fsckObjects": "true"})
        command = ["fetch", "-q", _UPLOAD, "--no-recurse-submodules", "--update-head-ok", "--"]
        room = 2 * file.stat().st_size + _SPARE
        bounds = Bounds(memory=_MOST_UNPACKING, cpu=_SECONDS, file=room)
        self._run([*command, str(file.absolute()), "+refs/*:refs/*"], env=env, bounds=bounds)
        self._run(["symbolic-ref", "HEAD", f"{_HEADS}{branch}"])
        if (head := self.head()) is not None:
            self.files(head)  # refuses a list without end sooner than an index of it would
        self.unstage()

    def remote_address(self, remote: str) -> str:
        """The address of a remote."""
        return _name(self._run(["config", f"remote.{remote}.url"])).removesuffix("\n")

    def add_remote(self, name: str, address: str) -> None:
        """Name a remote; nobody is asked."""
        self._run(["remote", "add", "--", name, address])

    def fetch_objects(
        self, remote: str, wanted: Iterable[str], *, bounds: Bounds, blobs: bool = True
    ) -> None:
        """Fetch objects with all that they lead to; no ref is made.

        Args:
            remote: its name or address.
            wanted: full names of refs there, or ids of objects.
            bounds: git's.
            blobs: whether files come too; only a remote that can leaves them out.

        Raises:
            StoreError: the remote does not have one of them, or does not answer.
            TooMuchError: they do not fit into the bounds.
        """
        command = ["fetch", "-q", _UPLOAD, "--no-tags", "--no-recurse-submodules"]
        command += ["--no-write-fetch-head", "--refmap="]  # else branches would move refs here
        data = "".join(f"{one}\n" for one in wanted).encode("utf-8", "surrogateescape")
        settings = {"fetch.unpackLimit": "1", "core.bigFileThreshold": "16m", "pack.threads": "1"}
        if not blobs:
            # As if it were set for the remote: the option --filter would write it into the config.
            partial = {"promisor": "true", "partialclonefilter": "blob:none"}
            settings |= {f"remote.{remote}.{name}": value for name, value in partial.items()}
        env = add_settings(self.environment, settings)
        self._run([*command, "--stdin", "--", remote], data=data, env=env, bounds=bounds)

    def new_objects(
        self, *tips: str, most: int, bounds: Bounds
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """List what commits bring that no ref here leads to: what is here, and what lacks.

        Raises:
            TooMuchError: they are more than `most`.
        """
        command = ["rev-list", "--objects", "--missing=print", *tips, "--not", "--all"]
        lines = self._run(command, bounds=bounds).split(b"\n")[:-1]
        if len(lines) > most:
            raise TooMuchError(f"more than {most:,} new objects")
        names = [line.split(b" ", 1)[0].decode() for line in lines]
        lacking = tuple(name.removeprefix("?") for name in names if name.startswith("?"))
        return tuple(name for name in names if not name.startswith("?")), lacking

    def kinds_and_sizes(
        self, *objects: str, bounds: Bounds = _USUAL
    ) -> tuple[tuple[str, int], ...]:
        """Type and bytes of each object.

        Raises:
            StoreError: git does not have one of them.
        """
        asked = "".join(f"{one}\n" for one in objects).encode()
        form = "--batch-check=%(objecttype) %(objectsize)"
        answer = self._run(["cat-file", form], data=asked, bounds=bounds).split(b"\n")[:-1]
        fields = [line.decode(errors="replace").split(" ") for line in answer]
        for one, field_ in zip(objects, fields, strict=False):
            if not field_[-1].isdigit():
                raise StoreError(f"git does not have the object {one}; fetch again")
        return tuple((kind, int(size)) for kind, size in fields[: len(objects)])

    def set_refs(self, refs: Mapping[str, str | None]) -> None:
        """Point refs at objects that are here, or with `None` remove them; all or none."""
        parts = [f"update {ref}\0{one}\0\0" for ref, one in refs.items() if one is not None]
        gone = [f"delete {ref}\0\0" for ref, one in refs.items() if one is None]
        data = "".join([*gone, *parts]).encode("utf-8", "surrogateescape")
        self._run(["update-ref", "--stdin", "-z"], data=data)

    def changes(
        self, base: str, *tips: str, within: Sequence[str] = ()
    ) -> Mapping[str, tuple[Change, ...] | StoreError | None]:
        """Return what each tip changed since it left `base`, by path; renames are not guessed.

        A folder that is named is looked into, one level deep; of any other its name is given, so
        that no tree, however deep or wide, is walked. Of more than 100 changes the first are given.

        Args:
            base: a commit.
            tips: commits.
            within: the folders that are looked into, at the root.

        Returns:
            By tip: its changes; `None` where it has no commit in common with `base`; an error where
            git could not look at it.
        """
        try:
            return {**self._changes(base, tips, within)}
        except StoreError:
            each: dict[str, tuple[Change, ...] | StoreError | None] = {}
            for tip in dict.fromkeys(tips):
                try:
                    each |= self._changes(base, [tip], within)
                except StoreError as error:
                    each[tip] = error
            return each

    def _changes(
        self, base: str, tips: Sequence[str], within: Sequence[str]
    ) -> Mapping[str, tuple[Change, ...] | None]:
        since = self._merge_bases(base, tips)
        asked = {tip: one for tip, one in since.items() if one is not None and one != tip}
        roots = self._compare(f"{tip} {one}" for tip, one in asked.items())
        folders = {
            tip: [c for _, c in roots.get(tip, ()) if c.path in within and c.mode == _TREE]
            for tip in asked
        }
        before = {(tip, c.path): old for tip in asked for old, c in roots.get(tip, ())}
        pairs = {
            (tip, folder.path): (_tree(before[tip, folder.path], like=tip), folder.blob)
            for tip, found in folders.items()
            for folder in found
        }
        inner = self._compare(f"{old} {new}" for old, new in dict.fromkeys(pairs.values()))
        changed: dict[str, tuple[Change, ...] | None] = {}
        for tip, one in since.items():
            looked = {folder.path for folder in folders.get(tip, ())}
            here = [change for _, change in roots.get(tip, ()) if change.path not in looked]
            for name in sorted(looked):
                found = inner.get(" ".join(pairs[tip, name]), ())
                here += [replace(change, path=f"{name}/{change.path}") for _, change in found]
            changed[tip] = None if one is None else tuple(here)
        return changed

    def _merge_bases(self, base: str, tips: Sequence[str]) -> Mapping[str, str | None]:
        """The commit at which each tip left `base`; the tip itself where `base` goes back to it."""
        if not tips:
            return {}
        data = "".join(f"{one}\n" for one in (*dict.fromkeys(tips), f"^{base}")).encode()
        lines = self._run(["rev-list", "--parents", "--stdin"], data=data, bounds=Bounds())
        parents = {one[0]: one[1:] for line in lines.decode().splitlines() if (one := line.split())}
        if len(parents) > _MOST_COMMITS:
            raise TooMuchError(f"more than {_MOST_COMMITS:,} new commits")
        left: dict[str, str | None] = {}
        for tip in tips:
            ends, seen, waiting = set[str](), set[str](), [tip]
            while waiting:
                commit = waiting.pop()
                if commit not in parents:
                    ends.add(commit)
                elif commit not in seen:
                    seen.add(commit)
                    waiting.extend(parents[commit])
            # Where a branch took in the main line again, only git knows which is the last.
            if len(ends) > 1:
                found = self._start(["merge-base", base, tip], bounds=Bounds())
                left[tip] = found.stdout.decode().strip() or None
            else:
                left[tip] = next(iter(ends), None)
        return left

    def _compare(self, pairs: Iterable[str]) -> Mapping[str, list[tuple[str, Change]]]:
        """The entries that differ, with the old object, by the line git heads them with."""
        data = "".join(f"{pair}\n" for pair in pairs).encode()
        if not data:
            return {}
        command = ["diff-tree", "--stdin", "-z", "--raw", "--no-abbrev", "--no-renames"]
        found: defaultdict[str, list[tuple[str, Change]]] = defaultdict(list)
        fields = iter(self._run(command, data=data, bounds=Bounds()).split(b"\0"))
        pair = ""
        for head in fields:
            line = head
            if b"\n" in head:  # two trees, then at once the first entry
                answer, _, line = head.partition(b"\n")
                pair = answer.decode()
            if not line.startswith(b":"):
                pair = line.decode() or pair
                continue
            path = next(fields)
            if len(found[pair]) <= _MOST_CHANGES:
                before, mode, old, blob, status = line.decode("ascii").split(" ")
                name = path.decode("utf-8", "backslashreplace")
                change = Change(status=status[0], mode=mode, blob=blob, path=name)
                found[pair].append((old if before == f":{_TREE}" else "0", change))
        return found

    def files(self, commit: str, *folders: str) -> tuple[Change, ...]:
        """Every path of a commit, as if it were new; links and submodules too.

        Args:
            commit: its id.
            folders: at the root; with them what lies just in these, and not below.

        Raises:
            TooMuchError: the list is longer than 256 MiB: a folder in it names another one again
                and again.
        """
        paths = ["--", *(f"{folder}/" for folder in folders)] if folders else ["-r"]
        command = ["ls-tree", "-z", "--full-tree", commit, *paths]
        lines = self._run(command, bounds=Bounds(file=_MOST_LISTED))
        found = []
        for line in lines.split(b"\0")[:-1]:
            head, _, name = line.partition(b"\t")
            mode, _, blob = head.decode("ascii").split(" ")
            path = name.decode("utf-8", "backslashreplace")
            found.append(Change(status="A", mode=mode, blob=blob, path=path))
        return tuple(found)

    def contains(self, tip: str, commit: str) -> bool:
        """Check whether a commit is `tip` or one that `tip` goes back to."""
        return self._start(["merge-base", "--is-ancestor", commit, tip]).returncode == 0

    def configured_author(self) -> Author | None:
        """Return who git would name as author here, `None` where it does not know."""
        answer = (self._start(["config", key]).stdout for key in ("user.name", "user.email"))
        name, email = (text.decode(errors="replace").strip() for text in answer)
        return Author(name=name, email=email) if name and email else None

    def blob_sizes(self, *blobs: str) -> tuple[int, ...]:
        """Bytes in each blob.

        Raises:
            StoreError: git does not have one of them.
        """
        return tuple(size for _, size in self.kinds_and_sizes(*blobs)) if blobs else ()

    def read_blob(self, blob: str, *, limit: int) -> bytes:
        """A blob's bytes.

        Raises:
            StoreError: git does not have it, or it is larger than `limit` bytes.
        """
        (data,) = self.read_blobs(blob, limit=limit)
        return data

    def read_blobs(self, *blobs: str, limit: int) -> tuple[bytes, ...]:
        """The bytes of several blobs, by one process.

        Raises:
            StoreError: git does not have one of them, or it is larger than `limit` bytes.
        """
        found = tuple(self._read(blobs, limit=limit))
        for blob, data in zip(blobs, found, strict=True):
            if data is None:
                raise StoreError(f"git does not have the object {blob}; fetch again")
        return tuple(data for data in found if data is not None)

    def read_path(self, commit: str, path: str, *, limit: int) -> bytes | None:
        """A file's bytes at a commit, `None` where there is none."""
        if "\n" in path:
            raise StoreError(f"{quote(path)}: no path in git may hold a line end here")
        (data,) = self._read([f"{commit}:{path}"], limit=limit)
        return data

    def _read(self, names: Sequence[str], *, limit: int) -> Iterator[bytes | None]:
        """Read what lies under each name; no byte of what is too large.

        Raises:
            StoreError: something there is no file, or is larger than `limit` bytes.
        """
        if not names:
            return
        silent = subprocess.PIPE, subprocess.DEVNULL
        with (
            self._running(["cat-file", "--batch"], given=subprocess.PIPE, files=silent) as process,
            _ending(process, seconds=_SECONDS),
        ):
            asks, answers = process.stdin, process.stdout
            assert asks is not None  # noqa: S101 - both are pipes
            assert answers is not None  # noqa: S101 - both are pipes
            for name in names:
                with suppress(BrokenPipeError):  # it ended: the answer below is missing
                    asks.write(name.encode("utf-8", "surrogateescape") + b"\n")
                    asks.flush()
                answer = answers.readline().decode("utf-8", "surrogateescape")
                if answer.endswith(" missing\n"):
                    yield None
                    continue
                kind, _, size = answer.rstrip("\n").rpartition(" ")
                if not kind.endswith(" blob") or not size.isdigit():
                    said = answer.strip() or "it ended"
                    raise StoreError(f"git does not have the file {name}: {said}")
                if int(size) > limit:
                    raise StoreError(
                        f"a file of {int(size):,} bytes in git, at most {limit:,} are taken"
                    )
                data = answers.read(int(size) + 1)
                if len(data) <= int(size):
                    raise StoreError(f"git ended before it had sent the file {name}")
                yield data[:-1]

    def blob_of(self, commit: str, path: str) -> str | None:
        """The object of a file or folder at a commit, which is not read; `None` for none."""
        found = self._start(["rev-parse", "-q", "--verify", f"{commit}:{path}"])
        return found.stdout.decode().strip() if found.returncode == 0 else None

    def versions(self, path: str, *, most: int) -> tuple[str, ...]:
        """The commits of the branch that changed a file, the newest first."""
        answer = ["rev-list", f"--max-count={most}", "HEAD", "--", f":(literal){path}"]
        return tuple(self._run(answer).decode().split())

    def commit_on(
        self,
        branch: str,
        parent: str,
        files: Mapping[str, bytes],
        *,
        message: str,
        author: Author,
        at: datetime,
    ) -> str:
        """Point a branch at a new commit: `parent` with these files, working tree untouched.

        Returns:
            The commit. A branch that already is `parent` plus these files stays as it is.
        """
        with TemporaryDirectory(prefix="heldout-index-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            self._run(["read-tree", parent], env=index)
            self._put(files, env=index)
            tree = self._run(["write-tree"], env=index).decode().strip()
        ref = f"refs/heads/{branch}"
        now = self.refs(ref).get(ref)
        if now and self._run(["rev-parse", f"{now}^{{tree}}"]).decode().strip() == tree:
            return now
        env = _signature(author, at)
        commit = self._run(["commit-tree", tree, "-p", parent, "-m", message], env=env)
        self._run(["update-ref", ref, commit.decode().strip(), now or "0" * 40])
        return commit.decode().strip()

    def commit_paths(
        self,
        paths: Sequence[str],
        *,
        message: str,
        author: Author,
        at: datetime,
        without: Sequence[str] = (),
    ) -> str | None:
        """Commit the state of these paths of the working tree, and of nothing else.

        Args:
            paths: files and folders.
            message: of the commit.
            author: its author and committer.
            at: its time.
            without: files in these folders that are left out.

        Returns:
            The commit, or `None` where nothing differs.
        """
        present = [path for path in paths if (self.root / path).exists()]
        asked = [*present, *(f":(exclude,literal){path}" for path in without)]
        self._run(["add", "--force", "--", *asked])
        look = ["diff", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff"]
        staged = [_name(name) for name in self._run(look).split(b"\0")[:-1]]
        ours = [name for name in staged if _is_in(name, present) and not _is_in(name, without)]
        if not ours:
            return None
        command = ["commit", "-q", "--no-verify", "-m", message]
        if len(ours) < len(staged) or self._is_under_way():
            # Reads every one of these files again: tens of thousands on a large board.
            command += ["--only", "--", *asked]
        self._run(command, env=_signature(author, at))
        return self.head()

    def _is_under_way(self) -> bool:
        """Check whether a commit now would end a merge, or something like it."""
        own = self.root / self._run(["rev-parse", "--git-dir"]).decode().strip()
        return any((own / name).exists() for name in _UNDER_WAY)

    def make_commit(
        self,
        paths: Sequence[str],
        files: Mapping[str, bytes],
        *,
        message: str,
        author: Author,
        at: datetime,
    ) -> str:
        """Make a commit on top of the one checked out, to which no branch points yet.

        What is missing on disk stays in it. The index holds it until it is moved to or unstaged.

        Args:
            paths: of the working tree, as they are there; all must exist.
            files: path to content, whatever the working tree has.
            message: of the commit.
            author: its author and committer.
            at: its time.
        """
        self.unstage()
        literal = {"GIT_LITERAL_PATHSPECS": "1"}
        self._run(["add", "--force", "--ignore-removal", "--", *paths], env=literal)
        self._put(files)
        tree = self._run(["write-tree"]).decode().strip()
        head = self.head()
        command = ["commit-tree", tree, *(["-p", head] if head else []), "-m", message]
        return self._run(command, env=_signature(author, at)).decode().strip()

    def move_branch(self, commit: str) -> None:
        """Point the branch checked out and the index to a commit; no file is touched."""
        self._run(["update-ref", "HEAD", commit])
        self.unstage()

    def unstage(self) -> None:
        """Bring the index back to the commit checked out; no file is touched."""
        head = self.head()
        command = ["read-tree", *(["--reset", head] if head else ["--empty"])]
        self._run(command, bounds=Bounds(file=_MOST_LISTED))

    def disable_attributes(self) -> None:
        """Let no attribute change a file on its way into this repository or out of it."""
        self.remember("info/attributes", _BYTE_FOR_BYTE)

    def _put(self, files: Mapping[str, bytes], *, env: Mapping[str, str] | None = None) -> None:
        """Put contents into an index, whatever the working tree has."""
        for path, data in files.items():
            blob = self._run(["hash-object", "-w", "--stdin"], data=data).decode().strip()
            entry = f"100644,{blob},{path}"
            self._run(["update-index", "--add", "--cacheinfo", entry], env=env)

    def remembered(self, name: str) -> bytes | None:
        """Return what is stored under a name beside git's own files; `None` for nothing."""
        try:
            return self._path_of(name).read_bytes()
        except OSError:
            return None

    def remember(self, name: str, data: bytes) -> None:
        """Store something beside git's own files: no commit has it, and no clone gets it."""
        write_whole(self._path_of(name), data)

    def _path_of(self, name: str) -> Path:
        """Return where a file lies beside git's own, for all working trees."""
        if (storage := self._storage()) is None:
            raise StoreError(f"{self.root} is not a git repository")
        return storage / name

    def _run(
        self,
        arguments: Sequence[str],
        *,
        data: bytes | None = None,
        env: Mapping[str, str] | None = None,
        bounds: Bounds | None = None,
    ) -> bytes:
        result = self._start(arguments, data=data, env=env, bounds=bounds)
        self._check(arguments, result, bounded=bounds is not None)
        return result.stdout

    def _check(
        self,
        arguments: Sequence[str],
        result: subprocess.CompletedProcess[bytes],
        *,
        bounded: bool,
    ) -> None:
        if result.returncode == 0:
            return
        said = result.stderr
        ended = _LIMITED.search(said) or (_ENDED.search(said) and not _CUT.search(said))
        if bounded and (result.returncode < 0 or ended):
            raise TooMuchError(f"git {arguments[0]} needs more memory, time or room than it may")
        text = said.decode(errors="replace").strip()
        raise StoreError(f"git {arguments[0]} failed: {_explain(text)}")

    def _start(
        self,
        arguments: Sequence[str],
        *,
        data: bytes | None = None,
        env: Mapping[str, str] | None = None,
        bounds: Bounds | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git to its end; whatever ends us ends it with all that it started.

        With bounds it reads and writes files, whose size the system limits, and never our memory.
        """
        with ExitStack() as stack:
            if bounds is None:
                talk = subprocess.DEVNULL if data is None else subprocess.PIPE
                process = stack.enter_context(self._running(arguments, given=talk, env=env))
                try:
                    answer = process.communicate(data, timeout=_SECONDS)
                except subprocess.TimeoutExpired:
                    raise StoreError(f"git {arguments[0]} took over {_SECONDS} s") from None
            else:
                # A file: a pipe that is not filled at the first glance is never filled.
                given, *files = (stack.enter_context(TemporaryFile()) for _ in "ioe")
                given.write(data or b"")
                given.seek(0)
                running = self._running(arguments, given=given, files=files, env=env)
                process = stack.enter_context(running)
                _bound(process.pid, bounds)
                _watch(process, arguments[0], bounds)
                answer = _read_back(files[0]), _read_back(files[1])
            return subprocess.CompletedProcess(process.args, process.returncode, *answer)

    @contextmanager
    def _running(
        self,
        arguments: Sequence[str],
        *,
        given: IO[bytes] | int = subprocess.DEVNULL,
        files: Sequence[IO[bytes] | int] = (),
        env: Mapping[str, str] | None = None,
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """Run git beside us; the end of the block ends it, with all that it started.

        Args:
            arguments: of git.
            given: its standard input.
            files: where its output and its errors go; without them into pipes.
            env: beside the caller's and the repository's environment.
        """
        overrides, environment = _own_settings(self.root, _config_mark(self.root))
        out, err = files or (subprocess.PIPE, subprocess.PIPE)
        try:
            process = subprocess.Popen(  # noqa: S603 - fixed program, no shell
                ["git", *_SAFE, *overrides, *arguments],  # noqa: S607 - found on the user's PATH by intent
                cwd=self.root,
                stdin=given,
                stdout=out,
                stderr=err,
                env={**_environment(), **environment, **self.environment, **(env or {})},
                # A push, of our own data, may ask for a passphrase on the terminal, which a
                # session of its own would not have.
                start_new_session=arguments[0] != "push",
            )
        except FileNotFoundError:
            raise _no_git(self.root) from None
        try:
            yield process
        finally:
            _end_all(process)


def find_common(root: Path) -> Path | None:
    """The folder of git's that all working trees of a repository share; `None` without git.

    No commit can put anything there: git refuses paths in `.git`. Read from git's own files, so
    that nothing is started and git need not be installed.
    """
    own = root / ".git"
    with suppress(OSError, ValueError):
        if own.is_file():  # a linked working tree, or a submodule
            answer = os.fsdecode(own.read_bytes()).removeprefix("gitdir: ").rstrip("\n")
            own = root / answer
        if os.path.lexists(own / "HEAD"):
            shared = own / "commondir"
            if shared.is_file():
                own /= os.fsdecode(shared.read_bytes()).rstrip("\n")
            return own.resolve()
    return None


def _bound(pid: int, bounds: Bounds) -> None:
    """Limit a process that has just been started, and with it all that it will start."""
    if sys.platform != "linux":
        return
    # Of memory only what is written to counts: packs that are mapped to be read do not.
    for kind, most in (
        (resource.RLIMIT_DATA, bounds.memory),
        (resource.RLIMIT_CPU, math.ceil(bounds.cpu)),
        (resource.RLIMIT_FSIZE, bounds.file),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ProcessLookupError):
            hard = resource.prlimit(pid, kind)[1]
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.prlimit(pid, kind, (least, least))


def _end_all(process: "subprocess.Popen[bytes]") -> None:
    """End a process that still runs, with all that it started: `git fetch` starts several."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            group = os.getpgid(process.pid)
            kill = os.kill if group == os.getpgrp() else os.killpg
            kill(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def _watch(process: "subprocess.Popen[bytes]", command: str, bounds: Bounds) -> None:
    """Wait for git's end.

    Raises:
        StoreError: it takes longer than it may, by the clock.
        TooMuchError: it and all that it started need more of a processor than they may.
    """
    deadline = time.monotonic() + bounds.seconds
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GLANCE)
            return
        if time.monotonic() >= deadline:
            raise StoreError(f"git {command} took over {bounds.seconds:g} s")
        # The system counts whole seconds, and each process for itself.
        if (used := _used_by(process.pid)) > bounds.cpu:
            why = f"git {command} needs more than {bounds.cpu:g} s of a processor"
            raise TooMuchError(why, seconds=used)


def _used_by(pid: int) -> float:
    """Return the seconds of a processor that a process and all that it started have used."""
    ticks, waiting = 0, [str(pid)]
    while waiting:
        process = Path("/proc", waiting.pop())
        with suppress(OSError):  # it has ended, or the system is not Linux
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))  # its own, and of those it waited for
            waiting += (process / "task" / process.name / "children").read_text().split()
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def _ending(process: "subprocess.Popen[bytes]", *, seconds: float) -> Iterator[None]:
    """End a process that takes longer than this."""
    timer = Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _read_back(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _config_mark(root: Path) -> tuple[int, int]:
    """Changes when a repository's own settings do."""
    for path in (root / ".git" / "config", root / "config", root / ".git"):
        with suppress(OSError):
            found = path.stat()
            return found.st_mtime_ns, found.st_size
    return 0, 0


@cache
def _own_settings(root: Path, _mark: tuple[int, int]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Options and environment that take back what a repository's own settings would run.

    In their place stands what the user's or the machine's settings say, or nothing.

    Raises:
        StoreError: git cannot read its settings, or cannot say whose they are (before 2.26).
    """
    command = ["git", "config", "--list", "--show-scope", "-z"]
    try:
        ran = subprocess.run(  # noqa: S603 - fixed program, no shell
            command,
            cwd=root,
            capture_output=True,
            env=_environment(),
            check=False,
            timeout=_SECONDS,
        )
    except FileNotFoundError:
        raise _no_git(root) from None
    if ran.returncode != 0:
        raise StoreError(f"git config failed: {_explain(ran.stderr.decode(errors='replace'))}")
    fields = _name(ran.stdout).split("\0")
    own, others = set[str](), defaultdict[str, list[str]](list)
    for scope, setting in zip(fields[0::2], fields[1::2], strict=False):
        key, _, value = setting.partition("\n")
        if scope in ("local", "worktree"):
            own.add(key)
        else:
            others[key].append(value)
    options: list[str] = []
    for key in sorted(own):
        neutral = next(
            (value for form, value in _PROGRAMS if re.fullmatch(form, key, re.IGNORECASE)), None
        )
        if neutral is not None:
            several = key.endswith(".helper")
            values = ["", *others[key]] if several else [(others[key] or [neutral])[-1]]
            options += [part for value in values for part in ("-c", f"{key}={value}")]
    # Of several proxies git takes the first, so that no later setting can replace one.
    proxied = any(key.lower() == "core.gitproxy" for key in own)
    return tuple(options), {"GIT_PROXY_COMMAND": ""} if proxied else {}


def add_settings(environment: Mapping[str, str], settings: Mapping[str, str]) -> Mapping[str, str]:
    """The environment that gives git more settings for one call (git 2.31)."""
    count = int(environment.get("GIT_CONFIG_COUNT", "0"))
    added = {"GIT_CONFIG_COUNT": str(count + len(settings))}
    for number, (key, value) in enumerate(settings.items(), count):
        added |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return added


def _tree(old: str, *, like: str) -> str:
    """The tree that a folder had before; the empty one where there was none."""
    return _EMPTY_TREES[len(like)] if _ABSENT.fullmatch(old) else old


def _is_in(name: str, paths: Sequence[str]) -> bool:
    """Check whether a file is one of these paths, or lies in one."""
    return any(name == path or name.startswith(f"{path}/") for path in paths)


def _name(data: bytes) -> str:
    """A name in git, which may be any bytes; git is given the same ones back."""
    return data.decode("utf-8", "surrogateescape")


def _no_git(root: Path) -> SetupError:
    """Return why git could not be started in a folder: it is not there, or the folder is not."""
    if root.is_dir():
        return SetupError(
            "git is not installed, or not in PATH: install it (git-scm.com), then call again; "
            "heldout doctor shows what is found"
        )
    return SetupError(f"the folder {root} does not exist any more")


_TOO_OLD = re.compile(r"unknown (option|switch)|is not a git command|^usage: git", re.MULTILINE)


def _explain(said: str) -> str:
    """The line that tells most of what git said on standard error."""
    if lock := re.search(r"Unable to create '(.+\.lock)': File exists", said):
        return (
            f"{lock[1]} exists: another git is at work here, or one was killed. "
            f"When none is running: rm {lock[1]}, then call again"
        )
    lines = [line for line in said.splitlines() if not line.startswith("hint:")]
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))]
    answer = (telling or lines or ["no message"])[0]
    if _TOO_OLD.search(said):
        return f"{answer}; this git is too old: install 2.31 or newer (git --version shows it)"
    return answer


def _environment() -> dict[str, str]:
    """The caller's environment, without what would make git act on another repository."""
    own = {k: v for k, v in os.environ.items() if not re.match(r"GIT_(?!SSH|ASKPASS|EXEC)", k)}
    return {**own, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def _signature(author: Author, at: datetime) -> Mapping[str, str]:
    date = f"@{int(at.timestamp())} +0000"
    return {
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_DATE": date,
        "GIT_AUTHOR_NAME": author.name,
        "GIT_AUTHOR_EMAIL": author.email,
        "GIT_COMMITTER_NAME": author.name,
        "GIT_COMMITTER_EMAIL": author.email,
    }
