"""What a decision tells: which scores leave the vault, as which text, and which of them later."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from heldout.board.log.events import SCHEMA
from heldout.board.log.history import hides_tie, list_renamed
from heldout.board.log.submission import Submission
from heldout.board.rules.days import one_shot_deadline
from heldout.board.rules.release import (
    ReleaseRule,
    Told,
    best_released,
    draw_jitter,
    first_bar,
    release,
    release_score,
    release_spread,
    score_vector,
)
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.scores.kept import (
    first_baseline,
    keep_evidence,
    make_evidence,
    make_noisy,
    read_evidence,
    read_kept,
)
from heldout.board.scores.ratchet import Best, find_best, values_of
from heldout.board.scores.score import ViewScore
from heldout.board.scores.session import Session
from heldout.errors import InputError, Problem, StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
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


def tell(
    session: Session, spec: BoardSpec, submission: Submission, views: Mapping[str, ViewScore]
) -> Telling:
    """What a new entry's team is told, by the board's release rule.

    Args:
        session: the organiser's; the history says what the team was told before.
        spec: the rules of its day.
        submission: the entry.
        views: its true scores.

    Raises:
        InputError: code `no-baseline`: by the ratchet, there is nothing to compare it with.
        StoreError: the vault lacks the scores of what it is compared with, or they are of other
            labels.
    """
    scores: dict[str, str] = {}
    held: dict[str, str] = {}
    untold: list[str] = []
    compared: dict[str, str] = {}
    bars: dict[str, str] = {}
    noisy = noisy_scores(session, spec, views)
    for name in (view.name for view in spec.public_views):
        if name in noisy:
            scores[name] = noisy[name]
            continue
        values = score_vector(views[name].per_query, n=views[name].n)
        rule = rule_of(spec, name)
        told, jitter = None, 0.0
        if rule.rule == "ratchet":
            best = _find_best(session, submission, spec.view(name), views[name])
            bars[name], compared[name] = best.run.id, best.digest
            told = Told(text="", values=values_of(best.run))
            key = session.vault.set_key(spec.view(name).set)
            jitter = draw_jitter(key, name, values, values_of(best.baseline))
        elif rule.rule != "rounded":
            bar = _find_bar(session, rule, submission, name)
            if bar is not None:
                bars[name] = bar.id
                told, compared[name] = _told(session, bar, submission, spec.view(name), views[name])
        outcome = release(values, told, rule, decimals=spec.decimals, jitter=jitter)
        if outcome.text is not None:
            scores[name] = outcome.text
            continue
        untold.append(name)
        if rule.rule != "ratchet":
            held[name] = outcome.told.text
    entry = replace(submission, not_above=held, untold=tuple(untold), bars=bars)
    told_now = _place(session, spec, entry, views, scores=scores)
    sealed = {**told_now.sealed, **({"compared": compared} if compared else {})}
    return replace(told_now, sealed=sealed)


def tell_again(
    session: Session, spec: BoardSpec, submission: Submission, views: Mapping[str, ViewScore]
) -> Telling:
    """What an erratum tells: the views that were told before, and no other."""
    noisy = noisy_scores(session, spec, views)
    scores = released(spec, views, held=submission.untold, noisy=noisy)["scores"]
    return _place(session, spec, submission, views, scores=scores)


def released(
    spec: BoardSpec,
    views: Mapping[str, ViewScore],
    *,
    noisy: Mapping[str, str],
    held: Collection[str] = (),
) -> dict[str, dict[str, Any]]:
    """The public views' scores, as they are told where nobody climbs, their n, and their seeds.

    Args:
        spec: the rules.
        views: the true scores.
        noisy: the texts of views with noise, which depend on a key and a baseline.
        held: views whose score is not told; where every score is told nothing is held.
    """
    scores = {}
    for name in (view.name for view in spec.public_views):
        if spec.view(name).noise is not None:
            scores.update({name: noisy[name]} if name in noisy else {})
            continue
        rule = rule_of(spec, name)
        if name in held and rule.rule != "rounded":
            continue
        values = score_vector(views[name].per_query, n=views[name].n)
        plain = rule if rule.rule == "step" else ReleaseRule()
        outcome = release(values, None, plain, decimals=spec.decimals)
        scores[name] = outcome.told.text
    return _told_fields(spec, views, scores)


def _told_fields(
    spec: BoardSpec, views: Mapping[str, ViewScore], scores: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """The fields with released scores: beside each what it is a mean over, queries and seeds."""
    queries = {name: views[name].n for name in scores}
    fields: dict[str, dict[str, Any]] = {"scores": dict(scores), "queries": queries}
    seeds = max((len(score.seeds) for score in views.values()), default=0)
    if not seeds:
        return fields
    return {**fields, "seeds": {"runs": seeds, "spreads": _spreads(spec, views, scores)}}


def _spreads(
    spec: BoardSpec, views: Mapping[str, ViewScore], names: Iterable[str]
) -> dict[str, str]:
    """View -> spread over the seeds; empty for single runs, and of a score with noise."""
    return {
        name: release_spread(views[name].seeds, decimals=spec.decimals)
        for name in names
        if views[name].seeds and spec.view(name).noise is None
    }


def _place(
    session: Session,
    spec: BoardSpec,
    submission: Submission,
    views: Mapping[str, ViewScore],
    *,
    scores: Mapping[str, str],
) -> Telling:
    """Every score where it belongs: told now, or later."""
    known, hidden = _withheld(session, spec, submission)
    fields: dict[str, Any] = {**_told_fields(spec, views, scores), **known}
    final = _final(spec, views)
    last = spec.last_day(submission.received.date())
    over = last is not None and session.now.date() > last
    deadline = one_shot_deadline(session.history())
    waits = deadline is not None and session.now.date() <= deadline and not submission.baseline
    later = {**(fields if waits else {}), **hidden, **(final if not over else {})}
    return Telling(
        public={**({} if waits else fields), **(final if over else {})},
        sealed=later,
        scores=scores,
        spreads=_spreads(spec, views, scores),
    )


def _withheld(
    session: Session, spec: BoardSpec, submission: Submission
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is said of scores that are not told: now, and once no embargo hides anything.

    The best score that a team was told is on the page, beside the entry that has it: to say it of
    another entry says that both are of one team. By the ratchet nothing is ever said of the best
    run: not whose it is, and not how good.
    """
    if spec.release.rule == "ratchet":
        untold = {"untold": list(submission.untold)} if submission.untold else {}
        return untold, {"bars": dict(submission.bars)} if submission.bars else {}
    history, today = session.history(), session.now.date()
    bars = [history.submissions[name] for name in submission.bars.values()]
    renamed = list_renamed(history)
    tied = any(hides_tie(renamed, submission.teams, bar, day=today) for bar in bars)
    hidden = tied or any(one.is_hidden(today) for one in (submission, *bars))
    held = dict(submission.not_above)
    sealed: dict[str, Any] = {"bars": dict(submission.bars)} if submission.bars else {}
    if not held:
        return {}, sealed
    if not hidden:
        return {"not_above": held}, sealed
    return {"untold": list(held)}, {**sealed, "not_above": held}


