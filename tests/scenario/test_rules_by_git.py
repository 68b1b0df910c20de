"""board.toml that git brought: who may push to the board's main decides nothing by it.

Every administrator of the forge, every co-maintainer and every thief of a token can push there. The
rules hold by the log; what lies in the folder is an edit, until an organiser says yes to it.
"""

import base64
import hashlib
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lab import NEXT, OTHER_TEAM, Lab, environment, found_lab, git, prepared
from registering import AGREEMENT, ask_for_registration
from team_server import answering

from heldout.cli.program import main
from heldout.envelope.bundle import new_identity


@prepared
def lab(lab: Lab) -> None:
    """A board with one entry, known to everybody."""
    lab.enter("first", shared=True)


def push_rules(lab: Lab, edit: Callable[[str], str]) -> str:
    """Somebody who may push changes board.toml on main; the organiser and the team pull it."""
    lab.push()
    return push_file(lab, "board.toml", edit)


def push_file(lab: Lab, path: str, edit: Callable[[str], str]) -> str:
    """The same with any file; the new text."""
    thief = lab.root / "thief"
    if not thief.exists():
        lab.new_clone("thief")
    git(thief, "pull", "-q", "--ff-only", "origin", "main")
    file = thief / path
    text = edit(file.read_text("utf-8"))
    assert text != file.read_text("utf-8")
    file.write_text(text, "utf-8")
    git(thief, "commit", "-qam", "words")
    git(thief, "push", "-q", "origin", "main")
    git(lab.board, "pull", "-q", "--ff-only", "origin", "main")
    lab.pull()
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


def test_a_key_added_by_a_push(lab: Lab) -> None:
    """Neither side uses it: nothing is sealed for it, nothing is logged, and the audit says so."""
    stranger = new_identity("age").recipient
    push_rules(lab, lambda text: add_key(text, stranger))
    submission = lab.draft("second", now=NEXT, seed=2, team=OTHER_TEAM)
    warned = lab.participant("check", submission, now=NEXT)
    assert "board.toml here is not what the board's log has" in warned.out
    for sends in ("pack", "submit"):
        lab.participant(sends, submission, now=NEXT).refused(
            "other-keys  board.toml", "recipients = ", "ask the organisers"
        )
    assert not (lab.clone / ".git/heldout/keys" / submission).exists()
    assert not list((lab.clone / ".git/heldout/sealed").glob(f"{submission}*"))
    before = lab.kinds()
    for command in EVERY:
        for accepts in (False, True):
            lab.organiser(*command, now=NEXT, accepts=accepts).refused("heldout board rekey")
    assert lab.kinds() == before
    for place in (lab.board, lab.clone):
        audit = lab.call("audit", "--board", place, "--json").json
        assert not audit["ok"]
        assert any("recipients" in fault for fault in audit["faults"])
    assert lab.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).code == 0
    assert lab.audit()["ok"]
    lab.share()
    assert lab.participant("submit", submission, now=NEXT).code == 0
    assert [row["kind"] for row in lab.take_in(now=NEXT)["received"]] == ["received"]


def first_by_day(names: Iterable[str]) -> list[Any]:
    """The first of some cases, and the others at night."""
    first, *rest = names
    return [first, *(pytest.param(name, marks=pytest.mark.night) for name in rest)]


@pytest.mark.parametrize("attack", first_by_day(HOSTILE))
def test_rules_changed_by_a_push(lab: Lab, attack: str) -> None:
    """They are shown, need a yes, and decide nothing before it, on either side."""
    text = push_rules(lab, HOSTILE[attack])
    before = lab.kinds()
    for command in EVERY:
        lab.organiser(*command, now=NEXT, accepts=False).declined(
            "+++ board.toml", "--accept-rules"
        )
    assert lab.kinds() == before
    assert not lab.audit()["ok"]
    assert not lab.call("audit", "--board", lab.clone, "--json").json["ok"]
    submission = lab.draft("second", now=NEXT, seed=2)
    checked = lab.participant("check", submission, now=NEXT)
    assert "the log counts" in checked.out
    assert "of 2 used since" in checked.out
    assert lab.participant("submit", submission, now=NEXT).code == 0
    lab.organiser("inbox", "--accept-rules", now=NEXT, accepts=False).done()
    assert lab.kinds()[len(before) :] == ["changed-rules", "received"]
    assert lab.events()[-2]["public"]["board.toml"] == text
    assert lab.audit()["ok"]


