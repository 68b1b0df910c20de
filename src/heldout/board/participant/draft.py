"""A participant's draft: its id, and its folder with run files and metadata.

What this clone sealed and sent last of each submission: `packed/ID.json` of its state.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path

import msgspec

from heldout import ids
from heldout.board.log import history, manifest
from heldout.board.participant import run_header
from heldout.board.policy import amending, checks
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.sets import check_seeds
from heldout.board.store.repository import Repository
from heldout.errors import InputError, Problem, quote
from heldout.files.durable import File, Folder

METADATA = "metadata.json"


def draft_id(name: str, *, today: date, embargoed: bool) -> ids.SubmissionId:
    """The dated id for a name; an embargoed one says nothing but a random suffix.

    Raises:
        InputError: the name has characters that an id may not have, or an end that git does not
            allow in a branch.
    """
    if embargoed:
        return ids.parse_submission_id(f"{today:%Y%m%d}-anon-{secrets.token_hex(4)}")
    dated = name[:8].isdigit() and name[8:9] == "-"
    submission = ids.parse_submission_id(name if dated else f"{today:%Y%m%d}-{name}", path="NAME")
    if submission.endswith((".", ".lock")):
        raise InputError.of("submission-id", "NAME", quote(name))
    return submission


def draft_folder(repository: Repository, submission: ids.SubmissionId) -> Folder:
    """Return the folder of a draft, in the clone's state."""
    return repository.state.below(f"drafts/{submission}")


def draft(
    repository: Repository,
    submission: ids.SubmissionId,
    runs: Mapping[str, Path],
    *,
    embargo_until: date | None,
    stated: Iterable[run_header.HeaderField] = (),
    program: manifest.Program | None = None,
) -> Folder:
    """Make the folder of a submission: its run files, and metadata to fill in.

    Args:
        repository: the clone.
        submission: its id.
        runs: run (`SET`, `SET~2` and so on) -> its file; none beside a program.
        embargo_until: for the metadata.
        stated: what the headers of the runs say, for the metadata.
        program: what makes the runs, where no run files are sent.

    Raises:
        InputError: a query set of the board has no run or other seeds than the others, or a run
            cannot be read, or the id has a folder already, or the board is closed.
    """
    log = repository.log()
    amending.refuse_closed(history.read_history(log))
    repository.pin(log)
    spec = repository.spec().on(ids.submission_date(submission))
    folder = draft_folder(repository, submission)
    _check_new(folder, spec, runs, program)
    for name, source in runs.items():  # before the first is written: a draft is whole or not there
        _check_readable(name, source)
    for name, source in runs.items():
        folder.write_whole(f"{name}{_suffixes(source)}", source.read_bytes())
    filled = manifest.empty_manifest(types=spec.types, embargo_until=embargo_until)
    filled = msgspec.structs.replace(run_header.fill_manifest(filled, stated), program=program)
    folder.write_whole(METADATA, manifest.format_manifest(filled))
    return folder


def read_headers(
    repository: Repository,
    submission: ids.SubmissionId,
    runs: Mapping[str, Path],
    *,
    beside: Path | None = None,
) -> run_header.FromHeaders:
    """Return what the ir_metadata headers of runs say for the metadata of a draft.

    Args:
        repository: the clone.
        submission: its id, whose day says which rules hold.
        runs: run (`SET`, `SET~2` and so on) -> its file.
        beside: a file of such metadata of all runs, for what no header says.

    Raises:
        InputError: that file has errors.
        StoreError: a header states a time, and the queries of its set are missing.
    """
    spec = repository.spec().on(ids.submission_date(submission))

    def count_queries(name: str) -> int:
        return len(repository.queries(spec.sets[name].queries).texts) if name in spec.sets else 0

    return run_header.take_from_runs(runs, count_queries=count_queries, beside=beside)


_OF_THE_TEAM = ("team", "institution")


