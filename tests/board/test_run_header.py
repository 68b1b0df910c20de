"""What a draft takes from the headers of its runs, and a header made of an entry's metadata."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import pytest
from boardlog import make_manifest
from certain import sure

from heldout.board.log.manifest import Efficiency, Manifest, empty_manifest
from heldout.board.participant.run_header import (
    FromHeaders,
    describe_identity,
    fill_manifest,
    take_from_runs,
)
from heldout.errors import InputError
from heldout.trec.ir_metadata import format_header, read_header

ROW = "1 Q0 a 1 2.5 t\n"
QUERIES = {"dev": 100, "eval": 300}
EMPTY = empty_manifest(types=("full ranking",), embargo_until=None)


def header(text: str) -> str:
    lines = "".join(f"# {line}\n" for line in text.strip().splitlines())
    return f"# ir_metadata.start\n{lines}# ir_metadata.end\n"


def take(folder: Path, **texts: str) -> FromHeaders:
    """What run files with these headers give; a text without one is a file as it is."""
    files: dict[str, Path] = {}
    for name, text in texts.items():
        files[name] = folder / f"{name}.run"
        files[name].write_text(header(text) + ROW if ":" in text else text + ROW)
    return take_from_runs(files, count_queries=QUERIES.__getitem__)


def fields(found: FromHeaders) -> Mapping[str, object]:
    return {one.name: one.value for one in found.taken}


WHOLE = """
schema-version: 0.1
tag: mono
platform:
  hardware:
    cpu:
      model: Some CPU @ 3.50GHz
      number of cores: 16
    gpu:
      model: Some GPU
      memory: 40960 MB
    ram: 64 GB
research goal:
  publication:
    doi: https://doi.org/10.1000/182
    url: https://example.org/paper.pdf
implementation:
  source:
    repository: git@example.org:group/code.git
    commit: 0123456
method:
  automatic: true
  retrieval:
  - name: bm25
  - name: monot5
    reranks: bm25
actor:
  name: A. Person
  team: Lighthouse
data:
  training data:
  - name: MS MARCO
    source: https://example.org/msmarco
  - name: own clicks
resources:
  runtime:
    wallclock: 1200 ms
  cpu:
    energy used system: 7200 J
  ram:
    energy used system: 3600 J
