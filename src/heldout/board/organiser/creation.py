"""Founds a board from given queries and judgments, and puts its page on the web."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

from heldout.board.log.events import format_entry, redact
from heldout.board.organiser.rebuild import KEEPER, bring_up_to_date
from heldout.board.policy.checks import add_months
from heldout.board.rules import changes, template
from heldout.board.rules.spec import BoardSpec, ForgeSpec, Season
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores.commitments import new_keys, store_versions
from heldout.board.scores.session import Session, begin_session
from heldout.board.scores.sets import SetData, check_sets, digest_public
from heldout.board.store.repository import SPEC, Repository
from heldout.board.store.vault import Vault, check_apart
from heldout.envelope import bundle, keys
from heldout.errors import InputError, StoreError
from heldout.ids import digest_bytes
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels, format_qrels
from heldout.trec.queries import Queries, format_queries

_SEASON_QUERIES = 250
_MOST_SEASONS = 4
_YEAR = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSet:
    """A query set that an organiser gives.

    Attributes:
        queries: its queries.
        qrels: its labels.
        public: whether the labels may be published; else they go into the vault.
    """

    queries: Queries
    qrels: Qrels
    public: bool


def choose_order(sets: Iterable[GivenSet]) -> tuple[Order, str]:
    """Return how runs are best ordered, by the labels of a board that does not exist yet, and why.

    Collections with one relevant document for a query follow MS MARCO, whose scripts read the rank
    column. Elsewhere runs come from TREC tools, whose rank columns begin at 0, repeat or have gaps,
    because trec_eval does not read them.
    """
    counts: list[int] = []
    for given in sets:
        for grades in given.qrels.judgments.values():
            if any(grade > 1 for grade in grades.values()):
                return "trec", "the labels are graded"
            counts += [count] if (count := sum(grade > 0 for grade in grades.values())) else []
    if counts and median(counts) > 1:
        return "trec", f"a query has {median(counts):g} relevant documents, in the median"
    return "msmarco", "the labels have one relevant document for a query, as on MS MARCO"


def add_seasons(plan: template.NewBoard) -> template.NewBoard:
    """Plan the seasons of a new board under `clear`, each ranked by a part of the primary set.

    They are quarters of a year from the first day on, of which the last one stays open. A board
    with a last day is cut into seasons of equal length. There are as many as leave 250 judged
    queries to each, and about a quarter of a year, but four at most.

    Args:
        plan: the board; one of known teams has no seasons.

    Returns:
        The board, without seasons where there would be one: it ranks by one view then.
    """
    opens, closes = plan.opens, plan.closes
    days = _YEAR if closes is None else (closes - opens).days + 1
    number = min(_MOST_SEASONS, round(days * 4 / _YEAR), plan.deciding // _SEASON_QUERIES)
    if number <= 1 or plan.stake == "known":
        return plan
    starts = [
        add_months(opens, 3 * n) if closes is None else opens + timedelta(days * n // number)
        for n in range(number)
    ]
    ends = [*(start - timedelta(1) for start in starts[1:]), closes]
    seasons = [
        Season(name=f"s{n}", view=f"{plan.primary}-{n}", opens=start, closes=end)
        for n, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    ]
    return replace(plan, seasons=seasons)


def create_board(
    root: Path,
    vault_root: Path,
    plan: template.NewBoard,
    sets: Mapping[str, GivenSet],
    *,
    now: datetime,
) -> Session:
    """Make board and vault, the first key, the first event, the first page, the first commit.

    Args:
        root: the board's folder, which must not hold a board.
        vault_root: the vault's folder, which must be new and outside the board.
        plan: what the board is; its `recipients` are replaced by the new key.
        sets: its query sets by name.
        now: the moment of the founding.

    Raises:
        StoreError: a folder is taken, or the vault would lie inside the board; nothing is made.
        InputError: the plan is no board, its sets give no score, or its held-out labels are in the
            open; likewise.
        SetupError: git is not installed; likewise.
    """
    check_apart(vault_root, root)
    repository = Repository(root)
    repository.git.require()
    if is_created(root, vault_root, plan, sets):
        return begin_session(repository, Vault(vault_root, read_only=True), now=now)
    going_on = Vault(vault_root).is_unfinished(root)
    if not going_on and root.exists() and {path.name for path in root.iterdir()} - {".git"}:
        raise StoreError(f"{root} is not empty; name a folder that does not exist yet")
    Vault(vault_root).check_new(board=root)
    spec = parse_spec(template.new_board_files(replace(plan, recipients=["made later"]))[SPEC])
    check_sets(
        spec,
        {
            name: SetData(
                queries=given.queries,
                qrels=given.qrels,
                digest=None,
                excluded=frozenset(),
                candidates=None,
            )
            for name, given in sets.items()
        },
    )
    root.mkdir(parents=True, exist_ok=True)
    repository.git.init()
    vault = Vault.create(vault_root, board=root)
    with vault.locked(), repository.locked():
        files = template.new_board_files(replace(plan, recipients=[_recipient(vault, plan)]))
        for name, given in sets.items():
            repository.write_file(f"queries/{name}.tsv", format_queries(given.queries.texts))
            labels = format_qrels(given.qrels.judgments)
            if given.public:
                repository.write_file(f"qrels/{name}.qrels", labels)
            else:
                vault.labels_file(name).write_whole(labels, mode=0o600)
        for path, data in files.items():
            repository.write_file(path, data)
        if plan.forge is not None and plan.forge.hosted:
            vault.store_token_host(plan.forge.host)
        session = begin_session(repository, vault, now=now)
        _open(session, files[SPEC].decode())
        vault.finish()
    return session


def is_created(
    root: Path, vault_root: Path, plan: template.NewBoard, sets: Mapping[str, GivenSet]
) -> bool:
    """Check whether an earlier call founded just this board, so that a second one finds it done."""
    repository, vault = Repository(root), Vault(vault_root)
    entries = vault.entries()
    if vault.is_unfinished(repository.root) or not entries or not vault.identities():
        return False
    files = template.new_board_files(replace(plan, recipients=[_recipient(vault, plan)]))
    labels = {
        name: digest_bytes(format_qrels(given.qrels.judgments))
        for name, given in sets.items()
        if not given.public
    }
    held = entries[0].get("labels") or {}
    given_then = {name: digest for name, digest in held.items() if not changes.is_key(name)}
    same = entries[0].get("board.toml") == files[SPEC].decode() and given_then == labels
    public = repository.log_bytes()
    return same and public.startswith(format_entry(redact(entries[0], ())))


def _recipient(vault: Vault, plan: template.NewBoard) -> str:
    """The public half of the vault's first key, which is made where there is none yet."""
    if not vault.identities():
        vault.add_identity("organiser", bundle.new_identity(plan.envelope).private)
    return bundle.recipient_of(plan.envelope, vault.identities()[0])


