"""The embedded collection: the docstrings of Python's own standard library.

A document is a docstring without its first paragraph, a query is that first paragraph, and
the one known relevant document is the rest of the same docstring. A docstring of a single
paragraph is a document that answers no query. Source is read with `ast` and never imported or run;
modules without source are imported in a process of their own (`extension_docstrings`).

A part of it is the same under every Python: the tutorials' data. `stdlib_sample.tsv` names modules,
queries, their answers and further documents by id. `tools/stdlib_sample.py` makes the table of
docstrings that Python 3.8 to 3.13 have in common, so later versions have nearly all of them too.
"""

import ast
import hashlib
import inspect
import json
import re
import subprocess
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from heldout.collections.collection import Collection, QuerySplit
from heldout.errors import SetupError
from heldout.ids import DocId, QueryId

_Owner = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
# Only statements and their clauses can hold a definition; expressions need no visit.
_CLAUSES = ast.stmt | ast.excepthandler | ast.match_case
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Docstring:
    """One docstring and what it belongs to.

    Attributes:
        name: dotted name of the module, class, function or method.
        text: the docstring as written, with its indentation.
    """

    name: str
    text: str


def parse_docstrings(source: bytes, *, module: str) -> list[Docstring]:
    """All docstrings of one Python source file, nested definitions included.

    Args:
        source: the file's bytes; a coding cookie in it is obeyed.
        module: dotted name of the module, the beginning of each docstring's name.

    Returns:
        In the order of the file, the module's own first. Where a name is defined twice,
        each definition counts.

    Raises:
        SyntaxError: the source is not of the running Python's grammar.
        ValueError: the source holds NUL bytes or is wrongly encoded.
    """
    with warnings.catch_warnings():
        # Old escapes in other people's source are not ours to warn of.
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    return list(_walk(tree, module))


def split_paragraphs(text: str) -> list[str]:
    """The paragraphs of a docstring, each on one line, without empty ones.

    Args:
        text: a docstring as written.

    Returns:
        Paragraphs, divided where a blank line stands; runs of white space are one space,
        control characters and lone surrogates are gone.
    """
    clean = _CONTROL.sub(" ", inspect.cleandoc(text))
    lines = (" ".join(paragraph.split()) for paragraph in _BLANK_LINE.split(clean))
    return [line for line in lines if line]


def _walk(node: ast.AST, name: str) -> Iterator[Docstring]:
    if isinstance(node, _Owner):
        text = ast.get_docstring(node, clean=False)
        if text is not None:
            yield Docstring(name=name, text=text)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _walk(child, f"{name}.{child.name}")
        elif isinstance(child, _CLAUSES):
            yield from _walk(child, name)


QUERY_WORDS = range(3, 26)
"""Numbers of words that a query may have."""
ANSWER_WORDS = 10
"""Fewest words of a document that a query may be asked for; a shorter rest ("See also
`close`.") could not be distinguished from others. It stays as a document."""

_SCRIPT = Path(__file__).with_name("extension_docstrings.py")
_LIMIT_SECONDS = 60.0
# Tests and their data are not the library; idlelib and turtledemo are programs; the rest are
# copies of other people's packages.
_LEFT_OUT = frozenset(
    {"test", "tests", "idle_test", "idlelib", "turtledemo", "site-packages", "_bundled"}
)
_TEST_EXTENSIONS = ("_test", "_ctypes_test", "xx", "_xx")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedModule:
    """A module whose docstrings could not be read.

    Attributes:
        module: its dotted name.
        reason: what went wrong.
    """

    module: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocstringSource:
    """What was read from an installed Python.

    Attributes:
        docstrings: in the order of their modules' names.
        skipped: modules that could not be read, in the same order.
    """

    docstrings: tuple[Docstring, ...]
    skipped: tuple[SkippedModule, ...]


