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
from registering_town import AGREEMENT, RULES, register
from serving_town import join, team_pages
from town import OTHER_TEAM, TEAM, Town, call, environment, found_town, git

from heldout.board.participant.server import keep_token
from heldout.board.store.repository import Repository
from heldout.envelope import bundle

pytestmark = [pytest.mark.slow, pytest.mark.night]
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


def forge(town: Town) -> Seen:
    """What a reader of the forge sees: every branch, its commits, and every file at its tip."""
    seen: Seen = {}
    for ref in git(town.forge, "for-each-ref", "--format=%(refname)").splitlines():
        told = "--format=%an %ae %aI, %cn %ce %cI: %B"
        seen[ref] = blot(ref, git(town.forge, "log", told, ref).encode())
        command, env = ["git", "archive", "--format=zip", ref], environment(town.root)
        packed = subprocess.run(command, cwd=town.forge, env=env, capture_output=True, check=True)
        seen |= unpack(ref, packed.stdout)
    return seen


class Story:
    """What became public of one board, step by step."""

    def __init__(self, root: Path, hidden: Mapping[str, Any]) -> None:
        root.mkdir()
        self.town = found_town(root)
        self.hidden = hidden
        self.seen: dict[str, Seen] = {}

    def play(self) -> dict[str, Seen]:
        """All of it; what was seen after each step."""
        town = self.town
        self.publish(town.send("open", now=FIRST), now=FIRST, why="fine")
        other = town.send("other", now=FIRST, seed=2, team=OTHER_TEAM)
        self.publish(other, now=FIRST, why="fine")
        entry = town.send("one", now=SENT, seed=3, team=self.hidden, embargo=UNTIL)
        self.look("submission")
        town.take_in(now=SENT)
        assert town.organiser("review", entry, now=SENT).code == 0
        assert town.organiser("ask", entry, "Is it new?", now=SENT).code == 0
        assert town.organiser("rebuild", now=SENT).code == 0
        self.look("review")
        town.fill(entry, model_description=f"{self.hidden['model_description']} and more")
        assert town.participant("amend", entry, now=DAY).code == 0
        self.look("an amendment that waits")
        town.take_in(now=DAY)
        self.publish(entry, now=DAY)
        self.look("publication")
        town.fill(entry, institution=f"{self.hidden['institution']}, Department of Maps")
        assert town.participant("amend", entry, now=NEXT).code == 0
        town.take_in(now=NEXT)
        self.publish(entry, now=NEXT)
        self.look("amendment")
        self.serve()
        self.refuse()
        return self.seen

    def serve(self) -> None:
        """The hidden team uploads; an outsider asks for everything before and after."""
        town = self.town
        with team_pages(town) as client:
            outsider = join(town, client, "Curious Bystanders")
            token = join(town, client, self.hidden["team"])
            self.ask("intake", client, outsider)
            entry = town.draft("two", now=NEXT, seed=4, team=self.hidden, embargo=UNTIL)
            keep_token(Repository(town.clone), str(client.base_url), token)
            sent = ("submit", entry, "--to", str(client.base_url), "--board", town.clone)
            call(town.root, *sent, "--now", NEXT).done()
            self.ask("upload", client, outsider, entry)
        town.organiser("inbox", "--from", town.root / "uploads", now=NEXT).done()
        self.look("upload that was taken in")

    def refuse(self) -> None:
        """A run like the hidden one, and one more than the known team may send if it is hidden."""
        town, visitor = self.town, self.town.new_clone("visitor")
        for name, seed in (("three", 3), ("four", 5)):
            town.draft(name, now=LAST, seed=seed, clone=visitor)
            again = town.draft(name, now=LAST, seed=seed)
            checked = town.participant("check", again, now=LAST, clone=visitor)
            self.seen[f"check of {name}"] = {"out": blot("", checked.out.encode())}
            town.send_unchecked(again, now=LAST)
        self.publish("20261106-three", now=LAST, why="fine")
        town.organiser("review", "20261106-four", now=LAST)
        why = ("--why", "not a new system")
        town.organiser("reject", "20261106-four", *why, now=LAST).done()
        assert town.organiser("rebuild", now=LAST).code == 0
        self.look("refusal")

    def publish(self, submission: str, *, now: str, why: str = "") -> None:
        self.town.take_in(now=now)
        why = why or f"by {self.hidden['team']}, fine"  # sealed with the names
        self.town.organiser("publish", submission, "--yes", "--why", why, now=now).done()
        self.town.share()

    def look(self, step: str) -> None:
        self.town.push()
        self.seen[step] = forge(self.town)

    def ask(self, step: str, client: httpx2.Client, token: str, entry: str = "none") -> None:
        """Every answer to somebody who has an account of another team."""
        seen: Seen = {}
        own = {"authorization": f"Bearer {token}"}
        for path in ("/", "/board.zip", "/health", "/ready", "/api/v1/health"):
            self.note(seen, path, client.get(path))
        for path in ("standings", "standings?offset=1&limit=1", "quota", "submissions"):
            self.note(seen, path, client.get(f"/api/v1/{path}", headers=own))
        self.note(seen, "entry", client.get(f"/api/v1/submissions/{entry}", headers=own))
        junk = {"files": [{"name": f"{entry}.key.age", "bytes": 7, "sha256": "0" * 64}]}
        self.note(seen, "junk", client.post("/api/v1/uploads", json=junk, headers=own))
        self.seen[step] = seen

    @staticmethod
    def note(seen: Seen, path: str, answer: httpx2.Response) -> None:
        kept = {k: v for k, v in answer.headers.items() if k not in ("date", "etag")}
        if answer.content.startswith(b"PK"):
            kept.pop("content-length", None)  # packed hashes have no fixed length
            seen |= unpack(path, answer.content)
        data = f"{answer.status_code} {sorted(kept.items())}\n".encode()
        data += b"" if answer.content.startswith(b"PK") else answer.content
        seen[path] = _MOMENT.sub(b"moment", _ADDRESS.sub(b"here", blot(path, data)))


