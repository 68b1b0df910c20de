"""Facets as tables, a picture and JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from heldout.analyses.facets import Facet, FacetDifference, Facets, Interaction
from heldout.answers.table import Cell, Column, Table
from heldout.charts.labels import Label, cut
from heldout.charts.layers import (
    INK,
    MUTED,
    Canvas,
    Frame,
    draw_dots,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import score_span, score_ticks
from heldout.errors import plural

__all__ = ["facts", "spec", "tables", "title", "value"]

_ALL = "all queries"
_NAME = 32
_SHOWN = 20
_ROW, _WIDTH, _LEFT = 26, 460, 230


def facts(result: Facets) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: who leads where, and whether systems differ in what they are for.

    Args:
        result: what was found.
    """
    first = result.systems[0]
    leads = [facet.name for facet in result.facets if facet.ranks[0] == 1]
    lines = [("lead", f"{first}, on {len(leads)} of {plural(len(result.facets), 'facet')} too")]
    if not result.interactions:
        return (
            *lines,
            ("interact", "undefined: no facet leaves two queries outside"),
        )
    tested = [one for one in result.interactions if one.p is not None]
    if not tested:
        return (*lines, ("interact", f"undefined: {result.interactions[0].why}"))
    best = tested[0]
    alpha = 1 - result.level
    found = sum(one.p is not None and one.p <= alpha for one in tested)
    told = (
        f"{found} of {plural(len(tested), 'pair')} of system and facet "
        f"stand{'s' if found == 1 else ''} out"
    )
    word = "better" if (best.effect > 0) == (result.better == "higher") else "worse"
    strongest = f"; most of all {best.system} on {best.facet}, where it is {word}" if found else ""
    return (*lines, ("interact", f"{told} (corrected, at most {alpha:.2g}){strongest}"))


def tables(result: Facets, *, measure: str = "") -> tuple[Table, ...]:
    """Standings by facet, differences from the reference, and interactions.

    Args:
        result: what was found.
        measure: what was measured, for the heading.
    """
    found = (_standings(result, measure or "score"), _differences(result))
    return (*found, _interactions(result)) if result.interactions else found


def value(result: Facets) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "systems": list(result.systems),
        "facets": [_facet(facet) for facet in (result.overall, *result.facets)],
        "left_out": dict(result.left_out),
        "unlabelled": result.unlabelled,
        "reference": result.reference,
        "reference_chosen": result.chosen,
        "differences": [asdict(one) for one in result.differences],
        "family": result.family,
        "family_overall": result.family_overall,
        "correction": "bonferroni",
        "interactions": [asdict(one) for one in result.interactions],
        "interaction_family": len(result.interactions),
        "draws": result.draws,
        "least": result.least,
        "level": result.level,
        "better": result.better,
        "digest": result.digest,
    }


def title(result: Facets) -> str:
    """What the picture shows."""
    return f"{_drawn(result)} against {result.reference} on each facet of the queries"


def spec(result: Facets) -> dict[str, Any]:
    """One system's difference from the reference by facet, alone and with all at once."""
    system = _drawn(result)
    shown = [one for one in result.differences if one.system == system]
    ends = [end for one in shown for end in (one.difference, *_ends(one)) if end is not None]
    x = score_span([0.0, *ends])
    canvas = Canvas(width=_WIDTH, height=_ROW * len(shown), left=_LEFT, top=34, bottom=34)
    frame = Frame(
        canvas=canvas,
        x=x,
        y=(0.0, float(len(shown))),
        x_ticks=score_ticks(x, most=7),
        y_ticks=(),
    )
    heights = [len(shown) - place - 0.5 for place in range(len(shown))]
    layers = [draw_line([(0.0, 0.0), (0.0, frame.y[1])], frame, MUTED, dash=[4, 4])]
    for one, y in zip(shown, heights, strict=True):
        layers += [
            draw_line([(low, y), (high, y)], frame, INK if bold else MUTED, dash=dash)
            for low, high, bold, dash in (
                (one.low_all, one.high_all, False, [1, 0]),
                (one.low, one.high, True, ()),
            )
            if low is not None and high is not None
        ]
    spots = [
        (one.difference, y, f"{_name(one.facet)}: {one.difference:+.4f}")
        for one, y in zip(shown, heights, strict=True)
    ]
    head = f"{cut(system, _NAME)} - {cut(result.reference, _NAME)}"
    share = f"{result.level:.0%}"
    labels = _row_labels(shown, heights, frame)
    return join_layers(
        frame,
        [
            *layers,
            draw_dots(spots, frame, "disc"),
            *draw_texts(labels, INK),
            *draw_texts([Label(x=8 - _LEFT, y=-18, text=head, align="left")], INK),
            *draw_texts(
                [
                    Label(
                        x=_WIDTH,
                        y=-18,
                        text=f"{share} alone, thin: all",
                        align="right",
                    )
                ],
                MUTED,
            ),
        ],
    )


def _row_labels(
    shown: Sequence[FacetDifference], heights: Sequence[float], frame: Frame
) -> list[Label]:
    return [
        Label(
            x=-10,
            y=frame.place(0, y)[1],
            text=f"{cut(_name(one.facet), _NAME - 8)} ({one.queries:,})",
            align="right",
        )
        for one, y in zip(shown, heights, strict=True)
    ]


