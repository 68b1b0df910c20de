"""What the rules of the policy look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from heldout.board.log.history import History
from heldout.board.log.manifest import Manifest
from heldout.board.policy.ensembles import RunLikeness
from heldout.board.policy.identity import Entrant, Reader
from heldout.board.policy.similarity import SeedFault
from heldout.board.rules.spec import BoardSpec
from heldout.errors import Problem
from heldout.ids import SubmissionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How far a run lies below a baseline, in the view that ranks.

    Attributes:
        baseline: the baseline's id.
        errors: mean of baseline less run over the queries of both, in its own standard errors;
            below 0 where the run is better.
    """

    baseline: str
    errors: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All that a rule may look at.

    Attributes:
        spec: the rules of the day of submission.
        history: the board before or with this submission.
        id: the submission's id.
        received: its official time, UTC.
        manifest: its metadata.
        problems: run (`SET`, `SET~2` and so on) -> problems that the scan found in it.
        entrants: who else has submitted.
        key: of `identity.key_digest`; "" where the submission was not opened.
        reader: who will read the evidence.
        likenesses: query set -> what earlier runs are like the submission's.
        distances: of the run from each baseline; none where the held-out scores are not at hand.
        seeds: which of its runs cannot differ by their seed alone.
    """

    spec: BoardSpec
    history: History
    id: SubmissionId
    received: datetime
    manifest: Manifest
    problems: Mapping[str, Sequence[Problem]]
    entrants: tuple[Entrant, ...] = ()
    key: str = ""
    reader: Reader = "team"
    likenesses: Mapping[str, RunLikeness] = field(default_factory=dict)
    seeds: tuple[SeedFault, ...] = ()
    distances: tuple[Distance, ...] = ()
