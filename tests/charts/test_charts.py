"""Charts: drawn for their width, the same every time, readable in light and in dark."""

import re
from collections.abc import Iterator
from datetime import date
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drawings
from heldout.charts import axes
from heldout.charts.plot import (
    FILE_WIDTH,
    SHADES,
    Plot,
    PlotRow,
    Sheet,
    inline,
    picture,
    stand_alone,
)
from heldout.charts.scores import ChartEntry, cost_chart, gap_chart, progress_chart, scatter_chart
from heldout.charts.svg import DARK, LIGHT, RECORD, SIZE, fit, text_width, wrap
from heldout.errors import InputError, SetupError

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "BM25 <b>&\"'</text><script>alert(1)</script>\u202egnp.exe\x00\x1b[31m"
PHONE = 390


def scores() -> Plot:
    plot = Plot(
        x=axes.score_axis([0.1, 0.4]), y=axes.score_axis([0.2, 0.5]), head="eval RR@10", foot="dev"
    )
    plot.line([(0.1, 0.2), (0.4, 0.5)], RECORD)
    plot.level(0.3, "baseline")
    plot.dots([(0.1, 0.2, "first"), (0.4, 0.5, HOSTILE)], "diamond")
    plot.name(0.4, 0.5, HOSTILE)
    plot.end(0.45, "an end")
    plot.key("diamond", "best so far")
    return plot


def forest(name: str = "a system with a rather long name") -> Plot:
    rows = [PlotRow(name=f"{name} {n}", note=f"n {n}") for n in range(5)]
    plot = Plot(x=axes.share_axis(), rows=rows, foot="share")
    plot.upright(0.5)
    for row in range(5):
        plot.interval(row, 0.1, 0.9)
        plot.bar((0.2, 0.4), row, RECORD, "a part")
    plot.key("line", "interval")
    return plot


def matrix(count: int = 12) -> Plot:
    rows = [PlotRow(name=f"run-{n}", lead=n < 3) for n in range(count)]
    plot = Plot(x=axes.rank_axis(count), rows=rows, square=True)
    for n in range(count):
        plot.box((n + 0.5, n + 1.5), (n - 0.5, n + 0.5), SHADES[n % 4], f"cell {n}")
    plot.shades(["from 50%", "from 20%", "from 5%", "from 1%"])
    return plot


def over_time() -> Plot:
    entries = [
        ChartEntry(label=f"system {n}", day=date(2026, n, 3), score=0.3 + n / 50, record=n % 3 == 0)
        for n in range(1, 12)
    ]
    level = ChartEntry(label="BM25", day=date(2026, 1, 1), score=0.31, baseline=True)
    return progress_chart([*entries, level], until=date(2026, 12, 1), head="eval RR@10")


CHARTS: dict[str, Plot | Sheet] = {
    "scores": scores(),
    "forest": forest(),
    "matrix": matrix(),
    "large matrix": matrix(130),
    "progress": over_time(),
    "panels": Sheet(plots=[scores(), scores(), scores()], columns=2),
}
WIDTHS = (300, 340, 440, 720, 940)


@pytest.fixture(params=CHARTS)
def chart(request: pytest.FixtureRequest) -> Plot | Sheet:
    return CHARTS[str(request.param)]


def texts(drawn: str) -> Iterator[tuple[float, float, float, str]]:
    """Left, right and the middle's height of each text, with the text; in its own group."""
    root = ET.fromstring(drawn)  # noqa: S314 - made by the caller
    for group, shift in groups(root, (0.0, 0.0)):
        for one in group.findall(f"{SVG}text") + group.findall("text"):
            width = text_width(one.text or "")
            x, y = float(one.get("x", "")) + shift[0], float(one.get("y", "")) + shift[1]
            left = x - {"end": width, "middle": width / 2}.get(one.get("text-anchor", ""), 0.0)
            yield left, left + width, y, one.text or ""


