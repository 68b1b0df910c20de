"""What a submission is compared with: all other runs that the vault knows, and the baselines.

What comparing runs gives is stored:

    sketches/SET.npz       of each submission which signature file it is of, and the sketch
    comparisons/ID.json    what earlier runs a submission's runs are like
    comparisons/keys.json  the digest of each submission's own key, from `scores/`

All are made from `signatures/` and `scores/`. None is shared, and each may be deleted at any time:
what is missing, damaged or of another file is made again. A sketch is of the signature file whose
inode, size and time of change it has: what was written since has others, and is read again.

A stored comparison counts for what it was made of alone: the run's own signature, the signatures
of all earlier runs, and the code that compares.
"""

import hashlib
import inspect
import io
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.board.log.history import History
from heldout.board.log.submission import Submission
from heldout.board.policy import checks, ensembles, identity, similarity, sketches
from heldout.board.policy.ensembles import RunLikeness, search_likeness
from heldout.board.policy.similarity import TOP
from heldout.board.policy.sketches import Sketches, sketch
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores import stored
from heldout.board.store.sharing import RESULTS
from heldout.board.store.vault import Vault
from heldout.errors import StoreError
from heldout.ids import digest_bytes, query_set_of
from heldout.scoring.measures import parse_measure
from heldout.trec.scans import Signature

T = TypeVar("T")

Repair = Callable[[str], bool]
"""Makes what the vault stores of a submission again; whether it could."""


def list_others(
    vault: Vault, history: History, submission: Submission, *, repair: Repair
) -> tuple[identity.Entrant, ...]:
    """Everybody who ever submitted, with their keys where the vault knows them.

    Args:
        vault: of the board.
        history: what its log says.
        submission: whose day it is.
        repair: called for one whose scores are damaged or lost.
    """

    def read(name: str) -> str:
        other = history.submissions[name]
        lost = "scores" in other.stored and not vault.scores(name).is_file()
        return _read(partial(stored.read_key, vault, name), name, "", lost=lost, repair=repair)

    keys = list_keys(vault, history.submissions, read)
    return identity.list_entrants(history, day=submission.received.date(), keys=keys)


def compare_runs(
    vault: Vault, history: History, submission: Submission, *, repair: Repair
) -> Mapping[str, RunLikeness]:
    """Query set -> what runs that were received before are like the submission's.

    Of several seeds the first is compared: the others are like it, or a rule of their own says so.
    What was found is stored, and given again as long as all that it was made of is the same.

    Args:
        vault: of the board.
        history: what its log says.
        submission: the one that is judged.
        repair: called for one whose signatures are damaged or lost.
    """
    names = list(history.submissions)
    before = names[: names.index(submission.id)]
    signatures = signatures_of(vault, submission, repair=repair)
    runs = {name: one for name, one in signatures.items() if name == query_set_of(name)}
    if not runs:
        return {}
    sketches = {name: read_sketches(vault, name, run.queries) for name, run in runs.items()}

    def read(name: str) -> Mapping[str, Signature]:
        return signatures_of(vault, history.submissions[name], repair=repair)

    earlier = refresh(vault, before, sketches, read)
    own = hashlib.sha256(vault.signature(submission.id).read_bytes()).digest()
    made_of = digest_inputs(own, earlier)
    found = read_comparison(vault, submission.id, made_of)
    if found is not None:
        return found
    lost: set[str] = set()

    def read_run(query_set: str, name: str) -> Signature | None:
        found = read(name)
        if not found:
            lost.add(name)
        return found.get(query_set)

    found = {
        query_set: find_likeness(
            run, sketches[query_set].of(list(earlier)), partial(read_run, query_set)
        )
        for query_set, run in runs.items()
    }
    if not lost:  # what was not compared is, once its file is there again
        store_comparison(vault, submission.id, made_of, found)
    return found


