"""The files that views name: a list of queries, groups of queries, groups of documents.

A path below `labels/` leads into the vault, any other into the board.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from heldout.board.rules.spec import View
from heldout.errors import StoreError
from heldout.ids import Digest, digest_bytes
from heldout.measures.fairness import Exposures, read_target
from heldout.store.files import File
from heldout.store.repository import Repository
from heldout.store.vault import Vault
from heldout.trec.groups import (
    DocumentGroups,
    read_document_groups,
    read_facets,
    read_query_list,
)
from heldout.trec.scans import Signature

__all__ = ["ViewFiles", "find_view_file", "load_view_files"]

T = TypeVar("T")

_VAULT = "labels/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewFiles:
    """What the files say that the views of a query set name, by their paths.

    Attributes:
        queries: lists of queries.
        facets: groups of queries, group -> queries.
        groups: groups of documents.
        digests: of every file.
    """

    queries: Mapping[str, frozenset[str]] = field(default_factory=dict)
    facets: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    groups: Mapping[str, DocumentGroups] = field(default_factory=dict)
    digests: Mapping[str, Digest] = field(default_factory=dict)

    def has(self, view: View) -> bool:
        """Whether everything that a view names is here; a participant lacks what is held out."""
        return all(file in self.digests for file in view.files)

    def expose(self, view: View, signature: Signature) -> Exposures | None:
        """A run's tops through the groups of a view; `None` for a view without groups."""
        if view.groups is None:
            return None
        groups = self.groups[view.groups]
        target = read_target(groups, view.target, path=view.groups)
        return Exposures(signature=signature, groups=groups, target=target)


def load_view_files(
    repository: Repository, views: Iterable[View], *, vault: Vault | None
) -> ViewFiles:
    """Read the files that views of one query set name, each once.

    Args:
        repository: the board.
        views: those of the set.
        vault: gives what is held out; `None` on a participant's side, who does without.

    Raises:
        StoreError: a file is missing.
        InputError: a file is wrong, or a target names other groups than its file.
    """
    views = tuple(views)
    named = dict.fromkeys(file for view in views for file in view.files)
    paths = {
        name: find_view_file(repository, vault, name)
        for name in named
        if vault is not None or not name.startswith(_VAULT)
    }

    def read(kind: str, reader: Callable[..., T]) -> dict[str, T]:
        files = dict.fromkeys(getattr(view, kind) for view in views)
        return {name: _read(paths[name], name, reader) for name in files if name in paths}

    groups = read("groups", read_document_groups)
    for view in views:
        if view.groups in groups:  # told before any run is read
            read_target(groups[view.groups], view.target, path=view.groups)
    return ViewFiles(
        queries=read("queries", read_query_list),
        facets=read("facets", read_facets),
        groups=groups,
        digests={name: digest_bytes(path.read_bytes()) for name, path in paths.items()},
    )


def find_view_file(repository: Repository, vault: Vault | None, name: str) -> File:
    """Where a file lies that a view names.

    Args:
        repository: the board.
        vault: of it; needed for what is held out.
        name: its path in board.toml.

    Raises:
        StoreError: it is missing.
    """
    if vault is None or not name.startswith(_VAULT):
        return repository.file(name)
    file = vault.files.file(name)
    if not file.is_file():
        raise StoreError(f"{file} is missing: board.toml names {name}, which lies in the vault")
    return file


def _read(file: File, name: str, reader: Callable[..., T]) -> T:
    with file.open() as source:
        return reader(source, path=name)
