"""Who is who: the evidence that two teams are one, or that an id gives an embargoed team away.

Every function says what is the case, never who is guilty: groups of one organisation are teams
of their own, and a person may be in several (Lin et al. 2022, §3.3). What is found
is for the organisers. A participant sees what public entries alone give: even "it resembles the
name of an entry under embargo" would let anybody try names until one answers.

Links to papers and code, brought to one form so that the same work is seen to be the same.

Whether a public id or text gives away who sent a submission, though an embargo hides that.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Literal, get_args
from urllib.parse import parse_qs, urlsplit

from heldout.board.log.history import History
from heldout.board.log.manifest import is_link, team_key
from heldout.board.policy import names
from heldout.board.rules.spec import read_table
from heldout.errors import quote
from heldout.ids import Digest, SubmissionId, digest_bytes

_ARXIV = re.compile(r"/(?:abs|pdf|html)/([a-z-]+/\d{7}|\d{4}\.\d{4,5})(?:v\d+)?", re.ASCII)
_DOI = re.compile(r"10\.\d{4,9}/[^\s?#]+", re.ASCII)
_FORGES = frozenset(("github.com", "gitlab.com", "codeberg.org", "bitbucket.org"))
_OPENREVIEW = "openreview.net"
_OWNER_AND_NAME = 2
_CACHED = 1 << 15  # links and names of a large board: each is asked for by several rules


@lru_cache(maxsize=_CACHED)
def link_key(link: str) -> str:
    """Return what a link points to, the same for every form of its address.

    arXiv papers lose form and version, DOIs their resolver, repositories all after their name.

    Args:
        link: an http or https address.

    Returns:
        "" for what is no link, and for a bare site or account, which many teams may share.
    """
    if not is_link(link):
        return ""
    parts = urlsplit(link)
    host = (parts.hostname or "").removeprefix("www.")
    path = re.sub(r"(\.git|\.pdf)?/*$", "", parts.path)
    if host.endswith("arxiv.org") and (paper := _ARXIV.match(path)):
        return f"arxiv:{paper[1]}"
    if doi := _DOI.search(path):
        return f"doi:{doi[0].lower()}"
    if host in _FORGES:
        words = path.lower().split("/")[1 : 1 + _OWNER_AND_NAME]
        return "/".join((host, *words)).removesuffix(".git") if len(words) > 1 else ""
    if host == _OPENREVIEW:
        return "/".join((host, *parse_qs(parts.query).get("id", [])))
    return f"{host}{path}{'?' + parts.query if parts.query else ''}" if path else ""


_SHORTEST = 3
_BEGINNING = 4
_INSIDE = 5
_NEAR = 6
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_SEGMENT = re.compile(r"[,;()—–|/&]|\s-\s|\band\b")
_AROUND = "<>()[]{}\"'`.,;:!?"
_SMALL = frozenset(("and", "at", "de", "della", "for", "in", "of", "the"))


def resembles(submission_id: SubmissionId, team: str, institution: str = "") -> str | None:
    """Return what in an id reminds of the team, its people or its institution.

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
    pieces = {names.skeleton(piece): piece for piece in _split_id(suffix)}
    whole = {names.skeleton(suffix): suffix}
    for name in (team, institution):
        if found := _find_words(name, pieces, whole, where=" in the id"):
            return found
    return None


def mentions(
    text: str, team: str, institution: str = "", *, links: Iterable[str] = ()
) -> str | None:
    """Return what in a text tells the team, its people, its institution, its paper or its code.

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
    pieces = {
        names.skeleton(p): p for t in tokens for p in _split_id(t) if names.without_fillers(p)
    }
    for name in (team, institution):
        if _has_words(text, name):
            return f"it says {quote(name)}"
        if found := _find_words(name, pieces, pieces):
            return found
    return None


def _find_words(
    name: str, pieces: Mapping[str, str], whole: Mapping[str, str], *, where: str = ""
) -> str | None:
    """Return what is like a word of a name, of pieces, or has it inside, of longer texts."""
    for word, said in _telling_words(name):
        like = (shown for piece, shown in pieces.items() if _is_like(piece, word))
        inside = (shown for text, shown in whole.items() if len(word) >= _INSIDE and word in text)
        if (found := next(chain(like, inside), None)) is not None:
            return f"{quote(found)}{where} is like {said} {quote(name)}"
    return None


def _has_words(text: str, name: str) -> bool:
    """Check whether a text has a name as it stands, whatever it is made of."""
    # What ð looks like is a symbol and no word: as it is spelt, it is one.
    folds = (names.skeleton_words, names.spelling_words)
    return any(
        f" {' '.join(fold(name))} " in f" {' '.join(fold(text))} " for fold in folds if fold(name)
    )


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
    return near and names.count_edits(piece, word, most=1) <= 1


def _telling_words(name: str) -> Iterator[tuple[str, str]]:
    """Skeletons to look for, with what each is of a name."""
    words = _without_common(w for part in name.split() for w in names.without_fillers(part))
    pieces = _without_common(w for w in _PIECE.findall(name) if names.without_fillers(w))
    yield from ((names.skeleton(word), f"{quote(word)} of") for word in (*words, *pieces))
    for initials in dict.fromkeys(_initials(name)):
        yield names.skeleton(initials), f"the initials {quote(initials)} of"
    for pair in pairwise(word for part in name.split() for word in names.without_fillers(part)):
        for one, other in (pair, pair[::-1]):
            for short in (one + other[0], other[0] + one):
                if len(short) >= _BEGINNING and names.skeleton(one) not in _common():
                    yield names.skeleton(short), f"{quote(' '.join(pair))} of"


def _without_common(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        word
        for word in words
        if len(names.skeleton(word)) >= _SHORTEST and names.skeleton(word) not in _common()
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
    return frozenset(map(names.skeleton, read_table("words")["common"].split()))


Reader = Literal["organiser", "team"]
"""Who reads the evidence: the organisers see all entries, a team only what is public."""

TieKind = Literal["key", "paper", "code", "institution", "name"]
"""`key`, `paper`, `code`: two teams have the same one. `institution`: two teams of one
institution have names with much in common. `name`: one team's name under another institution."""

