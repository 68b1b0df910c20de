"""Which queries a run answers, and how deep, against what is expected of it."""

from collections.abc import Sequence

from heldout.errors import InputError, Problem, Severity
from heldout.ids import Spellings, find_near, say_near
from heldout.trec.problems import ProblemLog, show
from heldout.trec.reading.streams import Limits
from heldout.trec.scans import Expected

__all__ = ["Coverage"]

_MANY = 2  # fewer queries say nothing of a whole set


class Coverage:
    """The answered queries of one reading of a run.

    Attributes:
        depths: query -> number of its rows, right or wrong.
    """

    def __init__(self, expected: Expected, *, path: str, limits: Limits, log: ProblemLog) -> None:
        self.depths: dict[bytes, int] = {}
        self._expected = expected
        self._path = path
        self._limits = limits
        self._log = log
        queries = expected.queries
        self._known = None if queries is None else frozenset(queries)
        self._spellings: Spellings | None = None

    def admit(self, query: bytes, lines: Sequence[int]) -> str | None:
        """Count an answered query.

        Args:
            query: its id, not seen before.
            lines: the line of each of its rows.

        Returns:
            The id as text if its rows are to be examined; `None` if it must not be answered, or
            has too many rows.

        Raises:
            InputError: code `too-many-queries`.
        """
        name = query.decode()
        self.depths[query] = len(lines)
        self.check_number(len(self.depths), lines[0])
        if self._known is not None and name not in self._known:
            self._report_unknown(name, lines)
            return None
        return name if self._check_depth(name, lines) else None

    def check_number(self, queries: int, line: int) -> None:
        """Refuse more queries than the limit.

        Raises:
            InputError: code `too-many-queries`.
        """
        most = self._limits.queries
        if queries > most:
            raise InputError(
                self._problem(
                    "too-many-queries",
                    line,
                    f"more than {most} queries",
                    f"at most {most}",
                    hint="is this the run of another query set?",
                )
            )

    def _problem(
        self,
        code: str,
        line: int | None,
        found: str,
        expected: str,
        *,
        hint: str = "",
        severity: Severity = "error",
    ) -> Problem:
        return Problem(
            code=code,
            path=self._path,
            line=line,
            found=found,
            expected=expected,
            hint=hint,
            severity=severity,
        )

    def _report_unknown(self, query: str, lines: Sequence[int]) -> None:
        self._log.add(
            self._problem(
                "unknown-query",
                lines[0],
                f"query {show(query)}, {len(lines)} documents",
                "only queries of the query set",
                hint=self._other_spelling(query),
            )
        )

    def _other_spelling(self, query: str) -> str:
        """What to do about a query that the set lacks."""
        if self._spellings is None:
            self._spellings = Spellings(self._known or ())
        near = self._spellings.find(query)
        if near is None:
            return "ids are text: 007 is not 7; is this the run of another query set?"
        return f"the set has {show(near.other)}: write it so"

    def _check_depth(self, query: str, lines: Sequence[int]) -> bool:
        """Report a wrong depth; whether the rows are there to be examined all the same."""
        expected, limit = self._expected, self._limits.documents
        most = limit if expected.max_depth is None else min(limit, expected.max_depth)
        fewest = expected.min_depth or 0
        depth = len(lines)
        if fewest <= depth <= most:
            return True
        many = depth > most
        self._log.add(
            self._problem(
                "too-many-documents" if many else "too-few-documents",
                lines[most] if many else lines[-1],
                f"{depth} documents for {show(query)}",
                f"at most {most} per query" if many else f"at least {fewest} per query",
                hint=f"cut each query to its best {most}" if many else "",
            )
        )
        return depth <= limit

    def check_answered(self) -> None:
        """Report what the run should answer and does not.

        Raises:
            InputError: code `empty-file`.
        """
        if not self.depths and not self._log.errors:
            raise InputError(self._problem("empty-file", None, "no rows", "at least one row"))
        if self._strange():
            return
        complete = self._expected.complete
        missing = [q for q in self._expected.queries or () if q.encode() not in self.depths]
        for query in missing:
            self._log.add(
                Problem(
                    code="missing-query",
                    path=self._path,
                    found=f"no line for query {show(query)}",
                    expected="every query of the query set",
                    hint="" if complete else "it counts 0",
                    severity="error" if complete else "note",
                )
            )

    def _strange(self) -> bool:
        """Whether the run answers another query set: told once, and not query by query."""
        known = self._known or frozenset()
        if (
            len(self.depths) < _MANY
            or len(known) < _MANY
            or self._log.counts["unknown-query"] < len(self.depths)
        ):
            return False
        own, asked = (show(min(queries)) for queries in (self.depths, known))
        self._log.drop("unknown-query")
        self._log.add(
            self._problem(
                "wrong-query-set",
                None,
                f"0 of its {len(self.depths):,} queries, {own} for example, in the query set",
                f"answers to the {len(known):,} queries of the set, {asked} for example",
                hint=say_near(find_near(map(bytes.decode, self.depths), known))
                or "is this the run of another query set? ids are text: 007 is not 7",
            )
        )
        return True
