"""A board whose held-out set is split, and one with scores under noise, from the first to the last.

Published, corrected, audited, closed, archived, and the archive audited by who has nothing else.
"""

import math
import random
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import town as towns
from town import OTHER_TEAM, TEAM, Town, call, founding, git, named, write_inputs
from trusting import Files, forge

from heldout.board.audit.archive_audit import audit_archive
from heldout.board.rules.release import ReleaseRule, draw_noise, split_queries
from heldout.board.scores import releasing, sets
from heldout.board.scores import stored as evidence

pytestmark = pytest.mark.slow
QUERIES = 420
DAY = "2026-11-02T10:00:00Z"
LAST = "2026-12-02T10:00:00Z"
DECIDING = ('name = "eval"\n', 'name = "eval"\npart = "deciding"\n')
FEEDBACK = '\n[[views]]\nname = "feedback"\nset = "eval"\nmeasure = "RR@10"\npart = "feedback"\n'
CLEAR = ('rule = "rounded"', 'rule = "clear"')
CHECK = '\n[[views]]\nname = "check"\nset = "eval"\nmeasure = "RR@10"\nnoise = 10\n'


@pytest.fixture(scope="module", autouse=True)
def many_queries() -> Iterator[None]:
    """Enough queries for a split."""
    patch = pytest.MonkeyPatch()
    patch.setattr(towns, "QUERIES", QUERIES)
    yield
    patch.undo()


def create_board(folder: Path, *changes: tuple[str, str], views: str) -> Town:
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
    # A key that is there already is taken: so no test depends on chance.
    (town.vault / "labels" / "eval.key").write_text(f"{'ab' * 32}\n")
    town.organiser("rebuild", now=DAY).done()
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
    town.organiser("board", "baseline", name, *runs, "--description", "BM25", now=DAY).done()
    town.share()
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
        town.organiser(*told, now=DAY).done()
        town.share()
    return submission


def secret(town: Town) -> bytes:
    return bytes.fromhex((town.vault / "labels" / "eval.key").read_text().strip())


def last_scores(town: Town) -> dict[str, dict[str, str]]:
    """Id -> view -> text, as the last event of each tells it."""
    events = [event for event in town.events() if "scores" in event["public"]]
    return {event["submission"]: event["public"]["scores"] for event in events}


def last_errors(town: Town) -> dict[str, dict[str, str]]:
    """Id -> view -> standard error, as the last event of each has it."""
    events = [event["public"] for event in town.events() if "scores" in event["public"]]
    names = [event["submission"] for event in town.events() if "scores" in event["public"]]
    return {name: event["standard_errors"] for name, event in zip(names, events, strict=True)}


def error_over(values: Mapping[str, float], queries: Iterable[str], *, noise: float = 0) -> str:
    """The documented formula of a standard error."""
    some = [values[query] for query in queries]
    return f"{statistics.stdev(some) * math.hypot(noise, 1) / math.sqrt(len(some)):.3f}"


def mean_over(values: Mapping[str, float], queries: Iterable[str]) -> str:
    return f"{statistics.mean(values[query] for query in queries):.3f}"


def end(town: Town) -> Path:
    """The archive of the board, which is sound for who has nothing else."""
    archive = town.root / "kb.zip"
    town.organiser("archive", archive, "--yes", now=LAST).done()
    found = audit_archive(archive)
    assert found.faults == ()
    return archive


def exclude(town: Town, *queries: str) -> None:
    """Take queries out of every mean, and score everything again."""
    (town.vault / "labels" / "eval.exclude").write_text("".join(f"{q}\n" for q in queries))
    told = sorted(last_scores(town))
    town.organiser("correct", *told, "--why", "two queries are wrong", now=DAY).done()


def test_a_split_set_from_the_first_submission_to_the_archive(tmp_path: Path) -> None:
    town = create_board(tmp_path / "town", DECIDING, CLEAR, views=FEEDBACK)
    base = add_baseline(town)
    low = send(town, "low", 1, top=0.2, team=TEAM)
    good = send(town, "good", 2, top=0.8, team={**OTHER_TEAM, "open_runs": True})
    every = {f"eval{number}" for number in range(QUERIES)}
    feedback = split_queries(secret(town), every, ReleaseRule())["feedback"]
    assert len(feedback) == 105
    systems = {base: ([9], 0.2), low: ([1], 0.2), good: ([2], 0.8)}
    true = {name: reciprocal(*system) for name, system in systems.items()}

    def check(out: frozenset[str] = frozenset()) -> None:
        told = last_scores(town)
        for name, values in true.items():
            assert told[name]["feedback"] == mean_over(values, feedback - out)
            assert last_errors(town)[name] == {"feedback": error_over(values, feedback - out)}
        rank = {query: true[good][query] for query in every - feedback - out}
        first = {query: true[base][query] for query in every - feedback}
        raised = float(told[base]["eval"]) + 0.001
        noisy = noisy_text(town, rank, first, view="eval", errors=1)
        assert told[good]["eval"] == max(noisy, f"{raised:.3f}")
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


