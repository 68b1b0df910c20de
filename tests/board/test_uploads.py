"""Uploads in a folder: whole or absent, never over another file, and found by the inbox."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import threading
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.store.arrivals import Seen, find_in_folder, find_registrations_in_folder, is_team
from heldout.board.store.uploads import Limits, UploadFolder, UploadReceipt
from heldout.envelope.bundle import file_names
from heldout.errors import InputError, StoreError
from heldout.files.durable import File
from heldout.ids import SubmissionId

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ENDINGS = file_names("age", SubmissionId("")).all
ONE = "20261121-lighthouse"
TEAM = "team-0123456789abcdef"


def files_of(name: str = ONE, salt: bytes = b"") -> dict[str, bytes]:
    return {f"{name}{ending}": ending.encode() + salt for ending in ENDINGS}


def send(folder: UploadFolder, files: dict[str, bytes], *, piece: int = 5) -> UploadReceipt:
    with folder.deliver() as delivery:
        for name, data in files.items():
            delivery.begin_file(name)
            for start in range(0, len(data), piece):
                delivery.write(data[start : start + piece])
        return delivery.finish(now=NOW)


def lying(folder: UploadFolder) -> dict[str, bytes]:
    """What lies there, in deliveries or beside them, but for the lock."""
    inside = [path for one in folder.path.glob("delivery-*") for path in one.iterdir()]
    beside = [p for p in folder.path.iterdir() if not p.name.startswith("delivery-")]
    return {
        path.name: path.read_bytes() if path.is_file() else b"?"
        for path in (*inside, *beside)
        if path.name != ".uploading.lock"
    }


@pytest.fixture
def folder(tmp_path: Path) -> UploadFolder:
    path = tmp_path / "uploads"
    path.mkdir()
    return UploadFolder(path=path, endings=ENDINGS, is_team=is_team, limits=Limits(free_bytes=0))


def in_order(files: Iterable[Mapping[str, bytes]]) -> list[list[tuple[str, bytes]]]:
    return sorted(sorted(one.items()) for one in files)


def refusal(folder: UploadFolder, files: dict[str, bytes]) -> str:
    with pytest.raises(InputError) as error:
        send(folder, files)
    return error.value.problems[0].code


def test_a_submission_lies_there_as_it_came_and_the_inbox_finds_it(folder: UploadFolder) -> None:
    receipt = send(folder, files_of())
    assert lying(folder) == files_of()
    assert (receipt.owner, receipt.kind) == (ONE, "submission")
    assert (receipt.known, receipt.received) == (False, NOW)
    for one in receipt.files:
        data = files_of()[one.name]
        assert (one.size, one.digest) == (len(data), hashlib.sha256(data).hexdigest())
    assert receipt.digest == hashlib.sha256(receipt.sums.encode()).hexdigest()
    (arrival,) = find_in_folder(folder.path, "age")
    assert (arrival.id, arrival.problems) == (ONE, ())
    assert arrival.read() == files_of()


def test_the_same_files_again_are_known_and_keep_their_receipt(folder: UploadFolder) -> None:
    first = send(folder, files_of())
    again = send(folder, dict(reversed(files_of().items())))
    assert (again.known, again.digest) == (True, first.digest)
    assert lying(folder) == files_of()


def test_a_delivery_that_was_emptied_is_none(folder: UploadFolder) -> None:
    """What takes its files one by one leaves its folder: the same files again are new."""
    send(folder, files_of())
    (delivery,) = folder.path.glob("delivery-*")
    for path in delivery.iterdir():
        path.unlink()
    assert not send(folder, files_of()).known
    assert lying(folder) == files_of()
    (folder.path / "delivery-0000000000000000").mkdir()
    few = replace(folder, limits=replace(folder.limits, deliveries=2))
    send(few, {f"{ONE}{ENDINGS[1]}": b"new"})
    assert len(list(folder.path.glob("delivery-*"))) == 2


def test_the_page_s_command_takes_deliveries_and_nothing_else(
    folder: UploadFolder, tmp_path: Path
) -> None:
    """As docs/how-to/accept-uploads.md has it, but from a folder of this machine."""
    rsync = shutil.which("rsync")
    if rsync is None:
        pytest.skip("no rsync here")
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "accept-uploads.md").read_text("utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith("rsync ")]
    send(folder, files_of())
    beside = (".parts/x/file", ".uploading-x/form", "intake.sqlite", "intake.sqlite-wal")
    for name in beside:
        (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.path / name).write_text("the server's own")
    taken = tmp_path / "taken"
    taken.mkdir()
    *options, source, target = shlex.split(line)[1:]
    assert (source, target) == ("server:uploads/", "uploads/")
    command = [rsync, *options, f"{folder.path}/", f"{taken}/"]
    subprocess.run(command, check=True, capture_output=True)
    (arrival,) = find_in_folder(taken, "age")
    assert arrival.read() == files_of()
    assert [one.name.partition("-")[0] for one in taken.iterdir()] == ["delivery"]
    assert all((folder.path / name).is_file() for name in beside)
    assert not send(folder, files_of()).known


def test_nobody_replaces_or_blocks_what_another_sends_under_the_same_id(
    folder: UploadFolder,
) -> None:
    """Each delivery has a folder of its own: junk under an id keeps no team's update out."""
    junk = {f"{ONE}{ENDINGS[1]}": b"junk"}
    send(folder, junk)
    send(folder, files_of())
    assert not send(folder, {f"{ONE}{ENDINGS[1]}": b"the team's own"}).known
    found = [arrival.read() for arrival in find_in_folder(folder.path, "age")]
    assert len(found) == 3
    assert junk in found
    assert files_of() in found


