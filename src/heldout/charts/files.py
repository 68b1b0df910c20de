"""A chart as a file: SVG in the light or dark of whoever looks, or PNG."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from heldout.charts.extras import need
from heldout.charts.svg import COLOURS, draw
from heldout.errors import InputError, Problem

__all__ = ["LIGHT", "SUFFIXES", "picture", "stand_alone"]

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
    return f"{head}<title>{escape(title)}</title><style>{style}</style>{rest}\n"


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
