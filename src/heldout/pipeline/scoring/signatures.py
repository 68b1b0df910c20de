"""Signatures in the vault: later runs are compared with them, not with the run."""

import io
import zipfile
import zlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from heldout.errors import StoreError
from heldout.store.vault import Vault
from heldout.trec.scans import Scan, Signature

__all__ = ["keep_signatures", "read_signatures"]

_DAMAGED = (
    *(OSError, EOFError, ValueError, KeyError, MemoryError, NotImplementedError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)
"""What reading nonsense as an archive of arrays may raise."""


def keep_signatures(vault: Vault, submission: str, scans: Mapping[str, Scan]) -> None:
    """Store the first documents of each query of the runs that have no errors.

    Args:
        vault: where to.
        submission: its id.
        scans: run (`SET`, `SET~2` and so on) -> what the scan found.
    """
    arrays = {}
    for name, scan in scans.items():
        if scan.ok:
            arrays[f"{name}.documents"] = scan.signature.documents
            arrays[f"{name}.queries"] = np.array(scan.signature.queries)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    vault.signature(submission).write_whole(buffer.getvalue(), mode=0o600)


def read_signatures(vault: Vault, submission: str) -> dict[str, Signature]:
    """Run -> signature, of each seed; empty where none was stored.

    Raises:
        StoreError: the file is damaged.
    """
    file = vault.signature(submission)
    if not file.is_file():
        return {}
    try:
        with file.open() as source, np.load(source, allow_pickle=False) as arrays:
            names = [key.removesuffix(".queries") for key in arrays if key.endswith(".queries")]
            return {
                name: _signature(arrays[f"{name}.queries"], arrays[f"{name}.documents"])
                for name in names
            }
    except _DAMAGED:
        raise StoreError(f"{file} is damaged; restore it from the backup, or remove it") from None


def _signature(queries: NDArray[np.str_], documents: NDArray[np.uint64]) -> Signature:
    """Raises ValueError where the two do not belong together."""
    if documents.ndim != 2 or len(queries) != len(documents):  # noqa: PLR2004 - a row for each query
        raise ValueError(documents.shape)
    return Signature(queries=tuple(map(str, queries)), documents=documents)
