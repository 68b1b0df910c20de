"""The facets of the queries that rank: out of files that public views name, each read once."""

from pathlib import Path

import msgspec
import pytest

from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores.measuring import FEWEST_IN_FACET, read_query_facets
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.errors import StoreError

RULES = """
schema = 1
name = "kb"
title = "Knowledge base"
task = "Find the passage."
opens = 2026-11-01
primary = "eval"
decimals = 3
types = ["full ranking"]
envelope = "age"
recipients = ["age1example"]

[runs]
order = "trec"
depth = 100

[sets.eval]
queries = "queries/eval.tsv"

[sets.other]
queries = "queries/other.tsv"

[[views]]
name = "eval"
set = "eval"
measure = "RR@10"
"""
VIEW = """
[[views]]
name = "{name}"
set = "{set}"
measure = "RR@10"
facets = "{file}"
summary = "worst"
public = {public}
min_group = {least}
"""


def rules(*views: tuple[str, str, str, bool, int]) -> BoardSpec:
    told = "".join(
        VIEW.format(name=name, set=set_, file=file, public=str(public).lower(), least=least)
        for name, set_, file, public, least in views
    )
    return parse_spec((RULES + told).encode())


@pytest.fixture
def places(tmp_path: Path) -> tuple[Repository, Vault]:
    (tmp_path / "board/queries").mkdir(parents=True)
    (tmp_path / "vault/labels").mkdir(parents=True)
    (tmp_path / "board/queries/types.facets").write_text("q1\twho\nq2\twhy\nq3\twho\n")
    (tmp_path / "vault/labels/eval.facets").write_text("q1\teasy\n")
    return Repository(tmp_path / "board"), Vault(tmp_path / "vault")


TYPES, HELD_OUT = "queries/types.facets", "labels/eval.facets"


def test_facets_come_from_the_board_and_from_the_vault_each_file_once(
    places: tuple[Repository, Vault],
) -> None:
    spec = rules(
        ("types", "eval", TYPES, True, 10),
        ("again", "eval", TYPES, True, 10),
        ("hard", "eval", HELD_OUT, True, 10),
    )
    found = read_query_facets(*places, spec, view="eval")
    assert [(one.of, one.name, sorted(one.queries)) for one in found] == [
        ("types", "who", ["q1", "q3"]),
        ("types", "why", ["q2"]),
        ("hard", "easy", ["q1"]),
    ]
    assert {one.least for one in found} == {FEWEST_IN_FACET}


def test_private_views_and_those_of_other_queries_are_not_looked_at(
    places: tuple[Repository, Vault],
) -> None:
    spec = rules(
        ("secret", "eval", "labels/missing.facets", False, 10),
        ("far", "other", "labels/missing.facets", True, 10),
    )
    assert read_query_facets(*places, spec, view="eval") == []


def test_a_view_that_asks_for_larger_groups_gets_them(places: tuple[Repository, Vault]) -> None:
    spec = rules(("types", "eval", TYPES, True, 10), ("hard", "eval", HELD_OUT, True, 120))
    assert {one.least for one in read_query_facets(*places, spec, view="eval")} == {120}


def test_a_file_that_is_gone_is_an_error(places: tuple[Repository, Vault]) -> None:
    spec = rules(("types", "eval", "labels/missing.facets", True, 10))
    with pytest.raises(StoreError, match="missing"):
        read_query_facets(*places, spec, view="eval")


def test_board_toml_without_facets_has_none(places: tuple[Repository, Vault]) -> None:
    spec = msgspec.structs.replace(rules(), primary="eval")
    assert read_query_facets(*places, spec, view="eval") == []
