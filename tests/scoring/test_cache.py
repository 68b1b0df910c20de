"""Scores are stored once, found by all that went in, and equal to the last bit."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import SetupError
from heldout.ids import Digest, digest_bytes
from heldout.scoring.cache import (
    CODE,
    Key,
    ScoreCache,
    StoredRun,
    code_version,
    digest_file,
    find_cache,
)
from heldout.scoring.evaluate import Evaluation, prepare, score
from heldout.scoring.measures import parse_measure
from heldout.trec.orders import Order
from heldout.trec.runs import scan_run

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"a": 2, "c": 1}, "q3": {"x": 3}}
RUN = b"q1 Q0 b 1 9.5 t\nq1 Q0 a 2 9.0 t\nq2 Q0 c 1 3 t\nq2 Q0 z 2 2 t\nq2 Q0 a 5 1 t\n"
MEASURES = tuple(map(parse_measure, ("RR@10", "nDCG@10", "AP(rel=2)", "FirstRel", "Unjudged@10")))
KEY = Key(qrels=digest_bytes(b"qrels"), order="trec", code="today")
SIZE = len(RUN)


def scored(run: bytes = RUN, order: Order = "trec") -> StoredRun:
    scan = scan_run(BytesIO(run), path="", order=order, qrels=QRELS)
    return StoredRun(
        digest=scan.digest,
        form=scan.form,
        order=scan.order,
        notes=scan.problems,
        counts=scan.counts,
        facts=scan.facts,
        rankings=scan.rankings,
        evaluation=score(scan.rankings, prepare(QRELS, MEASURES)),
    )


def bits(evaluation: Evaluation | None) -> object:
    """All of an evaluation, so that equal means equal in every bit."""
    assert evaluation is not None
    scores = {
        measure: (repr(s.mean), s.why, s.n, s.without_relevant, s.values.tobytes(), str(s.defined))
        for measure, s in evaluation.scores.items()
    }
    counts = (evaluation.unanswered, evaluation.ignored, evaluation.excluded)
    return evaluation.queries, list(scores.items()), counts


@pytest.fixture
def cache(tmp_path: Path) -> ScoreCache:
    return ScoreCache(root=tmp_path / "scores")


def only_file(cache: ScoreCache) -> Path:
    (path,) = (path for path in cache.root.rglob("*") if path.is_file())
    return path


def test_what_comes_back_is_what_went_in(cache: ScoreCache) -> None:
    found = scored()
    assert found.notes  # the ranks are odd
    assert cache.find(KEY, found.digest, SIZE, MEASURES) is None
    assert not cache.may_know(KEY, SIZE)
    assert cache.add(KEY, SIZE, found)
    assert cache.may_know(KEY, SIZE)
    assert not cache.may_know(KEY, SIZE + 1)
    again = cache.find(KEY, found.digest, SIZE, MEASURES)
    assert again is not None
    assert bits(again.evaluation) == bits(found.evaluation)
    assert (again.form, again.order, again.notes) == (found.form, found.order, found.notes)
    assert (again.counts, again.facts) == (found.counts, found.facts)
    for name in ("starts", "positions", "grades", "retrieved"):
        one, other = getattr(again.rankings, name), getattr(found.rankings, name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert again.rankings.queries == found.rankings.queries


def test_measures_come_in_the_order_asked_for_and_are_added(cache: ScoreCache) -> None:
    found = scored()
    assert found.evaluation is not None
    first, *others = MEASURES
    scores = found.evaluation.scores
    for some in ([first], others):
        part = replace(found.evaluation, scores={measure: scores[measure] for measure in some})
        cache.add(KEY, SIZE, replace(found, evaluation=part))
    again = cache.find(KEY, found.digest, SIZE, MEASURES[::-1])
    assert again is not None
    assert again.evaluation is not None
    assert list(again.evaluation.scores) == list(MEASURES[::-1])
    known = cache.find(KEY, found.digest, SIZE, [parse_measure("RR@11")])
    assert known is not None
    assert known.evaluation is not None
    assert known.evaluation.scores == {}


CHANGES = st.sampled_from(["run", "qrels", "order", "measure", "code"])


@given(changes=st.sets(CHANGES), text=st.text(min_size=1, max_size=5), flip=st.integers(0, 255))
def test_any_change_misses(
    changes: set[str], text: str, flip: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = ScoreCache(root=tmp_path_factory.getbasetemp() / "changes")
    found = scored()
    cache.add(KEY, SIZE, found)
    key, run = KEY, found.digest
    if "run" in changes:
        run = digest_bytes(RUN[:-1] + bytes([flip]) + b"\n")
    if "qrels" in changes:
        key = replace(key, qrels=digest_bytes(text.encode()))
    if "order" in changes:
        key = replace(key, order="trec9")
    if "code" in changes:
        key = replace(key, code=KEY.code + text)
    asked = parse_measure(f"RR@{flip + 11}" if "measure" in changes else "RR@10")
    known = cache.find(key, run, SIZE, [asked])
    assert (known is None) == bool(changes - {"measure"})
    if known is not None:
        assert known.evaluation is not None
        assert (asked in known.evaluation.scores) == ("measure" not in changes)


@given(at=st.integers(min_value=0), flip=st.integers(min_value=1, max_value=255))
def test_a_damaged_record_is_no_record(
    at: int, flip: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = ScoreCache(root=tmp_path_factory.getbasetemp() / "damage")
    found = scored()
    cache.add(KEY, SIZE, found)
    path = only_file(cache)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[at % len(whole)] ^= flip
    for data in (bytes(damaged), whole[: at % len(whole)], whole + b"\0"):
        path.write_bytes(data)
        assert cache.find(KEY, found.digest, SIZE, MEASURES) is None
    assert cache.add(KEY, SIZE, found)
    assert path.read_bytes() == whole


def test_a_record_under_another_name_is_not_believed(cache: ScoreCache) -> None:
    found = scored()
    cache.add(KEY, SIZE, found)
    path = only_file(cache)
    other = Digest("0" * 64)
    shutil.copy2(path, path.with_name(other))
    assert cache.find(KEY, other, SIZE, MEASURES) is None


def test_records_are_private_and_those_of_others_are_not_read(cache: ScoreCache) -> None:
    found = scored()
    cache.add(KEY, SIZE, found)
    path = only_file(cache)
    assert path.stat().st_mode & 0o777 == 0o600
    for folder in (path.parent, *list(path.parents)[1:4]):
        assert folder.stat().st_mode & 0o777 == 0o700
    for mode in (0o620, 0o602, 0o666):
        path.chmod(mode)
        assert cache.find(KEY, found.digest, SIZE, MEASURES) is None
    path.chmod(0o600)
    elsewhere = path.rename(cache.root / "elsewhere")
    path.symlink_to(elsewhere)
    assert cache.find(KEY, found.digest, SIZE, MEASURES) is None
    path.unlink()
    os.mkfifo(path, 0o600)
    assert cache.find(KEY, found.digest, SIZE, MEASURES) is None


def test_where_nothing_can_be_written_nothing_is_stored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    cache = ScoreCache(root=tmp_path / "file" / "scores")
    found = scored()
    assert not cache.add(KEY, SIZE, found)
    assert cache.find(KEY, found.digest, SIZE, MEASURES) is None
    cache.prune()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_where_something_else_stands_in_a_records_place_nothing_is_stored(
    cache: ScoreCache, make: Callable[[Path], None]
) -> None:
    found = scored()
    assert cache.add(KEY, SIZE, found)
    record = only_file(cache)
    record.unlink()
    make(record)
    assert cache.find(KEY, found.digest, SIZE, MEASURES) is None
    assert not cache.add(KEY, SIZE, found)
    cache.prune()


def test_the_records_used_longest_ago_go_first(cache: ScoreCache) -> None:
    runs = [scored(RUN + b"q3 Q0 x 1 %d t\n" % number) for number in range(4)]
    for day, run in enumerate(runs):
        cache.add(KEY, SIZE, run)
        path = next(p for p in cache.root.rglob(run.digest))
        os.utime(path, (day, day))
    size = path.stat().st_size
    assert cache.find(KEY, runs[0].digest, SIZE, MEASURES) is not None  # used now
    replace(cache, limit=2 * size).prune()
    kept = [cache.find(KEY, run.digest, SIZE, MEASURES) is not None for run in runs]
    assert kept == [True, False, False, True]
    replace(cache, limit=0).prune()
    assert not cache.may_know(KEY, SIZE)


def test_scores_without_some_queries_are_not_stored(cache: ScoreCache) -> None:
    found = scored()
    judged = prepare(QRELS, MEASURES, excluded={"q1"})
    for evaluation in (None, score(found.rankings, judged)):
        with pytest.raises(ValueError, match=found.digest):
            cache.add(KEY, SIZE, replace(found, evaluation=evaluation))


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({"HELDOUT_CACHE": "off", "HOME": "/home/a"}, None),
        ({"HELDOUT_CACHE": "/tmp/x", "HOME": "/home/a"}, "/tmp/x"),  # noqa: S108 - only a name
        ({"HELDOUT_CACHE": "", "HOME": "/home/a"}, "/home/a/.cache/heldout"),
        ({"XDG_CACHE_HOME": "/cache", "HOME": "/home/a"}, "/cache/heldout"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/a"}, "/home/a/.cache/heldout"),
        ({}, None),
    ],
)
def test_where_scores_are(environ: Mapping[str, str], root: str | None) -> None:
    found = find_cache(environ)
    assert (None if found is None else str(found.root)) == root


def test_the_code_version_changes_with_any_byte_of_the_code(tmp_path: Path) -> None:
    package = tmp_path / "heldout"
    for room in ("trec", "scoring"):
        (package / room).mkdir(parents=True)
        (package / room / "one.py").write_text("x = 1\n", encoding="utf-8")
    seen = [_version(package)]
    for path, text in [
        ("trec/one.py", "x = 2\n"),
        ("scoring/one.py", "x = 2\n"),
        ("trec/_scan.c", "int x;"),
        ("trec/_scan.abi3.so", "built"),
        ("scoring/two.py", ""),
    ]:
        (package / path).write_text(text, encoding="utf-8")
        seen.append(_version(package))
    (package / "trec" / "one.pyc").write_text("no code of ours", encoding="utf-8")
    assert _version(package) == seen[-1]
    assert len(set(seen)) == len(seen)
    assert code_version() not in seen


@pytest.mark.parametrize("room", ["trec", "scoring"])
def test_a_missing_folder_of_code_is_an_error(tmp_path: Path, room: str) -> None:
    package = tmp_path / "heldout"
    other = {"trec": "scoring", "scoring": "trec"}[room]
    (package / other).mkdir(parents=True)
    (package / other / "one.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(SetupError, match=room):
        _version(package)
    (package / room / "__pycache__").mkdir(parents=True)  # what a move leaves behind
    with pytest.raises(SetupError, match=room):
        _version(package)


def test_all_code_that_scores_lies_in_the_hashed_folders() -> None:
    script = (
        "import sys, heldout.scoring.evaluate, heldout.trec.runs\n"
        "print(*(name for name in sys.modules if name.startswith('heldout.')))"
    )
    command = [sys.executable, "-c", script]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    no_scores = {"errors", "ids", "lazy"}
    assert {name.split(".")[1] for name in loaded} == {*CODE, *no_scores}


def _version(package: Path) -> str:
    code_version.cache_clear()
    return code_version(package)


def test_a_file_is_hashed_as_it_lies(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(RUN)
    assert digest_file(tmp_path / "run") == digest_bytes(RUN) == scored().digest
