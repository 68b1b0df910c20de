"""The file of a backup: whole, cut, damaged, foreign, newer, hostile."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heldout.backup.backing_up import Sources, back_up
from heldout.backup.restoring import restore
from heldout.backup.sealed import BackupManifest, FolderState, GitState, new_backup
from heldout.board.log.events import parse_time
from heldout.board.store.git import Git
from heldout.board.store.repository import Repository
from heldout.envelope.age import decrypt_for, encrypting, new_identity
from heldout.errors import InputError, StoreError
from heldout.files.durable import Folder

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

KEYS = new_identity()
NOW = parse_time("2026-11-20T10:00:00Z")
ROOT = "heldout-backup-2"


def backed_up(folder: Path, files: Mapping[str, bytes]) -> Path:
    """A backup of a folder `uploads` with these files."""
    root = folder / "uploads"
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    sources = Sources(folders=[root])
    back_up(folder / "b", sources, recipients=[KEYS.recipient], now=NOW, program="1")
    return folder / "b"


GIT = GitState(branch="main", remotes={})


def manifest(files: int, name: str = "uploads", *, git: GitState | None = None) -> bytes:
    """A list of one folder, as a member's bytes."""
    made = BackupManifest(
        created_at="2026-11-20T10:00:00Z",
        program="1",
        folders={name: FolderState(files=files, git=git, private=False)},
        database=None,
        log=None,
    )
    return msgspec.json.encode(made)


def encrypted(path: Path, plain: bytes, *, compress: bool = True) -> Path:
    with path.open("wb") as file, encrypting(file, [KEYS.recipient]) as target:
        target.write(zstd.compress(plain) if compress else plain)
    return path


