"""The section "Final": who is in it, who wins, and how much luck the best of so many has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from heldout.board.log.events import format_time
from heldout.board.log.final import OpenedFinal
from heldout.board.rules.spec import BoardSpec
from heldout.board.site.rows import TableRow, make_columns, make_row, public_row
from heldout.board.site.sentences import name_entry
from heldout.board.site.words import Part, Phrase, clean, count, phrase
from heldout.board.standings.standings import Standings
from heldout.charts.axes import day_words


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalistRow:
    """A finalist.

    Attributes:
        row: its line of the leaderboard.
        score: its score on the final view, "" before the opening.
        mark: "winner", "clearly below the best", or "".
    """

    row: TableRow
    score: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalSection:
    """The final of a board.

    Attributes:
        says: who wins and why; before the opening, what is to come.
        measure: of the final view.
        rows: finalists by score, the best first; before the opening in the order of receipt.
        opened: whether their scores are published.
        changes: finalists that were named again, and openings that were corrected, with the reason.
    """

    says: tuple[Phrase, ...]
    measure: str
    rows: tuple[FinalistRow, ...]
    opened: bool
    changes: tuple[Phrase, ...]


def make_final(standings: Standings, spec: BoardSpec) -> FinalSection | None:
    """The section of a board whose finalists are named, `None` for any other."""
    final, view = standings.final, spec.finalists_view
    if final is None or view is None:
        return None
    columns = make_columns(spec)
    lines = {row.id: make_row(public_row(row), columns) for row in standings.finalists}
    opened = final.opened
    ids = [*final.finalists]
    if opened is not None:
        ids.sort(key=lambda name: -float(opened.scores[name]))  # equal ones as they came
    measure = clean(view.measure)
    says: tuple[Phrase, ...] = (_say_coming(standings, spec),)
    if opened is not None:
        came = _say_when(final.openings, opened.queries)
        says = _say_opened(opened, lines, came, measure=measure)
    return FinalSection(
        says=says,
        measure=measure,
        rows=tuple(_make_row(lines[name], opened) for name in ids),
        opened=opened is not None,
        changes=_list_changes(standings, lines),
    )


def _make_row(line: TableRow, opened: OpenedFinal | None) -> FinalistRow:
    if opened is None:
        return FinalistRow(row=line, score="", mark="")
    mark = "clearly below the best" if line.id in opened.below else ""
    mark = "winner" if line.id == opened.winner else mark
    return FinalistRow(row=line, score=opened.scores[line.id], mark=mark)


def _say_coming(standings: Standings, spec: BoardSpec) -> Phrase:
    final = standings.final
    if final is None or spec.closes is None:
        raise ValueError(spec.name)
    many = count(len(final.finalists), "finalist")
    verb = "is" if len(final.finalists) == 1 else "are"
    return phrase(
        f"{many} {verb} named. After {day_words(spec.closes)} their scores on queries that were "
        "never used before are published, once. The earliest finalist that is not clearly below "
        "the best wins."
    )


def _say_opened(
    opened: OpenedFinal, lines: Mapping[str, TableRow], came: str, *, measure: str
) -> tuple[Phrase, ...]:
    many, score = len(opened.scores), opened.scores[opened.winner]
    won = phrase(_begin(lines[opened.winner]), " wins with ", Part(text=score, strong=True))
    if many == 1:
        why = phrase(f" {measure}, as the only finalist.")
    elif opened.winner == opened.best:
        earlier = "; every earlier finalist is clearly below it" * (bool(opened.below))
        why = phrase(f" {measure}, the highest score of {many} finalists{earlier}.")
    else:
        best = phrase(name_entry(lines[opened.best]), f" with {opened.scores[opened.best]}.")
        why = phrase(
            f" {measure}: it is the earliest finalist that is not clearly below the best, ", best
        )
    luck = phrase(
        f"Luck of the best: of {many} equally good finalists the highest score lies ",
        Part(text=f"{opened.luck} {measure}", strong=True),
        " above its worth on average.",
    )
    return (phrase(won, why, came), *((luck,) if opened.luck else ()))


def _say_when(openings: Sequence[OpenedFinal], queries: int) -> str:
    of = f"from {count(queries, 'query', 'queries')} never used before"
    first, last = day_words(openings[0].at), day_words(openings[-1].at)
    if len(openings) == 1:
        return f" The scores came once, on {first}, {of}."
    return f" The scores came first on {first}, {of}, and again on {last}, for the reason below."


def _begin(row: TableRow) -> Part:
    """An entry at the beginning of a sentence."""
    named = name_entry(row)
    return named if named.name else Part(text="An anonymous entry", href=named.href)


def _list_changes(standings: Standings, lines: Mapping[str, TableRow]) -> tuple[Phrase, ...]:
    final = standings.final
    if final is None:
        return ()
    namings = [
        phrase(f"Finalists named again on {day_words(one.at)}: ", _quote(one.why))
        for one in final.namings[1:]
    ]
    openings = [
        phrase(
            f"On {day_words(before.at)} ",
            name_entry(lines[before.winner]),
            f" won with {before.scores[before.winner]}. Scored again on {day_words(after.at)}: ",
            _quote(after.why),
        )
        for before, after in zip(final.openings, final.openings[1:], strict=False)
    ]
    return (*namings, *openings)


def _quote(why: str) -> Part:
    """The organisers' words; their direction does not reach its neighbours."""
    return Part(text=clean(why), name=True)


def say_final(spec: BoardSpec) -> str:
    """The rule of a board with a final, "" for any other."""
    view = spec.finalists_view
    if view is None or view.finalists is None or spec.closes is None:
        return ""
    return (
        f"Every submission has a run on the {clean(view.set)} queries, which nothing else uses. At "
        f"most {count(view.finalists, 'finalist')} are named in public; after "
        f"{day_words(spec.closes)} their {clean(view.measure)} on them is published, once, and no "
        "other score ever. The earliest finalist wins that is not below the best by more than two "
        "standard errors of the difference, query by query."
    )


def final_cells(standings: Standings) -> Mapping[str, str]:
    """Finalist -> score on the final view; empty before the opening."""
    opened = None if standings.final is None else standings.final.opened
    return {} if opened is None else opened.scores


def final_json(standings: Standings, spec: BoardSpec) -> dict[str, Any]:
    """The key `final` of leaderboard.json, where finalists are named; else nothing."""
    final, view = standings.final, spec.finalists_view
    if final is None or view is None:
        return {}
    opened = final.opened
    told: dict[str, Any] = {
        "view": view.name,
        "measure": view.measure,
        "finalists": list(final.finalists),
    }
    if opened is not None:
        told |= {
            "opened": format_time(opened.at),
            "scores": {n: msgspec.Raw(text.encode()) for n, text in opened.scores.items()},
            "queries": opened.queries,
            "best": opened.best,
            "clearly_below": list(opened.below),
            "winner": opened.winner,
            "luck": msgspec.Raw(opened.luck.encode()) if opened.luck else None,
        }
    return {"final": told}
