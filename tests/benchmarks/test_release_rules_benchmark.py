"""The chart of the benchmark of release rules has a bar for each rule and baseline."""

import sys
from pathlib import Path
from xml.etree import ElementTree as ET

from heldout.redteam.game import AttackLine

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from release_rules import draw_chart


def line(release: str, baseline: str, gain: float, worth: float) -> AttackLine:
    return AttackLine(
        attack="weighted vote",
        release=release,
        baseline=baseline,
        submissions=6,
        seeds=3,
        mean_gain=gain / 100,
        mean_gain_se=gain,
        gain_sd=1.0,
        worth=worth,
        worth_sd=1.0,
        false_release_share=0.0,
        record_share=0.0,
        records=0.0,
        utility=1.0,
        utility_6=1.0,
        fresh=True,
    )


def test_the_chart_shows_the_worst_attack_on_each_rule_with_each_baseline() -> None:
    lines = [
        line("rounded", "equal", 4.25, 4.0),
        line("rounded", "8 u below", 4.5, 4.0),
        line("clear", "equal", -0.001, -0.2),
        line("clear", "8 u below", 0.1, 0.35),
    ]
    texts = [one.text for one in ET.fromstring(draw_chart(lines)).iter() if one.text]  # noqa: S314 - ours
    assert [text for text in texts if text in ("rounded", "clear")] == ["rounded", "clear"]
    bars = [f"{one.baseline}: {one.attack}" for one in lines]
    assert [text for text in texts if text in bars] == bars
    assert [t for t in texts if t in ("4.25", "4.50", "0.00", "0.35")] == [
        *("4.25", "4.50", "0.00", "0.35")
    ]
