"""A small board with everybody around it: organiser, forge, two clones; every call is a command.

`found_lab` copies a board of 30 dev and 30 eval queries that was founded once per session.
Commands run in process through click; nothing may end in a traceback.
"""

import atexit
import functools
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from heldout.board.log.events import EventSignature, event_message
from heldout.board.participant.draft import read_metadata
from heldout.board.participant.send import pack, submit
from heldout.board.store.repository import Repository
from heldout.board.store.sharing import DERIVED_FOLDERS
from heldout.board.store.vault import Vault
from heldout.cli.program import main
from heldout.envelope.keys import public_key, sign
from heldout.ids import Digest, parse_submission_id

FOUNDED = "2026-11-01T09:00:00Z"
DAY = "2026-11-02T10:00:00Z"
"""The moment of every command for which none is given."""
NEXT = "2026-11-03T10:00:00Z"
LAST = "2026-12-02T10:00:00Z"
TEAM: Mapping[str, Any] = {
    "team": "Lighthouse Retrieval Group",
    "institution": "Lighthouse Institute",
    "model_description": "monoT5 over the first stage",
    "paper": "https://example.org/paper",
    "code": "",
    "training_data": "dev queries",
}
OTHER_TEAM: Mapping[str, Any] = {
    **TEAM,
    "team": "North Coast Search",
    "institution": "North Coast University",
    "paper": "https://example.org/another-paper",
}
QUERIES = 30
Patch = pytest.MonkeyPatch
Team = Mapping[str, Any]


def named(team: str) -> Team:
    """One more team, with an institution and a paper of its own."""
    paper = f"https://example.org/papers/{team.lower()}"
    return {**TEAM, "team": f"{team} Team", "institution": f"{team} University", "paper": paper}


# Many small repositories: without sample hooks and without waiting for the disk.
_GITCONFIG = """\
[user]
\tname = Someone Here
\temail = someone@here
[core]
\tfsync = none
[init]
\ttemplateDir =
"""


_RESERVE = """
[[views]]
name = "reserve"
set = "eval"
measure = "RR@10"
queries = "labels/eval.tail"
public = false
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)

    def done(self, *words: str) -> "Answer":
        """The same answer, which has to be one of success and to print these words."""
        return self._is(0, self.out, words)

    def declined(self, *words: str) -> "Answer":
        """The same, of a command that was understood and whose answer is no, with these words."""
        return self._is(1, self.out + self.err, words)

    def refused(self, *words: str) -> "Answer":
        """The same, of a command that says why it cannot be, and prints nothing else."""
        assert self.out == "", self
        return self._is(2, self.err, words)

    def _is(self, code: int, text: str, words: Sequence[str]) -> "Answer":
        assert self.code == code, self
        assert not [word for word in words if word not in text], (words, self)
        return self


def environment(home: Path) -> dict[str, str]:
    """An environment in which git knows no settings but those below `home`."""
    left = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "HELDOUT_", "XDG_"))}
    return {**left, "HOME": str(home), "LC_ALL": "C.UTF-8"}


def git(folder: Path, *arguments: str, data: bytes | None = None) -> str:
    """Run git for a test, not through heldout."""
    env = environment(folder.parent)
    result = subprocess.run(
        ["git", *arguments], cwd=folder, input=data, capture_output=True, env=env, check=False
    )
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout.decode(errors="replace").strip()


def call(home: Path, *arguments: str | Path) -> Answer:
    """Call heldout in process; no bug may show."""
    clean = dict.fromkeys(
        (k for k in os.environ if k.startswith(("GIT_", "HELDOUT_", "XDG_"))), None
    )
    runner = CliRunner(env={**clean, "HOME": str(home)})
    result = runner.invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1, 2), arguments
    assert "Traceback" not in result.output
    return Answer(code=result.exit_code, out=result.stdout, err=result.stderr)


def run_text(query_set: str, seed: int) -> str:
    """A complete run of depth 5; the relevant document is somewhere in it.

    Two seeds have no other document in common: that runs are alike is for the tests of that.
    """
    rng = random.Random(seed)  # noqa: S311 - made-up runs, not keys
    lines = []
    for number in range(QUERIES):
        documents = [f"n{number}-{4 * seed - 4 + i}" for i in range(4)]
        documents.insert(rng.randrange(5), f"d{query_set}{number}")
        lines += [f"{query_set}{number}\t{d}\t{rank}" for rank, d in enumerate(documents, 1)]
    return "\n".join(lines) + "\n"


def write_inputs(folder: Path) -> None:
    """Queries and labels of both sets."""
    for name in ("dev", "eval"):
        numbers = range(QUERIES)
        queries = "".join(f"{name}{i}\twhat is thing {i} of {name}\n" for i in numbers)
        (folder / f"{name}.tsv").write_text(queries)
        qrels = "".join(f"{name}{i} 0 d{name}{i} 1\n" for i in numbers)
        (folder / f"{name}.qrels").write_text(qrels)


def founding(folder: Path) -> list[str | Path]:
    """The command that founds the board of a lab."""
    sets = [folder / f"{name}.{kind}" for name in ("dev", "eval") for kind in ("tsv", "qrels")]
    said: list[str | Path] = ["--dev", *sets[:2], "--eval", *sets[2:], "--now", FOUNDED]
    return ["board", "new", folder / "board", "--vault", folder / "vault", *said]


_AT_DESK = (
    *("archive", "ask", "correct", "extend", "inbox", "publish", "rebuild", "reject", "review"),
    *("baseline", "final", "finalists", "maintain", "rekey", "revoke", "teams"),
)
"""Commands that sit at the organiser's session, of `heldout board` and `heldout prefer` too."""