def groups(
    element: ET.Element, shift: tuple[float, float]
) -> Iterator[tuple[ET.Element, tuple[float, float]]]:
    moved = re.findall(r"-?[\d.]+", element.get("transform", "")) or ["0", "0"]
    shift = (shift[0] + float(moved[0]), shift[1] + float(moved[1]))
    yield element, shift
    for child in element:
        yield from groups(child, shift)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_text_lies_inside_the_picture(chart: Plot | Sheet, width: int) -> None:
    for left, right, _, text in texts(inline(chart, width)):
        assert left >= -1, text
        assert right <= width + 1, text


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_lies_on_another(chart: Plot | Sheet, width: int) -> None:
    for one, other in combinations(texts(inline(chart, width)), 2):
        apart = one[1] <= other[0] + 1 or other[1] <= one[0] + 1 or abs(one[2] - other[2]) >= 11
        assert apart, (one, other)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_chart_is_as_wide_as_it_is_drawn_for(chart: Plot | Sheet, width: int) -> None:
    root = drawings.root_of(chart, width)

    assert root.get("viewBox", "").startswith(f"0 0 {width} ")
    assert root.get("font-size") == str(SIZE)
    assert not [one for one in root.iter() if one is not root and one.get("font-size")]


def test_the_texts_of_a_file_are_eleven_pixels_high_on_a_phone() -> None:
    assert SIZE * PHONE / FILE_WIDTH >= 11


def test_equal_charts_are_equal_bytes() -> None:
    for make in (scores, forest, matrix, over_time):
        assert stand_alone(make(), title="x") == stand_alone(make(), title="x")


def test_a_file_is_an_image_with_a_title_a_description_and_a_style_of_its_own() -> None:
    root = ET.fromstring(stand_alone(scores(), title=HOSTILE))  # noqa: S314 - made here
    names = [child.tag.removeprefix(SVG) for child in root]

    assert (root.tag, root.get("role")) == (f"{SVG}svg", "img")
    assert names == ["title", "desc", "style", "g"]
    assert root.findtext(f"{SVG}desc") == "Upwards: eval RR@10. Across: dev. Marks: best so far."


def test_hostile_names_are_text_and_nothing_else() -> None:
    for drawn in (stand_alone(scores(), title=HOSTILE), inline(forest(HOSTILE), 340)):
        root = ET.fromstring(drawn)  # noqa: S314 - made by the line above
        tags = {one.tag.removeprefix(SVG) for one in root.iter()}

        assert tags <= {"svg", "title", "desc", "style", "g", "path", "rect", "circle", "text"}
        assert not re.search("[\u202e\x00\x1b]", drawn)
        assert not re.search(r"\bon[a-z]+=|href|url\(|@import", drawn)


def test_tooltips_say_what_a_mark_is() -> None:
    root = drawings.root_of(matrix(), 440)

    assert [one.findtext("title") for one in root.iter("rect")].count("cell 3") == 1


def test_a_large_matrix_names_the_rows_that_lead() -> None:
    names = [text for *_, text in texts(inline(matrix(130), 440)) if text.startswith("run-")]

    assert names == ["run-0", "run-1", "run-2"]


def test_names_stand_above_their_rows_where_they_are_long() -> None:
    wide, narrow = ({t: y for *_, y, t in texts(inline(forest(), w))} for w in (940, 340))
    lines = [y for w in (wide, narrow) for t, y in w.items() if t.startswith("a system")]

    assert len(lines) == 10
    assert lines[6] - lines[5] > lines[1] - lines[0]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_texts_and_marks_stand_out_from_the_paper(theme: dict[str, str]) -> None:
    for name, least in {
        "--ink": 7, "--muted": 4.5, "--link": 4.5, "--record": 4.5, "--rule": 3, "--soft": 1.5,
    }.items():  # fmt: skip
        assert contrast(theme[name], theme["--paper"]) >= least, name
    ordered = [contrast(theme[s[4:-1]], theme["--paper"]) for s in SHADES]
    assert all(one / other > 1.4 for one, other in pairwise(ordered))


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_colours_are_those_of_the_page() -> None:
    import heldout.charts  # noqa: PLC0415 - for its folder

    root = Path(heldout.charts.__file__).parents[1]
    (css,) = (path.read_text("utf-8") for path in root.rglob("heldout.css"))

    for name, colour in [*LIGHT.items(), *DARK.items()]:
        assert f"{name}: {colour};" in css


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6),
    st.integers(2, 12),
)
def test_ticks_of_scores_are_few_in_order_and_inside(values: list[float], most: int) -> None:
    axis = axes.score_axis(values)
    ticks = axis.ticks(most)
    places = [tick.at for tick in ticks]

    assert len(ticks) <= most
    assert places == sorted(places)
    assert all(axis.low - 1e-6 <= place <= axis.high + 1e-6 for place in places)


