"""`heldout prefer pool`: begin a campaign from the tops of runs and the known answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import numpy as np

from heldout.cli.files import json_option
from heldout.cli.prefer.campaign import price_facts, price_value, size_facts, size_value
from heldout.cli.prefer.pool_source import PoolSource, load_pooled, pool_options, read_documents
from heldout.cli.printing import answers, plural, print_facts, print_json, reports_errors
from heldout.errors import InputError, Problem, StoreError
from heldout.preferences.categories import split_queries
from heldout.preferences.drawing import propose_tests
from heldout.preferences.pools import Pool, build_pools, sample_pools, sizes
from heldout.preferences.pricing import price
from heldout.store.campaign_files import CampaignFolder
from heldout.trec.tops import Tops

__all__ = ["pool"]

_TESTS = 60


@click.command()
@pool_options
@click.option("--documents", metavar="FILE", help="Texts: id, tab, text. Without, only ids.")
@click.option(
    "--depth",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="First documents of each run that enter the pool.",
)
@click.option("--every-label", is_flag=True, help="All relevant documents, not the first alone.")
@click.option(
    "--split",
    is_flag=True,
    help="One run: the known answer against its first document, or, where that is the known "
    "answer, its second.",
)
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Queries, at random.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--out",
    default="campaign",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The campaign's directory; it has no pools yet.",
)
@json_option
@reports_errors
def pool(
    *,
    source: PoolSource,
    documents: str | None,
    depth: int,
    every_label: bool,
    split: bool,
    sample: int | None,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    """Begin a campaign: pool the tops of runs and the known answer of each query.

    Passages with the same text are pooled once. Writes campaign.toml (look at it: what judges are
    paid and agree to), pool.jsonl, and tests.jsonl: known answers against passages of other
    queries that share no word with them. Read the tests before people are judged by them.

    With --board the published runs of a board are pooled, which its vault opens.

    \b
    Examples:
      heldout prefer pool runs/*.gz --qrels dev.qrels --queries dev.tsv \\
      --documents documents.tsv --sample 500 --out campaign
      heldout prefer pool --board kb --vault kb-vault --documents documents.tsv
    """
    folder = CampaignFolder(out)
    if folder.has("pool.jsonl"):
        raise StoreError(f"{out / 'pool.jsonl'} is there already; name another --out")
    given = load_pooled(source, depth=max(depth, 2) if split else depth)
    tops, known, texts = given.tops, given.known, given.queries
    if split:
        tops, known = _cut_to_split(tops, known, texts)
    passages = None if documents is None else read_documents(documents)
    pools = build_pools(tops, known, queries=texts, documents=passages, every_label=every_label)
    rng = np.random.Generator(np.random.PCG64(seed))
    if sample is not None:
        pools = sample_pools(pools, count=sample, rng=rng)
    tests = propose_tests(pools, count=_TESTS, rng=rng) if documents else ()
    folder.begin(out.resolve().name)
    folder.write_tests(tests)
    folder.write_pools(pools)
    _tell(folder, pools, tests=len(tests), as_json=as_json)


def _cut_to_split(
    tops: Mapping[str, Tops], known: Mapping[str, Sequence[str]], queries: Mapping[str, str]
) -> tuple[Mapping[str, Tops], Mapping[str, Sequence[str]]]:
    """The run's one document that each query's known answer is compared with."""
    if len(tops) > 1:
        raise InputError(
            Problem(
                code="one-run",
                path="--split",
                found=plural(len(tops), "run"),
                expected="one run, whose first documents are compared with the labels",
            )
        )
    ((run, answered),) = tops.items()
    pairs = split_queries(answered, known, queries=queries)
    return {run: {one.query: (one.other,) for one in pairs}}, {
        one.query: (one.known,) for one in pairs
    }


def _why_no_tests(pools: Sequence[Pool]) -> str:
    if not any(one.text for each in pools for one in each.candidates):
        return "none: without --documents write your own"
    if not any(each.known for each in pools):
        return "none: no query has a known answer; write your own"
    return "none: every other passage shares a word with the query or its answer; write your own"


def _tell(folder: CampaignFolder, pools: Sequence[Pool], *, tests: int, as_json: bool) -> None:
    found = sizes(pools)
    settings = folder.settings()
    cost = price(found.pairs, settings)
    if as_json:
        print_json(
            {
                "campaign": str(folder.path),
                "sizes": size_value(found),
                "price": price_value(cost, settings),
                "tests": tests,
            }
        )
        return
    facts = [*size_facts(found), *price_facts(cost, settings)]
    proposed = f"{tests} proposed in tests.jsonl: read them before people do"
    facts += [("tests", proposed if tests else _why_no_tests(pools))]
    facts += [("campaign", f"{folder.path}; set pay and consent in campaign.toml")]
    print_facts(answers(), facts)