class RegisteredStory(Story):
    """Three teams are registered and leave their files where the organisers' comments lie too."""

    def __init__(self, root: Path, hidden: Mapping[str, Any]) -> None:
        super().__init__(root, hidden)
        town = self.town
        self.left = town.root / "left"
        self.left.mkdir()
        (town.board / "agreement.md").write_text(AGREEMENT)
        with (town.board / "board.toml").open("a") as file:
            file.write(f'{RULES}\n[forge]\nkind = "folder"\nurl = "../left"\n')
        assert town.organiser("rebuild", now=FIRST).code == 0
        town.push()
        self.clones = {
            TEAM["team"]: town.clone,
            OTHER_TEAM["team"]: town.new_clone("second"),
            NEW["team"]: town.new_clone("third"),
        }
        self.share()
        for team in (TEAM, OTHER_TEAM, NEW):
            register(town, now=FIRST, clone=self.clones[team["team"]], team=team, to=self.left)
            taken = town.take_in(now=FIRST)["received"]
            assert [one["kind"] for one in taken] == ["registered"], taken
        town.push()
        self.share()

    def play(self) -> dict[str, Seen]:
        self.publish(self.leave("open", TEAM, now=FIRST), now=FIRST, why="fine")
        self.publish(self.leave("other", OTHER_TEAM, now=FIRST, seed=2), now=FIRST, why="fine")
        self.look("before")
        entry = self.leave("one", self.hidden, now=SENT, seed=3, embargo=UNTIL)
        self.look("submission")
        self.do("review", entry, now=SENT)
        self.do("ask", entry, "Is it new?", now=SENT)
        self.do("rebuild", now=SENT)
        self.look("review")
        self.amend(entry, now=DAY, model_description=f"{self.hidden['model_description']} and more")
        self.look("an amendment that waits")
        self.publish(entry, now=DAY)
        self.look("publication")
        institution = f"{self.hidden['institution']}, Department of Maps"
        self.amend(entry, now=NEXT, institution=institution)
        self.publish(entry, now=NEXT)
        self.look("amendment")
        for name, seed in (("three", 3), ("four", 5)):
            self.town.send_unchecked(self.town.draft(name, now=LAST, seed=seed), now=LAST)
        self.town.take_in(now=LAST)
        self.look("quota")
        # Signed entries count against the quota, hidden ones too: one team has used it up by these.
        for entry in ("20261106-three", "20261106-four"):
            self.town.organiser("review", entry, now=LAST)
            self.do("reject", entry, "--why", "not a new system", now=LAST)
        self.do("rebuild", now=LAST)
        self.look("refusal by the quota")
        return self.seen

    def do(self, *arguments: str, now: str) -> None:
        self.town.organiser(*arguments, now=now).done()

    def leave(
        self,
        name: str,
        team: Mapping[str, Any],
        *,
        now: str,
        seed: int = 1,
        embargo: str | None = None,
    ) -> str:
        """Leave a submission of a team's own clone in the folder, and take it in."""
        clone = self.clones[team["team"]]
        entry = self.town.draft(name, now=now, seed=seed, clone=clone, team=team, embargo=embargo)
        self.town.participant("submit", entry, "--to", self.left, now=now, clone=clone).done()
        self.town.take_in(now=now)
        return entry

    def amend(self, entry: str, *, now: str, **fields: Any) -> None:
        clone = self.clones[self.hidden["team"]]
        self.town.fill(entry, clone=clone, **fields)
        self.town.participant("amend", entry, "--to", self.left, now=now, clone=clone).done()

    def publish(self, submission: str, *, now: str, why: str = "") -> None:
        super().publish(submission, now=now, why=why)
        self.share()

    def share(self) -> None:
        for clone in self.clones.values():
            self.town.pull(clone)

    def look(self, step: str) -> None:
        super().look(step)
        replies = sorted(self.left.glob("*.reply.txt"), key=lambda file: file.stat().st_ctime_ns)
        for number, file in enumerate(replies):
            name = f"reply {number}, {_RANDOM.sub(b'#', file.name.encode()).decode()}"
            self.seen[step][name] = blot(name, file.read_bytes())


