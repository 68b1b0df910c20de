"""A board whose held-out set is split, and one with scores under noise, from the first to the last.

Published, corrected, audited, closed, archived, and the archive audited by who has nothing else.
"""

import math
import random
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import lab as labs
import pytest
from lab import OTHER_TEAM, TEAM, Lab, Patch, Team, call, founding, git, named, write_inputs
from trusting import Files, forge

from heldout.board.audit.archive_audit import audit_archive
from heldout.board.rules.release import ReleaseRule, draw_noise, split_queries
from heldout.board.scores import releasing
from heldout.board.scores import stored as evidence

QUERIES = 420
DECIDING = ('name = "eval"\n', 'name = "eval"\npart = "deciding"\n')
FEEDBACK = '\n[[views]]\nname = "feedback"\nset = "eval"\nmeasure = "RR@10"\npart = "feedback"\n'
CLEAR = ('rule = "rounded"', 'rule = "clear"')
CHECK = '\n[[views]]\nname = "check"\nset = "eval"\nmeasure = "RR@10"\nnoise = 10\n'


@pytest.fixture(scope="module", autouse=True)
def many_queries() -> Iterator[None]:
    """Enough queries for a split."""
    patch = pytest.MonkeyPatch()
    patch.setattr(labs, "QUERIES", QUERIES)
    yield
    patch.undo()


def create_board(folder: Path, *changes: tuple[str, str], views: str) -> Lab:
    """A board with these rules from its first event on, one baseline, and one clone."""
    lab = Lab(folder)
    folder.mkdir()
    (folder / ".gitconfig").write_text(labs._GITCONFIG)
    write_inputs(folder)
    assert call(folder, *founding(folder)).code == 0
    lab.edit(*changes, more=views)
    # A key that is there already is taken: so no test depends on chance.
    (lab.vault / "labels" / "eval.key").write_text(f"{'ab' * 32}\n")
    lab.organiser("rebuild").done()
    git(folder, "init", "-q", "--bare", "--template=", "-b", "main", "forge")
    git(lab.board, "remote", "add", "origin", str(lab.forge))
    lab.push()
    git(folder, "clone", "-q", "--template=", str(lab.forge), "clone")
    return lab


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


def options(lab: Lab, seeds: Sequence[int], top: float) -> list[str | Path]:
    """The runs of a system as options of a command."""
    said: list[str | Path] = []
    for name in ("dev", "eval"):
        for seed in seeds:
            file = lab.root / f"{name}-{seed}.run"
            file.write_text(run_text(name, seed, top=top))
            said += [f"--{name}", file]
    return said


