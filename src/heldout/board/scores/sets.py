"""Query sets as a run is checked and scored with them: queries, labels, candidates.

Runs of one submission that differ only by seed: their names, and whether all of them are there. The
first run of a query set is called as the set is, the second `SET~2`, the third `SET~3`. Every set
has as many as the others, so that each seed is a whole system. Source: Lin et al. 2022,
§2.2, where runs that differ by seed alone use up submissions and climb on noise.

The files that views name: a list of queries, groups of queries, groups of documents. A path below
`labels/` leads into the vault, any other into the board.

What query sets must hold, so that a board can give scores and keep its labels to itself.

The board's own files that decide scores, held against the digests in the log. Queries, public
labels, candidates and the public files of views lie in git, where whoever may push can change them.
The log has their digests from the start. A file with other bytes is an edit of the rules: nothing
is scored by it until an organiser has said yes to it.
"""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar

import msgspec

from heldout.board.log.history import History
from heldout.board.rules.changes import key_name, list_open, list_stems, open_labels
from heldout.board.rules.release import Part, name_part, split_queries
from heldout.board.rules.spec import BoardSpec, QuerySet, View
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.errors import InputError, Problem, StoreError, plural, quote
from heldout.files.durable import File
from heldout.ids import Digest, digest_bytes, find_near, query_set_of, run_name, say_near, seed_of
from heldout.scoring import evaluate, fairness, measures
from heldout.trec import ranking, scans
from heldout.trec.groups import DocumentGroups, read_document_groups, read_facets, read_query_list
from heldout.trec.qrels import GradeBook, Qrels, combine, regrade
from heldout.trec.queries import Queries, parse_queries
from heldout.trec.reading.streams import Limits
from heldout.trec.runs import scan_run

T = TypeVar("T")

_NUMBER = re.compile("[2-9]|[1-9][0-9]{1,5}", re.ASCII)


def check_seeds(
    names: Collection[str], *, sets: Collection[str], most: int, path: str
) -> Iterator[Problem]:
    """Yield what is wrong with the names of runs, as far as their seeds go.

    A set without any run is not told here, nor a name of no set.

    Args:
        names: of the runs: `SET`, `SET~2` and so on.
        sets: the query sets that have to be answered.
        most: most seeds of a submission, 1 where the board takes one run for each set.
        path: where the names stand, for errors.
    """
    named = [name for name in names if "~" in name and query_set_of(name) in sets]
    wrong = [name for name in named if not _NUMBER.fullmatch(name.partition("~")[2])]
    for name in sorted(wrong):
        yield Problem.of("seed-name", path, f"a run called {quote(name)}")
    seeds = max((seed_of(name) for name in named if name not in wrong), default=1)
    if seeds > most:
        yield Problem.of("too-many-seeds", path, f"{seeds} seeds", most=plural(most, "run"))
        return
    wanted = [run_name(name, seed) for seed in range(2, seeds + 1) for name in sets]
    for name in sorted(set(wanted) - set(named), key=_order):
        found = f"no run for '{name}'"
        yield Problem.of("missing-seed", path, found, seeds=seeds, sets=", ".join(sets))


def list_runs(names: Iterable[str], *, sets: Iterable[str]) -> tuple[str, ...]:
    """List what has to be in a tarball: a run for each set, and further seeds."""
    every = tuple(sets)
    return (*every, *sorted(n for n in names if "~" in n and query_set_of(n) in every))


def group_seeds(runs: Mapping[str, T]) -> Mapping[str, tuple[T, ...]]:
    """Query set -> what there is of its runs, the first seed first."""
    found: dict[str, list[T]] = {}
    for name in sorted(runs, key=_order):
        found.setdefault(query_set_of(name), []).append(runs[name])
    return {name: tuple(values) for name, values in found.items()}


def _order(name: str) -> tuple[str, int]:
    return query_set_of(name), seed_of(name)


