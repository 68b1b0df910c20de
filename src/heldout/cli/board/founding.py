"""`heldout board`: found a board, look at its sets, show a baseline."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import msgspec

from heldout.board.rules.template import Stake
from heldout.cli.board.drafting import read_runs
from heldout.cli.context import (
    Place,
    at_board,
    now_option,
    print_next,
    reports_disk,
    with_vault,
)
from heldout.cli.options import json_option
from heldout.cli.printing import (
    TERMINAL,
    answers,
    messages,
    print_facts,
    print_json,
    print_table,
    reports_errors,
)
from heldout.envelope.keys import Form
from heldout.errors import InputError, Problem, plural, quote
from heldout.trec.ranking import Order

if TYPE_CHECKING:
    from heldout.board.old_boards.legacy import OldTable, Repair
    from heldout.board.old_boards.taking_over import Source, TakenOver
    from heldout.board.organiser.found import GivenSet
    from heldout.board.rules.spec import ForgeSpec
    from heldout.board.rules.template import NewBoard
    from heldout.board.scores.describe import CollectionFacts, Description
    from heldout.board.scores.published_numbers import Price, PublishedNumbers


_file = click.Path(path_type=Path, dir_okay=False)
_MEASURE = "RR@10"
_ORDERS: Mapping[Order, str] = {
    "msmarco": "by the rank column of a run; scores are not used",
    "trec": "by the scores of a run; the rank column is not used",
    "trec9": "by the scores of a run as float32; the rank column is not used",
}
_TASK = "Rank the documents of the collection for each query."


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--vault", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Outside DIR."
)
@click.option("--dev", nargs=2, type=_file, metavar="QUERIES QRELS", help="A set in the open.")
@click.option(
    "--eval", nargs=2, type=_file, metavar="QUERIES QRELS", help="The held-out set.", required=True
)
@click.option(
    "-m",
    "--measure",
    metavar="MEASURE",
    help="Measure of every view [RR@10].",
)
@click.option(
    "--stake",
    type=click.Choice(get_args(Stake)),
    help="What is at stake: known teams, open names, or a prize; it sets the release rule [asked "
    "on a terminal, else known].",
)
@click.option(
    "--final",
    nargs=2,
    type=_file,
    metavar="QUERIES QRELS",
    help="A further held-out set, of queries never used before, for the final of a prize.",
)
@click.option(
    "--closes",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DAY",
    help="Last day, as 2027-03-31 [none; a final needs one].",
)
@click.option("--title", metavar="TEXT", help="Heading of the page [DIR's name].")
@click.option("--task", default=_TASK, metavar="TEXT", help="What a system has to do.")
@click.option(
    "--order",
    type=click.Choice(get_args(Order)),
    help="How documents of a run are ordered [by the labels: trec, or msmarco where a query has "
    "one relevant document].",
)
@click.option("--depth", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--envelope", type=click.Choice(get_args(Form)), default="age", show_default=True)
@click.option("--forge", metavar="URL", help="Where submissions are opened, as on github.com.")
@click.option(
    "--install", default="", metavar="URL", help="Where heldout is installed from: for the README."
)
@now_option
@json_option
@reports_disk
def new(
    *,
    folder: Path,
    vault: Path,
    dev: tuple[Path, Path] | None,
    eval: tuple[Path, Path],  # noqa: A002 - the option's name is a contract
    measure: str | None,
    stake: Stake | None,
    final: tuple[Path, Path] | None,
    closes: datetime | None,
    title: str | None,
    task: str,
    order: Order | None,
    depth: int,
    envelope: Form,
    forge: str | None,
    install: str,
    now: datetime,
    as_json: bool,
) -> None:
    """Make a board and its vault, and say what is in the query sets.

    The eval labels go into the vault and nowhere else.

    \b
    Example:
      heldout board new kb --vault ../kb-vault --dev dev.tsv dev.qrels \\
      --eval eval.tsv eval.qrels -m RR@10
    """
    from heldout.board.organiser.found import choose_order, found_board, is_founded
    from heldout.board.rules.template import PRICES, NewBoard
    from heldout.board.scores.describe import as_document, describe_sets

    sets = {"dev": _given(dev, public=True)} if dev is not None else {}
    sets["eval"] = _given(eval, public=False)
    if final is not None:
        sets["final"] = _given(final, public=False)
    chosen, why = (order, "as --order says") if order else choose_order(sets.values())
    if final is not None and stake not in (None, "prize"):
        raise click.UsageError(f"--final goes with --stake prize, not with --stake {stake}")
    if final is not None and closes is None:
        raise click.UsageError("--final needs a last day: --closes 2027-03-31")
    at_stake = stake or ("prize" if final is not None else _ask_stake())
    plan = NewBoard(
        name=re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.casefold()).strip("-") or "board",
        title=title or folder.resolve().name,
        task=task,
        opens=now.date(),
        envelope=envelope,
        recipients=(),
        measure=measure or _MEASURE,
        order=chosen,
        depth=depth,
        sets={name: given.public for name, given in sets.items()},
        primary="eval",
        stake=at_stake,
        judged=_count_judged(sets["eval"]),
        final=None if final is None else "final",
        closes=None if closes is None else closes.date(),
        forge=None if forge is None else _forge(forge),
        install=install,
    )
    before = "   (done before)" if is_founded(folder, vault.absolute(), plan, sets) else ""
    session = found_board(folder, vault.absolute(), plan, sets, now=now)
    description = describe_sets({name: (s.queries, s.qrels) for name, s in sets.items()})
    if as_json:
        told = {"board": plan.name, "by": session.by, "order": chosen, "stake": at_stake}
        print_json({**told, **as_document(description)})
        return
    print_facts(
        answers(),
        [
            ("board", f"{folder}: board.toml, queries, page; a git repository{before}"),
            ("vault", f"{vault}: the key {session.by}, the labels of eval, the log{before}"),
            ("order", f"{chosen}: {_ORDERS[chosen]} ({why}; --order sets another)"),
            ("", ""),
        ],
    )
    _print(description)
    play = f"heldout redteam --board {shlex.quote(str(folder))} --runs FILE FILE"
    others = " or ".join(name for name in PRICES if name != at_stake)
    release = [
        f"for {PRICES[at_stake]}",
        *([] if at_stake == "known" else [_say_informing(plan)]),
        f"--stake {others} sets another rule (docs/release.md)",
        f"{play} plays the attacks on your dev data",
    ]
    for heading, lines in (("release", release), ("next", _next(folder, vault, plan, now))):
        print_facts(answers(), [("", "")])
        print_facts(answers(), [(heading * (i == 0), line) for i, line in enumerate(lines)])


def _ask_stake() -> Stake:
    """What a person answers; `known` without a terminal."""
    from heldout.board.rules.template import PRICES

    if not sys.stdin.isatty():
        return "known"
    print_facts(messages(), [(name, f"for {price}") for name, price in PRICES.items()])
    answer: Stake = click.prompt("What is at stake?", type=click.Choice(get_args(Stake)), err=True)
    return answer


def _next(folder: Path, vault: Path, plan: NewBoard, now: datetime) -> Iterator[str]:
    """What to do now; commands can be called as they stand, once FILE is a file."""
    from heldout.board.rules.changes import FIXED_BY_SCORES

    runs = " ".join(
        f"--{name} FILE" if name in ("dev", "eval") else f"--run {name}=FILE" for name in plan.sets
    )
    places = f"--board {shlex.quote(str(folder))} --vault {shlex.quote(str(vault))}"
    run = f'{now:%Y%m%d}-bm25 {runs} --description "BM25"'
    yield "back up the vault today: without its key nothing that is sent can be opened"
    yield f"read board.toml: after the first score these are fixed: {', '.join(FIXED_BY_SCORES)}"
    yield f"log what you change there: heldout rebuild {places}"
    if not plan.install:
        yield "state in board.toml where heldout is installed from: install"
    address = "URL" if plan.forge is None else plan.forge.clone_url
    push = f"git remote add origin {address}; git push -u origin main"
    yield f"put the board where people find it: {push}"
    if plan.forge is None:
        yield "and state that address in board.toml: repository"
    first = "show a first run"
    if plan.stake != "known":
        first = "before the first submission add your best baseline, where the ratchet begins"
    yield f"{first}: heldout board baseline {run} {places}"
    if plan.stake == "prize":
        yield _say_final(plan)
    yield "another organiser: share the vault (docs/organisers.md), then heldout board rekey"


def _say_informing(plan: NewBoard) -> str:
    from heldout.board.rules.template import SPLIT_ABOVE

    if plan.judged > SPLIT_ABOVE:
        return (
            "view feedback publishes every score on a quarter of the eval queries and ranks "
            "nobody; view eval ranks on the others"
        )
    return (
        "view check publishes every score with noise, for information only: eval has "
        f"{plan.judged:,} judged queries, and only more than {SPLIT_ABOVE:,} are split"
    )


def _say_final(plan: NewBoard) -> str:
    if plan.final is None:
        return (
            "before the first submission prepare the final that decides the prize: a held-out set "
            "of queries never used before, with a view that has final = true and finalists = 10 "
            "(docs/release.md); or start again with --final QUERIES QRELS"
        )
    return (
        f"the final: name at most 10 finalists (heldout board finalists) and, after {plan.closes}, "
        "publish their scores (heldout board final)"
    )


def _count_judged(given: GivenSet) -> int:
    judged = {query for query, grades in given.qrels.judgments.items() if grades}
    return len(given.queries.texts.keys() & judged)


@click.command()
@click.option(
    "--collection",
    metavar="NAME|DIR",
    help="Count its documents and their tokens too: as --collection of heldout rank.",
)
@with_vault
@reports_errors
def describe(*, place: Place, collection: str | None) -> None:
    """Describe the query sets: sizes, lengths, judgments, overlaps, and what they can show.

    With a vault it also describes the held-out labels, and counts the scores on them that were
    published, by team.

    \b
    Example:
      heldout board describe --vault ../kb-vault --collection documents/
    """
    from heldout.board.scores.commitments import check_recipients
    from heldout.board.scores.describe import (
        as_document,
        describe_sets,
        describe_views,
        list_view_notes,
    )
    from heldout.board.scores.published_numbers import count_numbers, find_price
    from heldout.board.scores.sets import load_sets
    from heldout.board.store.vault import Vault

    repository = place.board()
    vault = None
    if place.vault is not None:
        vault = Vault.open(place.vault.absolute(), board=repository.root, read_only=True)
    spec = repository.tree_spec()
    check_recipients(spec, repository.tree_rules(), vault)
    sets = load_sets(repository, spec, vault=vault)
    description = describe_sets(
        {name: (s.queries, s.qrels) for name, s in sets.items()},
        excluded={name: s.excluded for name, s in sets.items()},
        collection=None if collection is None else _count_documents(collection),
    )
    views = describe_views(spec, sets)
    document = {**as_document(description), "views": msgspec.to_builtins(views)}
    if vault is None:
        numbers = price = None
    else:
        history = vault.history()
        numbers = count_numbers(history, spec)
        price = find_price(vault, history, spec, day=place.now.date())
        document["numbers"] = {**msgspec.to_builtins(numbers), "price": msgspec.to_builtins(price)}
    if place.as_json:
        print_json(document)
        return
    _print(description)
    print_facts(answers(), [("", note) for note in list_view_notes(views)])
    if numbers is not None:
        _print_numbers(numbers)
        print_facts(answers(), [] if price is None else list(_say_price(price)))


@click.command()
@click.argument("name", metavar="ID")
@click.option("--dev", type=_file, multiple=True, metavar="FILE", help="As --run dev=FILE.")
@click.option("--eval", type=_file, multiple=True, metavar="FILE", help="As --run eval=FILE.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="SET=FILE",
    help="The run over a query set; given again, that of a further seed.",
)
@click.option("--description", required=True, metavar="TEXT", help="The system.")
@at_board
@reports_errors
def baseline(
    *,
    place: Place,
    name: str,
    dev: tuple[Path, ...],
    eval: tuple[Path, ...],  # noqa: A002 - the option's name is a contract
    runs: tuple[str, ...],
    description: str,
) -> None:
    """Score an organiser's own run and show it: no rank, no trophy, no quota.

    \b
    Example:
      heldout board baseline 20261101-bm25 --dev d.tsv --eval e.tsv \\
      --description "BM25, k1 0.9, b 0.4"
    """
    from heldout.board.organiser.decide import add_baseline
    from heldout.board.organiser.rebuild import catch_up
    from heldout.board.organiser.words import rebuilt_facts, released_fact

    files = read_runs({"dev": dev, "eval": eval}, runs)
    with place.session() as session:
        decision = add_baseline(session, name, files, description=description)
        rebuilt = catch_up(session, news=decision.event is not None)
    row = next(row for row in rebuilt.standings.rows if row.id == name)
    if place.as_json:
        print_json({"id": name, "scores": {key: float(v) for key, v in row.scores.items()}})
        return
    before = "   (done before)" if decision.done_before else ""
    released = released_fact(row, session.spec())
    print_facts(answers(), [("baseline", f"{name}{before}"), released, *rebuilt_facts(rebuilt)])
    print_next(session.repository, [])


def _print_numbers(numbers: PublishedNumbers) -> None:
    head = ["team", "entries", "numbers", "without a number"]
    rows = [
        [row.name, f"{row.entries:,}", f"{row.numbers:,}", f"{row.without:,}"]
        for row in (*numbers.teams, numbers.board)
    ]
    print_facts(answers(), [("", "")])
    print_table(answers(), head, rows)
    counted = ", ".join(numbers.views) or "no public view"
    text = f"published scores on held-out labels ({counted}), without the organisers' baselines"
    if numbers.informing:
        text += f" and without views for information only ({', '.join(numbers.informing)})"
    print_facts(answers(), [("", ""), ("numbers", text)])


def _say_price(price: Price) -> Iterator[tuple[str, str]]:
    from heldout.board.scores.published_numbers import VOTE

    rule = (
        "a vote over all of a board's N published numbers can gain about "
        f"{VOTE} * sqrt(N) * u; u = sd(A - B) / sqrt(n), the standard error of the difference of "
        "two systems A and B on n queries"
    )
    yield ("price", rule)
    now = f"view {price.view}: N = {price.numbers:,}, a gain of about {price.gain:.1f} u"
    if price.unit is None:
        yield ("", f"{now}; u is not known before two different systems were scored")
        return
    of = f"u = {price.unit.size:.4f} between {price.unit.a} and {price.unit.b}"
    yield ("", f"{now}, {price.gain * price.unit.size:.4f} ({of})")


def _print(description: Description) -> None:
    from heldout.board.scores.describe import list_columns, list_notes, say_collection

    warnings = [("warning", text) for text in _warnings(description)]
    print_facts(answers(), [*warnings, ("", "")] if warnings else [])
    if description.collection is not None:
        print_facts(answers(), [("collection", say_collection(description.collection)), ("", "")])
    header, *rows = list_columns(description)
    print_table(answers(), header, rows)
    notes = list_notes(_without_warnings(description))
    print_facts(answers(), [("", ""), *[("", note) for note in notes]])


def _count_documents(place: str) -> CollectionFacts:
    from heldout.board.scores.describe import describe_collection
    from heldout.collections.source import read_whole

    found, _ = read_whole(place, labelled=False, progress=TERMINAL)
    if not found.documents:
        problem = Problem(
            code="empty-file", path=place, found="no document", expected="at least one"
        )
        raise InputError(problem)
    return describe_collection(found.documents.values())


def _warnings(description: Description) -> Iterator[str]:
    """What is mostly a mistake in the files that were given."""
    for overlap in description.overlaps:
        if overlap.same_id:
            sets = f"{overlap.first} and {overlap.second}"
            other = overlap.same_id_other_text
            text = f", {other:,} of them with another text" if other else ""
            yield f"{plural(overlap.same_id, 'query', 'queries')} in both {sets}{text}"
    for one in description.sets:
        if one.labels is not None and one.labels.outside:
            queries = plural(one.labels.outside_queries, "query", "queries")
            judgments = plural(one.labels.outside, "judgment")
            yield f"{judgments} of {queries} outside the query file of {one.name}, ignored"


def _without_warnings(description: Description) -> Description:
    """The description without what was said first, so that no note repeats it."""
    sets = [
        replace(one, labels=one.labels and replace(one.labels, outside=0))
        for one in description.sets
    ]
    overlaps = [replace(overlap, same_id=0) for overlap in description.overlaps]
    return replace(description, sets=tuple(sets), overlaps=tuple(overlaps))


def _given(files: tuple[Path, Path], *, public: bool) -> GivenSet:
    from heldout.board.organiser.found import GivenSet
    from heldout.trec.qrels import read_qrels
    from heldout.trec.queries import read_queries
    from heldout.trec.reading.sources import open_input

    queries, qrels = files
    with open_input(queries) as source:
        read = read_queries(source, path=str(queries))
    with open_input(qrels) as source:
        return GivenSet(queries=read, qrels=read_qrels(source, path=str(qrels)), public=public)


def _forge(address: str) -> ForgeSpec:
    from heldout.board.rules.spec import parse_forge

    found = parse_forge(address)
    if found is None:
        raise click.BadParameter(
            f"{address!r} is no project on github.com, gitlab.com or codeberg.org; "
            "name others in [forge] of board.toml, and heldout rebuild writes their workflow",
            param_hint="--forge",
        )
    return found


# `heldout board import-msmarco`: an old board's table becomes a board of its own.

_MOST_SHOWN = 3


@click.command("import-msmarco")
@click.argument("table", metavar="CSV", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--vault", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Outside DIR."
)
@now_option
@json_option
@reports_disk
def import_msmarco(*, table: Path, folder: Path, vault: Path, now: datetime, as_json: bool) -> None:
    """Make a board of the CSV file of an MS MARCO leaderboard: a record, nothing is scored.

    Every cell is kept in the log, every repair is told. Days, scores and trophies stay as the old
    board published them.

    \b
    Example:
      heldout board import-msmarco msmarco-doc-leaderboard.csv old --vault ../old-vault
    """
    from heldout.board.old_boards.legacy import parse_table
    from heldout.board.old_boards.taking_over import Source, import_board

    data = _read(table)
    source = Source(name=table.name, data=data, table=parse_table(data, path=str(table)))
    taken = import_board(folder, vault.absolute(), source, now=now)
    if as_json:
        print_json(_document(source, taken))
        return
    print_facts(answers(), _facts(folder, vault, source, taken))
    _print_repairs(source.table.repairs)
    page = (folder / "leaderboard" / "index.html").absolute()
    print_facts(answers(), [("", ""), ("page", page.as_uri())])


def _read(table: Path) -> bytes:
    try:
        return table.read_bytes()
    except OSError as error:
        raise InputError(
            Problem(
                code="unreadable-file",
                path=str(table),
                found=error.strerror or "no file",
                expected="the CSV file of a leaderboard",
            )
        ) from None


def _facts(folder: Path, vault: Path, source: Source, taken: TakenOver) -> list[tuple[str, str]]:
    from heldout.board.old_boards.taking_over import differing_trophies

    before = "   (done before)" if taken.done_before else ""
    table = source.table
    without = len(taken.standings.unranked)
    none = f", {without} without an official score" if without else ""
    return [
        ("board", f"{folder}: board.toml, log, page; a git repository{before}"),
        ("vault", f"{vault}: the key {taken.session.by}, the log, the file as it is{before}"),
        ("source", f"{source.name}, SHA-256 {table.digest}"),
        ("imported", f"{_count_entries(table)}{none}"),
        ("days", _say_days(table)),
        ("trophies", _say_trophies(table, differing_trophies(taken.standings))),
        ("scores", "as published; without runs and labels nothing can be scored again"),
    ]


def _count_entries(table: OldTable) -> str:
    baselines = sum(entry.mark == "baseline" for entry in table.entries)
    entries = plural(len(table.entries) - baselines, "entry", "entries")
    return f"{entries}, {plural(baselines, 'baseline')}"


def _say_days(table: OldTable) -> str:
    days = [entry.day for entry in table.entries]
    return f"{min(days)} to {max(days)}, as the old board claims"


def _say_trophies(table: OldTable, differing: Sequence[str]) -> str:
    given = sum(entry.mark == "trophy" for entry in table.entries)
    if not differing:
        return f"{given} as given; the rule gives the same"
    named = ", ".join(differing)
    return f"{given} as given; the rule says otherwise of {len(differing)}: {named}"


def _print_repairs(repairs: Sequence[Repair]) -> None:
    counts = Counter((repair.kind, repair.column) for repair in repairs)
    print_facts(answers(), [("", ""), ("repairs", f"{len(repairs):,}; log.jsonl has all of them")])
    for (kind, column), count in counts.items():
        places = [r for r in repairs if (r.kind, r.column) == (kind, column)]
        print_facts(answers(), [("", f"{kind}, column {column}: {count:,}")])
        shown = [("", f"  {_say_repair(repair)}") for repair in places[:_MOST_SHOWN]]
        more = len(places) - len(shown)
        print_facts(answers(), [*shown, *[("", f"  and {more:,} more")] * (more > 0)])


def _say_repair(repair: Repair) -> str:
    made = quote(repair.made) if repair.made else "nothing"
    return f"line {repair.line}: {quote(repair.found)} -> {made}"


def _document(source: Source, taken: TakenOver) -> dict[str, object]:
    from heldout.board.old_boards.taking_over import differing_trophies

    table = source.table
    baselines = sum(entry.mark == "baseline" for entry in table.entries)
    return {
        "board": table.layout.name,
        "by": taken.session.by,
        "source": source.name,
        "sha256": table.digest,
        "entries": len(table.entries) - baselines,
        "baselines": baselines,
        "without_official_score": [row.id for row in taken.standings.unranked],
        "trophies": [entry.id for entry in table.entries if entry.mark == "trophy"],
        "trophies_that_differ_by_rule": list(differing_trophies(taken.standings)),
        "repairs": [asdict(repair) for repair in table.repairs],
        "done_before": taken.done_before,
    }
