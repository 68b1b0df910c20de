"""Two boards that differ in a hidden team alone are the same to everybody, byte for byte.

One hidden team has short names and an open entry beside; the other is new and has long ones. What
is random by construction (keys, salts, hashes, signatures) is blotted out in its length.
"""

import io
import re
import secrets
import subprocess
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx2
import pytest
from lab import OTHER_TEAM, TEAM, Lab, Patch, Team, environment, found_lab, git
from registering import RULES, ask_for_registration, register
from team_server import join, team_pages

from heldout.board.participant.server import store_token
from heldout.board.store.repository import Repository
from heldout.envelope import bundle

pytestmark = pytest.mark.night
FIRST, SENT, DAY = "2026-11-02T10:00:00Z", "2026-11-03T10:00:00Z", "2026-11-04T10:00:00Z"
NEXT, LAST = "2026-11-05T10:00:00Z", "2026-11-06T10:00:00Z"
UNTIL = "2027-03-01"
NEW: Mapping[str, Any] = {
    "team": "Zanzibar Quagga and Xylophone Retrieval Collective",
    "institution": "Zyzzyva University of the Far Outer Islands",
    "model_description": "a quokka " * 150,
    "paper": "https://kumquat.example/papers/on-the-ranking-of-narwhals",
    "code": "https://kumquat.example/code",
    "training_data": "narwhal logs",
    "efficiency": {"parameters": 987_654_321, "hardware": "a cluster of kumquats"},
}
Seen = dict[str, bytes]

_RANDOM = re.compile(rb"[0-9a-f]{10,}|[A-Za-z0-9+/]{40,}={0,2}")
_ADDRESS = re.compile(rb"127\.0\.0\.1:\d+")
_MOMENT = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")


def blot(path: str, data: bytes) -> bytes:
    """A public file without what is random in it; of a sealed one its size alone."""
    if path.endswith(".age"):
        start = data.index(b"\n", data.index(b"\n--- ") + 1)  # a head has any length
        return b"sealed, %d bytes" % (len(data) - start)
    return _RANDOM.sub(lambda found: b"#" * len(found[0]), data)


def unpack(path: str, data: bytes) -> Seen:
    with ZipFile(io.BytesIO(data)) as packed:
        return {f"{path}:{name}": blot(name, packed.read(name)) for name in packed.namelist()}


def forge(lab: Lab) -> Seen:
    """What a reader of the forge sees: every branch, its commits, and every file at its tip."""
    seen: Seen = {}
    for ref in git(lab.forge, "for-each-ref", "--format=%(refname)").splitlines():
        said = "--format=%an %ae %aI, %cn %ce %cI: %B"
        seen[ref] = blot(ref, git(lab.forge, "log", said, ref).encode())
        command, env = ["git", "archive", "--format=zip", ref], environment(lab.root)
        packed = subprocess.run(command, cwd=lab.forge, env=env, capture_output=True, check=True)
        seen |= unpack(ref, packed.stdout)
    return seen