def test_what_lies_beside_the_deliveries_keeps_none_out(folder: UploadFolder) -> None:
    key = f"{ONE}{ENDINGS[2]}"
    (folder.path / key).write_bytes(b"somebody's")
    assert not send(folder, files_of()).known
    beside, uploaded = find_in_folder(folder.path, "age")
    assert [problem.code for problem in beside.problems] == ["missing-file"]
    assert (beside.source, uploaded.read()) == ("a folder", files_of())
    assert re.fullmatch("upload [0-9a-f]{16}", uploaded.source)


@pytest.mark.parametrize("make", ["link", "dangling", "folder", "pipe"])
def test_what_is_no_plain_file_is_neither_followed_nor_replaced(
    folder: UploadFolder, tmp_path: Path, make: str
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / f"{ONE}{ENDINGS[0]}").write_bytes(b"secret")
    send(folder, files_of())
    (place,) = folder.path.glob("delivery-*")
    shutil.rmtree(place)
    if make == "folder":
        (place / "somebody's").mkdir(parents=True)
    elif make == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(secret if make == "link" else tmp_path / "nowhere")
    send(folder, files_of())
    assert list(find_in_folder(folder.path, "age")) == []
    assert [path.read_bytes() for path in secret.iterdir()] == [b"secret"]


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "x", "/etc/passwd", "../" + ONE + ENDINGS[0], ONE, ENDINGS[0],
        f"a/{ONE}{ENDINGS[0]}", f"{ONE}{ENDINGS[0]}/", f"{ONE}\\..\\x{ENDINGS[0]}",
        f"{ONE}\0{ENDINGS[0]}", f"{ONE}{ENDINGS[0]}\n", f"{ONE} {ENDINGS[0]}",
        f"20269999-x{ENDINGS[0]}", f"20261121-..{ENDINGS[0]}", f"20261121-{'x' * 65}{ENDINGS[0]}",
        f"20261121-ü{ENDINGS[0]}", f"20261121-\u202e{ENDINGS[0]}", f"٢٠٢٦١١٢١-x{ENDINGS[0]}",
        f"{ONE}.reply.txt", f"{ONE}.json", TEAM, f"{TEAM}.json.age", f"{TEAM}.JSON",
        f"{TEAM}.json\n", f"{TEAM}0.json", "team-0123456789ABCDEF.json", f"../{TEAM}.json",
        f"registrations/{TEAM}.json", "team-\u0660123456789abcdef.json", ".json",
        f"{TEAM}{ENDINGS[0]}", ".uploading.lock", f"{ONE}{ENDINGS[0].upper()}",
        "board.toml", "x" * 10_000 + ENDINGS[0],
    ],
)  # fmt: skip
def test_a_name_that_is_none_of_a_sealed_file_is_refused(folder: UploadFolder, name: str) -> None:
    assert refusal(folder, {name: b"x"}) == "upload-name"
    assert lying(folder) == {}


