"""The end of a season under `clear`: each team's named entry gets its exact score, once."""

import html
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

import pytest
from boardlog import RULES, BoardLog, make_manifest, ranking, season
from certain import sure
from scored_board import (
    BASE,
    HIGH,
    LOW,
    ONE,
    QUERIES,
    THREE,
    TWO,
    ScoredBoard,
    archive,
    as_clear,
    faults,
    make_board,
    next_season,
    nudge,
    query_ids,
    stand,
    text,
)

from heldout.board.audit import archive as archives
from heldout.board.audit.archive_audit import audit_archive
from heldout.board.audit.audit import Audit, audit_board
from heldout.board.log.history import History, read_history
from heldout.board.organiser import finals, rebuild
from heldout.board.organiser.finals import EndStep, end_seasons_again, has_other_scores
from heldout.board.organiser.rebuild import bring_up_to_date, catch_up
from heldout.board.rules.changes import list_moved_days
from heldout.board.rules.release import NOT_CLEAR, ReleaseRule, split_queries
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores import sets
from heldout.board.scores.public_log import find_public_log
from heldout.board.scores.stored import read_evidence
from heldout.board.standings import overdue
from heldout.board.standings.standings import NOT_NAMED, list_seasons
from heldout.errors import InputError, StoreError

LAST = datetime(2026, 11, 30, 20, tzinfo=UTC)
OVER = datetime(2026, 12, 1, 1, tzinfo=UTC)


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


EXACT = {BASE: text(LOW), ONE: text(nudge(LOW, 0)), TWO: text(HIGH), THREE: text(nudge(LOW, 3))}
EXACT["20261103-last"] = text(nudge(HIGH, 2))


def over(board: ScoredBoard) -> tuple[EndStep, ...]:
    """Brought up to date on the day after the last."""
    board.now = max(board.now, OVER)
    return bring_up_to_date(board.tick()).ends


def said(board: ScoredBoard) -> dict[str, str]:
    """Entry -> what everybody reads of its score."""
    return {row.id: row.scores.get("eval") or row.unranked for row in stand(board).every}


def audited(board: ScoredBoard) -> Audit:
    bring_up_to_date(board.tick())
    return audit_board(board.session.repository, board.session.vault)


def test_the_day_after_the_last_every_team_has_an_exact_score(board: ScoredBoard) -> None:
    played(board)
    board.now = LAST
    assert bring_up_to_date(board.tick()).ends == ()
    assert sorted(said(board).values()).count(NOT_CLEAR) == 4
    (step,) = over(board)
    assert (step.waits, step.end and step.end.named) == ("", (ONE, "20261103-last", THREE))
    assert said(board) == {**EXACT, "20261103-more": NOT_NAMED}
    entries = [row for row in stand(board).rows if not row.baseline]
    assert [row.id for row in entries] == ["20261103-last", TWO, ONE, THREE]
    assert [row.mark for row in entries] == ["", "published at once", "", ""]
    assert [row.rank for row in entries] == [1, 2, 3, 4]
    assert over(board) == ()
    assert faults(board) == ()


def test_an_inbox_that_brings_nothing_ends_the_season(board: ScoredBoard) -> None:
    played(board)
    bring_up_to_date(board.tick())
    board.now = OVER
    public = find_public_log(board.session.repository, board.vault)
    (due,) = overdue.list_overdue_at(public, now=OVER)
    assert str(due) == "the exact scores at the end of the season, due since 01 Dec 2026"
    assert [step.waits for step in catch_up(board.tick(), news=False).ends] == [""]
    public = find_public_log(board.session.repository, board.vault)
    assert overdue.list_overdue_at(public, now=board.now) == ()


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
    assert stand(board).season_end is None
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
    scores = [one.scores[ONE] for one in sure(step.end).openings]
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


def put(name: str, value: Callable[..., object]) -> Change:
    """Another rule of season ends, for the one who ends this one alone."""
    other = SimpleNamespace(**{**vars(overdue), name: value})
    return lambda patch: patch.setattr(finals, "overdue", other)


def change_fields(**wrong: Any) -> Change:
    """Other fields of the event than the rule gives; of a table its changed rows."""
    honest = finals.end_fields

    def fields(*given: Any, **named: Any) -> dict[str, Any]:
        found = honest(*given, **named)
        rows = {n: {**found[n], **v} if isinstance(v, dict) else v for n, v in wrong.items()}
        return found | rows

    return lambda patch: patch.setattr(finals, "end_fields", fields)


