"""Vega-Lite dicts to inline SVG that is the same everywhere and follows the page's theme.

vl-convert draws; its output is then rewritten element by element from a list of what may stay, so
that nothing external, no script and no style can come through, and so that equal charts are equal
bytes: clip paths, which it numbers per process, are dropped, coordinates are rounded, and fonts
are the page's. Colours are names in our specs' `COLOURS` and become CSS variables.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal
from xml.etree import ElementTree as ET

from heldout.charts.axes import Tick
from heldout.charts.labels import Label
from heldout.errors import InputError, Problem, SetupError

# The `site` extra: Jinja2 and vl-convert, imported when a page is made and not before.

_MODULES = ("jinja2", "vl_convert")


def need(module: str) -> ModuleType:
    """A module of the `site` extra.

    Raises:
        SetupError: it is not installed; the text names the command that brings it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise SetupError(
            f"the page needs {module}, which is not installed; pip install 'heldout[site]'"
        ) from error


def check_extra() -> None:
    """Refuse to begin what ends with a page that cannot be made: events are for good.

    Raises:
        SetupError: a module of the `site` extra is not installed; the text names all of these.
    """
    missing = [module for module in _MODULES if find_spec(module) is None]
    if missing:
        be = "is" if len(missing) == 1 else "are"
        raise SetupError(
            f"the page needs {' and '.join(missing)}, which {be} not installed, so nothing was "
            "done; pip install 'heldout[site]'"
        )


# The layers of a chart as Vega-Lite dicts: lines, marks and texts inside a frame.
#
# Nothing is left to the drawing program that depends on a machine: ticks and sizes are in the
# dict.

SIZE = 13
INK, MUTED, _RULE, _HAIR, _LINK, RECORD, _PAPER = (f"#00000{n}" for n in range(1, 8))
_DOT, _MARK = 32, 96
Layer = dict[str, Any]

Style = Literal["circle", "disc", "square", "open diamond", "diamond"]
"""How a mark looks: a disc is a filled circle; diamonds are large, and filled unless open."""

_STYLES: Mapping[Style, tuple[str, str, str]] = {
    "circle": ("circle", _PAPER, MUTED),
    "disc": ("circle", RECORD, RECORD),
    "square": ("square", INK, _PAPER),
    "open diamond": ("diamond", _PAPER, RECORD),
    "diamond": ("diamond", RECORD, RECORD),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """Size of the plot's inside, the space around it, and of its labels, in CSS pixels."""

    width: int
    height: int
    left: int = 48
    right: int = 14
    top: int = 28
    bottom: int = 28
    label: int = 44


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A canvas with its scales; `place` is what the drawing program does with them."""

    canvas: Canvas
    x: tuple[float, float]
    y: tuple[float, float]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a value lies, in pixels from the upper left corner of the plot's inside."""
        right = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return right * self.canvas.width, (1 - up) * self.canvas.height


def draw_line(
    corners: Sequence[tuple[float, float]],
    frame: Frame,
    colour: str,
    *,
    dash: Sequence[int] = (),
) -> Layer:
    """A line through corners, in values of the axes; thin where it is dashed."""
    mark = {"type": "line", "aria": False, "stroke": colour, "strokeWidth": 1 if dash else 2}
    values = [{"x": x, "y": y, "n": n} for n, (x, y) in enumerate(corners)]
    return {
        "data": {"values": values},
        "mark": mark | ({"strokeDash": list(dash)} if dash else {"strokeJoin": "round"}),
        "encoding": _axes(frame) | {"order": {"field": "n"}},
    }


def draw_strokes(places: Sequence[tuple[float, str]], frame: Frame, colour: str) -> Layer:
    """Thin upright strokes over the whole height with their tooltips: (x, label)."""
    low, high = frame.y
    values = [{"x": x, "y": low, "y2": high, "label": label} for x, label in places]
    more = {"y2": {"field": "y2"}, "description": {"field": "label"}}
    return {
        "data": {"values": values},
        "mark": {"type": "rule", "stroke": colour, "strokeWidth": 1},
        "encoding": _axes(frame) | more,
    }


def draw_dots(spots: Sequence[tuple[float, float, str]], frame: Frame, style: Style) -> Layer:
    """Marks of one style with their tooltips: (x, y, label), in values of the axes."""
    shape, fill, stroke = _STYLES[style]
    return {
        "data": {"values": [{"x": x, "y": y, "label": label} for x, y, label in spots]},
        "mark": {
            "type": "point",
            "shape": shape,
            "filled": False,
            "fill": fill,
            "stroke": stroke,
            "strokeWidth": 1.5,
            "opacity": 1,
            "size": _MARK if shape == "diamond" else _DOT,
        },
        "encoding": _axes(frame) | {"description": {"field": "label"}},
    }


def draw_texts(labels: Sequence[Label], colour: str) -> list[Layer]:
    """Text at pixels, with an edge in the colour of the page so that no line runs through it."""
    return [
        {
            "data": {"values": [{"text": label.text}]},
            "mark": {
                "type": "text",
                "aria": False,
                "x": label.x,
                "y": label.y,
                "align": label.align,
                "baseline": "middle",
                "fontSize": SIZE,
                "fill": colour,
                "stroke": _PAPER,
                "strokeWidth": 4,
            },
            "encoding": {"text": {"field": "text"}},
        }
        for label in labels
    ]


def _axes(frame: Frame) -> dict[str, Any]:
    return {
        "x": _axis("x", frame.x, frame.x_ticks) | {"field": "x"},
        "y": _axis("y", frame.y, frame.y_ticks) | {"field": "y"},
    }


def _axis(field: str, domain: tuple[float, float], ticks: Sequence[Tick]) -> dict[str, Any]:
    names = json.dumps([t.label for t in ticks])
    upright = field == "y"
    return {
        "type": "quantitative",
        "title": None,
        "scale": {"domain": list(domain), "nice": False, "zero": False},
        "axis": {
            "values": [t.at for t in ticks],
            "labelExpr": f"{names}[round(datum.index * {len(ticks) - 1})]",
            "labelOverlap": False,
            "labelBound": False,
            "labelFlush": False,
            "labelColor": MUTED,
            "labelFontSize": SIZE,
            "labelPadding": 8,
            "grid": upright,
            "gridColor": _HAIR,
            "domain": not upright,
            "domainColor": _RULE,
            "ticks": not upright,
            "tickColor": _RULE,
            "tickSize": 4,
        },
    }


def join_layers(frame: Frame, layers: Sequence[Layer]) -> dict[str, Any]:
    """The whole chart; a layer without data is left out."""
    canvas = frame.canvas
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": canvas.width,
        "height": canvas.height,
        "autosize": {"type": "none"},
        "padding": {
            "left": canvas.left,
            "right": canvas.right,
            "top": canvas.top,
            "bottom": canvas.bottom,
        },
        "background": None,
        "config": {"view": {"stroke": None, "fill": None}},
        "layer": [layer for layer in layers if layer["data"]["values"]],
    }


