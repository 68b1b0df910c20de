"""What a change of board.toml may change, and what stays fixed.

Fixed are what released scores mean, what ranks them, days that are over, and the organisers' keys.
A score keeps the name of its view for ever. If the view could become another one, old numbers would
stand under a name that says something else, and no audit could tell.

Held-out files: every file `labels/STEM.SUFFIX` counts whose stem a board names: a query set, or the
labels of a view. In a commitment `eval` stands for `labels/eval.qrels`, as boards have had it from
the start, and any other file for itself: `eval.exclude`. `eval.key` is the secret key of a query
set, 32 random bytes. It is committed to as labels are, and never changes: who could choose another
one, once runs are known, would choose what is published.

Labels that were made later: a view that names labels of its own asks nothing new of a run, so an
earlier entry is scored again on them. All other rules hold for what came after them.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import msgspec

from heldout.board.log.history import History
from heldout.board.log.submission import Submission
from heldout.board.rules import days, spec_file
from heldout.board.rules.spec import BoardSpec, View, Wrong, wrong
from heldout.errors import StoreError

_VIEW = (
    *("set", "measure", "labels", "queries", "facets"),
    *("summary", "min_group", "groups", "target", "part", "noise"),
)
"""The keys of a view that say what its score is; the others say who sees it."""

FIXED_BY_SCORES = (
    *("runs.order", "decimals", "denominator", "primary"),
    "release.feedback and release.seasons of a split set",
    *("the set, measure, labels, part and noise of each view", "the files of each set"),
)
"""What `list_changed_terms` holds fixed once a score is published, in words."""

_WORDS = ("name", "title", "task", "contact", "submit", "repository", "home", "install", "example")
_HARMLESS = (*_WORDS, "forge")
"""The top-level keys that decide no score, no key and no quota."""

_SET = ("queries", "qrels")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A key that two board.toml differ in.

    Attributes:
        key: its path, `policy.quota`; an entry of a list stands by its name, `views[eval].measure`.
        before: its value in the first one, `None` where it is absent.
        after: its value in the second one.
    """

    key: str
    before: Any
    after: Any

    @property
    def decides(self) -> bool:
        """Whether a score, a key or a quota may depend on it."""
        return self.key.split(".")[0].split("[")[0] not in _HARMLESS

    def __str__(self) -> str:
        return f"{self.key}: {_shorten(self.before)} -> {_shorten(self.after)}"


def list_differences(before: BoardSpec, after: BoardSpec) -> tuple[Difference, ...]:
    """Every key in which two board.toml differ, in the order of the file."""
    old, new = (dict(_flatten(msgspec.to_builtins(spec), "")) for spec in (before, after))
    return tuple(
        Difference(key=key, before=old.get(key), after=new.get(key))
        for key in {**old, **new}
        if old.get(key) != new.get(key)
    )


