"""The organisers' keys change: somebody leaves, joins, or has lost a key; nothing else is lost."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from registering_town import ask_for_registration, publish_board, register
from town import OTHER_TEAM, Town, copy_of, found_town, git
from trusting import DAY, DECIDED, LAST, ONE, kill_at

from heldout.board.organiser.rekey import set_recipients
from heldout.board.store.vault import Vault
from heldout.envelope.bundle import new_identity, open_key
from heldout.errors import InputError, TrustError

pytestmark = pytest.mark.slow
TWO = "20261102-two"


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """One entry published, one that waits, one that was refused."""
    town = found_town(tmp_path_factory.mktemp("keys"))
    town.send("one", now=DAY)
    town.send("two", now=DAY, seed=2, team=OTHER_TEAM)
    town.take_in(now=DAY)
    assert town.publish(ONE, now=DECIDED).code == 0
    town.push()
    return town


town = copy_of("begun")


def recipients(town: Town) -> list[str]:
    found: list[str] = tomllib.loads((town.board / "board.toml").read_text())["recipients"]
    return found


def identities(town: Town) -> dict[str, str]:
    """The keys that open submissions."""
    return {file.name: file.read_text() for file in (town.vault / "identities").glob("*.txt")}


def test_a_new_key_takes_the_place_of_the_old_one(town: Town) -> None:
    (old,) = recipients(town)
    before = identities(town)["organiser.txt"]
    told = ("board", "rekey", "--why", "a stolen laptop", "--yes", "--json")
    answer = town.organiser(*told, now=LAST).done()
    (new,) = recipients(town)
    assert (answer.json["added"], answer.json["removed"]) == ([new], [old])
    assert new != old
    assert (town.board / "keys/organisers.txt").read_text() == f"{new}\n"
    kept = identities(town)
    assert sorted(kept) == ["organiser.txt", next(name for name in kept if "retired" in name)]
    assert before != kept["organiser.txt"]
    assert before in kept.values()
    event = town.events()[-1]
    assert event["kind"] == "rekeyed"
    public = event["public"]
    assert (public["added"], public["removed"], public["why"]) == ([new], [old], "a stolen laptop")
    assert (public["old_keys"], public["grace_until"]) == ("kept", "2026-12-16")
    assert set(public["sealed_again"]) == {ONE, TWO}
    assert tomllib.loads(public["board.toml"])["recipients"] == [new]
    assert town.audit() == {"ok": True, "events": len(town.events()), "faults": [], "notes": []}
    assert git(town.board, "status", "--porcelain") == ""
    # The new key alone opens what was sealed again and what comes; no private key leaves the vault.
    town.share()
    sent = town.send("new", now=LAST, seed=4, team={**OTHER_TEAM, "team": "Harbour Group"})
    vault = Vault(town.vault)
    blobs = [vault.sealed(digest).read_bytes() for digest in public["sealed_again"].values()]
    blobs.append((town.clone / f".git/heldout/sealed/{sent}.key.age").read_bytes())
    for blob in blobs:
        assert open_key("age", blob, [kept["organiser.txt"]])
        with pytest.raises(TrustError):
            open_key("age", blob, [before])
    for file in [*town.board.rglob("*"), *town.vault.glob("*"), *(town.vault / "sealed").iterdir()]:
        assert not file.is_file() or b"AGE-SECRET-KEY" not in file.read_bytes(), file
    assert all(f.stat().st_mode & 0o077 == 0 for f in (town.vault / "identities").iterdir())
    # The same change twice is one.
    again = town.organiser(*told, now=LAST).json
    assert (answer.json["done_before"], again["done_before"]) == (False, True)
    same = {"done_before": False, "rebuilt": {}}
    assert {**again, **same} == {**answer.json, **same}
    town.organiser(*told[:3], "another one", "--yes", now=LAST).done()
    assert town.kinds().count("rekeyed") == 2


def test_with_the_old_key_destroyed_everything_that_was_there_still_opens(town: Town) -> None:
    told = ("board", "rekey", "--why", "she left", "--destroy-old", "--yes", "--json")
    answer = town.organiser(*told, now=LAST)
    assert (answer.code, answer.json["old_keys"], answer.json["grace_until"]) == (
        0,
        "destroyed",
        None,
    )
    assert list(identities(town)) == ["organiser.txt"]
    town.repair("deval3 1", "other 1")
    assert town.organiser("correct", ONE, "--why", "a wrong label", now=LAST).code == 0
    decided = ("publish", TWO, "--why", "another system", "--yes")
    assert town.organiser(*decided, now=LAST).code == 0
    assert town.audit()["ok"]


def test_what_is_under_way_is_taken_while_the_old_key_is_kept(town: Town) -> None:
    """A team seals before it has pulled the new key; afterwards its update is of the same key."""
    late = town.send("late", now=DAY, seed=3, team={**OTHER_TEAM, "team": "Harbour Group"})
    assert town.organiser("board", "rekey", "--why", "x", "--yes", now=LAST).code == 0
    assert [row["id"] for row in town.take_in(now=LAST)["waiting"]] == [TWO, late]
    assert town.organiser("review", late, "--json", now=LAST).json["reviews"][0]["id"] == late
    town.fill(late, model_description="a better description")
    assert town.participant("amend", late, now=LAST).code == 0
    assert [r["kind"] for r in town.take_in(now=LAST)["received"]] == ["updated"]


def test_what_is_under_way_is_shut_once_the_old_key_is_destroyed(town: Town) -> None:
    late = town.send("late", now=DAY, seed=3, team={**OTHER_TEAM, "team": "Harbour Group"})
    told = ("board", "rekey", "--why", "x", "--destroy-old", "--yes")
    assert town.organiser(*told, now=LAST).code == 0
    town.take_in(now=LAST)
    answer = town.organiser("review", late, now=LAST)
    assert answer.code == 1
    assert "cannot be opened" in answer.out
    assert "sealed for other keys than this board's has now" in answer.out


def test_the_retired_key_is_destroyed_when_the_grace_is_over(town: Town) -> None:
    assert town.organiser("board", "rekey", "--why", "x", "--yes", now=LAST).code == 0
    keys = recipients(town)
    told = ("board", "rekey", "--keep-key", "--destroy-old", "--why", "the grace is over", "--yes")
    answer = town.organiser(*told, "--json", now=LAST)
    assert (answer.code, answer.json["old_keys"]) == (0, "destroyed"), answer
    assert (list(identities(town)), recipients(town)) == (["organiser.txt"], keys)
    other = town.organiser(*told[:-2], "to be sure", "--yes", now=LAST)
    assert other.code == 2
    assert "nothing was done" in other.err


def test_an_organiser_joins_and_opens_what_came_before(town: Town) -> None:
    other = new_identity("age")
    mine = recipients(town)
    told = ("board", "rekey", "--keep-key", "--add", other.recipient, "--why", "joins", "--yes")
    assert town.organiser(*told, now=LAST).code == 0
    assert recipients(town) == [*mine, other.recipient]
    for digest in town.events()[-1]["public"]["sealed_again"].values():
        assert open_key("age", Vault(town.vault).sealed(digest).read_bytes(), [other.private])
    assert list(identities(town)) == ["organiser.txt"]
    told = ("board", "rekey", "--keep-key", "--drop", other.recipient[:12], "--why", "x", "--yes")
    assert town.organiser(*told, now=LAST).code == 0
    assert recipients(town) == mine
    for digest in town.events()[-1]["public"]["sealed_again"].values():
        with pytest.raises(TrustError):
            open_key("age", Vault(town.vault).sealed(digest).read_bytes(), [other.private])


def test_a_lost_key_is_replaced_and_what_stays_shut_is_told(town: Town) -> None:
    (old,) = recipients(town)
    (town.vault / "identities/organiser.txt").unlink()
    assert town.organiser("inbox", now=LAST).code == 2
    answer = town.organiser("board", "rekey", "--why", "lost", "--yes", "--json", now=LAST).done()
    assert (answer.json["removed"], answer.json["old_keys"]) == ([old], "none")
    assert (answer.json["not_opened"], answer.json["waiting"]) == ([ONE, TWO], [TWO])
    assert town.events()[-1]["public"]["not_opened"] == [ONE, TWO]
    assert town.organiser("inbox", now=LAST).code == 0
    assert town.audit()["ok"]


def test_a_lost_key_among_several_has_to_be_named(town: Town) -> None:
    other = new_identity("age")
    (old,) = recipients(town)
    told = ("board", "rekey", "--keep-key", "--add", other.recipient, "--why", "joins", "--yes")
    assert town.organiser(*told, now=LAST).code == 0
    (town.vault / "identities/organiser.txt").unlink()
    answer = town.organiser("board", "rekey", "--why", "lost", "--yes", now=LAST)
    assert answer.code == 2
    assert "--drop age1" in answer.err
    named = ("board", "rekey", "--why", "lost", "--drop", old, "--yes")
    assert town.organiser(*named, now=LAST).code == 0
    assert old not in recipients(town)
    assert recipients(town)[0] == other.recipient
    assert town.organiser("inbox", now=LAST).code == 0


def test_in_a_shared_vault_no_private_key_is_sent_and_nobody_is_put_out_unnamed(town: Town) -> None:
    """One who joins with an empty identities/ must not take the other's place."""
    (old,) = recipients(town)
    git(town.root, "init", "-q", "--bare", "-b", "main", "private")
    git(town.vault, "init", "-q", "-b", "main")
    git(town.vault, "remote", "add", "origin", str(town.root / "private"))
    assert town.organiser("board", "rekey", "--why", "x", "--yes", now=LAST).code == 0
    assert "event 5: rekeyed" in git(town.root / "private", "log", "--format=%s", "main")
    sent = git(town.root / "private", "ls-tree", "-r", "--name-only", "main").splitlines()
    sealed = town.events()[-1]["public"]["sealed_again"]
    assert {f"sealed/{digest}" for digest in sealed.values()} <= set(sent)
    assert not [name for name in sent if name.startswith("identities")]
    for file in (town.vault / "identities").iterdir():
        file.unlink()
    (new,) = recipients(town)
    answer = town.organiser("board", "rekey", "--why", "I am new", "--yes", now=LAST)
    assert answer.code == 2
    assert "none of the board's recipients" in answer.err
    assert recipients(town) == [new] != [old]


