"""What `heldout survive train` trains on: labels with their places, and triples of them."""

from pathlib import Path

import click
import pytest
from qna_files import as_columns, pack, query

from heldout.cli.survive.annotation_source import AnnotationSource
from heldout.cli.survive.training_material import Material, read_material
from heldout.cli.survive.training_options import TripleChoice
from heldout.errors import InputError

SHOWN = 4


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Six queries in the form of MS MARCO QnA, and a collection of the same passages by number."""
    queries = [
        query(number, [int(at == number % SHOWN) for at in range(SHOWN)]) for number in range(6)
    ]
    (tmp_path / "train.json").write_bytes(pack(as_columns(queries)))
    documents = [
        f"{100 * number + at}\tpassage {at} of {number}\n"
        for number in range(6)
        for at in range(1, SHOWN + 1)
    ]
    (tmp_path / "documents.tsv").write_text("".join(documents))
    (tmp_path / "queries.tsv").write_text("".join(f"{n}\twhat is {n}\n" for n in range(6)))
    (tmp_path / "triples.tsv").write_text(
        "".join(f"{n}\t{100 * n + n % SHOWN + 1}\t{100 * ((n + 1) % 6) + 1}\n" for n in range(6))
    )
    return tmp_path


def read(place: Path, *, triples: str | None = None, **source: object) -> Material:
    choice = TripleChoice(
        collection=str(place),
        triples=None if triples is None else str(place / triples),
        negatives=2,
        negatives_from=10,
        skip_unknown=False,
        seed=0,
    )
    return read_material(AnnotationSource(**source), choice)  # type: ignore[arg-type]


def test_passages_of_qna_have_the_ids_of_the_collection_that_is_trained_on(place: Path) -> None:
    found = read(place, triples="triples.tsv", annotations=place / "train.json")
    assert found.places == {str(n): {str(100 * n + n % SHOWN + 1): n % SHOWN + 1} for n in range(6)}
    assert len(found.triples) == 6


def test_other_labels_select_from_the_passages_by_the_ids_of_the_collection(place: Path) -> None:
    (place / "other.qrels").write_text("3 0 302 1\n")
    found = read(place, annotations=place / "train.json", qrels=place / "other.qrels")
    assert found.places == {"3": {"302": 2}}


def test_a_label_that_the_collection_has_no_text_of_is_left_out_and_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = (place / "documents.tsv").read_text()
    (place / "documents.tsv").write_text(documents.replace("passage 1 of 0\n", "another\n"))
    found = read(place, annotations=place / "train.json")
    assert set(found.places) == {"1", "2", "3", "4", "5"}
    told = " ".join(capsys.readouterr().err.split())
    assert "1 passage missing of 24 that were shown" in told
    assert "1 of 6 selected passages missing" in told


def test_a_collection_of_other_texts_is_refused(place: Path) -> None:
    (place / "documents.tsv").write_text("1\tnothing of that\n")
    with pytest.raises(InputError, match="no-common-document"):
        read(place, annotations=place / "train.json")


@pytest.mark.parametrize("option", ["qrels", "query_list", "save"])
def test_options_of_annotations_are_refused_where_none_are_named(place: Path, option: str) -> None:
    with pytest.raises(click.UsageError, match=f"without --{option.replace('_', '-')}"):
        read(place, **{option: place / "x"})
    assert not (place / "x").exists()


@pytest.mark.parametrize("option", ["types", "queries", "documents"])
def test_files_of_texts_are_refused_since_the_collection_has_them(place: Path, option: str) -> None:
    with pytest.raises(click.UsageError, match=f"without --{option}"):
        read(place, annotations=place / "train.json", **{option: place / "x"})
