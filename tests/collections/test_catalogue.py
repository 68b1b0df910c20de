"""Collections by the names of ir_datasets, on one that the test itself registers."""

import sys
from typing import Any

import pytest
from registered import registered

from heldout.collections.source import find_texts, read_catalogued
from heldout.errors import InputError, SetupError

__all__ = ["registered"]


@pytest.mark.usefixtures("registered")
def test_a_collection_is_read_with_its_labels() -> None:
    found = read_catalogued("heldout-named")
    assert found.documents == {"d1": "one document", "d2": "another"}
    assert found.queries == {"q1": "who", "q2": "what now"}
    assert found.qrels == {"q1": {"d1": 2, "d2": 1}, "q2": {"d2": 0}}


@pytest.mark.usefixtures("registered")
def test_a_few_texts_are_read_without_the_rest() -> None:
    assert find_texts(["irds:heldout-named/documents"], ["d1", "d9"]) == {"d1": "one document"}
    with pytest.raises(InputError, match="collection-name"):
        find_texts(["irds:no"], ["d1"])


@pytest.mark.usefixtures("registered")
def test_without_labels_there_are_none() -> None:
    assert read_catalogued("heldout-named/unlabelled").qrels == {}


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("nonsense", '"nonsense"'),
        ("", '""'),
        ("heldout-named/documents", "a name without queries"),
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
