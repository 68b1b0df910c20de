"""board.toml that git brought: who may push to the board's main decides nothing by it.

Every administrator of the forge, every co-maintainer and every thief of a token can push there. The
rules hold by the log; what lies in the folder is an edit, until an organiser says yes to it.
"""

import base64
import contextlib
import hashlib
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from registering_town import AGREEMENT, ask_for_registration
from town import OTHER_TEAM, Town, call, copy_of, copy_town, environment, found_town, git

from heldout.cli.program import main
from heldout.envelope.bundle import new_identity

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A board with one entry, known to everybody."""
    town = found_town(tmp_path_factory.mktemp("started"))
    town.enter("first", now=DAY, shared=True)
    return town


town = copy_of("started")


def push_rules(town: Town, edit: Callable[[str], str]) -> str:
    """Somebody who may push changes board.toml on main; the organiser and the team pull it."""
    town.push()
    return push_file(town, "board.toml", edit)


def push_file(town: Town, path: str, edit: Callable[[str], str]) -> str:
    """The same with any file; the new text."""
    thief = town.root / "thief"
    if not thief.exists():
        town.new_clone("thief")
    git(thief, "pull", "-q", "--ff-only", "origin", "main")
    file = thief / path
    text = edit(file.read_text("utf-8"))
    assert text != file.read_text("utf-8")
    file.write_text(text, "utf-8")
    git(thief, "commit", "-qam", "words")
    git(thief, "push", "-q", "origin", "main")
    git(town.board, "pull", "-q", "--ff-only", "origin", "main")
    town.pull()
    return text


def replaced(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


def add_key(text: str, key: str) -> str:
    return re.sub(r'recipients = \["(\w+)"\]', rf'recipients = ["\1", "{key}"]', text)


HOSTILE = {
    "a quota of a thousand": replaced("quota = 2", "quota = 1000"),
    "rules switched off": replaced("off = []", 'off = ["quota", "same-run", "others-run"]'),
    "a release that lets anybody try often": replaced("submissions = 300", "submissions = 100000"),
}
EVERY = (("inbox",), ("rebuild",), ("review", "20261102-first"), ("board", "teams"))


def test_a_key_added_by_a_push(town: Town) -> None:
    """Neither side uses it: nothing is sealed for it, nothing is logged, and the audit says so."""
    stranger = new_identity("age").recipient
    push_rules(town, lambda text: add_key(text, stranger))
    submission = town.draft("second", now=NEXT, seed=2, team=OTHER_TEAM)
    warned = town.participant("check", submission, now=NEXT)
    assert "board.toml here is not what the board's log has" in warned.out
    for sends in ("pack", "submit"):
        answer = town.participant(sends, submission, now=NEXT)
        assert answer.code == 2, answer
        assert "other-keys  board.toml" in answer.err
        assert "recipients = " in answer.err
        assert "ask the organisers" in answer.err
    assert not (town.clone / ".git/heldout/keys" / submission).exists()
    assert not list((town.clone / ".git/heldout/sealed").glob(f"{submission}*"))
    before = town.kinds()
    for command in EVERY:
        for accepts in (False, True):
            refused = town.organiser(*command, now=NEXT, accepts=accepts)
            assert refused.code == 2, command
            assert "heldout board rekey" in refused.err
    assert town.kinds() == before
    for place in (town.board, town.clone):
        audit = call(town.root, "audit", "--board", place, "--json").json
        assert not audit["ok"]
        assert any("recipients" in fault for fault in audit["faults"])
    assert town.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).code == 0
    assert town.audit()["ok"]
    town.share()
    assert town.participant("submit", submission, now=NEXT).code == 0
    assert [row["kind"] for row in town.take_in(now=NEXT)["received"]] == ["received"]


@pytest.mark.parametrize("attack", HOSTILE)
def test_rules_changed_by_a_push(town: Town, attack: str) -> None:
    """They are shown, need a yes, and decide nothing before it, on either side."""
    text = push_rules(town, HOSTILE[attack])
    before = town.kinds()
    for command in EVERY:
        answer = town.organiser(*command, now=NEXT, accepts=False)
        assert answer.code == 1, (command, answer)
        assert "+++ board.toml" in answer.err
        assert "--accept-rules" in answer.err
    assert town.kinds() == before
    assert not town.audit()["ok"]
    assert not call(town.root, "audit", "--board", town.clone, "--json").json["ok"]
    submission = town.draft("second", now=NEXT, seed=2)
    checked = town.participant("check", submission, now=NEXT)
    assert "the log counts" in checked.out
    assert "of 2 used since" in checked.out
    assert town.participant("submit", submission, now=NEXT).code == 0
    town.organiser("inbox", "--accept-rules", now=NEXT, accepts=False).done()
    assert town.kinds()[len(before) :] == ["changed-rules", "received"]
    assert town.events()[-2]["public"]["board.toml"] == text
    assert town.audit()["ok"]


def test_an_agreement_changed_by_a_push(tmp_path: Path) -> None:
    """No team comes to agree to a text that no organiser has read."""
    town = found_town(tmp_path)
    ask_for_registration(town)
    thief = town.new_clone("thief")
    (thief / "agreement.md").write_text("You owe us money.\x1b[2J\n", "utf-8")
    git(thief, "commit", "-qam", "words")
    git(thief, "push", "-q", "origin", "main")
    git(town.board, "pull", "-q", "--ff-only", "origin", "main")
    before = town.kinds()
    answer = town.organiser("inbox", now=NEXT, accepts=False)
    assert (answer.code, town.kinds()) == (1, before)
    assert "+You owe us money." in answer.err
    assert "\x1b" not in answer.err
    assert town.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).code == 0
    assert (town.board / "agreement.md").read_text("utf-8") == AGREEMENT
    assert town.kinds() == before


FILES = {
    "a dev label": ("qrels/dev.qrels", replaced("ddev3 1", "ddev3 0")),
    "an eval query": ("queries/eval.tsv", replaced("thing 7 of eval", "thing 8 of eval")),
}


@pytest.mark.parametrize("attack", FILES)
def test_a_public_file_changed_by_a_push(town: Town, attack: str) -> None:
    """It is named, needs a yes, and no score is made with it before, on either side."""
    path, edit = FILES[attack]
    right = (town.board / path).read_bytes()
    draft = town.draft("second", now=NEXT, seed=2)
    assert town.participant("check", draft, now=NEXT).code == 0
    push_file(town, path, edit)
    before = town.kinds()
    for command in EVERY:
        answer = town.organiser(*command, now=NEXT, accepts=False)
        assert answer.code == 1, (command, answer)
        assert f"{path}  is not what the log has; later scores are made with it" in answer.err
        assert "--accept-rules" in answer.err
    assert town.kinds() == before
    for audit in (town.audit(), call(town.root, "audit", "--board", town.clone, "--json").json):
        (fault,) = audit["faults"]
        assert fault.startswith(f"{path} is not the file that the log has")
    for sends in (("check", draft), ("pack", draft), ("submit", draft), ("draft", "third")):
        answer = town.participant(*sends, now=NEXT)
        assert answer.code == 2, (sends, answer)
        assert f"edited-file  {path}" in answer.err
    assert not (town.clone / ".git/heldout/keys" / draft).exists()
    # The error says how the file of the log comes back; then a team goes on before any deadline.
    commit = re.findall(rf"git checkout (\w+) -- {re.escape(path)}", answer.err)[0]
    git(town.clone, "checkout", "-q", commit, "--", path)
    assert town.participant("submit", draft, now=NEXT).code == 0
    git(town.clone, "checkout", "-q", "HEAD", "--", path)
    # An organiser puts it back.
    town.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).done()
    assert (town.board / path).read_bytes() == right
    assert town.kinds() == before
    assert town.audit()["ok"]
    town.share()
    assert call(town.root, "audit", "--board", town.clone, "--json").json["ok"]
    git(town.clone, "checkout", "-q", "HEAD", "--", path)
    # An organiser puts it back.
    town.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).done()
    assert (town.board / path).read_bytes() == right
    assert town.kinds() == before
    assert town.audit()["ok"]
    town.share()
    assert call(town.root, "audit", "--board", town.clone, "--json").json["ok"]


def test_a_public_file_that_was_accepted_is_logged_and_scored(town: Town) -> None:
    path, edit = FILES["a dev label"]
    push_file(town, path, edit)
    answer = town.organiser("rebuild", "--accept-rules", now=NEXT, accepts=False).done()
    event = town.events()[-1]
    data = (town.board / path).read_bytes()
    assert event["kind"] == "changed-rules"
    assert event["public"]["files"][path] == hashlib.sha256(data).hexdigest()
    assert set(event["public"]["files"]) == {
        "qrels/dev.qrels",
        "queries/dev.tsv",
        "queries/eval.tsv",
    }
    assert path in answer.out
    assert town.audit()["ok"]
    town.share()
    town.enter("second", now=NEXT, seed=2)
    # A run of the town has its answers at the same ranks in both sets: the label is the difference.
    first, last = (row["scores"] for row in town.rows())
    assert first["dev"] == first["eval"]
    assert last["dev"] < last["eval"]
    assert town.audit()["ok"]


def test_a_public_file_that_cannot_work_is_not_accepted(town: Town) -> None:
    file = town.board / "queries/eval.tsv"
    right, before = file.read_text("utf-8"), town.kinds()
    for edit in [replaced("eval7\t", ""), lambda _: "", replaced("eval", "oval")]:
        file.write_text(edit(right), "utf-8")
        answer = town.organiser("rebuild", "--accept-rules", now=NEXT, accepts=False)
        assert answer.code == 2, answer
        assert town.kinds() == before


def test_a_board_toml_that_cannot_be_read_is_put_back(town: Town) -> None:
    """One push may not lock the organisers out."""
    right = (town.board / "board.toml").read_bytes()
    before = town.kinds()
    for data in [b"name = \xff\n", b"name = 1\n", b"[[[[\n", b""]:
        (town.board / "board.toml").write_bytes(data)
        assert town.organiser("inbox", now=NEXT, accepts=False).code == 2
        assert town.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).code == 0
        assert (town.board / "board.toml").read_bytes() == right
        assert town.kinds() == before


@pytest.mark.parametrize(("said", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_a_person_is_asked(town: Town, said: str, code: int) -> None:
    push_rules(town, HOSTILE["a quota of a thousand"])
    told = ["inbox", "--board", town.board, "--vault", town.vault, "--now", NEXT]
    runner = CliRunner(env=environment(town.root))
    result = runner.invoke(main, [str(word) for word in told], input=said)
    assert result.exit_code == code, result.output
    assert "Log these rules, so that they hold from now on? [y/N]" in result.stderr
    assert re.search(r"policy.quota +may decide a score, a key or a quota", result.stderr)
    assert ("changed-rules" in town.kinds()) == (code == 0)


def test_a_clone_that_is_behind_seals_for_the_keys_of_now(town: Town) -> None:
    """Its board.toml was in force once, so nothing is wrong with it; the remote's log counts."""
    told = ("board", "rekey", "--why", "a stolen laptop", "--destroy-old", "--yes")
    assert town.organiser(*told, now=NEXT).code == 0
    town.push()
    submission = town.draft("second", now=NEXT, seed=2)
    assert town.participant("submit", submission, now=NEXT).code == 0
    assert [row["kind"] for row in town.take_in(now=NEXT)["received"]] == ["received"]
    assert town.publish(submission, now=NEXT).code == 0


