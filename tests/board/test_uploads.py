"""Uploads in a folder: whole or absent, never over another file, and found by the inbox."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.store.arrivals import Seen, find_in_folder, find_registrations_in_folder, is_team
from heldout.board.store.uploads import FileLimits, UploadFolder
from heldout.envelope.bundle import file_names
from heldout.errors import InputError, StoreError
from heldout.files.durable import File
from heldout.ids import SubmissionId, digest_bytes

ENDINGS = file_names("age", SubmissionId("")).all
ONE = "20261121-lighthouse"
TEAM = "team-0123456789abcdef"


def files_of(name: str = ONE, salt: bytes = b"") -> dict[str, bytes]:
    return {f"{name}{ending}": ending.encode() + salt for ending in ENDINGS}


def send(folder: UploadFolder, files: Mapping[str, bytes]) -> tuple[str, str]:
    """Deliver files as a server does once they are whole; the owner, and the kind."""
    found = folder.check_set({name: len(data) for name, data in files.items()})
    with TemporaryDirectory(dir=folder.path.parent, prefix="parts-") as parts:
        for name, data in files.items():
            (Path(parts) / name).write_bytes(data)
        digests = {name: digest_bytes(data) for name, data in files.items()}
        folder.deliver(Path(parts), digests)
    return found


def lying(folder: UploadFolder) -> dict[str, bytes]:
    """What lies there, in deliveries or beside them."""
    inside = [path for one in folder.path.glob("delivery-*") for path in one.iterdir()]
    beside = [p for p in folder.path.iterdir() if not p.name.startswith("delivery-")]
    return {path.name: path.read_bytes() if path.is_file() else b"?" for path in (*inside, *beside)}


@pytest.fixture
def folder(tmp_path: Path) -> UploadFolder:
    path = tmp_path / "uploads"
    path.mkdir()
    return UploadFolder(path=path, endings=ENDINGS, is_team=is_team)


def in_order(files: Iterable[Mapping[str, bytes]]) -> list[list[tuple[str, bytes]]]:
    return sorted(sorted(one.items()) for one in files)


def refusal(folder: UploadFolder, files: dict[str, bytes]) -> str:
    with pytest.raises(InputError) as error:
        send(folder, files)
    return error.value.problems[0].code


def test_a_submission_lies_there_as_it_came_and_the_inbox_finds_it(folder: UploadFolder) -> None:
    assert send(folder, files_of()) == (ONE, "submission")
    assert lying(folder) == files_of()
    assert folder.count_deliveries() == (1, sum(map(len, files_of().values())))
    (arrival,) = find_in_folder(folder.path, "age")
    assert (arrival.id, arrival.problems) == (ONE, ())
    assert arrival.read() == files_of()


def test_the_same_files_again_are_one_delivery(folder: UploadFolder) -> None:
    send(folder, files_of())
    send(folder, dict(reversed(files_of().items())))
    assert lying(folder) == files_of()
    digests = {name: digest_bytes(data) for name, data in files_of().items()}
    assert folder.has_delivery(digests)
    folder.drop_delivery(digests)
    assert not folder.has_delivery(digests)
    assert lying(folder) == {}


def test_a_delivery_that_was_emptied_is_none(folder: UploadFolder) -> None:
    """What takes its files one by one leaves its folder: the same files again are new."""
    send(folder, files_of())
    (delivery,) = folder.path.glob("delivery-*")
    for path in delivery.iterdir():
        path.unlink()
    send(folder, files_of())
    assert lying(folder) == files_of()
    (folder.path / "delivery-0000000000000000").mkdir()
    assert folder.count_deliveries()[0] == 1
    assert len(list(folder.path.glob("delivery-*"))) == 1


def test_the_page_s_command_takes_deliveries_alone(folder: UploadFolder, tmp_path: Path) -> None:
    """As docs/how-to/accept-uploads.md has it, but from a folder of this machine."""
    rsync = shutil.which("rsync")
    if rsync is None:
        pytest.skip("no rsync here")
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "accept-uploads.md").read_text("utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith("rsync ")]
    send(folder, files_of())
    beside = (".parts/x/file", "intake.sqlite", "intake.sqlite-wal")
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
    send(folder, files_of())
    assert lying(folder).keys() >= files_of().keys()


def test_nobody_replaces_or_blocks_what_another_sends(folder: UploadFolder) -> None:
    """Each delivery has a folder of its own: junk under an id keeps no team's update out."""
    junk = {f"{ONE}{ENDINGS[1]}": b"junk"}
    send(folder, junk)
    send(folder, files_of())
    send(folder, {f"{ONE}{ENDINGS[1]}": b"the team's own"})
    found = [arrival.read() for arrival in find_in_folder(folder.path, "age")]
    assert len(found) == 3
    assert junk in found
    assert files_of() in found


