"""Care of judges: planted spammers are told from the rest, and absurd crowds are no error."""

import numpy as np

from heldout.judging.campaign.judgments import Judgment
from heldout.judging.studies.judges import SimulatedJudge, measure_attentiveness


def answers(
    worker: str, judge: SimulatedJudge, rng: np.random.Generator, *, task: str, tests: int = 3
) -> list[Judgment]:
    """A task of ten pairs and some tests."""
    found = []
    for position in range(1, 11 + tests):
        test = position > 10
        query = f"q{rng.integers(12)}"
        one, other = rng.choice(5, 2, replace=False).tolist() if not test else (9, 8)
        if rng.random() < 0.5:
            one, other = other, one
        left, right = f"d{one}", f"d{other}"
        preferred = judge.choose(query, left, right)
        found.append(
            Judgment(
                query=query,
                left=left,
                right=right,
                preferred=preferred,
                worker=worker,
                task=task,
                position=position,
                answer="d9" if test else None,
            )
        )
    return found


def test_careless_judges_come_first_and_their_habits_are_seen() -> None:
    rng = np.random.default_rng(4)
    strengths = {(f"q{q}", f"d{d}"): float(rng.normal(0, 1)) for q in range(12) for d in range(5)}
    strengths |= {(f"q{q}", "d9"): 9.0 for q in range(12)}
    strengths |= {(f"q{q}", "d8"): -9.0 for q in range(12)}
    judged = []
    for place in range(16):
        careless = 1.0 if place < 4 else 0.0
        judge = SimulatedJudge(
            strengths=strengths, rng=rng, careless=careless, left=2.0 if careless else 0.0
        )
        for task in range(4):
            judged += answers(f"w{place:02}", judge, rng, task=f"{place}-{task}")
    found = measure_attentiveness(judged)
    assert found.converged
    assert {one.worker for one in found.judges[:4]} == {"w00", "w01", "w02", "w03"}
    assert all(one.habit > 0.7 and one.failed > 0 for one in found.judges[:4])
    assert all(one.failed == 0 and one.attentiveness > 0.6 for one in found.judges[4:])
    assert all((one.answers, one.tests) == (52, 12) for one in found.judges)


def test_of_answers_to_one_place_the_last_counts() -> None:
    first = Judgment(
        query="q", left="a", right="b", preferred="b", worker="w", task="t", position=1, answer="a"
    )
    changed = Judgment(
        query="q", left="a", right="b", preferred="a", worker="w", task="t", position=1, answer="a"
    )
    (one,) = measure_attentiveness([first, changed]).judges
    assert (one.answers, one.failed) == (1, 0)


def test_nobody_known_is_nobody_measured() -> None:
    assert measure_attentiveness([]).judges == ()
    found = measure_attentiveness([Judgment(query="q", left="a", right="b", preferred="a")] * 3)
    assert (found.judges, found.unknown) == ((), 3)
