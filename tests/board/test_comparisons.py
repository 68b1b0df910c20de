"""What the vault stores of comparing runs: added to, made again where damaged, never believed."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from boardlog import BoardLog, make_manifest

from heldout.board.log.history import History
from heldout.board.policy.ensembles import RunLikeness
from heldout.board.policy.similarity import DEPTH
from heldout.board.scores import stored
from heldout.board.scores.compared import compare_runs, list_keys
from heldout.board.scores.stored import read_key, read_signatures
from heldout.board.store.vault import Vault
from heldout.errors import StoreError
from heldout.trec.scans import Signature

QUERIES = tuple(f"q{number:02}" for number in range(24))
NAMES = tuple(f"20261101-run{number}" for number in range(8))
LAST = NAMES[-1]
FILE = "sketches/eval.npz"


def write(vault: Vault, name: str, seed: int, queries: tuple[str, ...] = QUERIES) -> None:
    """The signature file of a submission."""
    random = np.random.default_rng(seed)
    documents = random.integers(1, 1 << 63, (len(queries), DEPTH), dtype=np.uint64)
    with vault.files.change(f"signatures/{name}.npz") as file:
        file.truncate()
        arrays = {"eval.documents": documents, "eval.queries": np.array(queries)}
        np.savez(file, allow_pickle=False, **arrays)


@pytest.fixture
def history() -> History:
    log = BoardLog().open()
    for name in NAMES:
        log.submit(name, make_manifest(name), "0.400")
    return log.history


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """Eight runs, of which the last two are copies of the first."""
    vault = Vault(tmp_path)
    for seed, name in enumerate(NAMES):
        write(vault, name, 0 if seed > 5 else seed)
    return vault


class Reads:
    """Which signature files were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        real = read_signatures

        def read(vault: Vault, name: str) -> object:
            self.names.append(name)
            return real(vault, name)

        monkeypatch.setattr(stored, "read_signatures", read)

    def take(self) -> list[str]:
        names, self.names = self.names, []
        return names


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def compare(vault: Vault, history: History, name: str = LAST) -> RunLikeness:
    found = compare_runs(vault, history, history.submissions[name], repair=lambda _: False)
    return found["eval"]


def alike(found: RunLikeness) -> list[str]:
    return [one.id for one in found.neighbours]


def test_a_submission_is_compared_once(vault: Vault, history: History, reads: Reads) -> None:
    found = compare(vault, history)
    assert alike(found) == [NAMES[0], NAMES[6]]
    assert set(reads.take()) == set(NAMES)
    assert compare(vault, history) == found
    assert reads.take() == [LAST]


def test_a_new_submission_alone_is_read(vault: Vault, history: History, reads: Reads) -> None:
    compare(vault, history, NAMES[3])
    reads.take()
    compare(vault, history, NAMES[4])
    assert reads.take()[:2] == [NAMES[4], NAMES[3]]


