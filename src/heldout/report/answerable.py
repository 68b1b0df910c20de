"""How many discarded queries systems answer, as tables and JSON: table 2 of survivorship-bias."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from heldout.answers.table import Cell, Column, Table
from heldout.errors import plural
from heldout.report.annotators import agreement_value, share_value
from heldout.survivorship.discarded.answerable import Answered, SystemPair, SystemReach
from heldout.survivorship.discarded.passage_judging import PassageJudging
from heldout.survivorship.discarded.shares import Share

__all__ = ["facts", "judging_facts", "judging_value", "tables", "unseen_note", "value"]

_NONE = "no query is judged"
_LOWER_BOUND = (
    "Lower bounds: what lies below the pooled passages of these systems nobody looked at, and it "
    "may answer too."
)


def unseen_note(depth: int, deepest: int, *, path: str) -> str:
    """What to tell where answers are counted deeper than any was found; empty where they are not.

    Args:
        depth: to which answers are counted.
        deepest: rank of the deepest that was found; 0 without one.
        path: of the table of ranks.
    """
    if depth <= deepest:
        return ""
    return (
        f"No rank in {path} is above {deepest}; whether anybody looked down to {depth} it does not "
        "tell. Where nobody did, no answer means none down to where they looked."
    )


def facts(
    found: Answered, pairs: Sequence[SystemPair], *, note: str = ""
) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines.

    Args:
        found: what each system answers.
        pairs: which systems differ.
        note: what else has to be known; empty for nothing.
    """
    queries = plural(found.queries, "discarded query", "discarded queries")
    systems = plural(len(found.systems), "system")
    lines = [("queries", f"{queries}, the top {found.depth} of {systems}")]
    if not found.queries:
        return (*lines, ("nothing", "no query is judged yet"))
    if note:
        lines.append(("depth", note))
    several = len(found.systems) > 1
    best = max(found.systems, key=lambda one: one.within[found.depth].count)
    reach = best.within[found.depth]
    told = f"{best.system} answers {reach.count:,} ({reach.low:.0%} to {reach.high:.0%})"
    lines.append(("best" if several else "answered", told))
    none = found.unanswered
    lines.append(
        ("by none", f"{none.count:,} of {none.of:,} are answered by no system's top {found.depth}")
    )
    apart = [one for one in pairs if one.p_corrected is not None and one.p_corrected < 0.05]  # noqa: PLR2004 - the usual level
    told = f"{len(apart):,} of {plural(len(pairs), 'comparison')} significant at .05, corrected"
    return (*lines, *((("apart", told),) if pairs else ()))


def tables(
    found: Answered, pairs: Sequence[SystemPair], *, level: float, note: str = ""
) -> tuple[Table, ...]:
    """What each system answers, with intervals, and which systems differ; none without queries.

    Args:
        found: what each system answers.
        pairs: which systems differ.
        level: of the intervals.
        note: what else has to be known; empty for nothing.
    """
    if not found.queries:
        return ()
    compared = (_pairs(pairs),) if pairs else ()
    return (_counts(found, note), _shares(found, level), *compared)


def value(
    found: Answered, pairs: Sequence[SystemPair], *, level: float, note: str = ""
) -> dict[str, Any]:
    """The whole result for JSON; shares are of the judged queries.

    Args:
        found: what each system answers.
        pairs: which systems differ.
        level: of the intervals.
        note: what else has to be known; empty for nothing.
    """
    return {
        "queries": found.queries,
        "depth": found.depth,
        "systems": [
            {
                "system": one.system,
                "no_answer": share_value(one.none, why=_NONE),
                "within": {
                    str(depth): share_value(share, why=_NONE) for depth, share in one.within.items()
                },
            }
            for one in found.systems
        ],
        "unanswered": share_value(found.unanswered, why=_NONE),
        "comparisons": [
            {**asdict(one), **({} if one.p is not None else {"why": "no query tells them apart"})}
            for one in pairs
        ],
        "interval": "Wilson",
        "level": level,
        "test": "McNemar, exact, two-sided",
        "correction": "holm",
        "family": len(pairs),
        "bound": "lower: passages below the pool are not judged",
        **({"note": note} if note else {}),
        **({} if found.queries else {"why": _NONE}),
    }