"""


def test_what_fits_a_field_of_the_metadata_is_taken(tmp_path: Path) -> None:
    found = take(tmp_path, dev=WHOLE, eval=WHOLE)

    assert found.notes == ()
    assert fields(found) == {
        "team": "Lighthouse",
        "model_description": "bm25, monot5",
        "paper": "https://doi.org/10.1000/182",
        "code": "https://example.org/group/code",
        "training_data": "MS MARCO, own clicks",
        "efficiency.hardware": "Some CPU @ 3.50GHz, 16 cores, 64 GB RAM; GPU Some GPU, 40960 MB",
        "efficiency.query_latency_ms": 3.0,  # one measurement of both runs: 400 queries
        "efficiency.energy_kwh": 0.003,
    }
    by_name = {one.name: one for one in found.taken}
    assert by_name["team"].key == "actor: team"
    assert by_name["team"].path == str(tmp_path / "dev.run")
    assert "over 400 queries" in by_name["efficiency.query_latency_ms"].key


def test_two_measurements_are_summed_and_one_alone_says_no_energy(tmp_path: Path) -> None:
    other = WHOLE.replace("1200 ms", "2.8 s").replace("7200 J", "14.4 kJ")
    both = fields(take(tmp_path, dev=WHOLE, eval=other))
    assert both["efficiency.query_latency_ms"] == 10.0
    assert both["efficiency.energy_kwh"] == 0.008

    one = fields(take(tmp_path, dev=WHOLE, eval=""))
    assert one["efficiency.query_latency_ms"] == 12.0
    assert "efficiency.energy_kwh" not in one


def test_seeds_of_a_set_count_its_queries_each(tmp_path: Path) -> None:
    files = {}
    for name, spent in (("dev", "100 ms"), ("dev~2", "300 ms")):
        files[name] = tmp_path / f"{name}.run"
        files[name].write_text(header(WHOLE.replace("1200 ms", spent)) + ROW)
    found = take_from_runs(files, count_queries=QUERIES.__getitem__)
    assert fields(found)["efficiency.query_latency_ms"] == 2.0


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("method:\n  name: short\n  description: the\n    whole", "model_description", "the whole"),
        ("research goal:\n  description: |\n    two\n    lines", "model_description", "two lines"),
        (
            "research goal:\n  publication:\n    doi: 10.1000/182",
            "paper",
            "https://doi.org/10.1000/182",
        ),
        (
            "research goal:\n  publication:\n    arxiv: '2207.08922'",
            "paper",
            "https://arxiv.org/abs/2207.08922",
        ),
        (
            "research goal:\n  publication:\n    doi: to appear\n    url: https://example.org/p",
            "paper",
            "https://example.org/p",
        ),
        ("implementation:\n  repository: https://example.org/c", "code", "https://example.org/c"),
        ("actor:\n  name: A. Person", "team", "A. Person"),
        ("actor:\n  affiliation: Some University", "institution", "Some University"),
        ("data:\n  training data:\n    name: MS MARCO", "training_data", "MS MARCO"),
        ("data:\n  training data: [a, b]", "training_data", "a, b"),
    ],
)
def test_each_way_of_saying_it_is_read(tmp_path: Path, text: str, name: str, value: str) -> None:
    assert fields(take(tmp_path, dev=text)) == {name: value}


@pytest.mark.parametrize(
    "text",
    [
        "research goal:\n  publication:\n    url: javascript:alert(1)",
        "implementation:\n  source:\n    repository: null", "actor: Lighthouse",
        "actor:\n  team: null\n  name: ~", "resources:\n  runtime:\n    wallclock: 12",
        "resources:\n  runtime:\n    wallclock: a minute", "data:\n  training data: [{source: x}]",
    ],
)  # fmt: skip
def test_what_is_no_value_of_a_field_is_left(tmp_path: Path, text: str) -> None:
    assert take(tmp_path, dev=text) == FromHeaders()


def test_what_the_metadata_refuses_is_noted_and_left(tmp_path: Path) -> None:
    found = take(tmp_path, dev=f"actor:\n  team: {'x' * 2001}\nmethod:\n  name: BM25")

    assert fields(found) == {"model_description": "BM25"}
    (note,) = found.notes
    assert (note.code, note.severity) == ("wrong-field", "note")
    assert note.path.endswith("dev.run: actor: team")


def test_a_bad_header_is_a_note_and_the_other_run_is_asked(tmp_path: Path) -> None:
    found = take(tmp_path, dev="a: 1\na: 2", eval="actor:\n  team: Lighthouse")

    assert fields(found) == {"team": "Lighthouse"}
    assert [(n.code, n.line, n.severity) for n in found.notes] == [("ir-metadata-yaml", 3, "note")]


def test_runs_that_say_different_things_are_noted(tmp_path: Path) -> None:
    found = take(tmp_path, dev="actor:\n  team: Lighthouse", eval="actor:\n  team: Lighthouses")

    assert fields(found) == {"team": "Lighthouse"}
    (note,) = found.notes
    assert (note.code, note.path) == ("ir-metadata-differs", str(tmp_path / "eval.run"))


def test_a_file_that_is_no_run_has_no_header(tmp_path: Path) -> None:
    damaged = tmp_path / "dev.run.gz"
    damaged.write_bytes(b"\x1f\x8b broken")
    runs = {"dev": damaged, "eval": tmp_path / "missing"}
    assert take_from_runs(runs, count_queries=QUERIES.__getitem__) == FromHeaders()


def test_what_the_metadata_says_already_stays(tmp_path: Path) -> None:
    typed = make_manifest("North Coast", efficiency=Efficiency(hardware="my own"))
    filled = fill_manifest(typed, take(tmp_path, dev=WHOLE, eval=WHOLE).taken)

    assert filled.team == "North Coast"
    stated = Efficiency(hardware="my own", query_latency_ms=3.0, energy_kwh=0.003)
    assert filled.efficiency == stated
    assert fill_manifest(EMPTY, ()) == EMPTY


def test_an_entry_s_metadata_make_a_header_that_a_draft_takes(tmp_path: Path) -> None:
    who: Manifest = make_manifest(
        "Lighthouse",
        training_data="MS MARCO",
        efficiency=Efficiency(hardware="Some CPU", query_latency_ms=2.5, parameters=7),
    )
    data = format_header(describe_identity(who.identity, tag="20261120-mono"))
    one = sure(read_header(BytesIO(data + ROW.encode()), path="run"))
    assert one.text("tag") == "20261120-mono"
    assert one.text("resources", "runtime", "wallclock per query") == "2.5 ms"

    run = tmp_path / "dev.run"
    run.write_bytes(data + ROW.encode())
    taken = take_from_runs({"dev": run}, count_queries=QUERIES.__getitem__).taken
    filled = fill_manifest(EMPTY, taken)
    stated = {"training_data": "MS MARCO", "efficiency": Efficiency(hardware="Some CPU")}
    assert filled.identity == make_manifest("Lighthouse", **stated).identity


MEASURED = """\
ir_metadata.start
schema version: 0.2
platform:
  hardware:
    cpu:
      model: Some CPU
actor:
  team: Others
resources:
  runtime:
    wallclock: 800 ms
  cpu:
    energy used system: 3600000 J
ir_metadata.end
"""


def test_a_file_beside_the_runs_says_what_no_header_says(tmp_path: Path) -> None:
    beside = tmp_path / "ir-metadata.yml"
    beside.write_text(MEASURED)
    files = {}
    for name in ("dev", "eval"):
        files[name] = tmp_path / f"{name}.run"
        files[name].write_text(header("actor:\n  team: Lighthouse") + ROW)
    found = take_from_runs(files, count_queries=QUERIES.__getitem__, beside=beside)

    assert fields(found) == {
        "team": "Lighthouse",
        "efficiency.hardware": "Some CPU",
        "efficiency.query_latency_ms": 2.0,  # of 400 queries
        "efficiency.energy_kwh": 1.0,
    }
    assert [note.code for note in found.notes] == ["ir-metadata-differs"]


def test_a_bad_file_beside_the_runs_is_refused_with_its_line(tmp_path: Path) -> None:
    beside = tmp_path / "ir-metadata.yml"
    for text, code, line in (
        (MEASURED.replace("Some CPU", "l1: 1, l2: 2"), "ir-metadata-yaml", 6),
        ("a: 1\n" * 60_000, "ir-metadata-size", 1),
    ):
        beside.write_text(text)
        with pytest.raises(InputError) as caught:
            take_from_runs({}, count_queries=QUERIES.__getitem__, beside=beside)
        (problem,) = caught.value.problems
        assert (problem.code, problem.line) == (code, line)