def test_what_lies_beside_the_deliveries_keeps_none_out(folder: UploadFolder) -> None:
    (folder.path / f"{ONE}{ENDINGS[2]}").write_bytes(b"somebody's")
    send(folder, files_of())
    beside, uploaded = find_in_folder(folder.path, "age")
    assert [problem.code for problem in beside.problems] == ["missing-file"]
    assert (beside.source, uploaded.read()) == ("a folder", files_of())
    assert re.fullmatch("upload [0-9a-f]{16}", uploaded.source)


@pytest.mark.parametrize("make", ["link", "dangling", "folder", "pipe"])
def test_no_link_is_followed_or_replaced(folder: UploadFolder, tmp_path: Path, make: str) -> None:
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
        f"{TEAM}{ENDINGS[0]}", f"{ONE}{ENDINGS[0].upper()}",
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


@pytest.mark.parametrize("kept", [(), (0,), (2,), (0, 1), (0, 2), (1, 2)])
def test_a_part_of_a_submission_is_refused(folder: UploadFolder, kept: tuple[int, ...]) -> None:
    names = list(files_of())
    assert refusal(folder, {names[place]: b"x" for place in kept}) == "upload-set"
    assert lying(folder) == {}


def test_metadata_alone_is_an_update(folder: UploadFolder) -> None:
    assert send(folder, {f"{ONE}{ENDINGS[1]}": b"new"}) == (ONE, "update")
    (arrival,) = find_in_folder(folder.path, "age")
    assert arrival.problems == ()


def test_a_registration_is_one_file_that_the_inbox_finds(folder: UploadFolder) -> None:
    sent = {f"{TEAM}.json": b"{}"}
    assert send(folder, sent) == (TEAM, "registration")
    assert lying(folder) == sent
    (arrival,) = find_registrations_in_folder(folder.path)
    assert (arrival.problems, arrival.read()) == ((), sent)
    assert [*find_in_folder(folder.path, "age")] == []


def test_a_registration_comes_alone_is_small_and_not_empty(folder: UploadFolder) -> None:
    name, other = f"{TEAM}.json", "team-fedcba9876543210.json"
    assert refusal(folder, {name: b"{}", **files_of()}) == "upload-set"
    assert refusal(folder, {**files_of(), name: b"{}"}) == "upload-set"
    assert refusal(folder, {name: b"{}", other: b"{}"}) == "upload-set"
    assert refusal(folder, {name: b""}) == "upload-set"
    most = folder.limits.registration_bytes
    assert refusal(folder, {name: bytes(most + 1)}) == "upload-too-large"
    assert lying(folder) == {}
    send(folder, {name: bytes(most)})
    (arrival,) = find_registrations_in_folder(folder.path)
    assert arrival.problems == ()


def test_where_no_registration_is_taken_its_name_is_none(folder: UploadFolder) -> None:
    without = UploadFolder(path=folder.path, endings=ENDINGS)
    assert refusal(without, {f"{TEAM}.json": b"{}"}) == "upload-name"


def test_files_of_two_submissions_or_an_empty_one_are_refused(folder: UploadFolder) -> None:
    mixed = {f"{ONE}{ENDINGS[0]}": b"x", f"20261121-other{ENDINGS[1]}": b"x"}
    assert refusal(folder, mixed) == "upload-set"
    assert refusal(folder, {**files_of(), f"{ONE}{ENDINGS[1]}": b""}) == "upload-set"
    assert lying(folder) == {}


def test_sizes_are_bounded(folder: UploadFolder) -> None:
    small = UploadFolder(path=folder.path, endings=ENDINGS, limits=FileLimits(file_bytes=5))
    assert refusal(small, files_of()) == "upload-too-large"
    assert lying(folder) == {}


def test_a_full_disk_leaves_nothing(folder: UploadFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="cannot be written: No space left"):
        send(folder, files_of())
    assert lying(folder) == {}


def test_of_several_that_race_for_an_id_each_is_whole(folder: UploadFolder) -> None:
    """Each sends three files that all differ; no mixture may come of it."""
    for trial in range(10):
        name = f"20261121-race{trial}"
        sets = [files_of(name, bytes([number])) for number in range(4)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(send, [folder] * 8, [*sets, *sets]))
        there = [a.read() for a in find_in_folder(folder.path, "age") if a.id == name]
        assert in_order(there) == in_order(sets)


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    gone = UploadFolder(path=tmp_path / "gone", endings=ENDINGS)
    with pytest.raises(StoreError, match="not a folder"):
        gone.deliver(tmp_path, {})


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
