"""Mechanical Turk's files: shown as text, read back whole, refused where they are not ours."""

import csv
import json
from html import unescape
from html.parser import HTMLParser
from io import StringIO
from typing import Any

import msgspec
import numpy as np
import pytest
from crowd_tasks import SETTINGS, format_results, honest, make_task, make_texts
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.judging.campaign.judgments import Judgment, counted
from heldout.judging.campaign.pools import Candidate, Pool, Texts, gather_texts
from heldout.judging.campaign.rows import Task
from heldout.judging.campaign.settings import parse_campaign
from heldout.judging.platforms.links import first_tasks, repeat_tasks, unjudged_tasks
from heldout.judging.platforms.mturk import (
    WorkerResult,
    cell_html,
    format_bonuses,
    format_review,
    hit_files,
    qualifications,
    read_results,
    take_results,
)

TEXTS = make_texts("q", "r")
TASK = make_task()


def read(
    data: bytes, *, tasks: tuple[Task, ...] = (TASK,), texts: Texts = TEXTS
) -> tuple[WorkerResult, ...]:
    return read_results(
        data,
        path="results.csv",
        tasks={task.task: task for task in tasks},
        texts=texts,
        pseudonym=lambda worker: f"p-{worker}",
    )


def rendered(task: Task, texts: Texts) -> str:
    """A template as the platform, and Turkle, fill it: each name in turn, without escaping."""
    (files,) = hit_files([task], texts, SETTINGS)
    page = files.template.decode()
    (row,) = csv.DictReader(StringIO(files.rows.decode(), newline=""))
    for name, cell in row.items():
        page = page.replace("${" + name + "}", cell)
    return page


