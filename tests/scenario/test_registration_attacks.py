"""What tries to get around registration, or to misuse it; one board has to bear all of it.

One team is registered there. Refused registrations leave no event, and nobody else's team changes.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import pytest
import registering
from lab import DAY, NEXT, OTHER_TEAM, TEAM, Lab, git, named

from heldout.board.log.manifest import SubmissionSignature, join_signature, split_signature
from heldout.board.log.registration import RegistrationFile, submission_message, team_handle
from heldout.board.store.repository import Repository
from heldout.envelope.bundle import open_metadata
from heldout.envelope.keys import new_signing_key, public_key, sign
from heldout.ids import digest_bytes

LATE = "2026-12-01T00:00:00Z"
SAID: Mapping[str, Mapping[str, str]] = {
    "of another submission": {"submission": "20261103-another"},
    "for another board": {"board": "ab" * 32},
    "over another agreement": {"agreement": "cd" * 32},
    "of no team": {"team": "team-0123456789abcdef"},
}
Judged = Mapping[str, tuple[str, Sequence[str]]]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return registering.admitted_lab(tmp_path_factory.mktemp("registration"))


@pytest.fixture
def registered(lab: Lab) -> int:
    """How many registrations the log had before."""
    return lab.kinds().count("registered")


def new_key() -> tuple[bytes, str]:
    """A private key and its handle."""
    key = new_signing_key()
    return key, team_handle(public_key(key))


# submissions


@pytest.fixture(scope="module")
def judged(lab: Lab) -> Judged:
    """Attack -> its submission, and what the rule says: all are sent, then taken in at once."""
    first = lab.send("one", now=NEXT, seed=11)
    sent = {"honest": first, "replayed": replay(lab, first)}
    for number, (attack, said) in enumerate(SAID.items(), 20):
        sent[attack] = lab.draft(f"signature-{number}", now=NEXT, seed=number)
        forge(lab, sent[attack], said, key=(lab.clone / ".git/heldout/team/key").read_bytes())
    sent["other key"] = lab.draft("others-key", now=NEXT, seed=14)
    forge(lab, sent["other key"], {}, key=new_signing_key())
    sent["changed"] = lab.draft("changed", now=NEXT, seed=16)
    registering.resign(lab, sent["changed"], change_metadata)
    sent["taken off"] = lab.draft("taken-off", now=NEXT, seed=17)
    registering.resign(lab, sent["taken off"], lambda metadata, _: metadata)
    received = {r["id"]: r["kind"] for r in lab.take_in(now=NEXT)["received"]}
    assert received == dict.fromkeys(sent.values(), "received")
    found = registering.team_findings(lab, *sent.values(), now=NEXT)
    return {attack: (name, found[name]) for attack, name in sent.items()}


def replay(lab: Lab, first: str) -> str:
    """A submission with the signature of another one."""
    key = (lab.clone / ".git/heldout" / "keys" / first).read_bytes()
    sealed = Repository(lab.clone).packed_file(f"{first}-metadata.json.age").read_bytes()
    _, stolen = split_signature(open_metadata("age", sealed, key=key))
    assert stolen is not None
    second = lab.draft("replayed", now=NEXT, seed=12)
    registering.resign(lab, second, lambda metadata, _: join_signature(metadata, stolen))
    return second


def forge(lab: Lab, submission: str, said: Mapping[str, str], *, key: bytes) -> None:
    """Send a submission with a signature that is right in form, and says other things."""
    own = registering.own_file(lab)
    truth = {"board": own["board"], "submission": submission, "agreement": own["agreement"]}
    fields = {**truth, "team": own["handle"], **said}

    def change(metadata: bytes, _: SubmissionSignature) -> bytes:
        message = submission_message(
            fields["board"],
            fields["submission"],
            revision=1,
            agreement=fields["agreement"],
            metadata=str(digest_bytes(metadata)),
        )
        forged = SubmissionSignature(
            team=fields["team"], agreement=fields["agreement"], value=sign(key, message)
        )
        return join_signature(metadata, forged)

    registering.resign(lab, submission, change)


def change_metadata(metadata: bytes, signature: SubmissionSignature) -> bytes:
    return join_signature(metadata.replace(b"monoT5", b"monoT6"), signature)


NOT_OF_THIS = "is not one of this submission"


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        ("of another submission", NOT_OF_THIS),
        ("for another board", NOT_OF_THIS),
        ("over another agreement", "has not agreed to agreement.md"),
        ("of no team", "which is not registered"),
        ("replayed", NOT_OF_THIS),
        ("other key", NOT_OF_THIS),  # it claims the handle of a registered team, and is not its key
        ("changed", NOT_OF_THIS),
    ],
)
def test_a_signature(judged: Judged, attack: str, said: str) -> None:
    (found,) = judged[attack][1]
    assert said in found
    assert judged["honest"][1] == []


def test_a_signature_that_was_taken_off(lab: Lab, judged: Judged) -> None:
    name, (said,) = judged["taken off"]
    assert "not signed by a registered team" in said
    assert lab.publish(name, now=NEXT).code == 1
    assert "published" not in lab.kinds()


def test_a_registered_team_under_another_s_name(lab: Lab) -> None:
    clone = lab.new_clone("others")
    registering.admit(lab, now=NEXT, clone=clone, team=OTHER_TEAM)
    submission = lab.draft("others-name", now=NEXT, clone=clone, seed=15)
    answer = lab.participant("submit", submission, now=NEXT, clone=clone).declined()
    assert "registered for" in " ".join(answer.out.split())
    lab.fill(submission, clone=clone, **OTHER_TEAM)
    assert lab.participant("submit", submission, now=NEXT, clone=clone).code == 0
    file = clone / ".git/heldout" / "team" / "registration.json"
    renamed = registering.own_file(lab, clone)
    renamed["registrant"]["team"] = TEAM["team"]
    file.write_bytes(msgspec.json.encode(renamed))
    lab.fill(submission, clone=clone, team=TEAM["team"])
    assert lab.participant("amend", submission, now=NEXT, clone=clone).code == 0
    lab.take_in(now=NEXT)
    (said,) = registering.findings(lab, submission)
    assert f'registered for "{OTHER_TEAM["team"]}"' in said


def test_new_metadata_without_the_team_s_signature(lab: Lab) -> None:
    submission = lab.draft("amended", now=NEXT, seed=18)
    lab.send_unchecked(submission, now=NEXT)
    lab.take_in(now=NEXT)
    assert registering.findings(lab, submission) == []
    note = lab.clone / ".git/heldout" / "team" / "registration.json"
    kept = note.rename(note.with_suffix(".kept"))
    lab.fill(submission, model_description="Something else")
    assert lab.participant("amend", submission, now=NEXT).code == 0
    kept.rename(note)
    receipts = {r["id"]: r for r in lab.take_in(now=NEXT)["received"]}
    assert registering.refusal(receipts[submission]) == ["bad-signature"]
    events = [event for event in lab.events() if event["submission"] == submission]
    assert [event["kind"] for event in events] == ["received", "reviewed"]


# registrations


Make = Callable[[Lab, bytes], bytes]


def changed(**fields: str) -> Make:
    return lambda lab, key: registering.make_registration(lab, key, fields)


def plainly(data: bytes) -> Make:
    return lambda *_: data


def with_other_names(lab: Lab, key: bytes) -> bytes:
    """Somebody else's statement with names of one's own would take the key's good name."""
    file = msgspec.json.decode(registering.make_registration(lab, key), type=RegistrationFile)
    other = registering.make_registration(lab, new_signing_key(), team="Mallory")
    names = msgspec.json.decode(other, type=RegistrationFile)
    swapped = msgspec.structs.replace(file, key=names.key, registrant=names.registrant)
    return msgspec.json.encode(swapped)


