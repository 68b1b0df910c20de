"""Runs that are low on purpose: they are complete, and a person is told of them."""

from pathlib import Path

import pytest
from town import OTHER_TEAM, QUERIES, found_town
from trusting import DAY, add_baseline

pytestmark = pytest.mark.slow


def test_a_spoilt_first_run_needs_a_reason_and_a_fair_one_does_not(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    add_baseline(town)
    found = {}
    for name, spoilt in (("low", True), ("fair", False)):
        submission = town.draft(name, now=DAY, seed=9)
        run = town.clone / ".git/heldout/drafts" / submission / "eval.run"
        if spoilt:
            run.write_text(run.read_text().replace("\td", "\tbeside-"))
        assert town.participant("submit", submission, now=DAY).code == 0
        town.take_in(now=DAY)
        answer = town.organiser("review", submission, "--json", now=DAY)
        (shown,) = answer.json["reviews"]
        found[name] = {one["rule"]: one for one in shown["findings"]}
    assert "paired standard errors below 20261101-bm25" in found["low"]["far-below"]["evidence"]
    assert found["low"]["far-below"]["severity"] == "review"
    assert "far-below" not in found["fair"]


def test_single_labels_cannot_be_asked_for_after_an_honest_first_entry(tmp_path: Path) -> None:
    """Nonsense on all queries but one, whose known document is at rank 4: score .25 / n."""
    town = found_town(tmp_path)
    add_baseline(town)
    honest = town.send("honest", now=DAY, seed=9, team=OTHER_TEAM)
    town.take_in(now=DAY)
    assert town.organiser("publish", honest, "--yes", "--why", "asked", now=DAY).code == 0
    spoilt = town.draft("spoilt", now=DAY, seed=12, team=OTHER_TEAM)
    run = town.clone / ".git/heldout/drafts" / spoilt / "eval.run"
    run.write_text(probe("eval0"))
    assert town.participant("submit", spoilt, now=DAY).code == 0
    town.take_in(now=DAY)
    refused = town.publish(spoilt, now=DAY)
    assert refused.code == 1
    assert "a reason is needed (--why) for: far-below" in refused.out


def probe(asked: str) -> str:
    lines = []
    for number in range(QUERIES):
        query = f"eval{number}"
        documents = [f"beside-{number}-{place}" for place in range(5)]
        if query == asked:
            documents[3] = f"d{query}"
        lines += [f"{query}\t{document}\t{rank}\n" for rank, document in enumerate(documents, 1)]
    return "".join(lines)
