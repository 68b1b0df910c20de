"""`heldout survive train`: cells that go on after a kill, and what the command says of them."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heldout.cli.program import main
from heldout.files.durable import Folder
from heldout.rankers.neural.checkpoints import import_neural
from heldout.survivorship.training.material import name_of

pytestmark = pytest.mark.usefixtures("neural")

WORDS = ("open", "close", "read", "write", "file", "buffer", "path", "tree", "walk", "sum")


@pytest.fixture(autouse=True)
def _one_thread(neural: None) -> Iterator[None]:
    del neural
    torch = import_neural("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def place(neural: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of 24 queries, and a BERT of two layers in `bert`."""
    del neural
    folder = tmp_path_factory.mktemp("collection")
    documents = {
        f"d{n}": f"{WORDS[n % 10]} {WORDS[n * 3 % 7]} {WORDS[n * 5 % 9]}" for n in range(48)
    }
    queries = {f"q{n}": f"{WORDS[n % 10]} {WORDS[n * 3 % 7]}" for n in range(24)}
    (folder / "documents.tsv").write_text("".join(f"{k}\t{v}\n" for k, v in documents.items()))
    (folder / "queries.tsv").write_text("".join(f"{k}\t{v}\n" for k, v in queries.items()))
    (folder / "qrels.txt").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(24)))
    _write_bert(folder / "bert")
    return folder


def _write_bert(folder: Path) -> None:
    torch, transformers = import_neural("torch"), import_neural("transformers")
    transformers.logging.disable_progress_bar()
    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        transformers.BertForSequenceClassification(config).save_pretrained(folder)


SMALL = {
    "--precision": "float32",
    "--length": "16",
    "--steps": "4",
    "--batch": "4",
    "--rerank": "5",
    "--seeds": "2",
}


def arguments(
    place: Path, folder: Path, *more: str, trained: str = "", tested: str = ""
) -> list[str]:
    wanted = ["survive", "train", str(folder), "--test", f"{place}{tested}"]
    given = {
        "--collection": f"{place}{trained}",
        "--model": str(place / "bert"),
        **SMALL,
    }
    for option, value in given.items():
        wanted += [] if option in more else [option, value]
    return [*wanted, *more]


@pytest.fixture
def call(place: Path, tmp_path: Path) -> Callable[..., Result]:
    def run(*more: str, folder: str = "study") -> Result:
        return CliRunner().invoke(main, arguments(place, tmp_path / folder, *more))

    return run


def test_a_study_says_scores_tests_and_what_was_trained_on(
    call: Callable[..., Result], tmp_path: Path
) -> None:
    found = call("--json")
    assert found.exit_code == 0, found.stderr
    value = json.loads(found.stdout)
    cells = {(one["condition"], one["seed"]): one for one in value["cells"]}
    assert set(cells) == {
        (name, seed) for name in ("r=1", "r=5", "all", "all, as few as r=1") for seed in (0, 1)
    }
    assert cells["all, as few as r=1", 1]["queries"] == cells["r=1", 1]["queries"]
    assert cells["r=1", 0]["queries"] < cells["all", 0]["queries"]
    assert [one["measure"] for one in value["results"]] == ["RR@10", "nDCG@10"]
    for one in value["results"]:
        assert one["queries"] == 24
        assert 0 <= one["first_stage"] <= 1
        assert [found["family"] for found in one["comparisons"]] == [5] * 5
        assert all(len(level["by_seed"]) == 2 for level in one["conditions"])
    described = json.loads((tmp_path / "study" / "experiment.json").read_text())
    assert described["learner"]["steps"] == 4
    again = call("--chart", str(tmp_path / "study.svg"))
    assert again.exit_code == 0, again.stderr
    assert again.stderr.count("done before") == 8
    assert "as many labels" in again.stdout
    assert (tmp_path / "study.svg").read_text().count("RR@10 on") >= 1


_KILLED = """
import os, signal, sys
import torch
torch.set_num_threads(1)
import heldout.rankers.neural.cross_encoder as training
from heldout.cli.program import main
original, count = training._loss, [0]
def loss(*given):
    count[0] += 1
    if count[0] == 7:  # the third step of the second cell
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*given)
training._loss = loss
main(sys.argv[1:])
"""


