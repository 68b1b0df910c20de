"""Label versions: the same bytes at any cutoff, and nothing that changes in silence."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError, StoreError
from heldout.judging.campaign.judgments import Judgment, pool_judged, pooled_tops
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.labels.labels import (
    Made,
    Rules,
    make_version,
    newest_version,
    read_version,
    write_version,
)
from heldout.trec.qrels import parse_qrels

POOLS = tuple(
    Pool(query=query, candidates=tuple(Candidate(doc=doc, known=doc == "a") for doc in "abc"))
    for query in ("q2", "q1")
)
TIMES = [f"2026-11-0{day}T00:00:00.000Z" for day in range(1, 8)]


def judged(query: str, pair: str, at: str = "", answer: str | None = None) -> Judgment:
    """The first of the pair is preferred."""
    return Judgment(
        query=query, left=pair[0], right=pair[1], preferred=pair[0], answered_at=at, answer=answer
    )


def make(*rows: Judgment, name: str = "v1", parent: str | None = None, **rules: str) -> Made:
    return make_version(name, POOLS, rows, Rules(**rules), parent=parent)  # type: ignore[arg-type]


@given(
    answers=st.lists(
        st.tuples(
            st.sampled_from(["w1", "w2"]),
            st.sampled_from(["t1", "t2"]),
            st.integers(1, 3),
            st.sampled_from(["ab", "ba", "bc", "cb"]),
            st.booleans(),
        ),
        min_size=1,
        max_size=7,
    ),
    day=st.integers(0, 6),
)
def test_what_was_exported_on_a_day_is_what_a_cutoff_on_that_day_gives_later(
    answers: list[tuple[str, str, int, str, bool]], day: int
) -> None:
    # An answer a day; a task is submitted with its last one, and some answers are to tests.
    rows = [
        Judgment(
            query="q1",
            left=pair[0],
            right=pair[1],
            preferred=pair[0],
            answer=pair[1] if test else None,
            worker=worker,
            task=task,
            position=position,
            answered_at=at,
        )
        for (worker, task, position, pair, test), at in zip(answers, TIMES, strict=False)
    ]

    def exported(on: int) -> list[Judgment]:
        open_tasks = {(row.worker, row.task) for row in rows[on + 1 :]}
        return [
            msgspec.structs.replace(row, submitted=(row.worker, row.task) not in open_tasks)
            for row in rows[: on + 1]
        ]

    then = make(*exported(day), until=TIMES[day])
    later = make(*exported(len(rows) - 1), until=TIMES[day])
    assert then.version == later.version
    assert then.qrels == later.qrels


def test_a_version_without_a_cutoff_takes_that_of_its_last_judgment() -> None:
    now = make(judged("q1", "ba", TIMES[0]))
    assert now.version.until == TIMES[0]
    later = [judged("q1", "ba", TIMES[0]), judged("q1", "ca", TIMES[1])]
    assert (
        make_version("v1", POOLS, later, replace(now.rules, until=now.version.until)).version
        == now.version
    )
    assert make(*later).version != now.version
    assert make(judged("q1", "ba")).version.until is None


def test_qrels_name_the_best_of_each_query_and_the_known_answer_where_nobody_judged() -> None:
    found = make(judged("q1", "ba"), judged("q1", "bc"))
    assert found.qrels == b"q1 0 b 1\nq2 0 a 1\n"
    assert parse_qrels(found.qrels, path="").judgments == {"q1": {"b": 1}, "q2": {"a": 1}}
    one = found.version
    assert (one.queries, one.labels, one.unvoted, one.unjudged) == (2, 1, 1, 1)


def test_votes_on_a_document_count_for_the_one_of_the_same_text() -> None:
    twins = Candidate(doc="k", same=("z",))
    pool = Pool(query="q1", candidates=(twins, Candidate(doc="b")))
    rows = [Judgment(query="q1", left="z", right="b", preferred="z")]
    found = make_version("v1", [pool], rows, Rules())
    assert found.qrels == b"q1 0 k 1\nq1 0 z 1\n"
    assert found.version.labels == 1


def test_what_a_failed_test_excludes_is_part_of_a_version() -> None:
    failed = Judgment(
        query="q9", left="x", right="y", preferred="y", answer="x", worker="w", task="1", position=1
    )
    vote = Judgment(query="q1", left="b", right="a", preferred="b", worker="w", task="2")
    by_task, by_worker = make(failed, vote), make(failed, vote, exclusion="worker")
    assert (by_task.version.counted, by_worker.version.counted) == (1, 0)
    for name in ("exclusion", "qrels_sha256"):
        assert getattr(by_task.version, name) != getattr(by_worker.version, name)


def test_a_changed_judgment_is_seen_when_a_version_is_made_again(tmp_path: Path) -> None:
    first = make(judged("q1", "ba", TIMES[0]))
    assert write_version(tmp_path, first)
    assert not write_version(tmp_path, first)
    forged = make(judged("q1", "ab", TIMES[0]))
    assert first.version.judgments_sha256 != forged.version.judgments_sha256
    with pytest.raises(StoreError, match="never changed"):
        write_version(tmp_path, forged)
    assert read_version(tmp_path, "v1") == first.version


def test_labels_that_were_edited_are_refused(tmp_path: Path) -> None:
    write_version(tmp_path, make(judged("q1", "ba")))
    (tmp_path / "v1.qrels").write_text("q1 0 a 1\n")
    with pytest.raises(StoreError, match="changed since"):
        read_version(tmp_path, "v1")
    (tmp_path / "v1.qrels").unlink()
    with pytest.raises(StoreError, match="missing"):
        newest_version(tmp_path)


def test_the_newest_version_is_no_others_parent_whatever_its_name(tmp_path: Path) -> None:
    assert newest_version(tmp_path / "nowhere") is None
    for name, parent in (("z", None), ("m", "z"), ("a", "m")):
        write_version(tmp_path, make(judged("q1", "ba"), name=name, parent=parent))
        newest: Any = newest_version(tmp_path)
        assert newest.name == name
    (tmp_path / "m.json").unlink()
    with pytest.raises(StoreError, match="is missing, which"):
        newest_version(tmp_path)


@pytest.mark.parametrize("name", ["../v1", "", "a/b", ".hidden", "x" * 65, "é"])
def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="label-name"):
        write_version(tmp_path, make(judged("q1", "ba"), name=name))
    assert not list(tmp_path.iterdir())


def test_a_description_that_is_none_is_an_error(tmp_path: Path) -> None:
    write_version(tmp_path, make(judged("q1", "ba")))
    for data in (b"{}", b"\xff", b"[1]", msgspec.json.encode({"name": "v1"})):
        (tmp_path / "v1.json").write_bytes(data)
        with pytest.raises(InputError, match="bad-row"):
            read_version(tmp_path, "v1")


def test_pools_of_judgments_hold_what_was_judged_and_the_known_answer() -> None:
    rows = [judged("q2", "xy"), judged("q1", "ab"), judged("q1", "zw", answer="z")]
    found: Any = pool_judged(rows, known={"q1": ["k", "a"]}, tops={"R": {"q1": ("a",)}})
    assert [pool.query for pool in found] == ["q1", "q2"]
    assert [one.doc for one in found[0].candidates] == ["a", "b", "k"]
    assert found[0].known.doc == "k"
    assert found[0].candidates[0].runs == ("R",)
    assert found[1].known is None


def test_pools_of_first_documents_tell_the_runs_and_deeper_ones_do_not() -> None:
    first = Pool(
        query="q", candidates=(Candidate(doc="a", runs=("A", "B")), Candidate(doc="b", runs=("C",)))
    )
    assert pooled_tops([first]) == {
        "A": {"q": ("a",)},
        "B": {"q": ("a",)},
        "C": {"q": ("b",)},
    }
    deep = Pool(
        query="q", candidates=(Candidate(doc="a", runs=("A",)), Candidate(doc="b", runs=("A",)))
    )
    with pytest.raises(InputError, match="deep-pool"):
        pooled_tops([deep])
