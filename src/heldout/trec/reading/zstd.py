"""zstd: one frame at a time, in pieces of bounded size; those without text are skipped."""

from collections.abc import Iterator

import zstandard

__all__ = ["Frame", "Skipped"]

_WINDOW = 1 << 27
_BLOCK = 1 << 17
_ROOM = 1 << 20
_HEADER = 3
_SKIPPED_HEADER = 8
_RLE = 1
_COMPRESSED = 2


class Frame:
    """One frame, fed in whole blocks: the library gives out all that a piece of input stands for.

    A block of four bytes can stand for 128 KiB, so the blocks of a frame are told apart (RFC
    8878, 3.1.1) and only as many are fed at a time as stand for 1 MiB.
    """

    def __init__(self) -> None:
        """Begin a frame."""
        self._inner = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
        self._waiting = b""
        self._begun = False
        self._counted = True

    def ended(self) -> bool:
        """Whether the frame is complete."""
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        """What was fed beyond its end."""
        return self._inner.unused_data + self._waiting

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The text of more bytes, all there is so far.

        Raises:
            ValueError: the frame is damaged.
        """
        self._waiting += data
        place = 0
        while not self._inner.eof and (end := self._ready(place)) > place:
            try:
                text = self._inner.decompress(self._waiting[place:end])
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from error
            yield text
            place = end
        self._waiting = self._waiting[place:]

    def _ready(self, place: int) -> int:
        """Up to where what waits from `place` on may be fed; `place` if there is not yet enough."""
        if not self._begun:
            size = _header_size(self._waiting)
            self._begun = size > 0
            return size
        return self._whole_blocks(place) if self._counted else len(self._waiting)

    def _whole_blocks(self, place: int) -> int:
        data, room = self._waiting, _ROOM
        while room > 0:
            header = data[place : place + _HEADER]
            if len(header) < _HEADER:
                break
            bits = int.from_bytes(header, "little")
            last, kind, size = bits & 1, bits >> 1 & 3, bits >> 3
            if last or size > _BLOCK:
                # The last block, or none at all, which the library refuses: no more can come out.
                self._counted = False
                return len(data)
            end = place + _HEADER + (1 if kind == _RLE else size)
            if end > len(data):
                break
            room -= _BLOCK if kind == _COMPRESSED else size
            place = end
        return place


class Skipped:
    """A frame without text: a number of bytes that is told in its header (RFC 8878, 3.1.2).

    `pzstd` begins each of its pieces with one.
    """

    def __init__(self) -> None:
        """Begin a frame."""
        self._header = b""
        self._left = 0
        self.unused_data = b""

    def ended(self) -> bool:
        """Whether the frame is complete."""
        return len(self._header) == _SKIPPED_HEADER and not self._left

    def feed(self, data: bytes) -> Iterator[bytes]:
        """No text; counts what belongs to the frame."""
        if len(self._header) < _SKIPPED_HEADER:
            missing = _SKIPPED_HEADER - len(self._header)
            self._header, data = self._header + data[:missing], data[missing:]
            self._left = int.from_bytes(self._header[4:], "little")
        self.unused_data = data[self._left :]
        self._left -= len(data) - len(self.unused_data)
        return iter(())


def _header_size(data: bytes) -> int:
    """Length of a frame's header, 0 if it is not yet there."""
    try:
        size = zstandard.frame_header_size(data)
        return size if size <= len(data) else 0
    except zstandard.ZstdError:
        return 0
