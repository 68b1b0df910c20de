"""Names: what looks alike, what names nobody, and that honest names of any script are neither."""

import csv
import re
import runpy
import time
import unicodedata
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from confusable_homoglyphs import categories
from confusable_homoglyphs import confusables as older
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from heldout.board.log.manifest import team_key
from heldout.board.policy import names

HONEST = (
    "Baidu NLP", "Łódź NLP", "Università della Svizzera italiana",
    "Sebastian Hofstätter (TU Wien)", "Đại học Bách khoa Hà Nội", "Яндекс Поиск",
    "МГУ им. Ломоносова", "Εθνικό Μετσόβιο Πολυτεχνείο", "清华大学 THUIR",
    "中国科学院计算技术研究所", "東京大学情報理工", "筑波大学 データ知識ラボ", "네이버 검색",
    "카카오 엔터프라이즈 AI팀", "جامعة القاهرة", "دانشگاه تهران", "הטכניון", "אוניברסיטת בר-אילן",
    "भारतीय प्रौद्योगिकी संस्थान", "จุฬาลงกรณ์มหาวิทยาลัย",
    "თბილისის უნივერსიტეტი", "L3S", "h2oloo", "NRC", "王", "Яндекс / Yandex",
)  # fmt: skip
LETTERS = st.text(max_size=60)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("B\u0430idu NLP", id="Cyrillic a"),
        pytest.param("\u0412aidu NLP", id="Cyrillic capital"),
        pytest.param("Ba\u03b9du NLP", id="Greek iota"),
        pytest.param("\U0001d401\U0001d41a\U0001d422du NLP!", id="mathematical letters"),
        pytest.param("Ba1du NLP", id="one for l and i"),
        pytest.param("Baidu NIP", id="capital I for l"),
    ],
)
def test_confusable_characters_look_like_the_name_they_imitate(name: str) -> None:
    assert names.skeleton(name) == names.skeleton("Baidu NLP")
    assert names.compare_names(name, "Baidu NLP") is not None
    assert names.compare_names(name, "Elastic") is None


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
    assert names.compare_names(name, other) == "confusable"
    assert names.compare_names(other, name) == "confusable"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Bai\u200ddu NLP", id="zero-width joiner"),
        pytest.param("Bai\u200bdu NLP", id="zero-width space"),
        pytest.param("\u202eBaidu NLP\u202c", id="bidi override"),
        pytest.param("B\u0301a\u0316\u0301idu NLP", id="combining marks"),
        pytest.param("Baidu NLP.", id="trailing dot"),
        pytest.param("Baidu-NLP", id="punctuation"),
        pytest.param("BaiduNLP", id="no blank"),
        pytest.param("NLP, Baidu", id="swapped words"),
        pytest.param("NLP BAIDU", id="swapped words and capitals"),
    ],
)
def test_a_variant_that_only_looks_different_is_another_spelling(name: str) -> None:
    assert team_key(name) != team_key("Baidu NLP")
    assert names.compare_names(name, "Baidu NLP") == "spelling"


@pytest.mark.parametrize("name", ["BAIDU NLP", "\uff22\uff21\uff29\uff24\uff35 NLP", " baidu  nlp"])
def test_all_capitals_and_fullwidth_are_the_same_team(name: str) -> None:
    assert team_key(name) == team_key("Baidu NLP")
    assert names.compare_names(name, "Baidu NLP") is None
    assert names.skeleton(name) == names.skeleton("Baidu NLP")


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
    assert names.compare_names(one, two) == kind


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_letters_are_folded_as_any_others(name: str) -> None:
    """Words of ASCII letters take a shorter way, which a word of another script shuts off."""
    for words in (names.spelling_words, names.skeleton_words):
        assert words(f"{name} ж") == (*words(name), *words("ж"))


