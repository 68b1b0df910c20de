"""`Git` in memory: the same objects, ids and answers, without a process or a file."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn

from heldout.board.store.git import Author, Bounds, Change, Git
from heldout.errors import StoreError
from memory_folder import MemoryFolder

_TREE = "040000"
_NOTHING = "0" * 40
_MOST_CHANGES = 100
_Entries = dict[tuple[str, bool], tuple[str, str]]  # name, whether it is a folder -> mode, object

_BOUNDS = Bounds()


@dataclass(frozen=True)
class MemoryGit(Git):
    """A repository of which nothing is on disk, with one branch checked out: `main`.

    It has no remote, nothing is ignored, and what is not answered from memory is an error.

    Attributes:
        files: the working tree.
        objects: id -> kind and content.
        named: ref -> object.
        beside: what is stored beside git's own files.
    """

    files_there: MemoryFolder | None = None
    objects: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    beside: dict[str, bytes] = field(default_factory=dict)

    def put(self, kind: str, data: bytes) -> str:
        """Store an object."""
        head = f"{kind} {len(data)}\0".encode()
        name = hashlib.sha1(head + data, usedforsecurity=False).hexdigest()
        self.objects[name] = kind, data
        return name

    def commit_tree(
        self, changes: Mapping[str, tuple[str, bytes] | None], *, parent: str | None
    ) -> str:
        """A commit: path -> mode and content on top of a parent; `None` deletes."""
        files = {} if parent is None else dict(self._flat(self._tree_of(parent)))
        for path, change in changes.items():
            if change is None:
                files.pop(path)
                continue
            mode, data = change
            for other in [o for o in files if o.startswith(f"{path}/")]:
                del files[other]
            files[path] = mode, data.decode() if mode == "160000" else self.put("blob", data)
        who = Author(name="x", email="x@x")
        return self._commit(files, parent, "hostile", who, 0)

    def is_repository(self) -> bool:
        return True

    def init(self, branch: str = "main") -> None:
        assert branch == "main"

    def head(self) -> str | None:
        return self.named.get("refs/heads/main")

    def branch(self) -> str:
        return "main"

    def main_branch(self) -> str:
        return "main"

    def remotes(self) -> tuple[str, ...]:
        return ()

    def tracked(self) -> str | None:
        return None

    def unpushed(self) -> int:
        return 0

    def unpulled(self) -> int:
        return 0

    def configured_author(self) -> Author | None:
        return None

    def unignored(self, *paths: str) -> tuple[str, ...]:
        return paths

    def refs(self, *patterns: str, commits: bool = True) -> Mapping[str, str]:
        return {
            ref: one
            for ref, one in sorted(self.named.items())
            if (not patterns or any(_names(pattern, ref) for pattern in patterns))
            and (not commits or self.objects[one][0] == "commit")
        }

    def pack_refs(self, *, least: int) -> None:
        """Nothing: here no ref has a file."""

    def set_refs(self, refs: Mapping[str, str | None]) -> None:
        for ref, one in refs.items():
            if one is None:
                self.named.pop(ref, None)
            else:
                self._data(one)
                self.named[ref] = one

    def kinds_and_sizes(
        self, *objects: str, bounds: Bounds = _BOUNDS
    ) -> tuple[tuple[str, int], ...]:
        del bounds
        for one in objects:
            self._data(one)
        return tuple((self.objects[one][0], len(self.objects[one][1])) for one in objects)

    def files(self, commit: str, *folders: str) -> tuple[Change, ...]:
        tree = self._tree_of(commit)
        if not folders:
            return tuple(_added(path, mode, one) for path, (mode, one) in self._flat(tree))
        found: list[Change] = []
        for folder in folders:
            mode, inner = self._entries(tree).get((folder, True), ("", ""))
            entries = self._entries(inner) if mode else {}
            found += [_added(f"{folder}/{n}", m, one) for (n, _), (m, one) in entries.items()]
        return tuple(found)

    def top(self, commit: str) -> tuple[str, ...]:
        return tuple(name for name, _ in self._entries(self._tree_of(commit)))

    def tracked_of(self, *names: str) -> tuple[str, ...]:
        head = self.head()
        return () if head is None else tuple(name for name in names if name in self.top(head))

    def contains(self, tip: str, commit: str) -> bool:
        return commit in self._ancestors(tip)

    def blob_of(self, commit: str, path: str) -> str | None:
        return self._look(commit, path)

    def versions(self, path: str, *, most: int) -> tuple[str, ...]:
        found: list[str] = []
        commit = self.head()
        while commit is not None and len(found) < most:
            parents = self._parents(commit)
            before = self._look(parents[0], path) if parents else None
            if self._look(commit, path) != before:
                found.append(commit)
            commit = parents[0] if parents else None
        return tuple(found)

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
        every = dict(self._flat(self._tree_of(parent)))
        every |= {path: ("100644", self.put("blob", data)) for path, data in files.items()}
        ref = f"refs/heads/{branch}"
        now = self.named.get(ref)
        if now and self._tree_of(now) == self._store(every):
            return now
        self.named[ref] = self._commit(every, parent, message, author, int(at.timestamp()))
        return self.named[ref]

    def commit_paths(
        self,
        paths: Sequence[str],
        *,
        message: str,
        author: Author,
        at: datetime,
        without: Sequence[str] = (),
    ) -> str | None:
        there = self.files_there or MemoryFolder(self.root)
        head = self.head()
        before = {} if head is None else dict(self._flat(self._tree_of(head)))
        after = dict(before)
        for path in filter(there.exists, paths):
            for old in [o for o in before if o == path or o.startswith(f"{path}/")]:
                del after[old]
            inside = [path] if there.is_file(path) else [name for name, _ in there.walk(path)]
            for name in inside:
                if not any(name == out or name.startswith(f"{out}/") for out in without):
                    after[name] = "100644", self.put("blob", there.read(name))
                elif name in before:
                    after[name] = before[name]
        if after == before:
            return None
        made = self._commit(after, head, message, author, int(at.timestamp()))
        self.named["refs/heads/main"] = made
        return made

    def remembered(self, name: str) -> bytes | None:
        return self.beside.get(name)

    def remember(self, name: str, data: bytes) -> None:
        self.beside[name] = data

    def _read(self, names: Sequence[str], *, limit: int) -> Iterator[bytes | None]:
        for name in names:
            commit, colon, path = name.partition(":")
            one = self._look(self.named.get(commit, commit), path) if colon else name
            if one is None or one not in self.objects:
                yield None
                continue
            kind, data = self.objects[one]
            if kind != "blob":
                raise StoreError(f"git does not have the file {name}: {kind}")
            if len(data) > limit:
                raise StoreError(
                    f"a file of {len(data):,} bytes in git, at most {limit:,} are taken"
                )
            yield data

    def _changes(
        self, base: str, tips: Sequence[str], within: Sequence[str]
    ) -> Mapping[str, tuple[Change, ...] | None]:
        return {tip: self._changes_since(base, tip, within) for tip in tips}

    def _changes_since(
        self, base: str, tip: str, within: Sequence[str]
    ) -> tuple[Change, ...] | None:
        since = self._fork(base, tip)
        if since is None:
            return None
        old, new = self._entries(self._tree_of(since)), self._entries(self._tree_of(tip))
        here = _compare(old, new)
        looked = sorted(c.path for c in here if c.path in within and c.mode == _TREE)
        changes = [change for change in here if change.path not in looked]
        for name in looked:
            before = old.get((name, True))
            inner = _compare(
                self._entries(before[1]) if before else {}, self._entries(new[name, True][1])
            )
            changes += [
                Change(status=c.status, mode=c.mode, blob=c.blob, path=f"{name}/{c.path}")
                for c in inner
            ]
        return tuple(changes)

    def _fork(self, base: str, tip: str) -> str | None:
        """The last commit that both go back to."""
        shared = self._ancestors(base) & self._ancestors(tip)
        return next((one for one in shared if shared <= self._ancestors(one)), None)

    def _ancestors(self, commit: str) -> set[str]:
        found, waiting = set[str](), [commit]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting.extend(self._parents(one))
        return found

    def _parents(self, commit: str) -> list[str]:
        return re.findall(r"^parent (\w+)$", self._data(commit).decode(), re.MULTILINE)

    def _commit(
        self,
        files: Mapping[str, tuple[str, str]],
        parent: str | None,
        message: str,
        author: Author,
        at: int,
    ) -> str:
        who = f"{author.name} <{author.email}> {at} +0000"
        lines = [f"tree {self._store(files)}", *([f"parent {parent}"] if parent else [])]
        text = "\n".join([*lines, f"author {who}", f"committer {who}", "", message, ""])
        return self.put("commit", text.encode())

    def _store(self, files: Mapping[str, tuple[str, str]]) -> str:
        """The tree of files, by their paths."""
        here: dict[str, tuple[str, str]] = {}
        inner: dict[str, dict[str, tuple[str, str]]] = {}
        for path, entry in files.items():
            first, slash, rest = path.partition("/")
            if slash:
                inner.setdefault(first, {})[rest] = entry
            else:
                here[first] = entry
        here |= {name: (_TREE, self._store(below)) for name, below in inner.items()}
        order = sorted(here, key=lambda name: f"{name}/" if here[name][0] == _TREE else name)
        lines = [(here[name][0].removeprefix("0"), name, here[name][1]) for name in order]
        heads = [
            (f"{mode} {name}\0".encode("utf-8", "surrogateescape"), one)
            for mode, name, one in lines
        ]
        return self.put("tree", b"".join(head + bytes.fromhex(one) for head, one in heads))

    def _tree_of(self, commit: str) -> str:
        return self._data(commit)[5:45].decode()

    def _entries(self, tree: str) -> _Entries:
        data, found = self._data(tree), _Entries()
        while data:
            head, _, rest = data.partition(b"\0")
            mode, _, name = head.partition(b" ")
            padded = mode.decode().rjust(6, "0")
            found[name.decode("utf-8", "backslashreplace"), padded == _TREE] = (
                padded,
                rest[:20].hex(),
            )
            data = rest[20:]
        return found

    def _flat(self, tree: str, above: str = "") -> Iterator[tuple[str, tuple[str, str]]]:
        for (name, is_folder), (mode, one) in self._entries(tree).items():
            if is_folder:
                yield from self._flat(one, f"{above}{name}/")
            else:
                yield f"{above}{name}", (mode, one)

    def _look(self, commit: str, path: str) -> str | None:
        """The object at a path of a commit."""
        one = self._tree_of(commit)
        for part in path.split("/"):
            if self.objects[one][0] != "tree":
                return None
            entries = self._entries(one)
            found = entries.get((part, True)) or entries.get((part, False))
            if found is None:
                return None
            one = found[1]
        return one

    def _data(self, one: str) -> bytes:
        if one not in self.objects:
            raise StoreError(f"git does not have the object {one}; fetch again")
        return self.objects[one][1]

    def _running(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("git in memory starts no process")


def _compare(old: _Entries, new: _Entries) -> list[Change]:
    changes = []
    for name, is_folder in sorted({**old, **new}, key=lambda key: key[0] + "/" * key[1]):
        before, after = old.get((name, is_folder)), new.get((name, is_folder))
        if before == after:
            continue
        mode, blob = after or ("000000", _NOTHING)
        if before is None or after is None:
            status = "A" if before is None else "D"
        else:
            status = "M" if before[0][:3] == after[0][:3] else "T"
        changes.append(Change(status=status, mode=mode, blob=blob, path=name))
    return changes[: _MOST_CHANGES + 1]


def _added(path: str, mode: str, one: str) -> Change:
    return Change(status="A", mode=mode, blob=one, path=path)


def _names(pattern: str, ref: str) -> bool:
    """Whether `git for-each-ref` gives a ref for a pattern."""
    if "*" in pattern:
        return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), ref) is not None
    return ref == pattern or ref.startswith(f"{pattern.rstrip('/')}/")
