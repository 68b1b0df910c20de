"""Cross-encoders against plain calls of transformers, one pair at a time."""

import json
import shutil
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from numpy.typing import NDArray
from tiny_models import WORDS, TinyModels, save_bert

from heldout.errors import InputError
from heldout.rankers.neural.checkpoints import digest_model
from heldout.rankers.neural.cross_encoder import (
    CrossEncoder,
    CrossEncoderSettings,
    DuoT5Settings,
    encode_prompts,
    load_cross_encoder,
)
from heldout.rankers.run import TextPair

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts

LONG = " ".join(WORDS * 20)
PAIRS = [
    TextPair("open a file", "read the buffer."),
    TextPair("sum", LONG),
    TextPair("", ""),
    TextPair("éß 漢字", "a"),
    TextPair("open a file", "list"),
    TextPair("path", "walk the tree of a directory: return a list of the path"),
]


def load(model: str, **settings: int | str) -> CrossEncoder:
    given = {"precision": "float32", "device": "cpu", "batch": 4} | settings
    return load_cross_encoder(CrossEncoderSettings(model=model, **given))  # type: ignore[arg-type]  # of mixed types


def plain_bert(folder: str) -> NDArray[np.float64]:
    """One pair at a time, as the page of a model says."""
    import torch  # noqa: PLC0415 - of the extra `neural`
    from transformers import (  # noqa: PLC0415 - of the extra `neural`
        AutoModelForSequenceClassification,
        AutoTokenizer,
    )

    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        logits = [
            model(
                # In lists: for two empty texts that are not in lists the tokenizer leaves one out.
                **tokenizer([one], [two], truncation=True, max_length=64, return_tensors="pt")
            ).logits[0]
            for one, two in PAIRS
        ]
    return np.array([(row[1] - row[0] if len(row) == 2 else row[0]).item() for row in logits])