class Story:
    """What became public of one board, step by step.

    With registration three teams leave their files where the organisers' comments lie too.
    """

    def __init__(self, root: Path, hidden: Team, *, registered: bool = False) -> None:
        root.mkdir()
        self.lab = found_lab(root)
        self.hidden = hidden
        self.registered = registered
        self.seen: dict[str, Seen] = {}
        self.clones = {team["team"]: self.lab.clone for team in (TEAM, OTHER_TEAM, NEW)}
        self.left = self.lab.root / "left"
        if registered:
            self.register()

    def register(self) -> None:
        lab = self.lab
        self.left.mkdir()
        forge = f'{RULES}\n[forge]\nkind = "folder"\nurl = "../left"\n'
        ask_for_registration(lab, forge, now=FIRST)
        for team in (TEAM, OTHER_TEAM, NEW):
            clone = lab.clone if team is TEAM else lab.new_clone(team["team"].split()[0])
            self.clones[team["team"]] = clone
            register(lab, now=FIRST, clone=clone, team=team, to=self.left)
            taken = lab.take_in(now=FIRST)["received"]
            assert [one["kind"] for one in taken] == ["registered"], taken
        self.share()

    def play(self) -> dict[str, Seen]:
        """All of it; what was seen after each step."""
        self.publish(self.send("open", TEAM, now=FIRST), now=FIRST, why="fine")
        self.publish(self.send("other", OTHER_TEAM, now=FIRST, seed=2), now=FIRST, why="fine")
        self.look("before")
        entry = self.send("one", self.hidden, now=SENT, seed=3, embargo=UNTIL)
        self.look("submission")
        self.lab.take_in(now=SENT)
        for command in (("review", entry), ("ask", entry, "Is it new?"), ("rebuild",)):
            self.lab.organiser(*command, now=SENT).done()
        self.look("review")
        self.amend(entry, now=DAY, model_description=f"{self.hidden['model_description']} and more")
        self.look("an amendment that waits")
        self.publish(entry, now=DAY)
        self.look("publication")
        institution = f"{self.hidden['institution']}, Department of Maps"
        self.amend(entry, now=NEXT, institution=institution)
        self.publish(entry, now=NEXT)
        self.look("amendment")
        if self.registered:
            self.refuse_both()
        else:
            self.serve()
            self.refuse()
        return self.seen

    def send(self, name: str, team: Team, *, now: str, **draft: Any) -> str:
        clone = self.clones[team["team"]]
        entry = self.lab.draft(name, now=now, clone=clone, team=team, **draft)
        self.hand_in("submit", entry, now=now, clone=clone)
        return entry

    def amend(self, entry: str, *, now: str, **fields: Any) -> None:
        clone = self.clones[self.hidden["team"]]
        self.lab.fill(entry, clone=clone, **fields)
        self.hand_in("amend", entry, now=now, clone=clone)

    def hand_in(self, command: str, entry: str, *, now: str, clone: Path) -> None:
        way = ("--to", self.left) if self.registered else ()
        self.lab.participant(command, entry, *way, now=now, clone=clone).done()

    def serve(self) -> None:
        """The hidden team uploads; an outsider asks for everything before and after."""
        lab = self.lab
        with team_pages(lab) as client:
            outsider = join(lab, client, "Curious Bystanders")
            token = join(lab, client, self.hidden["team"])
            self.ask("intake", client, outsider)
            entry = lab.draft("two", now=NEXT, seed=4, team=self.hidden, embargo=UNTIL)
            store_token(Repository(lab.clone), str(client.base_url), token)
            sent = ("submit", entry, "--to", str(client.base_url), "--board", lab.clone)
            lab.call(*sent, "--now", NEXT).done()
            self.ask("upload", client, outsider, entry)
        lab.organiser("inbox", "--from", lab.root / "uploads", now=NEXT).done()
        self.look("upload that was taken in")

    def refuse(self) -> None:
        """A run like the hidden one, and one more than the known team may send if it is hidden."""
        lab, visitor = self.lab, self.lab.new_clone("visitor")
        for name, seed in (("three", 3), ("four", 5)):
            lab.draft(name, now=LAST, seed=seed, clone=visitor)
            again = lab.draft(name, now=LAST, seed=seed)
            checked = lab.participant("check", again, now=LAST, clone=visitor)
            self.seen[f"check of {name}"] = {"out": blot("", checked.out.encode())}
            lab.send_unchecked(again, now=LAST)
        self.publish("20261106-three", now=LAST, why="fine")
        lab.organiser("review", "20261106-four", now=LAST)
        why = ("--why", "not a new system")
        lab.organiser("reject", "20261106-four", *why, now=LAST).done()
        assert lab.organiser("rebuild", now=LAST).code == 0
        self.look("refusal")

    def refuse_both(self) -> None:
        """Signed entries count against the quota, hidden ones too: one team has used it up."""
        for name, seed in (("three", 3), ("four", 5)):
            self.lab.send_unchecked(self.lab.draft(name, now=LAST, seed=seed), now=LAST)
        self.lab.take_in(now=LAST)
        self.look("quota")
        for entry in ("20261106-three", "20261106-four"):
            self.lab.organiser("review", entry, now=LAST)
            self.lab.organiser("reject", entry, "--why", "not a new system", now=LAST).done()
        self.lab.organiser("rebuild", now=LAST).done()
        self.look("refusal by the quota")

    def publish(self, submission: str, *, now: str, why: str = "") -> None:
        self.lab.take_in(now=now)
        why = why or f"by {self.hidden['team']}, fine"  # sealed with the names
        self.lab.organiser("publish", submission, "--yes", "--why", why, now=now).done()
        self.share()

    def share(self) -> None:
        self.lab.push()
        for clone in set(self.clones.values()):
            self.lab.pull(clone)

    def look(self, step: str) -> None:
        self.lab.push()
        seen = self.seen[step] = forge(self.lab)
        replies = sorted(self.left.glob("*.reply.txt"), key=lambda file: file.stat().st_ctime_ns)
        for number, file in enumerate(replies):
            name = f"reply {number}, {_RANDOM.sub(b'#', file.name.encode()).decode()}"
            seen[name] = blot(name, file.read_bytes())

    def ask(self, step: str, client: httpx2.Client, token: str, entry: str = "none") -> None:
        """Every answer to somebody who has an account of another team."""
        seen: Seen = {}
        own = {"authorization": f"Bearer {token}"}
        for path in ("/", "/board.zip", "/health", "/ready"):
            self.note(seen, path, client.get(path))
        for path in ("standings", "standings?offset=1&limit=1", "quota", "submissions"):
            self.note(seen, path, client.get(f"/api/v1/{path}", headers=own))
        self.note(seen, "entry", client.get(f"/api/v1/submissions/{entry}", headers=own))
        junk = {"files": [{"name": f"{entry}.key.age", "bytes": 7, "sha256": "0" * 64}]}
        self.note(seen, "junk", client.post("/api/v1/uploads", json=junk, headers=own))
        self.seen[step] = seen

    @staticmethod
    def note(seen: Seen, path: str, answer: httpx2.Response) -> None:
        left = {k: v for k, v in answer.headers.items() if k not in ("date", "etag")}
        if answer.content.startswith(b"PK"):
            left.pop("content-length", None)  # packed hashes have no fixed length
            seen |= unpack(path, answer.content)
        data = f"{answer.status_code} {sorted(left.items())}\n".encode()
        data += b"" if answer.content.startswith(b"PK") else answer.content
        seen[path] = _MOMENT.sub(b"moment", _ADDRESS.sub(b"here", blot(path, data)))


