"""Time and memory of reading MS MARCO QnA, beside a parser that does nothing with what it finds.

    python benchmarks/annotations.py --size 300

A file of the published form is generated: one object of columns, ten passages a query of some 330
letters each, drawn from a seed. The floor is ijson alone, whose events are thrown away; `json` has
the whole file in memory, and runs only where that is asked for.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from process import run_process

__all__ = ["write_qna"]

_MIB = 1 << 20
_PASSAGES = 10
_QUERY_BYTES = 4_200
_WORDS = 2_000
_LENGTH = 55
_SELECTED = 0.55

_READ = """
import sys
from heldout.survivorship.reading.qna import read_qna
with open(sys.argv[1], "rb") as file:
    found = read_qna(file, path="qna", texts=sys.argv[2] == "texts")
print(len(found.records))
"""
_FLOOR = """
import sys, ijson
found = ijson.sendable_list()
parser = ijson.basic_parse_coro(found, use_float=True)
with open(sys.argv[1], "rb") as file:
    while piece := file.read(1 << 20):
        parser.send(piece)
        del found[:]
parser.close()
print(ijson.backend)
"""
_JSON = """
import sys, json
with open(sys.argv[1], "rb") as file:
    print(len(json.load(file)["query"]))
"""


def write_qna(path: Path, *, queries: int, seed: int = 0) -> None:
    """Write a file of the published form.

    Args:
        path: the file.
        queries: how many; each takes some 4 KB.
        seed: of everything that is drawn.
    """
    rng = random.Random(seed)  # noqa: S311 - nothing secret
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(_WORDS)]

    def passages() -> list[dict[str, object]]:
        chosen = rng.randrange(_PASSAGES) if rng.random() < _SELECTED else -1
        return [
            {
                "is_selected": int(place == chosen),
                "passage_text": " ".join(rng.choices(words, k=_LENGTH)),
                "url": f"http://example.org/{rng.randrange(10**8)}",
            }
            for place in range(_PASSAGES)
        ]

    columns: dict[str, Callable[[int], object]] = {
        "answers": lambda _: ["No Answer Present."],
        "passages": lambda _: passages(),
        "query": lambda row: f"what is {words[row % _WORDS]}",
        "query_id": lambda row: 1_000_000 + row,
        "query_type": lambda row: ("DESCRIPTION", "NUMERIC")[row % 2],
        "wellFormedAnswers": lambda _: "[]",
    }
    with path.open("w", encoding="ascii") as file:
        for number, (column, value) in enumerate(columns.items()):
            file.write(f"{',' if number else '{'}{json.dumps(column)}:")
            file.writelines(
                f'{"," if row else "{"}"{row}":{json.dumps(value(row))}' for row in range(queries)
            )
            file.write("}")
        file.write("}")


def _measure(path: Path, *, whole: bool) -> Iterator[str]:
    size = path.stat().st_size / _MIB
    ways = {
        "heldout, without texts": (_READ, "bare"),
        "heldout, with texts": (_READ, "texts"),
        "floor: ijson, nothing kept": (_FLOOR, ""),
    }
    if whole:
        ways["json, the whole file"] = (_JSON, "")
    yield f"{'':28}{'s':>8}{'cpu s':>8}{'MiB/cpu s':>11}{'peak MiB':>10}"
    for name, (code, argument) in ways.items():
        command = [sys.executable, "-c", code, str(path), argument]
        ran = run_process(command, environ=dict(os.environ), keep=True, watch=False)
        if ran.status:
            raise SystemExit(ran.errors)
        yield (
            f"{name:28}{ran.seconds:8.1f}{ran.cpu:8.1f}{size / ran.cpu:11.0f}"
            f"{ran.peak / _MIB:10.0f}   {ran.output.strip()}"
        )


def main() -> None:
    """Generate a file, and read it in each way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=300, help="of the file, in MB")
    parser.add_argument("--whole", action="store_true", help="json too: five times the file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "qna.json"
        write_qna(path, queries=max(given.size * 1_000_000 // _QUERY_BYTES, 1))
        print(f"{path.stat().st_size / _MIB:,.0f} MiB")
        for line in _measure(path, whole=given.whole):
            print(line)


if __name__ == "__main__":
    main()
