"""An organiser's session: the one way to a vault that can be written.

`organiser_session` holds the locks of vault and board, and checks what protects both before it
gives a desk: the clock, the board's remote, the rules that others put in force, and the keys here.
So it makes no difference who calls, the command line, the demo or another program. `look_at` gives
a desk whose vault raises where it would be written. Only a board that is being created is written
without a session.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from heldout.board.log.events import signers_of
from heldout.board.log.history import History, read_history
from heldout.board.rules.spec_file import parse_spec
from heldout.envelope.bundle import short_recipient
from heldout.errors import StoreError, plural
from heldout.pipeline.organiser.clock import check_clock
from heldout.pipeline.organiser.desk import Desk, accept_rules, check_same
from heldout.pipeline.organiser.new_rules import RuleChange, check_new_rules, find_rule_change
from heldout.pipeline.organiser.recipients import among, check_recipients, own_recipients
from heldout.pipeline.query_sets.public_files import find_edited, restore_public
from heldout.store.repository import SPEC, Repository
from heldout.store.shared_rules import newer_agreement, newer_rules
from heldout.store.vault import Vault

__all__ = ["look_at", "organiser_name", "organiser_session", "refuse_rules", "sit_down"]

Tell = Callable[[str], None]


def refuse_rules(change: RuleChange) -> None:
    """Accept no rules that the log does not have.

    Raises:
        StoreError: always.
    """
    told = [str(one) for one, _ in change.files]
    if change.texts:
        keys = ", ".join(one.key for one in change.differences) or "comments or layout only"
        told.insert(0, f"board.toml is not what the log has ({keys})")
    raise StoreError(f"{'; '.join(told)}; nobody accepted it, and nothing was done")


@contextmanager
def organiser_session(
    repository: Repository,
    vault_root: Path,
    *,
    clock: Callable[[], datetime],
    tell: Tell = lambda _: None,
    accept: Callable[[RuleChange], None] = refuse_rules,
    sure: bool = False,
    restore: bool = False,
) -> Iterator[Desk]:
    """The organiser's desk, with vault and board locked while it is used.

    A shared vault is brought up to its remote first.

    Args:
        repository: the board.
        vault_root: the vault's folder.
        clock: the time, UTC; read once the lock is held.
        tell: gets what a person should know, in sentences.
        accept: gets rules in the board's folder that the log does not have; it raises unless
            somebody says yes to them, and then they are logged.
        sure: a person says that it is as late as the clock says.
        restore: whether edited rules are replaced by those of the log.

    Raises:
        StoreError: no vault, another heldout holds the lock, the remote of a shared vault cannot be
            followed, the clock is behind or far ahead, or board.toml was edited and names a missing
            file.
        InputError: board.toml was edited in a way that cannot hold; nothing was done.
    """
    vault = Vault.open(vault_root, board=repository.root)
    with vault.locked() as news, repository.locked():
        for one in news:
            tell(one)
        # The clock after the fetch: what came with it happened before.
        desk = sit_down(repository, vault, now=clock())
        vault.remove_unneeded()  # what a killed call left
        if vault.is_shared():
            _check_pulled(repository)
            _check_let_in(desk)
        if restore:
            _restore_rules(desk, tell)
        _take_over_rules(repository, vault, tell)
        check_clock(desk, sure=sure)
        yield _settle_rules(desk, accept)
        vault.remove_unneeded()


def look_at(repository: Repository, vault_root: Path, *, now: datetime) -> Desk:
    """The organiser's desk, to read at: no lock is held, and nothing can be written.

    Raises:
        StoreError: no vault there, it has no key, or lacks events of the board's public log.
    """
    vault = Vault.open(vault_root, board=repository.root, read_only=True)
    return sit_down(repository, vault, now=now)


def sit_down(repository: Repository, vault: Vault, *, now: datetime) -> Desk:
    """The desk of whoever holds the vault's keys, by the name that they sign events with.

    Raises:
        StoreError: the vault has no key, or lacks events of the board's public log.
    """
    check_same(repository, vault)
    named = organiser_name(repository, vault)
    own = vault.own_signer(signers_of(vault.entries()))
    by = named if own is None else own.name
    return Desk(repository=repository, vault=vault, now=now, by=by)


def organiser_name(repository: Repository, vault: Vault) -> str:
    """How this organiser is named in the log: the vault's first key, cut short."""
    entries = vault.entries()
    rules = vault.history().rules[-1][1] if entries else repository.tree_rules()
    spec = parse_spec(rules.encode(), path=SPEC)
    if not vault.identities():
        raise StoreError(
            "the vault has no key; restore identities/ from the backup, "
            "or make a new one: heldout board rekey"
        )
    own = next(own_recipients(spec.envelope, vault), None)
    if own is None:  # the envelope was changed to a form that the vault has no key of
        check_recipients(spec, rules, vault)
        raise StoreError(f'the vault has no key of the form envelope = "{spec.envelope}"')
    return short_recipient(spec.envelope, own)


