"""Further views on the page: columns of the table, and standings by little training data."""

import json
from dataclasses import replace

import msgspec
from sample_boards import facts, row, spec, standings

from heldout.board.log.manifest import Efficiency
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.site.pages import make_board_page, render_board
from heldout.board.site.rows import make_columns, make_table
from heldout.board.standings.standings import Row


def board() -> BoardSpec:
    plain = spec()
    more = (
        View(
            name="worst", set="eval", measure="RR@10", facets="labels/eval.facets", summary="worst"
        ),
        View(name="small", set="eval", measure="RR@10", training_at_most=1000),
    )
    return msgspec.structs.replace(plain, views=(*plain.views, *more))


FEW = row("0.300", "0.310", days=1, efficiency=Efficiency(training_pairs=7))
MANY = row("0.400", "0.410", days=2, unlisted={"small": "training pairs not stated"})


def rows() -> tuple[Row, ...]:
    few = replace(FEW, scores={**FEW.scores, "worst": "0.111", "small": "0.300"})
    return few, replace(MANY, scores={**MANY.scores, "worst": "0.222"})


def test_further_views_are_columns_that_the_overview_does_not_show() -> None:
    table = make_table(standings(rows()), board())
    further = {column.key: column.further for column in table.columns}
    assert further == {"eval": False, "dev": False, "worst": True}
    shown = [[s.text for s in one.scores] for one in table.rows]
    assert shown == [["0.410", "0.222"], ["0.310", "0.111"]]
    page = render_board(standings(rows()), board(), facts())["leaderboard/index.html"].decode()
    assert 'id="columns-further"' in page
    assert page.count('<td role="cell" class="score further"') == 2
    assert "at most 1,000 training pairs</small>" not in page


def test_a_listing_ranks_by_itself_and_names_who_is_not_in_it() -> None:
    (listing,) = make_board_page(standings(rows()), board(), facts()).listings
    assert [(one.id, one.rank) for one in listing.rows] == [(FEW.id, 1)]
    assert [one.unranked for one in listing.unranked] == ["Training pairs not stated"]
    files = render_board(standings(rows()), board(), facts())
    document = json.loads(files["leaderboard/views/small.json"])
    assert [one["rank"] for one in document["rows"]] == [1, None]
    assert document["rows"][1]["why"]["scores.small"] == "training pairs not stated"
    whole = json.loads(files["leaderboard/leaderboard.json"])
    assert [one["scores"]["small"] for one in whole["rows"]] == [None, 0.3]


def test_a_column_says_which_part_it_is() -> None:
    titles = [column.title for column in make_columns(board())]
    assert "eval RR@10, worst group" in titles
    assert "eval RR@10, at most 1,000 training pairs" in titles


def relabelled() -> tuple[BoardSpec, tuple[Row, ...]]:
    plain = spec()
    names = ("eval-pref-1", "eval-pref-2")
    more = tuple(View(name=n, set="eval", measure="RR@10", labels=n) for n in names)
    told = [("0.400", "0.500", "0.100"), ("0.300", "0.400", "0.200"), ("0.200", "0.300", "0.300")]
    found = tuple(
        replace(
            one := row(first, "0.310", days=days),
            scores={**one.scores, "eval-pref-1": second, "eval-pref-2": third},
        )
        for days, (first, second, third) in enumerate(told)
    )
    return msgspec.structs.replace(plain, views=(*plain.views, *more)), found


def test_a_view_on_another_version_of_the_labels_has_a_column() -> None:
    board, found = relabelled()
    page = make_board_page(standings(found), board, facts())
    parts = [column.part for column in page.table.columns if column.further]
    assert parts == ["labels eval-pref-1", "labels eval-pref-2"]


def informing() -> BoardSpec:
    plain = spec()
    dev, ranks = plain.views
    more = (
        dev,
        msgspec.structs.replace(ranks, part="deciding"),
        View(name="hint", set="eval", measure="RR@10", part="feedback"),
        View(name="check", set="eval", measure="nDCG@10", noise=10),
    )
    return msgspec.structs.replace(plain, views=more)


def test_columns_for_information_say_so_on_the_page_and_in_its_files() -> None:
    scores = {"eval": "0.400", "dev": "0.310", "hint": "0.900", "check": "-0.020"}
    held = replace(row("0.400", "0.310"), scores=scores)
    page = make_board_page(standings((FEW, held)), informing(), facts())
    assert [column.title for column in page.table.columns] == [
        "eval RR@10, deciding part",
        "dev RR@10",
        "eval RR@10, feedback (for information only)",
        "eval nDCG@10, with noise (for information only)",
    ]
    files = render_board(standings((FEW, held)), informing(), facts())
    text = " ".join(files["leaderboard/index.html"].decode().split())
    for said in (
        "A mean over the judged queries in the deciding part of eval",
        "A mean over the judged queries in the feedback part of eval",
        "With noise of 10 standard errors, a check that the run works. It does not affect the",
        "A secret 25% of the queries of eval are for feedback",
        "Every score in check is published with noise of 10 standard errors",
        "-0.020",
    ):
        assert said in text, said
    whole = json.loads(files["leaderboard/leaderboard.json"])
    assert whole["for_information"].keys() == {"hint", "check"}
    assert [one["scores"]["check"] for one in whole["rows"]] == [-0.02, None]
    head = files["leaderboard/leaderboard.csv"].decode().splitlines()[0].split(",")
    told = {f"{name} (for information only)" for name in ("hint", "check")}
    assert {"eval", "dev", *told} <= set(head)


def test_a_plain_board_s_page_and_files_say_nothing_of_further_views_and_parts() -> None:
    page = make_board_page(standings((FEW,)), spec(), facts())
    assert (page.table.further, page.listings) == (False, ())
    files = render_board(standings((FEW,)), spec(), facts())
    assert "for_information" not in json.loads(files["leaderboard/leaderboard.json"])
    for name in ("index.html", "leaderboard.csv"):
        assert b"for information only" not in files[f"leaderboard/{name}"]
