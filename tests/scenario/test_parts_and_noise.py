"""A board whose held-out set is split.

Published, corrected, audited, closed, archived, and the archive audited by who has nothing else.
"""

import random
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import town as towns
from town import OTHER_TEAM, TEAM, Town, call, founding, git, write_inputs
from trusting import Files, forge

from heldout.board.rules.parts import feedback_queries
from heldout.pipeline.auditing.archive_audit import audit_archive

pytestmark = pytest.mark.slow
QUERIES = 420
DAY = "2026-11-02T10:00:00Z"
LAST = "2026-12-02T10:00:00Z"
FEEDBACK = '\n[[views]]\nname = "feedback"\nset = "eval"\nmeasure = "RR@10"\npart = "feedback"\n'
LADDER = ('rule = "rounded"', 'rule = "ladder"')
CHECK = '\n[[views]]\nname = "check"\nset = "eval"\nmeasure = "RR@10"\nnoise = 10\n'


@pytest.fixture(scope="module", autouse=True)
def many_queries() -> Iterator[None]:
    """Enough queries for a split."""
    patch = pytest.MonkeyPatch()
    patch.setattr(towns, "QUERIES", QUERIES)
    yield
    patch.undo()


def found_board(folder: Path, *changes: tuple[str, str], views: str) -> Town:
    """A board with these rules from its first event on, one baseline, and one clone."""
    town = Town(folder)
    folder.mkdir()
    (folder / ".gitconfig").write_text(towns._GITCONFIG)
    write_inputs(folder)
    assert call(folder, *founding(folder)).code == 0
    rules = town.board / "board.toml"
    text = rules.read_text()
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    rules.write_text(text + views)
    answer = town.organiser("rebuild", now=DAY)
    assert answer.code == 0, answer
    git(folder, "init", "-q", "--bare", "--template=", "-b", "main", "forge")
    git(town.board, "remote", "add", "origin", str(town.forge))
    town.push()
    git(folder, "clone", "-q", "--template=", str(town.forge), "clone")
    return town


def run_text(query_set: str, seed: int, *, top: float) -> str:
    """A run of depth 5 whose first document is the relevant one for so many of the queries."""
    rng = random.Random(f"{query_set} {seed}")  # noqa: S311 - made-up runs, not keys
    lines = []
    for number in range(QUERIES):
        documents = [f"n{number}-{seed}-{i}" for i in range(4)]
        place = 0 if rng.random() < top else rng.randrange(1, 5)
        documents.insert(place, f"d{query_set}{number}")
        lines += [f"{query_set}{number}\t{d}\t{rank}" for rank, d in enumerate(documents, 1)]
    return "\n".join(lines) + "\n"


def options(town: Town, seeds: Sequence[int], top: float) -> list[str | Path]:
    """The runs of a system as options of a command."""
    told: list[str | Path] = []
    for name in ("dev", "eval"):
        for seed in seeds:
            file = town.root / f"{name}-{seed}.run"
            file.write_text(run_text(name, seed, top=top))
            told += [f"--{name}", file]
    return told


