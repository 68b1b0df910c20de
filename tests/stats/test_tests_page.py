"""docs/reference/tests.md says what the table of tests says."""

from pathlib import Path

import pytest

from heldout.stats.tests import TESTS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "tests.md").read_text(encoding="utf-8")
SECTIONS = {
    section.split("`")[0]: "### `" + section.rstrip()
    for section in PAGE.split("## Each test")[1].split("\n## ")[0].split("### `")[1:]
}


def describe(name: str) -> str:
    """A test's section of the page."""
    test = TESTS[name]
    samples = "paired" if test.paired else "unpaired, also of different sizes"
    lines = [
        f"### `{name}`",
        "",
        f"- null: {test.null}",
        f"- difference: {test.difference}",
        f"- interval: {test.interval}",
        f"- assumes: {test.assumes}",
        f"- ties and differences of 0: {test.ties}",
        f"- undefined: {test.undefined}",
        f"- samples: {samples}",
        f"- source: {test.source}",
    ]
    return "\n".join(lines)


def test_no_test_is_missing_and_none_is_made_up() -> None:
    assert list(SECTIONS) == list(TESTS)


@pytest.mark.parametrize("name", TESTS)
def test_section(name: str) -> None:
    assert SECTIONS[name] == describe(name)
