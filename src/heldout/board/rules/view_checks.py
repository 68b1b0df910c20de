"""What may be wrong with the keys of a view that make it one of fairness or of small data."""

import math
import re
from collections.abc import Iterator

from heldout.board.rules.spec import BoardSpec, View
from heldout.measures.ranked import Kind
from heldout.measures.spec import Measure

__all__ = ["check_view_files", "check_view_keys"]

Wrong = tuple[str, object, str, str]  # key path, value, expected, hint

_IN_THE_VAULT = re.compile(r"labels/[A-Za-z0-9_-]{1,32}\.(?!qrels$|exclude$)[a-z]{1,16}", re.ASCII)
_CLOSE = 1e-6
_MOST_TRAINING = 10**15
_MOST_QUERIES = 1_000_000


def check_view_files(view: View, key: str) -> Iterator[Wrong]:
    """The paths that a view names.

    Args:
        view: of board.toml.
        key: where it stands, `views[0]`.
    """
    for name in ("queries", "facets", "groups"):
        file = getattr(view, name)
        if file is None:
            continue
        if file.startswith("labels/"):
            if not _IN_THE_VAULT.fullmatch(file):
                hint = "such as labels/eval.groups: letters, digits, _ and -, one dot, letters"
                yield (f"{key}.{name}", file, "a file of labels/ in the vault", hint)
        elif not file or file.startswith("/") or ".." in file.split("/"):
            hint = "labels/NAME.SUFFIX lies in the vault"
            yield (f"{key}.{name}", file, "a path inside the board", hint)


def check_view_keys(spec: BoardSpec, view: View, measure: Measure, key: str) -> Iterator[Wrong]:
    """The keys that belong together, and those that do not.

    Args:
        spec: the board.
        view: of it.
        measure: the view's.
        key: where it stands, `views[0]`.
    """
    if measure.kind.better == "lower" and _ranks(spec, view):
        hint = "public = true shows it beside the score that ranks"
        yield (f"{key}.measure", view.measure, "one that rises, of a view that ranks", hint)
    yield from _check_groups(view, measure, key)
    yield from _check_summary(spec, view, measure.kind, key)
    if not 1 <= view.min_group <= _MOST_QUERIES:
        yield (f"{key}.min_group", view.min_group, f"1 to {_MOST_QUERIES:,}", "")
    most = view.training_at_most
    if most is not None and not 0 <= most <= _MOST_TRAINING:
        yield (f"{key}.training_at_most", most, f"0 to {_MOST_TRAINING:,}", "")


def _ranks(spec: BoardSpec, view: View) -> bool:
    return view.name in (spec.primary, *(season.view for season in spec.seasons))


def _check_groups(view: View, measure: Measure, key: str) -> Iterator[Wrong]:
    if measure.kind.exposure and view.groups is None:
        hint = "labels/NAME.groups in the vault, or a path inside the board"
        yield (f"{key}.groups", "none", f"a file of document groups, for {measure}", hint)
    if view.groups is not None and not measure.kind.exposure:
        yield (f"{key}.groups", view.groups, "none", f"{measure} does not look at groups")
    if view.target is None:
        return
    shares = view.target.values()
    if view.groups is None:
        yield (f"{key}.target", dict(view.target), "none", "only groups have a target")
    elif any(share < 0 for share in shares) or not math.isclose(
        math.fsum(shares), 1, abs_tol=_CLOSE
    ):
        yield (f"{key}.target", dict(view.target), "shares from 0 that sum to 1", "")


def _check_summary(spec: BoardSpec, view: View, kind: Kind, key: str) -> Iterator[Wrong]:
    if view.facets is None and view.summary != "mean":
        hint = "labels/NAME.facets in the vault, or a path inside the board"
        yield (f"{key}.facets", "none", "a file of groups of queries", hint)
    if view.facets is not None and view.summary == "mean":
        yield (f"{key}.summary", view.summary, '"worst" or "gap", of these facets', "")
    if view.summary == "mean":
        return
    if kind.better != "higher" or kind.unanswered is None or kind.exposure:
        expected = "a measure that rises and is defined for every query"
        yield (f"{key}.measure", view.measure, expected, "groups are compared by it")
    if spec.denominator == "all":
        hint = "groups are compared over the queries that count"
        yield ("denominator", spec.denominator, f'"counted", with summary of {view.name}', hint)
    if view.summary == "gap" and _ranks(spec, view):
        yield (f"{key}.summary", view.summary, "worst, of a view that ranks", "a gap falls")
    held_out = view.set in spec.sets and spec.sets[view.set].held_out
    if spec.release.rule != "rounded" and view.public and held_out:
        hint = "a Ladder compares the same queries each time: set public = false"
        yield (f"{key}.summary", view.summary, '"mean", of a public view', hint)
