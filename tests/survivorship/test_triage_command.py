"""`heldout survive triage` and `answerable`, from runs to labels."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from question_samples import answer

import calling
from heldout.ids import digest_bytes
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.questions import ANSWERABLE, TRIAGE
from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.trec.qrels import parse_qrels

QUERIES = 8


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two runs, labels for one query, texts; d0 and d1 say the same."""
    documents = [f"d{n}\ttext {max(n, 1)} of some words" for n in range(12)]
    (tmp_path / "docs.tsv").write_text("\n".join(documents) + "\n")
    queries = [f"q{n}\twhat is {n}" for n in range(QUERIES)]
    (tmp_path / "queries.tsv").write_text("\n".join(queries) + "\n")
    for run, step in (("bm25", 1), ("dense", 5)):
        rows = [
            f"q{n} Q0 d{(n + step * place) % 12} {place + 1} {10 - place} {run}"
            for n in range(QUERIES)
            for place in range(4)
        ]
        (tmp_path / f"{run}.run").write_text("\n".join(rows) + "\n")
    labels = [f"q{n} 0 d{n if n == 0 else 99} 1" for n in range(QUERIES)]
    (tmp_path / "labels.qrels").write_text("\n".join(labels) + "\n")
    return tmp_path


def call(files: Path, *arguments: str) -> Result:
    """A command, with the folder's name for `@`."""
    return calling.call("survive", *(one.replace("@", f"{files}/") for one in arguments))


def value(files: Path, *arguments: str) -> Any:
    return calling.answer("survive", *(one.replace("@", f"{files}/") for one in arguments))


SOURCE = ("--shown", "@bm25.run", "--qrels", "@labels.qrels", "--shown-depth", "4")
TEXTS = ("--queries", "@queries.tsv", "--documents", "@docs.tsv")
POOL = ("answerable", "@pool", "--runs", "@*.run", "-k", "4", *TEXTS)


def draw(files: Path, *more: str) -> Result:
    return call(files, "triage", "@triage", *SOURCE, *TEXTS, *more)


def say(folder: QuestionFolder, *answers: Judgment) -> None:
    folder.write_judgments((*folder.judgments(), *answers))


def test_discarded_queries_are_drawn_and_told(files: Path) -> None:
    result = draw(files, "--sample", "5", "--split", "dev")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("5 queries of 7 discarded drawn by seed 0.")
    questions = QuestionFolder(files / "triage", TRIAGE).questions()
    assert len(questions) == 5
    assert {one.split for one in questions} == {"dev"}
    assert all(len(one.candidates) == 4 for one in questions)
    assert "q0" not in {one.query for one in questions}


def test_a_sample_grows_as_if_it_had_been_drawn_at_once(files: Path) -> None:
    draw(files, "--sample", "3", "--split", "dev")
    first = QuestionFolder(files / "triage", TRIAGE).questions()
    assert draw(files, "--sample", "4", "--split", "dev").exit_code == 0
    grown = QuestionFolder(files / "triage", TRIAGE).questions()
    assert grown[:3] == first
    once = (*SOURCE, *TEXTS, "--sample", "7", "--split", "dev")
    assert call(files, "triage", "@once", *once).exit_code == 0
    assert QuestionFolder(files / "once", TRIAGE).questions() == grown
    again = draw(files, "--sample", "1", "--split", "dev")
    assert again.exit_code == 2
    assert "besides 7 that are drawn already" in " ".join(again.output.split())


@pytest.mark.parametrize(
    "split", ["all", "ALL", "../x", "a\nb", "a b", "\u202edev", "x" * 65, "-x"]
)
def test_a_split_has_a_name_that_is_read_and_that_is_not_the_total(files: Path, split: str) -> None:
    result = draw(files, f"--split={split}")
    assert result.exit_code == 2
    assert "which is all splits together" in " ".join(result.output.split())
    assert not (files / "triage").exists()


