"""`heldout prefer contests` and `labels` from end to end, on a small campaign and on real data."""

import csv
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from small_study import QUERIES, RUNS, judge, make_study

import calling
from heldout.judging.campaign.judgments import Judgment, format_judgments
from heldout.trec.qrels import parse_qrels, read_qrels
from heldout.trec.reading.sources import open_input

LATE = "2026-11-09T00:00:00.000Z"


call, read = partial(calling.call, "prefer"), partial(calling.answer, "prefer")


def read_file(path: Path) -> Mapping[str, Mapping[str, int]]:
    with open_input(path) as source:
        return read_qrels(source, path=str(path)).judgments


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """People prefer d2 on nine queries, d3 on three of them."""
    return make_study(tmp_path, judged=lambda number: "231" if number < 9 else "321")


def test_contests_of_a_campaign_have_the_keys_that_scripts_call_for(files: Path) -> None:
    found = read("contests", files / "campaign")
    assert set(found["contests"][0]) >= {
        "a", "b", "queries", "a_preferred", "p", "p_bonferroni"
    }  # fmt: skip
    assert found["wins"] == {"perfect": 0, "A": 0, "B": 3, "C": 2}
    pairs = {(one["a"], one["b"]): one for one in found["contests"]}
    assert pairs["B", "C"]["a_preferred"] == 9
    assert pairs["perfect", "A"] == {
        "a": "perfect", "b": "A", "queries": 0, "a_preferred": 0, "b_preferred": 0, "drawn": 0,
        "same": 12, "unjudged": 0, "share": None, "low": None, "high": None, "p": None,
        "p_bonferroni": None, "p_holm": None,
    }  # fmt: skip
    assert pairs["perfect", "B"]["p"] == pytest.approx(2 / 2**12)
    assert pairs["perfect", "B"]["p_bonferroni"] == pytest.approx(6 * 2 / 2**12)
    assert found["family"] == 6
    assert found["cycles"] == []


def test_contests_say_the_same_of_a_campaign_and_of_its_files(files: Path) -> None:
    named = ("--runs", files / "*.run", "--qrels", files / "known.qrels")
    by_files = read("contests", "--judgments", files / "campaign" / "judgments.jsonl", *named)
    assert by_files == read("contests", files / "campaign", *named)
    assert by_files == read("contests", files / "campaign")


def test_contests_tell_who_beats_the_labels(files: Path) -> None:
    done = call("contests", files / "campaign")
    words = " ".join(done.output.split())
    assert "B wins most contests, 3 of 3" in words
    assert "2 of 3 runs preferred to the known answers, 2 significantly" in words
    assert "100.0* (12)" in done.output


def test_one_run_is_split_by_whether_it_agrees_with_the_labels(files: Path) -> None:
    found = read("contests", files / "campaign", "--split", "--runs", files / "A.run")
    agreed = found["categories"]
    assert (agreed["A"]["queries"], agreed["A"]["b_preferred"]) == (12, 12)
    assert agreed["B"]["share"] is None
    assert found["why"]
    other = read("contests", files / "campaign", "--split", "--runs", files / "C.run")["categories"]
    assert (other["B"]["queries"], other["B"]["share"]) == (12, 1.0)
    picture = ("--chart", files / "split.svg")
    drawn = call("contests", files / "campaign", "--split", "--runs", files / "C.run", *picture)
    assert drawn.exit_code == 0
    assert b"<svg" in (files / "split.svg").read_bytes()
    several = call("contests", files / "campaign", "--split", "--runs", files / "*.run")
    assert several.exit_code == 2
    assert "one-run" in several.output


