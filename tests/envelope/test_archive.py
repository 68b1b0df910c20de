"""Tarballs: what we write, what real programs write, and what an attacker writes."""

import io
import re
import struct
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sealing import ID, OTHER_ID, SETS

from heldout.envelope.archive import pack_runs, read_members
from heldout.errors import TrustError

DEV, EVAL = b"1\tD1\t1\n", b"2\tD2\t1\n" * 100
RUNS = {"dev": (".txt", DEV), "eval": (".txt", EVAL)}
END = bytes(1024)
LIMIT = 1 << 16

# ------------------------------------------------------------------ making tarballs by hand


def header(  # every field that an attacker may set
    name: str,
    size: int = 0,
    *,
    kind: bytes = b"0",
    link: bytes = b"",
    prefix: bytes = b"",
    magic: bytes = b"ustar\x0000",
    size_field: bytes | None = None,
) -> bytes:
    fields = (
        name.encode("utf-8", "surrogateescape"),
        b"0000644\0" + b"0000000\0" * 2,
        b"%011o\0" % size if size_field is None else size_field,
        b"00000000000\0",
        b" " * 8,
        kind,
        link,
        magic,
        b"",
        prefix,
    )
    return checked(struct.pack("100s24s12s12s8s1s100s8s80s155s12x", *fields))


def checked(block: bytes) -> bytes:
    """A header block with the checksum that fits."""
    blank = block[:148] + b" " * 8 + block[156:]
    return block[:148] + b"%06o\0 " % sum(blank) + block[156:]


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def entry(name: str, content: bytes = b"", *, kind: bytes = b"0", link: bytes = b"") -> bytes:
    return header(name, len(content), kind=kind, link=link) + padded(content)


def pax(*records: tuple[str, str], kind: bytes = b"x") -> bytes:
    return entry("PaxHeaders/dev.txt", b"".join(pax_record(*pair) for pair in records), kind=kind)


def pax_record(keyword: str, value: str) -> bytes:
    body = f" {keyword}={value}\n".encode()
    size = len(body) + len(str(len(body)))
    size = len(body) + len(str(size))
    return str(size).encode() + body


def long_name(kind: bytes, name: str) -> bytes:
    return entry("././@LongLink", name.encode() + b"\0", kind=kind)


DEV_ENTRY, EVAL_ENTRY = entry(f"{ID}/dev.txt", DEV), entry(f"{ID}/eval.txt", EVAL)
BOTH = DEV_ENTRY + EVAL_ENTRY
HONEST = BOTH + END


def named(name: str) -> bytes:
    """The honest tarball with another name for the dev run."""
    return entry(name, DEV) + EVAL_ENTRY + END


def sized(field: bytes) -> bytes:
    return header(f"{ID}/dev.txt", size_field=field) + padded(DEV) + EVAL_ENTRY + END