def first_signers(session: Session) -> dict[str, str]:
    """The signers that a new board begins with: whoever founds it, under the name that they have.

    The vault's signing key is made where there is none yet.
    """
    return {session.by: keys.public_key(session.vault.own_signing_key())}


def _open(session: Session, rules: str) -> None:
    """The first event: the rules in the open, the digests of all that is held out sealed.

    The salted digest commits the organiser to it without showing anything of it.
    """
    if not session.vault.entries():
        spec = parse_spec(rules.encode())
        with new_keys(session.vault, session.history(), spec):
            labels = session.vault.held_out(changes.list_stems(spec))
            store_versions(session.vault, labels)
            files = digest_public(session.repository, spec)
            public = {"board.toml": rules, "files": files, "signers": first_signers(session)}
            session.log("opened-board", None, public=public, sealed={"labels": labels})
    bring_up_to_date(session)


_DOCS = "docs/how-to/publish-the-page.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePublication:
    """How a board's page gets on the web.

    Attributes:
        path: of the workflow in the board.
        commit: that brought it, `None` where the board has it already or is no git repository.
        changed: whether it was written now.
        home: address of the page, "" where it is not known.
        steps: what is left to a person, in order.
    """

    path: str
    commit: str | None
    changed: bool
    home: str
    steps: tuple[str, ...]


def publish_page(repository: Repository, *, now: datetime) -> PagePublication:
    """Write the workflow, and commit it. No vault is needed, and nothing is pushed.

    Args:
        repository: the board; its lock is held.
        now: time of the commit, UTC.

    Raises:
        InputError: code `page-workflow`: the board's forge has no pages that heldout knows,
            `install` is not stated, or somebody has edited the workflow.
        StoreError: the log is missing or damaged.
    """
    spec = repository.spec()
    forge = _require_forge(spec)
    ((path, data),) = template.page_files(forge, install=spec.install).items()
    there = repository.files.find(path)
    if there not in (None, data) and not template.is_generated_page(forge.kind, there or b""):
        found = "a file that heldout did not write, or that was edited"
        hint = f"remove it and call again, or add the jobs yourself: {_DOCS}"
        raise InputError.of("page-workflow", path, found, "the file of heldout, or none", hint)
    changed = repository.write_file(path, data)
    git = repository.git
    commit = None
    if git.is_repository():
        author = git.configured_author() or KEEPER
        message = "Publish the page"
        commit = git.commit_paths([path], message=message, author=author, at=now)
    return PagePublication(
        path=path,
        commit=commit,
        changed=changed,
        home=spec.home or template.find_home(forge),
        steps=template.list_steps(forge, home=spec.home),
    )


def _require_forge(spec: BoardSpec) -> ForgeSpec:
    forge = spec.forge
    if forge is None or forge.kind not in template.PAGE_PATHS:
        found = "no [forge]" if forge is None else f"kind = {forge.kind}"
        expected = f"a project on one of: {', '.join(template.PAGE_PATHS)}"
        hint = f"any web server can show the folder leaderboard: {_DOCS}"
        raise InputError.of("page-workflow", "board.toml:forge", found, expected, hint)
    if not spec.install:
        raise InputError.of(
            code="page-workflow",
            path="board.toml:install",
            found='""',
            expected="the address from which the forge installs heldout",
            hint="state it, then: heldout rebuild --vault DIR, and call again",
        )
    return forge
