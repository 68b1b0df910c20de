"""Fine-tuning: it learns, it is repeatable, and a kill at any step changes nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from numpy.typing import NDArray
from tiny_models import TinyModels
from trained_models import TRIPLES, load_tiny

from heldout.errors import InputError, StoreError
from heldout.rankers.neural.checkpoints import import_neural
from heldout.rankers.neural.cross_encoder import CrossEncoder
from heldout.rankers.neural.training import TextTriple, TrainingSettings, rate_at, train
from heldout.rankers.run import TextPair

tiny = tiny_models.tiny

pytestmark = pytest.mark.usefixtures("neural")

STEPS = 12


def settings(**given: object) -> TrainingSettings:
    return TrainingSettings(**({"steps": STEPS, "batch": 2, "learning_rate": 1e-3} | given))  # type: ignore[arg-type]


def margins(encoder: CrossEncoder) -> NDArray[np.float64]:
    """How far the positive of each triple scores above its negative."""
    positive = encoder.score([TextPair(one.query, one.positive) for one in TRIPLES])
    return positive - encoder.score([TextPair(one.query, one.negative) for one in TRIPLES])


@pytest.mark.parametrize("loss", ["pointwise", "pairwise"])
@pytest.mark.parametrize("kind", ["bert", "two_logits"])
def test_positives_score_above_negatives_after_training(
    tiny: TinyModels, kind: str, loss: str
) -> None:
    encoder = load_tiny(getattr(tiny, kind))
    trained = train(encoder, TRIPLES, settings(steps=80, loss=loss))
    assert (margins(encoder) > 0).all()
    assert sum(trained.losses[-10:]) < sum(trained.losses[:10])


@pytest.mark.parametrize("loss", ["pointwise", "pairwise"])
def test_a_t5_learns_to_say_true_of_a_positive(tiny: TinyModels, loss: str) -> None:
    encoder = load_tiny(tiny.t5)
    hardest = int(margins(encoder).argmin())
    before = margins(encoder)[hardest]
    train(encoder, TRIPLES[hardest : hardest + 1], settings(steps=30, batch=1, loss=loss))
    assert margins(encoder)[hardest] > before + 1


def test_the_same_training_gives_the_same_weights_and_another_seed_others(tiny: TinyModels) -> None:
    digests = []
    for seed in (0, 0, 1):
        encoder = load_tiny(tiny.bert)
        train(encoder, TRIPLES, settings(seed=seed))
        digests.append(encoder.digest)
    assert digests[0] == digests[1] != digests[2]


def test_training_leaves_the_random_state_of_the_caller_alone(tiny: TinyModels) -> None:
    torch = import_neural("torch")
    before = torch.get_rng_state()
    train(load_tiny(tiny.bert), TRIPLES, settings(steps=2))
    assert torch.equal(torch.get_rng_state(), before)


# A process of its own that dies by SIGKILL in the middle of writing or computing.
_KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
from pathlib import Path
from trained_models import TRIPLES, load_tiny
from heldout.rankers.neural.training import TrainingSettings, train
kill_at = int(sys.argv[4])
def die(step, loss):
    if step == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
encoder = load_tiny(sys.argv[2])
train(encoder, TRIPLES, TrainingSettings(steps=12, batch=2, learning_rate=1e-3),
      state=Path(sys.argv[3]), every=2, progress=die)
"""


def _run_killed(bert: str, state: Path, kill_at: int) -> int:
    command = [sys.executable, "-W", "ignore", "-c", _KILLED, str(Path(__file__).parent)]
    command += [bert, str(state), str(kill_at)]
    return subprocess.run(
        command, capture_output=True, check=False, env=dict(os.environ)
    ).returncode


def test_killed_at_several_steps_it_ends_with_the_same_bytes(
    tiny: TinyModels, tmp_path: Path
) -> None:
    whole = load_tiny(tiny.bert)
    train(whole, TRIPLES, settings())
    whole.save(tmp_path / "whole")
    state = tmp_path / "cell" / "state.pt"
    # Between two states; that of step 1 would be the same as none.
    assert _run_killed(tiny.bert, state, 7) == -signal.SIGKILL
    again = load_tiny(tiny.bert)
    assert train(again, TRIPLES, settings(), state=state, every=2).resumed_at == 6
    again.save(tmp_path / "again")
    weights = "model.safetensors"
    assert (tmp_path / "again" / weights).read_bytes() == (
        tmp_path / "whole" / weights
    ).read_bytes()