def read_docstrings() -> DocstringSource:
    """Read the docstrings of the running Python's standard library.

    Modules with source are parsed and never imported. Built-in and extension modules, which
    have none, are imported in one other process, started isolated and without `site`, with a
    time limit. Where a module cannot be parsed or imported, it is skipped and said so.

    Raises:
        SetupError: this Python has no library source on disk, or the other process failed.
    """
    root = library_folder()
    files = sorted(path for path in root.rglob("*.py") if _belongs(path.relative_to(root)))
    if not files:
        message = f"no standard library source in {root}: this Python was installed without it"
        raise SetupError(message)
    docstrings: list[Docstring] = []
    skipped: list[SkippedModule] = []
    for path in files:
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        try:
            docstrings.extend(parse_docstrings(path.read_bytes(), module=module))
        except (OSError, SyntaxError, ValueError) as error:
            skipped.append(SkippedModule(module=module, reason=f"{type(error).__name__}: {error}"))
    extensions = _read_extensions(_extension_modules(root))
    return DocstringSource(
        docstrings=(*docstrings, *extensions.docstrings),
        skipped=(*skipped, *extensions.skipped),
    )


def library_folder() -> Path:
    """Return where the source of the running Python's standard library lies."""
    return Path(sysconfig.get_path("stdlib"))


def read_module(library: Path, module: str) -> list[Docstring]:
    """The docstrings of one module with source.

    Args:
        library: the folder of a standard library.
        module: dotted name.

    Raises:
        OSError: there is no such file.
        SyntaxError, ValueError: as `parse_docstrings`.
    """
    path = library / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return parse_docstrings(file.read_bytes(), module=module)


def texts_by_id(docstrings: Iterable[Docstring]) -> dict[str, str]:
    """Every query and every document that a docstring can become, by its id."""
    texts = {}
    for first, *others in _distinct(docstrings):
        texts[_identity("q", first)] = first
        rest = " ".join(others) or first
        texts[_identity("d", rest)] = rest
    return texts


def build_collection(docstrings: Iterable[Docstring]) -> Collection:
    """Make documents, queries and judgments out of docstrings.

    Repeated docstrings and repeated documents count once. A first paragraph becomes a query
    if it has 3 to 25 words, if no other document has the same first paragraph, and if its
    document has at least 10 words and does not contain it. A query and a document are never
    the same text, since that would be a second answer that nobody judged: a one-paragraph
    docstring that repeats somebody's first paragraph is no document, and a first paragraph
    that repeats somebody's rest is no query. Texts are compared without regard to case and spacing.

    Ids are content digests, `d` and `q` with twelve hexadecimal digits, so a docstring that
    did not change keeps its ids under another Python version, and no id tells which document
    belongs to which query.

    Args:
        docstrings: in any order; names play no part.

    Returns:
        The collection, ordered by id, one relevant document (grade 1) per query.
    """
    parts = [(split[0], " ".join(split[1:])) for split in _distinct(docstrings)]
    openings = Counter(_identity("q", first) for first, rest in parts if rest)
    documents: dict[DocId, str] = {}
    queries: dict[QueryId, str] = {}
    qrels: dict[QueryId, dict[DocId, int]] = {}
    for first, rest in parts:
        query = QueryId(_identity("q", first))
        if not rest and query in openings:
            continue
        document = DocId(_identity("d", rest or first))
        repeated = document in documents
        documents.setdefault(document, rest or first)
        if openings[query] == 1 and not repeated and _is_fair(first, rest):
            queries[query] = first
            qrels[query] = {document: 1}
    fair = sorted(key for key, text in queries.items() if _identity("d", text) not in documents)
    return Collection(
        documents=dict(sorted(documents.items())),
        queries={query: queries[query] for query in fair},
        qrels={query: qrels[query] for query in fair},
    )


def _distinct(docstrings: Iterable[Docstring]) -> list[list[str]]:
    """Paragraphs of each different docstring, in an order that hangs on the texts alone."""
    found = {
        _folded("\n".join(paragraphs)): paragraphs
        for paragraphs in sorted(split_paragraphs(docstring.text) for docstring in docstrings)
        if paragraphs
    }
    return [found[key] for key in sorted(found)]


