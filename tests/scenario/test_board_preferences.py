"""Preference labels of a board, through the command line: pools, versions, new runs, audits."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lab import NEXT, OTHER_TEAM, QUERIES, Lab, Patch, found_lab, git, named, prepared, run_text
from scipy.stats import kendalltau

from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.rows import Item, Task
from heldout.trec.qrels import read_qrels

LATER = "2026-11-05T10:00:00Z"
AFTER = "2026-11-07T10:00:00Z"
Prefers = Callable[[str, str, str], str]


def two_entries(lab: Lab) -> None:
    """A board with two published entries."""
    lab.enter("lamp", seed=1, shared=True)
    lab.enter("coast", seed=2, team=OTHER_TEAM, shared=True)


lab = prepared(two_entries)


def documents(lab: Lab) -> Path:
    """Texts of all documents; those of one query share no word with those of another."""
    ids = [f"d{name}{i}" for name in ("dev", "eval") for i in range(QUERIES)]
    ids += [f"n{i}-{k}" for i in range(QUERIES) for k in range(20)]
    file = lab.root / "documents.tsv"
    file.write_text("".join(f"{doc}\ttext of{doc.replace('-', 'x')}\n" for doc in ids))
    return file


def begin(lab: Lab, *more: str) -> CampaignFolder:
    """A campaign of the board's published runs, with tests of its own."""
    folder = CampaignFolder(lab.root / "campaign")
    args = ("--documents", documents(lab), "--out", folder.path, "--json")
    lab.organiser("prefer", "pool", *args, *more, now=NEXT).done()
    settings = folder.path / "campaign.toml"
    text = settings.read_text("utf-8").replace("reward = 0 ", "reward = 200 ")
    settings.write_text(text.replace("fee = 0 ", "fee = 40 "), "utf-8")
    folder.write_tests(known_against_off_topic(folder))
    return folder


def known_against_off_topic(folder: CampaignFolder) -> Sequence[Item]:
    pools = folder.pools()
    return [
        Item(query=pool.query, left=known.doc, right=off.doc, answer=known.doc)
        for pool, other in zip(pools, (*pools[1:], pools[0]), strict=True)
        if (known := pool.known) is not None and (off := other.known) is not None
    ]


def judge(folder: CampaignFolder, tasks: Sequence[Task], prefers: Prefers, *, day: str) -> None:
    """Somebody who never fails a test does each task; the judgments are exported."""
    judged = [
        Judgment(
            query=item.query,
            left=item.left,
            right=item.right,
            preferred=item.answer or prefers(item.query, item.left, item.right),
            worker=f"w-{task.task}",
            task=task.task,
            position=place,
            answer=item.answer,
            why=task.why,
            answered_at=f"{day}T12:00:{place:02}Z",
        )
        for task in tasks
        for place, item in enumerate(task.items, 1)
    ]
    folder.write_judgments([*folder.judgments(), *judged])


def known_first(query: str, left: str, right: str) -> str:
    """The known answer, else the lesser id."""
    return left if left == f"d{query}" or (right != f"d{query}" and left < right) else right


def maintain(lab: Lab, folder: CampaignFolder, *more: str | Path, now: str) -> Any:
    args = ("prefer", "maintain", folder.path, "--documents", documents(lab), "--json", *more)
    return lab.organiser(*args, now=now).done().json


def draw(lab: Lab, folder: CampaignFolder) -> Sequence[Task]:
    assert lab.call("prefer", "tasks", folder.path).code == 0
    return folder.tasks()


def labels(file: Path) -> Mapping[str, set[str]]:
    with file.open("rb") as source:
        return {q: set(docs) for q, docs in read_qrels(source, path=file.name).judgments.items()}


def run_of(lab: Lab, submission: str, query_set: str = "eval") -> Mapping[str, list[str]]:
    rows = (
        (lab.clone / f".git/heldout/drafts/{submission}/{query_set}.run").read_text().splitlines()
    )
    found: dict[str, list[str]] = {}
    for row in rows:
        query, doc, _ = row.split("\t")
        found.setdefault(query, []).append(doc)
    return found


def reciprocal_rank(run: Mapping[str, list[str]], wanted: Mapping[str, set[str]]) -> float:
    ranks = [
        next((1 / rank for rank, doc in enumerate(run[query], 1) if doc in docs), 0.0)
        for query, docs in wanted.items()
    ]
    return sum(ranks) / len(ranks)


def score(lab: Lab, submission: str, view: str) -> float:
    file = lab.vault / f"scores/{submission}.json"
    value: float = json.loads(file.read_text())["views"][view]["mean"]
    return value


