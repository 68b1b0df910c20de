"""Fine-tuning of a cross-encoder on triples: a query, a relevant text, and one that is not.

The loop is plain: batches in the order of the sequence, AdamW, a learning rate that rises over
the first steps and then falls, gradients cut at a norm. What it does depends on nothing but the
model, the triples and the settings; bit for bit on the same machine with as many threads.

The pointwise loss of a BERT is the published one. monoT5 was published with cross entropy over the
whole vocabulary; here it is over the two answers alone, which are all that scores are made of, so
that nothing pushes other words down.

Sources: Nogueira and Cho 2019 (pointwise loss on BERT); Nogueira et al., EMNLP Findings 2020
(monoT5).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from heldout.errors import InputError
from heldout.rankers.neural.checkpoints import import_neural
from heldout.rankers.neural.cross_encoder import CrossEncoder
from heldout.rankers.run import TextPair

_WARMUP = 0.1
"""Share of the steps in which the learning rate rises."""
_CLIP = 1.0
"""Longest gradient."""
_WEIGHT_DECAY = 0.01
"""Of AdamW."""

DEFAULT_RATES = {"bert": 2e-5, "monot5": 5e-5}
"""Learning rate by the kind of a cross-encoder, where none is set."""


class TextTriple(NamedTuple):
    """One sample to train on, in words."""

    query: str
    positive: str
    negative: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """How a cross-encoder is trained.

    Attributes:
        steps: how often the weights are changed, from 1.
        batch: triples in a step, from 1. A sequence that is too short begins again.
        loss: `pointwise` (cross entropy of relevant and not, over both documents) or `pairwise`
            (cross entropy of which of the two is the positive).
        learning_rate: the highest, above 0; `None` for that of the model's kind,
            `DEFAULT_RATES`.
        seed: of dropout, from 0.
    """

    steps: int
    batch: int = 8
    loss: Literal["pointwise", "pairwise"] = "pointwise"
    learning_rate: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be trained with."""
        rate = 1.0 if self.learning_rate is None else self.learning_rate
        sizes = self.steps >= 1 and self.batch >= 1 and self.seed >= 0
        if not (sizes and 0 < rate < math.inf):
            raise ValueError(self)


def train(
    encoder: CrossEncoder,
    triples: Sequence[TextTriple],
    settings: TrainingSettings,
    *,
    done: Callable[[], None] = lambda: None,
) -> tuple[float, ...]:
    """Fine-tune a cross-encoder; its weights are changed in place.

    Args:
        encoder: with the weights to begin from; it is ready to score afterwards.
        triples: the sequence, at least one.
        settings: how.
        done: called after each step.

    Returns:
        The loss of each step, before its change of the weights.

    Raises:
        InputError: code `training-diverged`: a loss is not finite.
        ValueError: no triple.
    """
    torch = import_neural("torch")
    if not triples:
        raise ValueError("no triple to train on")
    losses: list[float] = []
    devices = [torch.cuda.current_device()] if encoder.device == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(settings.seed)
        optimizer = torch.optim.AdamW(_parameter_groups(encoder.model))
        # Half precision alone has gradients that vanish; elsewhere the scaler does nothing.
        half = encoder.precision == "float16"
        scaler = torch.amp.GradScaler(encoder.device, enabled=half)
        encoder.model.train()
        try:
            for step in range(settings.steps):
                rate = settings.learning_rate or DEFAULT_RATES[encoder.kind]
                for group in optimizer.param_groups:
                    group["lr"] = rate * rate_at(step, settings.steps)
                first = step * settings.batch
                batch = [triples[(first + i) % len(triples)] for i in range(settings.batch)]
                loss = _loss(encoder, batch, settings.loss)
                losses.append(_check_loss(float(loss.detach()), step + 1))
                optimizer.zero_grad(set_to_none=True)
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(encoder.model.parameters(), _CLIP)
                scaler.step(optimizer)
                scaler.update()
                done()
        finally:
            encoder.model.eval()
    return tuple(losses)


def rate_at(step: int, steps: int) -> float:
    """Return the share of the highest learning rate that a step has, in (0, 1].

    It rises from 0 in the first tenth of the steps, then falls to 0 in a straight line.

    Args:
        step: from 0, below `steps`.
        steps: of the training.
    """
    rising = math.ceil(_WARMUP * steps)
    return (step + 1) / rising if step < rising else (steps - step) / (steps - rising)


def _loss(
    encoder: CrossEncoder, batch: Sequence[TextTriple], kind: Literal["pointwise", "pairwise"]
) -> Any:
    pairs = [TextPair(one.query, one.positive) for one in batch]
    pairs += [TextPair(one.query, one.negative) for one in batch]
    positive, negative = encoder.scores(pairs).split(len(batch))
    softplus = import_neural("torch").nn.functional.softplus
    if kind == "pairwise":
        return softplus(negative - positive).mean()
    return (softplus(-positive).mean() + softplus(negative).mean()) / 2


def _parameter_groups(model: Any) -> list[dict[str, Any]]:
    """Matrices are decayed; norms and biases, which have one dimension, are not."""
    parameters = [one for one in model.parameters() if one.requires_grad]
    return [
        {"params": [one for one in parameters if one.ndim > 1], "weight_decay": _WEIGHT_DECAY},
        {"params": [one for one in parameters if one.ndim <= 1], "weight_decay": 0.0},
    ]


def _check_loss(loss: float, step: int) -> float:
    """Return a loss that is finite.

    Raises:
        InputError: code `training-diverged`.
    """
    if math.isfinite(loss):
        return loss
    raise InputError.of(
        "training-diverged",
        "training",
        f"a loss of {loss} at step {step}",
        "a finite loss",
        "a lower learning rate, or precision float32",
    )
