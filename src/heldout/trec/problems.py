"""Problems on their way to a reader: shown safely, counted exactly, few enough to read."""

import re
from collections import Counter
from collections.abc import Iterable
from operator import attrgetter

from heldout.errors import InputError, Problem, printable

_PLAIN = re.compile(r"[\w.:/+-]{1,60}", re.ASCII)
_SHOWN = 60


def show(raw: bytes | str) -> str:
    r"""Somebody's text, safe for a terminal: cut at 60 characters, nothing unprintable.

    Plain ids stay as they are; anything else is quoted, with `\x1b`-like escapes for control
    characters, bad UTF-8 and invisible or direction-changing characters.
    """
    text = raw.decode(errors="backslashreplace") if isinstance(raw, bytes) else raw
    if _PLAIN.fullmatch(text):
        return text
    safe = printable(text[:_SHOWN])
    return f'"{safe}…"' if len(text) > _SHOWN else f'"{safe}"'


class ProblemLog:
    """Collects problems; keeps those with the lowest lines, counts all.

    Which problems are kept depends on their lines alone, not on the order of arrival.
    """

    def __init__(self, limit: int) -> None:
        self.counts: Counter[str] = Counter()
        self.errors = 0
        self._limit = max(limit, 1)
        self._kept: dict[str, list[Problem]] = {}

    def add(self, problem: Problem) -> None:
        """Count the problem, and keep it if it is among the first of its code."""
        self.counts[problem.code] += 1
        self.errors += problem.severity == "error"
        kept = self._kept.setdefault(problem.code, [])
        kept.append(problem)
        if len(kept) >= 4 * self._limit:
            self._kept[problem.code] = self._first(kept)

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add each."""
        for problem in problems:
            self.add(problem)

    def drop(self, code: str) -> None:
        """Forget the problems of this code, for one that says them all."""
        errors = any(problem.severity == "error" for problem in self._kept.pop(code, []))
        self.errors -= self.counts.pop(code, 0) if errors else 0

    def _first(self, problems: Iterable[Problem]) -> list[Problem]:
        return sorted(problems, key=_place)[: self._limit]

    def problems(self) -> tuple[Problem, ...]:
        """At most `limit` errors, fairly from all codes, and the first note of each code."""
        errors, notes = [], []
        for kept in self._kept.values():
            first = self._first(kept)
            notes += [problem for problem in first if problem.severity == "note"][:1]
            errors += [(i, p) for i, p in enumerate(first) if p.severity == "error"]
        errors.sort(key=lambda error: (error[0], _place(error[1])))
        chosen = [problem for _, problem in errors[: self._limit]]
        return (*sorted(chosen, key=_place), *sorted(notes, key=_place))

    def raise_errors(self) -> None:
        """Raise what was collected if any of it is an error.

        Raises:
            InputError: with the errors, without the notes.
        """
        if self.errors:
            errors = [p for p in self.problems() if p.severity == "error"]
            notes = {p.code for p in self.notes()}
            counts = {code: n for code, n in self.counts.items() if code not in notes}
            raise InputError(errors, counts=counts)

    def notes(self) -> tuple[Problem, ...]:
        """The first note of each code."""
        return tuple(p for p in self.problems() if p.severity == "note")


def _place(problem: Problem) -> tuple[bool, int, str, str]:
    line = problem.line
    return (line is None, line or 0, *attrgetter("code", "found")(problem))
