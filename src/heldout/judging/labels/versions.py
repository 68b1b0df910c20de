"""Versions of labels: what each was made of, so that it can be made again byte for byte.

Judgments only grow, and a version says up to when they counted. Labels are never edited: who wants
others makes another version.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from heldout.errors import InputError, Problem, StoreError
from heldout.files.durable import Folder
from heldout.ids import Digest, digest_bytes
from heldout.judging.campaign.judgments import (
    Judgment,
    Votes,
    count_votes,
    counted,
    format_judgments,
    judgments_at,
)
from heldout.judging.campaign.pools import Pool
from heldout.judging.campaign.rows import format_rows
from heldout.judging.campaign.settings import Exclusion
from heldout.judging.labels.choosing import find_unbeaten
from heldout.judging.labels.contests import stand_for
from heldout.judging.labels.labels import Find, PreferenceLabels, make_labels, play
from heldout.judging.labels.strengths import PASSAGE_PRIOR, find_strongest
from heldout.trec.problems import show
from heldout.trec.qrels import format_qrels

_FACTOR = 10

Algorithm = Literal["tournament", "sequential", "bradley-terry"]
"""How the best passages of a pool are found from its votes: most pairings won; not beaten, where
each passage met the best so far; the greatest strength."""

ALGORITHMS: Mapping[Algorithm, Find] = {
    "tournament": play,
    "sequential": find_unbeaten,
    "bradley-terry": find_strongest,
}
"""Every algorithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How labels are made from judgments.

    Attributes:
        algorithm: finds the best of a pool.
        exclusion: what a failed test excludes.
        failures: so many failed tests in a task exclude.
        until: only answers up to this time, ISO 8601 in UTC; `None` for all there are.
        prior: of `bradley-terry`, the precision of its prior; `None` for the usual one.
    """

    algorithm: Algorithm = "tournament"
    exclusion: Exclusion = "task"
    failures: int = 1
    until: str | None = None
    prior: float | None = None


def find_by(rules: Rules) -> Find:
    """How the best passages of a pool are found by rules."""
    if rules.algorithm == "bradley-terry" and rules.prior is not None:
        return partial(find_strongest, prior=rules.prior)
    return ALGORITHMS[rules.algorithm]


class LabelVersion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a label version is made of.

    Attributes:
        name: its name; its labels lie in NAME.qrels.
        parent: the version that it follows; `None` for the first.
        algorithm: how the best passages were found.
        exclusion: what a failed test excluded.
        failures: so many failed tests in a task excluded.
        until: the last answer that could count, ISO 8601 in UTC; `None` where answers have no time.
        recorded: judgments up to then.
        counted: those of them that counted.
        queries: with a label.
        labels: of the queries with votes, each text once.
        kept: queries without a vote, which keep their known answer.
        several: queries with more than one label.
        cycles: those where the best beat each other in a circle.
        unjudged: pairs of the judged pools without a vote.
        drawn: pairs with as many votes on each side.
        judgments_sha256: of the recorded judgments, as JSON lines.
        pools_sha256: of the pools, as JSON lines.
        qrels_sha256: of NAME.qrels.
        prior: of `bradley-terry`, the precision of its prior; `None` with other algorithms, and in
            versions of before it was recorded, which have 1.
    """

    name: str
    parent: str | None
    algorithm: Algorithm
    exclusion: Exclusion
    failures: int
    until: str | None
    recorded: int
    counted: int
    queries: int
    labels: int
    kept: int
    several: int
    cycles: int
    unjudged: int
    drawn: int
    judgments_sha256: Digest
    pools_sha256: Digest
    qrels_sha256: Digest
    prior: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Labels made of judgments.

    Attributes:
        version: what they are made of.
        qrels: the bytes of their file.
        labels: the labels themselves.
        votes: those that counted, by the documents that stand for their texts.
        rules: that they were made by.
        prior_decides: of `bradley-terry`, judged queries whose best passages are others with a
            tenth of the prior, or ten times it; `None` with other algorithms.
    """

    version: LabelVersion
    qrels: bytes
    labels: PreferenceLabels
    votes: Votes
    rules: Rules
    prior_decides: int | None


def make_version(
    name: str,
    pools: Sequence[Pool],
    judgments: Sequence[Judgment],
    rules: Rules,
    *,
    parent: str | None = None,
) -> Made:
    """Make labels.

    Args:
        name: of the version.
        pools: the passages of each query.
        judgments: all that were recorded, in their order.
        rules: how labels are made.
        parent: the version that this one follows.

    Returns:
        The same bytes for the same arguments, whatever came after `rules.until`. Judgments without
        a time came before everything.

    Raises:
        InputError: code `label-id`: an id cannot stand in qrels.
    """
    until = rules.until or max((one.answered_at for one in judgments), default="") or None
    seen = judgments_at(judgments, until)
    valid = counted(seen, exclusion=rules.exclusion, failures=rules.failures)
    votes = count_votes(valid, same=stand_for(pools))
    labels = make_labels(pools, votes, find=find_by(rules))
    by_query = sorted(labels.labels.items())
    _check_ids(by_query)
    qrels = format_qrels({query: dict.fromkeys(docs, 1) for query, docs in by_query})
    played = labels.tournaments.values()
    version = LabelVersion(
        name=name,
        parent=parent,
        algorithm=rules.algorithm,
        exclusion=rules.exclusion,
        failures=rules.failures,
        until=until,
        recorded=len(seen),
        counted=len(valid),
        queries=len(labels.labels),
        labels=labels.count,
        kept=len(labels.kept),
        several=labels.several,
        cycles=labels.cycles,
        unjudged=sum(one.unjudged for one in played),
        drawn=sum(one.drawn for one in played),
        judgments_sha256=digest_bytes(format_judgments(seen)),
        pools_sha256=digest_bytes(format_rows(pools)),
        qrels_sha256=digest_bytes(qrels),
        prior=rules.prior if rules.algorithm == "bradley-terry" else None,
    )
    return Made(
        version=version,
        qrels=qrels,
        labels=labels,
        votes=votes,
        rules=rules,
        prior_decides=_count_prior_decides(pools, votes, rules, labels),
    )


def _count_prior_decides(
    pools: Sequence[Pool], votes: Votes, rules: Rules, labels: PreferenceLabels
) -> int | None:
    """Judged queries with other best passages at a tenth of the prior, or at ten times it."""
    if rules.algorithm != "bradley-terry":
        return None
    prior = PASSAGE_PRIOR if rules.prior is None else rules.prior
    others = [
        make_labels(pools, votes, find=partial(find_strongest, prior=one)).tournaments
        for one in (prior / _FACTOR, prior * _FACTOR)
    ]
    return sum(
        any(found[query].best != played.best for found in others)
        for query, played in labels.tournaments.items()
    )


def _check_ids(labels: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Refuse what would be another row of qrels, or none."""
    for query, docs in labels:
        for one in (query, *docs):
            if not one or not one.isprintable() or len(one.split()) != 1 or one != one.strip():
                raise InputError(
                    Problem(
                        code="label-id",
                        path="judgments",
                        found=show(one),
                        expected="an id without blanks or control characters",
                    )
                )


