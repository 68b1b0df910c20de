"""What pages say of an embargoed entry, and that none of its bytes has a part of the identity."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

import msgspec
from boardlog import BoardLog, make_manifest, make_spec
from page_documents import Document, render_page
from sample_boards import baseline, facts, row, spec, standings

from heldout.board.log.events import format_entry
from heldout.board.log.manifest import Efficiency, Identity, Manifest, identity_fields
from heldout.board.site.pages import make_board_page, render_board
from heldout.board.site.sections import BoardFacts
from heldout.board.standings.standings import Standings, make_standings, project
from heldout.ids import Digest


def _secretive(until: date, **changes: Any) -> Standings:
    hidden = row(
        "0.500",
        "0.510",
        days=400,
        id="20261006-x7f3",
        embargoed=True,
        embargo_until=until,
        **changes,
    )
    return standings([baseline(), hidden, row("0.4", "0.41", days=3), row("0.3", "0.31", days=9)])


def test_an_embargoed_entry_is_anonymous_with_its_score() -> None:
    files = render_board(_secretive(date(2027, 5, 20)), spec(), facts())
    document = Document(files["leaderboard/index.html"])
    assert "Anonymous until 20 May 2027" in document.text
    assert "0.500" in document.text
    entry = Document(files["leaderboard/entries/20261006-x7f3.html"])
    assert "Team, description, paper and code are withheld; score" in entry.text
    assert "{{Anonymous}}" in entry.text


def test_a_reveal_that_is_due_is_told() -> None:
    files = render_board(_secretive(date(2026, 11, 18), reveal_due=True), spec(), facts())
    text = Document(files["leaderboard/index.html"]).text
    assert "Anonymous; reveal due since 18 Nov 2026" in text
    entry = Document(files["leaderboard/entries/20261006-x7f3.html"])
    assert "until the organisers rebuild" in entry.text


def test_the_script_knows_the_day_of_a_reveal() -> None:
    files = render_board(_secretive(date(2027, 5, 20)), spec(), facts())
    for path in ("index.html", "entries/20261006-x7f3.html"):
        elements = Document(files[f"leaderboard/{path}"]).elements
        marked = [a for _, a in elements if "data-embargo-until" in a]
        assert marked
        assert all(a["data-embargo-until"] == "2027-05-20" for a in marked)
        assert all(a["data-after"] == "Anonymous; reveal due since 20 May 2027" for a in marked)


def test_an_embargo_without_a_day_is_anonymous() -> None:
    board = standings([row("0.4", days=1, embargoed=True)])
    page = render_page(make_board_page(board, spec(), facts()))
    assert "Anonymous" in page.text
    assert "Anonymous until" not in page.text
    assert not [a for _, a in page.elements if "data-embargo-until" in a]


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
    manifest: Manifest = make_manifest(embargo_until=date(2027, 5, 20), **names)
    log.submit("20261101-x7f3", manifest, "0.41", why=REASON, findings=[FINDING])
    log.submit("20261102-b", make_manifest("Open Water"), "0.45")
    return log


def _published(log: BoardLog, now: datetime) -> bytes:
    """The public log of a moment with everything that is rendered from the vault's own."""
    spec = make_spec()
    facts = BoardFacts(events=len(log.entries), head=Digest("0" * 64))
    files = render_board(make_standings(log.entries, spec, now=now), spec, facts)
    return b"".join([*map(format_entry, project(log.entries, now=now)), *files.values()])


def test_every_field_of_the_identity_is_tried() -> None:
    stated = {*Identity.__struct_fields__, *Efficiency.__struct_fields__}
    assert len(SECRETS) - 2 == len(stated - {"efficiency", *FLAGS})


def test_before_the_reveal_no_byte_has_a_part_of_it() -> None:
    data = _published(_log(), datetime(2027, 5, 19, 23, 59, tzinfo=UTC))
    assert b"Open Water" in data
    assert not [secret for secret in SECRETS if secret.encode() in data]
    assert b"zq" not in data.lower()


def test_after_the_reveal_all_of_it_is_there() -> None:
    data = _published(_log(), datetime(2027, 5, 20, tzinfo=UTC))
    assert not [secret for secret in SECRETS if secret.encode() not in data]
