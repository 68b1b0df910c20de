"""What a chart shows, read from its SVG."""

from xml.etree import ElementTree as ET

from heldout.charts.plot import Chart, inline

WIDTH = 720


def root_of(chart: Chart, width: int = WIDTH) -> ET.Element:
    """The chart as an element."""
    return ET.fromstring(inline(chart, width))  # noqa: S314 - our own output


def texts(chart: Chart, width: int = WIDTH) -> list[str]:
    """What is written in it."""
    return [one.text or "" for one in root_of(chart, width).iter("text")]


def tips(chart: Chart) -> list[str]:
    """The tooltips of its marks and boxes."""
    return [one.text or "" for one in root_of(chart).iter("title")]


def boxes(chart: Chart) -> list[ET.Element]:
    """Its boxes with a tooltip: those of the key have none."""
    return [one for one in root_of(chart).iter("rect") if one.find("title") is not None]