@dataclass(frozen=True, kw_only=True)
class Story:
    """A board whose labels were made twice: of two runs, and after a third one came."""

    lab: Lab
    folder: CampaignFolder
    entries: tuple[str, str, str]
    fresh: Mapping[str, str]
    won: frozenset[str]
    told: Mapping[str, Any]


def grow(lab: Lab) -> Iterator[tuple[str, Any]]:
    """Play it; what each call of maintain told, by its part."""
    folder = begin(lab)
    judge(folder, draw(lab, folder), known_first, day="2026-11-03")
    plain = ("--budget", "0", "--cap", "7")  # later calls take the rule of the version before
    yield "first", maintain(lab, folder, "--publish-labels", *plain, now=NEXT)
    lab.share()
    submission = lab.receive("harbour", seed=3, now=LATER, team=named("Harbour"))
    answer = lab.organiser("publish", submission, "--yes", "--json", now=LATER).done()
    yield "published", answer.json
    told = ("prefer", "maintain", folder.path, "--json")
    yield "without texts", lab.organiser(*told, now=LATER).json
    yield "drawn", maintain(lab, folder, now=LATER)
    yield "nothing new", maintain(lab, folder, now=LATER)
    drawn = [task for task in folder.tasks() if task.why == "challenge"]
    judge(folder, drawn, odd_challengers_win, day="2026-11-06")
    yield "second", maintain(lab, folder, "--publish-labels", now=AFTER)


def odd_challengers_win(query: str, left: str, right: str) -> str:
    known = f"d{query}"
    odd = int(query.removeprefix("eval")) % 2
    return left if (left == known) != bool(odd) else right


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    lab = found_lab(tmp_path_factory.mktemp("lab"))
    two_entries(lab)
    told = dict(grow(lab))
    entries = [event["submission"] for event in lab.events() if event["kind"] == "published"]
    shown = {query: docs[0] for query, docs in run_of(lab, entries[2]).items()}
    fresh = {query: doc for query, doc in shown.items() if doc != f"d{query}"}
    return Story(
        lab=lab,
        folder=CampaignFolder(lab.root / "campaign"),
        entries=(entries[0], entries[1], entries[2]),
        fresh=fresh,
        won=frozenset(q for q in fresh if int(q.removeprefix("eval")) % 2),
        told=told,
    )


def ranks(lab: Lab, names: Sequence[str], view: str) -> list[int]:
    scores = [score(lab, name, view) for name in names]
    return [1 + sum(other > one for other in scores) for one in scores]


def test_the_published_runs_are_pooled_as_they_were_packed(story: Story) -> None:
    pools = story.folder.pools()
    assert len(pools) == QUERIES
    for name in story.entries[:2]:
        shown = {query: docs[0] for query, docs in run_of(story.lab, name).items()}
        assert shown == {p.query: c.doc for p in pools for c in p.candidates if name in c.runs}


def test_the_first_version_is_what_the_pools_were_judged_to_be(story: Story) -> None:
    told = story.told["first"]
    assert told["published"] == "eval-pref-1"
    assert sorted(told["scored"]) == sorted(story.entries[:2])
    known = {f"eval{i}": {f"deval{i}"} for i in range(QUERIES)}
    assert labels(story.lab.vault / "labels/eval-pref-1.qrels") == known
    for name in story.entries:
        assert score(story.lab, name, "eval-pref-1") == score(story.lab, name, "eval")
    (version,) = told["versions"]
    assert (version["change"]["before"], version["change"]["moves"]) == ("eval", [])
    assert version["change"]["taus"][0]["tau"] == 1.0


def test_nothing_is_judged_without_its_text_where_there_are_texts(story: Story) -> None:
    told = story.told["without texts"]
    assert (told["waiting"], told["challengers"], told["tasks"]) == (len(story.fresh), 0, 0)
    assert story.told["drawn"]["waiting"] == 0
    assert all(one.text for row in story.folder.challengers() for one in row.candidates)


def test_challengers_meet_the_best_known_answer_as_often_as_a_lead_takes(story: Story) -> None:
    told = story.told["drawn"]
    assert {one["query"]: one["challenger"] for one in told["challenges"]} == story.fresh
    assert all(one["incumbent"] == f"d{one['query']}" for one in told["challenges"])
    drawn = [task for task in story.folder.tasks() if task.why == "challenge"]
    pairs = [item.pair for task in drawn for item in task.items if item.answer is None]
    assert set(Counter(pairs).values()) == {3}
    assert len(set(pairs)) == len(story.fresh)
    assert told["price"] == 240 * len(drawn)
    assert story.told["nothing new"]["tasks"] == 0  # drawn, and not judged yet