def test_wrong_keys_change_nothing(town: Town) -> None:
    (old,) = recipients(town)
    before = (town.kinds(), recipients(town), identities(town))
    for told, said in (
        (("--add", "age1nonsense"), "not an age recipient"),
        (("--add", "x\ny"), "not an age recipient"),
        (("--drop", "age1"), "at least 8 characters"),
        (("--drop", "age1qqqqqqqqqqqq"), "no recipient"),
        (("--keep-key", "--drop", old), "public key of at least one organiser"),
        (("--keep-key",), "nothing was done"),
    ):
        answer = town.organiser("board", "rekey", *told, "--why", "x", "--yes", now=LAST)
        assert answer.code == 2, answer
        assert said in answer.err
        assert (town.kinds(), recipients(town), identities(town)) == before


@pytest.mark.night
@pytest.mark.parametrize("lost", [False, True])
def test_killed_on_its_way_the_next_call_goes_on(tmp_path: Path, *, lost: bool) -> None:
    town = found_town(tmp_path)
    town.send("one", now=DAY)
    town.take_in(now=DAY)
    if lost:
        (town.vault / "identities/organiser.txt").unlink()
    told = ["board", "rekey", "--why", "she left", "--yes", *["--destroy-old"] * (not lost)]
    found = kill_at(town, told, every=11)
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


