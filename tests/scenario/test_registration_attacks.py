"""What tries to get around registration, or to misuse it; one board has to bear all of it.

One team is registered there. Refused registrations leave no event, and nobody else's team changes.
"""

from collections.abc import Mapping, Sequence

import msgspec
import pytest
from registering_town import (
    AGREEMENT,
    DAY,
    LATER,
    NEXT,
    admit,
    admitted_town,
    deliver,
    findings,
    make_registration,
    own_file,
    refusal,
    register,
    resign,
    team_findings,
)
from town import OTHER_TEAM, TEAM, Town, git, named

from heldout.board.log.registration import (
    RegistrationFile,
    SubmissionSignature,
    join_signature,
    split_signature,
    submission_message,
    team_handle,
)
from heldout.board.store.repository import Repository
from heldout.envelope.bundle import open_metadata
from heldout.envelope.keys import new_signing_key, public_key, sign
from heldout.ids import digest_bytes

pytestmark = pytest.mark.slow
LATE = "2026-12-01T00:00:00Z"
SAID: Mapping[str, Mapping[str, str]] = {
    "of another submission": {"submission": "20261103-another"},
    "for another board": {"board": "ab" * 32},
    "over another agreement": {"agreement": "cd" * 32},
    "of no team": {"team": "team-0123456789abcdef"},
}
Judged = Mapping[str, tuple[str, Sequence[str]]]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    return admitted_town(tmp_path_factory.mktemp("registration"))


@pytest.fixture
def registered(town: Town) -> int:
    """How many registrations the log had before."""
    return town.kinds().count("registered")


def new_key() -> tuple[bytes, str]:
    """A private key and its handle."""
    key = new_signing_key()
    return key, team_handle(public_key(key))


# submissions


@pytest.fixture(scope="module")
def judged(town: Town) -> Judged:
    """Attack -> its submission, and what the rule says: all are sent, then taken in at once."""
    first = town.send("one", now=NEXT, seed=11)
    sent = {"honest": first, "replayed": replay(town, first)}
    for number, (attack, said) in enumerate(SAID.items(), 20):
        sent[attack] = town.draft(f"signature-{number}", now=NEXT, seed=number)
        forge(town, sent[attack], said, key=own_key(town))
    sent["other key"] = town.draft("others-key", now=NEXT, seed=14)
    forge(town, sent["other key"], {}, key=new_signing_key())
    sent["changed"] = town.draft("changed", now=NEXT, seed=16)
    resign(town, sent["changed"], change_metadata)
    sent["taken off"] = town.draft("taken-off", now=NEXT, seed=17)
    resign(town, sent["taken off"], lambda metadata, _: metadata)
    received = {r["id"]: r["kind"] for r in town.take_in(now=NEXT)["received"]}
    assert received == dict.fromkeys(sent.values(), "received")
    told = team_findings(town, *sent.values(), now=NEXT)
    return {attack: (name, told[name]) for attack, name in sent.items()}


def replay(town: Town, first: str) -> str:
    """A submission with the signature of another one."""
    key = (town.clone / ".git/heldout" / "keys" / first).read_bytes()
    sealed = Repository(town.clone).packed_file(f"{first}-metadata.json.age").read_bytes()
    _, stolen = split_signature(open_metadata("age", sealed, key=key))
    assert stolen is not None
    second = town.draft("replayed", now=NEXT, seed=12)
    resign(town, second, lambda metadata, _: join_signature(metadata, stolen))
    return second


def forge(town: Town, submission: str, said: Mapping[str, str], *, key: bytes) -> None:
    """Send a submission with a signature that is right in form, and says other things."""
    own = own_file(town)
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

    resign(town, submission, change)


def change_metadata(metadata: bytes, signature: SubmissionSignature) -> bytes:
    return join_signature(metadata.replace(b"monoT5", b"monoT6"), signature)


def own_key(town: Town) -> bytes:
    return (town.clone / ".git/heldout" / "team" / "key").read_bytes()


def test_a_replayed_signature_of_another_submission(judged: Judged) -> None:
    (told,) = judged["replayed"][1]
    assert "is not one of this submission" in told
    assert judged["honest"][1] == []


