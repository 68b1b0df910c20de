"""Which tokens of a T5 mean relevant: by name, by type, and as asked."""

from dataclasses import dataclass, field

import pytest

from heldout.errors import InputError
from heldout.rankers.neural.cross_encoder import AnswerName, find_answers

ENGLISH = ("▁", "▁false", "▁true", "▁no", "▁yes")
MULTILINGUAL = ("▁", "▁true", "▁no", "▁yes")
PORTUGUESE = ("▁", "▁não", "▁sim", "▁no")


@dataclass(kw_only=True)
class Config:
    """A configuration, which lets whoever comes write into it."""

    model_type: str = "t5"
    relevance_answers: object = field(default=None)


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
        ("unicamp-dl/mt5-base-mmarco-v2", "t5", ENGLISH, ("▁no", "▁yes")),
        ("unicamp-dl/mt5-3B-mmarco-en-pt", "mt5", MULTILINGUAL, ("▁", "▁true")),
        ("unicamp-dl/mt5-13b-mmarco-100k", "mt5", MULTILINGUAL, ("▁", "▁true")),
        ("unicamp-dl/mt5-13b-mmarco-100k", "mt5", ENGLISH, ("▁false", "▁true")),
        ("unicamp-dl/ptt5-base-pt-msmarco-10k-v1", "t5", PORTUGUESE, ("▁não", "▁sim")),
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
    config = Config(model_type=kind, relevance_answers="sim")
    found = find_answers(Vocabulary(ENGLISH), config, "unicamp-dl/ptt5-x", asked=asked)
    assert (found.name, ENGLISH[found.right]) == (asked, token)


def test_what_a_folder_notes_goes_before_its_type_and_nonsense_in_it_counts_for_nothing() -> None:
    noted = Config()
    find_answers(Vocabulary(ENGLISH), Config(), "x", asked="yes").keep_in(noted)
    assert find_answers(Vocabulary(ENGLISH), noted, "saved").name == "yes"
    for nonsense in ("maybe", 7):
        config = Config(relevance_answers=nonsense)
        assert find_answers(Vocabulary(ENGLISH), config, "saved").name == "true"


@pytest.mark.parametrize("tokens", [(), ("▁true",), ("▁false", "▁yes"), ("▁no", "▁")])
def test_a_vocabulary_without_both_answers_is_refused(tokens: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"model-checkpoint .*true and false or yes and no"):
        find_answers(Vocabulary(tokens), Config(), "plain")
