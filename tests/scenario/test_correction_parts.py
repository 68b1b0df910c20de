"""Parts of a correction, scored by processes of their own; the last call publishes."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from lab import NEXT, OTHER_TEAM, TEAM, Lab, found_lab, named

pytestmark = pytest.mark.night
WHY = ("--why", "one label was on a wrong document")


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, Sequence[str]]:
    """Five entries, and labels that were repaired since."""
    lab = found_lab(tmp_path_factory.mktemp("parts"))
    teams = (TEAM, OTHER_TEAM, named("Third"), named("Fourth"), named("Fifth"))
    ids = [lab.send(f"run{seed}", seed=seed, team=team) for seed, team in enumerate(teams, 1)]
    lab.take_in()
    assert lab.publish(*ids).code == 0
    lab.repair()
    return lab, ids


@pytest.fixture
def lab(entered: tuple[Lab, Sequence[str]], tmp_path: Path) -> Lab:
    return entered[0].copy(tmp_path)


def scores(lab: Lab) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (lab.vault / "scores").iterdir()}


def test_all_entries_with_earlier_labels_are_corrected_without_naming_them(
    lab: Lab, entered: tuple[Lab, Sequence[str]], tmp_path: Path
) -> None:
    _, ids = entered
    lab.organiser("correct", "--all-earlier", *WHY, now=NEXT).refused(
        "no entry is scored with earlier labels"
    )
    assert lab.organiser("correct", ids[0], "--all-earlier", *WHY, now=NEXT).code == 2
    assert lab.organiser("correct", ids[0], *WHY, now=NEXT).code == 0
    named_all = lab.copy(tmp_path / "named")
    listed = lab.organiser("correct", "--all-earlier", *WHY, "--json", now=NEXT)
    assert listed.json["earlier_labels"] == []
    assert named_all.organiser("correct", *ids[1:], *WHY, now=NEXT).code == 0
    assert scores(lab) == scores(named_all)
    assert lab.rows() == named_all.rows()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--shard", "0/2"), "bad-shard"),
        (("--shard", "3/2"), "bad-shard"),
        (("--shard", "1"), "bad-shard"),
        (("--shard", "1/2", "--accept-rules"), "--shard logs nothing: without --accept-rules"),
    ],
)
def test_what_is_no_part_is_said(
    lab: Lab, entered: tuple[Lab, Sequence[str]], options: Sequence[str], said: str
) -> None:
    lab.organiser("correct", *entered[1], *WHY, *options, now=NEXT, accepts=False).refused(said)
    assert not (lab.vault / "remembered/scores").exists()
