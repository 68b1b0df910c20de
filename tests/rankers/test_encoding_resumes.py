"""`heldout rank` while it encodes: a killed command goes on with the vectors of its folder."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from click.testing import CliRunner
from numpy.typing import NDArray
from tiny_models import WORDS, TinyModels

from heldout.cli.program import main
from heldout.rankers.neural import encoders
from heldout.rankers.neural.encoders import Colbert, DenseEncoder

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts

SHARDS = 4


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixteen documents in four shards, without labels."""
    monkeypatch.setattr(encoders, "_SHARD", 4)
    rng = np.random.default_rng(3)
    rows = "".join(f"d{row}\t{' '.join(rng.choice(WORDS[:20], size=5))}\n" for row in range(16))
    place = tmp_path / "collection"
    place.mkdir()
    (place / "documents.tsv").write_text(rows)
    (place / "queries.tsv").write_text("q1\topen a file\nq2\tsum the list\n")
    return place


def invoke(folder: Path, *arguments: object) -> tuple[int, str]:
    words = ["--collection", folder, *arguments]
    result = CliRunner().invoke(main, ["rank", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stderr


class Kill:
    """Counts texts that are encoded, and stops the command at one of the calls."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, encoder: type[DenseEncoder | Colbert]
    ) -> None:
        self.at: int | None = None
        self.calls = 0
        encode = encoder.encode_documents

        def count(model: DenseEncoder | Colbert, texts: Sequence[str]) -> NDArray[np.float32]:
            self.calls += 1
            if self.calls == self.at:
                raise KeyboardInterrupt
            return encode(model, texts)  # type: ignore[arg-type,return-value]  # of either class

        monkeypatch.setattr(encoder, "encode_documents", count)


@pytest.mark.parametrize(
    ("words", "encoder"),
    [
        (("--param", "batch=2"), DenseEncoder),
        (("--method", "dense", "--param", "batch=2"), DenseEncoder),
        (("--method", "colbert", "--param", "model={colbert}", "--param", "batch=2"), Colbert),
    ],
)
def test_a_killed_command_goes_on_to_the_same_bytes(
    tiny: TinyModels,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    encoder: type[DenseEncoder | Colbert],
) -> None:
    killed, whole = folder.parent / "killed.run", folder.parent / "whole.run"
    vectors = folder.parent / "vectors"
    chosen = [word.format(colbert=tiny.colbert) for word in words]
    chosen += ["--param", f"vectors={vectors}"]
    kill = Kill(monkeypatch, encoder)
    kill.at = 3
    assert invoke(folder, *chosen, "--out", killed)[0] == 1
    assert not killed.exists()
    assert len(list(vectors.glob("*/*.npz"))) == 2
    kill.at, kill.calls = None, 0
    status, stderr = invoke(folder, *chosen, "--out", killed)
    assert status == 0, stderr
    assert kill.calls == SHARDS - 2
    kill.calls = 0
    assert invoke(folder, *chosen[:-2], "--out", whole)[0] == 0
    assert kill.calls == SHARDS
    assert killed.read_bytes() == whole.read_bytes()


def test_other_settings_take_no_vectors_over(
    tiny: TinyModels, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill, vectors = Kill(monkeypatch, DenseEncoder), folder.parent / "vectors"
    words = ("--method", "dense", "--param", f"model={tiny.dense}", "--out", folder.parent / "run")
    for more in ("batch=2", "similarity=dot", "query_prefix=q"):
        kill.calls = 0
        status, stderr = invoke(folder, *words, "--param", f"vectors={vectors}", "--param", more)
        assert (status, kill.calls) == (0, SHARDS), stderr