def read_earlier(repository: Repository) -> tuple[run_header.HeaderField, ...]:
    """Return who the team is, by the latest draft of this clone that says so."""
    for name in sorted(drafts(repository), reverse=True):
        earlier, _ = try_metadata(repository, ids.SubmissionId(name))
        if earlier is not None and earlier.team:
            path = str(draft_folder(repository, ids.SubmissionId(name)).path(METADATA))
            return tuple(
                run_header.HeaderField(field=field, value=value, key=field, path=path)
                for field in _OF_THE_TEAM
                if (value := getattr(earlier, field))
            )
    return ()


def run_files(
    repository: Repository, spec: BoardSpec, submission: ids.SubmissionId
) -> Mapping[str, File]:
    """Run -> file of a draft; the run's name is what stands before the first dot.

    Raises:
        InputError: no such draft, a run that is missing or there twice, or a misnamed seed.
    """
    folder = require_draft(repository, submission)
    program = read_metadata(repository, submission).program
    files, problems = find_runs(folder, spec, program=program)
    if problems:
        raise InputError(problems)
    return files


def find_runs(
    folder: Folder, spec: BoardSpec, *, program: manifest.Program | None = None
) -> tuple[Mapping[str, File], tuple[Problem, ...]]:
    """Run -> file, of the runs that have one; and what is wrong with the others.

    Args:
        folder: the draft's.
        spec: the rules.
        program: what makes the runs in their place; then there must be no files of runs.
    """
    if program is not None:
        names = [
            name for name in folder.names() if ids.query_set_of(name.split(".")[0]) in spec.sets
        ]
        return {}, tuple(_beside_program(str(folder.path(name))) for name in names)
    found: dict[str, list[File]] = {name: [] for name in spec.sets}
    for file in map(folder.file, folder.names()):
        name = file.name.split(".")[0]
        if ids.query_set_of(name) in spec.sets:
            found.setdefault(name, []).append(file)
    whole = {n: files[0] for n, files in found.items() if len(files) == 1 and files[0].is_file()}
    path = str(folder.path())
    problems = [_run_problem(path, n, files) for n, files in found.items() if n not in whole]
    seeds = [*check_seeds(found, sets=spec.sets, most=spec.runs.seeds, path=path)]
    # Runs whose seeds are not clear cannot be averaged: the first ones are looked at.
    usable = {n: path for n, path in whole.items() if not seeds or n in spec.sets}
    return usable, (*problems, *seeds)


def drafts(repository: Repository) -> tuple[str, ...]:
    """Ids of the drafts in this clone."""
    folder = repository.state.below("drafts")
    return tuple(name for name in folder.names() if folder.is_folder(name))


def require_draft(repository: Repository, submission: ids.SubmissionId) -> Folder:
    """The folder of a draft.

    Raises:
        InputError: there is no such draft.
    """
    folder = draft_folder(repository, submission)
    if folder.is_folder():
        return folder
    known = drafts(repository)
    sent = submission in history.read_history(repository.log()).submissions
    hint = "" if known else "make one: heldout draft NAME --dev FILE --eval FILE"
    hint = "it was sent from another clone: work in the clone that sent it" if sent else hint
    expected = "one of " + ", ".join(known) if known else "a draft; there is none yet"
    raise InputError.of("no-draft", str(folder.path()), "no draft of this id here", expected, hint)


def check_embargo(spec: BoardSpec, until: date, *, today: date) -> None:
    """Refuse an embargo that would be refused later, or hide nothing.

    Raises:
        InputError: the day is not after today, or beyond the board's limit.
    """
    latest = checks.add_months(today, spec.policy.embargo_months)
    limited = "embargo" not in spec.policy.off
    if today < until and (until <= latest or not limited):
        return
    found = f"{until}, which is over" if until <= today else f"{until}, too late"
    expected = f"a day after {today}" + f", up to {latest}" * limited
    hint = f"this board allows {spec.policy.embargo_months} months" * limited
    raise InputError.of("embargo-day", "--embargo", found, expected, hint)


def read_metadata(repository: Repository, submission: ids.SubmissionId) -> manifest.Manifest:
    """The metadata of a draft.

    Raises:
        InputError: it is missing or wrong.
    """
    file = draft_folder(repository, submission).file(METADATA)
    return manifest.parse_manifest(_read(file), path=METADATA)


