"""`--only` and `--facet`: every analysis on some of the queries, or on each kind apart."""

import json
from pathlib import Path

import numpy as np
import pytest

from calling import answer, call, refused

SYSTEMS = ("bm25", "lamp1", "lamp2", "lamp3")
QUERIES = 60
RARE = 5


def kind(query: int) -> str:
    if query < RARE:
        return "rare"
    return "odd" if query % 2 else "even"


def write_scores(path: Path, queries: list[int], shift: int) -> None:
    lines = [",".join(("query", *SYSTEMS))]
    for n in queries:
        row = [
            round(1 / (1 + (n * 7 + 3 * s + shift) % 10) + 0.05 * s * (n % 2), 4) for s in range(4)
        ]
        lines.append(f"q{n}," + ",".join(map(str, row)))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    every = list(range(QUERIES))
    for shift, name in enumerate(("scores", "dev", "reserve")):
        write_scores(tmp_path / f"{name}.csv", every, shift)
        write_scores(tmp_path / f"{name}-odd.csv", [n for n in every if kind(n) == "odd"], shift)
    for name, queries in (("ranks", every), ("ranks-odd", every[1::2][RARE // 2 :])):
        lines = [",".join(("query", *SYSTEMS))]
        lines += [
            f"q{n}," + ",".join(str(1 / (1 + (n * 7 + 3 * s) % 9)) for s in range(4))
            for n in queries
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "kinds.tsv").write_text("".join(f"q{n}\t{kind(n)}\n" for n in every))
    starts = ("what is", "how does")
    (tmp_path / "queries.tsv").write_text(
        "".join(f"q{n}\t{starts[n % 2]} number {n}\n" for n in every)
    )
    entries = ["id,date,team,description,baseline", "bm25,2026-01-01,us,BM25,yes"]
    entries += [f"lamp{n},2026-0{n + 1}-01,Lamp,BERT number {n},no" for n in (1, 2, 3)]
    (tmp_path / "entries.csv").write_text("\n".join(entries) + "\n")
    rng = np.random.default_rng(1)
    for name in ("a", "b"):
        lines = [
            f"q{n} Q0 d{document} {rank} {9 - rank} {name}\n"
            for n in every[:-1]
            for rank, document in enumerate(rng.permutation(8), start=1)
        ]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    (tmp_path / "qrels").write_text("".join(f"q{n} 0 d{n % 4} 1\n" for n in every))
    return tmp_path


ANALYSES = {
    "outcomes": ("--scores", "ranks{}.csv", "--baseline", "bm25"),
    "stability": ("--scores", "scores{}.csv", "--trials", "20", "--flips", "50"),
    "reliability": ("--scores", "scores{}.csv", "--splits", "3"),
    "power": ("--scores", "scores{}.csv", "--trials", "20", "--size", "50"),
    "progress": ("--scores", "scores{}.csv", "--entries", "entries.csv"),
    "drift": (
        *("--scores", "scores{}.csv", "--entries", "entries.csv"),
        *("--dev-scores", "dev{}.csv", "--trials", "20"),
    ),
    "teams": (
        *("--scores", "scores{}.csv", "--entries", "entries.csv"),
        *("--reserve-scores", "reserve{}.csv", "--trials", "20"),
    ),
    "views": ("--scores", "scores{}.csv", "--scores", "dev{}.csv", "--trials", "20"),
}


def told(name: str, suffix: str = "") -> list[str]:
    return ["analyse", name, *(word.format(suffix) for word in ANALYSES[name])]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", ANALYSES)
def test_one_kind_alone_is_what_a_table_of_its_queries_gives(name: str) -> None:
    kept = answer(*told(name), "--only", "kinds.tsv=odd")
    cut = answer(*told(name, "-odd"))

    assert kept.pop("only") == ["kinds.tsv=odd"]
    if name == "views":  # its views are named by their files
        kept, cut = (json.loads(json.dumps(v).replace("-odd", "")) for v in (kept, cut))
        kept["transfer"].pop("digest")
        cut["transfer"].pop("digest")
    assert kept == cut


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", ANALYSES)
def test_each_kind_has_its_answer_and_too_few_queries_have_none(name: str) -> None:
    found = answer(*told(name), "--facet", "kinds.tsv")

    assert found["facet"] == "kinds.tsv"
    assert list(found["values"]) == ["even", "odd", "rare"]
    alone = answer(*told(name), "--only", "kinds.tsv=odd")
    assert found["values"]["odd"]["answer"] == {k: v for k, v in alone.items() if k != "only"}
    rare = found["values"]["rare"]
    assert (rare["queries"], rare["answer"]) == (RARE, None)
    assert rare["why"] == "5 queries with scores; this needs at least 20"


@pytest.mark.usefixtures("files")
def test_the_terminal_has_an_overview_and_the_tables_of_each_kind() -> None:
    text = call(
        *told("stability"), "--facet", "question", "--queries", "queries.tsv", "--all"
    ).output

    assert text.startswith("Each of 2 kinds of query by question has an answer of its own; ")
    assert "Each kind of query by question" in text
    assert "nothing is corrected over kinds" in text
    assert "how: " in text
    assert "what: " in text
    rare = call(*told("stability"), "--facet", "kinds.tsv").output
    assert rare.startswith("2 of 3 kinds of query by kinds.tsv have an answer of their own, the ")
    assert "Ranks of" not in rare
    assert "undefined: 5 queries with scores" in rare


@pytest.mark.usefixtures("files")
def test_several_kinds_must_all_hold() -> None:
    both = (*told("stability"), "--only", "kinds.tsv=odd", "--only", "question=how")
    one = (*told("stability"), "--only", "kinds.tsv=odd")

    found = answer(*both, "--queries", "queries.tsv")
    assert found["only"] == ["kinds.tsv=odd", "question=how"]
    assert found["digest"] == answer(*one)["digest"]
    assert "0 queries with scores" in refused(
        *both[:-1], "question=what", "--queries", "queries.tsv"
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--only", "kinds.tsv=rare"), "5 queries with scores"),
        (("--only", "kinds.tsv=none"), "no-facet"),
        (("--only", "kinds.tsv"), "write FACET=KIND"),
        (("--only", "question=what"), "which texts?"),
        (("--facet", "nowhere.tsv"), "unreadable-file"),
        (("--facet", "kinds.tsv", "--chart", "x.svg"), "--only FACET=KIND instead"),
        (("--facet", "kinds.tsv", "--least", "1"), "--least"),
        (("--facet", "kinds.tsv", "--least", "100"), "too-few-queries"),
    ],
    ids=["few", "unknown", "no kind", "no texts", "no file", "chart", "one query", "all small"],
)
def test_what_cannot_be_cut_is_told(files: Path, more: tuple[str, ...], words: str) -> None:
    assert words in refused(*told("stability"), *more)
    assert not (files / "x.svg").exists()


@pytest.mark.usefixtures("files")
def test_a_mistake_in_an_option_is_no_kind_that_is_undefined() -> None:
    result = refused(
        "analyse", "facets", "--scores", "scores.csv", "--facet", "kinds.tsv", "--against", "me"
    )
    assert "unknown-system" in result


def test_an_old_table_of_means_has_no_kinds_of_query(files: Path) -> None:
    (files / "collections.csv").write_text("collection,a,b,c\nx,1,2,3\ny,1,3,2\n")
    assert "means alone" in refused(
        "analyse", "views", "--transfer", "collections.csv", "--facet", "kinds.tsv"
    )


@pytest.mark.parametrize("hostile", ["../../x", "<script>", "=1+1", "\u202eodd", "a=b"])
def test_a_kind_with_a_hostile_name_is_text(files: Path, hostile: str) -> None:
    (files / "hostile.tsv").write_text("".join(f"q{n}\t{hostile}\n" for n in range(30)))
    shown = call(*told("stability"), "--facet", "hostile.tsv", "--markdown")
    assert shown.exit_code == 0, shown.output
    assert "<script>" not in shown.output
    assert "\u202e" not in call(*told("stability"), "--facet", "hostile.tsv").output
    found = answer(*told("stability"), "--only", f"hostile.tsv={hostile}")
    assert found["only"] == [f"hostile.tsv={hostile}"]


def test_two_runs_are_compared_on_each_kind(files: Path) -> None:
    both = ("compare", "a.run", "b.run", "--qrels", "qrels", "-k", "5")
    found = answer(*both, "--facet", "kinds.tsv")
    odd = answer(*both, "--only", "kinds.tsv=odd")

    assert found["values"]["odd"]["answer"] == {k: v for k, v in odd.items() if k != "only"}
    assert found["values"]["rare"]["answer"] is None
    (files / "qrels-odd").write_text(
        "".join(f"q{n} 0 d{n % 4} 1\n" for n in range(QUERIES) if kind(n) == "odd")
    )
    odd.pop("only")
    assert odd == answer("compare", "a.run", "b.run", "--qrels", "qrels-odd", "-k", "5")


def test_scores_of_a_kind_are_those_of_its_judgments(files: Path) -> None:
    told = ("evaluate", "a.run", "b.run", "-m", "RR@10", "-m", "P@5", "--no-cache")
    (files / "qrels-odd").write_text(
        "".join(f"q{n} 0 d{n % 4} 1\n" for n in range(QUERIES) if kind(n) == "odd")
    )
    whole = answer(*told, "--qrels", "qrels", "--facet", "kinds.tsv")["runs"]
    only = answer(*told, "--qrels", "qrels", "--only", "kinds.tsv=odd")["runs"]
    cut = answer(*told, "--qrels", "qrels-odd")["runs"]

    for of_all, kept, alone in zip(whole, only, cut, strict=True):
        assert of_all["facet"]["odd"]["scores"] == alone["scores"]
        assert of_all["facet"]["odd"]["queries"] == alone["queries"]
        assert of_all["facet"]["rare"]["scores"] == {"RR@10": None, "P@5": None}
        assert of_all["facet"]["rare"]["why"]["P@5"] == "5 queries; this needs 20"
        assert [kept[key] for key in ("scores", "queries", "unanswered", "n")] == [
            alone[key] for key in ("scores", "queries", "unanswered", "n")
        ]
        assert kept["ignored"] == 0
    text = call(*told, "--qrels", "qrels", "--facet", "kinds.tsv").output
    assert "rare (5 queries) undefined; this needs 20" in text
    few = call(*told, "--qrels", "qrels", "--only", "kinds.tsv=rare")
    assert few.exit_code == 2
    assert "too-few-queries" in few.output


def test_a_measure_that_no_query_of_a_kind_defines_is_told(files: Path) -> None:
    (files / "qrels").write_text(
        "".join(f"q{n} 0 d{n % 4} {int(kind(n) != 'odd')}\n" for n in range(QUERIES))
    )
    told = ("evaluate", "a.run", "-m", "FirstRel", "--qrels", "qrels", "--facet", "kinds.tsv")
    (found,) = answer(*told)["runs"]

    assert found["facet"]["odd"]["scores"] == {"FirstRel": None}
    assert found["facet"]["odd"]["why"] == {"FirstRel": "undefined for each of them"}
    assert found["facet"]["even"]["scores"]["FirstRel"] > 0
    assert "FirstRel of a: undefined for each of them" in call(*told).output


@pytest.mark.usefixtures("files")
def test_stored_scores_of_all_queries_are_not_taken_for_those_of_a_kind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HELDOUT_CACHE", str(tmp_path / "cache"))
    told = ("evaluate", "a.run", "-m", "RR@10", "--qrels", "qrels")
    whole = answer(*told)["runs"][0]
    (odd,) = answer(*told, "--only", "kinds.tsv=odd")["runs"]

    assert odd["scores"] != whole["scores"]
    assert answer(*told)["runs"][0]["scores"] == whole["scores"]
