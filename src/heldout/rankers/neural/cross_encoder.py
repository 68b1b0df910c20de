"""Cross-encoders: query and documents read together by one model, and its training on triples.

Three kinds: `bert`, a classifier over the pair; `monot5`, a T5 that answers in one word; and duoT5,
asked of all ordered pairs of documents which of the two answers the query better.

The loop of training is plain: batches in the order of the sequence, AdamW, a learning rate that
rises over the first steps and then falls, gradients cut at a norm. What it does depends on nothing
but the model, the triples and the settings; bit for bit on the same machine with as many threads.

The pointwise loss of a BERT is the published one. monoT5 was published with cross entropy over the
whole vocabulary; here it is over the two answers alone, which are all that scores are made of, so
that nothing pushes other words down.

Sources: Nogueira and Cho 2019 (pointwise loss on BERT); Nogueira et al., EMNLP Findings 2020
(monoT5).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, printable
from heldout.rankers.neural.checkpoints import (
    DeviceName,
    LoadedModel,
    ModelSettings,
    autocast,
    check_scores,
    import_neural,
    limit_length,
    load_model,
    map_batches,
)
from heldout.rankers.run import TextPair

AnswerName = Literal["true", "yes"]
"""What a T5 says of a relevant document."""

_TOKENS: dict[AnswerName, tuple[str, str]] = {
    "true": ("▁false", "▁true"),
    "yes": ("▁no", "▁yes"),
}
"""Tokens of not relevant and relevant: of English and of multilingual models."""

_MULTILINGUAL = frozenset({"mt5", "umt5"})

_QUESTION = "Relevant:"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTokens:
    """The two answers of a T5.

    Attributes:
        name: which answer means relevant.
        wrong: id of the token that means not relevant.
        right: id of the token that means relevant.
    """

    name: AnswerName
    wrong: int
    right: int


def find_answers(
    tokenizer: Any, config: Any, model: str, *, asked: Literal["auto"] | AnswerName = "auto"
) -> AnswerTokens:
    """Find the tokens that mean not relevant and relevant.

    Args:
        tokenizer: that of the model.
        config: of the model.
        model: its name, for messages.
        asked: which answer means relevant; `auto` is yes for an mT5 and true for a T5, or the
            other one where the vocabulary lacks it.

    Raises:
        InputError: code `model-checkpoint`: its vocabulary has no such answers.

    Source: Nogueira et al., Findings of EMNLP 2020, section 3; yes and no: Bonifacio et al.,
    arXiv:2108.13897, 2021.
    """
    known = tokenizer.get_vocab()
    names: tuple[AnswerName, ...] = ("true", "yes")
    if asked != "auto":
        names = (asked,)
    elif config.model_type in _MULTILINGUAL:
        names = ("yes", "true")
    for name in names:
        wrong, right = _TOKENS[name]
        if wrong in known and right in known:
            return AnswerTokens(name=name, wrong=known[wrong], right=known[right])
    found = "a vocabulary without the tokens of an answer"
    expected = f"one token for each of {' or '.join(map(_words, names))}"
    hint = "is this a monoT5 or duoT5? answers=true or answers=yes says what it answers"
    raise InputError.of("model-checkpoint", printable(model), found, expected, hint)


def _words(name: AnswerName) -> str:
    return " and ".join(token.removeprefix("▁") for token in reversed(_TOKENS[name]))


def encode_prompts(tokenizer: Any, prompts: Sequence[Sequence[str]], *, length: int) -> Any:
    """Prompts as a padded batch: the parts, then the question and the end of the text.

    The question must survive, so the parts are cut and not the end: the first, which is the
    query, to half of the room, and those behind it to equal shares of the rest.

    Args:
        tokenizer: that of the model.
        prompts: the parts of each; all have as many.
        length: tokens of a prompt, >= 16.

    Returns:
        `input_ids` and `attention_mask`, as the tokenizer pads them.
    """
    tail = [*_ids(tokenizer, [_QUESTION])[0], tokenizer.eos_token_id]
    count = len(prompts[0])
    flat = _ids(tokenizer, [part for parts in prompts for part in parts])
    room = length - len(tail)
    rows = [_fit(flat[start : start + count], room) + tail for start in range(0, len(flat), count)]
    return tokenizer.pad({"input_ids": rows}, return_tensors="pt")


def _ids(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    ids: list[list[int]] = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    return ids


def _fit(parts: Sequence[list[int]], room: int) -> list[int]:
    """The parts in a row, none longer than its share."""
    fitted = parts[0][: room // 2] if sum(map(len, parts)) > room else list(parts[0])
    for left, part in zip(range(len(parts) - 1, 0, -1), parts[1:], strict=True):
        fitted += part[: (room - len(fitted)) // left]
    return fitted


Kind = Literal["bert", "monot5"]

_T5 = frozenset({"t5", "mt5", "umt5"})
_HEADS = ("classifier", "lm_head", "score")
"""What transformers calls the last layer, by model."""

_SHORTEST = 16
_MOST_LABELS = 2
"""Logits of a classifier that can be read as one score: relevant, or not relevant and relevant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoderSettings(ModelSettings):
    """Which cross-encoder, and how it is run.

    Attributes:
        model: `minilm` is all-MiniLM-L6-v2 with a new head, to be trained.
        length: tokens of a pair, >= 16; what is longer is cut, and so is what the model
            cannot take.
        seed: draws the weights that the checkpoint does not have, >= 0.
        answers: what a T5 says of a relevant document; `auto` goes by its type.
    """

    model: str = "minilm-l6"
    length: int = 512
    seed: int = 0
    answers: Literal["auto", "true", "yes"] = "auto"

    def __post_init__(self) -> None:
        """Refuse an empty batch, pairs without room, and a negative seed."""
        if self.batch < 1 or self.length < _SHORTEST or self.seed < 0:
            message = f"wanted: batch >= 1, length >= {_SHORTEST}, seed >= 0"
            raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonoT5Settings(CrossEncoderSettings):
    """Which monoT5, and how it is run."""

    model: str = "monot5"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoder(LoadedModel):
    """A loaded cross-encoder.

    Attributes:
        tokenizer: that of the checkpoint.
        kind: how pairs are written and answers read.
        length: tokens of a pair at most.
        answers: the tokens that a T5 answers with; None for a classifier.
        new_weights: names of weights that the checkpoint lacks and the seed drew; where there
            are any, scores mean nothing before training.
    """

    tokenizer: Any
    kind: Kind
    length: int
    answers: AnswerTokens | None
    new_weights: tuple[str, ...]

    def scores(self, pairs: Sequence[TextPair]) -> Any:
        """Scores as torch gives them, with gradient where the model trains.

        Args:
            pairs: at least one; all are computed at once.

        Returns:
            A float32 tensor of shape (pairs,): the logit of relevant (of two logits, their
            difference); of monoT5 the log-odds of its right answer against its wrong one, true
            against false or what else `answers` says.

        Source: Nogueira and Cho, arXiv:1901.04085, 2019; monoT5: Nogueira et al., Findings of
        EMNLP 2020.
        """
        if self.answers is None:
            return self._bert(pairs)
        return self._t5([(f"Query: {pair.query}", f"Document: {pair.document}") for pair in pairs])

    def score(self, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        """Scores without gradient, in batches of similar length: a `PairScorer`.

        Args:
            pairs: any number.

        Returns:
            float64, shape (pairs,), as `scores`, in the order of the pairs.

        Raises:
            InputError: code `model-scores`: a score is NaN or infinite.
        """
        return self._in_batches(self.scores, pairs)

    def save(self, folder: Path) -> None:
        """Write weights, configuration and tokenizer, as `load_cross_encoder` reads them.

        Args:
            folder: made where it is missing; files of the same names are replaced.

        Raises:
            OSError: it cannot be written.
        """
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def _in_batches(
        self, compute: Callable[[Sequence[Any]], Any], texts: Sequence[Sequence[str]]
    ) -> NDArray[np.float64]:
        """Scores of texts in evaluation mode; the mode of the model is as before afterwards."""

        def compute_rows(rows: Sequence[int]) -> NDArray[np.float32]:
            values: NDArray[np.float32] = compute([texts[row] for row in rows]).cpu().numpy()
            return values

        lengths = [sum(map(len, parts)) for parts in texts]
        was_training = self.model.training
        self.model.eval()
        try:
            values = map_batches(compute_rows, lengths, batch=self.settings.batch)
        finally:
            self.model.train(was_training)
        return check_scores(np.array(values, dtype=np.float64), self.settings.model)

    def _bert(self, pairs: Sequence[TextPair]) -> Any:
        queries, documents = zip(*pairs, strict=True)
        inputs = self.tokenizer(
            list(queries),
            list(documents),
            padding=True,
            truncation=True,
            max_length=self.length,
            return_tensors="pt",
        )
        with autocast(self.device, self.precision):
            logits = self.model(**inputs.to(self.device)).logits.float()
        return logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]

    def _t5(self, prompts: Sequence[Sequence[str]]) -> Any:
        """Log-odds of right against wrong as the first token of the answer."""
        torch = import_neural("torch")
        if self.answers is None:
            raise _no_words(self.settings.model)
        inputs = encode_prompts(self.tokenizer, prompts, length=self.length).to(self.device)
        start = torch.full((len(prompts), 1), self.model.config.decoder_start_token_id)
        with autocast(self.device, self.precision):
            answers = self.model(**inputs, decoder_input_ids=start.to(self.device)).logits
        logits = answers[:, 0].float()
        return logits[:, self.answers.right] - logits[:, self.answers.wrong]


