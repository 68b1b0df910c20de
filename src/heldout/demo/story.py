"""What `heldout demo` makes on the embedded collection: a shared task, from runs to a page.

Real rankers make real runs; teams of our own invention seal and submit them on different days;
an organiser reviews and publishes them. Two are refused, so that a newcomer sees both kinds.
Whether it can be played is asked before it takes a minute of anybody's time.

With --files it makes the files that the tutorials work on, and a board to join. Nothing there needs
an extra: the rankers are those of the base install. The texts are the same under every Python
(`collections.stdlib_docs`), so a reader sees the figures that the tutorials show.
"""

import bz2
import gzip
import tomllib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heldout.board.log.manifest import Manifest, format_manifest
from heldout.board.organiser import creation, decide, inbox, rebuild, review
from heldout.board.participant import checks, send
from heldout.board.participant.draft import METADATA, draft, draft_folder, draft_id
from heldout.board.rules import spec, template
from heldout.board.scores.commitments import RuleChange
from heldout.board.scores.session import Session, organiser_session, refuse_rules
from heldout.board.scores.sets import load_sets
from heldout.board.standings.standings import Standings
from heldout.board.store.arrivals import find_in_git
from heldout.board.store.git import Git
from heldout.board.store.repository import SPEC, Repository
from heldout.collections.collection import Collection, QuerySplit, split_queries
from heldout.collections.stdlib_docs import build_collection, read_docstrings, read_sample
from heldout.errors import SetupError, StoreError
from heldout.files.durable import write_whole
from heldout.ids import SubmissionId
from heldout.rankers.methods import choose_method
from heldout.rankers.run import RankingTask, Run, format_run
from heldout.trec.qrels import format_qrels, parse_qrels
from heldout.trec.queries import format_queries, parse_queries


def check_ready(folder: Path) -> None:
    """Refuse what would only fail later.

    Args:
        folder: where the demo would be played.

    Raises:
        StoreError: the folder holds something already, or is no folder.
        SetupError: the extra `rankers` is missing.
    """
    check_new(folder)
    missing = [module for module in ("bm25s", "Stemmer") if find_spec(module) is None]
    if missing:
        raise SetupError(f"the demo lacks {', '.join(missing)}; pip install 'heldout[rankers]'")


def check_new(folder: Path) -> None:
    """Refuse a folder that holds something already.

    Raises:
        StoreError: it does, or it is no folder.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise StoreError(f"{folder} is not empty; name a folder that does not exist yet")


DEPTH = 100
_TASK = (
    "Given the first paragraph of a docstring of Python's standard library, find the rest of it."
)
_MEASURE = "RR@10"


class StoryTeam(NamedTuple):
    """Who sends a run."""

    name: str = ""
    institution: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryPart:
    """One run of the story.

    Attributes:
        slug: name in the id.
        team: who sends it; nobody for the organisers' baseline.
        system: its description.
        days: how many days before the end of the story it is sent.
        method: a name in `rankers.methods.METHODS`, and its parameters.
        paper: where the method is described; may be empty.
        months: length of its embargo, 0 for none.
        broken: whether its file is damaged on the way.
        reason: of the organiser for publishing it, where findings ask for one.
    """

    slug: str
    team: StoryTeam
    system: str
    days: int
    method: str
    paper: str = ""
    months: int = 0
    broken: bool = False
    reason: str = "a method of its own, as its description says, and within the quota"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What became of one submission in the story.

    Attributes:
        id: its id.
        part: the run.
        published: whether it is on the page.
        why: the organiser's reason where it was refused.
    """

    id: SubmissionId
    part: StoryPart
    published: bool
    why: str = ""


def _read_story() -> Iterator[StoryPart]:
    table = resources.files("heldout.demo").joinpath("story.toml").read_text("utf-8")
    story = tomllib.loads(table)
    teams = {name: StoryTeam(name, institution) for name, institution in story["teams"].items()}
    for row in story["part"]:
        yield StoryPart(**{**row, "team": teams.get(row["team"], StoryTeam())})


BASELINE, *PARTS = _read_story()
"""The organisers' run; and the story of `story.toml`: eleven runs by four teams, of which the third
of Search Group comes too soon, and one is broken."""


