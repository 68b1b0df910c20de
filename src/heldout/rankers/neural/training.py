"""Fine-tuning of a cross-encoder on triples: a query, a relevant text, and one that is not.

The loop is plain: batches in the order of the sequence, AdamW, a learning rate that rises over
the first steps and then falls, gradients cut at a norm. What it does depends on nothing but the
model, the triples and the settings, so a training that was killed goes on from its last state
to the same weights; bit for bit on the same machine with as many threads. The state on disk is
whole or absent, in torch's own format, and read without its pickles, so that a state somebody else
gave away runs nothing.

The pointwise loss of a BERT is the published one. monoT5 was published with cross entropy over the
whole vocabulary; here it is over the two answers alone, which are all that scores are made of, so
that nothing pushes other words down.

Sources: Nogueira and Cho 2019 (pointwise loss on BERT); Nogueira et al., EMNLP Findings 2020
(monoT5).
"""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

from heldout.errors import InputError, StoreError
from heldout.files.durable import write_whole
from heldout.ids import Digest
from heldout.rankers.neural.checkpoints import import_neural
from heldout.rankers.neural.cross_encoder import CrossEncoder
from heldout.rankers.run import TextPair

_WARMUP = 0.1
"""Share of the steps in which the learning rate rises."""
_CLIP = 1.0
"""Longest gradient."""
_WEIGHT_DECAY = 0.01
"""Of AdamW."""


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write a state so that a kill leaves the one before or this one, never a part.

    Args:
        path: its folder is made where it is missing.
        state: tensors, numbers, text, and dicts and lists of them; has a `digest`.

    Raises:
        StoreError: it cannot be written; the state before is kept.
    """
    content = io.BytesIO()
    import_neural("torch").save(dict(state), content)
    try:
        write_whole(path, content.getvalue())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def read_state(path: Path, digest: Digest) -> dict[str, Any] | None:
    """The state that was kept of a training, `None` where there is none.

    Args:
        path: where `write_state` put it.
        digest: of the training that wants to go on.

    Raises:
        StoreError: the file is damaged, or belongs to another training.
    """
    torch = import_neural("torch")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        found = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        theirs = found["digest"]
    # What torch raises on a file that is none of its own is nowhere listed.
    except Exception as error:
        raise StoreError(
            f"{path} cannot be read; remove it, and the training begins again"
        ) from error
    if theirs != digest:
        raise StoreError(
            f"{path} belongs to another training: its model, triples, settings or version of torch "
            "are others; remove it to begin again"
        )
    return dict(found)


DEFAULT_RATES = {"bert": 2e-5, "monot5": 5e-5}
"""Learning rate by the kind of a cross-encoder, where none is set."""

Progress = Callable[[int, float], None]
"""Called after each step with how many are done, and the loss of the last."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What became of a training.

    Attributes:
        losses: of each step, in order.
        resumed_at: how many steps had been done before this call; 0 where it began from the start.
        digest: of what was trained on and how.
    """

    losses: tuple[float, ...]
    resumed_at: int
    digest: Digest


def train(
    encoder: CrossEncoder,
    triples: Sequence[TextTriple],
    settings: TrainingSettings,
    *,
    state: Path | None = None,
    every: int = 100,
    progress: Progress | None = None,
) -> Trained:
    """Fine-tune a cross-encoder; its weights are changed in place.

    Args:
        encoder: with the weights to begin from; it is ready to score afterwards.
        triples: the sequence, at least one.
        settings: how.
        state: where the state of the training is kept, so that it can go on after a kill;
            `None` for nowhere. A state of the same training that is there is gone on from. It
            stays there: whoever has stored the result removes it.
        every: steps between two states, from 1; the last step has one too.
        progress: called after each step.

    Raises:
        InputError: code `training-diverged`: a loss is not finite.
        StoreError: the state is damaged, or of another training.
        ValueError: no triple, or `every` below 1.
    """
    torch = import_neural("torch")
    if not triples or every < 1:
        raise ValueError((len(triples), every))
    digest = training_digest(encoder, triples, settings)
    devices = [torch.cuda.current_device()] if encoder.device == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(settings.seed)
        loop = _Loop(encoder, settings)
        losses = loop.go_on_from(state, digest)
        resumed_at = len(losses)
        encoder.model.train()
        try:
            for step in range(resumed_at, settings.steps):
                first = step * settings.batch
                batch = [triples[(first + i) % len(triples)] for i in range(settings.batch)]
                losses.append(loop.step(step, batch))
                last = step + 1 == settings.steps
                if state is not None and (last or (step + 1) % every == 0):
                    write_state(state, loop.state(digest, losses))
                if progress is not None:
                    progress(step + 1, losses[-1])
        finally:
            encoder.model.eval()
    return Trained(losses=tuple(losses), resumed_at=resumed_at, digest=digest)


def training_digest(
    encoder: CrossEncoder, triples: Sequence[TextTriple], settings: TrainingSettings
) -> Digest:
    """What a training is: the model, the sequence, the settings and the library's version.

    Args:
        encoder: with the weights to begin from, on its device.
        triples: the sequence.
        settings: of the training.
    """
    version = import_neural("torch").__version__
    found = sha256(repr((version, encoder.digest, asdict(settings))).encode())
    for triple in triples:
        found.update(repr(tuple(triple)).encode())
    return Digest(found.hexdigest())


def rate_at(step: int, steps: int) -> float:
    """Return the share of the highest learning rate that a step has, in (0, 1].

    It rises from 0 in the first tenth of the steps, then falls to 0 in a straight line.

    Args:
        step: from 0, below `steps`.
        steps: of the training.
    """
    rising = math.ceil(_WARMUP * steps)
    return (step + 1) / rising if step < rising else (steps - step) / (steps - rising)


class _Loop:
    """A model with its optimizer: one step, and all that the next one depends on."""

    def __init__(self, encoder: CrossEncoder, settings: TrainingSettings) -> None:
        torch = import_neural("torch")
        self.torch = torch
        self.encoder = encoder
        self.settings = settings
        self.rate = settings.learning_rate or DEFAULT_RATES[encoder.kind]
        self.optimizer = torch.optim.AdamW(_parameter_groups(encoder.model), lr=self.rate)
        # Half precision alone has gradients that vanish; elsewhere the scaler does nothing.
        half = encoder.precision == "float16"
        self.scaler = torch.amp.GradScaler(encoder.device, enabled=half)

    def step(self, number: int, batch: Sequence[TextTriple]) -> float:
        """Change the weights once.

        Returns:
            The loss before the change.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * rate_at(number, self.settings.steps)
        loss = self._loss(batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise _diverged(value, number + 1)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        self.torch.nn.utils.clip_grad_norm_(self.encoder.model.parameters(), _CLIP)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return value

    def _loss(self, batch: Sequence[TextTriple]) -> Any:
        pairs = [TextPair(one.query, one.positive) for one in batch]
        pairs += [TextPair(one.query, one.negative) for one in batch]
        positive, negative = self.encoder.scores(pairs).split(len(batch))
        softplus = self.torch.nn.functional.softplus
        if self.settings.loss == "pairwise":
            return softplus(negative - positive).mean()
        return (softplus(-positive).mean() + softplus(negative).mean()) / 2

    def state(self, digest: Digest, losses: Sequence[float]) -> dict[str, Any]:
        """All that the rest of the training depends on."""
        found = {
            "digest": digest,
            "losses": list(losses),
            "model": self.encoder.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "random": self.torch.get_rng_state(),
        }
        if self.encoder.device != "cpu":
            found["random_device"] = getattr(self.torch, self.encoder.device).get_rng_state()
        return found

    def go_on_from(self, path: Path | None, digest: Digest) -> list[float]:
        """Take a state up, where there is one.

        Returns:
            The losses of the steps that are done; none where the training begins.
        """
        found = None if path is None else read_state(path, digest)
        if found is None:
            return []
        self.encoder.model.load_state_dict(found["model"])
        self.optimizer.load_state_dict(found["optimizer"])
        self.scaler.load_state_dict(found["scaler"])
        self.torch.set_rng_state(found["random"])
        if "random_device" in found:
            getattr(self.torch, self.encoder.device).set_rng_state(found["random_device"])
        return list(found["losses"])


def _parameter_groups(model: Any) -> list[dict[str, Any]]:
    """Matrices are decayed; norms and biases, which have one dimension, are not."""
    parameters = [one for one in model.parameters() if one.requires_grad]
    return [
        {"params": [one for one in parameters if one.ndim > 1], "weight_decay": _WEIGHT_DECAY},
        {"params": [one for one in parameters if one.ndim <= 1], "weight_decay": 0.0},
    ]


def _diverged(loss: float, step: int) -> InputError:
    return InputError.of(
        "training-diverged",
        "training",
        f"a loss of {loss} at step {step}",
        "a finite loss",
        "a lower learning rate, or precision float32",
    )
