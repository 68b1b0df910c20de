"""What the log says of a submission, event by event."""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from boardlog import RULES, START, BoardLog, make_manifest
from certain import sure
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.event_fields import EVENTS, BoardFields, _fields_of, check_fields
from heldout.board.log.events import KINDS, parse_log, redact
from heldout.board.log.history import last_proposal, list_amendments, list_proposed, read_history
from heldout.board.log.submission import _CHANGES, Submission
from heldout.board.rules.spec_file import parse_spec
from heldout.board.standings.standings import current_standings
from heldout.errors import HeldoutError, StoreError

NAME = "20261101-a"


def begun() -> BoardLog:
    log = BoardLog().open()
    log.receive(NAME)
    return log


def submission(log: BoardLog) -> Submission:
    return log.history.submissions[NAME]


def test_every_kind_of_event_has_its_fields_and_what_it_changes_and_follows() -> None:
    about_board = {kind for kind, one in EVENTS.items() if issubclass(one.fields, BoardFields)}
    assert set(EVENTS) == KINDS
    assert set(_CHANGES) == KINDS - about_board == {k for k, one in EVENTS.items() if one.after}


def test_received() -> None:
    now = submission(begun())
    assert (now.status, now.pending, now.received) == ("received", True, START)
    assert set(now.files) == {f"{NAME}.tar.age", f"{NAME}.key.age"}
    assert (now.identity, now.type, now.scores) == (None, None, {})


def test_reviewed_in_vain() -> None:
    log = begun()
    log.review(NAME)
    now = submission(log)
    assert (now.status, now.identity) == ("reviewed", None)


def test_the_score_was_shown() -> None:
    log = begun()
    log.show_score(NAME)
    assert submission(log).score_shown


def test_asked_and_answered() -> None:
    log = begun()
    log.review(NAME, make_manifest())
    log.ask(NAME)
    assert (submission(log).status, submission(log).why) == ("asked", "Which collection?")
    log.wait(days=1).update(NAME, make_manifest("Lighthouse Lab", revision=2))
    now = submission(log)
    assert (now.status, now.revision, now.received) == ("received", 2, START)
    assert sure(now.identity).team == "Lighthouse Lab"
    assert now.teams == now.counts_for == ("Lighthouse",)
    log.review(NAME, make_manifest("Lighthouse Lab", revision=2))
    assert submission(log).teams == submission(log).counts_for == ("Lighthouse", "Lighthouse Lab")
    assert f"{NAME}-metadata.json.age" in now.files
    assert len(now.files) == 3


def test_files_sent_again_move_the_time() -> None:
    log = begun()
    log.wait(hours=5).receive(NAME)
    assert submission(log).received == START + timedelta(hours=5)


@pytest.mark.parametrize("end", ["rejected", "withdrawn"])
def test_ended(end: str) -> None:
    log = begun()
    if end == "rejected":
        log.reject(NAME)
    else:
        log.update(NAME, make_manifest(revision=2), withdrawn=True)
    assert (submission(log).status, submission(log).pending) == (end, False)


def test_published_updated_corrected_and_extended() -> None:
    log = begun()
    manifest = make_manifest(embargo_until=date(2027, 1, 1))
    log.review(NAME, manifest)
    log.wait(days=2).publish(NAME, manifest, "0.403", why="because", findings=["near-variant"])
    now = submission(log)
    assert (now.status, now.published) == ("published", START + timedelta(days=2))
    assert (now.scores["eval"], now.counts["eval"]) == ("0.403", 90)
    assert (now.findings, now.why, now.revision) == (("near-variant",), "because", 1)
    log.update(NAME, make_manifest(code="", revision=2))
    log.wait(days=1).correct(NAME, "0.399")
    log.extend(NAME, date(2027, 3, 1))
    now = submission(log)
    assert (now.status, now.revision, now.embargo_until) == ("published", 2, date(2027, 3, 1))
    assert (sure(now.identity).code, now.scores["eval"], now.counts["eval"]) == ("", "0.399", 89)
    assert now.errata == ((START + timedelta(days=3), "labels repaired"),)
    kinds = [kind for _, kind, _ in now.events]
    assert kinds == ["received", "reviewed", "published", "updated", "corrected", "extended"]
    assert [event for _, _, event in now.events] == [entry.hash for entry in log.entries[1:]]


