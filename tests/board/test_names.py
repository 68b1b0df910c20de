"""Names: what looks alike, what names nobody, and that honest names of any script are neither."""

import csv
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from heldout.board.log.manifest import team_key
from heldout.board.policy.names import (
    claims_name,
    compare_names,
    count_edits,
    is_generic,
    mixed_words,
    skeleton,
    skeleton_words,
    spelling_words,
)

HONEST = (
    "Baidu NLP",
    "Łódź NLP",
    "Università della Svizzera italiana",
    "Sebastian Hofstätter (TU Wien)",
    "Đại học Bách khoa Hà Nội",
    "Яндекс Поиск",
    "МГУ им. Ломоносова",
    "Εθνικό Μετσόβιο Πολυτεχνείο",
    "清华大学 THUIR",
    "中国科学院计算技术研究所",
    "東京大学情報理工",
    "筑波大学 データ知識ラボ",
    "네이버 검색",
    "카카오 엔터프라이즈 AI팀",
    "جامعة القاهرة",
    "دانشگاه تهران",
    "הטכניון",
    "אוניברסיטת בר-אילן",
    "भारतीय प्रौद्योगिकी संस्थान",
    "จุฬาลงกรณ์มหาวิทยาลัย",
    "თბილისის უნივერსიტეტი",
    "L3S",
    "h2oloo",
    "NRC",
    "王",
    "Яндекс / Yandex",
)
LETTERS = st.text(max_size=60)


@pytest.mark.parametrize(
    ("attack", "name"),
    [
        ("Cyrillic a", "B\u0430idu NLP"),
        ("Cyrillic capital", "\u0412aidu NLP"),
        ("Greek iota", "Ba\u03b9du NLP"),
        ("mathematical letters", "\U0001d401\U0001d41a\U0001d422du NLP!"),
        ("one for l and i", "Ba1du NLP"),
        ("capital I for l", "Baidu NIP"),
    ],
)
def test_confusable_characters_look_like_the_name_they_imitate(attack: str, name: str) -> None:
    assert attack
    assert skeleton(name) == skeleton("Baidu NLP")
    assert compare_names(name, "Baidu NLP") is not None
    assert compare_names(name, "Elastic") is None


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Micr0s0ft", "MicrosOft"),
        ("GoogIe", "Google"),
        ("rnicrosoft", "Microsoft"),
        ("MICR\u041eSOFT", "microsoft"),
    ],
)
def test_digits_and_letters_of_one_shape_are_confusable(name: str, other: str) -> None:
    assert compare_names(name, other) == "confusable"
    assert compare_names(other, name) == "confusable"


@pytest.mark.parametrize(
    ("attack", "name"),
    [
        ("zero-width joiner", "Bai\u200ddu NLP"),
        ("zero-width space", "Bai\u200bdu NLP"),
        ("bidi override", "\u202eBaidu NLP\u202c"),
        ("combining marks", "B\u0301a\u0316\u0301idu NLP"),
        ("trailing dot", "Baidu NLP."),
        ("punctuation", "Baidu-NLP"),
        ("no blank", "BaiduNLP"),
        ("swapped words", "NLP, Baidu"),
        ("swapped words and capitals", "NLP BAIDU"),
    ],
)
def test_a_variant_that_only_looks_different_is_another_spelling(attack: str, name: str) -> None:
    assert attack
    assert team_key(name) != team_key("Baidu NLP")
    assert compare_names(name, "Baidu NLP") == "spelling"


@pytest.mark.parametrize("name", ["BAIDU NLP", "\uff22\uff21\uff29\uff24\uff35 NLP", " baidu  nlp"])
def test_all_capitals_and_fullwidth_are_the_same_team(name: str) -> None:
    assert team_key(name) == team_key("Baidu NLP")
    assert compare_names(name, "Baidu NLP") is None
    assert skeleton(name) == skeleton("Baidu NLP")


@pytest.mark.parametrize(
    ("one", "two", "kind"),
    [
        ("Milk&Cereal", "Milk&Cereral", "near"),
        ("Google Research", "Google Reseach", "near"),
        ("Goolge Research", "Google Research", "near"),
        ("Sinequa", "Sinequa2", "number"),
        ("Terrier 1", "Terrier 2", "number"),
        ("NLE", "NLM", None),
        ("RMIT", "RMITB", None),
        ("Li Gao - Carnegie Mellon University", "Lu Gao - Carnegie Mellon University", None),
        ("Baidu NLP", "Baidu", None),
        ("काम", "कम", None),
        ("か", "が", None),
        ("", "...", None),
    ],
)
def test_near_is_relative_to_the_words_that_differ(one: str, two: str, kind: str | None) -> None:
    assert compare_names(one, two) == kind


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_letters_are_folded_as_any_others(name: str) -> None:
    """Words of ASCII letters take a shorter way, which a word of another script shuts off."""
    for words in (spelling_words, skeleton_words):
        assert words(f"{name} ж") == (*words(name), *words("ж"))