TIE_KINDS: tuple[TieKind, ...] = get_args(TieKind)

_SHARED = 0.5
_WORD = 3
_NAMED = 5
_KEY_PURPOSE = b"heldout submission key\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A submission as far as it says who sent it.

    Attributes:
        submission: its id.
        team, institution, paper, code: as in the metadata; "" where nothing is said.
        key: of `key_digest`; "" where it is not known.
        hidden: whether the public does not know who sent it.
        renamed: the name in force where `team` is a former one; "" where it is not.
    """

    submission: str
    team: str
    institution: str = ""
    paper: str = ""
    code: str = ""
    key: str = ""
    hidden: bool = False
    renamed: str = ""


def key_digest(key: bytes) -> Digest:
    """Return what a submission's opened key is compared by, across submissions.

    A key has 256 random bits, so the digest needs no salt to hide it. It must stay in the vault
    all the same: two equal ones tie an embargoed entry to an open one.

    Args:
        key: as `envelope.bundle.open_key` gives it; blanks at its ends do not count.
    """
    return digest_bytes(_KEY_PURPOSE + key.strip())


def list_entrants(history: History, *, day: date, keys: Mapping[str, str]) -> tuple[Entrant, ...]:
    """Everybody who ever submitted, a line for each name that a submission has had.

    Args:
        history: the board's; by the public log alone sealed identities are not seen.
        day: an embargo that ends later hides its entry.
        keys: submission -> `key_digest`; may lack some.
    """
    return tuple(
        Entrant(
            submission=submission.id,
            team=team,
            institution=submission.identity.institution,
            paper=submission.identity.paper,
            code=submission.identity.code,
            key=keys.get(submission.id, ""),
            hidden=submission.status != "published"
            or (submission.embargo_until is not None and submission.embargo_until > day),
            renamed="" if team == submission.identity.team else submission.identity.team,
        )
        for submission in history.submissions.values()
        if submission.identity is not None
        for team in submission.teams
    )


def visible_to(reader: Reader, others: Iterable[Entrant]) -> tuple[Entrant, ...]:
    """The entrants that evidence for a reader may rest on."""
    return tuple(other for other in others if reader == "organiser" or not other.hidden)


def same_people(
    entrant: Entrant, others: Iterable[Entrant], *, kinds: Collection[TieKind] = TIE_KINDS
) -> Sequence[tuple[TieKind, Entrant]]:
    """Return what ties a submission to those of other teams, or its name to another institution.

    Args:
        entrant: the submission.
        others: those known; itself among them does no harm.
        kinds: what is looked for.

    Returns:
        What they share, though their teams differ, with the other submission; in the order of the
        others, and each once per kind.
    """
    found = {
        (kind, other.submission): (kind, other)
        for other in others
        if not _is_own(entrant, other)
        for kind in _ties(entrant, other, kinds)
    }
    return [*found.values()]


def name_evidence(name: str, what: str, *, reserved: Iterable[str] = ()) -> Iterator[str]:
    """Yield why a name does not do.

    Args:
        name: of a team or institution.
        what: "team" or "institution".
        reserved: names that are the board's and its organisers' own.
    """
    if names.is_generic(name):
        yield f"{quote(name)} names no {what}"
    elif (own := names.claims_name(name, reserved)) is not None:
        yield f"{quote(name)} is the name of the board or its organisers, {quote(own)}"


def script_evidence(name: str) -> Iterator[str]:
    """The words of a name that mix scripts, with the characters that are strange in them."""
    for word in names.mixed_words(name):
        strange = [character for character in word if not character.isascii()]
        yield f"{quote(word)} mixes scripts: {_describe(strange[:3])}"


def look_alike_evidence(
    entrant: Entrant, others: Sequence[Entrant], *, reader: Reader
) -> Iterator[str]:
    """The names of other teams that may be taken for this one's, with their submissions."""
    submissions: dict[str, list[str]] = defaultdict(list)
    for other in visible_to(reader, others):
        if not _is_own(entrant, other):
            submissions[other.team].append(other.submission)
    for name, ids in submissions.items():
        kind = names.compare_names(entrant.team, name)
        if kind is None:
            continue
        likeness = read_table("words")["names"][kind]
        said = f"{quote(entrant.team)} {likeness} {quote(name)} ({some_ids(ids)})"
        strange = [one for one in dict.fromkeys(entrant.team) if one not in name]
        where = f": {_describe(strange[:3])}" if kind == "confusable" and strange else ""
        yield said + where