# Filled boxes in a chart: bars, parts of bars, cells.

RULE, LINK = "#000003", "#000005"
"""Names of colours, as in `svg.COLOURS`."""


def draw_box(
    corners: tuple[float, float, float, float], frame: Frame, colour: str, description: str
) -> Layer:
    """A filled box with its tooltip.

    Args:
        corners: left, lower, right and upper end, in values of the axes.
        frame: the chart's.
        colour: one of `svg.COLOURS`.
        description: what it shows.
    """
    left, bottom = frame.place(corners[0], corners[1])
    right, top = frame.place(corners[2], corners[3])
    mark = {"type": "rect", "x": left, "x2": right, "y": top, "y2": bottom, "fill": colour}
    return {
        "data": {"values": [{"label": description}]},
        "mark": mark,
        "encoding": {"description": {"field": "label"}},
    }


COLOURS: Mapping[str, str] = {
    "#000001": "var(--ink)",
    "#000002": "var(--muted)",
    "#000003": "var(--rule)",
    "#000004": "var(--hair)",
    "#000005": "var(--link)",
    "#000006": "var(--record)",
    "#000007": "var(--paper)",
}
"""Colour in a spec -> what the page's style makes of it, light or dark."""

_VEGA_LITE = "5.20"
_KEPT = {
    "svg": ("viewBox",),
    "g": ("transform",),
    "path": ("d", "transform"),
    "line": ("x1", "x2", "y1", "y2", "transform"),
    "rect": ("x", "y", "width", "height", "transform"),
    "text": ("transform", "text-anchor", "font-size", "font-weight"),
}
_PAINT = ("fill", "stroke")
_STROKE = ("stroke-width", "stroke-dasharray", "stroke-linejoin")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")


