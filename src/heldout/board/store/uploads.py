"""The folder that takes uploads of sealed files and registrations, for `heldout inbox --from`.

Files are stored as they come and never opened. What is whole becomes a delivery in one step, a
folder of its own that is named by what is in it. So nobody can take anybody's name, and the same
files again are the same delivery.
"""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from heldout.errors import InputError, StoreError, quote
from heldout.files.durable import Folder
from heldout.ids import digest_bytes, is_submission_id

UploadKind = Literal["submission", "update", "registration"]
"""What one upload brings; an update is new metadata of a submission alone."""

TEAM_TOKEN = "HELDOUT_TEAM_TOKEN"  # noqa: S105 - the variable's name, no secret
"""Name of the environment variable that holds a team's token."""

DELIVERY = "delivery-"
"""What the name of a delivery's folder begins with; sixteen digits of a digest follow."""

_NAME_DIGITS = 16
_MODE = 0o640
_FOLDER_MODE = 0o750
_ASIDE = ".delivery"
_REGISTRATION = ".json"
_HEAD = re.compile(r"[A-Za-z0-9._-]{1,120}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """Most bytes of each file; the inbox takes no larger ones."""

    file_bytes: int = 1 << 30
    metadata_bytes: int = (1 << 20) + (1 << 16)
    key_bytes: int = 1 << 16
    registration_bytes: int = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadFolder:
    """Where uploads go.

    Attributes:
        path: the folder.
        endings: what follows an id in the names of the three files: runs, metadata, key.
        is_team: whether a name is the handle of a team, whose registration is then taken as
            HANDLE.json; `None` where no registration is.
        limits: how large a file may be.
    """

    path: Path
    endings: tuple[str, str, str]
    is_team: Callable[[str], bool] | None = None
    limits: FileLimits = field(default_factory=FileLimits)

    def deliver(self, files: Path, digests: Mapping[str, str]) -> None:
        """Make a delivery of files that are whole, all in one step; once more changes nothing.

        Args:
            files: the folder that has them, on the same disk; they stay there too.
            digests: name -> SHA-256, as it was checked.

        Raises:
            StoreError: there is no such folder, or it cannot be written.
        """
        if not self.path.is_dir():
            raise StoreError(f"{self.path} is not a folder")
        aside, delivery = files / _ASIDE, self.path / _delivery_name(digests)
        try:
            shutil.rmtree(aside, ignore_errors=True)  # what a killed server left
            aside.mkdir(mode=_FOLDER_MODE)
            for name in digests:
                (files / name).chmod(_MODE)
                (aside / name).hardlink_to(files / name)
            Folder(aside).sync()
            if not os.path.lexists(delivery) or _is_empty(delivery):
                aside.rename(delivery)
                Folder(self.path).sync()
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:  # else the same delivery was made meanwhile
                raise StoreError(f"{self.path} cannot be written: {error.strerror}") from error

    def count_deliveries(self) -> tuple[int, int]:
        """Return how many deliveries wait for the inbox, and their bytes; remove emptied ones."""
        count = total = 0
        for one in _entries(self.path):
            if one.name.startswith(DELIVERY):
                with suppress(OSError):  # it has files, or is no folder
                    Path(one.path).rmdir()
                    continue
                count += 1
                with suppress(OSError, StoreError):
                    stats = Folder(self.path).stats(one.name).values()
                    total += sum(found.st_size for found in stats)
        return count, total

    def has_delivery(self, digests: Mapping[str, str]) -> bool:
        """Check that files lie there and no inbox has taken them yet: name -> SHA-256."""
        return any(_entries(self.path / _delivery_name(digests)))

    def drop_delivery(self, digests: Mapping[str, str]) -> None:
        """Remove a delivery that its sender has replaced; name -> SHA-256."""
        shutil.rmtree(self.path / _delivery_name(digests), ignore_errors=True)

    def check_name(self, name: str) -> str:
        """Return the id of the submission, or the handle of the team, that a file belongs to.

        Raises:
            InputError: code `upload-name`: it is no name of a sealed file or a registration.
        """
        head = name.removesuffix(_REGISTRATION)
        if head != name and self.is_team is not None and self.is_team(head):
            return head
        for ending in self.endings:
            head = name.removesuffix(ending)
            if head != name and _HEAD.fullmatch(head) and is_submission_id(head):
                return head
        forms = [f"yyyymmdd-NAME{ending}" for ending in self.endings]
        forms += [f"team-HANDLE{_REGISTRATION}"] * (self.is_team is not None)
        raise _problem(
            "upload-name",
            quote(name),
            " or ".join(forms),
            hint="send the files as `heldout pack` or `heldout register --to` named them",
        )

    def check_set(self, sizes: Mapping[str, int]) -> tuple[str, UploadKind]:
        """Return what files make together: the id or the handle, and the kind.

        Args:
            sizes: base name -> bytes.

        Raises:
            InputError: codes `upload-name`; `upload-set`: not all three files of one submission,
                nor its metadata or a registration alone; `upload-too-large`.
        """
        owners = {self.check_name(name) for name in sizes}
        owner = min(owners, default="")
        for name, size in sizes.items():
            self.check_size(name, size)
        runs, metadata, key = (f"{owner}{ending}" for ending in self.endings)
        sets: dict[UploadKind, set[str]] = {
            "submission": {runs, key, metadata},
            "update": {metadata},
            "registration": {f"{owner}{_REGISTRATION}"},
        }
        kind = next((kind for kind, names in sets.items() if names == set(sizes)), None)
        empty = [name for name, size in sizes.items() if not size]
        if kind is None or empty:
            found = f"{empty[0]} is empty" if empty else ", ".join(sorted(sizes)) or "no file"
            raise _problem(
                "upload-set",
                found,
                "all three sealed files of a submission, its metadata alone for an update, or one "
                "registration",
                hint="choose the three together: hold Ctrl or Shift in the dialogue",
            )
        return owner, kind

    def check_size(self, name: str, size: int) -> None:
        """Refuse a file that is larger than the inbox takes it.

        Raises:
            InputError: code `upload-too-large`.
        """
        _, metadata, key = self.endings
        of_kind = {
            metadata: self.limits.metadata_bytes,
            key: self.limits.key_bytes,
            _REGISTRATION: self.limits.registration_bytes,
        }
        rest = self.limits.file_bytes
        most = min([rest, *(most for end, most in of_kind.items() if name.endswith(end))])
        if size > most:
            raise _problem(
                "upload-too-large", f"{name} of {size:,} bytes", f"at most {most:,} bytes"
            )


def _delivery_name(digests: Mapping[str, str]) -> str:
    return f"{DELIVERY}{digest_bytes(list_sums(digests).encode())[:_NAME_DIGITS]}"


def list_sums(digests: Mapping[str, str]) -> str:
    """Return one line for each file, as `sha256sum` writes and checks them."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))


def _is_empty(folder: Path) -> bool:
    """Check that a delivery was emptied file by file, as rsync does it."""
    return folder.is_dir() and not folder.is_symlink() and not any(_entries(folder))


def _entries(folder: str | Path) -> Iterator["os.DirEntry[str]"]:
    """Yield what lies in a folder, one after the other; nothing where there is none."""
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        yield from entries


def _problem(code: str, found: str, expected: str, *, hint: str = "") -> InputError:
    return InputError.of(code=code, path="upload", found=found, expected=expected, hint=hint)
