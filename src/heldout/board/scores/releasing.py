"""What a decision tells: which scores leave the vault, as which text, and which of them later.

The best run that anybody has sent, in a view: what a new score is compared with by `clear`.

A run counts once an event has answered for it in the view: every baseline, and every published
entry, whether its score was published or not, for good. A submission that was rejected or withdrawn
was never answered. An imported entry has no scores by query, and neither has a baseline from before
runs were kept. Of equally good runs the earlier one counts.

All runs are compared by their scores of today. As long as some are scored with earlier labels than
others, or their scores are not known, nothing is compared.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import takewhile
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heldout.board.log.events import Entry
from heldout.board.log.history import History
from heldout.board.log.submission import Submission
from heldout.board.rules import days, release
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.scores import stored
from heldout.board.scores.score import ViewScore
from heldout.board.scores.session import Session
from heldout.errors import InputError, StoreError, printable

_ANSWERS = ("baseline", "published")
_AGAIN = ("corrected", "reviewed")
_SHOWN = 5
Read = Callable[[str], stored.Evidence]


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """What a new score is compared with in a view.

    Attributes:
        run: the best run that anybody has sent.
        digest: under which the vault keeps its scores by query.
        baseline: the baseline with the best published score, by which the jitter is measured.
    """

    run: stored.Evidence
    digest: str
    baseline: stored.Evidence


def is_answered(submission: Submission, view: str) -> bool:
    """Check whether an event has answered for a run: later runs are held against it."""
    if submission.status != "published" or (submission.baseline and not submission.runs):
        return False
    return view in submission.scores or view in submission.untold


def best_baseline(history: History, view: str) -> Submission | None:
    """The baseline with the best published score in a view; of equal ones the first."""
    known = [s for s in history.submissions.values() if s.baseline and is_answered(s, view)]
    return max(known, key=lambda one: Decimal(one.scores[view]), default=None)


def list_without_baseline(session: Session) -> tuple[str, ...]:
    """The views of today in which no score can be published yet: by `clear`, or with noise.

    By `clear` there is nothing to compare it with; noise is in a baseline's standard errors.
    """
    history, spec = session.history(), session.spec().on(session.now.date())
    clear = spec.release.rule == "clear"
    views = (
        view
        for view in spec.public_views
        if view.noise is not None
        or (clear and spec.sets[view.set].held_out and not view.for_information)
    )
    return tuple(view.name for view in views if best_baseline(history, view.name) is None)


def values_of(score: ViewScore) -> NDArray[np.float64]:
    """Its scores by query, as the release rule takes them."""
    return release.score_vector(score.per_query, n=score.n)


def best_of(runs: Iterable[stored.Evidence]) -> stored.Evidence:
    """The best of some runs by their mean, of equal ones the first.

    Args:
        runs: in the order in which they were answered, scored with the same labels; at least one.

    Raises:
        StoreError: two of them are not scored on the same queries.
    """
    best, *others = runs
    for run in others:
        if _queries(run.score) != _queries(best.score):
            raise StoreError(
                f"{printable(run.id)} is scored on other queries than {printable(best.id)} in view "
                f'{run.view}; score it again first: heldout correct {printable(run.id)} --why "…"'
            )
        best = run if release.is_higher(values_of(run.score), values_of(best.score)) else best
    return best


def find_best(entries: Sequence[Entry], history: History, view: View, read: Read) -> Best:
    """The best run of a view.

    Few files are read: the best of all is the better of the run that was answered last and the one
    that it was compared with. All are read once scores have been made again since.

    Args:
        entries: the vault's log, with every field opened.
        history: what it says.
        view: the view.
        read: gives the evidence of a digest.

    Raises:
        InputError: code `no-baseline`: the view has none.
        StoreError: a run is scored with other labels than those in force, or its scores by query
            are not known.
    """
    baseline = best_baseline(history, view.name)
    if baseline is None:
        wanted = "with which the first score is compared: release.rule is clear"
        raise InputError.of("no-baseline", f"view {view.name}", "no baseline", wanted=wanted)
    last = _list_last(entries, history, view.name)
    names = _list_all(entries, history, view.name) if last is None else last
    asked = list(dict.fromkeys((*names, baseline.id)))
    if not _are_in_force(asked, history, view, read):
        every = _list_all(entries, history, view.name)
        wrong = [name for name in every if not _are_in_force([name], history, view, read)]
        raise StoreError(_say_mixed(view.name, wrong))
    digests = {name: history.submissions[name].evidence[view.name] for name in asked}
    runs = {name: read(digest) for name, digest in digests.items()}
    best = best_of(runs[name] for name in names)
    return Best(run=best, digest=digests[best.id], baseline=runs[baseline.id])


def _list_last(entries: Sequence[Entry], history: History, view: str) -> list[str] | None:
    """The runs of which one is the best, from the last answers; `None` where all have to be asked.

    Answers by another rule do not say what the best run was, so that all back to one that does, or
    to the first, are asked.
    """
    names: list[str] = []
    for entry in reversed(entries):
        name = str(entry.event.submission)
        if entry.event.kind in _AGAIN and view in (entry.get("evidence") or {}):
            return None
        if entry.event.kind not in _ANSWERS or not is_answered(history.submissions[name], view):
            continue
        names.append(name)
        bar = (entry.get("bars") or {}).get(view)
        if bar is not None:
            names.append(bar)
            break
    return list(dict.fromkeys(reversed(names)))


def _list_all(entries: Sequence[Entry], history: History, view: str) -> list[str]:
    """Every run that was answered, in the order of the answers."""
    names = (str(e.event.submission) for e in entries if e.event.kind in _ANSWERS)
    return [name for name in names if is_answered(history.submissions[name], view)]


def _are_in_force(names: Iterable[str], history: History, view: View, read: Read) -> bool:
    """Check whether the scores by query of all these runs are known, by the labels of today."""
    digests = (history.submissions[name].evidence.get(view.name) for name in names)
    return all(
        digest is not None and stored.has_labels_in_force(read(digest), view, history)
        for digest in digests
    )


def _say_mixed(view: str, names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    shown = ", ".join(map(printable, names[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
    listed = " ".join(map(printable, names))
    return (
        f"view {view}: no score is published while {shown} {'is' if len(names) == 1 else 'are'} "
        "not scored with the labels of today, for a new score is compared with the best run; score "
        f'every run again first: heldout correct {listed} --why "…"'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRelease:
    """The fields of an event that hold scores.

    Attributes:
        public: told at once.
        sealed: told once the last day of the board, or of the season, is over.
        scores: view -> text, as the public views have it, whenever they are told.
        spreads: view -> standard deviation over the seeds as text, likewise; empty for one run.
    """

    public: Mapping[str, Any] = field(default_factory=dict)
    sealed: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, str]
    spreads: Mapping[str, str]


def release_entry(
    session: Session, spec: BoardSpec, submission: Submission, views: Mapping[str, ViewScore]
) -> EntryRelease:
    """Return what a new entry's team is told, by the board's release rule.

    Args:
        session: the organiser's; the history says what the team was told before.
        spec: the rules of its day.
        submission: the entry.
        views: its true scores.

    Raises:
        InputError: code `no-baseline`: by `clear`, there is nothing to compare it with.
        StoreError: the vault lacks the scores of what it is compared with, or they are of other
            labels.
    """
    untold: list[str] = []
    compared: dict[str, str] = {}
    bars: dict[str, str] = {}
    noisy = noisy_scores(session, spec, views)
    for view in (view for view in spec.public_views if rule_of(spec, view.name) == "clear"):
        name = view.name
        best = _find_best(session, submission, view, views[name])
        bars[name], compared[name] = best.run.id, best.digest
        values = values_of(views[name])
        jitter = release.draw_jitter(
            session.vault.set_key(view.set), name, values, values_of(best.baseline.score)
        )
        if release.is_clear(values, values_of(best.run.score), jitter=jitter):
            noisy[name] = _number(session, spec, submission, view, views[name])
        else:
            untold.append(name)
    entry = replace(submission, untold=tuple(untold), bars=bars)
    released_now = _assemble(session, spec, entry, views, noisy=noisy)
    sealed = {**released_now.sealed, **({"compared": compared} if compared else {})}
    return replace(released_now, sealed=sealed)


def release_again(
    session: Session, spec: BoardSpec, submission: Submission, views: Mapping[str, ViewScore]
) -> EntryRelease:
    """Release corrected scores: of the views that had a score before, and no other.

    A number with noise has that of the new scores, and stays above those published before it. So
    several entries are corrected in the order in which they were published.
    """
    noisy = noisy_scores(session, spec, views)
    for view in spec.public_views:
        held = view.name in noisy or view.name in submission.untold
        exact = is_exact(submission, view.name)
        if not held and carries_noise(spec, view.name, exact=exact):
            noisy[view.name] = _number(session, spec, submission, view, views[view.name])
    return _assemble(session, spec, submission, views, noisy=noisy)


def _number(
    session: Session, spec: BoardSpec, submission: Submission, view: View, score: ViewScore
) -> str:
    """The number with noise that `clear` publishes of a score."""
    first = _need_first(session, view)
    text = stored.make_noisy(spec, view, score, first, key=session.vault.set_key(view.set))
    entries, history = [*session.vault.log().select(*_ANSWERS)], session.history()
    answered = _list_all(entries, history, view.name)
    before = numbers_before(submission.id, answered, history, view.name)
    return release.raise_number(text, before, decimals=spec.decimals)


def numbers_before(name: str, answered: Iterable[str], history: History, view: str) -> list[str]:
    """The numbers that were published in a view before an entry's.

    Args:
        name: the entry.
        answered: the runs that events have answered for in the view, in their order.
        history: what the log says.
        view: name of the view.
    """
    earlier = (history.submissions[one] for one in takewhile(name.__ne__, answered))
    return [one.scores[view] for one in earlier if view in one.scores and is_answered(one, view)]


def is_exact(entry: "_Released", view: str) -> bool:
    """Tell whether `clear` publishes a score as it is: a baseline's, or after a season's end."""
    return entry.baseline or view in entry.exact


def carries_noise(spec: BoardSpec, view: str, *, exact: bool) -> bool:
    """Tell whether a number has noise: that of its view, or, unless it is exact, of `clear`.

    Args:
        spec: the rules of the entry's day.
        view: name of the view.
        exact: what `is_exact` says.
    """
    clear = rule_of(spec, view) == "clear" and not exact
    return clear or spec.view(view).noise is not None


def list_noisy(spec: BoardSpec, submission: Submission) -> dict[str, str]:
    """View -> number of a submission, of those that carry noise."""
    return {
        view: text
        for view, text in submission.scores.items()
        if carries_noise(spec, view, exact=is_exact(submission, view))
    }


def released(
    spec: BoardSpec,
    views: Mapping[str, ViewScore],
    *,
    noisy: Mapping[str, str],
    errors: Mapping[str, str] = {},
    held: Collection[str] = (),
) -> dict[str, dict[str, Any]]:
    """The public views' scores, as they are told where nobody climbs, their n, and their seeds.

    Args:
        spec: the rules.
        views: the true scores.
        noisy: the numbers with noise, which depend on a key and a baseline.
        errors: what `list_errors` gives.
        held: views whose score is not told; where every score is told nothing is held.
    """
    scores = {}
    for name in (view.name for view in spec.public_views):
        if name in noisy:
            scores[name] = noisy[name]
        elif spec.view(name).noise is None and (
            name not in held or rule_of(spec, name) == "rounded"
        ):
            values = values_of(views[name])
            scores[name] = release.release_mean(values, decimals=spec.decimals)
    # beside each what it is a mean over, queries and seeds
    queries = {name: views[name].n for name in scores}
    fields: dict[str, Any] = {"scores": scores, "queries": queries}
    fields |= {"standard_errors": errors} if errors else {}
    seeds = max((len(score.seeds) for score in views.values()), default=0)
    spreads = spreads_of(spec, views, (name for name in scores if name not in noisy))
    return {**fields, **({"seeds": {"runs": seeds, "spreads": spreads}} if seeds else {})}


def spreads_of(
    spec: BoardSpec, views: Mapping[str, ViewScore], names: Iterable[str]
) -> dict[str, str]:
    """View -> spread over the seeds; empty for single runs.

    Args:
        spec: the rules.
        views: the true scores.
        names: the views, none whose number has noise: two seeds would show which run is luckier.
    """
    return {
        name: release.release_spread(views[name].seeds, decimals=spec.decimals)
        for name in names
        if views[name].seeds
    }


def _assemble(
    session: Session,
    spec: BoardSpec,
    submission: Submission,
    views: Mapping[str, ViewScore],
    *,
    noisy: Mapping[str, str],
) -> EntryRelease:
    """Every score where it belongs: told now, or later."""
    errors = list_errors(session, spec, views)
    fields: dict[str, Any] = released(
        spec, views, held=submission.untold, noisy=noisy, errors=errors
    )
    scores, spreads = fields["scores"], fields.get("seeds", {}).get("spreads", {})
    if submission.untold:
        fields["untold"] = list(submission.untold)
    # Of the best run nothing is ever said: not whose it is, and not how good.
    hidden: dict[str, Any] = {"bars": dict(submission.bars)} if submission.bars else {}
    final = _final(spec, views)
    last = spec.last_day(submission.received.date())
    over = last is not None and session.now.date() > last
    deadline = days.one_shot_deadline(session.history())
    waits = deadline is not None and session.now.date() <= deadline and not submission.baseline
    later = {**(fields if waits else {}), **hidden, **(final if not over else {})}
    return EntryRelease(
        public={**({} if waits else fields), **(final if over else {})},
        sealed=later,
        scores=scores,
        spreads=spreads,
    )


def _final(spec: BoardSpec, scores: Mapping[str, ViewScore]) -> dict[str, Any]:
    """The field `final`, where the board has such views."""
    given = {view.name: scores[view.name] for view in spec.final_views if view.name in scores}
    if not given:
        return {}
    texts = {
        name: release.release_score(one.mean, decimals=spec.decimals) for name, one in given.items()
    }
    fields = {"scores": texts, "queries": {name: one.n for name, one in given.items()}}
    spreads = spreads_of(spec, given, given)
    return {"final": {**fields, **({"spreads": spreads} if spreads else {})}}


def follows_rules(spec: BoardSpec, submission: Submission, views: Mapping[str, ViewScore]) -> bool:
    """Tell whether the release rule gives what was released; of `clear`, where it is a score.

    What `clear` withholds depends on the runs before: the replay goes over it, and draws noise
    again.

    Args:
        spec: the rules of the entry's day.
        submission: as the log has it.
        views: its true scores.
    """
    noisy = list_noisy(spec, submission)
    drawn = {view: text for view, text in noisy.items() if view in submission.evidence}
    held = () if submission.baseline else submission.untold
    fields = released(spec, views, held=held, noisy=drawn)
    untold = {view.name for view in spec.public_views} - fields["scores"].keys()
    names = {*submission.scores, *submission.final}
    later = {view.name for view in spec.final_views}
    if {*submission.untold} != untold or submission.final.keys() - later or names - views.keys():
        return False
    final = {name: views[name] for name in submission.final}
    texts = {n: release.release_score(one.mean, decimals=spec.decimals) for n, one in final.items()}
    counts = {**fields["queries"], **{name: one.n for name, one in final.items()}}
    seeds = {len(views[name].seeds) or 1 for name in names}
    spreads = spreads_of(spec, views, names - noisy.keys())
    now = (fields["scores"], texts, counts, spreads)
    then = (submission.scores, submission.final, submission.counts, submission.spreads)
    return now == then and seeds <= {submission.seeds}


def noisy_scores(
    session: Session, spec: BoardSpec, views: Mapping[str, ViewScore], *, baseline: bool = False
) -> dict[str, str]:
    """View -> text of the public views whose scores are published with noise.

    Args:
        session: the organiser's; the log says which baseline was first.
        spec: the rules of the entry's day.
        views: its true scores.
        baseline: whether it is a baseline; the first one has noise in units of its own.

    Raises:
        InputError: code `no-baseline`: the noise is in standard errors of a baseline's score.
        StoreError: the vault lacks the key, or what the first baseline was told for.
    """
    noisy = [view for view in spec.public_views if view.noise is not None and view.name in views]
    return {
        view.name: stored.make_noisy(
            spec,
            view,
            views[view.name],
            _need_first(session, view, own=views[view.name] if baseline else None),
            key=session.vault.set_key(view.set),
        )
        for view in noisy
    }


def list_errors(
    session: Session, spec: BoardSpec, views: Mapping[str, ViewScore]
) -> dict[str, str]:
    """View for information only -> standard error of its score, as text.

    Args:
        session: the organiser's; the log says which baseline was first. Without one, this is.
        spec: the rules of the entry's day.
        views: its true scores.
    """
    errors = {}
    for view in (one for one in spec.public_views if one.for_information and one.name in views):
        score = views[view.name]
        first = None if view.noise is None else _first_score(session, view)
        errors[view.name] = error_of(spec, view, score, first or score)
    return {name: text for name, text in errors.items() if text}


def error_of(spec: BoardSpec, view: View, score: ViewScore, first: ViewScore) -> str:
    """Return the standard error of a score that only informs, as text; "" for a group's mean.

    With noise it is the same for every entry, that of a score which varies over queries as the
    first baseline's does: its own would say what the noise hides.

    Args:
        spec: the rules of its day.
        view: one whose scores are for information only.
        score: the true score.
        first: that of the first baseline.

    Returns:
        `sd / sqrt(n)`, with noise times `sqrt(noise^2 + 1)`.
    """
    if view.summary != "mean":
        return ""
    error = release.standard_error(values_of(score if view.noise is None else first))
    return release.release_score(error * math.hypot(view.noise or 0, 1), decimals=spec.decimals)


def _first_score(session: Session, view: View) -> ViewScore | None:
    first = stored.first_baseline(session.vault.log().entries(), view.name)
    return (
        None
        if first is None
        else stored.read_evidence(session.vault, first.get("evidence")[view.name]).score
    )


def _need_first(session: Session, view: View, *, own: ViewScore | None = None) -> ViewScore:
    """Return the first baseline's score, or a new baseline's own where there was none before."""
    first = _first_score(session, view) or own
    if first is not None:
        return first
    wanted = "with a score in this view: its noise is in standard errors of the first one's score"
    raise InputError.of("no-baseline", f"view {view.name}", "no such baseline", wanted=wanted)


def rule_of(spec: BoardSpec, view: str) -> release.RuleName:
    """The board's rule, or plain rounding of a score that anybody can compute, or that informs."""
    named = spec.view(view)
    if named.for_information or not spec.sets[named.set].held_out:
        return "rounded"
    return spec.release.rule


