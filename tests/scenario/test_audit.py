"""What an audit claims to check, it finds: every kind of tampering, one at a time."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from town import OTHER_TEAM, Town, call, copy_of, found_town, git

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
ONE, TWO = "20261102-one", "20261102-two"

Change = Callable[[Town], object]


town = copy_of("published")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A board with two published entries."""
    town = found_town(tmp_path_factory.mktemp("audited"))
    town.send("one", now=DAY, seed=1)
    town.send("two", now=DAY, seed=2, team=OTHER_TEAM)
    town.take_in(now=DAY)
    town.publish(ONE, TWO, now=DAY)
    return town


def edit(name: str, change: Callable[[bytes], bytes]) -> Change:
    def apply(town: Town) -> None:
        file = town.root / name
        data = change(file.read_bytes())
        assert data != file.read_bytes()
        file.write_bytes(data)

    return apply


def lines(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(change(data.splitlines(keepends=True)))


def replaced(old: str, new: str) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(old.encode(), new.encode(), 1)


def sealed(town: Town, name: str) -> Path:
    """The vault's copy of a received file, or of the held-out labels."""
    kept = town.board / f"submissions/{name}"
    if name == "labels":
        kept = town.vault / "labels" / "eval.qrels"
    return town.vault / "sealed" / hashlib.sha256(kept.read_bytes()).hexdigest()


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
        lambda town: (town.board / f"submissions/{TWO}.key.age").unlink(),
        f"submissions/{TWO}.key.age is missing",
    ),
    "sealed files swapped": (
        lambda town: (town.board / f"submissions/{ONE}.tar.age").write_bytes(
            (town.board / f"submissions/{TWO}.tar.age").read_bytes()
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
    "the JSON removed": (
        lambda town: (town.board / "leaderboard/leaderboard.json").unlink(),
        "missing or unreadable",
    ),
    "the JSON is none": (
        lambda town: (town.board / "leaderboard/leaderboard.json").write_text("[]"),
        "missing or unreadable",
    ),
    "a held-out label": (
        edit("vault/labels/eval.qrels", replaced("deval1 1", "other 1")),
        "labels/eval.qrels in the vault is not the file that was committed to",
    ),
    "the labels removed": (
        lambda town: (town.vault / "labels/eval.qrels").unlink(),
        "labels/eval.qrels is missing",
    ),
    "a score in the vault": (
        edit(f"vault/scores/{ONE}.json", replaced('"mean":0.', '"mean":0.1')),
        f"a mean of {ONE} in the vault is not that of its per-query scores",
    ),
    "a query's score in the vault": (
        edit(f"vault/scores/{ONE}.json", lambda data: data.replace(b":1.0", b":0.5")),
        f"the released score of {ONE} is not that of the vault",
    ),
    "the scores removed": (
        lambda town: (town.vault / f"scores/{ONE}.json").unlink(),
        f"the vault has no scores of {ONE}",
    ),
    "a received file in the vault": (
        lambda town: sealed(town, f"{ONE}.tar.age").write_bytes(b"x"),
        "is missing or damaged",
    ),
    "the version of the labels that was committed to": (
        lambda town: sealed(town, "labels").write_bytes(b"x"),
        "is missing or damaged",
    ),
    "the vault's last event cut": (
        edit("vault/events.jsonl", lines(lambda rows: rows[:-1])),
        "1 event is missing in the vault's log",
    ),
    "the public log removed": (
        lambda town: (town.board / "log.jsonl").unlink(),
        "log.jsonl is missing or empty",
    ),
    "the vault's log removed": (
        lambda town: (town.vault / "events.jsonl").unlink(),
        "events.jsonl is missing or empty",
    ),
}


@pytest.mark.parametrize("change", FILE_CHANGES)
def test_a_tampered_file(town: Town, change: str) -> None:
    how, told = FILE_CHANGES[change]
    assert town.audit()["ok"]
    how(town)
    found = town.audit()
    assert not found["ok"]
    assert told in "\n".join(found["faults"])


def test_a_cut_public_log_is_told_by_the_leaderboard_or_as_a_note(town: Town) -> None:
    """Whole events missing at the end: the chain itself cannot show it."""
    file = town.board / "log.jsonl"
    rows = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(rows[:-1]))
    found = town.audit()
    assert not found["ok"]
    assert "1 event is not public yet: heldout rebuild" in found["notes"]
    town.organiser("rebuild", now=DAY)
    assert file.read_bytes() == b"".join(rows)
    assert town.audit()["ok"]


def test_a_changed_number_on_the_page_is_said_to_be_unchecked_and_a_rebuild_shows_it(
    town: Town,
) -> None:
    """Pages are not compared: other versions and machines write the same numbers otherwise."""
    page = town.board / "leaderboard" / "index.html"
    score = next(row["scores"]["eval"] for row in town.rows() if row["id"] == ONE)
    right = page.read_text()
    page.write_text(right.replace(f"{score}", "0.996"))
    assert page.read_text() != right
    git(town.board, "commit", "-q", "-a", "-m", "a better page")
    answer = call(town.root, "audit", "--board", town.board, "--json")
    assert answer.json["ok"]
    assert "the pages (HTML, feed): heldout rebuild" in answer.json["unchecked"][0]
    assert "unchecked: the pages" in call(town.root, "audit", "--board", town.board).out
    assert call(town.root, "rebuild", "--board", town.board, "--now", DAY).code == 0
    assert page.read_text() == right
    assert git(town.board, "diff", "--name-only") == "leaderboard/index.html"


def test_an_edit_that_decides_is_a_fault_and_one_of_words_a_note(town: Town) -> None:
    rules = town.board / "board.toml"
    text = rules.read_text()
    rules.write_text(text.replace("quota = 2", "quota = 3"))
    for found in (town.audit(), call(town.root, "audit", "--board", town.board, "--json").json):
        assert not found["ok"]
        (fault,) = found["faults"]
        assert "policy.quota: 2 -> 3" in fault
    rules.write_text(text.replace('title = "board"', 'title = "Another title"'))
    found = town.audit()
    assert found["ok"]
    assert found["notes"] == [
        "board.toml was edited since the last event, and decides nothing: title"
    ]
    rules.write_text(text)
    (town.board / "keys" / "organisers.txt").write_text("age1other\n")
    (fault,) = town.audit()["faults"]
    assert "keys/organisers.txt does not hold the recipients that the log has" in fault


def test_rebuild_mends_what_is_public(town: Town) -> None:
    for name in ("log.jsonl", "leaderboard/leaderboard.json", f"submissions/{ONE}.tar.age"):
        (town.board / name).write_bytes(b"spoilt\n")
    (town.board / "leaderboard" / "extra.html").write_text("somebody's own")
    answer = town.organiser("rebuild", "--json", now=DAY)
    assert (answer.code, answer.json["unknown"]) == (0, ["leaderboard/extra.html"])
    assert town.audit() == {"ok": True, "events": 7, "faults": [], "notes": []}
    assert (town.board / "leaderboard" / "extra.html").read_text() == "somebody's own"
