"""A judge that never stops, for tests that kill it: every answer is told after it was acknowledged.

python busy_judge.py URL
"""

import sys
from datetime import UTC, datetime

from heldout.judging.campaign.judgments import Choice
from heldout.judging.database.assignments import Assignment, Worker, answer, submit
from heldout.judging.database.claims import claim
from heldout.judging.database.tables import open_database

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def work(url: str) -> None:
    database = open_database(url)
    print("ready", flush=True)  # noqa: T201 - what the test reads
    while True:
        held = claim(database, Worker(platform_id="busy", signed=True), batch=1, now=NOW)
        if not isinstance(held, Assignment):
            return
        for position in range(held.first_open or held.items, held.items + 1):
            choice = Choice(side=("left", "right")[position % 2])
            done = answer(database, held.id, position, choice, replaces=0, shown_at=NOW, now=NOW)
            if done is not None and done.outcome == "recorded":
                print(held.id, position, choice.side, flush=True)  # noqa: T201 - as above
        submit(database, held.id, now=NOW)


if __name__ == "__main__":
    work(sys.argv[1])
