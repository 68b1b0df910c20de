"""What query sets must hold, so that a board can give scores and keep its labels to itself."""

from collections.abc import Iterator, Mapping

import msgspec

from heldout.board.rules.spec import BoardSpec, View
from heldout.errors import InputError, Problem, quote
from heldout.measures.evaluate import prepare
from heldout.measures.spec import parse_measure
from heldout.pipeline.query_sets.sets import SetData

__all__ = ["check_sets"]

_FEWEST = {"feedback": 100, "deciding": 300}
"""Queries that count, of each part of a split set: with 100 a score between 0 and 1 has a standard
error of about 0.04, and a release rule on fewer than 300 rarely publishes anything."""

Judgments = Mapping[str, Mapping[str, int]]


def check_sets(spec: BoardSpec, sets: Mapping[str, SetData]) -> None:
    """Refuse sets over which a view has no score, too small ones, and held-out labels in the open.

    Where a set has no key yet the size of its parts is what it is in the mean over keys.

    Args:
        spec: the rules.
        sets: the query sets with all their labels.

    Raises:
        InputError: `undefined-score`, `small-part`, `open-labels` or `used-queries`.
    """
    problems = [
        *_list_undefined(spec, sets),
        *_list_small(spec, sets),
        *_list_open(spec, sets),
        *_list_used(spec, sets),
    ]
    if problems:
        raise InputError(problems)


def _list_undefined(spec: BoardSpec, sets: Mapping[str, SetData]) -> Iterator[Problem]:
    for view in spec.views:
        why = _find_undefined(view, sets[view.set])
        if why is not None:
            yield Problem(
                code="undefined-score",
                path=f"view {view.name}",
                found=why,
                expected=f"a query of '{view.set}' over which {view.measure} can be averaged",
                hint="are the labels those of other queries?",
            )


def _find_undefined(view: View, data: SetData) -> str | None:
    """Why no run can have a score, or any but 0; `None` where one can."""
    measure = parse_measure(view.measure)
    judged = prepare(_judgments_of(view, data), [measure], excluded=data.excluded)
    count = len(judged.queries)
    if not count:
        return f"0 of {len(data.queries.texts):,} queries are judged and count"
    if judged.without_relevant[measure] == count and not measure.kind.exposure:
        return f"no relevant document for any of {count:,} judged queries"
    return None


def _judgments_of(view: View, data: SetData) -> Judgments:
    """What a view is scored by; of a set that is to be split, and has no key yet, the whole."""
    known = data.feedback is not None
    return data.judgments_of(view if known else msgspec.structs.replace(view, part=None))


def _list_small(spec: BoardSpec, sets: Mapping[str, SetData]) -> Iterator[Problem]:
    seen = set()
    for view in spec.views:
        which = (view.set, view.labels, view.part)
        if view.part is None or which in seen:
            continue
        seen.add(which)
        size, least = _count_part(spec, view, sets[view.set]), _FEWEST[view.part]
        if size < least:
            yield Problem(
                code="small-part",
                path=f"view {view.name}",
                found=f"{size:,} queries that count in the {view.part} part of '{view.set}'",
                expected=f"at least {least}",
                hint="take noise = 10 instead of a split, or change release.feedback, of which "
                f"{spec.release.feedback:g} are the feedback part now",
            )


def _count_part(spec: BoardSpec, view: View, data: SetData) -> int:
    """The queries of its part that count by its labels, on its list or not."""
    whole = msgspec.structs.replace(view, queries=None)
    judged = {query for query, grades in _judgments_of(whole, data).items() if grades}
    counted = len(judged - data.excluded)
    if data.feedback is not None:
        return counted
    feedback = round(spec.release.feedback * counted)
    return feedback if view.part == "feedback" else counted - feedback


def _list_open(spec: BoardSpec, sets: Mapping[str, SetData]) -> Iterator[Problem]:
    public = {
        name: data.judgments(None) or {}
        for name, data in sets.items()
        if not spec.sets[name].held_out
    }
    for view in spec.views:
        if not spec.sets[view.set].held_out:
            continue
        mine = _judgments_of(view, sets[view.set])
        for name, theirs in public.items():
            if any(mine.values()) and _is_within(mine, theirs):
                yield _tell_open(view, name)


def _list_used(spec: BoardSpec, sets: Mapping[str, SetData]) -> Iterator[Problem]:
    """The sets that have a query of a view with finalists, by its id or by its text."""
    view = spec.finalists_view
    if view is None or view.set not in sets:
        return
    own = sets[view.set].queries.texts
    texts = set(map(_fold, own.values()))
    for name, data in sets.items():
        used = [
            query
            for query, text in data.queries.texts.items()
            if name != view.set and (query in own or _fold(text) in texts)
        ]
        if used:
            yield Problem(
                code="used-queries",
                path=f"view {view.name}",
                found=f"{len(used):,} queries are in '{name}' too, such as {quote(used[0])}",
                expected="queries that no other set has: nobody can have fitted a run to them",
                hint=f"take them out of '{view.set}'",
            )


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def _is_within(inner: Judgments, outer: Judgments) -> bool:
    """Whether every judgment is also one of the others, with the same grade."""
    return all(grades.items() <= outer.get(query, {}).items() for query, grades in inner.items())


def _tell_open(view: View, name: str) -> Problem:
    return Problem(
        code="open-labels",
        path=f"view {view.name}",
        found=f"every label of '{view.labels or view.set}' is also one of '{name}', in the open",
        expected="held-out labels that nobody has",
        hint="who knows the labels writes the perfect run",
    )
