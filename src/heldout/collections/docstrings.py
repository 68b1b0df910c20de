"""Docstrings of Python source, read with `ast`: the source is never imported or run."""

import ast
import inspect
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Docstring", "parse_docstrings", "split_paragraphs"]

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
