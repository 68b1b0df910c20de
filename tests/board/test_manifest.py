"""Metadata files: good ones come back as they were, bad ones are told whole."""

import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.manifest import (
    Manifest,
    empty_manifest,
    format_manifest,
    parse_day,
    parse_manifest,
    team_key,
)
from heldout.errors import InputError, Problem

GOOD = {"team": "Lighthouse", "model_description": "monoT5", "type": "full ranking"}
plain = st.text(st.characters(categories=["L", "N", "P", "Zs"], max_codepoint=0x24FF), max_size=30)
manifests = st.builds(
    Manifest,
    team=plain,
    description=plain,
    type=plain,
    institution=plain,
    paper=st.sampled_from(["", "https://example.org/a?b=c#d", "http://example.org:8080/"]),
    code=st.just(""),
    training_data=plain,
    embargo_until=st.none() | st.dates(),
    open_runs=st.none() | st.booleans(),
    season_entry=st.booleans(),
    revision=st.integers(1, 10**6),
    withdrawn=st.booleans(),
    id=st.sampled_from(["", "20261101-a"]),
    digests=st.dictionaries(st.sampled_from(["dev", "eval"]), st.just("0" * 64)),
)


def find_problems(changes: dict[str, Any]) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        parse_manifest(json.dumps({**GOOD, **changes}).encode())
    return caught.value.problems


@given(manifests)
def test_a_manifest_is_read_as_it_was_written(manifest: Manifest) -> None:
    hollow = any(ord(c) in (0x115F, 0x1160, 0x17B4, 0x17B5) for c in repr(manifest))
    if not hollow:
        assert parse_manifest(format_manifest(manifest)) == manifest


def test_the_paper_s_own_fields_are_enough() -> None:
    data = b"""{"team": "team name", "model_description": "model", "paper": "", "code": "",
        "type": "reranking", "embargo_until": "2026/12/31", "date": "20261101"}"""
    manifest = parse_manifest(data)
    assert manifest.embargo_until == date(2026, 12, 31)
    assert (manifest.institution, manifest.revision, manifest.digests) == ("", 1, {})


def test_a_byte_order_mark_is_no_error() -> None:
    assert parse_manifest(b"\xef\xbb\xbf" + json.dumps(GOOD).encode()).team == "Lighthouse"


@pytest.mark.parametrize("day", [None, ""])
def test_no_embargo(day: str | None) -> None:
    manifest = parse_manifest(json.dumps({**GOOD, "embargo_until": day}).encode())
    assert manifest.embargo_until is None


@pytest.mark.parametrize("said", [True, False, None])
def test_a_team_says_whether_its_runs_may_be_opened(*, said: bool | None) -> None:
    assert parse_manifest(json.dumps({**GOOD, "open_runs": said}).encode()).open_runs is said


def test_silence_is_no_agreement_to_open_runs() -> None:
    assert parse_manifest(json.dumps(GOOD).encode()).open_runs is None


