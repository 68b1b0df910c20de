"""A vault whose remote lies, or has what is no event of anybody; cases are named after attacks."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, timedelta
from pathlib import Path

import pytest
from lab import OTHER_TEAM, git, sign_event
from two_organisers import Office, Pair, copy_pair

from heldout.board.log.events import Draft, format_entry, link, parse_log
from heldout.ids import digest_bytes

pytestmark = pytest.mark.night


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return copy_pair(tmp_path)


# a remote that lies


CONTENTS: Mapping[str, tuple[dict[str, tuple[str, bytes] | None], str]] = {
    "a link in place of a folder": ({"signatures": ("120000", b"/tmp")}, "no plain file"),
    "a private key slipped in": ({"identities/eve.txt": ("100644", b"x")}, "private key"),
    "attributes with a filter": ({".gitattributes": ("100644", b"* filter=x")}, "heldout's own"),
    "a hidden file in a folder": ({"scores/.x": ("100644", b"x")}, "no plain file"),
    "a submodule": ({"scores/x": ("160000", b"1" * 40)}, "no plain file"),
    "a program": ({"scores/x.json": ("100755", b"x")}, "no plain file"),
    "a stray file": ({"founding": ("100644", b"x")}, "no plain file"),
    "a name that a terminal obeys": ({"scores/\x1b[2J": ("100644", b"x")}, r"scores/\x1b[2J"),
    "a file under another's digest": ({"sealed/" + "0" * 64: ("100644", b"x")}, "has the digest"),
    "poisoned labels": ({"labels/eval.qrels": ("100644", b"eval0 0 x 1\n")}, "has the digest"),
    "labels taken away": ({"labels/eval.qrels": None}, "has lost"),
    "the log taken away": ({"events.jsonl": None}, "no whole events.jsonl"),
    "a torn log": ({"events.jsonl": ("100644", b"{")}, "no whole events.jsonl"),
    "a log of nonsense": ({"events.jsonl": ("100644", b"{}\n")}, "origin:events.jsonl:1: not an"),
}


def assert_kept(pair: Pair, expected: str) -> None:
    """Bob's command is refused for this reason, and all that he has is as it was."""
    before, head = pair.bob.state(), git(pair.bob.vault, "rev-parse", "HEAD")
    said = pair.bob.call("rebuild").refused(
        expected, "nothing was done, the vault here is as it was"
    )
    assert "\x1b" not in said.err
    assert pair.bob.state() == before
    assert git(pair.bob.vault, "rev-parse", "HEAD") == head


def test_hostile_contents_are_refused(pair: Pair) -> None:
    honest = git(pair.remote, "rev-parse", "main")
    for changes, expected in CONTENTS.values():
        pair.hostile(changes, parent=honest)
        assert_kept(pair, expected)
    git(pair.remote, "update-ref", "refs/heads/main", honest)
    assert pair.bob.call("rebuild").code == 0


def test_a_path_out_of_the_vault_is_refused(pair: Pair) -> None:
    blob = git(pair.remote, "hash-object", "-w", "--stdin", data=b"evil")
    listing = git(pair.remote, "ls-tree", "main") + f"\n100644 blob {blob}\t..\n"
    tree = git(pair.remote, "mktree", data=listing.encode())
    commit = git(pair.remote, "commit-tree", tree, "-p", "main", "-m", "x")
    git(pair.remote, "update-ref", "refs/heads/main", commit)
    assert_kept(pair, 'has "..", no plain file')


def rewritten(log: bytes) -> bytes:
    """Ann's own: a sound chain of as many events and one more, the first alone is the same."""
    entries = list(parse_log(log, path=""))[:1]
    salt = "00" * 16
    for number in range(2):
        draft = Draft(kind="asked", by="eve", submission="x", public={"why": "x"}, sealed={})
        moment = entries[0].time.astimezone(UTC) + timedelta(hours=number)
        entries.append(link(draft, entries[-1], at=moment, new_salt=lambda: salt, sign=sign_event))
    return b"".join(map(format_entry, entries))