@given(
    st.one_of(st.text(max_size=40), st.from_regex(r"team-[0-9a-f]{16}")),
    st.sampled_from([*ENDINGS, ".json"]),
)
def test_no_name_leaves_the_folder(head: str, ending: str) -> None:
    folder = UploadFolder(path=Path("/nonexistent"), endings=ENDINGS, is_team=is_team)
    try:
        owner = folder.check_name(head + ending)
    except InputError:
        return
    assert Path(head + ending).name == head + ending
    assert head + ending in {f"{owner}{one}" for one in (*ENDINGS, ".json")}


@pytest.mark.parametrize(
    "kept",
    [(), (0,), (2,), (0, 1), (0, 2), (1, 2)],
)
def test_a_part_of_a_submission_is_refused(folder: UploadFolder, kept: tuple[int, ...]) -> None:
    names = list(files_of())
    assert refusal(folder, {names[place]: b"x" for place in kept}) == "upload-set"
    assert lying(folder) == {}


def test_metadata_alone_is_an_update(folder: UploadFolder) -> None:
    name = f"{ONE}{ENDINGS[1]}"
    assert not send(folder, {name: b"new"}).known
    (arrival,) = find_in_folder(folder.path, "age")
    assert arrival.problems == ()


def test_a_registration_is_one_file_that_the_inbox_finds(folder: UploadFolder) -> None:
    sent = {f"{TEAM}.json": b"{}"}
    receipt = send(folder, sent)
    assert (receipt.owner, receipt.kind, receipt.known) == (TEAM, "registration", False)
    assert [one.name for one in receipt.files] == [*sent]
    assert lying(folder) == sent
    (arrival,) = find_registrations_in_folder(folder.path)
    assert (arrival.problems, arrival.read()) == ((), sent)
    assert [*find_in_folder(folder.path, "age")] == []
    assert send(folder, sent).known


def test_a_registration_comes_alone_is_small_and_not_empty(folder: UploadFolder) -> None:
    name, other = f"{TEAM}.json", "team-fedcba9876543210.json"
    assert refusal(folder, {name: b"{}", **files_of()}) == "upload-set"
    assert refusal(folder, {**files_of(), name: b"{}"}) == "upload-set"
    assert refusal(folder, {name: b"{}", other: b"{}"}) == "upload-set"
    assert refusal(folder, {name: b""}) == "upload-set"
    most = folder.limits.registration_bytes
    assert refusal(folder, {name: bytes(most + 1)}) == "upload-too-large"
    assert lying(folder) == {}
    send(folder, {name: bytes(most)}, piece=most)
    (arrival,) = find_registrations_in_folder(folder.path)
    assert arrival.problems == ()


def test_where_no_registration_is_taken_its_name_is_none(folder: UploadFolder) -> None:
    without = UploadFolder(path=folder.path, endings=ENDINGS, limits=Limits(free_bytes=0))
    assert refusal(without, {f"{TEAM}.json": b"{}"}) == "upload-name"


def test_files_of_two_submissions_or_an_empty_one_are_refused(folder: UploadFolder) -> None:
    mixed = {f"{ONE}{ENDINGS[0]}": b"x", f"20261121-other{ENDINGS[1]}": b"x"}
    assert refusal(folder, mixed) == "upload-set"
    assert refusal(folder, {**files_of(), f"{ONE}{ENDINGS[1]}": b""}) == "upload-set"
    assert lying(folder) == {}


def test_a_file_that_comes_twice_is_refused(folder: UploadFolder) -> None:
    name = f"{ONE}{ENDINGS[0]}"
    with folder.deliver() as delivery:
        delivery.begin_file(name)
        with pytest.raises(InputError, match="upload-set"):
            delivery.begin_file(name)
    assert lying(folder) == {}