def _ends(one: FacetDifference) -> tuple[float | None, ...]:
    return one.low, one.high, one.low_all, one.high_all


def _drawn(result: Facets) -> str:
    return result.differences[0].system


def _name(facet: str) -> str:
    return facet or _ALL


def _facet(facet: Facet) -> dict[str, Any]:
    return asdict(facet) | {"name": _name(facet.name)}


def _standings(result: Facets, measure: str) -> Table:
    facets = (result.overall, *result.facets)
    rows: list[tuple[Cell, ...]] = []
    for place, system in enumerate(result.systems):
        cells = [cell for facet in facets for cell in (facet.ranks[place], facet.means[place])]
        rows.append((cut(system, _NAME), *cells))
    columns = [Column(name="system")]
    for facet in facets:
        name = f"{cut(_name(facet.name), _NAME)} ({facet.queries:,})"
        columns += [Column(name="rank", form="count"), Column(name=name, form="score")]
    notes = [f"A facet has at least {result.least} queries; in brackets how many have scores."]
    if result.left_out:
        told = ", ".join(f"{name} ({size})" for name, size in result.left_out.items())
        notes.append(f"Left out, too small: {told}.")
    if result.unlabelled:
        are = "is" if result.unlabelled == 1 else "are"
        notes.append(f"{plural(result.unlabelled, 'query', 'queries')} {are} in no facet.")
    return Table(
        title=f"Standings by facet, {measure}",
        columns=tuple(columns),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _differences(result: Facets) -> Table:
    share = f"{result.level:.0%}"
    compared = result.family_overall
    shown = [one for one in result.differences if one.system in _compared(result)]
    return Table(
        title=f"Against {result.reference}, by facet",
        columns=(
            Column(name="system"),
            Column(name="facet"),
            Column(name="queries", form="count"),
            Column(name="difference", form="difference"),
            *(
                Column(name=name, form="difference")
                for name in (f"{share} from", "to", "all: from", "to")
            ),
            Column(name="p", form="p"),
            Column(name="corrected", form="p"),
        ),
        rows=tuple(_difference_row(one) for one in shown),
        notes=tuple(_difference_notes(result, compared)),
    )


def _compared(result: Facets) -> frozenset[str]:
    """The systems that a page has room for: those nearest to the top, where they are many."""
    some = list(dict.fromkeys(one.system for one in result.differences))
    return frozenset(some[: max(1, _SHOWN // (1 + len(result.facets)))])


def _difference_row(one: FacetDifference) -> tuple[Cell, ...]:
    ends = (one.low, one.high, one.low_all, one.high_all)
    head = (cut(one.system, _NAME), cut(_name(one.facet), _NAME), one.queries)
    return (*head, one.difference, *ends, one.p, one.p_corrected)


def _difference_notes(result: Facets, compared: int) -> list[str]:
    notes = [
        (
            f"System - {result.reference}; paired t, two-sided. Corrected and all: Bonferroni over "
            f"one family of {plural(result.family, 'difference')}, {plural(compared, 'system')} on "
            f"{plural(len(result.facets), 'facet')}; all queries are a family of their own, of "
            f"{plural(compared, 'difference')}."
        ),
        *_reference_notes(result),
        (
            "Significant on one facet and not on another is no evidence that they differ: see the "
            "interactions."
        ),
    ]
    hidden = compared - len(_compared(result))
    if hidden > 0:
        are = "is" if hidden == 1 else "are"
        notes.append(f"{plural(hidden, 'more system')} {are} compared; all of them with --json.")
    why = sorted({one.why for one in result.differences if one.why})
    return notes + [f"Undefined: {reason}." for reason in why]


def _reference_notes(result: Facets) -> list[str]:
    if not result.chosen:
        return []
    return [
        (
            f"{result.reference} is the reference because it has the best score here, so chance "
            "favours it: its lead is told too large. --against names a reference beforehand."
        )
    ]


def _interactions(result: Facets) -> Table:
    return Table(
        title="System by facet: better or worse inside than outside",
        columns=(
            Column(name="system"),
            Column(name="facet"),
            Column(name="effect", form="difference"),
            Column(name="error", form="score"),
            Column(name="corrected", form="p"),
        ),
        rows=tuple(_interaction_row(one) for one in result.interactions[:_SHOWN]),
        notes=(
            (
                "Effect: score less the mean of all systems on the same query, inside the facet "
                f"less outside; Welch's t, max-t over one family of {len(result.interactions)} by "
                f"{result.draws:,} permutations of the queries' facets; error: standard error."
            ),
            *(
                (f"The {_SHOWN} smallest p of {len(result.interactions):,}.",)
                if len(result.interactions) > _SHOWN
                else ()
            ),
            *(f"Undefined: {why}." for why in _whys(result.interactions[:_SHOWN])),
        ),
    )


def _whys(interactions: Sequence[Interaction]) -> list[str]:
    return sorted({one.why for one in interactions if one.why})


def _interaction_row(one: Interaction) -> tuple[Cell, ...]:
    return (cut(one.system, _NAME), cut(one.facet, _NAME), one.effect, one.error, one.p)