def _final(spec: BoardSpec, scores: Mapping[str, ViewScore]) -> dict[str, Any]:
    """The field `final`, where the board has such views."""
    given = {view.name: scores[view.name] for view in spec.final_views if view.name in scores}
    if not given:
        return {}
    texts = {name: release_score(one.mean, decimals=spec.decimals) for name, one in given.items()}
    told = {"scores": texts, "queries": {name: one.n for name, one in given.items()}}
    spreads = _spreads(spec, given, given)
    return {"final": {**told, **({"spreads": spreads} if spreads else {})}}


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
        view.name: make_noisy(
            spec,
            view,
            views[view.name],
            _first_score(session, view) or _own_score(view, views, baseline=baseline),
            key=session.vault.set_key(view.set),
        )
        for view in noisy
    }


def _first_score(session: Session, view: View) -> ViewScore | None:
    first = first_baseline(session.vault.entries(), view.name)
    return (
        None
        if first is None
        else read_evidence(session.vault, first.get("evidence")[view.name]).score
    )


def _own_score(view: View, views: Mapping[str, ViewScore], *, baseline: bool) -> ViewScore:
    if baseline:
        return views[view.name]
    raise InputError(
        Problem(
            code="no-baseline",
            path=f"view {view.name}",
            found="no baseline with a score in this view",
            expected="one, for its noise is in standard errors of the first baseline's score",
            hint="heldout board baseline",
        )
    )


