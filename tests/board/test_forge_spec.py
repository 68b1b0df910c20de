"""`[forge]` of board.toml, what an address tells, and how long a forge is waited for."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.rules.spec import ForgeKind, ForgeSpec, api_root, check_forge, parse_forge
from heldout.board.store.forges import is_rate_limited, seconds_to_wait

KNOWN: dict[str, tuple[ForgeKind, str]] = {
    "https://github.com/lab/board": ("github", "lab/board"),
    "https://GitHub.com/lab/board.git": ("github", "lab/board"),
    "https://github.com/lab/board.x/": ("github", "lab/board.x"),
    "https://gitlab.com/uni/group/deeper/board": ("gitlab", "uni/group/deeper/board"),
    "https://codeberg.org/lab/board": ("forgejo", "lab/board"),
}


@pytest.mark.parametrize("address", KNOWN)
def test_an_address_on_a_known_host_tells_its_forge(address: str) -> None:
    found = parse_forge(address)
    assert found is not None
    assert (found.kind, found.project) == KNOWN[address]
    assert list(check_forge(found)) == []


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://example.org/lab/board",
        "http://github.com/lab/board",
        "https://token@github.com/lab/board",
        "https://github.com:8443/lab/board",
        "https://github.com.evil.example/lab/board",
        "https://github.com/lab",
        "https://github.com/lab/board/pull/1",
        "https://github.com/lab/../board",
        "https://github.com/lab/board?x=1",
        "https://github.com/-x/board",
        "https://github.com/lab/bo ard",
        "https://github.com/lab/bo\nard",
        "git@github.com:lab/board.git",
        "https://[github.com/lab/board",
    ],
)
def test_any_other_address_tells_none(address: str) -> None:
    assert parse_forge(address) is None


@given(st.text())
def test_no_address_makes_trouble(address: str) -> None:
    found = parse_forge("https://gitlab.com/" + address)
    assert found is None or list(check_forge(found)) == []
    assert parse_forge(address) is None or address.lower().startswith("https://")


WRONG: dict[str, tuple[ForgeSpec, str]] = {
    "http": (ForgeSpec(kind="gitlab", url="http://git.uni.example", project="a/b"), "forge.url"),
    "a password in the address": (
        ForgeSpec(kind="forgejo", url="https://me:secret@git.example", project="a/b"),
        "forge.url",
    ),
    "a query": (ForgeSpec(kind="gitlab", url="https://x.example?a", project="a/b"), "forge.url"),
    "no address": (ForgeSpec(kind="github", url="", project="a/b"), "forge.url"),
    "a path up": (ForgeSpec(kind="gitlab", url="https://x/../y", project="a/b"), "forge.url"),
    "no project": (ForgeSpec(kind="github", url="https://github.com"), "forge.project"),
    "groups on GitHub": (
        ForgeSpec(kind="github", url="https://github.com", project="a/b/c"),
        "forge.project",
    ),
    "a project that goes up": (
        ForgeSpec(kind="gitlab", url="https://gitlab.com", project="a/..b"),
        "forge.project",
    ),
    "a project with an escape": (
        ForgeSpec(kind="gitlab", url="https://gitlab.com", project="a/%2e"),
        "forge.project",
    ),
    "a folder without a path": (ForgeSpec(kind="folder", url=""), "forge.url"),
    "a folder with a project": (ForgeSpec(kind="folder", url="in", project="a"), "forge.project"),
    "an option for git": (ForgeSpec(kind="git", url="--upload-pack=evil"), "forge.url"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_table_is_told_by_its_key(name: str) -> None:
    spec, key = WRONG[name]
    assert [wrong[0] for wrong in check_forge(spec)] == [key]


def test_an_unknown_key_or_kind_is_no_spec() -> None:
    for table in ({"kind": "svn", "url": "x"}, {"kind": "git", "url": "x", "token": "y"}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(table, ForgeSpec)


@pytest.mark.parametrize(
    ("kind", "url", "root"),
    [
        ("github", "https://github.com", "https://api.github.com"),
        ("github", "https://git.uni.example/", "https://git.uni.example/api/v3"),
        ("gitlab", "https://uni.example/gitlab", "https://uni.example/gitlab/api/v4"),
        ("forgejo", "https://codeberg.org", "https://codeberg.org/api/v1"),
    ],
)
def test_each_forge_is_asked_at_its_documented_root(kind: ForgeKind, url: str, root: str) -> None:
    spec = ForgeSpec(kind=kind, url=url, project="a/b")
    assert list(check_forge(spec)) == []
    assert api_root(spec) == root
    assert spec.clone_url == f"{url.rstrip('/')}/a/b.git"


# waiting


@given(st.dictionaries(st.sampled_from(["retry-after", "x-ratelimit-reset"]), st.text()))
def test_a_wait_is_at_least_a_second_whatever_is_said(headers: dict[str, str]) -> None:
    assert seconds_to_wait(headers, now=1e9) >= 1


def test_a_refusal_that_is_no_limit_is_not_waited_for() -> None:
    assert not is_rate_limited(403, {}, '{"message": "Must have admin rights"}')
    assert not is_rate_limited(404, {"retry-after": "5"}, "")
    assert not is_rate_limited(403, {"x-ratelimit-remaining": "12"}, "")
    assert is_rate_limited(403, {"x-ratelimit-remaining": "0"}, "")
