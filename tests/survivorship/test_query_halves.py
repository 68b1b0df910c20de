"""Halves of a collection's queries: one rule for every collection and every command."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from heldout.cli.program import main
from heldout.errors import InputError
from heldout.survivorship.training.material import CollectionReader, find_first_stage


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Forty queries, of which two are near copies of each other."""
    queries = {f"q{n}": f"word{n} thing{n}" for n in range(38)}
    queries |= {"x1": "how to open a file in here", "x2": "how to open a file in there"}
    folder = tmp_path / "my folder"
    folder.mkdir()
    (folder / "queries.tsv").write_text("".join(f"{k}\t{v}\n" for k, v in queries.items()))
    (folder / "documents.tsv").write_text("".join(f"d{n}\tword{n}\n" for n in range(38)))
    (folder / "qrels.txt").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(38)))
    return folder


def test_halves_of_a_folder_are_disjoint_and_together_all(place: Path) -> None:
    reader = CollectionReader()
    whole, dev, rest = (reader.read(f"{place}{half}") for half in ("", ":dev", ":eval"))
    assert whole.queries.keys() == dev.queries.keys() | rest.queries.keys()
    assert not dev.queries.keys() & rest.queries.keys()
    assert abs(len(dev.queries) - 20) <= 1
    assert ("x1" in dev.queries) == ("x2" in dev.queries)
    assert dev.qrels.keys() == dev.queries.keys() & whole.qrels.keys()
    assert dev.documents is rest.documents is whole.documents


def test_halves_are_those_that_are_ranked(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--collection", str(place), "--queries", "dev", "--out", str(out)]
    found = CliRunner().invoke(main, ["rank", "--method", "bm25", *options])
    assert found.exit_code == 0, found.output
    ranked = {line.split()[0] for line in out.read_text().splitlines()}
    assert ranked == CollectionReader().read(f"{place}:dev").queries.keys()


def test_a_folder_with_a_colon_in_its_name_is_found(place: Path) -> None:
    odd = place.rename(place.parent / "odd:dev")
    assert len(CollectionReader().read(str(odd)).queries) == 40
    assert 19 <= len(CollectionReader().read(f"{odd}:eval").queries) <= 21


def test_the_first_run_of_a_folder_is_that_of_its_halves(place: Path) -> None:
    assert find_first_stage(f"{place}:dev") is None
    (place / "first.run.gz").write_bytes(b"")
    assert find_first_stage(f"{place}:dev") == place / "first.run.gz"


@pytest.mark.parametrize("name", ["nowhere", "nowhere:dev", "stdlib-docs:third", ":dev"])
def test_what_is_no_place_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="collection-place"):
        CollectionReader().read(name)
