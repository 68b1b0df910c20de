"""Collections by the place that a command was told: embedded, in a folder, or of a catalogue."""

from pathlib import Path

import numpy as np

from heldout.collections.catalogue import PREFIX, read_catalogued
from heldout.collections.collection import Collection, split_queries
from heldout.collections.stdlib_docs import build_collection, read_docstrings
from heldout.collections.tables import find_labels, read_labels, read_texts
from heldout.errors import InputError, Problem, quote

__all__ = ["EMBEDDED", "PLACES", "find_first_stage", "read_collection"]

EMBEDDED = "stdlib-docs"
"""The embedded collection."""

PLACES = f"{EMBEDDED}, its halves {EMBEDDED}:dev and {EMBEDDED}:eval, irds:NAME, or a folder"
"""What a place may be, in words."""

_SPLIT_SEED = 0
_DEV_SHARE = 0.5


def read_collection(place: str) -> Collection:
    """Documents, queries and labels; a collection without labels has none.

    The halves of the embedded collection are those of `heldout rank --seed 0`.

    Args:
        place: as in `PLACES`.

    Raises:
        InputError: codes `collection-place`, and those of the readers.
        SetupError: the embedded collection or the catalogue cannot be read here.
    """
    name, _, half = place.partition(":")
    if name == EMBEDDED:
        return _embedded(place, half)
    if place.startswith(PREFIX):
        return read_catalogued(place.removeprefix(PREFIX))
    folder = Path(place)
    if not folder.is_dir():
        raise _no_place(place)
    documents, queries = read_texts(folder)
    labels = find_labels(folder)
    return Collection(
        documents=documents, queries=queries, qrels={} if labels is None else read_labels(labels)
    )


def find_first_stage(place: str) -> Path | None:
    """The run that lies in a folder to be re-ranked, `first.run` or `first.run.gz`."""
    paths = [Path(place) / "first.run", Path(place) / "first.run.gz"]
    return next((path for path in paths if path.is_file()), None)


def _embedded(place: str, half: str) -> Collection:
    if place not in (EMBEDDED, f"{EMBEDDED}:dev", f"{EMBEDDED}:eval"):
        raise _no_place(place)
    collection = build_collection(read_docstrings().docstrings)
    if not half:
        return collection
    split = split_queries(collection, dev=_DEV_SHARE, rng=np.random.default_rng(_SPLIT_SEED))
    return split.dev if half == "dev" else split.eval


def _no_place(place: str) -> InputError:
    return InputError(
        Problem(
            code="collection-place",
            path=quote(place),
            found="no folder and no name of a collection",
            expected=PLACES,
        )
    )
