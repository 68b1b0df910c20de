"""Uploads: begun, sent in parts, complete, handed over; or refused, and then nothing is used."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import intake_stage
import pytest
from intake_stage import ENDINGS, NOW, Stage, files_of, make_stage
from sqlalchemy import update

from databases import wiped
from heldout.board.store.arrivals import _check_files
from heldout.board.store.uploads import FileLimits
from heldout.database.database import Database
from heldout.envelope.bundle import file_names
from heldout.errors import InputError
from heldout.ids import Digest, SubmissionId
from heldout.intake.quota import Quota
from heldout.intake.tables import INTAKE, uploads
from heldout.intake.teams import MOST_SESSIONS, Team
from heldout.intake.uploads import (
    IntakeLimits,
    Upload,
    UploadFile,
    begin_upload,
    cancel_upload,
    get_upload,
    list_uploads,
    open_part,
    read_quota,
    sweep,
)
from heldout.intake.worker import hand_over

database = intake_stage.database
stage = intake_stage.stage
team = intake_stage.team
DAY = timedelta(days=1)
ONE = files_of("one")
FIRST = min(ONE)
QUOTA = Quota(limit=1, window=7 * DAY)


def code_of(work: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        work()
    return caught.value.code


def sqlite_stage(
    folder: Path, *, limits: IntakeLimits | None = None, of_files: FileLimits | None = None
) -> tuple[Stage, Team]:
    stage = make_stage(wiped("sqlite", INTAKE), folder, limits=limits, of_files=of_files)
    return stage, stage.team("Harbor")


def test_an_upload_that_was_cut_goes_on_and_is_handed_over_whole(stage: Stage, team: Team) -> None:
    begun = stage.begin(team, ONE)
    assert (begun.state, begun.kind, begun.owner) == ("open", "submission", "20261123-one")
    for name, data in ONE.items():
        stage.send(begun, name, data[:30])
        received = {one.name: one.received for one in stage.begin(team, ONE).files}
        assert received[name] == 30
        stage.send(begun, name, data[30:], offset=30)
    ready = stage.complete(begun)
    assert (ready.state, ready.completed) == ("complete", NOW)
    stage.work()
    done = get_upload(stage.store, team.id, begun.id)
    assert (done.state, done.why, done.ended) == ("accepted", "", NOW)
    (delivery,) = stage.store.folder.path.glob("delivery-*")
    assert {path.name: path.read_bytes() for path in delivery.iterdir()} == ONE
    assert not [one for one in stage.store.parts.iterdir() if one.is_dir()]


def test_what_is_asked_again_is_found_done(stage: Stage, team: Team) -> None:
    first = stage.upload(team, ONE, quota=QUOTA)
    assert stage.begin(team, ONE, quota=QUOTA).id == first.id
    assert stage.complete(first, quota=QUOTA) == first
    stage.work()
    assert stage.begin(team, ONE, quota=QUOTA).state == "accepted"
    assert stage.complete(first).state == "accepted"
    stage.work()
    assert stage.delivered() == ["20261123-one"]


def test_bytes_come_in_order_and_no_more_than_was_said(tmp_path: Path) -> None:
    stage, team = sqlite_stage(tmp_path)
    other = stage.team("Quay")
    begun = stage.begin(team, ONE)
    stage.send(begun, FIRST, ONE[FIRST][:10])
    for offset in (0, 9, 11):
        assert code_of(lambda at=offset: stage.send(begun, FIRST, b"x", offset=at)) == (  # type: ignore[misc]  # a default binds it
            "upload-offset"
        )
    assert code_of(lambda: stage.send(begun, FIRST, bytes(91), offset=10)) == "upload-too-large"
    assert code_of(lambda: stage.send(begun, "other", b"x")) == "upload-name"
    assert code_of(lambda: stage.complete(begun)) == "upload-incomplete"
    assert code_of(lambda: get_upload(stage.store, other.id, begun.id)) == "upload-unknown"
    assert code_of(lambda: cancel_upload(stage.store, other.id, begun.id, now=NOW)) == (
        "upload-unknown"
    )
    assert {one.received for one in get_upload(stage.store, team.id, begun.id).files} == {0, 10}


def test_a_request_that_breaks_keeps_what_came(tmp_path: Path) -> None:
    stage, team = sqlite_stage(tmp_path)
    begun = stage.begin(team, ONE)
    opened = open_part(stage.store, team.id, begun.id, FIRST, offset=0, clock=stage.clock)
    with suppress(ConnectionError), opened as part:
        part.write(ONE[FIRST][:40])
        raise ConnectionError
    stage.send(begun, FIRST, ONE[FIRST][40:], offset=40)
    assert stage.store.part(begun.id, FIRST).read_bytes() == ONE[FIRST]


def test_two_requests_never_write_one_file_at_once(tmp_path: Path) -> None:
    stage, team = sqlite_stage(tmp_path)
    begun = stage.begin(team, ONE)
    opened = open_part(stage.store, team.id, begun.id, FIRST, offset=0, clock=stage.clock)
    with opened as part:
        part.write(b"abc")
        assert code_of(lambda: stage.send(begun, FIRST, b"x")) == "upload-busy"
    assert stage.store.part(begun.id, FIRST).read_bytes() == b"abc"


def test_bytes_that_a_lost_disk_took_are_asked_again(tmp_path: Path) -> None:
    stage, team = sqlite_stage(tmp_path)
    begun = stage.begin(team, ONE)
    stage.send(begun, FIRST, ONE[FIRST])
    stage.store.part(begun.id, FIRST).write_bytes(ONE[FIRST][:7])
    assert code_of(lambda: stage.send(begun, FIRST, b"", offset=100)) == "upload-offset"
    files = get_upload(stage.store, team.id, begun.id).files
    assert next(one.received for one in files if one.name == FIRST) == 7
    stage.send(begun, FIRST, ONE[FIRST][7:], offset=7)


def test_bytes_with_another_digest_fail_and_use_no_quota(stage: Stage, team: Team) -> None:
    begun = stage.begin(team, ONE, quota=QUOTA)
    stage.fill(begun, {**ONE, FIRST: bytes(100)})
    stage.complete(begun, quota=QUOTA)
    assert read_quota(stage.store, team.id, QUOTA, now=NOW).used == ("20261123-one",)
    stage.work()
    failed = get_upload(stage.store, team.id, begun.id)
    assert (failed.state, failed.code) == ("failed", "upload-digest")
    assert FIRST in failed.why
    assert stage.delivered() == []
    assert read_quota(stage.store, team.id, QUOTA, now=NOW).used == ()
    stage.upload(team, ONE, quota=QUOTA)
    stage.work()
    assert stage.delivered() == ["20261123-one"]


def test_what_is_declared_wrongly_is_refused_before_a_byte_comes(tmp_path: Path) -> None:
    stage, team = sqlite_stage(tmp_path, of_files=FileLimits(file_bytes=99))
    two = dict(list(ONE.items())[:2])
    short = {name: data[:9] for name, data in ONE.items()}

    def begin(*files: UploadFile) -> object:
        return begin_upload(stage.store, team.id, files, address="", quota=None, now=NOW)

    assert code_of(lambda: stage.begin(team, ONE)) == "upload-too-large"
    assert code_of(lambda: stage.begin(team, two)) == "upload-too-large"
    assert code_of(lambda: stage.begin(team, dict(list(short.items())[:2]))) == "upload-set"
    assert code_of(lambda: stage.begin(team, {"../up": b"x"})) == "upload-name"
    assert code_of(lambda: stage.begin(team, {**short, FIRST: b""})) == "upload-set"
    metadata = f"20261123-one{ENDINGS[1]}"
    for digest in ("", "A" * 64, "a" * 63):
        one = UploadFile(name=metadata, size=5, digest=Digest(digest))
        assert code_of(lambda one=one: begin(one)) == "upload-digest"  # type: ignore[misc]  # a default binds it
    twice = UploadFile(name=metadata, size=5, digest=Digest("a" * 64))
    assert code_of(lambda: begin(twice, twice)) == "upload-set"
    assert list_uploads(stage.store, team.id) == ()


def test_an_update_or_a_registration_uses_no_quota(stage: Stage, team: Team) -> None:
    metadata = f"20261123-one{ENDINGS[1]}"
    for files in (ONE, {metadata: b"new"}, {metadata: b"newer"}, {f"team-{'0' * 16}.json": b"{}"}):
        stage.upload(team, files, quota=QUOTA)
    stage.work()
    kinds = [upload.kind for upload in list_uploads(stage.store, team.id)]
    assert sorted(kinds) == ["registration", "submission", "update", "update"]
    assert {upload.state for upload in list_uploads(stage.store, team.id)} == {"accepted"}
    assert read_quota(stage.store, team.id, QUOTA, now=NOW).used == ("20261123-one",)


def test_an_id_that_is_here_is_taken(stage: Stage) -> None:
    """Who begins first has no claim to it; whose files are here first has."""
    team, other = stage.team("Harbor"), stage.team("Quay")
    changed = {name: data + b"x" for name, data in ONE.items()}
    early = stage.begin(other, changed)
    stage.upload(team, ONE)
    assert code_of(lambda: stage.begin(stage.team("Pier"), changed)) == "upload-taken"
    assert stage.begin(team, changed).kind == "update"  # its own again, which uses no quota
    stage.fill(early, changed)
    assert code_of(lambda: stage.complete(early)) == "upload-taken"
    stage.work()
    assert stage.delivered() == ["20261123-one"]


def test_an_update_of_what_failed_is_a_submission(stage: Stage) -> None:
    """Else a team would send wrong bytes, and then all it likes without using quota."""
    team, other = stage.team("Harbor"), stage.team("Quay")
    first = stage.begin(team, ONE)
    stage.fill(first, {name: bytes(len(data)) for name, data in ONE.items()})
    stage.complete(first, quota=QUOTA)
    again = stage.begin(team, changed := {name: data + b"x" for name, data in ONE.items()})
    stage.fill(again, changed)
    assert again.kind == "update"
    assert code_of(lambda: stage.complete(again, quota=QUOTA)) == "upload-taken"  # not checked yet
    stage.work()
    assert stage.complete(again, quota=QUOTA).kind == "submission"
    stage.work()
    assert read_quota(stage.store, team.id, QUOTA, now=NOW).used == ("20261123-one",)
    assert code_of(lambda: stage.begin(other, ONE, quota=QUOTA)) == "upload-taken"


def test_quota_slides_and_what_the_log_gives_back_is_free_again(stage: Stage, team: Team) -> None:
    stage.upload(team, ONE, quota=QUOTA)
    assert code_of(lambda: stage.begin(team, files_of("two"), quota=QUOTA)) == "upload-quota"
    state = read_quota(stage.store, team.id, QUOTA, now=NOW + DAY)
    assert (state.used, state.next_allowed) == (("20261123-one",), NOW + 7 * DAY)
    returned = Quota(
        limit=1, window=7 * DAY, received={"20261123-one": NOW}, returned=["20261123-one"]
    )
    assert read_quota(stage.store, team.id, returned, now=NOW).used == ()
    elsewhere = Quota(limit=1, window=7 * DAY, counted={"by-git": NOW - DAY})
    assert read_quota(stage.store, team.id, elsewhere, now=NOW).next_allowed == NOW + 7 * DAY
    stage.clock.move(7 * DAY)
    stage.begin(team, files_of("two"), quota=QUOTA)


def test_the_official_time_of_the_log_counts_once_it_has_one(tmp_path: Path) -> None:
    stage, team = sqlite_stage(tmp_path)
    stage.upload(team, ONE)
    later = Quota(limit=1, window=7 * DAY, received={"20261123-one": NOW + DAY})
    assert read_quota(stage.store, team.id, later, now=NOW + 2 * DAY).next_allowed == NOW + 8 * DAY


def test_before_and_after_the_deadline_of_a_one_shot_board_count_apart(tmp_path: Path) -> None:
    stage, team = sqlite_stage(tmp_path)
    late = NOW + DAY
    quota = Quota(limit=1, window=10 * DAY, late=late)
    stage.upload(team, ONE, quota=quota)
    assert read_quota(stage.store, team.id, quota, now=NOW).next_allowed == late
    assert read_quota(stage.store, team.id, quota, now=late).used == ()


@pytest.mark.parametrize("teams", [1, 3])
def test_uploads_that_are_complete_at_once_never_exceed_the_quota(
    database: Database, tmp_path: Path, teams: int
) -> None:
    stage = make_stage(database, tmp_path, limits=IntakeLimits(free_bytes=0, of_team=6))
    quota = Quota(limit=2, window=7 * DAY)
    own = [stage.team(f"T{number}") for number in range(teams)]
    begun = []
    for number in range(6):
        files = files_of(f"s{number}")
        begun.append(stage.begin(own[number % teams], files, quota=quota))
        stage.fill(begun[-1], files)
    gate = threading.Barrier(6)

    def complete(number: int) -> bool:
        gate.wait()
        try:
            stage.complete(begun[number], quota=quota)
        except InputError as error:
            assert error.code == "upload-quota"  # noqa: PT017 - the others are counted
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(complete, range(6)))
    assert sum(taken) == (2 if teams == 1 else 6)
    for team in own:
        assert len(read_quota(stage.store, team.id, quota, now=NOW).used) == 2


def test_limits_hold_for_teams_addresses_and_all(tmp_path: Path) -> None:
    def begin(names: str, *, alone: bool, address: str = "", **limits: int) -> str:
        stage, _ = sqlite_stage(tmp_path, limits=IntakeLimits(**{"free_bytes": 0, **limits}))  # type: ignore[arg-type]  # numbers
        stage.address = address
        own = [stage.team(f"T{number}") for number in range(len(names))]
        for number, name in enumerate(names[:-1]):
            stage.begin(own[0 if alone else number], files_of(name))
        return code_of(lambda: stage.begin(own[0 if alone else -1], files_of(names[-1])))

    assert begin("abc", alone=True, of_team=2) == "upload-limit"
    assert begin("abc", alone=True, of_team_a_day=2) == "upload-limit"
    assert begin("abc", alone=True, at_once=2) == "upload-limit"
    assert begin("abc", alone=True, address="192.0.2.7", of_address=2) == "upload-limit"
    assert begin("abc", alone=False, bytes=1199) == "upload-full"
    assert begin("a", alone=True, free_bytes=1 << 62) == "upload-full"
    assert begin("a", alone=True, deliveries=0) == "upload-full"


def test_a_team_s_first_upload_is_taken_whatever_others_have_under_way(tmp_path: Path) -> None:
    stage, _ = sqlite_stage(tmp_path, limits=IntakeLimits(free_bytes=0, of_address=2, at_once=2))
    stage.address = "192.0.2.7"
    busy = stage.team("Busy")
    for name in "ab":
        stage.begin(busy, files_of(name))
    assert code_of(lambda: stage.begin(busy, files_of("c"))) == "upload-limit"
    neighbour = stage.team("Neighbour")
    assert stage.begin(neighbour, files_of("d")).state == "open"
    assert code_of(lambda: stage.begin(neighbour, files_of("e"))) == "upload-limit"


def huge(name: str, size: int) -> tuple[UploadFile, ...]:
    return tuple(
        UploadFile(name=one, size=size if one.endswith(ENDINGS[0]) else 1, digest=Digest("0" * 64))
        for one in files_of(name)
    )


def test_a_team_has_no_more_room_than_it_leaves_to_the_others(tmp_path: Path) -> None:
    """Room for 200 MiB: the first team gets 100, the next 50; a small upload always fits."""
    mib = 1 << 20
    limits = IntakeLimits(free_bytes=0, bytes=200 * mib, of_team=9)
    stage, _ = sqlite_stage(tmp_path, limits=limits)

    def begin(team: Team, name: str, size: int) -> Upload:
        return begin_upload(stage.store, team.id, huge(name, size), address="", quota=None, now=NOW)

    def fill(team: Team, upload: Upload) -> int:
        """How many mebibytes are taken until there is no room."""
        file = max(upload.files, key=lambda one: one.size)
        where = (stage.store, team.id, upload.id, file.name)
        with suppress(InputError), open_part(*where, offset=0, clock=lambda: NOW) as part:
            for _ in range(file.size // mib):
                part.write(bytes(mib))
        found = get_upload(stage.store, team.id, upload.id).files
        return max(one.received for one in found) // mib

    one, two, three = (stage.team(name) for name in ("One", "Two", "Three"))
    assert code_of(lambda: begin(one, "a", 101 * mib)) == "upload-full"
    promised = [begin(one, name, 60 * mib) for name in "bcd"]  # more than there is, and no byte
    assert begin(three, "e", 40 * mib).state == "open"
    assert [fill(one, upload) for upload in promised] == [48, 0, 0]
    assert fill(two, begin(two, "f", 30 * mib)) == 30
    assert begin(three, "g", mib).state == "open"


def test_one_that_ended_takes_no_place_and_names_no_address(tmp_path: Path) -> None:
    stage, team = sqlite_stage(tmp_path, limits=IntakeLimits(free_bytes=0, of_team=1))
    stage.address = "192.0.2.7"
    begun = stage.begin(team, ONE)
    stage.send(begun, FIRST, b"abc")
    cancelled = cancel_upload(stage.store, team.id, begun.id, now=NOW)
    assert (cancelled.state, cancelled.ended) == ("cancelled", NOW)
    assert cancel_upload(stage.store, team.id, begun.id, now=NOW) == cancelled
    assert not (stage.store.parts / begun.id).exists()
    assert code_of(lambda: stage.send(begun, FIRST, b"d", offset=3)) == "upload-ended"
    assert code_of(lambda: stage.complete(begun)) == "upload-ended"
    ready = stage.upload(team, ONE)
    assert code_of(lambda: cancel_upload(stage.store, team.id, ready.id, now=NOW)) == (
        "upload-ended"
    )
    stage.work()
    stage.begin(team, files_of("two"))
    with stage.database.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT state, address FROM uploads").all()
    assert sorted(map(tuple, found)) == [("accepted", ""), ("cancelled", ""), ("open", "192.0.2.7")]


def test_an_upload_that_nobody_goes_on_with_ends_and_its_parts_go(stage: Stage, team: Team) -> None:
    old = stage.begin(team, ONE)
    stage.clock.move(DAY)
    fresh = stage.begin(team, files_of("two"))
    for begun, files in ((old, ONE), (fresh, files_of("two"))):
        stage.send(begun, min(files), files[min(files)])
    (stage.store.parts / "stray").mkdir()
    assert sweep(stage.store, now=NOW + 2 * DAY) == 0
    assert sweep(stage.store, now=NOW + 3 * DAY - timedelta(seconds=1)) == 0
    stage.clock.move(DAY)
    stage.send(fresh, max(files_of("two")), b"more")
    assert sweep(stage.store, now=NOW + 3 * DAY) == 1
    assert get_upload(stage.store, team.id, old.id).code == "upload-expired"
    assert [one.name for one in stage.store.parts.iterdir()] == [fresh.id]


def test_an_upload_of_which_nothing_comes_ends_within_minutes(stage: Stage, team: Team) -> None:
    silent = stage.begin(team, ONE)
    begun = stage.begin(team, files_of("two"))
    stage.send(begun, min(files_of("two")), b"t")
    assert sweep(stage.store, now=NOW + timedelta(minutes=14)) == 0
    assert sweep(stage.store, now=NOW + timedelta(minutes=15)) == 1
    assert get_upload(stage.store, team.id, silent.id).code == "upload-expired"
    assert get_upload(stage.store, team.id, begun.id).state == "open"
    assert stage.begin(team, ONE).state == "open"


def test_a_byte_a_day_keeps_no_room_for_ever(stage: Stage, team: Team) -> None:
    begun = stage.begin(team, ONE)
    for day in range(7):
        assert sweep(stage.store, now=stage.clock()) == 0
        stage.send(begun, FIRST, ONE[FIRST][day : day + 1], offset=day)
        stage.clock.move(DAY)
    assert sweep(stage.store, now=stage.clock()) == 1
    assert get_upload(stage.store, team.id, begun.id).code == "upload-expired"


def test_metadata_and_keys_are_as_small_as_the_inbox_takes_them(tmp_path: Path) -> None:
    """Metadata alone use no quota: a gibibyte of them, again and again, would fill the folder."""
    stage, team = sqlite_stage(tmp_path)
    limits = FileLimits()
    sizes = limits.file_bytes, limits.metadata_bytes, limits.key_bytes
    names = file_names("age", SubmissionId("20261123-one"))
    ours = dict(zip(names.all, sizes, strict=True))

    def begin(sizes: Mapping[str, int]) -> object:
        files = [UploadFile(name=n, size=s, digest=Digest("a" * 64)) for n, s in sizes.items()]
        return begin_upload(stage.store, team.id, files, address="", quota=None, now=NOW)

    for name, size in ours.items():
        assert code_of(lambda more={**ours, name: size + 1}: begin(more)) == "upload-too-large"  # type: ignore[misc]  # a default binds it
        refused = _check_files(SubmissionId("20261123-one"), "age", {**ours, name: size + 1})
        assert [one.path for one in refused] == [name]
    begin(ours)


def test_an_id_that_the_log_knows_is_taken_and_no_way_round_the_quota(
    stage: Stage, team: Team
) -> None:
    """Counted as the log counts that submission, it would be returned, or long ago."""
    logged = {"20261123-one": NOW - 400 * DAY, "20261123-two": NOW}
    quota = Quota(limit=1, window=7 * DAY, received=logged, returned=["20261123-two"])
    for name in ("one", "two"):
        assert code_of(lambda n=name: stage.begin(team, files_of(n), quota=quota)) == "upload-taken"  # type: ignore[misc]  # a default binds it
    early = stage.begin(team, ONE)
    stage.fill(early, ONE)
    assert code_of(lambda: stage.complete(early, quota=quota)) == "upload-taken"
    stage.upload(team, files_of("three"), quota=quota)
    assert stage.begin(team, {FIRST: b"new"}, quota=quota).kind == "update"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_what_a_team_sends_twice_the_last_is_delivered_whoever_hands_it_over(
    stage: Stage, team: Team, order: tuple[int, int]
) -> None:
    """The server's own worker, or another, may be at it before the request is."""
    newer, newest = ({name: data + more for name, data in ONE.items()} for more in (b"x", b"y"))
    other = stage.upload(team, files_of("two"))
    stage.upload(team, ONE)
    stage.work()
    sent = []
    for files in (newer, newest):
        sent.append(stage.upload(team, files))
        stage.clock.move(timedelta(seconds=1))
    for place in order:
        hand_over(stage.store, sent[place].id, now=stage.clock())
    assert {one.state for one in list_uploads(stage.store, team.id)} == {"accepted"}
    assert stage.delivered() == ["20261123-one", other.owner]
    lying = {path.name: path.read_bytes() for path in stage.store.folder.path.glob("*/*")}
    assert {name: lying[name] for name in newest} == newest


