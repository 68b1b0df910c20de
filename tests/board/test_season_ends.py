"""The end of a season under `clear`: each team's named entry gets its exact score, once."""

import html
import json
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest
from boardlog import RULES, BoardLog, make_manifest
from scored_board import QUERIES, SEASONS, ScoredBoard, as_clear, make_board, next_season

from heldout.board.audit import archive as archives
from heldout.board.audit.archive import close_board, write_archive
from heldout.board.audit.archive_audit import audit_archive
from heldout.board.audit.audit import Audit, audit_board
from heldout.board.log.history import History, read_history
from heldout.board.organiser import finals
from heldout.board.organiser.finals import EndStep, end_seasons_again, has_other_scores
from heldout.board.organiser.rebuild import bring_up_to_date, catch_up
from heldout.board.rules.changes import list_moved_days
from heldout.board.rules.release import NOT_CLEAR
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores import sets
from heldout.board.scores.public_log import find_public_log
from heldout.board.scores.stored import read_evidence
from heldout.board.standings.overdue import (
    choose_named,
    find_ending,
    list_overdue_at,
    list_wrong_ends,
)
from heldout.board.standings.standings import NOT_NAMED, Standings, list_seasons, make_standings
from heldout.errors import InputError, StoreError

Row = Sequence[float]
BASE, ONE, TWO, THREE = "20261101-base", "20261102-one", "20261102-two", "20261102-three"
LAST = datetime(2026, 11, 30, 20, tzinfo=UTC)
OVER = datetime(2026, 12, 1, 1, tzinfo=UTC)
_RANDOM = random.Random(11)  # noqa: S311 - made-up scores, not keys
LOW = [_RANDOM.random() / 2 for _ in range(QUERIES)]
HIGH = [v + 0.2 * (0.9 + 0.2 * (n % 2)) for n, v in enumerate(LOW)]


def nudge(values: Row, query: int, rise: float = 0.2) -> list[float]:
    """Higher on one query, and so never clearly."""
    return [v + rise * (n == query) for n, v in enumerate(values)]


def text(values: Row) -> str:
    return f"{sum(values) / len(values):.3f}"


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> ScoredBoard:
    """A board under `clear` with a last day, and a baseline."""
    made = make_board(tmp_path_factory.mktemp("ends") / "town")
    board = as_clear(made, closes="closes = 2026-11-30")
    board.baseline(BASE, LOW)
    return board


@pytest.fixture
def board(begun: ScoredBoard, tmp_path: Path) -> ScoredBoard:
    return begun.in_memory(tmp_path)


def played(board: ScoredBoard) -> ScoredBoard:
    """Three teams: one names the first of two, one has a number, one has a single entry."""
    board.enter(ONE, nudge(LOW, 0), season_entry=True)
    board.enter("20261103-more", nudge(LOW, 1, 0.5))
    board.enter(TWO, HIGH, team="Other Team")
    board.enter("20261103-last", nudge(HIGH, 2), team="Other Team")
    board.enter(THREE, nudge(LOW, 3), team="Third Team")
    return board


EXACT = {
    BASE: text(LOW),
    ONE: text(nudge(LOW, 0)),
    TWO: text(HIGH),
    "20261103-last": text(nudge(HIGH, 2)),
    THREE: text(nudge(LOW, 3)),
}


def over(board: ScoredBoard) -> tuple[EndStep, ...]:
    """Brought up to date on the day after the last."""
    board.now = max(board.now, OVER)
    return bring_up_to_date(board.tick()).ends


def standings(board: ScoredBoard) -> Standings:
    session = board.session
    return make_standings(session.vault.entries(), session.spec(), now=session.now)


def said(board: ScoredBoard) -> dict[str, str]:
    """Entry -> what everybody reads of its score."""
    return {row.id: row.scores.get("eval") or row.unranked for row in standings(board).every}


def audited(board: ScoredBoard) -> Audit:
    bring_up_to_date(board.tick())
    return audit_board(board.session.repository, board.session.vault)