def test_sizes_are_bounded_by_file_folder_and_disk(
    folder: UploadFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limited(**limits: int) -> UploadFolder:
        fields = {"free_bytes": 0, **limits}
        return UploadFolder(path=folder.path, endings=ENDINGS, limits=Limits(**fields))

    size = sum(map(len, files_of().values()))
    assert refusal(limited(file_bytes=5), files_of()) == "upload-too-large"
    assert refusal(limited(folder_bytes=size - 1), files_of()) == "upload-full"
    assert lying(folder) == {}
    send(limited(folder_bytes=size), files_of())
    assert refusal(limited(folder_bytes=size), files_of("20261121-next")) == "upload-full"
    usage = shutil.disk_usage(folder.path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    assert refusal(limited(free_bytes=usage.free), files_of("20261121-next")) == "upload-full"
    assert lying(folder) == files_of()


def test_a_full_disk_is_told_and_leaves_nothing(
    folder: UploadFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert refusal(folder, files_of()) == "upload-full"
    assert lying(folder) == {}


def test_uploads_at_once_are_counted_and_freed(folder: UploadFolder) -> None:
    few = UploadFolder(path=folder.path, endings=ENDINGS, limits=Limits(free_bytes=0, at_once=2))
    with ExitStack() as held:
        for _ in range(2):
            held.enter_context(few.deliver())
        assert refusal(few, files_of()) == "upload-busy"
    send(few, files_of())


def test_room_is_set_apart_as_bytes_come_and_not_for_what_is_promised(
    folder: UploadFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who promises all that fits and sends nothing keeps nobody out; the disk is never filled."""
    usage = shutil.disk_usage(folder.path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    for limits in (Limits(free_bytes=100), Limits(free_bytes=0, folder_bytes=900)):
        narrow = UploadFolder(path=folder.path, endings=ENDINGS, limits=limits)
        with pytest.raises(InputError, match="upload-full"), narrow.deliver(size=901):
            pass
        with narrow.deliver(size=900) as silent, narrow.deliver(size=900) as honest:
            honest.begin_file(f"{ONE}{ENDINGS[0]}")
            honest.write(bytes(500))
            silent.begin_file(f"{ONE}{ENDINGS[0]}")
            with pytest.raises(InputError, match="upload-full"):
                silent.write(bytes(401))


def test_room_is_set_apart_as_it_comes_where_nobody_said_how_much(folder: UploadFolder) -> None:
    narrow = UploadFolder(
        path=folder.path, endings=ENDINGS, limits=Limits(free_bytes=0, folder_bytes=1000)
    )
    with narrow.deliver() as first, narrow.deliver() as second:
        for delivery in (first, second):
            delivery.begin_file(f"{ONE}{ENDINGS[0]}")
            delivery.write(bytes(400))
        with pytest.raises(InputError, match="upload-full"):
            first.write(bytes(201))


def test_one_address_has_a_few_places_and_leaves_the_others(folder: UploadFolder) -> None:
    few = UploadFolder(path=folder.path, endings=ENDINGS, limits=Limits(free_bytes=0, of_one=2))
    with few.deliver(sender="192.0.2.1"), few.deliver(sender="192.0.2.1"):
        with pytest.raises(InputError, match="upload-busy"), few.deliver(sender="192.0.2.1"):
            pass
        with few.deliver(sender="192.0.2.2"), few.deliver(), few.deliver(), few.deliver():
            pass


def test_what_a_killed_server_left_is_removed_at_the_next_upload(folder: UploadFolder) -> None:
    """Nobody holds its line of the account any more; what is under way keeps its own."""
    left = folder.path / ".uploading-left"
    left.mkdir()
    (left / "part").write_bytes(b"x")
    (folder.path / ".uploading-left.account").write_bytes(b'{"reserved": 99999999999}')
    with folder.deliver(size=5) as first:
        assert not left.exists()
        first.begin_file(f"{ONE}{ENDINGS[0]}")
        with folder.deliver(size=5):
            assert len(list(folder.path.glob(".uploading-*.account"))) == 2
        first.write(b"on it goes"[:5])
    assert lying(folder) == {}


def test_an_upload_takes_no_more_memory_where_thousands_wait(folder: UploadFolder) -> None:
    """Else a server whose inbox is seldom emptied grows with every upload."""

    def most_bytes() -> int:
        with folder.deliver(size=1):
            pass  # what is made once, as the lock, is there
        tracemalloc.start()
        try:
            with folder.deliver(size=1):
                return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def wait(numbers: Iterable[int]) -> None:
        for number in numbers:
            one = folder.path / f"delivery-{number:016x}"
            one.mkdir()
            (one / f"20261121-{number}{ENDINGS[0]}").write_bytes(b"x")

    wait(range(10))
    few = most_bytes()
    wait(range(10, 2000))
    assert most_bytes() < few + 10_000  # the names alone take 150 kB


def test_of_several_that_race_for_an_id_each_is_whole(folder: UploadFolder) -> None:
    """Each sends three files that all differ; no mixture may come of it."""
    for trial in range(10):
        name = f"20261121-race{trial}"
        ready = threading.Barrier(4)
        results: dict[bytes, str] = {}

        def race(
            salt: bytes,
            name: str = name,
            ready: threading.Barrier = ready,
            results: dict[bytes, str] = results,
        ) -> None:
            with folder.deliver() as delivery:
                for one, data in files_of(name, salt).items():
                    delivery.begin_file(one)
                    delivery.write(data)
                ready.wait(10)
                try:
                    delivery.finish(now=NOW)
                    results[salt] = "taken"
                except InputError as error:
                    results[salt] = error.problems[0].code

        threads = [threading.Thread(target=race, args=(bytes([n]),)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert list(results.values()) == ["taken"] * 4
        there = [a.read() for a in find_in_folder(folder.path, "age") if a.id == name]
        assert in_order(there) == in_order(files_of(name, salt) for salt in results)


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    gone = UploadFolder(path=tmp_path / "gone", endings=ENDINGS)
    with pytest.raises(StoreError, match="not a folder"), gone.deliver():
        pass


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """Whatever happened, no upload lies aside."""
    yield
    assert [path for path in tmp_path.rglob(".uploading-*") if path.is_dir()] == []


@pytest.mark.parametrize("when", ["before it is looked at", "before it is read"])
@pytest.mark.parametrize("kind", ["symlink", "other bytes", "more bytes", "nothing"])
def test_a_file_that_is_swapped_is_not_taken_for_what_was_seen(
    folder: UploadFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, kind: str
) -> None:
    """Whoever can write to the folder swaps a file while the inbox reads it."""
    secret = tmp_path / "labels"
    secret.write_bytes(b"q1 0 d1 1\n")
    send(folder, files_of())
    name = next(iter(files_of()))
    (place,) = folder.path.glob(f"delivery-*/{name}")

    def swap() -> None:
        place.unlink(missing_ok=True)
        if kind == "symlink":
            place.symlink_to(secret)
        elif kind != "nothing":
            place.write_bytes(b"x" * len(files_of()[name]) if kind == "other bytes" else b"x" * 999)

    look = Seen.look

    def look_late(file: File, *, most: int) -> Seen | None:
        if file.name == name:
            swap()
        return look(file, most=most)

    if when == "before it is looked at":
        monkeypatch.setattr(Seen, "look", look_late)
    (arrival,) = find_in_folder(folder.path, "age")
    if when == "before it is read":
        swap()
    if when == "before it is looked at" and "bytes" in kind:
        assert arrival.read()[name] == place.read_bytes()
        return
    if when == "before it is looked at":
        assert [problem.code for problem in arrival.problems] == ["missing-file"]
        return
    with pytest.raises(InputError) as error:
        arrival.read()
    assert [problem.code for problem in error.value.problems] == ["changed-file"]


def test_a_lock_that_is_a_symlink_is_not_followed(folder: UploadFolder, tmp_path: Path) -> None:
    (folder.path / ".uploading.lock").unlink(missing_ok=True)
    (folder.path / ".uploading.lock").symlink_to(tmp_path / "made")
    with pytest.raises(StoreError, match="is a symlink"):
        send(folder, files_of())
    assert not (tmp_path / "made").exists()