def tarball(*members: tuple[str | tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as target:
        for name, data in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(data)
            target.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def refused(path: Path, folder: Path) -> str:
    """The code by which a backup is refused; nothing is left of the attempt."""
    before = {one.name for one in folder.iterdir()}
    with pytest.raises(InputError) as caught:
        restore(path, folder / "new", identities=[KEYS.private])
    assert {one.name for one in folder.iterdir()} == before
    return caught.value.code


@settings(max_examples=20)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,3}(/[a-z0-9]{4,6})?", fullmatch=True),
        st.binary(max_size=300_000).filter(lambda data: not data.startswith(b"SQLite format 3\0")),
        max_size=6,
    )
)
def test_what_goes_in_comes_out(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    whole = {name: data for name, data in files.items() if f"{name}/" not in "".join(files)}
    whole = {n: d for n, d in whole.items() if not any(o.startswith(f"{n}/") for o in files)}
    folder = tmp_path_factory.mktemp("b")
    (folder / "uploads").mkdir()
    restore(backed_up(folder, whole), folder / "new", identities=[KEYS.private])
    root = folder / "new" / "uploads"
    found = {p.relative_to(root).as_posix(): p for p in root.rglob("*") if p.is_file()}
    assert {name: path.read_bytes() for name, path in found.items()} == whole


def test_nothing_is_in_the_clear(tmp_path: Path) -> None:
    secret = os.urandom(1 << 12)
    made = backed_up(tmp_path, {"a": secret})
    assert made.stat().st_mode & 0o777 == 0o600
    assert secret[:64] not in made.read_bytes()


def test_age_zstd_and_tar_get_the_files_out(tmp_path: Path) -> None:
    made = backed_up(tmp_path, {"a/b": b"one"})
    with made.open("rb") as file:
        plain = zstd.decompress(b"".join(decrypt_for(file, [KEYS.private])))
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        assert tar.getnames() == [f"{ROOT}/files/uploads/a/b", f"{ROOT}/MANIFEST.json"]


def test_every_cut_and_every_flipped_byte_is_found(tmp_path: Path) -> None:
    made = backed_up(tmp_path, {"a": b"one", "b": os.urandom(200_000)}).read_bytes()
    codes = set()
    for at in (*range(0, 300, 47), *range(300, len(made), 20_011), len(made) - 1):
        (tmp_path / "cut").write_bytes(made[:at])
        codes.add(refused(tmp_path / "cut", tmp_path))
        (tmp_path / "cut").write_bytes(made[:at] + bytes([made[at] ^ 1]) + made[at + 1 :])
        codes.add(refused(tmp_path / "cut", tmp_path))
    assert codes == {"backup-foreign", "backup-key", "backup-damaged"}
    (tmp_path / "cut").write_bytes(made + b"more")
    assert refused(tmp_path / "cut", tmp_path) == "backup-damaged"


def test_another_key_opens_nothing(tmp_path: Path) -> None:
    made = backed_up(tmp_path, {"a": b"one"})
    with pytest.raises(InputError) as caught:
        restore(made, tmp_path / "new", identities=[new_identity().private])
    assert caught.value.code == "backup-key"


@pytest.mark.parametrize(
    ("plain", "code"),
    [
        (tarball(("heldout-backup-1/x", b"")), "backup-newer"),
        (tarball(("notes.txt", b"hello")), "backup-foreign"),
        (tarball(), "backup-damaged"),
        (b"", "backup-damaged"),
    ],
    ids=["another", "a tarball", "empty tarball", "nothing"],
)
def test_what_is_no_backup_of_this_format_is_refused(
    tmp_path: Path, plain: bytes, code: str
) -> None:
    assert refused(encrypted(tmp_path / "b", plain), tmp_path) == code


def test_files_of_other_programs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    assert refused(tmp_path / "text", tmp_path) == "backup-foreign"
    other = encrypted(tmp_path / "b", b"a letter", compress=False)
    assert refused(other, tmp_path) == "backup-foreign"


def link(kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(f"{ROOT}/files/uploads/a")
    info.type, info.linkname = kind, "/etc/passwd"
    return info


INSIDE = f"{ROOT}/files/uploads"
LIST = (f"{ROOT}/MANIFEST.json", manifest(1))


@pytest.mark.parametrize(
    "members",
    [
        [(f"{INSIDE}/{path}", b"x"), LIST]
        for path in (
            *("../evil", "/etc/passwd", "a/../../evil", "", "a//b", ".git/hooks/pre-commit"),
            *("a/.GIT/config", "a\nb", ".writing-x", "x/" * 2100),
        )
    ]
    + [[(f"{ROOT}/files/{name}/a", b"x"), LIST] for name in ("..", "", ".git", "other")]
    + [[(link(getattr(tarfile, f"{kind}TYPE")), b""), LIST] for kind in ("SYM", "LNK", "CHR")]
    + [[(link(getattr(tarfile, f"{kind}TYPE")), b""), LIST] for kind in ("FIFO", "DIR")]
    + [
        [("/etc/passwd", b"x"), LIST],
        [(f"{INSIDE}/a", b"a"), (f"{INSIDE}/a", b"a"), LIST],
        [(f"{INSIDE}/a", b"a"), (f"{INSIDE}/a/b", b"a"), LIST],
        [(f"{ROOT}/own/uploads/pinned.json", b"evil"), (f"{INSIDE}/a", b"a"), LIST],
        [(f"{ROOT}/git/uploads/bundle", b"evil"), (f"{INSIDE}/a", b"a"), LIST],
        [(f"{ROOT}/rows/database/teams", b"[]"), (f"{INSIDE}/a", b"a"), LIST],
        [(f"{ROOT}/hooks/uploads/a", b"a"), LIST],
        [(f"{INSIDE}/a", b"a"), LIST, (f"{INSIDE}/b", b"b")],
        [LIST],
        [(f"{INSIDE}/a", b"a"), (LIST[0], manifest(1, name=".."))],
        [(f"{INSIDE}/a", b"a"), (LIST[0], b"{}")],
    ],
)
def test_hostile_members_are_refused(
    tmp_path: Path, members: list[tuple[str | tarfile.TarInfo, bytes]]
) -> None:
    codes = {refused(encrypted(tmp_path / "b", tarball(*members)), tmp_path)}
    assert codes <= {"backup-damaged", "backup-foreign"}


def test_keys_and_drafts_of_a_clone_are_in_its_backup(tmp_path: Path) -> None:
    root = tmp_path / "clone"
    root.mkdir()
    Git(root).init()
    (root / "board.toml").write_bytes(b"")
    own = Repository(root).state
    kept = {"keys/one": b"secret", "tokens/host": b"secret", "drafts/one/dev.run": b"q d 1"}
    for name, data in kept.items():
        own.write_whole(name, data)
    with own.lock("lock"):
        pass
    sources = Sources(folders=[root])
    back_up(tmp_path / "b", sources, recipients=[KEYS.recipient], now=NOW, program="1")
    restore(tmp_path / "b", tmp_path / "back", identities=[KEYS.private])
    found = Repository(tmp_path / "back" / "clone").state
    assert {path: found.read(path) for path, _ in found.walk()} == kept
    assert all((found.path(name).stat().st_mode & 0o777) == 0o600 for name in kept)


def test_a_bomb_is_refused_before_it_has_filled_anything(tmp_path: Path) -> None:
    made = backed_up(tmp_path, {"a": bytes(80 << 20)})
    assert made.stat().st_size < 1 << 17
    assert refused(made, tmp_path) == "archive-bomb"


def _git(folder: Path, *words: str, data: bytes = b"") -> str:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@x", *words]
    return subprocess.run(
        command, cwd=folder, input=data, capture_output=True, check=True
    ).stdout.decode()


def _paths_that_double(source: Path) -> str:
    """A folder of 2^30 paths, in 31 objects: each folder names the one below it twice."""
    entry = f"100644 blob {_git(source, 'hash-object', '-w', '--stdin').strip()}"
    for _ in range(30):
        tree = _git(source, "mktree", data=f"{entry}\ta\n{entry}\tb\n".encode()).strip()
        entry = f"040000 tree {tree}"
    return tree


def test_a_repository_that_unpacks_to_far_more_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    _git(source, "init", "-q", "-b", "main")
    commit = _git(source, "commit-tree", _paths_that_double(source), "-m", "x").strip()
    _git(source, "update-ref", "refs/heads/main", commit)
    _git(source, "bundle", "create", "-q", "all", "--all")
    bundle = (f"{ROOT}/git/uploads/bundle", (source / "all").read_bytes())
    plain = tarball((f"{INSIDE}/a", b"a"), bundle, (LIST[0], manifest(1, git=GIT)))
    encrypted(tmp_path / "b", plain)
    before = {one.name for one in tmp_path.iterdir()}
    with pytest.raises((StoreError, InputError)):
        restore(tmp_path / "b", tmp_path / "new", identities=[KEYS.private])
    assert {one.name for one in tmp_path.iterdir()} == before


def test_a_backup_that_the_disk_has_no_room_for_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = backed_up(tmp_path, {"a": os.urandom(1 << 20)})
    free = shutil.disk_usage(tmp_path)._replace(free=(1 << 29) + (1 << 20))
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: free)
    with pytest.raises(StoreError, match="has no room"):
        restore(made, tmp_path / "new", identities=[KEYS.private])
    assert {one.name for one in tmp_path.iterdir()} == {"b", "uploads"}


def test_nothing_is_written_over(tmp_path: Path) -> None:
    made = backed_up(tmp_path, {"a": b"one"})
    whole = made.read_bytes()
    with pytest.raises(StoreError, match="exists"):
        backed_up(tmp_path, {"a": b"two"})
    assert made.read_bytes() == whole
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").write_text("keep")
    with pytest.raises(InputError) as caught:
        restore(made, tmp_path / "new", identities=[KEYS.private])
    assert caught.value.code == "restore-place"
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["mine"]


def test_a_failure_on_the_way_leaves_no_file(tmp_path: Path) -> None:
    def fail() -> None:
        with new_backup(tmp_path / "b", [KEYS.recipient]) as writer:
            writer.finish(msgspec.json.decode(manifest(0), type=BackupManifest))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_said_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    monkeypatch.setattr(Folder, "create", lambda *_args, **_options: full.open("wb", buffering=0))
    with pytest.raises(OSError, match="No space left"):
        backed_up(tmp_path, {"a": os.urandom(1 << 20)})
    assert [one.name for one in tmp_path.iterdir()] == ["uploads"]


def test_what_a_killed_restore_left_in_the_clear_is_removed_by_the_next(tmp_path: Path) -> None:
    made = backed_up(tmp_path, {"a": b"one"})
    left = tmp_path / ".writing-restore-new" / "root" / "vault"
    left.mkdir(parents=True)
    (left / "secret").write_text("a private key")
    restore(made, tmp_path / "new", identities=[KEYS.private])
    assert {one.name for one in tmp_path.iterdir()} == {"b", "new", "uploads"}


def test_a_link_where_the_backup_is_unpacked_leads_nowhere(tmp_path: Path) -> None:
    """Somebody who may write beside the folder, as in /tmp, would get the vault's keys."""
    made = backed_up(tmp_path, {"a": b"one"})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / ".writing-restore-new").symlink_to(elsewhere)
    assert refused(made, tmp_path) == "restore-place"
    assert list(elsewhere.iterdir()) == []


def test_links_databases_and_half_written_files_are_left_out_by_name(tmp_path: Path) -> None:
    root = tmp_path / "uploads"
    root.mkdir()
    (root / "link").symlink_to("/etc/passwd")
    (root / ".writing-half").write_bytes(b"half")
    (root / "c.sqlite").write_bytes(b"SQLite format 3\0 and more")
    (root / "c.sqlite-wal").write_bytes(b"its log")
    sources = Sources(folders=[root])
    made = back_up(tmp_path / "b", sources, recipients=[KEYS.recipient], now=NOW, program="1")
    named = "\n".join(made.left_out)
    assert all(name in named for name in ('"uploads/link"', "c.sqlite", "c.sqlite-wal"))
    assert made.files == 0


def test_a_backup_of_nothing_or_into_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "uploads").mkdir()
    for path, folders, code in (
        (tmp_path / "b", [], "backup-nothing"),
        (tmp_path / "uploads" / "b", [tmp_path / "uploads"], "backup-folder"),
    ):
        with pytest.raises(InputError) as caught:
            back_up(
                path, Sources(folders=folders), recipients=[KEYS.recipient], now=NOW, program="1"
            )
        assert caught.value.code == code
