"""Goes over every release of a log by the rule of its day: was each told just what it had to be?

Event by event, with what the log said before it: what the rule makes of the score, and what was
published. A score that was withheld must have been rightly withheld, a number must be that which
the rule gives, and labels must be those that held on the day. Under `clear` the best run of
each day is found again from the scores of all runs before it, and the jitter is drawn again with
the key of the query set, as are noise and the parts of a split set.

It needs the scores by query that the events name. The organisers have them, and the archive of a
closed board.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from heldout.board.log.events import Entry
from heldout.board.log.final import order_by_receipt
from heldout.board.log.history import History, follow_history
from heldout.board.log.submission import Submission, apply_event
from heldout.board.organiser.finals import end_fields, final_fields
from heldout.board.rules import changes, release, spec_file
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.scores import releasing
from heldout.board.scores.score import ViewScore
from heldout.board.scores.stored import (
    Evidence,
    follows_on,
    has_labels_in_force,
    is_score_of,
    make_noisy,
)
from heldout.errors import HeldoutError, quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What going over a log gave.

    Attributes:
        releases: scores that were gone over, told or withheld.
        faults: what was told and is not right, or cannot be shown to be: entry, view, what was
            told, what is right.
        notes: what could not be gone over, and why.
    """

    releases: int
    faults: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Runs:
    """The runs that events have answered for in a view so far, and the best of them.

    Attributes:
        digests: id -> digest of its scores by query of today, in the order of the answers.
        compared: how many of them `best` is the best of.
        best: the best of these.
        labels: what the log committed to when it was found.
    """

    digests: dict[str, str | None] = field(default_factory=dict)
    compared: int = 0
    best: Evidence | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def forget(self) -> None:
        """Scores have changed, so the best is to be found again."""
        self.compared, self.best = 0, None


@dataclass(slots=True)
class _Findings:
    """What was found so far, and where its evidence is.

    Attributes:
        read, read_key, read_queries: as `replay_releases` has them.
        runs: view -> the runs that `clear` knows.
        first: view -> digest of the scores by query of the first baseline, as published first.
        releases, faults, notes: of the result.
    """

    read: Callable[[str], Evidence]
    read_key: Callable[[str, str], bytes]
    read_queries: Callable[[str], Collection[str]]
    runs: dict[str, _Runs] = field(default_factory=dict)
    first: dict[str, str | None] = field(default_factory=dict)
    releases: int = 0
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """An event that tells scores.

    Attributes:
        entry: as it is logged.
        before: what the log said before it.
        submission: as it was before.
        spec: the rules of its day.
        scores, final: view -> text.
        untold: the views whose score is not published.
        queries: view -> how many.
    """

    entry: Entry
    before: History
    submission: Submission
    spec: BoardSpec
    scores: Mapping[str, str]
    untold: tuple[str, ...]
    final: Mapping[str, str]
    queries: Mapping[str, int]

    @property
    def title(self) -> str:
        """How a finding names it."""
        return f"event {self.entry.event.seq}: {quote(self.submission.id)}"

    @property
    def views(self) -> tuple[View, ...]:
        """What it has to tell, now or later."""
        later = tuple(view for view in self.spec.final_views if view.name in self.final)
        return (*self.spec.public_views, *later)

    @property
    def waits(self) -> bool:
        """Whether its scores are sealed until a day."""
        return "scores" in self.entry.event.sealed and "scores" not in self.entry.opened

    def rule(self, view: str) -> release.RuleName:
        """The release rule of a view."""
        return releasing.rule_of(self.spec, view)


def replay_releases(
    entries: Iterable[Entry],
    read: Callable[[str], Evidence],
    read_key: Callable[[str, str], bytes],
    read_queries: Callable[[str], Collection[str]],
) -> Replay:
    """Go over every release of a log.

    Args:
        entries: a verified log, with as many fields opened as may be.
        read: gives the evidence of a digest, or raises StoreError where it is not here.
        read_key: likewise gives the key of a query set by its name in a commitment and its digest.
        read_queries: gives the ids of a set's queries by the path in board.toml.

    Raises:
        StoreError: the log is not one of events as heldout writes them.
    """
    found = _Findings(read=read, read_key=read_key, read_queries=read_queries)
    for entry, before in follow_history(entries):
        if entry.event.kind in ("opened-final", "ended-season"):
            _replay_final(entry, before, found)
            continue
        name = quote(entry.event.submission)
        digests = entry.get("evidence")
        if "evidence" not in entry.event.sealed:
            found.faults.append(
                f"event {entry.event.seq}: {name}: does not name the evidence of its score"
            )
        elif digests is None:
            found.notes.append(f"{name}: the evidence of its scores is not opened")
        else:
            _go_over(_read_event(entry, before), digests, found)
        _follow(entry, before, found)
    return Replay(
        releases=found.releases,
        faults=tuple(dict.fromkeys(found.faults)),
        notes=tuple(dict.fromkeys(found.notes)),
    )


