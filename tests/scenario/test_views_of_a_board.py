"""`heldout analyse views` of a board: every view in its vault, from the command."""

import pytest
from town import OTHER_TEAM, Town, add_reserve, found_town

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A board with a reserve and two published entries."""
    town = found_town(tmp_path_factory.mktemp("town"))
    add_reserve(town)
    town.push()
    ids = [
        town.send("lamp", now="2026-11-03T09:00:00Z", seed=1),
        town.send("coast", now="2026-11-04T09:00:00Z", seed=2, team=OTHER_TEAM),
    ]
    town.take_in(now="2026-11-05T09:00:00Z")
    assert town.publish(*ids, now="2026-11-05T10:00:00Z").code == 0
    return town


def test_all_views_of_a_board_stand_side_by_side(played: Town) -> None:
    answer = played.organiser("analyse", "views", "--json", now="2026-12-01T00:00:00Z").done()
    found = answer.json
    views = {name: one["queries"] for name, one in found["stability"].items()}
    assert views == {"dev RR@10": 30, "eval RR@10": 30, "reserve RR@10": 10}
    assert len(found["transfer"]["pairs"]) == 3