def test_every_published_run_is_scored_on_the_labels_that_challengers_won(story: Story) -> None:
    told = story.told["second"]
    wanted = {
        f"eval{i}": {story.fresh[f"eval{i}"] if f"eval{i}" in story.won else f"deval{i}"}
        for i in range(QUERIES)
    }
    assert story.won
    assert {one["query"] for one in told["replaced"]} == story.won
    assert labels(story.lab.vault / "labels/eval-pref-2.qrels") == wanted
    for name in story.entries:
        expected = reciprocal_rank(run_of(story.lab, name), wanted)
        assert score(story.lab, name, "eval-pref-2") == pytest.approx(expected)


def test_what_a_version_changed_is_told_against_the_one_before(story: Story) -> None:
    version = story.told["second"]["versions"][-1]
    assert (version["parent"], version["change"]["before"]) == ("eval-pref-1", "eval-pref-1")
    before, after = (ranks(story.lab, story.entries, f"eval-pref-{n}") for n in (1, 2))
    moved = {n: (b, a) for n, b, a in zip(story.entries, before, after, strict=True) if b != a}
    assert moved
    assert {m["id"]: (m["before"], m["after"]) for m in version["change"]["moves"]} == moved
    tau = kendalltau(before, after).statistic
    assert version["change"]["taus"][0]["tau"] == pytest.approx(tau)


def test_scores_on_labels_that_are_a_reserve_stay_in_the_vault(story: Story) -> None:
    lab, shown = story.lab, f"{score(story.lab, story.entries[2], 'eval-pref-2'):.3f}"
    public = [lab.board / "log.jsonl", *(lab.board / "leaderboard").glob("*.[jhc]*")]
    assert shown not in {f"{score(lab, story.entries[2], view):.3f}" for view in ("eval", "dev")}
    assert not [path.name for path in public if shown in path.read_text("utf-8")]
    assert lab.audit()["ok"]


def test_labels_are_made_again_from_the_judgments_and_never_edited(story: Story) -> None:
    assert [one["same"] for one in story.told["second"]["versions"]] == [True, True]
    lab = story.lab.copy(story.lab.root.parent / "again")
    folder = CampaignFolder(story.folder.path)
    before = (lab.vault / "events.jsonl").read_bytes()
    told = maintain(lab, folder, "--publish-labels", now=AFTER)
    assert (told["published"], told["scored"], told["tasks"]) == (None, [], 0)
    assert (lab.vault / "events.jsonl").read_bytes() == before
    told = maintain(lab, folder, "--publish-labels", "--until", "2026-11-04", now=AFTER)
    assert told["published"] == "eval-pref-3"
    assert labels(lab.vault / "labels/eval-pref-3.qrels") == labels(
        lab.vault / "labels/eval-pref-1.qrels"
    )
    judged = folder.judgments()
    folder.write_judgments(judged[1:])
    told = maintain(lab, folder, now=AFTER)
    assert not any(one["same"] for one in told["versions"])
    folder.write_judgments(judged)


@pytest.mark.parametrize("name", ["eval", pytest.param("dev", marks=pytest.mark.night)])
def test_scores_on_public_labels_are_told_of_the_entries_of_before(lab: Lab, name: str) -> None:
    """Those of an open set lie in the board; an archive for everybody knows them."""
    options = ("--set", "dev") if name == "dev" else ()
    folder = begin(lab, *options)
    wanted = {pool.query: {pool.candidates[-1].doc} for pool in folder.pools()}
    judge(folder, draw(lab, folder), lambda _q, left, right: max(left, right), day="2026-11-03")
    said = maintain(lab, folder, "--publish-labels", "--public", *options, now=NEXT)
    view = f"{name}-pref-1"
    assert said["published"] == view
    for row in lab.rows():
        expected = reciprocal_rank(run_of(lab, row["id"], name), wanted)
        assert row["scores"][view] == pytest.approx(expected, abs=5e-4)
    if name == "dev":
        assert not [*(lab.vault / "labels").glob("dev*")]
        assert labels(lab.board / "qrels" / f"{view}.qrels") == wanted
        assert git(lab.board, "status", "--short") == ""
        logged = [e["public"]["files"] for e in lab.events() if "files" in e["public"]][-1]
        assert f"qrels/{view}.qrels" in logged
        lab.share()
        pier = lab.draft("pier", now=LATER, seed=3, team=named("Pier"))
        lab.participant("check", pier, "--json", now=LATER).done()
    else:
        assert lab.kinds().count("corrected") == 2
        submission = lab.rows()[0]["id"]
        lab.organiser("correct", submission, "--why", "again", "--anyway", now=LATER).done()
        assert lab.rows()[0]["scores"][view] is not None
    assert lab.audit()["ok"]
    lab.archive(now=LATER)