@pytest.mark.parametrize("parent", ["main", None])
def test_a_rewritten_history_is_refused(pair: Pair, parent: str | None) -> None:
    pair.hostile({"events.jsonl": ("100644", rewritten(pair.bob.log()))}, parent=parent)
    assert_kept(pair, "another history: its event 1 is not the one in the vault here")


def test_a_history_of_the_same_events_that_is_not_ours_is_refused(pair: Pair) -> None:
    pair.hostile({"events.jsonl": ("100644", pair.bob.log())}, parent=None)
    assert_kept(pair, "have the same events, but commits of their own")


def test_a_remote_of_something_else_is_refused(pair: Pair) -> None:
    pair.hostile({"README.md": ("100644", b"# Welcome")}, parent=None)
    assert_kept(pair, "it must be empty at first")


def test_a_second_branch_is_refused(pair: Pair) -> None:
    git(pair.remote, "branch", "-m", "main", "trunk")
    assert_kept(pair, "two branches would be two histories")


def _rewind(pair: Pair) -> None:
    git(pair.remote, "update-ref", "refs/heads/main", "main~1")


def _shorten(pair: Pair) -> None:
    first = pair.bob.log().splitlines(keepends=True)[0]
    pair.hostile({"events.jsonl": ("100644", first)})


def _empty(pair: Pair) -> None:
    git(pair.remote, "update-ref", "-d", "refs/heads/main")


@pytest.mark.parametrize("forget", [_rewind, _shorten, _empty])
def test_events_that_a_remote_forgot_are_sent_again(
    pair: Pair, forget: Callable[[Pair], None]
) -> None:
    log = pair.bob.log()
    forget(pair)
    assert "sent to origin, which lacked it" in pair.bob.call("rebuild").done().err
    assert pair.bob.log() == pair.remote_log() == log
    assert pair.ann.call("rebuild").code == 0
    assert pair.ann.log() == log


# what is no event of anybody


LIKE_ANOTHER = ("others-run", "near-others")
"""The rules that hold a run against the earlier ones."""


def scores_of(office: Office, submission: str) -> dict[str, float]:
    left = json.loads((office.vault / f"scores/{submission}.json").read_bytes())
    return {name: view["mean"] for name, view in left["views"].items()}


def perfect_scores(office: Office, submission: str) -> bytes:
    """The scores of a submission, with every query answered perfectly."""
    left = json.loads((office.vault / f"scores/{submission}.json").read_bytes())
    for view in left["views"].values():
        view["per_query"] = dict.fromkeys(view["per_query"], 1.0)
        view["mean"] = 1.0
    return json.dumps(left, separators=(",", ":")).encode()


@pytest.mark.parametrize("whose", ["the reviewer's", "another organiser's"])
def test_true_scores_rewritten_at_the_remote_are_not_published(pair: Pair, whose: str) -> None:
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    true = scores_of(pair.ann, one)
    forged = perfect_scores(pair.ann, one)
    pair.hostile({f"scores/{one}.json": ("100644", forged)})
    office = pair.ann if whose == "the reviewer's" else pair.bob
    said = office.call("publish", one, "--yes").done()
    assert (
        "not taken over from origin, for no event has their digests: "
        f'"scores/{one}.json"' in said.err
    )
    assert scores_of(office, one) == true != dict.fromkeys(true, 1.0)
    table = json.loads((office.board / "leaderboard/leaderboard.json").read_bytes())
    assert float(table["rows"][0]["scores"]["eval"]) == pytest.approx(true["eval"], abs=5e-4)
    other = pair.bob if office is pair.ann else pair.ann
    assert other.call("rebuild").code == 0
    assert scores_of(other, one) == true
    assert pair.ann.is_sound()
    assert pair.bob.is_sound()
    there = git(pair.remote, "show", f"main:scores/{one}.json")
    assert json.loads(there)["views"]["eval"]["mean"] == true["eval"]


