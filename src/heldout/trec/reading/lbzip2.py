"""bzip2 by lbzip2, which uses all cores, in a child process that is fed by a thread.

lbzip2 silently leaves out whatever follows the last member (2.5, measured), which we refuse.
So one more member is fed after the last byte of the file, with a secret in it: the secret ends
the output if and only if all before it was members, each whole.

rapidgzip (0.16.1), the other fast decoder, stays out: it leaves out trailing bytes as well, but
reads the file by itself, so nothing can be fed after them; it does not compare the checksum of a
whole member, so that blocks may be missing; it writes its warnings to our stderr; and with two
threads it takes 27 MB of this process, which has 64 MB for everything.
"""

import bz2
import contextlib
import secrets
import subprocess
from collections.abc import Generator
from threading import Thread
from typing import IO

from heldout.trec.reading.sources import Received

__all__ = ["IrregularError", "run_lbzip2"]

_SECRET = 32
_READ = 1 << 20
_F_SETPIPE_SZ = 1031


class IrregularError(Exception):
    """This is not the output of an archive that is whole; why, the standard library decides."""


def run_lbzip2(
    program: str, head: bytes, received: Received, *, threads: int
) -> Generator[bytes, None, None]:
    """What lbzip2 makes of an archive, in pieces of about 1 MiB.

    Args:
        program: its path.
        head: what has been read of the archive.
        received: the rest of it.
        threads: how many it may use.

    Raises:
        IrregularError: it was not whole. What came out before may or may not belong to it.
    """
    secret = secrets.token_bytes(_SECRET)
    # No environment: LBZIP2 and BZIP2 in it would be read as options.
    command = [program, "--decompress", "--stdout", f"-n{threads}"]
    with subprocess.Popen(  # noqa: S603 - our own arguments; the file comes through a pipe
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
    ) as child:
        feeder = _Feeder(_pipe(child.stdin), head, received, bz2.compress(secret))
        try:
            yield from _before(secret, _pipe(child.stdout))
            feeder.join()
            if child.wait() or not feeder.done:
                raise IrregularError
        finally:
            child.kill()
            feeder.join()


def _before(secret: bytes, output: IO[bytes]) -> Generator[bytes, None, None]:
    """The output without the secret at its end; pieces are passed on as they came."""
    held = b""
    while chunk := output.read(_READ):
        if len(chunk) < _SECRET:
            held += chunk
            continue
        yield held
        held = chunk
    if not held.endswith(secret):
        raise IrregularError
    yield held[:-_SECRET]


class _Feeder(Thread):
    """Writes the archive and the member with the secret, then closes the pipe."""

    def __init__(self, pipe: IO[bytes], head: bytes, received: Received, last: bytes) -> None:
        super().__init__(name="heldout-lbzip2", daemon=True)
        self._pipe = pipe
        self._head = head
        self._received = received
        self._last = last
        self.done = False
        self.start()

    def run(self) -> None:
        # Whatever fails here, the program or the source, fails again where it is decided.
        with contextlib.suppress(Exception):
            chunk = self._head
            while chunk:
                self._pipe.write(chunk)
                chunk = self._received.read()
            self._pipe.write(self._last)
            self._pipe.flush()
            self.done = True
        with contextlib.suppress(OSError):
            self._pipe.close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    """The pipe, as large as the system lets us make it, which spares changes of threads."""
    if pipe is None:
        raise IrregularError
    with contextlib.suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - only on POSIX

        fcntl.fcntl(pipe, _F_SETPIPE_SZ, _READ)
    return pipe
