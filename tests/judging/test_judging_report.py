"""`heldout prefer report`: what it tells of a small campaign, and of one with hostile texts."""

import csv
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser
from small_study import make_study

import calling
import chromium
from drawings import texts
from heldout.errors import InputError
from heldout.judging.campaign.judgments import PairVotes
from heldout.judging.campaign.pools import Candidate, Pool, PoolSizes
from heldout.judging.labels.rescoring import ScoredLabels
from heldout.judging.studies.report import (
    draw_examples,
    histogram,
    implied_accuracy,
    render_judging_report,
)
from heldout.judging.studies.sample import score_sample
from heldout.scoring.measures import parse_measure
from heldout.trec.tops import RunPositions

browser = chromium.browser
HOSTILE = "<script>alert(1)</script> \u202egnp.exe\x1b[2J " + "x" * 3000


call = partial(calling.call, "prefer")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine queries are judged, and most people prefer d2."""
    folder = tmp_path_factory.mktemp("reported")
    passages = {"d1": "the known answer", "d2": HOSTILE, "d3": "=CMD()"}
    lines = "".join(f"{doc}\t{text}\n" for doc, text in passages.items())
    (folder / "documents.tsv").write_text(lines)
    options = ("--documents", folder / "documents.tsv", "--sample", 9)
    return make_study(
        folder, *options, upside_down="q11", judged=lambda n: "231" if n < 7 else "321"
    )


def write(folder: Path, out: Path, *more: object) -> dict[str, Any]:
    done = call(
        *("report", folder / "campaign", "--runs", folder / "*.run"),
        *("--qrels", folder / "known.qrels", "--trials", 50, "--redraws", 5),
        *("--out", out, "--json", *more),
    )
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_every_table_and_figure_of_the_study_is_there(folder: Path, tmp_path: Path) -> None:
    told = write(folder, tmp_path / "out", "--split", "A")

    assert told["not_made"] == {}
    found = json.loads((tmp_path / "out" / "report.json").read_text())["sections"]
    assert set(found) == {
        "examples", "categories", "pools", "runs", "contests", "judges", "labels"
    }  # fmt: skip
    page = (tmp_path / "out" / "index.html").read_text()
    for name in ("Figure 1", "Tables 1 and 2", "Figures 3 and 4", "Table 3", "Table 4", "Figure 6"):
        assert name in page
    assert page.count("<figure") == len(list((tmp_path / "out" / "charts").iterdir())) == 8
    tables = list((tmp_path / "out" / "tables").glob("*.csv"))
    assert len(tables) == page.count("<table") == len(list((tmp_path / "out").glob("*/*.tex")))
    # run A shows the known answer first and d2 second, but for q11; nobody prefers the known one
    category = found["categories"]["categories"]
    judged = [json.loads(row)["query"] for row in pools_of(folder)]
    assert category["A"]["queries"] == len([query for query in judged if query != "q11"])
    assert category["A"]["a_preferred"] == 0
    assert sum(found["pools"]["judged"]["histogram"].values()) == 9
    assert set(found["pools"]["judged"]["histogram"]) <= {"2", "3"}
    assert found["pools"]["all queries, 3 runs"]["queries"] == 12
    assert found["runs"]["queries"] == 12
    assert found["runs"]["judged"] == 9
    assert found["judges"]["why"] == "no unit has two ratings"


def pools_of(folder: Path) -> list[str]:
    return (folder / "campaign" / "pool.jsonl").read_text().splitlines()


def test_a_seed_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    told = write(folder, tmp_path / "one", "--seed", 5)
    write(folder, tmp_path / "two", "--seed", 5)
    for name in told["files"]:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_hostile_texts_are_text(folder: Path, tmp_path: Path) -> None:
    told = write(folder, tmp_path / "out", "--examples", 9)
    page = (tmp_path / "out" / "index.html").read_text()

    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    for name in told["files"]:
        text = (tmp_path / "out" / name).read_text()
        assert "\x1b" not in text
        assert name == "report.json" or "\u202e" not in text
    for table in (tmp_path / "out" / "tables").glob("*.csv"):
        with table.open(newline="") as file:
            assert not any(cell.startswith("=") for row in csv.reader(file) for cell in row)
    assert "default-src 'none'" in page
    assert not re.findall(r"(?:src|href)=\"(?!#)[^\"]*\"", page)


def test_what_cannot_be_told_says_why(folder: Path, tmp_path: Path) -> None:
    done = call("report", folder / "campaign", "--out", tmp_path / "out", "--json")

    missing = json.loads(done.stdout)["not_made"]
    assert set(missing) == {"categories", "runs"}
    assert "--runs" in missing["runs"]
    contests = json.loads((tmp_path / "out" / "report.json").read_text())["sections"]["contests"]
    assert (contests["family"], contests["wins"]["perfect"], contests["wins"]["B"]) == (6, 0, 3)


def test_judgments_alone_tell_agreement_and_labels(tmp_path: Path) -> None:
    (tmp_path / "few.pref").write_text("q a b a\nq a b b\nq b c b\n")
    done = call("report", "--judgments", tmp_path / "few.pref", "--out", tmp_path / "o", "--json")

    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["not_made"]) == {
        "examples", "categories", "runs", "contests"
    }  # fmt: skip


def test_a_run_that_is_not_there_cannot_be_split(folder: Path, tmp_path: Path) -> None:
    told = write(folder, tmp_path / "out", "--split", "nobody")

    assert "nobody" in told["not_made"]["categories"]


@pytest.mark.browser
@pytest.mark.slow
def test_the_page_has_no_violation_and_fits_a_phone(
    folder: Path, tmp_path: Path, browser: Browser
) -> None:
    write(folder, tmp_path / "out", "--split", "A")
    address = (tmp_path / "out" / "index.html").as_uri()
    colours = {"runOnly": ["color-contrast"]}
    for width, scheme, rules in ((1280, "light", colours), (390, "dark", {})):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = context.new_page()
        page.goto(address)
        found = Axe().run(page, options={"preload": False, **rules}).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        widths = page.locator(".passages p").evaluate_all("all => all.map(one => one.offsetWidth)")
        assert len(widths) == 6
        assert min(widths) > 250
        sizes = page.evaluate(_TEXT_SIZES)
        assert len(sizes) > 2
        assert 12 <= min(sizes) <= max(sizes) <= 16
        context.close()


_TEXT_SIZES = """[...document.querySelectorAll("figure svg")]
    .map(svg => [svg.getBoundingClientRect().width, svg.viewBox.baseVal.width, svg])
    .filter(([width]) => width > 0)
    .map(([width, drawn, svg]) => svg.getAttribute("font-size") * width / drawn)"""
"""How high the texts of each chart that is shown are, in CSS pixels."""


def rng(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def two(query: str) -> Pool:
    passages = tuple(Candidate(doc=doc, text=f"text of {doc}") for doc in "ab")
    return Pool(query=query, text=query, candidates=passages)


@given(st.integers(0, 99), st.lists(st.booleans(), min_size=5, max_size=5))
def test_what_people_said_does_not_change_which_pairs_are_drawn(
    seed: int, outcome: list[bool]
) -> None:
    pools = [two(f"q{n}") for n in range(5)]
    one, other = (
        {
            pool.query: {("a", "b"): PairVotes(first=int(first == turn), second=int(first != turn))}
            for pool, first in zip(pools, outcome, strict=True)
        }
        for turn in (True, False)
    )
    drawn = draw_examples(pools, one, rng(seed), count=3)
    again = draw_examples(pools, other, rng(seed), count=3)

    assert [found.query for found in drawn] == [found.query for found in again]
    assert all(a.first == b.second for a, b in zip(drawn, again, strict=True))
    assert len({found.query for found in drawn}) == 3
    assert all(found.votes == (1, 0) for found in drawn)


def test_a_page_without_a_section_is_a_page() -> None:
    files = render_judging_report((), name="<b>", words="none")
    assert "<b>" not in files["index.html"].decode()
    assert json.loads(files["report.json"]) == {"name": "<b>", "sections": {}}


@pytest.mark.parametrize("accuracy", [0.5, 0.657, 0.9, 1.0])
def test_the_accuracy_behind_agreement_is_found_again(accuracy: float) -> None:
    alike = accuracy**2 + (1 - accuracy) ** 2
    assert implied_accuracy(alike) == pytest.approx(accuracy, abs=1e-7)


def test_judges_who_differ_more_than_by_chance_have_no_accuracy() -> None:
    assert implied_accuracy(0.4) is None


@pytest.mark.parametrize("largest", [1, 2, 20, 21, 130, 12_345])
def test_a_histogram_of_any_size_has_few_ticks_that_are_whole(largest: int) -> None:
    shown = PoolSizes(queries=2, histogram={largest: 2}, mean=1.0, median=1.0, single=0, pairs=0)
    written = [text for text in texts(histogram(shown)) if text[0].isdigit()]
    assert 3 <= len(written) <= 21
    assert all(text.replace(",", "").isdigit() for text in written)


def place(**at: int) -> RunPositions:
    return RunPositions(
        found={query: {"d": place} for query, place in at.items()},
        retrieved=dict.fromkeys(at, 10),
    )


def test_a_sample_that_ranks_as_the_whole_has_tau_one_and_means_of_its_queries() -> None:
    labels = ScoredLabels(
        name="labels",
        labels={f"q{n}": {"d": 1} for n in range(4)},
        measure=parse_measure("RR@10"),
    )
    runs = {"good": place(q0=1, q1=1, q2=1, q3=2), "bad": place(q0=2, q1=2, q2=4)}
    found = score_sample(runs, labels, {"q0", "q1", "unlabelled"})

    assert [(one.run, one.every, one.sample) for one in found.runs] == [
        ("good", 3.5 / 4, 1.0), ("bad", 1.25 / 4, 0.5)
    ]  # fmt: skip
    assert (found.queries, found.judged, found.taus[0].tau) == (4, 2, 1.0)


@pytest.mark.parametrize("sample", [set(), {"other"}, {"q0", "q1"}])
def test_a_sample_of_nothing_or_of_everything_is_none(sample: set[str]) -> None:
    labels = ScoredLabels(
        name="labels", labels={"q0": {"d": 1}, "q1": {"d": 1}}, measure=parse_measure("RR@10")
    )
    with pytest.raises(InputError, match="no-common-query"):
        score_sample({"a": place(q0=1)}, labels, sample)


def test_a_report_without_out_goes_into_the_campaign(folder: Path) -> None:
    done = call("report", folder / "campaign")
    assert done.exit_code == 0, done.output
    assert (folder / "campaign" / "report" / "index.html").is_file()
    again = call("report", folder / "campaign")
    assert again.exit_code != 0
    assert "name a new folder with --out" in " ".join(again.output.split())


def test_a_report_of_files_alone_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "few.pref").write_text("q a b a\n")
    done = call("report", "--judgments", tmp_path / "few.pref")
    assert done.exit_code == 2
    assert "--out" in done.output