def load_cross_encoder(settings: CrossEncoderSettings) -> CrossEncoder:
    """Load a cross-encoder onto its device, in evaluation mode; a duoT5 with its settings.

    Raises:
        InputError: code `model-checkpoint`.
        SetupError: the extra `neural` is not installed, or the device is not there.
    """
    kind = DuoT5 if isinstance(settings, DuoT5Settings) else CrossEncoder
    return load_model(kind, settings, lambda source, device: _read(source, settings, device))


def _read(source: str, settings: CrossEncoderSettings, device: DeviceName) -> dict[str, Any]:
    transformers = import_neural("transformers")
    config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False)
    kind: Kind = "monot5" if config.model_type in _T5 else "bert"
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        source, config=config, trust_remote_code=False
    )
    answers = _answers(tokenizer, config, kind, settings)
    model, missing = _load_model(source, config, kind, settings)
    return {
        "model": model.to(device).eval(),
        "tokenizer": tokenizer,
        "kind": kind,
        "length": limit_length(config, tokenizer, settings.length),
        "answers": answers,
        "new_weights": missing,
    }


def _answers(
    tokenizer: Any, config: Any, kind: Kind, settings: CrossEncoderSettings
) -> AnswerTokens | None:
    """Return what a T5 answers with; a classifier answers nothing."""
    if kind == "monot5":
        return find_answers(tokenizer, config, settings.model, asked=settings.answers)
    if settings.answers == "auto":
        return None
    raise _no_words(settings.model)


