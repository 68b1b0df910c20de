"""Views of fairness, small data, parts and noise in board.toml: what does not fit is refused."""

import pytest
from boardlog import RULES, BoardLog

from heldout.board.rules.changes import list_changed_terms
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores.releasing import rule_of
from heldout.errors import InputError

FAIR = 'measure = "AWRF@10"\ngroups = "labels/eval.groups"\n'
WORST = 'measure = "RR@10"\nfacets = "labels/eval.facets"\nsummary = "worst"\n'
RR = 'measure = "RR@10"\n'


def with_view(keys: str, *, rules: str = RULES, query_set: str = "eval") -> str:
    view = f'[[views]]\nname = "more"\nset = "{query_set}"\n{keys}\n'
    return rules.replace("[policy]", f"{view}[policy]")


@pytest.mark.parametrize(
    "keys",
    [
        FAIR,
        FAIR + "target = { north = 0.25, south = 0.75 }",
        FAIR + "target = { north = 1, south = 0 }",
        FAIR.replace("labels/eval.groups", "qrels/eval.groups"),
        WORST,
        WORST + "min_group = 1",
        WORST.replace("worst", "gap"),
        RR + 'queries = "labels/rare.txt"',
        RR + "training_at_most = 0",
        WORST + 'queries = "labels/rare.txt"\ntraining_at_most = 1000',
    ],
)
def test_these_are_views(keys: str) -> None:
    view = parse_spec(with_view(keys).encode()).view("more")
    assert len(view.files) == keys.count("labels/") + keys.count("qrels/")


