"""board.toml, read into a `BoardSpec`; a wrong one gets an error with its line.

First the keys and the kinds of values of each table are checked, all at once; then the keys of each
view (fairness, small data, a part of a set, noise); then what the values say together.
"""

import math
import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import msgspec
from msgspec import inspect

from heldout.board.log.history import MOST_BYTES, MOST_DOTS
from heldout.board.log.manifest import is_link
from heldout.board.rules.spec import (
    RULES,
    BoardSpec,
    QuerySet,
    Season,
    View,
    check_forge,
    check_trust,
)
from heldout.errors import InputError, Problem, quote
from heldout.scoring.measures import Kind, Measure, parse_measure

Mistake = tuple[str, str, str, str]
"""Key path as `views[1].set`, what was found there, what is expected, a hint or nothing."""

_SIMPLE: Mapping[type, tuple[type, str]] = {
    inspect.IntType: (int, "a whole number"),
    inspect.FloatType: (float, "a number"),
    inspect.StrType: (str, "text in quotes"),
    inspect.BoolType: (bool, "true or false"),
    inspect.DateType: (date, "a day as 2026-11-01, without quotes"),
}


def check_table(table: Mapping[str, Any], struct: type[msgspec.Struct]) -> Iterator[Mistake]:
    """Hold a table against a struct: unknown and missing keys, and values of a wrong kind.

    Args:
        table: as `tomllib` reads it.
        struct: its attributes are the keys; nested structs, mappings and tuples are followed.
    """
    kind = _layout(struct)
    if isinstance(kind, inspect.StructType):
        yield from _check_keys("", table, kind)


@cache
def _layout(struct: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(struct)


def _check(key: str, value: object, kind: inspect.Type) -> Iterator[Mistake]:
    kind = _given(kind)
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        yield from _check_keys(f"{key}.", value, kind)
    elif isinstance(kind, inspect.DictType) and isinstance(value, dict):
        for name, one in value.items():
            yield from _check(f"{key}.{name}", one, kind.value_type)
    elif isinstance(kind, inspect.VarTupleType) and isinstance(value, list):
        for index, one in enumerate(value):
            yield from _check(f"{key}[{index}]", one, kind.item_type)
    elif not _fits(value, kind):
        yield (key, f"{key} = {quote(value)}", _words(key, kind), "")


def _check_keys(
    prefix: str, table: Mapping[str, Any], kind: inspect.StructType
) -> Iterator[Mistake]:
    fields = {field.encode_name: field for field in kind.fields}
    meant = set()
    for name, value in table.items():
        if name in fields:
            yield from _check(f"{prefix}{name}", value, fields[name].type)
            continue
        close = get_close_matches(name, fields.keys() - table.keys(), 1)
        meant.update(close)
        key = f"{prefix}{name}"
        hint = (
            f"did you mean {close[0]}?"
            if close
            else "remove it; docs/reference/board.md has every key"
        )
        yield (key, f"{key}, an unknown key", "one of " + ", ".join(fields), hint)
    for name, field in fields.items():
        if field.required and name not in table and name not in meant:
            key = f"{prefix}{name}"
            yield (key, f"no {key}", _words(key, _given(field.type)), "")


def _given(kind: inspect.Type) -> inspect.Type:
    """The kind of a value that is there: TOML has no null."""
    if isinstance(kind, inspect.UnionType):
        kinds = tuple(one for one in kind.types if not isinstance(one, inspect.NoneType))
        return kinds[0] if len(kinds) == 1 else inspect.UnionType(kinds)
    return kind


def _fits(value: object, kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(_fits(value, one) for one in kind.types)
    if isinstance(kind, inspect.LiteralType):
        return value in kind.values
    plain = _SIMPLE.get(type(kind))
    if isinstance(kind, inspect.FloatType):
        number = isinstance(value, int | float) and type(value) is not bool and math.isfinite(value)
        return number and _is_between(value, kind)
    if isinstance(kind, inspect.IntType):
        return type(value) is int and _is_between(value, kind)
    if plain is not None and plain[0] is date and isinstance(value, str):
        return _is_day(value)
    return plain is not None and type(value) is plain[0]


def _is_between(value: Any, kind: inspect.IntType | inspect.FloatType) -> bool:
    """Check a number against the bounds of its key, if it has any."""
    return (
        (kind.ge is None or value >= kind.ge)
        and (kind.le is None or value <= kind.le)
        and (kind.lt is None or value < kind.lt)
    )


def _is_day(text: str) -> bool:
    with suppress(ValueError):
        return bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) and date.fromisoformat(text))
    return False