def test_a_score_on_later_labels_is_told_by_an_erratum_and_mends_nothing() -> None:
    log = begun()
    log.review(NAME, make_manifest())
    log.publish(NAME, make_manifest(), "0.403", why="because")
    told = submission(log).scores
    log.correct(NAME, "0.403", public={"scores": {**told, "later": "0.5"}})
    now = submission(log)
    assert (now.scores["later"], len(now.errata), now.repaired) == ("0.5", 1, ())
    log.wait(days=1).correct(NAME, "0.403", public={"scores": {**told, "later": "0.6"}})
    assert submission(log).repaired == (START + timedelta(days=1),)
    log.wait(days=1).correct(NAME, "0.403", public={"scores": {**told, "later": "0.6"}})
    assert len(submission(log).repaired) == 2


def test_by_the_public_log_sealed_fields_are_not_known() -> None:
    log = begun()
    log.review(NAME, make_manifest(embargo_until=date(2027, 1, 1)))
    now = read_history(redact(entry, ()) for entry in log.entries).submissions[NAME]
    assert (now.status, now.identity, now.type, now.embargo_until) == ("reviewed", None, None, None)
    assert read_history(redact(entry, ()) for entry in log.entries).labels == {}
    assert set(log.history.labels) == {"eval"}


@pytest.fixture
def log() -> BoardLog:
    return BoardLog().open()


def test_mended_labels_replace_the_digest(log: BoardLog) -> None:
    before = log.history.labels["eval"]
    log.mend_labels()
    assert log.history.labels["eval"] != before
    assert len(log.history.rules) == 2


def test_only_rekeyed_changes_the_recipients(log: BoardLog) -> None:
    other = RULES.replace("age1example", "age1stranger")
    log.rekey(other)
    log.change_rules(other.replace("quota = 2", "quota = 3"))
    assert log.history.rules[-1][1] != other
    log.change_rules(RULES)
    with pytest.raises(StoreError, match=r"event 3 .* recipients, which only 'rekeyed'"):
        read_history(log.entries)


def test_the_digests_of_public_files_are_those_of_the_last_event_that_has_them() -> None:
    log = BoardLog()
    log.open()
    assert log.history.files == {}
    first, second = ({"queries/eval.tsv": digit * 64} for digit in "ab")
    log.add("changed-rules", None, {"board.toml": RULES, "files": first})
    log.mend_labels()
    assert log.history.files == first
    log.add("changed-rules", None, {"board.toml": RULES, "files": second})
    assert log.history.files == second


@pytest.mark.parametrize(
    ("public", "sealed"),
    [
        ({"files": {"queries/eval.tsv": "short"}}, {}),
        ({"files": ["queries/eval.tsv"]}, {}),
        ({}, {"files": {"queries/eval.tsv": "a" * 64}}),
    ],
)
def test_wrong_digests_of_files(
    public: dict[str, object], sealed: dict[str, object], log: BoardLog
) -> None:
    log.add("changed-rules", None, {"board.toml": RULES, **public}, sealed)
    with pytest.raises(StoreError, match=r"event 1 .*: field 'files'"):
        _ = log.history


def test_each_revision_is_compared_with_the_one_before(log: BoardLog) -> None:
    now = make_manifest()
    log.receive(NAME)
    log.review(NAME, now)
    moments = []
    for team, paper in (("Lamp", now.paper), ("Lamp", ""), ("Lamp", "")):
        log.wait(days=1)
        now = msgspec.structs.replace(now, team=team, paper=paper, revision=now.revision + 1)
        log.update(NAME, now)
        moments.append(log.now)
    log.publish(NAME, now, "0.4")
    log.submit("20261101-b", make_manifest("Another"), "0.3")
    found = list_amendments(log.entries, NAME)
    assert [(change.at, change.field, change.before, change.after) for change in found] == [
        (moments[0], "team", "Lighthouse", "Lamp"),
        (moments[1], "paper", "https://example.org/papers/lighthouse", ""),
    ]
    assert list_amendments(log.entries, "20261101-b") == ()


def test_what_a_team_asks_for_is_compared_with_what_holds(log: BoardLog) -> None:
    log.submit(NAME, make_manifest(code=""), "0.4")
    assert list_proposed(log.history.submissions[NAME]) == ()
    asked = make_manifest("Lamp", institution="Institute of Lighthouse", paper="", revision=2)
    log.propose(NAME, msgspec.structs.replace(asked, description="BM25 by Lighthouse"))
    found = list_proposed(log.history.submissions[NAME])
    assert [(change.at, change.field, change.before, change.after) for change in found] == [
        (log.now, "team", "Lighthouse", "Lamp"),
        (log.now, "paper", "https://example.org/papers/lighthouse", ""),
        (log.now, "code", "", "https://example.org/code/lamp"),
    ]