def _check_labels(config: Any, model: str) -> None:
    """Refuse a classifier whose logits are not one score, as those of entailment are not."""
    if config.num_labels > _MOST_LABELS:
        raise _refusal(
            model,
            found=f"a classifier of {config.num_labels} labels",
            expected="one of one label, or of two: not relevant and relevant",
        )


def _no_words(model: str) -> InputError:
    return _refusal(model, found="a classifier", expected="a T5, which answers in words")


def _refusal(model: str, *, found: str, expected: str) -> InputError:
    return InputError.of("model-checkpoint", printable(model), found, expected)


def _load_model(
    source: str, config: Any, kind: Kind, settings: CrossEncoderSettings
) -> tuple[Any, tuple[str, ...]]:
    """The model in float32, and the names of weights that were drawn."""
    torch, transformers = import_neural("torch"), import_neural("transformers")
    if kind == "monot5":
        loader = transformers.AutoModelForSeq2SeqLM
    else:
        loader = transformers.AutoModelForSequenceClassification
        names = config.architectures or ()
        if not any("SequenceClassification" in name for name in names):
            config.num_labels = 1
        _check_labels(config, settings.model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model, report = loader.from_pretrained(
            source,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
            trust_remote_code=False,
        )
    for name in _HEADS:
        if hasattr(model, name):
            _force_float32(getattr(model, name), torch)
    return model, tuple(sorted(report["missing_keys"]))


def _force_float32(head: Any, torch: Any) -> None:
    """Let the last layer compute in float32: in half precision many scores would be equal."""
    forward = head.forward

    def exact(features: Any) -> Any:
        with torch.autocast(features.device.type, enabled=False):
            return forward(features.float())

    head.forward = exact


@dataclass(frozen=True, slots=True, kw_only=True)
class DuoT5Settings(MonoT5Settings):
    """Which duoT5, and how it is run; k documents take k (k - 1) questions, so 10 to 50 of them."""

    model: str = "duot5"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuoT5(CrossEncoder):
    """A loaded duoT5."""

    def score(self, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        """Scores of documents against the others of the same query in the same call.

        Args:
            pairs: any number; those of one query are compared with each other, so scores of two
                calls do not compare.

        Returns:
            float64, shape (pairs,): the sum, over the other documents of the query, of the
            probability that this one is the more relevant, asked both ways round: p of this one
            first and 1 - p of the other first; 0 where there is no other.

        Raises:
            InputError: code `model-scores`.

        Source: Pradeep, Nogueira and Lin, arXiv:2101.05667, 2021, section 3.3 (SYM-SUM).
        """
        queries: dict[str, list[int]] = {}
        for row, pair in enumerate(pairs):
            queries.setdefault(pair.query, []).append(row)
        ordered = [pair for rows in queries.values() for pair in permutations(rows, 2)]
        sums = np.zeros(len(pairs))
        preferences = self._preferences(pairs, ordered)
        for (row, other), preference in zip(ordered, preferences, strict=True):
            sums[row] += preference
            sums[other] += 1 - preference
        return sums

    def _preferences(
        self, pairs: Sequence[TextPair], ordered: Sequence[tuple[int, int]]
    ) -> NDArray[np.float64]:
        """Probability for each ordered pair that its first is the more relevant."""
        prompts = [
            (
                f"Query: {pairs[one].query}",
                f"Document0: {pairs[one].document}",
                f"Document1: {pairs[other].document}",
            )
            for one, other in ordered
        ]
        odds = self._in_batches(self._t5, prompts)
        return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float64)


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
                losses.append(float(loss.detach()))
                if not math.isfinite(losses[-1]):
                    words: dict[str, Any] = {"loss": losses[-1], "step": len(losses)}
                    raise InputError.of("training-diverged", "training", **words)
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