def faults(board: ScoredBoard) -> tuple[str, ...]:
    """But those of sealed files, which nobody made."""
    return tuple(one for one in audited(board).faults if not one.startswith("submissions/"))


def test_the_day_after_the_last_every_team_has_an_exact_score(board: ScoredBoard) -> None:
    played(board)
    board.now = LAST
    assert bring_up_to_date(board.tick()).ends == ()
    assert sorted(said(board).values()).count(NOT_CLEAR) == 4
    (step,) = over(board)
    assert (step.waits, step.end and step.end.named) == ("", (ONE, "20261103-last", THREE))
    assert said(board) == {**EXACT, "20261103-more": NOT_NAMED}
    shown = standings(board)
    entries = [row for row in shown.rows if not row.baseline]
    assert [row.id for row in entries] == ["20261103-last", TWO, ONE, THREE]
    assert [row.mark for row in entries] == ["", "published at once", "", ""]
    assert [row.rank for row in entries] == [1, 2, 3, 4]
    assert over(board) == ()
    assert faults(board) == ()


def test_who_had_a_number_and_is_not_named_has_an_exact_one_too(board: ScoredBoard) -> None:
    board.enter(ONE, HIGH)
    board.enter(TWO, nudge(HIGH, 0), season_entry=True)
    over(board)
    assert said(board) == {BASE: text(LOW), ONE: text(HIGH), TWO: text(nudge(HIGH, 0))}
    end = standings(board).season_end
    assert end is not None
    assert end.named == (TWO,)
    assert faults(board) == ()


def test_an_inbox_that_brings_nothing_ends_the_season(board: ScoredBoard) -> None:
    played(board)
    bring_up_to_date(board.tick())
    board.now = OVER
    public = find_public_log(board.session.repository, board.vault)
    (due,) = list_overdue_at(public, now=OVER)
    assert str(due) == "the exact scores at the end of the season, due since 01 Dec 2026"
    assert [step.waits for step in catch_up(board.tick(), news=False).ends] == [""]
    public = find_public_log(board.session.repository, board.vault)
    assert list_overdue_at(public, now=board.now) == ()


def test_the_end_waits_for_decisions_and_for_labels_and_changes_nothing(board: ScoredBoard) -> None:
    played(board)
    board.now = LAST
    late = board.send("20261130-late", nudge(LOW, 9), team="Fourth Team")
    (step,) = over(board)
    assert (step.end, "20261130-late" in step.waits) == (None, True)
    board.publish(late)
    board.relabel()
    (step,) = over(board)
    assert "heldout correct" in step.waits
    assert standings(board).season_end is None
    assert any("season is over" in note for note in audited(board).notes)
    board.correct(BASE, LOW)
    for name, values in {ONE: LOW, TWO: HIGH, THREE: LOW, "20261103-last": HIGH}.items():
        board.correct(name, values)
    board.correct("20261130-late", nudge(LOW, 9))
    board.correct("20261103-more", LOW)
    (step,) = over(board)
    assert step.end is not None
    assert said(board)["20261130-late"] == text(nudge(LOW, 9))
    assert faults(board) == ()


def test_corrected_labels_end_the_season_again_for_a_reason(board: ScoredBoard) -> None:
    board.enter(ONE, nudge(LOW, 0))
    board.enter(TWO, HIGH, team="Other Team")
    over(board)
    board.relabel()
    board.correct(BASE, LOW)
    board.correct(ONE, HIGH)
    with pytest.raises(StoreError, match=f"heldout correct {TWO}"):
        end_seasons_again(board.tick(), why="wrong labels")
    board.correct(TWO, nudge(HIGH, 0))
    assert has_other_scores(board.session)
    with pytest.raises(InputError, match="reason"):
        end_seasons_again(board.tick(), why="")
    (step,) = end_seasons_again(board.tick(), why="wrong labels")
    assert step.end is not None
    scores = [one.scores[ONE] for one in step.end.openings]
    assert scores == [text(nudge(LOW, 0)), text(HIGH)]
    assert said(board) == {BASE: text(LOW), ONE: text(HIGH), TWO: text(nudge(HIGH, 0))}
    assert end_seasons_again(board.tick(), why="wrong labels") == ()
    assert not has_other_scores(board.session)
    assert faults(board) == ()


