"""Which files of a shared vault the log vouches for; judged without git."""

from typing import Any

import pytest
from boardlog import BoardLog
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.events import Entry
from heldout.board.log.history import read_history
from heldout.board.store.git import Change
from heldout.board.store.sharing import RESULTS, check_plain, judge_file, logged_files, result_path
from heldout.errors import StoreError
from heldout.ids import digest_bytes

NAME = "20261101-a"
Told = tuple[str, str | None, dict[str, Any], dict[str, Any]]


def chain(*told: Told) -> list[Entry]:
    log = BoardLog(private=b"")
    for one in told:
        log.add(*one)
    return log.entries


def digest(data: bytes) -> str:
    return str(digest_bytes(data))


OPENED: Told = (
    "opened-board",
    None,
    {"board.toml": "no rules are read here", "signers": {"ann": "0" * 64}},
    {"labels": {"eval": digest(b"labels")}},
)
RECEIVED: Told = ("received", NAME, {"files": {}}, {})


def reviewed(**kept: bytes) -> Told:
    sealed = {"kept": {folder: digest(data) for folder, data in kept.items()}}
    return ("reviewed", NAME, {}, sealed)


def test_the_last_event_that_scored_a_submission_vouches_for_its_files() -> None:
    first = reviewed(scores=b"1", signatures=b"s")
    logged = logged_files(read_history(chain(OPENED, RECEIVED, first)))
    assert logged == {
        "labels/eval.qrels": digest(b"labels"),
        f"scores/{NAME}.json": digest(b"1"),
        f"signatures/{NAME}.npz": digest(b"s"),
    }
    later = logged_files(
        read_history(chain(OPENED, RECEIVED, first, reviewed(scores=b"2", signatures=b"s")))
    )
    assert judge_file(f"scores/{NAME}.json", b"1", later) == "unlogged"
    assert judge_file(f"scores/{NAME}.json", b"2", later) == "logged"


def test_an_event_that_scores_nothing_leaves_them_as_they_were() -> None:
    asked: Told = ("asked", NAME, {"why": "?"}, {})
    entries = chain(OPENED, RECEIVED, reviewed(scores=b"1"), asked)
    assert judge_file(f"scores/{NAME}.json", b"1", logged_files(read_history(entries))) == "logged"


LOGGED = {"labels/eval.qrels": digest(b"labels"), f"scores/{NAME}.json": digest(b"1")}
CASES = {
    "labels that were committed to": ("labels/eval.qrels", b"labels", "logged"),
    "other labels": ("labels/eval.qrels", b"x", "wrong"),
    "a mask without a commitment": ("labels/eval.exclude", b"eval1", "unlogged"),
    "a note that decides no score": ("labels/READ ME", b"x", "logged"),
    "a sealed file": (f"sealed/{digest(b'x')}", b"x", "logged"),
    "a sealed file under another's digest": (f"sealed/{digest(b'x')}", b"y", "wrong"),
    "a sealed file in a folder": (f"sealed/a/{digest(b'x')}", b"x", "wrong"),
    "scores": (f"scores/{NAME}.json", b"1", "logged"),
    "other scores": (f"scores/{NAME}.json", b"2", "unlogged"),
    "scores of nobody": ("scores/20261101-b.json", b"1", "unlogged"),
    "a signature without an event": (f"signatures/{NAME}.npz", b"s", "unlogged"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_is_held_against_what_it_has_to_be(case: str) -> None:
    path, data, standing = CASES[case]
    assert judge_file(path, data, LOGGED) == standing


@given(folder=st.sampled_from(sorted(RESULTS)), data=st.binary(max_size=40))
def test_no_other_bytes_pass_for_what_is_kept(folder: str, data: bytes) -> None:
    logged = {result_path(folder, NAME): digest(b"as logged")}
    standing = judge_file(result_path(folder, NAME), data, logged)
    assert (standing == "logged") == (data == b"as logged")


@pytest.mark.parametrize(
    "path",
    [
        *("identities/a.txt", "founding", "scores/../x", "labels/.x"),
        *("sketches/eval", "comparisons/20261102-x.json"),
    ],
)
def test_what_is_no_file_of_a_vault_is_refused(path: str) -> None:
    change = Change(path=path, mode="100644", blob="0" * 40, status="A")
    with pytest.raises(StoreError, match="the remote has"):
        check_plain([change], whose="the remote", then="nothing was done")
