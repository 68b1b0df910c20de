"""Fine-tuning: it learns, and it is repeatable."""

import numpy as np
import pytest
import tiny_models
from numpy.typing import NDArray
from tiny_models import TinyModels
from trained_models import TRIPLES, load_tiny

from heldout.errors import InputError
from heldout.rankers.neural.checkpoints import import_neural
from heldout.rankers.neural.cross_encoder import (
    CrossEncoder,
    TextTriple,
    TrainingSettings,
    rate_at,
    train,
)
from heldout.rankers.run import TextPair

tiny = tiny_models.tiny

pytestmark = pytest.mark.usefixtures("neural")


def settings(**given: object) -> TrainingSettings:
    return TrainingSettings(**({"steps": 12, "batch": 2, "learning_rate": 1e-3} | given))  # type: ignore[arg-type]


def margins(encoder: CrossEncoder) -> NDArray[np.float64]:
    """How far the positive of each triple scores above its negative."""
    positive = encoder.score([TextPair(one.query, one.positive) for one in TRIPLES])
    return positive - encoder.score([TextPair(one.query, one.negative) for one in TRIPLES])


def weights(encoder: CrossEncoder) -> bytes:
    return b"".join(one.numpy().tobytes() for one in encoder.model.state_dict().values())


@pytest.mark.parametrize("loss", ["pointwise", "pairwise"])
@pytest.mark.parametrize("kind", ["bert", "two_logits"])
def test_positives_score_above_negatives_after_training(
    tiny: TinyModels, kind: str, loss: str
) -> None:
    encoder = load_tiny(getattr(tiny, kind))
    losses = train(encoder, TRIPLES, settings(steps=80, loss=loss))
    assert (margins(encoder) > 0).all()
    assert sum(losses[-10:]) < sum(losses[:10])


@pytest.mark.parametrize("loss", ["pointwise", "pairwise"])
def test_a_t5_learns_to_say_true_of_a_positive(tiny: TinyModels, loss: str) -> None:
    encoder = load_tiny(tiny.t5)
    hardest = int(margins(encoder).argmin())
    before = margins(encoder)[hardest]
    train(encoder, TRIPLES[hardest : hardest + 1], settings(steps=30, batch=1, loss=loss))
    assert margins(encoder)[hardest] > before + 1


def test_the_same_training_gives_the_same_weights_and_another_seed_others(tiny: TinyModels) -> None:
    found = []
    for seed in (0, 0, 1):
        encoder = load_tiny(tiny.bert)
        train(encoder, TRIPLES, settings(seed=seed))
        found.append(weights(encoder))
    assert found[0] == found[1] != found[2]


def test_training_leaves_the_random_state_of_the_caller_alone(tiny: TinyModels) -> None:
    torch = import_neural("torch")
    before = torch.get_rng_state()
    train(load_tiny(tiny.bert), TRIPLES, settings(steps=2))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_training_that_diverges_is_an_error_with_its_step(tiny: TinyModels) -> None:
    with pytest.raises(InputError, match="training-diverged") as caught:
        train(load_tiny(tiny.bert), TRIPLES, settings(learning_rate=1e30))
    assert "step" in caught.value.problems[0].found


def test_a_short_sequence_begins_again(tiny: TinyModels) -> None:
    once, twice = load_tiny(tiny.bert), load_tiny(tiny.bert)
    train(once, [*TRIPLES, *TRIPLES, *TRIPLES, *TRIPLES, *TRIPLES], settings())
    train(twice, TRIPLES, settings())
    assert weights(once) == weights(twice)


def test_no_triple_is_a_bug_of_the_caller(tiny: TinyModels) -> None:
    with pytest.raises(ValueError, match="no triple"):
        train(load_tiny(tiny.bert), [], settings())


def test_the_rate_rises_to_its_highest_and_never_to_zero() -> None:
    rates = [rate_at(step, 100) for step in range(100)]
    assert rates[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert max(rates) == 1.0
    assert min(rates) > 0
    assert rates[10:] == sorted(rates[10:], reverse=True)


@pytest.mark.parametrize(
    "given",
    [
        {"steps": 0},
        {"batch": 0},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"seed": -1},
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="TrainingSettings"):
        settings(**given)


def test_queries_of_any_text_can_be_trained_on(tiny: TinyModels) -> None:
    odd = [TextTriple("", "", "x"), TextTriple("\u202e" * 50, "a\x00b", "open " * 200)]
    assert len(train(load_tiny(tiny.bert), odd, settings(steps=2))) == 2
