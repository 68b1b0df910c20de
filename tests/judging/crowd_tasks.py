"""Tasks with their texts, and the results that a platform gives for them."""

import csv
from collections.abc import Mapping, Sequence
from io import StringIO

from heldout.judging.campaign.pools import Candidate, Pool, Texts, gather_texts
from heldout.judging.campaign.rows import Item, Task
from heldout.judging.campaign.settings import Settings
from heldout.judging.platforms.mturk import hit_cells

SETTINGS = Settings(
    name="Best answers",
    consent="You are 18.\n\nYou may stop.",
    pairs=2,
    tests=1,
    reward=200,
    fee=40,
)
HEADER = (
    *("HITId", "HITTypeId", "Title", "AssignmentId", "WorkerId", "AssignmentStatus"),
    *("AcceptTime", "SubmitTime", "WorkTimeInSeconds", "Reward"),
)


def make_task(name: str = "1-00001-1", *, query: str = "q") -> Task:
    """Two pairs, and between them a test that `q-a` answers."""
    return Task(
        task=name,
        items=(
            Item(query=query, left=f"{query}-a", right=f"{query}-b"),
            Item(query=query, left=f"{query}-x", right=f"{query}-a", answer=f"{query}-a"),
            Item(query=query, left=f"{query}-c", right=f"{query}-a"),
        ),
    )


def make_texts(*queries: str, text: str = "passage") -> Texts:
    return gather_texts(
        Pool(
            query=query,
            text=f"{text} asked {query}",
            candidates=tuple(
                Candidate(doc=f"{query}-{letter}", text=f"{text} {query}{letter}")
                for letter in "abcx"
            ),
        )
        for query in queries
    )


def format_results(
    rows: Sequence[tuple[Task, str, Mapping[str, str]]], texts: Texts, **changes: str
) -> bytes:
    """A file of results: task, worker and answers of each row; every cell in quotes."""
    inputs = sorted({f"Input.{name}" for task, _, _ in rows for name in hit_cells(task, texts)})
    answers = sorted({f"Answer.{name}" for _, _, given in rows for name in given})
    buffer = StringIO(newline="")
    writer = csv.DictWriter(
        buffer, [*HEADER, *inputs, *answers, "Approve", "Reject"], quoting=csv.QUOTE_ALL
    )
    writer.writeheader()
    for number, (task, worker, given) in enumerate(rows, 1):
        cells = {
            "HITId": f"H{task.task.replace('-', '')}",
            "AssignmentId": f"A{number}",
            "WorkerId": worker,
            "AssignmentStatus": "Submitted",
            "AcceptTime": "Sat Nov 21 04:00:00 PST 2026",
            "SubmitTime": "Sat Nov 21 04:05:30 PST 2026",
            "WorkTimeInSeconds": "330",
            **{f"Input.{name}": cell for name, cell in hit_cells(task, texts).items()},
            **{f"Answer.{name}": cell for name, cell in given.items()},
        }
        writer.writerow({**cells, **changes})
    return buffer.getvalue().encode()


def honest(**changes: str) -> dict[str, str]:
    """Answers that pass the test of `make_task`."""
    return {"choice_1": "left", "choice_2": "right", "choice_3": "left", **changes}
