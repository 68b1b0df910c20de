"""The organisers' keys change: somebody leaves, joins, or has lost a key; nothing else is lost."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from killer import kill_often
from lab import LAST, NEXT, OTHER_TEAM, Lab, found_lab, git, prepared
from registering import ask_for_registration, register
from trusting import ONE

from heldout.board.organiser.rekey import set_recipients
from heldout.board.store.vault import Vault
from heldout.envelope.bundle import new_identity, open_key
from heldout.errors import InputError, TrustError

TWO = "20261102-two"


@prepared
def lab(lab: Lab) -> None:
    """One entry published, one that waits, one that was refused."""
    lab.send("one")
    lab.receive("two", seed=2, team=OTHER_TEAM)
    assert lab.publish(ONE, now=NEXT).code == 0
    lab.push()


def recipients(lab: Lab) -> list[str]:
    found: list[str] = tomllib.loads((lab.board / "board.toml").read_text())["recipients"]
    return found


def identities(lab: Lab) -> dict[str, str]:
    """The keys that open submissions."""
    return {file.name: file.read_text() for file in (lab.vault / "identities").glob("*.txt")}


def test_a_new_key_takes_the_place_of_the_old_one(lab: Lab) -> None:
    (old,) = recipients(lab)
    before = identities(lab)["organiser.txt"]
    args = ("board", "rekey", "--why", "a stolen laptop", "--yes", "--json")
    answer = lab.organiser(*args, now=LAST).done()
    (new,) = recipients(lab)
    assert (answer.json["added"], answer.json["removed"]) == ([new], [old])
    assert new != old
    assert (lab.board / "keys/organisers.txt").read_text() == f"{new}\n"
    kept = identities(lab)
    assert sorted(kept) == ["organiser.txt", next(name for name in kept if "retired" in name)]
    assert before != kept["organiser.txt"]
    assert before in kept.values()
    event = lab.events()[-1]
    assert event["kind"] == "rekeyed"
    public = event["public"]
    assert (public["added"], public["removed"], public["why"]) == ([new], [old], "a stolen laptop")
    assert (public["old_keys"], public["grace_until"]) == ("kept", "2026-12-16")
    assert set(public["sealed_again"]) == {ONE, TWO}
    assert tomllib.loads(public["board.toml"])["recipients"] == [new]
    assert lab.audit() == {"ok": True, "events": len(lab.events()), "faults": [], "notes": []}
    assert git(lab.board, "status", "--porcelain") == ""
    # The new key alone opens what was sealed again and what comes; no private key leaves the vault.
    lab.share()
    sent = lab.send("new", now=LAST, seed=4, team={**OTHER_TEAM, "team": "Harbour Group"})
    vault = Vault(lab.vault)
    blobs = [vault.sealed(digest).read_bytes() for digest in public["sealed_again"].values()]
    blobs.append((lab.clone / f".git/heldout/sealed/{sent}.key.age").read_bytes())
    for blob in blobs:
        assert open_key("age", blob, [kept["organiser.txt"]])
        with pytest.raises(TrustError):
            open_key("age", blob, [before])
    for file in [*lab.board.rglob("*"), *lab.vault.glob("*"), *(lab.vault / "sealed").iterdir()]:
        assert not file.is_file() or b"AGE-SECRET-KEY" not in file.read_bytes(), file
    assert all(f.stat().st_mode & 0o077 == 0 for f in (lab.vault / "identities").iterdir())
    # The same change twice is one.
    again = lab.organiser(*args, now=LAST).json
    assert (answer.json["done_before"], again["done_before"]) == (False, True)
    same = {"done_before": False, "rebuilt": {}}
    assert {**again, **same} == {**answer.json, **same}
    lab.organiser(*args[:3], "another one", "--yes", now=LAST).done()
    assert lab.kinds().count("rekeyed") == 2


def test_with_the_old_key_destroyed_everything_that_was_there_still_opens(lab: Lab) -> None:
    args = ("board", "rekey", "--why", "she left", "--destroy-old", "--yes", "--json")
    answer = lab.organiser(*args, now=LAST)
    assert (answer.code, answer.json["old_keys"], answer.json["grace_until"]) == (
        0,
        "destroyed",
        None,
    )
    assert list(identities(lab)) == ["organiser.txt"]
    lab.repair("deval3 1", "other 1")
    assert lab.organiser("correct", ONE, "--why", "a wrong label", now=LAST).code == 0
    decided = ("publish", TWO, "--why", "another system", "--yes")
    assert lab.organiser(*decided, now=LAST).code == 0
    assert lab.audit()["ok"]


def test_what_is_under_way_is_taken_while_the_old_key_is_kept(lab: Lab) -> None:
    """A team seals before it has pulled the new key; afterwards its update is of the same key."""
    late = lab.send("late", seed=3, team={**OTHER_TEAM, "team": "Harbour Group"})
    assert lab.organiser("board", "rekey", "--why", "x", "--yes", now=LAST).code == 0
    assert [row["id"] for row in lab.take_in(now=LAST)["waiting"]] == [TWO, late]
    assert lab.organiser("review", late, "--json", now=LAST).json["reviews"][0]["id"] == late
    lab.fill(late, model_description="a better description")
    assert lab.participant("amend", late, now=LAST).code == 0
    assert [r["kind"] for r in lab.take_in(now=LAST)["received"]] == ["updated"]


def test_what_is_under_way_is_shut_once_the_old_key_is_destroyed(lab: Lab) -> None:
    late = lab.send("late", seed=3, team={**OTHER_TEAM, "team": "Harbour Group"})
    args = ("board", "rekey", "--why", "x", "--destroy-old", "--yes")
    assert lab.organiser(*args, now=LAST).code == 0
    lab.take_in(now=LAST)
    lab.organiser("review", late, now=LAST).declined(
        "cannot be opened", "sealed for other keys than this board's has now"
    )


def test_the_retired_key_is_destroyed_when_the_grace_is_over(lab: Lab) -> None:
    assert lab.organiser("board", "rekey", "--why", "x", "--yes", now=LAST).code == 0
    keys = recipients(lab)
    args = ("board", "rekey", "--keep-key", "--destroy-old", "--why", "the grace is over", "--yes")
    answer = lab.organiser(*args, "--json", now=LAST)
    assert (answer.code, answer.json["old_keys"]) == (0, "destroyed"), answer
    assert (list(identities(lab)), recipients(lab)) == (["organiser.txt"], keys)
    lab.organiser(*args[:-2], "to be sure", "--yes", now=LAST).refused("nothing was done")


def test_an_organiser_joins_and_opens_what_came_before(lab: Lab) -> None:
    other = new_identity("age")
    mine = recipients(lab)
    args = ("board", "rekey", "--keep-key", "--add", other.recipient, "--why", "joins", "--yes")
    assert lab.organiser(*args, now=LAST).code == 0
    assert recipients(lab) == [*mine, other.recipient]
    for digest in lab.events()[-1]["public"]["sealed_again"].values():
        assert open_key("age", Vault(lab.vault).sealed(digest).read_bytes(), [other.private])
    assert list(identities(lab)) == ["organiser.txt"]
    args = ("board", "rekey", "--keep-key", "--drop", other.recipient[:12], "--why", "x", "--yes")
    assert lab.organiser(*args, now=LAST).code == 0
    assert recipients(lab) == mine
    for digest in lab.events()[-1]["public"]["sealed_again"].values():
        with pytest.raises(TrustError):
            open_key("age", Vault(lab.vault).sealed(digest).read_bytes(), [other.private])


def test_a_lost_key_is_replaced_and_what_stays_shut_is_told(lab: Lab) -> None:
    (old,) = recipients(lab)
    (lab.vault / "identities/organiser.txt").unlink()
    assert lab.organiser("inbox", now=LAST).code == 2
    answer = lab.organiser("board", "rekey", "--why", "lost", "--yes", "--json", now=LAST).done()
    assert (answer.json["removed"], answer.json["old_keys"]) == ([old], "none")
    assert (answer.json["not_opened"], answer.json["waiting"]) == ([ONE, TWO], [TWO])
    assert lab.events()[-1]["public"]["not_opened"] == [ONE, TWO]
    assert lab.organiser("inbox", now=LAST).code == 0
    assert lab.audit()["ok"]


def test_a_lost_key_among_several_has_to_be_named(lab: Lab) -> None:
    other = new_identity("age")
    (old,) = recipients(lab)
    args = ("board", "rekey", "--keep-key", "--add", other.recipient, "--why", "joins", "--yes")
    assert lab.organiser(*args, now=LAST).code == 0
    (lab.vault / "identities/organiser.txt").unlink()
    lab.organiser("board", "rekey", "--why", "lost", "--yes", now=LAST).refused("--drop age1")
    named = ("board", "rekey", "--why", "lost", "--drop", old, "--yes")
    assert lab.organiser(*named, now=LAST).code == 0
    assert old not in recipients(lab)
    assert recipients(lab)[0] == other.recipient
    assert lab.organiser("inbox", now=LAST).code == 0


def test_in_a_shared_vault_no_private_key_is_sent_and_nobody_is_put_out_unnamed(lab: Lab) -> None:
    """One who joins with an empty identities/ must not take the other's place."""
    (old,) = recipients(lab)
    git(lab.root, "init", "-q", "--bare", "-b", "main", "private")
    git(lab.vault, "init", "-q", "-b", "main")
    git(lab.vault, "remote", "add", "origin", str(lab.root / "private"))
    assert lab.organiser("board", "rekey", "--why", "x", "--yes", now=LAST).code == 0
    assert "event 5: rekeyed" in git(lab.root / "private", "log", "--format=%s", "main")
    sent = git(lab.root / "private", "ls-tree", "-r", "--name-only", "main").splitlines()
    sealed = lab.events()[-1]["public"]["sealed_again"]
    assert {f"sealed/{digest}" for digest in sealed.values()} <= set(sent)
    assert not [name for name in sent if name.startswith("identities")]
    for file in (lab.vault / "identities").iterdir():
        file.unlink()
    (new,) = recipients(lab)
    lab.organiser("board", "rekey", "--why", "I am new", "--yes", now=LAST).refused(
        "none of the board's recipients"
    )
    assert recipients(lab) == [new] != [old]