def read_collection(*, seed: int) -> QuerySplit:
    """The embedded collection, its queries divided into dev and eval halves.

    Args:
        seed: of the division.
    """
    collection = build_collection(read_docstrings().docstrings)
    return split_queries(collection, dev=0.5, rng=np.random.default_rng(seed))


def play_demo(
    folder: Path,
    split: QuerySplit,
    *,
    now: datetime,
    executor: Executor,
    say: Callable[[str, str], None],
) -> tuple[Standings, tuple[Scene, ...]]:
    """Play the whole story.

    Args:
        folder: new; gets `board`, `vault`, `runs` and `teams`.
        split: documents, dev queries and eval queries.
        now: the end of the story, UTC; its days count back from here.
        executor: makes the runs.
        say: gets each step, as a heading and a sentence.

    Raises:
        StoreError: the folder holds something already.
        SetupError: an extra is missing.
    """
    check_ready(folder)
    # For the repository that the folder may lie in: nothing here, a vault least of all, is its own.
    write_whole(folder / ".gitignore", b"*\n")
    say("documents", _describe(split))
    _make_runs(folder / "runs", split, executor, say)
    opening = now - timedelta(days=60)
    session = create_demo_board(folder, split, opening)
    _allow_figures(folder, session, now)
    say("board", f"{folder}/board is open since {opening:%d %b}, its vault is {folder}/vault")
    _show_baseline(folder, now, say)
    scenes = tuple(_play(folder, part, now, say) for part in PARTS)
    with sit(folder, now) as session:
        standings = rebuild.bring_up_to_date(session).standings
    return standings, scenes


def _describe(split: QuerySplit) -> str:
    documents = len(split.dev.documents)
    return (
        f"{documents:,} docstrings to find, {len(split.dev.queries):,} dev queries, "
        f"{len(split.eval.queries):,} eval queries"
    )


def _make_runs(
    folder: Path, split: QuerySplit, executor: Executor, say: Callable[[str, str], None]
) -> None:
    """Make the run files of every part."""
    queries = {**split.dev.queries, **split.eval.queries}
    task = RankingTask(documents=split.dev.documents, queries=queries, depth=DEPTH)
    halves = {"dev": frozenset(split.dev.queries), "eval": frozenset(split.eval.queries)}
    say("runs", "ranking ...")
    made = partial(_rank_and_write, folder, task, halves)
    parts = (BASELINE, *PARTS)
    for part, _ in zip(parts, executor.map(made, parts), strict=True):
        say("run", part.system)


def _rank_and_write(
    folder: Path, task: RankingTask, halves: Mapping[str, frozenset[str]], part: StoryPart
) -> None:
    run = _choose(part.method)(task)
    for name, queries in halves.items():
        half = {query: hits for query, hits in run.items() if query in queries}
        text = format_run(half, form="msmarco", tag=part.slug)
        if part.broken and name == "eval":
            text = _break(text)
        write_whole(folder / part.slug / f"{name}.tsv.bz2", bz2.compress(text))


def _choose(method: str) -> Callable[[RankingTask], Run]:
    """Return the ranker of a name and parameters, as in `bm25 k1=2.0 b=0.9`."""
    name, *parameters = method.split()
    return choose_method(name, dict(one.split("=") for one in parameters))


def _break(text: bytes) -> bytes:
    """Damage a run as it happens in life: a document twice, a rank left out, a query lost."""
    lines = text.splitlines(keepends=True)
    first = lines[0].split(b"\t")
    lines[4] = b"\t".join([first[0], first[1], b"5\n"])
    del lines[DEPTH + 6]
    return b"".join(lines[:-DEPTH])


