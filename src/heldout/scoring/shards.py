"""Parts of many runs, each scored where there is room, into one folder that all machines see.

A part is dealt from the list of runs alone, so machines that get the same list need not talk to
each other. Scores lie under the digests of what they depend on: a part that is scored twice finds
what the first time stored, and whoever asks for all runs finds the scores of all parts. Beside
them a finished part leaves a note with its plan, so that a later call can say which part is
missing, or in what the parts differ from what is asked for.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from heldout.errors import InputError, OptionError, Problem, SetupError, StoreError, plural, quote
from heldout.ids import Digest
from heldout.scoring.cache import Key, ScoreCache
from heldout.scoring.measures import Measure
from heldout.scoring.other_measures import OtherMeasure
from heldout.scoring.score import Failed, Outcome, Reading, Scored
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels

_FOLDER = "shards-1"
_SHOWN = 5
_PART = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
_NOTE = re.compile(r"([0-9]+)-of-([0-9]+)\.json")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """One of several parts.

    Attributes:
        of: how many parts there are, >= 1.
        number: which one, from 1.
    """

    of: int
    number: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def deal(self, runs: Iterable[str], *, size: Callable[[str], int] | None = None) -> list[str]:
        """The runs of this part: largest first, every run goes to the next part, round and round.

        Args:
            runs: all runs; in what order, and how often each, does not matter.
            size: bytes of a run, the same on every machine; without it runs are paths of files.
        """
        bytes_of = _size if size is None else size
        ordered = sorted(set(runs), key=lambda run: (-bytes_of(run), run))
        return ordered[self.number - 1 :: self.of]


def parse_shard(text: str) -> Shard:
    """The part that `3/10` names.

    Raises:
        InputError: code `bad-shard`.
    """
    found = _PART.fullmatch(text)
    number, of = map(int, found.groups()) if found else (0, 0)
    if 1 <= number <= of:
        return Shard(of=of, number=number)
    hint = "write 3/10 for the third of ten parts"
    if found and number == 0:
        hint = "parts count from 1; where your scheduler counts from 0, add 1"
    elif found:
        hint = "is the number of parts that of your scheduler's array?"
    raise InputError.of("bad-shard", "--shard", quote(text), "a part from 1/N to N/N", hint)


class ShardPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What all parts have in common.

    Attributes:
        runs: SHA-256 of the paths.
        measures: their names, sorted.
        key: judgments, order and code.
    """

    runs: Digest
    measures: tuple[str, ...]
    key: Key

    def holds(self, other: "ShardPlan") -> bool:
        """Check whether all that another one of the same runs asks for is scored by this one."""
        return self.key == other.key and {*other.measures} <= {*self.measures}

    @property
    def name(self) -> str:
        """The same for the same plan, on every machine."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:12]


def make_plan(paths: Iterable[str], measures: Iterable[Measure], key: Key) -> ShardPlan:
    """The plan of a call.

    Args:
        paths: all runs, as they were named.
        measures: what runs are scored by.
        key: what else scores depend on.
    """
    named = "\0".join(sorted(set(paths)))
    return ShardPlan(
        runs=Digest(hashlib.sha256(named.encode()).hexdigest()),
        measures=tuple(sorted({str(measure) for measure in measures})),
        key=key,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartScored:
    """A part that was scored.

    Attributes:
        shard: which one.
        plan: of all parts.
        root: the folder of scores.
        all_runs: how many runs all parts have.
        outcomes: of the runs of this part.
    """

    shard: Shard
    plan: ShardPlan
    root: Path
    all_runs: int
    outcomes: Sequence[Outcome]

    @property
    def failed(self) -> list[Failed]:
        """The runs that could not be scored, or whose scores could not be stored."""
        return [one for one in self.outcomes if isinstance(one, Failed)]

    @property
    def stored(self) -> int:
        """How many runs were scored before."""
        return sum(isinstance(one, Scored) and one.stored for one in self.outcomes)

    def document(self) -> dict[str, Any]:
        """All of it but the scores, as a JSON document."""
        return {
            "shard": self.shard.number,
            "of": self.shard.of,
            "plan": self.plan.name,
            "cache": str(self.root),
            "runs": self.all_runs,
            "scored": len(self.outcomes) - len(self.failed),
            "stored_before": self.stored,
            "failed": [
                {"path": run.path, "problems": [asdict(one) for one in run.problems]}
                for run in self.failed
            ],
        }


def score_part(
    reading: Reading,
    runs: Sequence[str],
    qrels: Qrels,
    measures: Sequence[Measure],
    shard: Shard,
    *,
    order: Order | None = None,
) -> PartScored:
    """Score a part of the runs into the folder that all machines see.

    Args:
        reading: how runs are read, with that folder as its cache.
        runs: all runs.
        qrels: the judgments.
        measures: heldout's own: those of other libraries are not stored.
        shard: which part.
        order: how documents are ordered; `None` for what fits a run's columns.

    Returns:
        What was done. A run whose scores could not be stored has failed: code `not-stored`.

    Raises:
        OptionError: a measure of another library.
        SetupError: as `check_shared`.
    """
    others = [str(one) for one in measures if isinstance(one, OtherMeasure)]
    if others:
        raise OptionError(
            f"--shard stores scores, and those of another library are not stored: {others[0]}; "
            "leave it to the last call, without --shard"
        )
    cache = check_shared(reading.cache)
    plan = make_plan(runs, measures, reading.key(qrels, order))
    outcomes = reading.score(shard.deal(runs), qrels, measures, order=order)
    found = PartScored(
        shard=shard,
        plan=plan,
        root=cache.root,
        all_runs=len(set(runs)),
        outcomes=[_check_saved(outcome, cache) for outcome in outcomes],
    )
    if not any(one.problems[0].code == "not-stored" for one in found.failed):
        note_part(cache, plan, shard)
    return found


def _check_saved(outcome: Outcome, cache: ScoreCache) -> Outcome:
    if isinstance(outcome, Failed) or outcome.saved:
        return outcome
    problem = Problem.of("not-stored", outcome.path, folder=cache.root)
    return Failed(path=outcome.path, problems=(problem,), counts={})


def check_shared(cache: ScoreCache | None) -> ScoreCache:
    """The folder that parts are scored into.

    Raises:
        SetupError: nobody named one, it cannot be written, or somebody else's scores are there.
    """
    if cache is None or cache.limit is not None:
        raise SetupError(
            "parts meet in a folder that all machines see: HELDOUT_CACHE=/shared/scores names it"
        )
    try:
        cache.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        owner, usable = cache.folder.stat().st_uid, os.access(cache.folder, os.R_OK | os.W_OK)
    except OSError as error:
        raise SetupError(f"no scores can be stored in {cache.root}: {error.strerror}") from error
    if owner != os.geteuid():
        raise SetupError(
            f"{cache.root} has scores of user {owner}, and this is user {os.geteuid()}: score all "
            "parts as one user, or name another folder; nobody's scores are read by others"
        )
    if not usable:
        raise SetupError(f"no scores can be stored in {cache.root}: it cannot be written")
    return cache


def note_part(cache: ScoreCache, plan: ShardPlan, shard: Shard) -> None:
    """Note that a part is scored. Without the note its scores are found all the same."""
    from heldout.files.durable import write_whole  # noqa: PLC0415 - most calls only read

    folder = cache.root / _FOLDER / plan.name
    with suppress(OSError, StoreError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = f"{shard.number}-of-{shard.of}.json"
        write_whole(folder / name, msgspec.json.encode(plan), mode=0o600)


def describe_parts(
    reading: Reading,
    runs: Sequence[str],
    qrels: Qrels,
    measures: Sequence[Measure],
    *,
    order: Order | None = None,
) -> str:
    """Return which parts of these runs are scored, or in what they differ from what is asked for.

    Returns:
        A sentence; "" where no part of these runs was ever scored.
    """
    cache = reading.cache
    if cache is None:
        return ""
    own = [one for one in measures if not isinstance(one, OtherMeasure)]
    plan = make_plan(runs, own, reading.key(qrels, order))
    plans = list(_read_plans(cache.root / _FOLDER, plan.runs))
    scored = [shards for found, shards in plans if found.holds(plan)]
    if scored:
        of, numbers = max(scored[0].items(), key=lambda one: len(one[1]) / one[0])
        missing = [f"{number}/{of}" for number in range(1, of + 1) if number not in numbers]
        if not missing:
            return f"all {plural(of, 'part')} are scored"
        more = f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
        return (
            f"{len(numbers):,} of {plural(of, 'part')} are scored; what is missing is scored now: "
            f"{', '.join(missing[:_SHOWN])}{more}"
        )
    differences = {_compare(found, plan) for found, _ in plans}
    if not differences:
        return ""
    return f"the parts of these runs are of another plan: {'; or '.join(sorted(differences))}"


def _compare(found: ShardPlan, plan: ShardPlan) -> str:
    """In what a plan differs from another one of the same runs."""
    pairs = (
        ("measures", ", ".join(found.measures), ", ".join(plan.measures)),
        ("judgments", found.key.qrels[:12], plan.key.qrels[:12]),
        ("order", found.key.order or "by the columns", plan.key.order or "by the columns"),
        ("versions", found.key.code, plan.key.code),
    )
    return "; ".join(
        f"{name} there: {theirs}, here: {own}" for name, theirs, own in pairs if theirs != own
    )


def _read_plans(folder: Path, runs: Digest) -> Iterator[tuple[ShardPlan, dict[int, set[int]]]]:
    """Plans of the same runs, each with the parts that are noted: how many parts -> which."""
    for part in sorted(_list(folder)):
        notes = [found for name in _list(part) if (found := _NOTE.fullmatch(name.name))]
        try:
            plan = msgspec.json.decode((part / notes[0].string).read_bytes(), type=ShardPlan)
        except (IndexError, OSError, msgspec.MsgspecError):
            continue
        if plan.runs == runs and plan.name == part.name:
            parts: dict[int, set[int]] = {}
            for note in notes:
                parts.setdefault(int(note[2]), set()).add(int(note[1]))
            yield plan, parts


def _list(folder: Path) -> Sequence[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0  # reading it says why
