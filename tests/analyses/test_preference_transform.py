"""Scores calibrated on preferences: the fit, its laws, and what cannot be calibrated."""

import gzip
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.cli.analyses.sources import Source, load_scores
from heldout.errors import InputError
from heldout.scoring.measures import parse_measure
from heldout.scoring.table import table_of
from heldout.scoring.transforms import calibrate, fit_shares, to_preference
from heldout.trec.judgments import Preference, read_preferences
from heldout.trec.qrels import read_qrels


def test_shares_are_those_of_the_judgments_where_they_rise() -> None:
    found = fit_shares(np.array([0.5, 0.5, 0.5, -0.5, 1.0, 1.0, 0.0]))

    assert found.differences == (0.0, 0.5, 1.0)
    assert found.shares == (0.5, 0.75, 1.0)
    assert found.counts == (1, 4, 2)


def test_shares_that_fall_are_pooled_and_never_below_a_half() -> None:
    found = fit_shares(np.array([-0.1, -0.1, 0.5, 0.5, 0.9, -0.9]))

    assert found.shares == pytest.approx((0.5, 0.5, 0.75, 0.75))


@given(
    st.lists(
        st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40
    ).filter(any)
)
def test_transformed_scores_rise_with_scores_and_stay_within_0_and_1(
    differences: list[float],
) -> None:
    calibration = fit_shares(np.array(differences))
    top = calibration.differences[-1]
    row = {f"q{n}": score for n, score in enumerate(np.linspace(0, top, 9).tolist())}

    (found,) = to_preference(table_of({"a": row}), calibration).values

    assert found[0] == 0
    assert (np.diff(found) >= -1e-12).all()
    assert (found <= 1).all()


def test_swapping_the_items_of_a_pair_changes_nothing() -> None:
    lines = b"q a b a\nq b a a\nq b a b\n"
    swapped = b"q b a a\nq a b a\nq a b b\n"
    read = [read_preferences(BytesIO(text), path="p") for text in (lines, swapped)]
    first, second = ([(one.preferred, one.other) for one in found] for found in read)
    assert first == second


def test_lists_of_systems_and_documents_are_both_results() -> None:
    table = table_of({"good": {"q": 1.0}, "bad": {"q": 0.0}})
    lists = [Preference(query="q", a="good", b="bad", preferred="good")] * 3
    documents = [Preference(query="q", a="d0", b="d1", preferred="d0")]
    strange = [Preference(query="x", a="good", b="bad", preferred="good")]

    found = calibrate(
        table, parse_measure("P@1"), {"q": {"d1": 1, "d0": 0}}, [*lists, *documents, *strange]
    )

    assert (found.differences, found.shares) == ((0.0, 1.0), (0.5, 0.75))
    assert (found.used, found.unknown) == (4, 1)


def test_what_was_never_compared_is_an_error_and_no_guess() -> None:
    calibration = fit_shares(np.array([0.4]))
    for score in (0.5, -0.1):
        with pytest.raises(InputError) as caught:
            to_preference(table_of({"a": {"q": score}}), calibration)
        assert caught.value.problems[0].code == "not-calibrated"
    kept = to_preference(table_of({"a": {"q": 0.4, "r": None}}), calibration)
    assert kept.known.tolist() == [[True, False]]


@pytest.mark.parametrize("differences", [[], [0.0, 0.0]], ids=["none", "equal"])
def test_judgments_that_tell_nothing_are_refused(differences: list[float]) -> None:
    with pytest.raises(InputError) as caught:
        fit_shares(np.array(differences))
    assert caught.value.problems[0].code == "no-preference"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"q a b\n", "wrong-columns"),
        (b"q a b c\n", "bad-preference"),
        (b"q a a a\n", "bad-preference"),
        (b"", "empty-file"),
        (b"q a b \xff\n", "bad-utf8"),
        (b"q a b \x1b[31m\n", "control-character"),
    ],
    ids=["three columns", "a third item", "itself", "empty", "no text", "escape"],
)
def test_broken_files_are_told_with_their_lines(text: bytes, code: str) -> None:
    with pytest.raises(InputError) as caught:
        read_preferences(BytesIO(text), path="p")
    assert caught.value.problems[0].code == code


def test_the_option_reaches_the_scores_and_needs_its_file(tmp_path: Path) -> None:
    (tmp_path / "run.tsv").write_text("q\td\t1\nr\tx\t1\n")
    (tmp_path / "qrels").write_text("q 0 d 1\nq 0 x 0\nr 0 d 1\n")
    (tmp_path / "preferences").write_text("q d x d\nq x d d\nq d x x\nq d x d\n")
    told = {
        "runs": (str(tmp_path / "run.tsv"),),
        "qrels": str(tmp_path / "qrels"),
        "measure": "P@1",
    }
    scores = load_scores(
        Source(**told, transform="preference", preferences=tmp_path / "preferences")  # type: ignore[arg-type]
    )

    assert scores.table.values.tolist() == [[0.5, 0.0]]
    assert "4 judgments at 2 differences" in dict(scores.facts)["transform"]
    for options in ({"transform": "preference"}, {"preferences": tmp_path / "preferences"}):
        with pytest.raises(Exception, match="go together"):
            load_scores(Source(**told, **options))  # type: ignore[arg-type]


@pytest.mark.real
def test_people_prefer_higher_grades_of_trec_dl_2021_more_often_than_not(
    data: Callable[[str], Path],
) -> None:
    with data("trec-dl-2021-passage/qrels.dl21-passage.txt.gz").open("rb") as file:
        qrels = read_qrels(file, path="qrels")
    packed = data("preferences/dl21-dueling-bandits/judgments.txt.gz").read_bytes()
    preferences = read_preferences(BytesIO(gzip.decompress(packed)), path="judgments")

    found = calibrate(table_of({}), parse_measure("nDCG@1"), qrels.judgments, preferences)

    assert len(preferences) == 11_681
    assert found.used + found.unknown == 11_681
    assert list(found.shares) == sorted(found.shares)
    assert found.shares[-1] == pytest.approx(0.63, abs=0.01)
