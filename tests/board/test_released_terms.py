"""What new rules may not change of what was released: the rule alone, without files or commands."""

import pytest
from boardlog import RULES, BoardLog, make_manifest

from heldout.board.rules.changes import list_changed_terms
from heldout.board.rules.spec_file import parse_spec

DEEP = '\n[[views]]\nname = "deep"\nset = "eval"\nmeasure = "nDCG@10"\npublic = true\n'
SEASON = '\n[[seasons]]\nname = "one"\nview = "{view}"\nopens = 2026-11-01\n'
BEFORE = RULES + DEEP


def wrong(before: str, after: str, *, published: bool = True) -> dict[str, str]:
    """The keys that may not change, and what was expected, after a score was released."""
    log = BoardLog().open(before)
    log.receive("20261101-a")
    log.review("20261101-a", make_manifest("a"))
    if published:
        scores = {"eval": "0.3", "deep": "0.4"}
        public = {"scores": scores, "queries": dict.fromkeys(scores, 90)}
        log.publish("20261101-a", make_manifest("a"), "0.3", public=public)
    told = list_changed_terms(log.history, parse_spec(after.encode()))
    return {key: expected for key, _, expected, _ in told}


def edit(before: str, after: str, text: str = BEFORE) -> str:
    """Replaces the last of such places, that of the further view."""
    head, found, tail = text.rpartition(before)
    assert found
    return head + after + tail


@pytest.mark.parametrize(
    ("before", "after", "key", "expected"),
    [
        ("nDCG@10", "AP", "views[2].measure", "nDCG@10"),
        ('measure = "nDCG@10"', 'measure = "nDCG@10"\nlabels = "other"', "views[2].labels", "none"),
        ('set = "eval"', 'set = "dev"', "views[2].set", "eval"),
        (
            'measure = "nDCG@10"',
            'measure = "nDCG@10"\nqueries = "labels/a.list"',
            "views[2].queries",
            "none",
        ),
        ("queries/eval.tsv", "queries/dev.tsv", "sets.eval.queries", "queries/eval.tsv"),
        (
            'queries = "queries/eval.tsv"',
            'queries = "queries/eval.tsv"\nqrels = "qrels/dev.qrels"',
            "sets.eval.qrels",
            "none",
        ),
        ("decimals = 3", 'decimals = 3\ndenominator = "all"', "denominator", "counted"),
        ("decimals = 3", "decimals = 6", "decimals", "3"),
        ('order = "trec"', 'order = "msmarco"', "runs.order", "trec"),
    ],
)
def test_a_view_that_has_released_scores_stays_what_it_is(
    before: str, after: str, key: str, expected: str
) -> None:
    assert wrong(BEFORE, edit(before, after))[key] == f"{expected}, as before"


@pytest.mark.parametrize("rules", [("rounded", "clear"), ("clear", "rounded")])
def test_a_board_changes_its_release_rule(rules: tuple[str, str]) -> None:
    before, after = (edit("[policy]", f'[release]\nrule = "{rule}"\n\n[policy]') for rule in rules)
    assert wrong(before, after) == {}


def test_a_view_that_is_taken_away_does_not_come_back_as_another() -> None:
    log = BoardLog().open(BEFORE)
    log.submit("20261101-a", make_manifest("a"), "0.3")
    log.change_rules(edit('name = "eval"\n', 'name = "other"\n').replace('"eval"\nd', '"other"\nd'))
    back = parse_spec(edit('measure = "RR@10"', 'measure = "AP"').encode())
    assert [one[0] for one in list_changed_terms(log.history, back)][:1] == ["views[1].measure"]


def test_what_waits_is_scored_by_the_rules_of_its_day_so_they_stay_too() -> None:
    after = edit('measure = "RR@10"', 'measure = "AP"')
    assert wrong(BEFORE, after, published=False) == {"views[1].measure": "RR@10, as before"}


def test_before_any_submission_a_view_may_be_anything_and_a_new_name_is_always_free() -> None:
    empty = BoardLog().open(BEFORE).history
    assert not list(list_changed_terms(empty, parse_spec(edit("nDCG@10", "AP").encode())))
    assert wrong(BEFORE, BEFORE + DEEP.replace("deep", "mean").replace("nDCG@10", "AP")) == {}


def test_what_ranks_published_entries_stays() -> None:
    other = edit('primary = "eval"', 'primary = "deep"')
    assert wrong(BEFORE, other) == {"primary": '"eval", as before'}
    by_season = wrong(BEFORE, other + SEASON.format(view="deep"))
    assert by_season == {"seasons[0].view": '"eval", as before'}
    assert wrong(BEFORE, BEFORE + SEASON.format(view="eval")) == {}
