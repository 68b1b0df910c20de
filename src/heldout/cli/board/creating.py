"""`heldout board`: create a board, look at its sets, show a baseline, put the page on the web."""

from __future__ import annotations

import re
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import click
import msgspec

from heldout.board.rules.template import Stake
from heldout.cli import context
from heldout.cli.board.participant import RunFiles
from heldout.cli.options import command
from heldout.cli.printing import (
    TERMINAL,
    answers,
    fill_facts,
    messages,
    print_facts,
    print_json,
    print_table,
)
from heldout.envelope.keys import Form
from heldout.errors import InputError
from heldout.options import Json, Now, Opt
from heldout.trec.orders import Order

if TYPE_CHECKING:
    from heldout.board.old_boards import Repair
    from heldout.board.organiser.creation import GivenSet
    from heldout.board.rules.spec import ForgeSpec
    from heldout.board.rules.template import NewBoard
    from heldout.board.scores.describe import CollectionFacts, Description
    from heldout.redteam.gap import Gap

_ORDERS: Mapping[Order, str] = {
    "msmarco": "by the rank column of a run; scores are not used",
    "trec": "by the scores of a run; the rank column is not used",
    "trec9": "by the scores of a run as float32; the rank column is not used",
}
_TASK = "Rank the documents of the collection for each query."
_TWO_RUNS = (
    "--known-run goes with --dev and --stake open or prize, and is given at least twice: the best "
    "known run, and one that may become a baseline"
)
_NO_GAP = (
    "not known: it needs a baseline, and another run on dev that is no near copy of it "
    "(--known-run FILE)"
)
_FILES = "QUERIES QRELS"
_TwoFiles = tuple[Path, Path]
_KnownRuns = Annotated[
    tuple[Path, ...],
    Opt(
        "Known run over the dev queries, such as the best published one; the answer says how far a "
        "baseline lies below the best. Repeatable.",
        names=("--known-run",),
        path="file",
    ),
]
_NewVault = Annotated[Path, Opt("Vault, outside DIR.", names=("--vault",), metavar="DIR")]


