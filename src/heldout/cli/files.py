"""What the commands on run files share: names of runs, orders, options, the scan."""

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import click

from heldout.collections.reading import read_text
from heldout.errors import InputError, Problem
from heldout.trec.accelerators import Accelerators
from heldout.trec.qrels import Qrels
from heldout.trec.ranking import Order
from heldout.trec.reading.streams import OWN_FILES, open_input
from heldout.trec.runs import Expected, Scan, scan_run

__all__ = [
    "ORDERS",
    "json_option",
    "order_option",
    "read_table_text",
    "scan_file",
    "tell_orders",
]

ORDERS = {
    "trec": "score descending, ties by document id descending; ranks ignored",
    "trec9": "as trec, with scores rounded to float32, as in trec_eval up to 9",
    "msmarco": "by rank",
}
"""Every order in words."""

order_option = click.option(
    "--order",
    type=click.Choice(get_args(Order)),
    help="How documents are ordered: trec for 6 columns and msmarco for 3, if not given.",
)
"""`--order`."""

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document.")
"""`--json`."""


def tell_orders(orders: Iterable[Order], *, given: Order | None) -> list[tuple[str, str]]:
    """How documents are ordered, in lines of `name      what there is to say`.

    Args:
        orders: of the runs.
        given: what `--order` asked for; `None` where the columns decided.
    """
    facts: list[tuple[str, str]] = []
    for order in dict.fromkeys(orders):
        facts.append(("" if facts else "order", f"{order}: {ORDERS[order]}"))
        if given is None:
            columns = 3 if order == "msmarco" else 6
            facts.append(("", f"chosen for files of {columns} columns; --order chooses another"))
    return facts


def read_table_text(path: Path) -> str:
    """The text of a CSV table: plain, gzip, bzip2 or zstd, in UTF-8.

    Raises:
        InputError: codes `unreadable-file`, `bad-utf8`, and those of `TextReader`; `nul-byte` is
            what UTF-16 has.
    """
    data = read_text(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            Problem(
                code="bad-utf8",
                path=str(path),
                line=data.count(b"\n", 0, error.start) + 1,
                found="bytes that are not UTF-8",
                expected="a table in UTF-8",
                hint="save it as UTF-8",
            )
        ) from None


def scan_file(
    path: str,
    *,
    order: Order | None,
    qrels: Qrels | None = None,
    expected: Expected | None = None,
    accelerators: Accelerators | None = None,
) -> Scan:
    """Scan a run file of whoever calls; `order` as in `scan_run`.

    Raises:
        InputError: code `unreadable-file`.
    """
    with open_input(Path(path)) as source:
        return scan_run(
            source,
            path=path,
            order=order,
            qrels=None if qrels is None else qrels.judgments,
            expected=expected,
            limits=OWN_FILES,
            accelerators=accelerators,
            signature_depth=0,
        )