@pytest.mark.parametrize(
    ("axis", "labels"),
    [
        (axes.score_axis([0.31, 0.42]), ["0.32", "0.34", "0.36", "0.38", "0.40", "0.42"]),
        (axes.score_axis([-0.02, 0.01]), ["−0.02", "−0.01", "0.00", "0.01"]),
        (axes.log_axis([50, 2_000], room=0), ["50", "100", "200", "500", "1,000", "2,000"]),
        (axes.log_axis([1e6, 2e9], room=0), ["1M", "10M", "100M", "1B"]),
        (axes.count_axis(3), ["0", "1", "2", "3"]),
        (axes.rank_axis(45), ["1", "10", "20", "30", "40"]),
        (axes.share_axis(), ["0%", "20%", "40%", "60%", "80%", "100%"]),
        (axes.name_axis({1: "1", 2: "2", 3: "all"}), ["1", "2", "all"]),
        (axes.day_axis(date(2026, 1, 5), date(2026, 8, 3)), ["Mar 2026", "May 2026", "Jul 2026"]),
        (axes.day_axis(date(2026, 11, 1), date(2026, 11, 22)),
         ["1 Nov", "8 Nov", "15 Nov", "22 Nov"]),
    ],
)  # fmt: skip
def test_ticks_are_round_numbers_and_first_days(axis: axes.Axis, labels: list[str]) -> None:
    assert [tick.label for tick in axis.ticks(6)] == labels


def test_equal_ratios_have_equal_lengths_on_an_axis_of_logarithms() -> None:
    axis = axes.log_axis([1, 100], room=0)

    assert [axis.share(value) for value in (1, 10, 100)] == pytest.approx([0, 0.5, 1])


def test_records_are_joined_by_stairs_and_baselines_are_dashed() -> None:
    drawn = inline(over_time(), 940)

    assert drawn.count("stroke-dasharray") == 1
    assert [text for *_, text in texts(drawn) if text == "BM25"] == ["BM25"]
    assert "system 9" in [text for *_, text in texts(drawn)]


def test_entries_without_a_cost_or_a_dev_score_are_left_out() -> None:
    entries = [
        ChartEntry(label=f"e{n}", day=date(2026, 1, n), score=n / 10, other=cost, record=n == 1)
        for n, cost in ((1, 10.0), (2, 1000.0), (3, None))
    ]
    for plot in (
        cost_chart(entries, head="score", foot="cost"),
        scatter_chart(entries, ratio=0.01, head="eval", foot="dev"),
    ):
        root = drawings.root_of(plot, 440)
        assert {one.text for one in root.iter("title")} == {"e1", "e2"}


def test_texts_are_wrapped_at_words_and_cut_where_one_is_too_long() -> None:
    lines = wrap("the strongest attack on each rule " + "x" * 80, 120)

    assert lines[-1].endswith("…")
    assert all(text_width(line) <= 120 for line in lines)
    assert fit("short", 400) == "short"


