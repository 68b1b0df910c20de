"""board.toml: every mistake is told with its line."""

import time
import tomllib
from datetime import date

import msgspec
import pytest
from boardlog import RULES, BoardLog, find_problems, ranking, season, table
from certain import sure
from hypothesis import given, settings
from hypothesis import strategies as st

from heldout.board.policy.checks import CHECKS
from heldout.board.rules.changes import list_changed_terms
from heldout.board.rules.spec import RULES as POLICY
from heldout.board.rules.spec import ForgeKind, ForgeSpec, api_root, check_forge, parse_forge
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores.releasing import rule_of
from heldout.board.store.forges import is_rate_limited, seconds_to_wait
from heldout.errors import InputError


def line_of(text: str, what: str) -> int:
    (number,) = [n for n, line in enumerate(text.splitlines(), 1) if what in line]
    return number


def includes(whole: object, part: object) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(includes(whole[name], value) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list | tuple):
        return len(part) == len(whole) and all(map(includes, whole, part))
    return whole == part


def test_a_full_example_is_read() -> None:
    spec = parse_spec(RULES.encode())
    assert includes(msgspec.to_builtins(spec, builtin_types=(date,)), tomllib.loads(RULES))
    assert (spec.sets["dev"].held_out, spec.sets["eval"].held_out) == (False, True)
    assert [view.name for view in spec.public_views] == ["dev", "eval"]


def test_what_is_left_out_has_defaults() -> None:
    spec = parse_spec(
        b"""name = "kb"
title = "t"
task = "t"
opens = 2026-11-01
primary = "v"
recipients = ["k"]
[sets.eval]
queries = "q.tsv"
[[views]]
name = "v"
set = "eval"
measure = "nDCG@10"
"""
    )
    assert (spec.schema, spec.closes, spec.decimals, spec.envelope) == (1, None, 3, "age")
    assert (spec.runs.order, spec.runs.depth, spec.policy.quota) == ("msmarco", 1000, 2)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("schema = 1", "schema = 2", "1"),
        ('name = "kb"', 'name = "../kb"', "1 to 64 letters, digits, . _ -"),
        ('name = "kb"', 'name = ""', "1 to 64 letters, digits, . _ -"),
        ("closes = 2027-12-31", "closes = 2026-10-31", "a day from 2026-11-01 on"),
        ('primary = "eval"', 'primary = "test"', "the name of a view: dev, eval"),
        ("decimals = 3", "decimals = 0", "1 to 6"),
        ("decimals = 3", "decimals = 7", "1 to 6"),
        ('types = ["full ranking", "reranking"]', "types = []", "at least one submission type"),
        ('recipients = ["age1example"]', "recipients = []", "the public key of at least one"),
        ("min_depth = 1", "min_depth = 0", "1 to 100 (depth)"),
        ("min_depth = 1", "min_depth = 101", "1 to 100 (depth)"),
        ('queries = "queries/dev.tsv"', 'queries = "/etc/passwd"', "a path inside the board"),
        ('queries = "queries/dev.tsv"', 'queries = "a/../../b"', "a path inside the board"),
        ('qrels = "qrels/dev.qrels"', 'qrels = "../x"', "a path inside the board"),
        ('candidates = "candidates/dev.tsv"', 'candidates = ".."', "a path inside the board"),
        ("quota = 2", "quota = 0", "1 to 1,000"),
        ("quota_days = 30", "quota_days = 0", "1 to 3,660"),
        ("quota_days = 30", "quota_days = 1000000000", "1 to 3,660"),
        ("embargo_months = 9", "embargo_months = -1", "0 to 120"),
        ("embargo_months = 9", "embargo_months = 99999", "0 to 120"),
        ("id_days = 7", "id_days = -1", "0 to 3,660"),
        ("off = []", "off = []\n[release]\nfeedback = 1", "0 or more, below 1"),
        ("off = []", "off = []\n[release]\nfeedback = nan", "a number"),
        ("off = []", "off = []\n[release]\nsubmissions = 0", "1 to 1,000,000"),
        ("off = []", "off = []\n[release]\nsubmissions = 1000001", "1 to 1,000,000"),
        ("off = []", "off = []\n[programs]\nminutes = 0", "1 to 43,200"),
        ("off = []", "off = []\n[programs]\ndisk = 8193", "at most memory, 8,192"),
        ("off = []", "off = []\n[release]\nfeedback = true", "a number"),
        ("off = []", 'off = []\n[release]\nrule = "exact"', "rounded"),
        ("schema = 1", 'schema = 1\nkind = "two-shot"', "sequential"),
        ("closes = 2027-12-31", 'kind = "one-shot"', "a last day"),
        ("schema = 1", 'schema = 1\ndenominator = "some"', "counted"),
        ("public = true", 'labels = "a/b"', "a name of letters"),
        ("off = []", 'off = ["qouta"]', "one of board-open, post-hoc, id-date"),
    ],
)
def test_a_wrong_value_has_its_line(old: str, new: str, expected: str) -> None:
    text = RULES.replace(old, new)
    (problem,) = find_problems(text)
    assert problem.code == "board-spec"
    assert problem.line == line_of(text, new.splitlines()[-1])
    assert expected in problem.expected
    assert problem.path == "board.toml"


