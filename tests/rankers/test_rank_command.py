"""`heldout rank` on a folder of our own, and the same bytes under every hash seed."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import fields
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_task import ASKED, write_collection

from heldout import __version__
from heldout.cli.program import main
from heldout.collections import stdlib_docs
from heldout.collections.stdlib_docs import Docstring
from heldout.rankers.methods import METHODS
from heldout.rankers.run import describe_run
from heldout.rankers.terms import TextSettings
from heldout.trec.ir_metadata import format_header, read_header

QUESTIONS = {query: text for query, text in ASKED.items() if text}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("bm25s")
    pytest.importorskip("Stemmer")
    return write_collection(tmp_path)


def invoke(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["rank", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def test_a_run_is_written(folder: Path) -> None:
    out = folder / "run.txt"
    code, stdout, stderr = invoke(
        *("--collection", folder, "--method", "bm25", "--param", "k1=0.9", "--depth", 3),
        *("--form", "msmarco", "--out", out),
    )
    assert (code, stdout) == (0, "")
    assert "ranking 3 queries over 7 documents with bm25" in stderr
    rows = [line.split("\t") for line in out.read_text().splitlines()]
    assert [query for query, _, _ in rows] == [query for query in QUESTIONS for _ in range(3)]
    assert [rank for _, _, rank in rows] == ["1", "2", "3"] * 3
    assert rows[3][1] == "d3"


def test_a_header_says_how_the_run_was_made_and_the_rows_stay(folder: Path) -> None:
    called = ("--collection", folder, "--method", "bm25", "--param", "k1=1.2", "--tag", "mine")
    for name, flag in (("plain", ()), ("once", ("--ir-metadata",)), ("again", ("--ir-metadata",))):
        assert invoke(*called, *flag, "--out", folder / f"{name}.run.gz")[0] == 0

    plain, once = (
        gzip.decompress((folder / f"{n}.run.gz").read_bytes()) for n in ("plain", "once")
    )
    assert once.endswith(plain)
    assert not plain.startswith(b"#")
    assert (folder / "once.run.gz").read_bytes() == (folder / "again.run.gz").read_bytes()
    with (folder / "once.run.gz").open("rb") as file:
        header = read_header(file, path="once")
    assert header is not None
    assert header.text("tag") == "mine"
    assert header.get("method", "retrieval") == [{"name": "bm25", "params": {"k1": "1.2"}}]
    assert header.text("data", "test collection", "name") == folder.name
    assert header.get("platform", "software", "retrieval toolkit") == [f"heldout=={__version__}"]


def test_the_header_of_a_reranked_run_names_both_stages() -> None:
    described = describe_run(
        tag="t",
        method="monot5",
        parameters={},
        collection="irds:beir/scifact/test",
        depth=10,
        first="bm25",
        rerank_depth=5,
    )
    header = read_header(BytesIO(format_header(described)), path="run")
    assert header is not None
    assert header.get("method", "retrieval") == [
        {"name": "bm25"},
        {"name": "monot5", "reranks": "bm25", "rerank depth": "5"},
    ]
    assert header.text("data", "test collection", "ir_datasets") == "beir/scifact/test"


def test_json_says_what_was_written(folder: Path) -> None:
    out = folder / "run.gz"
    code, stdout, _ = invoke(
        *("--collection", folder, "--method", "tfidf", "--param", "stopwords=true"),
        *("--tag", "mine", "--out", out, "--json"),
    )
    assert code == 0
    assert json.loads(stdout) == {
        "collection": str(folder),
        "method": "tfidf",
        "parameters": {"stopwords": "true"},
        "depth": 100,
        "queries": 3,
        "form": "trec",
        "tag": "mine",
        "path": str(out),
    }


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--method", "bm26"), "rank-method"),
        (("--method", "bm25", "--param", "k1"), "rank-parameter"),
        (("--method", "bm25", "--param", "k1=1", "--param", "k1=2"), "rank-parameter"),
        (("--method", "bm25", "--param", "k1=x"), "rank-parameter"),
        (("--method", "bm25", "--tag", "a b"), "rank-tag"),
    ],
)
def test_wrong_usage_ends_with_two_and_a_code(
    folder: Path, arguments: tuple[str, ...], code: str
) -> None:
    out = folder / "run.txt"
    status, stdout, stderr = invoke("--collection", folder, "--out", out, *arguments)
    assert (status, stdout) == (2, "")
    assert code in stderr
    assert not out.exists()


def test_a_missing_folder_and_an_unwritable_file_are_said(folder: Path) -> None:
    status, _, stderr = invoke(
        *("--collection", folder / "nowhere", "--method", "tfidf", "--out", folder / "x")
    )
    assert status == 2
    assert "collection-file" in stderr
    status, _, stderr = invoke(
        *("--collection", folder, "--method", "tfidf", "--out", folder / "queries.tsv" / "x")
    )
    assert status == 2
    assert "cannot be written" in stderr


def test_dev_and_eval_divide_the_embedded_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = "words of an answer that is long enough to be asked for"
    source = stdlib_docs.DocstringSource(
        docstrings=tuple(
            Docstring(name=f"m{n}", text=f"ask{n} for{n} answer{n}\n\nanswer{n} {rest}")
            for n in range(9)
        ),
        skipped=(stdlib_docs.SkippedModule(module="odd", reason="ImportError: no"),),
    )
    monkeypatch.setattr(stdlib_docs, "read_docstrings", lambda: source)
    seen: dict[str, set[str]] = {}
    for subset in ("dev", "eval", "all"):
        out = tmp_path / subset
        code, _, stderr = invoke("--method", "tfidf", "--queries", subset, "--out", out)
        assert code == 0
        assert "odd left out: ImportError: no" in stderr
        seen[subset] = {line.split()[0] for line in out.read_text().splitlines()}
    assert len(seen["dev"]) == 5
    assert seen["dev"] | seen["eval"] == seen["all"]
    assert not seen["dev"] & seen["eval"]


def test_help_names_every_method_and_parameter() -> None:
    code, text, _ = invoke("--help")
    assert code == 0
    shared = {field.name for field in fields(TextSettings)}
    for name, method in METHODS.items():
        assert name in text
        for field in fields(method.settings):
            value = str(field.default).lower()
            if isinstance(field.default, float):
                value = f"{field.default:g}"
            assert f"{field.name}=" in text
            assert field.name in shared or f"{field.name}={value}" in text


def test_help_does_not_wait_for_numpy() -> None:
    script = "import sys, heldout.cli.ranking as r; print({'numpy', 'scipy'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == "set()"


EVERY_RUN = """
import sys
from pathlib import Path
from heldout.collections.stdlib_docs import parse_docstrings
from heldout.collections.stdlib_docs import build_collection
from heldout.rankers.methods import METHODS, choose_method
from heldout.rankers.run import RankingTask
from heldout.rankers.run import format_run

source = Path(sys.argv[1]).read_bytes()
collection = build_collection(parse_docstrings(source, module="library"))
task = RankingTask(documents=collection.documents, queries=collection.queries, depth=8)
for method in METHODS:
    if METHODS[method].settings.__module__.partition("neural")[1] == "":
        run = choose_method(method, {})(task)
        sys.stdout.buffer.write(format_run(run, form="trec", tag=method))
"""


def test_every_hash_seed_gives_the_same_bytes() -> None:
    pytest.importorskip("bm25s")
    library = Path(__file__).parent.parent / "collections" / "fixtures" / "library.py"
    runs = [
        subprocess.run(
            [sys.executable, "-c", EVERY_RUN, str(library)],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert runs[0].count(b"\n") == 6 * 3 * 8
