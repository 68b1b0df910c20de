"""The organisers' report: every analysis of every view, and a reason where there is none."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from numpy.random import default_rng
from simulated_boards import board_of, entries_of, view_of

from heldout.analyses import facets as report_facets
from heldout.analyses import power as report_power
from heldout.analyses.analysis import Draws
from heldout.analyses.entries import BoardScores, ViewScores
from heldout.analyses.facets import FacetsOptions, compare_facets
from heldout.analyses.power import PowerOptions, plan_power
from heldout.analyses.reliability import ReliabilityOptions
from heldout.analyses.report import Chapter, Heading, Kinds, render_report, write_chapters
from heldout.analyses.stability import StabilityOptions, rank_ranges
from heldout.answers.answer import Answer
from heldout.answers.table import Column, Table
from heldout.errors import InputError
from heldout.scoring.table import table_of

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
HEADING = Heading(board="A board", entries=6, as_of=NOW, seed=0)
DRAWS = Draws()
FEWER = {
    "stability": StabilityOptions(trials=50, flips=199),
    "reliability": ReliabilityOptions(splits=5),
    "power": PowerOptions(trials=50),
    "facets": FacetsOptions(draws=99),
}
KINDS = Kinds(queries={"low": frozenset(f"q{n}" for n in range(12))}, least=5)
SYSTEMS = tuple(f"202611{day:02}-run{day}" for day in range(1, 7))


def view(name: str, *, measure: str = "RR@10", public: bool = True) -> ViewScores:
    rng = default_rng(sum(map(ord, name)))
    ranks = rng.integers(1, 12, (len(SYSTEMS), 24))
    rows = dict(zip(SYSTEMS, np.where(ranks > 10, 0, 1 / ranks), strict=True))
    made = view_of(name, rows, public=public, held_out=name != "dev")
    return replace(made, measure=measure)


def board(*views: ViewScores) -> BoardScores:
    return board_of(entries_of(SYSTEMS, teams=["team0", "team1"] * 3), *views)


FULL = board(view("eval"), view("dev"), view("reserve", public=False))


def write(of: BoardScores, *, draws: Draws = DRAWS, **more: Any) -> Iterator[Chapter]:
    return write_chapters(of, draws=draws, options=FEWER, **more)


def chapters(of: BoardScores, *, draws: Draws = DRAWS) -> dict[str, Chapter]:
    made = write(of, draws=draws, kinds=KINDS)
    return {one.name: one for one in made}


def test_every_view_has_its_chapters_the_reserve_too() -> None:
    made = chapters(FULL)

    assert all(chapter.answer is not None for chapter in made.values())
    assert {f"view-3-{name}" for name in ("stability", "outcomes", "power", "facets")} < set(made)
    assert made["view-3-stability"].title == "Ranks: reserve RR@10, reserve"
    assert made["view-1-stability"].title == "Ranks: eval RR@10, public"
    assert list(made)[-4:] == ["views", "progress", "drift", "teams"]
    assert made["views"].answer is not None


def test_the_ranges_are_those_of_the_command_with_the_same_seed() -> None:
    draws = replace(DRAWS, seed=7)
    found: Any = chapters(FULL, draws=draws)["view-2-stability"].answer
    table = FULL.view("dev").table
    assert table is not None

    ranges = rank_ranges(table, draws.rng(), flips=199)
    expected = [
        str(low) if low == high else f"{low}–{high}"
        for low, high in zip(ranges.low, ranges.high, strict=True)
    ]
    assert [row[1] for row in found.tables[0].rows] == expected


def test_means_alone_and_no_reserve_are_said_and_stop_nothing() -> None:
    bare = replace(view("eval"), table=None)
    made = chapters(board(bare, view("dev")))

    assert made["view-1-stability"].answer is None
    assert made["view-1-stability"].why_not == "means alone; this needs a score for each query"
    assert made["view-2-stability"].answer is not None
    assert "public = false" in made["teams"].why_not
    files = render_report(HEADING, tuple(made.values()))
    page, markdown = (files[name].decode() for name in ("index.html", "report.md"))
    assert 'href="#view-2-stability"' in page
    assert 'href="#view-1-stability"' not in page
    for text in (page, markdown):
        _, _, left_out = text.partition("What is not in this report?")
        assert left_out.count("means alone; this needs a score for each query") >= 1
        assert "Ranks: eval RR@10, public" in left_out


def test_no_outcomes_are_counted_from_another_measure() -> None:
    made = chapters(board(view("eval", measure="nDCG@10"), view("dev")))

    reason = "nDCG@10; this needs a reciprocal rank, from which outcomes are counted"
    assert made["view-1-outcomes"].why_not == reason
    assert made["view-2-outcomes"].answer is not None


def test_facets_power_and_scales_are_those_of_their_commands() -> None:
    made = chapters(FULL)
    table = FULL.view("dev").table
    assert table is not None
    found: dict[str, Any] = {
        name: made[name].answer for name in ("view-2-facets", "view-2-power", "scale-1")
    }

    by_kind = compare_facets(table, KINDS.queries, DRAWS.rng(), FacetsOptions(draws=99), least=5)
    planned = plan_power(table, DRAWS.rng(), PowerOptions(trials=50))
    assert found["view-2-facets"].tables == report_facets.tables(by_kind, measure="RR@10")
    assert found["view-2-power"].tables == report_power.tables(planned, measure="RR@10")
    assert ("measure", "RR@10") in found["scale-1"].summary
    assert "scale-2" not in made


def test_without_a_facet_the_report_asks_for_one_once() -> None:
    made = list(write(FULL))
    (asked,) = (chapter for chapter in made if "facets" in chapter.name)
    assert asked.why_not == "no facet is named; this needs --facet FACET"


def test_a_measure_without_a_scale_is_said() -> None:
    made = chapters(board(view("eval", measure="AP"), view("dev")))
    assert made["scale-1"].why_not == "no cutoff; this needs lists of one length"


def test_a_single_system_has_a_report_of_reasons() -> None:
    one: Any = view("eval")
    name = SYSTEMS[0]
    row = dict(zip(one.table.queries, one.table.values[0].tolist(), strict=True))
    lonely = replace(one, means={name: one.means[name]}, table=table_of({name: row}))
    made = chapters(board(lonely))

    assert "1 system" in made["view-1-stability"].why_not
    assert made["view-1-reliability"].answer is None
    assert made["view-1-outcomes"].answer is None


def test_a_view_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        list(write(FULL, view="none"))
    assert refused.value.problems[0].code == "no-view"


def test_every_table_and_picture_is_a_file_and_on_the_page() -> None:
    made = tuple(write(FULL))
    files = render_report(HEADING, made)
    found = [(chapter.name, chapter.answer) for chapter in made if chapter.answer is not None]

    tables = {f"tables/{name}-{n + 1}.csv" for name, f in found for n in range(len(f.tables))}
    charts = {f"charts/{name}.svg" for name, f in found if f.chart is not None}
    assert set(files) == {"index.html", "report.md"} | tables | charts
    page, markdown = files["index.html"].decode(), files["report.md"].decode()
    assert page.count("<table ") == len(tables)
    assert page.count('<figure class="drawn"') == len(charts)
    for chart in charts:
        assert f"]({chart})" in markdown
        ET.fromstring(files[chart])  # noqa: S314 - our own output


def test_the_page_asks_nothing_of_anybody() -> None:
    page = render_report(HEADING, tuple(write(FULL)))
    text = page["index.html"].decode()

    assert "default-src 'none'" in text
    assert "<script" not in text
    assert not re.findall(r"(?:src|href)=\"(?!#)[^\"]*\"", text)


def test_hostile_names_are_text_on_the_page_in_markdown_and_in_a_spreadsheet() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    table = Table(
        title=hostile,
        columns=(Column(name="system"), Column(name="gain", form="difference")),
        rows=(("=HYPERLINK(1)", -0.25), (hostile, None), ("a\u202eb\x1b[2J", 0.5)),
    )
    chapter = Chapter(
        name="x",
        title=hostile,
        answer=Answer(
            answer=f"{hostile} leads.", tables=(table,), summary=((hostile, hostile),), document={}
        ),
    )
    files = render_report(replace(HEADING, board=hostile), (chapter,))

    assert "<img" not in files["index.html"].decode()
    assert "<img" not in files["report.md"].decode().replace(r"\<img", "")
    rows = list(csv.reader(io.StringIO(files["tables/x-1.csv"].decode(), newline="")))
    assert rows[1:] == [["'=HYPERLINK(1)", "-0.25"], [hostile, ""], ["ab [2J", "0.5"]]
    for data in files.values():
        assert "\x1b" not in data.decode()
        assert "\u202e" not in data.decode()


def test_a_fact_that_goes_on_with_the_one_above_has_no_empty_name() -> None:
    summary = (("lead", "a"), ("", "of 3"), ("", "of 4"))
    answer = Answer(answer="a leads.", summary=summary, tables=(), document={})
    chapter = Chapter(name="one", title="One", answer=answer)
    files = render_report(HEADING, (chapter,))

    assert "a leads.\n\n- lead: a\n  - of 3\n  - of 4\n" in files["report.md"].decode()
    assert "<dt></dt>" not in files["index.html"].decode()
    assert "<dd>of 4</dd>" in files["index.html"].decode()


def test_no_fact_of_a_whole_report_has_an_empty_name() -> None:
    files = render_report(HEADING, tuple(write(FULL)))
    assert "\n- : " not in files["report.md"].decode()