def draw(spec: Mapping[str, Any]) -> str:
    """A Vega-Lite spec as an `<svg>` element.

    The spec says where everything is (autosize "none", explicit ticks): measuring text depends on
    the fonts of the machine. A mark's `description` becomes its tooltip.

    Raises:
        SetupError: the `site` extra is not installed.
    """
    raw: str = need("vl_convert").vegalite_to_svg(dict(spec), vl_version=_VEGA_LITE)
    root = _rewrite(ET.fromstring(raw))  # noqa: S314 - made by the line above, not by a stranger
    if root is None:
        raise ValueError(raw)
    root.set("aria-hidden", "true")
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def _rewrite(element: ET.Element) -> ET.Element | None:
    """The element with only what we know; `None` where it draws nothing."""
    tag = element.tag.rpartition("}")[2]
    if tag not in _KEPT:
        return None
    made = ET.Element(tag, dict(_attributes(tag, element)))
    made.text = element.text
    made.extend(kept for child in element if (kept := _rewrite(child)) is not None)
    if (tag == "g" and not len(made)) or _is_invisible(made):
        return None
    if tag == "g" and list(made.attrib) in ([], ["fill"]) and len(made) == 1:
        return made[0]
    label = element.get("aria-label", "")
    if label and tag == "path":
        ET.SubElement(made, "title").text = label
    return made


def _attributes(tag: str, element: ET.Element) -> Iterator[tuple[str, str]]:
    for name in _KEPT[tag]:
        value = element.get(name)
        if value is not None and value != "translate(0,0)":
            yield name, _LONG_NUMBER.sub(_round, value).removesuffix("px")
    for name in _PAINT if tag not in ("g", "svg") else ():
        value = element.get(name)
        if value is not None or (name == "fill" and tag == "path"):
            yield name, COLOURS.get(str(value), "none")
    if element.get("stroke") is not None:
        yield from ((n, v) for n in _STROKE if (v := element.get(n)) is not None)
        if tag == "text":
            yield "paint-order", "stroke"


def _is_invisible(element: ET.Element) -> bool:
    if element.tag not in ("path", "rect", "line"):
        return False
    painted = any(element.get(name, "none") != "none" for name in _PAINT)
    return not painted or element.get("d") == ""


def _round(match: re.Match[str]) -> str:
    text = f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


# A chart as a file: SVG in the light or dark of whoever looks, or PNG.

SUFFIXES = (".svg", ".png")
"""How the name of a chart's file may end."""

LIGHT: Mapping[str, str] = {
    "--ink": "#1b1d1f",
    "--muted": "#585d63",
    "--rule": "#7f858c",
    "--hair": "#dfe2e5",
    "--link": "#0b57a4",
    "--record": "#a8400a",
    "--paper": "#fcfcfa",
}
_DARK = {
    "--ink": "#e8eaec",
    "--muted": "#a6adb4",
    "--rule": "#767d85",
    "--hair": "#2d3338",
    "--link": "#8cbef5",
    "--record": "#f2a071",
    "--paper": "#15181b",
}
_SCALE = 2.0


def stand_alone(spec: Mapping[str, Any], *, title: str) -> str:
    """A chart as an SVG file with the page's colours, light or dark.

    Args:
        spec: a Vega-Lite dict with the colours of `charts.svg.COLOURS`.
        title: what it shows, for those who do not see it.

    Raises:
        SetupError: the `site` extra is not installed.
    """
    drawn = draw(spec).removeprefix("<svg").replace(' aria-hidden="true"', "", 1)
    inside, _, rest = drawn.partition(">")
    light, dark = ("".join(f"{n}:{v};" for n, v in c.items()) for c in (LIGHT, _DARK))
    style = (
        f"svg{{{light}background:var(--paper);font-family:system-ui,sans-serif}}"
        f"@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img"{inside}>'
    return f"{head}<title>{html.escape(title, quote=False)}</title><style>{style}</style>{rest}\n"


def picture(spec: Mapping[str, Any], path: Path, *, title: str) -> bytes:
    """A chart in the form that a file's name ends with.

    Raises:
        InputError: code `chart-form`, the name ends neither in .svg nor in .png.
        SetupError: the `site` extra is not installed.
    """
    suffix = path.suffix.lower()
    if suffix == ".svg":
        return stand_alone(spec, title=title).encode()
    if suffix == ".png":
        png: bytes = need("vl_convert").svg_to_png(_in_light(spec, title=title), scale=_SCALE)
        return png
    raise InputError(
        Problem(
            code="chart-form",
            path=str(path),
            found=f"a name that ends in {suffix!r}" if suffix else "a name without an end",
            expected=" or ".join(SUFFIXES),
        )
    )


def _in_light(spec: Mapping[str, Any], *, title: str) -> str:
    """The same picture with plain colours and font, for a program that knows no CSS variables."""
    drawn = stand_alone(spec, title=title)
    for variable in COLOURS.values():
        drawn = drawn.replace(variable, LIGHT[variable.removeprefix("var(").removesuffix(")")])
    before, _, styled = drawn.partition("<style>")
    paper = f'<rect width="100%" height="100%" fill="{LIGHT["--paper"]}"/>'
    plain = before.replace("<svg ", '<svg font-family="sans-serif" ', 1)
    return plain + paper + styled.partition("</style>")[2]