def create_demo_board(folder: Path, split: QuerySplit, opening: datetime) -> Session:
    """Create `board` and `vault` in the folder, on these queries and labels.

    Args:
        folder: of the demo.
        split: dev queries with public labels, eval queries with held-out ones.
        opening: the board's first moment, UTC.
    """
    sets = {}
    for name, half in (("dev", split.dev), ("eval", split.eval)):
        texts, labels = _format_set(half)
        queries = parse_queries(texts, path=f"{name}.tsv")
        qrels = parse_qrels(labels, path=f"{name}.qrels")
        sets[name] = creation.GivenSet(queries=queries, qrels=qrels, public=name == "dev")
    plan = template.NewBoard(
        name="stdlib-docs",
        title="Stdlib Docs",
        task=_TASK,
        opens=opening.date(),
        envelope="age",
        recipients=(),
        measure=_MEASURE,
        order="msmarco",
        depth=DEPTH,
        sets={"dev": True, "eval": False},
        primary="eval",
        example=_example(split),
    )
    return creation.create_board(folder / "board", folder / "vault", plan, sets, now=opening)


def _format_set(half: Collection) -> tuple[bytes, bytes]:
    """Return queries and labels as files."""
    texts = {str(query): text for query, text in half.queries.items()}
    labels = {str(q): {str(d): n for d, n in found.items()} for q, found in half.qrels.items()}
    return format_queries(texts), format_qrels(labels)


def _allow_figures(folder: Path, session: Session, now: datetime) -> None:
    """Let the page publish figures at the end of the story, as board.toml of a live board does."""
    file = session.repository.files.file(SPEC)
    file.write_whole(file.read_bytes() + f'\n[trust]\nafter = "{now.date()}"\n'.encode())
    with sit(folder, session.now, accept=lambda _: None) as sure:
        rebuild.bring_up_to_date(sure)


def _example(split: QuerySplit) -> spec.Example:
    """The first dev query whose answer is short enough to be read at a glance."""
    glance = range(12, 45)
    pairs = [(query, document) for query, found in split.dev.qrels.items() for document in found]
    short = [pair for pair in pairs if len(split.dev.documents[pair[1]].split()) in glance]
    query, document = (short or pairs)[0]
    text = " ".join(split.dev.documents[document].split())
    return spec.Example(query=split.dev.queries[query], document=document, text=text)


def sit(
    folder: Path, moment: datetime, *, accept: Callable[[RuleChange], None] = refuse_rules
) -> AbstractContextManager[Session]:
    """The organiser's session at a moment of the story.

    Args:
        folder: of the demo.
        moment: UTC.
        accept: as `organiser_session` has it.
    """
    repository = Repository(folder / "board")
    return organiser_session(repository, folder / "vault", clock=lambda: moment, accept=accept)


def _show_baseline(folder: Path, now: datetime, say: Callable[[str, str], None]) -> None:
    moment = now - timedelta(days=BASELINE.days)
    with sit(folder, moment) as later:
        _add_baseline(later, BASELINE.slug, dict(_files(folder, BASELINE)), BASELINE.system)
    say("baseline", f"{BASELINE.system}, shown by the organisers on {moment:%d %b}")


def _add_baseline(session: Session, slug: str, runs: Mapping[str, Path], system: str) -> None:
    name = draft_id(slug, today=session.now.date(), embargoed=False)
    decide.add_baseline(session, name, runs, description=system)
    rebuild.bring_up_to_date(session)


def _files(folder: Path, part: StoryPart) -> Iterator[tuple[str, Path]]:
    for name in ("dev", "eval"):
        yield name, folder / "runs" / part.slug / f"{name}.tsv.bz2"


def _play(folder: Path, part: StoryPart, now: datetime, say: Callable[[str, str], None]) -> Scene:
    """One submission: a team drafts, seals and sends; a day later the organiser decides."""
    moment = now - timedelta(days=part.days)
    submission = _send(folder, part, moment)
    say("sent", f"{moment:%d %b}  {submission}  by {part.team.name}")
    with sit(folder, moment + timedelta(hours=8)) as session:
        scene = _decide(session, submission, part)
        rebuild.bring_up_to_date(session)
    say("published" if scene.published else "refused", scene.why or part.system)
    return scene


