"""The examples of formats.md are read by what reads such files; api.md has every public name."""

import io
import re
import tomllib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import msgspec
import pytest

import heldout
from heldout import judging, survivorship
from heldout.analyses.entries import parse_entries
from heldout.board.log.manifest import Manifest, parse_manifest
from heldout.collections.tables import read_documents
from heldout.judging.campaign.judgments import parse_judgments
from heldout.judging.campaign.pools import Pool, pool_check
from heldout.judging.campaign.rows import Item, Task, parse_rows, task_check
from heldout.scoring.table import parse_scores
from heldout.trec.orders import Order
from heldout.trec.qrels import parse_qrels
from heldout.trec.queries import parse_queries
from heldout.trec.runs import scan_run

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
FORMATS = (REFERENCE / "formats.md").read_text("utf-8")


def examples(heading: str) -> list[bytes]:
    """The examples below a heading, in their order."""
    section = re.split(r"^## ", FORMATS, flags=re.MULTILINE)
    (text,) = (one for one in section if one.startswith(f"{heading}\n"))
    return [found.encode() for found in re.findall(r"```(?:text|json)\n(.*?)```", text, re.DOTALL)]


def test_the_examples_of_a_run_have_one_ranking_in_both_forms() -> None:
    orders: tuple[Order, ...] = ("trec", "msmarco")
    scans = [
        scan_run(BytesIO(data), path="run", order=order)
        for data, order in zip(examples("Run"), orders, strict=True)
    ]
    for scan, form in zip(scans, orders, strict=True):
        assert (scan.form, scan.problems) == (form, ())
    one, other = (scan.signature for scan in scans)
    assert one.queries == other.queries == ("q1", "q2")
    assert (one.documents == other.documents).all()


READERS: dict[str, Callable[[bytes], object]] = {
    "Qrels": lambda data: parse_qrels(data, path="qrels").judgments,
    "Queries": lambda data: parse_queries(data, path="queries").texts,
    "Documents": lambda data: read_documents(io.BytesIO(data), path="documents"),
    "Score table": lambda data: parse_scores(data.decode(), path="scores").queries,
    "Entries": lambda data: parse_entries(data.decode(), path="entries"),
    "Submission metadata": parse_manifest,
    "Preferences": lambda data: parse_judgments(data, path="judgments"),
}


@pytest.mark.parametrize("heading", READERS)
def test_every_example_is_read(heading: str) -> None:
    found = examples(heading)
    assert found
    for data in found:
        assert READERS[heading](data)


def test_the_examples_of_a_campaign_are_rows_of_its_files() -> None:
    pool, test, task = examples("Campaign of judging")
    (one,) = parse_rows(pool, Pool, path="pool", check=pool_check())
    assert one.known is not None
    (pair,) = parse_rows(test, Item, path="tests")
    (made,) = parse_rows(task, Task, path="tasks", check=task_check())
    assert pair in made.items


def test_every_field_of_the_metadata_is_described() -> None:
    (example,) = examples("Submission metadata")
    names = {field.encode_name for field in msgspec.structs.fields(Manifest)}
    table = FORMATS.split("## Submission metadata")[1].split("## Signature")[0]
    cells = " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|"))
    assert names == set(re.findall(r"`(\w+)`", cells))
    assert set(msgspec.json.decode(example)) == names - {"digests"}


def test_the_api_page_has_every_public_name() -> None:
    page = (REFERENCE / "api.md").read_text("utf-8")
    listed = re.findall(r"^\.\. auto(?:function|class):: (\S+)$", page, re.MULTILINE)
    rooms = {"judging": judging, "survivorship": survivorship}
    names = {f"heldout.{name}" for name in heldout.__all__ if name not in {*rooms, "__version__"}}
    names |= {f"heldout.{room}.{name}" for room, one in rooms.items() for name in one.__all__}
    assert sorted(listed) == sorted(names)


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    root = REFERENCE.parents[1]
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (root / "README.md").read_text("utf-8"))
    assert links
    assert [link for link in links if not (root / link).is_file()] == []


def test_the_page_on_installing_lists_every_extra() -> None:
    root = REFERENCE.parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    page = (root / "docs" / "how-to" / "install.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    ours = {"docs", "test", "test-core"}
    assert sorted(listed) == sorted(set(project["optional-dependencies"]) - ours)