@pytest.mark.parametrize(
    "number", [n for n, line in enumerate(RULES.splitlines()) if " = " in line]
)
def test_a_value_of_another_kind_has_its_line(number: int) -> None:
    lines = RULES.splitlines()
    lines[number] = lines[number].split(" = ")[0] + " = [[1.5]]"
    (problem,) = find_problems("\n".join(lines))
    assert (problem.code, problem.line) == ("board-spec", number + 1)


@pytest.mark.parametrize(
    ("old", "new", "index"),
    [
        ('name = "dev"', 'name = "a b"', 0),
        ('name = "eval"', 'name = "dev"', 1),
        ('set = "dev"', 'set = "train"', 0),
        ('set = "eval"\nmeasure = "RR@10"', 'set = "eval"\nmeasure = "MRRR"', 1),
        ('set = "eval"\nmeasure = "RR@10"', 'set = "eval"\nmeasure = "nDCG(x"', 1),
    ],
)
def test_a_wrong_view_has_its_line(old: str, new: str, index: int) -> None:
    text = RULES.replace('primary = "eval"', 'primary = "dev"').replace(old, new)
    text = text.replace('primary = "dev"', 'primary = "a b"') if "a b" in new else text
    (problem,) = find_problems(text)
    key = new.splitlines()[-1].split(" = ")[0]
    heads = [n for n, line in enumerate(text.splitlines(), 1) if line == "[[views]]"]
    assert problem.found.startswith(f"views[{index}].{key} = ")
    assert problem.line == heads[index] + {"name": 1, "set": 2, "measure": 3}[key]


def test_a_hidden_view_cannot_rank() -> None:
    text = RULES.replace("public = true", "public = false")
    (problem,) = find_problems(text)
    assert (problem.line, problem.expected) == (line_of(text, "primary ="), "a public view")


_SEASONS = table("[sets.next]", queries="queries/next.tsv") + ranking("next")
_SEASONS += season("one", "eval", date(2026, 11, 1), date(2026, 11, 30))
_SEASONS += season("two", "next", date(2026, 12, 1))
SEASONS = RULES.replace("[policy]", f"{_SEASONS}[policy]")


def test_a_season_may_open_on_the_day_after_the_last() -> None:
    one, two = parse_spec(SEASONS.encode()).seasons
    assert (one.closes, two.opens, two.closes) == (date(2026, 11, 30), date(2026, 12, 1), None)