def rule_of(spec: BoardSpec, view: str, *, schema: int = SCHEMA) -> ReleaseRule:
    """The board's rule, or plain rounding of a score that anybody can compute, or that informs.

    Args:
        spec: the rules.
        view: its name.
        schema: of the event that released the score: under schema 1 a Ladder's z was for each view.
    """
    named = spec.view(view)
    if named.for_information or not spec.sets[named.set].held_out:
        return ReleaseRule(rule="rounded")
    return spec.release if schema == 1 else spec.held_out_release


def _queries(score: ViewScore) -> set[str]:
    return {query for query, value in score.per_query.items() if value is not None}


def _find_best(session: Session, submission: Submission, view: View, new: ViewScore) -> Best:
    """The best run that anybody has sent.

    Raises:
        InputError: code `no-baseline`.
        StoreError: runs are scored with other labels than those of today, or on other queries.
    """
    best = find_best(
        session.vault.entries(),
        session.history(),
        view,
        lambda one: read_evidence(session.vault, one),
    )
    for run in (best.run, best.baseline):
        if _queries(run.score) != _queries(new):
            raise StoreError(
                f"{run.id}, with which {submission.id} is compared, is scored on other queries; "
                f'score it again first: heldout correct {run.id} --why "…"'
            )
    return best


def _find_bar(
    session: Session, rule: ReleaseRule, submission: Submission, view: str
) -> Submission | None:
    """What a score has to be above: the best that its team was told, or a baseline."""
    history = session.history()
    return best_released(history, submission.teams, view) or first_bar(history, rule, view)


def _told(
    session: Session, bar: Submission, submission: Submission, view: View, new: ViewScore
) -> tuple[Told, str]:
    """What a team was told by an earlier entry, and the digest of the scores that say so.

    Raises:
        StoreError: the vault lacks its scores, or they are of other queries than the new ones.
    """
    kept = read_kept(session.vault, bar)
    if kept is None or view.name not in kept.views:
        raise StoreError(
            f"the vault has no scores of {bar.id} that the log vouches for; restore them from the "
            f'backup, or score it anew: heldout correct {bar.id} --why "…"'
        )
    before = kept.views[view.name]
    if _queries(before) != _queries(new):
        raise StoreError(
            f"{bar.id}, above which this score has to be, was scored on other queries than "
            f'{submission.id}; score it anew first: heldout correct {bar.id} --why "…"'
        )
    told = Told(text=bar.scores[view.name], values=score_vector(before.per_query, n=before.n))
    return told, keep_evidence(session.vault, make_evidence(bar.id, view, kept))


class _Released(Protocol):
    """An entry of the log, or a row of the standings."""

    @property
    def scores(self) -> Mapping[str, str]: ...
    @property
    def spreads(self) -> Mapping[str, str]: ...
    @property
    def seeds(self) -> int: ...


def describe_released(entry: _Released, view: str, spec: BoardSpec) -> str:
    """A score as it was released: `0.412`, `0.412 ± 0.004, 3 seeds`, `0.412, for information only`.

    Args:
        entry: has a score there.
        view: name of the view.
        spec: the board's rules; a view that they have no more is a plain one.
    """
    said = _with_spread(entry.scores[view], entry.spreads.get(view, ""), entry.seeds)
    named = next((one for one in spec.views if one.name == view), None)
    if named is None or not named.for_information:
        return said
    return (
        f"{said}, with noise, for information only"
        if named.noise is not None
        else f"{said}, for information only"
    )


def describe_true(score: ViewScore, *, decimals: int) -> str:
    """A true score, with as many digits as are released."""
    spread = release_spread(score.seeds, decimals=decimals) if score.seeds else ""
    return _with_spread(_format(score.mean, decimals), spread, len(score.seeds))


def _with_spread(score: str, spread: str, seeds: int) -> str:
    return f"{score} ± {spread}, {seeds} seeds" if spread else score


def _format(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"