def accepting(vault: Path, *arguments: str | Path) -> tuple[str, ...]:
    """The option by which an organiser says yes to an edit of their own."""
    name = arguments[1 if arguments[0] in ("board", "prefer") else 0]
    at_desk = name in _AT_DESK and "--shard" not in arguments
    return ("--accept-rules",) if at_desk and (vault / "events.jsonl").is_file() else ()


@dataclass(frozen=True, slots=True)
class Lab:
    """A board, its vault, a forge that both sides know, and a participant's clone."""

    root: Path

    @property
    def board(self) -> Path:
        return self.root / "board"

    @property
    def vault(self) -> Path:
        return self.root / "vault"

    @property
    def clone(self) -> Path:
        return self.root / "clone"

    @property
    def states(self) -> Path:
        """Where the state of boards that are no clones of git lies."""
        return self.root / ".local" / "state" / "heldout"

    @property
    def forge(self) -> Path:
        return self.root / "forge"

    def options(self, *, now: str = DAY) -> list[str]:
        """Those of every command of the organiser."""
        return ["--board", f"{self.board}", "--vault", f"{self.vault}", "--now", now]

    def organiser(self, *arguments: str | Path, now: str = DAY, accepts: bool = True) -> Answer:
        """A command of the organiser, who accepts every edit of the rules unless told otherwise."""
        told = self.options(now=now)
        accept = accepting(self.vault, *arguments) if accepts else ()
        return call(self.root, *arguments, *told, *accept)

    def participant(
        self, *arguments: str | Path, now: str = DAY, clone: Path | None = None
    ) -> Answer:
        return call(self.root, *arguments, "--board", clone or self.clone, "--now", now)

    def call(self, *arguments: str | Path) -> Answer:
        return call(self.root, *arguments)

    def copy(self, folder: Path) -> "Lab":
        """A copy in another folder, whose clones know the forge there."""
        lab = Lab(folder / "lab")
        shutil.copytree(self.root, lab.root, symlinks=True)
        for clone in (lab.board, lab.clone):
            git(clone, "remote", "set-url", "origin", str(lab.forge))
        return lab

    def new_clone(self, name: str) -> Path:
        git(self.root, "clone", "-q", "--template=", str(self.forge), name)
        return self.root / name

    def draft(
        self,
        name: str,
        *,
        now: str = DAY,
        seed: int = 1,
        clone: Path | None = None,
        team: Team = TEAM,
        embargo: str | None = None,
    ) -> str:
        """Draft and fill in a submission; returns its id."""
        for query_set in ("dev", "eval"):
            (self.root / f"{query_set}.run").write_text(run_text(query_set, seed))
        runs = ("--dev", self.root / "dev.run", "--eval", self.root / "eval.run")
        args = ("--embargo", embargo) if embargo else ()
        answer = self.participant("draft", name, *runs, *args, "--json", now=now, clone=clone)
        submission = str(answer.json["id"])
        self.fill(submission, clone=clone, **team)
        return submission

    def fill(self, submission: str, *, clone: Path | None = None, **fields: Any) -> None:
        """Write fields into a draft's metadata."""
        own = Repository(clone or self.clone, self.states).state
        file = own.path(f"drafts/{submission}/metadata.json")
        file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))

    def send(self, name: str, *, now: str = DAY, clone: Path | None = None, **draft: Any) -> str:
        """Draft, fill in and submit by branch; returns the id."""
        submission = self.draft(name, now=now, clone=clone, **draft)
        self.participant("submit", submission, now=now, clone=clone).done()
        return submission

    def send_unchecked(self, submission: str, *, now: str = DAY) -> None:
        """Seal and push a draft that `check` would refuse, as other tools could."""
        repository = Repository(self.clone)
        name = parse_submission_id(submission)
        packed = pack(repository, name, read_metadata(repository, name))
        moment = datetime.fromisoformat(now)
        branch = submit(repository, name, packed, embargoed=True, now=moment)
        git(self.clone, "push", "-q", "origin", f"+{branch}:{branch}")

    def take_in(self, *, now: str = DAY) -> Mapping[str, Any]:
        """`heldout inbox --json`."""
        answer = self.organiser("inbox", "--json", now=now).done()
        document: Mapping[str, Any] = answer.json
        return document

    def receive(self, name: str, *, now: str = DAY, **draft: Any) -> str:
        """Send a submission and take it in; returns the id."""
        submission = self.send(name, now=now, **draft)
        self.take_in(now=now)
        return submission

    def publish(self, *submissions: str, now: str = DAY) -> Answer:
        return self.organiser("publish", *submissions, "--yes", now=now)

    def enter(
        self, name: str, *, now: str = DAY, decided: str = "", shared: bool = False, **draft: Any
    ) -> str:
        """Send, take in and publish a submission, and share that; returns the id."""
        submission = self.receive(name, now=now, **draft)
        self.publish(submission, now=decided or now).done()
        if shared:
            self.share()
        return submission

    def edit(self, *changes: tuple[str, str], more: str = "") -> str:
        """The organiser edits board.toml, or appends to it; returns the new text."""
        return edit_rules(self.board, *changes, more=more)

    def rule(self, *changes: tuple[str, str], now: str = DAY, more: str = "") -> None:
        """Edit board.toml, or append to it, and have it hold for everybody."""
        self.edit(*changes, more=more)
        self.organiser("rebuild", now=now).done()
        self.share()

    def archive(self, *options: str | Path, now: str = LAST) -> Path:
        """Close the board: its archive, sound for who has nothing else."""
        file = self.root / "kb.zip"
        self.organiser("archive", file, "--yes", *options, now=now).done()
        assert call(self.root, "audit", file, "--json", "--now", now).json["faults"] == []
        return file

    def repair(self, old: str = "deval3 1", new: str = "n3-0 1") -> Path:
        """Change a held-out label in the vault; returns the file."""
        labels = self.vault / "labels" / "eval.qrels"
        text = labels.read_text()
        assert old in text
        labels.write_text(text.replace(old, new))
        return labels

    def push(self) -> None:
        """The organiser puts the board on the forge."""
        git(self.board, "push", "-q", "origin", "main")

    def share(self, clone: Path | None = None) -> None:
        """The same, and a clone pulls it."""
        self.push()
        self.pull(clone)

    def pull(self, clone: Path | None = None) -> None:
        git(clone or self.clone, "pull", "-q", "--ff-only", "origin", "main")

    def events(self) -> list[dict[str, Any]]:
        """Events of the vault's log."""
        lines = (self.vault / "events.jsonl").read_text().splitlines()
        return [json.loads(line)["event"] for line in lines]

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events()]

    def state(self) -> Mapping[str, bytes]:
        """Vault and board, but for git's files and what the vault can make again at any time."""
        files = [p for r in (self.vault, self.board) for p in r.rglob("*") if p.is_file()]
        own = self.board / ".git" / "heldout"
        left = {".git", "lock", "refused", *DERIVED_FOLDERS}
        rest = {
            str(p): p.read_bytes()
            for p in files
            if not left & set(p.relative_to(own if p.is_relative_to(own) else self.root).parts)
        }
        said = [git(self.board, *words) for words in (("rev-parse", "HEAD"), ("status", "-s"))]
        config = (self.board / ".git" / "config").read_bytes()
        return {**rest, "HEAD": "\n".join(said).encode(), "config": config}

    def nothing_ran(self) -> bool:
        return not [p for p in self.root.rglob("canary") if ".git" not in p.parts]

    def rows(self) -> list[dict[str, Any]]:
        """Rows of leaderboard.json."""
        file = self.board / "leaderboard" / "leaderboard.json"
        rows: list[dict[str, Any]] = json.loads(file.read_text())["rows"]
        return rows

    def audit(self) -> Mapping[str, Any]:
        """`heldout audit --json`, with the vault; without what is so on every board."""
        answer = self.organiser("audit", "--json", now=FOUNDED)
        document: Mapping[str, Any] = answer.json
        assert document["ok"] == (answer.code == 0)
        fixed = ("checked", "unchecked", "signers", "stamps", "receipts")
        return {name: said for name, said in document.items() if name not in fixed}