def test_a_draft_has_to_be_filled_in() -> None:
    draft = empty_manifest(types=("reranking", "full"), embargo_until=date(2027, 1, 1))
    assert (draft.team, draft.type, draft.embargo_until) == ("", "reranking", date(2027, 1, 1))
    assert format_manifest(draft).endswith(b"}\n")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"null", b"[]", b'"text"', b"7", b'{"team": "x",}',
        b'{"team": "x" // comment\n}', b"\xff\xfe{\x00}\x00", b'{"team": "\xff"}',
        b'{"team": "\\ud800"}', b'{"team": NaN}', b"[" * 100_000, b'{"a":' * 100_000,
        b'{"team": "x"} {"team": "y"}',
    ],
)  # fmt: skip
def test_what_is_no_json_object(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        parse_manifest(data)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("not-json", "metadata.json")


BAD_LINKS = (
    "arxiv.org/abs/1", "javascript:alert(1)", "JaVaScRiPt://example.org/%0aalert(1)",
    "data:text/html,x", "ftp://example.org/", "//example.org/", "https://localhost/", "https://",
    "https://example.org:port/", "https://[::1/", "https://user@example.org/",
    "https://user:secret@example.org/", 'https://example.org/"onmouseover="x',
    "https://example.org/<script>", "https://example.org/a b", "https://example.org\\@evil.example/",
)  # fmt: skip
INVISIBLE = (
    "two\nlines", "tab\there", "\x1b[31mred", "nul\x00", "right\u202eto left", "zero\u200bwidth",
    "soft\u00adhyphen", "mark\ufeff", "filler\u3164", "variant\ufe0f", "joiner\u034f",
    "tag\U000e0041", "tag variant\U000e0100", "private\ue000", "line\u2028separator",
)  # fmt: skip
WRONG: dict[str, tuple[object, ...]] = {
    "team": (None, 7, ["a"], "x" * 2001),
    "id": (7,),
    "paper": (None,),
    "season_entry": (None, "true"),
    "open_runs": ("yes", 1, ""),
    "embargo_until": (
        "tomorrow", "2026-13-01", "2026-02-30", "2026-1-1", "20260101", "2026-01/01", "0000-01-01",
        "\u0662\u0660\u0662\u0666-01-01", 0, False, 20260101,
    ),
    "revision": (0, -1, 1.0, "1", True, None, 10**4000),
    "withdrawn": (1, "true", None),
    "schema": (2, True, 1.0),
    "digests": (
        [], {"dev": "0" * 63}, {"dev": "A" * 64}, {"dev": "0" * 64 + "\n"}, {"dev": 0},
    ),
}  # fmt: skip
BAD_FIELDS: list[tuple[str, object, str]] = [
    *((field, value, "wrong-field") for field, values in WRONG.items() for value in values),
    *(("team", text, "invisible-character") for text in INVISIBLE),
    ("model_description", "next\u0085line", "invisible-character"),
    ("id", "a\u200b", "invisible-character"),
    *(("paper", link, "not-a-link") for link in BAD_LINKS),
    ("code", " https://example.org/", "not-a-link"),
    *((name, 1, "unknown-field") for name in ("score", "__proto__", "Team", "\x1b[2J\u202e")),
]


@pytest.mark.parametrize(("field", "value", "code"), BAD_FIELDS)
def test_a_bad_field(field: str, value: object, code: str) -> None:
    problems = find_problems({field: value})
    assert code in {problem.code for problem in problems}
    for problem in problems:
        shown = (problem.found, problem.expected, problem.hint, problem.path)
        assert all(text.isprintable() and len(text) < 300 for text in shown)


def test_many_unknown_fields_are_counted() -> None:
    *_, last = find_problems({f"x{number}": number for number in range(10_000)})
    assert "9,990 more unknown fields" in last.found


@pytest.mark.parametrize("field", ["team", "model_description", "type"])
def test_a_missing_field(field: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_manifest(json.dumps({k: v for k, v in GOOD.items() if k != field}).encode())
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("missing-field", f"metadata.json:{field}")


def test_a_link_without_scheme_is_hinted_at() -> None:
    (problem,) = find_problems({"paper": "arxiv.org/abs/2611.01234"})
    assert problem.hint == '"https://arxiv.org/abs/2611.01234"'
    (problem,) = find_problems({"paper": "no link at all"})
    assert problem.hint == ""


@pytest.mark.parametrize(
    ("text", "day"), [("2028-02-29", date(2028, 2, 29)), ("2026/12/31", date(2026, 12, 31))]
)
def test_days(text: str, day: date) -> None:
    assert parse_day(text) == day


@pytest.mark.parametrize(
    "text", ["2027-02-29", "2026-12-31T00:00", "", "2026.12.31", "2026-12-31\n"]
)
def test_what_is_no_day(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_day(text)


@pytest.mark.parametrize(
    "name",
    ["Light House", "light house", " LIGHT   HOUSE ", "\uff2cight House", "light\u00a0house"],
)
def test_names_of_one_team(name: str) -> None:
    assert team_key(name) == "light house"


@given(st.text(max_size=12))
def test_a_team_s_key_is_its_own_key(name: str) -> None:
    assert team_key(team_key(name)) == team_key(name)


def test_upper_case_is_the_same_team() -> None:
    for name in ("\u0390 lab", "stra\u00dfe", "\u01c6 lab"):
        assert team_key(name.upper()) == team_key(name)
