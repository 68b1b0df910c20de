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
from time_authority import Authority, make_authority
from town import Town, call, founding, fresh_town, git, write_inputs
from trusting import DAY, LAST, ONE

from heldout.board.audit.timestamps import check_stamps, read_roots, stamped_text
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault

pytestmark = pytest.mark.slow
pytest.importorskip("rfc3161_client")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority") / "tsa")


town = fresh_town


def stamp(town: Town, authority: Authority, *told: str | Path) -> None:
    """By files alone, as on a machine without a network."""
    asked, given = town.root / "log.tsq", town.root / "log.tsr"
    town.organiser("board", "timestamp", "--request", asked, now=DAY).done()
    given.write_bytes(authority.answer(asked.read_bytes()))
    town.organiser("board", "timestamp", "--response", given, *told, now=DAY).done()


def test_a_stamped_log_is_audited_offline(town: Town, authority: Authority) -> None:
    stamp(town, authority, "--timestamp-root", authority.root)
    town.send("one", now=DAY)
    town.take_in(now=DAY)
    assert town.publish(ONE, now=DAY).code == 0
    stamp(town, authority)
    last = len(Repository(town.board).log()) - 1
    files = sorted(path.name for path in (town.board / "timestamps").iterdir())
    assert files == ["0.tsr", f"{last}.tsr"]
    told = ("audit", "--timestamp-root", authority.root)
    found = town.organiser(*told, "--json", now=DAY).json
    assert (found["ok"], [one["event"] for one in found["stamps"]]) == (True, [0, last])
    plain = town.organiser(*told, now=DAY)
    assert f"2 time stamps; event {last} and all before it existed on 20" in plain.out
    without = town.organiser("audit", "--json", now=DAY).json
    assert (without["ok"], without["stamps"]) == (True, [])
    assert any("2 time stamps: --timestamp-root FILE names" in t for t in without["unchecked"])
    assert town.organiser("rebuild", now=DAY).code == 0
    assert "timestamps/0.tsr" in git(town.board, "ls-files", "timestamps")


def test_openssl_checks_it_too(town: Town, authority: Authority) -> None:
    """With the text that docs/how-to/check-a-board.md gives."""
    stamp(town, authority)
    text = town.root / "stamped.txt"
    entry = Repository(town.board).log()[0]
    text.write_bytes(f"heldout time stamp\n{entry.hash}".encode())
    assert text.read_bytes() == stamped_text(entry)
    response = town.board / "timestamps/0.tsr"
    told = ["openssl", "ts", "-verify", "-data", str(text), "-in", str(response)]
    done = subprocess.run(
        [*told, "-CAfile", str(authority.root)], capture_output=True, text=True, check=False
    )
    assert "Verification: OK" in done.stdout + done.stderr


def test_an_authority_is_asked_over_http(town: Town, authority: Authority) -> None:
    with authority.serving() as url:
        answer = town.organiser("board", "timestamp", "--authority", url, "--json", now=DAY)
    assert (answer.code, answer.json["event"]) == (0, 0), answer
    refused = town.organiser("board", "timestamp", "--authority", url, now=DAY)
    assert refused.code == 2
    assert "gives no time stamp" in refused.err


def test_a_log_that_was_made_again_has_no_time_stamp_of_before(
    town: Town, authority: Authority, tmp_path: Path
) -> None:
    stamp(town, authority)
    kept = (town.board / "timestamps/0.tsr").read_bytes()
    again = found_again(tmp_path / "again")
    (again.board / "timestamps").mkdir()
    (again.board / "timestamps/0.tsr").write_bytes(kept)
    found = again.organiser("audit", "--json", now=DAY).json
    assert not found["ok"]
    (fault,) = found["faults"]
    assert fault.startswith("timestamps/0.tsr: a time stamp of no event of this log")


def found_again(folder: Path) -> Town:
    """A board of the same files, with another title."""
    folder.mkdir()
    write_inputs(folder)
    call(folder, *founding(folder), "--title", "Better").done()
    return Town(folder)


