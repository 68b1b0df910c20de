"""Charts as files: whole, the same every time, readable by those who do not see them."""

import re
import sys
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from heldout.charts import svg as extras
from heldout.charts.svg import LIGHT, picture, stand_alone
from heldout.errors import InputError, SetupError

SVG = "{http://www.w3.org/2000/svg}"
SPEC: dict[str, Any] = {
    "width": 80,
    "height": 40,
    "autosize": "none",
    "data": {"values": [{"x": 1, "name": "BM25 <b>"}, {"x": 3, "name": "dense"}]},
    "mark": {"type": "text", "color": "#000001"},
    "encoding": {
        "x": {"field": "x", "type": "quantitative", "axis": None},
        "text": {"field": "name", "type": "nominal"},
    },
}


def test_a_chart_is_an_image_with_a_name_and_a_style_of_its_own() -> None:
    drawn = stand_alone(SPEC, title="Ranks of <script>, by R&D")
    root = ET.fromstring(drawn)  # noqa: S314 - made by the line above

    assert (root.tag, root.get("role"), root.get("aria-hidden")) == (f"{SVG}svg", "img", None)
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}style"]
    assert root.findtext(f"{SVG}title") == "Ranks of <script>, by R&D"
    assert {element.text for element in root.iter(f"{SVG}text")} == {"BM25 <b>", "dense"}


def test_every_colour_of_a_chart_is_told_in_light_and_in_dark() -> None:
    drawn = stand_alone(SPEC, title="x")
    _, _, dark = drawn.partition("prefers-color-scheme:dark")

    used = set(re.findall(r"var\((--[a-z]+)\)", drawn))
    assert "--ink" in used
    for name in used:
        assert f"{name}:{LIGHT[name]};" in drawn
        assert f"{name}:#" in dark


def test_the_colours_are_those_of_the_page() -> None:
    css = Path(extras.__file__).parents[1] / "answers" / "static" / "heldout.css"

    for name, colour in LIGHT.items():
        assert f"{name}: {colour};" in css.read_text("utf-8")


def test_nothing_of_another_place_and_no_script_is_in_a_chart() -> None:
    drawn = stand_alone(SPEC, title="x").replace("http://www.w3.org/2000/svg", "")

    assert not re.search(r"http|href|script|url\(|@import|\bon[a-z]+=", drawn)


@pytest.mark.parametrize("name", ["a.svg", "A.SVG", "a.png"])
def test_the_same_chart_is_the_same_bytes(name: str) -> None:
    path = Path(name)

    assert picture(SPEC, path, title="x") == picture(SPEC, path, title="x")


def test_a_png_has_the_texts_and_the_paper() -> None:
    empty = {**SPEC, "data": {"values": [{"x": 1, "name": " "}, {"x": 3, "name": " "}]}}
    drawn, blank = (_pixels(picture(spec, Path("a.png"), title="x")) for spec in (SPEC, empty))
    paper = bytes.fromhex(LIGHT["--paper"][1:])

    assert paper in blank
    assert sum(one != other for one, other in zip(drawn, blank, strict=True)) > 100


def _pixels(png: bytes) -> bytes:
    """The pixels of a PNG as its rows are filtered."""
    data, place = b"", 8
    while place < len(png):
        size = int.from_bytes(png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            data += png[place + 8 : place + 8 + size]
        place += size + 12
    return zlib.decompress(data)


def test_a_png_has_twice_the_points_and_is_not_empty() -> None:
    png = picture(SPEC, Path("a.png"), title="x")
    drawn = stand_alone(SPEC, title="x")
    width, height = (int(n) for n in re.findall(r'viewBox="0 0 (\d+) (\d+)"', drawn)[0])

    assert png.startswith(b"\x89PNG\r\n")
    assert int.from_bytes(png[16:20]) == 2 * width
    assert int.from_bytes(png[20:24]) == 2 * height
    assert len(png) > 500


@pytest.mark.parametrize(
    ("name", "found"),
    [("a.pdf", "'.pdf'"), ("a", "without an end"), (".svg", "without an end"), ("a.svg.gz", ".gz")],
)
def test_a_name_of_no_known_form_is_refused(name: str, found: str) -> None:
    with pytest.raises(InputError) as refused:
        picture(SPEC, Path(name), title="x")

    (problem,) = refused.value.problems
    assert problem.code == "chart-form"
    assert found in problem.found
    assert problem.expected == ".svg or .png"


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)

    with pytest.raises(SetupError, match=r"pip install 'heldout\[site\]'"):
        stand_alone(SPEC, title="x")