def _words(key: str, kind: inspect.Type) -> str:
    """Return what belongs there, for people."""
    if isinstance(kind, inspect.UnionType):
        return " or ".join(_words(key, one) for one in kind.types)
    if isinstance(kind, inspect.LiteralType):
        return "one of " + ", ".join(f'"{value}"' for value in kind.values)
    if isinstance(kind, inspect.VarTupleType):
        if isinstance(kind.item_type, inspect.StructType):
            return f"a table [[{key}]] for each"
        return f"a list in brackets, each of it {_words(key, kind.item_type)}"
    if isinstance(kind, inspect.DictType):
        return f"a table [{key}.NAME] for each"
    return _say_simple(key, kind)


def _say_simple(key: str, kind: inspect.Type) -> str:
    plain = _SIMPLE.get(type(kind))
    if plain is None:
        return f"a table [{key}]"
    if not isinstance(kind, inspect.IntType | inspect.FloatType) or kind.ge is None:
        return plain[1]
    most = f"0 or more, below {kind.lt:g}" if kind.le is None else f"{kind.ge:g} to {kind.le:,}"
    return f"{plain[1]}, {most}"


Wrong = tuple[str, object, str, str]  # key path, value, expected, hint

_IN_THE_VAULT = re.compile(
    r"labels/[A-Za-z0-9_-]{1,32}\.(?!qrels$|exclude$|key$)[a-z]{1,16}", re.ASCII
)
_CLOSE = 1e-6


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
        elif not file or _leads_out(file):
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
    if not _rises(kind):
        yield (f"{key}.measure", view.measure, _RISING, "groups are compared by it")
    if spec.denominator == "all":
        hint = "groups are compared over the queries that count"
        yield ("denominator", spec.denominator, f'"counted", with summary of {view.name}', hint)
    if view.summary == "gap" and _ranks(spec, view):
        yield (f"{key}.summary", view.summary, "worst, of a view that ranks", "a gap falls")
    held_out = view.set in spec.sets and spec.sets[view.set].held_out
    if spec.release.rule != "rounded" and view.public and held_out and not view.for_information:
        hint = f"`{spec.release.rule}` compares the same queries each time: set public = false"
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
    name = "part" if view.noise is None else "noise"
    found: object = getattr(view, name)
    if view.part in ("deciding", "feedback") and view.noise is not None:
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
    yield from _check_information(spec, view, key, name)
    if view.noise is not None:
        yield from _check_noise(spec, view, key)
    if view.part is not None:
        yield from _check_split(spec, view, key)
    if view.season_part is not None:
        yield from _check_season_part(spec, view, view.season_part, f"{key}.part")


def _check_information(spec: BoardSpec, view: View, key: str, name: str) -> Iterator[Wrong]:
    if not view.for_information:
        return
    found: object = getattr(view, name)
    which = "a score with noise" if view.noise is not None else "the feedback part"
    if _ranks(spec, view):
        yield (
            f"{key}.{name}",
            found,
            "another view",
            f"{view.name} ranks entries, {which} is for information only",
        )
    if not view.public:
        hint = f"{which} is there to be published at once"
        yield (f"{key}.public", view.public, f"true, of a view with {name}", hint)
    if view.training_at_most is not None:
        hint = f"it makes a table with ranks, but {which} is for information only"
        yield (f"{key}.training_at_most", view.training_at_most, f"none, with {name}", hint)


def _check_split(spec: BoardSpec, view: View, key: str) -> Iterator[Wrong]:
    """A set is split for two kinds of view: one that decides, and one that informs."""
    parts = {one.part for one in spec.views if one.set == view.set}
    share = spec.release.feedback
    informs = view.part == "feedback"
    if informs and not share:
        hint = "a quarter of the queries, 0.25, is usual"
        yield ("release.feedback", share, "above 0, for a view of the feedback part", hint)
    others = parts - {"feedback", None} if informs else parts & {"feedback"}
    if not others and (share or view.season_part is None):
        expected = f'a view with part = "{"deciding" if informs else "feedback"}" of {view.set} too'
        instead = "leave part out" if view.season_part is None else "set release.feedback = 0"
        hint = f"the queries of the other part would never be used: {instead}"
        yield (f"{key}.part", view.part, expected, hint)