def edit_rules(board: Path, *changes: tuple[str, str], more: str = "") -> str:
    """Put new texts in place of old ones in board.toml, where these have to be; the new text."""
    file = board / "board.toml"
    text = file.read_text("utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file.write_text(text + more, "utf-8")
    return text + more


def found_lab(folder: Path) -> Lab:
    """A copy of the founded board, with forge and clone, in an empty folder."""
    return Lab(_template()).copy(folder)


@pytest.fixture
def fresh_lab(tmp_path: Path) -> Lab:
    """A board that was founded, and nothing else yet; for a test alone."""
    return found_lab(tmp_path)


def session_folder(name: str) -> Path:
    """A folder that goes when the tests end."""
    folder = Path(tempfile.mkdtemp(prefix=f"heldout-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def build_once(build: Callable[[Lab], object]) -> Callable[[], Lab]:
    """Return a function that has a founded board changed by another one, once per session."""

    @functools.cache
    def built() -> Lab:
        lab = found_lab(session_folder("lab"))
        build(lab)
        return lab

    return built


def prepared(build: Callable[[Lab], object]) -> Any:
    """Return a fixture: for each test a copy of a board that a function prepares once."""
    built = build_once(build)

    @pytest.fixture
    def copied(tmp_path: Path) -> Lab:
        return built().copy(tmp_path)

    return copied


@functools.cache
def _template() -> Path:
    root = session_folder("founded") / "lab"
    new_lab(root)
    return root


def new_lab(root: Path, *options: str | Path) -> Answer:
    """Found a lab in a new folder, with further options of `board new`; what that said."""
    root.mkdir()
    (root / ".gitconfig").write_text(_GITCONFIG)
    write_inputs(root)
    answer = call(root, *founding(root), *options).done()
    git(root, "init", "-q", "--bare", "--template=", "-b", "main", "forge")
    git(root / "board", "remote", "add", "origin", str(root / "forge"))
    git(root / "board", "push", "-q", "origin", "main")
    git(root, "clone", "-q", "--template=", str(root / "forge"), "clone")
    return answer


def findings(lab: Lab, submission: str, *, now: str = NEXT) -> dict[str, str]:
    """Rule -> evidence of what stands against a submission."""
    (review,) = lab.organiser("review", submission, "--json", now=now).json["reviews"]
    return {finding["rule"]: finding["evidence"] for finding in review["findings"]}


def sign_event(digest: Digest) -> EventSignature:
    """As the organiser of a lab of `found_lab` signs: whoever forges a log here has that key."""
    private = Vault(_template() / "vault").own_signing_key()
    return EventSignature(key=public_key(private), value=sign(private, event_message(digest)))


def add_reserve(lab: Lab) -> None:
    """A view that is not public, on ten of the held-out queries."""
    lab.edit(more=_RESERVE)
    (lab.vault / "labels" / "eval.tail").write_text("".join(f"eval{n}\n" for n in range(10)))


def commit_tree(
    folder: Path, changes: Mapping[str, tuple[str, bytes] | None], *, parent: str | None
) -> str:
    """A commit made of plumbing: path -> (mode, blob) on top of a parent; `None` deletes.

    Paths that `git update-index` refuses go through `git mktree`, one level deep.
    """
    index = {"GIT_INDEX_FILE": str(folder / "hostile-index")}
    env = {**environment(folder.parent), **index}

    def plumb(arguments: Sequence[str], data: bytes = b"") -> str:
        result = subprocess.run(
            ["git", *arguments], cwd=folder, input=data, capture_output=True, env=env, check=False
        )
        assert result.returncode == 0, result.stderr.decode()
        return result.stdout.decode().strip()

    plumb(["read-tree", parent] if parent else ["read-tree", "--empty"])
    for path, change in changes.items():
        if change is None:
            plumb(["update-index", "--force-remove", "--", path])
            continue
        mode, data = change
        blob = data.decode() if mode == "160000" else plumb(["hash-object", "-w", "--stdin"], data)
        plumb(["update-index", "--add", "--cacheinfo", f"{mode},{blob},{path}"])
    tree = plumb(["write-tree"])
    parents = ["-p", parent] if parent else []
    who = ["-c", "user.name=x", "-c", "user.email=x@x"]
    return plumb([*who, "commit-tree", tree, *parents, "-m", "hostile"])
