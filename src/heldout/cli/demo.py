"""`heldout demo`: the whole story on the embedded collection."""

import multiprocessing
import shlex
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Annotated

from heldout.board.standings.standings import Standings
from heldout.cli.context import read_clock
from heldout.cli.options import command
from heldout.cli.printing import answers, fill_facts, messages, print_facts, print_json, print_table
from heldout.collections.collection import QuerySplit
from heldout.demo.campaign import play_campaign, publish_version
from heldout.demo.story import Scene, check_ready, play_demo, read_collection, sit, write_files
from heldout.errors import SetupError, plural
from heldout.options import Json, Now, Opt, Seed


@command
def demo(
    *,
    folder: Annotated[Path, Opt(argument=True, metavar="[DIR]")] = Path("heldout-demo"),
    files: Annotated[bool, Opt("Write the files of the tutorials instead.")] = False,
    seed: Seed = 0,
    time: Now = None,
    as_json: Json = False,
) -> None:
    """Play a whole shared task: real rankers, four teams, a board, its vault, its page.

    Takes a minute or two, and needs an extra: pip install 'heldout[rankers]'. Leaves
    DIR/board and DIR/vault for you to try the other commands on.

    With --files it plays nothing: it writes documents, queries, labels, runs and a board into DIR,
    which the tutorials work on. That takes seconds and needs no extra.

    \b
    Examples:
      heldout demo /tmp/demo
      heldout demo --files files
    """

    def say(heading: str, text: str) -> None:
        print_facts(messages(), [(heading, text)])

    now = time or read_clock()
    if files:
        write_files(folder, now=now, say=say)
        _print_files(folder, as_json=as_json)
        return
    check_ready(folder)
    context = multiprocessing.get_context("spawn")
    say("reading", "the standard library's docstrings ...")
    split = read_collection(seed=seed)
    with ProcessPoolExecutor(mp_context=context) as executor:
        standings, scenes = play_demo(folder, split, now=now, executor=executor, say=say)
    judged, standings = _judge(folder, split, standings, now=now, seed=seed, say=say)
    page = (folder / "board" / "leaderboard" / "index.html").absolute()
    if as_json:
        print_json({"page": page.as_uri(), **_document(standings, scenes), "judged": judged})
        return
    _print(standings, scenes)
    facts = fill_facts(
        "demo",
        page=page.as_uri(),
        heldout=_own_command(),
        options=f"--board {folder}/board --vault {folder}/vault",
        last=scenes[-1].id,
        folder=folder,
    )
    print_facts(answers(), facts)


def _print_files(folder: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({"folder": str(folder)})
        return
    runs, qrels = f"{folder}/runs/dev/*.gz", f"{folder}/dev.qrels"
    command = f"{_own_command()} evaluate {runs} --qrels {qrels} -m RR@10"
    print_facts(answers(), [("", ""), ("next", command)])


def _own_command() -> str:
    """Return what to type in this folder to call this program again."""
    called, found = Path(sys.argv[0]), shutil.which("heldout")
    if found is not None and called.exists() and called.samefile(found):
        return "heldout"
    if called.name == "heldout":
        return shlex.quote(str(called))
    return f"{shlex.quote(sys.executable)} -m heldout"


def _judge(
    folder: Path,
    split: QuerySplit,
    standings: Standings,
    *,
    now: datetime,
    seed: int,
    say: Callable[[str, str], None],
) -> tuple[dict[str, object] | None, Standings]:
    """Play the campaign where what it needs is installed; what it came to, and the standings."""
    try:
        story = play_campaign(folder, split, now=now, seed=seed, say=say)
    except SetupError as error:
        say("left out", f"better labels: {error}")
        return None, standings
    with sit(folder, now) as session:
        change, standings = publish_version(session, story.folder)
    say(
        "judged",
        f"{plural(len(story.visits), 'task')} by made-up judges, one who does not look and one "
        f"who stops early among them; {story.counted:,} of {story.judgments:,} answers count",
    )
    judged = len(story.labels.tournaments)
    say("labels", f"{story.changed} of {judged} judged queries have another best answer now")
    tau = None if change is None or not change.taus else change.taus[0].tau
    if tau is not None and change is not None:
        moved = plural(len(change.moves), "system")
        say("ranking", f"{moved} at another rank on the new dev labels; Kendall's tau {tau:.2f}")
    return {"queries": judged, "changed": story.changed, "tau": tau}, standings


def _print(standings: Standings, scenes: tuple[Scene, ...]) -> None:
    header = ("rank", "eval", "dev", "", "team", "system")
    rows = [
        (
            "–" if row.rank is None else str(row.rank),
            row.scores["eval"],
            row.scores["dev"],
            "trophy" if row.trophy else "baseline" if row.baseline else "",
            "Anonymous" if row.identity is None else row.identity.team,
            "" if row.identity is None else row.identity.description,
        )
        for row in standings.rows
    ]
    print_facts(answers(), [("", "")])
    print_table(answers(), header, rows, left=("", "team", "system"))
    refused = [scene for scene in scenes if not scene.published]
    print_facts(answers(), [("", ""), ("", f"{plural(len(refused), 'submission')} refused:")])
    print_facts(answers(), [("refused", f"{scene.id}  {scene.why}") for scene in refused])


def _document(standings: Standings, scenes: tuple[Scene, ...]) -> dict[str, object]:
    return {
        "rows": [
            {"rank": row.rank, "id": row.id, "eval": float(row.scores["eval"])}
            for row in standings.rows
        ],
        "refused": [{"id": scene.id, "why": scene.why} for scene in scenes if not scene.published],
    }
