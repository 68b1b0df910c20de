"""What `heldout rank` shows and keeps while it encodes a collection, which may take hours.

Heavy imports stand inside the functions, as in `ranking`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from heldout.cli.console import progress
from heldout.cli.printing import messages
from heldout.errors import printable

if TYPE_CHECKING:
    from heldout.rankers.run import Run, Task
    from heldout.rankers.vectors import Encoding

__all__ = ["show_encoding", "vectors_path"]


def vectors_path(out: Path) -> Path:
    """Where the vectors of documents stand of a run that is not finished."""
    return out.with_name(f"{out.name}.vectors")


def show_encoding(
    choose: "Callable[[Encoding], Callable[[Task], Run]]", out: Path, *, fresh: bool
) -> "Callable[[Task], Run]":
    """A ranker that shows a bar while it encodes and goes on where a killed run stopped.

    Args:
        choose: gives the ranker, told where vectors are kept and who hears of progress.
        out: the run file to be; vectors are kept beside it, in OUT.vectors.
        fresh: begin anew, whatever is there.

    Returns:
        From a task to its run; raises what the ranker raises, and StoreError where OUT.vectors
        cannot be written.

    Raises:
        InputError: what `choose` raises, before anything is read.
    """
    from heldout.rankers.vectors import Encoding, remove_vectors  # noqa: PLC0415 - heavy

    choose(Encoding())
    folder = vectors_path(out)

    def rank(task: "Task") -> "Run":
        if fresh:
            remove_vectors(folder)
        if folder.is_dir():
            messages().print(
                f"going on with what of this collection is in {printable(str(folder))}"
            )
        with progress("encoding", len(task.documents)) as advance:

            def tell(texts: int) -> None:
                for _ in range(texts):
                    advance()

            return choose(Encoding(folder=folder, progress=tell))(task)

    return rank
