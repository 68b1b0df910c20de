"""What the search for near variants and ensembles finds among real runs, and how long it takes.

python benchmarks/detection.py DATA [--page detection.md] [--speed 1000x200 ...] [--crowd 1000]

DATA is the folder of the real runs. The tables go to standard output, or into a page between two
marks.
"""

import argparse
import gzip
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from detection_decoys import describe_decoys
from detection_inputs import FUSIONS, Campaign, load, read_run, sign
from detection_lookup import describe_lookups
from detection_speed import describe_speed
from numpy.typing import NDArray

from heldout.board.policy.ensembles import Ensemble, Sampled
from heldout.board.policy.similarity import (
    DEPTH,
    TOP,
    Likeness,
    classify,
    compare,
    rank_biased_overlap,
)
from heldout.ids import DocId, QueryId
from heldout.rankers.run import RankingTask
from heldout.rankers.terms import Bm25Settings, Rm3Settings, rank_bm25, rank_rm3
from heldout.trec.scans import Signature

_BEGIN = "<!-- results: written by benchmarks/detection.py -->"
_END = "<!-- end of results -->"
_BINS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.01)
_SEED = 20220711
_REPEATS = 15
_PARTS = (2, 3, 5)
_SHOWN = 12
_SIZES = ("100x200", "1000x200", "10000x200", "1000x6980")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two runs of one campaign."""

    first: str
    second: str
    same_team: bool
    likeness: Likeness
    runs: tuple[Signature, Signature]

    @property
    def lowest(self) -> float:
        """The 5% quantile over the queries of the rank-biased overlap of the top 10."""
        return float(np.quantile(rank_biased_overlap(*align(*self.runs, TOP)), 0.05))


def align(
    first: Signature, second: Signature, depth: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The first documents of the queries that both runs answer."""
    _, ours, theirs = np.intersect1d(first.queries, second.queries, return_indices=True)
    left, right = first.documents[ours, :depth], second.documents[theirs, :depth]
    both = (left[:, 0] != 0) & (right[:, 0] != 0)
    return left[both], right[both]


def share_common(first: Signature, second: Signature, depth: int) -> float:
    """Mean of common documents / documents of the longer list, over the queries of both."""
    pairs = [({*a} - {0}, {*b} - {0}) for a, b in zip(*align(first, second, depth), strict=True)]
    return float(np.mean([len(a & b) / max(len(a), len(b)) for a, b in pairs]))


def main() -> None:
    """Make the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the real data")
    parser.add_argument("--page", type=Path, help="write the tables into this page")
    parser.add_argument("--speed", nargs="*", default=_SIZES, help="RUNSxQUERIES of each timing")
    parser.add_argument("--crowd", type=int, default=1000, help="runs of the crowd")
    given = parser.parse_args()
    campaigns = load(given.data)
    sizes = [size.split("x") for size in given.speed]
    sections = [
        *describe_pairs(campaigns),
        describe_decoys(given.data, campaigns),
        describe_settings(given.data),
        *describe_ensembles(campaigns),
        describe_lookups(campaigns, given.crowd),
        describe_speed([(int(runs), int(queries)) for runs, queries in sizes]),
    ]
    text = "\n\n".join(sections)
    if given.page is None:
        print(text)
        return
    page = given.page.read_text("utf-8")
    before, after = page.split(_BEGIN)[0], page.split(_END)[1]
    given.page.write_text(f"{before}{_BEGIN}\n\n{text}\n\n{_END}{after}", "utf-8")


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; numbers to three decimals where they are not whole."""
    lines = [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in row] for row in rows]
    rule = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))


