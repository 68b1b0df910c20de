"""Teams upload, stop, cancel and come back at random; the board's quota holds at every moment."""

import shutil
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from intake_stage import files_of, make_stage

from databases import wiped
from heldout.errors import InputError
from heldout.ids import digest_bytes
from heldout.intake.quota import Quota
from heldout.intake.tables import INTAKE
from heldout.intake.uploads import Upload, UploadState, cancel_upload, list_uploads, sweep

DAY = timedelta(days=1)
QUOTA = Quota(limit=2, window=7 * DAY)
TEAMS = st.integers(0, 1)
SYSTEMS = st.integers(0, 5)


class RandomUploads(RuleBasedStateMachine):
    """Two teams, six ids; some of the bytes come wrong."""

    engine = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="heldout-random-"))
        self.stage = make_stage(wiped(self.engine, INTAKE), self.folder)
        self.teams = [self.stage.team(name) for name in ("Harbor", "Quay")]
        self.refusals: set[str] = set()
        self.ended: dict[str, UploadState] = {}

    def uploads(self, team: int, *states: UploadState) -> Sequence[Upload]:
        found = list_uploads(self.stage.store, self.teams[team].id)
        return [one for one in found if not states or one.state in states]

    @rule(team=TEAMS, systems=st.lists(SYSTEMS, min_size=1, max_size=3, unique=True))
    def start(self, team: int, systems: list[int]) -> None:
        for system in systems:
            try:
                self.stage.begin(self.teams[team], files_of(f"s{system}", size=20), quota=QUOTA)
            except InputError as error:
                self.refusals.add(error.code)

    @rule(team=TEAMS, wrong=st.integers(0, 3))
    def finish(self, team: int, wrong: int) -> None:
        """All that is open, one with wrong bytes; what is refused stays open."""
        for number, upload in enumerate(self.uploads(team, "open")):
            data = files_of(upload.owner.removeprefix("20261123-"), size=20)
            for file in upload.files:
                rest = data[file.name][file.received :]
                sent = bytes(len(rest)) if number == wrong else rest
                self.stage.send(upload, file.name, sent, offset=file.received)
            try:
                self.stage.complete(upload, quota=QUOTA)
            except InputError as error:
                self.refusals.add(error.code)

    @rule(team=TEAMS)
    def cancel(self, team: int) -> None:
        for upload in self.uploads(team, "open")[-1:]:
            cancel_upload(self.stage.store, upload.team, upload.id, now=self.stage.clock())

    @rule()
    def work(self) -> None:
        self.stage.work()

    @rule(hours=st.sampled_from([1, 30, 170]))
    def wait(self, hours: int) -> None:
        self.stage.clock.move(timedelta(hours=hours))
        sweep(self.stage.store, now=self.stage.clock())

    @invariant()
    def the_quota_holds(self) -> None:
        for team in range(len(self.teams)):
            taken = [one.completed for one in self.uploads(team, "complete", "accepted")]
            times: list[datetime] = [at for at in taken if at is not None]
            assert len(times) == len(taken)
            for since in times:
                assert sum(since <= at < since + QUOTA.window for at in times) <= QUOTA.limit

    @invariant()
    def what_is_accepted_was_delivered_once_and_nothing_else(self) -> None:
        everything = [one for team in (0, 1) for one in self.uploads(team)]
        accepted = sorted(one.owner for one in everything if one.state == "accepted")
        assert self.stage.delivered() == accepted
        delivered = {
            path.name: path.read_bytes() for path in self.folder.glob("received/delivery-*/*")
        }
        for one in everything:
            before = self.ended.get(one.id)
            assert before in (None, one.state)
            if one.ended is not None:
                self.ended[one.id] = one.state
            if one.state == "failed":
                assert one.code in ("upload-digest", "upload-expired")
            if one.state == "accepted":
                data = files_of(one.owner.removeprefix("20261123-"), size=20)
                assert {file.name: file.digest for file in one.files} == {
                    name: digest_bytes(delivered[name]) for name in data
                }
        assert self.refusals <= {"upload-quota", "upload-taken", "upload-limit"}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


class RandomUploadsPostgres(RandomUploads):
    """The same on the other engine."""

    engine = "postgresql"


TestRandomUploads = RandomUploads.TestCase
TestRandomUploadsPostgres = RandomUploadsPostgres.TestCase
TestRandomUploads.settings = settings(max_examples=8, stateful_step_count=25)
TestRandomUploadsPostgres.settings = settings(max_examples=4, stateful_step_count=25)
