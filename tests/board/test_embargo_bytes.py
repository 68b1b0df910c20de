"""Nothing of an embargoed identity is in any byte that is published: the log, and every page."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

import msgspec
from boardlog import BoardLog, make_manifest, make_spec

from heldout.board.log.events import format_entry
from heldout.board.log.manifest import Efficiency, Identity, Manifest, identity_fields
from heldout.board.site.pages import render_board
from heldout.board.site.sections import BoardFacts
from heldout.board.standings.standings import make_standings, project
from heldout.ids import Digest

REVEAL = date(2027, 5, 20)
NAME = "20261101-x7f3"
FINDING, REASON = "zqfinding", "zqreason"


def _value(name: str, kind: Any, number: Iterator[int]) -> Any:
    """A value that occurs nowhere else, whatever field it is for."""
    if kind is str:
        return f"https://zq{name}.example/" if name in ("paper", "code") else f"zq{name}"
    if kind == Efficiency | None:
        return _fill(Efficiency, number)
    if kind is bool:
        return True
    return None if kind == bool | None else next(number)


def _fill(struct: type[msgspec.Struct], number: Iterator[int]) -> Any:
    fields = msgspec.structs.fields(struct)
    return struct(**{one.name: _value(one.name, one.type, number) for one in fields})


def _texts(values: Mapping[str, Any]) -> Iterator[str]:
    for value in values.values():
        if isinstance(value, dict):
            yield from _texts(value)
        elif value is not None:
            yield str(value)


IDENTITY: Identity = _fill(Identity, iter(range(918_273_645, 10**9)))
FLAGS = ("open_runs", "season_entry")
SECRETS = (*_texts({**identity_fields(IDENTITY), **dict.fromkeys(FLAGS)}), FINDING, REASON)


def _log() -> BoardLog:
    log = BoardLog().open()
    log.baseline("20261101-bm25", "0.3")
    names = {name: getattr(IDENTITY, name) for name in Identity.__struct_fields__}
    manifest: Manifest = make_manifest(embargo_until=REVEAL, **names)
    log.receive(NAME)
    log.review(NAME, manifest)
    log.publish(NAME, manifest, "0.41", why=REASON, findings=[FINDING])
    log.submit("20261102-b", make_manifest("Open Water"), "0.45")
    return log


def _published(log: BoardLog, now: datetime) -> bytes:
    """The public log of a moment with everything that is rendered from the vault's own."""
    spec = make_spec()
    facts = BoardFacts(events=len(log.entries), head=Digest("0" * 64))
    files = render_board(make_standings(log.entries, spec, now=now), spec, facts)
    events = map(format_entry, project(log.entries, now=now))
    return b"".join([*events, *files.values()])


def test_every_field_of_the_identity_is_tried() -> None:
    stated = {*Identity.__struct_fields__, *Efficiency.__struct_fields__}
    assert len(SECRETS) - 2 == len(stated - {"efficiency", *FLAGS})


def test_before_the_reveal_no_byte_has_a_part_of_it() -> None:
    log = _log()
    data = _published(log, datetime(2027, 5, 19, 23, 59, tzinfo=UTC))
    assert b"Open Water" in data
    assert not [secret for secret in SECRETS if secret.encode() in data]
    assert b"zq" not in data.lower()


def test_after_the_reveal_all_of_it_is_there() -> None:
    data = _published(_log(), datetime(2027, 5, 20, tzinfo=UTC))
    assert not [secret for secret in SECRETS if secret.encode() not in data]
