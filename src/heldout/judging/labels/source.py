"""Where judgments, runs and known answers come from: a campaign, or files alone."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

from heldout.collections.named import load_qrels
from heldout.database.times import format_time
from heldout.errors import InputError, plural
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import (
    Judgment,
    counted,
    parse_judgments,
    pool_judged,
    pooled_tops,
)
from heldout.judging.campaign.pools import Pool, stand_for
from heldout.judging.campaign.settings import Settings
from heldout.judging.labels.contests import PERFECT, first_documents
from heldout.judging.labels.labels import Rules
from heldout.options import Opt
from heldout.progress_bar import SILENT, Progress
from heldout.scoring import options, run_files
from heldout.trec.reading.sources import open_input
from heldout.trec.tops import Tops


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSource:
    """Which judgments, runs and labels are read."""

    campaign: Annotated[Path | None, Opt(argument=True, path="folder", metavar="[CAMPAIGN]")] = None
    judgments: Annotated[
        Path | None,
        Opt(
            "Judgments instead of a campaign: JSON lines, or query, passage, passage, the "
            "preferred one.",
            metavar="FILE",
            path="file",
        ),
    ] = None
    runs: options.RunPatterns = ()
    qrels: Annotated[
        str | None, Opt("Present labels; a perfect run shows their documents first.", metavar="Q")
    ] = None
    order: options.RunOrder = None
    until: Annotated[
        datetime | None, Opt("Last time (UTC) of answers that are used.", metavar="TIME")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Judgments and what they are of.

    Attributes:
        folder: the campaign; `None` where there is none.
        pools: its pools, or those made of the judgments.
        judgments: all that were recorded; of a campaign those of passages that it has.
        rules: which of them count, and how labels are made of them.
        labels: grades by query and document, in the order of their file; `None` without a file.
        known: query -> relevant documents, the known answer first; of the labels, or else of the
            pools.
    """

    folder: CampaignFolder | None
    pools: tuple[Pool, ...]
    judgments: tuple[Judgment, ...]
    rules: Rules
    labels: Mapping[str, Mapping[str, int]] | None
    known: Mapping[str, Sequence[str]]

    def __repr__(self) -> str:
        queries = plural(len(self.pools), "query", "queries")
        return f"<Judged: {plural(len(self.judgments), 'judgment')} of {queries}>"

    @property
    def valid(self) -> tuple[Judgment, ...]:
        """The judgments that count."""
        rules = self.rules
        return counted(
            self.judgments, exclusion=rules.exclusion, failures=rules.failures, until=rules.until
        )


def load_judged(
    source: JudgedSource,
    *,
    tops: Mapping[str, Tops] | None = None,
    labels: Mapping[str, Mapping[str, int]] | None = None,
    progress: Progress = SILENT,
) -> Judged:
    """Judgments and what they are of; judgments of what the campaign lacks are left out.

    Args:
        source: which.
        tops: first documents of runs; without a campaign they say whose passages were judged.
        labels: the labels there are, where no file has them.
        progress: notes how many judgments are left out.

    Raises:
        InputError: a file has errors, or code `no-judgments`: there is none.
        StoreError: the campaign has no settings or pools.
    """
    campaign = source.campaign or (None if source.judgments else Path())
    folder = None if campaign is None else CampaignFolder(campaign)
    settings = Settings(name="") if folder is None else folder.settings()
    judgments = _read_judgments(source, folder)
    if source.qrels is not None:
        labels = load_qrels(source.qrels).judgments
    rules = Rules(
        algorithm="sequential" if settings.mode == "sequential" else "tournament",
        exclusion=settings.exclusion,
        failures=settings.failures,
        until=None if source.until is None else format_time(source.until),
    )
    if folder is None:
        return join_judged(judgments, rules, labels=labels, tops=tops)
    pools = folder.pools()
    judgments = _within(judgments, (*pools, *folder.challengers()), source, progress)
    return replace(join_judged(judgments, rules, pools=pools, labels=labels), folder=folder)


