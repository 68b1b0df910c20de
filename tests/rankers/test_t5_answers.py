"""Which tokens of a T5 mean relevant: by name, by type, and as asked."""

from dataclasses import dataclass

import pytest

from heldout.errors import InputError
from heldout.rankers.neural.cross_encoder import AnswerName, find_answers

ENGLISH = ("▁", "▁false", "▁true", "▁no", "▁yes")
MULTILINGUAL = ("▁", "▁true", "▁no", "▁yes")


@dataclass(kw_only=True)
class Config:
    """A configuration."""

    model_type: str = "t5"


class Vocabulary:
    """A tokenizer that only knows its tokens."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self.tokens = tokens

    def get_vocab(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}


@pytest.mark.parametrize(
    ("model", "kind", "tokens", "wanted"),
    [
        ("castorini/monot5-base-msmarco", "t5", ENGLISH, ("▁false", "▁true")),
        ("/data/mt5-runs/monot5-base", "t5", ENGLISH, ("▁false", "▁true")),
        ("/data/multilingual", "mt5", MULTILINGUAL, ("▁no", "▁yes")),
        ("/data/multilingual", "t5", MULTILINGUAL, ("▁no", "▁yes")),
    ],
)
def test_answers_are_those_that_the_model_was_published_with(
    model: str, kind: str, tokens: tuple[str, ...], wanted: tuple[str, str]
) -> None:
    found = find_answers(Vocabulary(tokens), Config(model_type=kind), model)
    assert (tokens[found.wrong], tokens[found.right]) == wanted


@pytest.mark.parametrize("kind", ["t5", "mt5"])
@pytest.mark.parametrize(("asked", "token"), [("true", "▁true"), ("yes", "▁yes")])
def test_what_is_asked_for_goes_before_all_else(kind: str, asked: AnswerName, token: str) -> None:
    config = Config(model_type=kind)
    found = find_answers(Vocabulary(ENGLISH), config, "x", asked=asked)
    assert (found.name, ENGLISH[found.right]) == (asked, token)


@pytest.mark.parametrize("tokens", [(), ("▁true",), ("▁false", "▁yes"), ("▁no", "▁")])
def test_a_vocabulary_without_both_answers_is_refused(tokens: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"model-checkpoint .*true and false or yes and no"):
        find_answers(Vocabulary(tokens), Config(), "plain")
