"""Two arrivals that claim one id at once: neither is taken in until an organiser has decided.

An id can be read on the branch that it is sent from. Whoever is quick can send files of their own
under it, and the server does not say whose commit came first: dates in commits are what their
authors wrote, and the order of refs is that of their names. So whichever was taken silently, the
other team could lose its submission to whoever sorts first.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from heldout.errors import InputError, Problem, quote
from heldout.store.arrivals import Arrival

__all__ = ["refuse_contested"]


def refuse_contested(
    arrivals: Iterable[Arrival], *, known: Collection[str], accepted: Collection[str] = ()
) -> list[Arrival]:
    """The arrivals, where those that claim one new id are refused, all of them.

    Args:
        arrivals: of one call.
        known: ids that are taken: those belong to whom they were received from.
        accepted: sources that an organiser decided for; of several arrivals with one id, the one
            that came from there is taken in and the others are refused.

    Raises:
        InputError: a source was named from which nothing came that is contested.
    """
    taken = {submission.lower(): submission for submission in known}
    arrivals = [_refuse_look_alike(arrival, taken) for arrival in arrivals]
    claims: dict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        # Metadata alone claim no new id: there is nothing yet that they could change.
        new = arrival.id is not None and arrival.core and arrival.id.lower() not in taken
        if arrival.id is not None and new and not arrival.problems:
            claims[arrival.id.lower()].append(arrival)
    contested = {id_: rivals for id_, rivals in claims.items() if _differ(rivals)}
    _check_accepted(accepted, contested.values())
    refused = {
        id(arrival): _contested(arrival, rivals)
        for rivals in contested.values()
        for arrival in rivals
        if not _is_chosen(arrival, rivals, accepted)
    }
    return [
        replace(arrival, problems=(refused[id(arrival)],)) if id(arrival) in refused else arrival
        for arrival in arrivals
    ]


def _refuse_look_alike(arrival: Arrival, taken: Mapping[str, str]) -> Arrival:
    """An id that differs from another in case alone would be the same file on some machines."""
    other = None if arrival.id is None else taken.get(arrival.id.lower())
    if other is None or other == arrival.id or arrival.problems:
        return arrival
    problem = Problem(
        code="id-taken",
        path=str(arrival.id),
        found=f"an id that differs from {other} in case alone",
        expected="a new id",
        hint="heldout draft makes a new id",
    )
    return replace(arrival, problems=(problem,))


def _differ(rivals: list[Arrival]) -> bool:
    """Whether they bring several runs or keys.

    A copy with other metadata is no rival: only whoever has the submission's key can seal metadata
    that open, and of those that do not the team's own take the place.
    """
    alike = rivals[0].core and all(rival.core == rivals[0].core for rival in rivals)
    return len(rivals) > 1 and not alike


def _is_chosen(arrival: Arrival, rivals: Iterable[Arrival], accepted: Collection[str]) -> bool:
    """Whether an organiser decided for just this one."""
    return [rival for rival in rivals if rival.source in accepted] == [arrival]


def _contested(arrival: Arrival, rivals: Iterable[Arrival]) -> Problem:
    others = ", ".join(sorted(rival.source for rival in rivals if rival is not arrival))
    return Problem(
        code="id-conflict",
        path=str(arrival.id),
        found=f"other files under this id, from {others}",
        expected="one submission that claims an id",
        hint=f"ask the teams whose it is, then: heldout inbox --accept {quote(arrival.source)}",
    )


def _check_accepted(accepted: Collection[str], contested: Iterable[list[Arrival]]) -> None:
    sources = sorted({arrival.source for rivals in contested for arrival in rivals})
    for source in sorted(set(accepted) - set(sources)):
        raise InputError(
            Problem(
                code="id-conflict",
                path="--accept",
                found=f"{quote(source)}, from where nothing came that is contested",
                expected="one of " + ", ".join(sources) if sources else "nothing, for none is",
            )
        )
