"""What deeper annotation might show: the model, its intervals, and when there is none."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import Generator

from heldout.measures.spec import parse_measure
from heldout.survivorship.depths import DepthScores
from heldout.survivorship.extrapolation import Outlook, extrapolate

PLACES, DEEP = 10, 20


def deep_world(
    rng: Generator, *, queries: int = 4000, hazard: float = 0.08, scatter: float = 0.0
) -> tuple[DepthScores, int]:
    """Scores down to depth 20, and how many queries have no label there.

    The hazard's logit and the scores are lines in the logarithm of the place, as the model has
    them; `scatter` moves the hazard of each place.
    """
    places = np.arange(1, DEEP + 1)
    logits = np.log(hazard / (1 - hazard)) - 0.1 * np.log(places)
    chances = 1 / (1 + np.exp(-logits - scatter * rng.standard_normal(DEEP)))
    answered = rng.random((queries, DEEP)) < chances
    first = np.where(answered.any(axis=1), answered.argmax(axis=1) + 1, 0)
    first = first[first > 0]
    better = np.log(first) * 0.05
    found = rng.random((2, len(first))) < np.stack([0.3 + better, 0.5 + better])
    values = np.repeat(
        (found * rng.choice([1.0, 0.5, 0.25], found.shape))[:, :, np.newaxis], DEEP, 2
    )
    known = first[:, np.newaxis] <= places
    scores = DepthScores(
        systems=("low", "high"),
        depths=tuple(places.tolist()),
        open_ended=False,
        measure=parse_measure("RR@10"),
        queries=tuple(f"q{one}" for one in range(len(first))),
        values=values * known,
        known=known,
        unanswered=np.zeros((2, DEEP), np.int64),
    )
    return scores, queries - len(first)


def cut(scores: DepthScores, places: int, *, open_ended: bool = False) -> tuple[DepthScores, int]:
    """As a shallower annotation would have it, and how many queries that leaves out."""
    kept = scores.known[:, places - 1]
    shallow = replace(
        scores,
        depths=scores.depths[:places],
        open_ended=open_ended,
        queries=tuple(q for q, has in zip(scores.queries, kept, strict=True) if has),
        values=scores.values[:, kept, :places],
        known=scores.known[kept, :places],
        unanswered=scores.unanswered[:, :places],
    )
    return shallow, int((~kept).sum())


def look(
    scores: DepthScores, discarded: int | None, *, to: int = DEEP, trials: int = 200
) -> Outlook:
    return extrapolate(
        scores, np.random.default_rng(5), discarded=discarded, to=[to], trials=trials
    )


@pytest.mark.parametrize("scatter", [0.0, 0.15])
def test_intervals_hold_as_often_as_they_say_where_the_model_holds(scatter: float) -> None:
    """150 worlds: the interval of 95% for queries, and for the scores of both systems.

    Also where the places scatter about the line, by 15% of the hazard.
    """
    rng = np.random.default_rng(11)
    held = np.zeros(3)
    worlds = 150
    for _ in range(worlds):
        deep, none = deep_world(rng, scatter=scatter)
        shallow, left = cut(deep, PLACES)
        (found,) = look(shallow, left + none).predicted
        means = deep.means()[-1]
        truths = [float(deep.counts[-1]), *(mean or 0.0 for mean in means)]
        for at, (interval, truth) in enumerate(
            zip([found.queries, *found.scores], truths, strict=True)
        ):
            held[at] += interval.low <= truth <= interval.high
    assert (held / worlds >= 0.89).all(), held / worlds
    assert (held / worlds <= 1.0).all()


def test_a_constant_hazard_is_carried_on() -> None:
    rng = np.random.default_rng(2)
    deep, none = deep_world(rng, queries=200_000)
    shallow, left = cut(deep, PLACES)
    (found,) = look(shallow, left + none, trials=100).predicted

    assert found.queries.value == pytest.approx(deep.counts[-1], rel=0.01)
    assert found.scores[0].value == pytest.approx(deep.means()[-1][0], rel=0.01)


def test_the_model_is_tried_on_the_half_that_was_seen() -> None:
    deep, none = deep_world(np.random.default_rng(4), queries=20_000)
    shallow, left = cut(deep, PLACES)
    check = look(shallow, left + none).backtest

    assert check is not None
    assert (check.fitted, check.predicted.depth) == (5, 10)
    assert check.queries == deep.counts[PLACES - 1]
    assert check.predicted.queries.low <= check.queries <= check.predicted.queries.high
    assert check.scores == pytest.approx(deep.means()[PLACES - 1])


def test_an_open_ended_place_is_left_out_of_the_fit() -> None:
    """Half of all queries at "10+" would otherwise bend both lines."""
    deep, none = deep_world(np.random.default_rng(4), queries=20_000)
    shallow, left = cut(deep, PLACES)
    bent = replace(shallow, open_ended=True)
    plain = look(shallow, left + none).predicted[0].queries.value

    assert look(bent, left + none).predicted[0].queries.value != plain
    assert look(bent, left + none).predicted[0].queries.value == pytest.approx(plain, rel=0.03)
    check = look(bent, left + none).backtest
    assert check is not None
    assert check.predicted.depth == PLACES - 1


def test_perfect_and_hopeless_systems_stay_so() -> None:
    deep, none = deep_world(np.random.default_rng(4))
    shallow, left = cut(deep, PLACES)
    values = np.stack([shallow.known * 0.0, shallow.known * 1.0])
    (found,) = look(replace(shallow, values=values), left + none).predicted

    assert (found.scores[0].low, found.scores[0].high) == (0.0, 0.0)
    assert (found.scores[1].low, found.scores[1].high) == pytest.approx((1.0, 1.0))


def test_a_seed_gives_the_same_intervals_again() -> None:
    deep, none = deep_world(np.random.default_rng(4))

    assert look(cut(deep, PLACES)[0], none) == look(cut(deep, PLACES)[0], none)


@pytest.mark.parametrize(
    ("places", "discarded", "words"),
    [(3, 5, "a line through 3 places"), (10, None, "nobody knows how many")],
)
def test_without_enough_to_go_on_there_is_a_reason(
    places: int, discarded: int | None, words: str
) -> None:
    deep, _ = deep_world(np.random.default_rng(4), queries=500)
    found = look(cut(deep, places)[0], discarded)

    assert found.predicted == ()
    assert words in found.why


def test_a_handful_of_queries_is_no_basis() -> None:
    deep, _ = deep_world(np.random.default_rng(4), queries=12)

    assert "fewer than 10 queries" in look(cut(deep, 6)[0], 3).why


def test_where_every_query_has_a_label_there_is_nothing_to_add() -> None:
    deep, _ = deep_world(np.random.default_rng(4), queries=3000)
    shallow, _ = cut(deep, PLACES)
    (found,) = look(shallow, 0).predicted

    assert found.queries.value == pytest.approx(len(shallow.queries))
    assert (found.queries.low, found.queries.high) == (len(shallow.queries), len(shallow.queries))
