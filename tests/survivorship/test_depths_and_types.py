"""`heldout survive depths` and `heldout survive types` as somebody calls them."""

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import calling

answer = partial(calling.answer, "survive")
call = partial(calling.call, "survive")
refused = partial(calling.refused, "survive")

QUERIES, DEPTHS = 120, 6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Labels at six depths and all, discarded queries, types, and three runs."""
    rng = np.random.default_rng(6)
    labels = tmp_path / "labels"
    labels.mkdir()
    places = {f"q{at:03}": [int(rng.integers(1, 9))] for at in range(QUERIES)}
    for at in range(0, QUERIES, 10):
        places[f"q{at:03}"].append(int(rng.integers(1, 9)))
    names = {**{n: f"dev-{n}.qrels" for n in range(1, DEPTHS + 1)}, 99: "dev-all.qrels"}
    for depth, name in names.items():
        lines = [
            f"{query} 0 {query}d{at} 1\n"
            for query, found in places.items()
            for at, place in enumerate(found)
            if place <= depth
        ]
        (labels / name).write_text("".join(lines), "utf-8")
    out = "".join(f"x{at}\n" for at in range(80))
    (labels / "dev.discarded.txt").write_text(out, "utf-8")
    for system, chance in (("weak", 0.3), ("middle", 0.5), ("strong", 0.8)):
        (tmp_path / f"{system}.run").write_text(_run(places, rng, chance), "utf-8")
    kinds = [f"{q}\tWHAT\n" for q in places] + [f"x{at}\tHOW\n" for at in range(80)]
    (tmp_path / "kinds.tsv").write_text("".join(kinds), "utf-8")
    return tmp_path


def _run(places: dict[str, list[int]], rng: np.random.Generator, chance: float) -> str:
    lines = []
    for query in list(places)[:-2]:
        right = int(rng.integers(1, 6)) if rng.random() < chance else 0
        lines += [
            f"{query} Q0 {f'{query}d0' if rank == right else f'n{rank}'} {rank} {10 - rank} tag\n"
            for rank in range(1, 6)
        ]
    return "".join(lines)


def test_depths_tells_counts_scores_tests_order_and_outlook(folder: Path) -> None:
    found = call(
        "depths", "--annotations", folder / "labels", "--runs", folder / "*.run", "--json",
        "--trials", "100", "--to", "12",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    value = json.loads(found.stdout)

    assert [one["depth"] for one in value["depths"]] == [1, 2, 3, 4, 5, 6, 7]
    assert value["depths"][-1]["name"] == "7+"
    assert value["depths"][-1]["queries"] == QUERIES
    assert set(value["depths"][0]["scores"]) == {"weak", "middle", "strong"}
    assert value["depths"][-1]["unanswered"] == {"weak": 2, "middle": 2, "strong": 2}
    assert value["depths"][-1]["p"] == {"weak": None, "middle": None, "strong": None}
    assert (
        value["depths"][0]["survivors"]["weak"]["others"] == QUERIES - value["depths"][0]["queries"]
    )
    assert sum(one["added"] for one in value["depths"]) == QUERIES
    assert value["outlook"]["depths"][-1]["depth"] == 12
    assert QUERIES < value["outlook"]["depths"][-1]["queries"]["value"] < QUERIES + 80
    assert value["discarded"] == 80


def test_the_table_explains_what_is_not_answered_and_what_the_test_is_worth(folder: Path) -> None:
    source = ("--annotations", folder / "labels", "--runs", folder / "*.run")
    found = call("depths", *source, "--first-only", "--explain")

    assert found.exit_code == 0, found.output
    assert "queries that a run does not answer score 0 and count: middle" in found.stdout
    assert "this test is very conservative" in found.stdout
    assert "an extrapolation, not a measurement" in found.stdout


def test_without_discarded_queries_nothing_is_extrapolated_and_types_are_refused(
    folder: Path,
) -> None:
    (folder / "labels" / "dev.discarded.txt").unlink()
    found = call("depths", "--annotations", folder / "labels", "--runs", folder / "*.run")
    assert found.exit_code == 0, found.output
    assert "not extrapolated: the source leaves out discarded queries" in found.stdout

    assert "no-discarded" in refused(
        "types", "--annotations", folder / "labels", "--types", folder / "kinds.tsv"
    )


def test_the_order_shown_is_scored_and_written_as_a_run(folder: Path) -> None:
    qrels = folder / "labels" / "dev-all.qrels"
    source = ("--shown", folder / "strong.run", "--qrels", qrels, "--shown-depth", "5")
    alone = call("depths", *source, "--write-shown", folder / "shown.gz", "--json", "--to", "0")
    assert alone.exit_code == 0, alone.output
    again = call("depths", *source, "--runs", folder / "shown.gz", "--json", "--to", "0")
    assert again.exit_code == 0, again.output
    first, second = json.loads(alone.stdout), json.loads(again.stdout)

    assert (first["runs"], second["runs"]) == ("order shown", "run files")
    assert "a ranking only if a system made it" in first["warnings"][0]
    assert second["warnings"] == []
    assert first["depths"][0]["scores"] == {"shown": 1.0}
    assert [one["scores"] for one in first["depths"]] == [one["scores"] for one in second["depths"]]


def test_a_run_that_finds_nothing_scores_0_where_its_ids_are_known_to_be_right(
    tmp_path: Path,
) -> None:
    file = saved(tmp_path / "a.jsonl", [2] * 30, discarded=10)
    (tmp_path / "bad.run").write_text("".join(f"q{at} Q0 d9 1 1 t\n" for at in range(30)), "utf-8")
    found = answer("depths", "--annotations", file, "--runs", tmp_path / "bad.run", "--to", "0")
    assert found["depths"][-1]["scores"] == {"bad": 0.0}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--depth", "8"), "depth-beyond-list  --depth"),
        (("--to", "7"), "depth-beyond-list  --to"),
        (("-m", "FirstRel"), "missing-scores"),
        (("-m", "RR@0"), "measure-parameter"),
        (("--query-list", "gone.txt"), "unreadable-file"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(
    folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    found = refused(
        "depths", "--annotations", folder / "labels", "--runs", folder / "*.run", *arguments
    )
    assert words in " ".join(found.split()) or words in found


def test_a_run_of_other_queries_is_refused_and_labels_alone_have_no_order(folder: Path) -> None:
    (folder / "other.tsv").write_text("77\t88\t1\n", "utf-8")
    other = call("depths", "--annotations", folder / "labels", "--runs", folder / "other.tsv")
    without = call("depths", "--annotations", folder / "labels")

    assert (other.exit_code, without.exit_code) == (2, 2)
    assert "no-common-query" in other.stderr
    assert "no-shown" in without.stderr


def test_a_run_with_the_ids_of_another_collection_is_refused(folder: Path) -> None:
    """Its queries are those that were annotated: else it would score 0.0000 without a word."""
    text = (folder / "strong.run").read_text("utf-8")
    (folder / "renamed.run").write_text(text.replace(" Q0 ", " Q0 other-"), "utf-8")
    found = refused("depths", "--annotations", folder / "labels", "--runs", folder / "*.run")
    assert "no-common-document" in found
    assert "renamed.run" in found


def saved(path: Path, selected: list[int], *, discarded: int, depth: int = 10) -> Path:
    """A file of annotations with one label for each query, at these places."""
    rows = []
    for at, place in enumerate([*selected, *[0] * discarded]):
        passages = [
            {"rank": n, "passage_id": f"d{n}", "passage_text": "", "msmarco_label": int(n == place)}
            for n in range(1, depth + 1)
        ]
        rows.append({"query_id": f"q{at}", "query": "", "passages": passages})
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def test_a_depth_more_than_twice_as_deep_as_anybody_looked_is_refused(tmp_path: Path) -> None:
    file = saved(tmp_path / "a.jsonl", [1 + at % 10 for at in range(200)], discarded=50)
    beyond = call("depths", "--annotations", file, "--to", "21")
    assert beyond.exit_code == 2
    assert "a depth above 10, at most 20" in " ".join(beyond.stderr.split())


def test_what_the_disk_refuses_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    """The target, and not the file aside that is renamed to it."""
    file = saved(tmp_path / "a.jsonl", [1] * 30, discarded=10)
    (tmp_path / "plain").write_text("", "utf-8")
    target = tmp_path / "plain" / "x.jsonl"
    found = refused("depths", "--annotations", file, "--write-shown", target)
    assert found.startswith("error") or "\nerror" in found
    assert "plain/x.jsonl" in "".join(found.split())


def test_the_order_shown_is_not_written_over_what_is_read(tmp_path: Path) -> None:
    file = saved(tmp_path / "a.jsonl", [1] * 30, discarded=10)
    (tmp_path / "one.run").write_text("q0 Q0 d1 1 1 t\n", "utf-8")
    os.mkfifo(tmp_path / "pipe")
    for target in ("a.jsonl", "one.run", "pipe"):
        refused(
            "depths", "--annotations", file, "--runs", tmp_path / "*.run",
            "--write-shown", tmp_path / target,
        )  # fmt: skip
    assert json.loads(file.read_text("utf-8").splitlines()[0])["query_id"] == "q0"
    assert (tmp_path / "one.run").read_text("utf-8") == "q0 Q0 d1 1 1 t\n"
    assert (tmp_path / "pipe").is_fifo()


def test_where_queries_have_several_labels_the_star_is_not_called_conservative(
    folder: Path,
) -> None:
    source = ("depths", "--annotations", folder / "labels", "--runs", folder / "*.run")
    table, several, one = (
        call(*source, "--explain"),
        call(*source, "--json"),
        call(*source, "--first-only", "--json"),
    )

    assert "conservative" not in table.stdout
    assert "queries here have several labels; the star may mean these" in table.stdout
    assert "by more labels" in table.stdout
    first = json.loads(several.stdout)["depths"][0]
    assert first["nested_error"] is None
    assert first["nested_error_why"].startswith("queries have several labels")
    assert 0 < json.loads(one.stdout)["depths"][0]["nested_error"] < 0.05


def test_what_is_told_of_a_depth_does_not_depend_on_which_depths_are_told(folder: Path) -> None:
    """Corrections are over all depths."""
    source = ("depths", "--annotations", folder / "labels", "--runs", folder / "*.run", "--json")
    every = json.loads(call(*source, "--to", "0").stdout)
    some = json.loads(call(*source, "--to", "0", "--depth", "3").stdout)
    table = call(*source[:-1], "--to", "0", "--depth", "3").stdout

    assert [one["depth"] for one in some["depths"]] == [3, 7]
    assert some["family_size"] == every["family_size"] == 6
    for key in ("added", "scores", "p", "p_corrected", "survivors", "change", "tau", "why"):
        assert some["depths"][0][key] == every["depths"][2][key]
    assert "over the 6 depths of a system" in table


def reasonless(value: object, reason: object = "", name: str = "") -> list[str]:
    """Keys that are null and have no reason beside them, nor beside what they stand in."""
    if value is None:
        return [] if isinstance(reason, str) and reason else [name]
    if isinstance(value, list):
        return [key for one in value for key in reasonless(one, "", name)]
    if not isinstance(value, dict):
        return []
    found = []
    for key, one in value.items():
        of_key = reason.get(key) if isinstance(reason, dict) else reason
        why = value.get(f"{key}_why") or value.get("why") or of_key
        found += reasonless(one, why, f"{name}.{key}")
    return found


def test_nothing_is_null_without_a_reason(folder: Path) -> None:
    """Also where systems, depths, types or discarded queries are too few to say anything."""
    saved(folder / "one.jsonl", [1] * 30, discarded=0, depth=1)
    saved(folder / "late.jsonl", [4, 4, 9], discarded=1)
    (folder / "one.tsv").write_text("".join(f"q{at}\tWHAT\n" for at in range(30)), "utf-8")
    depths = [
        ("--annotations", folder / "labels", "--runs", folder / "*.run"),
        ("--annotations", folder / "labels", "--runs", folder / "weak.run", "--first-only"),
        ("--annotations", folder / "one.jsonl"),
        ("--annotations", folder / "late.jsonl"),
    ]
    for source in depths:
        found = answer("depths", *source)
        assert reasonless(found) == []
    (folder / "labels" / "dev.discarded.txt").unlink()
    found = call("depths", *depths[0], "--json")
    assert reasonless(json.loads(found.stdout)) == []
    types = ("--annotations", folder / "one.jsonl", "--types", folder / "one.tsv", "--json")
    value = json.loads(call("types", *types).stdout)
    assert value["types"][0]["p"] is None
    assert reasonless(value) == []


def test_the_order_shown_is_told_to_be_favoured_in_table_json_and_picture(tmp_path: Path) -> None:
    chart = tmp_path / "a.svg"
    file = saved(tmp_path / "a", [1 + at % 5 for at in range(60)], discarded=3, depth=5)
    table = call("depths", "--annotations", file, "--chart", chart, "--markdown")
    value = answer("depths", "--annotations", file)

    assert "favoured by labels that were chosen from it" in table.stdout
    assert "favoured by labels that were chosen from it" in value["warnings"][0]
    assert "labels were chosen from this order, which favours it" in chart.read_text("utf-8")