def test_labels_are_written_as_a_version_and_made_again_byte_for_byte(files: Path) -> None:
    campaign = files / "campaign"
    found = read("labels", campaign)
    assert found["labels"]["q0"] == ["d2"]
    assert found["labels"]["q11"] == ["d3"]
    assert found["cycles"] == 0
    assert found["tournaments"]["q0"]["rounds"] == [{"d1": 0, "d2": 2, "d3": 1}]
    assert found["rescored"] is None
    qrels = (campaign / "labels" / "v1.qrels").read_bytes()
    assert parse_qrels(qrels, path="v1").judgments["q9"] == {"d3": 1}
    judgments = campaign / "judgments.jsonl"
    later = judge("q0", "d3", "d2", answered_at="2026-12-01T00:00:00.000Z")
    judgments.write_bytes(judgments.read_bytes() + format_judgments([later, later]))
    assert read("labels", campaign, "--rebuild", "v1") == {
        "version": "v1",
        "same": True,
        "changed": [],
    }
    again = read("labels", campaign)
    assert again["version"]["name"] == "v2"
    assert again["version"]["parent"] == "v1"
    assert again["labels"]["q0"] == ["d3"]
    assert read("labels", campaign)["version"] == again["version"]
    assert (campaign / "labels" / "v1.qrels").read_bytes() == qrels


def test_a_cutoff_takes_the_judgments_up_to_a_day(files: Path) -> None:
    found = read("labels", files / "campaign", "--until", "2026-11-06", "--name", "early")
    assert found["version"]["recorded"] == 15
    assert found["version"]["kept"] == 7
    assert found["labels"]["q11"] == ["d1"]
    changed = files / "campaign" / "judgments.jsonl"
    changed.write_bytes(changed.read_bytes().replace(b'"preferred":"d2"', b'"preferred":"d3"', 1))
    done = call("labels", files / "campaign", "--rebuild", "early")
    assert done.exit_code == 1
    assert "judgments_sha256" in done.output


def test_runs_are_scored_again_and_each_left_out(files: Path) -> None:
    found = read(
        *("labels", files / "campaign", "--runs", files / "*.run"),
        *("--qrels", files / "known.qrels", "--trials", 50, "--redraws", 5),
    )
    scores = {one["run"]: one for one in found["rescored"]["runs"]}
    assert scores["A"]["before"]["value"] == 1
    assert scores["B"]["after"]["value"] == pytest.approx((9 + 3 / 3) / 12)
    assert scores["perfect"]["after"]["value"] == 0
    assert scores["A"]["before"]["t"] is None
    assert found["why"]["t, bca"]
    assert found["orderings"]["B"]["value"] == pytest.approx((9 * 2 + 3 * 1) / 36)
    taus = {one["name"]: one["tau"] for one in found["rescored"]["taus"]}
    assert taus["all"] == pytest.approx(-1 / 3)
    left_out = {one["run"]: one for one in found["left_out"]}
    assert (left_out["B"]["passages"], left_out["B"]["without"]) == (12, pytest.approx(1 / 3))
    assert left_out["A"]["passages"] == 0


def test_what_is_missing_is_told(files: Path) -> None:
    assert call("labels", files / "nowhere").exit_code == 2
    pairs = files / "campaign" / "judgments.jsonl"
    assert "which runs?" in call("contests", "--judgments", pairs).output
    assert "where do versions lie" in call("labels", "--judgments", pairs, "--rebuild", "v").output
    assert "no-run" in call("labels", files / "campaign", "--runs", files / "*.none").output
    (files / "perfect.run").write_text("q1 Q0 d1 1 1 t\n")
    named = call("labels", files / "campaign", "--runs", files / "*.run")
    assert "a run called perfect" in named.output
    pairs.write_bytes(b"")
    for command in ("contests", "labels"):
        done = call(command, files / "campaign")
        assert done.exit_code == 2
        assert "no-judgments" in done.output


def test_each_mode_makes_labels_and_a_sequential_campaign_has_its_own(files: Path) -> None:
    tournament = read("labels", files / "campaign", "--name", "a")
    strongest = read("labels", files / "campaign", "--name", "b", "--mode", "bradley-terry")
    assert strongest["labels"] == tournament["labels"]
    assert strongest["version"]["algorithm"] == "bradley-terry"
    settings = files / "campaign" / "campaign.toml"
    settings.write_text(settings.read_text().replace('mode = "paper"', 'mode = "sequential"'))
    found = read("labels", files / "campaign", "--name", "c")
    assert found["version"]["algorithm"] == "sequential"
    assert found["version"]["parent"] == "b"
    assert call("labels", files / "campaign", "--rebuild", "b").exit_code == 0