@command
def new(
    *,
    folder: Annotated[Path, Opt(argument=True, metavar="DIR")],
    vault: _NewVault,
    dev: Annotated[_TwoFiles | None, Opt("Public set.", path="file", metavar=_FILES)] = None,
    eval: Annotated[_TwoFiles, Opt("Held-out set.", path="file", metavar=_FILES)],  # noqa: A002 - the option's name is a contract
    measure: Annotated[
        str, Opt("Measure of every view.", names=("-m", "--measure"), metavar="MEASURE")
    ] = "RR@10",
    stake: Annotated[
        Stake | None,
        Opt(
            "Stakes of the board: known teams, open names, or a prize; they set the "
            "release rule [asked on a terminal, else known]."
        ),
    ] = None,
    final: Annotated[
        _TwoFiles | None,
        Opt(
            "Further held-out set, of queries never used before, for the final of a prize.",
            path="file",
            metavar=_FILES,
        ),
    ] = None,
    closes: Annotated[
        date | None, Opt("Last day, as 2027-03-31 [none; a final needs one].", metavar="DAY")
    ] = None,
    title: Annotated[str | None, Opt("Heading of the page [DIR's name].", metavar="TEXT")] = None,
    task: Annotated[str, Opt("Task of a system, in one sentence.", metavar="TEXT")] = _TASK,
    order: Annotated[
        Order | None,
        Opt(
            "Order of documents in a run [by the labels: trec, or msmarco if each query "
            "has one relevant document]."
        ),
    ] = None,
    known_runs: _KnownRuns = (),
    depth: Annotated[int, Opt("Most documents of a query in a run.", least=1)] = 1000,
    envelope: Annotated[Form, Opt("Encryption of what is sent.")] = "age",
    forge: Annotated[
        str | None,
        Opt(
            "Address of the repository on a forge, such as one on github.com, at which "
            "submissions are opened.",
            metavar="URL",
        ),
    ] = None,
    install: Annotated[
        str, Opt("Address to install heldout from, for the board's README.", metavar="URL")
    ] = "",
    time: Now = None,
    as_json: Json = False,
) -> None:
    """Make a board and its vault, and say what is in the query sets.

    The eval labels go into the vault and nowhere else. With --forge and --install the board gets
    workflows: one checks pull requests, one publishes the page on GitHub or GitLab Pages.

    \b
    Example:
      heldout board new kb --vault ../kb-vault --dev dev.tsv dev.qrels \\
      --eval eval.tsv eval.qrels -m RR@10
    """
    from heldout.board.organiser.creation import add_seasons, choose_order, create_board, is_created
    from heldout.board.rules.template import NewBoard
    from heldout.board.scores.describe import describe_sets
    from heldout.board.scores.sets import load_sets
    from heldout.redteam.gap import count_ranking, list_gaps, score_known
    from heldout.scoring.names import read_own_measure

    if final is not None and stake not in (None, "prize"):
        raise click.UsageError(f"--final goes with --stake prize, not with --stake {stake}")
    if final is not None and closes is None:
        raise click.UsageError("--final needs a last day: --closes 2027-03-31")
    sets = {
        name: _read_set(files, public=name == "dev")
        for name, files in (("dev", dev), ("eval", eval), ("final", final))
        if files is not None
    }
    stake = stake or ("prize" if final is not None else _ask_stake())
    chosen, why = (order, "as --order says") if order else choose_order(sets.values())
    name, now = folder.resolve().name, time or context.read_clock()
    labelled = {query for query, grades in sets["eval"].qrels.judgments.items() if grades}
    judged = len(sets["eval"].queries.texts.keys() & labelled)
    plan = NewBoard(
        name=re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-") or "board",
        title=title or name,
        task=task,
        opens=now.date(),
        envelope=envelope,
        recipients=(),
        measure=measure,
        order=chosen,
        depth=depth,
        sets={name: given.public for name, given in sets.items()},
        primary="eval",
        stake=stake,
        judged=judged,
        final=None if final is None else "final",
        closes=closes,
        forge=None if forge is None else _forge(forge),
        install=install,
    )
    plan = add_seasons(plan)
    if known_runs and (dev is None or plan.stake == "known" or len(known_runs) == 1):
        raise click.UsageError(_TWO_RUNS)
    known = (
        score_known(known_runs, sets["dev"].qrels, read_own_measure(measure), order=chosen)
        if known_runs
        else {}
    )
    before = "   (done before)" if is_created(folder, vault.absolute(), plan, sets) else ""
    session = create_board(folder, vault.absolute(), plan, sets, now=now)
    description = describe_sets({name: (s.queries, s.qrels) for name, s in sets.items()})
    gaps: list[Gap] = []
    if known:
        rules = session.spec().on(now.date())
        given = load_sets(session.repository, rules, vault=session.vault)
        gaps = list_gaps(known, queries=count_ranking(rules, given))
    if as_json:
        document = {"board": plan.name, "by": session.by, "order": chosen, "stake": plan.stake}
        document["seasons"] = msgspec.to_builtins(plan.seasons)
        print_json({**document, **msgspec.to_builtins(description), "gaps": gaps})
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
    if gaps:
        print_facts(answers(), [("", ""), *_gap_facts(gaps, "{} as your best baseline", measure)])
    print_facts(answers(), _new_board_facts(folder, vault, plan, now))


def _ask_stake() -> Stake:
    """Return what a person answers; `known` without a terminal."""
    from heldout.board.rules.template import PRICES

    if not sys.stdin.isatty():
        return "known"
    print_facts(messages(), [(name, f"for {price}") for name, price in PRICES.items()])
    answer: Stake = click.prompt("What is at stake?", type=click.Choice(get_args(Stake)), err=True)
    return answer


def _new_board_facts(
    folder: Path, vault: Path, plan: NewBoard, now: datetime
) -> list[tuple[str, str]]:
    """The release rule, and what to do now: commands can be called as they stand."""
    from heldout.board.rules import changes, template

    steps: Sequence[str] = ("put the page on the web: heldout board publish-page",)
    if plan.forge is not None and template.page_files(plan.forge, install=plan.install):
        steps = template.list_steps(plan.forge, home="")
    board = shlex.quote(str(folder))
    runs = (f"--{n} FILE" if n in ("dev", "eval") else f"--run {n}=FILE" for n in plan.sets)
    return fill_facts(
        "board_new",
        plan=plan,
        prices=template.PRICES,
        split_above=template.SPLIT_ABOVE,
        fixed=changes.FIXED_BY_SCORES,
        board=board,
        folders=f"--board {board} --vault {shlex.quote(str(vault))}",
        page_steps=steps,
        day=f"{now:%Y%m%d}",
        runs=" ".join(runs),
    )


