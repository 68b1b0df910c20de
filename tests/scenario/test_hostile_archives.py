"""Archives of organisers who rewrote the log, with sound hashes: each named after what it hides."""

import dataclasses
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ended_board import end_board
from lab import Patch, environment, sign_event
from msgspec.structs import replace
from trusting import BASELINE, ONE, Files, change_scores, forge

from heldout.board.audit import archive_audit
from heldout.board.audit.archive_audit import EARLIER, audit_archive
from heldout.board.log.events import GENESIS, Entry, Event, Opening, format_entry, parse_log
from heldout.ids import digest_bytes, seal_digest

SALT = "11" * 16
HIDDEN_FIELDS = ("evidence", "compared", "kept")


@pytest.fixture
def archive() -> Path:
    """An honest one."""
    return end_board().archive


def log_of(files: Files) -> list[Entry]:
    return [*parse_log(files["log.jsonl"], path="log.jsonl")]


def chain(entries: Iterable[Entry]) -> bytes:
    """The same events as a log of their own, every number and hash right."""
    done: list[Entry] = []
    for entry in entries:
        prev = done[-1].hash if done else GENESIS
        event = replace(entry.event, seq=len(done), prev=prev)
        raw = msgspec.json.encode(event)
        digest = digest_bytes(raw)
        signed = sign_event(digest)
        done.append(Entry(event=event, hash=digest, raw=raw, opened=entry.opened, signature=signed))
    return b"".join(map(format_entry, done))


def made(
    kind: str,
    at: str,
    public: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    submission: str | None = None,
) -> Entry:
    """An event, which may commit to labels."""
    given = {} if labels is None else {"labels": labels}
    salted = [msgspec.json.encode(value, order="deterministic") for value in given.values()]
    event = Event(
        seq=0,
        at=at,
        kind=kind,
        by="an organiser",
        submission=submission,
        public=dict(public),
        sealed={name: str(seal_digest(SALT, d)) for name, d in zip(given, salted, strict=True)},
        prev=GENESIS,
    )
    opened = {name: Opening(value=value, salt=SALT) for name, value in given.items()}
    return Entry(event=event, hash="", raw=b"", opened=opened)  # type: ignore[arg-type]


def with_public(entry: Entry, **fields: Any) -> Entry:
    return dataclasses.replace(
        entry, event=replace(entry.event, public={**entry.event.public, **fields})
    )


def change_log(files: Files, change: Callable[[Entry], Entry]) -> None:
    files["log.jsonl"] = chain(map(change, log_of(files)))


def tell_otherwise(
    files: Files, change: Callable[[Mapping[str, Any]], Mapping[str, Any]], of: str = ONE
) -> None:
    """Another publication of an entry."""
    kinds = {(kind, of) for kind in ("published", "baseline")}
    change_log(
        files,
        lambda entry: (
            with_public(entry, **change(entry.event.public))
            if (entry.event.kind, entry.event.submission) in kinds
            else entry
        ),
    )


def before_closing(files: Files, new: Callable[[Entry, str], Sequence[Entry]]) -> None:
    """Put events before the last one."""
    *entries, closing = log_of(files)
    files["log.jsonl"] = chain([*entries, *new(entries[0], closing.event.at), closing])


def without_evidence(files: Files) -> None:
    """Nothing says what a score was told for."""

    def strip(entry: Entry) -> Entry:
        sealed = {k: v for k, v in entry.event.sealed.items() if k not in HIDDEN_FIELDS}
        opened = {k: v for k, v in entry.opened.items() if k not in HIDDEN_FIELDS}
        return dataclasses.replace(entry, event=replace(entry.event, sealed=sealed), opened=opened)

    change_log(files, strip)
    for name in [name for name in files if name.startswith("evidence/")]:
        del files[name]


def score_names(files: Files) -> list[str]:
    return [n[7:-5] for n in files if n.startswith("scores/")]


