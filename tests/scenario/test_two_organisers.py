"""Two organisers, two machines, one history: what one did, the other goes on with."""

import sys
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import pytest
from lab import DAY, OTHER_TEAM, Patch, found_lab, git
from two_organisers import LATER, Pair, before_push, copy_pair, shell

from heldout.board.log.events import parse_log
from heldout.board.store import git as git_module
from heldout.board.store.vault import Vault
from heldout.cli import context

pytestmark = pytest.mark.night


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return copy_pair(tmp_path)


# sharing


def test_all_of_the_vault_is_shared_but_private_keys_and_what_is_this_machine_s(pair: Pair) -> None:
    one = pair.received()
    (pair.lab.root / "uploads").mkdir()
    (pair.lab.root / "uploads/20261102-half.tar.age").write_bytes(b"refused")
    pair.ann.call("inbox", "--from", f"{pair.lab.root}/uploads")
    assert (pair.ann.vault / "refused").exists()
    assert pair.ann.call("review", one).code == 0
    there = set(git(pair.remote, "ls-tree", "-r", "--name-only", "main").splitlines())
    sealed = {f"sealed/{path.name}" for path in (pair.ann.vault / "sealed").iterdir()}
    assert len(sealed) == 4
    assert there == {
        *(".gitattributes", ".gitignore", "events.jsonl", "labels/eval.qrels"),
        *(f"scores/{one}.json", f"signatures/{one}.npz"),
        *sealed,
    }
    git(pair.ann.vault, "add", "-A")
    assert git(pair.ann.vault, "status", "--porcelain") == ""
    every = git(pair.remote, "log", "--all", "-p", "--format=%H")
    assert "AGE-SECRET-KEY" not in every


def test_what_one_did_the_other_goes_on_with(pair: Pair) -> None:
    one = pair.received()
    published = pair.bob.call("publish", one, "--yes", now=LATER).done()
    assert "taken over from origin: event 2, received" in published.err
    again = pair.ann.call("publish", one, "--yes", now=LATER)
    assert "done before" in again.out
    assert pair.ann.log() == pair.bob.log() == pair.remote_log()
    assert pair.ann.is_sound()
    assert pair.bob.is_sound()
    by = [entry.event.by for entry in parse_log(pair.ann.log(), path="")]
    assert len(set(by)) == 2
    for name in ("sealed", "scores", "signatures", "labels"):
        ours, theirs = pair.ann.vault / name, pair.bob.vault / name
        assert {p.name: p.read_bytes() for p in ours.iterdir()} == {
            p.name: p.read_bytes() for p in theirs.iterdir()
        }


def test_a_vault_without_git_never_asks_git(tmp_path: Path, monkeypatch: Patch) -> None:
    lab = found_lab(tmp_path)
    monkeypatch.setattr(git_module, "subprocess", None)
    assert not Vault(lab.vault).is_shared()
    with Vault(lab.vault).locked() as news:
        assert news == ()


def test_events_from_before_a_vault_was_shared_are_sent(pair: Pair) -> None:
    """Bob copied the folder, and both went on in turn with the remote taken away."""
    git(pair.ann.vault, "remote", "remove", "origin")
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    git(pair.ann.vault, "remote", "add", "origin", "../private")
    assert "sent to origin, which lacked it: 2 events" in pair.ann.call("inbox").err
    assert pair.remote_log() == pair.ann.log()
    assert pair.bob.call("publish", one, "--yes").code == 0


def test_edited_labels_reach_the_other_with_their_event_and_not_before(pair: Pair) -> None:
    one = pair.received()
    assert pair.ann.call("publish", one, "--yes").code == 0
    labels, theirs = (o.vault / "labels/eval.qrels" for o in (pair.ann, pair.bob))
    before = theirs.read_bytes()
    labels.write_bytes(before.replace(b"deval3 1", b"n3-0 1"))
    pair.received("two", seed=2, team=OTHER_TEAM)
    assert pair.bob.call("rebuild").code == 0
    assert theirs.read_bytes() == before
    theirs.write_bytes(before.replace(b"deval4 1", b"n4-0 1"))
    assert pair.ann.call("correct", one, "--why", "a wrong label", now=LATER).code == 0
    left = pair.bob.state()
    pair.bob.call("rebuild", now=LATER).refused(
        "eval.qrels was edited here, and another organiser's labels came first"
    )
    assert pair.bob.state() == left
    theirs.unlink()
    assert pair.bob.call("rebuild", now=LATER).code == 0
    assert theirs.read_bytes() == labels.read_bytes()
    assert pair.bob.is_sound()