@command
def describe(
    *,
    known_runs: _KnownRuns = (),
    collection: Annotated[
        str | None,
        Opt(
            "Collection whose documents and tokens are counted too, as of heldout rank.",
            metavar="NAME|DIR",
        ),
    ] = None,
    call: context.VaultCall,
) -> None:
    """Describe the query sets: sizes, lengths, judgments, overlaps, and what they can show.

    With a vault it also describes the held-out labels. Under the rule clear it says how far the
    best baseline lies below the best known run: an entry, a baseline, or a file that --known-run
    names.

    \b
    Example:
      heldout board describe --vault ../kb-vault --collection documents/
    """
    from heldout.board.rules.release import INDEPENDENT, LEADS, share_of_wins
    from heldout.board.scores.commitments import check_recipients
    from heldout.board.scores.describe import ASSUMED, describe_sets, describe_views
    from heldout.board.scores.sets import load_sets
    from heldout.board.store.vault import Vault
    from heldout.redteam.gap import find_own_gap

    repository = call.board()
    vault = None
    if call.vault is not None:
        vault = Vault.open(call.vault.absolute(), board=repository.root, read_only=True)
    spec = repository.tree_spec()
    check_recipients(spec, repository.tree_rules(), vault)
    sets = load_sets(repository, spec, vault=vault)
    description = describe_sets(
        {name: (s.queries, s.qrels) for name, s in sets.items()},
        excluded={name: s.excluded for name, s in sets.items()},
        collection=None if collection is None else _count_documents(collection),
    )
    views = describe_views(spec, sets)
    gap = None
    clear = vault is not None and spec.release.rule == "clear"
    if known_runs and not clear:
        raise click.UsageError("--known-run goes with --vault, on a board with the rule clear")
    if vault is not None and clear:
        gap = find_own_gap(vault, spec.on(call.now.date()), sets, known_runs)
    if call.as_json:
        document = {**msgspec.to_builtins(description), "views": views, "gap": gap}
        print_json(document)
        return
    _print(description)
    view = spec.finalists_view
    finals = [one.resolution.queries for one in description.sets if view and one.name == view.set]
    facts = fill_facts(
        "board_described",
        views=views,
        final=view,
        final_queries=finals[0] if finals else 0,
        leads=[f"{lead:g}" for lead in LEADS],
        wins=[f"{share_of_wins(view.finalists or 0, lead):.0%}" for lead in LEADS] if view else [],
        assumed=ASSUMED,
        independent=INDEPENDENT,
    )
    print_facts(answers(), facts)
    if clear:
        gaps = [gap] if gap is not None else []
        measure = spec.view(spec.primary).measure
        print_facts(answers(), [*_gap_facts(gaps, "your best baseline, {},", measure)])


@command
def baseline(
    *,
    name: context.Identifier,
    runs: RunFiles,
    description: Annotated[str, Opt("Description of the system.", metavar="TEXT")],
    call: context.OrganiserCall,
) -> None:
    """Score an organiser's own run and show it: no rank, no trophy, no quota.

    \b
    Example:
      heldout board baseline 20261101-bm25 --dev d.tsv --eval e.tsv \\
      --description "BM25, k1 0.9, b 0.4"
    """
    from heldout.board.organiser import decide, rebuild
    from heldout.cli.board.reports import rebuilt_facts, released_text

    with call.session() as session:
        decision = decide.add_baseline(session, name, runs.files, description=description)
        rebuilt = rebuild.catch_up(session, news=decision.event is not None)
    row = next(row for row in rebuilt.standings.rows if row.id == name)
    before = "   (done before)" if decision.done_before else ""
    facts = [("baseline", f"{name}{before}"), ("released", released_text(row, session.spec()))]
    call.answer(
        {"id": name, "scores": {key: float(v) for key, v in row.scores.items()}},
        [*facts, *rebuilt_facts(rebuilt), *context.next_facts(session.repository)],
    )