@pytest.mark.parametrize("closes", ["", "closes = 2026-12-01\n", "closes = 2027-06-30\n"])
def test_a_season_has_to_end_before_the_next_opens(closes: str) -> None:
    text = SEASONS.replace("closes = 2026-11-30\n", closes)
    (problem,) = find_problems(text)
    assert problem.found == 'seasons[1].opens = "2026-12-01"'
    assert problem.expected == "a day after season 'one' closes"
    assert problem.line == line_of(text, "opens = 2026-12-01")


def test_a_season_does_not_end_before_it_opens() -> None:
    text = SEASONS.replace("opens = 2026-12-01\n", "opens = 2026-12-01\ncloses = 2026-11-30\n")
    (problem,) = find_problems(text)
    assert problem.found == 'seasons[1].closes = "2026-11-30"'
    assert problem.expected == "a day from 2026-12-01 on"


@pytest.mark.parametrize("gone", ["name", "title", "task", "opens", "primary", "recipients"])
def test_a_key_that_must_be_there(gone: str) -> None:
    text = "\n".join(line for line in RULES.splitlines() if not line.startswith(gone + " = "))
    text = text if gone != "name" else RULES.replace('name = "kb"\n', "")
    (problem,) = find_problems(text)
    assert (problem.found, bool(problem.expected)) == (f"no {gone}", True)


@pytest.mark.parametrize(
    ("old", "new", "found", "expected", "hint"),
    [
        ("quota = 2", "qouta = 2", "policy.qouta, an unknown key", "one of quota, ", "quota?"),
        ('task = "Find', 'tsak = "Find', "tsak, an unknown key", "one of schema, ", "task?"),
        ("quota = 2", "colour = 2", "policy.colour, an unknown key", "one of quota", "remove it"),
        ("quota = 2", 'quota = "2"', 'policy.quota = "2"', "a whole number", ""),
        ("decimals = 3", "decimals = 3.5", "decimals = 3.5", "a whole number", ""),
        ('name = "kb"', "name = 7", "name = 7", "text in quotes", ""),
        ("complete = true", "complete = 1", "runs.complete = 1", "true or false", ""),
        ("closes = 2027-12-31", "closes = 1", "closes = 1", "a day as 2026-11-01", ""),
        ('order = "trec"', 'order = "best"', 'runs.order = "best"', '"trec", "trec9"', ""),
        ('envelope = "age"', "envelope = 1", "envelope = 1", 'one of "age", "openssl"', ""),
        ("off = []", "off = [1]", "policy.off[0] = 1", "text in quotes", ""),
        ("off = []", 'off = "quota"', 'policy.off = "quota"', "a list in brackets", ""),
        ("[policy]", "[[policy]]", "policy = [{", "a table [policy]", ""),
        ("[[views]]", "[views]", "views = {", "a table [[views]] for each", ""),
    ],
)
def test_a_wrong_key_or_kind(old: str, new: str, found: str, expected: str, hint: str) -> None:
    text = RULES.replace(old, new, 1)
    if new == "[views]":
        text = text[: text.rindex("[[views]]")] + text[text.index("[policy]") :]
    (problem,) = find_problems(text)
    assert problem.found.startswith(found)
    assert expected in problem.expected
    assert hint in problem.hint
    assert "`" not in str(problem)


def test_every_wrong_kind_is_told_at_once() -> None:
    text = RULES.replace("decimals = 3", 'decimals = "3"').replace("quota = 2", "qouta = 2")
    text = text.replace('queries = "queries/eval.tsv"\n', "")
    decimals, queries, quota = (problem.found for problem in find_problems(text))
    assert (decimals, queries) == ('decimals = "3"', "no sets.eval.queries")
    assert quota == "policy.qouta, an unknown key"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"name = \n", 1),
        (b'name = "a"\ntitle "b"\n', 2),
        (b'name = "a"\nname = "b"\n', 2),
        (b'name = "a"\n[runs\n', 2),
        (b'name = "a"\ntask = "unended\n', 2),
        (b'name = "a"\ntask = """unended\n\n', 3),
        (b'name = "a"\ntask = "\xff"\n', 2),
        (b"\x00", 1),
        (b'\xef\xbb\xbfname = "a"\n', 1),
    ],
)
def test_what_is_no_toml_has_its_line(data: bytes, line: int) -> None:
    with pytest.raises(InputError) as caught:
        parse_spec(data)
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("not-toml", line)
    assert "(at" not in problem.found
    assert "codec" not in problem.found