_VAULT = "labels/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewFiles:
    """What the files say that the views of a query set name, by their paths.

    Attributes:
        queries: lists of queries.
        facets: groups of queries, group -> queries.
        groups: groups of documents.
        digests: of every file.
    """

    queries: Mapping[str, frozenset[str]] = field(default_factory=dict)
    facets: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    groups: Mapping[str, DocumentGroups] = field(default_factory=dict)
    digests: Mapping[str, Digest] = field(default_factory=dict)

    def has(self, view: View) -> bool:
        """Check whether everything that a view names is here."""
        return all(file in self.digests for file in view.files)

    def expose(self, view: View, signature: scans.Signature) -> fairness.Exposures | None:
        """A run's tops through the groups of a view; `None` for a view without groups."""
        if view.groups is None:
            return None
        groups = self.groups[view.groups]
        target = fairness.read_target(groups, view.target, path=view.groups)
        return fairness.Exposures(signature=signature, groups=groups, target=target)


def load_view_files(
    repository: Repository, views: Iterable[View], *, vault: Vault | None
) -> ViewFiles:
    """Read the files that views of one query set name, each once.

    Args:
        repository: the board.
        views: those of the set.
        vault: gives what is held out; `None` on a participant's side, who does without.

    Raises:
        StoreError: a file is missing.
        InputError: a file is wrong, or a target names other groups than its file.
    """
    views = tuple(views)
    named = dict.fromkeys(file for view in views for file in view.files)
    paths = {
        name: find_view_file(repository, vault, name)
        for name in named
        if vault is not None or not name.startswith(_VAULT)
    }

    def read(kind: str, reader: Callable[..., T]) -> dict[str, T]:
        files = dict.fromkeys(getattr(view, kind) for view in views)
        return {name: _read(paths[name], name, reader) for name in files if name in paths}

    groups = read("groups", read_document_groups)
    for view in views:
        if view.groups in groups:  # told before any run is read
            fairness.read_target(groups[view.groups], view.target, path=view.groups)
    return ViewFiles(
        queries=read("queries", read_query_list),
        facets=read("facets", read_facets),
        groups=groups,
        digests={name: digest_bytes(path.read_bytes()) for name, path in paths.items()},
    )


def find_view_file(repository: Repository, vault: Vault | None, name: str) -> File:
    """Return where a file lies that a view names.

    Args:
        repository: the board.
        vault: of it; needed for what is held out.
        name: its path in board.toml.

    Raises:
        StoreError: it is missing.
    """
    if vault is None or not name.startswith(_VAULT):
        return repository.file(name)
    file = vault.files.file(name)
    if not file.is_file():
        raise StoreError(f"{file} is missing: board.toml names {name}, which lies in the vault")
    return file


def _read(file: File, name: str, reader: Callable[..., T]) -> T:
    with file.open() as source:
        return reader(source, path=name)