def test_cast_2019_is_labelled_from_its_14573_judgments(data: Callable[[str], Path]) -> None:
    pairs = data("preferences/cast-2019/TREC-CAsT-2019.pref.gz")
    found = read("labels", "--judgments", pairs)
    version = found["version"]
    assert (version["recorded"], version["queries"]) == (14573, 171)
    won = found["pairings"]["preference labels"]
    assert won["won"] > 0.75 * won["pairs"]


@pytest.mark.slow
@pytest.mark.real
def test_the_dl_2021_runs_are_scored_on_labels_of_the_crowd(data: Callable[[str], Path]) -> None:
    folder = data("trec-dl-2021-passage")
    source = (
        *("--judgments", data("preferences/dl21-dueling-bandits/judgments.txt.gz")),
        *("--runs", folder / "runs" / "*.gz", "--qrels", folder / "qrels.dl21-passage.txt.gz"),
    )
    contests = read("contests", *source)
    assert len(contests["contests"]) == 46 * 45 // 2
    assert contests["judged"] == 50
    official = ("--measure-before", "nDCG@10", "--order", "trec9")
    labels = read("labels", *source, *official, "--redraws", 0, "--trials", 20)
    assert labels["version"]["recorded"] == 11681
    before = {one["run"]: one["before"]["value"] for one in labels["rescored"]["runs"]}
    assert len(before) == 46
    judged = read_file(folder / "qrels.dl21-passage.txt.gz").keys() & labels["labels"].keys()
    assert len(judged) == labels["rescored"]["queries"] == 46
    with (folder / "ndcg_cut_10-per-topic.csv").open() as file:
        published = [row for row in csv.DictReader(file) if row["topic"] in judged]
    for run in before.keys() - {"perfect"}:
        own = [float(row["ndcg_cut_10"]) for row in published if row["runid"] == run]
        assert before[run] == pytest.approx(sum(own) / 46, abs=5e-5)
    assert labels["rescored"]["noise"] is None
    (every,) = (one for one in labels["rescored"]["taus"] if one["name"] == "all")
    assert 0.5 < every["tau"] < 0.8


def write_judgments(files: Path, judged: list[Judgment]) -> Path:
    place = files / "judged.jsonl"
    place.write_bytes(format_judgments(judged))
    return place


@pytest.mark.parametrize("command", ["contests", "strengths", "labels"])
def test_where_no_answer_has_a_preference_nothing_is_said(files: Path, command: str) -> None:
    none = [
        Judgment(query=query, left="d1", right="d2", preferred=None, reason="same")
        for query in QUERIES
    ]
    named = ("--runs", files / "*.run", "--qrels", files / "known.qrels")
    for where in ((), (files / "campaign",)):
        done = call(command, *where, "--judgments", write_judgments(files, none), *named)
        assert done.exit_code == 2
        assert "no-judgments" in done.output
        assert "12 judgments, of which none counts" in done.output
    early = call(command, files / "campaign", *named, "--until", "2026-10-01")
    assert "no-judgments" in early.output
    assert not (files / "campaign" / "labels").exists()


def test_no_run_has_most_wins_where_every_contest_is_a_draw(files: Path) -> None:
    tied = [
        judge(query, one, other)
        for query in QUERIES
        for pair in (("d1", "d2"), ("d1", "d3"), ("d2", "d3"))
        for one, other in (pair, pair[::-1])
    ]
    done = call("contests", files / "campaign", "--judgments", write_judgments(files, tied))
    assert "No run wins a contest" in done.output


def test_noise_is_not_told_where_drawing_anew_changes_no_label(files: Path) -> None:
    named = ("--runs", files / "*.run", "--qrels", files / "known.qrels")
    once = write_judgments(files, [judge(query, "d2", "d1") for query in QUERIES])
    assert read("labels", "--judgments", once, *named)["rescored"]["noise"] is None
    assert read("labels", files / "campaign", *named)["rescored"]["noise"] is not None


