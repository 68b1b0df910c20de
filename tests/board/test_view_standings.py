"""The standings of a view that lists only entries trained on little."""

from dataclasses import replace
from datetime import UTC, date, datetime

from boardlog import RULES, BoardLog, make_manifest

from heldout.board.log.manifest import Efficiency
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.board.standings.standings import (
    Row,
    Standings,
    listing_views,
    make_standings,
    rank_listed,
)

VIEW = '[[views]]\nname = "small"\nset = "eval"\nmeasure = "RR@10"\ntraining_at_most = 1000\n'
SMALL = RULES.replace("[policy]", f"{VIEW}[policy]")
SPEC = parse_spec(SMALL.encode())


def submit(log: BoardLog, name: str, score: str, pairs: int | None, **changes: object) -> None:
    stated = None if pairs is None else Efficiency(training_pairs=pairs)
    manifest = make_manifest(f"Team {name}", efficiency=stated, **changes)
    log.receive(name)
    log.review(name, manifest)
    views = ("dev", "eval", "small")
    told = {"scores": dict.fromkeys(views, score), "queries": dict.fromkeys(views, 90)}
    log.publish(name, manifest, score, public=told)


def board() -> BoardLog:
    log = BoardLog().open(SMALL)
    for name, score, pairs in (
        ("20261101-huge", "0.500", 500_000),
        ("20261101-most", "0.300", 1000),
        ("20261101-none", "0.400", 0),
        ("20261101-silent", "0.450", None),
        ("20261101-even", "0.300", 5),
    ):
        submit(log.wait(hours=1), name, score, pairs)
    return log


def stand(log: BoardLog, spec: BoardSpec = SPEC, now: datetime | None = None) -> Standings:
    return make_standings(log.entries, spec, now=now or log.now)


def small(standings: Standings) -> Standings:
    return rank_listed(standings, SPEC.view("small"))


def by_name(rows: tuple[Row, ...]) -> dict[str, Row]:
    return {row.id.partition("-")[2]: row for row in rows}


def test_only_entries_that_state_so_few_are_listed_by_score_then_time() -> None:
    listed = small(stand(board()))
    ranked = {row.id[9:]: row.rank for row in listed.rows}
    assert list(ranked.items()) == [("none", 1), ("most", 2), ("even", 3)]
    assert listed.primary == "small"
    reasons = {name: row.unranked for name, row in by_name(listed.unranked).items()}
    assert reasons["huge"] == "500,000 training pairs, more than 1,000"
    assert reasons["silent"] == "training pairs not stated"
    assert not any(row.trophy for row in listed.every)


def test_the_board_itself_ranks_everybody_and_shows_no_score_in_that_view() -> None:
    rows = by_name(stand(board()).rows)
    assert [row.rank for row in rows.values()] == [1, 2, 3, 4, 5]
    assert "small" not in rows["huge"].scores
    assert rows["huge"].unlisted == {"small": "500,000 training pairs, more than 1,000"}
    assert rows["most"].scores["small"] == "0.300"
    assert rows["most"].unlisted == {}


def test_a_board_may_be_ranked_by_it() -> None:
    spec = parse_spec(SMALL.replace('primary = "eval"', 'primary = "small"').encode())
    standings = stand(board(), spec)
    assert standings.rows[0].id == "20261101-none"
    told = {row.unranked for row in standings.unranked}
    assert told == {"500,000 training pairs, more than 1,000", "training pairs not stated"}
    assert listing_views(spec) == ()


def test_an_embargo_hides_what_was_stated_until_its_day() -> None:
    log = BoardLog().open(SMALL)
    submit(log, "20261101-hidden", "0.400", 7, embargo_until=date(2027, 5, 20))
    before, after = stand(log), stand(log, now=datetime(2027, 5, 20, tzinfo=UTC))
    assert before.rows[0].unlisted == {"small": "training pairs withheld by an embargo"}
    assert "small" not in before.rows[0].scores
    assert [row.id for row in small(after).rows] == ["20261101-hidden"]


def test_what_is_stated_later_counts_from_then_on() -> None:
    log = board()
    stated = Efficiency(training_pairs=10)
    log.update("20261101-silent", make_manifest("Team", efficiency=stated, revision=2))
    assert by_name(small(stand(log)).rows)["silent"].rank == 1


def test_baselines_state_nothing_and_are_not_listed() -> None:
    log = board()
    log.baseline("20261101-bm25", "0.200")
    assert "20261101-bm25" in {row.id for row in small(stand(log)).unranked}


def test_the_ranks_do_not_depend_on_the_order_of_the_rows() -> None:
    standings = stand(board())
    turned = replace(standings, rows=standings.rows[::-1])
    assert [row.id for row in small(turned).rows] == [row.id for row in small(standings).rows]