@pytest.mark.parametrize(
    ("name", "found"),
    [("a.pdf", "'.pdf'"), ("a", "without an end"), (".svg", "without an end"), ("a.svg.gz", ".gz")],
)
def test_a_name_of_no_known_format_is_refused(name: str, found: str) -> None:
    with pytest.raises(InputError) as refused:
        picture(scores(), Path(name), title="x")

    (problem,) = refused.value.problems
    assert problem.code == "chart-form"
    assert found in problem.found
    assert problem.expected == ".svg or .png"


def test_a_png_has_three_times_the_points_the_texts_and_the_paper() -> None:
    pytest.importorskip("resvg_py", reason="the `png` extra")
    drawn = stand_alone(scores(), title="x")
    width, height = (float(n) for n in re.findall(r'viewBox="0 0 (\S+) (\S+)"', drawn)[0])
    png = picture(scores(), Path("a.PNG"), title="x")

    assert png == picture(scores(), Path("a.png"), title="x")
    assert png.startswith(b"\x89PNG\r\n")
    assert int.from_bytes(png[16:20]) == 3 * width
    assert abs(int.from_bytes(png[20:24]) - 3 * height) <= 1
    assert len(png) > 5_000


def test_a_png_has_its_texts_whatever_font_the_machine_has() -> None:
    pytest.importorskip("resvg_py", reason="the `png` extra")
    named, other = (
        picture(
            Plot(x=axes.score_axis([0, 1]), y=axes.score_axis([0, 1]), head=head),
            Path("a.png"),
            title="",
        )
        for head in ("RR@10", "AP@10")
    )
    assert named != other


def test_without_the_extra_a_png_is_refused_and_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)

    with pytest.raises(SetupError, match=r"pip install 'heldout\[png\]'"):
        picture(scores(), Path("a.png"), title="x")
    assert picture(scores(), Path("a.svg"), title="x")


def gaps(*scores: float) -> list[ChartEntry]:
    return [
        ChartEntry(label=f"system {n}", day=date(2026, 1, 1 + n), score=score, key=f"s{n}")
        for n, score in enumerate(scores)
    ]


def test_a_gap_far_off_stands_at_the_edge_and_flattens_nothing() -> None:
    usual = [-0.05, -0.052, -0.049, -0.06, -0.055, -0.047, -0.051, -0.058]
    plain, odd = (
        gap_chart(gaps(*scores), until=date(2026, 2, 1), head="gap", equal="equal")
        for scores in (usual, [*usual, -0.25, 0.2])
    )
    assert plain.y is not None
    assert odd.y is not None
    assert (odd.y.low, odd.y.high) == (plain.y.low, plain.y.high)
    assert [text for _, text, _ in plain.keys] == []
    assert [text for _, text, _ in odd.keys] == ["1 entry below the axis", "1 entry above the axis"]
    drawn = inline(odd, 460)
    assert "<title>system 8: \u22120.250</title>" in drawn
    assert "<title>system 9: 0.200</title>" in drawn
    assert all(f'data-entry="s{n}"' in drawn for n in range(10))
    assert {"\u22120.250", "0.200"} <= {*drawings.texts(odd, 460)}


@pytest.mark.parametrize("scores", [[-0.1], [0.0, 0.0, 0.0], [-0.1, -0.1, -0.1, -0.5], [0.1, 0.3]])
def test_few_or_equal_gaps_are_all_drawn(scores: list[float]) -> None:
    chart = gap_chart(gaps(*scores), until=date(2026, 2, 1), head="gap", equal="equal")
    assert inline(chart, 460).count("<circle") == len(scores)


def test_the_largest_step_and_the_best_of_today_have_their_names() -> None:
    scores = [0.2, 0.21, 0.33, 0.335, 0.34, 0.345, 0.35, 0.355]
    entries = [
        ChartEntry(label=f"system {n}", day=date(2026, 1, 1 + n), score=score, record=True)
        for n, score in enumerate(scores)
    ]
    chart = progress_chart(entries, until=date(2027, 1, 1), head="eval")
    assert {"system 2", "system 7"} <= {*drawings.texts(chart, 350)}
    assert [text for *_, text, _ in chart.names][:2] == ["system 7", "system 2"]