def test_what_lies_in_the_folder_is_accepted_without_its_parts(stage: Stage, team: Team) -> None:
    """As after a restored backup: the database is of a moment before the delivery."""
    stage.upload(team, ONE)
    stage.work()
    with stage.database.engine.begin() as connection:
        connection.execute(update(uploads).values(state="complete", ended_at=None))
    stage.work()
    assert [one.state for one in list_uploads(stage.store, team.id)] == ["accepted"]
    assert stage.delivered() == ["20261123-one"]


def test_what_waits_for_the_inbox_takes_room(tmp_path: Path) -> None:
    """Nothing more is begun where the folder is full; what is under way is handed over."""
    stage, team = sqlite_stage(tmp_path, limits=IntakeLimits(free_bytes=0, bytes=900))
    first, second = stage.begin(team, ONE), stage.begin(team, {FIRST: b"new"})
    for begun, files in ((first, ONE), (second, {FIRST: b"new"})):
        stage.fill(begun, files)
        stage.complete(begun)
        stage.work()
    assert stage.store.folder.count_deliveries() == (2, 303)
    assert code_of(lambda: stage.begin(team, files_of("two"))) == "upload-full"
    for delivery in stage.store.folder.path.glob("delivery-*"):
        for path in delivery.iterdir():
            path.unlink()
    assert stage.begin(team, files_of("two")).state == "open"
    assert list(stage.store.folder.path.glob("delivery-*")) == []


