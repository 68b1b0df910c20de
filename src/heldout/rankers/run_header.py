"""The ir_metadata header of a run that `heldout rank` makes: how anybody can make it again.

It says what the rows do not: the method with its parameters, the collection, the libraries. It has
no time of day and no measured time, so that one call gives one file on one machine.
"""

import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import PurePath
from typing import Any

from heldout.collections.catalogue import PREFIX

_LIBRARIES = ("numpy", "bm25s", "PyStemmer", "torch", "transformers", "sentence-transformers")


def describe_run(
    *,
    tag: str,
    method: str,
    parameters: Mapping[str, str],
    collection: str,
    depth: int,
    first: str = "",
    rerank_depth: int | None = None,
    cores: int | None = None,
) -> Mapping[str, Any]:
    """The fields of a header, for `heldout.trec.ir_metadata.format_header`.

    Args:
        tag: of the run.
        method: name of the ranker.
        parameters: those that were given; all others have their defaults.
        collection: as it was named: `stdlib-docs`, `irds:` and a name, or a folder, of whose path
            the last part alone is stated.
        depth: documents per query.
        first: what is re-ranked; "" for nothing.
        rerank_depth: how many documents of that.
        cores: processors of this machine, where they are to be stated.
    """
    stage: dict[str, Any] = {"name": method, "params": dict(parameters)}
    if first:
        stage |= {"reranks": first, "rerank depth": rerank_depth}
    fetched = collection.startswith(PREFIX)
    named = collection.removeprefix(PREFIX) if fetched else PurePath(collection).name
    return {
        "tag": tag,
        "platform": {
            "hardware": {"cpu": {"architecture": platform.machine(), "number of cores": cores}},
            "operating system": {"kernel": f"{platform.system()} {platform.release()}"},
            "software": {
                "libraries": {"python": _list_libraries()},
                "retrieval toolkit": _versions("heldout"),
            },
        },
        "implementation": {"source": {"lang": [f"python {platform.python_version()}"]}},
        "method": {
            "automatic": True,
            "depth": depth,
            "retrieval": [*([{"name": first}] if first else []), stage],
        },
        "data": {
            "test collection": {
                "name": named,
                "ir_datasets": named if fetched else "",
            }
        },
    }


def _list_libraries() -> list[str]:
    return [one for name in _LIBRARIES for one in _versions(name)]


def _versions(name: str) -> list[str]:
    """`numpy==2.2.1`; nothing where it is not installed."""
    try:
        return [f"{name}=={metadata.version(name)}"]
    except metadata.PackageNotFoundError:
        return []