def _replay_final(entry: Entry, before: History, found: _Findings) -> None:
    """Every score of a final or a season's end, and what follows: who wins, and the luck."""
    spec = spec_file.parse_spec(before.rules_at(entry.time).encode())
    view: View | None
    digests: Mapping[str, str] | None
    if entry.event.kind == "ended-season":
        title, known = f"event {entry.event.seq}: the season's end", before.submissions
        view = next((view for view in spec.views if view.name == entry.get("view")), None)
        names = order_by_receipt(entry.get("final_scores"), known)
        found_now = {n: known[n].evidence.get(entry.get("view"), "") for n in names}
        digests = found_now if all(found_now.values()) else None
    else:
        title, view = f"event {entry.event.seq}: the final", spec.finalists_view
        names = () if before.final is None else before.final.finalists
        digests = entry.get("evidence")
    if digests is None:
        found.notes.append(f"{title}: what its scores were published for is not opened")
        return
    if not names or view is None:  # `list_early_finals` and `list_wrong_ends` say so
        return
    evidence: dict[str, Evidence] = {}
    try:
        for name in names:
            evidence[name] = found.read(digests[name])
            found.releases += 1
            where = f"{title}: {quote(name)}"
            found.faults += [f"{where} {one}" for one in _check_finalist(evidence, name, view)]
            found.faults += [f"{where} {f}" for f in _check_labels(evidence[name], view, before)]
        make = end_fields if entry.event.kind == "ended-season" else final_fields
        right = make(view, evidence, decimals=spec.decimals)
    except (HeldoutError, ValueError, LookupError) as error:
        found.faults.append(f"{title} cannot be gone over: {error}")
        return
    for field_name, value in right.items():
        if entry.get(field_name) != value:
            published = f"{title}: {field_name} is {quote(str(entry.get(field_name)))}"
            found.faults.append(f"{published}, but the rule gives {quote(str(value))}")


def _check_finalist(evidence: Mapping[str, Evidence], name: str, view: View) -> Iterator[str]:
    """Yield where a finalist's evidence is not a score of that entry and view."""
    one = evidence[name]
    if (one.id, one.view) != (name, view.name):
        yield f"has the scores of {quote(one.id)} in view {quote(one.view)}"
    if one.score.measure != view.measure or not is_score_of(view, one.score):
        yield f"has a mean that is not that of its scores by query, or they are no {view.measure}"


def _read_event(entry: Entry, before: History) -> _Event:
    name = str(entry.event.submission)
    known = before.submissions.get(name)
    submission = known or Submission(
        id=name,
        received=entry.time,
        files={},
        status="received",
        baseline=entry.event.kind == "baseline",
    )
    final = entry.get("final") or {"scores": {}, "queries": {}}
    return _Event(
        entry=entry,
        before=before,
        submission=submission,
        spec=changes.rules_of_scores(before, submission, entry.get("evidence") or ()),
        scores=entry.get("scores") or {},
        untold=tuple(entry.get("untold") or ()),
        final=final["scores"],
        queries={**(entry.get("queries") or {}), **final["queries"]},
    )


def _follow(entry: Entry, before: History, found: _Findings) -> None:
    """Note which runs later ones are compared with, by their scores after this event."""
    name = str(entry.event.submission)
    after = apply_event(before.submissions.get(name), entry, name)
    for view in after.scores if after.baseline else ():
        found.first.setdefault(view, after.evidence.get(view))
    for view in (*after.scores, *after.untold):
        if not releasing.is_answered(after, view):
            continue
        runs = found.runs.setdefault(view, _Runs())
        digest = after.evidence.get(view)
        if name in runs.digests and runs.digests[name] != digest:
            runs.forget()
        runs.digests[name] = digest