def test_a_registration_on_its_way_opens_with_the_old_key_or_is_sealed_anew(town: Town) -> None:
    ask_for_registration(town, "\n[registration]\nrequired = true\n", now=LAST)
    register(town, now=LAST)
    assert town.organiser("board", "rekey", "--why", "x", "--yes", now=LAST).code == 0
    assert [r["kind"] for r in town.take_in(now=LAST)["received"]] == ["registered"]
    clone = town.new_clone("late")
    handle = register(town, now=LAST, clone=clone, team=OTHER_TEAM)
    publish_board(town)
    told = ("board", "rekey", "--why", "y", "--destroy-old", "--yes")
    assert town.organiser(*told, now=LAST).code == 0
    (receipt,) = town.take_in(now=LAST)["received"]
    assert [problem["code"] for problem in receipt["problems"]] == ["untrusted"]
    town.share(clone)
    assert register(town, now=LAST, clone=clone, team=OTHER_TEAM) == handle
    (receipt,) = town.take_in(now=LAST)["received"]
    assert (receipt["kind"], receipt["team"]) == ("registered", handle)
    assert town.audit()["ok"]


@pytest.mark.parametrize(
    "rules",
    ['"recipients" = ["a"]\n', "name = '''\nrecipients = ['no']\n'''\n\"recipients\" = ['a']\n"],
)
def test_recipients_that_are_not_found_are_told(rules: str) -> None:
    with pytest.raises(InputError, match="recipients ="):
        set_recipients(rules, ["new"])


def test_it_asks_first(town: Town) -> None:
    before = (town.kinds(), identities(town))
    answer = town.organiser("board", "rekey", "--why", "x", "--destroy-old", now=LAST)
    assert answer.code == 1
    assert "can never be opened, and backups still hold them" in answer.err
    assert (town.kinds(), identities(town)) == before