def test_a_remote_whose_history_was_rewritten_gets_nothing(town: Town, tmp_path: Path) -> None:
    """A log in which another event stands for one that the clone has seen names no key."""
    other = copy_town(town, tmp_path / "other")
    for each, why in ((town, "a stolen laptop"), (other, "a colleague leaves")):
        assert each.organiser("board", "rekey", "--why", why, "--yes", now=NEXT).code == 0
    town.share()
    submission = town.draft("second", now=NEXT, seed=2, team=OTHER_TEAM)
    git(town.forge, "fetch", "-q", str(other.board), "+main:main")
    answer = town.participant("submit", submission, now=NEXT)
    assert answer.code == 2, answer
    assert "history was rewritten, so nothing was sealed" in answer.err
    assert not (town.clone / ".git/heldout/keys" / submission).exists()


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('order = "msmarco"', 'order = "trec"', "runs.order"),
        ("decimals = 3", "decimals = 6", "decimals"),
        ('primary = "eval"', 'primary = "dev"', "primary"),
    ],
)
def test_what_published_scores_fix_is_refused_in_a_clone_too(
    town: Town, old: str, new: str, key: str
) -> None:
    """Before two teams have worked under rules that no inbox can ever take."""
    push_rules(town, replaced(old, new))
    submission = "20261102-first"
    for command in (("rebuild",), ("check", submission), ("submit", submission)):
        answer = call(town.root, *command, "--board", town.clone, "--now", NEXT)
        assert answer.code == 2, (command, answer)
        assert f"{key} = " in answer.err
        assert "as before" in answer.err


