"""Charts: equal bytes everywhere, nothing foreign in them, labels that do not collide."""

import json
import re
from datetime import date, timedelta
from itertools import combinations, pairwise
from math import hypot
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_boards import HOSTILE

from heldout.board.site.words import clean
from heldout.charts.axes import day_ticks, milliseconds, score_span, score_ticks
from heldout.charts.labels import Box, Line, Spot, box_of, cut, place_labels, text_width
from heldout.charts.plot import Names, Point, progress_spec, scatter_spec
from heldout.charts.svg import COLOURS, Canvas, _rewrite, draw

CANVAS = Canvas(width=600, height=240)
NAMES = Names(y="eval RR@10", x="dev RR@10")
TODAY = date(2026, 11, 20)
SCORES = st.floats(0, 1, allow_subnormal=False)


def points(label: str = "S") -> list[Point]:
    made = [
        Point(
            label=f"{label}{n}",
            day=date(2026, 1, 1) + timedelta(days=20 * n),
            score=0.3 + 0.01 * n,
            other=0.32 + 0.01 * n,
            record=n % 2 == 0,
        )
        for n in range(9)
    ]
    base = Point(label="BM25", day=date(2026, 1, 1), score=0.27, other=0.28, baseline=True)
    return [base, *made]


def progress(of: list[Point]) -> str:
    return draw(progress_spec(of, CANVAS, until=TODAY, names=NAMES))


def test_equal_charts_are_equal_bytes() -> None:
    first = progress(points())
    draw(scatter_spec(points(), CANVAS, ratio=0.9, names=NAMES))
    assert progress(points()) == first


def test_only_known_elements_and_attributes_come_through() -> None:
    for svg in (progress(points()), draw(scatter_spec(points(), CANVAS, ratio=0.9, names=NAMES))):
        root = ET.fromstring(svg)  # noqa: S314 - our own output
        assert {e.tag for e in root.iter()} <= {"svg", "g", "path", "line", "text", "title", "rect"}
        names = {name for e in root.iter() for name in e.attrib}
        assert names <= {
            *("viewBox", "aria-hidden", "transform", "d", "fill", "stroke", "stroke-width"),
            *("stroke-dasharray", "stroke-linejoin", "x1", "x2", "y1", "y2", "text-anchor"),
            *("font-size", "paint-order", "x", "y", "width", "height"),
        }
        colours = {e.attrib[n] for e in root.iter() for n in ("fill", "stroke") if n in e.attrib}
        assert colours <= {"none", *COLOURS.values()}
        assert "url(" not in svg
        assert "http" not in svg