def test_a_stamp_of_another_authority_does_not_hold(
    town: Town, authority: Authority, tmp_path: Path
) -> None:
    other = make_authority(tmp_path / "other")
    stamp(town, other)
    found = town.organiser("audit", "--timestamp-root", authority.root, "--json", now=DAY).json
    assert not found["ok"]
    assert "timestamps/0.tsr: it does not hold" in found["faults"][0]
    asked, given = town.root / "log.tsq", town.root / "log.tsr"
    told = ("--response", given, "--timestamp-root", authority.root)
    answer = town.organiser("board", "timestamp", *told, now=DAY)
    assert (answer.code, "it does not hold" in answer.err) == (2, True)
    assert asked.is_file()


def test_no_altered_byte_of_a_stamp_changes_what_it_says(town: Town, authority: Authority) -> None:
    """11 of 1,453 bytes may be any: they belong to nothing that is signed or read."""
    stamp(town, authority)
    repository = Repository(town.board)
    log, roots = repository.log(), read_roots(authority.root)
    path = town.board / "timestamps" / "0.tsr"
    made, (right,) = path.read_bytes(), check_stamps(repository, log, roots).stamps
    held = 0
    for place in range(len(made)):
        path.write_bytes(made[:place] + bytes([made[place] ^ 1]) + made[place + 1 :])
        found = check_stamps(repository, log, roots)
        held += len(found.stamps)
        assert set(found.stamps) <= {right}
        assert bool(found.stamps) != bool(found.faults)
    assert held <= len(made) // 100


@pytest.mark.parametrize("whose", ["root", "tsa"])
def test_a_stamp_by_a_certificate_that_had_ended_does_not_hold(
    town: Town, tmp_path: Path, whose: str
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
    stamp(town, old)
    found = town.organiser("audit", "--timestamp-root", old.root, "--json", now=DAY).json
    assert (found["ok"], found["stamps"]) == (False, [])
    assert "timestamps/0.tsr: it does not hold" in found["faults"][0]


@pytest.mark.parametrize(
    ("name", "damage", "told"),
    [
        ("0.tsr", "junk", "timestamps/0.tsr: "),
        ("0.tsr", "cut", "timestamps/0.tsr: "),
        ("0.tsr", "flipped", "timestamps/0.tsr: "),
        ("7.tsr", "", "timestamps/7.tsr: a time stamp of event 0, under another number"),
        ("0.tsr", "huge", "is longer than"),
        ("0.tsr", "a link", "timestamps/0.tsr"),
    ],
)
def test_a_damaged_time_stamp_is_a_fault(
    town: Town, authority: Authority, name: str, damage: str, told: str
) -> None:
    stamp(town, authority)
    file = town.board / "timestamps/0.tsr"
    data = file.read_bytes()
    file.unlink()
    file = town.board / "timestamps" / name
    if damage == "a link":
        file.symlink_to("/etc/hostname")
    else:
        made = {"junk": b"junk", "cut": data[:99], "huge": data * 99, "": data}
        flipped = bytes([*data[:-9], data[-9] ^ 1, *data[-8:]])
        file.write_bytes(made.get(damage, flipped))
    answer = town.organiser("audit", "--timestamp-root", authority.root, "--json", now=DAY)
    assert answer.code == 1, answer
    assert told in answer.json["faults"][0]


def test_what_is_no_response_is_not_stored(town: Town, tmp_path: Path) -> None:
    file = tmp_path / "x.tsr"
    file.write_bytes(b"<html>")
    answer = town.organiser("board", "timestamp", "--response", file, now=DAY)
    assert (answer.code, "not-a-timestamp" in answer.err) == (2, True), answer
    assert not (town.board / "timestamps").exists()
    for told in ((), ("--request", tmp_path / "a", "--response", file)):
        wrong = town.organiser("board", "timestamp", *told, now=LAST)
        assert wrong.code == 2
        assert "give one of" in wrong.err
    wrong = town.organiser("audit", "--timestamp-root", file, now=LAST)
    assert (wrong.code, "not-a-certificate" in wrong.err) == (2, True)


def test_without_the_extra_a_stamp_is_unchecked(
    town: Town, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamp(town, authority)
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    found = town.organiser("audit", "--timestamp-root", authority.root, "--json", now=DAY).json
    assert found["ok"]
    assert any("pip install 'heldout[timestamps]'" in text for text in found["unchecked"])
    answer = town.organiser("board", "timestamp", "--request", town.root / "x", now=DAY)
    assert answer.code == 2
    assert Vault(town.vault).entries()