def _queries(score: ViewScore) -> set[str]:
    return {query for query, value in score.per_query.items() if value is not None}


def _find_best(session: Session, submission: Submission, view: View, new: ViewScore) -> Best:
    """The best run that anybody has sent.

    Raises:
        InputError: code `no-baseline`.
        StoreError: runs are scored with other labels than those of today, or on other queries.
    """
    best = find_best(
        [
            entry
            for entry in session.vault.log().select(*_ANSWERS, *_AGAIN)
            if entry.event.kind != "reviewed" or "evidence" in entry.event.sealed
        ],
        session.history(),
        view,
        lambda one: stored.read_evidence(session.vault, one),
    )
    for run in (best.run, best.baseline):
        if _queries(run.score) != _queries(new):
            raise StoreError(
                f"{run.id}, with which {submission.id} is compared, is scored on other queries; "
                f'score it again first: heldout correct {run.id} --why "…"'
            )
    return best


class _Released(Protocol):
    """An entry of the log, or a row of the standings."""

    @property
    def scores(self) -> Mapping[str, str]: ...
    @property
    def spreads(self) -> Mapping[str, str]: ...
    @property
    def standard_errors(self) -> Mapping[str, str]: ...
    @property
    def seeds(self) -> int: ...
    @property
    def baseline(self) -> bool: ...
    @property
    def exact(self) -> Collection[str]: ...


def describe_released(entry: _Released, view: str, spec: BoardSpec) -> str:
    """A score as it was released: `0.412`, `0.412 ± 0.004, 3 seeds`, `0.412, SE 0.012, with noise`.

    Args:
        entry: has a score there.
        view: name of the view.
        spec: the board's rules; a view that they have no more is a plain one.
    """
    said = _with_spread(entry.scores[view], entry.spreads.get(view, ""), entry.seeds)
    named = next((one for one in spec.views if one.name == view), None)
    if named is None:
        return said
    noisy = carries_noise(spec, view, exact=is_exact(entry, view))
    error = entry.standard_errors.get(view, "")
    said += f", SE {error}" if error else ""
    return said + ", with noise" * noisy + ", for information only" * named.for_information


def describe_true(score: ViewScore, *, decimals: int) -> str:
    """A true score, with as many digits as are released."""
    spread = release.release_spread(score.seeds, decimals=decimals) if score.seeds else ""
    return _with_spread(f"{score.mean:.{decimals}f}", spread, len(score.seeds))


def _with_spread(score: str, spread: str, seeds: int) -> str:
    return f"{score} ± {spread}, {seeds} seeds" if spread else score
