"""What a new user tries first: it works, or the error says what to do."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import heldout as ho

QUERIES = [f"q{number}" for number in range(12)]
QRELS = {query: {"d1": 1} for query in QUERIES}
RUNS = {
    "good": {query: {"d1": 2.0, "d2": 1.0} for query in QUERIES},
    "poor": {query: {"d1": 1.0, "d2": 2.0 - at % 2 * 2} for at, query in enumerate(QUERIES)},
}


@pytest.fixture(scope="module")
def results() -> ho.EvaluationResult:
    return ho.evaluate(RUNS, QRELS, ["RR@10", "P@1"])


@pytest.mark.parametrize(
    ("runs", "measures", "code"), [({}, "RR", "no-run"), (RUNS, [], "measure-name")]
)
def test_nothing_asked_is_an_error(runs: Any, measures: Any, code: str) -> None:
    with pytest.raises(ho.InputError) as caught:
        ho.evaluate(runs, QRELS, measures)
    assert caught.value.code == code


def test_a_result_is_a_mapping_of_runs(results: ho.EvaluationResult) -> None:
    assert (list(results), len(results)) == (["good", "poor"], 2)
    with pytest.raises(KeyError, match="no run 'god'; there are good, poor"):
        results["god"]


def test_scores_by_query_go_back_as_they_came(results: ho.EvaluationResult) -> None:
    frames = (results.to_pandas(per_query=True), results.to_polars(per_query=True))
    for frame in frames:
        again = ho.stability(frame, "RR@10", trials=20)
        assert again.columns() == ho.stability(results, "RR@10", trials=20).columns()
        with pytest.raises(ho.InputError) as caught:
            ho.stability(frame)
        assert caught.value.code == "measure-name"


def test_runs_are_no_scores() -> None:
    with pytest.raises(TypeError, match="score them first"):
        ho.stability(RUNS, "RR@10")
    with pytest.raises(TypeError, match="no scores: list"):
        ho.stability([1.0], "RR@10")


def test_one_value_may_stand_alone(results: ho.EvaluationResult) -> None:
    one = ho.power(results, "RR@10", difference=0.1, trials=50).to_dict()
    assert one == ho.power(results, "RR@10", difference=(0.1,), trials=50).to_dict()


def test_a_bound_is_named(results: ho.EvaluationResult) -> None:
    with pytest.raises(ValueError, match=r"level: 95; expected above 0 and below 1"):
        ho.stability(results, "RR@10", level=95)


def test_days_may_be_timestamps(results: ho.EvaluationResult) -> None:
    days = [datetime(2026, 1, 2), datetime(2026, 2, 3)]  # noqa: DTZ001 - as frames have them
    texts = [day.date().isoformat() for day in days]
    found = [
        ho.progress(results, pd.DataFrame({"id": ["poor", "good"], "date": dates}), "RR@10")
        for dates in (days, texts)
    ]
    assert found[0].to_dict() == found[1].to_dict()


def test_what_is_missing_is_named(results: ho.EvaluationResult) -> None:
    entries = pd.DataFrame({"id": ["good", "poor"], "date": ["2026-01-02", "2026-01-03"]})
    with pytest.raises(TypeError, match="reserve: the scores"):
        ho.teams(results, entries, measure="RR@10")
    with pytest.raises(TypeError, match="dev: the scores"):
        ho.drift(results, entries, measure="RR@10")
    with pytest.raises(TypeError, match="no runs: NoneType"):
        ho.evaluate(None, QRELS, "RR")


@pytest.mark.parametrize("document", ["d 1", "", "d\u00a01"])
def test_no_file_is_written_that_nobody_can_read(tmp_path: Path, document: str) -> None:
    frame = pd.DataFrame({"qid": ["q1"], "docno": [document], "score": [1.0]})
    with pytest.raises(ho.InputError) as caught:
        ho.read_run(frame).save(tmp_path / "a.run")
    assert caught.value.code == "blank-in-id"
    assert not list(tmp_path.iterdir())


def test_judgments_of_another_shape_are_an_error() -> None:
    with pytest.raises(ho.InputError) as caught:
        ho.read_qrels({"q1": {"d1", "d2"}})
    assert caught.value.code == "frame-type"


def test_what_is_printed_is_short(results: ho.EvaluationResult) -> None:
    values = (results, results.scores("RR@10"), ho.read_qrels(QRELS), ho.read_run(RUNS["good"]))
    assert max(len(repr(value)) for value in values) < 80
    assert repr(results.scores("RR@10")) == "<Scores RR@10: 2 systems, 12 queries>"


def test_help_lists_every_function() -> None:
    for name in ho.__all__:
        shown = getattr(ho, name)
        if name.islower() and name != "__version__" and not isinstance(shown, type):
            assert name in (ho.__doc__ or ""), name


def test_columns_of_numbers_have_numbers() -> None:
    half = {query: {f"d{1 + at % 2}": 1.0} for at, query in enumerate(QUERIES)}
    found = ho.compare(RUNS["good"], half, QRELS, "RR@10").to_pandas(table=1)
    assert found["p"].dtype == float
    assert found["p"].isna().sum() == 3