FRAUDS: Mapping[str, tuple[Change, str]] = {
    "left out": (
        put("choose_named", lambda *given: overdue.choose_named(*given)[:-1]),
        f"but the rule names {THREE}",
    ),
    "not the named one": (
        put("choose_named", lambda *_: ("20261103-more", "20261103-last", THREE)),
        f"names 20261103-more, but the rule names {ONE}",
    ),
    "another number": (change_fields(final_scores={ONE: "0.990"}), "final_scores is"),
    "another luck": (change_fields(luck="0.0001"), "luck is"),
    "waiting": (
        put("list_waiting", lambda *_: ()),
        "leaves out 20261130-late, on which nobody had decided",
    ),
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


def test_an_early_end(board: ScoredBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(board)
    ending = overdue.find_ending(board.session.spec(), "")
    with monkeypatch.context() as dishonest:
        dishonest.setattr(rebuild, "list_due_ends", lambda *_: (ending,))
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
    found = overdue.list_wrong_ends(log.entries, log.history)
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
    assert (second.season, sure(second.end).view) == ("second", "next")
    assert sure(second.end).named == ("20261202-one",)
    session = board.session
    seasons = list_seasons(session.vault.entries(), session.spec(), now=session.now)
    shown = {one.season.name: [row.id for row in one.standings.rows] for one in seasons}
    assert shown["second"] == ["20261202-one", "20261202-base"]
    assert {*shown["first"]} == {*EXACT}
    assert faults(board) == ()


CLEAR = RULES.replace("[policy]", '[release]\nrule = "clear"\n\n[policy]')
CLEAR = CLEAR.replace("closes = 2027-12-31", "closes = 2026-11-30")
INFORMS = "\n" + ranking("noisy", "eval", noise=1.0)


def choose(log: BoardLog, rules: str = CLEAR) -> tuple[str, ...]:
    ending = sure(overdue.find_ending(parse_spec(rules.encode()), ""))
    return overdue.choose_named(log.history, ending, OVER.date())


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
    return choose(log, rules)


A, B, C = "20261102-a", "20261103-b", "20261104-c"


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        ([(A, "X", True, ""), (B, "x ", True, ""), (C, "X", False, "")], B),  # the latest named
        ([(A, "X", False, "0.4"), (B, "X", False, "0.3")], A),  # the highest that informs
        ([(A, "X", False, "0.3"), (B, "X", False, "0.3")], A),
        ([(A, "X", True, "0.2"), (B, "X", False, "0.3")], A),
        ([(A, "X", False, ""), (B, "X", False, "")], B),
    ],
)
def test_who_stands_for_a_team(entries: list[tuple[str, str, bool, str]], named: str) -> None:
    assert chosen(*entries, rules=CLEAR + INFORMS) == (named,)


def test_names_that_an_approval_joined_are_one_team() -> None:
    log = BoardLog().open(CLEAR)
    for name, team in ((A, "X"), (B, "Y"), (C, "Z")):
        log.wait(days=1)
        log.submit(name, make_manifest(team), "0.4")
    log.amend(A, make_manifest("Y", revision=2))
    assert choose(log) == (B, C)


def test_a_team_names_an_entry_that_is_published_already_or_another_one() -> None:
    log = BoardLog().open(CLEAR)
    for name in (A, B):
        log.wait(days=1)
        log.submit(name, make_manifest("X"), "0.4")
    assert choose(log) == (B,)
    log.update(A, make_manifest("X", season_entry=True, revision=2))
    assert choose(log) == (A,)
    log.update(A, make_manifest("X", revision=3))
    assert choose(log) == (B,)


def test_a_baseline_and_what_came_late_are_not_named() -> None:
    log = BoardLog().open(CLEAR)
    log.baseline("20261101-bm25", "0.3")
    log.submit(A, make_manifest("X"), "0.4")
    log.now = OVER
    log.submit("20261201-late", make_manifest("Y"), "0.5")
    assert choose(log) == (A,)


@pytest.mark.parametrize(
    "rules",
    [
        CLEAR.replace('"clear"', '"rounded"'),
        CLEAR.replace("closes = 2026-11-30\n", ""),
        CLEAR.replace('primary = "eval"', 'primary = "dev"'),
    ],
)
def test_where_exact_scores_are_no_news_no_season_ends(rules: str) -> None:
    assert overdue.find_ending(parse_spec(rules.encode()), "") is None


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


FIRST, OTHER, IN_FIRST, IN_SECOND = BASE, "20261101-other", ONE, "20270102-two"
RULE = ReleaseRule(rule="clear", seasons=2, feedback=0)
HALVES = ranking("eval-2", "eval", "nDCG@10", part=2)
HALVES += season("s1", "eval-1", date(2026, 11, 1), date(2026, 12, 31))
HALVES += season("s2", "eval-2", date(2027, 1, 1), date(2027, 2, 28))
FLAT = [v / 2 for v in LOW]
RAISED = [v + 0.3 + 0.02 * (n % 2) for n, v in enumerate(FLAT)]


