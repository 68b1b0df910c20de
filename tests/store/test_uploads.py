"""Uploads in a folder: whole or absent, never over another file, and found by the inbox."""

import hashlib
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.envelope.bundle import file_names
from heldout.errors import InputError, StoreError
from heldout.ids import SubmissionId
from heldout.store import uploads
from heldout.store.arrivals import Seen, find_in_folder
from heldout.store.files import File
from heldout.store.registrations import find_registrations_in_folder, is_team
from heldout.store.upload_receipts import UploadReceipt
from heldout.store.uploads import Limits, UploadFolder

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ENDINGS = file_names("age", SubmissionId("")).all
ONE = "20261121-lighthouse"
TEAM = "team-0123456789abcdef"


def files_of(name: str = ONE, salt: bytes = b"") -> dict[str, bytes]:
    return {f"{name}{ending}": ending.encode() + salt for ending in ENDINGS}


def send(folder: UploadFolder, files: dict[str, bytes], *, piece: int = 5) -> UploadReceipt:
    with folder.deliver(now=NOW) as delivery:
        for name, data in files.items():
            delivery.begin_file(name)
            for start in range(0, len(data), piece):
                delivery.write(data[start : start + piece])
        return delivery.finish(now=NOW)


def lying(folder: UploadFolder) -> dict[str, bytes]:
    """What lies there but for the lock."""
    return {
        path.name: path.read_bytes() if path.is_file() else b"?"
        for path in folder.path.iterdir()
        if path.name != ".uploading.lock"
    }


@pytest.fixture
def folder(tmp_path: Path) -> UploadFolder:
    path = tmp_path / "uploads"
    path.mkdir()
    return UploadFolder(path=path, endings=ENDINGS, is_team=is_team, limits=Limits(free_bytes=0))


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


def test_nobody_replaces_what_lies_there(folder: UploadFolder) -> None:
    send(folder, files_of())
    for name in files_of():
        other = {**files_of(), name: b"other"}
        assert refusal(folder, other) == "upload-taken"
    assert refusal(folder, {f"{ONE}{ENDINGS[1]}": b"other metadata"}) == "upload-taken"
    assert lying(folder) == files_of()


def test_one_file_that_is_taken_keeps_the_others_out(folder: UploadFolder) -> None:
    key = f"{ONE}{ENDINGS[2]}"
    (folder.path / key).write_bytes(b"somebody's")
    assert refusal(folder, files_of()) == "upload-taken"
    assert lying(folder) == {key: b"somebody's"}


def test_an_upload_that_a_crash_cut_between_two_names_goes_on(folder: UploadFolder) -> None:
    key = f"{ONE}{ENDINGS[2]}"
    (folder.path / key).write_bytes(files_of()[key])
    assert not send(folder, files_of()).known
    assert lying(folder) == files_of()


@pytest.mark.parametrize("make", ["link", "dangling", "folder", "pipe"])
def test_what_is_no_plain_file_is_neither_followed_nor_replaced(
    folder: UploadFolder, tmp_path: Path, make: str
) -> None:
    place, secret = folder.path / f"{ONE}{ENDINGS[0]}", tmp_path / "secret"
    secret.write_bytes(files_of()[place.name])
    if make == "folder":
        place.mkdir()
    elif make == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(secret if make == "link" else tmp_path / "nowhere")
    assert refusal(folder, files_of()) == "upload-taken"
    assert secret.read_bytes() == files_of()[place.name]
    assert len(lying(folder)) == 1


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
    assert refusal(folder, {f"{TEAM}.json": b"another"}) == "upload-taken"
    assert lying(folder) == sent


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
    with folder.deliver(now=NOW) as delivery:
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
            held.enter_context(few.deliver(now=NOW))
        assert refusal(few, files_of()) == "upload-busy"
    send(few, files_of())


@pytest.mark.parametrize("gone", ["file", "folder"])
def test_a_file_of_another_upload_that_goes_between_listing_and_looking_counts_for_nothing(
    folder: UploadFolder, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside = folder.path / ".uploading-other"
    aside.mkdir()
    (aside / "moved").write_bytes(bytes(1 << 12))
    (aside / "stays").write_bytes(bytes(3))
    listed = uploads._entries

    def list_and_lose(place: Path) -> list[os.DirEntry[str]]:
        if gone == "folder" and place == aside:
            shutil.rmtree(aside)
        found = listed(place)
        if gone == "file" and place == aside:
            (aside / "moved").rename(folder.path / "moved")
        return found

    monkeypatch.setattr(uploads, "_entries", list_and_lose)
    assert folder.limits.folder_bytes - folder._room() == (3 if gone == "file" else 0)
    monkeypatch.undo()
    shutil.rmtree(aside, ignore_errors=True)


def test_what_a_killed_server_left_is_removed_a_day_later(folder: UploadFolder) -> None:
    left = folder.path / ".uploading-left"
    left.mkdir()
    (left / "part").write_bytes(b"x")
    touched = datetime.fromtimestamp(left.stat().st_mtime, UTC)
    with folder.deliver(now=touched + timedelta(hours=23)):
        assert left.exists()
    with folder.deliver(now=touched + timedelta(hours=25)):
        assert not left.exists()


def test_of_two_that_race_for_an_id_one_is_taken_whole(folder: UploadFolder) -> None:
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
            with folder.deliver(now=NOW) as delivery:
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
        assert sorted(results.values()) == ["taken", *["upload-taken"] * 3]
        winner = next(salt for salt, found in results.items() if found == "taken")
        there = {n: d for n, d in lying(folder).items() if n.startswith(name)}
        assert there == files_of(name, winner)


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    gone = UploadFolder(path=tmp_path / "gone", endings=ENDINGS)
    with pytest.raises(StoreError, match="not a folder"), gone.deliver(now=NOW):
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

    def swap() -> None:
        place = folder.path / name
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
        assert arrival.read()[name] == (folder.path / name).read_bytes()
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
