"""What a vault holds out and scores depend on: labels, masks, groups, as a commitment names them.

Every file `labels/STEM.SUFFIX` counts whose stem a board names: a query set, or the labels of a
view. In a commitment `eval` stands for `labels/eval.qrels`, as boards have had it from the start,
and any other file for itself: `eval.exclude`.

`eval.key` is the secret key of a query set: 32 random bytes. It is committed to as labels are, and
never changes: who could choose another one, once runs are known, would choose what is published.
"""

import re
from collections.abc import Mapping
from typing import Any

from heldout.board.rules.spec import BoardSpec, View
from heldout.errors import StoreError

__all__ = [
    "format_key",
    "held_out_file",
    "held_out_name",
    "is_commitment",
    "is_key",
    "key_name",
    "list_open",
    "list_stems",
    "names_of_board",
    "names_of_view",
    "needs_key",
    "open_labels",
    "parse_key",
    "stem_of",
]

_FILE = re.compile(r"([A-Za-z0-9_-]{1,32})\.([a-z]{1,16})", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}(\.[a-z]{1,16})?", re.ASCII)
_DIGEST = re.compile("[0-9a-f]{64}", re.ASCII)
_FOLDER = "labels/"
_LABELS = ".qrels"
_KEY = ".key"
_KEY_TEXT = re.compile(rb"[0-9a-f]{64}\n")


def held_out_name(file: str) -> str | None:
    """What a file of `labels/` is called in a commitment; `None` for one that decides no score."""
    return file.removesuffix(_LABELS) if _FILE.fullmatch(file) else None


def held_out_file(name: str) -> str:
    """The inverse of `held_out_name`."""
    return name if "." in name else name + _LABELS


def stem_of(name: str) -> str:
    """The query set, or the labels, that a name in a commitment belongs to."""
    return name.partition(".")[0]


def key_name(query_set: str) -> str:
    """What the secret key of a query set is called in a commitment."""
    return f"{query_set}{_KEY}"


def is_key(name: str) -> bool:
    """Whether a name in a commitment is that of a key."""
    return name.endswith(_KEY)


def needs_key(spec: BoardSpec, query_set: str) -> bool:
    """Whether some rules need a secret key of a query set."""
    views = [view for view in spec.views if view.set == query_set]
    drawn = any(view.part is not None or view.noise is not None for view in views)
    ratchet = spec.release.rule == "ratchet" and any(view.public for view in views)
    return spec.sets[query_set].held_out and (drawn or ratchet)


def parse_key(data: bytes, *, path: str) -> bytes:
    """The 32 bytes of a key file.

    Raises:
        StoreError: it is none.
    """
    if not _KEY_TEXT.fullmatch(data):
        raise StoreError(
            f"{path} is no key of a query set: expected are 64 digits 0-9a-f and the end of the "
            "line; restore it from the backup"
        )
    return bytes.fromhex(data.decode("ascii"))


def format_key(key: bytes) -> bytes:
    """The inverse of `parse_key`."""
    return f"{key.hex()}\n".encode("ascii")


def open_labels(name: str) -> str:
    """Where a board has further labels of a set whose own are public."""
    return f"qrels/{name}.qrels"


def list_open(spec: BoardSpec, *sets: str) -> tuple[str, ...]:
    """The files in the board that scores depend on: queries, labels, candidates, those of views.

    Args:
        spec: the rules.
        sets: names of query sets; none for all.
    """
    chosen = [spec.sets[name] for name in sets or spec.sets]
    named = [path for one in chosen for path in (one.queries, one.qrels, one.candidates)]
    for view in spec.views:
        if sets and view.set not in sets:
            continue
        named += [path for path in view.files if not path.startswith(_FOLDER)]
        if view.labels is not None and not spec.sets[view.set].held_out:
            named.append(open_labels(view.labels))
    return tuple(sorted({path for path in named if path is not None}))


def names_of_view(view: View) -> frozenset[str]:
    """The held-out files that a view's published scores depend on, as far as there are any."""
    files = (path.removeprefix(_FOLDER) for path in view.files if path.startswith(_FOLDER))
    named = {name for file in files if (name := held_out_name(file)) is not None}
    own = {view.labels or view.set, f"{view.set}.exclude", key_name(view.set)}
    return frozenset({*own, *named})


def names_of_board(spec: BoardSpec) -> frozenset[str]:
    """The same for all views of some rules; a set with public labels has none of its own here."""
    public = {name for name, files in spec.sets.items() if not files.held_out}
    names = (
        names_of_view(view) - ({view.labels, view.set} if view.set in public else set())
        for view in spec.views
    )
    return frozenset[str]().union(*names)


def list_stems(spec: BoardSpec, *sets: str) -> frozenset[str]:
    """What the names of all held-out files begin with that query sets may depend on.

    Args:
        spec: the rules.
        sets: names of query sets; none for all.
    """
    chosen = sets or tuple(spec.sets)
    names = [names_of_view(view) for view in spec.views if view.set in chosen]
    return frozenset(map(stem_of, frozenset(chosen).union(*names)))


def is_commitment(value: Any) -> bool:
    """Whether opened digests have the one form of a commitment: name -> SHA-256."""
    return isinstance(value, Mapping) and all(
        isinstance(name, str)
        and _NAME.fullmatch(name)
        and isinstance(digest, str)
        and _DIGEST.fullmatch(digest)
        for name, digest in value.items()
    )