def _send(folder: Path, part: StoryPart, moment: datetime) -> SubmissionId:
    clone = Git(folder / "teams").clone(folder / "board", part.slug)
    repository = Repository(clone.root)
    until = (moment + timedelta(days=30 * part.months)).date() if part.months else None
    submission = draft_id(part.slug, today=moment.date(), embargoed=until is not None)
    draft(repository, submission, dict(_files(folder, part)), embargo_until=until)
    manifest = Manifest(
        team=part.team.name,
        institution=part.team.institution,
        description=part.system,
        type="full ranking",
        paper=part.paper,
        code="",
        training_data="none",
        embargo_until=until,
    )
    draft_folder(repository, submission).write_whole(METADATA, format_manifest(manifest))
    checks.check(repository, submission, now=moment)
    # The two that are refused go out in spite of what the check said, as some teams do.
    packed = send.pack(repository, submission, manifest)
    branch = send.submit(repository, submission, packed, embargoed=until is not None, now=moment)
    repository.git.push("origin", f"refs/heads/{branch}:refs/heads/{branch}")
    return submission


def _decide(session: Session, submission: SubmissionId, part: StoryPart) -> Scene:
    git = session.repository.git
    head = git.head()
    if head is None:
        raise StoreError("the demo's board has no commit")
    inbox.receive(session, find_in_git(git, session.spec().envelope, main=head))
    sets = load_sets(session.repository, session.spec(), vault=session.vault)
    result = review.review(session, sets, submission)
    if result.stands_against:
        why = "; ".join(f"{found.rule}: {found.evidence}" for found in result.stands_against)
        decide.reject(session, submission, why=why)
        return Scene(id=submission, part=part, published=False, why=why)
    decision = decide.publish(session, result, why=part.reason if result.needs_reason else "")
    return Scene(id=submission, part=part, published=decision.done, why="; ".join(decision.why_not))


_BASELINE = "tfidf"
_SYSTEMS: Mapping[str, str] = {
    _BASELINE: "tfidf",
    "char-ngrams": "char-ngrams",
    "ql-jm": "query-likelihood smoothing=jelinek-mercer",
    "ql-dirichlet": "query-likelihood",
}
"""Name of the run files -> method; the first is the board's baseline."""


def write_files(folder: Path, *, now: datetime, say: Callable[[str, str], None]) -> None:
    """Write documents, queries, labels, four runs, and a board with a baseline.

    Args:
        folder: new; gets the files, `runs`, `board` and `vault`.
        now: the board's first moment, UTC.
        say: gets each step, as a heading and a sentence.

    Raises:
        StoreError: the folder holds something already.
        SetupError: this Python has no library source on disk.
    """
    check_new(folder)
    sample = read_sample()
    split = sample.split
    if sample.missing:
        say(
            "note",
            f"this Python lacks {sample.missing} of the tutorials' texts; figures differ a little",
        )
    # For the repository that the folder may lie in: nothing here, a vault least of all, is its own.
    write_whole(folder / ".gitignore", b"*\n")
    rows = (f"{document}\t{text}\n" for document, text in split.dev.documents.items())
    write_whole(folder / "documents.tsv", "".join(rows).encode())
    for name, half in (("dev", split.dev), ("eval", split.eval)):
        texts, labels = _format_set(half)
        write_whole(folder / f"{name}.tsv", texts)
        write_whole(folder / f"{name}.qrels", labels)
    say("files", f"{folder}/documents.tsv, dev.tsv, dev.qrels, eval.tsv and eval.qrels")
    _write_runs(folder, split)
    say("runs", f"{folder}/runs/dev and {folder}/runs/eval: {', '.join(_SYSTEMS)}")
    create_demo_board(folder, split, now)
    runs = {name: folder / "runs" / name / f"{_BASELINE}.run.gz" for name in ("dev", "eval")}
    with sit(folder, now) as session:
        _add_baseline(session, _BASELINE, runs, "TF-IDF cosine")
    say("board", f"{folder}/board with the baseline {_BASELINE}; its vault is {folder}/vault")


def _write_runs(folder: Path, split: QuerySplit) -> None:
    halves = {"dev": split.dev.queries, "eval": split.eval.queries}
    queries = {**split.dev.queries, **split.eval.queries}
    task = RankingTask(documents=split.dev.documents, queries=queries, depth=DEPTH)
    for system, method in _SYSTEMS.items():
        run = _choose(method)(task)
        for name, half in halves.items():
            text = format_run({query: run[query] for query in half}, form="trec", tag=system)
            # Without a time in the header the same run has the same bytes.
            path = folder / "runs" / name / f"{system}.run.gz"
            write_whole(path, gzip.compress(text, mtime=0))