def test_an_entry_under_an_embargo_stands_for_itself(board: ScoredBoard) -> None:
    """Else the page would say that it and the entry that was named are of one team."""
    board.enter(ONE, nudge(LOW, 0), until=date(2027, 3, 1))
    board.enter(TWO, nudge(LOW, 1, 0.3), season_entry=True)
    board.enter(THREE, nudge(LOW, 2))
    over(board)
    assert said(board)[ONE] == text(nudge(LOW, 0))
    assert said(board)[THREE] == NOT_NAMED
    assert faults(board) == ()
    board.now = datetime(2027, 3, 2, tzinfo=UTC)
    assert faults(board) == ()


def archive(board: ScoredBoard, folder: Path) -> Path:
    board.rules(('runs = "with-consent"', 'runs = "never"'))  # there are no runs
    bring_up_to_date(board.tick())
    assert close_board(board.tick())
    bring_up_to_date(board.tick())
    file = folder / "archive.zip"
    write_archive(board.tick(), file)
    return file


def test_the_archive_shows_that_the_scores_are_the_exact_ones(
    board: ScoredBoard, tmp_path: Path
) -> None:
    played(board)
    over(board)
    assert audit_archive(archive(board, tmp_path)).faults == ()


def written(board: ScoredBoard, path: str) -> str:
    data = board.session.repository.files.read(f"leaderboard/{path}")
    return html.unescape(data.decode()).replace("\xa0", " ")


def test_the_page_says_what_comes_and_what_came(board: ScoredBoard) -> None:
    board.enter(ONE, nudge(LOW, 0))
    board.enter(TWO, HIGH, team="Other Team")
    board.enter(THREE, nudge(HIGH, 2), team="Other Team", season_entry=True)
    board.enter("20261103-more", nudge(LOW, 1))
    bring_up_to_date(board.tick())
    page = written(board, "index.html")
    assert "The last day of the season is 30 Nov 2026." in page
    assert page.count('<span class="tag">with noise</span>') == 1
    over(board)
    page = written(board, "index.html")
    exact = "gave exact scores to 2 named entries, and 1 other that had a number at once."
    for said_ in (exact, "Luck of the best: of 3 equally good entries", NOT_NAMED[1:]):
        assert said_ in page, said_
    assert page.count('<span class="tag">published at once</span>') == 1
    assert "with noise</span>" not in page
    ended = json.loads(written(board, "leaderboard.json"))
    assert ended["season_end"]["named"] == [THREE, "20261103-more"]
    assert not {"winner", "clearly_below"} & {*ended["season_end"]}
    why = {row["id"]: row["why"].get("scores.eval") for row in ended["rows"]}
    assert why == {**dict.fromkeys((BASE, TWO, THREE, "20261103-more")), ONE: NOT_NAMED}
    assert written(board, "feed.xml").count("Best of the season") == 1
    own = written(board, f"entries/{THREE}.html")
    assert own.count("The season's end: the exact score released") == 1


Change = Callable[[pytest.MonkeyPatch], None]


def leave_out(patch: pytest.MonkeyPatch) -> None:
    """A team has no score."""
    honest = choose_named
    patch.setattr(finals, "choose_named", lambda *given: honest(*given)[:-1])


def name_another(patch: pytest.MonkeyPatch) -> None:
    """Not the entry that the team named."""
    patch.setattr(finals, "choose_named", lambda *_: ("20261103-more", "20261103-last", THREE))


def other_number(patch: pytest.MonkeyPatch) -> None:
    honest = finals.end_fields

    def wrong(*given: Any, **named: Any) -> dict[str, Any]:
        fields = honest(*given, **named)
        return {**fields, "final_scores": {**fields["final_scores"], ONE: "0.990"}}

    patch.setattr(finals, "end_fields", wrong)


