"""The story of the demo, on a small part of the collection."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from heldout.board.audit.audit import audit_board
from heldout.board.store.git import Git
from heldout.board.store.repository import Repository
from heldout.cli.program import main
from heldout.collections.collection import Collection, QuerySplit
from heldout.demo.story import PARTS, Scene, play_demo
from heldout.ids import DocId, QueryId

pytestmark = pytest.mark.slow

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
WORDS = ("list", "file", "byte", "path", "time", "port", "node", "tree", "lock", "task")


def _split() -> QuerySplit:
    documents = {
        DocId(f"d{n:03}"): f"{WORDS[n % 10]} {WORDS[n // 10]} holds item{n} and value{n % 7}"
        for n in range(100)
    }
    halves = []
    for start in (0, 1):
        rows = range(start, 100, 4)
        queries = {QueryId(f"q{n:03}"): f"{WORDS[n % 10]} item{n} {WORDS[n // 10]}" for n in rows}
        qrels = {QueryId(f"q{n:03}"): {DocId(f"d{n:03}"): 1} for n in rows}
        halves.append(Collection(documents=documents, queries=queries, qrels=qrels))
    return QuerySplit(dev=halves[0], eval=halves[1])


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Scene, ...]]:
    folder = tmp_path_factory.mktemp("demo") / "story"
    Git(folder.parent).init()  # as in a checkout of something else
    told: list[tuple[str, str]] = []
    with ThreadPoolExecutor(2) as executor:
        _, scenes = play_demo(
            folder,
            _split(),
            now=NOW,
            executor=executor,
            say=lambda heading, text: told.append((heading, text)),
        )
    assert {"documents", "run", "board", "baseline", "sent", "published", "refused"} <= {
        heading for heading, _ in told
    }
    return folder, scenes


def test_one_is_refused_for_quota_and_one_for_a_broken_file(
    story: tuple[Path, tuple[Scene, ...]],
) -> None:
    refused = {scene.part.slug: scene.why for scene in story[1] if not scene.published}
    assert set(refused) == {"bm25-third", "chars-again"}
    assert refused["bm25-third"].startswith("quota: ")
    assert "the next may come from" in refused["bm25-third"]
    assert "repeated-document eval:5" in refused["chars-again"]


def test_at_least_eight_runs_of_four_teams_stand_on_the_page(
    story: tuple[Path, tuple[Scene, ...]],
) -> None:
    folder, scenes = story
    page = json.loads((folder / "board/leaderboard/leaderboard.json").read_text("utf-8"))
    entries = [row for row in page["rows"] if not row["baseline"]]
    assert len(entries) == sum(scene.published for scene in scenes) >= 8
    assert len(page["rows"]) == len(entries) + 1
    assert len({scene.part.team for scene in scenes}) == 4
    assert len({scene.id[:8] for scene in scenes}) == len(scenes)
    assert sum(row["embargoed"] for row in entries) == 1


def test_the_embargoed_team_is_nowhere_in_the_board(
    story: tuple[Path, tuple[Scene, ...]],
) -> None:
    board = story[0] / "board"
    part = next(part for part in PARTS if part.months)
    public = [path for path in board.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert not [path for path in public if part.system.encode() in path.read_bytes()]


def test_the_board_is_sound_and_committed(story: tuple[Path, tuple[Scene, ...]]) -> None:
    folder = story[0]
    assert audit_board(Repository(folder / "board"), folder / "vault").faults == ()
    assert Git(folder / "board").head() is not None


def test_nothing_of_it_is_for_the_repository_that_it_lies_in(
    story: tuple[Path, tuple[Scene, ...]],
) -> None:
    folder = story[0]
    paths = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    names = [path.relative_to(folder.parent).as_posix() for path in paths]
    assert "story/vault/labels/eval.qrels" in names
    outside = [name for name in names if not name.startswith("story/board/")]
    assert Git(folder.parent).unignored(*outside) == ()


def test_every_part_is_another_system() -> None:
    made = {p.method for p in PARTS if not p.broken}
    assert len(made) == len([p for p in PARTS if not p.broken])


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collection must not be read, which takes seconds."""

    def fail(**_: object) -> None:
        pytest.fail("the collection was read")

    monkeypatch.setattr("heldout.cli.demo.read_collection", fail)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("files", [[], ["--files"]])
@pytest.mark.parametrize("place", ["folder", "folder/file"])
def test_a_place_that_is_taken_is_told_at_once(
    tmp_path: Path, place: str, files: list[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x", "utf-8")
    result = CliRunner().invoke(main, ["demo", str(tmp_path / place), *files])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is not empty; name a folder that does not exist yet" in result.stderr
    assert (tmp_path / "folder" / "file").read_text("utf-8") == "x"


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (("bm25s",), "the demo lacks bm25s; pip install 'heldout[rankers]'"),
        (("bm25s", "Stemmer"), "the demo lacks bm25s, Stemmer; pip install 'heldout[rankers]'"),
    ],
)
def test_all_that_is_not_installed_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: tuple[str, ...], told: str
) -> None:
    for name in lost:
        monkeypatch.setitem(sys.modules, name, None)
    result = CliRunner().invoke(main, ["demo", str(tmp_path / "new")])
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in " ".join(result.stderr.split())
    assert not (tmp_path / "new").exists()


def test_files_of_the_tutorials_need_no_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bm25s", "Stemmer"):
        monkeypatch.setitem(sys.modules, name, None)
    folder = tmp_path / "files"
    result = CliRunner().invoke(main, ["demo", "--files", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"folder": str(folder)}
    assert sorted(path.name for path in folder.glob("runs/*/*.gz")) == sorted(
        2 * ["char-ngrams.run.gz", "ql-dirichlet.run.gz", "ql-jm.run.gz", "tfidf.run.gz"]
    )
    rows = json.loads((folder / "board/leaderboard/leaderboard.json").read_text("utf-8"))["rows"]
    assert [row["baseline"] for row in rows] == [True]
    Git(folder.parent).init()
    assert Git(folder.parent).unignored("files/vault/labels/eval.qrels") == ()
