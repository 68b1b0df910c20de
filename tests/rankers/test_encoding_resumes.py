"""`heldout rank` while it encodes: it shows how far it is, and a killed command goes on."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import pytest
import tiny_models
from click.testing import CliRunner
from numpy.typing import NDArray
from tiny_models import WORDS, TinyModels

from heldout.cli.printing import TERMINAL
from heldout.cli.program import main
from heldout.ids import DocId, QueryId
from heldout.rankers.neural import vectors
from heldout.rankers.neural.cross_encoder import CrossEncoder
from heldout.rankers.neural.dense import DenseEncoder
from heldout.rankers.neural.late_interaction import Colbert
from heldout.rankers.neural.vectors import Encoding
from heldout.rankers.reranking import encode_resumably, vectors_path
from heldout.rankers.run import Run, Task

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts

SHARDS = 4


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixteen documents in four shards, without labels."""
    monkeypatch.setattr(vectors, "_SHARD", 4)
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
def test_a_killed_command_goes_on_to_the_same_bytes_and_leaves_nothing(
    tiny: TinyModels,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    encoder: type[DenseEncoder | Colbert],
) -> None:
    killed, whole = folder.parent / "killed.run", folder.parent / "whole.run"
    chosen = [word.format(colbert=tiny.colbert, bert=tiny.bert) for word in words]
    kill = Kill(monkeypatch, encoder)
    kill.at = 3
    assert invoke(folder, *chosen, "--out", killed)[0] == 1
    assert not killed.exists()
    assert len(list(vectors_path(killed).glob("*/*.npz"))) == 2
    kill.at, kill.calls = None, 0
    status, stderr = invoke(folder, *chosen, "--out", killed)
    assert status == 0, stderr
    assert "going on  with the vectors in" in stderr
    assert kill.calls == SHARDS - 2
    status, stderr = invoke(folder, *chosen, "--out", whole)
    assert "going on" not in stderr
    assert killed.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in folder.parent.iterdir()) == [
        "collection",
        "killed.run",
        "whole.run",
    ]


def test_fresh_begins_anew_and_other_settings_take_nothing_over(
    tiny: TinyModels, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, kill = folder.parent / "run", Kill(monkeypatch, DenseEncoder)
    model = f"model={tiny.dense}"
    words = ("--method", "dense", "--param", model, "--param", "batch=2", "--out", out)
    for more in (("--fresh",), ("--param", "similarity=dot"), ("--param", "query_prefix=q")):
        kill.at, kill.calls = 3, 0
        assert invoke(folder, *words)[0] == 1
        kill.at, kill.calls = None, 0
        assert invoke(folder, *words, *more)[0] == 0
        assert kill.calls == SHARDS
        assert not vectors_path(out).exists()


def test_a_first_stage_that_was_encoded_is_not_encoded_again(
    tiny: TinyModels, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, kill = folder.parent / "run", Kill(monkeypatch, DenseEncoder)
    words = ("--method", "cross-encoder", "--param", f"model={tiny.bert}", "--first", "dense")
    with monkeypatch.context() as patch:
        patch.setattr(CrossEncoder, "score", interrupt)
        assert invoke(folder, *words, "--out", out)[0] == 1
    assert (kill.calls, vectors_path(out).exists()) == (1, True)
    status, stderr = invoke(folder, *words, "--out", out)
    assert (status, kill.calls) == (0, 1), stderr
    assert not vectors_path(out).exists()


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_vectors_stay_where_a_folder_was_named(
    tiny: TinyModels, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del tiny
    kill, kept = Kill(monkeypatch, DenseEncoder), folder.parent / "kept"
    words = ("--param", f"vectors={kept}", "--param", "precision=float32")
    for calls in (SHARDS, 0):
        kill.calls = 0
        assert invoke(folder, *words, "--out", folder.parent / "run")[0] == 0
        # The default takes 64 texts at once, so the sixteen are one shard.
        assert kill.calls == bool(calls)
    assert len(list(kept.glob("*/*.npz"))) == 1


@pytest.mark.parametrize("wrong", ["batch=0", "colour=x", "precision=float8"])
def test_wrong_parameters_of_the_default_are_refused_before_anything_is_read(
    tiny: TinyModels, folder: Path, wrong: str
) -> None:
    del tiny
    status, stderr = invoke(folder / "absent", "--param", wrong, "--out", folder / "run")
    assert status == 2
    assert "rank-parameter" in stderr


def test_a_person_sees_a_bar_that_reaches_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[str, int]] = []

    class Bar:
        def __init__(self, what: str, total: int) -> None:
            drawn.append((what, total))

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def __call__(self) -> None:
            drawn.append(("done", 1))

    monkeypatch.setattr("heldout.cli.printing.progress", Bar)
    task = Task(
        documents={DocId(f"d{row}"): "x" for row in range(7)}, queries={QueryId("q"): ""}, depth=1
    )

    def choose(encoding: Encoding) -> Callable[[Task], Run]:
        def ranked(_: Task) -> Run:
            assert encoding.folder == tmp_path / "run.gz.vectors"
            assert encoding.progress is not None
            encoding.progress(4)
            encoding.progress(3)
            return {}

        return ranked

    encode_resumably(choose, tmp_path / "run.gz", fresh=False, progress=TERMINAL)(task)
    assert drawn == [("encoding", 7), *[("done", 1)] * 7]
