"""Fetching what strangers pushed: each ref for itself, within bounds, looked at before it counts.

A remote's refs are listed first, and only what is new is fetched: commits and folders without the
files where the remote can leave them out, then the files. It lies in a quarantine until the number
and the sizes of its objects are known. What is too large is refused with its ref, remembered, and
not fetched again; the refs beside it come in. A ref that the remote has no longer is removed here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from heldout.board.store.arrivals import recall
from heldout.board.store.git import Bounds, Git, TooMuchError
from heldout.errors import StoreError

BRANCHES = ("submission", "registration")
"""What the branches of arrivals begin with."""

REQUESTS = ("refs/pull/*/head", "refs/merge-requests/*/head")
"""Where forges list the heads of requests."""

_HEADS = ("refs/pull/", "refs/merge-requests/")
_AT_ONCE = 32
_MOST_OBJECTS = 100_000
_MOST_FILE = 1 << 30
_MOST_BYTES = 3 << 30
_MOST_TREE = 1 << 22
_MOST_REMEMBERED = 10_000
_MANY_SINGLE = 256
_FETCH = Bounds(cpu=120, file=_MOST_BYTES + (1 << 26))
_MEMORY = "heldout-refused.json"
_Tip = tuple[str, str]  # a ref there, and the object that it names


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What became of a remote's refs.

    Attributes:
        refused: ref here -> why it is too large; it was not taken.
        failed: ref here -> what git said; whether it can be taken is not known.
    """

    refused: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


def fetch_arrivals(
    git: Git, remotes: Mapping[str, str], *, kinds: Iterable[str] = BRANCHES, requests: bool = True
) -> Mapping[str, Fetched | StoreError]:
    """Bring the arrivals' branches and requests of all remotes here, as data.

    Refs of requests have no remote in their names: one goes when none of the remotes lists it.
    Of two remotes with the same one that of the first is taken.

    Args:
        git: the board's repository.
        remotes: the name below which its branches are stored here -> name or address.
        kinds: what the branches begin with.
        requests: whether heads of requests are fetched too.

    Returns:
        By remote; an error where it did not answer.
    """
    kinds = tuple(kinds)
    done: dict[str, Fetched | StoreError] = {}
    listed: dict[str, str] = {}
    git.pack_refs(least=_MANY_SINGLE)
    here = git.refs("refs/remotes/", *REQUESTS, commits=False)
    for remote, address in remotes.items():
        try:
            found = git.list_remote(
                address, *(f"refs/heads/{kind}/*" for kind in kinds), *(REQUESTS * requests)
            )
        except StoreError as error:
            done[remote] = error
            continue
        wanted: dict[str, _Tip] = {}
        for ref, one in found.objects.items():
            branch = ref.removeprefix("refs/heads/")
            if branch != ref:
                wanted[f"refs/remotes/{remote}/{branch}"] = ref, one
            elif ref not in listed:
                listed[ref] = one
                wanted[ref] = ref, one
        own = tuple(f"refs/remotes/{remote}/{kind}/" for kind in kinds)
        _remove(git, [ref for ref in here if ref.startswith(own) and ref not in wanted])
        done[remote] = _bring(git, address, wanted, here=here, partial=found.leaves_files_out)
    answered = not any(isinstance(one, StoreError) for one in done.values())
    if requests and answered and remotes:
        _remove(git, [ref for ref in here if ref.startswith(_HEADS) and ref not in listed])
    return done


def fetch_requests(git: Git, remote: str, heads: Iterable[str]) -> Fetched:
    """Bring the heads of a forge's open requests here, and remove those of all others.

    Args:
        git: the board's repository.
        remote: name or address of the forge's repository.
        heads: full names of the refs.

    Raises:
        StoreError: the remote does not answer.
    """
    wanted = frozenset(heads)
    found = git.list_remote(remote, *REQUESTS)
    new = {ref: (ref, one) for ref, one in found.objects.items() if ref in wanted}
    here = git.refs(*REQUESTS, commits=False)
    _remove(git, [ref for ref in here if ref not in new])
    return _bring(git, remote, new, here=here, partial=found.leaves_files_out)


