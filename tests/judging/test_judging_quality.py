"""How pairs were judged: tests, answers without a preference, times; each answer once."""

import pytest

from heldout.judging.campaign.judgments import Judgment, Reason
from heldout.judging.campaign.settings import Settings
from heldout.judging.studies.judges import judging_quality

SETTINGS = Settings(name="A study")


def answer(
    position: int = 1,
    *,
    preferred: str | None = "a",
    test: bool = False,
    task: str = "t1",
    second: int = 0,
    active_ms: int | None = None,
    reason: Reason | None = None,
    submitted: bool = True,
) -> Judgment:
    return Judgment(
        query=f"q{position}",
        left="a",
        right="b",
        preferred=preferred,
        reason=reason,
        worker="w",
        task=task,
        position=position,
        answer="a" if test else None,
        shown_at="2026-11-21T12:00:00.000Z",
        answered_at=f"2026-11-21T12:00:{second:02}.500Z",
        active_ms=active_ms,
        submitted=submitted,
    )


def test_nothing_is_said_of_no_judgment() -> None:
    found = judging_quality([], SETTINGS)
    assert (found.tests, found.tasks, found.accuracy) == (0, 0, None)
    assert (found.shown, found.looked) == (None, None)


def test_a_changed_answer_counts_as_it_stands() -> None:
    found = judging_quality(
        [answer(test=True, preferred="b"), answer(test=True), answer(2, second=9)], SETTINGS
    )
    assert (found.tests, found.failed, found.excluded, found.accuracy) == (1, 0, 0, 1.0)


def test_tests_of_tasks_that_are_not_finished_fail_nobody() -> None:
    found = judging_quality([answer(test=True, preferred="b", submitted=False)], SETTINGS)
    assert (found.tests, found.failed, found.tasks) == (0, 0, 0)


def test_failed_tests_and_excluded_tasks_are_counted_apart() -> None:
    rows = [
        answer(1, test=True, preferred="b"),
        answer(2, test=True, preferred=None, reason="same"),
        answer(1, test=True, task="t2"),
    ]
    found = judging_quality(rows, SETTINGS)
    assert (found.tests, found.failed, found.tasks, found.excluded) == (3, 2, 2, 1)
    assert found.accuracy == pytest.approx(1 / 3)
    assert found.answers == 0  # tests are none of the pairs that nobody knows


def test_reasons_are_counted_of_pairs_that_nobody_knows() -> None:
    rows = [
        answer(1, preferred=None, reason="same"),
        answer(2, preferred=None, reason="same"),
        answer(3, preferred=None, reason="language"),
        answer(4),
    ]
    found = judging_quality(rows, SETTINGS)
    assert (found.answers, dict(found.cannot)) == (4, {"same": 2, "language": 1})


def test_times_are_quartiles_and_a_time_of_zero_is_a_time() -> None:
    rows = [answer(n, second=n - 1, active_ms=1000 * (n - 1)) for n in range(1, 6)]
    found = judging_quality(rows, SETTINGS)
    assert found.shown
    assert found.looked
    assert found.shown.quartiles == (1.5, 2.5, 3.5)
    assert found.looked.quartiles == (1.0, 2.0, 3.0)
    assert found.looked.answers == 5


def test_judgments_without_a_place_or_a_time_are_not_taken_for_one() -> None:
    row = Judgment(query="q", left="a", right="b", preferred="a")
    found = judging_quality([row, row, row], SETTINGS)
    assert (found.answers, found.shown) == (3, None)
