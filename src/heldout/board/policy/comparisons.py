"""Checks of the policy that compare: a submission with all others, and its seeds with each other.

Each yields the evidence, a sentence each, and nothing where there is none.
"""

from collections.abc import Callable, Iterator

from heldout.board.log.joined_names import list_renamed, names_of
from heldout.board.log.manifest import team_key
from heldout.board.policy.case import Case
from heldout.board.policy.disclosure import resembles
from heldout.board.policy.identity import (
    Entrant,
    TieKind,
    look_alike_evidence,
    script_evidence,
    some_ids,
    tie_evidence,
)
from heldout.board.policy.likeness import say_ensemble, say_neighbour
from heldout.board.policy.seeds import say_fault
from heldout.board.policy.similarity import Neighbour, Verdict
from heldout.errors import quote

__all__ = [
    "check_alike",
    "check_ensemble",
    "check_id_words",
    "check_look_alikes",
    "check_renamed",
    "check_scripts",
    "check_seeds",
    "check_ties",
]


_SAID = 5
"""Runs like the new one that are told with all figures; the others by their ids."""


def _entrant(case: Case) -> Entrant:
    said = case.manifest
    return Entrant(
        submission=case.id,
        team=said.team,
        institution=said.institution,
        paper=said.paper,
        code=said.code,
        key=case.key,
    )


def check_scripts(case: Case) -> Iterator[str]:
    """No word of the team's name mixes scripts."""
    yield from script_evidence(case.manifest.team)


def check_look_alikes(case: Case) -> Iterator[str]:
    """The team's name looks like that of no other team."""
    yield from look_alike_evidence(_entrant(case), case.entrants, reader=case.reader)


def check_ties(*kinds: TieKind) -> Callable[[Case], Iterator[str]]:
    """A rule's check: whether such ties lead to other teams."""
    return lambda case: tie_evidence(_entrant(case), case.entrants, kinds=kinds, reader=case.reader)


def check_renamed(case: Case) -> Iterator[str]:
    """No other entries, under either name, where a published entry shall have another one."""
    own = case.history.submissions.get(case.id)
    if own is None or own.status != "published":
        return
    renamed = list_renamed(case.history)
    before = names_of(renamed, own.counts_for)
    after = names_of(renamed, [case.manifest.team])
    others = [
        other.id
        for other in case.history.submissions.values()
        if other.id != case.id
        and (other.pending or other.status == "published")
        and not (before | after).isdisjoint(map(team_key, other.counts_for))
    ]
    if others and before.isdisjoint(after):
        yield (
            f"{quote(case.manifest.team)} and {quote(own.counts_for[-1])} are one team from then "
            f"on, with one quota and one best score; others of theirs: {some_ids(others)}"
        )


def check_id_words(case: Case) -> Iterator[str]:
    """The id of an embargoed submission does not tell whose it is."""
    until, said = case.manifest.embargo_until, case.manifest
    if until is None or until <= case.received.date():
        return
    found = resembles(case.id, said.team, said.institution)
    if found is not None:
        yield found


def check_alike(verdict: Verdict, *, own: bool) -> Callable[[Case], Iterator[str]]:
    """A rule's check: whether an earlier run, of the same team or of another, is so like it."""

    def check(case: Case) -> Iterator[str]:
        keys = names_of(list_renamed(case.history), [case.manifest.team])
        alike: dict[str, dict[str, Neighbour]] = {}
        for name, found in case.likenesses.items():
            for other in found.neighbours:
                submission = case.history.submissions.get(other.id)
                teams = () if submission is None else submission.counts_for
                mine = not keys.isdisjoint(map(team_key, teams))
                if other.verdict == verdict and mine == own:
                    alike.setdefault(other.id, {})[name] = other
        for name in list(alike)[:_SAID]:
            known = case.history.submissions.get(name)
            yield say_neighbour(alike[name], baseline=known is not None and known.baseline)
        if further := list(alike)[_SAID:]:
            yield f"the same is to be said of {len(further)} more: {some_ids(further)}"

    return check


def check_ensemble(case: Case) -> Iterator[str]:
    """No few earlier runs explain the run together."""
    for name, found in case.likenesses.items():
        if found.ensemble is not None:
            yield say_ensemble(name, found.ensemble)


def check_seeds(*, copied: bool) -> Callable[[Case], Iterator[str]]:
    """A rule's check: whether two seeds are copies of each other, or too unlike to be seeds."""
    return lambda case: (say_fault(f) for f in case.seeds if f.copied == copied)
