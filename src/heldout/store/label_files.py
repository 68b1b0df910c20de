"""Label versions on disk: NAME.qrels with the labels, NAME.json with what they are made of."""

import re
from pathlib import Path

from heldout.errors import InputError, Problem, StoreError
from heldout.ids import digest_bytes
from heldout.preferences.versions import LabelVersion, Made, format_version, parse_version
from heldout.store.files import Folder

__all__ = ["newest_version", "read_version", "read_versions", "write_version"]

_PRIVATE = 0o600
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


def read_versions(folder: Path) -> tuple[LabelVersion, ...]:
    """All versions of a folder, each after its parent; none where there is no folder.

    Raises:
        InputError: as `parse_version`.
        StoreError: a parent is missing.
    """
    names = [name.removesuffix(".json") for name in _list_names(folder)]
    found = {name: read_version(folder, name) for name in names}
    ordered: dict[str, LabelVersion] = {}
    while len(ordered) < len(found):
        ready = [
            one
            for name, one in found.items()
            if name not in ordered and (one.parent is None or one.parent in ordered)
        ]
        if not ready:
            lost = min(found.keys() - ordered.keys())
            raise StoreError(f"{folder / lost}.json names a parent that is not there")
        ordered |= {one.name: one for one in ready}
    return tuple(ordered.values())


def _list_names(folder: Path) -> tuple[str, ...]:
    """The files that say what a version is made of, sorted."""
    return tuple(name for name in Folder(folder).names() if name.endswith(".json"))


def newest_version(folder: Path) -> LabelVersion | None:
    """The last version; `None` where there is none."""
    return next(reversed(read_versions(folder)), None)


def read_version(folder: Path, name: str) -> LabelVersion:
    """A version, whose labels are there and as they were written.

    Raises:
        InputError: as `parse_version`.
        StoreError: it is missing, or its labels are missing or were changed.
    """
    _check_name(name)
    place, labels = (Folder(folder).file(f"{name}.{suffix}") for suffix in ("json", "qrels"))
    for file in (place, labels):
        if not file.is_file():
            raise StoreError(f"{file} is missing; `heldout prefer labels` makes label versions")
    version = parse_version(place.read_bytes(), path=str(place))
    if digest_bytes(labels.read_bytes()) != version.qrels_sha256:
        raise StoreError(f"{labels} was changed since it was made; make another version instead")
    return version


def write_version(folder: Path, made: Made) -> bool:
    """Write a version; whether anything was written.

    Raises:
        InputError: code `label-name`.
        StoreError: there is another version of this name.
    """
    name = _check_name(made.version.name)
    files = Folder(folder)
    place = files.file(f"{name}.json")
    if place.is_file():
        if read_version(folder, name) == made.version:
            return False
        raise StoreError(f"{place} is another version; versions are never changed: name another")
    files.write_whole(f"{name}.qrels", made.qrels, mode=_PRIVATE)
    place.write_whole(format_version(made.version), mode=_PRIVATE)
    return True


def _check_name(name: str) -> str:
    """The name of a version, if it can be that of a file.

    Raises:
        InputError: code `label-name`.
    """
    if _NAME.fullmatch(name):
        return name
    raise InputError(
        Problem(
            code="label-name",
            path="--name",
            found=name,
            expected="up to 64 letters, digits, dots, hyphens or underscores",
        )
    )