@pytest.mark.parametrize(
    ("attack", "told"),
    [
        ("of another submission", "is not one of this submission"),
        ("for another board", "is not one of this submission"),
        ("over another agreement", "has not agreed to agreement.md"),
        ("of no team", "which is not registered"),
    ],
    ids=list(SAID),
)
def test_a_signature(judged: Judged, attack: str, told: str) -> None:
    (said,) = judged[attack][1]
    assert told in said


def test_another_team_s_key(judged: Judged) -> None:
    """It claims the handle of a registered team, and is not its key."""
    (told,) = judged["other key"][1]
    assert "is not one of this submission" in told


def test_metadata_that_was_changed_after_it_was_signed(judged: Judged) -> None:
    (told,) = judged["changed"][1]
    assert "is not one of this submission" in told


def test_a_signature_that_was_taken_off(town: Town, judged: Judged) -> None:
    name, (told,) = judged["taken off"]
    assert "not signed by a registered team" in told
    assert town.publish(name, now=NEXT).code == 1
    assert "published" not in town.kinds()


def test_a_registered_team_under_another_s_name(town: Town) -> None:
    clone = town.new_clone("others")
    admit(town, now=NEXT, clone=clone, team=OTHER_TEAM)
    submission = town.draft("others-name", now=NEXT, clone=clone, seed=15)
    answer = town.participant("submit", submission, now=NEXT, clone=clone)
    assert answer.code == 1
    assert "registered for" in " ".join(answer.out.split())
    town.fill(submission, clone=clone, **OTHER_TEAM)
    assert town.participant("submit", submission, now=NEXT, clone=clone).code == 0
    file = clone / ".git/heldout" / "team" / "registration.json"
    renamed = own_file(town, clone)
    renamed["registrant"]["team"] = TEAM["team"]
    file.write_bytes(msgspec.json.encode(renamed))
    town.fill(submission, clone=clone, team=TEAM["team"])
    assert town.participant("amend", submission, now=NEXT, clone=clone).code == 0
    town.take_in(now=NEXT)
    (told,) = findings(town, submission)
    assert f'registered for "{OTHER_TEAM["team"]}"' in told


def test_new_metadata_without_the_team_s_signature(town: Town) -> None:
    submission = town.draft("amended", now=NEXT, seed=18)
    town.send_unchecked(submission, now=NEXT)
    town.take_in(now=NEXT)
    assert findings(town, submission) == []
    note = town.clone / ".git/heldout" / "team" / "registration.json"
    kept = note.rename(note.with_suffix(".kept"))
    town.fill(submission, model_description="Something else")
    assert town.participant("amend", submission, now=NEXT).code == 0
    kept.rename(note)
    receipts = {r["id"]: r for r in town.take_in(now=NEXT)["received"]}
    assert refusal(receipts[submission]) == ["bad-signature"]
    events = [event for event in town.events() if event["submission"] == submission]
    assert [event["kind"] for event in events] == ["received", "reviewed"]


# registrations


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"board": "ab" * 32}, "bad-signature"),
        ({"key": public_key(new_signing_key())}, "bad-signature"),
        ({"key": "00" * 32}, "bad-signature"),
        ({"agreement": ""}, "other-agreement"),
        ({"agreement": str(digest_bytes(AGREEMENT.upper().encode()))}, "other-agreement"),
        ({"private": "ab" * 32}, "untrusted"),
        ({"at": "yesterday"}, "not-a-registration"),
        ({"key": "../../x"}, "not-a-registration"),
    ],
    ids=[
        "for another board",
        "of somebody else's key",
        "of a key of small order",
        "without the agreement",
        "for another agreement",
        "for other names than it seals",
        "of no time",
        "of a key that is a path",
    ],
)
def test_a_registration(town: Town, registered: int, changed: Mapping[str, str], code: str) -> None:
    key, handle = new_key()
    receipt = deliver(town, make_registration(town, key, changed), handle)
    assert refusal(receipt) == [code]
    assert town.kinds().count("registered") == registered


def test_an_old_registration_sent_again(town: Town, registered: int) -> None:
    """To bring an agreement back that was replaced: the log knows it, or it is stale."""
    key, handle = new_key()
    times = {
        at: make_registration(town, key, {"at": at}, team="Old Harbour") for at in (NEXT, LATER)
    }
    assert deliver(town, times[NEXT], handle)["kind"] == "registered"
    assert deliver(town, times[LATER], handle)["kind"] == "registered"
    assert deliver(town, times[NEXT], handle)["kind"] == "known"
    older = make_registration(town, key, {"at": DAY}, team="Old Harbour")
    assert refusal(deliver(town, older, handle)) == ["stale-registration"]
    assert town.kinds().count("registered") == registered + 2


