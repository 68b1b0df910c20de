"""A participant's draft: its folder, and the organisers' own checks on it."""

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from heldout.board.history import History, read_history
from heldout.board.manifest import (
    Manifest,
    empty_manifest,
    format_manifest,
    parse_manifest,
    team_key,
)
from heldout.board.policy import Case, Finding, QuotaState, judge, quota_state
from heldout.board.spec import BoardSpec
from heldout.errors import InputError, Problem
from heldout.ids import SubmissionId, parse_submission_id
from heldout.pipeline.score import ViewScore, score_run, score_views
from heldout.pipeline.sets import SetData, load_sets
from heldout.store.files import write_whole
from heldout.store.repository import Repository
from heldout.trec.runs import Scan

__all__ = [
    "METADATA",
    "Check",
    "check",
    "draft",
    "draft_folder",
    "draft_id",
    "quota_of",
    "read_metadata",
    "run_files",
    "with_own_teams",
]

METADATA = "metadata.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What the organisers' own checks say, as far as they go without held-out labels.

    Attributes:
        id: the submission.
        scans: query set -> what the scan of its run found.
        scores: view -> score, of the views with public labels.
        metadata: problems of the metadata file.
        manifest: the metadata, `None` where it is wrong.
        findings: what the policy says, by the public log alone; the runs' problems are in `scans`.
        quota: the team's, `None` without metadata.
        warnings: what would give an embargoed team away.
    """

    id: SubmissionId
    scans: Mapping[str, Scan]
    scores: Mapping[str, ViewScore]
    metadata: tuple[Problem, ...]
    manifest: Manifest | None
    findings: tuple[Finding, ...]
    quota: QuotaState | None
    warnings: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether it may be sealed and sent."""
        rejected = any(finding.severity == "reject" for finding in self.findings)
        return not self.metadata and not rejected and all(s.ok for s in self.scans.values())


def draft_id(name: str, *, today: date, embargoed: bool) -> SubmissionId:
    """The dated id for a name; an embargoed one says nothing but a random suffix.

    Raises:
        InputError: the name has characters that an id may not have.
    """
    if embargoed:
        return parse_submission_id(f"{today:%Y%m%d}-anon-{secrets.token_hex(4)}")
    dated = name[:8].isdigit() and name[8:9] == "-"
    return parse_submission_id(name if dated else f"{today:%Y%m%d}-{name}", path="NAME")


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

    Raises:
        InputError: a query set of the board has no run, or the id has a folder already.
    """
    spec = repository.spec()
    folder = draft_folder(repository, submission)
    _check_new(folder, spec, runs)
    for name, source in runs.items():
        write_whole(folder / f"{name}{_suffixes(source)}", _read(source))
    manifest = empty_manifest(types=spec.types, embargo_until=embargo_until)
    write_whole(folder / METADATA, format_manifest(manifest))
    return folder


def run_files(
    repository: Repository, spec: BoardSpec, submission: SubmissionId
) -> Mapping[str, Path]:
    """Query set -> run file of a draft; the set is what stands before the first dot.

    Raises:
        InputError: no such draft, a set without a run, or with two.
    """
    folder = draft_folder(repository, submission)
    found: dict[str, list[Path]] = {name: [] for name in spec.sets}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        found.get(path.name.split(".")[0], []).append(path)
    problems = [
        Problem(
            code="missing-run",
            path=f"drafts/{submission}",
            found=", ".join(path.name for path in paths) or f"no run for '{name}'",
            expected=f"one file {name}.* with the run over the queries of '{name}'",
            hint=f"heldout draft NAME {' '.join(f'--run {n}=FILE' for n in spec.sets)}",
        )
        for name, paths in found.items()
        if len(paths) != 1
    ]
    if problems:
        raise InputError(problems)
    return {name: paths[0] for name, paths in found.items()}


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
        InputError: there is no such draft, or a set has no run.
    """
    spec = repository.spec()
    sets = load_sets(repository, spec, vault=None)
    files = run_files(repository, spec, submission)
    manifest, metadata = _try_metadata(repository, submission)
    kind = "" if manifest is None else manifest.type
    scans = {name: _scan(spec, sets[name], path, kind) for name, path in files.items()}
    findings, quota = _judge(repository, spec, submission, manifest, now)
    return Check(
        id=submission,
        scans=scans,
        scores=score_views(spec, sets, scans),
        metadata=metadata,
        manifest=manifest,
        findings=findings,
        quota=quota,
        warnings=tuple(_giveaways(repository, submission, manifest)),
    )


def _check_new(folder: Path, spec: BoardSpec, runs: Mapping[str, Path]) -> None:
    problems = [
        Problem(
            code="missing-run",
            path="draft",
            found=f"no run for '{name}'" if name in spec.sets else f"a run for '{name}'",
            expected="one run for each of: " + ", ".join(spec.sets),
        )
        for name in sorted(set(spec.sets) ^ set(runs))
    ]
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
    try:
        return read_metadata(repository, submission), ()
    except InputError as error:
        return None, error.problems


def _scan(spec: BoardSpec, data: SetData, path: Path, kind: str) -> Scan:
    with path.open("rb") as file:
        return score_run(spec, data, file, path=path.name, submission_type=kind)


def _judge(
    repository: Repository,
    spec: BoardSpec,
    submission: SubmissionId,
    manifest: Manifest | None,
    now: datetime,
) -> tuple[tuple[Finding, ...], QuotaState | None]:
    if manifest is None:
        return (), None
    history = with_own_teams(repository, read_history(repository.log()))
    case = Case(
        spec=spec, history=history, id=submission, received=now, manifest=manifest, problems={}
    )
    return judge(case), quota_state(history, manifest.team, spec.policy, now=now)


def with_own_teams(repository: Repository, history: History) -> History:
    """The public history, with the teams of what this clone sent: they are sealed, but known here.

    Else a team's own submissions that wait, or are embargoed, would not count for its quota.
    """
    submissions = dict(history.submissions)
    for name in set(repository.own_ids()) & set(submissions):
        with suppress(InputError):
            team = read_metadata(repository, SubmissionId(name)).team
            submissions[name] = replace(submissions[name], teams=(*submissions[name].teams, team))
    return replace(history, submissions=submissions)


def quota_of(
    repository: Repository, history: History, submission: SubmissionId, *, now: datetime
) -> QuotaState | None:
    """The quota of the team that drafted a submission here; `None` where its draft is not here."""
    manifest, _ = _try_metadata(repository, submission)
    if manifest is None:
        return None
    known = with_own_teams(repository, history)
    return quota_state(known, manifest.team, repository.spec().policy, now=now)


def _giveaways(
    repository: Repository, submission: SubmissionId, manifest: Manifest | None
) -> Iterator[str]:
    """What stays visible of an embargoed team, beside what is sealed."""
    if manifest is None or manifest.embargo_until is None:
        return
    words = {w for name in (manifest.team, manifest.institution) for w in _words(name)}
    shown = sorted(word for word in words if word in submission.casefold())
    if shown:
        yield f"the id and its branch hold '{shown[0]}', a word of your team's name"
    author = repository.git.configured_author()
    if author is not None:
        yield f"commits name {author.name} <{author.email}>; submit uses a neutral author"
    yield "the account that pushes the branch or opens the pull request stays visible"


def _words(name: str) -> Iterator[str]:
    """Words that could be recognised in an id."""
    shortest = 3
    for word in team_key(name).replace("-", " ").replace(",", " ").split():
        if len(word) >= shortest and word not in ("the", "and", "lab", "for", "group", "team"):
            yield word