class Seen(HTMLParser):
    """What a browser finds in a page: its tags, the texts of passages, the fields of its form."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fields: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        if "name" in given:
            self.fields.append((str(given["name"]), given.get("value") or ""))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_a_template_is_a_fragment_without_form_or_anything_from_elsewhere() -> None:
    page = rendered(TASK, TEXTS)
    seen = Seen(page)
    assert not {"html", "head", "body", "form", "link", "img"} & set(seen.tags)
    assert seen.tags.count("script") == 1  # our own
    assert "//" not in page
    assert "$" not in page
    assert 'data-task="1-00001-1"' in page  # every column is a variable: Turkle asks for that
    expected = {f"choice_{n}": {"left", "right", "none"} for n in (1, 2, 3)}
    found: dict[str, set[str]] = {}
    for name, value in seen.fields:
        if name.startswith("choice"):
            found.setdefault(name, set()).add(value)
    assert found == expected
    assert "You are 18." in " ".join(seen.words)


HOSTILE = {
    "script": "<script>alert(1)</script>",
    "attribute": "\"'><img src=x onerror=alert(1)>",
    "another variable": "${left_2} and ${task}",
    "formula": "=HYPERLINK(1)",
    "command": "+cmd|' /C calc'!A0",
    "at": "@SUM(1)",
    "minus": "-2+3",
    "tab": "\t=1",
    "end of the element": "</div></fieldset></form>",
    "entity": "&lt;b&gt; &amp; &#61;",
    "lines": "one\r\ntwo\n\nthree",
    "wide": "\U0001f600 \uff1dA1 שלום",
    "turned": "\u202e\u2067abc",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_whatever_a_passage_holds_is_shown_as_text(kind: str) -> None:
    text = HOSTILE[kind]
    texts = Texts(queries=TEXTS.queries, docs={**TEXTS.docs, "q-b": text})
    (files,) = hit_files([TASK], texts, SETTINGS)
    plain = Seen(rendered(TASK, TEXTS))
    seen = Seen(rendered(TASK, texts))
    assert seen.tags == plain.tags
    assert text.replace("\r\n", "\n") in seen.words
    assert files.rows.isascii()
    for row in csv.reader(StringIO(files.rows.decode(), newline="")):
        assert not any(cell.lstrip().startswith(tuple("=+-@\t\r\n")) for cell in row)


@given(st.text())
def test_a_cell_is_one_harmless_line_that_says_the_text(text: str) -> None:
    cell = cell_html(text)
    assert cell.isascii()
    assert not set(cell) & set("<>\"'$\n\r\t=+@")
    told = unescape(cell)
    assert len(told) == len(text.replace("\r\n", "\n"))
    for before, after in zip(text.replace("\r\n", "\n"), told, strict=True):
        assert after in (before, "\ufffd")


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn"))))
def test_a_cell_loses_nothing_that_a_page_can_show(text: str) -> None:
    assert unescape(cell_html(text)) == text


def test_tasks_of_each_size_have_files_of_their_own() -> None:
    short = Task(task="1-00002-1", items=make_task(query="r").items[:2])
    large, small = hit_files([TASK, short], TEXTS, SETTINGS)
    assert (large.items, large.tasks, small.items, small.tasks) == (3, 1, 2, 1)
    assert b"${right_3}" in large.template
    assert b"${right_3}" not in small.template


def test_a_task_without_a_text_is_refused() -> None:
    with pytest.raises(InputError) as error:
        hit_files([make_task(query="unknown")], TEXTS, SETTINGS)
    assert error.value.problems[0].code == "text-missing"
    assert error.value.counts == {"text-missing": 5}


@given(
    st.lists(st.sampled_from(["left", "right", "none", ""]), min_size=3, max_size=3),
    st.sampled_from(["", "same", "neither", "unreadable", "language", "other"]),
)
def test_results_are_read_back_without_loss(choices: list[str], reason: str) -> None:
    answers = {f"choice_{place}": choice for place, choice in enumerate(choices, 1)}
    answers |= {f"reason_{place}": reason for place in (1, 2, 3)}
    (result,) = read(format_results([(TASK, "W1", answers)], TEXTS))
    kept = {one.position: one for one in result.judgments}
    assert set(kept) == {place for place, choice in enumerate(choices, 1) if choice}
    for place, one in kept.items():
        item, choice = TASK.items[place - 1], choices[place - 1]
        assert (one.query, one.left, one.right, one.answer) == (
            *(item.query, item.left, item.right),
            item.answer,
        )
        assert one.preferred == {"left": item.left, "right": item.right}.get(choice)
        assert one.reason == (None if one.preferred else reason or "other")
        assert (one.worker, one.task, one.submitted) == ("p-W1", TASK.task, all(choices))
        assert one.shown_at == "2026-11-21T12:00:00.000Z"
        assert one.answered_at == "2026-11-21T12:05:30.000Z"
        assert one.submitted_at == (one.answered_at if one.submitted else "")
    assert result.failed == (choices[1] in ("left", "none"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "Sun Nov 21 04:00:00 PST 2026",
        "Sat Nov 31 04:00:00 PST 2026",
        "Sat Nov 21 04:00:00 XYZ 2026",
        "=1+1",
    ],
)
def test_a_time_that_cannot_be_told_is_not_made_up(text: str) -> None:
    (result,) = read(format_results([(TASK, "W1", honest())], TEXTS, SubmitTime=text))
    assert {one.answered_at for one in result.judgments} == {""}


def problems_of(data: bytes, **options: Texts) -> list[tuple[str, int | None]]:
    with pytest.raises(InputError) as error:
        read(data, **options)  # type: ignore[arg-type]  # texts alone
    return [(one.code, one.line) for one in error.value.problems]


def test_results_of_another_campaign_are_refused() -> None:
    other = format_results([(make_task("9-9"), "W1", honest())], TEXTS)
    assert problems_of(other) == [("mturk-task", 2)]
    same_id = format_results([(TASK, "W1", honest())], make_texts("q", text="other words"))
    assert problems_of(same_id) == [("mturk-task", 2)]
    data = format_results([(TASK, "W1", honest())], TEXTS)
    assert problems_of(data, texts=make_texts("other")) == [("mturk-task", 2)]


def test_an_id_with_two_texts_is_refused_before_a_task_is_written() -> None:
    pools = [
        Pool(query="q", text="asked", candidates=(Candidate(doc="d", text=text),))
        for text in ("one", "another")
    ]
    with pytest.raises(InputError) as error:
        gather_texts(pools)
    assert [(one.code, one.line) for one in error.value.problems] == [("changed-text", 2)]


@pytest.mark.parametrize(
    "changes",
    [
        {"WorkerId": "=cmd()"},
        {"AssignmentId": ""},
        {"HITId": "a b"},
        {"Answer.choice_1": "both"},
        {"Answer.reason_2": "<b>"},
    ],
)
def test_cells_that_the_form_cannot_send_are_refused(changes: dict[str, str]) -> None:
    data = format_results([(TASK, "W1", honest(reason_2=""))], TEXTS, **changes)
    assert problems_of(data) == [("mturk-row", 2)]


def test_an_assignment_that_is_there_twice_is_refused() -> None:
    rows = [(TASK, "W1", honest()), (TASK, "W2", honest())]
    data = format_results(rows, TEXTS, AssignmentId="A1")
    assert problems_of(data) == [("mturk-row", 3)]


GOOD = format_results([(TASK, "W1", honest())], TEXTS)
MALFORMED = {
    "nothing": (b"", "empty-file"),
    "blank lines": (b"\r\n\r\n", "empty-file"),
    "no header": (GOOD.partition(b"\n")[2], "wrong-columns"),
    "a quote is never closed": (GOOD[:-3], "broken-csv"),
    "a cell too many": (GOOD.rstrip() + b',"more"', "wrong-columns"),
    "a column twice": (GOOD.replace(b'"Title"', b'"HITId"', 1), "wrong-columns"),
    "latin-1": (GOOD.replace(b"Submitted", b"\xe9"), "bad-utf8"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0", "bad-utf8"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_file_is_told_and_not_guessed_at(kind: str) -> None:
    data, code = MALFORMED[kind]
    assert problems_of(data)[0][0] == code


def test_a_byte_order_mark_of_a_spreadsheet_is_no_problem() -> None:
    assert len(read(b"\xef\xbb\xbf" + GOOD)) == 1


def take(
    rows: list[tuple[Task, str, dict[str, str]]], earlier: tuple[Judgment, ...] = ()
) -> tuple[Judgment, ...]:
    tasks = tuple({task.task: task for task, _, _ in rows}.values())
    results = read(format_results(rows, TEXTS), tasks=tasks)
    found = take_results(results, earlier, SETTINGS)["new"]
    return tuple(one for result in found for one in result.judgments)


def test_a_file_taken_in_twice_is_taken_in_once() -> None:
    first = take([(TASK, "W1", honest())])
    assert len(first) == 3
    results = read(GOOD)
    again = take_results(results, first, SETTINGS)
    assert (again["new"], len(again["before"])) == ([], 1)


def test_nobody_judges_a_pair_twice() -> None:
    copy = make_task("1-00001-2")
    rows = [(TASK, "W1", honest()), (copy, "W1", honest()), (copy, "W2", honest())]
    results = read(format_results(rows, TEXTS), tasks=(TASK, copy))
    taken = take_results(results, (), SETTINGS)
    assert [one.worker for one in taken["repeated"]] == ["W1"]
    assert [(one.worker, one.task) for one in taken["new"]] == [
        ("W1", TASK.task),
        ("W2", copy.task),
    ]


def test_a_task_that_counts_is_not_judged_by_more_people_than_planned() -> None:
    rows = [
        (TASK, "W1", honest(choice_2="left")),
        (TASK, "W2", honest()),
        (TASK, "W3", honest()),
    ]
    taken = take_results(read(format_results(rows, TEXTS)), (), SETTINGS)
    assert [one.worker for one in taken["new"]] == ["W1", "W2"]
    assert [one.worker for one in taken["surplus"]] == ["W3"]
    votes = counted([one for result in taken["new"] for one in result.judgments])
    assert {one.worker for one in votes} == {"p-W2"}


def reviewed(data: bytes, **changes: bool) -> list[dict[str, str]]:
    settings = msgspec.structs.replace(SETTINGS, **changes)
    review = format_review(read(data), settings)
    return list(csv.DictReader(StringIO(review.decode(), newline="")))


def test_a_failed_test_is_paid_unless_the_settings_say_otherwise() -> None:
    rows = [(TASK, "W1", honest()), (TASK, "W2", honest(choice_2="left"))]
    data = format_results(rows, TEXTS)
    assert [row["Approve"] for row in reviewed(data)] == ["x", "x"]
    good, bad = reviewed(data, pay_failed=False)
    assert (good["Approve"], good["Reject"]) == ("x", "")
    assert bad["Approve"] == ""
    assert "plainly do not answer" in bad["Reject"]
    assert bad["AssignmentId"] == "A2"


def test_what_was_decided_on_the_platform_is_not_decided_again() -> None:
    data = format_results([(TASK, "W1", honest())], TEXTS, AssignmentStatus="Approved")
    (row,) = reviewed(data)
    assert (row["Approve"], row["Reject"]) == ("", "")


def test_formula_injection_by_a_requester_column_is_defused_in_the_review() -> None:
    data = format_results([(TASK, "W1", honest())], TEXTS, Title="=HYPERLINK(1)")
    (row,) = reviewed(data)
    assert row["Title"] == "'=HYPERLINK(1)"
    (row,) = reviewed(GOOD.replace(b'"Title"', b'"=HYPERLINK(1)"', 1))
    assert "'=HYPERLINK(1)" in row


def test_a_failed_task_is_drawn_again_once_with_the_same_pairs() -> None:
    rng = np.random.Generator(np.random.PCG64(6))
    other = make_task("1-00002-1", query="r")
    waiting = make_task("1-00003-1", query="r")
    rows = [(TASK, "W1", honest(choice_2="left")), (other, "W2", honest())]
    judgments = take(rows)
    tasks = (TASK, other, waiting)
    assert unjudged_tasks(tasks, judgments) == (waiting,)
    (copy,) = repeat_tasks(tasks, judgments, SETTINGS, rng)
    assert (copy.task, copy.batch) == ("1-00001-1r", 2)
    assert sorted(item.pair for item in copy.items) == sorted(item.pair for item in TASK.items)
    assert repeat_tasks((*tasks, copy), judgments, SETTINGS, rng) == ()
    assert first_tasks((*tasks, copy)) == tasks
    good = take([(copy, "W3", dict.fromkeys(honest(), "none"))])
    assert unjudged_tasks((*tasks, copy), (*judgments, *good)) == (waiting,)


def test_a_worker_who_is_excluded_whole_has_every_task_drawn_again() -> None:
    rng = np.random.Generator(np.random.PCG64(6))
    other = make_task("1-00002-1", query="r")
    judgments = take([(TASK, "W1", honest(choice_2="left")), (other, "W1", honest())])
    settings = msgspec.structs.replace(SETTINGS, exclusion="worker")
    assert len(repeat_tasks((TASK, other), judgments, SETTINGS, rng)) == 1
    assert len(repeat_tasks((TASK, other), judgments, settings, rng)) == 2


CONDITIONS = [
    {
        "QualificationTypeId": "00000000000000000071",  # Worker_Locale
        "Comparator": "EqualTo",
        "LocaleValues": [{"Country": "US"}],
        "ActionsGuarded": "DiscoverPreviewAndAccept",
    },
    {
        "QualificationTypeId": "00000000000000000040",  # Worker_NumberHITsApproved
        "Comparator": "GreaterThan",
        "IntegerValues": [10000],
        "ActionsGuarded": "DiscoverPreviewAndAccept",
    },
    {
        "QualificationTypeId": "000000000000000000L0",  # Worker_PercentAssignmentsApproved
        "Comparator": "GreaterThanOrEqualTo",
        "IntegerValues": [97],
        "ActionsGuarded": "DiscoverPreviewAndAccept",
    },
]


def test_conditions_on_workers_are_qualifications_of_the_platform() -> None:
    """Arabzadeh et al. 2021, §3.1: of the US, more than ten thousand approved tasks, 97%."""
    text = b'name = "x"\ncountries = ["US"]\napproved_tasks = 10000\napproval_rate = 97\n'
    settings = parse_campaign(text)
    assert json.loads(qualifications(settings)) == CONDITIONS
    assert qualifications(SETTINGS) == b""
    several = msgspec.structs.replace(settings, countries=("US", "CA"), approval_rate=0)
    place, tasks = json.loads(qualifications(several))
    assert (place["Comparator"], len(place["LocaleValues"])) == ("In", 2)
    assert tasks == CONDITIONS[1]


@pytest.mark.parametrize(
    "line", ['countries = ["us"]', 'countries = "US"', "approval_rate = 101", "approved_tasks = -1"]
)
def test_conditions_that_no_platform_knows_are_refused(line: str) -> None:
    with pytest.raises(InputError, match="campaign-settings"):
        parse_campaign(f'name = "x"\n{line}\n'.encode())


def bonuses(data: bytes, **changes: Any) -> list[dict[str, str]]:
    settings = msgspec.structs.replace(SETTINGS, **changes)
    return list(csv.DictReader(StringIO(format_bonuses(read(data), settings).decode(), newline="")))


def test_a_part_of_a_task_is_paid_its_share_by_a_bonus_beyond_the_platforms_reward() -> None:
    part = {"choice_1": "left", "choice_2": "right"}
    rows = [(TASK, "W1", honest()), (make_task("1-2"), "W2", part), (make_task("1-3"), "W3", {})]
    tasks = tuple(task for task, _, _ in rows)

    def paid(reward: str) -> dict[str, str]:
        results = read(format_results(rows, TEXTS, Reward=reward), tasks=tasks)
        found = format_bonuses(results, SETTINGS).decode()
        return {row["WorkerId"]: row["BonusAmount"] for row in csv.DictReader(StringIO(found))}

    # A third of $2.00 is $0.67, two thirds are $1.34, rounded up
    assert paid("$0.67") == {"W1": "1.33", "W2": "0.67"}
    assert paid("$2.00") == {}
    assert paid("") == paid("much") == {}


def test_a_bonus_names_its_assignment_and_a_refused_task_has_none() -> None:
    failed = format_results([(TASK, "W1", honest(choice_2="left"))], TEXTS, Reward="$0.67")
    (row,) = bonuses(failed)
    assert row == {
        "WorkerId": "W1",
        "AssignmentId": "A1",
        "BonusAmount": "1.33",
        "Reason": "3 of 3 answered",
        "UniqueRequestToken": "A1",
    }
    assert bonuses(failed, pay_failed=False) == []