def test_every_rule_can_be_switched_off_by_name() -> None:
    assert list(CHECKS) == list(POLICY)
    off = ", ".join(f'"{name}"' for name in tuple(POLICY))
    spec = parse_spec(RULES.replace("off = []", f"off = [{off}]").encode())
    assert spec.policy.off == tuple(POLICY)


@pytest.mark.parametrize(
    "file",
    [
        *("log.jsonl", "./log.jsonl", "LOG.jsonl", "leaderboard/terms.md", "labels/eval.qrels"),
        *("submissions/a/b", "board.toml", ".git/config", "."),
    ],
)
def test_an_agreement_is_no_file_of_heldout_s_own(file: str) -> None:
    text = RULES + f'\n[registration]\nagreement = "{file}"\n'
    (problem,) = find_problems(text)
    assert problem.line == line_of(text, "agreement =")
    assert problem.expected == "a file of the agreement's own"
    parse_spec(text.replace(f'"{file}"', '"terms/labels.md"').encode())


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
    (problem,) = find_problems(with_view(keys))
    found = problem.found
    assert problem.code == "board-spec"
    assert found.startswith((f"views[2].{wrong} = ", f"no views[2].{wrong}")), found


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "../vault/labels/eval.qrels", "labels/../identities/organiser.txt",
        "labels/eval.qrels", "labels/eval.exclude", "labels/deep/er.groups", "labels/.groups",
        "labels/eval.groups\\u0000", "labels/eval",
    ],
)  # fmt: skip
def test_a_path_to_keys_or_labels_or_out_of_the_board_is_refused(path: str) -> None:
    problem, *_ = find_problems(with_view(f'{RR}queries = "{path}"'))
    assert problem.found.startswith("views[2].queries = ")


CLEAR = RULES.replace("[policy]", '[release]\nrule = "clear"\n\n[policy]')


RANKED = RULES.replace('primary = "eval"', 'primary = "more"')
SEASON = '[[seasons]]\nname = "1"\nopens = 2026-11-01\nview = "more"\n'
FALLS = 'measure = "FirstRel"\n'
LITTLE = "training_at_most = 5"


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
def test_published_held_out_views_are_counted(keys: str, query_set: str, views: int) -> None:
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


def informs(*keys: str, of: str = "eval", rules: str = CLEAR) -> str:
    """Rules of `clear` with a further view of RR@10, and keys of it."""
    return with_view(RR + "\n".join(keys), rules=rules, query_set=of)


def released(keys: str) -> str:
    return RULES.replace("[policy]", f"[release]\n{keys}\n\n[policy]")


def keyed(keys: str, rules: str = RULES) -> str:
    """Further keys of the view that ranks."""
    return rules.replace('name = "eval"\n', f'name = "eval"\n{keys}\n')


BESIDE = split_rules().replace("more", "other")
NOISY = "noise = 10"
HIDDEN = "public = false"


