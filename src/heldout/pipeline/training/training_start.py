"""What trainings begin from, told apart by its files."""

from hashlib import sha256
from pathlib import Path

from heldout.errors import StoreError
from heldout.ids import Digest
from heldout.rankers.checkpoints import MINILM, find_checkpoint
from heldout.rankers.cross_encoder import CrossEncoderSettings
from heldout.survivorship.training.experiment import Start

__all__ = ["find_start"]

_BLOCK = 1 << 20


def find_start(model: CrossEncoderSettings) -> Start:
    """A model with the digest of its files, where somebody could replace them.

    Args:
        model: a published name is known by its name; of a folder all files but notes (`.md`)
            and hidden ones count.

    Raises:
        StoreError: a file of the folder cannot be read.
    """
    folder = Path(model.model)
    if model.model == MINILM or find_checkpoint(model.model) or not folder.is_dir():
        return Start(model=model)
    found = sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix != ".md" and not path.name.startswith("."):
            found.update(f"{path.name} {_digest(path)}\n".encode())
    return Start(model=model, files=Digest(found.hexdigest()))


def _digest(path: Path) -> str:
    found = sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                found.update(block)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    return found.hexdigest()