def judging_facts(found: PassageJudging) -> tuple[tuple[str, str], ...]:
    """Who judged, and how far they agree."""
    names = plural(len(found.annotators), "annotator")
    told = f"{names}; {found.judged:,} of {plural(found.asked, 'query', 'queries')} judged"
    lines = [("judges", told)]
    if found.disputed:
        passages = plural(found.disputed, "passage")
        lines.append(("disputed", f"{passages} ticked by just half of them; not taken for answers"))
    if found.cannot:
        lines.append(("cannot", f"{plural(found.cannot, 'answer')} that it can't be judged"))
    if found.alpha.value is not None:
        ends = found.interval
        between = f" ({ends[0]:.2f} to {ends[1]:.2f})" if ends else ""
        units = plural(found.alpha.units, "passage")
        lines.append(("agreement", f"alpha {found.alpha.value:.2f}{between} on {units}"))
    return tuple(lines)


def judging_value(found: PassageJudging) -> dict[str, Any]:
    """Who judged, and how far they agree, for JSON."""
    return {
        "annotators": list(found.annotators),
        "asked": found.asked,
        "judged": found.judged,
        "disputed": found.disputed,
        "cannot": found.cannot,
        "agreement": agreement_value(found.alpha, found.interval, units="passages"),
    }


def _rows(one: SystemReach) -> list[tuple[str, Share]]:
    none = (f"no answer in top {max(one.within)}", one.none)
    return [none, *((f"answer in top {depth}", share) for depth, share in one.within.items())]


def _counts(found: Answered, note: str) -> Table:
    by_system = [_rows(one) for one in found.systems]
    rows: list[tuple[Cell, ...]] = [
        (name, *(own[place][1].count for own in by_system))
        for place, (name, _) in enumerate(by_system[0])
    ]
    return Table(
        title="Discarded queries that systems could have answered",
        columns=(
            Column(name=""),
            *(Column(name=one.system, form="count") for one in found.systems),
        ),
        rows=tuple(rows),
        notes=(
            f"{found.unanswered.count:,} of {found.queries:,} are answered by none of them.",
            _LOWER_BOUND,
            *((note,) if note else ()),
        ),
    )


def _shares(found: Answered, level: float) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.system, name, share.count, share.share, share.low, share.high)
        for one in found.systems
        for name, share in _rows(one)
    ]
    none = found.unanswered
    name = f"no answer in top {found.depth}"
    rows.append(("all of them", name, none.count, none.share, none.low, none.high))
    return Table(
        title=f"As shares of {plural(found.queries, 'query', 'queries')}",
        columns=(
            Column(name="system"),
            Column(name="answer"),
            Column(name="queries", form="count"),
            Column(name="share", form="share", decimals=2),
            Column(name="low", form="share", decimals=2),
            Column(name="high", form="share", decimals=2),
        ),
        rows=tuple(rows),
        notes=(f"low, high: {level:.0%} by Wilson, each by itself.",),
    )


def _pairs(pairs: Sequence[SystemPair]) -> Table:
    return Table(
        title="Which systems answer others' queries",
        columns=(
            Column(name="A"),
            Column(name="B"),
            Column(name="top", form="count"),
            Column(name="A alone", form="count"),
            Column(name="B alone", form="count"),
            Column(name="p", form="p"),
            Column(name="corrected", form="p"),
        ),
        rows=tuple(
            (one.a, one.b, one.depth, one.a_only, one.b_only, one.p, one.p_corrected)
            for one in pairs
        ),
        notes=(f"p: exact McNemar, two-sided; corrected: Holm over {len(pairs):,} comparisons.",),
    )
