"""Names of teams and institutions: those that name nobody, and those that resemble another.

A name is compared with others by what it looks like (`skeleton`), never by who may be behind it.
Thresholds were set on the team names of the MS MARCO boards, TREC-COVID and TREC Deep Learning;
tests/board/test_names.py lists every pair of them that is reported.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Literal

from rapidfuzz.distance import OSA

from heldout.board.log.manifest import team_key
from heldout.board.policy.skeleton import skeleton, skeleton_words, spelling_words

__all__ = [
    "Likeness",
    "claims_name",
    "compare_names",
    "is_generic",
    "without_fillers",
]

Likeness = Literal["spelling", "confusable", "number", "near"]
"""`spelling`: equal but for accents, punctuation, spacing or the order of words. `confusable`:
equal to the eye. `number`: equal but for digits. `near`: some words are nearly the same, the
others are."""

_LETTERS_PER_EDIT = 5
_KEPT = 1 << 12
_FEWEST_LETTERS = 3
_SHORTEST_PART, _LONGEST_PART = 4, 16


def compare_names(first: str, second: str) -> Likeness | None:
    """In which way two names resemble each other; `None` if they do not, or are the same.

    Near are names whose differing words, joined, are at most one edit per five letters apart (a
    swap of neighbours is one edit), so that two persons of one long institution are not near,
    and abbreviations of three or four letters never are.
    """
    if team_key(first) == team_key(second):
        return None
    one, two = spelling_words(first), spelling_words(second)
    if "".join(one) == "".join(two) or sorted(one) == sorted(two):
        return "spelling" if one else None
    one, two = skeleton_words(first), skeleton_words(second)
    if "".join(one) == "".join(two) or sorted(one) == sorted(two):
        return "confusable"
    if _same_but_digits(first, second):
        return "number"
    return "near" if _are_near(one, two) else None


def is_generic(name: str) -> bool:
    """Whether a name names nobody: empty, a placeholder, or words that any team could use.

    Numbers and single letters add nothing: "Team 1", "user123" and "Group B" are generic.

    Args:
        name: of a team or an institution.

    Source: fostering-coopetition, section 3.3, Participant Identity; the words are ours.
    """
    return not without_fillers(name)


def claims_name(name: str, reserved: Iterable[str]) -> str | None:
    """The reserved name that a name amounts to once words such as "team" are left out.

    Args:
        name: of a team.
        reserved: the board's and the organisers' own names.
    """
    core = _core(name)
    return next((own for own in reserved if core and core == _core(own)), None)


def without_fillers(name: str) -> tuple[str, ...]:
    """The words of a name that not any name could have, case and accents folded."""
    return tuple(word for word in spelling_words(name) if not _is_filler(word))


def _same_but_digits(first: str, second: str) -> bool:
    one, two = ("".join(_without_digits(w) for w in spelling_words(n)) for n in (first, second))
    return one == two and len(one) >= _FEWEST_LETTERS


def _without_digits(word: str) -> str:
    return "".join(character for character in word if not character.isnumeric())


def _are_near(one: Sequence[str], two: Sequence[str]) -> bool:
    left = "".join((Counter(one) - Counter(two)).elements())
    right = "".join((Counter(two) - Counter(one)).elements())
    allowed = min(len(left), len(right)) // _LETTERS_PER_EDIT
    return allowed > 0 and OSA.distance(left, right, score_cutoff=allowed) <= allowed


def _core(name: str) -> str:
    return skeleton("".join(without_fillers(name)))


@lru_cache(maxsize=_KEPT)
def _is_filler(word: str) -> bool:
    """A number, a single letter, or a word of the table that may be numbered."""
    letters = _without_digits(word)
    if not letters or (len(letters) == 1 and letters.isascii()):
        return True
    return any(_is_made_of_fillers(skeleton(text)) for text in (word, letters))


def _is_made_of_fillers(word: str) -> bool:
    """Whether a skeleton is a filler, or several written as one."""
    fillers, parts = _fillers()
    ends = {0}
    for end in range(1, len(word) + 1):
        starts = range(max(0, end - _LONGEST_PART), end)
        if any(start in ends and word[start:end] in parts for start in starts):
            ends.add(end)
    return word in fillers or len(word) in ends


@cache
def _fillers() -> tuple[frozenset[str], frozenset[str]]:
    """Skeletons of all fillers, and of those that are long enough to be told inside a word."""
    words = _FILLERS.split()
    parts = (word for word in words if len(word) >= _SHORTEST_PART or not word.isascii())
    return frozenset(map(skeleton, words)), frozenset(map(skeleton, parts))


_FILLERS = """
a an and any at by de for i in me my no none not of on or other our some the this to us we with
anon anonim anonimo anónimo anónima anonimowy anoniem anonym anonyme anonyma anonymity anonymized
anonymised anonymous anonymously anonymus bilinmeyen danh desconocida desconocido hidden inconnu
inconnue name nameless nobody noname noone secret sconosciuto unbekannt undisclosed unknown unnamed
untitled ẩn
abc applicable asdf author authors available blank default demo dummy empty entrant example foo
foobar given ipsum lorem missing n/a na nan nil null participant participants person placeholder
private provided qwerty sample someone specified submission submitter tba tbd temp test tester
testing todo user username xxx xxxx xyz
company equipe équipe equipo group groupe grupo gruppe gruppo institute institution lab laboratory
labs mannschaft myteam organisation organization research researcher researchers school squadra
student students takim team teams university zespół
аноним анонимная анонимно анонимный анонімно анонімний группа команда неизвестно неизвестный
пользователь тест
άγνωστος ανώνυμη ανώνυμος ομάδα
غير معروف مجهول مجهولة فريق گمنام ناشناس تیم
אלמוני אנונימי לא ידוע צוות
अज्ञात अनाम गुमनाम टीम
ทีม นิรนาม ไม่ระบุชื่อ
不明 匿名 匿名希望 名無し さん 小组 小組 无名 無名 无名氏 無名氏 未知 测试 測試 团队 團隊 队伍 隊伍
用户 用戶 大学 大學 大学院 テスト チーム グループ
무명 익명 사용자 테스트 팀 대학교
"""
