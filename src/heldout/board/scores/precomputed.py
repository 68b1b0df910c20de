"""What an entry's scores depend on, and scores that were computed ahead of a correction.

`remembered/scores/ID` in the vault has the scores of an entry beside digests of all that they
depend on, under a mark that only who has the vault's private keys can make. Parts of a correction
(`heldout correct --shard`) write such files, each for entries of its own. A file is whole or
absent, so parts need no lock. The correction takes the scores whose dependencies are those of
today, and removes the files.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from heldout.board.log.submission import Submission
from heldout.board.rules.changes import add_label_views, list_open
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.kept import ScoreFile
from heldout.board.scores.session import Session
from heldout.board.scores.sets import SetData, digest_public, load_sets
from heldout.board.store.sharing import REMEMBERED
from heldout.ids import digest_bytes
from heldout.scoring.cache import code_version

_FOLDER = "scores"


class Dependencies(msgspec.Struct, frozen=True, kw_only=True):
    """All that an entry's scores depend on.

    Attributes:
        files: the entry's sealed files and runs, name -> SHA-256.
        labels: as `labels_of` and `held_out_of` have them, name -> SHA-256.
        public: path of each public file that decides scores -> SHA-256.
        rules: SHA-256 of the rules that the entry is scored by.
        code: as `code_version` says it.
    """

    files: Mapping[str, str]
    labels: Mapping[str, str]
    public: Mapping[str, str]
    rules: str
    code: str

    def differences(self, other: "Dependencies") -> tuple[str, ...]:
        """In what two differ, in words."""
        pairs = {
            "files of the entry": (self.files, other.files),
            "labels": (self.labels, other.labels),
            "public files": (self.public, other.public),
            "rules": (self.rules, other.rules),
            "versions of heldout, Python or numpy": (self.code, other.code),
        }
        return tuple(name for name, (one, two) in pairs.items() if one != two)


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of an entry, beside what they depend on."""

    made_of: Dependencies
    scores: ScoreFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of scores that were computed ahead.

    Attributes:
        used: how many entries have their scores from there.
        others: how many entries had scores there that depend on something else.
        differences: in what, in words.
    """

    used: int
    others: int
    differences: tuple[str, ...]


class Precomputed:
    """The scores of a board that were computed ahead of a correction.

    They are written without the vault's lock, also where the session is opened to be read alone:
    no other file of the vault is.

    Attributes:
        session: of the organiser.
        sets: the board's query sets, as they are scored with.
    """

    def __init__(self, session: Session, sets: Mapping[str, SetData]) -> None:
        self.session = session
        self.sets = sets
        self._vault = replace(session.vault, read_only=False)
        self._code = code_version()
        self._public: dict[tuple[str, ...], Mapping[str, str]] = {}
        self._used = 0
        self._differences: list[tuple[str, ...]] = []

    @property
    def folder(self) -> Path:
        """Where the scores lie, to be shown."""
        return self._vault.files.path(f"{REMEMBERED}/{_FOLDER}")

    def find(self, submission: Submission) -> ScoreFile | None:
        """The scores of an entry; `None` where there are none that hold today."""
        stored = self._read(submission.id)
        if stored is None:
            return None
        differences = self._made_of(submission).differences(stored.made_of)
        if differences:
            self._differences.append(differences)
            return None
        self._used += 1
        return stored.scores

    def store(self, submission: Submission, scores: ScoreFile) -> None:
        """Store the scores of an entry; they were made with this session and these sets.

        Raises:
            OSError: they cannot be written.
        """
        stored = _Stored(made_of=self._made_of(submission), scores=scores)
        data = msgspec.msgpack.encode(stored, order="deterministic")
        self._vault.remember(_name(submission.id), data)

    def forget(self, ids: Collection[str]) -> None:
        """Remove what is stored of entries, and what killed writers left: the lock is held."""
        for name in ids:
            self._vault.forget(_name(name))
        self._vault.sweep_memory(_FOLDER)

    def taken(self) -> Taken:
        """Return what `find` has found so far."""
        found = dict.fromkeys(name for names in self._differences for name in names)
        return Taken(used=self._used, others=len(self._differences), differences=tuple(found))

    def _read(self, submission: str) -> _Stored | None:
        data = self._vault.recall(_name(submission))
        try:
            return None if data is None else msgspec.msgpack.decode(data, type=_Stored)
        except (msgspec.MsgspecError, ValueError):  # of another version of heldout
            return None

    def _made_of(self, submission: Submission) -> Dependencies:
        spec = rules_of(self.session, submission)
        sets = sets_of(self.session, spec, self.sets)
        named = list_open(spec)
        if named not in self._public:
            self._public[named] = digest_public(self.session.repository, spec)
        runs = {f"run {name}": digest for name, digest in submission.runs.items()}
        return Dependencies(
            files={**submission.files, **runs, "sealed again": submission.sealed_again},
            labels={**labels_of(sets), **held_out_of(sets)},
            public=self._public[named],
            rules=digest_bytes(msgspec.json.encode(spec, order="deterministic")),
            code=self._code,
        )


def _name(submission: str) -> str:
    return f"{_FOLDER}/{submission}"


def rules_of(session: Session, submission: Submission) -> BoardSpec:
    """The rules that an entry is scored by: those of its day, with label views that came later."""
    rules = session.spec_at(submission.received, baseline=submission.baseline)
    return add_label_views(rules, session.spec())


def sets_of(
    session: Session, spec: BoardSpec, sets: Mapping[str, SetData]
) -> Mapping[str, SetData]:
    """The query sets by the rules of a day; mostly those of today."""
    today = session.spec().sets
    same = all(today.get(name) == queries for name, queries in spec.sets.items())
    same = same and spec.release.feedback == session.spec().release.feedback
    if same and all(sets[view.set].can_score(view) for view in spec.views):
        return {name: sets[name] for name in spec.sets}
    return load_sets(session.repository, spec, vault=session.vault)


def labels_of(sets: Mapping[str, SetData]) -> dict[str, str]:
    """Set, or set/labels -> SHA-256 of the labels."""
    return {
        f"{name}/{labels}" if labels else name: str(digest)
        for name, data in sets.items()
        for labels, digest in data.digests.items()
    }


def held_out_of(sets: Mapping[str, SetData]) -> dict[str, str]:
    """Every file of the vault that scores on these sets depend on -> SHA-256."""
    return {name: digest for data in sets.values() for name, digest in data.held_out.items()}
