"""judging-real.md: what the analyses find in real judgments, and what the page says."""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.random import PCG64, Generator

from heldout.cli.program import main
from heldout.judging.campaign.judgments import Judgment, Votes, count_votes, parse_judgments
from heldout.judging.studies.judges import judge_agreement
from heldout.judging.studies.report import implied_accuracy
from heldout.trec.qrels import parse_qrels

pytestmark = [pytest.mark.real, pytest.mark.slow]

PAGE = (Path(__file__).parents[2] / "docs" / "results" / "judging-real.md").read_text("utf-8")
DL21 = "preferences/dl21-dueling-bandits"
CAST = "preferences/cast-2019"
RUNS = "trec-dl-2021-passage/runs"
NIST = "trec-dl-2021-passage/qrels.dl21-passage.txt.gz"
Found = dict[str, Any]
Labels = Mapping[str, set[str]]


def ask(*arguments: object) -> Found:
    done = CliRunner().invoke(main, ["prefer", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    found: Found = json.loads(done.stdout)
    return found


def on_page(*texts: str) -> None:
    flat = " ".join(PAGE.split())
    for text in texts:
        assert " ".join(text.split()) in flat, text


def points(value: float, digits: int = 3) -> str:
    """A share or coefficient as the page writes it."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def grades_of(path: Path) -> Mapping[str, Mapping[str, int]]:
    return parse_qrels(path.read_bytes(), path=str(path)).judgments


def judgments_of(path: Path) -> tuple[Judgment, ...]:
    return parse_judgments(path.read_bytes(), path=str(path))


@pytest.fixture(scope="module")
def runs(data: Callable[[str], Path]) -> tuple[object, ...]:
    return ("--runs", data(RUNS) / "*.gz", "--order", "trec9")


@pytest.fixture(scope="module")
def crowd(data: Callable[[str], Path]) -> Path:
    return data(DL21) / "judgments.txt.gz"


@pytest.fixture(scope="module")
def model(data: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GPT-4o's rows with one answer in both orders, as the page's command makes them."""
    path = tmp_path_factory.mktemp("model") / "gpt4o.pref"
    rows = gzip.decompress((data(DL21) / "gpt4o-on-the-same-pairs.txt.gz").read_bytes()).decode()
    clear = [line.split() for line in rows.splitlines() if line.endswith(" !")]
    path.write_text("".join(f"{q} {a} {b} {a}\n" for _, q, a, b, _ in clear))
    return path


@pytest.fixture(scope="module")
def strongest(data: Callable[[str], Path], crowd: Path, runs: tuple[object, ...]) -> Found:
    nist = ("--qrels", data(NIST), "--measure-before", "nDCG@10", "--mode", "bradley-terry")
    return ask("labels", "--judgments", crowd, *runs, *nist)


def test_agreement_is_as_the_page_says(
    data: Callable[[str], Path], crowd: Path, model: Path
) -> None:
    rows = {
        "DL 2021, crowd": (crowd, "11,681", "8,685"),
        "CAsT 2019, crowd": (data(CAST) / "TREC-CAsT-2019.pref.gz", "14,573", "12,490"),
        "DL 2021, GPT-4o asked again": (model, "6,993", "5,269"),
    }
    for name, (path, recorded, pairs) in rows.items():
        votes = judgments_of(path)
        found = judge_agreement(votes, Generator(PCG64(0)))
        assert f"{len(votes):,} {len({one.pair for one in votes}):,}" == f"{recorded} {pairs}"
        assert found.alpha is not None
        assert found.interval is not None
        assert found.alike is not None
        right = implied_accuracy(found.alike)
        assert right is not None
        low, high = map(points, found.interval)
        on_page(
            f"| {name} | {recorded} | {pairs} | {found.pairs:,} | {points(found.alike)} "
            f"| {points(found.alpha)} | {low} to {high} | {points(right)} |"
        )


def test_votes_for_higher_grades_are_as_the_page_says(
    data: Callable[[str], Path], crowd: Path
) -> None:
    grades = grades_of(data(NIST))
    count: Counter[str] = Counter()
    for one in judgments_of(crowd):
        own = grades.get(one.query, {})
        won, lost = own.get(str(one.preferred)), own.get(str(one.other))
        if won is not None and lost is not None:
            count["higher" if won > lost else "lower" if won < lost else "same"] += 1
    higher, different = count["higher"], count["higher"] + count["lower"]
    on_page(f"{higher} of {different} votes ({100 * higher / different:.1f}%)")
    assert round(100 * count["same"] / count.total()) == 94


def test_contests_are_as_the_page_says(
    data: Callable[[str], Path], crowd: Path, runs: tuple[object, ...]
) -> None:
    found = ask("contests", "--judgments", crowd, *runs, "--qrels", data(NIST))
    every = found["contests"]
    known = [one for one in every if one["p"] is not None]
    low = [one for one in known if one["p"] <= 0.05]
    perfect = [one for one in known if one["a"] == "perfect"]

    assert (found["wins"]["ielab-robertav1"], found["wins"]["perfect"]) == (39, 6)
    assert found["wins"]["p_f10_mdt53b"] == 5
    assert max(found["wins"].values()) == 39
    assert sum(one["b_preferred"] > one["a_preferred"] for one in perfect) == 39
    assert not any(one["p_bonferroni"] <= 0.05 for one in known)
    assert (len(low), sum(one["a"] == "perfect" for one in low), len(every)) == (62, 17, 1035)
    assert median(one["queries"] for one in every) == 5
    least = min(known, key=lambda one: one["p"])
    assert (least["b"], least["a_preferred"], least["b_preferred"]) == ("ielab-robertav2", 0, 13)
    assert least["p_bonferroni"] == pytest.approx(0.25, abs=0.005)
    assert sum(one["p"] * 45 <= 0.05 for one in perfect) == 4
    assert len(found["cycles"]) == 443
    best = [
        sum(grade == max(own.values()) for grade in own.values())
        for own in grades_of(data(NIST)).values()
    ]
    assert median(best) == 10


def test_strengths_are_as_the_page_says(
    data: Callable[[str], Path], crowd: Path, runs: tuple[object, ...]
) -> None:
    found = ask("strengths", "--judgments", crowd, *runs, "--qrels", data(NIST))
    above = [
        one
        for one in found["differences"]
        if one["b"] == "perfect" and one["sandwich"][0] > 0 and one["bootstrap"][0] > 0
    ]
    assert len(above) == 29
    on_page("29 of 45 runs are above *perfect* by both intervals")


def test_scores_on_both_labels_are_as_the_page_says(strongest: Found) -> None:
    found = strongest["rescored"]
    every, best = found["taus"][0], found["taus"][1]
    noise = found["noise"]
    on_page(
        f"| nDCG@10, NIST, and RR@10, Bradley-Terry labels | {points(every['tau'])} "
        f"| {points(best['tau'])} |",
        f"| the same pairs judged again (redrawn), Bradley-Terry | {points(noise['tau'])} |",
        "52 of 50 queries | 1 | 525 of 637, 82.4%",
    )
    assert (found["queries"], found["left_out"]) == (46, 4)
    runs = {one["run"]: one for one in found["runs"]}
    rows = [line for line in PAGE.splitlines() if line.startswith(("| p_", "| WLU", "| yorku21_c"))]
    assert len(rows) == 6
    for name, one in runs.items():
        if not any(row.startswith(f"| {name} |") for row in rows) and name != "bcai_p_vbert":
            continue
        low, high = one["after"]["bca"]
        ordered = strongest["orderings"][name]
        on_page(
            f"| {name} | {one['before']['rank']} | {one['after']['rank']} "
            f"| {points(one['after']['value'])} | {points(low)} to {points(high)} "
            f"| {points(ordered['value'])} of {ordered['units']} |"
        )
    perfect = runs["perfect"]["after"]["value"]
    assert sum(one["after"]["value"] > perfect for one in found["runs"]) == 34
    assert points(perfect) == ".087"
    moved = {
        one["run"]: (one["rank"], one["rank_without"])
        for one in strongest["left_out"]
        if abs(one["rank"] - one["rank_without"]) > 3
    }
    assert moved == {"bcai_p_mbert": (10, 14), "p_f10_mt53b": (38, 42)}
    assert min(one["tau"] for one in strongest["left_out"]) > 0.96


def labels_of(found: Found) -> Labels:
    return {query: set(docs) for query, docs in found["labels"].items()}


def read_labels(path: Path) -> Labels:
    return {query: set(grades) for query, grades in grades_of(path).items()}


def test_our_labels_and_the_authors_are_as_the_page_says(
    data: Callable[[str], Path], crowd: Path, strongest: Found
) -> None:
    theirs = read_labels(data(DL21) / "Combined-I+II+III.qrels")
    by_wins = labels_of(ask("labels", "--judgments", crowd, "--mode", "tournament"))
    shared = {
        name: sum(bool(own[query] & theirs[query]) for query in theirs)
        for name, own in (("wins", by_wins), ("strength", labels_of(strongest)))
    }
    assert (len(theirs), sum(map(len, theirs.values()))) == (50, 55)
    assert shared == {"wins": 37, "strength": 41}
    in_order = labels_of(ask("labels", "--judgments", crowd, "--mode", "sequential"))
    assert in_order == labels_of(strongest)

    votes = count_votes(judgments_of(crowd))
    heads: Counter[str] = Counter()
    for query, best in theirs.items():
        if by_wins[query] & best:
            continue
        ours, other = min(by_wins[query]), min(best)
        ahead = _lead(votes, query, ours, other)
        heads["ours" if ahead > 0 else "theirs" if ahead < 0 else "drawn"] += 1
        heads["fewer"] += _pairs(votes, query, other) < _pairs(votes, query, ours)
        heads["lost all four"] += ahead == -4
    assert heads == {"ours": 6, "theirs": 6, "drawn": 1, "fewer": 8, "lost all four": 2}


def test_scores_on_other_labels_are_as_the_page_says(
    data: Callable[[str], Path], crowd: Path, runs: tuple[object, ...]
) -> None:
    authors = ("--qrels", data(DL21) / "Combined-I+II+III.qrels")
    nist = ("--qrels", data(NIST), "--measure-before")
    strong, wins = ("--mode", "bradley-terry"), ("--mode", "tournament")
    for told, every, best, text in (
        ((*authors, *strong), ".786", ".822", "| Bradley-Terry | 41 of 50 | .786 |"),
        ((*authors, *wins), ".824", ".733", "| tournament | 37 of 50 | .824 |"),
        ((*nist, "RR(rel=2)@10", *strong), ".608", ".689", "Bradley-Terry labels | .608"),
        ((*nist, "nDCG@10", *wins), ".671", ".600", "tournament labels | .671"),
    ):
        found = ask("labels", "--judgments", crowd, *runs, *told, "--redraws", 0, "--trials", 20)
        taus = [points(one["tau"]) for one in found["rescored"]["taus"][:2]]
        assert taus == [every, best]
        on_page(text)
        if told[: len(authors)] == authors:
            before = found["pairings"]["labels before"]
            assert (before["won"], before["pairs"]) == (550, 687)


def _lead(votes: Votes, query: str, one: str, other: str) -> int:
    cast = votes[query][min(one, other), max(one, other)]
    return (cast.first - cast.second) * (1 if one < other else -1)


def _pairs(votes: Votes, query: str, doc: str) -> int:
    return sum(doc in pair for pair in votes[query])


def test_labels_of_cast_are_as_the_page_says(data: Callable[[str], Path]) -> None:
    text = gzip.decompress((data(CAST) / "TREC-CAsT-2019.qrels.gz").read_bytes()).decode()
    grades: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for line in text.splitlines():
        query, _, doc, grade = line.split()
        grades[query][doc] = float(grade)
    for mode, shared, counted, level in (
        ("bradley-terry", 148, 209, 171),
        ("tournament", 138, 183, 169),
    ):
        path = data(CAST) / "TREC-CAsT-2019.pref.gz"
        found = ask("labels", "--judgments", path, "--mode", mode)
        ours = labels_of(found)
        own = found["pairings"]["preference labels"]
        on_page(f"| {found['version']['several']} | {own['won']:,} of {own['pairs']:,}")
        assert found["version"]["labels"] == counted
        best = {query: {d for d, g in grades[query].items() if g == 50} for query in ours}
        five = {query: {d for d, g in grades[query].items() if g >= 10} for query in ours}
        assert sum(map(len, best.values())) == 265
        assert sum(bool(ours[query] & best[query]) for query in ours) == shared
        assert sum(bool(ours[query] & five[query]) for query in ours) == level


def test_the_model_ranks_runs_as_the_page_says(
    data: Callable[[str], Path],
    model: Path,
    strongest: Found,
    runs: tuple[object, ...],
    tmp_path: Path,
) -> None:
    rows = "".join(f"{q} 0 {d} 1\n" for q, docs in strongest["labels"].items() for d in docs)
    (tmp_path / "crowd.qrels").write_text(rows)
    options = ("--mode", "bradley-terry", "--redraws", 0)
    for qrels, measure, tau, top in (
        (data(NIST), "nDCG@10", ".644", ".556"),
        (tmp_path / "crowd.qrels", "RR@10", ".786", ".733"),
    ):
        found = ask(
            *("labels", "--judgments", model, *runs, "--qrels", qrels),
            *("--measure-before", measure, *options),
        )["rescored"]
        assert [points(one["tau"]) for one in found["taus"][:2]] == [tau, top]
        on_page(tau, f"best ten {top}")
    after = {one["run"]: one["after"]["rank"] for one in found["runs"]}
    assert after["perfect"] == 6
    assert sorted(after, key=after.__getitem__)[:4] == [
        "yorku21_c", "NLE_P_v1", "yorku21_a", "ielab-robertav1"
    ]  # fmt: skip


def test_the_model_agrees_with_votes_as_the_page_says(crowd: Path, model: Path) -> None:
    votes, said = count_votes(judgments_of(crowd)), count_votes(judgments_of(model))
    pairs = agreed = total = 0
    alike = couples = 0.0
    for query, found in said.items():
        for pair, own in found.items():
            cast = votes.get(query, {}).get(pair)
            if cast is None or cast.total < 2 or own.first == own.second:
                continue
            pairs += 1
            agreed += cast.first if own.first > own.second else cast.second
            total += cast.total
            couples += cast.total * (cast.total - 1) / 2
            alike += sum(n * (n - 1) / 2 for n in (cast.first, cast.second))
    on_page(f"On the {pairs:,} pairs that several people judged")
    on_page(f"{100 * agreed / total:.1f}% of their votes", f"agree in {100 * alike / couples:.1f}%")


def test_no_first_passage_of_the_best_grade_is_unjudged(
    data: Callable[[str], Path], crowd: Path
) -> None:
    judged: defaultdict[str, set[str]] = defaultdict(set)
    for one in judgments_of(crowd):
        judged[one.query] |= {one.left, one.right}
    judged.default_factory = None
    grades = grades_of(data(NIST))
    firsts: dict[str, int] = {}
    for path in sorted(data(RUNS).glob("*.gz")):
        best: dict[str, tuple[float, str]] = {}
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            query, _, doc, _, score, _ = line.split()
            best[query] = max(best.get(query, (-np.inf, "")), (float(score), doc))
        for query, (_, doc) in best.items():
            own = grades[query]
            if query in judged and own.get(doc, 0) == max(own.values()):
                assert doc in judged[query], (path.name, query)
        shown = {query: doc for query, (_, doc) in best.items()}
        firsts[path.name] = sum(shown.get(query) in docs for query, docs in judged.items())
    assert firsts["p_f10_mdt53b.gz"] == 27
