"""Whether a public id or text gives away who sent a submission, though an embargo hides that."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

from rapidfuzz.distance import OSA

from heldout.board.policy.links import link_key
from heldout.board.policy.names import without_fillers
from heldout.board.policy.skeleton import skeleton, skeleton_words
from heldout.errors import quote
from heldout.ids import SubmissionId

__all__ = ["mentions", "resembles"]

_SHORTEST = 3
_BEGINNING = 4
_INSIDE = 5
_NEAR = 6
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_SEGMENT = re.compile(r"[,;()—–|/&]|\s-\s|\band\b")
# Said of what a team works on or of any institution: no name in itself.
_COMMON = frozenset(
    """
    academy and anserini baseline bert bing center centre china chinese college colbert computer
    computing corp data deep department dev dense doc document enterprise eval for foundation
    full inc information intelligence international knowledge language large learning limited
    ltd marco media mining model msmarco national natural neural nlp north open passage
    processing query rank ranker ranking reranker reranking retrieval run science sciences
    search service software south sparse state system systems tech technical technology text the
    union west east
    """.split()  # noqa: SIM905  # a table of words reads as one
)
_AROUND = "<>()[]{}\"'`.,;:!?"
_SMALL = frozenset(("and", "at", "de", "della", "for", "in", "of", "the"))


def resembles(submission_id: SubmissionId, team: str, institution: str = "") -> str | None:
    """What in an id reminds of the team, its people or its institution.

    Looked for are their words (whole from three letters on, at the beginning of a part of the id
    from four, anywhere in it from five), the beginnings and near spellings of words, initials of
    three letters or more, and a word with the first letter of its neighbour, as in an account
    name. Letters count as what they look like.

    Args:
        submission_id: `yyyymmdd-suffix`; only the suffix is looked at.
        team: as in the metadata; often the names of people and the institution too.
        institution: as in the metadata, or "".

    Returns:
        The evidence in a sentence, or `None`. It names the team: for the organisers and the team.
    """
    suffix = submission_id.partition("-")[2]
    pieces = {skeleton(piece): piece for piece in _split_id(suffix)}
    whole = skeleton(suffix)
    for name in (team, institution):
        for word, said in _telling_words(name):
            piece = next((shown for piece, shown in pieces.items() if _is_like(piece, word)), None)
            inside = len(word) >= _INSIDE and word in whole
            if piece is not None or inside:
                return f"{quote(piece or suffix)} in the id is like {said} {quote(name)}"
    return None


def mentions(
    text: str, team: str, institution: str = "", *, links: Iterable[str] = ()
) -> str | None:
    """What in a text tells the team, its people, its institution, its paper or its code.

    Looked for are the names themselves, and in each word what `resembles` looks for in a part of
    an id; of links, the same address in whatever form.

    Args:
        text: in prose.
        team: as in the metadata.
        institution: as in the metadata, or "".
        links: of the metadata; "" and what is no link count for nothing.

    Returns:
        The evidence in a sentence, or `None`. It names the team: for the organisers.
    """
    tokens = [token.strip(_AROUND) for token in text.split()]
    linked = {key for token in tokens if (key := link_key(token))}
    for link in links:
        if link_key(link) in linked:
            return f"it links {quote(link)}"
    pieces = {skeleton(p): p for t in tokens for p in _split_id(t) if without_fillers(p)}
    for name in (team, institution):
        if _has_words(text, name):
            return f"it says {quote(name)}"
        for word, said in _telling_words(name):
            inside = len(word) >= _INSIDE
            for piece, shown in pieces.items():
                if _is_like(piece, word) or (inside and word in piece):
                    return f"{quote(shown)} is like {said} {quote(name)}"
    return None


def _has_words(text: str, name: str) -> bool:
    """Whether a text has a name as it stands, whatever it is made of."""
    words, wanted = skeleton_words(text), skeleton_words(name)
    size = len(wanted)
    starts = range(len(words) - size + 1)
    return size > 0 and any(words[at : at + size] == wanted for at in starts)


def _split_id(suffix: str) -> Iterator[str]:
    """The parts between punctuation, and those that capitals and digits set apart."""
    for part in re.split(r"[-_.]+", suffix):
        yield part
        yield from _PIECE.findall(part)


def _is_like(piece: str, word: str) -> bool:
    if min(len(piece), len(word)) < _SHORTEST or piece in _common():
        return False
    begins = (len(piece) >= _INSIDE and word.startswith(piece)) or (
        len(word) >= _BEGINNING and piece.startswith(word)
    )
    if piece == word or begins:
        return True
    near = min(len(piece), len(word)) >= _NEAR
    return near and OSA.distance(piece, word, score_cutoff=1) <= 1


def _telling_words(name: str) -> Iterator[tuple[str, str]]:
    """Skeletons to look for, with what each is of a name."""
    words = _without_common(w for part in name.split() for w in without_fillers(part))
    pieces = _without_common(w for w in _PIECE.findall(name) if without_fillers(w))
    yield from ((skeleton(word), f"{quote(word)} of") for word in (*words, *pieces))
    for initials in dict.fromkeys(_initials(name)):
        yield skeleton(initials), f"the initials {quote(initials)} of"
    for pair in pairwise(word for part in name.split() for word in without_fillers(part)):
        for one, other in (pair, pair[::-1]):
            for short in (one + other[0], other[0] + one):
                if len(short) >= _BEGINNING and skeleton(one) not in _common():
                    yield skeleton(short), f"{quote(' '.join(pair))} of"


def _without_common(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        word
        for word in words
        if len(skeleton(word)) >= _SHORTEST and skeleton(word) not in _common()
    )


def _initials(name: str) -> Iterator[str]:
    """First letters of the words between commas, dashes and brackets.

    With and without words such as "of", and with abbreviations whole: "Bosch Center for AI" may be
    bcfa, bca or bcai.
    """
    for segment in _SEGMENT.split(name):
        words = re.findall(r"\w+", segment)
        longer = [word for word in words if word.lower() not in _SMALL]
        whole = [word if word.isupper() else word[0] for word in longer]
        for some in (words, longer):
            yield "".join(word[0] for word in some).lower()
        yield "".join(whole).lower()


@cache
def _common() -> frozenset[str]:
    return frozenset(map(skeleton, _COMMON))
