"""What a T5 re-ranker is asked, and the tokens of its answer."""

from collections.abc import Sequence
from typing import Any

from heldout.errors import InputError, Problem, printable

__all__ = ["answer_ids", "encode_prompts"]

_ANSWERS = (("▁false", "▁true"), ("▁no", "▁yes"))
"""Pairs of answers in use: those of the English models, those of the multilingual ones."""

_QUESTION = "Relevant:"


def answer_ids(tokenizer: Any, model: str) -> tuple[int, int]:
    """Ids of the tokens that mean not relevant and relevant.

    Args:
        tokenizer: that of the model.
        model: its name, which for mT5 decides between true and yes.

    Raises:
        InputError: code `model-checkpoint`: its vocabulary has no such answers.

    Source: Nogueira et al., Findings of EMNLP 2020, section 3; yes and no: Bonifacio et al.,
    arXiv:2108.13897, 2021.
    """
    known = tokenizer.get_vocab()
    ordered = _ANSWERS[::-1] if "mt5" in model.lower() else _ANSWERS
    for wrong, right in ordered:
        if wrong in known and right in known:
            return known[wrong], known[right]
    raise InputError(
        Problem(
            code="model-checkpoint",
            path=printable(model),
            found="a vocabulary without the tokens of an answer",
            expected="true and false, or yes and no, as single tokens",
            hint="is this a monoT5 or duoT5?",
        )
    )


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
