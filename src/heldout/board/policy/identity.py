"""Who is who: the evidence that two teams are one, or that an id gives an embargoed team away.

Every function says what is the case, never who is guilty: groups of one organisation are teams
of their own, and a person may be in several (fostering-coopetition, section 3.3). What is found
is for the organisers. A participant sees what public entries alone give: even "it resembles the
name of an entry under embargo" would let anybody try names until one answers.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from heldout.board.log.history import History
from heldout.board.log.manifest import team_key
from heldout.board.policy.links import link_key
from heldout.board.policy.names import (
    Likeness,
    claims_name,
    compare_names,
    is_generic,
    without_fillers,
)
from heldout.board.policy.skeleton import mixed_words, skeleton, spelling_words
from heldout.errors import quote
from heldout.ids import Digest, digest_bytes

__all__ = [
    "Entrant",
    "Reader",
    "Tie",
    "TieKind",
    "key_digest",
    "list_entrants",
    "look_alike_evidence",
    "name_evidence",
    "same_people",
    "script_evidence",
    "some_ids",
    "tie_evidence",
    "visible_to",
]

Reader = Literal["organiser", "team"]
"""Who reads the evidence: the organisers see all entries, a team only what is public."""

TieKind = Literal["key", "paper", "code", "institution", "name"]
"""`key`, `paper`, `code`: two teams have the same one. `institution`: two teams of one
institution have names with much in common. `name`: one team's name under another institution."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """Something that two submissions have in common though their teams differ.

    Attributes:
        other: the other submission.
        kind: what they share.
    """

    other: Entrant
    kind: TieKind


def key_digest(key: bytes) -> Digest:
    """What a submission's opened key is compared by, across submissions.

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


def same_people(entrant: Entrant, others: Iterable[Entrant]) -> tuple[Tie, ...]:
    """What ties a submission to those of other teams, or its name to another institution.

    Args:
        entrant: the submission.
        others: those known; itself among them does no harm.

    Returns:
        Ties in the order of the others; each other submission once per kind.
    """
    found = {
        (kind, other.submission): Tie(other=other, kind=kind)
        for other in others
        if not _is_own(entrant, other)
        for kind in _ties(entrant, other)
    }
    return tuple(found.values())


def name_evidence(name: str, what: str, *, reserved: Iterable[str] = ()) -> Iterator[str]:
    """Why a name does not do.

    Args:
        name: of a team or institution.
        what: "team" or "institution".
        reserved: names that are the board's and its organisers' own.
    """
    if is_generic(name):
        yield f"{quote(name)} names no {what}"
    elif (own := claims_name(name, reserved)) is not None:
        yield f"{quote(name)} is the name of the board or its organisers, {quote(own)}"


def script_evidence(name: str) -> Iterator[str]:
    """The words of a name that mix scripts, with the characters that are strange in them."""
    for word in mixed_words(name):
        strange = [character for character in word if not character.isascii()]
        yield f"{quote(word)} mixes scripts: {_describe(strange[:3])}"


def look_alike_evidence(
    entrant: Entrant, others: Sequence[Entrant], *, reader: Reader
) -> Iterator[str]:
    """The names of other teams that may be taken for this one's, with their submissions."""
    submissions: dict[str, list[str]] = {}
    for other in visible_to(reader, others):
        if not _is_own(entrant, other):
            submissions.setdefault(other.team, []).append(other.submission)
    for name, ids in submissions.items():
        kind = compare_names(entrant.team, name)
        if kind is not None:
            yield (
                f"{quote(entrant.team)} {_LIKENESS[kind]} {quote(name)} ({some_ids(ids)})"
                + _where_confusable(kind, entrant.team, name)
            )


def tie_evidence(
    entrant: Entrant, others: Sequence[Entrant], *, kinds: Iterable[TieKind], reader: Reader
) -> Iterator[str]:
    """The ties of some kinds, one sentence for each kind and other team."""
    wanted = set(kinds)
    groups: dict[tuple[TieKind, str], list[Entrant]] = {}
    for tie in same_people(entrant, visible_to(reader, others)):
        if tie.kind in wanted:
            groups.setdefault((tie.kind, team_key(tie.other.team)), []).append(tie.other)
    for (kind, _), tied in groups.items():
        ids = some_ids([other.submission for other in tied])
        yield f"{_TIES[kind]} {quote(tied[0].team)} ({ids})"


def _is_own(entrant: Entrant, other: Entrant) -> bool:
    """Whether a line is of the submission itself, or a name that its own team has given up.

    Whoever mended a misspelt name would else look like somebody else for ever.
    """
    mended = bool(other.renamed) and team_key(other.renamed) == team_key(entrant.team)
    return mended or other.submission == entrant.submission


def _ties(entrant: Entrant, other: Entrant) -> Iterator[TieKind]:
    if team_key(entrant.team) == team_key(other.team):
        if _both(entrant.institution, other.institution) and not _one_institution(entrant, other):
            yield "name"
        return
    if _both(entrant.key, other.key) and entrant.key == other.key:
        yield "key"
    if link_key(entrant.paper) and link_key(entrant.paper) == link_key(other.paper):
        yield "paper"
    if link_key(entrant.code) and link_key(entrant.code) == link_key(other.code):
        yield "code"
    if _one_institution(entrant, other) and _much_in_common(entrant, other):
        yield "institution"


def _both(first: str, second: str) -> bool:
    return bool(first) and bool(second)


def _one_institution(entrant: Entrant, other: Entrant) -> bool:
    """Equal, alike, one within the other, or one the initials of the other."""
    one, two = entrant.institution, other.institution
    if is_generic(one) or is_generic(two):
        return False
    if team_key(one) == team_key(two) or compare_names(one, two) not in (None, "number"):
        return True
    left, right = set(spelling_words(one)), set(spelling_words(two))
    return left <= right or right <= left or _abbreviates(one, two) or _abbreviates(two, one)


def _abbreviates(short: str, long: str) -> bool:
    words = spelling_words(long)
    initials = {"".join(word[0] for word in words)}
    initials.add("".join(word[0] for word in words if word not in _SMALL_WORDS))
    return skeleton(short) in map(skeleton, initials)


def _much_in_common(entrant: Entrant, other: Entrant) -> bool:
    """Whether half of the telling words of the shorter team name are in the other's.

    Names that look alike are left to `look_alike_evidence`.
    """
    if compare_names(entrant.team, other.team) is not None:
        return False
    institution = {*spelling_words(entrant.institution), *spelling_words(other.institution)}
    one, two = (
        {word for word in without_fillers(name) if len(word) >= _WORD or not word.isascii()}
        - institution
        - _SMALL_WORDS
        for name in (entrant.team, other.team)
    )
    return bool(one and two) and len(one & two) >= _SHARED * min(len(one), len(two))


def _where_confusable(kind: Likeness, team: str, other: str) -> str:
    if kind != "confusable":
        return ""
    strange = [character for character in dict.fromkeys(team) if character not in other]
    return f": {_describe(strange[:3])}" if strange else ""


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
_LIKENESS: Mapping[Likeness, str] = {
    "spelling": "is another spelling of",
    "confusable": "looks like",
    "number": "differs only in digits from",
    "near": "is nearly spelt as",
}
_TIES: Mapping[TieKind, str] = {
    "key": "sealed under the same key as submissions of",
    "paper": "links the same paper as",
    "code": "links the same code as",
    "institution": "is of the same institution, with much of the name in common, as",
    "name": "has the name of a team at another institution,",
}
