"""The embedded collection: its rules on a library of our own, wide bounds on the real one."""

import sys
import sysconfig
import types
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.collections import stdlib_docs
from heldout.collections.collection import Collection
from heldout.collections.extension_docstrings import module_docstrings
from heldout.collections.stdlib_docs import (
    Docstring,
    build_collection,
    parse_docstrings,
    read_docstrings,
)
from heldout.errors import SetupError

LIBRARY = Path(__file__).parent / "fixtures" / "library.py"


def library() -> Collection:
    return build_collection(parse_docstrings(LIBRARY.read_bytes(), module="library"))


NEVER_RUN = (
    "Nothing in it is ever run: the first statement below would end the process. The words in "
    "this paragraph are the answer to the query above."
)
LOOKED_UP = (
    "The box is looked up in the cupboard first, then under the bed; where neither holds it, "
    "a new and empty one is made. Args: name: what is written on the lid."
)
COUNTED = (
    "Shelves are counted from the floor, and a box that is too tall for its shelf is put on "
    "top of the cupboard instead."
)


def test_queries_are_first_paragraphs_that_are_fair_to_ask() -> None:
    collection = library()
    answers = {
        collection.queries[query]: [collection.documents[document] for document in grades]
        for query, grades in collection.qrels.items()
    }
    assert answers == {
        "A small library whose docstrings make a collection.": [NEVER_RUN],
        "Open the box of that name and look inside.": [LOOKED_UP],
        "Holds boxes, each on a shelf of its own.": [COUNTED],
    }


def test_what_answers_no_query_is_still_a_document() -> None:
    texts = sorted(library().documents.values())
    assert len(texts) == 10
    assert "See also: close." in texts
    assert "What keeps a box shut." in texts
    assert "Stand in a clause of a statement and still be found." in texts


def test_a_copy_of_a_query_is_no_document() -> None:
    assert "Holds boxes, each on a shelf of its own." not in library().documents.values()


def test_ids_are_digests_of_the_text() -> None:
    # sha256("what keeps a box shut.") begins so: printf '...' | sha256sum
    ids = {text: key for key, text in library().documents.items()}
    assert ids["What keeps a box shut."] == "d8395f3389e4e"


words = st.lists(
    st.sampled_from(["Open", "open", "the", "box", "a", "b."]), min_size=1, max_size=12
)
docstrings = st.lists(
    st.lists(words.map(" ".join), min_size=1, max_size=3).map(
        lambda parts: Docstring(name="m", text="\n\n".join(parts))
    ),
    max_size=12,
)


@given(docstrings, st.randoms(use_true_random=False))
def test_every_collection_keeps_the_rules(found: list[Docstring], random: Random) -> None:
    collection = build_collection(found)
    mixed = list(found)
    random.shuffle(mixed)
    assert build_collection(mixed) == collection
    assert list(collection.documents) == sorted(collection.documents)
    assert list(collection.queries) == sorted(collection.queries) == list(collection.qrels)
    folded = [text.casefold() for text in collection.documents.values()]
    assert len(set(folded)) == len(folded)
    for query, grades in collection.qrels.items():
        ((document, grade),) = grades.items()
        assert grade == 1
        assert 3 <= len(collection.queries[query].split()) <= 25
        assert len(collection.documents[document].split()) >= 10
        assert collection.queries[query].casefold() not in collection.documents[document].casefold()
        assert collection.queries[query].casefold() not in folded


@pytest.fixture
def our_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A standard library of our own in place of the real one."""
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    return tmp_path


def test_tests_programs_and_packages_are_left_out(our_library: Path) -> None:
    for name in ("kept", "package/__init__", "package/deep", "package/tests/no", "idlelib/no"):
        path = our_library / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""About {name}."""')
    source = read_docstrings()
    ours = [found.name for found in source.docstrings if found.text.startswith("About ")]
    assert ours == ["kept", "package", "package.deep"]


def test_a_broken_module_is_skipped_and_named(our_library: Path) -> None:
    (our_library / "broken.py").write_text("def (")
    (our_library / "kept.py").write_text('"""Kept."""')
    source = read_docstrings()
    assert [skipped.module for skipped in source.skipped] == ["broken"]
    assert source.skipped[0].reason.startswith("SyntaxError")
    assert "kept" in {found.name for found in source.docstrings}


@pytest.mark.usefixtures("our_library")
def test_a_python_without_source_is_said() -> None:
    with pytest.raises(SetupError, match="no standard library source"):
        read_docstrings()


def test_an_extension_that_cannot_be_imported_is_skipped_and_named(
    our_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (our_library / "kept.py").write_text('"""Kept."""')
    monkeypatch.setattr(stdlib_docs, "_extension_modules", lambda _: ["math", "no_such_module"])
    source = read_docstrings()
    assert [skipped.module for skipped in source.skipped] == ["no_such_module"]
    assert source.skipped[0].reason.startswith("ModuleNotFoundError")
    assert "math.sqrt" in {found.name for found in source.docstrings}


@pytest.mark.parametrize(
    "script", ["import os; os._exit(3)", "print('no JSON')", "while True: pass"]
)
def test_a_failing_other_process_is_said(
    our_library: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    (our_library / "kept.py").write_text('"""Kept."""')
    worker = our_library / "worker"
    worker.write_text(script)
    monkeypatch.setattr(stdlib_docs, "_SCRIPT", worker)
    monkeypatch.setattr(stdlib_docs, "_LIMIT_SECONDS", 1.0)
    with pytest.raises(SetupError, match="built-in modules could not be read"):
        read_docstrings()


def test_members_of_an_imported_module() -> None:
    class Box:
        """A box."""

        lid = property(doc="The lid.")
        constant = 7

        def open(self) -> None:
            """Open it."""

        @staticmethod
        def undocumented() -> None: ...

    module = types.ModuleType("ours", "Our module.")
    Box.__module__ = "ours"
    vars(module).update(Box=Box, foreign=Path, number=3)
    found = dict(module_docstrings(module))
    assert {name: text for name, text in found.items() if "__" not in name} == {
        "ours": "Our module.",
        "ours.Box": "A box.",
        "ours.Box.lid": "The lid.",
        "ours.Box.open": "Open it.",
    }


@pytest.mark.night
def test_the_running_python_has_enough_with_source_and_without() -> None:
    real = read_docstrings()
    collection = build_collection(real.docstrings)
    assert 4_000 < len(collection.documents) < 20_000
    assert 1_000 < len(collection.queries) < 8_000
    assert len(real.skipped) < 20
    names = {found.name for found in real.docstrings}
    assert {"json.loads", "argparse.ArgumentParser", "math.sqrt", "builtins.dict.fromkeys"} <= names
    assert not any(name.startswith(("test.", "_testcapi", "idlelib")) for name in names)


def test_reading_imports_nothing_here(our_library: Path) -> None:
    (our_library / "ruinous.py").write_text('"""Ruinous."""\nraise SystemExit(1)\n')
    before = set(sys.modules)
    assert "ruinous" in {found.name for found in read_docstrings().docstrings}
    assert not {"ruinous", "antigravity", "this"} & (set(sys.modules) - before)
