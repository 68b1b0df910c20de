"""Facets: standings, differences and interactions; coverage by simulation; subsets written out."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated_boards import rng, table

import calling
from heldout.analyses import facets as report
from heldout.analyses.entries import ViewScores, cut_view
from heldout.analyses.facets import (
    FacetsOptions,
    compare_facets,
    cut_queries,
    cut_subset,
)
from heldout.answers.answer import to_document
from heldout.errors import InputError
from heldout.scoring.query_facets import by_length, by_question, by_words
from heldout.scoring.table import cut_table, parse_scores, table_of_values
from heldout.scoring.table_files import format_scores
from heldout.trec.qrels import parse_qrels
from heldout.trec.queries import parse_queries
from trials import choose_trials

answer = partial(calling.answer, "analyse", "facets")
call = partial(calling.call, "analyse", "facets")
refused = partial(calling.refused, "analyse", "facets")


def halves(size: int) -> dict[str, frozenset[str]]:
    names = [f"q{n}" for n in range(size)]
    return {"first": frozenset(names[: size // 2]), "last": frozenset(names[size // 2 :])}


def crossing() -> Any:
    random = rng(4)
    base = random.random(80).round(3)
    a = base + np.repeat([0.3, 0.0], 40)
    b = base + np.repeat([0.0, 0.28], 40) + random.normal(0, 0.05, 80).round(3)
    scores = table({"a": a.tolist(), "b": b.tolist()})
    return compare_facets(scores, halves(80), rng(), FacetsOptions(draws=199))


def test_two_systems_that_are_good_at_different_things_interact() -> None:
    found = crossing()

    assert [facet.ranks for facet in found.facets] == [(1, 2), (2, 1)]
    assert found.overall.ranks == (1, 2)
    assert {one.p for one in found.interactions} == {1 / 200}
    by_facet = {one.facet: one for one in found.differences}
    assert by_facet["first"].difference == pytest.approx(-0.3, abs=0.03)
    assert by_facet["last"].difference == pytest.approx(0.28, abs=0.03)
    assert found.family == 2


def test_on_all_queries_the_family_is_every_system_that_is_compared() -> None:
    random = rng(9)
    scores = table({f"s{n}": random.random(60).tolist() for n in range(12)})
    found = compare_facets(scores, halves(60), rng(), FacetsOptions(draws=9))

    overall: list[Any] = [one for one in found.differences if not one.facet]
    assert found.family_overall == len(overall) == 11
    for one in overall:
        assert one.p_corrected == min(1.0, 11 * one.p)
        assert one.low_all < one.low


def test_a_reference_that_its_score_has_chosen_is_told() -> None:
    random = rng(9)
    scores = table({name: random.random(60).tolist() for name in "abc"})
    chosen, named = (
        report.tables(
            compare_facets(scores, halves(60), rng(), FacetsOptions(draws=9, against=against))
        )[1]
        for against in (None, "a")
    )

    assert any("because it has the best score here" in note for note in chosen.notes)
    assert not any("because it has the best score here" in note for note in named.notes)


def test_the_interval_of_all_holds_the_interval_alone_and_p_follows_it() -> None:
    for one in crossing().differences:
        assert one.low_all <= one.low <= one.difference <= one.high <= one.high_all
        assert (one.p_corrected < 0.05) == (one.low_all > 0 or one.high_all < 0)


def test_intervals_on_all_facets_hold_at_once_as_often_as_they_say() -> None:
    """Reciprocal ranks of two systems on four facets of 25, whose true differences differ."""
    names = [f"q{n}" for n in range(100)]
    facets = {f"f{k}": frozenset(names[25 * k : 25 * k + 25]) for k in range(4)}
    ranks = np.arange(1, 11)
    weights = np.array([np.exp(-ranks * rate) for rate in (0.3, 0.4, 0.5, 0.6)])
    weights /= weights.sum(axis=1, keepdims=True)
    truth = weights @ (1 / ranks) - weights[0] @ (1 / ranks)
    held = 0
    trials = choose_trials(push=100, night=300)
    for seed in range(trials):
        random = rng(seed)
        a = 1 / random.choice(ranks, 100, p=weights[0])
        b = np.concatenate([1 / random.choice(ranks, 25, p=row) for row in weights])
        found = compare_facets(
            table({"a": a.tolist(), "b": b.tolist()}),
            facets,
            random,
            FacetsOptions(against="a", draws=1),
        )
        held += all(
            (one.low_all or 0) <= truth[int(one.facet[1])] <= (one.high_all or 0)
            for one in found.differences
            if one.facet
        )
    assert held / trials >= 0.9  # 95% at least; 2.3 standard errors below


def test_small_facets_are_left_out_and_named() -> None:
    random = rng(1)
    scores = table({name: random.random(30).tolist() for name in "ab"})
    facets = {
        "large": frozenset(f"q{n}" for n in range(22)),
        "small": frozenset({"q1", "q25"}),
        "elsewhere": frozenset({"x1", "x2"}),
    }
    found = compare_facets(scores, facets, rng(), FacetsOptions(draws=9))

    assert [facet.name for facet in found.facets] == ["large"]
    assert found.left_out == {"small": 2, "elsewhere": 0}
    assert found.unlabelled == 7
    assert any("small (2)" in note for table in report.tables(found) for note in table.notes)


def test_a_facet_of_all_queries_has_no_outside_to_interact_with() -> None:
    scores = table({"a": [0.1] * 10 + [0.2] * 10, "b": [0.3] * 15 + [0.2] * 5})
    found = compare_facets(scores, {"all": frozenset(scores.queries)}, rng(), FacetsOptions())

    assert found.interactions == ()
    assert "no facet leaves two queries outside" in dict(report.summary(found))["interact"]
    assert [one.title for one in report.tables(found)] == [
        "Standings by facet, score",
        "Against b, by facet",
    ]


def test_equal_systems_have_no_p_and_no_interval() -> None:
    scores = table({"a": [0.5, 0.25] * 20, "b": [0.5, 0.25] * 20})
    found = compare_facets(scores, halves(40), rng(), FacetsOptions(draws=9))

    for one in found.differences:
        assert (one.p, one.p_corrected, one.low, one.low_all) == (None, None, None, None)
        assert one.why
    assert {(one.p, one.error) for one in found.interactions} == {(None, None)}
    assert dict(report.summary(found))["interact"].startswith("undefined: ")
    assert any(note.startswith("Undefined: scores") for note in report.tables(found)[2].notes)
    assert 'p": 0' not in json.dumps(to_document(found))


def test_lower_is_better_turns_ranks_round() -> None:
    scores = table({"near": [1.0, 2.0] * 20, "far": [5.0, 4.0] * 20})
    found = compare_facets(scores, halves(40), rng(), FacetsOptions(draws=9), better="lower")

    assert found.systems == ("near", "far")
    assert [facet.ranks for facet in found.facets] == [(1, 2), (1, 2)]
    assert found.differences[0].difference == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"least": 21}, "no-facet"),
        ({"against": "nobody"}, "unknown-system"),
        ({"system": "nobody"}, "unknown-system"),
        ({"against": "a", "system": "a"}, "unknown-system"),
    ],
    ids=["too small", "no reference", "no system", "itself"],
)
def test_what_cannot_be_compared_is_refused(options: dict[str, Any], code: str) -> None:
    scores = table({"a": [0.1, 0.3] * 20, "b": [0.2, 0.1] * 20})
    chosen = FacetsOptions(**{k: v for k, v in options.items() if k != "least"})
    with pytest.raises(InputError) as caught:
        compare_facets(scores, halves(40), rng(), chosen, least=options.get("least", 20))
    assert [problem.code for problem in caught.value.problems] == [code]


def test_facets_of_texts_hold_each_query_once() -> None:
    texts = {"1": "What is RNA", "2": "heart art", "3": "Can cats see in the dark at all", "4": "?"}

    assert by_length(texts) == {"1-3 words": {"1", "2", "4"}, "7-9 words": {"3"}}
    assert by_question(texts) == {"other": {"2", "4"}, "what": {"1"}, "yes or no": {"3"}}


def test_a_word_is_matched_whole_and_a_phrase_in_order() -> None:
    texts = {
        "1": "the HEART of art",
        "2": "blood pressure?",
        "3": "pressure of blood",
        "4": "hearts",
    }
    found = by_words(texts, ["heart", "Blood-Pressure", "  "], name="medical")

    assert found == {"medical": {"1", "2"}, "other": {"3", "4"}}


def test_cut_tables_keep_scores_and_missing_ones() -> None:
    scores = parse_scores("query,a,b\nx,0.1,\ny,0.2,0.3\nz,0.30000000000000004,1\n", path="t")
    cut = cut_table(scores, {"x", "z", "other"})

    assert cut.queries == ("x", "z")
    assert cut.known.tolist() == [[True, True], [False, True]]
    assert parse_scores(format_scores(cut).decode(), path="t").digest == cut.digest
    names = ("=1+1", "'=1", "@a")
    table = table_of_values(names, ("+1", "-x"), np.ones((3, 2)), np.ones((3, 2), bool))
    written = format_scores(table).decode()
    assert [row.split(",")[0] for row in written.splitlines()] == ["query", "'+1", "'-x"]
    assert written.splitlines()[0] == "query,'=1+1,''=1,'@a"
    again = parse_scores(written, path="t")
    assert (again.systems, again.queries) == (names, ("+1", "-x"))
    assert cut_queries(scores, {"f": {"x"}, "g": {"y", "z"}}, least=2).keys() == {"g"}


def test_a_view_is_cut_with_its_means_and_means_alone_cannot_be() -> None:
    scores = parse_scores("query,a,b\nx,0.1,\ny,0.2,0.3\nz,0.5,1\n", path="t")
    view = ViewScores(
        view="eval",
        queries="eval",
        measure="RR@10",
        public=True,
        held_out=True,
        means={"a": 0.8 / 3, "b": 0.65},
        table=scores,
    )
    cut = cut_view(view, {"x", "z"})

    assert cut.means == {"a": 0.3, "b": 1.0}
    assert cut_view(view, {"x"}).means == {"a": 0.1}
    with pytest.raises(InputError) as caught:
        cut_view(replace(view, table=None), {"x"})
    assert caught.value.problems[0].code == "no-query-scores"


def test_a_subset_has_pairs_of_relevant_documents_only() -> None:
    judgments = {"1": {"d1": 0, "d2": 2, "d3": 1}, "2": {"d1": 1}, "3": {"d9": -1}}
    subset = cut_subset({"1": "a", "2": "b", "3": "c"}, judgments, {"1", "3"}, relevant=2)

    assert subset.pairs == (("1", "d2"),)
    assert subset.texts == {"1": "a", "3": "c"}
    files = subset.files()
    assert parse_qrels(files["qrels.txt"], path="q").judgments == {
        "1": judgments["1"],
        "3": judgments["3"],
    }
    assert parse_queries(files["queries.tsv"], path="q").texts == subset.texts


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    random = rng(8)
    path = tmp_path / "scores.csv"
    rows = random.random((50, 3)).round(3) + np.array([0, 0.1, 0.2])
    path.write_text(
        "query,a,b,c\n" + "".join(f"q{n},{x},{y},{z}\n" for n, (x, y, z) in enumerate(rows))
    )
    (tmp_path / "facets.tsv").write_text(
        "".join(f"q{n}\t{'odd' if n % 2 else 'even'}\n" for n in range(50))
    )
    return path


def test_a_facet_is_written_out_with_its_scores(scores: Path) -> None:
    folder = scores.parent / "odd"
    labels = scores.parent / "facets.tsv"
    qrels = scores.parent / "qrels.txt"
    qrels.write_text("q1 0 d1 1\nq2 0 d2 1\n")
    told = ("--scores", scores, "--only", f"{labels}=odd")
    done = call(*told, "--qrels", qrels, "--write", folder)

    assert done.exit_code == 0, done.output
    assert (folder / "pairs.tsv").read_text() == "q1\td1\n"
    cut = parse_scores((folder / "scores.csv").read_text(), path="s")
    assert cut.queries == tuple(sorted(f"q{n}" for n in range(1, 50, 2)))
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["pairs.tsv", "qrels.txt", "scores.csv"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "which facet?"),
        (("--facet", "length"), "which texts?"),
        (("--write", "d", "--facet", "facets.tsv"), "which queries should be written?"),
        (("--write", "d", "--only", "facets.tsv"), "write FACET=KIND"),
        (("--write", "d", "--only", "facets.tsv=odd"), "nothing to write"),
        (("--write", "d", "--only", "facets.tsv=x"), "no-facet"),
        (("--facet", "missing.tsv"), "unreadable-file"),
    ],
    ids=["no facet", "no texts", "no queries", "no kind", "nothing", "unknown", "no file"],
)
def test_what_is_not_said_is_asked_for(
    scores: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(scores.parent)
    assert told in refused(*arguments)


def test_a_facet_named_like_a_path_or_markup_stays_text(scores: Path) -> None:
    labels = scores.parent / "facets.tsv"
    labels.write_text("".join(f"q{n}\t../<b>|x\n" for n in range(30)))
    chart = scores.parent / "x.svg"
    done = call("--scores", scores, "--facet", labels, "--markdown", "--chart", chart)

    assert done.exit_code == 0, done.output
    assert "\\<b\\>\\|x" in done.output
    assert "<b>" not in chart.read_text()
    folder = scores.parent / "out"
    assert (
        call("--scores", scores, "--only", f"{labels}=../<b>|x", "--write", folder).exit_code == 0
    )
    assert [path.name for path in folder.iterdir()] == ["scores.csv"]


@pytest.mark.slow
@pytest.mark.real
def test_a_domain_is_cut_out_of_ms_marco_dev(data: Callable[[str], Path], tmp_path: Path) -> None:
    words = tmp_path / "medical.txt"
    words.write_text("# a few\ndisease\nsymptoms\ncancer\nblood pressure\nsurgery\n")
    found = answer(
        "--queries", data("qrels/queries.msmarco-passage.dev-subset.tsv.gz"),
        "--qrels", data("qrels/qrels.msmarco-passage.dev-subset.txt.gz"),
        "--only", f"words:{words}=medical", "--write", tmp_path / "med")  # fmt: skip
    texts = parse_queries((tmp_path / "med/queries.tsv").read_bytes(), path="q").texts
    qrels = parse_qrels((tmp_path / "med/qrels.txt").read_bytes(), path="q").judgments
    assert found["queries"] == len(texts) == len(qrels)
    assert 50 < len(texts) < 400
    assert all(
        any(word in text.lower() for word in ("disease", "symptoms", "cancer", "blood", "surgery"))
        for text in texts.values()
    )
    pairs = (tmp_path / "med/pairs.tsv").read_text().splitlines()
    assert len(pairs) == sum(len(grades) for grades in qrels.values()) == found["training_pairs"]
