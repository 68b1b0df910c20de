"""heldout's measures for ir_measures: importing this registers the provider `heldout`.

    import ir_measures
    from heldout.scoring.ir_measures_provider import provider

    provider.calc_aggregate([ir_measures.nDCG @ 10], qrels, run)
    ir_measures.DefaultPipeline.providers.insert(0, provider)  # for all of ir_measures.iter_calc

It takes runs and judgments in every form that ir_measures takes. Documents of equal scores are
ordered by id, descending, for every measure; providers of ir_measures differ in that.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import ir_measures
from ir_measures.providers import Evaluator, Provider, register

from heldout.errors import InputError
from heldout.scoring.evaluate import PreparedJudgments, prepare, score
from heldout.scoring.measures import Measure, parse_measure
from heldout.trec import memory, orders

_UTIL: Any = ir_measures.util  # it has classes without types


class HeldoutEvaluator(Evaluator):
    """Scores runs on one set of judgments; from `HeldoutProvider.evaluator`."""

    def __init__(
        self,
        measures: Mapping[Any, Measure],
        judgments: Mapping[str, Mapping[str, int]],
        order: orders.Order,
    ) -> None:
        super().__init__(list(measures), set(judgments))
        self._measures = measures
        self._judgments = judgments
        self._prepared: PreparedJudgments = prepare(judgments, measures.values())
        self._order = order

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        rows = _UTIL.RunConverter(run).as_dict_of_dict()
        if not any(rows.values()):
            return
        read = memory.run_from_mapping(rows, name="run")
        scan = memory.scan_memory(read, order=self._order, qrels=self._judgments)
        found = score(scan.rankings, self._prepared)
        for theirs, own in self._measures.items():
            scores = found.scores[own]
            for at, query in enumerate(found.queries):
                value = scores.value(at)
                if value is not None:
                    yield ir_measures.Metric(query_id=query, measure=theirs, value=value)


class HeldoutProvider(Provider):
    """The measures that heldout computes itself, as far as ir_measures has their names.

    Args:
        order: of documents: `trec`, or `trec9` for scores compared as float32.
    """

    NAME = "heldout"

    def __init__(self, order: orders.Order = "trec") -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # it has none
        self._order = order

    def supports(self, measure: Any) -> bool:
        """Check whether heldout computes it: equal names mean equal measures."""
        measure.validate_params()
        try:
            return not parse_measure(str(measure)).kind.exposure
        except InputError:
            return False

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> HeldoutEvaluator:
        judgments: dict[str, dict[str, int]] = {}
        for row in _UTIL.QrelsConverter(qrels).as_namedtuple_iter():
            judgments.setdefault(row.query_id, {})[row.doc_id] = int(row.relevance)
        return HeldoutEvaluator(
            {one: parse_measure(str(one)) for one in measures}, judgments, self._order
        )


provider = HeldoutProvider()
"""What is registered, also as `ir_measures.providers.registry["heldout"]`."""

register(provider)  # type: ignore[no-untyped-call]  # a function without types