def test_a_page_made_in_a_clone_follows_the_log(town: Town) -> None:
    push_rules(town, replaced('title = "board"', 'title = "Send money"'))
    answer = call(town.root, "rebuild", "--board", town.clone, "--now", NEXT).done()
    assert 'title: "board" -> "Send money"' in answer.out
    assert "Send money" not in (town.clone / "leaderboard/index.html").read_text("utf-8")


def test_without_its_log_a_clone_has_no_rules(town: Town) -> None:
    """Else whoever pushes the log's removal has the say."""
    submission = town.draft("second", now=NEXT, seed=2)
    (town.clone / "log.jsonl").unlink()
    answer = town.participant("check", submission, now=NEXT)
    assert answer.code == 2
    assert "log.jsonl is missing or empty" in answer.err


TOKEN = "ghp_aVerySecretToken"  # noqa: S105 - made up


@contextlib.contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """A server that says no to everything: its address, and every header that it was sent."""
    heard: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Quiet."""

        def do_GET(self) -> None:
            heard.extend(f"{name}: {value}" for name, value in self.headers.items())
            self.send_error(404)

        do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815 - their names there

    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", heard
        server.shutdown()


def with_token(town: Town, *command: str, said: str = "") -> tuple[int, str]:
    """A command of an organiser whose environment has a token."""
    told = [*command, "--board", town.board, "--vault", town.vault, "--now", NEXT]
    env = {**environment(town.root), "HELDOUT_FORGE_TOKEN": TOKEN}
    result = CliRunner(env=env).invoke(main, [str(word) for word in told], input=said)
    assert TOKEN not in result.output
    return result.exit_code, result.stderr


def is_told(heard: list[str]) -> bool:
    """Whether the token was among the headers, by itself or as a password."""
    basic = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    return any(TOKEN in line or basic in line for line in heard)


def forge_table(url: str) -> str:
    return f'\n[forge]\nkind = "forgejo"\nurl = "{url}"\nproject = "lab/board"\n'


def test_a_forge_changed_by_a_push_gets_no_token(town: Town) -> None:
    """Not even after an organiser said yes to the rules: the vault knows what the token is for."""
    with listening() as (own, heard), listening() as (other, overheard):
        push_rules(town, lambda text: text + forge_table(own))
        code, told = with_token(town, "inbox", "--accept-rules", "--token-host", own)
        assert "the forge did not answer" in told
        assert is_told(heard)
        push_rules(town, lambda text: text.replace(own, other))
        assert with_token(town, "inbox")[0] == 1
        assert overheard == []
        code, told = with_token(town, "inbox", "--accept-rules")
        assert code == 1
        assert f"HELDOUT_FORGE_TOKEN is for {own} and was not sent to {other}" in told
        assert with_token(town, "inbox")[0] == 1
        assert not is_told(overheard)
        with_token(town, "inbox", "--token-host", other)
        assert is_told(overheard)


@pytest.mark.parametrize(("said", "sent"), [("y\n", True), ("n\n", False), ("", False)])
def test_the_first_use_of_a_token_is_asked_for(town: Town, said: str, sent: bool) -> None:  # noqa: FBT001 - a case
    with listening() as (own, heard):
        push_rules(town, lambda text: text + forge_table(own))
        assert with_token(town, "rebuild", "--accept-rules")[0] == 0
        code, told = with_token(town, "inbox", said=said)
        assert code == 1
        assert f"Send HELDOUT_FORGE_TOKEN to {own}, now and from now on? [y/N]" in told
        assert is_told(heard) == sent
        assert (town.vault / "identities" / "token-host").is_file() == sent


def test_a_public_file_without_a_version_in_git_is_named(town: Town) -> None:
    """The log has a digest and no text: what git lost comes back by hand."""
    path, edit = FILES["an eval query"]
    file = town.board / path
    right = file.read_text("utf-8")
    shutil.rmtree(town.board / ".git")
    file.write_text(edit(right), "utf-8")
    answer = town.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False)
    assert answer.code == 2, answer
    assert f"put {path} (SHA-256 " in answer.err
    file.write_text(right, "utf-8")
    assert town.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).code == 0
