"""A participant's draft: its folder, and the organisers' own checks on it."""

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from heldout.board.case import Case
from heldout.board.checks import add_months
from heldout.board.history import History, Submission, read_history
from heldout.board.identity import list_entrants
from heldout.board.manifest import (
    Manifest,
    empty_manifest,
    format_manifest,
    parse_manifest,
    read_manifest,
    team_key,
)
from heldout.board.policy import Finding, judge
from heldout.board.quota import QuotaState, quota_state
from heldout.board.seeds import SeedFault, compare_seeds
from heldout.board.spec import BoardSpec
from heldout.errors import InputError, Problem, quote
from heldout.ids import SubmissionId, parse_submission_id, query_set_of, submission_date
from heldout.pipeline.amending import refuse_closed
from heldout.pipeline.score import ViewScore, score_run, score_views
from heldout.pipeline.sealed import read_sealed
from heldout.pipeline.seeds import check_seeds
from heldout.pipeline.sets import SetData, load_sets
from heldout.pipeline.team import with_own_registration
from heldout.store.files import write_whole
from heldout.store.repository import Repository
from heldout.trec.runs import Scan

__all__ = [
    "METADATA",
    "Check",
    "check",
    "check_embargo",
    "draft",
    "draft_folder",
    "draft_id",
    "drafts",
    "quota_of",
    "read_metadata",
    "require_draft",
    "run_files",
    "with_own_teams",
]

METADATA = "metadata.json"

_SOURCE = {
    "team-named": ("team", "the team and those in it, so that a web search finds them"),
    "institution-named": ("institution", "the university, company or other organisation"),
    "description": ("model_description", "the system, as it should stand on the page"),
    "type-known": ("type", "a submission type of this board"),
    "training-data": ("training_data", "what the system was trained or tuned on"),
    "open-runs": ("open_runs", "true, or no submission to this board"),
    "embargo": ("embargo_until", "a day within the board's limit, or null"),
}
"""Rule of the policy -> the field of the metadata that it looks at, and what belongs there."""