def test_what_a_team_asked_for_waits_or_was_refused_until_something_newer_holds(
    log: BoardLog,
) -> None:
    log.submit(NAME, make_manifest(), "0.4")
    assert last_proposal(log.entries, NAME) is None
    log.propose(NAME, make_manifest("Lamp", revision=2))
    waits = sure(last_proposal(log.entries, NAME))
    assert (waits.state, waits.why, waits.at) == ("waits", "", log.now)
    log.wait(days=1)
    log.decline(NAME)
    refused = sure(last_proposal(log.entries, NAME))
    assert (refused.state, refused.at, refused.files) == ("declined", log.now, waits.files)
    assert refused.why
    assert last_proposal(log.entries, "20261101-b") is None
    log.update(NAME, make_manifest(revision=3))
    assert last_proposal(log.entries, NAME) is None


NOW = datetime(2028, 1, 1, tzinfo=UTC)


def whole() -> BoardLog:
    log = BoardLog().open()
    log.baseline("20261101-bm25", "0.3")
    log.submit(NAME, make_manifest(), "0.4")
    return log


FULL: dict[str, dict[str, Any]] = {
    "received": {"files": {}},
    "published": {"type": "full ranking"},
    "corrected": {"why": "x"},
    "extended": {"embargo_until": "2027-01-01", "why": "x"},
    "updated": {"files": {}},
    "rejected": {"why": "x"},
}


@pytest.mark.parametrize(("kind", "field"), [(kind, next(iter(FULL[kind]))) for kind in FULL])
@pytest.mark.parametrize("how", ["missing", "null"])
def test_a_field_that_is_missing_is_named(kind: str, field: str, how: str, log: BoardLog) -> None:
    for number in (1, 2, 3):
        log.receive(f"2026110{number}-x")
    log.add(kind, NAME, FULL[kind])
    check_fields(log.entries[-1])
    log.entries.pop()
    public = {name: value for name, value in FULL[kind].items() if name != field}
    log.add(kind, NAME, public | ({field: None} if how == "null" else {}))
    with pytest.raises(StoreError, match=rf"event 4 \('{kind}', line 5 of the log\).*'{field}'"):
        read_history(log.entries)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scores", {"eval": 0.4}),
        ("scores", {"eval": "high"}),
        ("scores", {"eval": "NaN"}),
        ("scores", ["0.4"]),
        ("queries", {"eval": -1}),
        ("queries", {"eval": True}),
        ("embargo_until", "2027-02-30"),
        ("identity", {"team": "Lighthouse"}),
        ("identity", "Lighthouse"),
        ("revision", "2"),
        ("final", {}),
        ("evidence", {"eval": "short"}),
    ],
)
def test_a_field_of_another_type_is_named(field: str, value: object) -> None:
    log = whole()
    log.publish("20261101-b", make_manifest(), "0.4", public={field: value})
    with pytest.raises(StoreError, match=f"field '{field}'"):
        read_history(log.entries)


def test_what_everybody_goes_by_may_not_be_sealed() -> None:
    log = whole()
    log.add("published", "20261101-b", {}, {"type": "full ranking"})
    with pytest.raises(StoreError, match="'type' is missing, or sealed where it may not be"):
        read_history(log.entries)


def test_a_sealed_field_may_hold_anything_as_long_as_it_is_sealed() -> None:
    log = whole()
    log.add("reviewed", NAME, {}, {"identity": 7})
    read_history([redact(entry, ()) for entry in log.entries])
    with pytest.raises(StoreError, match="'identity'"):
        read_history(log.entries)


@pytest.mark.parametrize(
    ("kind", "submission", "told"),
    [("closed-board", NAME, "names a submission"), ("rejected", None, "names no submission")],
)
def test_an_event_about_the_wrong_thing(kind: str, submission: str | None, told: str) -> None:
    log = whole()
    log.add(kind, submission, {"open_runs": [], "why": "x"})
    with pytest.raises(StoreError, match=told):
        read_history(log.entries)


