"""Organisers of a one-shot board who move its last day after it was over, or open it early."""

from pathlib import Path

import pytest
from town import OTHER_TEAM, Town, found_town

from heldout.board.scores import commitments as new_rules

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
OVER = "2027-01-01T00:00:00Z"
LATE = "2027-01-02T00:00:00Z"
LATER = "2027-01-03T00:00:00Z"
MIDWAY = "2026-11-10T10:00:00Z"
AFTER_MIDWAY = "2026-11-12T10:00:00Z"
CLOSES = "closes = 2026-12-31"


@pytest.fixture
def begun(tmp_path: Path) -> Town:
    """One run came in time; its score is sealed."""
    town = found_town(tmp_path)
    town.rule(("primary = ", f'{CLOSES}\nkind = "one-shot"\nprimary = '), now=DAY)
    town.enter("first", now=DAY)
    return town


@pytest.fixture
def ended(begun: Town) -> Town:
    """Scores are shown; one run came in time, one late."""
    town = begun
    assert town.organiser("rebuild", now=OVER).code == 0
    town.share()
    town.enter("late", now=LATE, seed=4, team=OTHER_TEAM)
    return town


def rows(town: Town) -> dict[str, tuple[int | None, float]]:
    return {row["id"]: (row["rank"], row["scores"]["eval"]) for row in town.rows()}


@pytest.mark.parametrize("closes", ["closes = 2028-01-02", "kind"])
def test_a_last_day_that_is_over_is_not_moved(ended: Town, closes: str) -> None:
    before, kinds = rows(ended), ended.kinds()
    assert [rank for rank, _ in before.values()] == [1, None]
    if closes == "kind":
        ended.edit(('kind = "one-shot"\n', ""))
    else:
        ended.edit((CLOSES, closes))
    answer = ended.organiser("rebuild", now=LATER)
    assert answer.code == 2
    assert "scores published after that day stay published" in answer.err
    assert (rows(ended), ended.kinds()) == (before, kinds)


@pytest.mark.parametrize("closes", ["closes = 2027-01-02"])
def test_an_organiser_whose_own_heldout_moves_it_changes_nothing_and_is_told(
    ended: Town, monkeypatch: pytest.MonkeyPatch, closes: str
) -> None:
    before = rows(ended)
    shown = (ended.board / "log.jsonl").read_text().count('"scores":{"value"')
    assert shown
    ended.edit((CLOSES, closes))
    monkeypatch.setattr(new_rules, "list_moved_days", lambda *_, **__: ())
    assert ended.organiser("rebuild", now=LATER).code == 0
    assert ended.kinds()[-1] == "changed-rules"
    assert rows(ended) == before
    assert (ended.board / "log.jsonl").read_text().count('"scores":{"value"') == shown
    (fault,) = ended.audit()["faults"]
    assert "move the last day of a one-shot board, 31 Dec 2026, which was over" in fault


EARLY = {
    "another kind": ('"one-shot"', '"sequential"'),
    "a last day in the past": (CLOSES, "closes = 2026-11-08"),
}


@pytest.mark.parametrize("change", EARLY)
def test_scores_that_wait_for_the_last_day_are_not_opened_before_it(
    begun: Town, change: str
) -> None:
    before, kinds = begun.rows(), begun.kinds()
    begun.edit(EARLY[change])
    answer = begun.organiser("rebuild", now=MIDWAY)
    assert answer.code == 2
    assert "board-spec" in answer.err
    assert (begun.rows(), begun.kinds()) == (before, kinds)


def test_an_organiser_whose_own_heldout_opens_a_one_shot_board_for_a_while_is_told(
    begun: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as own:
        own.setattr(new_rules, "list_moved_days", lambda *_, **__: ())
        for change in (('"one-shot"', '"sequential"'), ('"sequential"', '"one-shot"')):
            begun.edit(change)
            assert begun.organiser("rebuild", now=MIDWAY).code == 0
    begun.share()
    begun.enter("informed", now=AFTER_MIDWAY, seed=4, team=OTHER_TEAM)
    opened, sealed = begun.audit()["faults"]
    assert "open the scores of a one-shot board before its last day, 31 Dec 2026" in opened
    assert "hide scores on a board that had published scores" in sealed
