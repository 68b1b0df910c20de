"""What may be wrong with the keys of a view: of fairness, small data, a part of a set, or noise."""

import math
import re
from collections.abc import Iterator

from heldout.board.rules.spec import BoardSpec, View
from heldout.measures.ranked import Kind
from heldout.measures.spec import Measure

__all__ = ["check_parts", "check_view_files", "check_view_keys"]

Wrong = tuple[str, object, str, str]  # key path, value, expected, hint

_IN_THE_VAULT = re.compile(
    r"labels/[A-Za-z0-9_-]{1,32}\.(?!qrels$|exclude$|key$)[a-z]{1,16}", re.ASCII
)
_CLOSE = 1e-6
_MOST_TRAINING = 10**15
_MOST_QUERIES = 1_000_000
_MOST_NOISE = 100


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
    if spec.release.rule != "rounded" and view.public and held_out and not view.ranks_nobody:
        hint = f"a {spec.release.rule} compares the same queries each time: set public = false"
        yield (f"{key}.summary", view.summary, '"mean", of a public view', hint)


def check_parts(spec: BoardSpec, view: View, key: str) -> Iterator[Wrong]:
    """The keys `part` and `noise` of a view, and what may stand beside such a view.

    Args:
        spec: the board.
        view: of it, on one of its sets.
        key: where it stands, `views[0]`.
    """
    yield from _check_beside_split(spec, view, key)
    if view.part is None and view.noise is None:
        return
    name = "noise" if view.part is None else "part"
    found: object = getattr(view, name)
    if view.part is not None and view.noise is not None:
        hint = "scores on the feedback part are published exactly, those on the other by the rule"
        yield (f"{key}.noise", view.noise, "no noise, of a view with a part", hint)
        return
    if not spec.sets[view.set].held_out:
        hint = f"the labels of {view.set} are public: anybody can compute every score"
        yield (f"{key}.{name}", found, "a view on a held-out set", hint)
        return
    if spec.kind == "one-shot":
        hint = "scores of a one-shot board are published once, so nobody can learn from them"
        yield (f"{key}.{name}", found, f"no {name}, on a one-shot board", hint)
    yield from _check_ranks_nobody(spec, view, key, name)
    yield from _check_split(spec, view, key) if view.part else _check_noise(spec, view, key)


def _check_ranks_nobody(spec: BoardSpec, view: View, key: str, name: str) -> Iterator[Wrong]:
    if not view.ranks_nobody:
        return
    found: object = getattr(view, name)
    which = "the feedback part" if view.part else "a score with noise"
    if _ranks(spec, view):
        yield (f"{key}.{name}", found, "another view", f"{view.name} ranks, {which} ranks nobody")
    if not view.public:
        hint = f"{which} is there to be published at once"
        yield (f"{key}.public", view.public, f"true, of a view with {name}", hint)
    if view.training_at_most is not None:
        hint = f"it makes a table with ranks, and {which} ranks nobody"
        yield (f"{key}.training_at_most", view.training_at_most, f"none, with {name}", hint)


def _check_split(spec: BoardSpec, view: View, key: str) -> Iterator[Wrong]:
    """A set is split for two kinds of view: one that decides, and one that informs."""
    other = "deciding" if view.part == "feedback" else "feedback"
    if not any(one.set == view.set and one.part == other for one in spec.views):
        expected = f'a view with part = "{other}" of {view.set} too'
        hint = "the queries of the other part would never be used: leave part out"
        yield (f"{key}.part", view.part, expected, hint)


def _check_noise(spec: BoardSpec, view: View, key: str) -> Iterator[Wrong]:
    if view.noise is None or not 1 <= view.noise <= _MOST_NOISE:
        expected = f"1 to {_MOST_NOISE} standard errors"
        yield (f"{key}.noise", view.noise, expected, "10 shows that a run works, and little more")
    if view.summary != "mean":
        hint = "noise is in standard errors of a mean over queries"
        yield (f"{key}.summary", view.summary, '"mean", with noise', hint)
    exact = [one.name for one in spec.public_views if one.set == view.set and one.noise is None]
    if spec.release.rule == "rounded" and exact:
        hint = f"the view {exact[0]} publishes every score on {view.set} without noise"
        yield (f"{key}.noise", view.noise, 'no noise, under rule = "rounded"', hint)


def _check_beside_split(spec: BoardSpec, view: View, key: str) -> Iterator[Wrong]:
    """No public view is also over queries that the split of a set holds back."""
    files = spec.sets[view.set]
    split = {one.set for one in spec.views if one.part is not None and one.set in spec.sets}
    if not view.public or not files.held_out:
        return
    if view.part is None and view.set in split:
        expected = f'part = "deciding" or "feedback", as {view.set} is split'
        hint = "it would publish scores on the deciding part: or set public = false"
        yield (f"{key}.part", "none", expected, hint)
    for name in sorted(split - {view.set}):
        if spec.sets[name].queries == files.queries and spec.sets[name].held_out:
            hint = f"it would publish scores on the deciding part of {name}: or set public = false"
            yield (f"{key}.set", view.set, f"a set with other queries than {name}", hint)
