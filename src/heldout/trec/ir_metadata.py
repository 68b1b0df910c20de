"""The header of a run file: metadata in the form of ir_metadata, as YAML in comment lines.

    # ir_metadata.start
    # schema-version: 0.1
    # tag: monot5
    # actor:
    #   team: Lighthouse Retrieval Group
    # ir_metadata.end
    q1 Q0 d7 1 12.5 monot5

Its parts are those of PRIMAD: platform, research goal, implementation, method, actor, data. Version
0.2 adds `resources`, the time and energy that TIREx tracker measured. Every scalar is read as the
text that stands there: YAML would make a number of the commit `0123456` and a day of `2026-11-20`.
Nothing in a header is believed: its size and depth are limited, and it has no aliases.

Source: Breuer, Keller and Schaer, SIGIR 2022 (https://www.ir-metadata.org, versions 0.1 and 0.2);
Hagen et al., TIREx tracker.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from heldout.errors import InputError, Problem, printable, quote
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES, TextReader, read_lines
from heldout.trec.scans import Scan

if TYPE_CHECKING:
    import yaml

MOST_BYTES = 1 << 18
"""Of a header: the libraries of a Python environment take some 20 kB."""

SCHEMA = 0.1
"""The version that `format_header` writes."""

_MOST_DEPTH = 16
_NULLS = ("~", "null", "Null", "NULL")
_KNOWN = re.compile(r"v?0\.[12]\b.*")
_MARK = re.compile(rb"#+\s*ir_metadata\.(start|end)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a header says.

    Attributes:
        fields: the keys as they stand there; values are text, lists and mappings.
        first, last: 1-based lines of its start and its end.
        notes: what is odd and was read all the same: code `ir-metadata-version`.
    """

    fields: Mapping[str, Any]
    first: int
    last: int
    notes: tuple[Problem, ...] = ()

    def get(self, *keys: str) -> Any:
        """Return what stands below some keys, `None` where there is nothing.

        Upper and lower case of keys are alike, and so are `-`, `_` and blanks: the versions of the
        format spell `schema-version` and `schema version`.

        Args:
            keys: from the outermost on, as in `get("actor", "team")`.
        """
        found: Any = self.fields
        for key in keys:
            if not isinstance(found, Mapping):
                return None
            found = next((v for name, v in found.items() if _plain(name) == _plain(key)), None)
        return found or None

    def text(self, *keys: str) -> str:
        """The text below some keys on one line, "" where there is none, or YAML's null."""
        found = self.get(*keys)
        return "" if not isinstance(found, str) or found in _NULLS else _one_line(found)


def read_header(source: BinaryIO, *, path: str) -> Header | None:
    """Read the header of a run file; the rows below it are not read.

    Args:
        source: the file's bytes: plain, gzip, bzip2 or zstd.
        path: its name for messages.

    Returns:
        `None` where no header stands before the first row.

    Raises:
        InputError: codes `ir-metadata-end`, `ir-metadata-size`, `ir-metadata-yaml`, and those of
            `TextReader.blocks`.
    """
    with TextReader(source, path=path, limits=OWN_FILES) as reader:
        lines = read_lines(reader)
        first = _find_start(lines)
        if first is None:
            return None
        text = "".join(f"{line}\n" for line in _inside(lines, path=path, first=first))
    fields = parse_fields(text, path=path, first=first + 1)
    return Header(
        fields=fields,
        first=first,
        last=first + text.count("\n") + 1,
        notes=tuple(_check_version(fields, path=path, line=first)),
    )


def note_header(scan: Scan) -> Scan:
    """A scan with notes on what is wrong with the header of its run, if anything is.

    The run is read all the same, so nothing of it is an error of the run.

    Args:
        scan: of a file; of what is no ordinary file nothing is read again.
    """
    if not Path(scan.path).is_file():
        return scan
    try:
        with open_input(Path(scan.path)) as file:
            header = read_header(file, path=scan.path)
    except InputError as error:
        found = [one for one in error.problems if one.code.startswith("ir-metadata")]
    else:
        found = [] if header is None else list(header.notes)
    notes = tuple(replace(one, severity="note") for one in found)
    counts = dict(sorted({**scan.counts, **Counter(one.code for one in notes)}.items()))
    return replace(scan, problems=(*scan.problems, *notes), counts=counts)


def read_metadata_file(source: BinaryIO, *, path: str) -> Header:
    """Read metadata that lie in a file of their own, as TIREx tracker writes them.

    Args:
        source: its bytes, plain or compressed: YAML, between lines `ir_metadata.start` and
            `ir_metadata.end` or without these.
        path: its name for messages.

    Raises:
        InputError: codes `ir-metadata-size`, `ir-metadata-yaml`, and those of `TextReader.blocks`.
    """
    selected: list[str] = []
    size = 0
    with TextReader(source, path=path, limits=OWN_FILES) as reader:
        for _, line in read_lines(reader):
            size += len(line) + 1
            if size > MOST_BYTES:
                raise _too_large(path, 1)
            marked = _MARK.fullmatch(b"#" + line.strip())
            selected.append("" if marked else line.decode(errors="replace"))
    fields = parse_fields("\n".join(selected), path=path)
    notes = tuple(_check_version(fields, path=path, line=1))
    return Header(fields=fields, first=1, last=len(selected), notes=notes)


def _too_large(path: str, line: int) -> InputError:
    return InputError.of("ir-metadata-size", path, line=line, most=MOST_BYTES)