HOSTILE: dict[str, bytes] = {
    # members that are no files
    "symbolic-link-to-outside": entry(f"{ID}/dev.txt", kind=b"2", link=b"/etc/passwd")
    + EVAL_ENTRY
    + END,
    "symbolic-link-besides": entry(f"{ID}/x", kind=b"2", link=b"..") + HONEST,
    "hard-link-to-the-other-run": EVAL_ENTRY
    + entry(f"{ID}/dev.txt", kind=b"1", link=f"{ID}/eval.txt".encode())
    + END,
    "file-with-a-link-target": header(f"{ID}/dev.txt", len(DEV), link=b"x")
    + padded(DEV)
    + EVAL_ENTRY
    + END,
    **{
        what: entry(f"{ID}/dev.txt", kind=kind) + EVAL_ENTRY + END
        for what, kind in {
            "character-device": b"3",
            "block-device": b"4",
            "folder-named-as-a-run": b"5",
            "fifo": b"6",
            "contiguous-file": b"7",
            "gnu-dump-folder": b"D",
            "gnu-continued-from-another-volume": b"M",
            "gnu-sparse": b"S",
            "gnu-volume-label": b"V",
            "solaris-extended": b"X",
            "unknown-type": b"Z",
        }.items()
    },
    # names
    "absolute-path": named(f"/{ID}/dev.txt"),
    "parent-folder-first": named(f"../{ID}/dev.txt"),
    "parent-folder-within": named(f"{ID}/../dev.txt"),
    "parent-folder-last": named(f"{ID}/.."),
    "dot-folder-first": named(f"./{ID}/dev.txt"),
    "doubled-slash": named(f"{ID}//dev.txt"),
    "no-folder": named("dev.txt"),
    "deeper-folder": named(f"{ID}/runs/dev.txt"),
    "windows-path": named(f"{ID}\\dev.txt"),
    "drive-letter": named(f"C:/{ID}/dev.txt"),
    "another-id": named(f"{OTHER_ID}/dev.txt"),
    "id-in-capitals": named(f"{ID.upper()}/dev.txt"),
    "hidden-file": named(f"{ID}/.dev.txt"),
    "apple-double": entry(f"{ID}/._dev.txt", b"x") + HONEST,
    "no-basename": named(f"{ID}/"),
    "dot-at-the-end": named(f"{ID}/dev."),
    "space": named(f"{ID}/dev .txt"),
    "newline": named(f"{ID}/dev\n.txt"),
    "newline-at-the-end": named(f"{ID}/dev.txt\n"),
    "escape-sequence": named(f"{ID}/dev.\x1b[2J"),
    "nul-within-the-name": named(f"{ID}/dev\0.txt"),
    "right-to-left-override": named(f"{ID}/dev.\u202etxt"),
    "digits-of-another-script": named(f"{ID}/dev.\u0661"),
    "no-utf-8": named(f"{ID}/dev.\udcff"),
    "set-in-capitals": named(f"{ID}/DEV.txt"),
    "id-split-over-the-prefix": header("dev.txt", len(DEV), prefix=f"x/{ID}".encode())
    + padded(DEV)
    + EVAL_ENTRY
    + END,
    # fields that are ignored, and must yet be what they should be
    "mode-of-no-octal": checked(HONEST[:100] + b"zzzzzzz\0" + HONEST[108:512]) + HONEST[512:],
    "time-in-base-256": checked(HONEST[:136] + b"\x80" + bytes(11) + HONEST[148:512])
    + HONEST[512:],
    "device-number-of-no-octal": checked(HONEST[:329] + b"\x01" + HONEST[330:512]) + HONEST[512:],
    # which members
    "no-member": END,
    "missing-set": DEV_ENTRY + END,
    "extra-set": BOTH + entry(f"{ID}/test.txt", b"x") + END,
    "extra-file": BOTH + entry(f"{ID}/README.md", b"x") + END,
    "same-member-twice": DEV_ENTRY + BOTH + END,
    "same-set-twice": BOTH + entry(f"{ID}/dev.txt.bz2", b"x") + END,
    "another-folder": entry("x/", kind=b"5") + HONEST,
    "parent-folder-itself": entry("../", kind=b"5") + HONEST,
    "folder-twice": entry(f"{ID}/", kind=b"5") * 2 + HONEST,
    "folder-with-content": entry(f"{ID}/", b"x", kind=b"5") + HONEST,
    # sizes
    "size-over-the-limit": entry(f"{ID}/dev.txt", bytes(LIMIT + 1)) + EVAL_ENTRY + END,
    "huge-declared-size": sized(b"77777777777\0"),
    "size-beyond-the-end": sized(b"00000100000\0"),
    "size-too-small": sized(b"00000000001\0"),
    "size-in-base-256": sized(b"\x80" + (len(DEV)).to_bytes(11, "big")),
    "negative-size-in-base-256": sized(b"\xff" * 12),
    "negative-size": sized(b"-0000000010\0"),
    "size-with-digits-of-no-octal": sized(b"00000000009\0"),
    "empty-size": sized(bytes(12)),
    "sparse-map-in-gnu-header": header(
        f"{ID}/dev.txt", len(DEV), magic=b"ustar  \0", prefix=bytes(41) + b"00000000100\0"
    )
    + padded(DEV)
    + EVAL_ENTRY
    + END,
    # extensions that override
    "gnu-long-name": long_name(b"L", f"{OTHER_ID}/dev.txt") + HONEST,
    "gnu-long-link": long_name(b"K", "/etc/passwd") + HONEST,
    "pax-path": pax(("path", "../../etc/passwd")) + HONEST,
    "pax-path-that-repairs": pax(("path", f"{ID}/dev.txt")) + named("x"),
    "pax-linkpath": pax(("linkpath", "/etc/passwd")) + HONEST,
    "pax-size": pax(("size", "1")) + HONEST,
    "pax-charset": pax(("hdrcharset", "BINARY")) + HONEST,
    "pax-sparse-0": pax(("GNU.sparse.size", "1000000000000")) + HONEST,
    "pax-sparse-1": pax(("GNU.sparse.major", "1"), ("GNU.sparse.realsize", "9")) + HONEST,
    "pax-sparse-name": pax(("GNU.sparse.name", "x")) + HONEST,
    "pax-star-realsize": pax(("SCHILY.realsize", "1000000000000")) + HONEST,
    "pax-harmless-then-path": pax(("mtime", "1.5"), ("path", "x")) + HONEST,
    "pax-path-hidden-in-a-time": pax(("mtime", "1\n12 path=x/y\n")) + HONEST,
    "pax-global": pax(("mtime", "1.5"), kind=b"g") + HONEST,
    "pax-global-path": pax(("path", "x"), kind=b"g") + HONEST,
    "pax-twice": pax(("mtime", "1.5")) * 2 + HONEST,
    "pax-for-nothing": BOTH + pax(("mtime", "1.5")) + END,
    "pax-length-too-long": entry("p", b"99 mtime=1.5\n", kind=b"x") + HONEST,
    "pax-length-too-short": entry("p", b"9 mtime=1.5\n", kind=b"x") + HONEST,
    "pax-length-zero": entry("p", b"0 mtime=1.5\n", kind=b"x") + HONEST,
    "pax-without-equals": entry("p", b"8 mtime\n", kind=b"x") + HONEST,
    "pax-huge": entry("p", b"9 mtime=1" * 10_000, kind=b"x") + HONEST,
    # the frame
    "nothing": b"",
    "no-tarball": b"1\tD1\t1\n" * 1000,
    "gzip-within": b"\x1f\x8b\x08" + bytes(600),
    "wrong-checksum": HONEST[:150] + b"7" + HONEST[151:],
    "version-7-header": checked(HONEST[:257] + bytes(8) + HONEST[265:512]) + HONEST[512:],
    "data-hidden-in-the-filling": HONEST[: 512 + len(DEV)]
    + b"hidden"
    + HONEST[512 + len(DEV) + 6 :],
    "cut-in-a-header": BOTH[:700],
    "cut-in-a-run": BOTH[:1600],
    "no-end-marker": BOTH,
    "half-an-end-marker": BOTH + END[:512],
    "end-marker-cut": HONEST[:-1],
    "end-marker-interrupted": BOTH + END[:512] + entry(f"{ID}/x", b"x") + END,
    "garbage-after-the-end": HONEST + b"x",
    "garbage-long-after-the-end": HONEST + bytes(9000) + b"x",
    "second-tarball-after-the-end": HONEST + HONEST,
    "endless-zeros-after-the-end": HONEST + bytes((1 << 20) + 1),
}

