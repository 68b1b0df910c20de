"""Time stamps of a log by an authority: asked for, stored, and checked without a network."""

import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509 import CertificateBuilder, load_pem_x509_certificate
from lab import LAST, Lab, Patch, call, founding, fresh_lab, git, write_inputs
from time_authority import Authority, make_authority
from trusting import ONE

from heldout.board.audit.timestamps import check_stamps, read_roots, stamped_text
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault

pytest.importorskip("rfc3161_client")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority") / "tsa")


lab = fresh_lab


def stamp(lab: Lab, authority: Authority, *told: str | Path) -> None:
    """By files alone, as on a machine without a network."""
    asked, given = lab.root / "log.tsq", lab.root / "log.tsr"
    lab.organiser("board", "timestamp", "--request", asked).done()
    given.write_bytes(authority.answer(asked.read_bytes()))
    lab.organiser("board", "timestamp", "--response", given, *told).done()


def test_a_stamped_log_is_audited_offline(lab: Lab, authority: Authority) -> None:
    stamp(lab, authority, "--timestamp-root", authority.root)
    lab.receive("one")
    assert lab.publish(ONE).code == 0
    stamp(lab, authority)
    last = len(Repository(lab.board).log()) - 1
    files = sorted(path.name for path in (lab.board / "timestamps").iterdir())
    assert files == ["0.tsr", f"{last}.tsr"]
    args = ("audit", "--timestamp-root", authority.root)
    found = lab.organiser(*args, "--json").json
    assert (found["ok"], [one["event"] for one in found["stamps"]]) == (True, [0, last])
    plain = lab.organiser(*args)
    assert f"2 time stamps; event {last} and all before it existed on 20" in plain.out
    without = lab.organiser("audit", "--json").json
    assert (without["ok"], without["stamps"]) == (True, [])
    assert any("2 time stamps: --timestamp-root FILE names" in t for t in without["unchecked"])
    assert lab.organiser("rebuild").code == 0
    assert "timestamps/0.tsr" in git(lab.board, "ls-files", "timestamps")


def test_openssl_checks_it_too(lab: Lab, authority: Authority) -> None:
    """With the text that docs/how-to/check-a-board.md gives."""
    stamp(lab, authority)
    text = lab.root / "stamped.txt"
    entry = Repository(lab.board).log()[0]
    text.write_bytes(f"heldout time stamp\n{entry.hash}".encode())
    assert text.read_bytes() == stamped_text(entry)
    response = lab.board / "timestamps/0.tsr"
    said = ["openssl", "ts", "-verify", "-data", str(text), "-in", str(response)]
    done = subprocess.run(
        [*said, "-CAfile", str(authority.root)], capture_output=True, text=True, check=False
    )
    assert "Verification: OK" in done.stdout + done.stderr


def test_an_authority_is_asked_over_http(lab: Lab, authority: Authority) -> None:
    with authority.serving() as url:
        answer = lab.organiser("board", "timestamp", "--authority", url, "--json")
    assert (answer.code, answer.json["event"]) == (0, 0), answer
    lab.organiser("board", "timestamp", "--authority", url).refused("gives no time stamp")


def test_a_log_that_was_made_again_has_no_time_stamp_of_before(
    lab: Lab, authority: Authority, tmp_path: Path
) -> None:
    stamp(lab, authority)
    left = (lab.board / "timestamps/0.tsr").read_bytes()
    again = found_again(tmp_path / "again")
    (again.board / "timestamps").mkdir()
    (again.board / "timestamps/0.tsr").write_bytes(left)
    found = again.organiser("audit", "--json").json
    assert not found["ok"]
    (fault,) = found["faults"]
    assert fault.startswith("timestamps/0.tsr: a time stamp of no event of this log")


def found_again(folder: Path) -> Lab:
    """A board of the same files, with another title."""
    folder.mkdir()
    write_inputs(folder)
    call(folder, *founding(folder), "--title", "Better").done()
    return Lab(folder)


def test_a_stamp_of_another_authority_does_not_hold(
    lab: Lab, authority: Authority, tmp_path: Path
) -> None:
    stamp(lab, make_authority(tmp_path / "other"))
    found = lab.organiser("audit", "--timestamp-root", authority.root, "--json").json
    assert not found["ok"]
    assert "timestamps/0.tsr: it does not hold" in found["faults"][0]
    asked, given = lab.root / "log.tsq", lab.root / "log.tsr"
    args = ("--response", given, "--timestamp-root", authority.root)
    lab.organiser("board", "timestamp", *args).refused("it does not hold")
    assert asked.is_file()