def reciprocal(seeds: Sequence[int], top: float) -> dict[str, float]:
    """RR@10 of each held-out query, the mean over seeds, straight from the texts of the runs."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        for line in run_text("eval", seed, top=top).splitlines():
            query, document, rank = line.split("\t")
            if document == f"d{query}":
                found.setdefault(query, []).append(1 / int(rank))
    return {query: statistics.mean(values) for query, values in found.items()}


def add_baseline(lab: Lab, seeds: Sequence[int] = (9,)) -> str:
    name = "20261102-base"
    runs = options(lab, seeds, 0.2)
    lab.organiser("board", "baseline", name, *runs, "--description", "BM25").done()
    lab.share()
    return name


def send(lab: Lab, name: str, *seeds: int, top: float, team: Team, publish: bool = True) -> str:
    answer = lab.participant("draft", name, *options(lab, seeds, top), "--json")
    submission = str(answer.json["id"])
    lab.fill(submission, **team)
    assert lab.participant("submit", submission).code == 0
    lab.take_in()
    if publish:
        args = ("publish", submission, "--yes", "--why", "seeds of one system")
        lab.organiser(*args).done()
        lab.share()
    return submission


def secret(lab: Lab) -> bytes:
    return bytes.fromhex((lab.vault / "labels" / "eval.key").read_text().strip())


def last_scores(lab: Lab) -> dict[str, dict[str, str]]:
    """Id -> view -> text, as the last event of each tells it."""
    events = [event for event in lab.events() if "scores" in event["public"]]
    return {event["submission"]: event["public"]["scores"] for event in events}


def last_errors(lab: Lab) -> dict[str, dict[str, str]]:
    """Id -> view -> standard error, as the last event of each has it."""
    events = [event["public"] for event in lab.events() if "scores" in event["public"]]
    names = [event["submission"] for event in lab.events() if "scores" in event["public"]]
    return {name: event["standard_errors"] for name, event in zip(names, events, strict=True)}


def error_over(values: Mapping[str, float], queries: Iterable[str], *, noise: float = 0) -> str:
    """The documented formula of a standard error."""
    some = [values[query] for query in queries]
    return f"{statistics.stdev(some) * math.hypot(noise, 1) / math.sqrt(len(some)):.3f}"


def mean_over(values: Mapping[str, float], queries: Iterable[str]) -> str:
    return f"{statistics.mean(values[query] for query in queries):.3f}"


def exclude(lab: Lab, *queries: str) -> None:
    """Take queries out of every mean, and score everything again."""
    (lab.vault / "labels" / "eval.exclude").write_text("".join(f"{q}\n" for q in queries))
    args = sorted(last_scores(lab))
    lab.organiser("correct", *args, "--why", "two queries are wrong").done()


def test_a_split_set_from_the_first_submission_to_the_archive(tmp_path: Path) -> None:
    lab = create_board(tmp_path / "lab", DECIDING, CLEAR, views=FEEDBACK)
    base = add_baseline(lab)
    low = send(lab, "low", 1, top=0.2, team=TEAM)
    good = send(lab, "good", 2, top=0.8, team={**OTHER_TEAM, "open_runs": True})
    every = {f"eval{number}" for number in range(QUERIES)}
    feedback = split_queries(secret(lab), every, ReleaseRule())["feedback"]
    assert len(feedback) == 105
    systems = {base: ([9], 0.2), low: ([1], 0.2), good: ([2], 0.8)}
    true = {name: reciprocal(*system) for name, system in systems.items()}

    def check(out: frozenset[str] = frozenset()) -> None:
        said = last_scores(lab)
        for name, values in true.items():
            assert said[name]["feedback"] == mean_over(values, feedback - out)
            assert last_errors(lab)[name] == {"feedback": error_over(values, feedback - out)}
        rank = {query: true[good][query] for query in every - feedback - out}
        first = {query: true[base][query] for query in every - feedback}
        raised = float(said[base]["eval"]) + 0.001
        noisy = noisy_text(lab, rank, first, view="eval", errors=1)
        assert said[good]["eval"] == max(noisy, f"{raised:.3f}")
        assert said[base]["eval"] == mean_over(true[base], every - feedback - out)
        assert "eval" not in said[low]
        assert lab.audit() == {**lab.audit(), "ok": True, "faults": []}

    check()
    rows = {row["id"]: row for row in lab.rows()}
    assert {name: row["rank"] for name, row in rows.items()} == {base: None, low: None, good: 1}
    assert rows[low]["scores"]["feedback"] is not None
    out = frozenset({min(feedback), min(every - feedback)})
    exclude(lab, *out)
    check(out)
    assert {name for name, row in rows.items() if row["rank"]} == {good}
    archive = lab.archive()
    assert audit_archive(forge(archive, swap_key, lab.root / "other.zip")).faults != ()


def swap_key(files: Files) -> None:
    files["labels/eval.key"] = f"{'0' * 64}\n".encode()


def noisy_text(
    lab: Lab,
    values: Mapping[str, float],
    first: Mapping[str, float],
    *,
    view: str = "check",
    errors: int = 10,
) -> str:
    """The documented formula, from the texts of the runs and the key."""
    ordered = [values[query] for query in sorted(values)]
    unit = max(statistics.stdev(one.values()) / len(one) ** 0.5 for one in (values, first))
    drawn = draw_noise(secret(lab), view, ordered)
    return f"{statistics.fmean(ordered) + errors * unit * drawn:.3f}"


def test_scores_with_noise_from_the_first_submission_to_the_archive(tmp_path: Path) -> None:
    lab = create_board(tmp_path / "lab", CLEAR, views=CHECK)
    base = add_baseline(lab)
    low = send(lab, "low", 1, top=0.2, team=TEAM)
    good = send(lab, "good", 2, 3, top=0.8, team={**OTHER_TEAM, "open_runs": True})
    again = send(lab, "again", 4, top=0.2, team=named("Harbour"))
    systems = {base: ([9], 0.2), low: ([1], 0.2), good: ([2, 3], 0.8), again: ([4], 0.2)}
    true = {name: reciprocal(*system) for name, system in systems.items()}
    said = last_scores(lab)
    for name, values in true.items():
        assert said[name]["check"] == noisy_text(lab, values, true[base])
    assert len({scores["check"] for scores in said.values()}) == len(systems)
    error = error_over(true[base], true[base], noise=10)
    assert last_errors(lab) == {name: {"check": error} for name in systems}
    assert [name for name in systems if "eval" in said[name]] == [base, good]
    spreads = next(e for e in lab.events() if e["submission"] == good and "seeds" in e["public"])
    assert spreads["public"]["seeds"]["spreads"].keys() == {"dev"}
    assert lab.audit() == {**lab.audit(), "ok": True, "faults": []}
    status = lab.participant("status", good)
    assert (
        f"check {said[good]['check']}, SE {error}, with noise, for information only (n = 420)"
        in status.out
    )
    page = (lab.board / "leaderboard/index.html").read_text("utf-8")
    assert "a check that the run works" in page.replace("\N{NO-BREAK SPACE}", " ")
    assert f">SE</abbr>&nbsp;{error}" in page
    row = next(row for row in lab.rows() if row["id"] == good)
    assert row["standard_errors"] == {"check": float(error)}
    before = dict(said)
    exclude(lab, "eval3", "eval7")
    left = {
        name: {q: value for q, value in values.items() if q not in ("eval3", "eval7")}
        for name, values in true.items()
    }
    said = last_scores(lab)
    for name, values in left.items():  # in units of the first baseline as it was at first
        assert said[name]["check"] == noisy_text(lab, values, true[base])
        assert said[name]["check"] != before[name]["check"]
    assert lab.audit() == {**lab.audit(), "ok": True, "faults": []}
    lab.archive()


def test_an_organiser_who_publishes_without_the_noise_is_found_out(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    lab = create_board(tmp_path / "lab", CLEAR, views=CHECK)
    base = add_baseline(lab)
    with monkeypatch.context() as patch:
        patch.setattr(
            evidence, "add_noise", lambda values, *_, **__: f"{sum(values) / len(values):.3f}"
        )
        good = send(lab, "good", 2, top=0.8, team=TEAM)
    assert last_scores(lab)[good]["check"] == mean_over(reciprocal([2], 0.8), reciprocal([2], 0.8))
    faults = lab.audit()["faults"]
    assert [
        f'"{good}", view {view}: published' in fault
        for view, fault in zip(("eval", "check"), faults, strict=True)
    ] == [True, True]
    assert base not in "".join(faults)


def test_an_organiser_who_publishes_another_standard_error_is_found_out(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    lab = create_board(tmp_path / "lab", DECIDING, CLEAR, views=FEEDBACK)
    with monkeypatch.context() as patch:
        patch.setattr(releasing, "error_of", lambda *_, **__: "0.001")
        base = add_baseline(lab)
    (fault,) = lab.audit()["faults"]
    assert f'"{base}", view feedback: published' in fault
    assert "SE 0.001" in fault


def test_neither_share_nor_queries_of_a_split_change_once_scores_are_published(
    tmp_path: Path,
) -> None:
    lab = create_board(tmp_path / "lab", DECIDING, CLEAR, views=FEEDBACK)
    add_baseline(lab)
    rules, queries = lab.board / "board.toml", lab.board / "queries" / "eval.tsv"
    for file, text in (
        (rules, rules.read_text().replace(CLEAR[1], f"{CLEAR[1]}\nfeedback = 0.3")),
        (queries, queries.read_text() + "more\twhat else is there\n"),
    ):
        before = file.read_text()
        assert text != before
        file.write_text(text)
        answer = lab.organiser("rebuild").refused(file.name)
        assert "one part to the other" in answer.err or "which queries are in which" in answer.err
        file.write_text(before)