def test_an_agreement_changed_by_a_push(tmp_path: Path) -> None:
    """No team comes to agree to a text that no organiser has read."""
    lab = found_lab(tmp_path)
    ask_for_registration(lab)
    thief = lab.new_clone("thief")
    (thief / "agreement.md").write_text("You owe us money.\x1b[2J\n", "utf-8")
    git(thief, "commit", "-qam", "words")
    git(thief, "push", "-q", "origin", "main")
    git(lab.board, "pull", "-q", "--ff-only", "origin", "main")
    before = lab.kinds()
    answer = lab.organiser("inbox", now=NEXT, accepts=False)
    assert (answer.code, lab.kinds()) == (1, before)
    assert "+You owe us money." in answer.err
    assert "\x1b" not in answer.err
    assert lab.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).code == 0
    assert (lab.board / "agreement.md").read_text("utf-8") == AGREEMENT
    assert lab.kinds() == before


FILES = {
    "a dev label": ("qrels/dev.qrels", replaced("ddev3 1", "ddev3 0")),
    "an eval query": ("queries/eval.tsv", replaced("thing 7 of eval", "thing 8 of eval")),
}


@pytest.mark.parametrize("attack", first_by_day(FILES))
def test_a_public_file_changed_by_a_push(lab: Lab, attack: str) -> None:
    """It is named, needs a yes, and no score is made with it before, on either side."""
    path, edit = FILES[attack]
    right = (lab.board / path).read_bytes()
    draft = lab.draft("second", now=NEXT, seed=2)
    assert lab.participant("check", draft, now=NEXT).code == 0
    push_file(lab, path, edit)
    before = lab.kinds()
    for command in EVERY:
        lab.organiser(*command, now=NEXT, accepts=False).declined(
            f"{path}  is not what the log has; later scores are made with it", "--accept-rules"
        )
    assert lab.kinds() == before
    for audit in (lab.audit(), lab.call("audit", "--board", lab.clone, "--json").json):
        (fault,) = audit["faults"]
        assert fault.startswith(f"{path} is not the file that the log has")
    for sends in (("check", draft), ("pack", draft), ("submit", draft), ("draft", "third")):
        answer = lab.participant(*sends, now=NEXT).refused(f"edited-file  {path}")
    assert not (lab.clone / ".git/heldout/keys" / draft).exists()
    # The error says how the file of the log comes back; then a team goes on before any deadline.
    commit = re.findall(rf"git checkout (\w+) -- {re.escape(path)}", answer.err)[0]
    git(lab.clone, "checkout", "-q", commit, "--", path)
    assert lab.participant("submit", draft, now=NEXT).code == 0
    git(lab.clone, "checkout", "-q", "HEAD", "--", path)
    # An organiser puts it back.
    lab.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).done()
    assert (lab.board / path).read_bytes() == right
    assert lab.kinds() == before
    assert lab.audit()["ok"]
    lab.share()
    assert lab.call("audit", "--board", lab.clone, "--json").json["ok"]


def test_a_public_file_that_was_accepted_is_logged_and_scored(lab: Lab) -> None:
    path, edit = FILES["a dev label"]
    push_file(lab, path, edit)
    answer = lab.organiser("rebuild", "--accept-rules", now=NEXT, accepts=False).done()
    event = lab.events()[-1]
    data = (lab.board / path).read_bytes()
    assert event["kind"] == "changed-rules"
    assert event["public"]["files"][path] == hashlib.sha256(data).hexdigest()
    assert set(event["public"]["files"]) == {
        "qrels/dev.qrels",
        "queries/dev.tsv",
        "queries/eval.tsv",
    }
    assert path in answer.out
    assert lab.audit()["ok"]
    lab.share()
    lab.enter("second", now=NEXT, seed=2)
    # A run of the lab has its answers at the same ranks in both sets: the label is the difference.
    first, last = (row["scores"] for row in lab.rows())
    assert first["dev"] == first["eval"]
    assert last["dev"] < last["eval"]
    assert lab.audit()["ok"]


