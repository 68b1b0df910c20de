"""What the rules say of runs that are like a new one: whose they are, and how many."""

import hashlib
from datetime import date

import msgspec
import numpy as np
import pytest
from boardlog import BoardLog, make_manifest, make_spec

from heldout.board.policy.checks import Case, judge
from heldout.board.policy.sketches import sketch_all
from heldout.board.rules.spec import Season
from heldout.board.scores.compared import find_likeness
from heldout.ids import SubmissionId
from heldout.trec.scans import Signature

QUERIES = 20


def signature(name: str, *, changed: int = 0) -> Signature:
    """A run made of its name, some queries of which have other documents."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])
    documents = np.random.default_rng(seed).integers(1, 2**63, (QUERIES, 100), dtype=np.uint64)
    documents[:changed] += np.uint64(1)
    return Signature(queries=tuple(f"q{n:02}" for n in range(QUERIES)), documents=documents)


def findings(
    log: BoardLog,
    new: Signature,
    earlier: dict[str, Signature],
    team: str,
    *,
    seasons: tuple[Season, ...] = (),
) -> dict[str, list[str]]:
    log.wait(days=60)
    case = Case(
        spec=msgspec.structs.replace(make_spec(), seasons=seasons),
        history=log.history,
        id=SubmissionId(f"{log.now:%Y%m%d}-new"),
        received=log.now,
        manifest=make_manifest(team),
        problems={},
        likenesses={"eval": find_likeness(new, sketch_all(earlier, key=1), earlier.get)},
    )
    found: dict[str, list[str]] = {}
    for finding in judge(case):
        found.setdefault(finding.rule, []).append(finding.evidence)
    return found


@pytest.mark.parametrize("copies", [5, 6, 9])
def test_an_own_variant_does_not_hide_behind_equal_runs_of_others(copies: int) -> None:
    log = BoardLog().open()
    log.submit("20261101-own", make_manifest("Harbour"), "0.400")
    for number in range(copies):
        log.submit(f"20261101-x{number}", make_manifest(f"Team {number} of all"), "0.400")
    run = signature("one")
    earlier = {f"20261101-x{number}": run for number in range(copies)}
    earlier["20261101-own"] = signature("one", changed=3)
    found = findings(log, run, earlier, "Harbour")
    assert set(found) == {"others-run", "small-change"}
    assert [text.partition(":")[0] for text in found["small-change"]] == ["near 20261101-own"]
    told = found["others-run"]
    assert all(any(name in text for text in told) for name in earlier if name != "20261101-own")
    assert len(told) == min(copies, 5) + (copies > 5)
    if copies == 9:
        names = "20261101-x5, 20261101-x6, 20261101-x7, 20261101-x8"
        assert told[-1] == f"the same is to be said of 4 more: {names}"


def test_an_earlier_run_under_a_name_that_was_given_up_is_one_s_own() -> None:
    log = BoardLog().open()
    log.submit("20261101-one", make_manifest("Alpha Crew"), "0.400")
    log.submit("20261101-two", make_manifest("Alpha Crew"), "0.300")
    log.amend("20261101-one", make_manifest("Zeta House"))
    earlier = {"20261101-two": signature("two", changed=2)}
    assert set(findings(log, signature("two"), earlier, "Zeta House")) == {"small-change"}
    assert set(findings(log, signature("two"), earlier, "Stranger")) == {"near-others"}


@pytest.mark.parametrize(("changed", "own"), [(0, "same-run"), (2, "small-change")])
def test_a_team_may_send_its_system_again_in_a_new_season(changed: int, own: str) -> None:
    log = BoardLog().open()
    log.submit("20261101-one", make_manifest("Alpha Crew"), "0.400")
    earlier = {"20261101-one": signature("one", changed=changed)}
    new = date(2026, 12, 1)
    one = Season(name="one", view="eval", opens=date(2026, 11, 1), closes=date(2026, 11, 30))
    two = Season(name="two", view="eval", opens=new)
    for seasons, team, expected in (
        ((one, two), "Alpha Crew", set()),
        ((one, two), "Stranger", {"same-run": "others-run"}.get(own, "near-others")),
        ((msgspec.structs.replace(two, opens=one.opens),), "Alpha Crew", own),
    ):
        found = findings(log, signature("one"), earlier, team, seasons=seasons)
        assert set(found) == ({expected} if expected else set())


def test_a_baseline_is_named_as_one() -> None:
    log = BoardLog().open()
    log.baseline("20261101-bm25", "0.200")
    found = findings(log, signature("a"), {"20261101-bm25": signature("a")}, "Harbour")
    (told,) = found["others-run"]
    assert told == (
        "the same first 100 documents as the baseline 20261101-bm25 in the same order, in all "
        "queries: 20 of eval"
    )
    found = findings(log, signature("a", changed=2), {"20261101-bm25": signature("a")}, "Harbour")
    assert found["near-others"][0].startswith("near the baseline 20261101-bm25: eval:")