def test_wrong_keys_change_nothing(lab: Lab) -> None:
    (old,) = recipients(lab)
    before = (lab.kinds(), recipients(lab), identities(lab))
    for args, said in (
        (("--add", "age1nonsense"), "not an age recipient"),
        (("--add", "x\ny"), "not an age recipient"),
        (("--drop", "age1"), "at least 8 characters"),
        (("--drop", "age1qqqqqqqqqqqq"), "no recipient"),
        (("--keep-key", "--drop", old), "public key of at least one organiser"),
        (("--keep-key",), "nothing was done"),
    ):
        lab.organiser("board", "rekey", *args, "--why", "x", "--yes", now=LAST).refused(said)
        assert (lab.kinds(), recipients(lab), identities(lab)) == before


@pytest.mark.night
@pytest.mark.parametrize("lost", [False, True])
def test_killed_on_its_way_the_next_call_goes_on(tmp_path: Path, *, lost: bool) -> None:
    lab = found_lab(tmp_path)
    lab.receive("one")
    if lost:
        (lab.vault / "identities/organiser.txt").unlink()
    said = ["board", "rekey", "--why", "she left", "--yes", *["--destroy-old"] * (not lost)]
    options = lab.options(now=LAST)
    found = kill_often(
        lab.root, [*said, *options], [["inbox", *options], ["audit", *options]], every=11
    )
    assert found["faults"] == {}
    assert found["points"] >= 30


