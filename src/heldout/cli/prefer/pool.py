"""`heldout prefer pool`: begin a campaign from the tops of runs and the known answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import numpy as np

from heldout.cli.console import progress
from heldout.cli.files import json_option, order_option, run_name
from heldout.cli.prefer.campaign import price_facts, price_value, size_facts, size_value
from heldout.cli.printing import answers, plural, print_facts, print_json, reports_errors
from heldout.collections.tables import parse_documents
from heldout.errors import InputError, Problem, StoreError
from heldout.preferences.categories import split_queries
from heldout.preferences.drawing import propose_tests
from heldout.preferences.pools import Pool, build_pools, sample_pools, sizes
from heldout.preferences.pricing import price
from heldout.preferences.rows import read_text
from heldout.store.campaign_files import CampaignFolder
from heldout.trec.qrels import read_qrels
from heldout.trec.queries import read_queries
from heldout.trec.ranking import Order
from heldout.trec.reading.streams import open_input
from heldout.trec.tops import Tops, read_tops

__all__ = ["pool"]

_TESTS = 60


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--qrels", required=True, metavar="Q", help="Labels: the best is known.")
@click.option("--queries", required=True, metavar="FILE", help="Texts of the queries.")
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
@order_option
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
    runs: tuple[str, ...],
    qrels: str,
    queries: str,
    documents: str | None,
    depth: int,
    every_label: bool,
    split: bool,
    sample: int | None,
    seed: int,
    order: Order | None,
    out: Path,
    as_json: bool,
) -> None:
    """Begin a campaign: pool the tops of runs and the known answer of each query.

    Passages with the same text are pooled once. Writes campaign.toml (look at it: what judges are
    paid and agree to), pool.jsonl, and tests.jsonl: known answers against passages of other
    queries that share no word with them. Read the tests before people are judged by them.

    \b
    Example:
      heldout prefer pool runs/*.gz --qrels dev.qrels --queries dev.tsv \\
      --documents documents.tsv --sample 500 --out campaign
    """
    folder = CampaignFolder(out)
    if folder.has("pool.jsonl"):
        raise StoreError(f"{out / 'pool.jsonl'} is there already; name another --out")
    with open_input(Path(qrels)) as source:
        known = _known(read_qrels(source, path=qrels).judgments)
    with open_input(Path(queries)) as source:
        texts = read_queries(source, path=queries).texts
    tops = _read_tops(runs, max(depth, 2) if split else depth, order)
    if split:
        tops, known = _cut_to_split(tops, known, texts)
    pools = build_pools(
        tops, known, queries=texts, documents=_documents(documents), every_label=every_label
    )
    rng = np.random.Generator(np.random.PCG64(seed))
    if sample is not None:
        pools = sample_pools(pools, count=sample, rng=rng)
    tests = propose_tests(pools, count=_TESTS, rng=rng) if documents else ()
    folder.begin(out.resolve().name)
    folder.write_tests(tests)
    folder.write_pools(pools)
    _tell(folder, pools, tests=len(tests), as_json=as_json)


def _known(judgments: Mapping[str, Mapping[str, int]]) -> Mapping[str, Sequence[str]]:
    """Relevant documents, the best grade first; of equal grades in the order of the file."""
    return {
        query: sorted((doc for doc, grade in grades.items() if grade > 0), key=lambda d: -grades[d])
        for query, grades in judgments.items()
    }


def _read_tops(runs: Sequence[str], depth: int, order: Order | None) -> Mapping[str, Tops]:
    names = [run_name(path) for path in runs]
    if len(set(names)) < len(names):
        names = list(runs)
    tops: dict[str, Tops] = {}
    with progress("reading runs", len(runs)) as done:
        for name, path in zip(names, runs, strict=True):
            with open_input(Path(path)) as source:
                tops[name] = read_tops(source, path=path, depth=depth, order=order)
            done()
    return tops


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


def _documents(path: str | None) -> Mapping[str, str] | None:
    if path is None:
        return None
    with open_input(Path(path)) as source:
        content = read_text(source, path=path)
    return {str(doc): text for doc, text in parse_documents(content, path=path).items()}


def _tell(folder: CampaignFolder, pools: Sequence[Pool], *, tests: int, as_json: bool) -> None:
    found = sizes(pools)
    cost = price(found.pairs, folder.settings())
    if as_json:
        print_json(
            {
                "campaign": str(folder.path),
                "sizes": size_value(found),
                "price": price_value(cost),
                "tests": tests,
            }
        )
        return
    facts = [*size_facts(found), *price_facts(cost)]
    proposed = f"{tests} proposed in tests.jsonl: read them before people do"
    facts += [("tests", proposed if tests else "none: without --documents write your own")]
    facts += [("campaign", f"{folder.path}; set pay and consent in campaign.toml")]
    print_facts(answers(), facts)
