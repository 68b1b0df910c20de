"""Collections by the names of ir_datasets, on one that the test itself registers."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heldout.collections.source import find_texts, read_catalogued
from heldout.errors import InputError, SetupError

DOCUMENTS = b"d1\tone  document\nd2\tanother\n"
QUERIES = b"q1\twho\nq2\twhat\n"
QRELS = b"q1 0 d1 2\nq2 0 d2 0\nq1 0 d2 1\n"


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The library with one collection more, and nothing written at home."""
    place = tmp_path_factory.mktemp("ir_datasets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IR_DATASETS_HOME", str(place))
        import ir_datasets  # type: ignore[import-untyped]  # noqa: PLC0415 - looks for its folder

        docs = ir_datasets.formats.TsvDocs(_file(ir_datasets, place / "d.tsv", DOCUMENTS))
        queries = ir_datasets.formats.TsvQueries(_file(ir_datasets, place / "q.tsv", QUERIES))
        qrels = ir_datasets.formats.TrecQrels(_file(ir_datasets, place / "qrels", QRELS), {})
        kinds = {"heldout-test": (docs, queries, qrels), "heldout-test/texts": (docs, queries)}
        kinds["heldout-test/documents"] = (docs,)
        for name, parts in kinds.items():
            ir_datasets.registry.register(name, ir_datasets.Dataset(*parts))
        yield ir_datasets
        for name in kinds:
            del ir_datasets.registry._registered[name]


def _file(library: Any, path: Path, content: bytes) -> Any:
    path.write_bytes(content)
    return library.util.LocalDownload(path)


@pytest.mark.usefixtures("registered")
def test_a_collection_is_read_with_its_labels() -> None:
    found = read_catalogued("heldout-test")
    assert found.documents == {"d1": "one document", "d2": "another"}
    assert found.queries == {"q1": "who", "q2": "what"}
    assert found.qrels == {"q1": {"d1": 2, "d2": 1}, "q2": {"d2": 0}}


@pytest.mark.usefixtures("registered")
def test_a_few_texts_are_read_without_the_rest() -> None:
    assert find_texts(["irds:heldout-test/documents"], ["d1", "d9"]) == {"d1": "one document"}
    with pytest.raises(InputError, match="collection-name"):
        find_texts(["irds:no"], ["d1"])


@pytest.mark.usefixtures("registered")
def test_without_labels_there_are_none() -> None:
    assert read_catalogued("heldout-test/texts").qrels == {}


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("nonsense", '"nonsense"'),
        ("", '""'),
        ("heldout-test/documents", "a name without queries"),
    ],
)
def test_a_name_that_cannot_be_ranked_is_refused(name: str, found: str) -> None:
    with pytest.raises(InputError) as caught:
        read_catalogued(name)
    (problem,) = caught.value.problems
    assert (problem.code, problem.found) == ("collection-name", found)


def test_what_cannot_be_fetched_is_said_with_its_cause(registered: Any) -> None:
    class Unreachable:
        def path(self, *_: object) -> None:
            raise ConnectionError("no\x1b[31m network")

        stream = path

    docs = registered.formats.TsvDocs(Unreachable())
    queries = registered.formats.TsvQueries(Unreachable())
    registered.registry.register("heldout-lost", registered.Dataset(docs, queries))
    with pytest.raises(
        SetupError, match=r"heldout-lost.*copy the folder.*ConnectionError: no.*x1b"
    ):
        read_catalogued("heldout-lost")
    del registered.registry._registered["heldout-lost"]


def test_without_the_library_the_install_command_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(SetupError, match=r"pip install 'heldout\[data\]'"):
        read_catalogued("vaswani")
