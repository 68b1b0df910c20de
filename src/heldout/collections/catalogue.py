"""Datasets of the library ir_datasets, by their names.

It fetches what it does not have yet and stores it in its own folder (`IR_DATASETS_HOME`, or
`.ir_datasets` at home). Source: MacAvaney et al., SIGIR 2021.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from heldout.errors import InputError, SetupError, printable, quote

PREFIX = "irds:"
"""What stands before a name of ir_datasets."""

Part = TypeVar("Part")

DatasetPart = Literal["docs", "queries", "qrels"]
_WORDS: Mapping[DatasetPart, str] = {
    "docs": "documents",
    "queries": "queries",
    "qrels": "judgments",
}


def open_dataset(named: str, *parts: DatasetPart) -> Any:
    """A dataset of ir_datasets; nothing is fetched yet.

    Args:
        named: `irds:` and a name of the library.
        parts: what it must have.

    Raises:
        InputError: code `collection-name`: there is none of this name, or it lacks a part.
        SetupError: ir_datasets is not installed.
    """
    name = named.removeprefix(PREFIX)
    dataset = _load(name, parts)
    for part in parts:
        if not getattr(dataset, f"has_{part}")():
            raise _no_name(name, f"a name without {_WORDS[part]}", parts)
    return dataset


def _load(name: str, parts: Sequence[DatasetPart]) -> Any:
    try:
        import ir_datasets  # type: ignore[import-untyped]  # noqa: PLC0415 - extra `data`
    except ImportError as error:
        message = f"{PREFIX}NAME needs ir_datasets: pip install 'heldout[data]'"
        raise SetupError(message) from error
    try:
        return ir_datasets.load(name)
    except KeyError as error:
        from difflib import get_close_matches  # noqa: PLC0415 - only a refusal needs it

        near = get_close_matches(name, list(ir_datasets.registry), n=3)
        raise _no_name(name, quote(name), parts, near) from error


def _no_name(
    name: str, found: str, parts: Sequence[DatasetPart], near: Sequence[str] = ()
) -> InputError:
    wanted = " and ".join(_WORDS[part] for part in parts)
    hint = "its catalogue lists them, such as beir/scifact/test"
    if near:
        hint = f"did you mean {' or '.join(f'{PREFIX}{one}' for one in near)}?"
    return InputError.of(
        code="collection-name",
        path=printable(f"{PREFIX}{name}"),
        found=found,
        expected=f"a name of ir_datasets that has {wanted}",
        hint=hint,
    )


def read_part(named: str, read: Callable[[], Part]) -> Part:
    """Return what is read of a dataset of ir_datasets, which may fetch it.

    Args:
        named: `irds:` and its name.
        read: reads it.

    Raises:
        SetupError: the library could not fetch or read its files.
    """
    name = named.removeprefix(PREFIX)
    try:
        return read()
    except Exception as error:
        cause = printable(f"{type(error).__name__}: {error}")[:200]
        message = (
            f"ir_datasets could not read {printable(name)}. If it has to download files: try again "
            "with a network, or copy the folder .ir_datasets from a machine that has them. "
            f"({cause})"
        )
        raise SetupError(message) from error