@pytest.mark.parametrize(
    ("rules", "wrong", "says"),
    [
        (informs("noise = 0.5"), "views[2].noise", "1 to 100"),
        (informs("noise = 101"), "views[2].noise", "1 to 100"),
        (informs("noise = nan"), "views[2].noise", "a number"),
        (informs(NOISY, rules=RULES), "views[2].noise", "eval publishes every score"),
        (informs(NOISY, HIDDEN), "views[2].public", "true"),
        (with_view(WORST + NOISY, rules=CLEAR), "views[2].summary", "mean"),
        (informs(NOISY, LITTLE), "views[2].training_at_most", "for information only"),
        (informs(NOISY, of="dev"), "views[2].noise", "public"),
        (informs('part = "feedback"', of="dev"), "views[2].part", "public"),
        (keyed(NOISY, CLEAR), "views[1].noise", "ranks"),
        (informs('part = "half"', rules=RULES), "views[2].part", "deciding"),
        (informs('part = "feedback"', rules=RULES), "views[2].part", 'part = "deciding"'),
        (keyed('part = "deciding"'), "views[1].part", "feedback"),
        (split_rules(NOISY), "views[2].noise", "no noise"),
        (split_rules(HIDDEN), "views[2].public", "true"),
        (split_rules(HIDDEN, "final = true"), "views[2].public", "true"),
        (split_rules(LITTLE), "views[2].training_at_most", "none"),
        (split_rules().replace('"eval"\nd', '"more"\nd'), "views[2].part", "more ranks"),
        (informs(rules=BESIDE), "views[3].part", "publish scores on the deciding part"),
        (
            informs(NOISY, rules=split_rules(rules=CLEAR).replace("more", "other")),
            "views[3].part",
            "publish scores on the deciding part",
        ),
        (
            informs(rules=f'{BESIDE}[sets.deep]\nqueries = "queries/eval.tsv"\n', of="deep"),
            "views[3].set",
            "other queries than eval",
        ),
        (
            split_rules().replace("opens = 2026-11-01", 'opens = 2026-11-01\nkind = "one-shot"'),
            "views[1].part",
            "one-shot",
        ),
        (released("feedback = -0.1"), "release.feedback", "0 or more"),
        (released("feedback = 1.0"), "release.feedback", "below 1"),
        (
            split_rules(rules=CLEAR).replace('"clear"', '"clear"\nfeedback = 0'),
            "release.feedback",
            "above 0",
        ),
        (
            CLEAR.replace('name = "kb"', 'name = "kb"\nkind = "one-shot"'),
            'release.rule = "clear"',
            "rounded",
        ),
        (with_view(FALLS, rules=CLEAR), "views[2].measure", "query by query"),
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
def test_what_does_not_fit_is_told_at_its_key(rules: str, wrong: str, says: str) -> None:
    told = [str(problem) for problem in find_problems(rules)]
    assert any(wrong in one and says in one for one in told), told


def test_seasons_share_a_set_of_which_each_has_its_part() -> None:
    spec = parse_spec(season_rules(1, 2).encode())
    for number, one in enumerate(spec.seasons, 1):
        rules = spec.in_season(one)
        assert {view.name for view in rules.views} == {"dev", f"part-{number}", "more"}
        assert (rules.sets, rules.held_out_views) == (spec.sets, 1)
    without = season_rules(1, 2, keys="public = false", release="seasons = 2\nfeedback = 0")
    assert parse_spec(without.encode()).in_season(spec.seasons[1]).view("more").part is None
    noisy = season_rules(1, 2, keys="noise = 10\npart = 2", release="seasons = 2\nfeedback = 0")
    spec = parse_spec(noisy.encode())
    views = [[view.name for view in spec.in_season(one).views] for one in spec.seasons]
    assert views == [["dev", "part-1"], ["dev", "more", "part-2"]]


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
    less = noisy.replace("noise = 10", "noise = 1")
    assert changed_terms(noisy, after=less) == ["views[2].noise"]


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


def test_a_set_is_not_split_once_scores_on_all_of_it_are_public() -> None:
    assert changed_terms(SPLIT, after=season_rules(1, 2)) == ["views[1].part", "views[3].part"]
    renamed = SPLIT.replace('name = "eval"', 'name = "most"')
    renamed = renamed.replace('primary = "eval"', 'primary = "most"')
    assert changed_terms(CLEAR, after=renamed) == ["views[1].part", "views[2].part"]
    assert changed_terms(CLEAR, SPLIT, after=SPLIT) == []  # split before the first score


def test_a_season_is_ranked_by_no_feedback_and_may_be_split_by_itself() -> None:
    late = table("[sets.late]", queries="queries/late.tsv")
    late += ranking("late", part="{0}") + ranking("other", "late", part="{1}")
    late += season("one", "eval", date(2026, 11, 1), date(2026, 12, 31))
    late += season("two", "late", date(2027, 1, 1))
    spec = parse_spec((SPLIT + late.format("deciding", "feedback")).encode())
    assert [view.name for view in spec.in_season(spec.seasons[1]).views] == ["dev", "late", "other"]
    assert spec.in_season(spec.seasons[1]).held_out_views == 1
    (problem,) = find_problems(SPLIT + late.format("feedback", "deciding"))
    assert "views[3].part" in str(problem)
    assert "late ranks" in str(problem)


SOON = 5  # seconds; each took minutes, or ended in a traceback, before there were limits
HOSTILE = {
    "dots in one key": f"a{'.a' * 30_000} = 1",
    "dots in many headers": "".join(f"[b{i}{'.a' * 64}]\n" for i in range(450)),
    "dots in many keys": "".join(f"b{i}{'.a' * 64} = 1\n" for i in range(450)),
    "brackets within brackets": "a = " + "[\n" * 30_000,
    "tables within tables": f"a = {'{b = ' * 1_000}1{'}' * 1_000}",
    "more bytes than any board": f"{RULES}# {'x' * 70_000}",
    "a line without end": f'title = "{"x" * 60_000}"',
    "thousands of unknown keys": "".join(f"k{i}=1\n" for i in range(7_000)),
    "digits without end": RULES.replace("quota = 2\n", f"quota = {'9' * 5_000}\n"),
    "hexadecimal digits": RULES.replace("quota = 2\n", f"quota = 0x{'F' * 2_900}\n"),
    "a cutoff without end": RULES.replace("RR@10", f"RR@{'9' * 2_900}"),
    "bytes that are no text": RULES + "\udcff",
    "nothing": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_rules_are_refused_soon(name: str) -> None:
    start = time.process_time()
    with pytest.raises(InputError) as told:
        parse_spec(HOSTILE[name].encode("utf-8", "surrogateescape"))
    assert time.process_time() - start < SOON
    assert 1 <= len(told.value.problems) <= 50
    assert max(len(str(problem)) for problem in told.value.problems) < 5_000


@settings(deadline=1_000)
@given(st.lists(st.sampled_from([*"[]{}=.\",'\n #-_a1", "[[", '"""', "a = ", "1e9"]), max_size=60))
def test_any_text_is_read_or_refused(parts: list[str]) -> None:
    with pytest.raises(InputError):
        parse_spec("".join(parts).encode())


def test_what_people_write_is_far_from_the_limits() -> None:
    task = "One sentence. " * 60
    recipients = "".join(f'"age1{"q" * 58}", ' for _ in range(40))
    text = RULES.replace('"Find the passage that answers the question."', f'"{task}"')
    text = text.replace('["age1example"]', f"[{recipients}]")
    spec = parse_spec(text.encode())
    assert (spec.task, len(spec.recipients)) == (task, 40)


KNOWN: dict[str, tuple[ForgeKind, str]] = {
    "https://github.com/lab/board": ("github", "lab/board"),
    "https://GitHub.com/lab/board.git": ("github", "lab/board"),
    "https://github.com/lab/board.x/": ("github", "lab/board.x"),
    "https://gitlab.com/uni/group/deeper/board": ("gitlab", "uni/group/deeper/board"),
    "https://codeberg.org/lab/board": ("forgejo", "lab/board"),
}


@pytest.mark.parametrize("address", KNOWN)
def test_an_address_on_a_known_host_tells_its_forge(address: str) -> None:
    found = sure(parse_forge(address))
    assert (found.kind, found.project) == KNOWN[address]
    assert list(check_forge(found)) == []


@pytest.mark.parametrize(
    "address",
    [
        "", "https://example.org/lab/board", "http://github.com/lab/board",
        "https://token@github.com/lab/board", "https://github.com:8443/lab/board",
        "https://github.com.evil.example/lab/board", "https://github.com/lab",
        "https://github.com/lab/board/pull/1", "https://github.com/lab/../board",
        "https://github.com/lab/board?x=1", "https://github.com/-x/board",
        "https://github.com/lab/bo ard", "https://github.com/lab/bo\nard",
        "git@github.com:lab/board.git", "https://[github.com/lab/board",
    ],
)  # fmt: skip
def test_any_other_address_tells_none(address: str) -> None:
    assert parse_forge(address) is None


@given(st.text())
def test_no_address_makes_trouble(address: str) -> None:
    found = parse_forge("https://gitlab.com/" + address)
    assert found is None or list(check_forge(found)) == []
    assert parse_forge(address) is None or address.lower().startswith("https://")


WRONG: dict[str, tuple[ForgeKind, str, str, str]] = {
    "http": ("gitlab", "http://git.uni.example", "a/b", "forge.url"),
    "a password in the address": ("forgejo", "https://me:secret@git.example", "a/b", "forge.url"),
    "a query": ("gitlab", "https://x.example?a", "a/b", "forge.url"),
    "no address": ("github", "", "a/b", "forge.url"),
    "a path up": ("gitlab", "https://x/../y", "a/b", "forge.url"),
    "no project": ("github", "https://github.com", "", "forge.project"),
    "groups on GitHub": ("github", "https://github.com", "a/b/c", "forge.project"),
    "a project that goes up": ("gitlab", "https://gitlab.com", "a/..b", "forge.project"),
    "a project with an escape": ("gitlab", "https://gitlab.com", "a/%2e", "forge.project"),
    "a folder without a path": ("folder", "", "", "forge.url"),
    "a folder with a project": ("folder", "in", "a", "forge.project"),
    "an option for git": ("git", "--upload-pack=evil", "", "forge.url"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_table_is_told_by_its_key(name: str) -> None:
    kind, url, project, key = WRONG[name]
    spec = ForgeSpec(kind=kind, url=url, project=project)
    assert [wrong[0] for wrong in check_forge(spec)] == [key]


@pytest.mark.parametrize(
    ("kind", "url", "root"),
    [
        ("github", "https://github.com", "https://api.github.com"),
        ("github", "https://git.uni.example/", "https://git.uni.example/api/v3"),
        ("gitlab", "https://uni.example/gitlab", "https://uni.example/gitlab/api/v4"),
        ("forgejo", "https://codeberg.org", "https://codeberg.org/api/v1"),
    ],
)
def test_each_forge_is_asked_at_its_documented_root(kind: ForgeKind, url: str, root: str) -> None:
    spec = ForgeSpec(kind=kind, url=url, project="a/b")
    assert list(check_forge(spec)) == []
    assert api_root(spec) == root
    assert spec.clone_url == f"{url.rstrip('/')}/a/b.git"


# waiting


@given(st.dictionaries(st.sampled_from(["retry-after", "x-ratelimit-reset"]), st.text()))
def test_a_wait_is_at_least_a_second_whatever_is_said(headers: dict[str, str]) -> None:
    assert seconds_to_wait(headers, now=1e9) >= 1


def test_a_refusal_that_is_no_limit_is_not_waited_for() -> None:
    assert not is_rate_limited(403, {}, '{"message": "Must have admin rights"}')
    assert not is_rate_limited(404, {"retry-after": "5"}, "")
    assert not is_rate_limited(403, {"x-ratelimit-remaining": "12"}, "")
    assert is_rate_limited(403, {"x-ratelimit-remaining": "0"}, "")
