"""Attacks by a forge that answers nonsense."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from stage import DAY, LATER, Stage, check_all_played, is_calm, unchanged
from town import found_town

pytestmark = pytest.mark.slow
contained: set[str] = set()


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


class Nonsense(BaseHTTPRequestHandler):
    """Says the same to whatever it is asked."""

    answer = b""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Quiet."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        with contextlib.suppress(OSError):  # who has read enough hangs up
            self.wfile.write(self.answer)

    do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815 - their names there


@pytest.fixture(scope="module")
def lying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A board with one submission that waits, on a forge that answers nonsense."""
    town = found_town(tmp_path_factory.mktemp("lying"))
    with ThreadingHTTPServer(("127.0.0.1", 0), Nonsense) as server, contextlib.chdir(town.root):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        rules = town.board / "board.toml"
        url = f"http://127.0.0.1:{server.server_port}"
        table = f'\n[forge]\nkind = "github"\nurl = "{url}"\nproject = "lab/board"\n'
        rules.write_text(rules.read_text("utf-8") + table, "utf-8")
        waiting = town.send("first", now=DAY)
        inbox = town.organiser("inbox", "--json", now=DAY)
        assert inbox.json["received"][0]["kind"] == "received"
        yield Stage(town=town, published="", waiting=waiting)
        server.shutdown()


@pytest.mark.parametrize("attack", NONSENSE)
def test_a_forge_that_answers_nonsense(
    lying: Stage, monkeypatch: pytest.MonkeyPatch, attack: str
) -> None:
    """It is told in one line, and what came another way is not held up by it."""
    monkeypatch.setattr(Nonsense, "answer", NONSENSE[attack])
    with unchanged(lying):
        answer = lying.town.organiser("inbox", now=LATER)
        assert answer.code == (attack != NOWHERE)
        assert is_calm(answer)
        assert ("the forge did not answer" in answer.err) == (attack != NOWHERE)
        assert lying.waiting in answer.out
    contained.add(f"a forge that answers with {attack}")


def test_a_forge_that_answers_nonsense_to_a_comment(
    lying: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Last of this forge: the event stands, the page follows, and the answer is still owed."""
    monkeypatch.setattr(Nonsense, "answer", b"<!DOCTYPE html>")
    told = lying.town.publish(lying.waiting, now=LATER)
    assert (told.code, is_calm(told)) == (0, True)
    assert [row["id"] for row in lying.town.rows()] == [lying.waiting]
    assert lying.town.audit()["ok"]
    assert lying.nothing_ran()
    contained.add("a forge that answers nonsense to a comment")


def test_all_attacks_are_contained(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Last: all that the table says of this module was played."""
    check_all_played(contained, request, capsys)
