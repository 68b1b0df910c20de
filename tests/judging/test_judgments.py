"""Judgments as files, and which of them count."""

import gzip
import json
from datetime import datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.database.times import format_time
from heldout.errors import InputError
from heldout.judging.campaign.judgments import (
    Judgment,
    counted,
    failed_tests,
    format_judgments,
    parse_judgments,
)

_PRINTABLE = st.characters(exclude_categories=("C", "Z"), include_characters=" ")
_NAMES = st.text(_PRINTABLE, min_size=1, max_size=8)
_ROW = {"query": "q", "left": "a", "right": "b", "preferred": "a"}


def judged(**changes: object) -> Judgment:
    fields = {
        "query": "q",
        "left": "a",
        "right": "b",
        "preferred": "a",
        "worker": "w",
        "task": "t",
        "position": 1,
    }
    return Judgment(**(fields | changes))  # type: ignore[arg-type]  # the fields of a test


@given(query=_NAMES, left=_NAMES, right=_NAMES, worker=_NAMES, ms=st.integers(0, 10**9))
def test_what_is_written_is_read_again(
    query: str, left: str, right: str, worker: str, ms: int
) -> None:
    if left == right:
        return
    one = judged(
        query=query, left=left, right=right, preferred=right, worker=worker, active_ms=ms, by="key"
    )
    assert parse_judgments(format_judgments([one, one]), path="x") == (one, one)


