"""How sentence encoders are published, and what makes each whole.

Most say in modules.json how vectors come out of tokens. A folder without it is a bare model, whose
tokens are averaged; where its weights hold a layer that an average would leave out, the vectors
would be others than those that were trained, so it is refused, unless the layout is known.
"""

from typing import Any

from heldout.errors import InputError, Problem, printable
from heldout.rankers.devices import DeviceName, import_neural
from heldout.rankers.weights import compare_weights, find_file, read_tensors, weight_shapes

__all__ = ["is_averaged", "load_sentence_encoder"]

_MODULES = "modules.json"

_ANCE = frozenset({"embeddingHead.weight", "embeddingHead.bias", "norm.weight", "norm.bias"})
_ANCE_LEFT_OVER = ("classifier.",)
"""ANCE is made from a classifier, whose last layer some copies still have."""

_SHOWN = 3


def is_averaged(place: str) -> bool:
    """Whether a checkpoint does not say how vectors come out of its tokens, nor its weights do."""
    return _is_bare(place) and not weight_shapes(place).keys() >= _ANCE


def _is_bare(place: str) -> bool:
    return find_file(place, _MODULES) is None


def load_sentence_encoder(place: str, device: DeviceName, *, model: str) -> Any:
    """A model of sentence-transformers with all layers that were trained.

    Args:
        place: a folder or a published name.
        device: where it runs.
        model: its name, for messages.

    Raises:
        InputError: code `model-layers`: weights of a bare model would be left out or drawn.
    """
    library, torch = import_neural("sentence_transformers"), import_neural("torch")
    # A pooler that the checkpoint lacks is drawn; unused as it is, the digest has it.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = library.SentenceTransformer(place, device=device, trust_remote_code=False)
    if not _is_bare(place):
        return encoder
    _, report = import_neural("transformers").AutoModel.from_pretrained(
        place, output_loading_info=True, trust_remote_code=False
    )
    left_out, drawn = compare_weights(report)
    if set(left_out) >= _ANCE:
        encoder = _add_ance_head(encoder, place, device)
        left_out = [name for name in left_out if name not in _ANCE]
        left_out = [name for name in left_out if not name.startswith(_ANCE_LEFT_OVER)]
    _check_whole(left_out, drawn, model)
    return encoder


def _add_ance_head(encoder: Any, place: str, device: DeviceName) -> Any:
    """ANCE as castorini published it: the first token, a linear layer, and its norm.

    Source: Xiong et al., ICLR 2021.
    """
    library = import_neural("sentence_transformers")
    modules, torch = import_neural("sentence_transformers.models"), import_neural("torch")
    weights = read_tensors(place, sorted(_ANCE))
    size, hidden = weights["embeddingHead.weight"].shape
    head = modules.Dense(hidden, size, activation_function=torch.nn.Identity())
    head.linear.load_state_dict(_under(weights, "embeddingHead."))
    norm = modules.LayerNorm(size)
    norm.norm.load_state_dict(_under(weights, "norm."))
    first = modules.Pooling(hidden, pooling_mode="cls")
    return library.SentenceTransformer(
        modules=[encoder[0], first, head, norm], device=device, similarity_fn_name="dot"
    )


def _under(weights: dict[str, Any], start: str) -> dict[str, Any]:
    return {
        name.removeprefix(start): value for name, value in weights.items() if name.startswith(start)
    }


def _check_whole(left_out: list[str], drawn: list[str], model: str) -> None:
    if not (left_out or drawn):
        return
    what = (
        f"would leave out {_some(left_out)}" if left_out else f"has no weights for {_some(drawn)}"
    )
    raise InputError(
        Problem(
            code="model-layers",
            path=printable(model),
            found=f"no {_MODULES}, and an average of its tokens {what}",
            expected="a sentence encoder whose vectors are those that were trained",
            hint="is there a copy made for sentence-transformers? A classifier re-ranks: "
            "--method cross-encoder; token vectors: --method colbert",
        )
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(printable(name[:60]) for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