def _check_season_part(spec: BoardSpec, view: View, part: int, key: str) -> Iterator[Wrong]:
    """The queries of a season part rank in one season, and no score on them is out before it."""
    if not 1 <= part <= spec.release.seasons:
        hint = "seasons = 4 in [release] cuts the queries that decide into four parts"
        expected = f'"deciding", "feedback", or 1 to {spec.release.seasons} (release.seasons)'
        yield (key, part, expected, hint)
    if spec.release.rule != "clear":
        hint = "every score on it would be published during the season"
        yield (key, part, 'no season part, but with release.rule = "clear"', hint)
    if not view.public:
        yield (key, part, "a public view", "a season part is there to rank entries")
    if (view.set, part) not in [(one.set, one.part) for one in spec.views if _ranks(spec, one)]:
        hint = "its scores would be published in every season: add one to [[seasons]]"
        yield (key, part, f"a season that ranks by part {part} of {view.set}", hint)


def _check_noise(spec: BoardSpec, view: View, key: str) -> Iterator[Wrong]:
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
        expected = f"a part, as {view.set} is split"
        hint = "it would publish scores on the deciding part: or set public = false"
        yield (f"{key}.part", "none", expected, hint)
    cut = (one.name for one in spec.views if one.set == view.set and one.season_part)
    if view.part == "deciding" and (other := next(cut, "")):
        hint = f"it would publish scores on the part of {other}: or set public = false"
        yield (f"{key}.part", view.part, "the number of a season part", hint)
    for name in sorted(split - {view.set}):
        if spec.sets[name].queries == files.queries and spec.sets[name].held_out:
            hint = f"it would publish scores on the deciding part of {name}: or set public = false"
            yield (f"{key}.set", view.set, f"a set with other queries than {name}", hint)


_NAME = r"[A-Za-z0-9_-]{1,32}"
# No blank, quote or dollar sign: it stands in the shell of a workflow.
_INSTALL = r"(git\+)?https://[A-Za-z0-9][A-Za-z0-9._~:/@%+=#-]{0,499}"
_TAKEN = frozenset(
    (
        *("", ".git", ".heldout", "board.toml", "drafts"),
        *("labels", "leaderboard", "log", "log.jsonl", "submissions"),
    )
)


def check_spec(spec: BoardSpec) -> Iterator[Wrong]:
    """Yield what is wrong with a board.toml whose keys and kinds are right."""
    yield from _check_views(spec)
    yield from _check_seasons(spec)
    if spec.forge is not None:
        yield from check_forge(spec.forge)
    yield from _check_numbers(spec)
    yield from _check_finalists(spec)
    yield from _check_sets(spec)
    yield from _check_registration(spec)
    yield from _check_programs(spec)
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
        if queries.secret:
            yield from _check_secret(spec, name, queries)


def _check_secret(spec: BoardSpec, name: str, queries: QuerySet) -> Iterator[Wrong]:
    """Queries that lie in the vault: only a program can answer them."""
    key, stem = f"sets.{name}.queries", queries.queries.removeprefix("labels/").partition(".")[0]
    if not _IN_THE_VAULT.fullmatch(queries.queries) or stem != name:
        yield (key, queries.queries, f"labels/{name}.tsv, in the vault", "or a path in the board")
    if queries.qrels is not None or queries.candidates is not None:
        yield (key, queries.queries, "no qrels and no candidates in the board beside it", "")
    if spec.programs is None or not spec.programs.required:
        hint = "nobody can make a run over queries that nobody sees"
        yield (key, queries.queries, "required = true in [programs], with it", hint)


PRIVATE = (".heldout", "drafts")
"""Where a clone's own files lay, inside the board: nothing there may be anybody's any more."""

_UNSEEN = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_SHORT = re.compile(r"heldou~\d+")


def is_private(path: str) -> bool:
    """Check if a path begins with one of `PRIVATE` on some disk, as git guards `.git`."""
    name = _top(path)
    return name in PRIVATE or _SHORT.fullmatch(name) is not None


def _top(file: str) -> str:
    """The first name of a path, as disks take it that know no upper case (HFS+, APFS, NTFS)."""
    parts = PurePosixPath(_UNSEEN.sub("", file).replace("\\", "/")).parts
    return parts[0].partition(":")[0].rstrip(" .").casefold() if parts else ""


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


def _check_programs(spec: BoardSpec) -> Iterator[Wrong]:
    if spec.programs is None:
        return
    if spec.programs.disk > spec.programs.memory:
        hint = "what lies in /tmp counts as memory"
        most = f"at most memory, {spec.programs.memory:,}"
        yield ("programs.disk", spec.programs.disk, most, hint)
    if spec.envelope == "openssl":
        hint = "metadata that the scripts of MS MARCO can read has no place for a program"
        yield ("envelope", spec.envelope, "age, on a board with [programs]", hint)