def unlike(one: Seen, other: Seen) -> dict[str, str]:
    """Path of what is not the same -> where it differs first."""
    lines = {p: (one.get(p, b"").split(b"\n"), other.get(p, b"").split(b"\n")) for p in one | other}
    return {
        path: next((f"{x!r} / {y!r}" for x, y in zip_longest(*pair) if x != y), "")
        for path, pair in lines.items()
        if pair[0] != pair[1]
    }


@pytest.fixture
def numbered(monkeypatch: Patch) -> None:
    """Anonymous ids are the same on both boards."""
    real = secrets.token_hex
    monkeypatch.setattr(secrets, "token_hex", lambda size: "00c0ffee" if size == 4 else real(size))


@pytest.mark.usefixtures("numbered")
@pytest.mark.parametrize("registered", [False, True])
def test_two_boards_that_differ_in_the_hidden_team_are_the_same(
    tmp_path: Path, *, registered: bool
) -> None:
    known = Story(tmp_path / "known", TEAM, registered=registered).play()
    new = Story(tmp_path / "new", NEW, registered=registered).play()
    replies = [name for name in new["amendment"] if name.endswith(".reply.txt")]
    assert len(replies) == 6 * registered, replies  # to three teams, about three submissions
    assert known.keys() == new.keys()
    said = {step: unlike(known[step], new[step]) for step in known}
    differ = {step: one for step, one in said.items() if one}
    assert not differ, "\n".join(
        f"{k}: {p}: {w}" for k, one in differ.items() for p, w in one.items()
    )


@pytest.mark.usefixtures("numbered")
def test_the_comparison_sees_the_length_of_sealed_names(tmp_path: Path, monkeypatch: Patch) -> None:
    """Without the padding: what it is there for."""
    monkeypatch.setattr(bundle, "_PADDED", 1)
    seen = []
    for name, team in (("known", TEAM), ("new", NEW)):
        story = Story(tmp_path / name, team)
        story.lab.send("one", now=SENT, team=team, embargo=UNTIL)
        story.look("submission")
        seen.append(story.seen["submission"])
    (path,) = unlike(*seen)
    assert path.endswith("-metadata.json.age")
