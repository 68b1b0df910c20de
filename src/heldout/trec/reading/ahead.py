"""Reading ahead: an iterator runs in a thread of its own while its items are used."""

from collections.abc import Generator, Iterator
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Generic, TypeVar

__all__ = ["Ahead"]

T = TypeVar("T")


class _End:
    """The last thing in the queue, perhaps with the error that ended it all."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Ahead(Generic[T]):
    """The items of a generator, in order, made in a thread some items ahead.

    What the generator raises is raised where its items are taken, after those before it. After
    `close`, or the last item, neither the thread nor the generator runs any more.
    """

    def __init__(self, items: Generator[T], *, depth: int) -> None:
        """Begin.

        Args:
            items: run in the thread from now on, and closed there.
            depth: most items that wait to be taken, >= 1.
        """
        self._items = items
        self._ready: SimpleQueue[T | _End] = SimpleQueue()
        self._room = Semaphore(depth - 1)
        self._stopped = False
        self._thread = Thread(target=self._run, name="heldout-ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        end = _End()
        try:
            for item in self._items:
                self._ready.put(item)
                self._room.acquire()
                if self._stopped:
                    break
        except BaseException as error:  # noqa: BLE001 - raised again where items are taken
            end = _End(error)
        finally:
            self._items.close()
            self._ready.put(end)

    def __iter__(self) -> Iterator[T]:
        """The items that are left.

        Raises:
            BaseException: whatever the generator raises.
        """
        while not self._stopped:
            item = self._ready.get()
            if isinstance(item, _End):
                self.close()
                if item.error is not None:
                    raise item.error
                return
            self._room.release()
            yield item

    def close(self) -> None:
        """Stop the thread and wait for it; does nothing a second time.

        The item that is being made is finished first.
        """
        self._stopped = True
        self._room.release()
        self._thread.join()