def try_metadata(
    repository: Repository, submission: ids.SubmissionId
) -> tuple[manifest.Manifest | None, tuple[Problem, ...]]:
    """The metadata of a draft as far as it can be read, and what is wrong with its form."""
    file = draft_folder(repository, submission).file(METADATA)
    try:
        return manifest.read_manifest(_read(file), path=METADATA)
    except InputError as error:
        return None, error.problems


def _beside_program(path: str) -> Problem:
    return Problem.of("program-and-runs", path)


def _check_new(
    folder: Folder, spec: BoardSpec, runs: Mapping[str, Path], program: manifest.Program | None
) -> None:
    problems = [_beside_program(str(path)) for path in runs.values() if program is not None]
    given, expected = {name for name in runs if "~" not in name}, ", ".join(spec.sets)
    for name in sorted(set(spec.sets) ^ given) if program is None else ():
        found = f"no run for '{name}'" if name in spec.sets else f"a run for '{name}'"
        problems.append(
            Problem.of("missing-run", "draft", found, f"one run for each of: {expected}")
        )
    problems += check_seeds(runs, sets=spec.sets, most=spec.runs.seeds, path="draft")
    if folder.exists(METADATA):  # written last: without it a crash left the draft unfinished
        problems.append(Problem.of("draft-exists", str(folder.path()), folder=folder.path()))
    if problems:
        raise InputError(problems)


def _run_problem(path: str, name: str, files: list[File]) -> Problem:
    code, found, hint = "missing-run", f"no run for '{name}'", f"copy it to {path}/"
    if len(files) > 1:
        code, found = "two-runs", " and ".join(file.name for file in files)
        hint = f"remove one, as: rm {path}/{files[-1].name}"
    elif files:
        found = f"{files[0].name}, which is no file"
        hint = "put the run file itself there, not a folder"
    expected = f"one file {name}.* with the run over the queries of '{ids.query_set_of(name)}'"
    return Problem.of(code, path, found, expected, hint)


def _check_readable(name: str, path: Path) -> None:
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        found = f"{error.strerror or 'an error'}, of the run for '{name}'"
        hint = f"--run {name}=FILE names it"
        raise InputError.of("unreadable-file", str(path), found, hint=hint) from None


def _read(file: File) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        found = error.strerror or "an error"
        raise InputError.of("unreadable-file", file.name, found) from None


def _suffixes(source: Path) -> str:
    """The last two suffixes of a run's name, as far as a tarball's member may have them."""
    plain = [s for s in source.suffixes[-2:] if re.fullmatch(r"\.[A-Za-z0-9_-]{1,16}", s, re.ASCII)]
    return "".join(plain)


class SealedDraft(msgspec.Struct, frozen=True, kw_only=True):
    """What was sealed last, and what was sent.

    Attributes:
        inputs: name -> digest of what went in.
        outputs: name -> digest of each sealed file.
        revision: of the sealed metadata.
        withdrawn: whether that metadata takes the submission back.
        sent: receipt of what was sent last; empty before.
        sent_at: when something was first sent, UTC.
        server: address of the server that it was sent to last; "" for a folder or a branch.
    """

    inputs: dict[str, str]
    outputs: dict[str, str]
    revision: int
    withdrawn: bool = False
    sent: str = ""
    sent_at: datetime | None = None
    server: str = ""


def receipt_of(digests: Mapping[str, str]) -> str:
    """One digest for the sealed files of a submission, by name and digest of each."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return ids.digest_bytes(lines.encode())


def read_sealed(repository: Repository, submission: str) -> SealedDraft | None:
    """Return what was sealed last; `None` where nothing was, or the note of it is damaged."""
    file = _file(repository, submission)
    try:
        data = file.find()
        return None if data is None else msgspec.json.decode(data, type=SealedDraft)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def write_sealed(repository: Repository, submission: str, note: SealedDraft) -> None:
    """Store what was sealed, mode 0600."""
    _file(repository, submission).write_whole(msgspec.json.encode(note), mode=0o600)


def _file(repository: Repository, submission: str) -> File:
    return repository.state.file(f"packed/{submission}.json")