def rules_of(version: LabelVersion) -> Rules:
    """The rules that a version was made by."""
    return Rules(
        algorithm=version.algorithm,
        exclusion=version.exclusion,
        failures=version.failures,
        until=version.until,
        prior=version.prior,
    )


def differences(before: LabelVersion, after: LabelVersion) -> tuple[str, ...]:
    """What of a version is not the same when it is made again; none where all is."""
    return tuple(
        field
        for field in LabelVersion.__struct_fields__
        if getattr(before, field) != getattr(after, field)
    )


def format_version(version: LabelVersion) -> bytes:
    """A version as indented JSON, keys in the order of its fields."""
    return msgspec.json.format(msgspec.json.encode(version), indent=2) + b"\n"


def parse_version(data: bytes, *, path: str) -> LabelVersion:
    """Read a version.

    Raises:
        InputError: code `bad-row`: this is no description of a label version.
    """
    try:
        return msgspec.json.decode(data, type=LabelVersion)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(
            Problem(
                code="bad-row",
                path=path,
                found=show(data[:80]),
                expected="the description of a label version",
                hint=str(error),
            )
        ) from None


# Label versions on disk: NAME.qrels with the labels, NAME.json with what they are made of.

_PRIVATE = 0o600
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


def read_versions(folder: Path) -> tuple[LabelVersion, ...]:
    """All versions of a folder, each after its parent; none where there is no folder.

    Raises:
        InputError: as `parse_version`.
        StoreError: a parent is missing.
    """
    names = [name.removesuffix(".json") for name in _list_names(folder)]
    found = {name: read_version(folder, name) for name in names}
    ordered: dict[str, LabelVersion] = {}
    while len(ordered) < len(found):
        ready = [
            one
            for name, one in found.items()
            if name not in ordered and (one.parent is None or one.parent in ordered)
        ]
        if not ready:
            lost = min(found.keys() - ordered.keys())
            raise StoreError(f"{folder / lost}.json names a parent that is not there")
        ordered |= {one.name: one for one in ready}
    return tuple(ordered.values())


def _list_names(folder: Path) -> tuple[str, ...]:
    """The files that say what a version is made of, sorted."""
    return tuple(name for name in Folder(folder).names() if name.endswith(".json"))


def newest_version(folder: Path) -> LabelVersion | None:
    """The last version; `None` where there is none."""
    return next(reversed(read_versions(folder)), None)


def read_version(folder: Path, name: str) -> LabelVersion:
    """A version, whose labels are there and as they were written.

    Raises:
        InputError: as `parse_version`.
        StoreError: it is missing, or its labels are missing or were changed.
    """
    _check_name(name)
    place, labels = (Folder(folder).file(f"{name}.{suffix}") for suffix in ("json", "qrels"))
    for file in (place, labels):
        if not file.is_file():
            raise StoreError(f"{file} is missing; `heldout prefer labels` makes label versions")
    version = parse_version(place.read_bytes(), path=str(place))
    if digest_bytes(labels.read_bytes()) != version.qrels_sha256:
        raise StoreError(f"{labels} was changed since it was made; make another version instead")
    return version


def write_version(folder: Path, made: Made) -> bool:
    """Write a version; whether anything was written.

    Raises:
        InputError: code `label-name`.
        StoreError: there is another version of this name.
    """
    name = _check_name(made.version.name)
    files = Folder(folder)
    place = files.file(f"{name}.json")
    if place.is_file():
        if read_version(folder, name) == made.version:
            return False
        raise StoreError(f"{place} is another version; versions are never changed: name another")
    files.write_whole(f"{name}.qrels", made.qrels, mode=_PRIVATE)
    place.write_whole(format_version(made.version), mode=_PRIVATE)
    return True


def _check_name(name: str) -> str:
    """The name of a version, if it can be that of a file.

    Raises:
        InputError: code `label-name`.
    """
    if _NAME.fullmatch(name):
        return name
    raise InputError(
        Problem(
            code="label-name",
            path="--name",
            found=name,
            expected="up to 64 letters, digits, dots, hyphens or underscores",
        )
    )
