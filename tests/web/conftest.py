"""What the tests of the judging pages share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from judging_stage import Make, Stages


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Make]:
    """Makes campaigns and their pages in a folder of the test's own."""
    with Stages(tmp_path) as stages:
        yield stages.make
