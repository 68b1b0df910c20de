"""The organisers' own checks on a draft, as far as they go without held-out labels.

The copies of a board's public log that a clone can see, and the rules that they give. Rules hold by
the log alone. board.toml of a clone is what git brought: whoever may push to the board can change
it, and no event says so.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from heldout.board.log.events import Entry
from heldout.board.log.history import History, check_continues, goes_on, newest_copy, read_history
from heldout.board.log.manifest import MEANINGS, Manifest, team_key
from heldout.board.log.submission import Submission
from heldout.board.participant import draft
from heldout.board.participant.team import check_registration_file, with_own_registration
from heldout.board.policy import amending, identity
from heldout.board.policy.checks import Case, Finding, QuotaState, judge, quota_state
from heldout.board.policy.similarity import compare_seeds
from heldout.board.rules import changes
from heldout.board.rules.spec import RULES, BoardSpec
from heldout.board.rules.spec_file import parse_spec, refuse_spec
from heldout.board.scores.score import ViewScore, score_views
from heldout.board.scores.sets import SetData, check_unedited, load_sets, scan_for_board
from heldout.board.store.arrivals import find_registration, find_request
from heldout.board.store.repository import NO_LOG, SPEC, Repository
from heldout.errors import InputError, Problem, StoreError, plural, quote
from heldout.ids import SubmissionId, find_near, query_set_of, say_near, submission_date
from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.scans import Scan


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCopies:
    """Copies of one public log, each verified by itself.

    Attributes:
        here: the one in the clone.
        remotes: remote -> its own.
    """

    here: Sequence[Entry]
    remotes: Mapping[str, Sequence[Entry]]

    @property
    def newest(self) -> Sequence[Entry]:
        """The one to go by."""
        return newest_copy(self.here, self.remotes.values())

    @property
    def board(self) -> str | None:
        """The remote that is the board: `upstream` where there is one, origin being a fork then."""
        return next((name for name in ("upstream", "origin") if name in self.remotes), None)

    def find_faults(self) -> Iterator[str]:
        """Yield where the board's copy is not each other one with events added.

        A fork may lack events. The board may not: what it lacks was cut off, for nobody but the
        organisers could have made it.
        """
        if self.board is None:
            return
        yield from check_continues(self.here, self.remotes[self.board])
        for remote in self.remotes.keys() - {self.board}:
            for error in check_continues(self.remotes[remote], self.remotes[self.board]):
                yield f"{self.board} held against {remote}: {error}"

    def say_behind(self) -> Iterator[str]:
        """Yield which copies are behind, and what to do where a fork is taken for the board."""
        if self.board is None:
            return
        log = self.remotes[self.board]
        for remote, copy in self.remotes.items():
            if goes_on(copy, log):
                yield f"{remote} is behind {self.board}: it has {len(copy)} of {len(log)} events"
        if goes_on(log, self.here) and self.board == "origin":
            yield (
                "origin lacks events that are here: if it is a fork of the board that is behind, "
                "the board has to be the remote upstream: git remote add upstream ADDRESS"
            )


def read_copies(repository: Repository) -> LogCopies:
    """The copies of a clone and of its remotes, which are asked.

    Raises:
        StoreError: one of them is damaged.
    """
    return LogCopies(remotes=repository.remote_logs(), here=repository.log())


def check_tree_rules(
    repository: Repository, log: Sequence[Entry]
) -> tuple[changes.Difference, ...]:
    """Return how a clone's board.toml differs from the rules in force; none if just older.

    Args:
        repository: the clone.
        log: a verified public log.

    Raises:
        InputError: board.toml is wrong, or changes what published scores fix: no event can ever
            bring such rules, so who works by them works for nothing.
        StoreError: the log has no event.
    """
    if not log:
        raise StoreError(NO_LOG)
    history, text = read_history(log), repository.tree_rules()
    if text in {rules for _, rules in history.rules}:
        return ()
    before, after = parse_spec(history.rules[-1][1].encode(), path=SPEC), repository.tree_spec()
    refuse_spec(changes.list_changed_terms(history, after), text, path=SPEC)
    return changes.list_differences(before, after)


def rules_to_seal_by(repository: Repository) -> BoardSpec:
    """The rules by which a participant seals: the last ones in the newest public log.

    Raises:
        InputError: board.toml of the clone names other keys or another envelope, or contradicts
            what the log fixes.
        StoreError: a log is missing or damaged, or the remote's is not this clone's with events
            added.
    """
    copies = read_copies(repository)
    for old, new in zip(copies.here, copies.newest, strict=False):
        if old.hash != new.hash:
            raise StoreError(
                f"event {old.event.seq} of the board's log is another one at its remote than in "
                "this clone: history was rewritten, so nothing was sealed; ask the organisers"
            )
    if not copies.newest:
        raise StoreError(NO_LOG)
    text = read_history(copies.newest).rules[-1][1]
    spec = parse_spec(text.encode(), path=SPEC)
    if check_tree_rules(repository, copies.newest):
        problems = [
            Problem.of("other-keys", SPEC, key=key, now=now, wanted=expected)
            for key, now, expected, _ in changes.list_changed_keys(spec, repository.tree_spec())
        ]
        if problems:
            raise InputError(problems)
    return spec


def check_public_files(repository: Repository) -> None:
    """Refuse public files of a clone that are not those of its own log; a clone may be behind.

    Raises:
        InputError: code `edited-file`: no organiser has accepted them.
        StoreError: the log is missing or damaged.
    """
    log = repository.log()
    if not log:
        raise StoreError(NO_LOG)
    check_unedited(repository, read_history(log), repository.spec())


_EXPECTED = {
    **MEANINGS,
    "open_runs": "true, or no submission to this board",
    "embargo_until": "a day within the board's limit, or null",
}
"""Field of the metadata that a rule of the policy looks at -> what belongs there."""

_FEWEST_QUERIES = 10

_NAMES = ("team", "institution")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What the organisers' own checks say, as far as they go without held-out labels.

    Attributes:
        id: the submission.
        scans: run (`SET`, `SET~2` and so on) -> what its scan found.
        files: problems of the draft's folder: a set without a run file, a run with two, a seed
            that is missing or misnamed; and runs whose documents are none of the collection's.
        scores: view -> score, of the views with public labels whose run has no errors.
        metadata: problems of the metadata file, by its form and by the policy; notes among them.
        manifest: the metadata as far as it can be read, `None` where not at all.
        findings: what else the policy says, by the public log and what this clone sent; the
            runs' problems are in `scans`.
        quota: the team's, `None` where no team is named.
        undecided: how many of those that use the quota are not published.
        warnings: what would give an embargoed team away.
        hidden: what would be visible of an embargoed team, and is not.
        differences: the keys of board.toml here that are not what the log has.
    """

    id: SubmissionId
    files: tuple[Problem, ...]
    scans: Mapping[str, Scan]
    scores: Mapping[str, ViewScore]
    metadata: tuple[Problem, ...]
    manifest: Manifest | None
    findings: tuple[Finding, ...]
    quota: QuotaState | None
    undecided: int
    warnings: tuple[str, ...]
    hidden: tuple[str, ...]
    differences: tuple[changes.Difference, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it may be sealed and sent."""
        rejected = any(finding.severity == "reject" for finding in self.findings)
        wrong = any(problem.severity == "error" for problem in (*self.files, *self.metadata))
        return not wrong and not rejected and all(s.ok for s in self.scans.values())


def check(repository: Repository, submission: SubmissionId, *, now: datetime) -> Check:
    """Run the organisers' own checks on a draft.

    Raises:
        InputError: there is no such draft, a set has no run, the board is closed, a public file
            that decides scores was edited, or board.toml contradicts what the log fixes.
        StoreError: the public log is missing or damaged.
    """
    log = repository.log()
    differences = check_tree_rules(repository, log)
    check_public_files(repository)
    public = read_history(log)
    amending.refuse_closed(public)
    spec = repository.spec().on(submission_date(submission))
    folder = draft.require_draft(repository, submission)
    manifest, metadata = draft.try_metadata(repository, submission)
    files, wrong = draft.find_runs(
        folder, spec, program=None if manifest is None else manifest.program
    )
    sets = load_sets(repository, spec, vault=None)
    kind = "" if manifest is None else manifest.type
    scans = {}
    for name, run in files.items():
        with run.open() as file:
            scans[name] = scan_for_board(spec, sets, kind, name, file, path=run.name)
    history = with_own_teams(repository, public)
    seeds = compare_seeds({name: scan.signature for name, scan in scans.items() if scan.ok})
    signed = with_own_registration(repository, history, submission, manifest, now=now)
    findings: tuple[Finding, ...] = ()
    if manifest is not None:
        findings = judge(
            Case(
                spec=spec,
                history=signed,
                id=submission,
                received=now,
                manifest=manifest,
                problems={},
                entrants=identity.list_entrants(signed, day=now.date(), keys={}),
                seeds=seeds,
            )
        )
    quota = _quota(spec, history, manifest, now)
    embargoed = manifest is not None and manifest.embargo_until is not None
    named = embargoed and repository.git.configured_author() is not None
    return Check(
        id=submission,
        files=(*wrong, *_list_foreign(sets, scans)),
        scans=scans,
        scores=_score(spec, sets, scans),
        metadata=(*metadata, *_field_problems(findings, metadata, manifest, now)),
        manifest=manifest,
        findings=tuple(finding for finding in findings if not RULES[finding.rule].field),
        quota=quota,
        undecided=0
        if quota is None
        else sum(history.submissions[name].status != "published" for name in quota.used),
        warnings=tuple(_giveaways(submission, manifest)),
        hidden=("your git name (submit commits as Anonymous)",) if named else (),
        differences=differences,
    )


def _list_foreign(sets: Mapping[str, SetData], scans: Mapping[str, Scan]) -> Iterator[Problem]:
    """Runs of which no document is judged, on a set with public labels that could show one.

    A weak run finds nothing, but among its documents are some that are judged for other queries. Of
    a few queries nothing is said: there a run may miss all.
    """
    for name, scan in scans.items():
        qrels = sets[query_set_of(name)].qrels
        if scan.answers is None or qrels is None or len(scan.answers[1].queries) < _FEWEST_QUERIES:
            continue
        rankings, signature = scan.answers
        judged = {document for grades in qrels.judgments.values() for document in grades}
        hashes = hash_documents([document.encode() for document in judged])
        own = np.unique(signature.documents[signature.documents > 0])
        if not judged or len(rankings.positions) or np.isin(own, hashes).any():
            continue
        listed = {document for documents in scan.head.values() for document in documents}
        near = find_near(listed, judged)
        meant = f"did you mean {quote(near[0].other)}? {say_near(near)}" if near else ""
        found = f"none of its {plural(len(own), 'document')} is judged in {query_set_of(name)}"
        expected = f"ids of this collection, such as {quote(min(judged))}"
        hint = meant or "is this the run of another collection?"
        yield Problem.of("no-common-document", scan.path, found, expected, hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCheck:
    """What a pull request brings, by its form alone: contents are sealed.

    Attributes:
        id: of the submission; `None` where it is none.
        team: that registers; `None` where it is no registration.
        problems: what is wrong.
    """

    id: str | None = None
    team: str | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it is one submission, or one registration."""
        return not self.problems and bool(self.id or self.team)


def check_request(repository: Repository, base: str, head: str) -> RequestCheck:
    """Look at a pull request as data: nothing of it is checked out or run.

    Args:
        repository: a clone of the board.
        base: commit that the request starts from.
        head: its ref, `refs/pull/N/head` or `refs/merge-requests/N/head`.

    Raises:
        StoreError: there is no such ref here, or it is none of a pull request.
    """
    registration = find_registration(repository.git, base=base, head=head)
    if registration is not None:
        try:
            return RequestCheck(team=check_registration_file(repository, registration))
        except InputError as error:
            return RequestCheck(problems=error.problems)
    arrival = find_request(repository.git, repository.spec().envelope, base=base, head=head)
    if arrival is None:
        return RequestCheck()
    return RequestCheck(id=arrival.id, problems=arrival.problems)


def with_own_teams(repository: Repository, history: History) -> History:
    """The public history, with what this clone knows besides: its own teams, and what it sent.

    Else a team's own submissions that wait, or are embargoed, would not count for its quota.
    """
    submissions = dict(history.submissions)
    for name in repository.own_ids():
        note = draft.read_sealed(repository, name)
        known = submissions.get(name)
        if known is None and note is not None and note.sent_at and not note.withdrawn:
            known = Submission(id=name, received=note.sent_at, files={}, status="received")
        manifest, _ = draft.try_metadata(repository, SubmissionId(name))
        if known is not None and manifest is not None:
            submissions[name] = replace(
                known,
                teams=(*known.teams, manifest.team),
                counts_for=(*known.counts_for, manifest.team),
            )
    return replace(history, submissions=submissions)


def quota_of(
    repository: Repository, history: History, submission: SubmissionId, *, now: datetime
) -> QuotaState | None:
    """The quota of the team that drafted a submission here; `None` where its draft is not here."""
    manifest, _ = draft.try_metadata(repository, submission)
    spec = parse_spec(history.rules[-1][1].encode())
    return _quota(spec, with_own_teams(repository, history), manifest, now)


def _score(
    spec: BoardSpec, sets: Mapping[str, SetData], scans: Mapping[str, Scan]
) -> Mapping[str, ViewScore]:
    """A set of which a run has errors has no score; that of the others stays."""
    return {
        view: score
        for query_set in spec.sets
        for view, score in score_views(
            spec, sets, {n: scan for n, scan in scans.items() if query_set_of(n) == query_set}
        ).items()
    }


def _quota(
    spec: BoardSpec, history: History, manifest: Manifest | None, now: datetime
) -> QuotaState | None:
    if manifest is None or not manifest.team.strip():
        return None
    return quota_state(history, manifest.team, spec, now=now)


def _field_problems(
    findings: tuple[Finding, ...],
    known: tuple[Problem, ...],
    manifest: Manifest | None,
    now: datetime,
) -> Iterator[Problem]:
    """Yield what the policy says of single fields, at their paths; each field is reported once."""
    paths = {problem.path for problem in known}
    for finding in findings:
        field = RULES[finding.rule].field
        if field and f"{draft.METADATA}:{field}" not in paths:
            hint = "an embargo hides it for a while: embargo_until" if field in _NAMES else ""
            path, found = f"{draft.METADATA}:{field}", finding.evidence
            yield Problem.of(finding.rule, path, found, _EXPECTED[field], hint)
    until = None if manifest is None else manifest.embargo_until
    if until is not None and until <= now.date():
        yield Problem.of("embargo-over", f"{draft.METADATA}:embargo_until", until=until)


def _giveaways(submission: SubmissionId, manifest: Manifest | None) -> Iterator[str]:
    """Yield what stays visible of an embargoed team, beside what is sealed."""
    if manifest is None or manifest.embargo_until is None:
        return
    words = {w for name in (manifest.team, manifest.institution) for w in _words(name)}
    shown = sorted(word for word in words if word in submission.casefold())
    if not re.fullmatch(r"\d{8}-anon-[0-9a-f]{8}", submission):
        said = shown[0] if shown else submission.partition("-")[2]
        yield f"the id says '{said}'; heldout draft --embargo makes a neutral one"
    yield "the account that pushes the branch or opens the pull request stays visible"


def _words(name: str) -> Iterator[str]:
    """Words that could be recognised in an id."""
    shortest = 3
    for word in team_key(name).replace("-", " ").replace(",", " ").split():
        if len(word) >= shortest and word not in ("the", "and", "lab", "for", "group", "team"):
            yield word
