"""board.toml, read into a `BoardSpec`; a wrong one gets an error with its line.

First the keys and the kinds of values of each table are checked, all at once; then the keys of each
view (fairness, small data, a part of a set, noise); then what the values say together.
"""

import math
import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import islice
from pathlib import PurePosixPath
from typing import Annotated, Any

import msgspec
from msgspec import inspect

from heldout.board.log import history, manifest
from heldout.board.rules.spec import (
    RULES,
    BoardSpec,
    Season,
    View,
    Wrong,
    check_forge,
    check_trust,
    list_wrong,
    wrong,
)
from heldout.errors import InputError, Problem, quote
from heldout.scoring.measures import parse_measure

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
    bounds = {name: getattr(kind, name, None) for name in ("ge", "gt", "le", "lt")}
    plain = _SIMPLE.get(type(kind), (type(None), ""))[0]
    try:
        msgspec.convert(value, Annotated[plain, msgspec.Meta(**bounds)])
    except msgspec.ValidationError:
        return False
    return not isinstance(value, float) or math.isfinite(value)


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


_IN_THE_VAULT = re.compile(
    r"labels/[A-Za-z0-9_-]{1,32}\.(?!qrels$|exclude$|key$)[a-z]{1,16}", re.ASCII
)
_CLOSE = 1e-6
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
    if spec.programs is not None and spec.programs.disk > spec.programs.memory:
        yield wrong("memory", "programs.disk", spec.programs.disk, programs=spec.programs)
    install = re.fullmatch(_INSTALL, spec.install, re.ASCII)
    yield from list_wrong(
        "",
        spec,
        (spec.programs and spec.envelope == "openssl", "envelope", "openssl-programs"),
        (not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", spec.name), "name", "name"),
        (spec.repository and not manifest.is_link(spec.repository), "repository", "link"),
        (spec.home and not manifest.is_link(spec.home), "home", "link"),
        (spec.install and not install, "install", "install"),
        (spec.kind == "one-shot" and spec.closes is None, "kind", "one-shot-day"),
        (spec.closes and spec.closes < spec.opens, "closes", "closes-early"),
        opens=spec.opens,
    )
    if not spec.recipients:
        yield wrong("no-key", "recipients", "no key")
    if not spec.types:
        yield wrong("no-type", "types", "none")


def _check_sets(spec: BoardSpec) -> Iterator[Wrong]:
    for name, queries in spec.sets.items():
        if not re.fullmatch(_NAME, name):
            yield wrong("name-of-set", f"sets.{name}", name)
        for key in ("queries", "qrels", "candidates"):
            file = getattr(queries, key)
            if file is not None and _leads_out(file):
                yield wrong("file-of-set", f"sets.{name}.{key}", file)
        if queries.secret:  # only a program can answer queries that lie in the vault
            path, file = f"sets.{name}.", queries.queries
            own = file.removeprefix("labels/").partition(".")[0] == name
            known = queries.qrels is not None or queries.candidates is not None
            yield from list_wrong(
                path,
                queries,
                (not own or not _IN_THE_VAULT.fullmatch(file), "queries", "secret-path"),
                (known, "queries", "secret-public"),
                (not spec.programs or not spec.programs.required, "queries", "secret-program"),
                name=name,
            )


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
    outside = file is not None and (_leads_out(file) or not file)
    name = "" if file is None else _top(file)
    closes = registration.closes
    yield from list_wrong(
        "registration.",
        registration,
        (outside, "agreement", "agreement-leads-out"),
        (file and not outside and name in _TAKEN, "agreement", "agreement-taken"),
        (closes and closes < spec.opens, "closes", "closes-early"),
        name=name,
        opens=spec.opens,
    )
    if spec.envelope == "openssl":
        yield wrong("openssl-registration", "envelope", spec.envelope)


def _check_views(spec: BoardSpec) -> Iterator[Wrong]:
    names = [view.name for view in spec.views]
    for index, view in enumerate(spec.views):
        path = f"views[{index}]."
        own = names.index(view.name) == index and re.fullmatch(_NAME, view.name)
        yield from list_wrong(
            path,
            view,
            (not own, "name", "name-of-its-own"),
            (view.set not in spec.sets, "set", "no-set"),
            (view.final and view.public, "final", "final-public"),
            (view.labels and not re.fullmatch(_NAME, view.labels), "labels", "name-of-labels"),
            (view.labels == "", "labels", "name-of-labels"),
            sets=", ".join(spec.sets),
        )
        yield from _check_view_files(view, path)
        yield from _check_measure(spec, view, path)
        if view.set in spec.sets:
            yield from _check_parts(spec, view, path)
    known = spec.primary in names
    yield from list_wrong(
        "",
        spec,
        (not known, "primary", "primary-unknown"),
        (known and not spec.view(spec.primary).public, "primary", "primary-hidden"),
        names=", ".join(names),
    )


def _check_view_files(view: View, path: str) -> Iterator[Wrong]:
    """The paths that a view names."""
    for name in ("queries", "facets", "groups"):
        file = getattr(view, name)
        inside = file is not None and file.startswith("labels/")
        if inside and not _IN_THE_VAULT.fullmatch(file):
            yield wrong("file-in-vault", f"{path}{name}", file)
        elif file is not None and not inside and (not file or _leads_out(file)):
            yield wrong("file-of-view", f"{path}{name}", file)


def _check_measure(spec: BoardSpec, view: View, path: str) -> Iterator[Wrong]:
    """The keys that belong to a measure, and those that do not."""
    try:
        measure = parse_measure(view.measure)
    except InputError as error:
        first = error.problems[0]
        yield (f"{path}measure", view.measure, first.expected, first.hint)
        return
    kind, ranks, groups = measure.kind, _ranks(spec, view), view.groups is not None
    rises = kind.better == "higher" and kind.unanswered is not None and not kind.exposure
    climbs = spec.release.rule != "rounded" and view.public and not view.for_information
    climbs = climbs and view.set in spec.sets and spec.sets[view.set].held_out
    several, target = view.summary != "mean", view.target is not None
    if several and spec.denominator == "all":
        yield wrong("summary-denominator", "denominator", spec.denominator, view=view)
    yield from list_wrong(
        path,
        view,
        (kind.better == "lower" and ranks, "measure", "falls"),
        (kind.exposure and not groups, "groups", "no-groups"),
        (groups and not kind.exposure, "groups", "groups-useless"),
        (target and not groups, "target", "target-useless"),
        (groups and not _are_shares(view.target), "target", "no-shares"),
        (several and view.facets is None, "facets", "no-facets"),
        (not several and view.facets is not None, "summary", "facets-useless"),
        (several and not rises, "measure", "falls-in-groups"),
        (view.summary == "gap" and ranks, "summary", "gap-ranks"),
        (several and climbs, "summary", "summary-climbing"),
        (climbs and not rises, "measure", "falls-climbing"),
        (view.finalists is not None and not rises, "measure", "falls-in-final"),
        measure=measure,
        spec=spec,
    )


def _are_shares(target: Mapping[str, float] | None) -> bool:
    shares = (1.0,) if target is None else target.values()
    return min(shares, default=0) >= 0 and math.isclose(math.fsum(shares), 1, abs_tol=_CLOSE)


def _ranks(spec: BoardSpec, view: View) -> bool:
    return view.name in (spec.primary, *(season.view for season in spec.seasons))


def _check_parts(spec: BoardSpec, view: View, path: str) -> Iterator[Wrong]:
    """The keys `part` and `noise` of a view, and what may stand beside such a view."""
    yield from _check_beside_split(spec, view, path)
    if view.part is None and view.noise is None:
        return
    noisy, informs = view.noise is not None, view.for_information
    key, which = ("noise", "a score with noise") if noisy else ("part", "the feedback part")
    if noisy and view.part in ("deciding", "feedback"):
        yield wrong("noise-of-part", f"{path}noise", view.noise)
        return
    if not spec.sets[view.set].held_out:
        yield wrong("part-open", f"{path}{key}", getattr(view, key), view=view)
        return
    public = [one.name for one in spec.public_views if one.set == view.set and one.noise is None]
    exact = public if spec.release.rule == "rounded" and noisy else []
    yield from list_wrong(
        path,
        view,
        (spec.kind == "one-shot", key, "one-shot-part"),
        (informs and _ranks(spec, view), key, "information-ranks"),
        (informs and not view.public, "public", "information-hidden"),
        (informs and view.training_at_most is not None, "training_at_most", "information-listed"),
        (noisy and view.summary != "mean", "summary", "noise-summary"),
        (exact, "noise", "noise-beside-exact"),
        key=key,
        which=which,
        view=view,
        exact=exact[0] if exact else "",
    )
    if view.part is not None:
        yield from _check_split(spec, view, path)
    if view.season_part is not None:
        yield from _check_season_part(spec, view, view.season_part, path)


def _check_split(spec: BoardSpec, view: View, path: str) -> Iterator[Wrong]:
    """A set is split for two kinds of view: one that decides, and one that informs."""
    parts = {one.part for one in spec.views if one.set == view.set}
    share = spec.release.feedback
    informs = view.part == "feedback"
    if informs and not share:
        yield wrong("part-share", "release.feedback", share)
    others = parts - {"feedback", None} if informs else parts & {"feedback"}
    if not others and (share or view.season_part is None):
        other = "deciding" if informs else "feedback"
        instead = "leave part out" if view.season_part is None else "set release.feedback = 0"
        words = {"view": view, "other": other, "instead": instead}
        yield wrong("part-without-other", f"{path}part", view.part, **words)


def _check_season_part(spec: BoardSpec, view: View, part: int, path: str) -> Iterator[Wrong]:
    """The queries of a season part rank in one season, and no score on them is out before it."""
    ranked = [(one.set, one.part) for one in spec.views if _ranks(spec, one)]
    yield from list_wrong(
        path,
        view,
        (not 1 <= part <= spec.release.seasons, "part", "season-part-number"),
        (spec.release.rule != "clear", "part", "season-part-rule"),
        (not view.public, "part", "season-part-hidden"),
        ((view.set, part) not in ranked, "part", "season-part-unranked"),
        spec=spec,
        view=view,
    )


def _check_beside_split(spec: BoardSpec, view: View, path: str) -> Iterator[Wrong]:
    """No public view is also over queries that the split of a set holds back."""
    files = spec.sets[view.set]
    split = {one.set for one in spec.views if one.part is not None and one.set in spec.sets}
    if not view.public or not files.held_out:
        return
    cut = next((one.name for one in spec.views if one.set == view.set and one.season_part), "")
    yield from list_wrong(
        path,
        view,
        (view.part is None and view.set in split, "part", "beside-split"),
        (view.part == "deciding" and cut, "part", "beside-part"),
        view=view,
        other=cut,
    )
    for name in sorted(split - {view.set}):
        if spec.sets[name].queries == files.queries and spec.sets[name].held_out:
            yield wrong("beside-set", f"{path}set", view.set, name=name)


def _check_finalists(spec: BoardSpec) -> Iterator[Wrong]:
    """A view on which finalists are scored once: its queries are used for nothing else."""
    named = [(i, view) for i, view in enumerate(spec.views) if view.finalists is not None]
    for index, view in named:
        others = [one.name for one in spec.views if one.set == view.set and one is not view]
        own = spec.sets.get(view.set)
        yield from list_wrong(
            f"views[{index}].",
            view,
            (not view.final, "finalists", "finalists-not-final"),
            (index != named[0][0], "finalists", "finalists-twice"),
            (spec.closes is None, "finalists", "finalists-no-day"),
            (others, "set", "finalists-set"),
            (own and not own.held_out, "set", "finalists-open"),
            (view.labels is not None, "labels", "finalists-labels"),
            (view.training_at_most is not None, "training_at_most", "finalists-labels"),
            (view.summary != "mean", "summary", "finalists-summary"),
            name=next(iter(others), ""),
            first=named[0][1].name,
        )
        for name, one in spec.sets.items():
            if own is not None and name != view.set and one.queries == own.queries:
                path = f"sets.{view.set}.queries"
                yield wrong("finalists-queries", path, own.queries, name=name)


def _check_seasons(spec: BoardSpec) -> Iterator[Wrong]:
    public = [view.name for view in spec.public_views]
    views = {view.name: view for view in reversed(spec.views)}
    taken: list[View] = []
    before: Season | None = None
    for index, season in enumerate(spec.seasons):
        again = season.name in (other.name for other in spec.seasons[:index])
        known = season.view in public
        asked = known and any(_share_queries(views[season.view], other) for other in taken)
        early = before and (before.closes is None or season.opens <= before.closes)
        yield from list_wrong(
            f"seasons[{index}].",
            season,
            (again or not re.fullmatch(_NAME, season.name), "name", "name-of-its-own"),
            (not known, "view", "season-view"),
            (asked, "view", "season-queries"),
            (early, "opens", "season-overlaps"),
            (season.closes and season.closes < season.opens, "closes", "closes-early"),
            public=", ".join(public),
            before=before,
            opens=season.opens,
        )
        taken += [views[season.view]] if known else []
        before = season
    ranked = not spec.seasons or spec.primary == spec.seasons[0].view
    yield from list_wrong(
        "",
        spec,
        (not ranked, "primary", "primary-of-season"),
        (spec.seasons and spec.kind != "sequential", "kind", "season-kind"),
        spec=spec,
    )


def _share_queries(one: View, other: View) -> bool:
    parts = {one.season_part, other.season_part}
    return one.set == other.set and (None in parts or len(parts) == 1)


def _check_numbers(spec: BoardSpec) -> Iterator[Wrong]:
    runs = spec.runs
    if spec.schema != 1:
        yield wrong("schema", "schema", spec.schema)
    yield from list_wrong(
        "runs.",
        runs,
        (not 1 <= runs.min_depth <= runs.depth, "min_depth", "min-depth"),
        (runs.seeds > 1 and spec.envelope == "openssl", "seeds", "openssl-seeds"),
        runs=runs,
    )
    if spec.trust is not None:
        yield from check_trust(spec.trust)
    if spec.kind == "one-shot" and spec.release.rule != "rounded":
        yield wrong("one-shot-rule", "release.rule", spec.release.rule)
    for name in spec.policy.off:
        if name not in RULES:
            yield wrong("no-rule", "policy.off", name, rules=", ".join(RULES))


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
    lines = data[: history.MOST_BYTES].decode("utf-8", errors="replace").splitlines()
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
        found, hint = "a byte order mark before the first word", "save it as UTF-8 without BOM"
        raise InputError.of("not-toml", path, found, hint=hint, line=1)
    if len(data) > history.MOST_BYTES:
        found, expected = f"{len(data):,} bytes", f"at most {history.MOST_BYTES:,} bytes"
        raise InputError.of("too-large", path, found, expected)
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST_LINE or line.count(".") > history.MOST_DOTS:
            found = f"{len(line):,} characters, {line.count('.'):,} of them dots"
            expected = f"a line of at most {_LONGEST_LINE:,} and {history.MOST_DOTS}"
            raise InputError.of("too-large", path, found, expected, line=number)


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
