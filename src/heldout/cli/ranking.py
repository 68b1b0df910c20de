"""`heldout rank`: make a run with one of our rankers.

What ranks needs numpy and scipy, and `heldout --help` must not wait for them: heavy imports
stand inside the functions.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from heldout.cli.options import command
from heldout.cli.printing import TERMINAL, messages, print_json
from heldout.errors import InputError, plural, printable
from heldout.options import Opt, Seed
from heldout.rankers.options import DEFAULT_FIRST, Reranking


@command
def rank(
    *,
    collection: Annotated[
        str,
        Opt(
            "Collection to rank: stdlib-docs, a folder (documents.tsv and queries.tsv, or "
            "corpus.jsonl and queries.jsonl), or irds: and a name of ir_datasets.",
            names=("--collection",),
            metavar="NAME|DIR",
        ),
    ] = "stdlib-docs",
    method: Annotated[
        str | None,
        Opt("Method, named above [hybrid where it is installed, else rm3].", metavar="METHOD"),
    ] = None,
    parameters: Annotated[
        tuple[str, ...],
        Opt("Parameter of the method. Repeatable.", names=("--param",), metavar="NAME=VALUE"),
    ] = (),
    reranking: Reranking,
    depth: Annotated[int, Opt("Number of documents per query.", least=1)] = 100,
    subset: Annotated[
        Literal["dev", "eval", "all"],
        Opt("All queries, or one of two halves, divided by --seed.", names=("--queries",)),
    ] = "all",
    seed: Seed = 0,
    form: Annotated[Literal["msmarco", "trec"], Opt("Format of the run file.")] = "trec",
    tag: Annotated[
        str | None, Opt("Name of the run in the TREC form [METHOD].", metavar="NAME")
    ] = None,
    with_header: Annotated[
        bool,
        Opt(
            "Header of ir_metadata in the run file: method, parameters, collection, "
            "libraries. heldout draft reads it; trec_eval before version 10 and "
            "ir_measures refuse it.",
            names=("--ir-metadata",),
        ),
    ] = False,
    out: Annotated[Path, Opt("Run file; a name in .gz or .bz2 compresses it.", path="file")],
    as_json: Annotated[bool, Opt("One JSON document.", names=("--json",))] = False,
) -> None:
    """Make a run: rank a collection's documents for each of its queries.

    Without --method: hybrid where 'heldout[neural]' is installed, else rm3 with stopwords=true;
    neither needs tuning. docs/how-to/playbook.md leads from texts to a run that can be believed.

    \b
    METHOD and its parameters:
      bm25              k1=0.9 b=0.4 stem=true
      tfidf
      query-likelihood  smoothing=dirichlet|jelinek-mercer mu=200 lam=0.5
      rm3               k1=0.9 b=0.4 documents=5 terms=20 original=0.7 stem=true
      char-ngrams       length=4
      fusion            of=bm25,char-ngrams,query-likelihood rule=rrf|combsum k=60
    The first four also take stem=true|false and stopwords=true|false, where true leaves
    English function words out.

    \b
    These need pip install 'heldout[neural]':
      hybrid            BM25 and sentence vectors, scores added; parameters as dense
      dense             model=minilm batch=64 like=NAME similarity=auto|cosine|dot
                        query_prefix= document_prefix= vectors=DIR
      colbert           model=colbertv2 batch=32 vectors=DIR
      cross-encoder     model=minilm-l6 batch=32 length=512 seed=0
      monot5            model=monot5 answers=auto|true|yes, else as cross-encoder
      duot5             model=duot5, else as monot5
    All take device=auto|cpu|cuda|mps precision=auto|float32|bfloat16|float16; model is a
    short name of docs/reference/rankers.md, another published name, or a folder. The last three
    only re-rank what --first returned; dense and colbert do so where --first is given.

    \b
    Examples:
      heldout rank --collection my-folder --out zero-shot.run.gz
      heldout rank --method bm25 --param k1=0.9 --queries dev --out bm25.dev.run.gz
      heldout rank --method monot5 --first bm25.dev.run.gz --rerank-depth 100 --out t5.run.gz
    """
    from heldout.collections.source import read_whole, take_subset
    from heldout.rankers.reranking import choose_ranker, partial_path
    from heldout.rankers.run import RankingTask, describe_run, write_run
    from heldout.trec.ir_metadata import format_header

    settings = _parameters(parameters)
    chosen = choose_ranker(method, settings, reranking, out, progress=TERMINAL)
    name = tag or chosen.name
    if name.split() != [name]:
        raise InputError.of("rank-tag", "--tag", repr(name[:40]))
    texts = take_subset(read_whole(collection, progress=TERMINAL), subset, seed)
    task = RankingTask(documents=texts.documents, queries=texts.queries, depth=depth)
    work = f"{plural(len(task.queries), 'query', 'queries')} over "
    work += plural(len(task.documents), "document")
    messages().print(f"ranking {work} with {chosen.name} ...")
    run = chosen.rank(task)
    what: dict[str, Any] = {
        "collection": collection,
        "method": chosen.name,
        "parameters": settings,
        "depth": depth,
    }
    if chosen.reranking is not None:
        first = reranking.first or DEFAULT_FIRST
        what |= {"first": first, "rerank_depth": chosen.reranking.rerank_depth}
    header = b""
    if with_header:
        header = format_header(describe_run(tag=name, cores=os.cpu_count(), **what))
    write_run(run, out, form=form, tag=name, header=header)
    partial_path(out).unlink(missing_ok=True)
    messages().print(f"wrote {printable(str(out))}")
    if as_json:
        print_json(what | {"queries": len(run), "form": form, "tag": name, "path": str(out)})


def _parameters(options: tuple[str, ...]) -> dict[str, str]:
    """`NAME=VALUE` options by name."""
    pairs = [option.partition("=") for option in options]
    names = [name for name, _, _ in pairs]
    for name, equals, _ in pairs:
        if not (name and equals) or names.count(name) > 1:
            raise InputError.of(
                "rank-parameter",
                "--param",
                repr(name[:40]) + (" twice" if equals else " without a value"),
                "NAME=VALUE, each name once",
                "for example --param k1=0.9",
            )
    return {name: value for name, _, value in pairs}