def other_luck(patch: pytest.MonkeyPatch) -> None:
    honest = finals.end_fields
    patch.setattr(
        finals,
        "end_fields",
        lambda *given, **named: {**honest(*given, **named), "luck": "0.0001"},
    )


def hide_waiting(patch: pytest.MonkeyPatch) -> None:
    """Nobody decides on a submission, so that it is not there at the end."""
    patch.setattr(finals, "list_waiting", lambda *_: ())


FRAUDS: Mapping[str, tuple[Change, str]] = {
    "left out": (leave_out, f"but the rule names {THREE}"),
    "not the named one": (name_another, f"names 20261103-more, but the rule names {ONE}"),
    "another number": (other_number, "final_scores is"),
    "another luck": (other_luck, "luck is"),
    "waiting": (hide_waiting, "leaves out 20261130-late, on which nobody had decided"),
}


def found_in(board: ScoredBoard, folder: Path, patch: pytest.MonkeyPatch) -> str:
    """The faults of the vault's audit, and of the archive's."""
    faulty = audited(board).faults
    with patch.context() as dishonest:
        dishonest.setattr(archives, "check_closable", lambda _session: None)
        dishonest.setattr(archives, "rehearse", lambda _session, _closing: None)
        found = audit_archive(archive(board, folder))
    return f"{' '.join(faulty)}|{' '.join(found.faults)}"


