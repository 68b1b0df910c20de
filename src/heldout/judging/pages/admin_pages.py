"""The organiser's pages as values: sections of facts, tables and forms; and their HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from heldout.errors import plural
from heldout.web.pages import render_template

_PLACES: Mapping[str, str] = {
    "/admin": "Overview",
    "/admin/quality": "Quality",
    "/admin/pairs": "Pairs",
    "/admin/workers": "Workers",
    "/admin/payments": "Payments",
    "/admin/log": "Log",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: what it says.
        number: whether it stands to the right.
        href: where a link leads; empty where it is none.
        press: value that a button sends with the table's form; empty where it is none.
        hint: what the button says besides, for those who only hear it.
    """

    text: str
    number: bool = False
    href: str = ""
    press: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        caption: what it is of.
        columns: their headings.
        rows: in the order of the columns; a number is written with separators, to the right.
        empty: what is said where there is no row.
        form: where its buttons send; empty where it has none.
        field: name under which they send.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | str | int]]
    empty: str
    form: str = ""
    field: str = ""

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows as they are shown."""
        return [[_as_cell(one) for one in row] for row in self.rows]


def _as_cell(value: Cell | str | int) -> Cell:
    if isinstance(value, int):
        return Cell(f"{value:,}", number=True)
    return Cell(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """A form of one button.

    Attributes:
        action: where it is sent.
        button: what the button says.
        fields: sent with it.
        quiet: it is not what the page is for.
    """

    action: str
    button: str
    fields: Mapping[str, str] = field(default_factory=dict)
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A form of one field that only looks something up.

    Attributes:
        action: where it is sent.
        name: of the field.
        label: what the field is for.
        value: what was asked before.
        button: what the button says.
    """

    action: str
    name: str
    label: str
    value: str = ""
    button: str = "Look up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page.

    Attributes:
        title: its heading; empty where the page's own heading is enough.
        paragraphs: what there is to say.
        facts: names and what there is to say.
        texts: names and texts of the collection, shown whole.
        table: a table.
        press: forms of one button.
        ask: a form that looks something up.
        link: an address and what it says.
    """

    title: str = ""
    paragraphs: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    texts: Sequence[tuple[str, str]] = ()
    table: Table | None = None
    press: Sequence[Press] = ()
    ask: Ask | None = None
    link: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminPage:
    """A page of the organiser.

    Attributes:
        study: the study's name.
        title: the heading.
        here: address of the page in the list of pages.
        form_token: sent back by every form.
        sections: its parts.
        done: what was just done; empty where nothing was.
        language: of queries and passages, BCP 47.
    """

    study: str
    title: str
    here: str
    form_token: str
    sections: tuple[Section, ...]
    done: str = ""
    language: str = "en"

    @property
    def places(self) -> Mapping[str, str]:
        """The list of pages."""
        return _PLACES


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInPage:
    """Where the token is asked for.

    Attributes:
        study: the study's name.
        title: the heading.
        problem: why it did not work; empty at first.
    """

    study: str
    title: str = "Sign in as the organiser"
    problem: str = ""


def render_admin(page: AdminPage | SignInPage) -> str:
    """The page as HTML."""
    name = "admin/page.html" if isinstance(page, AdminPage) else "admin/sign-in.html"
    return render_template(name, page)


# How the organiser's pages say times, shares and sums.

_MINUTE = 60
_HOUR = 3_600
_DAY = 86_400


def percent(share: float | None) -> str:
    """A share as `34.3%`; a dash where there is none."""
    return "–" if share is None else f"{share:.1%}"


def amount(hundredths: int) -> Cell:
    """An amount without its currency: `0.77`."""
    return Cell(f"{hundredths // 100:,}.{hundredths % 100:02}", number=True)


def moment(at: datetime | None) -> str:
    """A time as `21 Nov 14:02`, UTC; a dash where there is none."""
    return "–" if at is None else f"{at.astimezone(UTC):%d %b %H:%M}".lstrip("0")


def ago(span: timedelta) -> str:
    """A span as a person says it: `12 minutes`, `3 hours`, `2 days`."""
    whole = max(0, int(span.total_seconds()))
    if whole < _MINUTE:
        return "less than a minute"
    if whole < _HOUR:
        return plural(whole // _MINUTE, "minute")
    return plural(whole // _HOUR, "hour") if whole < 2 * _DAY else plural(whole // _DAY, "day")


def seconds(value: float) -> str:
    """Seconds as `8.4 s` or `3 min 05 s`."""
    if value < 2 * _MINUTE:
        return f"{value:.1f} s"
    return f"{int(value) // _MINUTE} min {int(value) % _MINUTE:02} s"