REFUSED: Mapping[str, tuple[Make, str]] = {
    "for another board": (changed(board="ab" * 32), "bad-signature"),
    "of somebody else's key": (changed(key=public_key(new_signing_key())), "bad-signature"),
    "of a key of small order": (changed(key="00" * 32), "bad-signature"),
    "without the agreement": (changed(agreement=""), "other-agreement"),
    "for another agreement": (
        changed(agreement=str(digest_bytes(registering.AGREEMENT.upper().encode()))),
        "other-agreement",
    ),
    "for other names than it seals": (changed(private="ab" * 32), "untrusted"),
    "with other names than it seals": (with_other_names, "untrusted"),
    "of no time": (changed(at="yesterday"), "not-a-registration"),
    "of a key that is a path": (changed(key="../../x"), "not-a-registration"),
    "under the name of a registered team": (
        lambda lab, key: registering.make_registration(lab, key, team=TEAM["team"].upper()),
        "name-registered",
    ),
    "of any length": (plainly(b" " * 100_000), "too-large"),
    "of nothing": (plainly(b""), "not-a-registration"),
    "that is empty": (plainly(b"{}"), "not-a-registration"),
    "of brackets without end": (plainly(b"[" * 50_000), "not-a-registration"),
    "in no UTF-8": (plainly(b"\xff\xfe"), "not-a-registration"),
    "that is half": (plainly(b'{"statement":"{}"}'), "not-a-registration"),
    "that is null": (plainly(b"null"), "not-a-registration"),
}