def _gap_facts(gaps: Sequence[Gap], subject: str, measure: str) -> Iterator[tuple[str, str]]:
    """A line for each baseline; `subject` has {} for its name."""
    from heldout.redteam.gap import MOST, describe_gap

    texts = [
        describe_gap(one, subject=subject.format(one.baseline), measure=measure) for one in gaps
    ]
    if any(gap.size > MOST for gap in gaps):
        texts.append(f"above {MOST:g} u a better baseline helps more than any rule: add one")
    yield from zip(("gap", *[""] * len(texts)), texts or [_NO_GAP], strict=False)


def _print(description: Description) -> None:
    from heldout.board.scores.describe import list_columns

    facts = fill_facts("described_warnings", about=description)
    print_facts(answers(), [*facts, ("", "")] if facts else [])
    header, *rows = list_columns(description)
    print_table(answers(), header, rows)
    print_facts(answers(), fill_facts("described_notes", about=description))


def _count_documents(collection: str) -> CollectionFacts:
    from heldout.board.scores.describe import describe_collection
    from heldout.collections.source import read_whole

    found = read_whole(collection, progress=TERMINAL)
    if not found.documents:
        raise InputError.of("empty-file", collection, "no document", "at least one")
    return describe_collection(found.documents.values())


def _read_set(files: tuple[Path, Path], *, public: bool) -> GivenSet:
    from heldout.board.organiser.creation import GivenSet
    from heldout.collections.named import load_qrels, load_queries

    queries, qrels = files
    return GivenSet(queries=load_queries(queries), qrels=load_qrels(qrels), public=public)


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


@command
def import_msmarco(
    *,
    table: Annotated[Path, Opt(argument=True, path="file", metavar="CSV")],
    folder: Annotated[Path, Opt(argument=True, path="folder", metavar="DIR")],
    vault: _NewVault,
    time: Now = None,
    as_json: Json = False,
) -> None:
    """Make a board of the CSV file of an MS MARCO leaderboard: a record, nothing is scored.

    Every cell is stored in the log, every repair is printed. Days, scores and
    trophies stay as the old board published them.

    \b
    Example:
      heldout board import-msmarco msmarco-doc-leaderboard.csv old --vault ../old-vault
    """
    from heldout.board.old_boards import differing_trophies, import_board, parse_table

    old = parse_table(table.read_bytes(), path=str(table))
    session, standings, done_before = import_board(
        folder, vault.absolute(), old, now=time or context.read_clock()
    )
    differing = differing_trophies(standings)
    trophies = [entry.id for entry in old.entries if entry.mark == "trophy"]
    baselines = sum(entry.mark == "baseline" for entry in old.entries)
    entries, unranked = len(old.entries) - baselines, standings.unranked
    if as_json:
        document = {
            "board": old.layout.name,
            "by": session.by,
            "source": old.name,
            "sha256": old.digest,
            "entries": entries,
            "baselines": baselines,
            "without_official_score": [row.id for row in unranked],
            "trophies": trophies,
            "trophies_that_differ_by_rule": differing,
            "repairs": old.repairs,
            "done_before": done_before,
        }
        print_json(document)
        return
    repairs: dict[tuple[str, str], list[Repair]] = defaultdict(list)
    for repair in old.repairs:
        repairs[repair.kind, repair.column].append(repair)
    facts = fill_facts(
        "board_imported",
        folder=folder,
        vault=vault,
        session=session,
        old=old,
        before="   (done before)" * done_before,
        entries=entries,
        baselines=baselines,
        unranked=unranked,
        trophies=trophies,
        differing=differing,
        repairs=repairs,
        page=(folder / "leaderboard" / "index.html").absolute().as_uri(),
    )
    print_facts(answers(), facts)


@command
def publish_page(*, call: context.BoardCall) -> None:
    """Publish the leaderboard on GitHub Pages or GitLab Pages.

    Writes the workflow of the board's forge and commits it. After each push, and once a day, the
    forge builds the page from the public log and publishes it. It needs no secret and no vault. A
    job named "due" fails when the page waits for something that only the vault can open.

    `heldout board new --forge URL --install URL` writes the workflow from the start.

    \b
    Example:
      heldout board publish-page
    """
    from heldout.board.organiser.creation import publish_page as publish

    repository = call.board()
    with repository.locked():
        made = publish(repository, now=call.now)
    before = "" if made.changed or made.commit else "   (done before)"
    facts = [("workflow", f"{made.path}{before}")]
    if made.home:
        facts.append(("page", made.home))
    following = context.next_facts(repository, made.steps)
    call.answer(msgspec.to_builtins(made), [*facts, *following])