def _check_views(spec: BoardSpec) -> Iterator[Wrong]:
    names = [view.name for view in spec.views]
    for index, view in enumerate(spec.views):
        if names.index(view.name) != index or not re.fullmatch(_NAME, view.name):
            yield (f"views[{index}].name", view.name, "a name of its own: letters, digits, _ -", "")
        if view.set not in spec.sets:
            yield (f"views[{index}].set", view.set, "one of " + ", ".join(spec.sets), "")
        if view.final and view.public:
            expected = "false: scores of a public view are published at once"
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
    if _rises(measure.kind):
        return
    climbs = spec.release.rule != "rounded" and view.public and not view.for_information
    if climbs and view.set in spec.sets and spec.sets[view.set].held_out:
        hint = f"`{spec.release.rule}` compares scores query by query: or set public = false"
        yield (f"{key}.measure", view.measure, _RISING, hint)
    if view.finalists is not None:
        yield (f"{key}.measure", view.measure, _RISING, "finalists are compared query by query")


_RISING = "a measure that rises and is defined for every query"


def _rises(kind: Kind) -> bool:
    return kind.better == "higher" and kind.unanswered is not None and not kind.exposure


def _check_finalists(spec: BoardSpec) -> Iterator[Wrong]:
    """A view on which finalists are scored once: its queries are used for nothing else."""
    named = [(i, view) for i, view in enumerate(spec.views) if view.finalists is not None]
    for index, view in named:
        key = f"views[{index}].finalists"
        if not view.final:
            hint = "set final = true and public = false"
            yield (key, view.finalists, "none: only a view with final = true has finalists", hint)
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


def _check_seasons(spec: BoardSpec) -> Iterator[Wrong]:
    public = [view.name for view in spec.public_views]
    views = {view.name: view for view in reversed(spec.views)}
    taken: list[View] = []
    before: Season | None = None
    for index, season in enumerate(spec.seasons):
        key = f"seasons[{index}]"
        if not re.fullmatch(_NAME, season.name) or season.name in (
            other.name for other in spec.seasons[:index]
        ):
            yield (f"{key}.name", season.name, "a name of its own: letters, digits, _ -", "")
        if season.view not in public:
            yield (f"{key}.view", season.view, "a public view: " + ", ".join(public), "")
        elif any(_share_queries(views[season.view], other) for other in taken):
            expected = "a view on a query set, or a season part, of its own"
            hint = "labels that were asked in one season are not held out for the next"
            yield (f"{key}.view", season.view, expected, hint)
        taken += [views[season.view]] if season.view in public else []
        if before is not None and (before.closes is None or season.opens <= before.closes):
            expected = f"a day after season '{before.name}' closes"
            yield (f"{key}.opens", season.opens.isoformat(), expected, "")
        if season.closes is not None and season.closes < season.opens:
            yield (f"{key}.closes", season.closes.isoformat(), f"a day from {season.opens} on", "")
        before = season
    if spec.seasons and spec.primary != spec.seasons[0].view:
        yield ("primary", spec.primary, spec.seasons[0].view, "the view of the first season")
    if spec.seasons and spec.kind != "sequential":
        yield ("kind", spec.kind, "sequential", "a board with seasons publishes scores one by one")


def _share_queries(one: View, other: View) -> bool:
    parts = {one.season_part, other.season_part}
    return one.set == other.set and (None in parts or len(parts) == 1)


def _check_numbers(spec: BoardSpec) -> Iterator[Wrong]:
    if spec.schema != 1:
        yield ("schema", spec.schema, "1", "this heldout knows version 1")
    if not 1 <= spec.runs.min_depth <= spec.runs.depth:
        yield ("runs.min_depth", spec.runs.min_depth, f"1 to {spec.runs.depth} (depth)", "")
    if spec.runs.seeds > 1 and spec.envelope == "openssl":
        hint = "the scripts of the MS MARCO boards take one run for each query set"
        yield ("runs.seeds", spec.runs.seeds, '1 with envelope = "openssl"', hint)
    if spec.trust is not None:
        yield from check_trust(spec.trust)
    if spec.kind == "one-shot" and spec.release.rule != "rounded":
        hint = "a one-shot board publishes its scores once, so there is nothing to climb"
        yield ("release.rule", spec.release.rule, "rounded", hint)
    for name in spec.policy.off:
        if name not in RULES:
            yield ("policy.off", name, "one of " + ", ".join(RULES), "docs/reference/policy.md")