def test_what_a_chart_cannot_have_is_dropped() -> None:
    foreign = ET.fromstring(  # noqa: S314 - a literal
        '<svg viewBox="0 0 1 1"><script>x</script><a href="javascript:x"><path d="M0,0"/></a>'
        '<image href="http://x"/><path d="M0,0L1,1" stroke="#123456" onload="x" style="x"/>'
        '<path d="M0,0L1,1" stroke="#000001" onload="x" style="x"/></svg>'
    )
    made = _rewrite(foreign)
    assert made is not None
    assert [(e.tag, e.attrib) for e in made] == [
        ("path", {"d": "M0,0L1,1", "fill": "none", "stroke": "var(--ink)"})
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_labels_stay_text(name: str) -> None:
    label = clean(HOSTILE[name])
    root = ET.fromstring(progress(points(label)))  # noqa: S314 - our own output
    assert {e.tag for e in root.iter()} <= {"svg", "g", "path", "line", "text", "title"}
    assert f"{label}8" in {e.text for e in root.iter("title")}


def _drawn_line(svg: str) -> list[tuple[float, float]]:
    found = re.search(r'<path d="M([^"]+)" fill="none" stroke="var\(--record\)"', svg)
    assert found
    pairs = [corner.split(",") for corner in found[1].split("L")]
    return [(float(x), float(y)) for x, y in pairs]


def test_the_line_of_records_goes_in_steps_until_today() -> None:
    corners = _drawn_line(progress(points()))
    assert len(corners) == 5 + 4 + 1
    assert all(x0 == x1 or y0 == y1 for (x0, y0), (x1, y1) in pairwise(corners))
    assert all(y1 <= y0 for (_, y0), (_, y1) in pairwise(corners))
    assert corners[-1][0] > corners[-2][0]


def test_marks_tell_records_from_others() -> None:
    root = ET.fromstring(progress(points()))  # noqa: S314 - our own output
    fills: dict[str, list[str]] = {}
    for e in root.iter("path"):
        title = e.find("title")
        if title is not None:
            fills.setdefault(e.attrib["fill"], []).append(str(title.text))
    assert fills == {
        "var(--paper)": ["S1", "S3", "S5", "S7"],
        "var(--record)": ["S0", "S2", "S4", "S6", "S8"],
    }


def test_a_point_without_dev_score_is_left_out_of_the_scatter() -> None:
    some = [*points(), Point(label="no dev", day=TODAY, score=0.9)]
    assert "no dev" not in draw(scatter_spec(some, CANVAS, ratio=None, names=NAMES))


def test_one_entry_today_can_be_drawn() -> None:
    only = [Point(label="first", day=TODAY, score=0.4, other=0.4, record=True)]
    assert "first" in progress(only)
    assert "<svg" in draw(scatter_spec(only, CANVAS, ratio=1.0, names=NAMES))


def test_only_baselines_can_be_drawn() -> None:
    assert "BM25" in progress(points()[:1])


@given(st.lists(SCORES, min_size=1, max_size=20), st.integers(2, 12))
def test_score_ticks_are_few_round_and_inside(values: list[float], most: int) -> None:
    low, high = score_span(values)
    assert low < min(values)
    assert high > max(values)
    ticks = score_ticks((low, high), most=most)
    assert len(ticks) <= most
    assert all(low <= t.at <= high for t in ticks)
    assert len({t.label for t in ticks}) == len(ticks)
    assert all(float(t.label) == t.at for t in ticks)


def test_score_ticks_are_what_one_would_write() -> None:
    assert [t.label for t in score_ticks((0.24, 0.42), most=5)] == ["0.25", "0.30", "0.35", "0.40"]


@given(st.dates(date(2000, 1, 1), date(2030, 1, 1)), st.integers(0, 4000), st.integers(2, 12))
def test_day_ticks_are_few_and_inside(start: date, days: int, most: int) -> None:
    end = start + timedelta(days=days)
    ticks = day_ticks(start, end, most=most)
    assert len(ticks) <= most
    assert all(milliseconds(start) <= t.at <= milliseconds(end) for t in ticks)
    assert len({t.label for t in ticks}) == len(ticks)


def test_day_ticks_are_what_one_would_write() -> None:
    def labels(start: date, end: date, most: int) -> list[str]:
        return [t.label for t in day_ticks(start, end, most=most)]

    assert labels(date(2026, 11, 1), date(2026, 11, 4), 5) == ["1 Nov", "2 Nov", "3 Nov", "4 Nov"]
    assert labels(date(2026, 1, 5), date(2026, 11, 20), 4) == ["Apr 2026", "Jul 2026", "Oct 2026"]
    assert labels(date(2019, 6, 1), date(2026, 1, 1), 4) == ["2020", "2022", "2024", "2026"]
    assert labels(date(1000, 1, 1), date(2900, 1, 1), 2) == []


AREA = Box(left=0, top=0, right=400, bottom=200)
SPOTS = st.builds(
    Spot,
    x=st.floats(0, 400),
    y=st.floats(0, 200),
    text=st.text("abc", max_size=30),
)
LINES = st.builds(Line, y=st.floats(0, 200), text=st.text("abc", min_size=1, max_size=30))


@settings(max_examples=60)
@given(st.lists(SPOTS, max_size=12), st.lists(LINES, max_size=3))
def test_labels_never_overlap_and_never_leave(spots: list[Spot], lines: list[Line]) -> None:
    taken = Box(left=0, top=90, right=400, bottom=110)
    labels = place_labels([*spots, *lines], [taken], size=13, area=AREA)
    boxes = [box_of(label, 13) for label in labels]
    marks = [Box(left=s.x - 6, top=s.y - 6, right=s.x + 6, bottom=s.y + 6) for s in spots]
    levels = [Box(left=0, top=v.y - 1, right=400, bottom=v.y + 1) for v in lines]
    assert not [1 for a, b in combinations([taken, *boxes], 2) if a.overlaps(b)]
    assert not [1 for a in boxes for b in (*marks, *levels) if a.overlaps(b)]
    assert all(b.left >= 0 and b.right <= 400 and b.top >= 0 and b.bottom <= 200 for b in boxes)


@settings(max_examples=60)
@given(st.lists(SPOTS, max_size=12, unique_by=lambda spot: spot.text))
def test_a_label_is_nearest_to_its_own_mark(spots: list[Spot]) -> None:
    for label in place_labels(spots, [], size=13, area=AREA):
        nearest = min(spots, key=lambda s: hypot(s.x - label.x, s.y - label.y))
        assert label.text == nearest.text != ""


def test_a_lone_spot_gets_its_label() -> None:
    (label,) = place_labels([Spot(x=200, y=100, text="abc")], [], size=13, area=AREA)
    assert (label.text, label.align) == ("abc", "right")
    (right,) = place_labels([Spot(x=5, y=100, text="abc")], [], size=13, area=AREA)
    assert right.align == "left"


def test_the_first_spots_come_first() -> None:
    stack = [Spot(x=200, y=100 + 4 * n, text=f"run{n}") for n in range(8)]
    names = [label.text for label in place_labels(stack, [], size=13, area=AREA)]
    assert names == ["run0", "run7"]


def test_a_line_has_its_name_at_its_right_end_or_where_there_is_room() -> None:
    line = Line(y=100, text="BM25")
    (label,) = place_labels([line], [], size=13, area=AREA)
    assert (label.x, label.y) == (400, 91)
    busy_end = [Spot(x=390, y=y, text="") for y in (92, 108)]
    (moved,) = place_labels([line, *busy_end], [], size=13, area=AREA)
    assert moved.x < 390
    full = [Box(left=0, top=0, right=400, bottom=200)]
    assert place_labels([line], full, size=13, area=AREA) == ()


def texts_of(svg: str) -> set[str]:
    root = ET.fromstring(svg)  # noqa: S314 - our own output
    return {str(e.text) for e in root.iter("text")}


def test_of_a_day_with_many_records_the_best_is_named() -> None:
    days = [date(2026, 1, 1), date(2026, 5, 1), date(2026, 9, 1)]
    crowd = [
        Point(label=f"run{d}_{n}", day=day, score=0.1 + 0.2 * d + 0.02 * n, record=True)
        for d, day in enumerate(days)
        for n in range(8)
    ]
    assert {"run0_7", "run1_7", "run2_7"} <= texts_of(progress(crowd))
    assert "run1_4" not in texts_of(progress(crowd))


def test_a_record_just_above_a_baseline_is_named() -> None:
    base = Point(label="BM25", day=date(2026, 9, 1), score=0.309, baseline=True)
    low = Point(label="TF-IDF", day=date(2026, 9, 1), score=0.184)
    first = Point(label="Query likelihood", day=date(2026, 10, 10), score=0.314, record=True)
    assert {"BM25", "Query likelihood"} <= texts_of(progress([base, low, first]))


@given(st.dates(date(2020, 1, 1), date(2026, 1, 1)), st.integers(0, 2000))
def test_no_label_of_the_time_axis_is_cut_off(start: date, days: int) -> None:
    until = start + timedelta(days=days)
    only = [Point(label="a", day=start, score=0.4, record=True)]
    chart = progress_spec(only, CANVAS, until=until, names=NAMES)
    axis = chart["layer"][0]["encoding"]["x"]
    low, high = axis["scale"]["domain"]
    labels = json.loads(axis["axis"]["labelExpr"].partition("[round")[0])
    for at, label in zip(axis["axis"]["values"], labels, strict=True):
        middle = (at - low) / (high - low) * CANVAS.width
        assert middle + text_width(label, 13) / 2 <= CANVAS.width + CANVAS.right


def test_a_long_name_is_cut() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abc defg", 5) == "abc…"
