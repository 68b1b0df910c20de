"""Names in charts lie on nothing else, and each is nearest to its own mark."""

from dataclasses import replace
from itertools import combinations
from math import hypot

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.charts.svg import Box, LevelLine, Spot, box_of, fit_labels

AREA = Box(left=0, top=0, right=400, bottom=200)
SPOTS = st.builds(
    Spot,
    x=st.floats(0, 400),
    y=st.floats(0, 200),
    text=st.text("abc", max_size=30),
    must=st.booleans(),
)
LINES = st.builds(LevelLine, y=st.floats(0, 200), text=st.text("xyz", min_size=1, max_size=30))


@given(st.lists(SPOTS, max_size=12), st.lists(LINES, max_size=3))
def test_labels_never_overlap_and_never_leave(spots: list[Spot], lines: list[LevelLine]) -> None:
    taken = Box(left=0, top=90, right=400, bottom=110)
    labels = fit_labels([*spots, *lines], [taken], area=AREA)
    boxes = [box_of(label) for label in labels]
    marks = [Box(left=s.x - 6, top=s.y - 6, right=s.x + 6, bottom=s.y + 6) for s in spots]
    levels = [Box(left=0, top=v.y - 1, right=400, bottom=v.y + 1) for v in lines]
    assert not [1 for a, b in combinations([taken, *boxes], 2) if a.overlaps(b)]
    assert not [1 for a in boxes for b in levels if a.overlaps(b)]
    of_spots = [
        box for box, label in zip(boxes, labels, strict=True) if not {*label.text} & {*"xyz"}
    ]
    assert not [1 for a in of_spots for b in marks if a.overlaps(b)]
    assert all(b.left >= 0 and b.right <= 400 and b.top >= 0 and b.bottom <= 200 for b in boxes)


@given(st.lists(SPOTS, max_size=12, unique_by=lambda spot: spot.text))
def test_a_label_is_nearest_to_its_own_mark(spots: list[Spot]) -> None:
    for label in fit_labels(spots, [], area=AREA):
        if label.to is None:
            nearest = min(spots, key=lambda s: hypot(s.x - label.x, s.y - label.y))
            assert nearest.text.startswith(label.text.rstrip("…"))
            assert nearest.text
        else:
            joined = [s for s in spots if s.y == label.to and s.x == pytest.approx(label.x + 4)]
            assert any(s.must and s.text.startswith(label.text.rstrip("…")) for s in joined)


def test_a_lone_spot_gets_its_label() -> None:
    (label,) = fit_labels([Spot(x=200, y=100, text="abc")], [], area=AREA)
    assert (label.text, label.align) == ("abc", "right")
    (right,) = fit_labels([Spot(x=5, y=100, text="abc")], [], area=AREA)
    assert right.align == "left"


def test_the_first_spots_come_first() -> None:
    stack = [Spot(x=200, y=100 + 4 * n, text=f"run{n}") for n in range(8)]
    names = [label.text for label in fit_labels(stack, [], area=AREA)]
    assert names == ["run0", "run7"]


def test_a_crowded_spot_that_must_have_its_name_is_joined_to_it() -> None:
    crowd = [Spot(x=200 + n, y=150 + m, text="") for n in range(-90, 91, 9) for m in (-12, 0, 12)]
    crowd = [spot for spot in crowd if (spot.x, spot.y) != (200, 150)]
    own = Spot(x=200, y=150, text="a record")
    assert fit_labels([own, *crowd], [], area=AREA) == ()
    (label,) = fit_labels([replace(own, must=True), *crowd], [], area=AREA)
    assert (label.text, label.x + 4, label.to) == ("a record", 200, 150)
    assert label.y < 150 - 24


def test_a_spot_that_must_have_its_name_takes_a_shorter_one() -> None:
    own = Spot(x=390, y=20, text="a name that is far too long here", must=True)
    beside = Spot(x=210, y=20, text="")
    (label,) = fit_labels([own, beside], [], area=AREA)
    assert label.text == "a name that is far…"


def test_a_line_between_marks_has_its_name_on_as_few_of_them_as_may_be() -> None:
    line = LevelLine(y=100, text="BM25")
    crowd = [Spot(x=x, y=y, text="") for x in range(0, 401, 8) for y in (91, 110)]
    some = [spot for spot in crowd if not (200 < spot.x < 216 and spot.y == 91)]
    (label,) = fit_labels([line, *some], [], area=AREA)
    assert label.y == 91
    assert box_of(label).left < 208 < box_of(label).right


def test_a_line_has_its_name_at_its_right_end_or_where_there_is_room() -> None:
    line = LevelLine(y=100, text="BM25")
    (label,) = fit_labels([line], [], area=AREA)
    assert (label.x, label.y) == (400, 91)
    busy_end = [Spot(x=390, y=y, text="") for y in (92, 108)]
    (moved,) = fit_labels([line, *busy_end], [], area=AREA)
    assert moved.x < 390
    full = [Box(left=0, top=0, right=400, bottom=200)]
    assert fit_labels([line], full, area=AREA) == ()
