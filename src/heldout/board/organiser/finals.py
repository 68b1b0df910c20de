"""A final: who is in it, and its one opening; and the end of a season under `clear`.

Every submission brings a run for the final's queries, which is scored in the vault. Nothing of
these scores leaves it but those of the finalists, in one event, after the last day. The end of a
season is the same in the view that ranks it, with an entry for each team.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heldout.board.log.final import Final, SeasonEnd, order_by_receipt
from heldout.board.log.submission import Submission
from heldout.board.rules import changes, release
from heldout.board.rules.spec import View
from heldout.board.scores.session import Session, commit_held_out, list_unlogged
from heldout.board.scores.stored import (
    Evidence,
    ScoreFile,
    digest_evidence,
    has_labels_in_force,
    make_evidence,
    read_evidence,
    read_stored,
    store_evidence,
)
from heldout.board.standings import overdue
from heldout.errors import InputError, Problem, StoreError, quote


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalStep:
    """What a call did.

    Attributes:
        final: as the log has it now.
        event: number of the event that was logged, `None` where the log said the same before.
    """

    final: Final
    event: int | None = None


def name_finalists(session: Session, ids: Sequence[str], *, why: str = "") -> FinalStep:
    """Name the entries that the final view scores, or others than before, until it is opened.

    Several may be of one team: whoever has many names would have several finalists anyway, so a
    rule against it would bind only teams that give one name. The luck that is printed counts each.

    Args:
        session: its lock is held.
        ids: published entries, in any order.
        why: the reason, needed where others were named before; it is public.

    Raises:
        InputError: the board has no such view, the final was opened, there are too many, one is
            named twice or can be no finalist, or a reason is missing; nothing was logged.
        StoreError: the vault lacks the scores of one.
    """
    view, before = find_final_view(session), session.history().final
    chosen = _choose(session, view, ids)
    if before is not None and before.finalists == tuple(chosen):
        return FinalStep(final=before)
    if before is not None and before.opened is not None:
        found = f"other finalists, after the final was opened on {before.opened.at:%d %b %Y}"
        raise InputError.of("final-opened", f"view {view.name}", found)
    if before is not None and not why:
        raise InputError(_need_reason(view, f"other finalists than {', '.join(before.finalists)}"))
    public = {"view": view.name, "finalists": chosen, "why": why}
    return _log(session, "named-finalists", public, {})


def open_final(session: Session, *, why: str = "") -> FinalStep:
    """Publish the finalists' scores on the final view, and who wins; cannot be taken back.

    Called again it logs nothing, unless the scores are others by now: labels were corrected, with
    a reason (`heldout correct`), and every finalist was scored again. Then the reason of that is
    asked for, and both events stay in the log.

    Args:
        session: its lock is held.
        why: the reason, needed where the final was opened before; it is public.

    Raises:
        InputError: the board has no such view, the last day is not over, nobody is named, or a
            reason is missing; nothing was logged.
        StoreError: the vault lacks scores by the labels that the log commits to.
    """
    view, before = find_final_view(session), session.history().final
    last = session.spec().closes
    if last is None or session.now.date() <= last:
        raise InputError.of(
            "final-too-early", f"view {view.name}", f"{session.now:%d %b %Y}", last=last
        )
    if before is None:
        raise InputError.of("no-finalists", f"view {view.name}")
    commit_held_out(session)
    scores_of = {name: _read_scores(session, view, name) for name in before.finalists}
    evidence = {name: make_evidence(name, view, scores) for name, scores in scores_of.items()}
    try:
        public = final_fields(view, evidence, decimals=session.spec().decimals)
    except ValueError as error:
        raise StoreError(f"the final cannot be decided, so nothing was opened: {error}") from None
    sealed = {n: store_evidence(session.vault, one) for n, one in evidence.items()}
    if before.opened is not None and dict(before.opened.evidence) == sealed:
        return FinalStep(final=before)
    if before.opened is not None and not why:
        raise InputError(_need_reason(view, "other scores than those that were published"))
    return _log(session, "opened-final", {**public, "why": why}, {"evidence": sealed})


def final_fields(view: View, evidence: Mapping[str, Evidence], *, decimals: int) -> dict[str, Any]:
    """List the public fields of an `opened-final` that follow from the scores.

    Args:
        view: the final one.
        evidence: finalist -> scores by query, in the order of receipt.
        decimals: digits after the point of a score.

    Raises:
        ValueError: they are not scores for the same queries, or for fewer than two.
    """
    outcome, fields = _decide(view, evidence, decimals=decimals)
    names = [*evidence]
    return {
        **fields,
        "best": names[outcome.best],
        "below": [names[i] for i in outcome.below],
        "winner": names[outcome.winner],
    }


def end_fields(view: View, evidence: Mapping[str, Evidence], *, decimals: int) -> dict[str, Any]:
    """List the same of an `ended-season`: it has no winner, but spreads over seeds."""
    seeds = {name: one.score.seeds for name, one in evidence.items() if one.score.seeds}
    spreads = {name: release.release_spread(one, decimals=decimals) for name, one in seeds.items()}
    _, fields = _decide(view, evidence, decimals=decimals)
    return {**fields, "spreads": spreads}


def _decide(
    view: View, evidence: Mapping[str, Evidence], *, decimals: int
) -> tuple[release.FinalOutcome, dict[str, Any]]:
    """Decide what the scores say, and list the fields of both events.

    The luck has one digit more than the scores: it is about as small as their last one.
    """
    scores = [one.score for one in evidence.values()]
    known = [{q for q, value in one.per_query.items() if value is not None} for one in scores]
    if any(queries != known[0] for queries in known):
        raise ValueError("the entries were scored on different queries")
    outcome = release.decide_final([release.score_vector(one.per_query, n=one.n) for one in scores])
    luck = outcome.luck
    return outcome, {
        "view": view.name,
        "final_scores": {
            name: release.release_score(score.mean, decimals=decimals)
            for name, score in zip(evidence, scores, strict=True)
        },
        "queries": {view.name: scores[0].n},
        "luck": "" if luck is None else release.release_score(luck, decimals=decimals + 1),
    }


def has_other_scores(session: Session) -> bool:
    """Tell whether an entry of a final, or of a season that ended, has other scores since."""
    try:
        if _list_changed_ends(session):
            return True
    except StoreError:  # some entries are still to be scored with the labels of today
        return True
    view, final = session.spec().finalists_view, session.history().final
    opened = None if final is None else final.opened
    if view is None or opened is None:
        return False
    submissions = session.history().submissions
    scores_of = {name: read_stored(session.vault, submissions[name]) for name in opened.evidence}
    return any(
        scores is not None
        and view.name in scores.views
        and digest_evidence(make_evidence(name, view, scores)) != opened.evidence[name]
        for name, scores in scores_of.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndStep:
    """The step of a season whose last day is over: its end, or why that waits.

    Attributes:
        season: its name; "" without seasons.
        end: as the log has it now, `None` while the season waits.
        waits: why its exact scores are not published yet; "" where they are.
    """

    season: str
    end: SeasonEnd | None = None
    waits: str = ""


def end_season(session: Session, ending: overdue.Ending) -> EndStep:
    """Publish the exact scores of a season that is over; what has to wait changes nothing."""
    history, day = session.history(), session.now.date()
    if waiting := overdue.list_waiting(history, ending):
        more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        why = f"{waiting[0]}{more} received in it: decide first, heldout inbox lists them"
        return EndStep(season=ending.season, waits=why)
    if unlogged := list_unlogged(session):
        why = f"labels/{unlogged[0]} was changed, and nobody logged why"
        return EndStep(season=ending.season, waits=why)
    named = overdue.choose_named(history, ending, day)
    try:
        fields = _score_end(session, ending.view, overdue.list_scored(history, ending, named))
    except StoreError as error:
        return EndStep(season=ending.season, waits=str(error))
    return _log_end(session, ending.season, {**fields, "named": named, "why": ""})


def end_seasons_again(session: Session, *, why: str) -> tuple[EndStep, ...]:
    """Publish the scores of ended seasons again where labels were corrected since.

    Args:
        session: its lock is held.
        why: the reason, needed where the scores are others; it is public.

    Raises:
        InputError: a reason is missing; nothing was logged.
        StoreError: the vault lacks scores by the labels that the log commits to.
    """
    changed = _list_changed_ends(session)
    if changed and not why:
        view = session.spec().view(changed[0][0].view)
        raise InputError(_need_reason(view, "other scores than those that were published"))
    return tuple(
        _log_end(session, end.season, {**fields, "named": end.named, "why": why})
        for end, fields in changed
    )


def check_ended(session: Session) -> None:
    """Refuse to go on where the board has no final, and no season has ended.

    Raises:
        InputError: the season is not over, or none ends with exact scores.
    """
    spec = session.spec()
    season = spec.season_on(session.now.date())
    ending = overdue.find_ending(spec, "" if season is None else season.name)
    if session.history().season_ends:
        return
    if ending is None:
        find_final_view(session)
        return
    found = f"{session.now:%d %b %Y}"
    expected = f"a day after the last one of {overdue.say_season(ending.season)}, {ending.last}"
    hint = "from then on heldout rebuild publishes the exact scores of the named entries"
    raise InputError.of("final-too-early", f"view {ending.view}", found, expected, hint)


def _list_changed_ends(session: Session) -> list[tuple[SeasonEnd, Mapping[str, Any]]]:
    """The ended seasons of which an entry was scored again since, with what is right today.

    Raises:
        StoreError: the vault lacks scores by the labels that the log commits to.
    """
    history, found = session.history(), []
    views = {view.name for view in session.spec().views}
    for end in (one for one in history.season_ends.values() if one.view in views):
        events = (one for name in end.opened.scores for one in history.submissions[name].events)
        if any(at >= end.opened.at and kind in ("corrected", "reviewed") for at, kind, _ in events):
            names = order_by_receipt(end.opened.scores, history.submissions)
            fields = _score_end(session, end.view, names)
            if fields != end.opened.fields(end.view):
                found.append((end, fields))
    return found


def _score_end(session: Session, view_name: str, names: Sequence[str]) -> Mapping[str, Any]:
    """Decide what the event of a season's end says of its entries' scores.

    Raises:
        StoreError: the vault lacks one by the labels that the log commits to.
    """
    history, spec = session.history(), session.spec()
    view = spec.view(view_name)
    digests = {name: history.submissions[name].evidence.get(view_name, "") for name in names}
    evidence = {name: read_evidence(session.vault, one) for name, one in digests.items()}
    wrong = [n for n, one in evidence.items() if not has_labels_in_force(one, view, history)]
    if wrong:
        raise StoreError(
            f"{', '.join(wrong[:3])} was scored with other labels of {view.set} than the log "
            f'commits to: heldout correct {" ".join(wrong)} --why "…"'
        )
    try:
        return end_fields(view, evidence, decimals=spec.decimals)
    except ValueError as error:
        raise StoreError(f"no exact score was published: {error}") from None


def _log_end(session: Session, season: str, fields: Mapping[str, Any]) -> EndStep:
    session.log("ended-season", None, public={"season": season, **fields})
    return EndStep(season=season, end=session.history().season_ends[season])


def find_final_view(session: Session) -> View:
    """The view on which finalists are scored.

    Raises:
        InputError: the board has none.
    """
    view = session.spec().finalists_view
    if view is not None:
        return view
    raise InputError.of("no-final-view", "board.toml")


def _choose(session: Session, view: View, ids: Sequence[str]) -> list[str]:
    """The ids in the order of receipt.

    Raises:
        InputError: they are too many, one stands there twice, or can be no finalist.
        StoreError: the vault lacks the scores of one.
    """
    most = view.finalists or 0
    twice = [name for i, name in enumerate(ids) if name in ids[:i]]
    if twice or not 1 <= len(ids) <= most:
        found = f"{quote(twice[0])} twice" if twice else f"{len(ids)} finalists"
        raise InputError.of("bad-finalists", f"view {view.name}", found, most=most)
    chosen = {_check_finalist(session, view, name).id for name in ids}
    return list(order_by_receipt(chosen, session.history().submissions))


def _check_finalist(session: Session, view: View, name: str) -> Submission:
    """A published entry that came in time and has a score on the view, which nobody looks at."""
    submission = session.find_published(name)
    last = session.spec().closes
    if submission.baseline:
        found, expected = "a baseline", "an entry: the organisers' own runs win nothing"
    elif last is not None and submission.received.date() > last:
        found, expected = f"received on {submission.received:%d %b %Y}", f"received until {last}"
    elif view.name not in _read(session, name).views:
        found = f"no run on {view.set}: it came under rules that did not ask for one"
        expected = "an entry with a run on the queries of the final"
    else:
        return submission
    raise InputError.of(code="not-a-finalist", path=name, found=found, expected=expected)


def _read(session: Session, name: str) -> ScoreFile:
    scores = read_stored(session.vault, session.history().submissions[name])
    if scores is None:
        raise StoreError(
            f"the vault has no scores of {name} that the log vouches for; restore them from the "
            f'backup, or score it again: heldout correct {name} --why "…"'
        )
    return scores


def _read_scores(session: Session, view: View, name: str) -> ScoreFile:
    """Return what the vault has of a finalist, made with the labels that the log commits to.

    Raises:
        StoreError: it was made with others.
    """
    scores, names = _read(session, name), changes.names_of_view(view)
    wanted = {n: digest for n, digest in session.history().labels.items() if n in names}
    if view.name not in scores.views or make_evidence(name, view, scores).labels != wanted:
        raise StoreError(
            f"{name} was scored with other labels of {view.set} than the log commits to, so the "
            f'final stays closed; score every finalist again: heldout correct {name} --why "…"'
        )
    return scores


def _need_reason(view: View, found: str) -> Problem:
    return Problem.of("reason-missing", f"view {view.name}", found)


def _log(
    session: Session, kind: str, public: Mapping[str, Any], sealed: Mapping[str, Any]
) -> FinalStep:
    entry = session.log(kind, None, public=public, sealed=sealed)
    final = session.history().final
    if final is None:
        raise ValueError(kind)
    return FinalStep(final=final, event=entry.event.seq)