def plain_t5(folder: str, prompts: list[str]) -> NDArray[np.float64]:
    """Log-odds of true from the softmax over all tokens."""
    import torch  # noqa: PLC0415 - of the extra `neural`
    from transformers import AutoTokenizer, T5ForConditionalGeneration  # noqa: PLC0415 - same

    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    right, wrong = tokenizer.convert_tokens_to_ids(["▁true", "▁false"])
    scores = []
    with torch.no_grad():
        for prompt in prompts:
            inputs = tokenizer(prompt, return_tensors="pt")
            answer = model(**inputs, decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
            shares = torch.log_softmax(answer.double(), dim=-1)
            scores.append((shares[right] - shares[wrong]).item())
    return np.array(scores)


@pytest.mark.parametrize("model", ["bert", "two_logits"])
@pytest.mark.parametrize("batch", [1, 4, 32])
def test_batches_change_nothing(tiny: TinyModels, model: str, batch: int) -> None:
    folder = getattr(tiny, model)
    found = load(folder, batch=batch).score(PAIRS)
    assert found == pytest.approx(plain_bert(folder), abs=1e-5)
    assert len(set(found.round(4).tolist())) > 4


def test_scores_are_those_of_sentence_transformers(tiny: TinyModels) -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`
    from sentence_transformers import CrossEncoder as Peer  # noqa: PLC0415 - same

    peer = Peer(tiny.bert, device="cpu", activation_fn=torch.nn.Identity())
    wanted = peer.predict([tuple(pair) for pair in PAIRS])
    assert load(tiny.bert).score(PAIRS) == pytest.approx(wanted, abs=1e-5)


def test_monot5_is_the_log_odds_of_true(tiny: TinyModels) -> None:
    pairs = [pair for pair in PAIRS if pair.document != LONG]
    prompts = [f"Query: {query} Document: {document} Relevant:" for query, document in pairs]
    found = load(tiny.t5).score(pairs)
    assert found == pytest.approx(plain_t5(tiny.t5, prompts), abs=1e-4)
    assert len(set(found.round(3).tolist())) == len(pairs)


def test_duot5_sums_what_it_prefers_asked_both_ways_round(tiny: TinyModels) -> None:
    texts = ["read the buffer", "list", "walk the tree"]
    duo = load_cross_encoder(DuoT5Settings(model=tiny.t5, precision="float32", device="cpu"))
    pairs = [TextPair("open", text) for text in texts]
    found = duo.score([pairs[0], TextPair("sum", "alone"), *pairs[1:]])
    wanted = dict.fromkeys(texts, 0.0)
    for one, other in permutations(texts, 2):
        prompt = f"Query: open Document0: {one} Document1: {other} Relevant:"
        share = 1 / (1 + np.exp(-plain_t5(tiny.t5, [prompt])[0]))
        wanted[one] += share
        wanted[other] += 1 - share
    assert found[[0, 2, 3]] == pytest.approx(list(wanted.values()), abs=1e-4)
    # Each question gives one point, however it is answered.
    assert found.sum() == pytest.approx(6)
    assert found[1] == 0
    assert duo.score([]).shape == (0,)


def test_a_long_document_leaves_the_question_at_the_end(tiny: TinyModels) -> None:
    tokenizer = load(tiny.t5).tokenizer
    whole = tokenizer("Query: sum Document: read the list Relevant:")["input_ids"]
    parts = ("Query: sum", "Document: read the list")
    assert encode_prompts(tokenizer, [parts], length=99)["input_ids"][0].tolist() == whole
    end = whole[-len(tokenizer("Relevant:")["input_ids"]) :]
    for prompt in (("Query: sum", LONG), (LONG, "Document: a"), (LONG, LONG), ("q", LONG, LONG)):
        ids = encode_prompts(tokenizer, [prompt], length=30)["input_ids"][0].tolist()
        assert len(ids) <= 30
        assert ids[-len(end) :] == end
    cut = encode_prompts(tokenizer, [("q", f"{LONG} a", f"path {LONG}")], length=40)
    assert tokenizer("path", add_special_tokens=False)["input_ids"][0] in cut["input_ids"][0]


def test_half_precision_changes_scores_a_little_and_makes_no_ties(tiny: TinyModels) -> None:
    documents = [f"{one} {other}" for one in WORDS[:12] for other in WORDS[12:24]]
    pairs = [TextPair("open", document) for document in documents]
    exact, half = (load(tiny.bert, precision=name).score(pairs) for name in ("float32", "bfloat16"))
    assert half == pytest.approx(exact, abs=0.2)
    assert np.abs(half - exact).max() > 0
    assert len(set(half.tolist())) > 0.95 * len(set(exact.tolist()))


def test_the_head_of_minilm_comes_from_the_seed(tiny: TinyModels) -> None:
    same, again, other = (load(tiny.headless, seed=seed) for seed in (1, 1, 2))
    assert same.new_weights == ("classifier.bias", "classifier.weight")
    assert same.digest == again.digest != other.digest
    assert (same.score(PAIRS) == again.score(PAIRS)).all()
    assert load(tiny.bert).new_weights == ()


def test_what_is_saved_is_loaded_again(tiny: TinyModels, tmp_path: Path) -> None:
    for folder in (tiny.headless, tiny.t5):
        encoder = load(folder, seed=3)
        encoder.save(tmp_path / "saved")
        again = load(str(tmp_path / "saved"), seed=4)
        assert again.new_weights == ()
        # Where weights begin in memory moves the last digit.
        assert again.score(PAIRS) == pytest.approx(encoder.score(PAIRS), rel=1e-5, abs=1e-5)


def test_scores_have_a_gradient_and_scoring_leaves_the_mode(tiny: TinyModels) -> None:
    for folder in (tiny.bert, tiny.t5):
        encoder = load(folder)
        encoder.model.train()
        encoder.scores(PAIRS[:2]).sum().backward()
        assert any(value.grad is not None for value in encoder.model.parameters())
        encoder.score(PAIRS[:2])
        assert encoder.model.training
        encoder.model.eval()
        assert encoder.score(PAIRS[:2]) == pytest.approx(
            encoder.scores(PAIRS[:2]).detach().numpy(), rel=1e-5, abs=1e-5
        )


def test_no_pairs_have_no_scores(tiny: TinyModels) -> None:
    assert load(tiny.bert).score([]).shape == (0,)


def test_a_classifier_of_three_labels_is_refused(tiny: TinyModels, tmp_path: Path) -> None:
    del tiny
    folder = str(save_bert(tmp_path / "entailment", labels=3))
    with pytest.raises(InputError, match=r"model-checkpoint .*classifier of 3 labels"):
        load(folder)


def test_a_classifier_has_no_answers(tiny: TinyModels) -> None:
    assert load(tiny.bert).answers is None
    with pytest.raises(InputError, match=r"model-checkpoint .*a classifier; expected a T5"):
        load(tiny.bert, answers="yes")
    duo = load_cross_encoder(DuoT5Settings(model=tiny.bert, device="cpu"))
    with pytest.raises(InputError, match=r"model-checkpoint .*a classifier; expected a T5"):
        duo.score([PAIRS[0], PAIRS[4]])
    with pytest.raises(InputError, match="one token for each of yes and no"):
        load(tiny.t5, answers="yes")


def test_another_tokenizer_in_the_folder_is_another_model(tiny: TinyModels, tmp_path: Path) -> None:
    turned = tmp_path / "turned"
    shutil.copytree(tiny.bert, turned)
    settings = json.loads((turned / "tokenizer_config.json").read_text())
    (turned / "tokenizer_config.json").write_text(json.dumps(settings | {"do_lower_case": False}))
    assert digest_model(str(turned)) not in (None, digest_model(tiny.bert))
    assert digest_model("minilm-l6") is None


def test_a_number_that_is_none_never_becomes_a_score(tiny: TinyModels) -> None:
    encoder = load(tiny.bert)
    encoder.model.classifier.bias.data.fill_(float("nan"))
    with pytest.raises(InputError, match=r"model-scores .*6 of 6 numbers NaN"):
        encoder.score(PAIRS)


@pytest.mark.parametrize("settings", [{"batch": 0}, {"length": 15}, {"seed": -1}])
def test_settings_out_of_range_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="wanted"):
        CrossEncoderSettings(**settings)  # type: ignore[arg-type]  # of mixed types