def describe_pairs(campaigns: Sequence[Campaign]) -> list[str]:
    """Distributions of all pairs, what is reported, and the nearest of different teams."""
    pairs = {c.name: compare_all(c) for c in campaigns}
    bins = [
        [
            f"{low:g}–{min(high, 1):g}",
            *(cell for each in pairs.values() for cell in count(each, low, high)),
        ]
        for low, high in itertools.pairwise(_BINS)
    ]
    head = ["RBO of the top 10", *(cell for c in pairs for cell in (c, "same team"))]
    reported = {c: [p for p in each if classify(p.likeness) != "none"] for c, each in pairs.items()}
    summary = [
        [
            c,
            len(pairs[c]),
            len(found),
            sum(classify(p.likeness) == "identical" for p in found),
            sum(p.same_team for p in found),
            max((p.likeness.rbo for p in pairs[c] if not p.same_team), default="–"),
            max((p.likeness.same for p in pairs[c] if not p.same_team), default="–"),
            max((p.likeness.heads for p in pairs[c] if not p.same_team), default="–"),
            max((p.likeness.interleaved for p in pairs[c] if not p.same_team), default="–"),
            max((p.likeness.contained for p in pairs[c] if not p.same_team), default="–"),
        ]
        for c, found in reported.items()
    ]
    columns = ["pairs", "reported", "of these identical", "of these same team"]
    greatest = [
        "greatest RBO of two teams",
        "greatest share of equal top 10 of two teams",
        "greatest share of the same first 3 of two teams",
        "greatest share with the first 3 in order of two teams",
        "greatest share with the first 3 in any order of two teams",
    ]
    strangers = {c: [p for p in each if not p.same_team] for c, each in pairs.items()}
    return [
        "### Every pair of runs\n\n" + table(head, bins),
        "### Reported\n\n" + table(["campaign", *columns, *greatest], summary),
        *(f"#### {c}\n\n{list_pairs(found)}" for c, found in reported.items()),
        *(
            f"### Nearest of different teams: {c}\n\n{list_pairs(each[:_SHOWN])}"
            for c, each in strangers.items()
            if each
        ),
    ]


def compare_all(campaign: Campaign) -> list[Pair]:
    """Every pair, nearest first."""
    pairs = [
        Pair(
            first=first,
            second=second,
            same_team=campaign.teams[first] == campaign.teams[second],
            likeness=likeness,
            runs=(campaign.runs[first], campaign.runs[second]),
        )
        for first, second in itertools.combinations(campaign.runs, 2)
        if (likeness := compare(campaign.runs[first], campaign.runs[second])) is not None
    ]
    return sorted(pairs, key=lambda pair: -pair.likeness.rbo)


def count(pairs: Sequence[Pair], low: float, high: float) -> tuple[int, int]:
    """Pairs in a bin, and those of one team."""
    inside = [p for p in pairs if low <= p.likeness.rbo < high]
    return len(inside), sum(p.same_team for p in inside)


def list_pairs(pairs: Sequence[Pair]) -> str:
    """A row per pair."""
    head = ["runs", "verdict", "RBO@10", "5% quantile", "common in top 10", "equal top 10"]
    return table(
        [*head, "same first 3", "first 3 in order", "in any order", "RBO@100", "common in top 100"],
        [
            [
                f"{pair.first}, {pair.second}",
                classify(pair.likeness),
                pair.likeness.rbo,
                pair.lowest,
                share_common(*pair.runs, TOP),
                pair.likeness.same,
                pair.likeness.heads,
                pair.likeness.interleaved,
                pair.likeness.contained,
                pair.likeness.deep,
                share_common(*pair.runs, DEPTH),
            ]
            for pair in pairs
        ],
    )


def describe_settings(data: Path) -> str:
    """One ranker at several settings: what the paper calls very small changes."""
    folder = data / "small-collections" / "vaswani"
    with gzip.open(folder / "doc-text.trec.gz", "rt", encoding="utf-8") as file:
        documents = re.findall(r"<DOCNO>(\S+?)</DOCNO>(.*?)</DOC>", file.read(), re.DOTALL)
    topics = (folder / "query-text.trec").read_text("utf-8")
    queries = re.findall(r"<num>(\d+)</num>\s*<title>(.*?)</title>", topics, re.DOTALL)
    task = RankingTask(
        documents={DocId(number): text for number, text in documents},
        queries={QueryId(number): text for number, text in queries},
        depth=DEPTH,
    )
    settings = [(0.9, 0.4), (1.0, 0.4), (0.82, 0.68), (1.2, 0.75), (1.5, 0.75), (2.0, 0.9)]
    runs = {
        f"BM25 k1 {k1:g}, b {b:g}": sign(rank_bm25(task, Bm25Settings(k1=k1, b=b)))
        for k1, b in settings
    }
    runs["the first, not stemmed"] = sign(rank_bm25(task, Bm25Settings(stem=False)))
    runs["the first with RM3"] = sign(rank_rm3(task, Rm3Settings()))
    first, *others = runs
    rows = []
    for other in others:
        found = compare(runs[first], runs[other])
        if found is not None:
            rows.append(
                [other, found.rbo, share_common(runs[first], runs[other], TOP), classify(found)]
            )
    head = [f"{len(queries)} Vaswani queries: {first} against", "RBO@10", "common", "verdict"]
    return "### Settings of one ranker\n\n" + table(head, rows)