def test_the_table_is_counted_from_what_people_said(files: Path) -> None:
    draw(files, "--sample", "4")
    folder = QuestionFolder(files / "triage", TRIAGE)
    one, two, three, _ = folder.questions()
    say(
        folder,
        answer(one.query, "no_ans"),
        answer(two.query, "wrong_lab", two.candidates[0].doc),
        answer(three.query, "ill_form"),
        answer(three.query, "ill_form", by="bob"),
    )
    found = value(files, "triage", "@triage")
    all_ = found["all"]
    assert {label: share["count"] for label, share in all_["labels"].items()} == {
        "no_ans": 1,
        "partial_ans": 0,
        "wrong_lab": 1,
        "ill_form": 1,
    }
    assert (all_["total"], all_["open"], found["annotators"]) == (3, 1, ["ada", "bob"])
    shown = call(files, "triage", "@triage").output
    assert "Of 3 discarded queries with a label 1 had an answer in what was shown" in shown
    assert "1 query without an answer" in shown


@pytest.mark.parametrize(
    ("splits", "rows"),
    [(["dev"], ["dev"]), ([""], ["all"]), (["dev", "train"], ["dev", "train", "all"])],
)
def test_all_is_the_name_of_all_splits_together(
    files: Path, splits: list[str], rows: list[str]
) -> None:
    for seed, split in enumerate(splits):
        # The same seed draws the same queries, and none may be of two splits
        assert draw(files, "--sample", "1", "--split", split, "--seed", str(seed)).exit_code == 0
    shown = call(files, "triage", "@triage").stdout
    counts = shown.split("Discarded queries by reason", 1)[1].split("As shares", 1)[0]
    named = [line.split()[0] for line in counts.splitlines() if line.split()[5:] == ["0"]]
    assert named == rows


def judge(files: Path) -> QuestionFolder:
    """Of the first query d0 answers (d1 says the same), of the second none; the rest is open."""
    folder = QuestionFolder(files / "pool", ANSWERABLE)
    by_name = {one.query: one for one in folder.questions()}
    say(folder, answer("q1", "unanswered"), answer("q0", "answered", "d0"))
    assert by_name.keys() >= {"q0", "q1"}
    return folder


def test_systems_are_pooled_judged_and_compared(files: Path) -> None:
    result = call(files, *POOL)
    assert result.exit_code == 0, result.output
    assert "8 queries" in result.output
    judge(files)
    found = value(files, "answerable", "@pool")
    assert (found["queries"], found["depth"]) == (2, 4)
    assert {
        one["system"]: [share["count"] for share in one["within"].values()]
        for one in found["systems"]
    } == {"bm25": [1, 1], "dense": [1, 1]}
    assert found["unanswered"] == {
        "count": 1,
        "of": 2,
        "share": 0.5,
        "low": pytest.approx(0.0945, abs=1e-3),
        "high": pytest.approx(0.9055, abs=1e-3),
        "why": "",
    }
    shown = call(files, "answerable", "@pool").output
    assert "Lower bounds: what lies below the pooled passages" in shown
    assert "no answer in top 4" in shown


def test_only_sound_queries_of_triage_are_pooled(files: Path) -> None:
    draw(files, "--sample", "4")
    folder = QuestionFolder(files / "triage", TRIAGE)
    one, two, three, four = folder.questions()
    say(
        folder,
        answer(one.query, "no_ans"),
        answer(two.query, "wrong_lab", two.candidates[0].doc),
        answer(three.query, "partial_ans", three.candidates[0].doc),
        answer(four.query, "ill_form"),
    )
    result = call(files, *POOL[:-4], *TEXTS[2:], "--triage", "@triage")
    assert result.exit_code == 0, result.output
    pooled = QuestionFolder(files / "pool", ANSWERABLE).questions()
    assert {question.query for question in pooled} == {one.query, three.query}