def test_parts_that_are_gone_fail_and_use_no_quota(tmp_path: Path) -> None:
    stage, team = sqlite_stage(tmp_path)
    ready = stage.upload(team, ONE, quota=QUOTA)
    stage.store.part(ready.id, FIRST).unlink()
    stage.work()
    failed = get_upload(stage.store, team.id, ready.id)
    assert (failed.state, failed.code) == ("failed", "upload-lost")
    assert read_quota(stage.store, team.id, QUOTA, now=stage.clock()).used == ()
    assert list(stage.store.folder.path.glob("delivery-*")) == []


@pytest.mark.parametrize("name", ["received", "parts"])
def test_a_disk_that_is_away_for_a_day_loses_nothing(name: str, tmp_path: Path) -> None:
    stage, team = sqlite_stage(tmp_path)
    ready = stage.upload(team, ONE)
    folder = tmp_path / name
    folder.rename(tmp_path / "away")
    for _ in range(30):
        stage.work()
        stage.clock.move(timedelta(hours=1))
    assert get_upload(stage.store, team.id, ready.id).state == "complete"
    (tmp_path / "away").rename(folder)
    stage.work()
    assert get_upload(stage.store, team.id, ready.id).state == "accepted"


def test_the_page_of_the_intake_says_its_limits() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "intake.md").read_text("utf-8")
    limits, files = IntakeLimits(), FileLimits()
    gib, kib = 1 << 30, 1 << 10
    for row in (
        (
            f"| {files.file_bytes // gib} GiB; {files.metadata_bytes // kib:,} KiB; "
            f"{files.key_bytes // kib} KiB; {files.registration_bytes // kib} KiB |"
        ),
        f"| {limits.of_team}, {limits.of_address}, {limits.at_once} |",
        f"begins in 24 hours | {limits.of_team_a_day} |",
        f"| {limits.bytes // gib} GiB; {limits.free_bytes // gib} GiB |",
        (
            f"| ends after {limits.unbegun.seconds // 60} minutes; {limits.idle.days} days; "
            f"{limits.longest.days} days |"
        ),
        f"sessions of a team | {MOST_SESSIONS}; ",
    ):
        assert row in page
