"""Labels brought together and taken apart again are what they were."""

from io import BytesIO

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import parse_measure
from heldout.trec.qrels import combine, regrade
from heldout.trec.runs import scan_run

IDS = st.sampled_from([f"d{n}" for n in range(8)])
LABELS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(IDS, st.integers(-2, 3), min_size=1),
    max_size=3,
)
MEASURES = tuple(map(parse_measure, ("RR@3", "nDCG@5", "AP", "Unjudged@4", "R@8")))


@given(
    labels=st.lists(LABELS, min_size=1, max_size=3),
    run=st.dictionaries(
        st.sampled_from(["q1", "q2", "q4"]), st.lists(IDS, unique=True, min_size=1), min_size=1
    ),
)
def test_one_pass_sees_what_a_pass_for_each_sees(
    labels: list[dict[str, dict[str, int]]], run: dict[str, list[str]]
) -> None:
    text = "".join(
        f"{query}\t{document}\t{rank}\n"
        for query, documents in run.items()
        for rank, document in enumerate(documents, 1)
    ).encode()
    named = {str(number): one for number, one in enumerate(labels)}
    book = combine(named)
    together = scan_run(BytesIO(text), path="run", order="msmarco", qrels=book.codes)
    for name, one in named.items():
        apart = scan_run(BytesIO(text), path="run", order="msmarco", qrels=one).rankings
        seen = regrade(together.rankings, book.grades[name])
        assert seen.queries == apart.queries
        for field in ("starts", "positions", "grades", "retrieved"):
            assert np.array_equal(getattr(seen, field), getattr(apart, field)), field
        ours, theirs = (evaluate(rankings, one, MEASURES) for rankings in (seen, apart))
        assert repr(ours.per_query()) == repr(theirs.per_query())