def test_no_altered_byte_of_a_stamp_changes_what_it_says(lab: Lab, authority: Authority) -> None:
    """11 of 1,453 bytes may be any: they belong to nothing that is signed or read."""
    stamp(lab, authority)
    repository = Repository(lab.board)
    log, roots = repository.log(), read_roots(authority.root)
    path = lab.board / "timestamps" / "0.tsr"
    made, (right,) = path.read_bytes(), check_stamps(repository, log, roots).stamps
    held = 0
    for place in range(len(made)):
        path.write_bytes(made[:place] + bytes([made[place] ^ 1]) + made[place + 1 :])
        found = check_stamps(repository, log, roots)
        held += len(found.stamps)
        assert set(found.stamps) <= {right}
        assert bool(found.stamps) != bool(found.faults)
    assert held <= len(made) // 100


@pytest.mark.parametrize("whose", ["root", pytest.param("tsa", marks=pytest.mark.night)])
def test_a_stamp_by_a_certificate_that_had_ended_does_not_hold(
    lab: Lab, tmp_path: Path, whose: str
) -> None:
    old = make_authority(tmp_path / "old")
    made = load_pem_x509_certificate((old.folder / f"{whose}.pem").read_bytes())
    again = CertificateBuilder(made.issuer, made.subject, made.public_key(), made.serial_number)
    ended = again.not_valid_before(datetime(2001, 1, 1)).not_valid_after(datetime(2002, 1, 1))  # noqa: DTZ001 - read as UTC
    for one in made.extensions:
        ended = ended.add_extension(one.value, one.critical)
    key = load_pem_private_key((old.folder / "root.key").read_bytes(), None)
    assert isinstance(key, RSAPrivateKey)
    signed = ended.sign(key, SHA256()).public_bytes(Encoding.PEM)
    (old.folder / f"{whose}.pem").write_bytes(signed)
    stamp(lab, old)
    found = lab.organiser("audit", "--timestamp-root", old.root, "--json").json
    assert (found["ok"], found["stamps"]) == (False, [])
    assert "timestamps/0.tsr: it does not hold" in found["faults"][0]


def test_a_damaged_time_stamp_is_a_fault(lab: Lab, authority: Authority) -> None:
    stamp(lab, authority)
    file = lab.board / "timestamps/0.tsr"
    data = file.read_bytes()
    flipped = bytes([*data[:-9], data[-9] ^ 1, *data[-8:]])
    other = "timestamps/7.tsr: a time stamp of event 0, under another number"
    for name, damaged, told in (
        ("0.tsr", b"junk", "timestamps/0.tsr: "),
        ("0.tsr", data[:99], "timestamps/0.tsr: "),
        ("0.tsr", flipped, "timestamps/0.tsr: "),
        ("7.tsr", data, other),
        ("0.tsr", data * 99, "is longer than"),
        ("0.tsr", None, "timestamps/0.tsr"),
    ):
        for path in file.parent.iterdir():
            path.unlink()
        if damaged is None:
            file.symlink_to("/etc/hostname")
        else:
            file.with_name(name).write_bytes(damaged)
        found = lab.organiser("audit", "--timestamp-root", authority.root, "--json").declined()
        assert told in found.json["faults"][0]


def test_what_is_no_response_is_not_stored(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "x.tsr"
    file.write_bytes(b"<html>")
    lab.organiser("board", "timestamp", "--response", file).refused("not-a-timestamp")
    assert not (lab.board / "timestamps").exists()
    for args in ((), ("--request", tmp_path / "a", "--response", file)):
        lab.organiser("board", "timestamp", *args, now=LAST).refused("give one of")
    lab.organiser("audit", "--timestamp-root", file, now=LAST).refused("not-a-certificate")


def test_without_the_extra_a_stamp_is_unchecked(
    lab: Lab, authority: Authority, monkeypatch: Patch
) -> None:
    stamp(lab, authority)
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    found = lab.organiser("audit", "--timestamp-root", authority.root, "--json").json
    assert found["ok"]
    assert any("pip install 'heldout[timestamps]'" in text for text in found["unchecked"])
    lab.organiser("board", "timestamp", "--request", lab.root / "x").refused()
    assert Vault(lab.vault).entries()