def test_four_columns_are_read_and_may_be_compressed() -> None:
    data = gzip.compress(b"q1 d1 d2 d2\nq1 d1 d2 d1\n")
    found = parse_judgments(data, path="x.gz")
    assert [(one.left, one.right, one.preferred, one.other) for one in found] == [
        ("d1", "d2", "d2", "d1"),
        ("d1", "d2", "d1", "d2"),
    ]
    assert counted(found) == found


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"query": "q"}', "bad-row"),
        (b'{"query": "q", "left": "a", "right": "b", "preferred": "a", "x": 1}', "bad-row"),
        (b'{"query": "q", "left": "a", "right": "b", "preferred": "c"}', "bad-preference"),
        (b'{"query": "q", "left": "a", "right": "a", "preferred": "a"}', "bad-preference"),
        (b'{"query": "q", "left": "a", "right": "b", "preferred": "a", "reason": "same"}', "bad-p"),
        (b"q d1 d2", "wrong-columns"),
        (b"q d1 d2 d3", "bad-preference"),
        (b"", "empty-file"),
    ],
    ids=["short", "unknown-key", "third", "itself", "reason", "three", "stranger", "empty"],
)
def test_a_wrong_line_is_named(line: bytes, code: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_judgments(line, path="judged.jsonl")
    assert caught.value.problems[0].code.startswith(code)


@pytest.mark.parametrize(
    "changes",
    [
        {"answered_at": "yesterday"},
        {"answered_at": "2026-13-01T00:00:00Z"},
        {"shown_at": "2026-11-21T12:00:00+01:00"},
        {"submitted_at": "2026-11-21"},
        {"position": -1},
        {"position": 10**30},
        {"active_ms": -5},
        {"active_ms": 10**18},
        {"worker": "w\x1b[31m"},
        {"worker": "w\u202ereknil"},
        {"task": "t\n"},
        {"query": "q\n"},
        {"left": "a\tx", "preferred": "b"},
        {"query": "q\u200b"},
    ],
    ids=str,
)
def test_values_that_no_judge_gave_are_refused_with_their_line(changes: dict[str, object]) -> None:
    lines = [json.dumps(_ROW), json.dumps(_ROW | changes)]
    with pytest.raises(InputError) as caught:
        parse_judgments("\n".join(lines).encode(), path="judged.jsonl")
    assert [(one.code, one.line) for one in caught.value.problems] == [("bad-row", 2)]
    assert "\u202e" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_wrong_judgment_behind_empty_lines_has_its_own_line() -> None:
    wrong = json.dumps(_ROW | {"preferred": "c"})
    with pytest.raises(InputError) as caught:
        parse_judgments(f"{json.dumps(_ROW)}\n\n\n{wrong}\n".encode(), path="judged.jsonl")
    assert caught.value.problems[0].line == 4


def test_the_last_answer_to_a_place_counts() -> None:
    first, last = judged(preferred="a"), judged(preferred="b")
    assert counted([first, judged(position=2), last]) == (judged(position=2), last)


def test_a_failed_test_excludes_the_task_or_the_worker() -> None:
    failed = judged(left="good", right="off", preferred="off", answer="good", position=2)
    elsewhere = judged(task="u")
    rows = [judged(), failed, elsewhere, judged(worker="v")]
    assert failed_tests(rows) == {("w", "t"): 1, ("w", "u"): 0, ("v", "t"): 0}
    assert counted(rows) == (elsewhere, judged(worker="v"))
    assert counted(rows, exclusion="worker") == (judged(worker="v"),)
    assert counted(rows, failures=2) == (judged(), elsewhere, judged(worker="v"))


def test_tests_unfinished_tasks_and_answers_without_preference_do_not_count() -> None:
    rows = [
        judged(answer="a"),
        judged(submitted=False, task="u"),
        judged(preferred=None, reason="same", task="v"),
    ]
    assert counted(rows) == ()


def test_an_earlier_day_is_counted_as_it_was() -> None:
    early = judged(preferred="a", answered_at="2026-01-01T00:00:00Z")
    late = judged(preferred="b", task="u", answered_at="2026-01-02T00:00:00Z")
    changed = judged(preferred="b", answered_at="2026-01-02T00:00:00Z")
    assert counted([early, late], until="2026-01-01T12:00:00Z") == (early,)
    assert counted([early, late]) == (early, late)
    assert counted([early, changed], until="2026-01-01T12:00:00Z") == ()
    assert counted([early, changed]) == (changed,)


def test_a_task_that_was_finished_later_did_not_count_yet() -> None:
    one = judged(answered_at="2026-01-01T00:00:00Z", submitted_at="2026-01-03T00:00:00Z")
    assert counted([one], until="2026-01-02T00:00:00Z") == ()
    assert counted([one], until="2026-01-03T00:00:00Z") == (one,)


_FORMS = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.500Z")


@given(st.sampled_from(_FORMS), st.sampled_from(_FORMS))
def test_times_within_a_second_are_compared_as_times(answered: str, until: str) -> None:
    row = json.dumps(_ROW | {"answered_at": answered, "submitted_at": answered}).encode()
    (one,) = parse_judgments(row, path="x")
    came = datetime.fromisoformat(answered) <= datetime.fromisoformat(until)
    assert counted([one], until=until) == ((one,) if came else ())
    assert datetime.fromisoformat(one.answered_at) == datetime.fromisoformat(answered)
    assert one.answered_at == format_time(datetime.fromisoformat(answered))


def plain_rows(count: int) -> bytes:
    """Votes as a file of pairs has them, in an order that does not repeat itself."""
    return "".join(f"q{n} a{n % 7} b{n % 5} a{n % 7}\n" for n in range(count)).encode()


@pytest.mark.parametrize("copies", [2, 3])
def test_a_preference_file_given_twice_over_is_refused(copies: int) -> None:
    """Alpha of a real one rose from .785 to .997, without a word."""
    assert len(parse_judgments(plain_rows(25), path="p")) == 25
    with pytest.raises(InputError) as caught:
        parse_judgments(plain_rows(25) * copies, path="p")
    (problem,) = caught.value.problems
    assert problem.code == "doubled-judgments"
    assert problem.found == f"the same 25 rows {copies} times over"


def test_the_same_vote_of_several_people_is_no_copy() -> None:
    rows = b"".join(line * 3 for line in plain_rows(30).splitlines(keepends=True))
    assert len(parse_judgments(rows, path="p")) == 90
    assert len(parse_judgments(b"q a b a\n" * 15, path="p")) == 15
    assert len(parse_judgments(plain_rows(25) + plain_rows(24), path="p")) == 49


def test_a_judges_answer_to_a_pair_that_stands_there_twice_is_refused() -> None:
    one = Judgment(query="q", left="a", right="b", preferred="a", worker="ann")
    other = msgspec.structs.replace(one, worker="bob")
    assert len(parse_judgments(format_judgments([one, other]), path="p")) == 2
    with pytest.raises(InputError) as caught:
        parse_judgments(format_judgments([one, other, one]), path="p")
    assert caught.value.problems[0].code == "doubled-judgments"
    assert "ann" in caught.value.problems[0].found


def test_an_answer_of_a_task_counts_once_however_often_its_file_is_given() -> None:
    one = Judgment(
        query="q", left="a", right="b", preferred="a", worker="ann", task="t", position=1
    )
    found = parse_judgments(format_judgments([one] * 40), path="p")
    assert len(counted(found)) == 1
