"""What a board is: the tables of board.toml, and the rules of a policy, as values.

Nothing here asks a network or looks at a disk. Two tables need a word. `[forge]` says where
submissions are opened; without it the board's address decides. `[trust]` says from when on more of
a ranking is published than its scores: ranges of ranks, shares and counts carry bits about held-out
labels, and counts between two runs that differ in one query give that query's label away
(`heldout.board.standings.standings` says whom an entry is compared with).

`heldout.board.policy.checks` has the check of each policy rule, docs/reference/policy.md the
reason. Sources: Lin et al. 2022, sections 2.2 and 3.3.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from heldout.board.log.final import PARTS, TrustPart
from heldout.board.rules.release import MOST_FINALISTS, Part, ReleaseRule, name_part
from heldout.scoring.fairness import Summary
from heldout.trec.orders import Order

Wrong = tuple[str, object, str, str]
"""Key path as `views[1].set`, the value there, what is expected, a hint or nothing."""


def wrong(code: str, path: str, value: object, /, **words: object) -> Wrong:
    """A mistake in a board.toml.

    Args:
        code: of its texts in `templates/mistakes.toml`.
        path: of the key.
        value: what stands there; `None` where nothing does.
        words: for the braces in the texts.
    """
    row = read_table("mistakes")[code]
    found = "none" if value is None else str(value) if isinstance(value, date) else value
    return path, found, row["expected"].format(**words), row.get("hint", "").format(**words)


def list_wrong(
    path: str, table: object, /, *rows: tuple[object, str, str], **words: object
) -> Iterator[Wrong]:
    """Yield the mistakes of a table whose conditions hold.

    Args:
        path: what stands before its keys.
        table: has the keys as attributes.
        rows: whether it is a mistake, the key, and its code as in `wrong`.
        words: as in `wrong`.
    """
    for found, key, code in rows:
        if found:
            yield wrong(code, f"{path}{key}", getattr(table, key), **words)


@cache
def read_table(name: str) -> Mapping[str, Any]:
    """A table of `templates/`: texts and lists of words that no code depends on."""
    file = files("heldout.board.rules").joinpath("templates", f"{name}.toml")
    return tomllib.loads(file.read_text("utf-8"))


ForgeKind = Literal["github", "gitlab", "forgejo", "folder", "git"]

_HOSTED = ("github", "gitlab", "forgejo")
_KNOWN: Mapping[str, ForgeKind] = {
    "github.com": "github",
    "gitlab.com": "gitlab",
    "codeberg.org": "forgejo",
}
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
_PROJECTS: Mapping[str, str] = {
    "github": f"{_NAME}/{_NAME}",
    "gitlab": f"{_NAME}(/{_NAME}){{1,20}}",  # groups nest
    "forgejo": f"{_NAME}/{_NAME}",
}


class ForgeSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[forge]`: where submissions are opened as pull requests, or left.

    Attributes:
        kind: `github`, `gitlab`, `forgejo` (Gitea too), `folder`, or `git` (a bare repository).
        url: root of the forge, `https://codeberg.org`; of a folder or a repository its path.
        project: `owner/name` on the forge, on GitLab with all its groups; empty for the others.
    """

    kind: ForgeKind
    url: str
    project: str = ""

    @property
    def hosted(self) -> bool:
        """Whether it is asked over HTTP."""
        return self.kind in _HOSTED

    @property
    def host(self) -> str:
        """Scheme, host and port of a hosted forge, `https://codeberg.org`: what a token is for."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}".lower()

    @property
    def clone_url(self) -> str:
        """Address that git fetches from."""
        return f"{self.url.rstrip('/')}/{self.project}.git" if self.hosted else self.url


def parse_forge(address: str) -> ForgeSpec | None:
    """The forge behind a board's `repository`, where its host tells which it is.

    Args:
        address: `https://github.com/owner/name`, with or without `.git`; gitlab.com and
            codeberg.org are known too. Others are named in `[forge]`.

    Returns:
        `None` for anything else, and for an address that carries a name or a password.
    """
    try:
        parts = urlsplit(address)
        host = parts.netloc
    except ValueError:
        return None
    kind = _KNOWN.get(host.lower())
    plain = address.isprintable() and not parts.query and not parts.fragment
    if kind is None or parts.scheme != "https" or not plain:
        return None
    project = parts.path.strip("/").removesuffix(".git")
    spec = ForgeSpec(kind=kind, url=f"https://{host.lower()}", project=project)
    return None if list(check_forge(spec)) else spec


def check_forge(spec: ForgeSpec) -> Iterator[Wrong]:
    """Yield what is wrong with a `[forge]` table."""
    url, project = spec.url, spec.project
    path = bool(url) and url.isprintable() and not url.startswith("-")
    named = re.fullmatch(_PROJECTS.get(spec.kind, ""), project, re.ASCII) and ".." not in project
    yield from list_wrong(
        "forge.",
        spec,
        (not spec.hosted and not path, "url", "forge-path"),
        (not spec.hosted and project, "project", "forge-path-project"),
        (spec.hosted and not _is_root(url), "url", "forge-root"),
        (spec.hosted and not named, "project", "forge-project"),
        spec=spec,
    )


def api_root(spec: ForgeSpec) -> str:
    """Address that the REST calls of a hosted forge begin with, without a slash at its end.

    Source: docs.github.com "Getting started with the REST API" (and its Enterprise Server
    edition, `/api/v3`), docs.gitlab.com "REST API" (`/api/v4`), Forgejo "API Usage" (`/api/v1`).
    """
    root = spec.url.rstrip("/")
    if spec.kind == "github":
        return "https://api.github.com" if root == "https://github.com" else f"{root}/api/v3"
    return f"{root}/api/v4" if spec.kind == "gitlab" else f"{root}/api/v1"


def _is_root(url: str) -> bool:
    """Check whether it is a host, perhaps with a path, over https, or over http on this machine."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    plain = parts.scheme == "http" and host in ("127.0.0.1", "localhost", "::1")
    tidy = re.fullmatch(r"[A-Za-z0-9:/\[\]._~-]+", url) and ".." not in url
    bare = not parts.query and not parts.fragment and parts.username is None
    return bool(host and tidy and bare and (parts.scheme == "https" or plain))


