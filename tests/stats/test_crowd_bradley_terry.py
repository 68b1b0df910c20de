"""Strengths from judges of unlike care: the gradient, planted judges, and absurd answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import kendalltau, spearmanr

from heldout.stats.bradley_terry import (
    Comparisons,
    CrowdAnswers,
    crowd_cost,
    fit_crowd,
    fit_strengths,
)


def draw(
    rng: np.random.Generator, *, items: int, care: np.ndarray, habit: np.ndarray, each: int
) -> tuple[CrowdAnswers, np.ndarray]:
    judges = len(care)
    strength = rng.normal(0, 1, items)
    judge = np.repeat(np.arange(judges), each)
    left = rng.integers(items, size=len(judge))
    right = (left + rng.integers(1, items, size=len(judge))) % items
    known = np.where(rng.random(len(judge)) < 0.25, rng.integers(2, size=len(judge)), np.nan)
    chance = 1 / (1 + np.exp(strength[right] - strength[left]))
    chance = np.where(np.isnan(known), chance, known)
    looks = rng.random(len(judge)) < care[judge]
    by_habit = 1 / (1 + np.exp(-habit[judge]))
    chose = rng.random(len(judge)) < np.where(looks, chance, by_habit)
    answers = CrowdAnswers(
        items=items,
        judges=judges,
        left=left,
        right=right,
        judge=judge,
        chose_left=chose,
        known=known,
    )
    return answers, strength


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_the_gradient_is_what_small_steps_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    answers, _ = draw(
        rng, items=5, care=rng.random(4), habit=rng.normal(0, 2, 4), each=int(rng.integers(1, 12))
    )
    at = rng.normal(0, 1.5, 5 + 2 * 4)
    _, slope = crowd_cost(at, answers)
    steps = approx_fprime(at, lambda x: crowd_cost(x, answers)[0], 1e-6)
    np.testing.assert_allclose(slope, steps, atol=2e-4, rtol=1e-4)


def test_planted_care_and_habits_are_found_again() -> None:
    rng = np.random.default_rng(8)
    care = np.concatenate([np.full(10, 0.97), np.full(10, 0.6), np.full(5, 0.05)])
    habit = rng.normal(0, 1.5, len(care))
    answers, strength = draw(rng, items=30, care=care, habit=habit, each=200)
    found = fit_crowd(answers)
    assert found.converged
    assert abs(found.care - care).mean() < 0.09
    assert spearmanr(found.care, care)[0] > 0.85
    assert spearmanr(found.habit[20:], habit[20:])[0] > 0.85
    assert kendalltau(found.values, strength)[0] > 0.85


def test_careless_judges_harm_less_than_where_all_count_alike() -> None:
    gained = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        care = np.concatenate([np.full(12, 0.98), np.full(12, 0.05)])
        habit = np.full(24, 2.5)
        answers, strength = draw(rng, items=25, care=care, habit=habit, each=40)
        free = np.isnan(answers.known)
        alike = fit_strengths(
            Comparisons(
                items=25,
                first=answers.left[free],
                second=answers.right[free],
                won=answers.chose_left[free].astype(float),
                cluster=answers.judge[free],
                clusters=24,
            ),
            prior=1.0,
        )
        ours = kendalltau(fit_crowd(answers).values, strength)[0]
        gained.append(ours - kendalltau(alike.values, strength)[0])
    assert np.mean(gained) > 0.02


def test_known_answers_tell_about_the_judge_and_not_about_the_items() -> None:
    known = CrowdAnswers(
        items=2,
        judges=2,
        left=np.zeros(20, np.int64),
        right=np.ones(20, np.int64),
        judge=np.repeat([0, 1], 10),
        chose_left=np.repeat([True, False], 10),
        known=np.ones(20),
    )
    found = fit_crowd(known)
    assert found.values.tolist() == pytest.approx([0, 0], abs=1e-6)
    assert found.care[0] > 0.75
    assert found.care[1] < 0.5


def test_a_judge_without_an_answer_is_as_the_prior_has_it() -> None:
    none = np.zeros(0, np.int64)
    empty = CrowdAnswers(
        items=2,
        judges=1,
        left=none,
        right=none,
        judge=none,
        chose_left=none.astype(bool),
        known=np.zeros(0),
    )
    found = fit_crowd(empty)
    assert found.care[0] == pytest.approx(3 / 4, abs=1e-4)
    assert found.habit[0] == pytest.approx(0, abs=1e-5)


def test_sides_exchanged_exchange_the_habits_alone() -> None:
    rng = np.random.default_rng(3)
    answers, _ = draw(rng, items=6, care=rng.random(5), habit=rng.normal(0, 1, 5), each=40)
    turned = CrowdAnswers(
        items=6,
        judges=5,
        left=answers.right,
        right=answers.left,
        judge=answers.judge,
        chose_left=~answers.chose_left,
        known=1 - answers.known,
    )
    one, other = fit_crowd(answers), fit_crowd(turned)
    np.testing.assert_allclose(one.values, other.values, atol=1e-3)
    np.testing.assert_allclose(one.care, other.care, atol=1e-3)
    np.testing.assert_allclose(one.habit, -other.habit, atol=1e-3)