def test_edited_queries_reach_the_other_by_the_board_alone(pair: Pair) -> None:
    """The log has their digest only: nobody takes their own old file for an edit of it."""
    file = pair.ann.board / "queries/eval.tsv"
    right = file.read_text("utf-8").replace("thing 7 of eval", "thing 8 of eval")
    file.write_text(right, "utf-8")
    assert pair.ann.call("rebuild").code == 0
    assert pair.ann.kinds()[-1] == "changed-rules"
    assert pair.bob.board.joinpath("queries/eval.tsv").read_text("utf-8") != right
    for options in ((), ("--accept-rules",)):
        pair.bob.call("inbox", *options, now=LATER).refused(
            "queries/eval.tsv: another organiser logged another version"
        )
    git(pair.ann.board, "push", "-q", "origin", "main")
    git(pair.bob.board, "pull", "-q", "--ff-only", "origin", "main")
    assert pair.bob.call("inbox", now=LATER).code == 0
    assert pair.bob.is_sound()
    assert pair.ann.kinds()[-1] == "changed-rules"


# both at once


def test_who_was_second_is_judged_by_the_new_history(pair: Pair) -> None:
    """Bob rejects what Ann publishes, between her fetch and her push."""
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    before_push(pair.ann, shell(pair.bob, "reject", one, "--why", "no"))
    pair.ann.call("publish", one, "--yes").declined(
        f"another organiser was first: event 4, rejected {one}, by age1",
        "event 4 did not happen",
        "it is rejected",
    )
    assert pair.ann.kinds()[-2:] == ["reviewed", "rejected"]
    assert pair.ann.log() == pair.bob.log() == pair.remote_log()


def test_who_was_second_goes_on_where_nothing_stands_against_it(
    pair: Pair, monkeypatch: Patch
) -> None:
    """Also where the other's event is later than the moment at which the command began."""
    mine = pair.received("mine", seed=1)
    other = pair.received("other", seed=2, team=OTHER_TEAM)
    before_push(pair.ann, shell(pair.bob, "publish", other, "--yes", now=LATER))
    acted = pair.lab.root / "acted"
    began, after = datetime.fromisoformat(DAY), datetime.fromisoformat(LATER)
    monkeypatch.setattr(context, "read_clock", lambda: after if acted.exists() else began)
    said = pair.ann.call("publish", mine, "--yes", "--json", now=None).done()
    assert [row["done"] for row in said.json["decisions"]] == [True]
    assert pair.ann.kinds().count("published") == 2
    assert pair.bob.call("rebuild", now=LATER).code == 0
    assert pair.bob.log() == pair.ann.log()


def test_of_two_keys_made_at_once_the_first_one_holds(pair: Pair) -> None:
    """Both accept rules that need the key of a query set, each in a vault that has none."""
    for office in (pair.ann, pair.bob):
        office.edit(('rule = "rounded"', 'rule = "clear"'))
    before_push(pair.ann, shell(pair.bob, "rebuild", "--accept-rules", now=LATER))
    assert "another organiser was first" in pair.ann.call("rebuild", now=LATER).done().err
    key = (pair.bob.vault / "labels/eval.key").read_bytes()
    assert (pair.ann.vault / "labels/eval.key").read_bytes() == key
    assert pair.ann.kinds().count("changed-rules") == 1
    assert pair.ann.log() == pair.bob.log() == pair.remote_log()
    committed = parse_log(pair.ann.log(), path="")[-1].get("labels")
    assert committed["eval.key"] == sha256(key).hexdigest()


ASK = """
import sys, os
from datetime import datetime
from pathlib import Path
from heldout.board.log.events import Draft
from heldout.board.store.vault import Vault
vault = Vault(Path(sys.argv[1]))
told = {"public": {"why": f"Who are you, says process {os.getpid()}"}, "sealed": {}}
with vault.locked():
    draft = Draft(kind="asked", by="bob", submission=sys.argv[2], **told)
    vault.append(draft, now=datetime.fromisoformat(sys.argv[3]))
"""


def test_who_is_always_second_is_told_in_the_end(pair: Pair) -> None:
    mine = pair.received("mine", seed=1)
    other = pair.received("other", seed=2, team=OTHER_TEAM)
    (pair.lab.root / "ask.py").write_text(ASK)
    words = [sys.executable, str(pair.lab.root / "ask.py"), str(pair.bob.vault), other, DAY]
    acts = f"(unset GIT_DIR GIT_QUARANTINE_PATH; {' '.join(words)}) >&2"
    before_push(pair.ann, f"rm {pair.lab.root}/acted; {acts}")
    pair.ann.call("reject", mine, "--why", "no").refused(
        "error  3 times another organiser was first: event 6, asked"
    )
    assert pair.ann.kinds().count("rejected") == 0
    assert pair.bob.kinds().count("asked") == 3