@pytest.fixture
def halved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScoredBoard:
    """Two seasons over half of the set each, and a baseline of the first."""
    monkeypatch.setattr(sets, "_FEWEST_OF_SEASON", QUERIES // 2)
    made = make_board(tmp_path / "town").in_memory(tmp_path)
    made.rules(
        ('rule = "rounded"', 'rule = "clear"\nseasons = 2\nfeedback = 0'),
        ("# closes = 2027-03-31", "closes = 2027-02-28"),
        ('primary = "eval"', 'primary = "eval-1"'),
        ('name = "eval"\n', 'name = "eval-1"\npart = 1\n'),
        more=HALVES,
    )
    made.baseline(FIRST, FLAT)
    return made


def mean(halved: ScoredBoard, values: list[float], part: int) -> float:
    queries = split_queries(halved.vault.set_key("eval"), query_ids("eval"), RULE)[part]
    assert len(queries) == QUERIES // 2
    return fmean(v for q, v in zip(query_ids("eval"), values, strict=True) if q in queries)


def enter_both(halved: ScoredBoard) -> None:
    halved.enter(IN_FIRST, RAISED)
    halved.now = datetime(2027, 1, 2, 9, tzinfo=UTC)
    halved.enter(IN_SECOND, RAISED, team="Other Team")


def test_each_season_ranks_by_its_part(halved: ScoredBoard) -> None:
    enter_both(halved)
    known = halved.session.history().submissions
    for part in (1, 2):
        assert known[FIRST].scores[f"eval-{part}"] == f"{mean(halved, FLAT, part):.3f}"
    assert known[IN_FIRST].counts == {"dev": QUERIES, "eval-1": QUERIES // 2}
    assert known[IN_SECOND].counts == {"dev": QUERIES, "eval-2": QUERIES // 2}
    # What the first season published does not stand in the way of an equal run in the second.
    assert halved.published(IN_FIRST)["bars"] == {"eval-1": FIRST}
    assert halved.published(IN_SECOND)["bars"] == {"eval-2": FIRST}
    seasons = list_seasons(halved.vault.entries(), halved.session.spec(), now=halved.now)
    ranked = {one.season.name: [row.id for row in one.standings.rows] for one in seasons}
    assert ranked == {"s2": [IN_SECOND, FIRST], "s1": [IN_FIRST, FIRST]}
    assert faults(halved) == ()
    for _ in range(2):  # the page of a baseline in several seasons is of the latest, each time
        page = halved.session.repository.files.read(f"leaderboard/entries/{FIRST}.html")
        assert known[FIRST].scores["eval-2"].encode() in page
        assert b"season part 1" not in page
        bring_up_to_date(halved.tick())


def test_both_parts_are_opened_at_the_end(halved: ScoredBoard, tmp_path: Path) -> None:
    enter_both(halved)
    halved.relabel()
    lower = [v * 0.9 for v in FLAT]
    halved.correct(FIRST, lower)
    halved.correct(IN_FIRST, RAISED)
    halved.correct(IN_SECOND, RAISED)
    known = halved.session.history().submissions
    for part in (1, 2):
        assert known[FIRST].scores[f"eval-{part}"] == f"{mean(halved, lower, part):.3f}"
    assert faults(halved) == ()
    halved.now = datetime(2027, 3, 1, 9, tzinfo=UTC)
    assert audit_archive(archive(halved, tmp_path)).faults == ()


def test_a_score_on_another_part(halved: ScoredBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sets, "split_queries", lambda _, *rest: split_queries(bytes(32), *rest))
        halved.baseline(OTHER, RAISED)
    found = faults(halved)
    assert len(found) == 2
    for part in (1, 2):
        assert any(f"queries that are not in season part {part}" in fault for fault in found)


def test_parts_of_a_set_and_seeds(halved: ScoredBoard) -> None:
    """Each season ends with exact scores on its own part; those of seeds have their spread."""
    halved.enter(ONE, (RAISED, nudge(RAISED, 0, 0.4)))
    halved.enter(TWO, (FLAT, nudge(FLAT, 0, 0.4)), team="Other Team")
    halved.now = datetime(2027, 1, 1, 9, tzinfo=UTC)
    (first,) = bring_up_to_date(halved.tick()).ends
    submissions = halved.session.history().submissions
    for name in (ONE, TWO):
        exact = read_evidence(halved.vault, submissions[name].evidence["eval-1"]).score
        assert len(exact.per_query) == sure(first.end).opened.queries == QUERIES // 2
        assert sure(first.end).opened.scores[name] == f"{exact.mean:.3f}"
        assert submissions[name].spreads["eval-1"] == f"{stdev(exact.seeds):.3f}"
    halved.enter(IN_SECOND, nudge(FLAT, 4))
    halved.now = datetime(2027, 3, 1, 9, tzinfo=UTC)
    (second,) = bring_up_to_date(halved.tick()).ends
    assert sure(second.end).named == (IN_SECOND,)
    assert faults(halved) == ()
