"""Writes src/heldout/board/policy/characters.txt: which characters look alike, and their scripts.

    python tools/confusables.py FOLDER           write it
    python tools/confusables.py FOLDER --check   whether it is what the files say; 1 if not

FOLDER has `confusables.txt` of Unicode's security mechanisms (UTS #39) and `Scripts.txt` of the
Unicode Character Database, both of one version. The written file names that version and the SHA-256
of both, so that anyone can check that they are what Unicode published.
"""

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

TABLE = Path(__file__).parents[1] / "src/heldout/board/policy/characters.txt"
_NAMES = ("confusables.txt", "Scripts.txt")
_SHARED = {"Common", "Inherited"}
"""Scripts of characters that go with every other: they are left out."""
_VERSION = re.compile(r"^# (?:Version: |Scripts-)(\d+\.\d+\.\d+)", re.MULTILINE)
_DATE = re.compile(r"^# Date: (\d{4}-\d\d-\d\d)", re.MULTILINE)
_WIDTH = 100


def format_table(texts: Mapping[str, bytes]) -> str:
    """The whole file.

    Args:
        texts: content of the two files of Unicode by name.

    Raises:
        ValueError: they are of different versions, or one is something else.
    """
    decoded = {name: texts[name].decode("utf-8-sig") for name in _NAMES}
    versions = {_only(_VERSION, name, text) for name, text in decoded.items()}
    if len(versions) != 1:
        raise ValueError(f"files of one version wanted, not of {' and '.join(sorted(versions))}")
    years = {re.search(r"© (\d{4})", text) for text in decoded.values()}
    year = max(match[1] for match in years if match)
    lines = [
        f"# Characters that look alike, and scripts of all: Unicode {versions.pop()}, reduced.",
        "# Written by tools/confusables.py; not to be edited.",
        *(
            f"# {name} of {_only(_DATE, name, text)}, SHA-256 "
            f"{hashlib.sha256(texts[name]).hexdigest()}"
            for name, text in decoded.items()
        ),
        f"# © {year} Unicode®, Inc. The notice that goes with it: LICENSES/Unicode-3.0.txt",
        "",
        "# prototype ; the characters that look like it",
        *_rows(_read_confusables(decoded["confusables.txt"])),
        "",
        "# script ; its characters",
        *_rows(_read_scripts(decoded["Scripts.txt"])),
    ]
    return "\n".join(lines) + "\n"


def _only(pattern: re.Pattern[str], name: str, text: str) -> str:
    match = pattern.search(text)
    if match is None:
        raise ValueError(f"{name}: no line like {pattern.pattern!r}")
    return match[1]


def _fields(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        data = line.partition("#")[0].strip()
        if data:
            yield [field.strip() for field in data.split(";")]


def _read_confusables(text: str) -> dict[str, list[str]]:
    """Prototype -> characters, both in hexadecimal."""
    found: dict[str, list[str]] = {}
    for source, prototype, _ in _fields(text):
        found.setdefault(_shorten(prototype), []).append(_shorten(source))
    return {
        prototype: sorted(sources, key=lambda source: int(source, 16))
        for prototype, sources in sorted(found.items(), key=lambda item: _order(item[0]))
    }


def _read_scripts(text: str) -> dict[str, list[str]]:
    """Script -> ranges in hexadecimal, those without a gap joined."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for codes, script in _fields(text):
        if script not in _SHARED:
            first, _, last = codes.partition("..")
            ranges.setdefault(script, []).append((int(first, 16), int(last or first, 16)))
    return {script: [*_join(sorted(found))] for script, found in sorted(ranges.items())}


def _join(ranges: Sequence[tuple[int, int]]) -> Iterator[str]:
    joined: list[list[int]] = []
    for first, last in ranges:
        if joined and first == joined[-1][1] + 1:
            joined[-1][1] = last
        else:
            joined.append([first, last])
    for first, last in joined:
        yield f"{first:X}" if first == last else f"{first:X}-{last:X}"


def _shorten(codes: str) -> str:
    return "+".join(f"{int(code, 16):X}" for code in codes.split())


def _order(prototype: str) -> list[int]:
    return [int(code, 16) for code in prototype.split("+")]


def _rows(table: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """One key in as many lines as its values need."""
    for key, values in table.items():
        line = f"{key};"
        for value in values:
            if len(line) + len(value) >= _WIDTH:
                yield line
                line = f"{key};"
            line += f" {value}"
        yield line


def main() -> int:
    """Write the file, or say whether it is what the files say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    text = format_table({name: (given.folder / name).read_bytes() for name in _NAMES})
    if given.check:
        same = TABLE.read_text("utf-8") == text
        print(f"{TABLE.name}: {'as the files say' if same else 'not as the files say'}")
        return 0 if same else 1
    TABLE.write_text(text, encoding="utf-8")
    print(f"wrote {TABLE.name}, {len(text.encode())} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