def swap_labels(files: Files) -> str:
    """Other labels, and scores that say they were made with them; the new digest."""
    old = files["labels/eval.qrels"]
    files["labels/eval.qrels"] = old.replace(b"deval1 1", b"n1-0 1")
    assert files["labels/eval.qrels"] != old
    digest = str(digest_bytes(files["labels/eval.qrels"]))
    for name in score_names(files):
        change_scores(files, name, lambda scores: scores["labels"].update(eval=digest))
    return digest


def rules(first: Entry) -> dict[str, Any]:
    return {"board.toml": first.get("board.toml")}


def commit(files: Files, kind: str, labels: Mapping[str, str], **public: Any) -> None:
    """An event before the last one that commits to labels."""
    before_closing(files, lambda first, at: [made(kind, at, {**rules(first), **public}, labels)])


def labels_by_new_keys(files: Files) -> None:
    told = {"added": [], "removed": [], "old_keys": "", "sealed_again": {}, "not_opened": []}
    labels = {"eval": swap_labels(files)}
    commit(files, "rekeyed", labels, why="a laptop", grace_until=None, **told)


def labels_left_out(files: Files) -> None:
    swap_labels(files)
    commit(files, "changed-rules", {"x": "0" * 64}, why="tidy")


def labels_of_a_later_day(files: Files) -> None:
    digest = swap_labels(files)
    without_evidence(files)
    first, *rest = log_of(files)
    files["log.jsonl"] = chain([made("opened-board", first.event.at, first.event.public), *rest])
    commit(files, "changed-rules", {"eval": digest}, why="x")


def hidden_score(files: Files) -> None:
    """On a board that tells every score."""

    def hide(public: Mapping[str, Any]) -> Mapping[str, Any]:
        left = {
            f: {v: x for v, x in public[f].items() if v != "eval"} for f in ("scores", "queries")
        }
        return {**left, "untold": ["eval"]}

    tell_otherwise(files, hide)


def hidden_score_of_a_baseline(files: Files) -> None:
    tell_otherwise(files, lambda _: {"untold": ["eval"]}, BASELINE)
    without_evidence(files)


def told(files: Files, text: str, n: int) -> None:
    """The entry's event tells another score of the view that ranks."""
    tell_otherwise(
        files,
        lambda public: {
            "scores": {**public["scores"], "eval": text},
            "queries": {**public["queries"], "eval": n},
        },
    )


def labels_changed_at_once(files: Files) -> None:
    """Before any score was told; every score but one is by the new ones."""
    old = str(digest_bytes(files["labels/eval.qrels"]))
    files[f"{EARLIER}{old}"] = files["labels/eval.qrels"]
    files["labels/eval.qrels"] += b"eval1 0 another 0\n"
    new = str(digest_bytes(files["labels/eval.qrels"]))
    first, *rest = log_of(files)
    event = made("changed-rules", first.event.at, {**rules(first), "why": "x"}, {"eval": new})
    files["log.jsonl"] = chain([first, event, *rest])
    for name in score_names(files):
        if name != ONE:
            change_scores(files, name, lambda scores: scores["labels"].update(eval=new))
            change_scores(files, name, lambda scores: scores["held_out"].update(eval=new))
    change_scores(files, ONE, lambda scores: scores["labels"].update(eval=old))
    without_evidence(files)


def invented_queries(files: Files) -> None:
    """Of a run that nobody can look at any more."""
    labels_changed_at_once(files)
    invented = {"per_query": {"a query of my own": 0.999}, "mean": 0.999, "n": 1}
    change_scores(files, ONE, lambda scores: scores["views"]["eval"].update(invented))
    for name in [name for name in files if name.startswith(f"runs/{ONE}/")]:
        del files[name]
    told(files, "0.999", 1)

    def silent(entry: Entry) -> Entry:
        opened = [name for name in entry.event.public.get("open_runs", ()) if name != ONE]
        return with_public(entry, open_runs=opened) if "open_runs" in entry.event.public else entry

    change_log(files, silent)


