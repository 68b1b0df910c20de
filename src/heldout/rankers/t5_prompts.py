"""What a T5 re-ranker is asked, and the tokens of its answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from heldout.errors import InputError, Problem, printable

__all__ = ["AnswerName", "AnswerTokens", "encode_prompts", "find_answers"]

AnswerName = Literal["true", "yes", "sim"]
"""What a T5 says of a relevant document."""

_TOKENS: dict[AnswerName, tuple[str, str]] = {
    "true": ("▁false", "▁true"),
    "yes": ("▁no", "▁yes"),
    "sim": ("▁não", "▁sim"),
}
"""Tokens of not relevant and relevant: of English, multilingual, and Portuguese models."""

_SPLIT_FALSE = ("▁", "▁true")
"""Where a vocabulary has no token for false, the first token of the word is the blank before it."""

_PUBLISHED: tuple[tuple[str, AnswerName], ...] = (
    ("unicamp-dl/mt5-3b-mmarco-en-pt", "true"),
    ("unicamp-dl/mt5-13b-mmarco-100k", "true"),
    ("unicamp-dl/mt5-", "yes"),
    ("unicamp-dl/ptt5-", "sim"),
)
"""Beginnings of published names, in small letters; the first that fits counts."""

_MULTILINGUAL = frozenset({"mt5", "umt5"})
_SAVED = "relevance_answers"
"""Where a configuration keeps the answer, so that a folder does not need the published name."""

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

    def keep_in(self, config: Any) -> None:
        """Note the answer in a configuration, for whoever loads the folder it is saved in."""
        setattr(config, _SAVED, self.name)


def find_answers(
    tokenizer: Any, config: Any, model: str, *, asked: Literal["auto"] | AnswerName = "auto"
) -> AnswerTokens:
    """The tokens that mean not relevant and relevant.

    Without a word of the caller: what the configuration notes, else the published name, else the
    type of the model (yes for mT5, true for T5). The path of a folder says nothing.

    Args:
        tokenizer: that of the model.
        config: of the model.
        model: its published name, or a folder.
        asked: which answer means relevant; `auto` finds out.

    Raises:
        InputError: code `model-checkpoint`: its vocabulary has no such answers.

    Source: Nogueira et al., Findings of EMNLP 2020, section 3; yes and no: Bonifacio et al.,
    arXiv:2108.13897, 2021; the others: the table of published models in pygaggle.
    """
    known = tokenizer.get_vocab()
    names = (asked,) if asked != "auto" else _names(config, model)
    pairs = [(name, _TOKENS[name]) for name in names]
    if "true" in names:
        pairs.append(("true", _SPLIT_FALSE))
    for name, (wrong, right) in pairs:
        if wrong in known and right in known:
            return AnswerTokens(name=name, wrong=known[wrong], right=known[right])
    raise InputError(
        Problem(
            code="model-checkpoint",
            path=printable(model),
            found="a vocabulary without the tokens of an answer",
            expected=f"one token for each of {' or '.join(map(_words, names))}",
            hint="is this a monoT5 or duoT5? answers=true, yes or sim says what it answers",
        )
    )


def _names(config: Any, model: str) -> tuple[AnswerName, ...]:
    """Answers to look for, by preference."""
    saved = getattr(config, _SAVED, None)
    if saved in _TOKENS:
        return (saved,)
    for start, name in _PUBLISHED:
        if model.lower().startswith(start):
            return (name,)
    return ("yes", "true") if config.model_type in _MULTILINGUAL else ("true", "yes")


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
