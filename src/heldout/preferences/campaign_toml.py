"""campaign.toml: read into `Settings`, and the text that a new one begins with."""

import json
import re
import tomllib
from collections.abc import Iterator
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
_LANGUAGE = re.compile(
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})"
    r"(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
    r"(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?",
    re.IGNORECASE,
)
"""RFC 5646, section 2.1: language, script, region, variants, extensions, private use."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""But tabs and line ends; and marks that turn the direction of what follows."""

_TEXTS = ("name", "question", "consent", "consent_version", "ethics", "contact", "completion_code")


def parse_campaign(data: bytes, *, path: str = "campaign.toml") -> Settings:
    """Read a campaign's settings.

    Raises:
        InputError: code `not-toml`; `campaign-settings`: a key is missing, unknown, of the wrong
            kind or out of range, or contradicts another; each with its line where there is one.
    """
    try:
        text = data.decode()
        settings = msgspec.convert(tomllib.loads(text), Settings, strict=True)
    except UnicodeDecodeError:
        raise InputError(_problem("not-toml", path, "bytes that are not UTF-8")) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = _LINE.search(str(error))
        line = int(found.group(1)) if found else None
        raise InputError(_problem("not-toml", path, str(error), line)) from None
    except msgspec.ValidationError as error:
        raise InputError(_misplaced(str(error), text, path)) from None
    problems = list(_contradictions(settings, text, path))
    if problems:
        raise InputError(problems)
    return settings


def new_campaign(name: str) -> bytes:
    """The settings of a new campaign, with a comment to each key."""
    text = (files("heldout.preferences") / "templates" / "campaign.toml").read_text()
    return Template(text).substitute(name=json.dumps(name, ensure_ascii=False)).encode()


def _contradictions(settings: Settings, text: str, path: str) -> Iterator[Problem]:
    """What each key allows by itself and another key, or a reader, does not."""
    if settings.tests and settings.failures > settings.tests:
        most = f"at most the {settings.tests} of `tests`: nobody can fail more"
        yield _refused("failures", most, text, path)
    if settings.mode == "sequential" and settings.lead > settings.cap:
        yield _refused(
            "lead", f"at most `cap`, {settings.cap}: nobody can lead by more", text, path
        )
    if settings.excludes != settings.exclusion:
        own = (
            'task, or links = "personal": an open link lets anybody fail tests under another\'s id'
        )
        yield _refused("exclusion", own, text, path)
    if not _LANGUAGE.fullmatch(settings.language):
        yield _refused("language", "a tag of BCP 47, as en, de-CH or zh-Hant", text, path)
    for key in _TEXTS:
        if _CONTROL.search(getattr(settings, key)):
            yield _refused(key, "text without control characters", text, path)


def _refused(key: str, expected: str, text: str, path: str) -> Problem:
    line, row = _line_of(key, text)
    return Problem(
        code="campaign-settings", path=path, line=line, found=show(row or key), expected=expected
    )


def _line_of(key: str, text: str) -> tuple[int | None, str]:
    """Where a key is set, and that line; `None` where it is not."""
    begins = re.compile(rf"\s*{re.escape(key)}\s*=")
    for number, row in enumerate(text.splitlines(), 1):
        if key and begins.match(row):
            return number, row.strip()
    return None, ""


def _misplaced(message: str, text: str, path: str) -> Problem:
    found = _AT.search(message) or _UNKNOWN.search(message)
    line, row = _line_of(found.group(1) if found else "", text)
    place = _AT.sub("", message)
    return Problem(
        code="campaign-settings",
        path=path,
        line=line,
        found=show(row) if line else place,
        expected=place if line else "the keys that `heldout prefer pool` writes",
    )


def _problem(code: str, path: str, found: str, line: int | None = None) -> Problem:
    return Problem(code=code, path=path, line=line, found=found, expected="TOML in UTF-8")