def _go_over(event: _Event, digests: Mapping[str, str], found: _Findings) -> None:
    """Go over every view that is told, and none besides; or what was scored again in silence."""
    silent = event.entry.event.kind == "reviewed"
    views = [view for view in event.spec.views if view.name in digests] if silent else event.views
    published = () if silent else {*event.scores, *event.untold, *event.final}
    for name in sorted({*published} - {view.name for view in views}):
        found.faults.append(f"{event.title}: publishes {quote(name)}, which no rule releases")
    for view in views:
        where = f"{event.title}, view {view.name}"
        try:
            score = _read_score(event, view, digests, found)
            found.faults += [f"{where}: {fault}" for fault in _check_score(event, view, score)]
            found.faults += [f"{where}: {one}" for one in _check_part(event, view, score, found)]
            if silent:
                _check_silent(event, view, score, found, where)
            else:
                _check_release(event, view, score, found, where)
        except (HeldoutError, ValueError) as error:
            found.faults.append(f"{where}: cannot be gone over: {error}")
        found.releases += not silent


def _check_silent(event: _Event, view: View, score: Evidence, found: _Findings, where: str) -> None:
    """Check that a run that was scored again in silence has other scores by other labels alone."""
    known = event.submission.evidence.get(view.name)
    if known is not None and not follows_on(found.read(known), score, score.labels):
        why = "scored again in silence, with other scores by query by the same labels"
        found.faults.append(f"{where}: {why}")


def _read_score(
    event: _Event, view: View, digests: Mapping[str, str], found: _Findings
) -> Evidence:
    """Return what a view was told for.

    Raises:
        StoreError: it is not here.
        ValueError: it is of something else.
    """
    if view.name not in digests:
        raise ValueError("the event does not name the evidence of its score")
    score = found.read(digests[view.name])
    if (score.id, score.view) != (event.submission.id, view.name):
        raise ValueError(f"it names the scores of {quote(score.id)} in view {quote(score.view)}")
    return score


def _check_score(event: _Event, view: View, evidence: Evidence) -> Iterator[str]:
    """It is a score of that view, by labels that were committed to then."""
    score = evidence.score
    if score.measure != view.measure:
        yield f"measured as {quote(score.measure)}, by the rules it is {view.measure}"
    elif not is_score_of(view, score):
        yield f"its mean is not that of its scores by query, or they are none of {view.measure}"
    published = event.queries.get(view.name, score.n)
    if published != score.n:
        yield f"published as a mean over {published} queries, but it is a mean over {score.n}"
    yield from _check_labels(evidence, view, event.before)


def _check_part(event: _Event, view: View, evidence: Evidence, found: _Findings) -> Iterator[str]:
    """It is over queries of the view's part, as the key draws it."""
    if view.part is None:
        return
    every = found.read_queries(event.spec.sets[view.set].queries)
    key = _read_key(view, evidence, found)
    part = release.split_queries(key, every, event.spec.release)[view.part]
    strange = evidence.score.per_query.keys() - part
    if strange:
        yield f"scored on {len(strange):,} queries that are not in {release.name_part(view.part)}"


def _check_labels(evidence: Evidence, view: View, before: History) -> Iterator[str]:
    needed = changes.names_of_view(view) & before.labels.keys()
    for name in sorted(needed | evidence.labels.keys()):
        if before.labels.get(name) != evidence.labels.get(name):
            yield f"scored with other labels than were committed to on that day: {quote(name)}"


def _check_release(
    event: _Event, view: View, score: Evidence, found: _Findings, where: str
) -> None:
    """Check that what was published is what the rule gives."""
    name = view.name
    if event.waits and view.public:
        found.notes.append(f"{where}: not published yet")
        return
    if not view.public:
        right = release.release_score(score.score.mean, decimals=event.spec.decimals)
        published = event.final[name]
    else:
        right = _held_before(event, name) or _apply_rule(event, view, score, found, where)
        published = event.scores.get(name) or (
            release.NOT_CLEAR if name in event.untold else "nothing"
        )
    if view.for_information and view.public:
        first = score.score if view.noise is None else _first_score(event, view, score, found)
        right += f", SE {releasing.error_of(event.spec, view, score.score, first) or 'none'}"
        errors = event.entry.get("standard_errors") or {}
        published += f", SE {errors.get(name, 'none')}"
    if published != right or (name in event.scores and name in event.untold):
        found.faults.append(
            f"{where}: published {quote(published)}, but the rule gives {quote(right)}"
        )