def test_a_call_that_ended_after_the_event_is_gone_on_with(lab: Lab, monkeypatch: Patch) -> None:
    folder = begin(lab)
    judge(folder, draw(lab, folder), known_first, day="2026-11-03")
    args = ("prefer", "maintain", folder.path, "--publish-labels")
    with monkeypatch.context() as broken:
        broken.setattr("heldout.judging.services.label_versions.correct", _die)
        with pytest.raises(MemoryError):
            lab.organiser(*args, now=NEXT)
    assert lab.kinds()[-1] == "changed-rules"
    every = [row["id"] for row in lab.rows()]
    part = lab.organiser("correct", *every, "--why", "new", "--shard", "1/1", "--json", now=NEXT)
    assert part.json["scored"] == 2
    with monkeypatch.context() as only_stored:
        only_stored.setattr("heldout.board.scores.rescoring.rescore", _die)
        answer = lab.organiser(*args, "--json", now=NEXT)
    assert answer.code == 0, answer
    assert answer.json["published"] is None
    assert len(answer.json["scored"]) == 2
    assert answer.json["versions"][0]["change"]["entries"] == 2
    assert lab.kinds().count("changed-rules") == 1
    assert lab.audit()["ok"]


def _die(*_: object, **__: object) -> None:
    raise MemoryError


def test_a_baseline_is_pooled_seed_by_seed_and_scored_again(lab: Lab) -> None:
    name, args = "20261101-bm25", []
    for seed in (4, 5):
        for query_set in ("dev", "eval"):
            file = lab.root / f"{query_set}-{seed}.run"
            file.write_text(run_text(query_set, seed))
            args += [f"--{query_set}", str(file)]
    lab.organiser("board", "baseline", name, *args, "--description", "BM25").done()
    folder = begin(lab)
    tops = {
        run: {p.query: c.doc for p in folder.pools() for c in p.candidates if run in c.runs}
        for run in (name, f"{name}~2")
    }
    first = [line.split("\t") for line in run_text("eval", 5).splitlines()]
    assert tops[f"{name}~2"] == {query: doc for query, doc, rank in first if rank == "1"}
    assert tops[name] != tops[f"{name}~2"]
    judge(folder, draw(lab, folder), known_first, day="2026-11-03")
    found = maintain(lab, folder, "--publish-labels", now=NEXT)
    assert name in found["scored"]
    assert found["versions"][0]["change"]["entries"] == 3
    assert score(lab, name, "eval-pref-1") == score(lab, name, "eval")
    assert maintain(lab, folder, now=NEXT)["scored"] == []
    assert lab.audit()["ok"]


def test_labels_that_were_mended_are_logged_before_anything_is_told_by_them(lab: Lab) -> None:
    folder = begin(lab)
    judge(folder, draw(lab, folder), known_first, day="2026-11-03")
    lab.repair("deval7 1", "n7-0 1")
    events, args = lab.kinds(), ("prefer", "maintain", folder.path, "--publish-labels", "--json")
    answer = lab.organiser(*args, now=NEXT)
    assert (answer.code, lab.kinds()) == (2, events)
    assert "heldout correct" in answer.err
    first, second = (row["id"] for row in lab.rows())
    assert lab.organiser("correct", first, "--why", "query 7", "--anyway", now=NEXT).code == 0
    lab.organiser(*args, now=NEXT).done()
    errata = [e for e in lab.events() if (e["submission"], e["kind"]) == (second, "corrected")]
    reason = "scored on preference labels eval-pref-1, and on labels that were repaired"
    assert [e["public"]["why"] for e in errata] == [reason]
    assert lab.audit()["ok"]


@pytest.mark.parametrize("query_set", ["dev", "eval"])
def test_labels_by_which_nothing_can_be_scored_leave_no_trace(lab: Lab, query_set: str) -> None:
    folder = begin(lab, "--set", query_set)
    judge(folder, draw(lab, folder), known_first, day="2026-11-03")
    rules, events = (lab.board / "board.toml").read_bytes(), lab.kinds()
    args = ("prefer", "maintain", folder.path, "--set", query_set, "--publish-labels")
    for measure, code in (("RR(rel=2)@10", "undefined-score"), ("nonsense", "board-spec")):
        lab.organiser(*args, "--measure", measure, now=NEXT).refused(code)
        assert ((lab.board / "board.toml").read_bytes(), lab.kinds()) == (rules, events)
    assert not [*lab.vault.glob("labels/*-pref-*"), *lab.board.glob("qrels/*-pref-*")]