def test_a_public_file_that_cannot_work_is_not_accepted(lab: Lab) -> None:
    file = lab.board / "queries/eval.tsv"
    right, before = file.read_text("utf-8"), lab.kinds()
    for edit in [replaced("eval7\t", ""), lambda _: "", replaced("eval", "oval")]:
        file.write_text(edit(right), "utf-8")
        lab.organiser("rebuild", "--accept-rules", now=NEXT, accepts=False).refused()
        assert lab.kinds() == before


def test_a_board_toml_that_cannot_be_read_is_put_back(lab: Lab) -> None:
    """One push may not lock the organisers out."""
    right = (lab.board / "board.toml").read_bytes()
    before = lab.kinds()
    for data in [b"name = \xff\n", b"name = 1\n", b"[[[[\n", b""]:
        (lab.board / "board.toml").write_bytes(data)
        assert lab.organiser("inbox", now=NEXT, accepts=False).code == 2
        assert lab.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).code == 0
        assert (lab.board / "board.toml").read_bytes() == right
        assert lab.kinds() == before


def test_a_person_is_asked(lab: Lab) -> None:
    push_rules(lab, HOSTILE["a quota of a thousand"])
    found = ["inbox", "--board", lab.board, "--vault", lab.vault, "--now", NEXT]
    runner = CliRunner(env=environment(lab.root))
    for said, code in (("n\n", 1), ("", 1), ("y\n", 0)):
        result = runner.invoke(main, [str(word) for word in found], input=said)
        assert result.exit_code == code, result.output
        assert "Log these rules, so that they hold from now on? [y/N]" in result.stderr
        assert re.search(r"policy.quota +may decide a score, a key or a quota", result.stderr)
        assert ("changed-rules" in lab.kinds()) == (code == 0)


def test_a_clone_that_is_behind_seals_for_the_keys_of_now(lab: Lab) -> None:
    """Its board.toml was in force once, so nothing is wrong with it; the remote's log counts."""
    args = ("board", "rekey", "--why", "a stolen laptop", "--destroy-old", "--yes")
    assert lab.organiser(*args, now=NEXT).code == 0
    lab.push()
    submission = lab.draft("second", now=NEXT, seed=2)
    assert lab.participant("submit", submission, now=NEXT).code == 0
    assert [row["kind"] for row in lab.take_in(now=NEXT)["received"]] == ["received"]
    assert lab.publish(submission, now=NEXT).code == 0


def test_a_remote_whose_history_was_rewritten_gets_nothing(lab: Lab, tmp_path: Path) -> None:
    """A log in which another event stands for one that the clone has seen names no key."""
    other = lab.copy(tmp_path / "other")
    for each, why in ((lab, "a stolen laptop"), (other, "a colleague leaves")):
        assert each.organiser("board", "rekey", "--why", why, "--yes", now=NEXT).code == 0
    lab.share()
    submission = lab.draft("second", now=NEXT, seed=2, team=OTHER_TEAM)
    git(lab.forge, "fetch", "-q", str(other.board), "+main:main")
    lab.participant("submit", submission, now=NEXT).refused(
        "history was rewritten, so nothing was sealed"
    )
    assert not (lab.clone / ".git/heldout/keys" / submission).exists()


def test_what_published_scores_fix_is_refused_in_a_clone_too(lab: Lab) -> None:
    """Before two teams have worked under rules that no inbox can ever take."""
    push_rules(lab, replaced('order = "msmarco"', 'order = "trec"'))
    submission = "20261102-first"
    for command in (("rebuild",), ("check", submission), ("submit", submission)):
        answer = lab.call(*command, "--board", lab.clone, "--now", NEXT)
        answer.refused("runs.order = ", "as before")


