"""Attacks by a clock that goes backwards."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from stage import DAY, Stage, check_all_played, set_stage, three
from town import found_town

pytestmark = pytest.mark.slow
contained: set[str] = set()


BACK = "2026-11-02T09:59:59Z"  # one second before the last event
CLOCKS: Mapping[str, Callable[[Stage], list[str | Path]]] = {
    "inbox": lambda s: ["inbox", "--from", s.town.root / "late"],
    "review": lambda s: ["review", s.waiting, "--score"],
    "publish": lambda s: ["publish", s.waiting, "--yes"],
    "reject": lambda s: ["reject", s.waiting, "--why", "x"],
    "ask": lambda s: ["ask", s.waiting, "Who are you?"],
    "correct": lambda s: ["correct", s.published, "--why", "x", "--anyway"],
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with set_stage(tmp_path_factory.mktemp("attacks")) as made:
        yield made


@pytest.mark.parametrize("command", CLOCKS)
def test_a_clock_that_goes_backwards(stage: Stage, command: str) -> None:
    """Nothing that was there changes; sealed files and scores may lie in the vault beforehand."""
    folder = stage.town.root / "late"
    folder.mkdir(exist_ok=True)
    for name, change in three("20261103-late").items():
        assert change is not None
        (folder / Path(name).name).write_bytes(change[1])
    before = stage.state()
    answer = stage.town.organiser(*CLOCKS[command](stage), now=BACK)
    assert answer.code == 2
    assert re.search("the clock .* events are never dated before others", answer.err, re.DOTALL)
    after = stage.state()
    assert before.items() <= after.items()
    beforehand = tuple(f"{stage.town.vault}/{n}/" for n in ("sealed", "scores", "signatures"))
    assert [path for path in after.keys() - before.keys() if not path.startswith(beforehand)] == []
    contained.add(f"a clock that goes backwards: {command}")


def test_a_clock_that_goes_backwards_in_the_middle_of_a_change_of_keys(tmp_path: Path) -> None:
    """The new key is made before the event is dated: refused, nothing logged, no key lost."""
    town = found_town(tmp_path)
    submission = town.send("first", now=DAY)
    town.take_in(now=DAY)
    own = (town.vault / "identities" / "organiser.txt").read_bytes()
    log = (town.vault / "events.jsonl").read_bytes()
    change = ["board", "rekey", "--why", "x", "--yes"]
    answer = town.organiser(*change, now=BACK)
    assert (answer.code, "events are never dated before others" in answer.err) == (2, True)
    assert (town.vault / "events.jsonl").read_bytes() == log
    assert own in [path.read_bytes() for path in (town.vault / "identities").iterdir()]
    assert town.organiser(*change, now=DAY).code == 0
    assert town.kinds().count("rekeyed") == 1
    assert town.publish(submission, now=DAY).code == 0
    assert town.audit()["ok"]
    contained.add("a clock that goes backwards: rekey")


def test_all_attacks_are_contained(
    stage: Stage, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Last: all that the table says of this module was played."""
    assert stage.town.audit()["ok"]
    check_all_played(contained, request, capsys)