def _bring(
    git: Git, remote: str, wanted: Mapping[str, _Tip], *, here: Mapping[str, str], partial: bool
) -> Fetched:
    """Fetch those of the refs that are not here already."""
    new = {ref: tip for ref, tip in wanted.items() if here.get(ref) != tip[1]}
    if not new:
        return Fetched()
    known = recall(git, _MEMORY)
    refused = {ref: known[one] for ref, (_, one) in new.items() if one in known}
    failed: dict[str, str] = {}
    rest = [(ref, tip) for ref, tip in new.items() if tip[1] not in known]
    for start in range(0, len(rest), _AT_ONCE):
        batch = dict(rest[start : start + _AT_ONCE])
        for refs, error in _take(git, remote, batch, partial=partial):
            told = refused if isinstance(error, TooMuchError) else failed
            told.update(dict.fromkeys(refs, str(error)))
    fresh = {new[ref][1]: why for ref, why in refused.items() if new[ref][1] not in known}
    if fresh:
        kept = list({**known, **fresh}.items())[-_MOST_REMEMBERED:]
        git.remember(_MEMORY, json.dumps(dict(kept), indent=0).encode())
    return Fetched(refused=refused, failed=failed)


def _take(
    git: Git, remote: str, refs: Mapping[str, _Tip], *, partial: bool
) -> Iterator[tuple[Iterable[str], StoreError]]:
    """Fetch some refs at once, or, where that fails, each by itself: one cannot stop the others."""
    try:
        _fetch(git, remote, refs, partial=partial)
    except StoreError as error:
        if len(refs) == 1:
            yield refs, error
            return
        waiting = dict(refs)
        while waiting:
            ref = next(iter(waiting))
            for failed, why in _take(git, remote, {ref: waiting.pop(ref)}, partial=partial):
                yield failed, why
                if isinstance(why, TooMuchError):
                    continue
                try:
                    git.list_remote(remote, "HEAD")
                except StoreError as gone:  # it answered before
                    yield waiting, gone
                    return


def _fetch(git: Git, remote: str, refs: Mapping[str, _Tip], *, partial: bool) -> None:
    """Fetch refs, and take them where all of them together are no more than one may bring.

    Raises:
        StoreError: they were not fetched, or git does not take their names.
        TooMuchError: they are too large.
    """
    names = tuple(ref for ref, _ in refs.values())
    tips = tuple(dict.fromkeys(one for _, one in refs.values()))
    with git.quarantine() as aside:
        aside.fetch_objects(remote, names, bounds=_FETCH, blobs=not partial)
        here, lacking = aside.new_objects(*tips, most=_MOST_OBJECTS)
        _check_sizes(aside, here)
        if lacking:
            aside.fetch_objects(remote, lacking, bounds=_FETCH)
            _check_sizes(aside, (*here, *lacking))
        git.keep(aside)
    git.set_refs({here: one for here, (_, one) in refs.items()})


def _check_sizes(git: Git, objects: Sequence[str]) -> None:
    total = 0
    for kind, size in git.kinds_and_sizes(*objects):
        most = _MOST_FILE if kind == "blob" else _MOST_TREE
        if size > most:
            what = "file" if kind == "blob" else "folder or commit"
            raise TooMuchError(f"a {what} of {size:,} bytes, at most {most:,} are taken")
        total += size
    if total > _MOST_BYTES:
        raise TooMuchError(f"{total:,} new bytes, at most {_MOST_BYTES:,} are taken")


def _remove(git: Git, refs: Sequence[str]) -> None:
    """Remove refs; one that git cannot remove stays, and the others go."""
    try:
        if refs:
            git.set_refs(dict.fromkeys(refs))
    except StoreError:
        for ref in refs:
            with suppress(StoreError):
                git.set_refs({ref: None})