_LONGEST_LINE = 3_000  # no number in it has more digits than Python turns into text
_MOST_MISTAKES = 50


@lru_cache(maxsize=64)
def parse_spec(data: bytes, *, path: str = "board.toml") -> BoardSpec:
    """Read a board.toml.

    One from a log may be an enemy's: nothing in it takes long to refuse. The same bytes are asked
    for at each step of a call, and read once; the answer is never changed by anybody.

    Raises:
        InputError: with the line of every mistake that could be told apart, of 50 at most.
    """
    lines = data[:MOST_BYTES].decode("utf-8", errors="replace").splitlines()
    _check_size(data, lines, path)
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(_syntax_problem(error, lines, path)) from None
    mistakes = list(islice(check_table(table, BoardSpec), _MOST_MISTAKES))
    if not mistakes:
        spec = msgspec.convert(table, BoardSpec, strict=True)
        mistakes = [_say_mistake(mistake) for mistake in islice(check_spec(spec), _MOST_MISTAKES)]
    if mistakes:
        raise InputError(_locate(mistake, lines, path) for mistake in mistakes)
    return spec


def _check_size(data: bytes, lines: list[str], path: str) -> None:
    if data.startswith(BOM_UTF8):
        found, expected = "a byte order mark before the first word", "UTF-8 without one"
        hint = "save it as UTF-8, not as UTF-8 with BOM"
        raise InputError.of(
            code="not-toml", path=path, line=1, found=found, expected=expected, hint=hint
        )
    if len(data) > MOST_BYTES:
        found, expected = f"{len(data):,} bytes", f"at most {MOST_BYTES:,} bytes"
        raise InputError.of(code="too-large", path=path, found=found, expected=expected)
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST_LINE or line.count(".") > MOST_DOTS:
            found = f"{len(line):,} characters, {line.count('.'):,} of them dots"
            expected = f"a line of at most {_LONGEST_LINE:,} and {MOST_DOTS}"
            raise InputError.of(
                code="too-large", path=path, line=number, found=found, expected=expected
            )


def refuse_spec(wrong: Iterable[Wrong], text: str, *, path: str = "board.toml") -> None:
    """Refuse a board.toml that is right by itself, and does not fit what happened before.

    Args:
        wrong: what does not fit.
        text: the file.
        path: its name.

    Raises:
        InputError: with the line of everything that does not fit; where there is anything.
    """
    lines = text.splitlines()
    problems = [_locate(_say_mistake(one), lines, path) for one in wrong]
    if problems:
        raise InputError(problems)


def _say_mistake(wrong: Wrong) -> Mistake:
    key, value, expected, hint = wrong
    return (key, f"{key} = {quote(value)}", expected, hint)


def _locate(mistake: Mistake, lines: list[str], path: str) -> Problem:
    key, found, expected, hint = mistake
    return Problem("board-spec", path, found, expected, hint, line=_find_line(key, lines))


def _syntax_problem(error: Exception, lines: list[str], path: str) -> Problem:
    line = max(1, len(lines))
    found = re.sub(r" \(at [^()]*\)$", "", str(error))
    if isinstance(error, RecursionError):
        found = "brackets within brackets, too many to read"
    elif isinstance(error, UnicodeDecodeError):
        found = "a byte that is not UTF-8"
        line = error.object[: error.start].count(b"\n") + 1
    elif where := re.search(r"at line (\d+)", str(error)):
        line = int(where[1])
    return Problem.of("not-toml", path, found, line=line)


def _find_line(key: str, lines: list[str]) -> int | None:
    """The line of a key path such as `views[1].set`; of its table where the key is absent."""
    best = None
    for known, number in _key_lines(lines).items():
        if key == known:
            return number
        if key.startswith((f"{known}.", f"{known}[")):
            best = number
    return best


def _key_lines(lines: list[str]) -> Mapping[str, int]:
    """Key path -> line, for the plain layout that people write: headers and `key = value`."""
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(lines, 1):
        if many := re.match(r"\s*\[\[\s*([\w.-]+)\s*\]\]", line):
            index = counts.get(many[1], 0)
            counts[many[1]] = index + 1
            table = f"{many[1]}[{index}]"
            found[table] = number
        elif one := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            table = one[1]
            found[table] = number
        elif pair := re.match(r"\s*([\w.-]+)\s*=", line):
            found.setdefault(f"{table}.{pair[1]}".strip("."), number)
    return found