def noisy_text(
    town: Town,
    values: Mapping[str, float],
    first: Mapping[str, float],
    *,
    view: str = "check",
    errors: int = 10,
) -> str:
    """The documented formula, from the texts of the runs and the key."""
    ordered = [values[query] for query in sorted(values)]
    unit = max(statistics.stdev(one.values()) / len(one) ** 0.5 for one in (values, first))
    drawn = draw_noise(secret(town), view, ordered)
    return f"{statistics.fmean(ordered) + errors * unit * drawn:.3f}"


def test_scores_with_noise_from_the_first_submission_to_the_archive(tmp_path: Path) -> None:
    town = create_board(tmp_path / "town", CLEAR, views=CHECK)
    base = add_baseline(town)
    low = send(town, "low", 1, top=0.2, team=TEAM)
    good = send(town, "good", 2, 3, top=0.8, team={**OTHER_TEAM, "open_runs": True})
    again = send(town, "again", 4, top=0.2, team=named("Harbour"))
    systems = {base: ([9], 0.2), low: ([1], 0.2), good: ([2, 3], 0.8), again: ([4], 0.2)}
    true = {name: reciprocal(*system) for name, system in systems.items()}
    told = last_scores(town)
    for name, values in true.items():
        assert told[name]["check"] == noisy_text(town, values, true[base])
    assert len({scores["check"] for scores in told.values()}) == len(systems)
    error = error_over(true[base], true[base], noise=10)
    assert last_errors(town) == {name: {"check": error} for name in systems}
    assert [name for name in systems if "eval" in told[name]] == [base, good]
    spreads = next(e for e in town.events() if e["submission"] == good and "seeds" in e["public"])
    assert spreads["public"]["seeds"]["spreads"].keys() == {"dev"}
    assert town.audit() == {**town.audit(), "ok": True, "faults": []}
    status = town.participant("status", good, now=DAY)
    assert (
        f"check {told[good]['check']}, SE {error}, with noise, for information only (n = 420)"
        in status.out
    )
    page = (town.board / "leaderboard/index.html").read_text("utf-8")
    assert "a check that the run works" in page.replace("\N{NO-BREAK SPACE}", " ")
    assert f">SE</abbr>&nbsp;{error}" in page
    row = next(row for row in town.rows() if row["id"] == good)
    assert row["standard_errors"] == {"check": float(error)}
    before = dict(told)
    exclude(town, "eval3", "eval7")
    left = {
        name: {q: value for q, value in values.items() if q not in ("eval3", "eval7")}
        for name, values in true.items()
    }
    told = last_scores(town)
    for name, values in left.items():  # in units of the first baseline as it was at first
        assert told[name]["check"] == noisy_text(town, values, true[base])
        assert told[name]["check"] != before[name]["check"]
    assert town.audit() == {**town.audit(), "ok": True, "faults": []}
    end(town)


def test_an_organiser_who_publishes_without_the_noise_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = create_board(tmp_path / "town", CLEAR, views=CHECK)
    base = add_baseline(town)
    with monkeypatch.context() as patch:
        patch.setattr(
            evidence, "add_noise", lambda values, *_, **__: f"{sum(values) / len(values):.3f}"
        )
        good = send(town, "good", 2, top=0.8, team=TEAM)
    assert last_scores(town)[good]["check"] == mean_over(reciprocal([2], 0.8), reciprocal([2], 0.8))
    faults = town.audit()["faults"]
    assert [
        f'"{good}", view {view}: published' in fault
        for view, fault in zip(("eval", "check"), faults, strict=True)
    ] == [True, True]
    assert base not in "".join(faults)


def test_an_organiser_who_publishes_another_standard_error_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = create_board(tmp_path / "town", DECIDING, CLEAR, views=FEEDBACK)
    with monkeypatch.context() as patch:
        patch.setattr(releasing, "error_of", lambda *_, **__: "0.001")
        base = add_baseline(town)
    (fault,) = town.audit()["faults"]
    assert f'"{base}", view feedback: published' in fault
    assert "SE 0.001" in fault


def test_an_organiser_who_splits_by_another_key_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = create_board(tmp_path / "town", DECIDING, CLEAR, views=FEEDBACK)
    with monkeypatch.context() as patch:
        chosen = partial(split_queries, bytes(32))
        patch.setattr(sets, "split_queries", lambda _, ids, rule: chosen(ids, rule))
        add_baseline(town)
    faults = town.audit()["faults"]
    assert len(faults) == 2
    assert all("queries that are not in the" in fault for fault in faults)


def test_neither_share_nor_queries_of_a_split_change_once_scores_are_published(
    tmp_path: Path,
) -> None:
    town = create_board(tmp_path / "town", DECIDING, CLEAR, views=FEEDBACK)
    add_baseline(town)
    rules, queries = town.board / "board.toml", town.board / "queries" / "eval.tsv"
    for file, text in (
        (rules, rules.read_text().replace(CLEAR[1], f"{CLEAR[1]}\nfeedback = 0.3")),
        (queries, queries.read_text() + "more\twhat else is there\n"),
    ):
        before = file.read_text()
        assert text != before
        file.write_text(text)
        answer = town.organiser("rebuild", now=DAY)
        assert answer.code == 2, answer
        assert file.name in answer.err
        assert "one part to the other" in answer.err or "which queries are in which" in answer.err
        file.write_text(before)
