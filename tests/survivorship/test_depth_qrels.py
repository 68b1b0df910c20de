"""Labels at each depth: the place at which each passage was selected, and files that disagree."""

import gzip
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.survivorship.reading.depth_qrels import has_depth_qrels, read_depth_qrels
from heldout.trec.qrels import format_qrels

Selected = Mapping[str, Mapping[str, int]]

_PLACES = st.dictionaries(
    st.integers(0, 99).map("q{}".format),
    st.dictionaries(st.integers(0, 20).map("d{}".format), st.integers(1, 5), min_size=1),
    min_size=1,
).filter(lambda found: any(place == 1 for docs in found.values() for place in docs.values()))


def write_depths(folder: Path, selected: Selected, *, last: int, name: str = "dev-") -> None:
    """The labels of each depth, of which the last is `all`."""
    for depth in range(1, last + 1):
        kept = {
            query: found
            for query, docs in selected.items()
            if (found := {doc: 1 for doc, place in docs.items() if place <= depth})
        }
        label = "all" if depth == last else str(depth)
        (folder / f"{name}{label}.qrels.gz").write_bytes(gzip.compress(format_qrels(kept), 1))


def refused(folder: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read_depth_qrels(folder)
    return caught.value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_depths(tmp_path, {"q1": {"a": 1, "b": 3}, "q2": {"c": 2}}, last=3)
    return tmp_path


@given(selected=_PLACES)
def test_places_come_out_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory, selected: Selected
) -> None:
    folder = tmp_path_factory.mktemp("depths")
    write_depths(folder, selected, last=5)
    found = read_depth_qrels(folder)
    assert {one.query: dict(one.selected) for one in found.records} == selected
    assert (found.depth, found.open_ended, found.discarded) == (5, True, None)


def test_a_repeated_line_is_told_once_by_the_shallowest_depth_that_has_it(folder: Path) -> None:
    for name in ("dev-2.qrels.gz", "dev-all.qrels.gz"):
        text = gzip.decompress((folder / name).read_bytes())
        first, _, _ = text.partition(b"\n")
        (folder / name).write_bytes(gzip.compress(text + first + b"\n"))
    (note,) = read_depth_qrels(folder).notes

    assert (note.code, note.severity) == ("repeated-judgment", "note")
    assert note.path.endswith("dev-2.qrels.gz")


def test_queries_of_the_list_that_have_no_label_were_discarded(folder: Path) -> None:
    (folder / "dev.survived.txt").write_text("q2\nq1\n")
    (folder / "dev.discarded.txt").write_text("q9\nq10\n")
    found = read_depth_qrels(folder)
    assert [(one.query, one.first) for one in found.records] == [
        ("q1", 1),
        ("q2", 2),
        ("q10", None),
        ("q9", None),
    ]
    assert (found.survived, found.discarded) == (2, 2)


def test_without_all_nothing_is_deeper_than_the_last_depth(folder: Path) -> None:
    (folder / "dev-all.qrels.gz").unlink()
    found = read_depth_qrels(folder)
    assert (found.depth, found.open_ended) == (2, False)


def test_a_document_judged_not_relevant_was_not_selected(tmp_path: Path) -> None:
    (tmp_path / "1.qrels").write_text("q1 0 a 0\nq2 0 b 1\n")
    assert [one.first for one in read_depth_qrels(tmp_path).records] == [None, 1]


def test_a_label_that_a_deeper_annotation_lacks_is_named_with_its_line(folder: Path) -> None:
    (folder / "dev-1.qrels").write_text("\nq1 0 a 1\nq1 0 z 1\n")
    (folder / "dev-1.qrels.gz").unlink()
    (problem,) = refused(folder).problems
    assert (problem.code, problem.line) == ("depth-not-nested", 3)
    assert problem.path.endswith("dev-1.qrels")
    assert "z for q1" in problem.found


def test_a_grade_that_changes_with_depth_is_named(folder: Path) -> None:
    (folder / "dev-2.qrels.gz").write_bytes(b"q1 0 a 2\nq2 0 c 1\n")
    found = refused(folder)
    assert {problem.code for problem in found.problems} == {"conflicting-judgment"}
    assert [problem.line for problem in found.problems] == [1, 1]


@pytest.mark.parametrize(
    ("removed", "added"),
    [
        (["dev-1.qrels.gz"], []),
        (["dev-1.qrels.gz", "dev-2.qrels.gz"], []),
        (["dev-1.qrels.gz", "dev-2.qrels.gz", "dev-all.qrels.gz"], []),
        ([], ["train-1.qrels"]),
        ([], ["dev-1.qrels"]),
        ([], ["dev-01.qrels"]),
        ([], ["dev-0.qrels"]),
        ([], ["dev-4.qrels"]),
        ([], ["dev-all.qrels"]),
        ([], ["dev.discarded.txt", "train.discarded.txt"]),
    ],
)
def test_depths_that_do_not_say_every_place_are_refused(
    folder: Path, removed: list[str], added: list[str]
) -> None:
    for name in removed:
        (folder / name).unlink()
    for name in added:
        (folder / name).write_text("q1 0 a 1\n" if name.endswith("qrels") else "q9\n")
    (problem,) = refused(folder).problems
    assert problem.code == "depth-files"


def test_a_discarded_query_with_a_label_is_refused(folder: Path) -> None:
    (folder / "dev.discarded.txt").write_text("q2\nq9\n")
    (problem,) = refused(folder).problems
    assert problem.code == "query-lists"
    assert problem.found == "1 query with a label in dev-all.qrels.gz: q2"


def test_an_archive_that_ends_too_early_is_named(folder: Path) -> None:
    path = folder / "dev-2.qrels.gz"
    path.write_bytes(path.read_bytes()[:-12])
    (problem,) = refused(folder).problems
    assert (problem.code, problem.path) == ("truncated-archive", str(path))


def test_other_files_are_no_depths(tmp_path: Path) -> None:
    for name in ("qrels.txt", "dev.qrels", "all.qrels.bak", "small-qrels", "dev-1.qrels.xz"):
        (tmp_path / name).write_text("q1 0 a 1\n")
    assert not has_depth_qrels(tmp_path)
    (tmp_path / "all.qrels").write_text("q1 0 a 1\n")
    assert has_depth_qrels(tmp_path)


@pytest.mark.slow
@pytest.mark.real
def test_the_published_depths_give_the_place_of_every_label(data: Callable[[str], Path]) -> None:
    found = read_depth_qrels(data("msmarco-annotation-depth"))
    assert (found.survived, found.discarded) == (55_578, 45_515)
    assert (found.depth, found.open_ended) == (10, True)
    places = Counter(place for one in found.records for place in one.selected.values())
    assert (places[1], sum(places.values())) == (8_197, 59_273)
    first = Counter(one.first for one in found.records if one.first)
    queries = [sum(first[place] for place in range(1, depth + 1)) for depth in range(1, 11)]
    # The paper's Table 4 has 5 to 36 fewer: queries that its runs do not answer.
    assert queries == [8197, 15543, 22060, 27858, 33062, 38024, 42669, 47146, 51344, 55578]
