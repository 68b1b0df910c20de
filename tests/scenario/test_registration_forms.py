"""`heldout check --form` of requests that bring a registration, and those that pretend to."""

from collections.abc import Mapping

import pytest
from registering_town import DAY, NEXT, admitted_town, deliver, make_registration, refusal
from town import Town, commit_tree, git

from heldout.board.log.registration import team_handle
from heldout.envelope.keys import new_signing_key, public_key

pytestmark = pytest.mark.slow
KEY, OTHER = new_signing_key(), new_signing_key()
TEAM, OTHER_TEAM = (team_handle(public_key(key)) for key in (KEY, OTHER))
OWN, OTHERS = (f"registrations/{team}.json" for team in (TEAM, OTHER_TEAM))
Files = Mapping[str, tuple[str, bytes] | None]
SUBMISSION = "submissions/20261102-x"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    return admitted_town(tmp_path_factory.mktemp("forms"))


@pytest.fixture(scope="module")
def own(town: Town) -> bytes:
    """A registration that is as it should be."""
    return make_registration(town, KEY)


def check(town: Town, files: Files) -> tuple[int, str | None, list[str]]:
    """Exit code, team, and problems of a request with these files."""
    main = git(town.clone, "rev-parse", "main")
    tip = commit_tree(town.clone, files, parent=main)
    git(town.clone, "update-ref", "refs/pull/7/head", tip)
    answer = town.participant("check", "--form", main, "refs/pull/7/head", "--json", now=DAY)
    assert answer.json["ok"] == (answer.code == 0)
    problems = [problem["code"] for problem in answer.json["problems"]]
    return answer.code, answer.json["team"], problems


def test_a_registration_of_its_own_team_has_nothing_wrong(town: Town, own: bytes) -> None:
    assert check(town, {OWN: ("100644", own)}) == (0, TEAM, [])


# Teams' handles are drawn again, so they may not name a test: workers would not find the same ones.
@pytest.mark.parametrize(
    "extra",
    ["board.toml", "x.py", f"{SUBMISSION}.key.age", OTHERS],
    ids=["rules", "program", "submission", "registration"],
)
def test_a_registration_beside_another_file(town: Town, own: bytes, extra: str) -> None:
    files = {OWN: ("100644", own), extra: ("100644", b"x")}
    assert check(town, files) == (1, None, ["foreign-change"])


def test_two_registrations_at_once(town: Town, own: bytes) -> None:
    files = {OWN: ("100644", own), OTHERS: ("100644", make_registration(town, OTHER))}
    assert check(town, files) == (1, None, ["foreign-change"])


@pytest.mark.parametrize("mode", ["120000", "100755"], ids=["link", "program"])
def test_a_registration_that_is_no_plain_file(town: Town, own: bytes, mode: str) -> None:
    assert check(town, {OWN: (mode, own)}) == (1, None, ["foreign-change"])


def test_a_registration_that_takes_a_file_away(town: Town, own: bytes) -> None:
    files: Files = {OWN: ("100644", own), "README.md": None}
    assert check(town, files) == (1, None, ["foreign-change"])


def test_a_registration_without_end(town: Town, own: bytes) -> None:
    assert check(town, {OWN: ("100644", own + b" " * 70_000)}) == (1, None, ["too-large"])


@pytest.mark.parametrize(
    "path",
    [OTHERS, "registrations/x.json", f"registrations/a/{TEAM}.json"],
    ids=["other-team", "no-team", "deeper"],
)
def test_a_registration_under_a_name_that_is_not_its_team_s(
    town: Town, own: bytes, path: str
) -> None:
    code, team, problems = check(town, {path: ("100644", own)})
    assert (code, team) == (1, None)
    assert problems == ["bad-signature" if path == OTHERS else "foreign-change"]


def test_the_inbox_takes_no_file_that_is_named_after_another_team(town: Town, own: bytes) -> None:
    assert refusal(deliver(town, own, OTHER_TEAM)) == ["bad-signature"]
    assert deliver(town, own, TEAM)["kind"] == "registered"


def test_a_statement_that_its_key_did_not_sign(town: Town) -> None:
    forged = make_registration(town, OTHER, {"key": public_key(KEY), "at": NEXT})
    assert check(town, {OWN: ("100644", forged)}) == (1, None, ["bad-signature"])


def test_a_file_that_is_no_registration_at_all(town: Town) -> None:
    for data in (b"", b"null", b"[" * 50_000, b"\xff"):
        assert check(town, {OWN: ("100644", data)}) == (1, None, ["not-a-registration"])
