"""A participant's receipt against the public log: it is in it, or it is said what is not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace
from town import OTHER_TEAM, Answer, Town, copy_of, copy_town, found_town, git, sign_event
from trusting import DAY, DECIDED, LAST, ONE

from heldout.board.log.events import Draft, Entry, format_entry, link
from heldout.board.log.history import check_continues
from heldout.board.participant.receipts import (
    Mark,
    check_receipt,
    find_forks,
    keep_receipt,
    read_receipt,
)
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.errors import StoreError

pytestmark = pytest.mark.slow
RECEIPT = f".git/heldout/receipts/{ONE}.json"


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A submission that was sent, taken in and published; its receipt is of the day it was sent."""
    town = found_town(tmp_path_factory.mktemp("receipts"))
    assert town.send("one", now=DAY) == ONE
    keep(town)
    town.take_in(now=DAY)
    assert town.publish(ONE, now=DECIDED).code == 0
    town.push()
    return town


town = copy_of("sent")


def keep(town: Town) -> Path:
    clone = Repository(town.clone)
    file = keep_receipt(clone, ONE, clone.newest_log())
    assert file is not None
    return Path(str(file))


def audit(town: Town, receipt: Path | None = None, *more: str | Path) -> Answer:
    told = ("--receipt", receipt or town.clone / RECEIPT)
    return town.participant("audit", *told, *more, "--json", now=LAST)


def test_a_clone_that_is_behind_is_said_to_be(town: Town) -> None:
    """The receipt has seen more than lies here: with origin it holds, without it nobody knows."""
    told = audit(town).json
    assert told["ok"]
    assert any("origin's newer log of" in note for note in told["notes"])
    keep(town)
    git(town.clone, "remote", "set-url", "origin", str(town.root / "nowhere"))
    git(town.clone, "update-ref", "-d", "refs/remotes/origin/main")
    told = audit(town).json
    assert not told["ok"]
    assert any("this clone may only be behind: git pull" in note for note in told["notes"])
    git(town.clone, "remote", "set-url", "origin", str(town.forge))
    town.pull()
    told = audit(town).json
    assert (told["ok"], told["notes"]) == (True, [])


def edit(town: Town, **changes: Any) -> Path:
    file = town.root / "edited.json"
    file.write_text(json.dumps({**json.loads((town.clone / RECEIPT).read_text()), **changes}))
    return file


def rewrite(
    town: Town, change: Callable[[Entry], dict[str, Any]], *, drop: int | None = None
) -> None:
    """The organisers make their history again and push it by force, page and all."""
    chain: list[Entry] = []
    for entry in Vault(town.vault).entries():
        if entry.event.seq == drop:
            continue
        sealed = {name: opening.value for name, opening in entry.opened.items()}
        event = entry.event
        draft = Draft(
            kind=event.kind,
            by=event.by,
            submission=event.submission,
            public={**event.public, **change(entry)},
            sealed=sealed,
        )
        last = chain[-1] if chain else None
        chain.append(link(draft, last, at=entry.time, new_salt=lambda: "ab" * 16, sign=sign_event))
    (town.vault / "events.jsonl").write_bytes(b"".join(map(format_entry, chain)))
    (town.board / "log.jsonl").unlink()
    town.organiser("rebuild", now=LAST).done()
    git(town.board, "push", "-q", "--force", "origin", "main")


def test_a_receipt_is_in_the_log(town: Town) -> None:
    answer = audit(town)
    assert (answer.code, answer.json["ok"], answer.json["faults"]) == (0, True, []), answer
    received = next(e for e in town.events() if e["kind"] == "received")
    assert answer.json["receipts"][0]["received"]["at"] == received["at"] == DAY
    assert answer.json["receipts"][0]["received"]["seq"] == received["seq"]
    plain = town.participant("audit", "--receipt", town.clone / RECEIPT, now=LAST)
    assert (plain.code, plain.out.splitlines()[0][:5]) == (0, "sound")
    assert f"received  {DAY}, event 1" in plain.out


