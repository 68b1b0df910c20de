"""Data frames in and out: pandas, polars or pyarrow, whichever the caller has.

narwhals names the columns of all of them alike; none of them is needed otherwise.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from heldout.errors import InputError, SetupError, quote
from heldout.files.durable import write_whole

if TYPE_CHECKING:
    import numpy as np
    from narwhals import DataFrame, Series
    from numpy.typing import NDArray

    Frame: TypeAlias = "DataFrame[Any]"
    Texts: TypeAlias = "Series[Any]"

Backend = Literal["pandas", "polars", "pyarrow"]
"""Libraries whose frames can be made."""


def is_frame(thing: object) -> bool:
    """Check whether it is a data frame of a library that narwhals knows; lazy ones are."""
    from narwhals.dependencies import is_into_dataframe  # noqa: PLC0415 - files need no frames

    return type(thing).__name__ == "LazyFrame" or is_into_dataframe(thing)


def open_frame(thing: Any, *, path: str) -> "Frame":
    """A frame as narwhals has it; a lazy one is collected.

    Args:
        thing: a frame of pandas, polars, pyarrow, or of another library that narwhals knows.
        path: what it is called in messages.

    Raises:
        InputError: code `frame-columns`: two columns have one name.
    """
    import narwhals as nw  # noqa: PLC0415 - as above
    from narwhals.exceptions import DuplicateError  # noqa: PLC0415 - the same

    try:
        frame = nw.from_native(thing)
        names = list(frame.collect_schema().names())
    except (DuplicateError, ValueError) as error:
        raise InputError.of("frame-columns", path, str(error).splitlines()[0]) from None
    if len(set(names)) < len(names):
        twice = ", ".join(sorted({quote(name) for name in names if names.count(name) > 1}))
        raise InputError.of("frame-columns", path, f"{twice} twice")
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def find_column(
    frame: "Frame", names: Sequence[str], *, path: str, required: bool = True
) -> "Texts | None":
    """The one column that has one of these names.

    Args:
        frame: from `open_frame`.
        names: that mean the same, as `qid` and `query_id`.
        path: what the frame is called in messages.
        required: whether it has to be there.

    Returns:
        The column; `None` where there is none and none is required.

    Raises:
        InputError: code `frame-columns`: none of them is there, or several.
    """
    there = [name for name in names if name in frame.columns]
    if len(there) == 1:
        return frame[there[0]]
    if not there and not required:
        return None
    shown = ", ".join(map(quote, frame.columns[:8]))
    found = f"columns {' and '.join(map(quote, there))}" if there else f"columns {shown or 'none'}"
    expected = f"one column called {' or '.join(names)}"
    hint = "drop one of them" if there else "rename the column that has it"
    raise InputError.of("frame-columns", path, found, expected, hint)


def check_texts(column: "Texts", *, path: str) -> "Texts":
    """A column of ids, refused where it holds anything but text.

    Raises:
        InputError: codes `frame-type` and `frame-missing`, the latter with the row.
    """
    import narwhals as nw  # noqa: PLC0415 - as above

    kind = column.dtype
    if kind in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    elif kind != nw.String and not (kind == nw.Object and _all_texts(column)):
        hint = "ids are text, and 007 is not 7: read the file with these columns as strings"
        found = f"{str(kind).lower()} in column {quote(column.name)}"
        raise InputError.of("frame-type", path, found, "ids as text", hint)
    missing = column.is_null()
    if missing.any():
        row = int(missing.to_numpy().argmax()) + 1
        found = f"no value in column {quote(column.name)}"
        raise InputError.of("frame-missing", path, found, line=row)
    return column


def _all_texts(column: "Texts") -> bool:
    return all(isinstance(one, str) or one is None for one in column.to_list())


def read_numbers(column: "Texts", *, path: str, whole: bool = False) -> "NDArray[np.float64]":
    """A column of numbers as float64; a missing one is NaN.

    Args:
        column: of a frame.
        path: what the frame is called in messages.
        whole: whether numbers with a fraction are refused.

    Raises:
        InputError: codes `frame-type` and, where whole numbers are asked for, `frame-number`.
    """
    import numpy as np  # noqa: PLC0415 - as above

    if not column.dtype.is_numeric():
        found = f"{str(column.dtype).lower()} in column {quote(column.name)}"
        raise InputError.of("frame-type", path, found)
    if column.dtype.is_integer() or column.dtype.is_decimal():
        import narwhals as nw  # noqa: PLC0415 - as above

        # Integers that may be missing have no array of their own in every library
        numbers = np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)
    else:
        numbers = np.asarray(column.to_numpy(), np.float64)
    if column.dtype.is_integer() or not whole:
        return numbers
    if not bool((numbers == np.floor(numbers)).all()):
        row = int(np.argmax(~(numbers == np.floor(numbers))))
        found = f"{numbers[row]:g} in column {quote(column.name)}"
        raise InputError.of("frame-number", path, found, line=row + 1)
    return numbers


def code_texts(column: "Texts") -> "NDArray[np.int64] | NDArray[np.uint64]":
    """A number for each text: equal texts have equal numbers.

    Different texts have different ones too, but for two that share a hash of 64 bits, once in a
    very long while: whoever finds equal numbers compares the texts.

    Args:
        column: of texts, none missing.
    """
    import numpy as np  # noqa: PLC0415 - as above

    kind = column.implementation
    if kind.is_polars():
        hashed: NDArray[np.uint64] = column.to_native().hash().to_numpy()
        return hashed
    if (kind.is_pandas() or kind.is_pyarrow()) and find_spec("pyarrow") is not None:
        return _hash_arrow(column.to_native())
    if kind.is_pandas():
        import pandas as pd  # noqa: PLC0415 - the frame is one of pandas

        return np.asarray(pd.factorize(column.to_native())[0], np.int64)
    codes: dict[str, int] = {}
    texts = column.to_list()
    return np.fromiter((codes.setdefault(text, len(codes)) for text in texts), np.int64, len(texts))


_MIX = 0x9E3779B97F4A7C15
_WORD = 8


def _hash_arrow(column: Any) -> "NDArray[np.uint64]":
    """Hashes of texts from their bytes in memory, eight at a time; no text becomes an object."""
    import numpy as np  # noqa: PLC0415 - as above
    import pyarrow as pa  # noqa: PLC0415 - the caller has it

    texts = column if isinstance(column, pa.ChunkedArray) else pa.array(column)
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    text = np.zeros((0 if data is None else data.size) + _WORD, np.uint8)
    text[:-_WORD] = np.frombuffer(data or b"", np.uint8)
    words = np.ndarray(len(text) - _WORD + 1, "<u8", text, strides=(1,))  # at each byte
    starts, lengths = bounds[:-1], np.diff(bounds)
    masks = np.array([(1 << (8 * n)) - 1 for n in range(_WORD + 1)], np.uint64)
    mix = np.uint64(_MIX)

    def add(hashed: "NDArray[np.uint64]", at: Any, left: Any) -> "NDArray[np.uint64]":
        hashed = (hashed ^ (words[at] & masks[np.minimum(left, _WORD)])) * mix
        return hashed ^ (hashed >> np.uint64(32))

    hashed = add(lengths.astype(np.uint64) * mix, starts, lengths)
    for done in range(_WORD, int(lengths.max(initial=0)), _WORD):
        rows = np.flatnonzero(lengths > done)  # most ids end within a word or two
        hashed[rows] = add(hashed[rows], starts[rows] + done, lengths[rows] - done)
    return hashed


PARQUET = ".parquet"
"""What the name of a file of columns ends in."""

_READERS: Sequence[Backend] = ("polars", "pyarrow")


def read_parquet(path: "str | PathLike[str]") -> "Frame":
    """The columns of a Parquet file.

    Raises:
        InputError: codes `unreadable-file`, `parquet`.
        SetupError: neither polars nor pyarrow is installed.
    """
    import narwhals as nw  # noqa: PLC0415 - as above

    backend = find_parquet()
    try:
        frame: Frame = nw.read_parquet(path, backend=backend)
    except OSError as error:
        if not Path(path).is_file():
            reason = error.strerror or "no such file"
            raise InputError.of("unreadable-file", str(path), reason, "a file") from None
        raise _no_parquet(path, error) from None
    except Exception as error:  # noqa: BLE001 - each library has errors of its own
        raise _no_parquet(path, error) from None
    return frame


def write_parquet(columns: Mapping[str, Any], path: "str | PathLike[str]") -> None:
    """Columns as a Parquet file, whole or not at all.

    Args:
        columns: by name, sequences or arrays of one length; `None` is a missing value.
        path: the file.

    Raises:
        SetupError: neither polars nor pyarrow is installed.
    """
    import narwhals as nw  # noqa: PLC0415 - as above

    data = BytesIO()
    nw.from_dict(dict(columns), backend=find_parquet()).write_parquet(data)
    write_whole(Path(path), data.getvalue())


def find_parquet() -> Backend:
    """Return what reads and writes Parquet here.

    Raises:
        SetupError: neither polars nor pyarrow is installed.
    """
    for name in _READERS:
        if find_spec(name) is not None:
            return name
    raise SetupError("Parquet needs polars or pyarrow: pip install 'heldout[frames]'")


def _no_parquet(path: "str | PathLike[str]", error: Exception) -> InputError:
    why = (str(error).splitlines() or [type(error).__name__])[0]
    return InputError.of("parquet", str(path), why[:200])


class Framed:
    """What has columns, as frames.

    `columns` gives them: lists of one length by name, in which `None` is a missing value.
    """

    __slots__ = ()

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """The columns by name; each class has its own."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """A frame of pandas, with the columns of `columns()`."""
        return self.to_frame("pandas")

    def to_polars(self) -> Any:
        """A frame of polars, with the columns of `columns()`."""
        return self.to_frame("polars")

    def to_frame(self, backend: Backend) -> Any:
        """A frame of a library, with the columns of `columns()`.

        Raises:
            SetupError: the library is not installed.
        """
        return make_frame(self.columns(), backend)


def make_frame(columns: Mapping[str, Sequence[Any]], backend: Backend) -> Any:
    """A frame of a library, from columns of equal length; `None` is a missing value.

    Raises:
        SetupError: the library is not installed.
    """
    import narwhals as nw  # noqa: PLC0415 - as above

    try:
        return nw.from_dict(dict(columns), backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise SetupError(f"{backend} is not installed: pip install {backend}") from error