def tie_evidence(
    entrant: Entrant, others: Sequence[Entrant], *, kinds: Iterable[TieKind], reader: Reader
) -> Iterator[str]:
    """The ties of some kinds, one sentence for each kind and other team."""
    wanted = set(kinds)
    groups: dict[tuple[TieKind, str], list[Entrant]] = defaultdict(list)
    for kind, other in same_people(entrant, visible_to(reader, others), kinds=wanted):
        groups[kind, team_key(other.team)].append(other)
    for (kind, _), tied in groups.items():
        ids = some_ids([other.submission for other in tied])
        yield f"{read_table('words')['ties'][kind]} {quote(tied[0].team)} ({ids})"


def _is_own(entrant: Entrant, other: Entrant) -> bool:
    """Check whether a line is of the submission itself, or a name that its own team has given up.

    Whoever repaired a misspelt name would else look like somebody else for ever.
    """
    repaired = bool(other.renamed) and team_key(other.renamed) == team_key(entrant.team)
    return repaired or other.submission == entrant.submission


def _ties(entrant: Entrant, other: Entrant, kinds: Collection[TieKind]) -> Iterator[TieKind]:
    if team_key(entrant.team) == team_key(other.team):
        named = "name" in kinds and entrant.institution and other.institution
        if named and not _one_institution(entrant, other):
            yield "name"
        return
    if "key" in kinds and entrant.key and entrant.key == other.key:
        yield "key"
    if "paper" in kinds and _is_same_link(entrant.paper, other.paper):
        yield "paper"
    if "code" in kinds and _is_same_link(entrant.code, other.code):
        yield "code"
    # The last question takes longer, and mostly the one before says no.
    wanted = "institution" in kinds and _much_in_common(entrant, other)
    if wanted and _one_institution(entrant, other):
        yield "institution"


def _is_same_link(one: str, two: str) -> bool:
    key = link_key(one)
    if not key or not two:
        return False
    # The end of a key is part of each address that has it; ids of OpenReview may be escaped there.
    # To look for it takes a tenth of the time that it takes to parse an address.
    end = re.split("[/:]", key.casefold())[-1]
    likely = key.startswith(f"{_OPENREVIEW}/") or end in two.casefold()
    return likely and key == link_key(two)


def _one_institution(entrant: Entrant, other: Entrant) -> bool:
    """Equal, alike, one within the other, or one the initials of the other."""
    one, two = entrant.institution, other.institution
    if names.is_generic(one) or names.is_generic(two):
        return False
    if team_key(one) == team_key(two) or names.compare_names(one, two) not in (None, "number"):
        return True
    left, right = set(names.spelling_words(one)), set(names.spelling_words(two))
    return left <= right or right <= left or _abbreviates(one, two) or _abbreviates(two, one)


def _abbreviates(short: str, long: str) -> bool:
    words = names.spelling_words(long)
    initials = {"".join(word[0] for word in words)}
    initials.add("".join(word[0] for word in words if word not in _SMALL_WORDS))
    return names.skeleton(short) in map(names.skeleton, initials)


def _much_in_common(entrant: Entrant, other: Entrant) -> bool:
    """Check whether half of the telling words of the shorter team name are in the other's.

    Names that look alike are left to `look_alike_evidence`.
    """
    # A word is a team's own whoever has it, so that the other's words need no looking at.
    if _own_words(entrant.team).isdisjoint(names.spelling_words(other.team)):
        return False
    if names.compare_names(entrant.team, other.team) is not None:
        return False
    institution = {
        *names.spelling_words(entrant.institution),
        *names.spelling_words(other.institution),
    }
    one, two = (_own_words(name) - institution for name in (entrant.team, other.team))
    return bool(one and two) and len(one & two) >= _SHARED * min(len(one), len(two))


@lru_cache(maxsize=_CACHED)
def _own_words(name: str) -> frozenset[str]:
    """The words of a team's name that not any name could have."""
    long = {
        word for word in names.without_fillers(name) if len(word) >= _WORD or not word.isascii()
    }
    return frozenset(long - _SMALL_WORDS)


def _describe(characters: Iterable[str]) -> str:
    return ", ".join(
        f"U+{ord(character):04X} {unicodedata.name(character, 'without a name')}"
        for character in characters
    )


def some_ids(ids: Sequence[str]) -> str:
    """Ids in a sentence, the first of many and how many more."""
    shown = ", ".join(ids[:_NAMED])
    return shown + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")


_SMALL_WORDS = frozenset(
    ("and", "at", "de", "del", "della", "der", "des", "di", "du", "et", "for", "für", "in", "la")
) | {"of", "the", "und"}