SOUND: dict[str, bytes] = {
    "ours": pack_runs(ID, RUNS),
    "by-hand": HONEST,
    "other-order": EVAL_ENTRY + DEV_ENTRY + END,
    "folder-first": entry(f"{ID}/", kind=b"5") + HONEST,
    "folder-last": BOTH + entry(f"{ID}/", kind=b"5") + END,
    "folder-without-slash": entry(str(ID), kind=b"5") + HONEST,
    "filled-to-a-megabyte": HONEST + bytes(1 << 20),
    "old-file-type": header(f"{ID}/dev.txt", len(DEV), kind=b"\0") + padded(DEV) + EVAL_ENTRY + END,
    "large-owner-in-base-256": checked(
        HONEST[:108] + b"\x80" + (1 << 40).to_bytes(7, "big") + HONEST[116:512]
    )
    + HONEST[512:],
    "gnu-magic": header(f"{ID}/dev.txt", len(DEV), magic=b"ustar  \0")
    + padded(DEV)
    + EVAL_ENTRY
    + END,
    "no-suffix": named(f"{ID}/dev"),
    "three-suffixes": named(f"{ID}/dev.v2.txt.bz2"),
    "folder-in-the-prefix": header("dev.txt", len(DEV), prefix=ID.encode())
    + padded(DEV)
    + EVAL_ENTRY
    + END,
    "pax-times": pax(("mtime", "1.5"), ("atime", "2"), ("uname", "ада")) + HONEST,
    "pax-attributes": pax(("SCHILY.xattr.user.x", "=\n=")) + HONEST,
}


def read(tarball: bytes, *, piece: int = 1000) -> dict[str, bytes]:
    pieces = (tarball[place : place + piece] for place in range(0, len(tarball), piece))
    members = read_members(pieces, submission_id=ID, runs=SETS, limit=LIMIT)
    return {member.run: member.read() for member in members}


def test_further_seeds_are_members_of_their_own() -> None:
    runs = {**RUNS, "eval~2": (".txt", b"2\tD3\t1\n"), "eval~10": ("", b"2\tD4\t1\n")}
    tarball = pack_runs(ID, runs)
    members = read_members(iter([tarball]), submission_id=ID, runs=runs.keys(), limit=LIMIT)
    assert {m.run: m.read() for m in members} == {name: data for name, (_, data) in runs.items()}
    with pytest.raises(TrustError):
        read(tarball)  # a seed that nobody named
    lone = read_members(iter([HONEST]), submission_id=ID, runs=runs.keys(), limit=LIMIT)
    with pytest.raises(TrustError):
        list(lone)