def _is_fair(query: str, document: str) -> bool:
    return (
        len(query.split()) in QUERY_WORDS
        and len(document.split()) >= ANSWER_WORDS
        and _folded(query) not in _folded(document)
    )


def _folded(text: str) -> str:
    return text.casefold()


def _identity(prefix: str, text: str) -> str:
    digest = hashlib.sha256(_folded(text).encode()).hexdigest()
    return f"{prefix}{digest[:12]}"


def _belongs(path: Path) -> bool:
    return not (_LEFT_OUT & set(path.parts) or path.parts[0].startswith("config-"))


def _extension_modules(root: Path) -> list[str]:
    """Names of the library's modules that have no Python source."""
    suffixes = (".so", ".pyd")
    # Not `platstdlib`: in a virtual environment that is the environment's own empty folder.
    folders = [root / "lib-dynload", root.parent / "DLLs"]
    files = {
        path.name.split(".")[0]
        for folder in folders
        for path in folder.glob("*")
        if path.suffix in suffixes
    }
    library = (files | set(sys.builtin_module_names)) & sys.stdlib_module_names
    return sorted(name for name in library if not name.startswith(_TEST_EXTENSIONS))


def _read_extensions(modules: Sequence[str]) -> DocstringSource:
    """Run the script that imports them; no more than its printed words comes back."""
    try:
        done = subprocess.run(  # noqa: S603 - this Python, our own script
            [sys.executable, "-I", "-S", str(_SCRIPT)],
            input=json.dumps(modules).encode(),
            capture_output=True,
            check=True,
            timeout=_LIMIT_SECONDS,
        )
        found = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        message = f"the docstrings of built-in modules could not be read: {error}"
        raise SetupError(message) from error
    return DocstringSource(
        docstrings=tuple(Docstring(name=name, text=text) for name, text in found["docstrings"]),
        skipped=tuple(
            SkippedModule(module=name, reason=reason) for name, reason in found["skipped"]
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrarySample:
    """The part that this Python has.

    Attributes:
        split: documents, dev queries and eval queries.
        missing: number of queries and documents of the table that this Python lacks.
    """

    split: QuerySplit
    missing: int


def read_sample() -> LibrarySample:
    """Read the texts of the sample.

    Raises:
        SetupError: this Python has no library source on disk.
    """
    rows = _read_table()
    texts = texts_by_id(_read_modules([module for (module,) in rows["module"]]))
    documents = {DocId(key): texts[key] for (key,) in rows["document"] if key in texts}
    if not documents:
        message = "no standard library source: this Python was installed without it"
        raise SetupError(message)
    dev, evaluation = (_half(rows[name], documents, texts) for name in ("dev", "eval"))
    wanted = len(rows["document"]) + len(rows["dev"]) + len(rows["eval"])
    present = len(documents) + len(dev.queries) + len(evaluation.queries)
    return LibrarySample(split=QuerySplit(dev=dev, eval=evaluation), missing=wanted - present)


def _read_table() -> Mapping[str, Sequence[Sequence[str]]]:
    table = resources.files("heldout.collections").joinpath("stdlib_sample.tsv")
    rows: dict[str, list[list[str]]] = {}
    for line in table.read_text("utf-8").splitlines():
        kind, *cells = line.split("\t")
        rows.setdefault(kind, []).append(cells)
    return rows


def _read_modules(modules: Sequence[str]) -> list[Docstring]:
    """Their docstrings; a module that this Python lacks has none."""
    found: list[Docstring] = []
    library = library_folder()
    for module in modules:
        try:
            found.extend(read_module(library, module))
        except (OSError, SyntaxError, ValueError):
            continue  # what it would have is counted as missing
    return found


def _half(
    rows: Sequence[Sequence[str]], documents: Mapping[DocId, str], texts: Mapping[str, str]
) -> Collection:
    found = {
        QueryId(query): DocId(answer)
        for query, answer in rows
        if query in texts and answer in documents
    }
    return Collection(
        documents=documents,
        queries={query: texts[query] for query in found},
        qrels={query: {answer: 1} for query, answer in found.items()},
    )
