"""Who may log events: strangers at the vault's remote and on the board's main branch, and keys."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from town import Town, call, found_town, git, sign_event
from trusting import DAY, LAST, ONE
from two_organisers import LATER, Pair, copy_pair

from heldout.board.log.events import (
    Draft,
    Entry,
    EventSignature,
    event_message,
    format_entry,
    link,
    parse_log,
)
from heldout.board.store.vault import Vault
from heldout.envelope.keys import new_signing_key, public_key, sign
from heldout.ids import Digest, digest_bytes

pytestmark = pytest.mark.slow
EVE = new_signing_key("ORGANISER")


def as_eve(digest: Digest) -> EventSignature:
    return EventSignature(key=public_key(EVE), value=sign(EVE, event_message(digest)))


# the remote of a shared vault

Sign = Callable[[Digest], EventSignature] | None


def rejection(log: bytes, signing: Sign, *, by: str | None = None) -> bytes:
    """The log with one more event, which refuses the submission."""
    last = parse_log(log, path="")[-1]
    draft = Draft(
        kind="rejected",
        by=by or last.event.by,
        submission=ONE,
        public={"why": "not a team"},
        sealed={},
    )
    entry = link(draft, last, at=last.time, new_salt=lambda: "00" * 16, sign=signing)
    return log + format_entry(entry)


def test_a_shared_vault_takes_no_event_of_a_stranger(tmp_path: Path) -> None:
    """Other ways to sign what one may not: board/test_signers.py."""
    pair = copy_pair(tmp_path)
    assert pair.received() == ONE
    assert pair.bob.call("rebuild").code == 0
    pair.hostile({"events.jsonl": ("100644", rejection(pair.ann.log(), as_eve))})
    for office in (pair.ann, pair.bob):
        before = office.state()
        answer = office.call("rebuild")
        assert (answer.code, "which is no signer's" in answer.err) == (2, True), answer
        assert "nothing was done, the vault here is as it was" in answer.err
        assert office.state() == before


def test_a_shared_vault_takes_no_event_of_a_dropped_signer(tmp_path: Path) -> None:
    pair = copy_pair(tmp_path)
    assert pair.received() == ONE
    vault = Vault(pair.bob.vault)
    bob = vault.own_signer(pair_signers(pair))
    assert bob is not None
    (own,) = [row for row in recipients(pair) if bob.name.rstrip("…") in row]
    told = ("--keep-key", "--drop", own, "--drop-signer", bob.name, "--why", "he left", "--yes")
    pair.ann.call("board", "rekey", *told, now=LATER).done()
    pair.hostile({"events.jsonl": ("100644", rejection(pair.ann.log(), bob.sign))})
    before = pair.ann.state()
    refused = pair.ann.call("rebuild", now=LATER)
    assert refused.code == 2
    assert "which is no signer's" in refused.err
    assert pair.ann.state() == before
    late = pair.bob.call("reject", ONE, "--why", "mine", now=LATER)
    assert late.code == 2


def pair_signers(pair: Pair) -> Mapping[str, str]:
    return Vault(pair.ann.vault).history().signers


def recipients(pair: Pair) -> list[str]:
    rules = (pair.ann.board / "board.toml").read_text()
    return re.findall(r"age1\w+", rules.split("recipients")[1].splitlines()[0])


def test_both_organisers_sign_and_the_audit_names_them(tmp_path: Path) -> None:
    pair = copy_pair(tmp_path)
    assert pair.received() == ONE
    assert pair.bob.call("publish", ONE, "--yes", now=LATER).code == 0
    entries = parse_log(pair.bob.log(), path="")
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
    printed = pair.bob.call("board", "signer", "--name", "Bob").done()
    assert "signs nothing yet" in printed.out
    (told,) = re.findall(r"Bob=[0-9a-f]{64}", printed.out)[:1]
    refused = pair.bob.call("rebuild")
    assert refused.code == 2
    assert "heldout board signer prints yours" in refused.err
    ann, bob = pair_signers(pair)
    change = ("--drop-signer", bob, "--add-signer", told, "--why", "Bob lost his key", "--yes")
    pair.ann.call("board", "rekey", "--keep-key", *change).done()
    git(pair.ann.board, "push", "-q", "origin", "main")
    git(pair.bob.board, "pull", "-q", "--ff-only", "origin", "main")
    assert pair.bob.call("rebuild").code == 0
    assert list(pair_signers(pair)) == [ann, "Bob"]


# the public log on the board's main branch


@pytest.fixture
def town(tmp_path: Path) -> Town:
    town = found_town(tmp_path)
    town.send("one", now=DAY)
    town.take_in(now=DAY)
    assert town.publish(ONE, now=DAY).code == 0
    town.push()
    return town


def chained_anew(
    log: bytes, change: Callable[[dict[str, Any]], None], signing: Sign, *, since: int
) -> bytes:
    """Events changed from a number on, with hashes that fit, and signed again or not."""
    entries = list(parse_log(log, path=""))
    done: list[Entry] = []
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
            Entry(event=event, hash=digest, raw=raw, opened=entry.opened, signature=signature)
        )
    return b"".join(map(format_entry, done))


def better(public: dict[str, Any]) -> None:
    if "scores" in public:
        public["scores"] = dict.fromkeys(public["scores"], "0.999")


def own_signers(public: dict[str, Any]) -> None:
    better(public)
    if "signers" in public:
        public["signers"] = {name: public_key(EVE) for name in public["signers"]}


def write_on_main(town: Town, data: bytes) -> None:
    """Somebody with write access to main puts another log there."""
    writer = town.new_clone("writer")
    (writer / "log.jsonl").write_bytes(data)
    told = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org")
    git(writer, *told, "commit", "-q", "-am", "x")
    git(writer, "push", "-q", "origin", "HEAD:main")


PUBLIC: Mapping[str, tuple[Callable[[dict[str, Any]], None], Sign, int, str]] = {
    "a score changed, without signatures": (better, None, 1, "the event is not signed"),
    "a score changed, with a stranger's": (better, as_eve, 1, "which is no signer's"),
    "all of it made again by a stranger": (own_signers, as_eve, 0, "history was rewritten"),
}


@pytest.mark.parametrize("attack", PUBLIC)
def test_a_public_log_that_a_writer_on_main_made_anew_is_found(town: Town, attack: str) -> None:
    change, signing, since, told = PUBLIC[attack]
    data = chained_anew((town.board / "log.jsonl").read_bytes(), change, signing, since=since)
    write_on_main(town, data)
    two = town.draft("two", now=DAY, seed=2)
    asked: list[tuple[str, ...]] = [("status", ONE), ("submit", two)]
    for command in asked:  # the clone has not pulled it yet
        answer = town.participant(*command, now=DAY)
        assert (answer.code, told in answer.err) == (2, True), answer
    assert git(town.forge, "branch", "--list", f"submission/{two}") == ""
    town.pull()
    for command in [*asked, ("check", two), ("rebuild",)]:
        answer = town.participant(*command, now=DAY)
        assert (answer.code, told in answer.err) == (2, True), (command, answer)
    found = town.participant("audit", "--json", now=LAST)
    assert (found.code, told in found.json["faults"][0]) == (1, True), found


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
    [*zip(SIGNED, ("audit", "status", "submit", "audit"), strict=True), ("cut off", "audit")],
)
def test_a_log_that_a_signer_made_anew_is_found_after_a_pull(
    town: Town, attack: str, seen_by: str
) -> None:
    """By a clone that has seen the one before, also where no receipt is given."""
    change, told = SIGNED[attack]
    town.pull()
    two = town.draft("two", now=DAY, seed=2)
    seen = (seen_by, two) if seen_by == "submit" else (seen_by,)
    assert town.participant(*seen, now=DAY).code == 0
    write_on_main(town, change((town.board / "log.jsonl").read_bytes()))
    town.pull()
    refs = git(town.forge, "for-each-ref", "refs/heads/submission")
    for command in [("status",), ("submit", two)]:
        answer = town.participant(*command, now=DAY)
        assert (answer.code, told in answer.err) == (2, True), (command, answer)
    found = town.participant("audit", "--json", now=LAST)
    assert (found.code, told in "\n".join(found.json["faults"])) == (1, True), found
    assert git(town.forge, "for-each-ref", "refs/heads/submission") == refs


def test_a_fresh_clone_of_a_log_that_is_another_s_from_the_start_cannot_know(town: Town) -> None:
    """What docs/explanation/trust.md says: the first clone trusts the address that it came from."""
    log = (town.board / "log.jsonl").read_bytes()
    write_on_main(town, chained_anew(log, own_signers, as_eve, since=0))
    fresh = town.new_clone("fresh")
    assert town.participant("status", now=LAST, clone=fresh).code == 0


# keys


def test_a_new_key_for_the_vault_is_a_new_signing_key_too(town: Town) -> None:
    (old,) = (town.vault / "identities").glob("*.signing")
    before = Vault(town.vault).history().signers
    assert town.organiser("board", "rekey", "--why", "stolen", "--yes", now=LAST).code == 0
    (new,) = (town.vault / "identities").glob("*.signing")
    after = Vault(town.vault).history().signers
    assert new != old
    assert set(before.values()).isdisjoint(after.values())
    last = Vault(town.vault).entries()[-1]
    assert last.signature is not None
    assert [last.signature.key] == list(before.values())
    assert [last.event.by] == list(before)
    assert town.organiser("rebuild", now=LAST).code == 0
    assert town.audit() == {"ok": True, "events": len(town.events()), "faults": [], "notes": []}
    late = town.send("late", now=LAST, seed=5)
    town.take_in(now=LAST)
    assert town.organiser("reject", late, "--why", "x", now=LAST).code == 0
    assert [town.events()[-1]["by"]] == list(after)


def test_a_vault_that_lost_its_signing_key_logs_nothing_and_says_the_way_back(town: Town) -> None:
    for file in (town.vault / "identities").glob("*.signing"):
        file.unlink()
    before = town.kinds()
    answer = town.organiser("extend", ONE, "2027-01-01", "--why", "x", now=LAST)
    assert answer.code == 2
    town.send("late", now=LAST, seed=5)
    answer = town.organiser("inbox", now=LAST)
    assert answer.code == 2
    assert "restore it from the backup" in answer.err
    assert town.kinds() == before


def test_a_spare_signer_lets_the_next_one_in(town: Town) -> None:
    """docs/how-to/keys.md: a second key of the same organiser, stored elsewhere."""
    place = town.root / "spare"
    (place / "identities").mkdir(mode=0o700, parents=True)
    place.chmod(0o700)
    shutil.copy(town.vault / "events.jsonl", place)
    at = ("--board", town.board, "--vault", place)
    printed = call(town.root, "board", "signer", "--name", "spare", *at, "--json").json
    assert (printed["name"], printed["signs"]) == ("spare", False)
    change = ("--add-signer", f"spare={printed['key']}", "--why", "a spare key", "--yes")
    town.organiser("board", "rekey", "--keep-key", *change, now=LAST).done()
    (spare,) = (place / "identities").glob("*.signing")
    (own,) = (town.vault / "identities").glob("*.signing")
    own.unlink()
    shutil.copy(spare, town.vault / "identities/spare.signing")
    lost = next(iter(Vault(town.vault).history().signers))
    fresh = new_signing_key("ORGANISER")
    after = ("--drop-signer", lost, "--add-signer", f"Ada={public_key(fresh)}", "--why", "lost")
    town.organiser("board", "rekey", "--keep-key", *after, "--yes", now=LAST).done()
    assert list(Vault(town.vault).history().signers) == ["spare", "Ada"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("--drop-signer", "nobody"), "no signer"),
        (("--add-signer", "Ada"), "NAME=KEY"),
        (("--add-signer", "Ada=xyz"), "NAME=KEY"),
        (("--drop-signer", "OWN"), "let another organiser drop it"),
    ],
)
def test_wrong_signers_change_nothing(town: Town, change: tuple[str, ...], told: str) -> None:
    before = town.events()
    (own,) = Vault(town.vault).history().signers
    told_of = [own if word == "OWN" else word for word in change]
    answer = town.organiser(
        "board", "rekey", "--keep-key", *told_of, "--why", "x", "--yes", now=LAST
    )
    assert answer.code == 2
    assert told in answer.err
    assert town.events() == before