@pytest.mark.parametrize(
    ("keys", "wrong"),
    [
        ('measure = "AWRF@10"', "groups"),
        (FAIR.replace("AWRF@10", "RR@10"), "groups"),
        (FAIR + "target = { north = 0.25, south = 0.5 }", "target"),
        (FAIR + "target = { north = -0.5, south = 1.5 }", "target"),
        (FAIR + "target = {}", "target"),
        (FAIR + "target = { north = nan }", "target.north"),
        (FAIR + 'target = { north = "all" }', "target.north"),
        (RR + "target = { north = 1 }", "target"),
        (RR + 'summary = "worst"', "facets"),
        (RR + 'facets = "labels/eval.facets"', "summary"),
        (WORST.replace("worst", "best"), "summary"),
        (WORST.replace("RR@10", "FirstRel"), "measure"),
        (WORST.replace("RR@10", "Unjudged@10"), "measure"),
        (WORST + "min_group = 0", "min_group"),
        (RR + "training_at_most = -1", "training_at_most"),
        (RR + 'queries = "labels/eval.key"', "queries"),
        (RR + "training_at_most = 1.5", "training_at_most"),
        (RR + 'queries = ""', "queries"),
    ],
)
def test_what_does_not_belong_together_is_told_at_its_key(keys: str, wrong: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_spec(with_view(keys).encode())
    assert [problem.code for problem in caught.value.problems] == ["board-spec"]
    found = caught.value.problems[0].found
    assert found.startswith((f"views[2].{wrong} = ", f"no views[2].{wrong}")), found


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../vault/labels/eval.qrels",
        "labels/../identities/organiser.txt",
        "labels/eval.qrels",
        "labels/eval.exclude",
        "labels/deep/er.groups",
        "labels/.groups",
        "labels/eval.groups\\u0000",
        "labels/eval",
    ],
)
def test_a_path_to_keys_or_labels_or_out_of_the_board_is_refused(path: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_spec(with_view(f'{RR}queries = "{path}"').encode())
    assert caught.value.problems[0].found.startswith("views[2].queries = ")


CLEAR = RULES.replace("[policy]", '[release]\nrule = "clear"\n\n[policy]')


RANKED = RULES.replace('primary = "eval"', 'primary = "more"')
SEASON = '[[seasons]]\nname = "1"\nopens = 2026-11-01\nview = "more"\n'
FALLS = 'measure = "FirstRel"\n'


@pytest.mark.parametrize(
    "text",
    [
        *(with_view(keys + "public = false", rules=CLEAR) for keys in (FAIR, WORST, FALLS)),
        *(with_view(keys, rules=CLEAR, query_set="dev") for keys in (FAIR, WORST)),
        with_view(WORST, rules=RANKED),
        *(with_view(f'measure = "{falls}"') for falls in ("FirstRel", "Unjudged@10")),
    ],
)
def test_what_cannot_rank_or_be_compared_stands_beside_it(text: str) -> None:
    assert parse_spec(text.encode()).view("more").name == "more"


@pytest.mark.parametrize(
    ("keys", "query_set", "views"),
    [
        (RR, "eval", 2),
        (RR + "public = false", "eval", 1),
        (RR + "public = false\nfinal = true", "eval", 1),
        (RR, "dev", 1),
    ],
    ids=["public", "private", "told at the end", "of public labels"],
)
def test_views_whose_held_out_scores_are_published_are_counted(
    keys: str, query_set: str, views: int
) -> None:
    spec = parse_spec(with_view(keys, rules=CLEAR, query_set=query_set).encode())
    assert spec.held_out_views == views


def split_rules(*keys: str, rules: str = RULES) -> str:
    """Rules whose view `eval` is the deciding part, with a feedback view and further keys."""
    head, found, tail = rules.partition('name = "eval"\n')
    assert found
    deciding = f'{head}{found}part = "deciding"\n{tail}'
    return with_view(RR + "\n".join(('part = "feedback"', *keys)), rules=deciding)


def test_a_set_is_split_into_views_of_which_one_follows_the_rule() -> None:
    spec = parse_spec(split_rules(rules=CLEAR).encode())
    assert [spec.view(name).part for name in ("eval", "more")] == ["deciding", "feedback"]
    assert [spec.view(name).for_information for name in ("eval", "more")] == [False, True]
    assert (spec.held_out_views, spec.release.feedback) == (1, 0.25)
    assert [rule_of(spec, name) for name in ("eval", "more")] == ["clear", "rounded"]


def test_a_view_with_noise_takes_any_measure_and_has_no_part_in_the_rule() -> None:
    spec = parse_spec(with_view('measure = "FirstRel"\nnoise = 10', rules=CLEAR).encode())
    assert (spec.view("more").noise, spec.held_out_views) == (10, 1)
    assert rule_of(spec, "more") == "rounded"


def season_rules(*parts: int, keys: str = 'part = "feedback"', release: str = "seasons = 2") -> str:
    """Rules with a season for each of some parts, and a view `more` of the same set."""
    first, *_ = parts
    rules = CLEAR.replace('primary = "eval"', f'primary = "part-{first}"')
    rules = rules.replace('rule = "clear"', f'rule = "clear"\n{release}')
    head, found, tail = rules.partition('name = "eval"\n')
    assert found
    rules = f'{head}name = "part-{first}"\npart = {first}\n{tail}'
    rules = with_view(RR + keys, rules=rules)
    for part in parts[1:]:
        rules += f'[[views]]\nname = "part-{part}"\nset = "eval"\n{RR}part = {part}\n'
    for number, part in enumerate(parts):
        rules += f'[[seasons]]\nname = "s{number}"\nview = "part-{part}"\n'
        rules += f"opens = 20{26 + number}-11-01\ncloses = 20{26 + number}-12-31\n"
    return rules


@pytest.mark.parametrize(
    ("rules", "wrong", "says"),
    [
        (with_view(RR + "noise = 0.5", rules=CLEAR), "views[2].noise", "1 to 100"),
        (with_view(RR + "noise = 101", rules=CLEAR), "views[2].noise", "1 to 100"),
        (with_view(RR + "noise = nan", rules=CLEAR), "views[2].noise", "a number"),
        (with_view(RR + "noise = 10"), "views[2].noise", "eval publishes every score"),
        (with_view(RR + "noise = 10\npublic = false", rules=CLEAR), "views[2].public", "true"),
        (with_view(WORST + "noise = 10", rules=CLEAR), "views[2].summary", "mean"),
        (
            with_view(RR + "noise = 10\ntraining_at_most = 5", rules=CLEAR),
            "views[2].training_at_most",
            "for information only",
        ),
        (with_view(RR + "noise = 10", rules=CLEAR, query_set="dev"), "views[2].noise", "public"),
        (
            with_view(RR + 'part = "feedback"', rules=CLEAR, query_set="dev"),
            "views[2].part",
            "public",
        ),
        (
            CLEAR.replace('name = "eval"\n', 'name = "eval"\nnoise = 10\n'),
            "views[1].noise",
            "ranks",
        ),
        (with_view(RR + 'part = "half"'), "views[2].part", "deciding"),
        (with_view(RR + 'part = "feedback"'), "views[2].part", 'part = "deciding"'),
        (
            RULES.replace('name = "eval"\n', 'name = "eval"\npart = "deciding"\n'),
            "views[1].part",
            "feedback",
        ),
        (split_rules("noise = 10"), "views[2].noise", "no noise"),
        (split_rules("public = false"), "views[2].public", "true"),
        (split_rules("public = false\nfinal = true"), "views[2].public", "true"),
        (split_rules("training_at_most = 5"), "views[2].training_at_most", "none"),
        (
            split_rules().replace('primary = "eval"', 'primary = "more"'),
            "views[2].part",
            "more ranks",
        ),
        (
            with_view(RR, rules=split_rules().replace("more", "other")),
            "views[3].part",
            "publish scores on the deciding part",
        ),
        (
            with_view(RR + "noise = 10", rules=split_rules(rules=CLEAR).replace("more", "other")),
            "views[3].part",
            "publish scores on the deciding part",
        ),
        (
            with_view(
                RR,
                rules=split_rules().replace("more", "other")
                + '[sets.deep]\nqueries = "queries/eval.tsv"\n',
                query_set="deep",
            ),
            "views[3].set",
            "other queries than eval",
        ),
        (
            split_rules().replace("opens = 2026-11-01", 'opens = 2026-11-01\nkind = "one-shot"'),
            "views[1].part",
            "one-shot",
        ),
        (
            RULES.replace("[policy]", "[release]\nfeedback = -0.1\n\n[policy]"),
            "release.feedback",
            "0 or more",
        ),
        (
            split_rules(rules=CLEAR).replace('"clear"', '"clear"\nfeedback = 0'),
            "release.feedback",
            "above 0",
        ),
        (
            RULES.replace("[policy]", "[release]\nfeedback = 1.0\n\n[policy]"),
            "release.feedback",
            "below 1",
        ),
        (
            CLEAR.replace('name = "kb"', 'name = "kb"\nkind = "one-shot"'),
            'release.rule = "clear"',
            "rounded",
        ),
        (with_view('measure = "FirstRel"', rules=CLEAR), "views[2].measure", "query by query"),
        (
            with_view(WORST.replace("worst", "gap"), rules=RANKED),
            "views[2].summary",
            "a view that ranks",
        ),
        (
            with_view(WORST, rules=RULES.replace("decimals = 3", 'denominator = "all"')),
            "denominator",
            "counted",
        ),
        *(
            (with_view(f'measure = "{falls}"', rules=text), "views[2].measure", "one that rises")
            for falls in ("FirstRel", "Unjudged@10")
            for text in (RANKED, RANKED.replace("[policy]", f"{SEASON}[policy]"))
        ),
        *((with_view(keys, rules=CLEAR), "views[2]", "") for keys in (FAIR, WORST)),
        (season_rules(1, 2, release="seasons = 0"), "release.seasons", "1 to 100"),
        (season_rules(1, 2, release="seasons = 101"), "release.seasons", "1 to 100"),
        (season_rules(1, 3), "views[3].part", "1 to 2"),
        (season_rules(0, 1), "views[1].part", "1 to 2"),
        (season_rules(1, 2).replace("part = 2", "part = true"), "views[3].part", "whole number"),
        (season_rules(1, 2).replace('"clear"', '"rounded"'), "views[1].part", "clear"),
        (season_rules(1, 2, keys="public = false"), "views[1].part", 'part = "feedback"'),
        (season_rules(1, keys="part = 2"), "views[2].part", "a season that ranks by part 2"),
        (season_rules(1, 2, keys='part = "deciding"'), "views[2].part", "a season part"),
        (season_rules(1, 2, keys="noise = 10"), "views[2].part", "eval is split"),
        (season_rules(1, 1).replace('"part-1"\nset', '"b"\nset', 1), "seasons", "season part"),
        (season_rules(1, 2, keys="part = 1\npublic = false"), "views[2].part", "public view"),
        (season_rules(1, keys="part = 1").replace('"eval"', '"dev"'), "views[1].part", "held-out"),
    ],
)
def test_what_does_not_fit_into_the_rules_is_told_at_its_key(
    rules: str, wrong: str, says: str
) -> None:
    with pytest.raises(InputError) as caught:
        parse_spec(rules.encode())
    told = [str(problem) for problem in caught.value.problems]
    assert any(wrong in one and says in one for one in told), told


def test_seasons_share_a_set_of_which_each_has_its_part() -> None:
    spec = parse_spec(season_rules(1, 2).encode())
    for number, season in enumerate(spec.seasons, 1):
        rules = spec.in_season(season)
        assert {view.name for view in rules.views} == {"dev", f"part-{number}", "more"}
        assert (rules.sets, rules.held_out_views) == (spec.sets, 1)
    without = season_rules(1, 2, keys="public = false", release="seasons = 2\nfeedback = 0")
    assert parse_spec(without.encode()).in_season(spec.seasons[1]).view("more").part is None
    noisy = season_rules(1, 2, keys="noise = 10\npart = 2", release="seasons = 2\nfeedback = 0")
    spec = parse_spec(noisy.encode())
    views = [[view.name for view in spec.in_season(season).views] for season in spec.seasons]
    assert views == [["dev", "part-1"], ["dev", "more", "part-2"]]


def test_a_reserve_over_the_whole_set_may_stand_beside_a_split() -> None:
    rules = with_view(RR + "public = false", rules=split_rules().replace("more", "other"))
    assert parse_spec(rules.encode()).view("more").part is None


def changed_terms(*rules: str, after: str) -> list[str]:
    """What new rules may not change, after rules one after the other and a published baseline."""
    log = BoardLog()
    log.open(rules[0])
    for later in rules[1:]:
        log.change_rules(later)
    log.baseline("20261101-bm25", "0.2")
    return [key for key, *_ in list_changed_terms(log.history, parse_spec(after.encode()))]


SPLIT = split_rules(rules=CLEAR)
CHECK = with_view(RR + "noise = 10", rules=CLEAR)


def test_part_noise_and_share_are_fixed_once_scores_are_published() -> None:
    other = CLEAR.replace('rule = "clear"', 'rule = "clear"\nfeedback = 0.5')
    assert changed_terms(SPLIT, after=SPLIT) == []
    assert changed_terms(SPLIT, after=split_rules(rules=other)) == ["release.feedback"]
    assert changed_terms(SPLIT, after=CLEAR) == ["views[1].part"]
    assert changed_terms(SPLIT, other, after=other) == []
    assert changed_terms(CLEAR, after=CHECK) == []
    named = CHECK.replace('primary = "eval"', 'primary = "x"').replace('"eval"\nset', '"x"\nset')
    noisy = named.replace('name = "more"', 'name = "eval"')
    assert changed_terms(noisy, after=noisy.replace("noise = 10", "noise = 1")) == [
        "views[2].noise"
    ]


def test_season_parts_are_fixed_once_a_score_is_published_and_seasons_may_be_added() -> None:
    def terms(before: str, after: str) -> list[str]:
        log = BoardLog()
        log.open(before)
        log.baseline("20261101-bm25", "0.2", view="part-1")
        return [key for key, *_ in list_changed_terms(log.history, parse_spec(after.encode()))]

    one, two = season_rules(1), season_rules(1, 2)
    assert terms(one, two) == []
    assert terms(two, two.replace("seasons = 2", "seasons = 3")) == ["release.seasons"]
    swapped = two.replace("part = 1", "part = 3").replace("part = 2", "part = 1")
    swapped = swapped.replace("part = 3", "part = 2")
    assert terms(two, swapped) == ["views[1].part"]


def test_a_set_that_decided_as_a_whole_is_cut_into_no_season_parts() -> None:
    assert changed_terms(SPLIT, after=season_rules(1, 2)) == ["views[1].part", "views[3].part"]


def test_a_set_is_not_split_once_scores_on_all_of_it_are_public() -> None:
    renamed = SPLIT.replace('name = "eval"', 'name = "most"')
    renamed = renamed.replace('primary = "eval"', 'primary = "most"')
    assert changed_terms(CLEAR, after=renamed) == ["views[1].part", "views[2].part"]
    assert changed_terms(CLEAR, SPLIT, after=SPLIT) == []  # split before the first score


def test_a_season_is_ranked_by_no_feedback_and_may_be_split_by_itself() -> None:
    late = """
[sets.late]
queries = "queries/late.tsv"

[[views]]
name = "late"
set = "late"
measure = "RR@10"
part = "{0}"

[[views]]
name = "other"
set = "late"
measure = "RR@10"
part = "{1}"

[[seasons]]
name = "one"
view = "eval"
opens = 2026-11-01
closes = 2026-12-31

[[seasons]]
name = "two"
view = "late"
opens = 2027-01-01
"""
    spec = parse_spec((SPLIT + late.format("deciding", "feedback")).encode())
    assert [view.name for view in spec.in_season(spec.seasons[1]).views] == ["dev", "late", "other"]
    assert spec.in_season(spec.seasons[1]).held_out_views == 1
    with pytest.raises(InputError) as caught:
        parse_spec((SPLIT + late.format("feedback", "deciding")).encode())
    (problem,) = caught.value.problems
    assert "views[3].part" in str(problem)
    assert "late ranks" in str(problem)