def _flatten(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _flatten(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        for one in value:
            yield from _flatten(one, f"{path}[{one.get('name')}]")
    elif value is not None:
        yield path, value


def _shorten(value: object) -> str:
    most = 120
    text = "absent" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= most else f"{text[:most]}…"


def list_changed_keys(before: BoardSpec, after: BoardSpec) -> Iterator[Wrong]:
    """Yield what an edit would change of the organisers' keys: `rekeyed` alone does that.

    Whoever may push to the board could name a key of their own, and read all that comes.
    """
    if before.envelope != after.envelope:
        yield wrong("keys", "envelope", after.envelope, was=before.envelope)
    if before.recipients != after.recipients:
        was, now = map(", ".join, (before.recipients, after.recipients))
        yield wrong("keys", "recipients", now, was=was)


def list_changed_terms(history: History, after: BoardSpec) -> Iterator[Wrong]:
    """Yield what new rules would change of the scores that were told, or are about to be.

    Args:
        history: what the organisers' log says, with every field opened.
        after: the new rules.
    """
    rules = [spec_file.parse_spec(text.encode()) for _, text in reversed(history.rules)]
    named = _list_views(history)
    for index, view in enumerate(after.views):
        if view.name in named:
            # The last rules that had it: what was taken away may not come back as another.
            had = (old for old in rules if view.name in [one.name for one in old.views])
            before = next(had, None)
            if before is not None:
                yield from _compare_views(before, after, view, f"views[{index}]")
    if named:
        yield from _compare_numbers(rules[0], after)
        yield from _compare_splits(rules, named, after)
    yield from _compare_ranks(history, rules[0], after)
    yield from _compare_finals(history, rules, after)


def list_moved_days(history: History, after: BoardSpec, *, now: datetime) -> Iterator[Wrong]:
    """The last days that new rules would move though they are over, or that would open scores.

    What waited for a day that is over was told. Of a one-shot board whose entries wait for their
    day neither the kind changes nor does the day come to lie in the past: who has seen scores and
    then sends a run would have a rank beside those who had not. For the same reason a board that
    told scores one by one becomes no one-shot board.

    Args:
        history: what the organisers' log says.
        after: the new rules.
        now: the moment, UTC.
    """
    today, term = now.date(), days.list_terms(history, now)[-1]
    before = term.spec
    if term.deadline is not None and today > term.deadline and after.kind != "one-shot":
        yield wrong("day-over", "kind", after.kind, was='"one-shot"')
    elif any(map(_is_entry, history.submissions.values())):
        yield from _compare_openings(term, after, today)
    later = before.final_views or before.finalists_view or "" in history.season_ends
    was = term.deadline or (before.closes if later else None)
    if was is not None and today > was and after.closes != was:
        yield wrong("day-over", "closes", after.closes, was=was)
    seasons = {season.name: (i, season) for i, season in enumerate(after.seasons)}
    for season in before.seasons:
        if not before.final_views and season.name not in history.season_ends:
            continue
        index, now_it_is = seasons.get(season.name, (None, None))
        closed = season.closes is not None and today > season.closes
        if closed and now_it_is is not None and now_it_is.closes != season.closes:
            path = f"seasons[{index}].closes"
            yield wrong("day-over", path, now_it_is.closes, was=season.closes)


def _compare_openings(term: days.Term, after: BoardSpec, today: date) -> Iterator[Wrong]:
    """List what would open scores of entries before their day, or seal later ones behind."""
    was = "sequential" if term.deadline is None else "one-shot"
    sealed = term.deadline is not None and today <= term.deadline
    if (sealed or term.deadline is None) and after.kind != was:
        yield wrong("scores-seen", "kind", after.kind, was=f'"{was}"')
    elif sealed and after.closes is not None and after.closes < today:
        yield wrong("scores-early", "closes", after.closes, today=today)


def _list_views(history: History) -> frozenset[str]:
    """The views whose scores were told, or will be by the rules of a submission that waits."""
    every = history.submissions.values()
    scored = {view for s in every for view in (*s.scores, *s.untold, *s.final)}
    if history.final is not None:
        scored.add(history.final.view)
    waiting = (s for s in every if s.pending)
    specs = (spec_file.parse_spec(history.rules_at(s.received).encode()) for s in waiting)
    shown = ({v.name for v in (*s.public_views, *s.final_views)} for s in specs)
    return frozenset(scored.union(*shown))


def _compare_views(before: BoardSpec, after: BoardSpec, view: View, path: str) -> Iterator[Wrong]:
    old = before.view(view.name)
    pairs = [(f"{path}.{key}", getattr(old, key), getattr(view, key)) for key in _VIEW]
    if old.set == view.set:
        own, new = before.sets[view.set], after.sets[view.set]
        pairs += [(f"sets.{view.set}.{k}", getattr(own, k), getattr(new, k)) for k in _SET]
    for key, was, now in pairs:
        if was != now:
            yield wrong("scored-view", key, now, was="none" if was is None else was)


def _compare_numbers(before: BoardSpec, after: BoardSpec) -> Iterator[Wrong]:
    """List what makes a number out of a run: else numbers cannot be compared."""
    if before.runs.order != after.runs.order:
        yield wrong("scored-rule", "runs.order", after.runs.order, was=before.runs.order)
    for key in ("denominator", "decimals"):
        was, now = getattr(before, key), getattr(after, key)
        if was != now:
            yield wrong("scored-rule", key, now, was=was)


def _compare_splits(
    rules: Sequence[BoardSpec], named: Collection[str], after: BoardSpec
) -> Iterator[Wrong]:
    """A split stays as it is, and no set is split of which scores are public already."""
    last = {view.name: (old, view) for old in reversed(rules) for view in old.views}
    known = [pair for name, pair in last.items() if name in named]
    splits: dict[str, float] = {}
    for old, view in known:
        if view.part is not None:
            splits.setdefault("feedback", old.release.feedback)
        if view.season_part is not None:
            splits.setdefault("seasons", old.release.seasons)
    for key, was in splits.items():
        if (now := getattr(after.release, key)) != was:
            yield wrong("scored-split", f"release.{key}", now, was=was)
    shown = [view for old, view in known if view.public and old.sets[view.set].held_out]
    for index, view in enumerate(after.views):
        wider = (None, "deciding") if view.season_part is not None else (None,)
        whole = (one.name for one in shown if one.set == view.set and one.part in wider)
        if view.part is not None and (name := next(whole, "")):
            path = f"views[{index}].part"
            yield wrong("part-published", path, view.part, view=view, name=name)


def _compare_ranks(history: History, before: BoardSpec, after: BoardSpec) -> Iterator[Wrong]:
    """The view by which an entry is ranked stays the same."""
    ranks: dict[str, str] = {}
    for submission in filter(_is_entry, history.submissions.values()):
        day = submission.received.date()
        was, now = before.on(day).primary, after.on(day).primary
        if was != now:
            ranks.setdefault(now, was)
    for now, was in ranks.items():
        index = next((i for i, one in enumerate(after.seasons) if one.view == now), None)
        key = "primary" if index is None else f"seasons[{index}].view"
        yield wrong("ranked-by", key, now, was=was)


def _compare_finals(
    history: History, rules: Sequence[BoardSpec], after: BoardSpec
) -> Iterator[Wrong]:
    """A view with finalists stays one, and is over queries that were never used before.

    Args:
        history: what the log says.
        rules: every rules of the past, the latest first.
        after: the new ones.
    """
    if not any(map(_is_entry, history.submissions.values())):
        return
    was, now = rules[0].finalists_view, after.finalists_view
    if was is not None and (now is None or (now.name, now.set) != (was.name, was.set)):
        yield wrong("finalists-view", "views", _say_final(now), was=_say_final(was))
    most, named = None if now is None else now.finalists, history.final
    if was is not None and named is not None and most != was.finalists:
        yield wrong("finalists-named", "views.finalists", most, was=was.finalists)
    if now is not None and was is None:
        used = (view.name for old in rules for view in old.views if view.set == now.set)
        if name := next(used, ""):
            yield wrong("finalists-used", "views.set", now.set, name=name)


def _say_final(view: View | None) -> str:
    if view is None:
        return "no view with finalists"
    return f"{view.name} on {view.set}, with finalists"


def _is_entry(submission: Submission) -> bool:
    return submission.status in ("published", "imported") and not submission.baseline


_FILE = re.compile(r"([A-Za-z0-9_-]{1,32})\.([a-z]{1,16})", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}(\.[a-z]{1,16})?", re.ASCII)
_DIGEST = re.compile("[0-9a-f]{64}", re.ASCII)
_FOLDER = "labels/"
_LABELS = ".qrels"
_KEY = ".key"
_KEY_TEXT = re.compile(rb"[0-9a-f]{64}\n")


def held_out_name(file: str) -> str | None:
    """Return what a file of `labels/` is called in a commitment; `None` without an effect."""
    return file.removesuffix(_LABELS) if _FILE.fullmatch(file) else None


def held_out_file(name: str) -> str:
    """The inverse of `held_out_name`."""
    return name if "." in name else name + _LABELS


def stem_of(name: str) -> str:
    """The query set, or the labels, that a name in a commitment belongs to."""
    return name.partition(".")[0]


def key_name(query_set: str) -> str:
    """Return what the secret key of a query set is called in a commitment."""
    return f"{query_set}{_KEY}"


def is_key(name: str) -> bool:
    """Check whether a name in a commitment is that of a key."""
    return name.endswith(_KEY)


def needs_key(spec: BoardSpec, query_set: str) -> bool:
    """Check whether some rules need a secret key of a query set."""
    views = [view for view in spec.views if view.set == query_set]
    drawn = any(view.part is not None or view.noise is not None for view in views)
    clear = spec.release.rule == "clear" and any(view.public for view in views)
    return spec.sets[query_set].held_out and (drawn or clear)


def parse_key(data: bytes, *, path: str) -> bytes:
    """The 32 bytes of a key file.

    Raises:
        StoreError: it is none.
    """
    if not _KEY_TEXT.fullmatch(data):
        raise StoreError(
            f"{path} is no key of a query set: expected are 64 digits 0-9a-f and the end of the "
            "line; restore it from the backup"
        )
    return bytes.fromhex(data.decode("ascii"))


def format_key(key: bytes) -> bytes:
    """The inverse of `parse_key`."""
    return f"{key.hex()}\n".encode("ascii")


def open_labels(name: str) -> str:
    """Return where a board has further labels of a set whose own are public."""
    return f"qrels/{name}.qrels"


def list_open(spec: BoardSpec, *sets: str) -> tuple[str, ...]:
    """The files in the board that scores depend on: queries, labels, candidates, those of views.

    Args:
        spec: the rules.
        sets: names of query sets; none for all.
    """
    chosen = [spec.sets[name] for name in sets or spec.sets]
    named = [path for one in chosen for path in (one.qrels, one.candidates)]
    named += [one.queries for one in chosen if not one.secret]
    for view in spec.views:
        if sets and view.set not in sets:
            continue
        named += [path for path in view.files if not path.startswith(_FOLDER)]
        if view.labels is not None and not spec.sets[view.set].held_out:
            named.append(open_labels(view.labels))
    return tuple(sorted({path for path in named if path is not None}))


def names_of_view(view: View) -> frozenset[str]:
    """The held-out files that a view's published scores depend on, as far as there are any."""
    files = (path.removeprefix(_FOLDER) for path in view.files if path.startswith(_FOLDER))
    named = {name for file in files if (name := held_out_name(file)) is not None}
    own = {view.labels or view.set, f"{view.set}.exclude", key_name(view.set)}
    return frozenset({*own, *named})


def names_of_board(spec: BoardSpec) -> frozenset[str]:
    """The same for all views of some rules; a set with public labels has none of its own here."""
    public = {name for name, files in spec.sets.items() if not files.held_out}
    names = (
        names_of_view(view) - ({view.labels, view.set} if view.set in public else set())
        for view in spec.views
    )
    secret = {one.queries.removeprefix(_FOLDER) for one in spec.sets.values() if one.secret}
    return frozenset(secret).union(*names)


def list_stems(spec: BoardSpec, *sets: str) -> frozenset[str]:
    """Return what the names of all held-out files begin with that query sets may depend on.

    Args:
        spec: the rules.
        sets: names of query sets; none for all.
    """
    chosen = sets or tuple(spec.sets)
    names = [names_of_view(view) for view in spec.views if view.set in chosen]
    return frozenset(map(stem_of, frozenset(chosen).union(*names)))


def is_commitment(value: Any) -> bool:
    """Check whether opened digests have the one form of a commitment: name -> SHA-256."""
    return isinstance(value, Mapping) and all(
        isinstance(name, str)
        and _NAME.fullmatch(name)
        and isinstance(digest, str)
        and _DIGEST.fullmatch(digest)
        for name, digest in value.items()
    )


def add_label_views(
    spec: BoardSpec, later: BoardSpec, *, named: Collection[str] | None = None
) -> BoardSpec:
    """Rules of a day with the views of later rules that name labels of their own.

    Under `clear` a view that would publish a score of held-out labels is left out: every entry
    would get one, whether clearly above the best run or not.

    Args:
        spec: the rules of the day.
        later: later ones.
        named: add only views of these names; `None` for all.
    """
    known = {view.name for view in spec.views}
    climbs = {spec.release.rule, later.release.rule} != {"rounded"}
    added = tuple(
        view
        for view in later.views
        if view.labels is not None
        and view.name not in known
        and (named is None or view.name in named)
        and later.sets.get(view.set) == spec.sets.get(view.set)
        and not (view.public and climbs and spec.sets[view.set].held_out)
    )
    return msgspec.structs.replace(spec, views=(*spec.views, *added)) if added else spec


def rules_of_scores(history: History, submission: Submission, named: Collection[str]) -> BoardSpec:
    """The rules that an entry's scores were told by: of its day, and on later labels.

    Args:
        history: up to what is looked at.
        submission: the entry.
        named: views that it was told in.
    """
    rules = spec_file.parse_spec(history.rules_at(submission.received).encode())
    later = spec_file.parse_spec(history.rules[-1][1].encode())
    then = rules.on(submission.received.date(), baseline=submission.baseline)
    return add_label_views(then, later, named=named)


def difference_facts(differences: Iterable[Difference]) -> list[tuple[str, str]]:
    """That board.toml of a clone is not what the log has, and that the log counts."""
    text = "board.toml here is not what the board's log has, and the log counts; ask the organisers"
    lines = [("", str(one)) for one in differences]
    return [("warning", text), *lines] if lines else []
