"""The charts of a board's scores: records, baselines, names, hostile ones too."""

import re
from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_boards import HOSTILE

from drawings import root_of, texts, tips
from heldout.answers.text import clean
from heldout.charts.axes import day_axis, score_axis
from heldout.charts.plot import Plot, inline
from heldout.charts.scores import ChartEntry, progress_chart, scatter_chart

TODAY = date(2026, 11, 20)
SCORES = st.floats(0, 1, allow_subnormal=False)


def entries(label: str = "S") -> list[ChartEntry]:
    made = [
        ChartEntry(
            label=f"{label}{n}",
            day=date(2026, 1, 1) + timedelta(days=20 * n),
            score=0.3 + 0.01 * n,
            other=0.32 + 0.01 * n,
            record=n % 2 == 0,
        )
        for n in range(9)
    ]
    base = ChartEntry(label="BM25", day=date(2026, 1, 1), score=0.27, other=0.28, baseline=True)
    return [base, *made]


def progress(of: list[ChartEntry]) -> Plot:
    return progress_chart(of, until=TODAY, head="eval RR@10")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_labels_stay_text(name: str) -> None:
    label = clean(HOSTILE[name])
    chart = progress(entries(label))
    assert {e.tag for e in root_of(chart).iter()} <= {"svg", "g", "path", "circle", "text", "title"}
    assert f"{label}8" in tips(chart)


def test_the_line_of_records_goes_in_steps_until_today() -> None:
    drawn = inline(progress(entries()), 720)
    found = re.search(r'<path d="M([^"]+)" fill="none" stroke="var\(--record\)"', drawn)
    assert found
    corners = [tuple(map(float, corner.split())) for corner in found[1].split("L")]
    assert len(corners) == 5 + 4 + 1
    assert all(x0 == x1 or y0 == y1 for (x0, y0), (x1, y1) in pairwise(corners))
    assert all(y1 <= y0 for (_, y0), (_, y1) in pairwise(corners))
    assert corners[-1][0] > corners[-2][0]


def test_an_entry_without_dev_score_is_left_out_of_the_scatter() -> None:
    some = [*entries(), ChartEntry(label="no dev", day=TODAY, score=0.9)]
    assert "no dev" not in tips(scatter_chart(some, ratio=None, head="RR@10", foot="dev"))


@given(st.lists(SCORES, min_size=1, max_size=20), st.integers(2, 12))
def test_score_ticks_are_few_round_and_inside(values: list[float], most: int) -> None:
    axis = score_axis(values)
    ticks = axis.ticks(most)
    assert axis.low < min(values) <= max(values) < axis.high
    assert len(ticks) <= most
    assert all(axis.low <= t.at <= axis.high for t in ticks)
    assert len({t.label for t in ticks}) == len(ticks)
    assert all(float(t.label.replace("−", "-").replace(",", "")) == t.at for t in ticks)


@given(st.dates(date(2000, 1, 1), date(2030, 1, 1)), st.integers(0, 4000), st.integers(2, 12))
def test_day_ticks_are_few_and_inside(start: date, days: int, most: int) -> None:
    end = start + timedelta(days=days)
    ticks = day_axis(start, end).ticks(most)
    assert len(ticks) <= most
    assert all(start.toordinal() <= t.at <= end.toordinal() for t in ticks)
    assert len({t.label for t in ticks}) == len(ticks)


def test_of_a_day_with_many_records_the_best_is_named() -> None:
    days = [date(2026, 1, 1), date(2026, 5, 1), date(2026, 9, 1)]
    crowd = [
        ChartEntry(label=f"run{d}_{n}", day=day, score=0.1 + 0.2 * d + 0.02 * n, record=True)
        for d, day in enumerate(days)
        for n in range(8)
    ]
    written = texts(progress(crowd))
    assert {"run0_7", "run1_7", "run2_7"} <= {*written}
    assert "run1_4" not in written