def score_out_of_range(files: Files) -> None:
    without_evidence(files)
    change_scores(
        files,
        ONE,
        lambda scores: scores["views"]["eval"].update(
            per_query=dict.fromkeys(scores["views"]["eval"]["per_query"], 5.0), mean=5.0
        ),
    )
    told(files, "5.000", 30)


def erratum(files: Files, **fields: Any) -> None:
    before_closing(files, lambda _, at: [made("corrected", at, {"why": "x", **fields}, None, ONE)])


ATTACKS: Mapping[str, tuple[Callable[[Files], None], str]] = {
    "labels that new keys bring": (labels_by_new_keys, "rekeyed, names labels"),
    "labels that a later event leaves out": (
        labels_left_out,
        "event 12 does not commit to labels/eval.qrels",
    ),
    "labels that are committed to at the end": (
        labels_of_a_later_day,
        "event 0 does not commit to labels/eval.qrels",
    ),
    "a score by labels that were in force no more": (labels_changed_at_once, "not in force"),
    "scores of queries that nobody asked": (invented_queries, "not those of its queries"),
    "a score that the measure cannot give": (score_out_of_range, "not those of its queries"),
    "a score that is hidden where all are told": (hidden_score, "does not follow"),
    "a baseline whose score is hidden": (hidden_score_of_a_baseline, "does not follow"),
    "a final score of no view": (
        lambda files: erratum(files, final={"scores": {"nope": "1"}, "queries": {"nope": 1}}),
        "does not follow",
    ),
    "an erratum that does not say what it was told for": (
        lambda files: erratum(files, scores={"eval": "0.999"}, queries={"eval": 30}),
        "does not name the evidence of its score",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_log_that_was_made_anew_with_sound_hashes(
    archive: Path, tmp_path: Path, name: str
) -> None:
    change, fault = ATTACKS[name]
    start = time.process_time()
    found = audit_archive(forge(archive, change, tmp_path / "x.zip"))
    assert time.process_time() - start < 10
    assert fault in "\n".join(found.faults), found


def test_an_honest_archive_has_no_fault_and_says_what_was_held_against_what(archive: Path) -> None:
    found = audit_archive(archive)
    assert found.faults == ()
    assert "1 held-out file against the commitment of 01 Nov 2026" in found.checked


def test_every_later_commitment_is_told(archive: Path, tmp_path: Path) -> None:
    def again(files: Files) -> None:
        labels = {"eval": str(digest_bytes(files["labels/eval.qrels"])), "eval.exclude": "0" * 64}
        for why in ("a mask", "tidy"):
            commit(files, "changed-rules", labels, why=why)

    found = audit_archive(forge(archive, again, tmp_path / "x.zip"))
    notes = "\n".join(found.notes)
    assert 'changed on 02 Dec 2026, for: "a mask" (eval.exclude)' in notes
    assert 'changed on 02 Dec 2026, for: "tidy" (none is another one)' in notes
    assert any("as changed by 2 later events" in line for line in found.checked)


def test_a_hostile_archive_ends_in_no_traceback(archive: Path, tmp_path: Path) -> None:
    """As a program of its own, with the first event's rules: everything else is read by them."""

    def change(files: Files) -> None:
        first, *rest = log_of(files)
        text = "a = " + "[\n" * 9_000 + first.event.public["board.toml"]
        files["log.jsonl"] = chain([with_public(first, **{"board.toml": text}), *rest])

    file = forge(archive, change, tmp_path / "x.zip")
    command = [sys.executable, "-m", "heldout", "audit", str(file), "--board", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, check=False, env=environment(tmp_path), text=True, timeout=60
    )
    assert done.returncode == 1
    assert "too many to read" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_what_nobody_thought_of_is_a_fault_and_no_traceback(
    archive: Path, monkeypatch: Patch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("nope")

    monkeypatch.setattr(archive_audit, "replay_releases", fail)
    (fault,) = archive_audit.audit_archive(archive).faults
    assert fault.startswith("the archive cannot be gone over: KeyError")