def test_a_forged_receipt(town: Town) -> None:
    files = json.loads((town.clone / RECEIPT).read_text())["files"]
    for name in files:
        answer = audit(town, edit(town, files={**files, name: "0" * 64}))
        assert answer.code == 1
        assert f'"{name}" with the digest 000000000000' in answer.json["faults"][0]
    answer = audit(town, edit(town, board="0" * 64))
    assert (answer.code, answer.json["faults"]) == (1, ["it is a receipt of another board"])
    seen = {"seq": 0, "hash": "0" * 64, "at": DAY}
    for changes in ({"seen": seen}, {"seen": {**seen, "seq": 99}}, {"seen": {**seen, "seq": -1}}):
        assert audit(town, edit(town, **changes)).code == 1
    earlier = {**json.loads(keep(town).read_text())["received"], "at": "2026-11-01T10:00:00Z"}
    answer = audit(town, edit(town, received=earlier))
    assert answer.code == 1
    assert "was taken in by event 1 of 2026-11-01T10:00:00Z, and is no longer" in answer.out


@pytest.mark.parametrize("files", ["no", 7, [1], {"x": [1]}, None])
def test_a_log_with_nonsense_for_files(town: Town, files: object) -> None:
    log = Repository(town.board).log()
    public = {"files": files, "fingerprint": "f", "source": "s"}
    draft = Draft(kind="received", by="x", submission=ONE, public=public, sealed={})
    late = link(draft, log[-1], at=log[-1].time, new_salt=lambda: "ab" * 16, sign=sign_event)
    receipt = read_receipt(town.clone / RECEIPT)
    assert check_receipt(receipt, [*log, late]).faults == ()
    assert len(check_receipt(receipt, [log[0], late]).faults) >= 3


def test_a_receipt_names_the_head_of_the_log_when_it_was_sent(town: Town) -> None:
    before = Repository(town.clone).log()[-1]
    head = read_receipt(town.clone / RECEIPT).head
    assert (head.seq, head.hash) == (before.event.seq, before.hash)
    assert read_receipt(keep(town)).seen.seq > head.seq
    assert read_receipt(keep(town)).head == head
    (told,) = audit(town, edit(town, head={**to_builtins(head), "hash": "f" * 64})).json["faults"]
    assert told == f"event {head.seq}, the last one when it was sent, is not what it was"


def other_town(town: Town) -> Town:
    """A dishonest organiser's second board, vault and forge, with the same keys."""
    return copy_town(town, town.root / "second")


def test_two_receipts_show_that_two_logs_were_shown(tmp_path: Path) -> None:
    """One organiser goes on with two copies of a vault, and shows each team another log."""
    town = found_town(tmp_path)
    one = town.send("one", now=DAY)
    town.take_in(now=DAY)
    town.push()
    other = other_town(town)
    their = other.new_clone("theirs")
    other.send("theirs", now=DECIDED, seed=2, team=OTHER_TEAM, clone=their)
    assert town.publish(one, now=DECIDED).code == 0
    told = ("reject", one, "--why", "not a team")
    assert other.organiser(*told, now=DECIDED).code == 0
    other.take_in(now=DECIDED)
    for side, clone in ((town, town.clone), (other, their)):
        assert side.audit()["ok"]
        side.push()
        assert side.participant("status", now=DECIDED, clone=clone).code == 0
        side.pull(clone)
    mine = town.clone / RECEIPT
    theirs = their / ".git/heldout/receipts/20261103-theirs.json"
    for side, clone, own in ((town, town.clone, mine), (other, their, theirs)):
        side.participant(
            "audit", "--receipt", own, now=DECIDED, clone=clone
        ).done()  # each finds its own log sound
    fork = f"the receipts of {one} and 20261103-theirs name different events 3: "
    for side, clone in ((town, town.clone), (other, their)):
        both = side.participant(
            *("audit", "--receipt", mine, "--receipt", theirs, "--json"), now=LAST, clone=clone
        )
        assert both.code == 1
        assert both.json["faults"][0].startswith(fork), both
        whose = "20261103-theirs" if side is town else one
        assert {fault.partition(":")[0] for fault in both.json["faults"][1:]} == {whose}
    again = audit(town, mine, "--receipt", mine)
    assert (again.code, len(again.json["receipts"])) == (0, 2)
    assert "2 receipts" in again.json["checked"]
    # Whoever is given the other log finds it, too, and sends nothing.
    git(town.clone, "remote", "set-url", "origin", str(other.forge))
    assert "history was rewritten" in audit(town, mine).out
    two = town.draft("two", now=DECIDED, seed=3)
    assert "history was rewritten" in town.participant("submit", two, now=DECIDED).err
    # Of another board's log nothing follows.
    known = read_receipt(mine)
    seen = Mark(seq=known.seen.seq, hash="f" * 64, at=known.seen.at)
    assert list(find_forks([known, replace(known, board="e" * 64, seen=seen)])) == []