def describe_ensembles(campaigns: Sequence[Campaign]) -> list[str]:
    """Fusions of our own, runs against other teams' only, and runs against all others."""
    made: list[list[object]] = []
    foreign: list[list[object]] = []
    for campaign in (c for c in campaigns if len(set(c.teams.values())) > 1):
        rows, fusions = fuse_at_random(campaign)
        made += rows
        foreign.append(describe_foreign(campaign, fusions))
    head = ["campaign", "fusion", "parts", "made", "found", "parts named", "agreement", "alone"]
    columns = ["runs", "reported", "greatest agreement", "greatest gain", "greatest R²"]
    return [
        "### Fusions of real runs, made here\n\n" + table([*head, "R²"], made),
        "### Runs against those of other teams\n\n"
        + table(["campaign", *columns, "share of our fusions above that R²"], foreign),
        "### Runs against all others\n\n" + "\n\n".join(map(describe_named, campaigns)),
    ]


def describe_foreign(campaign: Campaign, fusions: Sequence[Ensemble]) -> list[object]:
    """False alarms: nobody fuses what other teams send at the same time."""
    fits = (
        Sampled(run, campaign.foreign(name).items()).fit() for name, run in campaign.runs.items()
    )
    found = [each for each in fits if each is not None]
    limit = max(each.r2 or 0 for each in found)
    return [
        campaign.name,
        len(found),
        sum(each.explains for each in found),
        max(each.agreement for each in found),
        max(each.gain for each in found),
        limit,
        sum((each.r2 or 0) > limit for each in fusions) / len(fusions),
    ]


def describe_named(campaign: Campaign) -> str:
    """The runs that a fusion of others explains best."""
    fits = {
        name: Sampled(run, campaign.others(name).items()).fit()
        for name, run in campaign.runs.items()
    }
    found = [(name, each) for name, each in fits.items() if each is not None]
    found.sort(key=lambda entry: (entry[1].explains, entry[1].gain), reverse=True)
    reported = sum(each.explains for _, each in found)
    title = f"#### {campaign.name}: {reported} of {len(found)} reported\n\n"
    return title + list_ensembles(found[:_SHOWN])


def fuse_at_random(campaign: Campaign) -> tuple[list[list[object]], list[Ensemble]]:
    """A row per kind of fusion and number of parts, and what was found in each fusion."""
    random = np.random.default_rng(_SEED)
    scored = {run: read_run(campaign.folder / f"{run}.gz") for run in campaign.runs}
    rows: list[list[object]] = []
    every: list[Ensemble] = []
    for (kind, fuse), parts in itertools.product(FUSIONS.items(), _PARTS):
        named, found = [], []
        for _ in range(_REPEATS):
            chosen = [str(run) for run in random.choice(list(scored), parts, replace=False)]
            result = Sampled(
                sign(fuse([scored[run] for run in chosen])), campaign.runs.items()
            ).fit()
            if result is not None:
                found.append(result)
                named.append(len({part.id for part in result.parts} & set(chosen)) / parts)
        every += found
        medians = [
            float(np.median(values))
            for values in (
                [each.agreement for each in found],
                [each.alone for each in found],
                [each.r2 or 0 for each in found],
            )
        ]
        hits = sum(each.explains for each in found)
        row = [campaign.name, kind, parts, _REPEATS, hits, float(np.mean(named)), *medians]
        rows.append(row)
    return rows, every


def list_ensembles(found: Sequence[tuple[str, Ensemble]]) -> str:
    """A row per run."""
    head = ["run", "nearest fusion", "transform", "reported", "agreement", "alone"]
    return table(
        [*head, "gain", "R²"],
        [
            [
                run,
                " + ".join(f"{part.weight:.2f} {part.id}" for part in each.parts),
                f"`{each.transform}`",
                "yes" if each.explains else "no",
                each.agreement,
                each.alone,
                each.gain,
                "–" if each.r2 is None else each.r2,
            ]
            for run, each in found
        ],
    )


if __name__ == "__main__":
    main()
