"""Collections by name or folder, perhaps half of their queries.

The halves are those of `heldout rank --queries dev` and `eval`, by the same rule and seed.
"""

from functools import lru_cache, partial
from pathlib import Path

from heldout.collections.catalogue import PREFIX
from heldout.collections.collection import Collection
from heldout.collections.source import EMBEDDED, QuerySubset, read_whole, take_subset
from heldout.errors import InputError, Problem, quote
from heldout.progress import SILENT, Progress

PLACES = f"{EMBEDDED}, irds:NAME, or a folder; with :dev or :eval behind it, half its queries"
"""What names a collection, in words."""


class CollectionReader:
    """Reads collections by their places; the last one stays at hand, for its other half."""

    def __init__(self, seed: int, progress: Progress = SILENT) -> None:
        """Nothing is read yet.

        Args:
            seed: divides the queries into halves.
            progress: is told what is fetched and left out.
        """
        self._seed = seed
        self._whole = lru_cache(maxsize=1)(partial(_read_whole, progress=progress))

    def read(self, place: str) -> Collection:
        """Documents, queries and labels; a collection without labels has none.

        Args:
            place: as in `PLACES`.

        Raises:
            InputError: codes `collection-place`, and those of the readers.
            SetupError: the embedded collection or the catalogue cannot be read here.
        """
        base, subset = _split_place(place)
        return take_subset(self._whole(base), subset, self._seed)


def find_first_stage(place: str) -> Path | None:
    """The run that lies in a folder to be re-ranked, `first.run` or `first.run.gz`."""
    folder = Path(_split_place(place)[0])
    paths = [folder / "first.run", folder / "first.run.gz"]
    return next((path for path in paths if path.is_file()), None)


def _split_place(place: str) -> tuple[str, QuerySubset]:
    """The collection, and which of its queries; a folder may have a colon in its own name."""
    base, _, half = place.removeprefix(PREFIX).rpartition(":")
    if not base or Path(place).is_dir():
        return place, "all"
    base = place.removesuffix(f":{half}")
    if half == "dev":
        return base, "dev"
    return (base, "eval") if half == "eval" else (place, "all")


def _read_whole(place: str, *, progress: Progress) -> Collection:
    if place == EMBEDDED or place.startswith(PREFIX) or Path(place).is_dir():
        return read_whole(place, progress=progress)[0]
    raise InputError(
        Problem(
            code="collection-place",
            path=quote(place),
            found="no folder and no name of a collection",
            expected=PLACES,
        )
    )
