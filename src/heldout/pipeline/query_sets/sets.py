"""Query sets as a run is checked and scored with them: queries, labels, candidates."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from heldout.board.rules.held_out import key_name, list_stems, open_labels
from heldout.board.rules.parts import feedback_queries
from heldout.board.rules.spec import BoardSpec, View
from heldout.errors import InputError, Problem, plural, quote
from heldout.ids import Digest, digest_bytes, find_near, say_near
from heldout.pipeline.query_sets.view_files import ViewFiles, load_view_files
from heldout.store.repository import Repository
from heldout.store.vault import Vault
from heldout.trec.grades import GradeBook, combine, regrade
from heldout.trec.qrels import Qrels
from heldout.trec.queries import Queries
from heldout.trec.ranking import Rankings
from heldout.trec.runs import Expected

__all__ = ["RERANKING", "Labels", "SetData", "check_excluded", "expected_run", "load_sets"]

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
        feedback: the queries of the feedback part of a split set; `None` without its key.
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
    feedback: frozenset[str] | None = None

    @property
    def grades(self) -> Mapping[str, Mapping[str, int]] | None:
        """What a run is scanned with: grades, or codes for them where there are others."""
        if self.book is not None:
            return self.book.codes
        return None if self.qrels is None else self.qrels.judgments

    def judgments(self, labels: str | None) -> Mapping[str, Mapping[str, int]] | None:
        """What some labels say, by their name, or the set's own; `None` where they are not here."""
        if labels is not None:
            return self.others[labels].qrels.judgments if labels in self.others else None
        return None if self.qrels is None else self.qrels.judgments

    def can_score(self, view: View) -> bool:
        """Whether the labels of a view are here, the key of its part, and all else it names."""
        drawn = view.part is None or self.feedback is not None
        return drawn and self.judgments(view.labels) is not None and self.files.has(view)

    def asked(self, view: View) -> frozenset[str]:
        """The queries that a view may be over: of its part, and on its list.

        Raises:
            ValueError: whoever asks has no key that says which queries are in which part.
        """
        asked = frozenset(self.queries.texts)
        if view.part is not None and self.feedback is None:
            raise ValueError(view.name)
        if view.part is not None and self.feedback is not None:
            asked = self.feedback if view.part == "feedback" else asked - self.feedback
        return asked if view.queries is None else asked & self.files.queries[view.queries]

    def judgments_of(self, view: View) -> Mapping[str, Mapping[str, int]]:
        """What a view is scored by: its labels, for its queries.

        Judgments of queries that the set does not have would count 0 for every run.

        Raises:
            ValueError: they are not here, or not the key of its part.
        """
        given = self.judgments(view.labels)
        if given is None:
            raise ValueError(view.name)
        asked = self.asked(view)
        return {query: grades for query, grades in given.items() if query in asked}

    def rankings(self, scanned: Rankings, labels: str | None) -> Rankings:
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
    qrels = digest = None
    if files.qrels is not None:
        qrels = repository.qrels(files.qrels)
        digest = digest_bytes(repository.file(files.qrels).read_bytes())
    elif vault is not None:
        qrels, digest = vault.labels(name), vault.labels_digest(name)
    given = files.candidates
    others = _load_others(repository, spec, name, vault)
    queries = repository.queries(files.queries)
    excluded = frozenset() if vault is None else _load_excluded(name, queries, vault)
    named = load_view_files(repository, (v for v in spec.views if v.set == name), vault=vault)
    _check_known(name, queries, named.queries)
    return SetData(
        queries=queries,
        qrels=qrels,
        digest=digest,
        excluded=excluded,
        candidates=None if given is None else repository.candidates(given),
        others=others,
        book=_combine(qrels, others) if others and qrels is not None else None,
        files=named,
        held_out={} if vault is None else vault.held_out(list_stems(spec, name)),
        feedback=_draw_feedback(spec, name, queries, vault),
    )


def _draw_feedback(
    spec: BoardSpec, name: str, queries: Queries, vault: Vault | None
) -> frozenset[str] | None:
    """The feedback part of a split set; `None` for one without parts, and before there is a key.

    Raises:
        StoreError: a key that the log commits to is missing, or is none.
    """
    if vault is None or all(view.part is None for view in spec.views if view.set == name):
        return None
    if not vault.has_set_key(name) and key_name(name) not in vault.history().labels:
        return None
    return feedback_queries(vault.set_key(name), queries.texts, spec.release.feedback)


def check_excluded(repository: Repository, spec: BoardSpec, *, vault: Vault) -> None:
    """Refuse lists of queries that don't count which are no lists, or name what a set lacks.

    Raises:
        InputError: a list is wrong, or a file of queries.
    """
    for name, files in spec.sets.items():
        if vault.excluded(name):
            _load_excluded(name, repository.queries(files.queries), vault)


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
        Problem(
            code="unknown-query",
            path=path,
            found=f"{plural(len(ids), 'query', 'queries')} that '{name}' does not have, "
            f"first {quote(ids[0])}",
            expected=f"ids of '{name}', one a line",
            hint=say_near(find_near(ids, queries.texts)) or "ids are text, 007 is not 7",
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
    if not spec.sets[name].held_out:
        return {
            labels: Labels(
                qrels=repository.qrels(open_labels(labels)),
                digest=digest_bytes(repository.file(open_labels(labels)).read_bytes()),
            )
            for labels in sorted(named)
        }
    if vault is None:
        return {}
    return {
        labels: Labels(qrels=vault.labels(labels), digest=vault.labels_digest(labels))
        for labels in sorted(named)
    }


def _combine(own: Qrels, others: Mapping[str, Labels]) -> GradeBook:
    return combine(
        {"": own.judgments, **{name: labels.qrels.judgments for name, labels in others.items()}}
    )


def expected_run(spec: BoardSpec, data: SetData, *, submission_type: str) -> Expected:
    """What a run over a set must be like, by board.toml and the type of its submission."""
    return Expected(
        queries=data.queries.texts,
        min_depth=spec.runs.min_depth,
        max_depth=spec.runs.depth,
        candidates=data.candidates if submission_type == RERANKING else None,
        complete=spec.runs.complete,
    )
