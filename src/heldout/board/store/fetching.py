"""Fetching what strangers pushed: the cheapest first, within bounds, looked at before it counts.

A remote's refs are listed first, and only what is new is fetched: commits and folders without the
files where the remote can leave them out, then the files, unless a path is changed that no arrival
may change. It lies in a quarantine until the number and the sizes of its objects are known. What is
too large is refused with its ref, remembered, and not fetched again; the refs beside it come in. A
call has a budget of processor time: each ref gets a small share of it first, then larger ones,
those last that were refused before. What is left waits, and the next call goes on. A ref that the
remote has no longer is removed here.
"""

import json
import resource
import time
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from heldout.board.store.arrivals import find_foreign, recall
from heldout.board.store.git import Bounds, Git, RemoteRefs, TooMuchError
from heldout.envelope.keys import Form
from heldout.errors import StoreError

BRANCHES = ("submission", "registration")
"""What the branches of arrivals begin with."""

REQUESTS = ("refs/pull/*/head", "refs/merge-requests/*/head")
"""Where forges list the heads of requests."""

_MAIN = "HEAD"
_HEADS = ("refs/pull/", "refs/merge-requests/")
_AT_ONCE = 32
_MOST_OBJECTS = 100_000
_MOST_FILE = 1 << 30
_MOST_BYTES = 3 << 30
_MOST_TREE = 1 << 22
_MOST_REMEMBERED = 10_000
_MANY_SINGLE = 256
_PATIENCE = 600.0
"""Seconds by the clock for one remote in one call."""
_BUDGET = 60.0
"""Seconds of a processor that git may use for one remote in one call; what is left waits."""
_MOST_LOST = 20.0
"""Of these, seconds that may go to attempts that fail."""
_MEMORY = "heldout-refused.json"  # commit, or its ref -> why it was refused, or its next share
_Tip = tuple[str, str]  # a ref there, and the object that it names


class _ForeignError(StoreError):
    """A ref changes what no arrival may change; its files were not fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """The share of a ref in a round: who needs little is served before who needs much.

    Attributes:
        memory: bytes, of each process.
        cpu: seconds of a processor, of each step.
        files: how many files it brings, known before any is fetched where a remote leaves them out.
    """

    memory: int = 1 << 30
    cpu: float
    files: int


_SHARES = (
    # A submission of 10 MB takes a tenth of a second; deltas on a large file need it in memory.
    _Share(memory=1 << 26, cpu=0.1, files=16),
    _Share(cpu=1, files=1_000),
    _Share(cpu=10, files=_MOST_OBJECTS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What became of a remote's refs.

    Attributes:
        refused: ref here -> why it was not taken: too large, or a path that no arrival may change.
        failed: ref here -> what git said; whether it can be taken is not known.
        waiting: refs for which no time was left; the next call goes on with them.
    """

    refused: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()


