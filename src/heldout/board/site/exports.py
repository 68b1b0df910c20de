"""The standings for programs: CSV, JSON, and the board's news as an Atom feed (RFC 4287).

All of it follows from the rows of the page, so it says nothing that the page does not say, and of
an embargoed entry no more than the table does.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from heapq import nlargest
from itertools import repeat
from operator import attrgetter
from typing import Any

import msgspec

from heldout.answers.text import clean
from heldout.board.log.events import format_time
from heldout.board.log.final import ExactScores
from heldout.board.rules.release import NOT_CLEAR
from heldout.board.rules.spec import BoardSpec
from heldout.board.site import rows, sections
from heldout.board.site.columns import COLUMNS, COSTS, ENTRY, RESULT, Value
from heldout.board.standings.standings import Row, Standings, best_so_far
from heldout.files.csv import defuse
from heldout.files.csv import format_csv as format_csv_rows

_SCHEMA = 1
"""Of leaderboard.json, and of the files of seasons and views, which have the same shape."""

FEED = "feed.xml"
"""Its file in `leaderboard/`."""

_MOST = 100

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "heldout")


def format_csv(standings: Standings, spec: BoardSpec) -> bytes:
    """The rows as CSV by RFC 4180, UTF-8, with CRLF; no cell starts a formula.

    The scores stand after what says which entry it is, their spreads at the end. After the opening
    of a final its scores are the last column.
    """
    views = rows.make_columns(spec)
    opened = None if standings.final is None else standings.final.opened
    final = {} if opened is None else opened.scores
    shown, values = rows.public_rows(standings), rows.read_columns(standings)
    informing = [view for view in views if view.for_information]

    def digits(
        field: str, views: Iterable[rows.ViewColumn], ending: str
    ) -> Iterator[tuple[str, Sequence[str]]]:
        for view in views:
            yield view.key + ending, [rows.released(getattr(row, field), view.key) for row in shown]

    columns: list[tuple[str, Sequence[Value]]] = [
        *((column.key, values[column.key]) for column in ENTRY),
        *(
            (key + " (for information only)" * view.for_information, texts)
            for view, (key, texts) in zip(views, digits("scores", views, ""), strict=True)
        ),
        *((column.key, values[column.key]) for column in (*RESULT, *COSTS)),
        *digits("spreads", views, "_spread"),
        *digits("standard_errors", informing, "_standard_error"),
    ]
    if standings.final is not None and final:
        columns.append((standings.final.view, [final.get(row.id, "") for row in shown]))
    head, cells = zip(*columns, strict=True)
    return format_csv_rows(map(defuse, head), zip(*map(_cells, cells), strict=True))


def format_json(standings: Standings, spec: BoardSpec) -> bytes:
    """The standings as one JSON document; scores are numbers with the released digits.

    What is undefined is `null`, and `why` beside it says why.
    """
    views = rows.make_columns(spec)
    encode = msgspec.json.Encoder().encode
    informing = {view.key: view.use for view in views if view.for_information}
    document = {
        "schema": _SCHEMA,
        "board": clean(standings.board),
        "as_of": standings.as_of.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **({"for_information": informing} if informing else {}),
        "rows": [msgspec.Raw(encode(row)) for row in _json_rows(standings, views, spec)],
        **_final_json(standings, spec),
    }
    whole = msgspec.json.encode(document)
    del document  # the rows as they are without indents: as much again
    return msgspec.json.format(whole, indent=2) + b"\n"


def _cells(values: Sequence[Value]) -> Iterable[str]:
    """A column of CSV; many have nothing at all, and most few different texts."""
    if values.count(None) == len(values):
        return repeat("", len(values))
    texts = ["" if value is None else str(value) for value in values]
    safe = {text: defuse(text) for text in set(texts)}
    if isinstance(values[0], bool):
        safe = {text: text.lower() for text in safe}
    return map(safe.__getitem__, texts)


def _json_rows(
    standings: Standings, views: tuple[rows.ViewColumn, ...], spec: BoardSpec
) -> Iterator[dict[str, Any]]:
    names, today = [column.key for column in COLUMNS], standings.as_of.date()
    values = zip(*rows.read_columns(standings).values(), strict=True)
    for row, found in zip(rows.public_rows(standings), values, strict=True):
        line: dict[str, Any] = dict(zip(names[: len(ENTRY)], found, strict=False))
        line["scores"] = {view.key: _number(rows.released(row.scores, view.key)) for view in views}
        scored = [view for view in views if view.key in row.spreads]
        line["spreads"] = {
            view.key: _number(rows.released(row.spreads, view.key)) for view in scored
        }
        if row.standard_errors:
            errors = row.standard_errors
            line["standard_errors"] = {
                view: _number(rows.released(errors, view)) for view in errors
            }
        line |= zip(names[len(ENTRY) :], found[len(ENTRY) :], strict=True)
        line["why"] = {
            column.key: column.why(row)
            for column, value in zip(COLUMNS, found, strict=True)
            if value is None
        }
        if unscored := [view for view in views if view.key not in row.scores]:
            last = spec.last_day(row.received.date())
            over = last is not None and today > last
            line["why"] |= {f"scores.{v.key}": _why_no_score(row, v, over=over) for v in unscored}
        yield line


def _number(text: str) -> msgspec.Raw | None:
    """The released digits as a JSON number, trailing zeros kept."""
    return msgspec.Raw(text.encode()) if text else None


def _why_no_score(row: Row, view: rows.ViewColumn, *, over: bool) -> str:
    """Return why an entry has no score on a view; `over` is whether its last day has passed."""
    if view.key in row.unlisted:
        return row.unlisted[view.key]
    if view.final and not over:
        return "published after the last day"
    if view.final:
        return "it was not scored on this view; heldout correct scores it"
    nothing = view.primary or not row.scores  # before the day on which all scores are published
    if view.key in row.untold and not view.primary:
        return NOT_CLEAR
    withheld = row.unranked if nothing else ""
    return withheld or ("the old board gave none" if row.imported else "not scored on this view")


def _final_json(standings: Standings, spec: BoardSpec) -> dict[str, Any]:
    """The keys `final` and `season_end` of leaderboard.json, where there is a final, or an end."""
    final, view, end = standings.final, spec.finalists_view, standings.season_end
    document: dict[str, Any] = {}
    if final is not None and view is not None:
        about = {"view": view.name, "measure": view.measure, "finalists": list(final.finalists)}
        document["final"] = about
        if (opened := final.opened) is not None:
            won = {"clearly_below": list(opened.below), "winner": opened.winner}
            document["final"] |= _exact_scores(opened) | {"best": opened.best} | won
    if end is not None:
        about = {"view": end.view, "season": end.season, "named": list(end.named)}
        document["season_end"] = about | _exact_scores(end.opened)
    return document


def _exact_scores(opened: ExactScores) -> dict[str, Any]:
    return {
        "opened": format_time(opened.at),
        "scores": {n: msgspec.Raw(text.encode()) for n, text in opened.scores.items()},
        "queries": opened.queries,
        "luck": msgspec.Raw(opened.luck.encode()) if opened.luck else None,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """One piece of news.

    Attributes:
        when: the moment that it is news of, UTC.
        about: what happened, said the same in every feed that ever holds it; its id comes of it.
        kind: as the feed's category; `feed.xml` has words for it.
        row: the entry; the best of them where it is news of several.
        why: the organisers' reason, or "".
        entries: how many entries it is news of together; 1 for one of its own.
        final: the entry's score on the final view, where it is news of that; else "".
    """

    when: datetime
    about: str
    kind: str
    row: rows.TableRow
    why: str = ""
    entries: int = 1
    final: str = ""


def format_feed(
    boards: Sequence[tuple[Standings, BoardSpec]], spec: BoardSpec, facts: sections.BoardFacts
) -> bytes:
    """The newest hundred pieces of news as an Atom document, the latest first.

    Ids are UUIDs of the board's name, the entry and what happened, so they outlive a change of
    the address (RFC 4287, section 4.2.6).

    Args:
        boards: each season's standings with its rules, the latest first; one pair for a board
            without seasons.
        spec: the rules of the board.
        facts: its addresses; without a home, links are relative to the feed.

    Returns:
        XML in UTF-8, dated by its newest item: it stays as it is until something happens.
    """
    items = {item.about: item for pair in reversed(boards) for item in _items(*pair)}
    newest = nlargest(_MOST, items.values(), key=attrgetter("when", "about"))
    home = rows.safe_link(facts.home).rstrip("/")
    base = f"{home}/" if home else ""
    text = rows.read_template("feed.xml").render(
        spec=spec,
        base=base,
        feed=FEED,
        updated=newest[0].when if newest else _midnight(spec.opens),
        items=newest,
        id=lambda about: uuid.uuid5(_NAMESPACE, f"{spec.name} {about}").urn,
        time=format_time,
    )
    return text.lstrip().encode()


def _items(standings: Standings, spec: BoardSpec) -> Iterator[_Item]:
    shown, columns = rows.public_rows(standings), rows.make_columns(spec)
    ranked = [row for row in shown if not row.unranked]
    records = best_so_far(ranked, columns[0].key, bar=spec.baselines.bar)
    best = {row.id for row in records if spec.kind == "sequential"}
    for row, line in zip(shown, rows.make_rows(standings, columns), strict=True):
        kind = "baseline" if row.baseline else "best" if row.id in best else "entry"
        yield _Item(when=row.published, about=f"published {row.id}", kind=kind, row=line)
        until = row.embargo_until
        if not row.embargoed and until is not None and until > row.published.date():
            moment = _midnight(until)
            yield _Item(when=moment, about=f"revealed {row.id}", kind="reveal", row=line)
        for number, (when, why) in enumerate(row.errata, 1):
            about = f"corrected {row.id} {number}"
            kind = "view" if when in row.added else "correction"
            yield _Item(when=when, about=about, kind=kind, row=line, why=clean(why))
    yield from _scores_published(ranked, columns, standings.as_of.date(), spec)
    yield from _finals(standings, columns)


def _finals(standings: Standings, columns: tuple[rows.ViewColumn, ...]) -> Iterator[_Item]:
    """Each opening of a final, and each end of the season; of a second one the reason says why."""
    final, end = standings.final, standings.season_end
    ending = (*standings.finalists, *(standings.rows if end is not None else ()))
    lines = {row.id: rows.TableRow(rows.public_row(row), columns) for row in ending}
    about = f"season {standings.season}".strip()
    opened: list[tuple[str, str, str, ExactScores]] = []
    if final is not None:
        opened += [("final", "final", one.winner, one) for one in final.openings]
    if end is not None:
        ranked = [row.id for row in standings.rows if row.id in end.opened.scores]
        opened += [("season", about, _find_best(ranked, one), one) for one in end.openings]
    number = Counter[str]()
    for kind, about, first, one in opened:
        number[kind] += 1
        yield _Item(
            when=one.at,
            about=f"{about} {number[kind]}",
            kind=kind,
            row=lines[first],
            why=clean(one.why),
            final=one.scores[first],
        )


def _find_best(ranked: Iterable[str], one: ExactScores) -> str:
    """The entry with the highest score, of equal ones the first."""
    return max(ranked, key=lambda name: float(one.scores[name]))


def _scores_published(
    ranked: Sequence[Row], columns: tuple[rows.ViewColumn, ...], today: date, spec: BoardSpec
) -> Iterator[_Item]:
    """On a one-shot board, the moment from which all scores are shown."""
    if spec.kind != "one-shot" or spec.closes is None or today <= spec.closes:
        return
    waited = [row for row in ranked if not row.baseline and row.published.date() <= spec.closes]
    if waited:
        yield _Item(
            when=_midnight(spec.closes + timedelta(1)),
            about="scores published",
            kind="scores",
            row=rows.TableRow(waited[0], columns),
            entries=len(waited),
        )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
