"""`heldout analyse progress`, `drift` and `teams`, from tables; from a board see tests/scenario."""

from functools import partial
from pathlib import Path

import pytest

import calling

answer = partial(calling.answer, "analyse")
call = partial(calling.call, "analyse")
refused = partial(calling.refused, "analyse")


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, str]:
    """Scores on three views, and who sent what."""
    lines = {"scores": ["query,bm25,lamp1,lamp2,lamp3"], "dev": [], "reserve": []}
    lines["dev"], lines["reserve"] = list(lines["scores"]), list(lines["scores"])
    for n in range(30):
        for shift, name in enumerate(lines):
            row = [
                ((n * 7 + 3 * shift) % 10) / 20 + 0.1 * s + (n % (s + 2)) / 100 for s in range(4)
            ]
            lines[name].append(f"q{n}," + ",".join(f"{value:.4f}" for value in row))
    for name, rows in lines.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    entries = ["id,date,team,description,baseline", "bm25,2026-01-01,us,BM25,yes"]
    entries += [f"lamp{n},2026-0{n + 1}-01,Lamp,BERT number {n},no" for n in (1, 2, 3)]
    (tmp_path / "entries.csv").write_text("\n".join(entries) + "\n")
    return {name: str(tmp_path / f"{name}.csv") for name in (*lines, "entries")}


def test_progress_of_a_table_with_dates(tables: dict[str, str], tmp_path: Path) -> None:
    told = ("progress", "--scores", tables["scores"], "--entries", tables["entries"])
    found = answer(*told, "--decide", "signed-rank", "--chart", str(tmp_path / "progress.svg"))
    assert [step["entry"]["id"] for step in found["line"]] == ["lamp1", "lamp2", "lamp3"]
    assert found["line"][0]["displaced"] == "bm25"
    assert len(found["comparisons"]) == 4
    assert "★ BERT number 1" in (tmp_path / "progress.svg").read_text()
    text = call(*told, "--filter", "bert", "--explain").output
    assert "3 entries with “bert”" in text
    assert "Holm" in text


def test_drift_of_two_tables_with_dates(tables: dict[str, str]) -> None:
    told = ("--scores", tables["scores"], "--entries", tables["entries"])
    found = answer("drift", *told, "--dev-scores", tables["dev"], "--trials", "50")
    assert len(found["points"]) == 3
    assert found["trials"] == 50
    text = call("drift", *told, "--dev-scores", tables["dev"], "--trials", "50").output
    assert "the difference changes by" in text
    assert "a year, 95% interval " in text
    assert found["difference"]["low"] is not None
    assert found == answer("drift", *told, "--dev-scores", tables["dev"], "--trials", "50")


def test_no_drift_is_never_said_where_none_was_found(tables: dict[str, str]) -> None:
    told: tuple[str, ...] = ("drift", "--scores", tables["scores"])
    told += ("--entries", tables["entries"])
    told += ("--dev-scores", tables["scores"], "--trials", "50")
    flat = Path(tables["scores"])
    head, *rows = flat.read_text().splitlines()
    flat.write_text("\n".join([head, *(row.replace(",0.2", ",0.3") for row in rows)]) + "\n")
    text, found = call(*told).output, answer(*told)

    assert found["verdict"] == "no drift"
    assert text.startswith("No drift found: the gap between ")


def test_teams_of_two_tables_with_dates(tables: dict[str, str]) -> None:
    told = ("--scores", tables["scores"], "--entries", tables["entries"])
    found = answer("teams", *told, "--reserve-scores", tables["reserve"], "--trials", "50")
    assert [group["name"] for group in found["groups"]] == ["Lamp"]
    assert found["groups"][0]["slope"]["low"] is not None
    assert found["variants"] is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("progress",), "which scores?"),
        (("progress", "--scores", "{scores}"), "--entries FILE"),
        (("progress", "--csv", "{scores}", "--entries", "{entries}"), "--entries FILE"),
        (("progress", "--csv", "{scores}"), "unknown-table"),
        (("progress", "--csv", "{scores}", "--scores", "{scores}"), "which scores?"),
        (("progress", "--scores", "{scores}", "--entries", "{dev}"), "wrong-columns"),
        (("drift", "--scores", "{scores}", "--entries", "{entries}"), "no-view"),
        (("drift", "--scores", "{scores}", "--entries", "{entries}"), "--dev-scores TABLE.csv"),
        (("teams", "--scores", "{scores}", "--entries", "{entries}"), "public = false"),
        (("teams", "--scores", "{scores}", "--entries", "{entries}"), "--reserve-scores TABLE.csv"),
    ],
)
def test_what_is_missing_is_said(
    tables: dict[str, str], arguments: tuple[str, ...], told: str
) -> None:
    assert told in refused(*(argument.format(**tables) for argument in arguments))


def test_the_picture_of_teams_has_the_slope_of_each(tables: dict[str, str], tmp_path: Path) -> None:
    told = ("--scores", tables["scores"], "--entries", tables["entries"], "--trials", "50")
    more = ("--reserve-scores", tables["reserve"], "--chart", str(tmp_path / "x.svg"))
    result = call("teams", *told, *more)
    assert result.exit_code == 0, result.output
    drawn = (tmp_path / "x.svg").read_text()
    assert "Lamp (3)" in drawn
    assert "reserve - scores per submission" in drawn


def test_teams_without_a_slope_have_no_picture(tables: dict[str, str], tmp_path: Path) -> None:
    entries = Path(tables["entries"])
    entries.write_text(entries.read_text().replace("Lamp,BERT number 1", "Moon,BERT number 1"))
    told = ("--scores", tables["scores"], "--entries", tables["entries"])
    more = ("--reserve-scores", tables["reserve"], "--chart", str(tmp_path / "x.svg"))
    assert "no picture" in refused("teams", *told, *more)
