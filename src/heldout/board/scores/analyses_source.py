"""A board's vault as analyses read it: its entries in the order they came, and true scores by view.

Nothing is written, for the vault is opened to be read alone, and nothing leaves it. A score that
was made with earlier labels, or that is damaged, is computed again in memory, so that all scores of
a view rest on the labels of today.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import msgspec

from heldout.analyses.entries import AlikeRuns, BoardEntry, BoardScores, ViewScores
from heldout.board.log import history, manifest
from heldout.board.log.submission import Status, Submission
from heldout.board.policy import similarity, sketches
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.scores import rescoring, stored
from heldout.board.scores.compared import signatures_of
from heldout.board.scores.score import ViewScore
from heldout.board.scores.session import Session
from heldout.board.scores.sets import SetData, load_sets
from heldout.errors import StoreError
from heldout.scoring.measures import parse_measure
from heldout.scoring.table import table_of
from heldout.trec.scans import Signature

_PUBLISHED: tuple[Status, ...] = ("published", "imported")
_UNPUBLISHED: tuple[Status, ...] = ("received", "reviewed", "asked", "rejected")


def read_board_scores(session: Session, *, unpublished: bool = False) -> BoardScores:
    """Every entry of a board with its true scores on every view.

    A mean is over the queries that count, also where the board's denominator is `all`: its zeros
    say nothing of a system. A view whose summary is over groups of queries has no scores by query,
    since its groups differ from entry to entry. Of an imported board the published scores are all
    there is. The view with finalists is left out: its scores are closed until the final is opened,
    and those of all others stay so.

    Args:
        session: of the organiser.
        unpublished: also those that wait or were rejected, where they could be scored.

    Raises:
        StoreError: nothing is published yet, or a run that has to be scored again is missing.
        TrustError: such a run does not open.
    """
    wanted = (*_PUBLISHED, *_UNPUBLISHED) if unpublished else _PUBLISHED
    chosen = [s for s in session.history().submissions.values() if s.status in wanted]
    chosen.sort(key=lambda submission: (submission.received, submission.id))
    scores = _Scores(session)
    known = {
        one.id: views for one in chosen if (views := scores.read(one)) or one.status == "imported"
    }
    if not known:
        raise StoreError("nothing is published on this board yet, so there is nothing to analyse")
    spec = session.spec()
    open_views = tuple(view for view in spec.views if view.finalists is None)
    spec = msgspec.structs.replace(spec, views=open_views)
    return assemble_scores(spec, chosen, known, primary=spec.on(session.now.date()).primary)


def assemble_scores(
    spec: BoardSpec,
    submissions: Sequence[Submission],
    known: Mapping[str, Mapping[str, ViewScore]],
    *,
    primary: str,
) -> BoardScores:
    """Entries and their scores, wherever these were read.

    Args:
        spec: the rules, for their views.
        submissions: in the order they came.
        known: id -> view -> true score; those that are not in it are left out.
        primary: the view that ranks.
    """
    return BoardScores(
        board=spec.name,
        entries=tuple(_as_entry(one) for one in submissions if one.id in known),
        views={
            view.name: _read_view(view, submissions, known, held_out=spec.sets[view.set].held_out)
            for view in spec.views
        },
        primary=primary,
    )


def find_alike_runs(session: Session, board: BoardScores) -> tuple[AlikeRuns, ...]:
    """Pairs of entries of different teams whose runs on the set that ranks are nearly the same.

    All names that an approved new name joins are one team.

    Args:
        session: of the organiser.
        board: what `read_board_scores` gave.
    """
    teams = {entry.id: entry.team for entry in board.entries if not entry.baseline}
    renamed = history.list_renamed(session.history())

    def are_apart(one: str, other: str) -> bool:
        return manifest.team_key(teams[other]) not in history.names_of(renamed, [teams[one]])

    found = find_alike(session, [*teams], board.view().queries, are_apart)
    return tuple(AlikeRuns(a=o.id, b=name, rbo=o.likeness.rbo) for name, o in found)


def find_alike(
    session: Session,
    entries: Iterable[str],
    query_set: str,
    are_apart: Callable[[str, str], bool] = lambda _one, _other: True,
) -> Iterator[tuple[str, similarity.Neighbour]]:
    """Find entries whose runs are nearly the same, each with one that came before it.

    Of several such runs each one is paired with the nearest. Runs whose first documents the vault
    does not have are left out.

    Args:
        session: of the organiser.
        entries: ids in the order they came.
        query_set: whose runs are compared.
        are_apart: whether a pair counts.

    Source: Craswell et al. 2021, §3.3.
    """
    submissions = session.history().submissions
    runs: dict[str, Signature] = {}
    for name in entries:
        signatures = signatures_of(session.vault, submissions[name], repair=lambda _: False)
        if query_set in signatures:
            # The documents that decide; all of every run would be half a gigabyte on a large board.
            run = signatures[query_set]
            runs[name] = replace(run, documents=run.documents[:, : similarity.TOP].copy())
    known = [*runs.items()]
    for number, earlier in sketches.propose_pairs([*runs.values()]):
        name, run = known[number]
        others = (known[at] for at in earlier if are_apart(name, known[at][0]))
        yield from ((name, one) for one in similarity.list_alike(run, others))


class _Scores:
    """Scores of submissions; the query sets are read once."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def _sets(self) -> Mapping[str, SetData]:
        return load_sets(self._session.repository, self._session.spec(), vault=self._session.vault)

    def read(self, submission: Submission) -> Mapping[str, ViewScore]:
        """View -> true score; none where there is no run, or it has errors."""
        if submission.status in ("imported", "received"):
            return {}
        scores = stored.read_stored(self._session.vault, submission)
        if scores is None or rescoring.is_earlier(scores, self._sets):
            scores = rescoring.rescore(self._session, self._sets, submission.id)
        return scores.views


def _as_entry(submission: Submission) -> BoardEntry:
    who = submission.identity
    return BoardEntry(
        id=submission.id,
        received=submission.received,
        description="" if who is None else who.description,
        team="" if who is None else who.team,
        institution="" if who is None else who.institution,
        baseline=submission.baseline,
        published=submission.status in _PUBLISHED,
    )


def _read_view(
    view: View,
    submissions: Sequence[Submission],
    known: Mapping[str, Mapping[str, ViewScore]],
    *,
    held_out: bool,
) -> ViewScores:
    scored = {one: views[view.name] for one, views in known.items() if view.name in views}
    if scored and view.summary == "mean":
        rows = {one: score.per_query for one, score in scored.items()}
        # Queries for which the measure is undefined for every system are left out.
        defined = {q: None for row in rows.values() for q, cell in row.items() if cell is not None}
        table = table_of(rows, queries=tuple(defined))
        means = {
            system: mean for system in table.systems if (mean := table.mean(system)) is not None
        }
    else:
        table = None
        means = {one: score.mean for one, score in scored.items()}
        # What an old board published; its scores by query are lost.
        means |= {
            one.id: float(one.scores[view.name])
            for one in submissions
            if one.status == "imported" and view.name in one.scores
        }
    return ViewScores(
        view=view.name,
        queries=view.set,
        measure=view.measure,
        public=view.public,
        held_out=held_out,
        means=means,
        table=table,
        better=parse_measure(view.measure).kind.better,
        for_information=view.for_information,
    )
