"""The section "Final": who is in it, who wins and why, and nothing of an embargo."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from page_documents import Document
from sample_boards import FINAL_SCORES, facts, final_spec, finals, spec, standings

from heldout.board.log.final import OpenedFinal
from heldout.board.site.pages import render_board
from heldout.board.site.sections import make_final
from heldout.board.standings.standings import Standings


def says(board: Standings) -> list[str]:
    page = render_board(board, final_spec(), facts())["leaderboard/index.html"].decode()
    found = re.findall(r'<p class="final-says">(.*?)</p>', page, re.DOTALL)
    return [" ".join(Document(one.encode()).text.split()) for one in found]


def opened(board: Standings) -> OpenedFinal:
    assert board.final is not None
    assert board.final.opened is not None
    return board.final.opened


def with_opened(board: Standings, **changes: object) -> Standings:
    assert board.final is not None
    again = replace(opened(board), **changes)  # type: ignore[arg-type]
    return replace(board, final=replace(board.final, openings=(again,)))


def test_a_board_without_finalists_has_no_section() -> None:
    board = standings([])
    assert make_final(board, spec()) is None
    assert make_final(replace(finals(), final=None), final_spec()) is None
    assert (
        b'id="final"' not in render_board(standings([]), spec(), facts())["leaderboard/index.html"]
    )


def test_the_finalists_stand_in_the_order_of_receipt_before_the_opening() -> None:
    board = finals(opened=False)
    section = make_final(board, final_spec())
    assert section is not None
    assert [one.row.id for one in section.rows] == [row.id for row in board.finalists]
    assert {(one.score, one.mark) for one in section.rows} == {("", "")}
    (sentence,) = says(board)
    assert sentence.startswith("6 finalists are named. After 31 Mar 2027 their scores on queries")


def test_the_winner_is_the_earliest_that_is_not_clearly_below_the_best() -> None:
    board = finals()
    section = make_final(board, final_spec())
    assert section is not None
    assert [one.score for one in section.rows] == sorted(FINAL_SCORES, reverse=True)
    marks = {one.row.id: one.mark for one in section.rows}
    ids = [row.id for row in board.finalists]
    assert marks[ids[0]] == "winner"
    assert [name for name in ids if marks[name] == "clearly below the best"] == ids[3:5]
    won, luck = says(board)
    assert "wins with 0.402 RR@10: it is the earliest finalist that is not clearly below" in won
    assert "with 0.423. The scores came once, on 19 Nov 2026, from 1,000 queries never used" in won
    assert "of 6 equally good finalists the highest score lies 0.0068 RR@10 above its worth" in luck
    assert "where they come in clusters" in luck


def test_a_final_that_was_scored_again_says_who_had_won_and_why() -> None:
    page = Document(
        render_board(finals(again=True), final_spec(), facts())["leaderboard/index.html"]
    )
    text = " ".join(page.text.split())
    assert "won with 0.402. Scored again on 20 Nov 2026: Two labels were wrong." in text
    assert "wins with 0.417" in text
    assert "came first on 19 Nov 2026, from 1,000 queries never used before, and again on" in text


def test_an_embargoed_finalist_is_anonymous_in_every_file() -> None:
    board = finals()
    (hidden,) = (row.id for row in board.finalists if row.embargoed)
    board = with_opened(board, winner=hidden, best=hidden)
    files = render_board(board, final_spec(), facts())
    text = " ".join(Document(files["leaderboard/index.html"]).text.split())
    assert "An anonymous entry wins with " in text


def test_exports_and_entry_pages_have_the_scores_of_finalists_alone() -> None:
    board = finals()
    files = render_board(board, final_spec(), facts())
    told = json.loads(files["leaderboard/leaderboard.json"])["final"]
    ids = [row.id for row in board.finalists]
    assert told["scores"] == dict(zip(ids, map(float, FINAL_SCORES), strict=True))
    assert (told["winner"], told["luck"], told["clearly_below"]) == (ids[0], 0.0068, ids[3:5])
    table = list(csv.DictReader(io.StringIO(files["leaderboard/leaderboard.csv"].decode())))
    scored = {row["id"]: row["final"] for row in table if row["final"]}
    assert scored == dict(zip(ids, FINAL_SCORES, strict=True))
    page = Document(files[f"leaderboard/entries/{ids[0]}.html"]).text
    assert "mean over 1,000 queries; the winner of the final" in page
    before = render_board(finals(opened=False), final_spec(), facts())
    assert "scores" not in json.loads(before["leaderboard/leaderboard.json"])["final"]
    assert b"final RR@10" not in before[f"leaderboard/entries/{ids[0]}.html"]
    assert not any(score.encode() in before["leaderboard/index.html"] for score in ("0.0068",))


def test_the_feed_has_the_winner_and_no_name_under_embargo() -> None:
    board = finals(again=True)
    feed = render_board(board, final_spec(), facts())["leaderboard/feed.xml"].decode()
    assert feed.count("Winner of the final: duoT5 over Lantern v2 top 50") == 2
    assert "top 50, 0.402</title>" in feed
    assert "top 50, tuned, 0.417</title>" in feed
    assert "Two labels were wrong." in feed
    hidden = next(row.id for row in board.finalists if row.embargoed)
    board = with_opened(finals(), winner=hidden)
    feed = render_board(board, final_spec(), facts())["leaderboard/feed.xml"].decode()
    assert "Winner of the final: an anonymous entry, 0." in feed


@pytest.mark.parametrize("words", ["<script>alert(1)</script>", "\u202egnp.exe"])
def test_a_reason_is_text(words: str) -> None:
    board = finals(again=True)
    assert board.final is not None
    first, second = board.final.openings
    board = replace(board, final=replace(board.final, openings=(first, replace(second, why=words))))
    page = render_board(board, final_spec(), facts())["leaderboard/index.html"].decode()
    assert words not in page
