"""The headings of the two MS MARCO leaderboards, by which their tables are told apart."""

from dataclasses import dataclass

from heldout.board.old_boards.legacy_csv import Record
from heldout.errors import InputError, Problem, quote

__all__ = ["LAYOUTS", "Layout", "find_layout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One of the two tables.

    Attributes:
        name: short name of the board.
        title: heading of its page.
        task: what a system had to do.
        measure: of both scores, as ir_measures names it.
        depth: most documents per query.
        dev, eval: headings of the two scores.
    """

    name: str
    title: str
    task: str
    measure: str
    depth: int
    dev: str
    eval: str

    @property
    def headings(self) -> frozenset[str]:
        """Every heading of the table; "" is that of the column of signs."""
        common = ("id", "date", "", "description", "team", "paper", "code", "type", "tweet")
        return frozenset((*common, self.dev, self.eval))


LAYOUTS = (
    Layout(
        name="msmarco-doc",
        title="MS MARCO Document Ranking",
        task="Rank the 3.2 million web pages of MS MARCO for each query.",
        measure="RR@100",
        depth=100,
        dev="MRR@100 (Dev)",
        eval="MRR@100 (Eval)",
    ),
    Layout(
        name="msmarco-passage",
        title="MS MARCO Passage Ranking",
        task="Rank the 8.8 million passages of MS MARCO for each query.",
        measure="RR@10",
        depth=1000,
        dev="dev",
        eval="eval",
    ),
)
"""Both boards, told apart by the headings of their tables."""


def find_layout(header: Record, *, path: str) -> Layout:
    """The layout that has just these headings.

    Raises:
        InputError: `unknown-table`.
    """
    for layout in LAYOUTS:
        if layout.headings == set(header.cells) and len(header.cells) == len(layout.headings):
            return layout
    raise InputError(
        Problem(
            code="unknown-table",
            path=path,
            line=header.line,
            found=quote(",".join(header.cells)),
            expected="the headings of the document or the passage leaderboard of MS MARCO",
            hint="docs/import.md has both",
        )
    )
