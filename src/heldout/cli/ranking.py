"""`heldout rank`: make a run with one of our rankers.

What ranks needs numpy and scipy, and `heldout --help` must not wait for them: heavy imports
stand inside the functions.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heldout.cli.printing import messages, plural, print_json, reports_errors
from heldout.cli.reranking import (
    DEFAULT_FIRST,
    Reranking,
    choose_reranking,
    is_reranking,
    partial_path,
    reranking_options,
)
from heldout.errors import InputError, Problem, StoreError, printable
from heldout.ids import DocId, QueryId

if TYPE_CHECKING:
    from heldout.rankers.run import Run
    from heldout.rankers.runfile import RunForm

__all__ = ["rank"]

EMBEDDED = "stdlib-docs"
_DEV_SHARE = 0.5

Texts = tuple[Mapping[DocId, str], Mapping[QueryId, str]]


@click.command()
@click.option(
    "--collection",
    "place",
    default=EMBEDDED,
    show_default=True,
    metavar="NAME|DIR",
    help="stdlib-docs, or a folder with documents.tsv and queries.tsv (id, tab, text).",
)
@click.option("--method", required=True, metavar="METHOD", help="A method, named above.")
@click.option(
    "--param",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the method; repeat the option for more.",
)
@reranking_options
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Documents per query.",
)
@click.option(
    "--queries",
    "subset",
    type=click.Choice(["dev", "eval", "all"]),
    default="all",
    show_default=True,
    help="Which queries of stdlib-docs; --seed divides them into halves.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--form", type=click.Choice(["msmarco", "trec"]), default="trec", show_default=True)
@click.option("--tag", metavar="NAME", help="Name of the run in the TREC form [default: METHOD].")
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The run file; a name in .gz or .bz2 compresses it.",
)
@click.option("--json", "as_json", is_flag=True, help="Say on standard output what was written.")
@reports_errors
def rank(  # noqa: PLR0917 - click passes by keyword
    place: str,
    method: str,
    parameters: tuple[str, ...],
    reranking: Reranking,
    depth: int,
    subset: str,
    seed: int,
    form: "RunForm",
    tag: str | None,
    out: Path,
    as_json: bool,  # noqa: FBT001 - a flag of the command line
) -> None:
    """Make a run: rank a collection's documents for each of its queries.

    \b
    METHOD and its parameters:
      bm25              k1=0.9 b=0.4 delta=0.5 stem=true
                        variant=lucene|robertson|atire|bm25l|bm25+
      tfidf
      query-likelihood  smoothing=dirichlet|jelinek-mercer mu=200 lam=0.5
      rm3               k1=0.9 b=0.4 documents=5 terms=20 original=0.7 stem=true
      char-ngrams       shortest=4 longest=4
      fusion            of=bm25,char-ngrams,query-likelihood rule=rrf|combsum k=60
    The first four also take identifiers=whole|parts|both stem=true|false
    stopwords=true|false, where true leaves English function words out.

    \b
    These need pip install 'heldout[neural]':
      dense             model=minilm batch=64 similarity=auto|cosine|dot
                        query_prefix= document_prefix= vectors=DIR
      colbert           model=colbertv2 batch=32 length=220 query_length=32 vectors=DIR
      cross-encoder     model=minilm-l6 kind=auto batch=32 length=512 seed=0
      monot5            model=monot5 kind=monot5, else as cross-encoder
      duot5             model=duot5, else as monot5
    All take device=auto|cpu|cuda|mps precision=auto|float32|bfloat16|float16; model is a
    short name of docs/rankers.md, another published name, or a folder. The last three only
    re-rank what --first found; dense and colbert do so where --first is given.

    \b
    Examples:
      heldout rank --method bm25 --param k1=0.9 --queries dev --out bm25.dev.run.gz
      heldout rank --method monot5 --first bm25.dev.run.gz --rerank-depth 100 --out t5.run.gz
    """
    from heldout.rankers.methods import choose_method  # noqa: PLC0415 - heavy
    from heldout.rankers.run import Task  # noqa: PLC0415 - heavy

    settings = _parameters(parameters)
    reranked = is_reranking(method, reranking)
    if reranked:
        ranker = choose_reranking(method, settings, reranking, out)
    else:
        ranker = choose_method(method, settings)
    name = _tag(tag or method)
    documents, queries = _texts(place, subset, seed)
    work = f"{plural(len(queries), 'query', 'queries')} over {plural(len(documents), 'document')}"
    messages().print(f"ranking {work} with {printable(method)} ...")
    run = ranker(Task(documents=documents, queries=queries, depth=depth))
    _write(run, out, form, name)
    if reranked:
        partial_path(out).unlink(missing_ok=True)
    messages().print(f"wrote {printable(str(out))}")
    if as_json:
        what = {"collection": place, "method": method, "parameters": settings, "depth": depth}
        if reranked:
            first = reranking.first or DEFAULT_FIRST
            what |= {"first": first, "rerank_depth": reranking.rerank_depth}
        print_json(what | {"queries": len(run), "form": form, "tag": name, "path": str(out)})


def _parameters(options: tuple[str, ...]) -> dict[str, str]:
    """`NAME=VALUE` options by name."""
    pairs = [option.partition("=") for option in options]
    names = [name for name, _, _ in pairs]
    for name, equals, _ in pairs:
        if not (name and equals) or names.count(name) > 1:
            raise InputError(
                Problem(
                    code="rank-parameter",
                    path="--param",
                    found=repr(name[:40]) + (" twice" if equals else " without a value"),
                    expected="NAME=VALUE, each name once",
                    hint="for example --param k1=0.9",
                )
            )
    return {name: value for name, _, value in pairs}


def _tag(text: str) -> str:
    if text.split() == [text]:
        return text
    raise InputError(
        Problem(
            code="rank-tag", path="--tag", found=repr(text[:40]), expected="a name without spaces"
        )
    )


def _texts(place: str, subset: str, seed: int) -> Texts:
    """Documents and queries of the embedded collection or of a folder."""
    if place == EMBEDDED:
        return _embedded(subset, seed)
    from heldout.collections.tables import read_texts  # noqa: PLC0415 - heavy

    if subset != "all":
        raise InputError(
            Problem(
                code="rank-queries",
                path="--queries",
                found=f"{subset} with a folder",
                expected="all",
                hint=f"only {EMBEDDED} is divided; put the queries you want into queries.tsv",
            )
        )
    return read_texts(Path(place))


def _embedded(subset: str, seed: int) -> Texts:
    import numpy as np  # noqa: PLC0415 - heavy

    from heldout.collections.collection import split_queries  # noqa: PLC0415 - heavy
    from heldout.collections.stdlib_docs import build_collection, read_docstrings  # noqa: PLC0415 - heavy

    source = read_docstrings()
    for skipped in source.skipped:
        messages().print(f"note: {skipped.module} left out: {printable(skipped.reason)}")
    collection = build_collection(source.docstrings)
    if subset != "all":
        split = split_queries(collection, dev=_DEV_SHARE, rng=np.random.default_rng(seed))
        collection = split.dev if subset == "dev" else split.eval
    return collection.documents, collection.queries


def _write(run: "Run", path: Path, form: "RunForm", tag: str) -> None:
    from heldout.rankers.runfile import write_run  # noqa: PLC0415 - heavy

    try:
        write_run(run, path, form=form, tag=tag)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