_HINTS = {
    "team-named": "an embargo hides it for a while: embargo_until",
    "institution-named": "an embargo hides it for a while: embargo_until",
    "training-data": '"none" is an answer',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What the organisers' own checks say, as far as they go without held-out labels.

    Attributes:
        id: the submission.
        scans: run (`SET`, `SET~2` and so on) -> what its scan found.
        files: problems of the draft's folder: a set without a run file, a run with two, a seed
            that is missing or misnamed.
        scores: view -> score, of the views with public labels whose run has no errors.
        metadata: problems of the metadata file, by its form and by the policy; notes among them.
        manifest: the metadata as far as it can be read, `None` where not at all.
        findings: what else the policy says, by the public log and what this clone sent; the
            runs' problems are in `scans`.
        quota: the team's, `None` where no team is named.
        undecided: how many of those that use the quota are not published.
        warnings: what would give an embargoed team away.
        hidden: what is kept from sight for an embargoed team.
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

    @property
    def ok(self) -> bool:
        """Whether it may be sealed and sent."""
        rejected = any(finding.severity == "reject" for finding in self.findings)
        wrong = any(problem.severity == "error" for problem in (*self.files, *self.metadata))
        return not wrong and not rejected and all(s.ok for s in self.scans.values())


def draft_id(name: str, *, today: date, embargoed: bool) -> SubmissionId:
    """The dated id for a name; an embargoed one says nothing but a random suffix.

    Raises:
        InputError: the name has characters that an id may not have, or an end that git does not
            allow in a branch.
    """
    if embargoed:
        return parse_submission_id(f"{today:%Y%m%d}-anon-{secrets.token_hex(4)}")
    dated = name[:8].isdigit() and name[8:9] == "-"
    submission = parse_submission_id(name if dated else f"{today:%Y%m%d}-{name}", path="NAME")
    if submission.endswith((".", ".lock")):
        raise InputError(
            Problem(
                code="submission-id",
                path="NAME",
                found=quote(name),
                expected="a name that does not end in '.' or '.lock': git allows no such branch",
            )
        )
    return submission


def draft_folder(repository: Repository, submission: SubmissionId) -> Path:
    """Where a draft lies; git ignores it."""
    return repository.root / "drafts" / submission


def draft(
    repository: Repository,
    submission: SubmissionId,
    runs: Mapping[str, Path],
    *,
    embargo_until: date | None,
) -> Path:
    """Make the folder of a submission: its run files, and metadata to fill in.

    Args:
        repository: the clone.
        submission: its id.
        runs: run (`SET`, `SET~2` and so on) -> its file.
        embargo_until: for the metadata.

    Raises:
        InputError: a query set of the board has no run or other seeds than the others, or the id
            has a folder already, or the board is closed.
    """
    refuse_closed(read_history(repository.log()))
    spec = repository.spec().on(submission_date(submission))
    folder = draft_folder(repository, submission)
    _check_new(folder, spec, runs)
    for name, source in runs.items():
        write_whole(folder / f"{name}{_suffixes(source)}", _read_run(name, source))
    manifest = empty_manifest(types=spec.types, embargo_until=embargo_until)
    write_whole(folder / METADATA, format_manifest(manifest))
    return folder


def run_files(
    repository: Repository, spec: BoardSpec, submission: SubmissionId
) -> Mapping[str, Path]:
    """Run -> file of a draft; the run's name is what stands before the first dot.

    Raises:
        InputError: no such draft, a run that is missing or there twice, or a misnamed seed.
    """
    files, problems = _find_runs(require_draft(repository, submission), spec)
    if problems:
        raise InputError(problems)
    return files


def drafts(repository: Repository) -> tuple[str, ...]:
    """Ids of the drafts in this clone."""
    folders = (repository.root / "drafts").glob("*/")
    return tuple(sorted(path.name for path in folders))


def require_draft(repository: Repository, submission: SubmissionId) -> Path:
    """The folder of a draft.

    Raises:
        InputError: there is no such draft.
    """
    folder = draft_folder(repository, submission)
    if folder.is_dir():
        return folder
    known = drafts(repository)
    raise InputError(
        Problem(
            code="no-draft",
            path=f"drafts/{submission}",
            found="no draft of this id here",
            expected="one of " + ", ".join(known) if known else "a draft; there is none yet",
            hint="" if known else "make one: heldout draft NAME --dev FILE --eval FILE",
        )
    )


def check_embargo(spec: BoardSpec, until: date, *, today: date) -> None:
    """Refuse an embargo that would be refused later, or hide nothing.

    Raises:
        InputError: the day is not after today, or beyond the board's limit.
    """
    latest = add_months(today, spec.policy.embargo_months)
    limited = "embargo" not in spec.policy.off
    if today < until and (until <= latest or not limited):
        return
    raise InputError(
        Problem(
            code="embargo-day",
            path="--embargo",
            found=f"{until}, which is over" if until <= today else f"{until}, too late",
            expected=f"a day after {today}" + (f", up to {latest}" if limited else ""),
            hint=f"this board allows {spec.policy.embargo_months} months" if limited else "",
        )
    )


def _find_runs(folder: Path, spec: BoardSpec) -> tuple[Mapping[str, Path], tuple[Problem, ...]]:
    """Run -> file, of the runs that have one; and what is wrong with the others."""
    found: dict[str, list[Path]] = {name: [] for name in spec.sets}
    for path in sorted(folder.iterdir()):
        name = path.name.split(".")[0]
        if query_set_of(name) in spec.sets:
            found.setdefault(name, []).append(path)
    whole = {n: paths[0] for n, paths in found.items() if len(paths) == 1 and paths[0].is_file()}
    problems = [_run_problem(folder, n, paths) for n, paths in found.items() if n not in whole]
    place = f"drafts/{folder.name}"
    seeds = [*check_seeds(found, sets=spec.sets, most=spec.runs.seeds, path=place)]
    # Runs whose seeds are not clear cannot be averaged: the first ones are looked at.
    kept = {n: path for n, path in whole.items() if not seeds or n in spec.sets}
    return kept, (*problems, *seeds)


def _run_problem(folder: Path, name: str, paths: list[Path]) -> Problem:
    code, found, hint = "missing-run", f"no run for '{name}'", f"copy it to drafts/{folder.name}/"
    if len(paths) > 1:
        code, found = "two-runs", " and ".join(path.name for path in paths)
        hint = f"remove one, as: rm drafts/{folder.name}/{paths[-1].name}"
    elif paths:
        found = f"{paths[0].name}, which is no file"
        hint = "put the run file itself there, not a folder"
    return Problem(
        code=code,
        path=f"drafts/{folder.name}",
        found=found,
        expected=f"one file {name}.* with the run over the queries of '{query_set_of(name)}'",
        hint=hint,
    )


def read_metadata(repository: Repository, submission: SubmissionId) -> Manifest:
    """The metadata of a draft.

    Raises:
        InputError: it is missing or wrong.
    """
    file = draft_folder(repository, submission) / METADATA
    return parse_manifest(_read(file), path=METADATA)


def check(repository: Repository, submission: SubmissionId, *, now: datetime) -> Check:
    """Run the organisers' own checks on a draft.

    Raises:
        InputError: there is no such draft, a set has no run, or the board is closed.
    """
    public = read_history(repository.log())
    refuse_closed(public)
    spec = repository.spec().on(submission_date(submission))
    files, wrong = _find_runs(require_draft(repository, submission), spec)
    sets = load_sets(repository, spec, vault=None)
    manifest, metadata = _try_metadata(repository, submission)
    kind = "" if manifest is None else manifest.type
    scans = {
        name: _scan(spec, sets[query_set_of(name)], path, kind) for name, path in files.items()
    }
    history = with_own_teams(repository, public)
    seeds = compare_seeds({name: scan.signature for name, scan in scans.items() if scan.ok})
    signed = with_own_registration(repository, history, submission, manifest, now=now)
    findings = _judge(spec, signed, submission, manifest, now=now, seeds=seeds)
    quota = _quota(spec, history, manifest, now)
    return Check(
        id=submission,
        files=wrong,
        scans=scans,
        scores=_score(spec, sets, scans),
        metadata=(*metadata, *_field_problems(findings, metadata, manifest, now)),
        manifest=manifest,
        findings=tuple(finding for finding in findings if finding.rule not in _SOURCE),
        quota=quota,
        undecided=0
        if quota is None
        else sum(history.submissions[name].status != "published" for name in quota.used),
        warnings=tuple(_giveaways(submission, manifest)),
        hidden=tuple(_kept_secret(repository, manifest)),
    )


def _check_new(folder: Path, spec: BoardSpec, runs: Mapping[str, Path]) -> None:
    problems = [
        Problem(
            code="missing-run",
            path="draft",
            found=f"no run for '{name}'" if name in spec.sets else f"a run for '{name}'",
            expected="one run for each of: " + ", ".join(spec.sets),
        )
        for name in sorted(set(spec.sets) ^ {name for name in runs if "~" not in name})
    ]
    problems += check_seeds(runs, sets=spec.sets, most=spec.runs.seeds, path="draft")
    if (folder / METADATA).exists():  # written last: without it a crash left the draft unfinished
        problems.append(
            Problem(
                code="draft-exists",
                path=f"drafts/{folder.name}",
                found="a draft of this id",
                expected="a new id",
                hint=f"edit it, or remove it: rm -r drafts/{folder.name}",
            )
        )
    if problems:
        raise InputError(problems)


def _read_run(name: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        problem = Problem(
            code="unreadable-file",
            path=str(path),
            found=f"{error.strerror or 'an error'}, of the run for '{name}'",
            expected="a file that can be read",
            hint=f"--run {name}=FILE names it",
        )
        raise InputError(problem) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        problem = Problem(
            code="unreadable-file",
            path=path.name,
            found=error.strerror or "an error",
            expected="a file that can be read",
        )
        raise InputError(problem) from None


def _suffixes(source: Path) -> str:
    """The last two suffixes of a run's name, as far as a tarball's member may have them."""
    plain = [s for s in source.suffixes[-2:] if re.fullmatch(r"\.[A-Za-z0-9_-]{1,16}", s, re.ASCII)]
    return "".join(plain)


def _try_metadata(
    repository: Repository, submission: SubmissionId
) -> tuple[Manifest | None, tuple[Problem, ...]]:
    file = draft_folder(repository, submission) / METADATA
    try:
        return read_manifest(_read(file), path=METADATA)
    except InputError as error:
        return None, error.problems


def _scan(spec: BoardSpec, data: SetData, path: Path, kind: str) -> Scan:
    with path.open("rb") as file:
        return score_run(spec, data, file, path=path.name, submission_type=kind)


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


def _judge(
    spec: BoardSpec,
    history: History,
    submission: SubmissionId,
    manifest: Manifest | None,
    *,
    now: datetime,
    seeds: tuple[SeedFault, ...],
) -> tuple[Finding, ...]:
    if manifest is None:
        return ()
    case = Case(
        spec=spec,
        history=history,
        id=submission,
        received=now,
        manifest=manifest,
        problems={},
        entrants=list_entrants(history, day=now.date(), keys={}),
        seeds=seeds,
    )
    return judge(case)


def _quota(
    spec: BoardSpec, history: History, manifest: Manifest | None, now: datetime
) -> QuotaState | None:
    if manifest is None or not manifest.team.strip():
        return None
    return quota_state(history, manifest.team, spec, now=now)


def _field_problems(
    findings: tuple[Finding, ...],
    told: tuple[Problem, ...],
    manifest: Manifest | None,
    now: datetime,
) -> Iterator[Problem]:
    """What the policy says of single fields, at their places; a field is told once."""
    places = {problem.path for problem in told}
    for finding in findings:
        field, expected = _SOURCE.get(finding.rule, ("", ""))
        if field and f"{METADATA}:{field}" not in places:
            yield Problem(
                code=finding.rule,
                path=f"{METADATA}:{field}",
                found=finding.evidence,
                expected=expected,
                hint=_HINTS.get(finding.rule, ""),
            )
    until = None if manifest is None else manifest.embargo_until
    if until is not None and until <= now.date():
        yield Problem(
            code="embargo-over",
            path=f"{METADATA}:embargo_until",
            found=f"{until}, which is over",
            expected="a day that is still to come, or null",
            hint="nothing would stay hidden",
            severity="note",
        )


def with_own_teams(repository: Repository, history: History) -> History:
    """The public history, with what this clone knows besides: its own teams, and what it sent.

    Else a team's own submissions that wait, or are embargoed, would not count for its quota.
    """
    submissions = dict(history.submissions)
    for name in repository.own_ids():
        note = read_sealed(repository, name)
        known = submissions.get(name)
        if known is None and note is not None and note.sent_at and not note.withdrawn:
            known = Submission(id=name, received=note.sent_at, files={}, status="received")
        manifest, _ = _try_metadata(repository, SubmissionId(name))
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
    manifest, _ = _try_metadata(repository, submission)
    return _quota(repository.spec(), with_own_teams(repository, history), manifest, now)


def _giveaways(submission: SubmissionId, manifest: Manifest | None) -> Iterator[str]:
    """What stays visible of an embargoed team, beside what is sealed."""
    if manifest is None or manifest.embargo_until is None:
        return
    words = {w for name in (manifest.team, manifest.institution) for w in _words(name)}
    shown = sorted(word for word in words if word in submission.casefold())
    if not re.fullmatch(r"\d{8}-anon-[0-9a-f]{8}", submission):
        said = shown[0] if shown else submission.partition("-")[2]
        yield f"the id says '{said}'; heldout draft --embargo makes a neutral one"
    yield "the account that pushes the branch or opens the pull request stays visible"


def _kept_secret(repository: Repository, manifest: Manifest | None) -> Iterator[str]:
    """What would be visible of an embargoed team, and is not."""
    embargoed = manifest is not None and manifest.embargo_until is not None
    if embargoed and repository.git.configured_author() is not None:
        yield "your git name (submit commits as Anonymous)"


def _words(name: str) -> Iterator[str]:
    """Words that could be recognised in an id."""
    shortest = 3
    for word in team_key(name).replace("-", " ").replace(",", " ").split():
        if len(word) >= shortest and word not in ("the", "and", "lab", "for", "group", "team"):
            yield word