@given(st.text("abcd", max_size=12), st.text("abcd", max_size=12), st.integers(0, 5))
def test_edits_are_counted_as_another_library_counts_them(one: str, two: str, most: int) -> None:
    assert count_edits(one, two, most=most) == OSA.distance(one, two, score_cutoff=most)


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "-",
        "?!",
        "\u200b",
        "12345",
        "١٢٣",
        "X",
        "x1",
        "😀",
        "N/A",
        "N.A.",
        "n/a",
        "None",
        "Team 1",
        "team_b",
        "user123",
        "My Team",
        "myteam",
        "Test-Team",
        "ANONYMOUS",
        "An0nymous",
        "\u0410nonymous",
        "Anonymous Authors",
        "Anonymous7",
        "University",
        "Research Group",
        "Équipe",
        "Анонимно",
        "Ανώνυμος",
        "匿名",
        "匿名团队",
        "名無しさん",
        "익명 팀",
        "مجهول",
        "אנונימי",
        "अज्ञात टीम",
        "ไม่ระบุชื่อ",
    ],
)
def test_a_name_of_nobody_in_any_script_is_generic(name: str) -> None:
    assert is_generic(name)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_name_of_any_script_is_itself(name: str) -> None:
    assert not is_generic(name)
    assert mixed_words(name) == ()
    assert [other for other in HONEST if compare_names(name, other) is not None] == []


@pytest.mark.parametrize("name", ["Independent", "Independent researcher", "self-employed"])
def test_a_person_without_an_institution_has_an_answer(name: str) -> None:
    assert not is_generic(name)


@pytest.mark.parametrize("name", ["MSMARCO Team", "ms marco", "Team MS-MARC0"])
def test_the_boards_own_name_is_taken(name: str) -> None:
    assert claims_name(name, ["Elastic", "MS MARCO"]) == "MS MARCO"
    assert claims_name("MS MARCO fans", ["MS MARCO"]) is None
    assert claims_name("", ["", "team"]) is None


def test_a_word_of_two_scripts_is_mixed_but_a_name_of_two_is_not() -> None:
    assert mixed_words("B\u0430idu NLP") == ("B\u0430idu",)
    assert mixed_words("\u03bcIR lab") == ("\u03bcIR",)
    assert mixed_words("百度NLP 東京ラボAI 네이버AI Яндекс Yandex") == ()


@pytest.mark.parametrize("piece", ["a", "A\u0430", "user", "匿名", "\u0316\u0301", "1", "ﷺ"])
def test_a_name_of_ten_thousand_characters_takes_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        name = (piece * length)[:length]
        start = time.process_time()
        skeleton(name), is_generic(name), mixed_words(name)
        return time.process_time() - start

    skeleton("warm")
    # Ten times the length; quadratic time would be a hundredfold.
    assert seconds(10_000) < 40 * max(seconds(1_000), 0.002)


@given(LETTERS)
def test_a_name_never_resembles_itself_and_folding_is_stable(name: str) -> None:
    assert compare_names(name, name) is None
    assert spelling_words(" ".join(spelling_words(name))) == spelling_words(name)


@given(LETTERS, LETTERS)
def test_likeness_has_no_direction(one: str, two: str) -> None:
    assert compare_names(one, two) == compare_names(two, one)


@given(LETTERS)
def test_marks_and_dots_in_between_change_nothing_that_is_seen(name: str) -> None:
    assert skeleton(f"{name}\u200b.") == skeleton(name)
    assert is_generic(f"  {name}!") == is_generic(name)


def _column(path: Path, column: str, delimiter: str) -> set[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row[column] for row in csv.DictReader(file, delimiter=delimiter, escapechar="\\")}


@pytest.fixture(scope="module")
def boards(data: Callable[[str], Path]) -> dict[str, set[str]]:
    tables = {
        "leaderboards/msmarco-doc-leaderboard.csv": ("team", ","),
        "leaderboards/msmarco-passage-leaderboard.csv": ("team", ","),
        "leaderboards/trec-dl-2019-official-results.tsv": ("participant", "\t"),
        "leaderboards/trec-dl-2020-official-results.tsv": ("participant", "\t"),
        "leaderboards/trec-dl-2021-docs-official-results.tsv": ("participant", "\t"),
        "trec-dl-2021-passage/official-results.tsv": ("participant", "\t"),
        "trec-covid-round1/leaderboard.csv": ("team", ","),
    }

    return {name: _column(data(name), *how) for name, how in tables.items()}


@pytest.mark.real
def test_of_the_real_teams_only_the_anonymous_are_generic(boards: dict[str, set[str]]) -> None:
    teams = set().union(*boards.values())
    assert len(teams) == 226
    assert {team for team in teams if is_generic(team)} == {"Anonymous", "anonymous"}
    assert {team for team in teams if mixed_words(team)} == set()


@pytest.mark.real
def test_every_reported_pair_of_real_teams_is_one_team(boards: dict[str, set[str]]) -> None:
    found = sorted(
        (one[:16], two[:16], kind)
        for teams in boards.values()
        for one, two in combinations(sorted(teams), 2)
        if (kind := compare_names(one, two)) is not None
    )
    assert found == [
        ("Chia-Hung Yuan, ", "Xue-He Wang, Chi", "spelling"),
        ("Leonid Boytsov, ", "Tianyi Lin, Fang", "spelling"),
        ("Leonid Pugachev,", "Leonid Pugachev,", "spelling"),
        ("Luyu Gao - Carne", "Luyu Gao — Carne", "spelling"),
        ("Luyu Gao - Carne", "Luyu Gao, Carneg", "spelling"),
        ("Luyu Gao — Carne", "Luyu Gao, Carneg", "spelling"),
        ("Milk&Cereal", "Milk&Cereral", "near"),
        ("Sinequa", "Sinequa2", "number"),
        ("Soonhwan Kwon*,S", "Soonhwan-Kwon,Sa", "spelling"),
        ("TF-Ranking team ", "TF-Ranking team ", "spelling"),
    ]