def test_public_labels_under_the_clear_rule_and_those_of_no_set_are_refused(lab: Lab) -> None:
    folder = begin(lab)
    judge(folder, draw(lab, folder), known_first, day="2026-11-03")
    args = ("prefer", "maintain", folder.path, "--publish-labels", "--json")
    lab.organiser(*args, "--set", "test", now=NEXT).refused("unknown-set")
    lab.rule(('rule = "rounded"', 'rule = "clear"'), now=NEXT)
    file = lab.board / "board.toml"
    rules, events = file.read_bytes(), lab.kinds()
    answer = lab.organiser(*args, "--public", now=NEXT)
    assert (answer.code, file.read_bytes(), lab.kinds()) == (2, rules, events)
    assert "every-score-public" in answer.err
    assert not [*(lab.vault / "labels").glob("*-pref-*")]


def test_pools_come_from_files_or_from_a_board_and_not_from_both(lab: Lab) -> None:
    out = ("--out", lab.root / "elsewhere")
    both = lab.organiser("prefer", "pool", "--qrels", lab.root / "eval.qrels", *out, now=NEXT)
    neither = lab.call("prefer", "pool", *out)
    assert (both.code, neither.code) == (2, 2)
    assert "name no files with it" in both.err
    assert "what is pooled?" in neither.err
    lab.organiser("prefer", "pool", "--set", "test", *out, now=NEXT).refused("unknown-set")
    assert not (lab.root / "elsewhere").exists()


def test_a_report_scores_the_published_runs_by_the_board_s_own_labels(story: Story) -> None:
    lab, out = story.lab, story.lab.root / "told"
    told = ("prefer", "report", story.folder.path, "--out", out, "--trials", 50, "--redraws", 0)
    answer = lab.organiser(*map(str, told), "--json", now=AFTER).done()
    assert set(answer.json["not_made"]) <= {"judges"}
    sections = json.loads((out / "report.json").read_text())["sections"]
    runs = {row["run"]: row for row in sections["labels"]["rescored"]["runs"]}
    own = {query: {f"d{query}"} for query in run_of(lab, story.entries[0])}
    for entry in story.entries:
        expected = reciprocal_rank(run_of(lab, entry), own)
        assert runs[entry]["before"]["value"] == pytest.approx(expected)
        # Challenges are no part of the pools: these are the labels of the first version.
        first = score(lab, entry, "eval-pref-1")
        assert runs[entry]["after"]["value"] == pytest.approx(first)
    assert sections["pools"][f"all queries, {len(story.entries)} runs"]["queries"] == QUERIES
    assert all(file.stat().st_mode & 0o077 == 0 for file in out.glob("*.json"))


def test_labels_score_the_published_runs_and_make_the_same_version_as_without_them(
    story: Story,
) -> None:
    lab, out = story.lab, story.lab.root / "versions"
    args = ("prefer", "labels", story.folder.path, "--json")
    few = ("--trials", "50", "--redraws", "0")
    plain = lab.call(*args, "--out", out).done()
    answer = lab.organiser(*args, *few, "--out", out, now=AFTER).done()
    assert "as before" in answer.err
    assert answer.json["version"] == plain.json["version"]
    assert plain.json["rescored"] is None
    runs = {row["run"]: row for row in answer.json["rescored"]["runs"]}
    own = {query: {f"d{query}"} for query in run_of(lab, story.entries[0])}
    for entry in story.entries:
        expected = reciprocal_rank(run_of(lab, entry), own)
        assert runs[entry]["before"]["value"] == pytest.approx(expected)
        assert runs[entry]["after"]["value"] == pytest.approx(score(lab, entry, "eval-pref-1"))
    assert {row["run"] for row in answer.json["left_out"]} <= set(story.entries)


def test_labels_that_nobody_judged_are_not_published(lab: Lab) -> None:
    folder = begin(lab)
    rules, events = (lab.board / "board.toml").read_bytes(), lab.kinds()
    args = ("prefer", "maintain", folder.path, "--publish-labels")
    assert "no-judgments" in lab.organiser(*args, now=NEXT).err
    judge(folder, draw(lab, folder), known_first, day="2026-11-03")
    lab.organiser(*args, "--until", "2026-11-02", now=NEXT).refused("no-judgments")
    assert ((lab.board / "board.toml").read_bytes(), lab.kinds()) == (rules, events)
    assert not [*(lab.vault / "labels").glob("*-pref-*")]