RERANKING = "reranking"
"""The submission type whose runs keep to the official candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Labels of a query set that a view names: others than its own.

    Attributes:
        qrels: what they say.
        digest: of their file.
    """

    qrels: Qrels
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class SetData:
    """One query set in memory.

    Attributes:
        queries: the ids that a run must answer, and their texts.
        qrels: the labels, `None` where they are held out from whoever asks.
        digest: of the labels' file, `None` likewise.
        excluded: queries that do not count.
        candidates: query -> official documents for re-ranking, `None` where there are none.
        others: name -> further labels of the same queries.
        book: its own labels, under "", and the others under one code; `None` without others.
        files: what its views name besides.
        held_out: every file of the vault that its scores depend on, as `board.held_out` names it
            -> SHA-256.
        parts: the queries of each part of a split set; `None` without its key.
    """

    queries: Queries
    qrels: Qrels | None
    digest: Digest | None
    excluded: frozenset[str]
    candidates: Mapping[str, frozenset[str]] | None
    others: Mapping[str, Labels] = field(default_factory=dict)
    book: GradeBook | None = None
    files: ViewFiles = field(default_factory=ViewFiles)
    held_out: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[Part, frozenset[str]] | None = None

    @property
    def grades(self) -> Mapping[str, Mapping[str, int]] | None:
        """What a run is scanned with: grades, or codes for them where there are others."""
        if self.book is not None:
            return self.book.codes
        return None if self.qrels is None else self.qrels.judgments

    def judgments(self, labels: str | None) -> Mapping[str, Mapping[str, int]] | None:
        """Return what some labels say, or the set's own; `None` where they are not here."""
        if labels is not None:
            return self.others[labels].qrels.judgments if labels in self.others else None
        return None if self.qrels is None else self.qrels.judgments

    def can_score(self, view: View) -> bool:
        """Check whether labels, key and all else that a view names are here."""
        drawn = view.part is None or self.parts is not None
        return drawn and self.judgments(view.labels) is not None and self.files.has(view)

    def asked(self, view: View) -> frozenset[str]:
        """The queries that a view may be over: of its part, and on its list.

        Raises:
            ValueError: whoever asks has no key that says which queries are in which part.
        """
        asked = frozenset(self.queries.texts)
        if view.part is not None:
            if self.parts is None:
                raise ValueError(view.name)
            asked = self.parts[view.part]
        return asked if view.queries is None else asked & self.files.queries[view.queries]

    def judgments_of(self, view: View) -> Mapping[str, Mapping[str, int]]:
        """Return what a view is scored by: its labels, for its queries.

        Judgments of queries that the set does not have would count 0 for every run.

        Raises:
            ValueError: they are not here, or not the key of its part.
        """
        given = self.judgments(view.labels)
        if given is None:
            raise ValueError(view.name)
        asked = self.asked(view)
        return {query: grades for query, grades in given.items() if query in asked}

    def rankings(self, scanned: ranking.Rankings, labels: str | None) -> ranking.Rankings:
        """A run that was scanned with `grades`, as these labels see it."""
        if self.book is None:
            return scanned
        return regrade(scanned, self.book.grades[labels or ""])

    @property
    def digests(self) -> Mapping[str, Digest]:
        """Name of labels, or path of what a view names -> digest; the set's own labels are ""."""
        own = {} if self.digest is None else {"": self.digest}
        others = {name: labels.digest for name, labels in self.others.items()}
        return {**own, **others, **self.files.digests}


def load_sets(
    repository: Repository, spec: BoardSpec, *, vault: Vault | None
) -> Mapping[str, SetData]:
    """Read every query set of a board.

    Args:
        repository: the board.
        spec: names the files.
        vault: gives the held-out labels; `None` on a participant's side.

    Raises:
        StoreError: a file is missing.
        InputError: a file is wrong, or a list of queries has one that the set lacks.
    """
    return {name: _load(repository, spec, name, vault) for name in spec.sets}


def _load(repository: Repository, spec: BoardSpec, name: str, vault: Vault | None) -> SetData:
    files = spec.sets[name]
    own = _read_labels(repository, vault, name, files.qrels)
    qrels, digest = (None, None) if own is None else (own.qrels, own.digest)
    given = files.candidates
    others = _load_others(repository, spec, name, vault)
    queries = load_queries(repository, files, vault=vault)
    excluded = frozenset() if vault is None else _load_excluded(name, queries, vault)
    named = load_view_files(repository, (v for v in spec.views if v.set == name), vault=vault)
    if vault is not None or not files.secret:
        _check_known(name, queries, named.queries)
    book = None
    if others and qrels is not None:
        graded = {name: labels.qrels.judgments for name, labels in others.items()}
        book = combine({"": qrels.judgments, **graded})
    return SetData(
        queries=queries,
        qrels=qrels,
        digest=digest,
        excluded=excluded,
        candidates=None if given is None else repository.candidates(given),
        others=others,
        book=book,
        files=named,
        held_out={} if vault is None else vault.held_out(list_stems(spec, name)),
        parts=_draw_parts(spec, name, queries, vault),
    )


def load_queries(repository: Repository, files: QuerySet, *, vault: Vault | None) -> Queries:
    """The queries of a set, out of the board or the vault.

    Args:
        repository: the board.
        files: the set's.
        vault: gives what is held out; without it a set of secret queries has none.

    Raises:
        StoreError: the file is missing.
        InputError: it is wrong.
    """
    if not files.secret:
        return repository.queries(files.queries)
    if vault is None:
        return Queries(texts={}, digest=digest_bytes(b""))
    file = find_view_file(repository, vault, files.queries)
    return parse_queries(file.read_bytes(), path=files.queries)