# board.toml


TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.just("\n"), min_size=1)
KEYS = st.lists(TEXTS, min_size=1, max_size=4)
REST = 'title = "recipients = [1]"\n[sets.a]\nqueries = "q"\n'


@given(KEYS, KEYS)
def test_all_but_the_recipients_stays_byte_for_byte(before: list[str], after: list[str]) -> None:
    rules = set_recipients(f"# a board\nname = 'a'\nrecipients = ['x']\n{REST}", before)
    changed = set_recipients(rules, after)
    assert tomllib.loads(changed)["recipients"] == after
    assert changed.startswith("# a board\nname = 'a'\nrecipients = ")
    assert changed.endswith(REST)
    assert set_recipients(changed, before) == rules


def test_a_registration_on_its_way_opens_with_the_old_key_or_is_sealed_anew(lab: Lab) -> None:
    ask_for_registration(lab, "\n[registration]\nrequired = true\n", now=LAST)
    register(lab, now=LAST)
    assert lab.organiser("board", "rekey", "--why", "x", "--yes", now=LAST).code == 0
    assert [r["kind"] for r in lab.take_in(now=LAST)["received"]] == ["registered"]
    clone = lab.new_clone("late")
    handle = register(lab, now=LAST, clone=clone, team=OTHER_TEAM)
    lab.share()
    args = ("board", "rekey", "--why", "y", "--destroy-old", "--yes")
    assert lab.organiser(*args, now=LAST).code == 0
    (receipt,) = lab.take_in(now=LAST)["received"]
    assert [problem["code"] for problem in receipt["problems"]] == ["untrusted"]
    lab.share(clone)
    assert register(lab, now=LAST, clone=clone, team=OTHER_TEAM) == handle
    (receipt,) = lab.take_in(now=LAST)["received"]
    assert (receipt["kind"], receipt["team"]) == ("registered", handle)
    assert lab.audit()["ok"]


@pytest.mark.parametrize(
    "rules",
    ['"recipients" = ["a"]\n', "name = '''\nrecipients = ['no']\n'''\n\"recipients\" = ['a']\n"],
)
def test_recipients_that_are_not_found_are_told(rules: str) -> None:
    with pytest.raises(InputError, match="recipients ="):
        set_recipients(rules, ["new"])


def test_it_asks_first(lab: Lab) -> None:
    before = (lab.kinds(), identities(lab))
    lab.organiser("board", "rekey", "--why", "x", "--destroy-old", now=LAST).declined(
        "can never be opened, and backups still hold them"
    )
    assert (lab.kinds(), identities(lab)) == before
