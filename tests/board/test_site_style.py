"""The style sheet's colours: text at least 5.5:1, rules 3:1, on paper and on band."""

import re
from importlib.resources import files

import pytest

from heldout.board.site.pages import _read

CSS = _read("heldout.css").decode()
JUDGING = (files("heldout.web") / "static" / "judging.css").read_text("utf-8")


def palette(number: int, css: str = CSS) -> dict[str, str]:
    """The colours of the n-th `:root` block: light, dark."""
    block = re.findall(r":root \{(.*?)\}", css, re.DOTALL)[number]
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("ground", ["paper", "band"])
@pytest.mark.parametrize(
    ("name", "least"),
    [("ink", 5.5), ("muted", 5.5), ("link", 5.5), ("record", 5.5), ("rule", 3.0)],
)
def test_contrast(theme: int, ground: str, name: str, least: float) -> None:
    colours = palette(theme)
    assert contrast(colours[name], colours[ground]) >= least


def test_only_the_palette_has_colours() -> None:
    outside = re.sub(r":root \{.*?\}", "", CSS, flags=re.DOTALL)
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(", outside)


def test_a_reader_who_wants_no_theme_gets_the_light_one() -> None:
    assert palette(0)["paper"] == "#fcfcfa"
    assert palette(1)["paper"] == "#15181b"
    assert CSS.index("prefers-color-scheme: dark") > CSS.index(":root")


@pytest.mark.parametrize("theme", [0, 1])
def test_the_judging_pages_have_the_same_colours(theme: int) -> None:
    # Two style sheets, since neither server may reach for the other's files. Judges see no chart.
    shared = {name: colour for name, colour in palette(theme).items() if name != "soft"}
    assert palette(theme, JUDGING) == shared
