"""The tutorials' part of the embedded collection."""

from pathlib import Path

import pytest

from heldout.collections import stdlib_docs as stdlib_sample
from heldout.collections.stdlib_docs import library_folder, read_sample
from heldout.errors import SetupError


def test_all_of_it_is_in_this_python() -> None:
    sample = read_sample()
    dev, evaluation = sample.split.dev, sample.split.eval
    assert sample.missing == 0
    assert (len(dev.queries), len(evaluation.queries)) == (200, 200)
    assert not set(dev.queries) & set(evaluation.queries)
    assert dev.documents == evaluation.documents
    for half in (dev, evaluation):
        assert half.qrels.keys() == half.queries.keys()
        assert all(len(grades) == 1 for grades in half.qrels.values())
        assert {doc for grades in half.qrels.values() for doc in grades} <= set(half.documents)


def test_what_a_python_lacks_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_sample().split
    (tmp_path / "shutil.py").write_bytes((library_folder() / "shutil.py").read_bytes())
    monkeypatch.setattr(stdlib_sample, "library_folder", lambda: tmp_path)
    sample = read_sample()
    found = len(sample.split.dev.documents)
    queries = len(sample.split.dev.queries) + len(sample.split.eval.queries)
    assert 0 < queries < found < 50
    assert sample.missing == len(whole.dev.documents) + 400 - found - queries


def test_a_python_without_source_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdlib_sample, "library_folder", lambda: tmp_path)
    with pytest.raises(SetupError, match="without it"):
        read_sample()