def _held_before(event: _Event, view: str) -> str:
    """Return what an erratum says of a view that was withheld before; "" for any other."""
    known = event.before.submissions.get(event.submission.id)
    if event.entry.event.kind != "corrected" or known is None or event.rule(view) == "rounded":
        return ""
    return release.NOT_CLEAR if view in known.untold else ""


def _apply_rule(event: _Event, view: View, score: Evidence, found: _Findings, where: str) -> str:
    """Return what the rule lets out, in the words of the page."""
    decimals = event.spec.decimals
    values = releasing.values_of(score.score)
    exact = event.entry.event.kind == "baseline" or releasing.is_exact(event.submission, view.name)
    if not releasing.carries_noise(event.spec, view.name, exact=exact):
        return release.release_mean(values, decimals=decimals)
    key = _read_key(view, score, found)
    clear = view.noise is None
    if clear and event.entry.event.kind == "published":
        best = releasing.values_of(_find_best(event, view, found, where).score)
        first = releasing.best_baseline(event.before, view.name)
        if first is None:
            raise ValueError("there was no baseline by which its jitter is measured")
        base = releasing.values_of(found.read(first.evidence[view.name]).score)
        if not release.is_clear(
            values, best, jitter=release.draw_jitter(key, view.name, values, base)
        ):
            return release.NOT_CLEAR
    first_score = _first_score(event, view, score, found)
    text = make_noisy(event.spec, view, score.score, first_score, key=key)
    answered = found.runs.get(view.name, _Runs()).digests if clear else ()
    before = releasing.numbers_before(event.submission.id, answered, event.before, view.name)
    return release.raise_number(text, before, decimals=decimals)


def _first_score(event: _Event, view: View, score: Evidence, found: _Findings) -> ViewScore:
    """The score of the first baseline, in whose standard errors noise is.

    Raises:
        StoreError: it is not here.
        ValueError: there was none, or what it has as evidence is missing.
    """
    if view.name not in found.first and event.entry.event.kind == "baseline":
        return score.score
    digest = found.first.get(view.name)
    if digest is None:
        raise ValueError("there was no baseline in whose standard errors its noise is")
    return found.read(digest).score


def _read_key(view: View, score: Evidence, found: _Findings) -> bytes:
    """The key that a score was told with.

    Raises:
        StoreError: it is not here.
        ValueError: the event does not say which it was.
    """
    name = changes.key_name(view.set)
    if name not in score.labels:
        raise ValueError(f"the evidence of the score does not name the key {name}")
    return found.read_key(name, score.labels[name])


def _find_best(event: _Event, view: View, found: _Findings, where: str) -> Evidence:
    """The best run that anybody had sent: by all scores before, and as the event says it was.

    Raises:
        StoreError: scores are not here.
        ValueError: a run was not scored with the labels of that day, or there was none.
    """
    runs = found.runs.get(view.name, _Runs())
    if runs.labels != event.before.labels:
        runs.forget()
        runs.labels = event.before.labels
    for name, digest in list(runs.digests.items())[runs.compared :]:
        run = None if digest is None else found.read(digest)
        if run is None or not has_labels_in_force(run, view, event.before):
            raise ValueError(f"{quote(name)} was not scored with the labels of that day")
        runs.best = run if runs.best is None else releasing.best_of((runs.best, run))
        runs.compared += 1
    if runs.best is None:
        raise ValueError("there was no run with which to compare it")
    right = (runs.best.id, runs.digests[runs.best.id])
    named = (event.entry.get("bars") or {}).get(view.name)
    used = (named, (event.entry.get("compared") or {}).get(view.name))
    if used != right:
        other = ", by other scores" if used[0] == right[0] else ""
        found.faults.append(
            f"{where}: compared with {'nothing' if named is None else quote(named)}{other}, but "
            f"the rule gives {quote(right[0])}"
        )
    return runs.best