def find_likeness(
    new: Signature, earlier: Sketches, read: Callable[[str], Signature | None]
) -> RunLikeness:
    """Return what earlier runs a new one is like.

    Args:
        new: the run.
        earlier: sketches of all earlier ones.
        read: gives the signature of a run by its name, `None` where it is lost.
    """
    search = search_likeness(new, earlier)
    try:
        index = next(search)
        while True:
            index = search.send(read(earlier.names[index]))
    except StopIteration as end:
        found: RunLikeness = end.value
        return found


def signatures_of(
    vault: Vault, submission: Submission, *, repair: Repair
) -> Mapping[str, Signature]:
    """As `read_signatures`; what is missing or damaged is made again, and empty where it cannot be.

    What waits and was never opened is opened here: a copy would else pass for whichever of the two
    is reviewed first.
    """
    name = submission.id
    expected = "signatures" in submission.stored or submission.status == "received"
    lost = expected and not vault.signature(name).is_file()
    return _read(partial(stored.read_signatures, vault, name), name, {}, lost=lost, repair=repair)


def _read(read: Callable[[], T], name: str, otherwise: T, *, lost: bool, repair: Repair) -> T:
    """Read a file; where it is lost or damaged once more after a repair."""
    for repaired in (False, True):
        if lost or repaired:
            if not repair(name):
                return otherwise
            lost = False
        try:
            return read()
        except StoreError:
            continue
    return otherwise


def list_distances(
    vault: Vault, history: History, spec: BoardSpec, scores: stored.ScoreFile
) -> tuple[checks.Distance, ...]:
    """The distance of a submission from each baseline, in the view that ranks.

    Args:
        vault: has the baselines' scores.
        history: the organisers'.
        spec: the rules of the submission's day.
        scores: the submission's; without that view nothing can be said.

    Returns:
        In the order of the log. Baselines that were scored with other labels are left out.
    """
    view = spec.view(spec.primary)
    own = scores.views.get(view.name)
    if own is None:
        return ()
    distances = []
    better = parse_measure(view.measure).kind.better
    labels = f"{view.set}/{view.labels}" if view.labels else view.set
    for submission in history.submissions.values():
        known = stored.read_scores(vault, submission.id) if submission.baseline else None
        theirs = None if known is None else known.views.get(view.name)
        if known is None or theirs is None or known.labels.get(labels) != scores.labels.get(labels):
            continue
        errors = checks.paired_distance(own.per_query, theirs.per_query, better=better)
        if errors is not None:
            distances.append(checks.Distance(baseline=submission.id, errors=errors))
    return tuple(distances)


S = TypeVar("S", bound=msgspec.Struct)

_KEYS = "comparisons/keys.json"
_LARGEST = (1 << 63) - 1


class FileStamp(NamedTuple):
    """Which state of a file was read: none that is written later has the same."""

    inode: int
    size: int
    changed: int


class _SketchRow(NamedTuple):
    """The sketch of a submission, with the state and the SHA-256 of the file that it is of.

    `tops` has shape (queries, TOP); it may lack the last queries of the set, which are empty then.
    """

    stamp: FileStamp
    digest: bytes
    tops: NDArray[np.uint16]


@dataclass(slots=True, kw_only=True)
class RunSketches:
    """The sketches of one query set's runs.

    Attributes:
        key: what documents are multiplied by, secret and odd.
        columns: query -> its column.
        rows: submission -> its sketch.
        changed: whether there are some that the file lacks.
    """

    key: int
    columns: dict[str, int]
    rows: dict[str, _SketchRow] = field(default_factory=dict)
    changed: bool = False

    def put(self, submission: str, stamp: FileStamp, digest: bytes, run: Signature | None) -> None:
        """Add or replace the sketch of a submission, `None` where it has no run of this set."""
        run = run or Signature(queries=(), documents=np.zeros((0, TOP), np.uint64))
        for query in run.queries:
            self.columns.setdefault(query, len(self.columns))
        self.rows[submission] = _SketchRow(stamp, digest, sketch(run, self.columns, self.key))
        self.changed = True

    def stack(self, names: Sequence[str]) -> NDArray[np.uint16]:
        """The sketches of some submissions, shape (names, queries, TOP)."""
        tops = np.zeros((len(names), len(self.columns), TOP), np.uint16)
        for at, name in enumerate(names):
            row = self.rows[name].tops
            tops[at, : len(row)] = row
        return tops

    def of(self, names: Sequence[str]) -> Sketches:
        """The sketches of some submissions, all of which have one."""
        queries = tuple(self.columns)
        return Sketches(names=names, queries=queries, key=self.key, tops=self.stack(names))