def _draw_parts(
    spec: BoardSpec, name: str, queries: Queries, vault: Vault | None
) -> Mapping[Part, frozenset[str]] | None:
    """The parts of a split set; `None` for one without parts, and before there is a key.

    Raises:
        StoreError: a key that the log commits to is missing, or is none.
    """
    if vault is None or all(view.part is None for view in spec.views if view.set == name):
        return None
    if not vault.has_set_key(name) and key_name(name) not in vault.history().labels:
        return None
    return split_queries(vault.set_key(name), queries.texts, spec.release)


def check_excluded(repository: Repository, spec: BoardSpec, *, vault: Vault) -> None:
    """Refuse lists of queries that don't count which are no lists, or name what a set lacks.

    Raises:
        InputError: a list is wrong, or a file of queries.
    """
    for name, files in spec.sets.items():
        if vault.excluded(name):
            _load_excluded(name, load_queries(repository, files, vault=vault), vault)


def _load_excluded(name: str, queries: Queries, vault: Vault) -> frozenset[str]:
    excluded = vault.excluded(name)
    _check_known(name, queries, {f"labels/{name}.exclude": excluded})
    return excluded


def _check_known(name: str, queries: Queries, lists: Mapping[str, frozenset[str]]) -> None:
    """Refuse lists with ids that the set lacks: mostly they mean queries that it has.

    Raises:
        InputError: `unknown-query`.
    """
    strange = {path: sorted(listed - queries.texts.keys()) for path, listed in lists.items()}
    problems = [
        Problem.of(
            "unknown-query",
            path,
            f"{plural(len(ids), 'query', 'queries')} that '{name}' does not have, "
            f"first {quote(ids[0])}",
            hint=say_near(find_near(ids, queries.texts)),
            set=name,
        )
        for path, ids in strange.items()
        if ids
    ]
    if problems:
        raise InputError(problems)


def _load_others(
    repository: Repository, spec: BoardSpec, name: str, vault: Vault | None
) -> dict[str, Labels]:
    """Labels that views name: where the set's own lie, in the open or in the vault."""
    named = {view.labels for view in spec.views if view.set == name and view.labels is not None}
    held_out = spec.sets[name].held_out
    found = {
        labels: _read_labels(repository, vault, labels, None if held_out else open_labels(labels))
        for labels in sorted(named)
    }
    return {labels: one for labels, one in found.items() if one is not None}


def _read_labels(
    repository: Repository, vault: Vault | None, name: str, path: str | None
) -> Labels | None:
    """Labels by their path in the board, or of that name in the vault; `None` without a vault."""
    if path is not None:
        digest = digest_bytes(repository.file(path).read_bytes())
        return Labels(qrels=repository.qrels(path), digest=digest)
    return (
        None
        if vault is None
        else Labels(qrels=vault.labels(name), digest=vault.labels_digest(name))
    )


def scan_for_board(
    spec: BoardSpec,
    sets: Mapping[str, SetData],
    submission_type: str,
    name: str,
    stream: BinaryIO,
    *,
    path: str = "",
) -> scans.Scan:
    """Scan one run file by board.toml and the type of its submission.

    Args:
        spec: the rules.
        sets: the query sets.
        submission_type: as its metadata says; "" for a baseline.
        name: of the run: `SET`, `SET~2` and so on.
        stream: the file as it is stored.
        path: of the file, for messages; by default the run's name.
    """
    data = sets[query_set_of(name)]
    expected = scans.Expected(
        queries=data.queries.texts,
        min_depth=spec.runs.min_depth,
        max_depth=spec.runs.depth,
        candidates=data.candidates if submission_type == RERANKING else None,
        complete=spec.runs.complete,
    )
    return scan_run(
        stream,
        path=path or name,
        order=spec.runs.order,
        qrels=data.grades,
        expected=expected,
        limits=Limits(),
    )


_FEWEST = {"feedback": 100, "deciding": 300}
_FEWEST_OF_SEASON = 200
"""Queries that count, of each part of a split set: with 100 a score between 0 and 1 has a standard
error of about 0.04, and a release rule on fewer than 300 rarely publishes anything. A season part
may be smaller, for at the season's end each team gets a score on it."""

Judgments = Mapping[str, Mapping[str, int]]


