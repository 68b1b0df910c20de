"""Whether looking a run up finds what comparing it with every earlier run in full finds.

python benchmarks/detection_lookup.py DATA [--crowd 1000] [--proposed 16]
"""

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from detection_decoys import decoys_of
from detection_inputs import FUSIONS, Campaign, load, read_run, sign

from heldout.board.policy import ensembles
from heldout.board.policy.ensembles import RunLikeness, Sampled
from heldout.board.policy.similarity import list_alike
from heldout.board.policy.sketches import Sketches, sketch_all
from heldout.board.scores.compared import find_likeness
from heldout.rankers.run import Hit, Run
from heldout.trec.scans import Signature

__all__ = ["compare_all", "describe_lookups", "differ"]

_SEED = 20220711
_KEY = 0x9E3779B97F4A7C15
_REPEATS = 15
_OF_CROWD = 5
_PARTS = (2, 3, 5)
_NOISE = 0.5
_ROUNDING = 1e-12
"""Figures of a fusion may differ by this: it is a sum in another order."""

Case = tuple[str, Signature, Mapping[str, Signature]]
"""What a new run is, the run, and the earlier ones."""


def compare_all(new: Signature, earlier: Mapping[str, Signature]) -> RunLikeness:
    """Every earlier run in full, without sketches."""
    ensemble = Sampled(new, earlier.items()).explain()
    return RunLikeness(neighbours=list_alike(new, earlier.items()), ensemble=ensemble)


def differ(one: RunLikeness, other: RunLikeness) -> bool:
    """Whether two comparisons found anything else, or figures that are not the same."""
    first, second = one.ensemble, other.ensemble
    if one.neighbours != other.neighbours or (first is None) != (second is None):
        return True
    if first is None or second is None:
        return False
    named = [(f.transform, f.queries, [part.id for part in f.parts]) for f in (first, second)]
    figures = [
        [f.agreement, f.alone, f.r2 or 0.0, *(part.weight for part in f.parts)]
        for f in (first, second)
    ]
    same = np.allclose(figures[0], figures[1], rtol=0, atol=_ROUNDING)
    return named[0] != named[1] or not same


@dataclass(kw_only=True)
class _Row:
    """What came out for cases of one kind."""

    cases: int = 0
    variants: int = 0
    ensembles: int = 0
    different: int = 0
    read: list[int] = field(default_factory=list)

    def add(self, new: Signature, earlier: Mapping[str, Signature], every: Sketches) -> None:
        """Compare a run both ways."""
        read: set[str] = set()

        def find(name: str) -> Signature:
            read.add(name)
            return earlier[name]

        expected, found = compare_all(new, earlier), find_likeness(new, every, find)
        self.cases += 1
        self.variants += len(expected.neighbours)
        self.ensembles += expected.ensemble is not None
        self.different += differ(expected, found)
        self.read.append(len(read))


def describe_lookups(campaigns: Sequence[Campaign], crowd: int) -> str:
    """A row per campaign and kind of run.

    Args:
        campaigns: as `detection_inputs.load` gives them.
        crowd: how many earlier runs the crowd has.
    """
    rows: dict[tuple[str, str, int], _Row] = {}
    for campaign in campaigns:
        known: tuple[Mapping[str, Signature], Sketches] | None = None
        for kind, new, earlier in _list_cases(campaign, crowd):
            if known is None or known[0] is not earlier:
                known = earlier, sketch_all(earlier, _KEY)
            rows.setdefault((campaign.name, kind, len(earlier)), _Row()).add(new, *known)
    lines = [
        "### Looked up, and compared with every run in full",
        "",
        "| campaign | new | earlier | cases | variants | ensembles | different | read | at most |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {campaign} | {kind} | {earlier:,} | {row.cases} | {row.variants} | {row.ensembles} "
            f"| {row.different} | {np.mean(row.read):.0f} | {max(row.read)} |"
            for (campaign, kind, earlier), row in rows.items()
        ),
    ]
    return "\n".join(lines)


def _list_cases(campaign: Campaign, crowd: int) -> Iterator[Case]:
    for name, run in campaign.runs.items():
        yield "the runs themselves", run, campaign.others(name)
    for run in campaign.runs.values():
        for decoy in decoys_of(run):
            yield "copies behind made-up documents", decoy, campaign.runs
    if len(set(campaign.teams.values())) == 1:
        return
    scored = {run: read_run(campaign.folder / f"{run}.gz") for run in campaign.runs}
    random = np.random.default_rng(_SEED)
    for kind, run in _fuse_some(scored, random, _REPEATS):
        yield f"fusions: {kind}", run, campaign.runs
    many = _gather(scored, crowd, random)
    signed = {name: sign(run) for name, run in many.items()}
    for _, run in _fuse_some(many, random, _OF_CROWD):
        yield "fusions of a crowd", run, signed
    for name in random.choice(list(scored), _REPEATS, replace=False).tolist():
        yield "variants of a crowd", sign(_shake(scored[name], random)), signed


def _fuse_some(
    scored: Mapping[str, Run], random: np.random.Generator, repeats: int
) -> Iterator[tuple[str, Signature]]:
    """Fusions of each kind and number of parts."""
    for (kind, fuse), parts in itertools.product(FUSIONS.items(), _PARTS):
        for _ in range(repeats):
            chosen = [str(run) for run in random.choice(list(scored), parts, replace=False)]
            yield kind, sign(fuse([scored[run] for run in chosen]))


def _gather(scored: Mapping[str, Run], size: int, random: np.random.Generator) -> dict[str, Run]:
    """Real runs, and as many variants of them as it takes."""
    many = dict(scored)
    for number, name in enumerate(itertools.cycle(scored)):
        if len(many) >= size:
            return many
        many[f"{name}-{number}"] = _shake(scored[name], random)
    return many


def _shake(run: Run, random: np.random.Generator) -> Run:
    """The same documents in another order: noise on the logarithm of the rank."""
    shaken = {}
    for query, hits in run.items():
        noisy = np.log(np.arange(1, len(hits) + 1)) + _NOISE * random.normal(size=len(hits))
        order = np.argsort(noisy).tolist()
        shaken[query] = [Hit(hits[at].document, -float(place)) for place, at in enumerate(order)]
    return shaken


def main() -> None:
    """Print the table alone."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the real data")
    parser.add_argument("--crowd", type=int, default=1000, help="runs of the crowd")
    parser.add_argument(
        "--proposed", type=int, default=ensembles.PROPOSED, help="runs at each step"
    )
    given = parser.parse_args()
    ensembles.PROPOSED = given.proposed
    print(describe_lookups(load(given.data), given.crowd))


if __name__ == "__main__":
    main()