def test_a_submission_left_out_of_history_is_told(town: Town) -> None:
    keep(town)
    rewrite(town, lambda _: {}, drop=3)
    assert audit(town).code == 1
    git(town.clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert audit(town).code == 1


def test_a_released_number_that_changed_without_an_event_is_told(town: Town) -> None:
    """In a clone that pulled before, even without a receipt's own memory of the log."""
    town.pull()
    earlier = town.root / "kept.jsonl"
    shutil.copy(town.clone / "log.jsonl", earlier)
    other = {"dev": "0.999", "eval": "0.999"}
    rewrite(town, lambda e: {"scores": other} if e.event.kind == "published" else {})
    for told in ((), ("--earlier", earlier)):
        answer = audit(town, None, *told)
        assert answer.code == 1
        assert "history was rewritten" in "\n".join(answer.json["faults"])
    alone = town.participant("audit", "--earlier", earlier, "--json", now=LAST)
    assert (alone.code, alone.json["ok"]) == (1, False)


def test_a_renewal_keeps_the_evidence_of_a_rewritten_history(town: Town) -> None:
    before = keep(town).read_bytes()
    rewrite(town, lambda entry: {"source": "b folder"} if entry.event.kind == "received" else {})
    with pytest.raises(StoreError, match="history was rewritten"):
        keep(town)
    assert (town.clone / RECEIPT).read_bytes() == before


def test_an_erratum_is_a_change_with_an_event(town: Town) -> None:
    town.pull()
    town.repair("deval3 1", "other 1")
    assert town.organiser("correct", ONE, "--why", "a wrong label", now=LAST).code == 0
    town.push()
    answer = audit(town)
    assert (answer.code, answer.json["faults"]) == (0, []), answer
    assert any(
        note.startswith(f"{ONE}: eval 0.") and "by event 5" in note for note in answer.json["notes"]
    )


def test_a_field_that_was_shown_stays_shown(town: Town) -> None:
    log = Repository(town.board).log()
    hidden = [*log[:-1], Entry(event=log[-1].event, hash=log[-1].hash, raw=log[-1].raw, opened={})]
    assert list(check_continues(log, log)) == []
    assert list(check_continues(hidden, log)) == []
    assert list(check_continues(log, hidden)) == [
        "event 3 showed findings, identity, why before, and hides it now"
    ]


def test_files_that_are_no_receipt(town: Town) -> None:
    file = town.root / "none.json"
    whole = (town.clone / RECEIPT).read_bytes()
    for data in (b"", b"[]", b"\xff", b"[" * 100_000, whole[:-9], whole.replace(b'"id"', b'"ID"')):
        file.write_bytes(data)
        answer = audit(town, file)
        assert (answer.code, answer.out) == (2, "")
        assert "a receipt, as heldout submit wrote it" in answer.err
    assert audit(town, edit(town, id="../../../etc/passwd")).code == 2
