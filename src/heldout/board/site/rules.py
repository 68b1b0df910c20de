"""The rules of a board in words, how to take part, its files, and its audit trail.

The audit trail is what the public log has of commitments, keys and finals: whoever has stored the
first digest can hold the archive against it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import islice
from typing import NamedTuple

from heldout.answers.text import clean
from heldout.board.log.events import Entry
from heldout.board.rules.release import NOT_CLEAR
from heldout.board.rules.spec import BoardSpec, Example, QuerySet
from heldout.board.rules.template import draft_command
from heldout.board.site.rows import make_columns
from heldout.board.site.sections import say_final
from heldout.board.site.words import count, join_names, name, plain
from heldout.board.standings.season_ends import find_ending, say_season
from heldout.charts.axes import day_words
from heldout.ids import Digest

_ORDERS = {
    "msmarco": "Documents are ordered by the rank column; scores are not asked for.",
    "trec": (
        "Documents are ordered as trec_eval 10 does: by score as float64, ties by document id "
        "descending. The rank column is ignored."
    ),
    "trec9": (
        "Documents are ordered as trec_eval 9 does: by score as float32, ties by document id "
        "descending. The rank column is ignored."
    ),
}

_OPENED = {
    "never": "Runs stay sealed for ever.",
    "with-consent": (
        "The runs of a team are opened too where its metadata say open_runs: true, which can be "
        "changed until then."
    ),
    "always": "So are the runs of every entry: its metadata have to say open_runs: true.",
}

_MOST_NAMES = 5
_PUBLISHING = frozenset(("published", "baseline"))

_SCORING = frozenset(("corrected", "reviewed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustLine:
    """One event that others can check the organisers by.

    Attributes:
        when: its time, `2026-11-20T17:10:00Z`.
        when_words: its day, in words.
        says: what happened.
        why: the organisers' reason, in their words, or "".
        digest: what was committed to, as a salted digest, or "".
        event: its number in the public log.
    """

    when: str
    when_words: str
    says: str
    why: str
    digest: str
    event: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFacts:
    """Sizes of one query set.

    Attributes:
        queries: how many queries a submission answers.
        judged: how many of them a mean is taken over; `None` where nothing was published.
    """

    queries: int
    judged: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardFacts:
    """A board's sizes and addresses.

    Attributes:
        sets: name of a query set -> its sizes.
        events: number of events in the public log.
        head: hash of the last of them.
        example: a query and its answer, `None` where there is none to show.
        repository: address of the board's repository, or "".
        home: address under which `leaderboard/` is published, or ""; permalinks use it.
        trust: what others can check the organisers by, in order.
        closed: when the board was closed for good, `None` before.
        versions: the rules since the first submission, each with its first day, in order.
    """

    sets: Mapping[str, SetFacts] = field(default_factory=dict)
    events: int
    head: Digest
    example: Example | None = None
    repository: str = ""
    home: str = ""
    trust: tuple[TrustLine, ...] = ()
    closed: datetime | None = None
    versions: tuple[tuple[date, BoardSpec], ...] = ()


class Rule(NamedTuple):
    """A rule: what it is about, and what it says."""

    about: str
    says: str


class Download(NamedTuple):
    """A file of the board: its address from `leaderboard/`, its name, what is in it."""

    href: str
    name: str
    holds: str


class Step(NamedTuple):
    """A command of a participant, what it does, and the file to read before."""

    command: str
    does: str
    file: Download | None = None


def list_rules(
    spec: BoardSpec, versions: Sequence[tuple[date, BoardSpec]] = ()
) -> tuple[Rule, ...]:
    """Every rule that board.toml sets, in the order in which a participant meets them.

    Args:
        spec: the rules of today.
        versions: the rules since the first submission, each with its first day, in order; a rule
            that was another one in one of them says since when it holds.
    """
    return tuple(
        Rule(about, says + _say_since(say, says, versions))
        for about, say in _RULES.items()
        if (says := say(spec))
    )


def _say_since(
    say: Callable[[BoardSpec], str], says: str, versions: Sequence[tuple[date, BoardSpec]]
) -> str:
    """The first day of a rule, if there was another one before."""
    others = [n for n, (_, spec) in enumerate(versions) if say(spec) != says]
    if not others or others[-1] + 1 >= len(versions):
        return ""
    return f" In force since {day_words(versions[others[-1] + 1][0])}."


def list_steps(spec: BoardSpec) -> tuple[Step, ...]:
    """The commands that take part; the first one is for boards where teams register."""
    return (
        *_list_registering(spec),
        Step(
            draft_command(map(clean, spec.sets), programs=_asks_programs(spec)),
            "makes a dated id, and says where its folder is with the metadata file to fill in.",
        ),
        Step(
            "heldout check ID",
            "runs the organisers' own checks here, and scores what has public labels.",
        ),
        Step(
            "heldout submit ID",
            "seals the runs so that only the organisers can open them, and sends them.",
        ),
    )


def _asks_programs(spec: BoardSpec) -> bool:
    return spec.programs is not None and spec.programs.required


def _list_registering(spec: BoardSpec) -> tuple[Step, ...]:
    if spec.registration is None:
        return ()
    asks = "shows the agreement and asks, " * (spec.registration.agreement is not None)
    does = f"once, before the first submission: {asks}makes the team's key, and registers it."
    file = next(iter(_list_agreement(spec)), None)
    return (Step('heldout register --team "NAME"', does, file),)


def list_downloads(spec: BoardSpec, facts: BoardFacts) -> tuple[Download, ...]:
    """Every public file that a reader or a participant may want."""
    return (
        Download("leaderboard.csv", "leaderboard.csv", "this table"),
        Download("leaderboard.json", "leaderboard.json", "the same as JSON"),
        Download("feed.xml", "feed.xml", "its news, for feed readers"),
        *(
            file
            for key, queries in spec.sets.items()
            if key in facts.sets
            for file in _set_files(key, queries)
        ),
        *_list_agreement(spec),
        Download("../board.toml", "board.toml", "the rules, as the program reads them"),
        Download(
            "../log.jsonl",
            "log.jsonl",
            f"the public log: {count(facts.events, 'event')}, each with the hash of the last",
        ),
    )


def _list_agreement(spec: BoardSpec) -> tuple[Download, ...]:
    path = None if spec.registration is None else spec.registration.agreement
    if path is None:
        return ()
    file = clean(path.rsplit("/", 1)[-1])
    return (Download(f"../{path}", file, "what a team agrees to"),)


def _set_files(key: str, queries: QuerySet) -> list[Download]:
    words = clean(key)
    found = [] if queries.secret else [(queries.queries, f"{words} queries")]
    if queries.qrels is not None:
        found.append((queries.qrels, f"{words} labels"))
    if queries.candidates is not None:
        found.append((queries.candidates, f"{words} candidates for re-ranking"))
    return [Download(f"../{path}", clean(path.rsplit("/", 1)[-1]), holds) for path, holds in found]


def _say_registration(spec: BoardSpec) -> str:
    registration = spec.registration
    if registration is None:
        return ""
    who = "A submission has to come from a registered team." if registration.required else ""
    agreed = ""
    if registration.agreement is not None:
        agreed = f"To register is to agree to {clean(registration.agreement)}."
    until = ""
    if registration.closes is not None:
        until = f"New teams register until {day_words(registration.closes)}."
    names = "A team's names are sealed for the organisers."
    return " ".join(part for part in (who, agreed, until, names) if part)


def _say_runs(spec: BoardSpec) -> str:
    runs = spec.runs
    exact = runs.min_depth == runs.depth
    depth = f"{runs.depth:,}" if exact else f"{runs.min_depth:,} to {runs.depth:,}"
    noun = "document" if runs.depth == 1 else "documents"
    answered = "Every query" if runs.complete else "A query that is answered"
    rest = "" if runs.complete else " A query without an answer counts 0."
    asked = f"{_say_sets(spec)} {answered} has {depth} {noun}, each once."
    return f"{asked}{rest}{_say_seeds(spec)} {_ORDERS[runs.order]}"


def _say_seeds(spec: BoardSpec) -> str:
    if spec.runs.seeds == 1:
        return ""
    return (
        f" Up to {spec.runs.seeds} runs that differ by their seed alone are one submission, shown "
        "as mean and standard deviation."
    )


def _say_sets(spec: BoardSpec) -> str:
    names = plain(join_names(map(name, spec.sets)))
    if len(spec.sets) == 1:
        return f"A submission is one run, on the {names} queries."
    return f"A submission is a run for each query set: {names}."


def _say_types(spec: BoardSpec) -> str:
    text = f"{' or '.join(map(clean, spec.types))}.".capitalize()
    fixed = any(queries.candidates for queries in spec.sets.values())
    if fixed and "reranking" in spec.types:
        text += " A re-ranking run keeps to the official candidates."
    return text


def _say_sealing(spec: BoardSpec) -> str:
    organisers = count(len(spec.recipients), "organiser's key", "organisers' keys")
    return (
        f"Runs and metadata are sealed with {spec.envelope} to {organisers}; nobody else can open "
        "them."
    )


def _say_quota(spec: BoardSpec) -> str:
    most = count(spec.policy.quota, "submission")
    if spec.kind == "one-shot" and spec.closes is not None:
        return (
            f"At most {most} of a team until {day_words(spec.closes)}. The scores of all entries "
            "are shown after that day; what comes later has no rank."
        )
    return f"At most {most} of a team within {count(spec.policy.quota_days, 'day')}."


def _say_embargo(spec: BoardSpec) -> str:
    if not spec.policy.embargo_months:
        return "Not possible on this board."
    months = count(spec.policy.embargo_months, "month")
    shown = "Date and type" if spec.kind == "one-shot" else "Score, date and type"
    return (
        f"For at most {months} from the day of submission. {shown} are shown "
        "meanwhile; team, description, paper and code on the day that it ends."
    )


def _say_end(spec: BoardSpec) -> str:
    labels = "When the board is closed its labels are opened, so that anyone can score it again."
    return f"{labels} {_OPENED[spec.archive.runs]}"


def _say_dates(spec: BoardSpec) -> str:
    days = count(spec.policy.id_days, "day")
    return (
        "The time of a submission is the time at which it was received. The date in its id may "
        f"differ by {days}."
    )


def _say_release(spec: BoardSpec) -> str:
    if spec.release.rule == "rounded":
        return ""
    return (
        "A score is published where it lies clearly above the best run that anybody has sent, "
        "published or not, the organisers' baselines among them: by more than two paired "
        "standard errors and a secret amount that is drawn for each run. The number carries noise "
        "of one standard error, the same for the same run, and is raised above those published "
        "before where that is needed: the order of the numbers is that of the scores. "
        "An entry whose score "
        f'does not is listed without a rank, as "{NOT_CLEAR}". A run whose score is not '
        f"published raises that best run too, so small steps {_say_small_steps(spec)}."
    )


def _say_small_steps(spec: BoardSpec) -> str:
    own = next((season.name for season in spec.seasons if season.view == spec.primary), "")
    if find_ending(spec, own) is None:
        return "may never be published"
    return (
        "wait for the end of the season: then one entry of each team has its exact score "
        "published, and every entry that had a number"
    )


def _say_informing(spec: BoardSpec) -> str:
    """The columns that only inform a team, and how a split set is split."""
    views = [view for view in spec.public_views if view.for_information]
    split = dict.fromkeys(view.set for view in views if view.part == "feedback")
    cut = dict.fromkeys(view.set for view in spec.public_views if view.season_part is not None)
    noisy = [view for view in views if view.noise is not None]
    says = [
        f"A secret {spec.release.feedback:.0%} of the queries of {clean(name)} are for feedback: "
        "every score on them is published, and the other queries alone decide the ranking."
        for name in split
    ]
    says += [
        f"The queries of {clean(name)} that decide are cut into {spec.release.seasons} secret "
        "parts of equal size, and each season ranks by one of them. Every submission answers all."
        for name in cut
    ]
    says += [
        f"Every score in {clean(view.name)} is published with noise of {view.noise:g} standard "
        "errors, as a check that a run works. The same run has the same noise."
        for view in noisy
    ]
    return " ".join(says)


def _say_ranking(spec: BoardSpec) -> str:
    view, part = spec.view(spec.primary), make_columns(spec)[0].part
    which = f", {part}" if part else ""
    return (
        f"By {view.measure} on {clean(view.set)}{which}, rounded to "
        f"{count(spec.decimals, 'decimal')}; of "
        f"equal scores the earlier submission ranks higher. {_say_trophies(spec)}"
    )


def _say_programs(spec: BoardSpec) -> str:
    programs = spec.programs
    if programs is None:
        return ""
    taken = "must be a program" if programs.required else "may be a program in place of runs"
    limits = (
        f"{programs.memory:,} MiB of memory ({programs.disk:,} of them for files), "
        f"{count(programs.processors, 'processor')}, {programs.processes:,} processes and "
        f"{count(programs.minutes, 'minute')}"
    )
    secret = [name(key) for key, queries in spec.sets.items() if queries.secret]
    hidden = f" The {plain(join_names(secret))} queries are secret." if secret else ""
    return (
        f"A submission {taken}: an image that the organisers run without a network, with "
        f"{limits}.{hidden}"
    )


def _say_trophies(spec: BoardSpec) -> str:
    if spec.kind == "one-shot":
        return (
            "There are no trophies, for all scores are shown at once. Baselines of the organisers "
            "have no rank; their scores are shown from the start."
        )
    return (
        "A trophy marks an entry that scored above everything submitted before it. Baselines of "
        "the organisers have no rank and no trophy."
    )


_RULES: Mapping[str, Callable[[BoardSpec], str]] = {
    "Registration": _say_registration,
    "Runs": _say_runs,
    "Programs": _say_programs,
    "Types": _say_types,
    "Sealing": _say_sealing,
    "How often": _say_quota,
    "Staying anonymous": _say_embargo,
    "At the end": _say_end,
    "Dates": _say_dates,
    "Ranking": _say_ranking,
    "Release of scores": _say_release,
    "For information only": _say_informing,
    "Final": say_final,
    "Not applied here": lambda spec: clean(", ".join(sorted(spec.policy.off))),
}
"""What a rule is about -> what it says; "" where the board has no such rule."""


Heads = Callable[[], Iterable[tuple[str, str | None]]]
"""Gives kind and submission of every event of a log, in order."""


def list_trust(entries: Iterable[Entry], *, heads: Heads) -> tuple[TrustLine, ...]:
    """What others can check the organisers by; an old board's record has none but its keys.

    Args:
        entries: those of a public log that are about no submission, in order.
        heads: of the whole log.
    """
    entries = tuple(entries)
    imported = any(entry.event.kind == "imported-board" for entry in entries)
    shown = (e for e in entries if not (imported and "labels" in e.event.sealed))
    return tuple(_trust_line(e, says, heads) for e in shown if (says := _say_event(e)))


_SAYS = {
    "closed-board": "Closed for good: the archive opens labels, scores by query and the log",
    "opened-final": "Opened the final: the finalists' scores, once, and who wins",
}


def _say_event(entry: Entry) -> str:
    kind = entry.event.kind
    if kind in _SAYS:
        return _SAYS[kind]
    if kind == "named-finalists":
        return f"Named {count(len(entry.event.public['finalists']), 'finalist')}"
    if kind == "ended-season":
        return f"Ended {say_season(entry.event.public['season'])}: exact scores"
    if kind == "rekeyed":
        return f"Keys of the organisers changed ({_say_keys(entry)})"
    if "labels" not in entry.event.sealed:
        return ""
    again = "" if kind == "opened-board" else "again "
    return f"Committed {again}to everything held out that decides a score"


def _say_left_behind(heads: Heads, commitment: Entry) -> str:
    """The entries that were not scored again since, where others were: two sets of labels."""
    if "labels" not in commitment.event.sealed:
        return ""
    every = iter(heads())
    earlier = _list_names(islice(every, commitment.event.seq), _PUBLISHING)
    since = frozenset(_list_names(every, _SCORING)) if earlier else frozenset()
    left = [name for name in earlier if name not in since]
    if not left or len(left) == len(earlier):
        return ""
    more = len(left) - _MOST_NAMES
    names = ", ".join(map(clean, left[:_MOST_NAMES])) + (f" and {more} more" if more > 0 else "")
    return (
        f"; {count(len(earlier) - len(left), 'earlier score')} computed again since, but not "
        f"those of {names}"
    )


def _list_names(heads: Iterable[tuple[str, str | None]], kinds: frozenset[str]) -> list[str]:
    return list(dict.fromkeys(name for kind, name in heads if name is not None and kind in kinds))


def _say_keys(entry: Entry) -> str:
    parts = [
        f"{count(len(changed), 'key')} {word}"
        for field, word in (("added", "added"), ("removed", "dropped"))
        if isinstance(changed := entry.event.public.get(field), Sequence) and changed
    ]
    return ", ".join(parts) or "old ones destroyed"


def _trust_line(entry: Entry, says: str, heads: Heads) -> TrustLine:
    why = entry.event.public.get("why")
    return TrustLine(
        when=entry.event.at,
        when_words=day_words(entry.time),
        says=says + _say_left_behind(heads, entry),
        why=clean(why) if isinstance(why, str) else "",
        digest=entry.event.sealed.get("labels", ""),
        event=entry.event.seq,
    )