def read_sketches(vault: Vault, query_set: str, queries: Sequence[str]) -> RunSketches:
    """Read the sketches of a query set's runs; none where the file is missing or damaged.

    Args:
        vault: of the board.
        query_set: its name.
        queries: the first columns where there are none yet.
    """
    try:
        with vault.files.open(_sketches_path(query_set)) as source:
            arrays = dict(np.load(source, allow_pickle=False))
        stamps = map(FileStamp._make, arrays["stamps"].tolist())
        rows = map(_SketchRow, stamps, map(bytes, arrays["digests"]), arrays["tops"])
        return RunSketches(
            key=int(arrays["key"]),
            columns={query: column for column, query in enumerate(arrays["queries"].tolist())},
            rows=dict(zip(arrays["names"].tolist(), rows, strict=True)),
        )
    except stored.DAMAGED:
        columns = {query: column for column, query in enumerate(queries)}
        return RunSketches(key=secrets.randbits(64) | 1, columns=columns)


def _write_sketches(vault: Vault, query_set: str, made: RunSketches) -> None:
    rows, buffer = made.rows.values(), io.BytesIO()
    np.savez(
        buffer,
        allow_pickle=False,
        key=np.uint64(made.key),
        queries=np.array([*made.columns]),
        names=np.array([*made.rows]),
        stamps=np.array([row.stamp for row in rows]),
        digests=np.array([[*row.digest] for row in rows], np.uint8),
        tops=made.stack([*made.rows]),
    )
    vault.files.write_whole(_sketches_path(query_set), buffer.getvalue(), mode=0o600)


def _sketches_path(query_set: str) -> str:
    return f"sketches/{query_set}.npz"


def refresh(
    vault: Vault,
    names: Sequence[str],
    sketches_of: Mapping[str, RunSketches],
    read: Callable[[str], Mapping[str, Signature]],
) -> dict[str, bytes]:
    """Bring the rows of some submissions up to their signature files.

    Args:
        vault: of the board.
        names: the submissions.
        sketches_of: query set -> its sketches; what changes is written.
        read: gives the signatures of a submission; it repairs what is damaged or lost.

    Returns:
        Submission -> SHA-256 of its signature file, of those that have one.
    """
    stamps = _stamps(vault, "signatures")
    digests = {}
    for name in names:
        stamp = stamps.get(name)
        rows = [sketched.rows.get(name) for sketched in sketches_of.values()]
        fresh = stamp is not None and all(row is not None and row.stamp == stamp for row in rows)
        if fresh and rows[0] is not None:
            digests[name] = rows[0].digest
        elif (digest := _refresh(vault, name, sketches_of, read)) is not None:
            digests[name] = digest
    for query_set, sketched in sketches_of.items():
        if sketched.changed:
            _write_sketches(vault, query_set, sketched)
            sketched.changed = False
    return digests


def _refresh(
    vault: Vault,
    name: str,
    sketches_of: Mapping[str, RunSketches],
    read: Callable[[str], Mapping[str, Signature]],
) -> bytes | None:
    """Read one signature file; `None` where nothing can be read or made again."""
    found = read(name)
    file = vault.signature(name)
    status = vault.files.stat(vault.signature(name).path)
    if status is None or (not found and not _is_sound(vault, name)):
        return None
    digest = hashlib.sha256(file.read_bytes()).digest()
    for query_set, sketched in sketches_of.items():
        sketched.put(name, _stamp(status), digest, found.get(query_set))
    return digest