def check_sets(spec: BoardSpec, sets: Mapping[str, SetData]) -> None:
    """Refuse sets over which a view has no score, too small ones, and held-out labels in the open.

    Where a set has no key yet the size of its parts is what it is in the mean over keys.

    Args:
        spec: the rules.
        sets: the query sets with all their labels.

    Raises:
        InputError: `undefined-score`, `small-part`, `open-labels` or `used-queries`.
    """
    problems = [
        *_list_undefined(spec, sets),
        *_list_small(spec, sets),
        *_list_open(spec, sets),
        *_list_used(spec, sets),
    ]
    if problems:
        raise InputError(problems)


def _list_undefined(spec: BoardSpec, sets: Mapping[str, SetData]) -> Iterator[Problem]:
    for view in spec.views:
        why = _find_undefined(view, sets[view.set])
        if why is not None:
            hint = "are the labels those of other queries?"
            path = f"view {view.name}"
            yield Problem.of("undefined-score", path, why, hint=hint, measure=view.measure)


def _find_undefined(view: View, data: SetData) -> str | None:
    """Return why no run can have a score, or any but 0; `None` where one can."""
    measure = measures.parse_measure(view.measure)
    judged = evaluate.prepare(_judgments_of(view, data), [measure], excluded=data.excluded)
    count = len(judged.queries)
    if not count:
        return f"0 of {len(data.queries.texts):,} queries are judged and count"
    if judged.without_relevant[measure] == count and not measure.kind.exposure:
        return f"no relevant document for any of {count:,} judged queries"
    return None


def _judgments_of(view: View, data: SetData) -> Judgments:
    """Return what a view is scored by; of a set to be split without a key, the whole."""
    known = data.parts is not None
    return data.judgments_of(view if known else msgspec.structs.replace(view, part=None))


def _list_small(spec: BoardSpec, sets: Mapping[str, SetData]) -> Iterator[Problem]:
    seen = set()
    for view in spec.views:
        which = (view.set, view.labels, view.part)
        if view.part is None or which in seen:
            continue
        seen.add(which)
        size = _count_part(spec, view, sets[view.set])
        least = _FEWEST_OF_SEASON if isinstance(view.part, int) else _FEWEST[view.part]
        if size < least:
            found = f"{size:,} queries that count in {name_part(view.part)} of '{view.set}'"
            hint = "take fewer release.seasons" if view.season_part else ""
            share = f"{spec.release.feedback:g}"
            path = f"view {view.name}"
            yield Problem.of("small-part", path, found, hint=hint, least=least, share=share)


def _count_part(spec: BoardSpec, view: View, data: SetData) -> int:
    """The queries of its part that count by its labels, on its list or not."""
    whole = msgspec.structs.replace(view, queries=None)
    judged = {query for query, grades in _judgments_of(whole, data).items() if grades}
    counted = len(judged - data.excluded)
    if data.parts is not None:
        return counted
    feedback = round(spec.release.feedback * counted)
    if view.part == "feedback":
        return feedback
    return (counted - feedback) // (spec.release.seasons if view.season_part else 1)


def _list_open(spec: BoardSpec, sets: Mapping[str, SetData]) -> Iterator[Problem]:
    public = {
        name: data.judgments(None) or {}
        for name, data in sets.items()
        if not spec.sets[name].held_out
    }
    for view in spec.views:
        if not spec.sets[view.set].held_out:
            continue
        mine = _judgments_of(view, sets[view.set])
        for name, theirs in public.items():
            if any(mine.values()) and _is_within(mine, theirs):
                yield Problem.of(
                    "open-labels",
                    f"view {view.name}",
                    f"every label of '{view.labels or view.set}' is also one of '{name}', "
                    "in the open",
                )


def _list_used(spec: BoardSpec, sets: Mapping[str, SetData]) -> Iterator[Problem]:
    """The sets that have a query of a view with finalists, by its id or by its text."""
    view = spec.finalists_view
    if view is None or view.set not in sets:
        return
    own = sets[view.set].queries.texts
    texts = set(map(_fold, own.values()))
    for name, data in sets.items():
        used = [
            query
            for query, text in data.queries.texts.items()
            if name != view.set and (query in own or _fold(text) in texts)
        ]
        if used:
            found = f"{len(used):,} queries are in '{name}' too, such as {quote(used[0])}"
            yield Problem.of("used-queries", f"view {view.name}", found, set=view.set)


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def _is_within(inner: Judgments, outer: Judgments) -> bool:
    """Check whether every judgment is also one of the others, with the same grade."""
    return all(grades.items() <= outer.get(query, {}).items() for query, grades in inner.items())


