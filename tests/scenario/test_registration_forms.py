"""`heldout check --form` of requests that bring a registration, and those that pretend to."""

from collections.abc import Mapping

import pytest
from lab import NEXT, Lab, commit_tree, git
from registering import admitted_lab, deliver, make_registration, refusal

from heldout.board.log.registration import team_handle
from heldout.envelope.keys import new_signing_key, public_key

KEY, OTHER = new_signing_key(), new_signing_key()
TEAM, OTHER_TEAM = (team_handle(public_key(key)) for key in (KEY, OTHER))
OWN, OTHERS = (f"registrations/{team}.json" for team in (TEAM, OTHER_TEAM))
Files = Mapping[str, tuple[str, bytes] | None]
SUBMISSION = "submissions/20261102-x"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return admitted_lab(tmp_path_factory.mktemp("forms"))


@pytest.fixture(scope="module")
def own(lab: Lab) -> bytes:
    """A registration that is as it should be."""
    return make_registration(lab, KEY)


def check(lab: Lab, files: Files) -> tuple[int, str | None, list[str]]:
    """Exit code, team, and problems of a request with these files."""
    main = git(lab.clone, "rev-parse", "main")
    tip = commit_tree(lab.clone, files, parent=main)
    git(lab.clone, "update-ref", "refs/pull/7/head", tip)
    answer = lab.participant("check", "--form", main, "refs/pull/7/head", "--json")
    assert answer.json["ok"] == (answer.code == 0)
    problems = [problem["code"] for problem in answer.json["problems"]]
    return answer.code, answer.json["team"], problems


def test_a_registration_of_its_own_team_has_nothing_wrong(lab: Lab, own: bytes) -> None:
    assert check(lab, {OWN: ("100644", own)}) == (0, TEAM, [])


NOT_ITS_OWN: Mapping[str, Files] = {
    "rules": {"board.toml": ("100644", b"x")},
    "program": {"x.py": ("100644", b"x")},
    "submission": {f"{SUBMISSION}.key.age": ("100644", b"x")},
    "another registration": {OTHERS: ("100644", b"x")},
    "a file taken away": {"README.md": None},
}


@pytest.mark.parametrize("case", NOT_ITS_OWN)
def test_a_registration_beside_another_file(lab: Lab, own: bytes, case: str) -> None:
    files: Files = {OWN: ("100644", own), **NOT_ITS_OWN[case]}
    assert check(lab, files) == (1, None, ["foreign-change"])


def test_two_registrations_at_once(lab: Lab, own: bytes) -> None:
    files = {OWN: ("100644", own), OTHERS: ("100644", make_registration(lab, OTHER))}
    assert check(lab, files) == (1, None, ["foreign-change"])


@pytest.mark.parametrize("mode", ["120000", "100755"], ids=["link", "program"])
def test_a_registration_that_is_no_plain_file(lab: Lab, own: bytes, mode: str) -> None:
    assert check(lab, {OWN: (mode, own)}) == (1, None, ["foreign-change"])


def test_a_registration_without_end(lab: Lab, own: bytes) -> None:
    assert check(lab, {OWN: ("100644", own + b" " * 70_000)}) == (1, None, ["too-large"])


@pytest.mark.parametrize(
    "path",
    [OTHERS, "registrations/x.json", f"registrations/a/{TEAM}.json"],
    ids=["other-team", "no-team", "deeper"],
)
def test_a_registration_under_a_name_that_is_not_its_team_s(
    lab: Lab, own: bytes, path: str
) -> None:
    code, team, problems = check(lab, {path: ("100644", own)})
    assert (code, team) == (1, None)
    assert problems == ["bad-signature" if path == OTHERS else "foreign-change"]


def test_the_inbox_takes_no_file_that_is_named_after_another_team(lab: Lab, own: bytes) -> None:
    assert refusal(deliver(lab, own, OTHER_TEAM)) == ["bad-signature"]
    assert deliver(lab, own, TEAM)["kind"] == "registered"


def test_a_statement_that_its_key_did_not_sign(lab: Lab) -> None:
    forged = make_registration(lab, OTHER, {"key": public_key(KEY), "at": NEXT})
    assert check(lab, {OWN: ("100644", forged)}) == (1, None, ["bad-signature"])


def test_a_file_that_is_no_registration_at_all(lab: Lab) -> None:
    for data in (b"", b"null", b"[" * 50_000, b"\xff"):
        assert check(lab, {OWN: ("100644", data)}) == (1, None, ["not-a-registration"])