def unlike(one: Seen, other: Seen) -> dict[str, str]:
    """Path of what is not the same -> where it differs first."""
    lines = {p: (one.get(p, b"").split(b"\n"), other.get(p, b"").split(b"\n")) for p in one | other}
    return {
        path: next((f"{x!r} / {y!r}" for x, y in zip_longest(*pair) if x != y), "")
        for path, pair in lines.items()
        if pair[0] != pair[1]
    }


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anonymous ids are the same on both boards."""
    real = secrets.token_hex
    monkeypatch.setattr(
        secrets,
        "token_hex",
        lambda size: "00c0ffee" if size == 4 else real(size),
    )


@pytest.mark.usefixtures("numbered")
@pytest.mark.parametrize("story", [Story, pytest.param(RegisteredStory, marks=pytest.mark.night)])
def test_two_boards_that_differ_in_the_hidden_team_are_the_same(
    tmp_path: Path, story: type[Story]
) -> None:
    known = story(tmp_path / "known", TEAM).play()
    new = story(tmp_path / "new", NEW).play()
    if story is RegisteredStory:
        replies = [name for name in new["amendment"] if name.endswith(".reply.txt")]
        assert len(replies) == 6, replies  # to three teams, and about three submissions
    assert known.keys() == new.keys()
    told = {step: unlike(known[step], new[step]) for step in known}
    differ = {step: one for step, one in told.items() if one}
    assert not differ, "\n".join(
        f"{k}: {p}: {w}" for k, one in differ.items() for p, w in one.items()
    )


@pytest.mark.usefixtures("numbered")
def test_the_comparison_sees_the_length_of_sealed_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the padding: what it is there for."""
    monkeypatch.setattr(bundle, "_PADDED", 1)
    seen = []
    for name, team in (("known", TEAM), ("new", NEW)):
        story = Story(tmp_path / name, team)
        story.town.send("one", now=SENT, team=team, embargo=UNTIL)
        story.look("submission")
        seen.append(story.seen["submission"])
    (path,) = unlike(*seen)
    assert path.endswith("-metadata.json.age")
