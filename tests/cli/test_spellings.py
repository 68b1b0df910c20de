"""Ids that differ between two files in their spelling alone are named wherever files are joined."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calling import call
from heldout.errors import InputError
from heldout.ids import find_near, find_surely_near, say_near
from heldout.judging.campaign.pools import build_pools

QUERIES = 20


@pytest.mark.parametrize(
    ("own", "other", "difference"),
    [
        ("01", "1", "leading zeros"),
        ("1", "0001", "leading zeros"),
        ("FT-007", "FT-7", "leading zeros"),
        ("Café", unicodedata.normalize("NFD", "Café"), "Unicode form"),
        ("q１", "q1", "Unicode form"),  # noqa: RUF001 - a digit of full width
        ("D12", "d12", "upper and lower case"),
        ("D12", "12", "what stands around the number"),
        ("12", "doc-0012", "what stands around the number"),
        ("12.0", "12", "what stands around the number"),
    ],
)
def test_two_spellings_of_one_id_are_found(own: str, other: str, difference: str) -> None:
    (near,) = find_near([own, "x"], ["y", other])
    assert near == (own, other, difference)


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("1", "10"),
        ("10", "1"),
        ("D12", "Q12"),
        ("2019-1", "1"),
        ("1.5", "15"),
        ("0", "00x"),
        ("", "0"),
    ],
)
def test_different_ids_are_left_alone(own: str, other: str) -> None:
    assert find_near([own], [other]) == ()


def test_an_id_that_two_could_mean_is_found_by_none() -> None:
    assert find_near(["1"], ["01", "001"]) == ()


@given(st.sets(st.text("01aé\u0301", max_size=4)), st.sets(st.text("01aé\u0301", max_size=4)))
def test_the_fast_way_finds_pairs_of_the_slow_one(own: set[str], others: set[str]) -> None:
    sure = {"leading zeros", "Unicode form"}
    fast = find_surely_near(own - others, others - own)
    slow = {near.own for near in find_near(own - others, others - own) if near.difference in sure}

    assert all(near.difference in sure and near.own != near.other for near in fast)
    assert bool(fast) or not slow


@given(st.lists(st.text(max_size=6)), st.lists(st.text(max_size=6)))
def test_pairs_take_each_id_once_and_never_two_equal_ones(
    own: list[str], others: list[str]
) -> None:
    pairs = find_near(own, others)
    assert all(near.own in own and near.other in others for near in pairs)
    assert all(near.own != near.other for near in pairs)
    assert len({near.other for near in pairs}) == len(pairs)


def test_the_commonest_difference_is_told_with_an_example() -> None:
    told = say_near(find_near(["01", "02", "D"], ["1", "2", "d"]))
    assert told == '2 differ only in leading zeros, as "01" from "1"'
    assert say_near(()) == ""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Judgments of 20 queries, and runs that write some ids in another way."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELDOUT_CACHE", "off")
    numbers = range(1, QUERIES + 1)
    write("qrels", [f"{n} 0 d{n} 1" for n in numbers])
    write("good.run", [f"{n} Q0 d{n} 1 1 t" for n in numbers])
    write("zeros.run", [f"{n:02} Q0 d{n} 1 1 t" for n in numbers])
    write("letter.run", [f"q{n} Q0 d{n} 1 1 t" for n in numbers])
    write("documents.run", [f"{n} Q0 d{n:04} 1 1 t" for n in numbers])
    write("some.run", [f"{n} Q0 d{n:02} 1 1 t" for n in numbers])
    write("queries.tsv", [f"{n}\ttext" for n in numbers])
    return tmp_path


def write(name: str, lines: list[str]) -> None:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    "command",
    [
        "evaluate zeros.run --qrels qrels -m RR",
        "compare zeros.run good.run --qrels qrels",
        "analyse stability --runs zeros.run --runs good.run --qrels qrels -m RR --flips 99",
    ],
    ids=["evaluate", "compare", "analyse"],
)
def test_queries_with_and_without_zeros_are_named(command: str) -> None:
    found = call(*command.split())

    assert "note   other-spelling  zeros.run" in found.stderr
    assert '9 differ only in leading zeros, as "01" from "1"' in found.stderr


def test_a_run_with_no_judged_query_is_told_of_the_difference() -> None:
    found = call("evaluate", "letter.run", "--qrels", "qrels", "-m", "RR", "--json")

    (failed,) = json.loads(found.stdout)["failed"]
    (problem,) = failed["problems"]
    assert problem["code"] == "no-common-query"
    assert problem["hint"] == '20 differ only in what stands around the number, as "q1" from "1"'


def test_documents_of_another_form_are_named() -> None:
    told = call("evaluate", "documents.run", "--qrels", "qrels", "-m", "RR").stderr

    assert "no-common-document" in told
    assert '20 differ only in leading zeros, as "d0001" from "d1"' in told


def test_some_documents_with_zeros_are_named_where_the_others_match() -> None:
    found = call("evaluate", "some.run", "--qrels", "qrels", "-m", "RR")

    assert "0.5500" in found.stdout
    assert 'ids of documents: 9 differ only in leading zeros, as "d01"' in found.stderr


def test_stored_scores_tell_the_same(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELDOUT_CACHE", str(files / "cache"))
    asked = ("evaluate", "some.run", "--qrels", "qrels", "-m", "RR", "--json")

    assert call(*asked).stdout == call(*asked).stdout
    assert "other-spelling" in call(*asked).stdout


def test_documents_that_differ_in_case_may_be_two() -> None:
    write("qrels", ["1 0 Farm 1", "1 0 house 1"])
    write("case.run", ["1 Q0 house 1 2 t", "1 Q0 farm 2 1 t"])

    assert (
        "other-spelling" not in call("evaluate", "case.run", "--qrels", "qrels", "-m", "RR").stderr
    )


def test_a_right_run_is_told_nothing() -> None:
    assert call("evaluate", "good.run", "--qrels", "qrels", "-m", "RR").stderr == ""


def test_validate_names_the_query_that_was_meant() -> None:
    found = call("validate", "zeros.run", "--queries", "queries.tsv")

    assert found.exit_code == 1
    assert "the set has 1: write it so" in found.stdout

    found = call("validate", "letter.run", "--queries", "queries.tsv")
    assert "20 differ only in what stands around the number" in found.stdout


def test_a_facet_whose_queries_have_zeros_is_told() -> None:
    write("kinds.tsv", [f"{n:02}\t{'odd' if n % 2 else 'even'}" for n in range(1, QUERIES + 1)])
    asked = ("--qrels", "qrels", "-m", "RR", "--facet", "kinds.tsv", "--least", "5")
    found = call("evaluate", "good.run", *asked)

    assert "note   other-spelling  kinds.tsv" in found.stderr


def test_pooled_documents_without_a_text_that_has_zeros() -> None:
    with pytest.raises(InputError) as caught:
        build_pools(
            {"r": {"1": ("46", "7000")}},
            known={},
            queries={"1": "text"},
            documents={"0046": "a", "7000": "b"},
        )
    assert caught.value.problems[0].hint.startswith("1 differs only in leading zeros")