def test_a_page_made_in_a_clone_follows_the_log(lab: Lab) -> None:
    push_rules(lab, replaced('title = "board"', 'title = "Send money"'))
    lab.call("rebuild", "--board", lab.clone, "--now", NEXT).done('title: "board" -> "Send money"')
    assert "Send money" not in (lab.clone / "leaderboard/index.html").read_text("utf-8")


def test_without_its_log_a_clone_has_no_rules(lab: Lab) -> None:
    """Else whoever pushes the log's removal has the say."""
    submission = lab.draft("second", now=NEXT, seed=2)
    (lab.clone / "log.jsonl").unlink()
    lab.participant("check", submission, now=NEXT).refused("log.jsonl is missing or empty")


TOKEN = "ghp_aVerySecretToken"  # noqa: S105 - made up


def with_token(lab: Lab, *command: str, said: str = "") -> tuple[int, str]:
    """A command of an organiser whose environment has a token."""
    found = [*command, "--board", lab.board, "--vault", lab.vault, "--now", NEXT]
    env = {**environment(lab.root), "HELDOUT_FORGE_TOKEN": TOKEN}
    result = CliRunner(env=env).invoke(main, [str(word) for word in found], input=said)
    assert TOKEN not in result.output
    return result.exit_code, result.stderr


def is_told(heard: list[str]) -> bool:
    """Whether the token was among the headers, by itself or as a password."""
    basic = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    return any(TOKEN in line or basic in line for line in heard)


def forge_table(url: str) -> str:
    return f'\n[forge]\nkind = "forgejo"\nurl = "{url}"\nproject = "lab/board"\n'


def test_a_forge_changed_by_a_push_gets_no_token(lab: Lab) -> None:
    """Not even after an organiser said yes to the rules: the vault knows what the token is for."""
    heard: list[str] = []
    overheard: list[str] = []
    with answering(404, heard=heard) as own, answering(404, heard=overheard) as other:
        push_rules(lab, lambda text: text + forge_table(own))
        code, said = with_token(lab, "inbox", "--accept-rules", "--token-host", own)
        assert "the forge did not answer" in said
        assert is_told(heard)
        push_rules(lab, lambda text: text.replace(own, other))
        assert with_token(lab, "inbox")[0] == 1
        assert overheard == []
        code, said = with_token(lab, "inbox", "--accept-rules")
        assert code == 1
        assert f"HELDOUT_FORGE_TOKEN is for {own} and was not sent to {other}" in said
        assert with_token(lab, "inbox")[0] == 1
        assert not is_told(overheard)
        with_token(lab, "inbox", "--token-host", other)
        assert is_told(overheard)


def test_the_first_use_of_a_token_is_asked_for(lab: Lab) -> None:
    heard: list[str] = []
    with answering(404, heard=heard) as own:
        push_rules(lab, lambda text: text + forge_table(own))
        assert with_token(lab, "rebuild", "--accept-rules")[0] == 0
        for said, sent in (("n\n", False), ("", False), ("y\n", True)):
            code, found = with_token(lab, "inbox", said=said)
            assert code == 1
            assert f"Send HELDOUT_FORGE_TOKEN to {own}, now and from now on? [y/N]" in found
            assert is_told(heard) == sent
            assert (lab.vault / "identities" / "token-host").is_file() == sent


def test_a_public_file_without_a_version_in_git_is_named(lab: Lab) -> None:
    """The log has a digest and no text: what git lost comes back by hand."""
    path, edit = FILES["an eval query"]
    file = lab.board / path
    right = file.read_text("utf-8")
    shutil.rmtree(lab.board / ".git")
    file.write_text(edit(right), "utf-8")
    lab.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).refused(
        f"put {path} (SHA-256 "
    )
    file.write_text(right, "utf-8")
    assert lab.organiser("rebuild", "--restore-rules", now=NEXT, accepts=False).code == 0
