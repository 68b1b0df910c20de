"""What the log says of a submission, event by event."""

from datetime import date, timedelta

import pytest
from boardlog import RULES, START, BoardLog, make_manifest

from heldout.board.log.event_fields import EVENTS, BoardFields
from heldout.board.log.events import KINDS, redact
from heldout.board.log.history import read_history
from heldout.board.log.submission import _CHANGES, Submission
from heldout.errors import StoreError

NAME = "20261101-a"


def begun() -> BoardLog:
    log = BoardLog().open()
    log.receive(NAME)
    return log


def submission(log: BoardLog) -> Submission:
    return log.history.submissions[NAME]


def test_every_kind_of_event_is_understood() -> None:
    about_board = {kind for kind, one in EVENTS.items() if issubclass(one.fields, BoardFields)}
    assert set(_CHANGES) == set(KINDS) - about_board


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
    assert now.identity is not None
    assert now.identity.team == "Lighthouse Lab"
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
    assert now.identity is not None
    assert (now.identity.code, now.scores["eval"], now.counts["eval"]) == ("", "0.399", 89)
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


def test_mended_labels_replace_the_digest() -> None:
    log = BoardLog().open()
    before = log.history.labels["eval"]
    log.mend_labels()
    assert log.history.labels["eval"] != before
    assert len(log.history.rules) == 2


def test_only_rekeyed_changes_the_recipients() -> None:
    log = BoardLog().open()
    other = RULES.replace("age1example", "age1stranger")
    log.rekey(other)
    log.change_rules(other.replace("quota = 2", "quota = 3"))
    assert log.history.rules[-1][1] != other
    log.change_rules(RULES)
    with pytest.raises(
        StoreError, match=r"event 3 .* changes the recipients, which only 'rekeyed'"
    ):
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
def test_digests_of_public_files_that_are_none_or_are_hidden(
    public: dict[str, object], sealed: dict[str, object]
) -> None:
    log = BoardLog().open()
    log.add("changed-rules", None, {"board.toml": RULES, **public}, sealed)
    with pytest.raises(StoreError, match=r"event 1 .*: field 'files'"):
        _ = log.history
