"""Query sets as a run is checked and scored with them: queries, labels, candidates."""

from collections.abc import Mapping
from dataclasses import dataclass

from heldout.board.spec import BoardSpec
from heldout.ids import Digest, digest_bytes
from heldout.store.repository import Repository
from heldout.store.vault import Vault
from heldout.trec.qrels import Qrels
from heldout.trec.queries import Queries
from heldout.trec.runs import Expected

__all__ = ["RERANKING", "SetData", "expected_run", "load_sets"]

RERANKING = "reranking"
"""The submission type whose runs keep to the official candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetData:
    """One query set in memory.

    Attributes:
        queries: the ids that a run must answer, and their texts.
        qrels: the labels, `None` where they are held out from whoever asks.
        digest: of the labels' file, `None` likewise.
        excluded: queries that do not count.
        candidates: query -> official documents for re-ranking, `None` where there are none.
    """

    queries: Queries
    qrels: Qrels | None
    digest: Digest | None
    excluded: frozenset[str]
    candidates: Mapping[str, frozenset[str]] | None


def load_sets(
    repository: Repository, spec: BoardSpec, *, vault: Vault | None
) -> Mapping[str, SetData]:
    """Read every query set of a board.

    Args:
        repository: the board.
        spec: names the files.
        vault: gives the held-out labels; `None` on a participant's side.
    """
    return {name: _load(repository, spec, name, vault) for name in spec.sets}


def _load(repository: Repository, spec: BoardSpec, name: str, vault: Vault | None) -> SetData:
    files = spec.sets[name]
    qrels = digest = None
    if files.qrels is not None:
        qrels = repository.qrels(files.qrels)
        digest = digest_bytes(repository.file(files.qrels).read_bytes())
    elif vault is not None:
        qrels, digest = vault.labels(name), vault.labels_digest(name)
    given = files.candidates
    return SetData(
        queries=repository.queries(files.queries),
        qrels=qrels,
        digest=digest,
        excluded=frozenset() if vault is None else vault.excluded(name),
        candidates=None if given is None else repository.candidates(given),
    )


def expected_run(spec: BoardSpec, data: SetData, *, submission_type: str) -> Expected:
    """What a run over a set must be like, by board.toml and the type of its submission."""
    return Expected(
        queries=data.queries.texts,
        min_depth=spec.runs.min_depth,
        max_depth=spec.runs.depth,
        candidates=data.candidates if submission_type == RERANKING else None,
        complete=spec.runs.complete,
    )