def test_judgments_become_labels_with_a_record(files: Path) -> None:
    call(files, *POOL)
    folder = judge(files)
    result = call(files, "answerable", "@pool", "--labels", "first")
    assert result.exit_code == 0, result.output
    qrels = (files / "pool/labels/first.qrels").read_bytes()
    labels = parse_qrels(qrels, path="first.qrels").judgments
    assert labels.keys() == {"q0", "q1"}
    assert {doc for doc, grade in labels["q0"].items() if grade} == {"d0", "d1"}
    assert not any(labels["q1"].values())
    record = json.loads((files / "pool/labels/first.json").read_text())
    assert (record["made"], record["judged"]["annotators"]) == ("human", ["ada"])
    rows = {name: (files / "pool" / f"{name}.jsonl").read_bytes() for name in ("pool", "judgments")}
    assert record["judged"]["questions_sha256"] == digest_bytes(rows["pool"])
    assert record["judged"]["answers_sha256"] == digest_bytes(rows["judgments"])
    say(folder, answer("q2", "unanswered"))
    changed = call(files, "answerable", "@pool", "--labels", "first")
    assert changed.exit_code == 2
    assert "is there already" in changed.output
    assert (files / "pool/labels/first.qrels").read_bytes() == qrels


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("answerable",), "a FOLDER, or --ranks FILE"),
        (("answerable", "@pool", "--ranks", "@docs.tsv"), "a FOLDER, or --ranks FILE"),
        (("answerable", "--ranks", "@docs.tsv", "--labels", "x"), "already: without --labels"),
        (("answerable", "--ranks", "@docs.tsv", "--triage", "@x"), "without --triage"),
        (("answerable", "--ranks", "@docs.tsv", "--sample", "3"), "without --sample"),
        (("answerable", "@pool", "--sample", "3"), "would pool systems: without --sample"),
        (("answerable", "@pool", "-k", "3"), "without --depth"),
        (("answerable", "@pool", "--chart", "x.svg"), "No such option"),
        ((*POOL, "--labels", "x"), "a call of its own: without --labels"),
        (("triage", "@t", "--split", "dev"), "would draw queries: without --split"),
        (("triage", "@t", "--documents", "@docs.tsv"), "without --documents"),
        (("triage", "@t", *SOURCE, "--markdown"), "a call of its own: without --markdown"),
        (("triage", "@t", "--chart", "x.svg"), "No such option"),
        (("answerable", "@pool", "--runs", "@*.run"), "--documents FILE"),
        (("answerable", "@pool", "--runs", "@*.run", *TEXTS[2:]), "which queries?"),
        (("answerable", "@pool", "--runs", "@*.none", *TEXTS), "no-run"),
        (("answerable", "@pool"), "draws questions"),
        ((*POOL, "--sample", "9"), "too-few-queries"),
        (("triage", "@t", "--shown", "@bm25.run"), "--shown and --qrels"),
    ],
)
def test_what_is_missing_is_said(files: Path, arguments: tuple[str, ...], words: str) -> None:
    result = call(files, *arguments)
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.output.split())
    assert not (files / "pool").exists()


def test_documents_without_a_text_are_named(files: Path) -> None:
    (files / "docs.tsv").write_text("d0\ttext\n")
    result = call(files, *POOL)
    assert result.exit_code == 2
    assert "no-text" in result.output
    assert not (files / "pool").exists()


def test_labels_have_a_name_that_is_no_path(files: Path) -> None:
    call(files, *POOL)
    judge(files)
    result = call(files, "answerable", "@pool", "--labels", "../first")
    assert result.exit_code == 2
    assert "label-name" in result.output
    assert not list(files.rglob("*first*"))
    assert not (files / "pool/labels").exists()


def test_a_tie_of_annotators_is_told_and_is_no_label(files: Path) -> None:
    call(files, *POOL)
    folder = judge(files)
    say(folder, answer("q0", "unanswered", by="bob"))
    result = call(files, "answerable", "@pool", "--labels", "first")
    assert "2 documents, ticked by just half of their annotators" in " ".join(result.output.split())
    rows = (files / "pool/labels/first.qrels").read_text()
    assert not {"q0 0 d0 0", "q0 0 d1 0", "q0 0 d0 1"} & set(rows.splitlines())
    assert json.loads((files / "pool/labels/first.json").read_text())["disputed"] == 2


def test_labels_need_a_judgment(files: Path) -> None:
    call(files, *POOL)
    assert "no-judgments" in call(files, "answerable", "@pool", "--labels", "x").output
    assert not (files / "pool/labels").exists()


@pytest.mark.real
def test_the_published_table_comes_out_of_the_command(data: Callable[[str], Path]) -> None:
    place = data("msmarco-annotation-depth") / "discarded_rankings_by_model.tsv"
    result = calling.call("survive", "answerable", "--ranks", place)
    assert result.exit_code == 0, result.output
    assert "15 of 50 are answered by none of them" in result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert ["BM25", "ANCE", "monoT5", "ColBERT"] in lines
    assert ["no", "answer", "in", "top", "10", "22", "22", "16", "18"] in lines
    assert ["answer", "in", "top", "10", "28", "28", "34", "32"] in lines
    assert ["answer", "in", "top", "3", "17", "17", "30", "28"] in lines