def test_votes_on_passages_that_no_pool_has_are_left_out_and_told(files: Path) -> None:
    judgments = files / "campaign" / "judgments.jsonl"
    before = judgments.read_bytes()
    found = read("contests", files / "campaign")
    strays = [judge("q0", "d9", "d1"), judge("q99", "d1", "d2")]
    judgments.write_bytes(before + format_judgments(strays))
    done = call("contests", files / "campaign", "--json")
    assert json.loads(done.stdout) == found
    assert "2 judgments of passages that no pool has" in done.stderr
    challenger = '{"query":"q0","candidates":[{"doc":"d9","runs":["D"]}]}\n'
    (files / "campaign" / "challengers.jsonl").write_text(challenger)
    assert "left out  1 judgment of passages" in call("contests", files / "campaign").stderr
    judgments.write_bytes(format_judgments(strays[1:]))
    assert "no-judgments" in call("contests", files / "campaign").output


def test_copies_of_a_label_change_no_score_where_no_label_changes(files: Path) -> None:
    """Labels before and after are the same passage, which one run shows under another id."""
    texts = {"d1": "same words", "d2": "other words", "d3": "Same  words"}
    (files / "documents.tsv").write_text("".join(f"{d}\t{text}\n" for d, text in texts.items()))
    done = call(
        *("pool", *(files / f"{run}.run" for run in RUNS), "--qrels", files / "known.qrels"),
        *("--queries", files / "queries.tsv", "--documents", files / "documents.tsv"),
        *("--out", files / "copies"),
    )
    assert done.exit_code == 0, done.output
    judged = write_judgments(files, [judge(query, "d1", "d2") for query in QUERIES])
    named = ("--judgments", judged, "--runs", files / "*.run", "--qrels", files / "known.qrels")
    found = read("labels", files / "copies", *named)
    assert found["copies"] == {"documents": 12, "queries": 12}
    for run in found["rescored"]["runs"]:
        assert run["before"]["value"] == run["after"]["value"]
    words = call("labels", files / "copies", *named).output
    assert "12 ids have the text of a label before, in 12 pools" in words


def test_no_run_is_best_where_all_score_the_same(files: Path) -> None:
    alike = files / "alike"
    alike.mkdir()
    for run in "XY":
        (alike / f"{run}.run").write_text((files / "A.run").read_text())
    named = ("--runs", alike / "*.run", "--qrels", files / "known.qrels")
    words = call("labels", files / "campaign", *named).output
    assert "best      no run before others on labels before, no run before others on" in words
    (alike / "Z.run").write_text((files / "B.run").read_text())
    words = call("labels", files / "campaign", *named).output
    assert "best      X and Y on labels before, Z on preference labels" in words


@pytest.mark.parametrize(
    ("labels", "texts", "told"),
    [
        ("d1", None, "without --documents write your own"),
        ("", "same words", "no query has a known answer"),
        ("d1", "same words", "every other passage shares a word"),
    ],
    ids=["no-texts", "no-answers", "shared"],
)
def test_pool_says_why_it_found_no_tests(
    files: Path, labels: str, texts: str | None, told: str
) -> None:
    rows = [f"{query} 0 {labels or 'd1'} {int(bool(labels))}\n" for query in QUERIES]
    (files / "some.qrels").write_text("".join(rows))
    more: list[object] = []
    if texts is not None:
        (files / "d.tsv").write_text("".join(f"{doc}\t{texts} {doc}\n" for doc in RUNS["A"]))
        more = ["--documents", files / "d.tsv"]
    done = call(
        *("pool", files / "A.run", files / "B.run", "--qrels", files / "some.qrels"),
        *("--queries", files / "queries.tsv", "--out", files / "other", *more),
    )
    assert done.exit_code == 0, done.output
    assert told in done.output


def test_the_prior_of_bradley_terry_is_an_option_and_recorded(files: Path) -> None:
    folder = files / "campaign"
    usual = read("labels", folder, "--name", "b", "--mode", "bradley-terry")
    assert usual["version"]["prior"] == 1
    other = read("labels", folder, "--name", "c", "--mode", "bradley-terry", "--prior", "0.5")
    assert other["version"]["prior"] == 0.5
    again = read("labels", folder, "--rebuild", "c")
    assert again == {"version": "c", "same": True, "changed": []}
    plain = read("labels", folder, "--name", "d")
    assert plain["version"]["prior"] is None
    refused = call("labels", folder, "--prior", "2")
    assert refused.exit_code == 2
    assert "--mode bradley-terry" in refused.output