def _damage(vault: Vault) -> Iterator[bytes]:
    """A file of sketches as a disk or an older version may leave it."""
    data = vault.files.read(FILE)
    for place in (3, 70, len(data) // 2, len(data) - 1):
        yield data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    yield from (b"", data[:40], data[: len(data) // 2], data[:-1], vault.files.read("other.npz"))


def test_a_damaged_file_of_sketches_is_made_again(vault: Vault, history: History) -> None:
    expected = compare(vault, history)
    with vault.files.create("other.npz") as file:
        np.savez(file, allow_pickle=False, stamps=np.zeros((2, 3)))
    for damaged in _damage(vault):
        vault.files.write_whole(FILE, damaged)
        vault.files.delete_tree("comparisons")
        assert compare(vault, history) == expected


def test_a_changed_signature_is_compared_again(vault: Vault, history: History) -> None:
    assert alike(compare(vault, history)) == [NAMES[0], NAMES[6]]
    write(vault, NAMES[0], 77)
    assert alike(compare(vault, history)) == [NAMES[6]]
    write(vault, LAST, 77)
    assert alike(compare(vault, history)) == [NAMES[0]]
    vault.files.delete(f"signatures/{NAMES[0]}.npz")
    assert alike(compare(vault, history)) == []


def test_a_signature_copied_back_is_read(vault: Vault, history: History, reads: Reads) -> None:
    found = compare(vault, history)
    path = vault.root / f"signatures/{NAMES[2]}.npz"
    os.utime(path, (0, 0))
    reads.take()
    assert compare(vault, history) == found
    assert reads.take() == [LAST, NAMES[2]]


def test_runs_with_other_queries_widen_the_sketches(vault: Vault, history: History) -> None:
    compare(vault, history, NAMES[4])
    other = ("a0", *QUERIES[3:], "z0")
    for name in (NAMES[5], NAMES[6], LAST):
        write(vault, name, 5, other)
    assert alike(compare(vault, history)) == [NAMES[5], NAMES[6]]
    write(vault, LAST, 2)
    assert alike(compare(vault, history)) == [NAMES[2]]


def test_a_damaged_or_foreign_comparison_is_not_believed(vault: Vault, history: History) -> None:
    found = compare(vault, history)
    path = f"comparisons/{LAST}.json"
    data = vault.files.read(path)
    compare(vault, history, NAMES[3])
    other = vault.files.read(f"comparisons/{NAMES[3]}.json")
    digest, _, body = data.partition(b"\n")
    broken = [b"", data[:50], data[:-1], data.replace(b"identical", b"variantxx"), other]
    broken += [digest + b"\nnonsense", digest + b"\n", b"\n" + body, b"\xff\n\xff"]
    for bad in broken:
        vault.files.write_whole(path, bad)
        assert compare(vault, history) == found
        assert vault.files.read(path) == data


def test_nothing_partial_is_stored(
    vault: Vault, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may spoil a file, whose time of change stays."""
    whole = compare(vault, history)
    vault.files.delete_tree("comparisons")

    def spoiled(vault: Vault, name: str) -> Mapping[str, Signature]:
        if name == NAMES[0]:
            raise StoreError("damaged")
        return read_signatures(vault, name)

    with monkeypatch.context() as now:
        now.setattr(stored, "read_signatures", spoiled)
        assert alike(compare(vault, history)) == [NAMES[6]]
    assert compare(vault, history) == whole


def test_another_version(vault: Vault, history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(vault, history)
    before = vault.files.read(f"comparisons/{LAST}.json")
    monkeypatch.setattr("heldout.board.scores.compared._digest_code", lambda: b"other")
    compare(vault, history)
    assert vault.files.read(f"comparisons/{LAST}.json") != before


def test_a_key_is_read_again_where_its_file_changed(vault: Vault, history: History) -> None:
    for name in NAMES[:3]:
        vault.files.write_whole(f"scores/{name}.json", b'{"key":"first"}')
    asked: list[str] = []

    def read(name: str) -> str:
        asked.append(name)
        return read_key(vault, name)

    def keys() -> list[str]:
        asked.clear()
        return list(list_keys(vault, history.submissions, read).values())

    assert keys() == ["first"] * 3 + [""] * 5
    assert keys() == ["first"] * 3 + [""] * 5
    assert asked == list(NAMES[3:])
    vault.files.write_whole(f"scores/{NAMES[1]}.json", b'{"key":"other"}')
    vault.files.delete(f"scores/{NAMES[2]}.json")
    assert keys()[:3] == ["first", "other", ""]
    assert asked == [NAMES[1], *NAMES[2:]]
    whole = vault.files.read("comparisons/keys.json")
    for damaged in (b"", whole[:-1], whole.replace(b"first", b"fir5t")):
        vault.files.write_whole("comparisons/keys.json", damaged)
        assert keys()[:3] == ["first", "other", ""]
