"""campaign.toml: read into `Settings`, and the text that a new one begins with."""

import json
import re
import tomllib
from importlib.resources import files
from string import Template

import msgspec

from heldout.errors import InputError, Problem
from heldout.preferences.settings import Settings
from heldout.trec.problems import show

__all__ = ["new_campaign", "parse_campaign"]

_AT = re.compile(r" - at `\$\.?([^`]*)`")
_UNKNOWN = re.compile(r"unknown field `(.*)`")
_LINE = re.compile(r"\(at line (\d+), ")


def parse_campaign(data: bytes, *, path: str = "campaign.toml") -> Settings:
    """Read a campaign's settings.

    Raises:
        InputError: code `not-toml`; `campaign-settings`: a key is missing, unknown, of the wrong
            kind or out of range; each with its line where there is one.
    """
    try:
        text = data.decode()
        return msgspec.convert(tomllib.loads(text), Settings, strict=True)
    except UnicodeDecodeError:
        raise InputError(_problem("not-toml", path, "bytes that are not UTF-8")) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = _LINE.search(str(error))
        line = int(found.group(1)) if found else None
        raise InputError(_problem("not-toml", path, str(error), line)) from None
    except msgspec.ValidationError as error:
        raise InputError(_misplaced(str(error), text, path)) from None


def new_campaign(name: str) -> bytes:
    """The settings of a new campaign, with a comment to each key."""
    text = (files("heldout.preferences") / "templates" / "campaign.toml").read_text()
    return Template(text).substitute(name=json.dumps(name, ensure_ascii=False)).encode()


def _misplaced(message: str, text: str, path: str) -> Problem:
    found = _AT.search(message) or _UNKNOWN.search(message)
    key = found.group(1) if found else ""
    begins = re.compile(rf"\s*{re.escape(key)}\s*=")
    lines = text.splitlines()
    line = next((n for n, row in enumerate(lines, 1) if key and begins.match(row)), None)
    place = _AT.sub("", message)
    return Problem(
        code="campaign-settings",
        path=path,
        line=line,
        found=show(lines[line - 1].strip()) if line else place,
        expected=place if line else "the keys that `heldout prefer pool` writes",
    )


def _problem(code: str, path: str, found: str, line: int | None = None) -> Problem:
    return Problem(code=code, path=path, line=line, found=found, expected="TOML in UTF-8")