def test_a_revoked_registration_sent_again(town: Town) -> None:
    key, handle = new_key()
    first = make_registration(town, key, {"at": NEXT}, team="Sunken Ship")
    assert deliver(town, first, handle)["kind"] == "registered"
    assert town.organiser("board", "revoke", handle, "--why", "x", now=NEXT).code == 0
    assert deliver(town, first, handle)["kind"] == "known"
    again = make_registration(town, key, {"at": LATER}, team="Sunken Ship")
    assert refusal(deliver(town, again, handle)) == ["registration-revoked"]


def test_sealed_names_that_were_swapped(town: Town, registered: int) -> None:
    """Somebody else's statement with names of one's own would take the key's good name."""
    key, handle = new_key()
    file = msgspec.json.decode(make_registration(town, key), type=RegistrationFile)
    other = make_registration(town, new_signing_key(), team="Mallory")
    names = msgspec.json.decode(other, type=RegistrationFile)
    swapped = msgspec.structs.replace(file, key=names.key, registrant=names.registrant)
    assert refusal(deliver(town, msgspec.json.encode(swapped), handle)) == ["untrusted"]
    assert town.kinds().count("registered") == registered


def test_the_name_of_a_registered_team(town: Town, registered: int) -> None:
    key, handle = new_key()
    taken = make_registration(town, key, team=TEAM["team"].upper())
    assert refusal(deliver(town, taken, handle)) == ["name-registered"]
    assert town.kinds().count("registered") == registered


def test_a_key_under_a_second_name(town: Town) -> None:
    """A quota is counted by name."""
    key, handle = new_key()
    first = make_registration(town, key, {"at": NEXT}, team="Two Faces")
    assert deliver(town, first, handle)["kind"] == "registered"
    second = make_registration(town, key, {"at": LATER}, team="Another Face")
    assert refusal(deliver(town, second, handle)) == ["name-registered"]


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[" * 50_000, b"\xff\xfe", b'{"statement":"{}"}', b"null"],
    ids=["nothing", "empty", "brackets without end", "no UTF-8", "half", "null"],
)
def test_a_file_that_is_no_registration(town: Town, registered: int, data: bytes) -> None:
    receipt = deliver(town, data, "team-0123456789abcdef")
    assert refusal(receipt) == ["not-a-registration"]
    assert town.kinds().count("registered") == registered


def test_a_huge_registration(town: Town) -> None:
    receipt = deliver(town, b" " * 100_000, "team-0123456789abcdef")
    assert refusal(receipt) == ["too-large"]


@pytest.mark.parametrize("extra", ["log.jsonl", "registrations/team-0123456789abcdef.json"])
def test_a_registration_that_brings_more(town: Town, registered: int, extra: str) -> None:
    team = named("Bearer" + str(len(extra)))
    clone = town.new_clone(f"bearer{len(extra)}")
    handle = register(town, now=NEXT, clone=clone, team=team)
    git(clone, "checkout", "-q", f"registration/{handle}")
    (clone / extra).write_text("changed")
    git(clone, "add", "-f", extra)
    git(clone, "commit", "-qm", "more")
    git(clone, "push", "-q", "origin", f"+HEAD:registration/{handle}")
    receipts = town.take_in(now=NEXT)["received"]
    (receipt,) = [r for r in receipts if r["source"] == f"branch registration/{handle}"]
    assert refusal(receipt) == ["foreign-change"]
    assert town.kinds().count("registered") == registered
    git(town.forge, "branch", "-D", f"registration/{handle}")
    git(town.board, "update-ref", "-d", f"refs/remotes/origin/registration/{handle}")


def test_a_registration_after_the_last_day(town: Town, registered: int) -> None:
    key, handle = new_key()
    receipt = deliver(town, make_registration(town, key), handle, now=LATE)
    assert refusal(receipt) == ["registration-closed"]
    assert town.kinds().count("registered") == registered


def test_after_all_of_it_the_logs_are_sound(town: Town) -> None:
    assert town.organiser("rebuild", now=NEXT).code == 0
    audit = town.audit()
    assert audit["ok"], audit
