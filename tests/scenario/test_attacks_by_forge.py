"""Attacks by a forge that answers nonsense."""

import contextlib
from collections.abc import Iterator, Mapping

import pytest
from lab import NEXT, Lab, found_lab
from target import WAITING, all_played, contained, is_calm, unchanged
from team_server import answering

checked = all_played


NOWHERE = "a commit that is nowhere"  # as of a request that was taken back: nothing to tell
ONE = b'[{"number": 1, "title": "x", "user": null, "labels": [], "head": {"sha": "%s"}}]'
NONSENSE: Mapping[str, bytes] = {
    "a page to sign in": b"<!DOCTYPE html><script>alert(1)</script>",
    "nothing at all": b"",
    "an object for a list": b'{"message": "\x1b[31mred \xe2\x80\xae"}',
    "brackets without end": b"[" * 200_000,
    "9 MB": b'["' + b"x" * 9_000_000 + b'"]',
    "a commit that is an option": ONE % b"--upload-pack=touch canary;",
    NOWHERE: ONE % (b"f" * 40),
    "half an answer": ONE[:40],
}


said = [b""]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A board with one submission that waits, on a forge that answers nonsense."""
    lab = found_lab(tmp_path_factory.mktemp("lying"))
    json = "application/json"
    with answering(200, lambda: said[0], Content_Type=json) as url, contextlib.chdir(lab.root):
        with (lab.board / "board.toml").open("a", encoding="utf-8") as rules:
            rules.write(f'\n[forge]\nkind = "github"\nurl = "{url}"\nproject = "lab/board"\n')
        lab.send("second")
        inbox = lab.organiser("inbox", "--json")
        assert inbox.json["received"][0]["kind"] == "received"
        yield lab


@pytest.mark.parametrize("attack", NONSENSE)
def test_a_forge_that_answers_nonsense(lab: Lab, attack: str) -> None:
    """It is told in one line, and what came another way is not held up by it."""
    said[0] = NONSENSE[attack]
    with unchanged(lab):
        answer = lab.organiser("inbox", now=NEXT)
        assert answer.code == (attack != NOWHERE)
        assert is_calm(answer)
        assert ("the forge did not answer" in answer.err) == (attack != NOWHERE)
        assert WAITING in answer.out
    contained.add(f"a forge that answers with {attack}")


def test_a_forge_that_answers_nonsense_to_a_comment(lab: Lab) -> None:
    """Last of this forge: the event stands, the page follows, and the answer is still owed."""
    said[0] = b"<!DOCTYPE html>"
    found = lab.publish(WAITING, now=NEXT)
    assert (found.code, is_calm(found)) == (0, True)
    assert [row["id"] for row in lab.rows()] == [WAITING]
    assert lab.audit()["ok"]
    assert lab.nothing_ran()
    contained.add("a forge that answers nonsense to a comment")
