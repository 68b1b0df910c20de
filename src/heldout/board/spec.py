"""board.toml: what a board is, read into values; a wrong one gets an error with its line."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Literal

import msgspec

from heldout.board.manifest import is_link
from heldout.board.release import ReleaseRule, check_rule
from heldout.board.tables import Mistake, check_table
from heldout.errors import InputError, Problem, quote
from heldout.measures.spec import parse_measure
from heldout.trec.ranking import Order

__all__ = [
    "RULE_NAMES",
    "Baselines",
    "BoardSpec",
    "EnvelopeForm",
    "Example",
    "Kind",
    "Policy",
    "QuerySet",
    "Runs",
    "Season",
    "View",
    "parse_spec",
]

RULE_NAMES = (
    "board-open",
    "post-hoc",
    "id-date",
    "team-named",
    "institution-named",
    "description",
    "type-known",
    "training-data",
    "embargo",
    "quota",
    "candidates",
    "runs",
)
"""The rules that a board may switch off: the keys of `policy.RULES`, which imports this module."""

_NAME = r"[A-Za-z0-9_-]{1,32}"
_LONGEST = {"quota": 1000, "quota_days": 3660, "embargo_months": 120, "id_days": 3660}


Kind = Literal["sequential", "one-shot"]
"""`sequential`: scores are released one by one, as on MS MARCO. `one-shot`: all at once after the
last day, as at TREC."""

EnvelopeForm = Literal["age", "openssl"]
"""The forms of `heldout.envelope`, named here so that nothing above needs to reach it."""


class QuerySet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[sets.NAME]`: one set of queries that every submission answers.

    Attributes:
        queries: path in the board, `qid<TAB>text`.
        qrels: path of public labels in the board; absent where they are held out.
        candidates: path in the board of the official documents for re-ranking, if there are any.
    """

    queries: str
    qrels: str | None = None
    candidates: str | None = None

    @property
    def held_out(self) -> bool:
        """Whether the labels lie in the vault and nowhere else."""
        return self.qrels is None


class View(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[views]]`: query set, labels, measure, who may see it.

    Attributes:
        name: what the column is called, and the key in every JSON.
        set: a name of `[sets.NAME]`.
        measure: as ir_measures names it, `RR@10`.
        public: whether its score is released when a submission is published. One that is not is
            scored with every submission and never leaves the vault.
        labels: other labels in the vault for the same queries, by name; absent, the set's own.
        final: of a view that is not public: whether its score is released after all on the day
            after the last of the board, or of the season.
    """

    name: str
    set: str
    measure: str
    public: bool = True
    labels: str | None = None
    final: bool = False


class Season(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[seasons]]`: some of a board's days, with a held-out set of their own.

    Attributes:
        name: as in addresses and on the page.
        view: the public view that ranks its entries. Its query set is asked of them alone.
        opens: first day.
        closes: last day; may be absent for the last season.
    """

    name: str
    view: str
    opens: date
    closes: date | None = None


class Runs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[runs]`: what a run file must be.

    Attributes:
        order: how documents are ordered: `msmarco`, `trec` or `trec9`.
        depth: most documents per query.
        min_depth: fewest documents per answered query.
        complete: whether every query must be answered.
    """

    order: Order = "msmarco"
    depth: int = 1000
    min_depth: int = 1
    complete: bool = True


class Baselines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[baselines]`: what the organisers' own runs do; they never have rank, trophy or quota.

    Attributes:
        bar: whether a trophy and the record line have to be above them.
    """

    bar: bool = True


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[example]`: a query with its answer, for the top of the page.

    Attributes:
        query: text of a query with public labels.
        document: id of a document that answers it.
        text: the document's text, or a part of it.
    """

    query: str
    document: str
    text: str = ""


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[policy]`: the rules' numbers; docs/policy.md has each rule and its reason.

    Attributes:
        quota: most submissions of one team within `quota_days`.
        quota_days: length of the rolling window.
        embargo_months: longest embargo, counted from the day of submission.
        id_days: how far the date in an id may be from the day of submission.
        off: names of rules that this board does not apply, of `RULE_NAMES`.
    """

    quota: int = 2
    quota_days: int = 30
    embargo_months: int = 9
    id_days: int = 7
    off: tuple[str, ...] = ()


class BoardSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole board.toml, version 1.

    Attributes:
        name: short name of letters, digits, `.`, `_`, `-`: used in file names and feeds.
        title: heading of the page.
        task: one or two sentences that say what a system has to do.
        opens: first day of the board.
        closes: last day, or absent; the deadline of a one-shot board.
        kind: whether scores are released one by one or all together.
        primary: the view whose released score ranks the entries.
        decimals: digits after the point of every released score.
        denominator: what a mean is taken over: the queries that count, or `all` judged ones, of
            which those that don't count score 0, as the MS MARCO scripts have it.
        types: submission types; `reranking` ones keep to the candidates where a set has them.
        envelope: `age` or `openssl`.
        recipients: public keys of the organisers: age recipients, or one PEM key.
        contact: where to reach the organisers; may be empty.
        submit: how and where to submit, for the page; may be empty.
        repository: address of the board's repository; may be empty.
        home: address under which `leaderboard/` is published, for permalinks; may be empty.
        runs: what a run file must be.
        sets: the query sets by name.
        views: at least one, in the order of their columns.
        policy: the rules' numbers.
        release: what a team is told of a true score.
        baselines: what the organisers' own runs do.
        example: a query with its answer; absent, the first with public labels is shown.
        seasons: none, or the board's days one after the other; then `primary` is that of none of
            its own, but the first season's view.
    """

    schema: int = 1
    name: str
    title: str
    task: str
    opens: date
    closes: date | None = None
    kind: Kind = "sequential"
    primary: str
    decimals: int = 3
    denominator: Literal["counted", "all"] = "counted"
    types: tuple[str, ...] = ("full ranking", "reranking")
    envelope: EnvelopeForm = "age"
    recipients: tuple[str, ...]
    contact: str = ""
    submit: str = ""
    repository: str = ""
    home: str = ""
    runs: Runs = Runs()
    sets: dict[str, QuerySet]
    views: tuple[View, ...]
    policy: Policy = Policy()
    release: ReleaseRule = ReleaseRule()
    baselines: Baselines = Baselines()
    example: Example | None = None
    seasons: tuple[Season, ...] = ()

    def view(self, name: str) -> View:
        """The view of that name; raises KeyError."""
        return next(view for view in self.views if view.name == name)

    def season_on(self, day: date) -> Season | None:
        """The season that takes submissions on a day; `None` for a board without seasons."""
        return next((s for s in self.seasons if _is_within(day, s)), None)

    def on(self, day: date) -> "BoardSpec":
        """The rules for what is submitted on a day: those of its season, or of the last before."""
        begun = [season for season in self.seasons if season.opens <= day]
        season = begun[-1] if begun else next(iter(self.seasons), None)
        return self if season is None else self.in_season(season)

    def in_season(self, season: Season) -> "BoardSpec":
        """The rules of one season: its view ranks, and the sets of other seasons are not there."""
        own = self.view(season.view).set
        others = {self.view(other.view).set for other in self.seasons} - {own}
        return msgspec.structs.replace(
            self,
            primary=season.view,
            sets={name: queries for name, queries in self.sets.items() if name not in others},
            views=tuple(view for view in self.views if view.set not in others),
        )

    def last_day(self, day: date) -> date | None:
        """The last day of the board, or of the season that a day is in; `None` if there is none."""
        season = self.season_on(day)
        return self.closes if season is None else season.closes

    @property
    def final_views(self) -> tuple[View, ...]:
        """The views whose scores are released after the last day."""
        return tuple(view for view in self.views if view.final)

    @property
    def public_views(self) -> tuple[View, ...]:
        """The views whose scores are released, in the order of their columns."""
        return tuple(view for view in self.views if view.public)


def parse_spec(data: bytes, *, path: str = "board.toml") -> BoardSpec:
    """Read a board.toml.

    Raises:
        InputError: with the line of every mistake that could be told apart.
    """
    lines = data.decode("utf-8", errors="replace").splitlines()
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(_syntax_problem(error, lines, path)) from None
    mistakes = list(check_table(table, BoardSpec))
    if not mistakes:
        spec = msgspec.convert(table, BoardSpec, strict=True)
        mistakes = [_tell(mistake) for mistake in _check(spec)]
    if mistakes:
        raise InputError(_place(mistake, lines, path) for mistake in mistakes)
    return spec


_Wrong = tuple[str, object, str, str]  # key path, value, expected, hint


def _tell(wrong: _Wrong) -> Mistake:
    key, value, expected, hint = wrong
    return (key, f"{key} = {quote(value)}", expected, hint)


def _check(spec: BoardSpec) -> Iterator[_Wrong]:
    yield from _check_views(spec)
    yield from _check_seasons(spec)
    yield from _check_numbers(spec)
    yield from _check_sets(spec)
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", spec.name):
        yield ("name", spec.name, "1 to 64 letters, digits, . _ -", "a longer one is the title")
    for key in ("repository", "home"):
        if getattr(spec, key) and not is_link(getattr(spec, key)):
            yield (key, getattr(spec, key), 'an http or https address, or ""', "")
    if not spec.recipients:
        yield ("recipients", "no key", "the public key of at least one organiser", "")
    if spec.kind == "one-shot" and spec.closes is None:
        yield ("kind", spec.kind, "a last day: closes = 2027-03-01", "its scores are shown then")
    if spec.closes is not None and spec.closes < spec.opens:
        yield ("closes", spec.closes.isoformat(), f"a day from {spec.opens} on", "")
    if not spec.types:
        yield ("types", "none", "at least one submission type", "")


def _check_sets(spec: BoardSpec) -> Iterator[_Wrong]:
    for name, queries in spec.sets.items():
        if not re.fullmatch(_NAME, name):
            yield (f"sets.{name}", name, "a name of letters, digits, _ and -", "")
        for key in ("queries", "qrels", "candidates"):
            file = getattr(queries, key)
            if file is not None and (file.startswith("/") or ".." in file.split("/")):
                yield (f"sets.{name}.{key}", file, "a path inside the board", "")


def _check_views(spec: BoardSpec) -> Iterator[_Wrong]:
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
            yield (f"views[{index}].labels", view.labels, "a name of letters, digits, _ and -", "")
        if view.labels is not None and view.set in spec.sets and not spec.sets[view.set].held_out:
            expected = "none: labels in the vault are for queries that have no public ones"
            yield (f"views[{index}].labels", view.labels, expected, "")
        try:
            parse_measure(view.measure)
        except InputError as error:
            first = error.problems[0]
            yield (f"views[{index}].measure", view.measure, first.expected, first.hint)
    if spec.primary not in names:
        yield ("primary", spec.primary, "the name of a view: " + ", ".join(names), "")
    elif not spec.view(spec.primary).public:
        yield ("primary", spec.primary, "a public view", "the score that ranks must be released")


def _check_seasons(spec: BoardSpec) -> Iterator[_Wrong]:
    public = [view.name for view in spec.public_views]
    before: Season | None = None
    for index, season in enumerate(spec.seasons):
        key = f"seasons[{index}]"
        if not re.fullmatch(_NAME, season.name) or season.name in (
            other.name for other in spec.seasons[:index]
        ):
            yield (f"{key}.name", season.name, "a name of its own: letters, digits, _ -", "")
        if season.view not in public:
            yield (f"{key}.view", season.view, "a public view: " + ", ".join(public), "")
        elif any(_set_of(spec, o) == _set_of(spec, season) for o in spec.seasons[:index]):
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


def _set_of(spec: BoardSpec, season: Season) -> str:
    return next((view.set for view in spec.views if view.name == season.view), "")


def _is_within(day: date, season: Season) -> bool:
    return season.opens <= day and (season.closes is None or day <= season.closes)


def _check_numbers(spec: BoardSpec) -> Iterator[_Wrong]:
    most_decimals = 6
    if spec.schema != 1:
        yield ("schema", spec.schema, "1", "this heldout knows version 1")
    if not 1 <= spec.decimals <= most_decimals:
        yield ("decimals", spec.decimals, f"1 to {most_decimals}", "3 is what the real boards show")
    if not 1 <= spec.runs.min_depth <= spec.runs.depth:
        yield ("runs.min_depth", spec.runs.min_depth, f"1 to {spec.runs.depth} (depth)", "")
    for name, most in _LONGEST.items():
        least = int(name in ("quota", "quota_days"))
        if not least <= getattr(spec.policy, name) <= most:
            yield (f"policy.{name}", getattr(spec.policy, name), f"{least} to {most}", "")
    yield from check_rule(spec.release, decimals=spec.decimals)
    if spec.kind == "one-shot" and spec.release.rule != "rounded":
        hint = "scores of a one-shot board are told once, so there is nothing to climb"
        yield ("release.rule", spec.release.rule, "rounded", hint)
    for name in spec.policy.off:
        if name not in RULE_NAMES:
            yield ("policy.off", name, "one of " + ", ".join(RULE_NAMES), "docs/policy.md")


def _place(mistake: Mistake, lines: list[str], path: str) -> Problem:
    key, found, expected, hint = mistake
    return Problem(
        code="board-spec",
        path=path,
        line=_find_line(key, lines),
        found=found,
        expected=expected,
        hint=hint,
    )


def _syntax_problem(error: Exception, lines: list[str], path: str) -> Problem:
    line = max(1, len(lines))
    if isinstance(error, UnicodeDecodeError):
        line = error.object[: error.start].count(b"\n") + 1
    elif where := re.search(r"at line (\d+)", str(error)):
        line = int(where[1])
    return Problem(
        code="not-toml",
        path=path,
        line=line,
        found="a byte that is not UTF-8"
        if isinstance(error, UnicodeDecodeError)
        else re.sub(r" \(at [^()]*\)$", "", str(error)),
        expected="a TOML file in UTF-8",
        hint="text stands in quotes, lists in brackets; a table begins with [name]",
    )


def _find_line(key: str, lines: list[str]) -> int | None:
    """The line of a key path such as `views[1].set`; of its table where the key is absent."""
    best = None
    for place, number in _key_lines(lines).items():
        if key == place:
            return number
        if key.startswith((f"{place}.", f"{place}[")):
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
