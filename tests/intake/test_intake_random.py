"""Teams join, upload, stop, cancel and come back at random, and mean harm: the rules always hold.

Each step also tries something that has to be refused.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from intake_stage import files_of, make_stage

from databases import wiped
from heldout.errors import InputError
from heldout.ids import digest_bytes
from heldout.intake import teams
from heldout.intake.quota import Quota
from heldout.intake.tables import INTAKE
from heldout.intake.uploads import (
    IntakeLimits,
    Upload,
    UploadState,
    cancel_upload,
    get_upload,
    list_uploads,
    sweep,
)

DAY = timedelta(days=1)
QUOTA = Quota(limit=2, window=7 * DAY)
TEAMS = st.integers(0, 1)
SYSTEMS = st.integers(0, 3)
SIZE = 20
Files = Mapping[str, bytes]


def version(system: int, number: int) -> Files:
    """The files of a system's submission, other ones for each number."""
    return {
        name: data + bytes([number]) for name, data in files_of(f"s{system}", size=SIZE).items()
    }


class RandomUploads(RuleBasedStateMachine):
    """Two teams and four ids; some of the bytes come wrong."""

    engine = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="heldout-random-"))
        limits = IntakeLimits(free_bytes=0, of_team=8)
        self.stage = make_stage(wiped(self.engine, INTAKE), self.folder, limits=limits)
        self.teams = [self.stage.team(name) for name in ("Harbor", "Quay")]
        self.content: dict[str, Files] = {}
        self.wrong: set[str] = set()
        self.refusals: set[str] = set()
        self.ended: dict[str, UploadState] = {}

    def uploads(self, team: int, *states: UploadState) -> Sequence[Upload]:
        found = list_uploads(self.stage.store, self.teams[team].id)
        return [one for one in found if not states or one.state in states]

    def refused(self, work: Callable[..., object], *given: object, **named: object) -> str:
        """The code by which something was refused; "" where it was not."""
        try:
            work(*given, **named)
        except InputError as error:
            return error.code
        return ""

    def start(self, team: int, files: Files) -> Upload | None:
        try:
            begun = self.stage.begin(self.teams[team], files, quota=QUOTA)
        except InputError as error:
            self.refusals.add(error.code)
            return None
        self.content[begun.id] = files
        return begun

    def fill(self, upload: Upload, wrong: str) -> None:
        """Send what is missing, of one file other bytes; before, what has to be refused."""
        send, refused = self.stage.send, self.refused
        for file in upload.files:
            data, at = self.content[upload.id][file.name], file.received
            rest = data[at:]
            if not rest:
                continue
            assert refused(self.stage.complete, upload) == "upload-incomplete"
            ahead = at + 1 if at < file.size - 1 else 0
            assert refused(send, upload, file.name, b"x", offset=ahead) == "upload-offset"
            longer = rest + b"x"
            assert refused(send, upload, file.name, longer, offset=at) == "upload-too-large"
            if wrong and file.name.endswith(wrong):
                self.wrong.add(upload.id)
                rest = bytes(len(rest))
            send(upload, file.name, rest, offset=at)

    @rule(
        team=TEAMS,
        systems=st.lists(SYSTEMS, min_size=1, max_size=3, unique=True),
        number=st.integers(0, 1),
        wrong=st.sampled_from(["", ".tar.age", "-metadata.json.age", ".key.age"]),
        cut=st.booleans(),
    )
    def send(self, team: int, systems: list[int], number: int, wrong: str, *, cut: bool) -> None:
        """Several at once, all open before the first is complete; one of them with other bytes."""
        found = [self.start(team, version(system, number)) for system in systems]
        begun = [upload for upload in found if upload is not None and upload.state == "open"]
        for place, upload in enumerate(begun):
            if not (cut and place):
                self.fill(upload, "" if place else wrong)
                self.refusals.add(self.refused(self.stage.complete, upload, quota=QUOTA))

    @rule(team=TEAMS)
    def send_again(self, team: int) -> None:
        """A team sends its newest submission once more, with other bytes: the last one counts."""
        self.send(team, [5], 0, "", cut=False)
        for before in self.uploads(team, "complete", "accepted")[:1]:
            self.stage.clock.move(timedelta(seconds=1))
            files = {name: data + b"x" for name, data in self.content[before.id].items()}
            upload = self.start(team, files)
            if upload is not None and upload.state == "open":
                self.fill(upload, "")
                self.refusals.add(self.refused(self.stage.complete, upload, quota=QUOTA))
            self.stage.work()

    @rule(team=TEAMS)
    def cancel(self, team: int) -> None:
        self.start(team, version(4, 0))
        for upload in self.uploads(team, "open")[-1:]:
            cancel_upload(self.stage.store, upload.team, upload.id, now=self.stage.clock())
            assert self.refused(self.stage.complete, upload) == "upload-ended"

    @rule(team=TEAMS)
    def meddle(self, team: int) -> None:
        """A team tries all that there is with the uploads of the other."""
        me, store, now = self.teams[team].id, self.stage.store, self.stage.clock()
        for theirs in self.uploads(1 - team)[:2]:
            name = theirs.files[0].name
            as_mine = msgspec.structs.replace(theirs, team=me)
            for work in (
                partial(get_upload, store, me, theirs.id),
                partial(cancel_upload, store, me, theirs.id, now=now),
                partial(self.stage.complete, as_mine),
                partial(self.stage.send, as_mine, name, b"x"),
            ):
                assert self.refused(work) == "upload-unknown"

    @rule()
    def work(self) -> None:
        self.stage.work()

    @rule(hours=st.sampled_from([1, 30, 170]))
    def wait(self, hours: int) -> None:
        self.start(0, version(4, 0))
        self.stage.clock.move(timedelta(hours=hours))
        sweep(self.stage.store, now=self.stage.clock())
        limits, now = self.stage.store.limits, self.stage.clock()
        for team in (0, 1):
            for one in self.uploads(team, "open"):
                assert now < one.changed + limits.idle
                assert now < one.created + limits.longest

    @rule()
    def join_again(self) -> None:
        """An invitation is used once, and not after its end."""
        opened, now = self.stage.database, self.stage.clock()
        _, secret = teams.create_invitation(opened, note="", now=now, team=self.teams[0].id)
        accept = partial(teams.accept_invitation, opened, name="", mail="", now=now)
        assert accept(secret).id == self.teams[0].id
        assert self.refused(accept, secret) == "invitation-used"
        _, old = teams.create_invitation(opened, note="", now=now - DAY, valid=DAY)
        assert self.refused(accept, old) == "invitation-expired"

    @rule(team=TEAMS)
    def replace_token(self, team: int) -> None:
        """Of an old token nothing stays: no session, no account of another site."""
        opened, now, own = self.stage.database, self.stage.clock(), self.teams[team].id
        stolen = teams.replace_tokens(opened, own, now=now)
        session = teams.open_session(opened, stolen, now=now, valid=DAY)
        assert session is not None
        teams.link_identity(opened, own, "github", "666", now=now, session=session)
        fresh = teams.replace_tokens(opened, own, now=now)
        for opens in (stolen, ("github", "666")):
            assert teams.open_session(opened, opens, now=now, valid=DAY) is None
        assert teams.find_team(opened, stolen, now=now, kind="api") is None
        assert teams.find_team(opened, session, now=now, kind="session") is None
        teams.close_team(opened, own, now=now)
        assert teams.find_team(opened, fresh, now=now, kind="api") is None
        teams.close_team(opened, own, now=None)
        assert teams.find_team(opened, fresh, now=now, kind="api") is not None

    @invariant()
    def the_quota_holds(self) -> None:
        for team in range(len(self.teams)):
            found = self.uploads(team, "complete", "accepted")
            taken = [one.completed for one in found if one.kind == "submission"]
            times: list[datetime] = [at for at in taken if at is not None]
            assert len(times) == len(taken)
            for since in times:
                assert sum(since <= at < since + QUOTA.window for at in times) <= QUOTA.limit

    @invariant()
    def what_is_accepted_lies_there_once_and_nothing_else(self) -> None:
        everything = [one for team in (0, 1) for one in self.uploads(team)]
        owners: dict[str, int] = {}
        for one in everything:
            assert self.ended.get(one.id) in (None, one.state)
            if one.ended is not None:
                self.ended[one.id] = one.state
            if one.state == "failed":
                assert one.code in ("upload-digest", "upload-expired")
            if one.state == "accepted":
                assert one.id not in self.wrong
            if one.state in ("complete", "accepted") and one.kind == "submission":
                assert owners.setdefault(one.owner, one.team) == one.team
        assert self.refusals <= {"", "upload-quota", "upload-taken", "upload-limit"}
        accepted = [one for one in everything if one.state == "accepted"]
        assert self.stage.delivered() == sorted({one.owner for one in accepted})
        delivered = {
            path.name: digest_bytes(path.read_bytes())
            for path in self.folder.glob("received/delivery-*/*")
        }
        for owner in {one.owner for one in accepted}:
            same = [one for one in accepted if one.owner == owner]
            last = max(one.completed or one.created for one in same)
            latest = [one for one in same if one.completed == last]
            lying = {name: digest for name, digest in delivered.items() if name.startswith(owner)}
            assert lying in [{file.name: file.digest for file in one.files} for one in latest]

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


class RandomUploadsPostgres(RandomUploads):
    """The same on the other engine."""

    engine = "postgresql"


TestRandomUploads = RandomUploads.TestCase
TestRandomUploadsPostgres = RandomUploadsPostgres.TestCase
TestRandomUploads.settings = settings(max_examples=8, stateful_step_count=20)
TestRandomUploadsPostgres.settings = settings(max_examples=3, stateful_step_count=20)
