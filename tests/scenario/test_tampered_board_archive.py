"""A board's archive that was changed afterwards, or made up: whoever audits it is told."""

import json
import math
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ended_board import Ended, audited, end_board
from lab import git, sign_event
from trusting import BASELINE, ONE, Files, change_scores, forge, read_files

from heldout.board.audit.archive_audit import audit_archive
from heldout.board.log.events import Draft, Entry, format_entry, link
from heldout.board.store.vault import Vault


@pytest.fixture
def ended() -> Ended:
    return end_board()


def replaced(name: str, old: str, new: str) -> Callable[[Files], object]:
    def change(files: Files) -> None:
        files[name] = files[name].replace(old.encode(), new.encode(), 1)

    return change


def put(name: str, data: bytes) -> Callable[[Files], object]:
    return lambda files: files.update({name: data})


def drop(name: str) -> Callable[[Files], object]:
    return lambda files: files.pop(name)


def reordered(order: Callable[[list[bytes]], list[bytes]]) -> Callable[[Files], object]:
    def change(files: Files) -> None:
        files["log.jsonl"] = b"".join(order(files["log.jsonl"].splitlines(keepends=True)))

    return change


def of_one(change: Callable[[dict[str, Any]], object]) -> Callable[[Files], object]:
    """A change of the scores of one entry."""
    return lambda files: change_scores(files, ONE, change)


def lifted(scores: dict[str, Any]) -> None:
    """Every score by query raised, the mean with it."""
    for view in scores["views"].values():
        view.update(per_query=dict.fromkeys(view["per_query"], 1.0), mean=1.0)


def swapped(scores: dict[str, Any]) -> None:
    """The mean stays: two queries change their scores."""
    per_query = scores["views"]["eval"]["per_query"]
    low, high = sorted(per_query, key=per_query.get)[::29]
    per_query[low], per_query[high] = 1.0, per_query[low]


def without_a_query(scores: dict[str, Any]) -> None:
    """A query on which the system failed is left out, and the number of queries lowered."""
    view = scores["views"]["eval"]
    del view["per_query"]["eval3"]
    view["n"] -= 1
    view["mean"] = math.fsum(view["per_query"].values()) / view["n"]


def evidence_of(files: Files) -> str:
    """The file of what one score was told for."""
    names = [name for name in files if name.startswith("evidence/")]
    named = {name: json.loads(files[name]) for name in names}
    return next(n for n, e in named.items() if (e["id"], e["view"]) == (ONE, "eval"))


def at_evidence(make: Callable[[str], Callable[[Files], object]]) -> Callable[[Files], object]:
    """A change of the file of what one score was told for."""
    return lambda files: make(evidence_of(files))(files)


def infinite(files: Files) -> None:
    name = f"scores/{ONE}.json"
    files[name] = re.sub(rb'"mean":0\.\d+', b'"mean":1e999', files[name])