def _find_start(lines: Iterator[tuple[int, bytes]]) -> int | None:
    """The line of the start; only comments and blank lines may stand before it."""
    for number, line in lines:
        mark = _MARK.fullmatch(line)
        if mark and mark[1] == b"start":
            return number
        if line.strip() and not line.startswith(b"#"):
            return None
    return None


def _inside(lines: Iterator[tuple[int, bytes]], *, path: str, first: int) -> Iterator[str]:
    """The lines between start and end, without the mark of a comment."""
    size = 0
    for number, line in lines:
        mark = _MARK.fullmatch(line)
        if mark and mark[1] == b"end":
            return
        size += len(line)
        if not line.startswith(b"#") or mark:
            raise _endless(path, first, f"line {number} is no comment, and the header has no end")
        if size > MOST_BYTES:
            raise _too_large(path, first)
        yield line[1:].decode(errors="replace")
    raise _endless(path, first, "the file ends within the header")


def _endless(path: str, first: int, found: str) -> InputError:
    return InputError.of("ir-metadata-end", path, found, line=first)


def find_header_lines(text: bytes) -> range:
    """Numbers of the lines of a header, from its start to its end; none where it is not whole.

    Args:
        text: the first lines of a run file, each with its end.
    """
    start = number = first = 0
    while text.startswith(b"#", start) and start <= 2 * MOST_BYTES:
        end = text.find(b"\n", start)
        mark = _MARK.fullmatch(text[start:end])
        number, start = number + 1, end + 1
        if mark and mark[1] == b"start":
            first = first or number
        elif mark and first:
            return range(first, number + 1)
    return range(0)


def parse_fields(text: str, *, path: str, first: int = 1) -> Mapping[str, Any]:
    """Read the YAML of a header.

    Args:
        text: without the marks of comments.
        path: the file, for messages.
        first: 1-based line of the file at which the text begins.

    Raises:
        InputError: code `ir-metadata-yaml`: it is no YAML, is nested too deeply, has an alias or
            the same key twice, or is no mapping.
    """
    import yaml  # noqa: PLC0415 - few files have a header

    try:
        fields = yaml.load(text, _strict_loader())  # noqa: S506 - makes texts, lists, mappings
    except yaml.YAMLError as error:
        raise _no_yaml(error, path, first) from None
    if not fields:
        return {}
    if isinstance(fields, dict):
        return fields
    raise InputError.of(
        "ir-metadata-yaml", path, quote(fields), "keys with values, as 'tag: bm25'", line=first
    )


def _strict_loader() -> "type[yaml.BaseLoader]":
    """A loader that makes nothing but texts, lists and mappings, in bounded depth."""
    import yaml  # noqa: PLC0415 - few files have a header
    from yaml.composer import ComposerError  # noqa: PLC0415 - the same
    from yaml.constructor import ConstructorError  # noqa: PLC0415 - the same

    class Loader(yaml.BaseLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # so its stub has it
            mark: Any = event.start_mark
            if isinstance(event, yaml.AliasEvent):
                raise ComposerError(None, None, "an alias", mark)
            if self.depth == _MOST_DEPTH:
                raise ComposerError(None, None, "too many levels", mark)
            self.depth += 1
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - as in yaml
            names = set()
            for key, _ in node.value:
                if key.value in names if isinstance(key, yaml.ScalarNode) else True:
                    raise ConstructorError(None, None, "a key twice, or no text", key.start_mark)
                names.add(key.value)
            return super().construct_mapping(node, deep)

    return Loader


def _no_yaml(error: "yaml.YAMLError", path: str, first: int) -> InputError:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or "a character that YAML does not allow"
    line = first if mark is None else first + mark.line
    return InputError.of("ir-metadata-yaml", path, f"no YAML: {printable(said)}", line=line)


def _check_version(fields: Mapping[str, Any], *, path: str, line: int) -> Iterator[Problem]:
    version = Header(fields=fields, first=line, last=line).text("schema version")
    if version and not _KNOWN.fullmatch(version):
        yield Problem.of("ir-metadata-version", path, f"version {quote(version)}", line=line)


def _plain(key: object) -> str:
    return re.sub(r"[-_\s]+", " ", str(key)).casefold().strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def format_header(fields: Mapping[str, Any]) -> bytes:
    """A header, to be put before the rows of a run; `read_header` reads the same texts.

    trec_eval before version 10, pytrec_eval and ir_measures take comments for rows, so such a run
    is refused there.

    Args:
        fields: keys below those of PRIMAD: texts, numbers, lists and mappings. What is empty is
            left out, and texts are put on one line.

    Returns:
        Lines in UTF-8 that begin with `#`.
    """
    import yaml  # noqa: PLC0415 - few files have a header

    selected = _without_empty({"schema-version": SCHEMA, **fields})
    text = yaml.dump(
        selected, Dumper=yaml.SafeDumper, sort_keys=False, allow_unicode=True, width=MOST_BYTES
    )
    lines = ["ir_metadata.start", *text.splitlines(), "ir_metadata.end"]
    return "".join(f"# {line}\n" for line in lines).encode()


def _clean(text: str) -> str:
    return printable(_one_line(text))


def _without_empty(value: Any) -> Any:
    """The same without what says nothing, and with texts that are safe in a line."""
    if isinstance(value, Mapping):
        selected = {_clean(str(name)): _without_empty(one) for name, one in value.items()}
        return {name: one for name, one in selected.items() if one not in (None, "", [], {})}
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, Sequence):
        return [_without_empty(one) for one in value]
    return value