def test_a_log_begins_with_the_opening() -> None:
    log = BoardLog()
    log.receive(NAME)
    with pytest.raises(StoreError, match="begins with 'opened-board'"):
        read_history(log.entries)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["", "0.4", "x", NAME])
    | st.just("2027-01-01")
    | st.just("a" * 64)
    | st.just("\ud7ff"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["eval", "dev", "scores", "queries", "team"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
NAMES = sorted({name for one in EVENTS.values() for name in one.fields.__struct_encode_fields__})
PARTS = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=4)
RIGHT: dict[str, Any] = {
    "board.toml": RULES,
    "type": "full ranking",
    "why": "x",
    "files": {},
    "scores": {"eval": "0.4", "dev": "0.4"},
    "queries": {"eval": 9, "dev": 9},
    "embargo_until": None,
    "open_runs": [],
    "sealed_again": {},
    "view": "final",
    "finalists": [NAME],
    "final_scores": {NAME: "0.4"},
    "best": NAME,
    "below": [],
    "winner": NAME,
    "luck": "",
}


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from([None, NAME, "x"]), PARTS, PARTS),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_nonsense_with_right_hashes_never_ends_in_a_traceback(
    events: list[tuple[str, str | None, dict[str, Any], dict[str, Any]]],
    shown: bool,  # noqa: FBT001 - hypothesis gives it by place
) -> None:
    log = whole()
    for kind, submission, public, sealed in events:
        given = RIGHT | public
        log.add(kind, submission, given, {n: v for n, v in sealed.items() if n not in given})
    try:
        entries = parse_log(log.data, path="log.jsonl")
        read_history(entries if shown else [redact(entry, ()) for entry in entries])
        current_standings(entries, parse_spec(RULES.encode()), now=NOW)
    except HeldoutError as error:
        assert str(error)  # noqa: PT017 - any refusal will do, as long as it is one


HIDDEN = make_manifest(embargo_until=date(2026, 12, 1))
Step = Callable[[BoardLog], object]


STEPS: Mapping[str, Step] = {
    "received": lambda log: log.receive(NAME),
    "reviewed": lambda log: log.review(NAME, HIDDEN),
    "score-shown": lambda log: log.add("score-shown", NAME),
    "asked": lambda log: log.add("asked", NAME, {"why": "who?"}),
    "updated": lambda log: log.update(NAME, HIDDEN),
    "withdrawn": lambda log: log.update(NAME, HIDDEN, withdrawn=True),
    "rejected": lambda log: log.reject(NAME),
    "published": lambda log: log.publish(NAME, HIDDEN, "0.4"),
    "corrected": lambda log: log.add("corrected", NAME, {"why": "labels", "scores": {}}),
    "proposed": lambda log: log.propose(NAME, HIDDEN),
    "amended": lambda log: log.add("amended", NAME, _proposed()),
    "declined": lambda log: log.decline(NAME),
    "extended": lambda log: log.add(
        "extended", NAME, {"embargo_until": "2027-01-01", "why": "a review"}
    ),
    "baseline": lambda log: log.baseline(NAME, "0.3"),
}


def _proposed() -> Mapping[str, object]:
    other = BoardLog()
    other.propose(NAME, HIDDEN)
    entry = other.entries[0]
    return {"files": entry.get("files"), "identity": entry.get("identity"), "revision": 2}


BEFORE: Mapping[str, tuple[str, ...]] = {
    "new": (),
    "received": ("received",),
    "reviewed": ("received", "reviewed"),
    "asked": ("received", "reviewed", "asked"),
    "withdrawn": ("received", "withdrawn"),
    "rejected": ("received", "rejected"),
    "embargoed": ("received", "reviewed", "published"),
    "proposed": ("received", "reviewed", "published", "proposed"),
    "baseline": ("baseline",),
}


@pytest.mark.parametrize("state", BEFORE)
@pytest.mark.parametrize("kind", STEPS)
def test_an_event_comes_after_what_it_can_come_after(state: str, kind: str, log: BoardLog) -> None:
    for step in BEFORE[state]:
        STEPS[step](log)
    read_history(log.entries)
    STEPS[kind](log)
    states = {state, *(("published",) * ("published" in BEFORE[state]))}
    states |= {"embargoed"} if "published" in states else set()
    if states & EVENTS[kind].after:
        read_history(log.entries)
        return
    number = len(log.entries) - 1
    with pytest.raises(StoreError, match=rf"event {number} \('{kind}'.* before it"):
        read_history(log.entries)
    with pytest.raises(StoreError, match="cannot be"):  # who sees nothing sealed sees it too
        read_history(redact(entry, ()) for entry in log.entries)


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=12))
def test_no_order_publishes_what_was_not_received_or_was_refused(kinds: list[str]) -> None:
    log = BoardLog().open()
    for kind in kinds:
        STEPS[kind](log)
        try:
            read_history(log.entries)
        except StoreError:
            log.entries.pop()
    known = read_history(log.entries).submissions
    order = [kind for _, kind, _ in known[NAME].events] if known else []
    assert order.count("published") <= 1
    if "published" in order:
        before = order[: order.index("published")]
        assert before[0] == "received"
        decided = [kind for kind in before if kind in ("received", "rejected", "withdrawn")]
        assert decided[-1] == "received"