def test_scores_logged_by_a_dishonest_signer_are_scored_anew(pair: Pair) -> None:
    """An organiser can also log the digest of what they forged."""
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    true = scores_of(pair.ann, one)
    forged = perfect_scores(pair.ann, one)
    log = pair.ann.log()
    last = parse_log(log, path="")[-1]
    draft = Draft(
        kind="reviewed",
        by=last.event.by,
        submission=one,
        public={},
        sealed={"kept": {"scores": str(digest_bytes(forged))}},
    )
    entry = link(draft, last, at=last.time, new_salt=lambda: "00" * 16, sign=sign_event)
    pair.hostile(
        {
            f"scores/{one}.json": ("100644", forged),
            "events.jsonl": ("100644", log + format_entry(entry)),
        }
    )
    assert pair.ann.call("publish", one, "--yes").code == 0
    assert scores_of(pair.ann, one) == true
    assert pair.ann.is_sound()


def test_a_mask_that_nobody_logged_hides_no_query(pair: Pair) -> None:
    mask = "".join(f"eval{number}\n" for number in range(8)).encode()
    pair.hostile({"labels/eval.exclude": ("100644", mask)})
    pair.bob.call("publish", pair.received(), "--yes").done()
    for office in (pair.ann, pair.bob):
        assert not (office.vault / "labels/eval.exclude").exists()
        assert office.call("rebuild").code == 0
        assert office.is_sound()


def test_labels_of_a_new_set_that_nobody_logged_are_not_taken(pair: Pair) -> None:
    pair.hostile({"labels/reserve.qrels": ("100644", b"eval0 0 x 1\n")})
    said = pair.ann.call("rebuild").done()
    assert 'no event has their digests: "labels/reserve.qrels"' in said.err
    assert not (pair.ann.vault / "labels/reserve.qrels").exists()


def test_a_file_taken_without_an_event_is_named(pair: Pair) -> None:
    pair.hostile({f"sealed/{digest_bytes(b'x')}": ("100644", b"x")})
    said = pair.ann.call("rebuild").done()
    assert f'taken over from origin without an event: "sealed/{digest_bytes(b"x")}"' in said.err


def test_a_signature_of_junk_stops_no_later_publication(pair: Pair) -> None:
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    pair.hostile({f"signatures/{one}.npz": ("100644", b"junk")})
    two = pair.received("two", seed=3, team=OTHER_TEAM)
    for office in (pair.ann, pair.bob):
        assert office.call("review", two).code == 0
        assert office.is_sound()
    assert pair.bob.call("publish", two, "--yes").code == 0


def test_damaged_scores_and_signatures_are_made_anew(pair: Pair) -> None:
    """By the next publication of another submission, out of what is sealed."""
    one = pair.received("one", seed=1)
    assert pair.ann.call("review", one).code == 0
    two = pair.received("two", seed=1, team=OTHER_TEAM)
    files = [pair.ann.vault / f"scores/{one}.json", pair.ann.vault / f"signatures/{one}.npz"]
    whole = [file.read_bytes() for file in files]
    for damage in ["junk", "half a file", "nothing", "taken away"]:
        for file, data in zip(files, whole, strict=True):
            if damage == "taken away":
                file.unlink()
            else:
                made = {"junk": b"junk", "half a file": data[: len(data) // 2], "nothing": b""}
                file.write_bytes(made[damage])
        assert not pair.ann.is_sound()
        said = pair.ann.call("review", two, "--json")
        assert any(f["rule"] in LIKE_ANOTHER for f in said.json["reviews"][0]["findings"]), said
        assert [file.read_bytes() for file in files] == whole
        assert pair.ann.is_sound()


def test_what_cannot_be_made_anew_is_named_and_stops_nothing(pair: Pair) -> None:
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    for name in [f"scores/{one}.json", f"signatures/{one}.npz"]:
        (pair.ann.vault / name).write_bytes(b"junk")
    received = parse_log(pair.ann.log(), path="")[2]
    for digest in received.event.public["files"].values():
        (pair.ann.vault / f"sealed/{digest}").write_bytes(b"junk")
    two = pair.lab.send("two", seed=3, team=OTHER_TEAM)
    assert pair.ann.call("inbox").code == 0
    said = pair.ann.call("review", two).done()
    assert f"not compared with {one}" in " ".join(said.out.split())
    assert pair.ann.call("review", two, "--json").json["reviews"][0]["lost"] == [one]
