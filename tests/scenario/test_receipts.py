"""A participant's receipt against the public log: it is in it, or it is said what is not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lab import DAY, LAST, NEXT, OTHER_TEAM, Answer, Lab, found_lab, git, prepared, sign_event
from msgspec import to_builtins
from msgspec.structs import replace
from trusting import ONE

from heldout.board.log.events import Draft, Entry, format_entry, link
from heldout.board.log.history import check_continues
from heldout.board.participant import receipts
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.errors import StoreError

RECEIPT = f".git/heldout/receipts/{ONE}.json"


@prepared
def lab(lab: Lab) -> None:
    """A submission that was sent, taken in and published; its receipt is of the day it was sent."""
    assert lab.send("one") == ONE
    keep(lab)
    lab.take_in()
    assert lab.publish(ONE, now=NEXT).code == 0
    lab.push()


def keep(lab: Lab) -> Path:
    clone = Repository(lab.clone)
    file = receipts.store_receipt(clone, ONE, clone.newest_log())
    assert file is not None
    return Path(str(file))


def audit(lab: Lab, receipt: Path | None = None, *more: str | Path) -> Answer:
    args = ("--receipt", receipt or lab.clone / RECEIPT)
    return lab.participant("audit", *args, *more, "--json", now=LAST)


def test_a_clone_that_is_behind_is_said_to_be(lab: Lab) -> None:
    """The receipt has seen more than lies here: with origin it holds, without it nobody knows."""
    said = audit(lab).json
    assert said["ok"]
    assert any("origin's newer log of" in note for note in said["notes"])
    keep(lab)
    git(lab.clone, "remote", "set-url", "origin", str(lab.root / "nowhere"))
    git(lab.clone, "update-ref", "-d", "refs/remotes/origin/main")
    said = audit(lab).json
    assert not said["ok"]
    assert any("this clone may only be behind: git pull" in note for note in said["notes"])
    git(lab.clone, "remote", "set-url", "origin", str(lab.forge))
    lab.pull()
    said = audit(lab).json
    assert (said["ok"], said["notes"]) == (True, [])


def edit(lab: Lab, **changes: Any) -> Path:
    file = lab.root / "edited.json"
    file.write_text(json.dumps({**json.loads((lab.clone / RECEIPT).read_text()), **changes}))
    return file


def rewrite(
    lab: Lab, change: Callable[[Entry], dict[str, Any]], *, drop: int | None = None
) -> None:
    """The organisers make their history again and push it by force, page and all."""
    chain: list[Entry] = []
    for entry in Vault(lab.vault).entries():
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
    (lab.vault / "events.jsonl").write_bytes(b"".join(map(format_entry, chain)))
    (lab.board / "log.jsonl").unlink()
    lab.organiser("rebuild", now=LAST).done()
    git(lab.board, "push", "-q", "--force", "origin", "main")


def test_a_receipt_is_in_the_log(lab: Lab) -> None:
    answer = audit(lab)
    assert (answer.code, answer.json["ok"], answer.json["faults"]) == (0, True, []), answer
    received = next(e for e in lab.events() if e["kind"] == "received")
    assert answer.json["receipts"][0]["received"]["at"] == received["at"] == DAY
    assert answer.json["receipts"][0]["received"]["seq"] == received["seq"]
    plain = lab.participant("audit", "--receipt", lab.clone / RECEIPT, now=LAST)
    assert (plain.code, plain.out.splitlines()[0][:5]) == (0, "sound")
    assert f"received  {DAY}, event 1" in plain.out


def test_a_forged_receipt(lab: Lab) -> None:
    files = json.loads((lab.clone / RECEIPT).read_text())["files"]
    for name in files:
        answer = audit(lab, edit(lab, files={**files, name: "0" * 64})).declined()
        assert f'"{name}" with the digest 000000000000' in answer.json["faults"][0]
    answer = audit(lab, edit(lab, board="0" * 64))
    assert (answer.code, answer.json["faults"]) == (1, ["it is a receipt of another board"])
    seen = {"seq": 0, "hash": "0" * 64, "at": DAY}
    for changes in ({"seen": seen}, {"seen": {**seen, "seq": 99}}, {"seen": {**seen, "seq": -1}}):
        assert audit(lab, edit(lab, **changes)).code == 1
    earlier = {**json.loads(keep(lab).read_text())["received"], "at": "2026-11-01T10:00:00Z"}
    audit(lab, edit(lab, received=earlier)).declined(
        "was taken in by event 1 of 2026-11-01T10:00:00Z, and is no longer"
    )


@pytest.mark.parametrize("files", ["no", 7, [1], {"x": [1]}, None])
def test_a_log_with_nonsense_for_files(lab: Lab, files: object) -> None:
    log = Repository(lab.board).log()
    public = {"files": files, "fingerprint": "f", "source": "s"}
    draft = Draft(kind="received", by="x", submission=ONE, public=public, sealed={})
    late = link(draft, log[-1], at=log[-1].time, new_salt=lambda: "ab" * 16, sign=sign_event)
    receipt = receipts.read_receipt(lab.clone / RECEIPT)
    assert receipts.check_receipt(receipt, [*log, late]).faults == ()
    assert len(receipts.check_receipt(receipt, [log[0], late]).faults) >= 3


def test_a_receipt_names_the_head_of_the_log_when_it_was_sent(lab: Lab) -> None:
    before = Repository(lab.clone).log()[-1]
    head = receipts.read_receipt(lab.clone / RECEIPT).head
    assert (head.seq, head.hash) == (before.event.seq, before.hash)
    assert receipts.read_receipt(keep(lab)).seen.seq > head.seq
    assert receipts.read_receipt(keep(lab)).head == head
    (said,) = audit(lab, edit(lab, head={**to_builtins(head), "hash": "f" * 64})).json["faults"]
    assert said == f"event {head.seq}, the last one when it was sent, is not what it was"


def test_two_receipts_show_that_two_logs_were_shown(tmp_path: Path) -> None:
    """One organiser goes on with two copies of a vault, and shows each team another log."""
    lab = found_lab(tmp_path)
    one = lab.receive("one")
    lab.push()
    other = lab.copy(lab.root / "second")  # of a dishonest organiser, with the same keys
    their = other.new_clone("theirs")
    other.send("theirs", now=NEXT, seed=2, team=OTHER_TEAM, clone=their)
    assert lab.publish(one, now=NEXT).code == 0
    args = ("reject", one, "--why", "not a team")
    assert other.organiser(*args, now=NEXT).code == 0
    other.take_in(now=NEXT)
    for side, clone in ((lab, lab.clone), (other, their)):
        assert side.audit()["ok"]
        side.push()
        assert side.participant("status", now=NEXT, clone=clone).code == 0
        side.pull(clone)
    mine = lab.clone / RECEIPT
    theirs = their / ".git/heldout/receipts/20261103-theirs.json"
    for side, clone, own in ((lab, lab.clone, mine), (other, their, theirs)):
        side.participant(
            "audit", "--receipt", own, now=NEXT, clone=clone
        ).done()  # each finds its own log sound
    fork = f"the receipts of {one} and 20261103-theirs name different events 3: "
    for side, clone in ((lab, lab.clone), (other, their)):
        both = side.participant(
            *("audit", "--receipt", mine, "--receipt", theirs, "--json"), now=LAST, clone=clone
        ).declined()
        assert both.json["faults"][0].startswith(fork), both
        whose = "20261103-theirs" if side is lab else one
        assert {fault.partition(":")[0] for fault in both.json["faults"][1:]} == {whose}
    again = audit(lab, mine, "--receipt", mine)
    assert (again.code, len(again.json["receipts"])) == (0, 2)
    assert "2 receipts" in again.json["checked"]
    # Whoever is given the other log finds it, too, and sends nothing.
    git(lab.clone, "remote", "set-url", "origin", str(other.forge))
    assert "history was rewritten" in audit(lab, mine).out
    two = lab.draft("two", now=NEXT, seed=3)
    assert "history was rewritten" in lab.participant("submit", two, now=NEXT).err
    # Of another board's log nothing follows.
    known = receipts.read_receipt(mine)
    seen = receipts.Mark(seq=known.seen.seq, hash="f" * 64, at=known.seen.at)
    assert list(receipts.find_forks([known, replace(known, board="e" * 64, seen=seen)])) == []


def test_a_renewal_keeps_the_evidence_of_a_rewritten_history(lab: Lab) -> None:
    before = keep(lab).read_bytes()
    rewrite(lab, lambda entry: {"source": "b folder"} if entry.event.kind == "received" else {})
    with pytest.raises(StoreError, match="history was rewritten"):
        keep(lab)
    assert (lab.clone / RECEIPT).read_bytes() == before


def test_an_erratum_is_a_change_with_an_event(lab: Lab) -> None:
    lab.pull()
    lab.repair("deval3 1", "other 1")
    assert lab.organiser("correct", ONE, "--why", "a wrong label", now=LAST).code == 0
    lab.push()
    answer = audit(lab)
    assert (answer.code, answer.json["faults"]) == (0, []), answer
    assert any(
        note.startswith(f"{ONE}: eval 0.") and "by event 5" in note for note in answer.json["notes"]
    )


def test_a_field_that_was_shown_stays_shown(lab: Lab) -> None:
    log = Repository(lab.board).log()
    hidden = [*log[:-1], Entry(event=log[-1].event, hash=log[-1].hash, raw=log[-1].raw, opened={})]
    assert list(check_continues(log, log)) == []
    assert list(check_continues(hidden, log)) == []
    assert list(check_continues(log, hidden)) == [
        "event 3 showed findings, identity, why before, and hides it now"
    ]


def test_files_that_are_no_receipt(lab: Lab) -> None:
    file = lab.root / "none.json"
    whole = (lab.clone / RECEIPT).read_bytes()
    for data in (b"", b"[]", b"\xff", b"[" * 100_000, whole[:-9], whole.replace(b'"id"', b'"ID"')):
        file.write_bytes(data)
        audit(lab, file).refused("a receipt, as heldout submit wrote it")
    assert audit(lab, edit(lab, id="../../../etc/passwd")).code == 2