def _is_sound(vault: Vault, name: str) -> bool:
    """Check whether a signature file holds no run, rather than none that can be read."""
    try:
        return not stored.read_signatures(vault, name)
    except StoreError:
        return False


def _stamps(vault: Vault, folder: str) -> dict[str, FileStamp]:
    """Submission -> the state of its file in a folder of `RESULTS`."""
    ending = RESULTS[folder]
    stamps = vault.files.stats(folder).items()
    return {n.removesuffix(ending): _stamp(s) for n, s in stamps if n.endswith(ending)}


def _stamp(status: os.stat_result) -> FileStamp:
    return FileStamp(status.st_ino & _LARGEST, status.st_size, status.st_ctime_ns)


class _Keys(msgspec.Struct, frozen=True, kw_only=True):
    """`comparisons/keys.json`: submission -> state of its file of scores, and the key in it."""

    known: dict[str, tuple[FileStamp, str]]


def list_keys(vault: Vault, names: Iterable[str], read: Callable[[str], str]) -> dict[str, str]:
    """Submission -> digest of its own key, "" where it is not known.

    Args:
        vault: of the board.
        names: the submissions.
        read: reads the key in the scores of one; it repairs what is damaged or lost.
    """
    stamps = _stamps(vault, "scores")
    earlier = _read_checked(vault, _KEYS, _Keys)
    known = {} if earlier is None else earlier.known
    keys, fresh = {}, {}
    for name in names:
        stamp, key = known.get(name, (None, ""))
        if stamp is None or stamp != stamps.get(name):
            key = read(name)
            status = vault.files.stat(vault.scores(name).path) if key else None
            stamp = None if status is None else _stamp(status)
        keys[name] = key
        if stamp is not None:
            fresh[name] = (stamp, key)
    if fresh != known:
        _write_checked(vault, _KEYS, _Keys(known=fresh))
    return keys


class _Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`comparisons/ID.json`: what was found, and by what.

    Attributes:
        made_of: digest of all that it depends on.
        found: query set -> what earlier runs are like the submission's.
    """

    made_of: str
    found: dict[str, RunLikeness]


def digest_inputs(own: bytes, earlier: Mapping[str, bytes]) -> str:
    """The digest of all that a comparison depends on.

    Args:
        own: SHA-256 of the submission's signature file.
        earlier: earlier submission -> that of its file, in the order in which they came.
    """
    inputs = hashlib.sha256(_digest_code() + own)
    for name, digest in earlier.items():
        inputs.update(hashlib.sha256(name.encode()).digest() + digest)
    return inputs.hexdigest()


@cache
def _digest_code() -> bytes:
    """Of the code that compares: other code may find something else."""
    code = hashlib.sha256(np.__version__.encode())
    for module in (similarity, ensembles, sketches):
        code.update(hashlib.sha256(inspect.getsource(module).encode()).digest())
    return code.digest()


def read_comparison(vault: Vault, submission: str, made_of: str) -> dict[str, RunLikeness] | None:
    """Return what was found before, `None` where nothing is stored, or not of just these inputs."""
    earlier = _read_checked(vault, f"comparisons/{submission}.json", _Comparison)
    return None if earlier is None or earlier.made_of != made_of else earlier.found


def store_comparison(
    vault: Vault, submission: str, made_of: str, found: Mapping[str, RunLikeness]
) -> None:
    """Store what was found."""
    made = _Comparison(made_of=made_of, found=dict(found))
    _write_checked(vault, f"comparisons/{submission}.json", made)


def _read_checked(vault: Vault, path: str, kind: type[S]) -> S | None:
    """A document behind a line with its SHA-256; `None` where it is missing or damaged."""
    digest, _, body = (vault.files.find(path) or b"").partition(b"\n")
    if digest != digest_bytes(body).encode():
        return None
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(body, type=kind)
    return None


def _write_checked(vault: Vault, path: str, document: msgspec.Struct) -> None:
    body = msgspec.json.encode(document)
    vault.files.write_whole(path, digest_bytes(body).encode() + b"\n" + body, mode=0o600)