def test_an_embargo_that_is_over_is_not_extended(log: BoardLog) -> None:
    for step in BEFORE["embargoed"]:
        STEPS[step](log)
    log.wait(days=40)
    STEPS["extended"](log)
    with pytest.raises(StoreError, match=r"'extended'.* is published before it"):
        read_history(log.entries)


def test_a_closed_board_takes_nothing_new_and_is_opened_once(log: BoardLog) -> None:
    log.submit(NAME, make_manifest(), "0.4")
    log.add("closed-board", None, {"open_runs": []})
    read_history(log.entries)
    log.receive("20261101-b")
    with pytest.raises(StoreError, match=r"event 5 .* came after the board was closed"):
        read_history(log.entries)
    log.entries.pop()
    log.add("closed-board", None, {"open_runs": [NAME]})
    with pytest.raises(StoreError, match="came after the board was closed"):
        read_history(log.entries)
    again = BoardLog().open()
    again.open(RULES)
    with pytest.raises(StoreError, match="opens a board that is open"):
        read_history(again.entries)


def test_labels_in_the_open_bind_nobody_and_are_refused(log: BoardLog) -> None:
    log.add("changed-rules", None, {"board.toml": RULES, "labels": {"eval": "0" * 64}})
    with pytest.raises(StoreError, match="field 'labels' stands in the open"):
        read_history(log.entries)


def test_only_rules_change_labels(log: BoardLog) -> None:
    before = log.history.labels
    log.rekey(labels={"eval": "0" * 64})
    assert log.history.labels == before
    assert len(log.history.commitments) == 1


PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "log.md").read_text("utf-8")


def find_documented() -> dict[str, tuple[set[str], set[str]]]:
    rows = {}
    for line in PAGE.split("## The kinds of events")[1].splitlines():
        if match := re.match(r"\| `([\w-]+)` \|(.*)\|", line):
            cells = match[2].split(" |")
            if len(cells) == 4:
                rows[match[1]] = (names_in(cells[1]), names_in(cells[2]))
    return rows


def names_in(cell: str) -> set[str]:
    return set(re.findall(r"`([\w.]+)`", cell))


def test_the_page_has_the_fields_of_each_kind_where_they_may_stand() -> None:
    documented, every = find_documented(), set[str]()
    assert documented.keys() == EVENTS.keys()
    for kind, (public, sealed) in documented.items():
        fields = {
            one.encode_name: (one.required, to) for one, to in _fields_of(EVENTS[kind].fields)
        }
        named = public | sealed
        every |= fields.keys()
        assert named <= fields.keys(), kind
        assert {name for name, (required, _) in fields.items() if required} <= named, kind
        assert not {name for name, (_, to) in fields.items() if to == "open"} & sealed, kind
        assert not {name for name, (_, to) in fields.items() if to == "sealed"} & public, kind
    assert every == set().union(*(public | sealed for public, sealed in documented.values()))


def test_the_page_has_every_kind_that_is_about_an_entry_and_what_may_follow_the_end() -> None:
    section = PAGE.split("## Which event may follow which?")[1].split("## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    named = [kind for row in rows for kind in re.findall(r"`([\w-]+)`", row[1])]
    assert sorted(named) == sorted(kind for kind, one in EVENTS.items() if one.after)
    after = section.split("After `closed-board`")[1].split("may come")[0]
    late = {kind for kind, one in EVENTS.items() if one.late}
    assert set(re.findall(r"`([\w-]+)`", after)) == late


def test_a_stranger_s_program_verifies_a_log(tmp_path: Path) -> None:
    """The program in log.md, run as it stands there, on a log and on damaged copies of it."""
    program = tmp_path / "verify.py"
    program.write_text(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], "utf-8")
    assert len(program.read_text("utf-8").splitlines()) <= 25
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest("Université „Ü“ ☃"), "0.403")
    file = tmp_path / "log.jsonl"

    def verify(data: bytes) -> subprocess.CompletedProcess[str]:
        file.write_bytes(data)
        command = [sys.executable, "-W", "ignore", str(program), str(file)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    whole = verify(log.data)
    assert whole.stdout == f"verified, last event {log.entries[-1].hash}\n", whole.stderr
    lines = log.data.splitlines(keepends=True)
    for damaged in (
        log.data.replace(b'"0.403"', b'"0.503"', 1),
        log.data.replace("☃".encode(), b"x"),
        b"".join(lines[1:]),
        b"".join([lines[0], lines[2], lines[1], *lines[3:]]),
    ):
        assert damaged != log.data
        assert verify(damaged).returncode != 0
