"""Published runs over a query set, each opened once more and given to a reader."""

from collections.abc import Callable, Collection, Mapping
from io import BytesIO
from typing import BinaryIO, TypeVar

from heldout.board.log.submission import Submission
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.score import open_manifest, open_own_runs
from heldout.board.scores.session import Session
from heldout.envelope.bundle import OpenedRun
from heldout.errors import InputError
from heldout.ids import query_set_of
from heldout.trec.orders import Order

T = TypeVar("T")


def open_published_runs(
    session: Session,
    entry: Submission,
    query_sets: Collection[str],
    consume: Callable[[str, BinaryIO], T],
) -> Mapping[str, OpenedRun[T]]:
    """Open the runs over some query sets; all are verified, the others are not looked at.

    Args:
        session: of the organiser.
        entry: a submission, and no baseline.
        query_sets: their names; those that the entry did not have to answer give nothing.
        consume: gets a run's name and its bytes as packed; what it returns is never `None`.

    Returns:
        Run (`SET`, `SET~2` and so on) -> what `consume` made of it.

    Raises:
        TrustError: something sealed is not what it claims.
        InputError: the problems that `consume` raised.
        StoreError: a sealed file is missing.
    """
    spec = session.spec_at(entry.received)
    if not spec.sets.keys() & set(query_sets):
        return {}
    key, manifest = open_manifest(session.vault, spec, entry)
    opened = open_own_runs(
        session.vault,
        spec,
        entry,
        manifest,
        key=key,
        consume=lambda run, stream: (
            consume(run, stream) if query_set_of(run) in query_sets else None
        ),
    )
    return {
        run: OpenedRun(member=one.member, size=one.size, digest=one.digest, value=one.value)
        for run, one in opened.items()
        if one.value is not None
    }


Reader = Callable[[BinaryIO, str, Order], T]
"""Gets a run at its start, its name for messages, and the order of its documents; never gives
`None`."""


def read_published(
    session: Session,
    query_set: str,
    entries: Collection[Submission],
    read: Reader[T],
    *,
    done: Callable[[], None] = lambda: None,
) -> Mapping[str, T]:
    """Open runs over a query set, one in memory at a time.

    Args:
        session: of the organiser.
        query_set: its name.
        entries: published ones.
        read: what is made of each.
        done: called after each entry.

    Returns:
        Id of the entry, with `~2` and so on for its further seeds -> what was made of it. Entries
        that did not have to answer the set are left out.

    Raises:
        TrustError: a run does not open.
        InputError: a run has errors.
        StoreError: a sealed file is missing.
    """
    found: dict[str, T] = {}
    for entry in entries:
        of_entry = _read_baseline if entry.baseline else _read_sealed
        for run, made in of_entry(session, entry, query_set, read).items():
            found[entry.id + run.removeprefix(query_set)] = made
        done()
    return found


def _read_baseline(
    session: Session, entry: Submission, query_set: str, read: Reader[T]
) -> Mapping[str, T]:
    order = session.spec_at(entry.received).runs.order
    found = {}
    for run in sorted(name for name in entry.runs if query_set_of(name) == query_set):
        with session.vault.sealed(entry.runs[run]).open("rb") as source:
            found[run] = read(source, f"{entry.id}/{run}", order)
    return found


def _read_sealed(
    session: Session, entry: Submission, query_set: str, read: Reader[T]
) -> Mapping[str, T]:
    order = session.spec_at(entry.received).runs.order

    def read_member(run: str, stream: BinaryIO) -> T:
        return read(BytesIO(stream.read()), f"{entry.id}/{run}", order)

    opened = open_published_runs(session, entry, {query_set}, read_member)
    return {run: one.value for run, one in opened.items()}


def check_set(spec: BoardSpec, name: str) -> None:
    """Refuse the name of a query set that a board does not have.

    Raises:
        InputError: code `unknown-set`.
    """
    if name not in spec.sets:
        raise InputError.of(
            code="unknown-set",
            path="--set",
            found=name,
            expected="one of " + ", ".join(spec.sets),
        )


def list_published(session: Session) -> tuple[Submission, ...]:
    """Published entries and baselines whose runs the vault has, in the order they came."""
    every = session.history().submissions.values()
    return tuple(s for s in every if s.status == "published" and (s.runs or not s.baseline))
