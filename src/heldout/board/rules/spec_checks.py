"""What may be wrong with a board.toml whose keys and kinds of values are right."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from heldout.board.log.manifest import is_link
from heldout.board.rules.final_view import MOST_FINALISTS
from heldout.board.rules.forge import check_forge
from heldout.board.rules.release import check_rule
from heldout.board.rules.spec import RULE_NAMES, BoardSpec, Season, View
from heldout.board.rules.trust import check_trust
from heldout.board.rules.view_checks import check_parts, check_view_files, check_view_keys
from heldout.errors import InputError
from heldout.measures.spec import parse_measure

__all__ = ["Wrong", "check_spec"]

_NAME = r"[A-Za-z0-9_-]{1,32}"
# No blank, quote or dollar sign: it stands in the shell of a workflow.
_INSTALL = r"(git\+)?https://[A-Za-z0-9][A-Za-z0-9._~:/@%+=#-]{0,499}"
_TAKEN = frozenset(
    (
        *("", ".git", ".heldout", "board.toml", "drafts"),
        *("labels", "leaderboard", "log.jsonl", "submissions"),
    )
)
_MOST_SEEDS = 20
_LONGEST = {"quota": 1000, "quota_days": 3660, "embargo_months": 120, "id_days": 3660}

Wrong = tuple[str, object, str, str]  # key path, value, expected, hint


def check_spec(spec: BoardSpec) -> Iterator[Wrong]:
    """What is wrong with a board.toml whose keys and kinds are right."""
    yield from _check_views(spec)
    yield from _check_seasons(spec)
    if spec.forge is not None:
        yield from check_forge(spec.forge)
    yield from _check_numbers(spec)
    yield from _check_finalists(spec)
    yield from _check_sets(spec)
    yield from _check_registration(spec)
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", spec.name):
        yield ("name", spec.name, "1 to 64 letters, digits, . _ -", "a longer one is the title")
    for key in ("repository", "home"):
        if getattr(spec, key) and not is_link(getattr(spec, key)):
            yield (key, getattr(spec, key), 'an http or https address, or ""', "")
    if spec.install and not re.fullmatch(_INSTALL, spec.install, re.ASCII):
        expected = "an https address that pip takes: of a wheel, or git+https://…@TAG"
        yield ("install", spec.install, expected, "a name alone could be anybody's on an index")
    if not spec.recipients:
        yield ("recipients", "no key", "the public key of at least one organiser", "")
    if spec.kind == "one-shot" and spec.closes is None:
        yield ("kind", spec.kind, "a last day: closes = 2027-03-01", "its scores are shown then")
    if spec.closes is not None and spec.closes < spec.opens:
        yield ("closes", spec.closes.isoformat(), f"a day from {spec.opens} on", "")
    if not spec.types:
        yield ("types", "none", "at least one submission type", "")


def _check_sets(spec: BoardSpec) -> Iterator[Wrong]:
    for name, queries in spec.sets.items():
        if not re.fullmatch(_NAME, name):
            yield (f"sets.{name}", name, "a name of letters, digits, _ and -", "")
        for key in ("queries", "qrels", "candidates"):
            file = getattr(queries, key)
            if file is not None and _leads_out(file):
                yield (f"sets.{name}.{key}", file, "a path inside the board", "")


def _top(file: str) -> str:
    """The first name of a path, as disks that know no upper case take it."""
    return PurePosixPath(file).parts[0].casefold() if PurePosixPath(file).parts else ""


def _leads_out(file: str) -> bool:
    return file.startswith("/") or ".." in file.split("/")


def _check_registration(spec: BoardSpec) -> Iterator[Wrong]:
    registration = spec.registration
    if registration is None:
        return
    file = registration.agreement
    if file is not None and (_leads_out(file) or not file):
        yield ("registration.agreement", file, "a path inside the board", "")
    elif file is not None and (name := _top(file)) in _TAKEN:
        hint = f"{name} is heldout's own, and changes without the organisers"
        yield ("registration.agreement", file, "a file of the agreement's own", hint)
    if spec.envelope == "openssl":
        hint = "metadata that the scripts of MS MARCO can read has no place for a signature"
        yield ("envelope", spec.envelope, "age, on a board with [registration]", hint)
    if registration.closes is not None and registration.closes < spec.opens:
        expected = f"a day from {spec.opens} on"
        yield ("registration.closes", registration.closes.isoformat(), expected, "")


def _check_views(spec: BoardSpec) -> Iterator[Wrong]:
    names = [view.name for view in spec.views]
    for index, view in enumerate(spec.views):
        if names.index(view.name) != index or not re.fullmatch(_NAME, view.name):
            yield (f"views[{index}].name", view.name, "a name of its own: letters, digits, _ -", "")
        if view.set not in spec.sets:
            yield (f"views[{index}].set", view.set, "one of " + ", ".join(spec.sets), "")
        if view.final and view.public:
            expected = "false: a public view is told at once"
            yield (f"views[{index}].final", view.final, expected, "or set public = false")
        if view.labels is not None and not re.fullmatch(_NAME, view.labels):
            expected = "a name of letters, digits, _ and -"
            yield (f"views[{index}].labels", view.labels, expected, "")
        yield from check_view_files(view, f"views[{index}]")
        yield from _check_measure(spec, view, f"views[{index}]")
        if view.set in spec.sets:
            yield from check_parts(spec, view, f"views[{index}]")
    if spec.primary not in names:
        yield ("primary", spec.primary, "the name of a view: " + ", ".join(names), "")
    elif not spec.view(spec.primary).public:
        yield ("primary", spec.primary, "a public view", "the score that ranks must be released")


def _check_measure(spec: BoardSpec, view: View, key: str) -> Iterator[Wrong]:
    try:
        measure = parse_measure(view.measure)
    except InputError as error:
        first = error.problems[0]
        yield (f"{key}.measure", view.measure, first.expected, first.hint)
        return
    yield from check_view_keys(spec, view, measure, key)
    kind = measure.kind
    climbs = spec.release.rule != "rounded" and view.public and not view.ranks_nobody
    rises = kind.better == "higher" and kind.unanswered is not None and not kind.exposure
    if climbs and view.set in spec.sets and spec.sets[view.set].held_out and not rises:
        expected = "a measure that rises and is defined for every query"
        hint = f"a {spec.release.rule} compares scores query by query: or set public = false"
        yield (f"{key}.measure", view.measure, expected, hint)


def _check_finalists(spec: BoardSpec) -> Iterator[Wrong]:
    """A view on which finalists are scored once: its queries are used for nothing else."""
    named = [(i, view) for i, view in enumerate(spec.views) if view.finalists is not None]
    for index, view in named:
        key = f"views[{index}].finalists"
        if not view.final:
            hint = "set final = true and public = false"
            yield (key, view.finalists, "none: only a view with final = true has finalists", hint)
        if view.finalists is not None and not 1 <= view.finalists <= MOST_FINALISTS:
            hint = "the best of many has more luck"
            yield (key, view.finalists, f"1 to {MOST_FINALISTS}", hint)
        if index != named[0][0]:
            hint = f"view {named[0][1].name} has finalists already"
            yield (key, view.finalists, "one view with finalists", hint)
        if spec.closes is None:
            hint = "add closes = 2027-03-01: the final is opened after that day"
            yield (key, view.finalists, "a board that has a last day", hint)
        yield from _check_unused(spec, view, f"views[{index}]")
        yield from _check_comparable(view, f"views[{index}]")


def _check_unused(spec: BoardSpec, view: View, key: str) -> Iterator[Wrong]:
    """No other view, and no other set, has the queries of a view with finalists."""
    hint = "make a query set that nothing else uses"
    others = [other.name for other in spec.views if other.set == view.set and other is not view]
    if others:
        expected = f"a set that no other view uses; {others[0]} uses it"
        yield (f"{key}.set", view.set, expected, hint)
    own = spec.sets.get(view.set)
    if own is None:
        return
    if not own.held_out:
        expected = "a set whose labels are held out: without qrels"
        yield (f"{key}.set", view.set, expected, "")
    for name, one in spec.sets.items():
        if name != view.set and one.queries == own.queries:
            expected = f"queries of its own; sets.{name} has the same file"
            yield (f"sets.{view.set}.queries", own.queries, expected, hint)


def _check_comparable(view: View, key: str) -> Iterator[Wrong]:
    """Finalists are compared query by query, so each has a score for the same queries."""
    for name in ("labels", "training_at_most"):
        if getattr(view, name) is not None:
            hint = "finalists are compared by the labels of their own set, whatever they state"
            yield (f"{key}.{name}", getattr(view, name), "none, of a view with finalists", hint)
    if view.summary != "mean":
        hint = "finalists are compared on the same queries"
        yield (f"{key}.summary", view.summary, '"mean", of a view with finalists', hint)
    try:
        kind = parse_measure(view.measure).kind
    except InputError:  # said elsewhere
        return
    if kind.better != "higher" or kind.unanswered is None or kind.exposure:
        expected = "a measure that rises and is defined for every query"
        yield (f"{key}.measure", view.measure, expected, "finalists are compared query by query")


def _check_seasons(spec: BoardSpec) -> Iterator[Wrong]:
    public = [view.name for view in spec.public_views]
    sets = {view.name: view.set for view in reversed(spec.views)}
    before: Season | None = None
    for index, season in enumerate(spec.seasons):
        key = f"seasons[{index}]"
        if not re.fullmatch(_NAME, season.name) or season.name in (
            other.name for other in spec.seasons[:index]
        ):
            yield (f"{key}.name", season.name, "a name of its own: letters, digits, _ -", "")
        if season.view not in public:
            yield (f"{key}.view", season.view, "a public view: " + ", ".join(public), "")
        elif sets.get(season.view) in [sets.get(other.view) for other in spec.seasons[:index]]:
            hint = "labels that were asked in one season are not held out for the next"
            yield (f"{key}.view", season.view, "a view on a query set of its own", hint)
        if before is not None and (before.closes is None or season.opens <= before.closes):
            yield (f"{key}.opens", season.opens, f"a day after season '{before.name}' closes", "")
        if season.closes is not None and season.closes < season.opens:
            yield (f"{key}.closes", season.closes, f"a day from {season.opens} on", "")
        before = season
    if spec.seasons and spec.primary != spec.seasons[0].view:
        yield ("primary", spec.primary, spec.seasons[0].view, "the view of the first season")
    if spec.seasons and spec.kind != "sequential":
        yield ("kind", spec.kind, "sequential", "a board with seasons tells scores one by one")


def _check_seeds(spec: BoardSpec) -> Iterator[Wrong]:
    if not 1 <= spec.runs.seeds <= _MOST_SEEDS:
        hint = "each seed is opened and scored as a run of its own"
        yield ("runs.seeds", spec.runs.seeds, f"1 to {_MOST_SEEDS}", hint)
    elif spec.runs.seeds > 1 and spec.envelope == "openssl":
        hint = "the scripts of the MS MARCO boards take one run for each query set"
        yield ("runs.seeds", spec.runs.seeds, '1 with envelope = "openssl"', hint)


def _check_numbers(spec: BoardSpec) -> Iterator[Wrong]:
    most_decimals = 6
    if spec.schema != 1:
        yield ("schema", spec.schema, "1", "this heldout knows version 1")
    if not 1 <= spec.decimals <= most_decimals:
        yield ("decimals", spec.decimals, f"1 to {most_decimals}", "3 is what the real boards show")
    if not 1 <= spec.runs.min_depth <= spec.runs.depth:
        yield ("runs.min_depth", spec.runs.min_depth, f"1 to {spec.runs.depth} (depth)", "")
    yield from _check_seeds(spec)
    for name, most in _LONGEST.items():
        least = int(name in ("quota", "quota_days"))
        if not least <= getattr(spec.policy, name) <= most:
            yield (f"policy.{name}", getattr(spec.policy, name), f"{least} to {most}", "")
    yield from check_rule(spec.release, decimals=spec.decimals)
    if spec.trust is not None:
        yield from check_trust(spec.trust)
    if spec.kind == "one-shot" and spec.release.rule != "rounded":
        hint = "scores of a one-shot board are told once, so there is nothing to climb"
        yield ("release.rule", spec.release.rule, "rounded", hint)
    for name in spec.policy.off:
        if name not in RULE_NAMES:
            yield ("policy.off", name, "one of " + ", ".join(RULE_NAMES), "docs/policy.md")