def test_a_study_that_was_killed_ends_with_the_same_runs(
    call: Callable[..., Result], place: Path, tmp_path: Path
) -> None:
    more = ("-r", "1", "--seeds", "1")
    command = [sys.executable, "-W", "ignore", "-c", _KILLED]
    command += arguments(place, tmp_path / "killed", *more)
    killed = subprocess.run(command, capture_output=True, check=False, env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL
    assert call(*more, folder="killed").exit_code == 0
    assert call(*more, folder="whole").exit_code == 0
    runs = sorted((tmp_path / "whole").rglob("*.run.gz"))
    assert len(runs) == 4  # the first stage, r=1, all, the control
    for run in runs:
        other = tmp_path / "killed" / run.relative_to(tmp_path / "whole")
        assert other.read_bytes() == run.read_bytes()


def test_more_seeds_add_and_leave_the_others_alone(call: Callable[..., Result]) -> None:
    assert call("-r", "1", "--seeds", "1").exit_code == 0
    found = call("-r", "1", "--seeds", "2")
    assert found.exit_code == 0, found.stderr
    assert found.stderr.count("done before") == 3
    assert found.stderr.count(": done\n") == 3


def test_other_settings_in_the_same_folder_are_refused(call: Callable[..., Result]) -> None:
    assert call("-r", "1", "--seeds", "1").exit_code == 0
    found = call("-r", "1", "--seeds", "1", "--steps", "5")
    assert found.exit_code == 2
    assert "other settings" in found.stderr


def test_other_weights_in_the_same_folder_of_a_model_are_refused(
    call: Callable[..., Result], place: Path, tmp_path: Path
) -> None:
    bert = tmp_path / "bert"
    shutil.copytree(place / "bert", bert)
    more = ("-r", "1", "--seeds", "1", "--model", str(bert))
    assert call(*more).exit_code == 0
    (bert / "README.md").write_text("a note changes nothing")
    assert call(*more).exit_code == 0
    weights = bert / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-4:] = b"\0\0\0\0"
    weights.write_bytes(data)
    found = call(*more)
    assert found.exit_code == 2
    assert "other weights" in found.stderr.replace("\n", " ")


@pytest.mark.parametrize("change", ["--rerank", "--passage", "qrels", "query", "document"])
def test_runs_of_another_test_set_are_not_taken_for_its_own(
    call: Callable[..., Result], place: Path, tmp_path: Path, change: str
) -> None:
    test = tmp_path / "test"
    test.mkdir()
    for path in place.glob("*.t*"):
        (test / path.name).write_bytes(path.read_bytes())
    more = ["-r", "1", "--seeds", "1", "--test", str(test)]
    assert call(*more).exit_code == 0
    if change == "--rerank":
        more += ["--rerank", "6"]
    elif change == "--passage":
        more += ["--passage", "4"]
    elif change == "qrels":
        (test / "qrels.txt").write_text("q1 0 d2 1\n")
    else:
        name = {"query": "queries.tsv", "document": "documents.tsv"}[change]
        text = (test / name).read_text()
        (test / name).write_text(text.replace("sum", "walk", 1))
    found = call(*more)
    # Labels are asked of a run, they do not make it.
    assert found.exit_code == (0 if change == "qrels" else 2), found.stderr
    if change != "qrels":
        assert "was computed with another first run" in found.stderr.replace("\n", " ")


def test_a_folder_in_which_another_call_is_at_work_is_refused(
    call: Callable[..., Result], tmp_path: Path
) -> None:
    with Folder(tmp_path / "study").lock(".lock"):
        found = call("-r", "1", "--seeds", "1")
    assert found.exit_code != 0
    assert "another heldout is at work here" in " ".join(found.stderr.split())


def test_a_kept_model_re_ranks_another_test_set_without_training(
    call: Callable[..., Result], place: Path, tmp_path: Path
) -> None:
    more = ("-r", "1", "--seeds", "1", "--keep-models")
    assert call(*more).exit_code == 0
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "study").rglob("model.safetensors")}
    assert len(before) == 3
    other = tmp_path / "other"
    other.symlink_to(place)
    found = call(*more, "--test", str(other), "--json")
    assert found.exit_code == 0, found.stderr
    results = json.loads(found.stdout)["results"]
    assert {one["test"] for one in results} == {place.name, "other"}
    scores = [one["conditions"] for one in results if one["measure"] == "RR@10"]
    assert scores[0] == scores[1]
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_a_learning_curve_has_more_labels_at_larger_shares(
    call: Callable[..., Result], tmp_path: Path
) -> None:
    chart = tmp_path / "curve.svg"
    options = ("--learning-curve", "0.5,1", "-m", "RR@10", "--chart", str(chart), "--steps", "8")
    found = call(*options, "--json")
    assert found.exit_code == 0, found.stderr
    (curve,) = json.loads(found.stdout)["curves"]
    half, whole = curve["conditions"]
    assert half["labels"] < whole["labels"]
    assert len(half["by_seed"]) == 2
    assert half["low"] < half["mean"] < half["high"]
    assert "labels trained on" in chart.read_text()
    assert curve["first_name"] == "BM25"


