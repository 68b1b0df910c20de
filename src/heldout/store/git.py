"""git: the only module that starts it. Plumbing on objects and refs; nothing is ever checked out.

A participant's branch is data here: its blobs are read by id and its paths are compared. No hook,
filter, external diff or helper of a repository is run.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from heldout.errors import SetupError, StoreError
from heldout.store.files import write_whole

__all__ = ["AS_IT_IS", "ATTRIBUTES", "Author", "Change", "Git"]

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
    *("-c", "init.defaultBranch=main"),
)
_SECONDS = 600
_HEADS = "refs/heads/"
_BYTE_FOR_BYTE = b"* -text -filter -ident -working-tree-encoding\n"


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
        mode: mode of the new side, `100644` for a plain file.
        blob: object id of the new side.
        path: path in the repository.
    """

    status: str
    mode: str
    blob: str
    path: str


@dataclass(frozen=True, slots=True)
class Git:
    """A git repository, by the root of its working tree (or the folder of a bare one)."""

    root: Path

    def is_repository(self) -> bool:
        """Whether this very folder is the root of a working tree, or a bare repository."""
        result = self._start(["rev-parse", "--show-cdup", "--is-bare-repository"])
        lines = result.stdout.decode().splitlines()
        return result.returncode == 0 and lines in (["", "false"], ["true"], ["", "true"])

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

    def clone(self, source: Path, name: str) -> "Git":
        """Clone a repository into a folder below this one, its main line checked out."""
        self.root.mkdir(parents=True, exist_ok=True)
        self._run(["clone", "-q", str(source.absolute()), name])
        return Git(self.root / name)

    def refs(self, *patterns: str) -> Mapping[str, str]:
        """Full ref name -> commit, for patterns as `git for-each-ref` takes them.

        A ref that names anything but a commit is left out.
        """
        form = "--format=%(objecttype) %(objectname) %(refname)"
        # Only \n ends a line here: a name is whatever bytes its owner pushed, U+2028 among them.
        lines = self._run(["for-each-ref", form, *patterns]).split(b"\n")[:-1]
        fields = [_name(line).split(" ", 2) for line in lines]
        return {name: commit for kind, commit, name in fields if kind == "commit"}

    def head(self) -> str | None:
        """The commit that is checked out; `None` before the first."""
        result = self._start(["rev-parse", "-q", "--verify", "HEAD^{commit}"])
        return result.stdout.decode().strip() if result.returncode == 0 else None

    def branch(self) -> str:
        """Name of the branch that is checked out."""
        return _name(self._run(["symbolic-ref", "--short", "HEAD"])).removesuffix("\n")

    def main_branch(self) -> str:
        """Name of the main branch: origin's, as the clone knows it, else the one checked out.

        Where a commit is checked out and no branch, `main`.
        """
        for ref, start in (("refs/remotes/origin/HEAD", "refs/remotes/origin/"), ("HEAD", _HEADS)):
            told = _name(self._start(["symbolic-ref", "-q", ref]).stdout).removesuffix("\n")
            if told.startswith(start):
                return told.removeprefix(start)
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
        """Where the remote's copy of the branch checked out is kept; `None` without either."""
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
        self._run(["fetch", "-q", *options, remote, *refspecs])

    def push(self, remote: str, refspec: str) -> None:
        """Push one ref."""
        self._run(["push", "-q", remote, refspec])

    def changes(self, base: str, tip: str) -> tuple[Change, ...] | None:
        """What `tip` changed since it left `base`, by path; renames are not guessed.

        `None` where the two have no commit in common.
        """
        merge_base = self._start(["merge-base", base, tip])
        since = merge_base.stdout.decode().strip()
        if not since:
            return None
        raw = self._run(["diff-tree", "-r", "-z", "--raw", "--no-renames", since, tip])
        fields = raw.split(b"\0")
        pairs = zip(fields[0::2], fields[1::2], strict=False)
        return tuple(_parse_change(head, path) for head, path in pairs)

    def files(self, commit: str) -> tuple[Change, ...]:
        """Every path of a commit, as if it were new; links and submodules too."""
        lines = self._run(["ls-tree", "-r", "-z", "--full-tree", commit]).split(b"\0")[:-1]
        return tuple(_parse_file(line) for line in lines)

    def contains(self, tip: str, commit: str) -> bool:
        """Whether a commit is `tip` or one that `tip` goes back to."""
        return self._start(["merge-base", "--is-ancestor", commit, tip]).returncode == 0

    def author(self, commit: str) -> Author:
        """Author of a commit."""
        text = self._run(["show", "-s", "--format=%an%x00%ae", commit]).decode(errors="replace")
        name, _, email = text.strip("\n").partition("\0")
        return Author(name=name, email=email)

    def configured_author(self) -> Author | None:
        """Who git would name as author here, `None` where it does not know."""
        told = (self._start(["config", key]).stdout for key in ("user.name", "user.email"))
        name, email = (text.decode(errors="replace").strip() for text in told)
        return Author(name=name, email=email) if name and email else None

    def blob_sizes(self, *blobs: str) -> tuple[int, ...]:
        """Bytes in each blob.

        Raises:
            StoreError: git does not have one of them.
        """
        asked = "".join(f"{blob}\n" for blob in blobs).encode()
        told = self._run(["cat-file", "--batch-check=%(objectsize)"], data=asked).split(b"\n")
        missing = [blob for blob, size in zip(blobs, told, strict=False) if not size.isdigit()]
        if missing:
            raise StoreError(f"git does not have the file {missing[0]}; fetch again")
        return tuple(int(size) for size in told[: len(blobs)])

    def read_blob(self, blob: str, *, limit: int) -> bytes:
        """A blob's bytes.

        Raises:
            StoreError: it is larger than `limit` bytes.
        """
        (size,) = self.blob_sizes(blob)
        if size > limit:
            raise StoreError(f"a file of {size:,} bytes in git, at most {limit:,} are taken")
        return self._run(["cat-file", "blob", blob])

    def read_path(self, commit: str, path: str, *, limit: int) -> bytes | None:
        """A file's bytes at a commit, `None` where there is none."""
        result = self._start(["rev-parse", "-q", "--verify", f"{commit}:{path}"])
        if result.returncode != 0:
            return None
        return self.read_blob(result.stdout.decode().strip(), limit=limit)

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
        with self._scratch_index() as index:
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
        present += [f":(exclude,literal){path}" for path in without]
        self._run(["add", "--force", "--", *present])
        if self._start(["diff", "--cached", "--quiet", "--", *present]).returncode == 0:
            return None
        command = ["commit", "-q", "--no-verify", "--only", "-m", message, "--", *present]
        self._run(command, env=_signature(author, at))
        return self.head()

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
        self._run(["read-tree", *(["--reset", head] if head else ["--empty"])])

    def keep_bytes(self) -> None:
        """Let no attribute change a file on its way into this repository or out of it."""
        path = self._run(["rev-parse", "--git-path", "info/attributes"]).decode().strip()
        write_whole(self.root / path, _BYTE_FOR_BYTE)

    def _put(self, files: Mapping[str, bytes], *, env: Mapping[str, str] | None = None) -> None:
        """Put contents into an index, whatever the working tree has."""
        for path, data in files.items():
            blob = self._run(["hash-object", "-w", "--stdin"], data=data).decode().strip()
            entry = f"100644,{blob},{path}"
            self._run(["update-index", "--add", "--cacheinfo", entry], env=env)

    @contextmanager
    def _scratch_index(self) -> Iterator[Mapping[str, str]]:
        with TemporaryDirectory(prefix="heldout-index-") as folder:
            yield {"GIT_INDEX_FILE": str(Path(folder) / "index")}

    def _run(
        self,
        arguments: Sequence[str],
        *,
        data: bytes | None = None,
        env: Mapping[str, str] | None = None,
    ) -> bytes:
        result = self._start(arguments, data=data, env=env)
        if result.returncode != 0:
            said = result.stderr.decode(errors="replace").strip()
            raise StoreError(f"git {arguments[0]} failed: {_explain(said)}")
        return result.stdout

    def _start(
        self,
        arguments: Sequence[str],
        *,
        data: bytes | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(  # noqa: S603 - fixed program, arguments never through a shell
                ["git", *_SAFE, *arguments],  # noqa: S607 - found on the user's PATH by intent
                cwd=self.root,
                input=data,
                stdin=subprocess.DEVNULL if data is None else None,
                capture_output=True,
                env={**_environment(), **(env or {})},
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise SetupError("git is not installed, or the folder is gone") from None
        except subprocess.TimeoutExpired:
            raise StoreError(f"git {arguments[0]} took over {_SECONDS} s") from None


def _name(data: bytes) -> str:
    """A name in git, which may be any bytes; git is given the same ones back."""
    return data.decode("utf-8", "surrogateescape")


def _explain(said: str) -> str:
    """The line that tells most of what git said on standard error."""
    if lock := re.search(r"Unable to create '(.+\.lock)': File exists", said):
        return (
            f"{lock[1]} exists: another git is at work here, or one was killed. "
            f"When none is running: rm {lock[1]}, then call again"
        )
    lines = [line for line in said.splitlines() if not line.startswith("hint:")]
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (telling or lines or ["no message"])[0]


def _environment() -> dict[str, str]:
    """The caller's environment, without what would make git act on another repository."""
    kept = {k: v for k, v in os.environ.items() if not re.match(r"GIT_(?!SSH|ASKPASS|EXEC)", k)}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


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


def _parse_change(head: bytes, path: bytes) -> Change:
    _, mode, _, blob, status = head.decode("ascii").removeprefix(":").split(" ")
    return Change(
        status=status[0], mode=mode, blob=blob, path=path.decode("utf-8", "backslashreplace")
    )


def _parse_file(line: bytes) -> Change:
    head, _, path = line.partition(b"\t")
    mode, _, blob = head.decode("ascii").split(" ")
    return Change(status="A", mode=mode, blob=blob, path=path.decode("utf-8", "backslashreplace"))