_DAYS = re.compile(r"([1-9][0-9]{0,3}) days?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class Trust(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[trust]`: what is told of the ranking beside the scores, and from when.

    Attributes:
        show: ranges of ranks, records with their significance.
        after: `season`: when the season, or the board, is over. `closing`: when the board was
            closed for good. A delay, `30 days`: an entry so long after it was published. A day,
            `2027-04-01`: what was published before it. What waits for a delay or a day comes with
            the end of the season at the latest.
    """

    show: tuple[TrustPart, ...] = PARTS
    after: str = "season"


def check_trust(trust: Trust) -> Iterator[Wrong]:
    """Yield what is wrong with a `[trust]` table."""
    if len(set(trust.show)) < len(trust.show):
        yield wrong("trust-show", "trust.show", ", ".join(trust.show))
    if trust.after not in ("season", "closing") and _parse_after(trust.after) is None:
        yield wrong("trust-after", "trust.after", trust.after)


def _parse_after(text: str) -> timedelta | date | None:
    """A delay or a day; `None` for anything else."""
    if found := _DAYS.fullmatch(text):
        return timedelta(int(found[1]))
    if not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def due_day(
    trust: Trust, published: date, *, last: date | None, closed: date | None
) -> date | None:
    """The first day on which an entry may be compared.

    Args:
        trust: the rule.
        published: when its score was released.
        last: last day of the board or season, `None` where there is none yet.
        closed: when the board was closed for good, `None` before.

    Returns:
        Never a day before it was published; `None` where the day is not known yet.
    """
    ends = [] if last is None or trust.after == "closing" else [last + timedelta(1)]
    ends += [] if closed is None else [closed]
    days = list(ends)
    after = _parse_after(trust.after)
    if isinstance(after, timedelta):
        days.append(published + min(after, date.max - published))
    elif isinstance(after, date) and published < after:
        days.append(after)
    return max(published, min(days)) if days else None


def say_after(trust: Trust, today: date, *, last: date | None) -> str:
    """Return when figures of what is published today are shown, in words that end a sentence.

    Args:
        trust: the rule.
        today: the day; a day in the rule that is not after it does not count any more.
        last: last day of the board or season, `None` where there is none yet.
    """
    after = _parse_after(trust.after)
    if isinstance(after, timedelta):
        days = "day" if after.days == 1 else "days"
        return f"{after.days} {days} after an entry is published"
    if isinstance(after, date) and today < after:
        return f"from {after:%d %b %Y} on, for entries published before that day"
    if trust.after == "closing" or last is None:
        return "once the board is closed"
    return f"from {last + timedelta(1):%d %b %Y} on"


Kind = Literal["sequential", "one-shot"]
"""`sequential`: scores are released one by one, as on MS MARCO. `one-shot`: all at once after the
last day, as at TREC."""

OpenRuns = Literal["never", "with-consent", "always"]
"""Whose runs are opened at a board's end: nobody's, of teams that agree, of every entry."""

EnvelopeForm = Literal["age", "openssl"]
"""The forms of `heldout.envelope`, named here so that nothing above needs to reach it."""


class QuerySet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[sets.NAME]`: one set of queries that every submission answers.

    Attributes:
        queries: path in the board, `qid<TAB>text`; in the vault where it begins with `labels/`, and
            then nobody but a program in a container sees them.
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

    @property
    def secret(self) -> bool:
        """Whether the queries lie in the vault and nowhere else, too."""
        return self.queries.startswith("labels/")


class View(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[views]]`: query set, labels, measure, who may see it.

    The paths of `queries`, `facets` and `groups` lead into the vault where they begin with
    `labels/`, else into the board.

    Attributes:
        name: what the column is called, and the key in every JSON.
        set: a name of `[sets.NAME]`.
        measure: as ir_measures names it, `RR@10`.
        public: whether its score is released when a submission is published. One that is not is
            scored with every submission and never leaves the vault.
        labels: other labels of the same queries, by name; absent, the set's own. They lie where the
            set's own lie: in the vault, or, of an open set, in the board.
        final: of a view that is not public: whether its score is released after all on the day
            after the last of the board, or of the season.
        finalists: of a final view: the most entries that are scored on it in public, once, after
            the organisers have named them; absent, every entry is.
        queries: path of a list of queries of the set: the mean is over those of them that count.
        facets: path of groups of queries, for `summary`.
        summary: what of the groups' means is told: the mean over all queries, that of the worst
            group, or the gap between the best group and the worst.
        min_group: fewest queries that count of a group; smaller ones are left out.
        groups: path of groups of documents, for AWRF.
        target: group of documents -> the exposure that is fair; absent, the share of the
            documents that each group has.
        training_at_most: lists only entries that state at most so many training pairs.
        part: the part of a held-out set whose queries it is over; absent, all of them. The secret
            key of the set splits it, by `release.feedback` and `release.seasons`.
        noise: standard errors of the noise that the score is published with; absent, none.
    """

    name: str
    set: str
    measure: str
    public: bool = True
    labels: str | None = None
    final: bool = False
    finalists: Annotated[int, Meta(ge=1, le=MOST_FINALISTS)] | None = None
    queries: str | None = None
    facets: str | None = None
    summary: Summary = "mean"
    min_group: Annotated[int, Meta(ge=1, le=1_000_000)] = 10
    groups: str | None = None
    target: dict[str, float] | None = None
    training_at_most: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    part: Part | None = None
    noise: Annotated[float, Meta(ge=1, le=100)] | None = None

    @property
    def for_information(self) -> bool:
        """Whether its score only informs a team: every score is published, and none counts."""
        return self.part == "feedback" or self.noise is not None

    @property
    def part_words(self) -> str:
        """What stands beside the score of a part, or with noise; "" beside others."""
        if self.noise is not None:
            return "with noise (for information only)"
        if self.part == "feedback":
            return "feedback (for information only)"
        return "" if self.part is None else name_part(self.part).removeprefix("the ")

    @property
    def season_part(self) -> int | None:
        """Number of the season part that it is over; `None` for any other view."""
        return self.part if isinstance(self.part, int) else None

    @property
    def files(self) -> tuple[str, ...]:
        """The paths that it names."""
        return tuple(file for file in (self.queries, self.facets, self.groups) if file is not None)


class Season(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[seasons]]`: some of a board's days, with a held-out set, or a part of one, of their own.

    Attributes:
        name: as in addresses and on the page.
        view: the public view that ranks its entries. Its query set is asked of them alone, or is
            the same in seasons that rank by different season parts of it.
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
        seeds: most runs over a query set that may differ by their seed alone and be one
            submission, shown as mean and spread; 1 for none.
    """

    order: Order = "msmarco"
    depth: int = 1000
    min_depth: int = 1
    complete: bool = True
    seeds: Annotated[int, Meta(ge=1, le=20)] = 1


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
    """`[policy]`: the rules' numbers; docs/reference/policy.md has each rule and its reason.

    Attributes:
        quota: most submissions of one team within `quota_days`.
        quota_days: length of the rolling window.
        embargo_months: longest embargo, counted from the day of submission.
        id_days: how far the date in an id may be from the day of submission.
        off: names of rules that this board does not apply, keys of `RULES`.
    """

    quota: Annotated[int, Meta(ge=1, le=1000)] = 2
    quota_days: Annotated[int, Meta(ge=1, le=3660)] = 30
    embargo_months: Annotated[int, Meta(ge=0, le=120)] = 9
    id_days: Annotated[int, Meta(ge=0, le=3660)] = 7
    off: tuple[str, ...] = ()


class Archive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[archive]`: what is opened when the board ends, besides labels, log and scores.

    Attributes:
        runs: whose runs; those of baselines too unless it is `never`.
    """

    runs: OpenRuns = "with-consent"


class Registration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[registration]`: whether teams register, and what they agree to.

    Attributes:
        required: whether a submission has to come from a registered team.
        agreement: path in the board of the text that a team agrees to, if there is one.
        closes: last day on which a new team is taken, UTC.
    """

    required: bool = False
    agreement: str | None = None
    closes: date | None = None


class Programs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[programs]`: whether a submission may be a program, and what one may use.

    Attributes:
        required: whether every submission has to be one.
        memory: MiB, files in memory included.
        disk: MiB in `/tmp`, which lies in memory.
        processors: how many it may use at once.
        processes: most processes and threads at once.
        minutes: longest wall-clock time for all query sets together.
    """

    required: bool = False
    memory: Annotated[int, Meta(ge=1, le=1 << 24)] = 8192
    disk: Annotated[int, Meta(ge=1, le=1 << 24)] = 1024
    processors: Annotated[int, Meta(ge=1, le=4096)] = 2
    processes: Annotated[int, Meta(ge=1, le=1 << 20)] = 512
    minutes: Annotated[int, Meta(ge=1, le=60 * 24 * 30)] = 60


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
        install: address from which participants and the forge's check install heldout; may be
            empty. A name alone could be anybody's on a package index.
        runs: what a run file must be.
        sets: the query sets by name.
        views: at least one, in the order of their columns.
        policy: the rules' numbers.
        release: what a team is told of a true score.
        archive: whose runs are opened when the board ends.
        baselines: what the organisers' own runs do.
        example: a query with its answer; absent, the first with public labels is shown.
        seasons: none, or the board's days one after the other; then `primary` is that of none of
            its own, but the first season's view.
        forge: where submissions are opened as pull requests; absent, git alone is asked.
        registration: whether teams register; absent, there is no registration.
        trust: what is told of the ranking beside the scores; absent, nothing is.
        programs: what a program may use that is sent in place of runs; absent, none is taken.
    """

    schema: int = 1
    name: str
    title: str
    task: str
    opens: date
    closes: date | None = None
    kind: Kind = "sequential"
    primary: str
    decimals: Annotated[int, Meta(ge=1, le=6)] = 3
    denominator: Literal["counted", "all"] = "counted"
    types: tuple[str, ...] = ("full ranking", "reranking")
    envelope: EnvelopeForm = "age"
    recipients: tuple[str, ...]
    contact: str = ""
    submit: str = ""
    repository: str = ""
    home: str = ""
    install: str = ""
    runs: Runs = Runs()
    sets: dict[str, QuerySet]
    views: tuple[View, ...]
    policy: Policy = Policy()
    release: ReleaseRule = ReleaseRule()
    archive: Archive = Archive()
    baselines: Baselines = Baselines()
    example: Example | None = None
    seasons: tuple[Season, ...] = ()
    forge: ForgeSpec | None = None
    registration: Registration | None = None
    trust: Trust | None = None
    programs: Programs | None = None

    def view(self, name: str) -> View:
        """The view of that name; raises KeyError."""
        return next(view for view in self.views if view.name == name)

    def season_on(self, day: date) -> Season | None:
        """The season that takes submissions on a day; `None` for a board without seasons."""
        return next((s for s in self.seasons if _is_within(day, s)), None)

    def on(self, day: date, *, baseline: bool = False) -> "BoardSpec":
        """The rules for what is submitted on a day: those of its season, or of the last before.

        Args:
            day: in UTC.
            baseline: for a baseline, which is scored on all season parts of the set at once, so
                that each season begins with it.
        """
        begun = [season for season in self.seasons if season.opens <= day]
        season = begun[-1] if begun else next(iter(self.seasons), None)
        return self if season is None else self.in_season(season, every_part=baseline)

    def in_season(self, season: Season, *, every_part: bool = False) -> "BoardSpec":
        """The rules of one season: its view ranks, and what is other seasons' is not there.

        That are their query sets, and the views over their parts of its own set.

        Args:
            season: one of `seasons`.
            every_part: leave the views over the other parts of its set in.
        """
        own = self.view(season.view)
        others = {self.view(other.view).set for other in self.seasons} - {own.set}
        return msgspec.structs.replace(
            self,
            primary=season.view,
            sets={name: queries for name, queries in self.sets.items() if name not in others},
            views=tuple(
                view
                for view in self.views
                if view.set not in others and (every_part or view.season_part in (None, own.part))
            ),
        )

    def last_day(self, day: date) -> date | None:
        """The last day of the board, or of the season that a day is in; `None` if there is none."""
        season = self.season_on(day)
        return self.closes if season is None else season.closes

    def last_day_of(self, season: str) -> date | None:
        """The last day of the season of that name, of the board for ""; `None` if there is none."""
        closes = next((one.closes for one in self.seasons if one.name == season), None)
        return self.closes if closes is None else closes

    @property
    def final_views(self) -> tuple[View, ...]:
        """The views on which every entry's score is released after the last day."""
        return tuple(view for view in self.views if view.final and view.finalists is None)

    @property
    def finalists_view(self) -> View | None:
        """The view on which only finalists are scored in public, `None` where there is none."""
        return next((view for view in self.views if view.finalists is not None), None)

    @property
    def public_views(self) -> tuple[View, ...]:
        """The views whose scores are released, in the order of their columns."""
        return tuple(view for view in self.views if view.public)

    @property
    def held_out_views(self) -> int:
        """How many public views follow the release rule: on held-out labels, and may rank."""
        views = (view for view in self.public_views if not view.for_information)
        return sum(self.sets[view.set].held_out for view in views)


def _is_within(day: date, season: Season) -> bool:
    return season.opens <= day and (season.closes is None or day <= season.closes)


FindingSeverity = Literal["reject", "review", "note"]
"""`reject` stands against publication, `review` asks for a person's reason, `note` informs."""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of the policy.

    Attributes:
        severity: of its findings.
        shown: what the public sees of a finding: `all`; `rule`, without the evidence, which may be
            of others; or nothing: what only `organisers` see could tell who is under embargo.
        field: of the metadata that it looks at; "" for none or several.
        again: when it is applied to a published entry again: `amended`, whenever its metadata
            change; `renamed`, where its team shall be another; "" for never.
    """

    severity: FindingSeverity
    shown: Literal["all", "rule", "organisers"]
    field: str = ""
    again: Literal["", "amended", "renamed"] = ""


RULES: Mapping[str, Rule] = msgspec.convert(read_table("policy"), dict[str, Rule])
"""Every rule, in the order in which findings are shown."""