@pytest.mark.parametrize("name", ["eval~", "eval~0", "eval~02", "eval~100", "eval~2~2", "~2"])
def test_no_other_name_of_a_seed_is_written(name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(name)):
        pack_runs(ID, {name: (".txt", EVAL)})


@pytest.mark.parametrize("attack", HOSTILE)
def test_hostile_tarball_is_refused(attack: str) -> None:
    with pytest.raises(TrustError):
        read(HOSTILE[attack])


@pytest.mark.parametrize("kind", SOUND)
@pytest.mark.parametrize("piece", [7, 512, 1 << 20])
def test_sound_tarball_is_read(kind: str, piece: int) -> None:
    assert read(SOUND[kind], piece=piece) == {"dev": DEV, "eval": EVAL}


# ------------------------------------------------------------------ what we write


def test_packing_is_deterministic_and_anonymous() -> None:
    swapped = dict(reversed(RUNS.items()))
    assert pack_runs(ID, RUNS) == pack_runs(ID, swapped)
    with tarfile.open(fileobj=io.BytesIO(pack_runs(ID, RUNS))) as tarball:
        members = tarball.getmembers()
    assert [member.name for member in members] == [f"{ID}/dev.txt", f"{ID}/eval.txt"]
    for member in members:
        facts = (member.mode, member.mtime, member.uid, member.gid, member.uname, member.gname)
        assert facts == (0o644, 0, 0, 0, "", "")
        assert member.isreg()


@pytest.mark.parametrize(
    ("query_set", "suffix"),
    [
        ("", ".txt"),
        ("dev.x", ""),
        ("a/b", ""),
        ("dev", "/x"),
        ("dev", "txt "),
        ("dev", "x"),
        ("é", ""),
    ],
)
def test_a_name_that_could_not_be_read_is_not_written(query_set: str, suffix: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        pack_runs(ID, {query_set: (suffix, b"")})


def test_real_tar_lists_what_we_write(program: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "run.tar").write_bytes(pack_runs(ID, RUNS))
    subprocess.run([program("tar"), "-xf", "run.tar"], cwd=tmp_path, check=True)
    assert (tmp_path / ID / "dev.txt").read_bytes() == DEV
    assert (tmp_path / ID / "eval.txt").read_bytes() == EVAL


# ------------------------------------------------------------------ what others write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ID).mkdir()
    for name, (suffix, content) in RUNS.items():
        (tmp_path / ID / f"{name}{suffix}").write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("kind", ["gnu", "oldgnu", "ustar", "posix"])
@pytest.mark.parametrize("what", [[str(ID)], [f"{ID}/dev.txt", f"{ID}/eval.txt"], [f"{ID}/"]])
def test_real_tar_is_read(
    program: Callable[[str], str], folder: Path, kind: str, what: list[str]
) -> None:
    command = [program("tar"), f"--format={kind}", "-cf", "-", *what]
    made = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    assert read(made.stdout) == {"dev": DEV, "eval": EVAL}


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_python_s_tarfile_is_read(folder: Path, kind: int) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=kind) as tarball:
        tarball.add(folder / ID, arcname=str(ID))
    assert read(made.getvalue()) == {"dev": DEV, "eval": EVAL}


def repaired(tarball: bytearray) -> bytes:
    """The checksum of every block that looks like a header made right again."""
    for place in range(0, len(tarball) - 511, 512):
        block = bytes(tarball[place : place + 512])
        if block[257:262] == b"ustar":
            tarball[place : place + 512] = checked(block)
    return bytes(tarball)


SMALL = {
    name: tarball for name, tarball in (SOUND | HOSTILE).items() if 2000 < len(tarball) < 20_000
}


@example(seed="folder-first", edits=[(337 + 512, b"\x01")])  # tarfile ends silently here
@example(seed="by-hand", edits=[(337, b"\x01")])  # and refuses this
@given(
    seed=st.sampled_from(sorted(SMALL)),
    edits=st.lists(st.tuples(st.integers(0, 4000), st.binary(min_size=1, max_size=12)), max_size=4),
)
def test_what_we_accept_means_the_same_to_tarfile(
    seed: str, edits: list[tuple[int, bytes]]
) -> None:
    tarball = bytearray(SMALL[seed])
    for place, data in edits:
        start = place % len(tarball)
        tarball[start : start + len(data)] = data
    mutant = repaired(tarball)
    try:
        ours = read(mutant)
    except TrustError:
        return
    theirs: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(mutant)) as opened:
        for member in opened:
            if not member.isdir():
                content = opened.extractfile(member)
                assert member.isreg()
                assert content is not None
                name = member.name.removeprefix(f"{ID}/")
                theirs[name.split(".")[0]] = content.read()
    assert ours == theirs