def fetch_arrivals(
    git: Git,
    remotes: Mapping[str, str],
    form: Form,
    *,
    kinds: Iterable[str] = BRANCHES,
    requests: bool = True,
) -> Mapping[str, Fetched | StoreError]:
    """Bring the arrivals' branches and requests of all remotes here, as data.

    Refs of requests have no remote in their names: one goes when none of the remotes lists it.
    Of two remotes with the same one that of the first is taken.

    Args:
        git: the board's repository.
        remotes: the name below which its branches are stored here -> name or address.
        form: the board's envelope.
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
                address,
                _MAIN,
                *(f"refs/heads/{kind}/*" for kind in kinds),
                *(REQUESTS * requests),
            )
        except StoreError as error:
            done[remote] = error
            continue
        wanted: dict[str, _Tip] = {}
        for ref, one in found.objects.items():
            branch = ref.removeprefix("refs/heads/")
            if branch.startswith(tuple(f"{kind}/" for kind in kinds)):
                wanted[f"refs/remotes/{remote}/{branch}"] = ref, one
            elif ref.startswith(_HEADS) and ref not in listed:
                listed[ref] = one
                wanted[ref] = ref, one
        own = tuple(f"refs/remotes/{remote}/{kind}/" for kind in kinds)
        _remove(git, [ref for ref in here if ref.startswith(own) and ref not in wanted])
        done[remote] = _bring(git, address, wanted, form, here=here, found=found)
    answered = not any(isinstance(one, StoreError) for one in done.values())
    if requests and answered and remotes:
        _remove(git, [ref for ref in here if ref.startswith(_HEADS) and ref not in listed])
    return done


def fetch_requests(git: Git, remote: str, form: Form, heads: Iterable[str]) -> Fetched:
    """Bring the heads of a forge's open requests here, and remove those of all others.

    Args:
        git: the board's repository.
        remote: name or address of the forge's repository.
        form: the board's envelope.
        heads: full names of the refs.

    Raises:
        StoreError: the remote does not answer.
    """
    wanted = frozenset(heads)
    found = git.list_remote(remote, _MAIN, *REQUESTS)
    new = {ref: (ref, one) for ref, one in found.objects.items() if ref in wanted}
    here = git.refs(*REQUESTS, commits=False)
    _remove(git, [ref for ref in here if ref not in new])
    return _bring(git, remote, new, form, here=here, found=found)


def _bring(
    git: Git,
    remote: str,
    wanted: Mapping[str, _Tip],
    form: Form,
    *,
    here: Mapping[str, str],
    found: RemoteRefs,
) -> Fetched:
    """Fetch those of the refs that are not here already, as far as the budget of a call goes."""
    new = {ref: tip for ref, tip in wanted.items() if here.get(ref) != tip[1]}
    if not new:
        return Fetched()
    known = recall(git, _MEMORY)
    noted = {ref: known.get(one, "0") for ref, (_, one) in new.items()}
    refused = {ref: why for ref, why in noted.items() if not why.isdigit()}
    rounds = {ref: int(why) for ref, why in noted.items() if why.isdigit()}

    def order(ref: str) -> tuple[int, bool, bool]:
        return rounds[ref], ref in known, ref not in here  # known: one of its commits was refused

    call = _Call(git, remote, form, found)
    failed: dict[str, str] = {}
    waiting = sorted(rounds, key=order)
    at_once = _AT_ONCE
    while waiting:
        # Fewer at a time once something is wrong, and more again while nothing is.
        first = order(waiting[0])
        some = waiting[: 1 if first[0] else at_once]
        some = [ref for ref in some if order(ref) == first]
        share = _SHARES[1 if len(some) > 1 else rounds[some[0]]]
        if not call.covers(share):
            break
        del waiting[: len(some)]
        error = call.fetch({ref: new[ref] for ref in some}, share)
        if error is None:
            at_once = min(2 * at_once, _AT_ONCE)
        elif len(some) > 1:
            at_once = max(1, len(some) // 8)
            waiting = [*some, *waiting]
        elif not isinstance(error, (TooMuchError, _ForeignError)):
            gone = [] if call.is_answered() else waiting  # it answered before
            failed |= dict.fromkeys([*some, *gone], str(error))
            waiting = [] if gone else waiting
        elif share is _SHARES[-1] or isinstance(error, _ForeignError):
            refused[some[0]] = str(error)
        else:
            rounds[some[0]] += 1
            insort(waiting, some[0], key=order)
    seen = {new[ref][1]: str(rounds[ref]) for ref in waiting if rounds[ref]}
    seen |= {name: why for ref, why in refused.items() for name in (new[ref][1], ref)}
    new_ones = {name: why for name, why in seen.items() if name not in call.passing}
    if not new_ones.items() <= known.items():
        stored = list({**known, **new_ones}.items())[-_MOST_REMEMBERED:]
        git.remember(_MEMORY, json.dumps(dict(stored), indent=0).encode())
    return Fetched(refused=refused, failed=failed, waiting=tuple(waiting))


class _Call:
    """One call's fetching from a remote, and the time it takes.

    Attributes:
        passing: commits with a foreign path that may be the main branch's own: main here lacks
            commits. They are looked at again.
    """

    def __init__(self, git: Git, remote: str, form: Form, found: RemoteRefs) -> None:
        self._git, self._remote, self._form = git, remote, form
        self._main, self._partial = found.objects.get(_MAIN), found.leaves_files_out
        self.passing: set[str] = set()
        self._used = self._lost = 0.0
        self._end = time.monotonic() + _PATIENCE

    def covers(self, share: _Share) -> bool:
        """Check whether the time that is left is enough for an attempt that fails at its share."""
        in_time = time.monotonic() < self._end
        return in_time and self._used < _BUDGET and self._lost + share.cpu <= _MOST_LOST

    def fetch(self, refs: Mapping[str, _Tip], share: _Share) -> StoreError | None:
        """Fetch refs within a share; return why that failed."""
        bounds = Bounds(
            memory=share.memory,
            cpu=share.cpu,
            file=_MOST_BYTES + (1 << 26),
            seconds=max(1, self._end - time.monotonic()),
        )
        before, error = _used(), None
        try:
            _fetch(
                self._git,
                self._remote,
                refs,
                self._form,
                bounds=bounds,
                files=share.files * len(refs),
                partial=self._partial,
            )
        except StoreError as why:
            error = why
        spent = _used() - before
        if isinstance(error, TooMuchError):
            # The system counts only what somebody waited for: not what we end, and not what dies
            # at its limit below a git that gives up at once.
            spent = max(spent + error.seconds, share.cpu)
        if (
            isinstance(error, _ForeignError)
            and len(refs) == 1
            and not (self._main is not None and self._git.contains(_MAIN, self._main))
        ):
            self.passing.update(one for _, one in refs.values())
        self._used += spent
        self._lost += spent if error is not None else 0
        return error

    def is_answered(self) -> bool:
        """Check whether the remote still answers, where there is time to ask."""
        if time.monotonic() >= self._end:
            return False
        try:
            self._git.list_remote(self._remote, "HEAD")
        except StoreError:
            return False
        return True


def _used() -> float:
    """Return the seconds of a processor of all our processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _fetch(
    git: Git,
    remote: str,
    refs: Mapping[str, _Tip],
    form: Form,
    *,
    bounds: Bounds,
    files: int,
    partial: bool,
) -> None:
    """Fetch refs, and take them where all of them together are no more than one may bring.

    Raises:
        StoreError: they were not fetched, or git does not take their names.
        _ForeignError: one changes what it may not; only looked at before files are fetched.
        TooMuchError: they are too large, or need more than this share.
    """
    names = tuple(ref for ref, _ in refs.values())
    tips = tuple(dict.fromkeys(one for _, one in refs.values()))
    with git.quarantine() as aside:
        aside.fetch_objects(remote, names, bounds=bounds, blobs=not partial)
        here, lacking = aside.new_objects(*tips, most=_MOST_OBJECTS, bounds=bounds)
        _check_sizes(aside, here, bounds=bounds)
        base = git.head()
        if lacking and base and (foreign := find_foreign(aside, form, tips, main=base)):
            raise _ForeignError(foreign)
        if len(lacking) > files:
            raise TooMuchError(f"{len(lacking):,} new files")
        if lacking:
            aside.fetch_objects(remote, lacking, bounds=bounds)
            _check_sizes(aside, (*here, *lacking), bounds=bounds)
        git.take_over(aside)
    git.set_refs({here: one for here, (_, one) in refs.items()})


def _check_sizes(git: Git, objects: Sequence[str], *, bounds: Bounds) -> None:
    total = 0
    for kind, size in git.kinds_and_sizes(*objects, bounds=bounds):
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
