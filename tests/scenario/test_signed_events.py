"""Who may log events: strangers at the vault's remote and on the board's main branch, and keys."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lab import LAST, Lab, git, prepared, sign_event
from trusting import ONE
from two_organisers import LATER, Pair, copy_pair

from heldout.board.log import events
from heldout.board.store.vault import Vault
from heldout.envelope.keys import new_signing_key, public_key, sign
from heldout.ids import Digest, digest_bytes

EVE = new_signing_key("ORGANISER")


def as_eve(digest: Digest) -> events.EventSignature:
    return events.EventSignature(key=public_key(EVE), value=sign(EVE, events.event_message(digest)))


# the remote of a shared vault

Sign = Callable[[Digest], events.EventSignature] | None


def rejection(log: bytes, signing: Sign, *, by: str | None = None) -> bytes:
    """The log with one more event, which refuses the submission."""
    last = events.parse_log(log, path="")[-1]
    draft = events.Draft(
        kind="rejected",
        by=by or last.event.by,
        submission=ONE,
        public={"why": "not a team"},
        sealed={},
    )
    entry = events.link(draft, last, at=last.time, new_salt=lambda: "00" * 16, sign=signing)
    return log + events.format_entry(entry)


def test_a_shared_vault_takes_no_event_of_a_stranger(tmp_path: Path) -> None:
    """Other ways to sign what one may not: board/test_signers.py."""
    pair = copy_pair(tmp_path)
    assert pair.received() == ONE
    assert pair.bob.call("rebuild").code == 0
    pair.hostile({"events.jsonl": ("100644", rejection(pair.ann.log(), as_eve))})
    for office in (pair.ann, pair.bob):
        before = office.state()
        office.call("rebuild").refused(
            "which is no signer's", "nothing was done, the vault here is as it was"
        )
        assert office.state() == before


def test_a_shared_vault_takes_no_event_of_a_dropped_signer(tmp_path: Path) -> None:
    pair = copy_pair(tmp_path)
    assert pair.received() == ONE
    vault = Vault(pair.bob.vault)
    bob = vault.own_signer(pair_signers(pair))
    assert bob is not None
    (own,) = [row for row in recipients(pair) if bob.name.rstrip("…") in row]
    args = ("--keep-key", "--drop", own, "--drop-signer", bob.name, "--why", "he left", "--yes")
    pair.ann.call("board", "rekey", *args, now=LATER).done()
    pair.hostile({"events.jsonl": ("100644", rejection(pair.ann.log(), bob.sign))})
    before = pair.ann.state()
    pair.ann.call("rebuild", now=LATER).refused("which is no signer's")
    assert pair.ann.state() == before
    pair.bob.call("reject", ONE, "--why", "mine", now=LATER).refused()


def pair_signers(pair: Pair) -> Mapping[str, str]:
    return Vault(pair.ann.vault).history().signers


def recipients(pair: Pair) -> list[str]:
    rules = (pair.ann.board / "board.toml").read_text()
    return re.findall(r"age1\w+", rules.split("recipients")[1].splitlines()[0])


def test_both_organisers_sign_and_the_audit_names_them(tmp_path: Path) -> None:
    pair = copy_pair(tmp_path)
    assert pair.received() == ONE
    assert pair.bob.call("publish", ONE, "--yes", now=LATER).code == 0
    entries = events.parse_log(pair.bob.log(), path="")
    assert len({e.signature.key for e in entries if e.signature is not None}) == 2
    answer = pair.bob.call("audit", "--json", now=LATER)
    assert (answer.json["ok"], answer.json["notes"]) == (True, [])
    assert answer.json["signers"] == pair_signers(pair)


def test_a_signer_who_names_another_as_the_organiser_is_told(tmp_path: Path) -> None:
    pair = copy_pair(tmp_path)
    assert pair.received() == ONE
    pair.hostile({"events.jsonl": ("100644", rejection(pair.ann.log(), sign_event, by="bob"))})
    assert pair.ann.call("rebuild").code == 0
    answer = pair.ann.call("audit", "--json")
    ann = next(iter(pair_signers(pair)))
    assert answer.json["ok"]
    assert f'event 3 says that it is by "bob", and "{ann}" signed it' in answer.json["notes"]


def test_who_joins_without_a_signing_key_of_a_signer_logs_nothing(tmp_path: Path) -> None:
    pair = copy_pair(tmp_path)
    (pair.bob.vault / "identities/bob.signing").unlink()
    printed = pair.bob.call("board", "signer", "--name", "Bob").done("signs nothing yet")
    (said,) = re.findall(r"Bob=[0-9a-f]{64}", printed.out)[:1]
    pair.bob.call("rebuild").refused("heldout board signer prints yours")
    ann, bob = pair_signers(pair)
    change = ("--drop-signer", bob, "--add-signer", said, "--why", "Bob lost his key", "--yes")
    pair.ann.call("board", "rekey", "--keep-key", *change).done()
    git(pair.ann.board, "push", "-q", "origin", "main")
    git(pair.bob.board, "pull", "-q", "--ff-only", "origin", "main")
    assert pair.bob.call("rebuild").code == 0
    assert list(pair_signers(pair)) == [ann, "Bob"]


# the public log on the board's main branch


@prepared
def lab(lab: Lab) -> None:
    """A board with one entry."""
    lab.enter("one")
    lab.push()


def chained_anew(
    log: bytes, change: Callable[[dict[str, Any]], None], signing: Sign, *, since: int
) -> bytes:
    """Events changed from a number on, with hashes that fit, and signed again or not."""
    entries = list(events.parse_log(log, path=""))
    done: list[events.Entry] = []
    for entry in entries:
        if entry.event.seq < since:
            done.append(entry)
            continue
        public = json.loads(json.dumps(entry.event.public))
        change(public)
        prev = done[-1].hash if done else entry.event.prev
        event = msgspec.structs.replace(entry.event, public=public, prev=prev)
        raw = msgspec.json.encode(event)
        digest = digest_bytes(raw)
        signature = None if signing is None else signing(digest)
        done.append(
            events.Entry(
                event=event, hash=digest, raw=raw, opened=entry.opened, signature=signature
            )
        )
    return b"".join(map(events.format_entry, done))


def better(public: dict[str, Any]) -> None:
    if "scores" in public:
        public["scores"] = dict.fromkeys(public["scores"], "0.999")


def own_signers(public: dict[str, Any]) -> None:
    better(public)
    if "signers" in public:
        public["signers"] = {name: public_key(EVE) for name in public["signers"]}


def write_on_main(lab: Lab, data: bytes) -> None:
    """Somebody with write access to main puts another log there."""
    writer = lab.new_clone("writer")
    (writer / "log.jsonl").write_bytes(data)
    args = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org")
    git(writer, *args, "commit", "-q", "-am", "x")
    git(writer, "push", "-q", "origin", "HEAD:main")


PUBLIC: Mapping[str, tuple[Callable[[dict[str, Any]], None], Sign, int, str]] = {
    "a score changed, without signatures": (better, None, 1, "the event is not signed"),
    "a score changed, with a stranger's": (better, as_eve, 1, "which is no signer's"),
    "all of it made again by a stranger": (own_signers, as_eve, 0, "history was rewritten"),
}


@pytest.mark.parametrize(
    "attack", [pytest.param(next(iter(PUBLIC)), marks=pytest.mark.night), *[*PUBLIC][1:]]
)
def test_a_public_log_that_a_writer_on_main_made_anew_is_found(lab: Lab, attack: str) -> None:
    change, signing, since, said = PUBLIC[attack]
    data = chained_anew((lab.board / "log.jsonl").read_bytes(), change, signing, since=since)
    write_on_main(lab, data)
    two = lab.draft("two", seed=2)
    asked: list[tuple[str, ...]] = [("status", ONE), ("submit", two)]
    for command in asked:  # the clone has not pulled it yet
        lab.participant(*command).refused(said)
    assert git(lab.forge, "branch", "--list", f"submission/{two}") == ""
    lab.pull()
    for command in [*asked, ("check", two), ("rebuild",)]:
        lab.participant(*command).refused(said)
    found = lab.participant("audit", "--json", now=LAST)
    assert (found.code, said in found.json["faults"][0]) == (1, True), found


SIGNED: Mapping[str, tuple[Callable[[bytes], bytes], str]] = {
    "all events after the first changed and signed again": (
        lambda log: chained_anew(log, better, sign_event, since=1),
        "history was rewritten",
    ),
    "the last event changed": (
        lambda log: chained_anew(log, better, sign_event, since=log.count(b"\n") - 1),
        "history was rewritten",
    ),
    "cut off": (lambda log: b"".join(log.splitlines(keepends=True)[:2]), "events were cut off"),
    "cut off, and gone on": (
        lambda log: chained_anew(log, _another_one, sign_event, since=2),
        "history was rewritten",
    ),
}


def _another_one(public: dict[str, Any]) -> None:
    public["why"] = "another reason"


@pytest.mark.parametrize(
    ("attack", "seen_by"),
    [
        *zip([*SIGNED][1:3], ("status", "submit"), strict=True),
        *(pytest.param(name, "audit", marks=pytest.mark.night) for name in [*SIGNED][::3]),
    ],
)
def test_a_log_that_a_signer_made_anew_is_found_after_a_pull(
    lab: Lab, attack: str, seen_by: str
) -> None:
    """By a clone that has seen the one before, also where no receipt is given."""
    change, said = SIGNED[attack]
    lab.pull()
    two = lab.draft("two", seed=2)
    seen = (seen_by, two) if seen_by == "submit" else (seen_by,)
    assert lab.participant(*seen).code == 0
    write_on_main(lab, change((lab.board / "log.jsonl").read_bytes()))
    lab.pull()
    refs = git(lab.forge, "for-each-ref", "refs/heads/submission")
    for command in [("status",), ("submit", two)]:
        lab.participant(*command).refused(said)
    found = lab.participant("audit", "--json", now=LAST)
    assert (found.code, said in "\n".join(found.json["faults"])) == (1, True), found
    assert git(lab.forge, "for-each-ref", "refs/heads/submission") == refs


def test_a_fresh_clone_of_a_log_that_is_another_s_from_the_start_cannot_know(lab: Lab) -> None:
    """What docs/explanation/trust.md says: the first clone trusts the address that it came from."""
    log = (lab.board / "log.jsonl").read_bytes()
    write_on_main(lab, chained_anew(log, own_signers, as_eve, since=0))
    fresh = lab.new_clone("fresh")
    assert lab.participant("status", now=LAST, clone=fresh).code == 0


# keys


def test_a_new_key_for_the_vault_is_a_new_signing_key_too(lab: Lab) -> None:
    (old,) = (lab.vault / "identities").glob("*.signing")
    before = Vault(lab.vault).history().signers
    assert lab.organiser("board", "rekey", "--why", "stolen", "--yes", now=LAST).code == 0
    (new,) = (lab.vault / "identities").glob("*.signing")
    after = Vault(lab.vault).history().signers
    assert new != old
    assert set(before.values()).isdisjoint(after.values())
    last = Vault(lab.vault).entries()[-1]
    assert last.signature is not None
    assert [last.signature.key] == list(before.values())
    assert [last.event.by] == list(before)
    assert lab.organiser("rebuild", now=LAST).code == 0
    assert lab.audit() == {"ok": True, "events": len(lab.events()), "faults": [], "notes": []}
    late = lab.receive("late", now=LAST, seed=5)
    assert lab.organiser("reject", late, "--why", "x", now=LAST).code == 0
    assert [lab.events()[-1]["by"]] == list(after)


def test_a_vault_that_lost_its_signing_key_logs_nothing_and_says_the_way_back(lab: Lab) -> None:
    for file in (lab.vault / "identities").glob("*.signing"):
        file.unlink()
    before = lab.kinds()
    lab.organiser("extend", ONE, "2027-01-01", "--why", "x", now=LAST).refused()
    lab.send("late", now=LAST, seed=5)
    lab.organiser("inbox", now=LAST).refused("restore it from the backup")
    assert lab.kinds() == before


def test_a_spare_signer_lets_the_next_one_in(lab: Lab) -> None:
    """docs/how-to/keys.md: a second key of the same organiser, stored elsewhere."""
    place = lab.root / "spare"
    (place / "identities").mkdir(mode=0o700, parents=True)
    place.chmod(0o700)
    shutil.copy(lab.vault / "events.jsonl", place)
    at = ("--board", lab.board, "--vault", place)
    printed = lab.call("board", "signer", "--name", "spare", *at, "--json").json
    assert (printed["name"], printed["signs"]) == ("spare", False)
    change = ("--add-signer", f"spare={printed['key']}", "--why", "a spare key", "--yes")
    lab.organiser("board", "rekey", "--keep-key", *change, now=LAST).done()
    (spare,) = (place / "identities").glob("*.signing")
    (own,) = (lab.vault / "identities").glob("*.signing")
    own.unlink()
    shutil.copy(spare, lab.vault / "identities/spare.signing")
    lost = next(iter(Vault(lab.vault).history().signers))
    fresh = new_signing_key("ORGANISER")
    after = ("--drop-signer", lost, "--add-signer", f"Ada={public_key(fresh)}", "--why", "lost")
    lab.organiser("board", "rekey", "--keep-key", *after, "--yes", now=LAST).done()
    assert list(Vault(lab.vault).history().signers) == ["spare", "Ada"]


def test_wrong_signers_change_nothing(lab: Lab) -> None:
    before = lab.events()
    (own,) = Vault(lab.vault).history().signers
    for change, told in (
        (("--drop-signer", "nobody"), "no signer"),
        (("--add-signer", "Ada"), "NAME=KEY"),
        (("--add-signer", "Ada=xyz"), "NAME=KEY"),
        (("--drop-signer", own), "let another organiser drop it"),
    ):
        args = ("--keep-key", *change, "--why", "x", "--yes")
        lab.organiser("board", "rekey", *args, now=LAST).refused(told)
        assert lab.events() == before
