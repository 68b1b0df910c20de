"""What an audit claims to check, it finds: every kind of tampering, one at a time."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from lab import OTHER_TEAM, Lab, prepared

ONE, TWO = "20261102-one", "20261102-two"

Change = Callable[[Lab], object]


@prepared
def lab(lab: Lab) -> None:
    """A board with two published entries."""
    lab.send("one", seed=1)
    lab.receive("two", seed=2, team=OTHER_TEAM)
    lab.publish(ONE, TWO)


def edit(name: str, change: Callable[[bytes], bytes]) -> Change:
    def apply(lab: Lab) -> None:
        file = lab.root / name
        data = change(file.read_bytes())
        assert data != file.read_bytes()
        file.write_bytes(data)

    return apply


def gone(name: str) -> Change:
    return lambda lab: (lab.root / name).unlink()


def lines(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(change(data.splitlines(keepends=True)))


def replaced(old: str, new: str) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(old.encode(), new.encode(), 1)


def sealed(lab: Lab, name: str) -> Path:
    """The vault's copy of a received file, or of the held-out labels."""
    left = lab.board / f"submissions/{name}"
    if name == "labels":
        left = lab.vault / "labels" / "eval.qrels"
    return lab.vault / "sealed" / hashlib.sha256(left.read_bytes()).hexdigest()


def swap_scores(lab: Lab) -> None:
    """The lowest and the highest of an entry's scores by query: the mean stays."""
    file = lab.vault / f"scores/{ONE}.json"
    scores = json.loads(file.read_bytes())
    values = scores["views"]["eval"]["per_query"]
    low, high = min(values, key=values.get), max(values, key=values.get)
    values[low], values[high] = values[high], values[low]
    file.write_text(json.dumps(scores))


FILE_CHANGES: Mapping[str, tuple[Change, str]] = {
    "the public log": (
        edit("board/log.jsonl", replaced("received", "reviewed")),
        "its hash does not match",
    ),
    "the vault's log": (
        edit("vault/events.jsonl", lines(lambda rows: [rows[0], *rows[2:]])),
        "the chain is broken",
    ),
    "a sealed file": (
        edit(f"board/submissions/{ONE}.tar.age", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        f"submissions/{ONE}.tar.age is not the file that was received",
    ),
    "a sealed file removed": (
        gone(f"board/submissions/{TWO}.key.age"),
        f"submissions/{TWO}.key.age is missing",
    ),
    "sealed files swapped": (
        lambda lab: (lab.board / f"submissions/{ONE}.tar.age").write_bytes(
            (lab.board / f"submissions/{TWO}.tar.age").read_bytes()
        ),
        "is not the file that was received",
    ),
    "a score in the JSON": (
        edit("board/leaderboard/leaderboard.json", replaced('"eval": 0.', '"eval": 0.9')),
        "leaderboard.json is not what the log gives",
    ),
    "a team in the CSV": (
        edit("board/leaderboard/leaderboard.csv", replaced("Lighthouse", "Darkhouse")),
        "leaderboard.csv is not what the log gives",
    ),
    "the JSON removed": (gone("board/leaderboard/leaderboard.json"), "missing or unreadable"),
    "the JSON is none": (
        lambda lab: (lab.board / "leaderboard/leaderboard.json").write_text("[]"),
        "missing or unreadable",
    ),
    "a held-out label": (
        edit("vault/labels/eval.qrels", replaced("deval1 1", "other 1")),
        "labels/eval.qrels in the vault is not the file that was committed to",
    ),
    "the labels removed": (gone("vault/labels/eval.qrels"), "labels/eval.qrels is missing"),
    "a score in the vault": (
        edit(f"vault/scores/{ONE}.json", replaced('"mean":0.', '"mean":0.1')),
        f"a mean of {ONE} in the vault is not that of its per-query scores",
    ),
    "a query's score in the vault": (
        edit(f"vault/scores/{ONE}.json", lambda data: data.replace(b":1.0", b":0.5")),
        f"the released score of {ONE} is not that of the vault",
    ),
    "the scores of two queries swapped": (swap_scores, "that does not belong to the per-query"),
    "the scores removed": (gone(f"vault/scores/{ONE}.json"), f"the vault has no scores of {ONE}"),
    "a received file in the vault": (
        lambda lab: sealed(lab, f"{ONE}.tar.age").write_bytes(b"x"),
        "is missing or damaged",
    ),
    "the version of the labels that was committed to": (
        lambda lab: sealed(lab, "labels").write_bytes(b"x"),
        "is missing or damaged",
    ),
    "the vault's last event cut": (
        edit("vault/events.jsonl", lines(lambda rows: rows[:-1])),
        "1 event is missing in the vault's log",
    ),
    "the public log removed": (gone("board/log.jsonl"), "log.jsonl is missing or empty"),
    "the vault's log removed": (gone("vault/events.jsonl"), "events.jsonl is missing or empty"),
}


@pytest.mark.parametrize("change", FILE_CHANGES)
def test_a_tampered_file(lab: Lab, change: str) -> None:
    how, said = FILE_CHANGES[change]
    how(lab)
    found = lab.audit()
    assert not found["ok"]
    assert said in "\n".join(found["faults"])


def test_a_cut_public_log_is_told_by_the_leaderboard_or_as_a_note(lab: Lab) -> None:
    """Whole events missing at the end: the chain itself cannot show it."""
    file = lab.board / "log.jsonl"
    rows = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(rows[:-1]))
    found = lab.audit()
    assert not found["ok"]
    assert "1 event is not public yet: heldout rebuild" in found["notes"]
    lab.organiser("rebuild")
    assert file.read_bytes() == b"".join(rows)
    assert lab.audit()["ok"]


def test_an_edit_that_decides_is_a_fault_and_one_of_words_a_note(lab: Lab) -> None:
    rules = lab.board / "board.toml"
    text = rules.read_text()
    rules.write_text(text.replace("quota = 2", "quota = 3"))
    for found in (lab.audit(), lab.call("audit", "--board", lab.board, "--json").json):
        assert not found["ok"]
        (fault,) = found["faults"]
        assert "policy.quota: 2 -> 3" in fault
    rules.write_text(text.replace('title = "board"', 'title = "Another title"'))
    found = lab.audit()
    assert found["ok"]
    assert found["notes"] == [
        "board.toml was edited since the last event, and decides nothing: title"
    ]
    rules.write_text(text)
    (lab.board / "keys" / "organisers.txt").write_text("age1other\n")
    (fault,) = lab.audit()["faults"]
    assert "keys/organisers.txt does not hold the recipients that the log has" in fault


def test_rebuild_mends_what_is_public(lab: Lab) -> None:
    for name in ("log.jsonl", "leaderboard/leaderboard.json", f"submissions/{ONE}.tar.age"):
        (lab.board / name).write_bytes(b"spoilt\n")
    (lab.board / "leaderboard" / "extra.html").write_text("somebody's own")
    answer = lab.organiser("rebuild", "--json")
    assert (answer.code, answer.json["unknown"]) == (0, ["leaderboard/extra.html"])
    assert lab.audit() == {"ok": True, "events": 7, "faults": [], "notes": []}
    assert (lab.board / "leaderboard" / "extra.html").read_text() == "somebody's own"