def _check_pulled(repository: Repository) -> None:
    """Refuse a board that lacks what another organiser made public: both would make it anew.

    Raises:
        StoreError: its remote has commits that the folder lacks.
    """
    git = repository.git
    ref = git.tracked() if git.is_repository() else None
    if ref is None:
        return
    _, _, remote, branch = ref.split("/", 3)
    with suppress(StoreError):  # offline: the vault's remote has answered, that is what counts
        git.fetch(remote, f"+refs/heads/{branch}:{ref}")
    if count := git.unpulled():
        raise StoreError(
            f"the board here lacks {plural(count, 'commit')} of {remote}: git pull --ff-only, then "
            "call again; where that fails, docs/organisers.md says how to go on"
        )


def _take_over_rules(repository: Repository, vault: Vault, tell: Tell) -> None:
    """Write the rules that the vault has and the board's folder lacks; an edit is left alone.

    Another organiser put them in force, or a change of keys was stopped on its way.
    """
    try:
        public = repository.log()
    except StoreError:
        public = ()  # damaged; rebuild writes it anew
    rules = newer_rules(repository.tree_rules(), public=public, entries=vault.entries())
    if rules is not None:
        repository.write_file(SPEC, rules.encode())
        tell(f"{SPEC} taken over: the vault has newer rules")
    if public:
        _check_newer_files(repository, read_history(public), vault)
    agreement = newer_agreement(repository.files, public=public, entries=vault.entries())
    if agreement is not None:
        path, text = agreement
        repository.write_file(path, text.encode())
        tell(f"{path} taken over: the vault has a newer text")


def _check_newer_files(repository: Repository, before: History, vault: Vault) -> None:
    """Refuse public files that another organiser has replaced: the log has only their digests.

    Raises:
        StoreError: the folder has those of its own log, and the vault's log names others.
    """
    spec, history = parse_spec(vault.history().rules[-1][1].encode(), path=SPEC), vault.history()
    then = before.files or {}
    newer = [
        one.path
        for one in find_edited(repository, history, spec)
        if before.files is not None and one.found == then.get(one.path)
    ]
    if newer:
        raise StoreError(
            f"{', '.join(newer)}: another organiser logged another version, which this folder "
            "lacks; get it from them (git pull --ff-only), then call again"
        )


def _restore_rules(desk: Desk, tell: Tell) -> None:
    """Write the log's rules, agreement and public files over what lies in the board's folder.

    Raises:
        StoreError: the board's git has no version of a public file with the digest in the log.
    """
    history, registration = desk.history(), desk.spec().registration
    files = {SPEC: desk.rules()}
    if registration is not None and registration.agreement is not None and history.agreements:
        files[registration.agreement] = history.agreements[-1].text
    for path, text in files.items():
        if desk.repository.write_file(path, text.encode()):
            tell(f"{path} is again as the log has it")
    for path, commit in restore_public(desk.repository, history, desk.spec()):
        tell(f"{path} is again as the log has it, from commit {commit[:12]}")


def _settle_rules(desk: Desk, accept: Callable[[RuleChange], None]) -> Desk:
    """Log rules that the log does not have where somebody says yes to them.

    Whoever may push to the board can edit its board.toml: an organiser who pulled has not read it.

    Raises:
        InputError: such rules cannot hold.
        StoreError: they changed while the question stood.
    """
    change = find_rule_change(desk.repository, desk.vault)
    if change is None:
        return desk
    check_new_rules(desk.repository, desk.vault, now=desk.now)
    accept(change)
    if find_rule_change(desk.repository, desk.vault) != change:
        raise StoreError("the rules changed while you read them; nothing was done, call again")
    return replace(desk, accepted=accept_rules(desk))


def _check_let_in(desk: Desk) -> None:
    """Refuse who cannot open submissions: what they review would be logged as broken, for all.

    Raises:
        StoreError: no key in this vault is one of the board's recipients.
    """
    spec = desk.spec()
    ours = list(own_recipients(spec.envelope, desk.vault))
    if not any(among(recipient, ours) for recipient in spec.recipients):
        raise StoreError(
            f"your key {desk.by} is none of the board's recipients, so nothing opens for you; "
            "another organiser lets you in (docs/organisers.md, Joining)"
        )
    signers = signers_of(desk.vault.entries())
    if signers and desk.vault.own_signer(signers) is None:
        raise StoreError(
            "no key in this vault is that of a signer of the board, so it can sign no event; "
            "heldout board signer prints yours, and another organiser adds it "
            "(docs/organisers.md, Joining)"
        )