@given(st.text("abcd", max_size=12), st.text("abcd", max_size=12), st.integers(0, 5))
def test_edits_are_counted_as_another_library_counts_them(one: str, two: str, most: int) -> None:
    assert names.count_edits(one, two, most=most) == OSA.distance(one, two, score_cutoff=most)


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "-", "?!", "\u200b", "12345", "١٢٣", "X", "x1", "😀", "N/A", "N.A.", "n/a", "None",
        "Team 1", "team_b", "user123", "My Team", "myteam", "Test-Team", "ANONYMOUS", "An0nymous",
        "\u0410nonymous", "Anonymous Authors", "Anonymous7", "University", "Research Group",
        "Équipe", "Анонимно", "Ανώνυμος", "匿名", "匿名团队", "名無しさん", "익명 팀",
        "مجهول", "אנונימי", "अज्ञात टीम", "ไม่ระบุชื่อ",
    ],
)  # fmt: skip
def test_a_name_of_nobody_in_any_script_is_generic(name: str) -> None:
    assert names.is_generic(name)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_name_of_any_script_is_itself(name: str) -> None:
    assert not names.is_generic(name)
    assert names.mixed_words(name) == ()
    assert [other for other in HONEST if names.compare_names(name, other) is not None] == []


@pytest.mark.parametrize("name", ["Independent", "Independent researcher", "self-employed"])
def test_a_person_without_an_institution_has_an_answer(name: str) -> None:
    assert not names.is_generic(name)


@pytest.mark.parametrize("name", ["MSMARCO Team", "ms marco", "Team MS-MARC0"])
def test_the_boards_own_name_is_taken(name: str) -> None:
    assert names.claims_name(name, ["Elastic", "MS MARCO"]) == "MS MARCO"
    assert names.claims_name("MS MARCO fans", ["MS MARCO"]) is None
    assert names.claims_name("", ["", "team"]) is None


def test_a_word_of_two_scripts_is_mixed_but_a_name_of_two_is_not() -> None:
    assert names.mixed_words("B\u0430idu NLP") == ("B\u0430idu",)
    assert names.mixed_words("\u03bcIR lab") == ("\u03bcIR",)
    assert names.mixed_words("百度NLP 東京ラボAI 네이버AI Яндекс Yandex") == ()


@pytest.mark.parametrize("piece", ["a", "A\u0430", "user", "匿名", "\u0316\u0301", "1", "ﷺ"])
def test_a_name_of_ten_thousand_characters_takes_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        name = (piece * length)[:length]
        start = time.process_time()
        names.skeleton(name), names.is_generic(name), names.mixed_words(name)
        return time.process_time() - start

    names.skeleton("warm")
    # Ten times the length; quadratic time would be a hundredfold.
    assert seconds(10_000) < 40 * max(seconds(1_000), 0.002)


@given(LETTERS)
def test_a_name_never_resembles_itself_and_folding_is_stable(name: str) -> None:
    assert names.compare_names(name, name) is None
    assert names.spelling_words(" ".join(names.spelling_words(name))) == names.spelling_words(name)


@given(LETTERS, LETTERS)
def test_likeness_has_no_direction(one: str, two: str) -> None:
    assert names.compare_names(one, two) == names.compare_names(two, one)


@given(LETTERS)
def test_marks_and_dots_in_between_change_nothing_that_is_seen(name: str) -> None:
    assert names.skeleton(f"{name}\u200b.") == names.skeleton(name)
    assert names.is_generic(f"  {name}!") == names.is_generic(name)


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
    assert {team for team in teams if names.is_generic(team)} == {"Anonymous", "anonymous"}
    assert {team for team in teams if names.mixed_words(team)} == set()


@pytest.mark.real
def test_every_reported_pair_of_real_teams_is_one_team(boards: dict[str, set[str]]) -> None:
    found = sorted(
        (one[:16], two[:16], kind)
        for teams in boards.values()
        for one, two in combinations(sorted(teams), 2)
        if (kind := names.compare_names(one, two)) is not None
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


ROOT = Path(__file__).parents[2]
tool = SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "confusables.py")))
MARK = "\u200e"  # stands around right-to-left characters in the older package

CONFUSABLES = """\
# confusables.txt
# Date: 2026-08-06, 01:05:35 GMT
# © 2026 Unicode®, Inc.
# Version: 18.0.0

0430 ;\t0061 ;\tMA\t# CYRILLIC SMALL LETTER A
0251 ;\t0061 ;\tMA\t# LATIN SMALL LETTER ALPHA
FB04 ;\t0066 0066 006C ;\tMA\t# ( ﬄ → ffl )
"""
SCRIPTS = """\
# Scripts-18.0.0.txt
# Date: 2026-06-29, 15:25:26 GMT
# © 2026 Unicode®, Inc.

0041..005A    ; Latin # L&  [26] LATIN CAPITAL LETTER A..LATIN CAPITAL LETTER Z
005B          ; Latin # one more beside them
0030..0039    ; Common # Nd  [10] DIGIT ZERO..DIGIT NINE
03B1          ; Greek # L& GREEK SMALL LETTER ALPHA
"""