def reciprocal(seeds: Sequence[int], top: float) -> dict[str, float]:
    """RR@10 of each held-out query, the mean over seeds, straight from the texts of the runs."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        for line in run_text("eval", seed, top=top).splitlines():
            query, document, rank = line.split("\t")
            if document == f"d{query}":
                found.setdefault(query, []).append(1 / int(rank))
    return {query: statistics.mean(values) for query, values in found.items()}


def add_baseline(town: Town, seeds: Sequence[int] = (9,)) -> str:
    name = "20261102-base"
    runs = options(town, seeds, 0.2)
    answer = town.organiser("board", "baseline", name, *runs, "--description", "BM25", now=DAY)
    assert answer.code == 0, answer
    town.push()
    town.pull()
    return name


def send(
    town: Town, name: str, *seeds: int, top: float, team: Mapping[str, Any], publish: bool = True
) -> str:
    runs = options(town, seeds, top)
    answer = town.participant("draft", name, *runs, "--json", now=DAY)
    submission = str(answer.json["id"])
    town.fill(submission, **team)
    assert town.participant("submit", submission, now=DAY).code == 0
    town.take_in(now=DAY)
    if publish:
        told = ("publish", submission, "--yes", "--why", "seeds of one system")
        answer = town.organiser(*told, now=DAY)
        assert answer.code == 0, answer
        town.push()
        town.pull()
    return submission


def secret(town: Town) -> bytes:
    return bytes.fromhex((town.vault / "labels" / "eval.key").read_text().strip())


def last_scores(town: Town) -> dict[str, dict[str, str]]:
    """Id -> view -> text, as the last event of each tells it."""
    events = [event for event in town.events() if "scores" in event["public"]]
    return {event["submission"]: event["public"]["scores"] for event in events}


def mean_over(values: Mapping[str, float], queries: Iterable[str]) -> str:
    return f"{statistics.mean(values[query] for query in queries):.3f}"


def end(town: Town) -> Path:
    """The archive of the board, which is sound for who has nothing else."""
    archive = town.root / "kb.zip"
    answer = town.organiser("archive", archive, "--yes", now=LAST)
    assert answer.code == 0, answer
    found = audit_archive(archive)
    assert found.faults == ()
    return archive


def exclude(town: Town, *queries: str) -> None:
    """Take queries out of every mean, and score everything again."""
    (town.vault / "labels" / "eval.exclude").write_text("".join(f"{q}\n" for q in queries))
    told = sorted(last_scores(town))
    answer = town.organiser("correct", *told, "--why", "two queries are wrong", now=DAY)
    assert answer.code == 0, answer


def test_a_split_set_from_the_first_submission_to_the_archive(tmp_path: Path) -> None:
    deciding = ('name = "eval"\n', 'name = "eval"\npart = "deciding"\n')
    town = found_board(tmp_path / "town", deciding, LADDER, views=FEEDBACK)
    base = add_baseline(town)
    low = send(town, "low", 1, top=0.2, team=TEAM)
    good = send(town, "good", 2, top=0.8, team={**OTHER_TEAM, "open_runs": True})
    every = {f"eval{number}" for number in range(QUERIES)}
    feedback = feedback_queries(secret(town), every, 0.25)
    assert len(feedback) == 105
    systems = {base: ([9], 0.2), low: ([1], 0.2), good: ([2], 0.8)}
    true = {name: reciprocal(*system) for name, system in systems.items()}

    def check(out: frozenset[str] = frozenset()) -> None:
        told = last_scores(town)
        for name, values in true.items():
            assert told[name]["feedback"] == mean_over(values, feedback - out)
        assert told[good]["eval"] == mean_over(true[good], every - feedback - out)
        assert told[base]["eval"] == mean_over(true[base], every - feedback - out)
        assert "eval" not in told[low]
        assert town.audit() == {**town.audit(), "ok": True, "faults": []}

    check()
    rows = {row["id"]: row for row in town.rows()}
    assert {name: row["rank"] for name, row in rows.items()} == {base: None, low: None, good: 1}
    assert rows[low]["scores"]["feedback"] is not None
    out = frozenset({min(feedback), min(every - feedback)})
    exclude(town, *out)
    check(out)
    assert {name for name, row in rows.items() if row["rank"]} == {good}
    archive = end(town)
    files = forge(archive, swap_key, town.root / "other.zip")
    assert audit_archive(files).faults != ()


def swap_key(files: Files) -> None:
    files["labels/eval.key"] = f"{'0' * 64}\n".encode()


def test_before_there_is_a_baseline_nothing_is_published_with_noise(tmp_path: Path) -> None:
    town = found_board(tmp_path / "town", LADDER, views=CHECK)
    name = send(town, "early", 1, top=0.2, team=TEAM, publish=False)
    answer = town.publish(name, now=DAY)
    assert answer.code != 0
    assert "no-baseline" in answer.err + answer.out
    assert "heldout board baseline" in answer.err + answer.out
    assert name not in last_scores(town)