@pytest.mark.parametrize("step", [1, 6, STEPS - 1])
def test_interrupted_after_any_step_it_ends_with_the_same_weights(
    tiny: TinyModels, tmp_path: Path, step: int
) -> None:
    class StoppedError(Exception):
        pass

    def stop(done: int, loss: float) -> None:
        del loss
        if done == step:
            raise StoppedError

    state = tmp_path / "s"
    whole = load_tiny(tiny.bert)
    expected = train(whole, TRIPLES, settings())
    with pytest.raises(StoppedError):
        train(load_tiny(tiny.bert), TRIPLES, settings(), state=state, every=1, progress=stop)
    again = load_tiny(tiny.bert)
    resumed = train(again, TRIPLES, settings(), state=state, every=1)
    assert again.digest == whole.digest
    assert resumed.losses == expected.losses
    assert resumed.resumed_at == step


def test_a_state_of_another_training_is_refused(tiny: TinyModels, tmp_path: Path) -> None:
    train(load_tiny(tiny.bert), TRIPLES, settings(steps=2), state=tmp_path / "s", every=1)
    for triples, other in ((TRIPLES[:3], settings(steps=2)), (TRIPLES, settings(steps=3))):
        with pytest.raises(StoreError, match="another training"):
            train(load_tiny(tiny.bert), triples, other, state=tmp_path / "s")


@pytest.mark.parametrize("bad", [b"", b"no state", b"cos\nsystem\n(S'true'\ntR."])
def test_a_damaged_or_hostile_state_is_refused_and_runs_nothing(
    tiny: TinyModels, tmp_path: Path, bad: bytes
) -> None:
    (tmp_path / "s").write_bytes(bad)
    with pytest.raises(StoreError, match="cannot be read"):
        train(load_tiny(tiny.bert), TRIPLES, settings(), state=tmp_path / "s")


def test_a_cut_state_is_refused(tiny: TinyModels, tmp_path: Path) -> None:
    train(load_tiny(tiny.bert), TRIPLES, settings(steps=2), state=tmp_path / "s", every=1)
    data = (tmp_path / "s").read_bytes()
    (tmp_path / "s").write_bytes(data[: len(data) // 2])
    with pytest.raises(StoreError, match="cannot be read"):
        train(load_tiny(tiny.bert), TRIPLES, settings(steps=2), state=tmp_path / "s")


def test_a_training_that_diverges_is_an_error_with_its_step(tiny: TinyModels) -> None:
    with pytest.raises(InputError, match="training-diverged") as caught:
        train(load_tiny(tiny.bert), TRIPLES, settings(learning_rate=1e30))
    assert "step" in caught.value.problems[0].found


def test_a_short_sequence_begins_again(tiny: TinyModels) -> None:
    once, twice = load_tiny(tiny.bert), load_tiny(tiny.bert)
    train(once, [*TRIPLES, *TRIPLES, *TRIPLES, *TRIPLES, *TRIPLES], settings())
    train(twice, TRIPLES, settings())
    assert once.digest == twice.digest


def test_no_triple_is_a_bug_of_the_caller(tiny: TinyModels) -> None:
    with pytest.raises(ValueError, match="0"):
        train(load_tiny(tiny.bert), [], settings())


def test_the_rate_rises_to_its_highest_and_never_to_zero() -> None:
    rates = [rate_at(step, 100) for step in range(100)]
    assert rates[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert max(rates) == 1.0
    assert min(rates) > 0
    assert rates[10:] == sorted(rates[10:], reverse=True)


@pytest.mark.parametrize(
    "given",
    [
        {"steps": 0},
        {"batch": 0},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"seed": -1},
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="TrainingSettings"):
        settings(**given)


def test_queries_of_any_text_can_be_trained_on(tiny: TinyModels) -> None:
    odd = [TextTriple("", "", "x"), TextTriple("\u202e" * 50, "a\x00b", "open " * 200)]
    trained = train(load_tiny(tiny.bert), odd, settings(steps=2))
    assert len(trained.losses) == 2