def files(**other: str) -> dict[str, bytes]:
    texts = {"confusables.txt": CONFUSABLES, "Scripts.txt": SCRIPTS} | other
    return {name: text.encode() for name, text in texts.items()}


def test_the_tool_reduces_both_files() -> None:
    table = tool.format_table(files())
    assert "Unicode 18.0.0, reduced" in table
    assert "# confusables.txt of 2026-08-06, SHA-256 " in table
    rows = [line for line in table.splitlines() if line and not line.startswith("#")]
    assert rows == ["61; 251 430", "66+66+6C; FB04", "Greek; 3B1", "Latin; 41-5B"]


def test_the_tool_refuses_files_of_two_versions() -> None:
    with pytest.raises(ValueError, match=r"one version wanted, not of 17\.0\.0 and 18\.0\.0"):
        tool.format_table(files(**{"Scripts.txt": SCRIPTS.replace("18.0.0", "17.0.0")}))
    with pytest.raises(ValueError, match=r"confusables\.txt: no line like"):
        tool.format_table(files(**{"confusables.txt": "nothing"}))


def test_the_table_says_where_it_comes_from() -> None:
    head = tool.TABLE.read_text("utf-8").split("\n\n")[0]
    assert re.search(r"Unicode \d+\.0\.0, reduced", head)
    assert len(re.findall(r"SHA-256 [0-9a-f]{64}$", head, re.MULTILINE)) == 2
    notice = re.search(r"LICENSES/\S+", head)
    assert notice
    assert "Unicode, Inc." in (ROOT / notice[0]).read_text("utf-8")


def test_every_prototype_stands_for_itself() -> None:
    found = names.prototypes()
    assert len(found) > 6000
    assert [code for code, text in found.items() if text.translate(found) != text] == []


def test_no_range_of_a_script_meets_another() -> None:
    _, ranges = tool.TABLE.read_text("utf-8").split("\n\n")[1:]
    found = []
    for line in ranges.splitlines()[1:]:
        for codes in line.partition(";")[2].split():
            first, _, last = codes.partition("-")
            found.append((int(first, 16), int(last or first, 16)))
    assert all(one[1] < two[0] for one, two in pairwise(sorted(found)))


# The package knows Unicode 15.1 and reads its own copy of the files.


def older_pairs() -> list[tuple[str, str]]:
    """Every character of 15.1 that looks like an ASCII letter or digit, with that.

    Without those that names lose before (NFKC), such as the long s, which becomes an s.
    """
    pairs = [
        (source.replace(MARK, ""), other["c"].replace(MARK, ""))
        for source, others in older.confusables_data.items()
        for other in others
    ]
    return [
        (source, other)
        for source, other in pairs
        if len(source) == 1 and not source.isascii() and other.isascii() and other.isalnum()
        if unicodedata.normalize("NFKC", source) == source
    ]


def test_what_looked_like_ascii_in_an_older_unicode_still_does() -> None:
    pairs = older_pairs()
    assert len(pairs) > 400
    lost = {source for source, other in pairs if names.skeleton(source) != names.skeleton(other)}
    # Unicode 18 took both back: a letter of Elbasan for C, one of Warang Citi for z.
    assert lost == {"\U0001051c", "\U000118c4"}


def test_scripts_are_those_of_an_older_unicode() -> None:
    shared = {"COMMON", "INHERITED", "Unknown"}
    none = {"Cn", "Cs"}
    assigned = [one for one in map(chr, range(0x20000)) if unicodedata.category(one) not in none]
    found = {
        character: (was, names.script(character))
        for character in assigned
        if (was := categories.alias(character)) not in shared
    }
    assert len(found) > 50_000
    changed = {c: name for c, (was, name) in found.items() if (name or "").upper() != was}
    assert changed == {}
