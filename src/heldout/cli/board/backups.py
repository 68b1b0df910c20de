"""`heldout backup` and `heldout restore`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import click
import msgspec

from heldout.cli import context, printing
from heldout.cli.options import command
from heldout.errors import StoreError
from heldout.options import Opt

_File = Annotated[Path, Opt(argument=True, path="file", metavar="FILE")]


@command
def backup(
    *,
    file: _File,
    recipient: Annotated[
        tuple[str, ...],
        Opt("Public key (age) that can open it, beside those of the board.", metavar="KEY"),
    ] = (),
    database: Annotated[
        str | None,
        Opt("Database of heldout serve: sqlite:///FILE or postgresql://… [none].", metavar="URL"),
    ] = None,
    folder: Annotated[
        tuple[Path, ...],
        Opt("Further folder, as uploads or a campaign.", path="folder", exists=True),
    ] = (),
    call: context.VaultCall,
) -> None:
    """Write board, vault, database and other folders into one encrypted file.

    With --vault the board and its vault are in it, as of one moment: the call waits for a command
    that works there. The database is read in one transaction while its server goes on. The file is
    whole or absent, and no file is written over.

    The vault's private keys are in it, so it is always encrypted with age: for the board's
    recipients and each --recipient. Where the vault has the only key, name another one, whose
    private half lies elsewhere.

    \b
    Example:
      heldout backup ../monday.backup --vault ../kb-vault --recipient age1q8f3xk2...
      heldout backup server.backup --database sqlite:///campaign/campaign.sqlite \\
      --folder uploads --recipient age1q8f3xk2...
    """
    from heldout import __version__
    from heldout.backup.backing_up import Sources, back_up

    has_board = call.vault is not None or call.board_folder is not None
    sources = Sources(
        repository=call.board() if has_board else None,
        vault=None if call.vault is None else call.need_vault(),
        database=database,
        folders=folder,
    )
    made = back_up(file, sources, recipients=recipient, now=call.now, program=__version__)
    facts = printing.fill_facts("backup", file=file, made=made)
    call.answer({"file": str(file), **msgspec.to_builtins(made)}, facts)


@command
def restore(
    *,
    file: Annotated[Path, Opt(argument=True, path="file", exists=True, metavar="FILE")],
    to: Annotated[Path | None, Opt("Folder to restore into, new or empty.", path="folder")] = None,
    identity: Annotated[
        tuple[Path, ...],
        Opt("File with a private key (age) that opens it.", path="file", exists=True),
    ] = (),
    database: Annotated[
        str | None,
        Opt("Empty database to restore into [a SQLite file in DIR].", metavar="URL"),
    ] = None,
    check: Annotated[
        bool, Opt("Restore into a temporary folder, audit it, and remove it again.")
    ] = False,
    call: context.VaultCall,
) -> None:
    """Restore a backup into an empty folder, or check that it could be.

    Every byte is checked before anything is written. DIR/board, DIR/vault and the other folders are
    made, or none of them. The keys are those of --identity, and of the vault of --vault if it is
    still there.

    With --board a newer board is named: events that its public log has and the backup lacks are
    added to the restored vault, and what is lost of them is listed with the command that makes it
    again.

    \b
    Example:
      heldout restore monday.backup --check --identity backup.key --board kb
      heldout restore monday.backup --to restored --identity backup.key --board kb
    """
    from heldout.backup.restoring import check_backup
    from heldout.backup.restoring import restore as restore_backup

    if (to is None) is not check:
        raise click.UsageError("give either --to DIR or --check")
    if check and database is not None:
        raise click.UsageError("--check restores into a SQLite file: leave --database out")
    keys = _read_keys(call, identity)
    newer = None if call.board_folder is None else call.board()
    if to is not None:
        done = restore_backup(file, to, identities=keys, database=database, newer=newer)
        document = {one.name: getattr(done, one.name) for one in fields(done)}
        whole = msgspec.to_builtins(done.manifest)  # without its files
        whole["folders"] = sorted(whole["folders"])
        document |= {"folder": str(done.folder), "manifest": whole}
        call.answer(document, printing.fill_facts("restored", done=done))
        return
    drill = check_backup(file, identities=keys, newer=newer)
    call.answer(msgspec.to_builtins(drill), printing.fill_facts("backup_checked", drill=drill))
    if drill.audit is not None and drill.audit.faults:
        raise click.exceptions.Exit(1)


def _read_keys(call: context.VaultCall, files: tuple[Path, ...]) -> list[str]:
    """The private keys of --identity, and those of a vault that is still there."""
    from heldout.board.store.vault import Vault

    keys = [one.read_text("utf-8-sig") for one in files]
    if call.vault is not None:
        keys += Vault(call.vault.absolute(), read_only=True).identities()
    if not keys:
        raise StoreError("which key opens it? name its file: --identity FILE")
    return keys