@pytest.mark.parametrize("case", FRAUDS)
def test_an_organiser_who_ends_a_season_otherwise_is_found(
    board: ScoredBoard, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, told = FRAUDS[case]
    played(board)
    board.now = LAST
    waits = board.send("20261130-late", nudge(LOW, 9), team="Fourth Team")
    if case != "waiting":
        board.reject("20261130-late")
    with monkeypatch.context() as dishonest:
        change(dishonest)
        (step,) = over(board)
    assert step.end is not None
    if case == "waiting":
        board.publish(waits)
        assert said(board)["20261130-late"] == NOT_CLEAR
    vault, archived = found_in(board, tmp_path, monkeypatch).split("|")
    assert told in vault
    assert told in archived


def test_a_season_that_is_ended_early_is_found(
    board: ScoredBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(board)
    ending = find_ending(board.session.spec(), "")
    with monkeypatch.context() as dishonest:
        dishonest.setattr(finals, "list_due_ends", lambda *_: (ending,))
        bring_up_to_date(board.tick())
    told = "came before the last day, 2026-11-30, was over"
    assert all(told in one for one in found_in(board, tmp_path, monkeypatch).split("|"))


def test_the_last_day_of_an_ended_season_does_not_move(board: ScoredBoard) -> None:
    played(board)
    over(board)
    text_ = board.session.rules().replace("closes = 2026-11-30", "closes = 2027-11-30")
    moved = list_moved_days(board.session.history(), parse_spec(text_.encode()), now=board.now)
    assert [key for key, *_ in moved] == ["closes"]
    entries = board.vault.entries()
    log = BoardLog(now=board.tick().now, entries=[*entries])
    log.change_rules(text_)
    found = list_wrong_ends(log.entries, log.history)
    assert ["move the last day" in one for one in found] == [True]


def test_each_season_ends_by_itself(board: ScoredBoard) -> None:
    board.rules(("closes = 2026-11-30", "closes = 2026-12-31"))
    next_season(board, closes=LAST.date())
    played(board)
    (first,) = over(board)
    assert first.season == "first"
    board.baseline("20261202-base", LOW)
    board.enter("20261202-one", nudge(LOW, 4))
    board.now = datetime(2027, 1, 1, 9, tzinfo=UTC)
    (second,) = bring_up_to_date(board.tick()).ends
    assert second.end is not None
    assert (second.season, second.end.view) == ("second", "next")
    assert second.end.named == ("20261202-one",)
    session = board.session
    seasons = list_seasons(session.vault.entries(), session.spec(), now=session.now)
    shown = {one.season.name: [row.id for row in one.standings.rows] for one in seasons}
    assert shown["second"] == ["20261202-one", "20261202-base"]
    assert {*shown["first"]} == {*EXACT}
    assert faults(board) == ()


def test_seasons_share_a_set_and_the_seeds_of_an_entry_have_their_spread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each season ends with exact scores on its own part, which the first baseline is scored on."""
    monkeypatch.setattr(sets, "_FEWEST_OF_SEASON", QUERIES // 2)
    board = make_board(tmp_path / "parts")
    parts = [
        ('rule = "rounded"', 'rule = "clear"\nseasons = 2\nfeedback = 0'),
        ('name = "eval"\nset = "eval"', 'name = "eval"\nset = "eval"\npart = 1'),
    ]
    more = SEASONS.replace('[sets.next]\nqueries = "queries/next.tsv"\n', "")
    more = more.replace('set = "next"', 'set = "eval"\npart = 2')
    board.rules(*parts, ("# closes = 2027-03-31", "closes = 2026-12-31"), more=more)
    board.baseline(BASE, LOW)
    board.enter(ONE, (HIGH, nudge(HIGH, 0, 0.4)))
    board.enter(TWO, (LOW, nudge(LOW, 0, 0.4)), team="Other Team")
    (first,) = over(board)
    assert first.end is not None
    submissions = board.session.history().submissions
    for name in (ONE, TWO):
        exact = read_evidence(board.vault, submissions[name].evidence["eval"]).score
        assert len(exact.per_query) == first.end.opened.queries == QUERIES // 2
        assert first.end.opened.scores[name] == f"{exact.mean:.3f}"
        assert submissions[name].spreads["eval"] == f"{stdev(exact.seeds):.3f}"
    board.enter("20261202-one", nudge(LOW, 4))
    board.now = datetime(2027, 1, 1, 9, tzinfo=UTC)
    (second,) = bring_up_to_date(board.tick()).ends
    assert second.end is not None
    assert second.end.named == ("20261202-one",)
    assert faults(board) == ()


CLEAR = RULES.replace("[policy]", '[release]\nrule = "clear"\n\n[policy]').replace(
    "closes = 2027-12-31", "closes = 2026-11-30"
)
INFORMS = """
[[views]]
name = "noisy"
set = "eval"
measure = "RR@10"
noise = 1.0
"""


def chosen(*entries: tuple[str, str, bool, str], rules: str = CLEAR) -> tuple[str, ...]:
    """Who is named of entries: name, team, whether the team named it, its number to inform."""
    log = BoardLog().open(rules)
    for name, team, named, number in entries:
        log.wait(days=1)
        manifest = make_manifest(team, season_entry=named)
        log.receive(name)
        log.review(name, manifest)
        scores = {"dev": "0.5", **({"noisy": number} if number else {})}
        public = {"scores": scores, "queries": dict.fromkeys(scores, 9), "untold": ["eval"]}
        log.publish(name, manifest, "", public=public)
    ending = find_ending(parse_spec(rules.encode()), "")
    assert ending is not None
    return choose_named(log.history, ending, OVER.date())


A, B, C = "20261102-a", "20261103-b", "20261104-c"


def test_of_several_named_entries_the_latest_stands_for_its_team() -> None:
    assert chosen((A, "X", True, ""), (B, "x ", True, ""), (C, "X", False, "")) == (B,)


def test_without_a_named_one_the_highest_number_that_informs_decides() -> None:
    rules = CLEAR + INFORMS
    assert chosen((A, "X", False, "0.4"), (B, "X", False, "0.3"), rules=rules) == (A,)
    assert chosen((A, "X", False, "0.3"), (B, "X", False, "0.3"), rules=rules) == (A,)
    assert chosen((A, "X", True, "0.2"), (B, "X", False, "0.3"), rules=rules) == (A,)
    assert chosen((A, "X", False, ""), (B, "X", False, "")) == (B,)


def test_names_that_an_approval_joined_are_one_team() -> None:
    log = BoardLog().open(CLEAR)
    for name, team in ((A, "X"), (B, "Y"), (C, "Z")):
        log.wait(days=1)
        log.submit(name, make_manifest(team), "0.4")
    log.amend(A, make_manifest("Y", revision=2))
    ending = find_ending(parse_spec(CLEAR.encode()), "")
    assert ending is not None
    assert choose_named(log.history, ending, OVER.date()) == (B, C)


def test_a_team_names_an_entry_that_is_published_already_or_another_one() -> None:
    log = BoardLog().open(CLEAR)
    for name in (A, B):
        log.wait(days=1)
        log.submit(name, make_manifest("X"), "0.4")
    ending = find_ending(parse_spec(CLEAR.encode()), "")
    assert ending is not None
    assert choose_named(log.history, ending, OVER.date()) == (B,)
    log.update(A, make_manifest("X", season_entry=True, revision=2))
    assert choose_named(log.history, ending, OVER.date()) == (A,)
    log.update(A, make_manifest("X", revision=3))
    assert choose_named(log.history, ending, OVER.date()) == (B,)


def test_a_baseline_and_what_came_late_are_not_named() -> None:
    log = BoardLog().open(CLEAR)
    log.baseline("20261101-bm25", "0.3")
    log.submit(A, make_manifest("X"), "0.4")
    log.now = OVER
    log.submit("20261201-late", make_manifest("Y"), "0.5")
    ending = find_ending(parse_spec(CLEAR.encode()), "")
    assert ending is not None
    assert choose_named(log.history, ending, OVER.date()) == (A,)


@pytest.mark.parametrize(
    "rules",
    [
        CLEAR.replace('"clear"', '"rounded"'),
        CLEAR.replace("closes = 2026-11-30\n", ""),
        CLEAR.replace('primary = "eval"', 'primary = "dev"'),
    ],
)
def test_where_exact_scores_are_no_news_no_season_ends(rules: str) -> None:
    assert find_ending(parse_spec(rules.encode()), "") is None


def ended(log: BoardLog, **changes: Any) -> History:
    public = {
        "season": "",
        "view": "eval",
        "named": [A, B],
        "final_scores": {A: "0.4", B: "0.5"},
        "queries": {"eval": 50},
        "luck": "0.0100",
        "why": "",
        "spreads": {},
    }
    log.add("ended-season", None, {**public, **changes})
    return read_history(log.entries)


def two() -> BoardLog:
    log = BoardLog().open(CLEAR)
    for name in (A, B):
        log.wait(days=1)
        log.submit(name, make_manifest(name), "0.3")
    log.receive(C)
    log.now = OVER
    return log


@pytest.mark.parametrize(
    ("told", "changes"),
    [
        ("names nobody", {"named": []}),
        ("no published entry", {"final_scores": {A: "0.4", B: "0.5", C: "0.1"}}),
        ("order of receipt", {"named": [B, A]}),
        ("has no score", {"final_scores": {B: "0.5"}, "luck": ""}),
        ("states luck", {"luck": ""}),
        ("how many queries", {"queries": {}}),
    ],
)
def test_an_end_that_contradicts_itself(told: str, changes: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match=told):
        ended(two(), **changes)


def test_a_season_is_ended_again_for_a_reason_with_the_same_entries_alone() -> None:
    log = two()
    assert ended(log).submissions[A].scores["eval"] == "0.4"
    for changes, told in (({}, "without a reason"), ({"why": "x", "named": [B]}, "other entries")):
        with pytest.raises(StoreError, match=told):
            ended(log, **changes)
        log.entries.pop()
    log.add("closed-board", None, {"open_runs": []})
    again = ended(log, final_scores={A: "0.6", B: "0.5"}, why="two labels were wrong")
    assert again.submissions[A].scores["eval"] == "0.6"
    closed = two()
    closed.entries.pop()
    closed.add("closed-board", None, {"open_runs": []})
    with pytest.raises(StoreError, match="closed before"):
        ended(closed)
