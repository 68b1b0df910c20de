"""What the commands of judging do, called without a command line."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest

from heldout.errors import OptionError, StoreError
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.services.boards import PublishedSource
from heldout.judging.services.pools import (
    Pooled,
    PoolOptions,
    PoolSource,
    create_campaign,
    load_pooled,
)
from heldout.progress_bar import Progress

NOW = datetime(2026, 11, 22, tzinfo=UTC)
QUERIES = {f"q{n}": f"what is {n}" for n in range(4)}
POOLED = Pooled(
    tops={run: {query: (f"{run}-{query}",) for query in QUERIES} for run in ("a", "b")},
    known={query: [f"k-{query}"] for query in QUERIES},
    queries=QUERIES,
)


class Steps(Progress):
    """Remembers what was reported."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def steps(self, what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
        self.found.append(f"{what}: {total}")
        return nullcontext(lambda: None)


def test_a_campaign_begins_and_gets_its_tasks_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = CampaignFolder(tmp_path / "campaign")
    options = PoolOptions(sample=3, seed=7)
    created = create_campaign(folder, POOLED, options, name="ours", documents=None)
    assert len(created.pools) == 3
    assert created.tests == 0
    assert folder.pools() == created.pools
    assert folder.settings().name == "ours"
    with pytest.raises(StoreError, match="is there already"):
        create_campaign(folder, POOLED, options, name="again", documents=None)
    assert capsys.readouterr() == ("", "")


def test_runs_are_read_with_progress_as_an_argument(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 9 a\n")
    (tmp_path / "q.qrels").write_text("q1 0 k1 1\n")
    (tmp_path / "queries.tsv").write_text("q1\twhat\n")
    source = PoolSource(
        runs=(str(tmp_path / "a.run"),),
        qrels=str(tmp_path / "q.qrels"),
        queries=str(tmp_path / "queries.tsv"),
    )
    steps = Steps()
    found = load_pooled(source, depth=1, now=NOW, progress=steps)
    assert found.tops == {"a": {"q1": ("d1",)}}
    assert found.known == {"q1": ["k1"]}
    assert steps.found == ["reading runs: 1"]


def test_options_that_contradict_each_other_are_an_error_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="what is pooled"):
        load_pooled(PoolSource(), depth=1, now=NOW)
    both = PoolSource(published=PublishedSource(board=tmp_path), qrels="q")
    with pytest.raises(OptionError, match="name no files with it"):
        load_pooled(both, depth=1, now=NOW)