@pytest.mark.parametrize("attack", REFUSED)
def test_a_registration(lab: Lab, registered: int, attack: str) -> None:
    make, code = REFUSED[attack]
    key, handle = new_key()
    assert registering.refusal(registering.deliver(lab, make(lab, key), handle)) == [code]
    assert lab.kinds().count("registered") == registered


def test_an_old_registration_sent_again(lab: Lab, registered: int) -> None:
    """To bring an agreement back that was replaced: the log knows it, or it is stale."""
    key, handle = new_key()
    times = {
        at: registering.make_registration(lab, key, {"at": at}, team="Old Harbour")
        for at in (NEXT, registering.LATER)
    }
    assert registering.deliver(lab, times[NEXT], handle)["kind"] == "registered"
    assert registering.deliver(lab, times[registering.LATER], handle)["kind"] == "registered"
    assert registering.deliver(lab, times[NEXT], handle)["kind"] == "known"
    older = registering.make_registration(lab, key, {"at": DAY}, team="Old Harbour")
    assert registering.refusal(registering.deliver(lab, older, handle)) == ["stale-registration"]
    assert lab.kinds().count("registered") == registered + 2


def test_a_revoked_registration_sent_again(lab: Lab) -> None:
    key, handle = new_key()
    first = registering.make_registration(lab, key, {"at": NEXT}, team="Sunken Ship")
    assert registering.deliver(lab, first, handle)["kind"] == "registered"
    assert lab.organiser("board", "revoke", handle, "--why", "x", now=NEXT).code == 0
    assert registering.deliver(lab, first, handle)["kind"] == "known"
    again = registering.make_registration(lab, key, {"at": registering.LATER}, team="Sunken Ship")
    assert registering.refusal(registering.deliver(lab, again, handle)) == ["registration-revoked"]


def test_a_key_under_a_second_name(lab: Lab) -> None:
    """A quota is counted by name."""
    key, handle = new_key()
    first = registering.make_registration(lab, key, {"at": NEXT}, team="Two Faces")
    assert registering.deliver(lab, first, handle)["kind"] == "registered"
    second = registering.make_registration(lab, key, {"at": registering.LATER}, team="Another Face")
    assert registering.refusal(registering.deliver(lab, second, handle)) == ["name-registered"]


@pytest.mark.parametrize("extra", ["log.jsonl", "registrations/team-0123456789abcdef.json"])
def test_a_registration_that_brings_more(lab: Lab, registered: int, extra: str) -> None:
    team = named("Bearer" + str(len(extra)))
    clone = lab.new_clone(f"bearer{len(extra)}")
    handle = registering.register(lab, now=NEXT, clone=clone, team=team)
    git(clone, "checkout", "-q", f"registration/{handle}")
    (clone / extra).write_text("changed")
    git(clone, "add", "-f", extra)
    git(clone, "commit", "-qm", "more")
    git(clone, "push", "-q", "origin", f"+HEAD:registration/{handle}")
    receipts = lab.take_in(now=NEXT)["received"]
    (receipt,) = [r for r in receipts if r["source"] == f"branch registration/{handle}"]
    assert registering.refusal(receipt) == ["foreign-change"]
    assert lab.kinds().count("registered") == registered
    git(lab.forge, "branch", "-D", f"registration/{handle}")
    git(lab.board, "update-ref", "-d", f"refs/remotes/origin/registration/{handle}")


def test_a_registration_after_the_last_day(lab: Lab, registered: int) -> None:
    key, handle = new_key()
    receipt = registering.deliver(lab, registering.make_registration(lab, key), handle, now=LATE)
    assert registering.refusal(receipt) == ["registration-closed"]
    assert lab.kinds().count("registered") == registered


def test_after_all_of_it_the_logs_are_sound(lab: Lab) -> None:
    assert lab.organiser("rebuild", now=NEXT).code == 0
    audit = lab.audit()
    assert audit["ok"], audit