def test_a_curve_whose_steps_end_before_its_labels_is_refused(
    call: Callable[..., Result], tmp_path: Path
) -> None:
    found = call("--learning-curve", "0.5,1", "--steps", "1")
    assert found.exit_code == 2
    assert "curve-steps" in found.stderr
    assert not (tmp_path / "study" / "cells").exists()
    assert call("--learning-curve", "0.5", "--steps", "9", "--seeds", "1").exit_code == 0


def test_shares_of_the_same_queries_are_refused(call: Callable[..., Result]) -> None:
    found = call("--learning-curve", "0.01,0.02,1", "--steps", "9")
    assert found.exit_code == 2
    assert "equal-shares" in found.stderr


def test_queries_that_are_trained_on_are_told(
    call: Callable[..., Result], place: Path, tmp_path: Path
) -> None:
    found = call("-r", "1", "--seeds", "1")
    told = " ".join(found.stderr.split())
    assert "of 24 queries of " in told
    assert "are trained on, in the same words or nearly so" in told
    seen = json.loads((tmp_path / "study" / "experiment.json").read_text())["seen"][
        name_of(str(place))
    ]
    assert 0 < seen["queries"] <= seen["labelled"] == 24
    assert 0 < seen["negatives"] <= seen["relevant"] == 24


def test_a_first_run_of_another_collection_is_refused_before_anything_is_trained(
    call: Callable[..., Result], place: Path, tmp_path: Path
) -> None:
    test = tmp_path / "test"
    test.mkdir()
    for path in place.glob("*.t*"):
        (test / path.name).write_bytes(path.read_bytes())
    for line, code in (("q1 Q0 zzz 1 2 x", "rerank-document"), ("q99 Q0 d1 1 2 x", "no-common")):
        (test / "first.run").write_text(line + "\n")
        found = call("--test", str(test))
        assert found.exit_code == 2
        assert code in found.stderr
        assert "first.run" in found.stderr
        assert not (tmp_path / "study" / "cells").exists()
    (test / "first.run").write_text("q1 Q0 d1 1 2 x\n")
    found = call("--test", str(test), "-r", "1", "--seeds", "1")
    assert found.exit_code == 0, found.stderr
    assert "23 of 24 labelled queries" in " ".join(found.stderr.split())


def test_a_published_test_set_has_its_whole_name() -> None:
    names = {name_of(f"irds:msmarco-passage/trec-dl-20{year}/judged") for year in (19, 20)}
    assert names == {f"msmarco-passage-trec-dl-20{year}-judged" for year in (19, 20)}
    assert name_of("/data/my set/") == "my-set"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--learning-curve", "0.1,x"), "--learning-curve wants"),
        (("--learning-curve", "0,1"), "--learning-curve wants"),
        (("--test", "no-such-folder"), "collection-place"),
        (("-m", "no-measure"), "measure"),
        (("--collection", "stdlib-docs:third"), "collection-place"),
    ],
)
def test_wrong_calls_are_told_and_train_nothing(
    call: Callable[..., Result], tmp_path: Path, more: tuple[str, ...], told: str
) -> None:
    found = call(*more)
    assert found.exit_code == 2
    assert told in found.stderr
    assert not (tmp_path / "study" / "cells").exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--all-labels",), "add --learning-curve SHARES"),
        (("--learning-curve", "1", "-r", "2"), "without --within"),
        (("--learning-curve", "1", "--control", "2"), "without --control"),
        (("--triples", "x.tsv", "--negatives", "3"), "without --negatives"),
        (("--triples", "x.tsv", "--negatives-from", "3"), "without --negatives-from"),
        (("--skip-unknown",), "without --skip-unknown"),
        (("--query-list", "x"), "without --query-list"),
    ],
)
def test_options_without_a_part_are_refused(
    call: Callable[..., Result], tmp_path: Path, more: tuple[str, ...], told: str
) -> None:
    found = call(*more)
    assert found.exit_code == 2
    assert told in " ".join(found.stderr.split())
    assert not (tmp_path / "study").exists()