def join_judged(
    judgments: Sequence[Judgment],
    rules: Rules,
    *,
    pools: Sequence[Pool] | None = None,
    labels: Mapping[str, Mapping[str, int]] | None = None,
    tops: Mapping[str, Tops] | None = None,
) -> Judged:
    """Judgments with what they are of.

    Args:
        judgments: all that were recorded.
        rules: which of them count, and how labels are made.
        pools: whose passages were judged; `None` for the passages of the judgments themselves.
        labels: the labels there are.
        tops: first documents of runs; without pools they say whose passages were judged.
    """
    answers = {} if labels is None else known_answers(labels)
    found = pool_judged(judgments, known=answers, tops=tops) if pools is None else tuple(pools)
    return Judged(
        folder=None,
        pools=found,
        judgments=tuple(judgments),
        rules=rules,
        labels=labels,
        known=answers or {one.query: (one.known.doc,) for one in found if one.known is not None},
    )


def first_of(judged: Judged, tops: Mapping[str, Tops] | None) -> Mapping[str, Mapping[str, str]]:
    """Run -> query -> the passage it shows first, the perfect run among them where labels are.

    Args:
        judged: judgments and what they are of.
        tops: run -> query -> first documents; `None` for those of the pools.

    Raises:
        InputError: code `deep-pool`.
    """
    shown = pooled_tops(judged.pools) if tops is None else tops
    return first_documents(shown, judged.known or None, same=stand_for(judged.pools))


def count_valid(judged: Judged) -> tuple[Judgment, ...]:
    """The judgments that count.

    Raises:
        InputError: code `no-judgments`: none does.
    """
    valid, rules = judged.valid, judged.rules
    if not valid:
        by_then = f" up to {rules.until}" if rules.until else ""
        found = f"{plural(len(judged.judgments), 'judgment')}, of which none counts{by_then}"
        hint = "tests, answers without a preference, unfinished and failed tasks do not count"
        raise InputError.of("no-judgments", "judgments", found, hint=hint)
    return valid


def known_answers(labels: Mapping[str, Mapping[str, int]]) -> Mapping[str, Sequence[str]]:
    """Relevant documents, the best grade first; of equal grades in the order of the file."""
    return {
        query: sorted((doc for doc, grade in grades.items() if grade > 0), key=lambda d: -grades[d])
        for query, grades in labels.items()
    }


def name_judged_runs(patterns: Sequence[str]) -> Mapping[str, str]:
    """As `name_runs`, for commands that show a perfect run beside those named.

    Raises:
        InputError: as `find_runs`; code `repeated-system`: a run has the name of the perfect one.
    """
    named = run_files.name_runs(patterns)
    if PERFECT in named:
        expected = "another name: so is the run that always shows the known answer"
        found, hint = f"a run called {PERFECT}", "rename the file"
        raise InputError.of("repeated-system", named[PERFECT], found, expected, hint)
    return named


def read_first(
    source: JudgedSource, *, depth: int = 1, progress: Progress = SILENT
) -> Mapping[str, Tops]:
    """The first documents of each run; none where no run was named.

    Raises:
        InputError: a run has errors.
    """
    paths = name_judged_runs(source.runs) if source.runs else {}
    return run_files.read_each(paths, depth=depth, order=source.order, progress=progress)


def _read_judgments(source: JudgedSource, folder: CampaignFolder | None) -> tuple[Judgment, ...]:
    if source.judgments is not None:
        with open_input(source.judgments) as file:
            found = parse_judgments(file.read(), path=str(source.judgments))
    else:
        found = () if folder is None else folder.judgments()
    if not found:
        raise _no_judgments(source, "no judgment")
    return found


def _no_judgments(source: JudgedSource, found: str) -> InputError:
    path = str(source.judgments or source.campaign or Path())
    return InputError.of("no-judgments", path, found)


def _within(
    judgments: Sequence[Judgment],
    pools: Sequence[Pool],
    source: JudgedSource,
    progress: Progress,
) -> tuple[Judgment, ...]:
    """Judgments of what the pools have, and tests; the number of others is reported."""
    held: defaultdict[str, set[str]] = defaultdict(set)
    for pool in pools:
        for passage in pool.candidates:
            held[pool.query] |= {passage.doc, *passage.same}
    counting = tuple(
        one
        for one in judgments
        if one.answer is not None or {one.left, one.right} <= held[one.query]
    )
    if left_out := len(judgments) - len(counting):
        progress.note("left out", f"{plural(left_out, 'judgment')} of passages that no pool has")
    if not counting:
        raise _no_judgments(source, f"no judgment of a pool among {len(judgments):,}")
    return counting