_MOST_VERSIONS = 200
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedFile:
    """A public file that is not what the log has.

    Attributes:
        path: in the board.
        logged: its SHA-256 in the log, `None` where the log has none.
        found: that of the file, `None` where there is none.
    """

    path: str
    logged: str | None
    found: str | None

    def __str__(self) -> str:
        """Return what is wrong, in a sentence."""
        if self.found is None:
            return f"{self.path} is missing: the log has its digest"
        if self.logged is None:
            return f"{self.path} is not in the log"
        return f"{self.path} is not the file that the log has"


def digest_public(repository: Repository, spec: BoardSpec) -> dict[str, str]:
    """Path -> SHA-256 of the public files that decide scores; the record of an old board has none.

    Raises:
        StoreError: one is reached by a symlink.
    """
    found = {path: repository.files.find(path) for path in list_open(spec)}
    return {path: str(digest_bytes(data)) for path, data in found.items() if data is not None}


def find_edited(
    repository: Repository, history: History, spec: BoardSpec
) -> tuple[EditedFile, ...]:
    """The public files that differ from the log; none where the log has no digests of them.

    Args:
        repository: the board.
        history: what the log says.
        spec: names the files.

    Raises:
        StoreError: one is reached by a symlink.
    """
    now, named = digest_public(repository, spec), list_open(spec)
    return tuple(
        EditedFile(path=path, logged=history.files.get(path), found=now.get(path))
        for path in named
        if now.get(path) != history.files.get(path)
    )


def find_version(repository: Repository, edited: EditedFile) -> tuple[str, bytes] | None:
    """The newest commit whose file has the digest in the log, and its bytes; `None` without one."""
    git = repository.git
    if edited.logged is None or not git.is_repository() or git.head() is None:
        return None
    for commit in git.versions(edited.path, most=_MOST_VERSIONS):
        data = git.read_path(commit, edited.path, limit=_MOST_BYTES)
        if data is not None and digest_bytes(data) == edited.logged:
            return commit, data
    return None


def restore_public(
    repository: Repository, history: History, spec: BoardSpec
) -> tuple[tuple[str, str], ...]:
    """Write the files that the log has over edited ones, from the board's git; paths and commits.

    Raises:
        StoreError: git has no version with the digest in the log; no such file was written.
    """
    edited = find_edited(repository, history, spec)
    # A file that the log lacks cannot be told from one that is about to be added: it stays.
    found = {one: find_version(repository, one) for one in edited if one.logged is not None}
    lost = [one for one, version in found.items() if version is None]
    if lost or len(found) < len(edited):
        lines = [f"{one.path} (SHA-256 {(one.logged or 'none')[:12]}…)" for one in lost]
        lines += [f"{one.path} (not in the log: remove it)" for one in edited if not one.logged]
        raise StoreError(
            f"the log has digests only, and git here has no such version: put {', '.join(lines)} "
            "right by hand"
        )
    restored = [(one.path, *version) for one, version in found.items() if version is not None]
    for path, _, data in restored:
        repository.write_file(path, data)
    return tuple((path, commit) for path, commit, _ in restored)


def check_unedited(repository: Repository, history: History, spec: BoardSpec) -> None:
    """Refuse to work with a file that the log does not have.

    Raises:
        InputError: code `edited-file`, one for each.
        StoreError: one is reached by a symlink.
    """
    problems = []
    for one in find_edited(repository, history, spec):
        version = find_version(repository, one)
        command = f"git checkout {version[0][:12]} -- {shlex.quote(one.path)}" if version else ""
        problems.append(
            Problem.of(
                "edited-file",
                one.path,
                "no file" if one.found is None else f"a file of SHA-256 {one.found[:12]}…",
                logged="no file" if one.logged is None else f"SHA-256 {one.logged[:12]}…",
                command=command or "a new clone",
            )
        )
    if problems:
        raise InputError(problems)