TAMPERED: Mapping[str, tuple[Callable[[Files], object], str]] = {
    "a changed label": (
        replaced("labels/eval.qrels", "deval1 1", "n1-0 1"),
        "labels/eval.qrels is not what the organisers committed to",
    ),
    "a label added": (
        lambda files: files.update(
            {"labels/eval.qrels": files["labels/eval.qrels"] + b"x 0 y 1\n"}
        ),
        "not what the organisers committed to",
    ),
    "the labels left out": (drop("labels/eval.qrels"), "is missing"),
    "other digests opened": (
        replaced(
            "log.jsonl",
            '"opened":{"labels":{"value":{"eval":"',
            '"opened":{"labels":{"value":{"eval":"0',
        ),
        "sealed digest",
    ),
    "the commitment not opened": (
        lambda files: files.update(
            {
                "log.jsonl": re.sub(
                    rb'"opened":\{"labels".*?\}\}\}', b'"opened":{}}', files["log.jsonl"]
                )
            }
        ),
        "are not opened",
    ),
    "a removed event": (reordered(lambda rows: [*rows[:3], *rows[4:]]), "chain is broken"),
    "the last events cut off": (reordered(lambda rows: rows[:-1]), "was closed"),
    "a reordered log": (
        reordered(lambda rows: [*rows[:2], rows[3], rows[2], *rows[4:]]),
        "chain is broken",
    ),
    "a changed released score": (replaced("log.jsonl", '"eval":"0.', '"eval":"0.9'), "hash"),
    "an empty log": (put("log.jsonl", b""), "empty"),
    "no log": (put("log.jsonl", b"\n"), "not an event"),
    "raised scores": (of_one(lifted), f'released score of "{ONE}" does not follow'),
    "scores of two queries swapped": (
        of_one(swapped),
        "the logged score does not belong to the per-query scores of this archive",
    ),
    "what a score was told for left out": (
        at_evidence(drop),
        "is missing, or not what the log names",
    ),
    "what a score was told for changed": (
        at_evidence(lambda name: put(name, b"{}")),
        "is missing, or not what the log names",
    ),
    "earlier labels that never were": (
        put(f"labels/earlier/{'0' * 64}", b"eval1 0 x 1\n"),
        "is nothing that the organisers committed to",
    ),
    "other labels claimed beside the scores": (
        of_one(lambda scores: scores["labels"].update(eval="0" * 64)),
        "nobody committed to",
    ),
    "a query left out": (of_one(without_a_query), "not those of its queries: eval"),
    "labels claimed that nobody committed to": (
        of_one(lambda scores: scores["held_out"].update(eval="0" * 64)),
        "was scored with are not here",
    ),
    "an infinite mean": (infinite, "damaged"),
    "scores left out": (drop(f"scores/{ONE}.json"), "are missing"),
    "scores of nobody": (put("scores/20261102-nobody.json", b"{}"), "belongs to nothing"),
    "another run": (
        replaced(f"runs/{ONE}/eval.run", "deval1\t", "dother\t"),
        f'"{ONE}" give other scores',
    ),
    "another run of a baseline": (
        replaced(f"runs/{BASELINE}/eval", "deval1\t", "dother\t"),
        "is not the run that was logged",
    ),
    "a run left out": (drop(f"runs/{ONE}/eval.run"), "not those that are opened"),
    "a run that is none": (
        put(f"runs/{ONE}/eval.run", b"\x00\xff" * 9),
        f'"{ONE}" give other scores',
    ),
    "queries left out": (drop("queries/eval.tsv"), "queries/eval.tsv"),
    "other words in a query": (
        replaced("queries/eval.tsv", "thing 7", "thing 8"),
        '"queries/eval.tsv" is not the file that the log has',
    ),
    "another open label": (
        replaced("qrels/dev.qrels", "ddev3 1", "ddev3 0"),
        '"qrels/dev.qrels" is not the file that the log has',
    ),
    "open labels that are none": (put("qrels/dev.qrels", b"one two\n"), "qrels/dev.qrels"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_archive(ended: Ended, tmp_path: Path, name: str) -> None:
    change, said = TAMPERED[name]
    faults = "\n".join(audit_archive(forge(ended.archive, change, tmp_path / "x.zip")).faults)
    assert said in faults
    assert str(tmp_path) not in faults


def test_a_manifest_that_does_not_fit(ended: Ended, tmp_path: Path) -> None:
    for name, change, said in (
        ("bytes", {"README.md": b"another"}, "is not the file"),
        ("more", {"extra.txt": b""}, "listed or here"),
        ("list", {"MANIFEST.json": b"[]"}, "not the list"),
        ("deep", {"MANIFEST.json": b"[" * 100_000}, "not the list"),
    ):
        file = tmp_path / f"{name}.zip"
        with zipfile.ZipFile(file, "w") as target:
            for member, data in {**read_files(ended.archive), **change}.items():
                target.writestr(member, data)
        answer = audited(ended.lab, file, at=tmp_path)
        assert (answer.code, len(answer.json["faults"])) == (1, 1)
        assert said in answer.json["faults"][0]


def test_a_log_made_anew_is_told_by_the_board_s_own(ended: Ended, tmp_path: Path) -> None:
    """A forger who makes the whole chain again with better scores is caught by the public log."""

    def make_anew(files: Files) -> None:
        entries = Vault(ended.lab.vault).entries()
        chain: list[Entry] = []
        for entry in entries:
            public = json.loads(json.dumps(entry.event.public).replace('"0.', '"0.9'))
            draft = as_draft(entry, public)
            last = chain[-1] if chain else None
            chain.append(
                link(draft, last, at=entry.time, new_salt=lambda: "ab" * 16, sign=sign_event)
            )
        files["log.jsonl"] = b"".join(map(format_entry, chain))

    forged = forge(ended.archive, make_anew, tmp_path / "x.zip")
    answer = audited(ended.lab, forged).declined()
    assert (
        answer.json["faults"][0]
        == "this is the archive of another board than the one that you stand in"
    )


def as_draft(entry: Entry, public: Mapping[str, object]) -> Draft:
    sealed = {name: opening.value for name, opening in entry.opened.items()}
    event = entry.event
    return Draft(
        kind=event.kind, by=event.by, submission=event.submission, public=public, sealed=sealed
    )


def test_a_board_whose_own_log_is_damaged_says_nothing_for_an_archive(
    ended: Ended, tmp_path: Path
) -> None:
    lab = ended.lab.copy(tmp_path)
    git(lab.board, "remote", "remove", "origin")
    file = lab.board / "log.jsonl"
    file.write_bytes(file.read_bytes().replace(b"received", b"reviewed", 1))
    audited(lab, ended.archive).refused("log.jsonl")


def test_a_submission_after_the_closing_is_told(ended: Ended, tmp_path: Path) -> None:
    def go_on(files: Files) -> None:
        last = Vault(ended.lab.vault).entries()[-1]
        public = {"files": {}, "fingerprint": "f", "source": "a folder"}
        draft = Draft(kind="received", by="x", submission="20261203-late", public=public, sealed={})
        late = link(draft, last, at=last.time, new_salt=lambda: "ab" * 16, sign=sign_event)
        files["log.jsonl"] += format_entry(late)

    forged = forge(ended.archive, go_on, tmp_path / "x.zip")
    found = audit_archive(forged)
    assert "('received', line 14 of the log) came after the board was closed" in found.faults[0]


def test_archives_that_are_none(ended: Ended, tmp_path: Path) -> None:
    data = ended.archive.read_bytes()
    for name, content in (
        ("empty", b""),
        ("text", b"not a zip file"),
        ("cut", data[: len(data) // 2]),
        ("bit", bytes([*data[:200], data[200] ^ 1, *data[201:]])),
    ):
        file = tmp_path / name
        file.write_bytes(content)
        answer = audited(ended.lab, file, at=tmp_path)
        assert (answer.code, answer.json["ok"]) == (1, False), name
        assert (
            "damaged-archive" in answer.json["faults"][0] or "MANIFEST" in answer.json["faults"][0]
        )


def test_a_changed_bit_is_told_wherever_it_matters(ended: Ended, tmp_path: Path) -> None:
    """All over the file; a date in the zip's own directory may change, no member ever."""
    data, whole = ended.archive.read_bytes(), read_files(ended.archive)
    for place in range(0, len(data), 211):
        file = tmp_path / "x.zip"
        file.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        if not audit_archive(file).faults:
            assert read_files(file) == whole, place
