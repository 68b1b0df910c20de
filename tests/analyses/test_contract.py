"""What holds for every analysis: options, one answer in every form, subsets, seeds, no queries."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simulated_boards
from click.testing import CliRunner
from simulated_boards import board_of, entries_of, view_of

from drawings import texts
from heldout.analyses.agreement_of_judges import JudgeOptions, rate_documents
from heldout.analyses.analysis import ANALYSES, Analysis, Draws, load_analysis
from heldout.analyses.by_facet import answer_each
from heldout.analyses.entries import BoardScores, Dated, ViewScores
from heldout.analyses.facets import ScoresByKind
from heldout.analyses.report import Kinds, write_chapters
from heldout.analyses.views import LoadedViews, views_of_board
from heldout.answers.answer import Answer, format_json
from heldout.answers.table import to_latex, to_markdown
from heldout.cli.program import analyse
from heldout.errors import InputError
from heldout.options import Declared, Nested, options_of
from heldout.scoring.sources import Scores
from heldout.scoring.table import ScoreTable, table_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
SYSTEMS = tuple(f"run{n}" for n in range(6))
QUERIES = tuple(f"q{n}" for n in range(48))
KINDS = {"odd": frozenset(QUERIES[1::2]), "even": frozenset(QUERIES[::2]), "few": frozenset("q1")}
FEWER: Mapping[str, Mapping[str, Any]] = {
    "stability": {"trials": 50, "flips": 199},
    "reliability": {"splits": 5},
    "power": {"trials": 50, "queries": (100,)},
    "facets": {"draws": 99},
    "drift": {"trials": 50},
    "teams": {"trials": 50},
    "views": {"trials": 50},
    "agreement": {"judges": JudgeOptions(trials=50)},
}


def table(seed: int) -> ScoreTable:
    ranks = np.random.default_rng(seed).integers(1, 12, (len(SYSTEMS), len(QUERIES)))
    values = np.where(ranks > 10, 0, 1 / ranks)
    return simulated_boards.table(dict(zip(SYSTEMS, values, strict=True)))


def view(name: str, seed: int) -> ViewScores:
    rows = dict(zip(SYSTEMS, table(seed).values, strict=True))
    return view_of(name, rows, public=name != "reserve", held_out=name != "dev")


def board() -> BoardScores:
    entries = entries_of(SYSTEMS, teams=["team0", "team1"] * 3, days=range(0, 60, 10))
    views = (view(name, seed) for seed, name in enumerate(("eval", "dev", "reserve")))
    return board_of(entries, *views)


def give(analysis: Analysis[Any, Any]) -> Any:
    known = board()
    scores = Scores(table=table(0), measure="RR@10", facts=(("systems", "6"),))
    by_source = {
        "scores": scores,
        "kinds": ScoresByKind(scores=scores, kinds=dict(KINDS), least=10),
        "measure": "RR@3",
        "views": LoadedViews(views=views_of_board(known)),
        "dates": Dated(board=known, views=(known.view(),)),
        "dates-dev": Dated(board=known, views=(known.view(), known.view("dev"))),
        "dates-reserve": Dated(board=known, views=(known.view(), known.view("reserve")), alike=()),
        "judges": rate_documents(
            {
                judge: {
                    q: {f"d{n}": (n * len(judge) + k) % 3 for n in range(6)}
                    for k, q in enumerate(QUERIES)
                }
                for judge in ("ann", "robert")
            }
        ),
    }
    return by_source[analysis.source]


def options(analysis: Analysis[Any, Any]) -> Any:
    return analysis.options(**FEWER.get(analysis.name, {}))


def check_sentence(text: str) -> None:
    """That a text is one plain sentence that fits on two lines of a terminal."""
    assert text.endswith("."), text
    assert 20 < len(text) < 200, text
    assert text == " ".join(text.split())
    assert not re.search(r"\b(None|nan|inf)\b", text), text


@pytest.fixture(params=ANALYSES)
def analysis(request: pytest.FixtureRequest) -> Analysis[Any, Any]:
    return load_analysis(request.param)


def declared(made_of: type[Any]) -> list[Declared]:
    found = []
    for one in options_of(made_of):
        found += declared(one.made_of) if isinstance(one, Nested) else [one]
    return found


def test_the_table_of_names_imports_nothing_heavy() -> None:
    code = "import heldout.analyses.analysis, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_other_name_is_an_analysis() -> None:
    with pytest.raises(KeyError):
        load_analysis("dated")


def test_it_has_a_question_options_with_words_and_a_row_in_the_docs(
    analysis: Analysis[Any, Any],
) -> None:
    assert analysis.help.split("\n\n")[0].rstrip().endswith(("?", "."))
    assert f"heldout analyse {analysis.name} " in analysis.help
    for option in declared(analysis.options):
        assert option.opt.help.endswith((".", "]", "].")), option.field
        assert not option.opt.help.startswith("Of "), option.field
    page = (DOCS / "reference" / "analyses.md").read_text("utf-8")
    assert f"| {analysis.name.capitalize()} |" in page
    assert f"\n## {analysis.name.capitalize()}\n" in page


def test_its_command_has_its_options(analysis: Analysis[Any, Any]) -> None:
    shown = CliRunner().invoke(analyse, [analysis.name, "--help"], terminal_width=200)
    assert shown.exit_code == 0, shown.output
    for option in declared(analysis.options):
        name = option.opt.names[-1] if option.opt.names else f"--{option.field.replace('_', '-')}"
        assert name in shown.output
    assert ("--seed" in shown.output) == analysis.seeded
    assert ("--dask" in shown.output) == analysis.parallel


def test_one_answer_has_every_form(analysis: Analysis[Any, Any]) -> None:
    answer: Any = analysis.answer(give(analysis), options(analysis), Draws(seed=3))

    document = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert document == answer.to_dict()
    assert json.loads("".join(format_json(answer.document))) == document
    check_sentence(answer.answer)
    assert next(iter(document)) == "answer"
    assert document["answer"] == answer.answer
    assert document.get("seed") == (3 if analysis.seeded else None)
    assert answer.summary
    assert all(name or text for name, text in answer.summary)
    assert answer.tables
    for one in answer.tables:
        assert to_markdown(one).startswith(f"**{one.title[:5]}")
        assert "toprule" in to_latex(one)
    assert answer.title
    assert texts(answer.chart())


def with_scores(change: Callable[[ScoreTable], ScoreTable], *, entries: int = 6) -> BoardScores:
    """The board with other scores on each of its views, and fewer entries."""
    known = board()
    views = {}
    for name, one in known.views.items():
        assert one.table is not None
        scores = change(one.table)
        means = {system: scores.mean(system) or 0.0 for system in scores.systems}
        views[name] = replace(one, table=scores, means=means)
    return replace(known, entries=known.entries[:entries], views=views)


def two_systems(scores: ScoreTable) -> ScoreTable:
    return table_of({name: row_of(scores, name) for name in scores.systems[:2]})


def equal_systems(scores: ScoreTable) -> ScoreTable:
    return table_of({name: row_of(scores, scores.systems[0]) for name in scores.systems})


def one_best(scores: ScoreTable) -> ScoreTable:
    best = dict.fromkeys(scores.queries, 1.0)
    rows = {name: row_of(scores, name) for name in scores.systems}
    return table_of(rows | {scores.systems[2]: best})


def row_of(scores: ScoreTable, name: str) -> dict[str, float]:
    row = scores.values[scores.systems.index(name)]
    return dict(zip(scores.queries, row.tolist(), strict=True))


def part_of(given: Any) -> Any:
    return given if isinstance(given, str) else given.cut(KINDS["odd"])


def give_labels(change: Callable[[ScoreTable], ScoreTable]) -> Any:
    """Labels of two judges, or of judges who all say the same where systems are equal."""
    same = change is equal_systems
    return rate_documents(
        {
            judge: {q: {"d": 0 if same else (k * n) % 3} for k, q in enumerate(QUERIES)}
            for n, judge in enumerate(("a" * 300, "b"), start=1)
        }
    )


def give_other(analysis: Analysis[Any, Any], change: Callable[[ScoreTable], ScoreTable]) -> Any:
    known = with_scores(change, entries=2 if change is two_systems else 6)
    scores = Scores(table=change(table(0)), measure="RR@10")
    dated = (known.view(), known.view("dev"))
    by_source: dict[str, Callable[[], Any]] = {
        "scores": lambda: scores,
        "kinds": lambda: ScoresByKind(scores=scores, kinds=dict(KINDS), least=10),
        "measure": lambda: "RR@1",
        "views": lambda: LoadedViews(views=views_of_board(known)),
        "dates": lambda: Dated(board=known, views=(known.view(),)),
        "dates-dev": lambda: Dated(board=known, views=dated),
        "dates-reserve": lambda: Dated(board=known, views=dated, alike=()),
        "judges": lambda: give_labels(change),
    }
    return by_source[analysis.source]()


@pytest.mark.parametrize("change", [two_systems, equal_systems, one_best, lambda one: one])
def test_the_answer_is_one_sentence_whatever_is_given(
    analysis: Analysis[Any, Any], change: Callable[[ScoreTable], ScoreTable]
) -> None:
    given = give_other(analysis, change)
    for one in (given, part_of(given)):
        try:
            answer = analysis.answer(one, options(analysis), Draws())
        except InputError:  # half of the pairs never differ, so that nothing can be planned
            assert (analysis.name, change) == ("power", equal_systems)
            continue
        check_sentence(answer.answer)


def test_the_same_seed_gives_the_same_document_on_any_executor(
    analysis: Analysis[Any, Any],
) -> None:
    given, chosen = give(analysis), options(analysis)
    first = analysis.answer(given, chosen, Draws(seed=1)).to_dict()
    with ThreadPoolExecutor(3) as executor:
        again = analysis.answer(given, chosen, Draws(seed=1, executor=executor)).to_dict()
    assert json.dumps(first) == json.dumps(again)


def shuffle_queries(scores: ScoreTable) -> ScoreTable:
    order = np.random.default_rng(9).permutation(len(scores.queries))
    names = [scores.queries[column] for column in order]
    return table_of({name: row_of(scores, name) for name in scores.systems}, queries=names)


def shuffle_systems(scores: ScoreTable) -> ScoreTable:
    order = np.random.default_rng(9).permutation(len(scores.systems))
    return table_of({scores.systems[row]: row_of(scores, scores.systems[row]) for row in order})


def make_uneven(scores: ScoreTable) -> ScoreTable:
    """Scores that are no short fractions, so that each order of a sum of floats is another sum."""
    values = scores.values**0.7 / (1 + np.arange(len(scores.queries)) / 1e4)
    return table_of(
        {
            name: dict(zip(scores.queries, row.tolist(), strict=True))
            for name, row in zip(scores.systems, values, strict=True)
        }
    )


@pytest.mark.parametrize("scores", [lambda one: one, make_uneven])
@pytest.mark.parametrize("shuffle", [shuffle_queries, shuffle_systems])
def test_the_order_of_queries_and_systems_changes_nothing(
    analysis: Analysis[Any, Any],
    shuffle: Callable[[ScoreTable], ScoreTable],
    scores: Callable[[ScoreTable], ScoreTable],
) -> None:
    if analysis.name == "outcomes":
        if shuffle is shuffle_systems:  # the order says which of two systems is called A
            return
        scores = equal_systems if scores is make_uneven else scores  # RR alone
    documents = []
    for change in (scores, lambda one: shuffle(scores(one))):
        answer = analysis.answer(give_other(analysis, change), options(analysis), Draws(seed=1))
        document = answer.to_dict()
        if analysis.name == "views":
            document.pop("systems")  # as they were given
        documents.append(re.sub(r'"[0-9a-f]{64}"', "", json.dumps(document)))
    assert documents[0] == documents[1]


def test_each_kind_of_query_has_the_answer_of_its_part(analysis: Analysis[Any, Any]) -> None:
    given = give(analysis)
    if analysis.source == "measure":
        return
    draws = Draws(seed=2)

    def analyse_part(part: Any) -> Answer:
        return analysis.answer(part, options(analysis), draws)

    each = answer_each("parity", KINDS, given, analyse_part, least=10)
    alone = analyse_part(given.cut(KINDS["odd"]))
    values = each.to_dict()["values"]
    assert values["odd"]["answer"] == alone.to_dict()
    assert values["few"]["answer"] is None
    assert values["few"]["why"]


def test_without_queries_it_says_why_and_nothing_breaks(analysis: Analysis[Any, Any]) -> None:
    given = give(analysis)
    if analysis.source == "measure":
        return
    nothing, chosen = given.cut(frozenset()), options(analysis)
    if analysis.source in ("dates-dev", "dates-reserve"):  # these have entries without queries
        answer = analysis.answer(nothing, chosen, Draws())
        assert json.dumps(answer.to_dict(), allow_nan=False)
        assert answer.chart is None
        return
    with pytest.raises(InputError) as refused:
        analysis.answer(nothing, chosen, Draws())
    page = (DOCS / "reference" / "errors.md").read_text("utf-8")
    assert all(f"| {problem.code} |" in page for problem in refused.value.problems)


def test_every_analysis_of_a_board_is_a_chapter_of_its_report() -> None:
    fewer = {name: load_analysis(name).options(**more) for name, more in FEWER.items()}
    made = {
        chapter.name: chapter
        for chapter in write_chapters(
            board(), draws=Draws(), kinds=Kinds(queries=KINDS, least=10), options=fewer, alike=()
        )
    }
    for name in ANALYSES:
        if load_analysis(name).chapter and name != "scales":
            assert any(chapter.endswith(name) for chapter in made), name
    assert all(chapter.answer is not None for chapter in made.values()), made
