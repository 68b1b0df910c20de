"""Cross-encoders: query and document read together by one model, which says how relevant.

Two kinds: `bert`, a classifier over the pair, and `monot5`, a T5 that answers in one word.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, printable
from heldout.ids import Digest
from heldout.rankers.checkpoints import (
    check_scores,
    count_labels,
    digest_tokenizer,
    digest_weights,
    find_checkpoint,
    limit_length,
    load_checkpoint,
    load_config,
)
from heldout.rankers.devices import (
    DeviceChoice,
    DeviceName,
    Precision,
    PrecisionChoice,
    autocast,
    choose_device,
    choose_precision,
    import_neural,
    map_batches,
)
from heldout.rankers.pairs import TextPair
from heldout.rankers.t5_prompts import AnswerTokens, encode_prompts, find_answers

__all__ = ["CrossEncoder", "CrossEncoderSettings", "Kind", "MonoT5Settings", "load_cross_encoder"]

Kind = Literal["bert", "monot5"]

_T5 = frozenset({"t5", "mt5", "umt5"})
_HEADS = ("classifier", "lm_head", "score")
"""What transformers calls the last layer, by model."""

_SHORTEST = 16
_MOST_LABELS = 2
"""Logits of a classifier that can be read as one score: relevant, or not relevant and relevant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoderSettings:
    """Which cross-encoder, and how it is run.

    Attributes:
        model: a name in `checkpoints`, any other published one, a folder, or `minilm`: the
            installed all-MiniLM-L6-v2 with a new head, to be trained.
        kind: `bert` or `monot5`; `auto` looks into the checkpoint.
        batch: pairs scored at once, >= 1.
        length: tokens of a pair, >= 16; what is longer is cut, and so is what the model
            cannot take.
        device: where it runs; `auto` prefers cuda, then mps.
        precision: of matrix products; `auto` takes the fastest that the device has.
        seed: draws the weights that the checkpoint does not have, >= 0.
        answers: what a T5 says of a relevant document (see `t5_prompts`); `auto` finds out.
    """

    model: str = "minilm-l6"
    kind: Literal["auto", "bert", "monot5"] = "auto"
    batch: int = 32
    length: int = 512
    device: DeviceChoice = "auto"
    precision: PrecisionChoice = "auto"
    seed: int = 0
    answers: Literal["auto", "true", "yes", "sim"] = "auto"

    def __post_init__(self) -> None:
        """Refuse an empty batch, pairs without room, and a negative seed."""
        if self.batch < 1 or self.length < _SHORTEST or self.seed < 0:
            message = f"wanted: batch >= 1, length >= {_SHORTEST}, seed >= 0"
            raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonoT5Settings(CrossEncoderSettings):
    """Which monoT5, and how it is run."""

    model: str = "monot5"
    kind: Literal["auto", "bert", "monot5"] = "monot5"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoder:
    """A loaded cross-encoder.

    Attributes:
        model: the torch module, on its device.
        tokenizer: that of the checkpoint.
        kind: how pairs are written and answers read.
        device: where it runs.
        precision: of its matrix products.
        length: tokens of a pair at most.
        answers: the tokens that a T5 answers with; None for a classifier.
        new_weights: names of weights that the checkpoint lacks and the seed drew; where there
            are any, scores mean nothing before training.
        settings: what it was loaded with.
    """

    model: Any
    tokenizer: Any
    kind: Kind
    device: DeviceName
    precision: Precision
    length: int
    answers: AnswerTokens | None
    new_weights: tuple[str, ...]
    settings: CrossEncoderSettings

    @property
    def digest(self) -> Digest:
        """SHA-256 of the weights as they are now and of what else scores depend on."""
        text = f"{self.kind} {self.device} {self.precision} {self.length} {self.settings.batch} "
        text += f"{self.answers} {digest_tokenizer(self.tokenizer)} {digest_weights(self.model)}"
        return Digest(hashlib.sha256(text.encode()).hexdigest())

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

    def score_prompts(self, prompts: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Log-odds of the right answer against the wrong one, for whatever a T5 is asked.

        Args:
            prompts: parts of each, as in `encode_prompts`.

        Returns:
            float64, shape (prompts,).

        Raises:
            InputError: code `model-scores`; `model-checkpoint`: it is a classifier.
        """
        return self._in_batches(self._t5, prompts)

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
    """Load a cross-encoder onto its device, in evaluation mode.

    Raises:
        InputError: code `model-checkpoint`.
        SetupError: the extra `neural` is not installed, or the device is not there.
    """
    device = choose_device(settings.device)
    return load_checkpoint(settings.model, lambda place: _load(place, settings, device))


def _load(place: str, settings: CrossEncoderSettings, device: DeviceName) -> CrossEncoder:
    transformers = import_neural("transformers")
    config = load_config(place)
    kind = _kind(config, settings)
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        place, config=config, trust_remote_code=False
    )
    answers = _answers(tokenizer, config, kind, settings)
    model, missing = _load_model(place, config, kind, settings)
    if answers is not None:
        answers.keep_in(model.config)
    return CrossEncoder(
        model=model.to(device).eval(),
        tokenizer=tokenizer,
        kind=kind,
        device=device,
        precision=choose_precision(settings.precision, device),
        length=limit_length(config, tokenizer, settings.length),
        answers=answers,
        new_weights=missing,
        settings=settings,
    )


def _kind(config: Any, settings: CrossEncoderSettings) -> Kind:
    kind: Kind = "monot5" if config.model_type in _T5 else "bert"
    if settings.kind in {"auto", kind}:
        return kind
    raise _refusal(
        settings.model,
        found=f"a model of type {printable(str(config.model_type))}",
        expected=f"one of kind {settings.kind}",
    )


def _answers(
    tokenizer: Any, config: Any, kind: Kind, settings: CrossEncoderSettings
) -> AnswerTokens | None:
    """What a T5 answers with; a classifier answers nothing."""
    if kind == "monot5":
        return find_answers(tokenizer, config, _name(settings.model), asked=settings.answers)
    if settings.answers == "auto":
        return None
    raise _no_words(settings.model)


def _name(model: str) -> str:
    """The published name of a short one; a folder and any other name as they are."""
    known = find_checkpoint(model)
    return known.name if known else model


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
    return InputError(
        Problem(code="model-checkpoint", path=printable(model), found=found, expected=expected)
    )


def _load_model(
    place: str, config: Any, kind: Kind, settings: CrossEncoderSettings
) -> tuple[Any, tuple[str, ...]]:
    """The model in float32, and the names of weights that were drawn."""
    torch, transformers = import_neural("torch"), import_neural("transformers")
    if kind == "monot5":
        loader = transformers.AutoModelForSeq2SeqLM
    else:
        loader = transformers.AutoModelForSequenceClassification
        config.num_labels = count_labels(place, config)
        _check_labels(config, settings.model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model, report = loader.from_pretrained(
            place,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
            trust_remote_code=False,
        )
    for name in _HEADS:
        if hasattr(model, name):
            _keep_float32(getattr(model, name), torch)
    return model, tuple(sorted(report["missing_keys"]))


def _keep_float32(head: Any, torch: Any) -> None:
    """Let the last layer compute in float32: in half precision many scores would be equal."""
    forward = head.forward

    def exact(features: Any) -> Any:
        with torch.autocast(features.device.type, enabled=False):
            return forward(features.float())

    head.forward = exact
