"""The pages of the upload as values, and how they become HTML."""

from dataclasses import dataclass, field
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined

from heldout.errors import Problem
from heldout.store.upload_receipts import UploadReceipt
from heldout.web.pages import Study

__all__ = ["ReceiptPage", "UploadPage", "render_upload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPage:
    """The form.

    Attributes:
        study: of the window's title; whom to write to.
        action: where the form is sent.
        names: how the three files are called.
        most: of one file, in words.
        registers: registrations are taken too.
        problem: why an upload was not taken; `None` at first.
        title: the heading.
    """

    study: Study = field(default_factory=Study)
    action: str
    names: tuple[str, ...]
    most: str
    registers: bool = False
    problem: Problem | None = None
    title: str = "Send a sealed submission"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptPage:
    """What came.

    Attributes:
        study: of the window's title; whom to write to.
        receipt: what came.
        again: the page of the form.
    """

    study: Study = field(default_factory=Study)
    receipt: UploadReceipt
    again: str

    @property
    def title(self) -> str:
        """The heading."""
        if self.receipt.known:
            return "These files are here already"
        return f"Your {self.receipt.kind} is here"

    @property
    def received(self) -> str:
        """When, in words."""
        return f"{self.receipt.received:%d %B %Y, %H:%M:%S} UTC"


def render_upload(page: UploadPage | ReceiptPage) -> str:
    """The page as HTML; every value is escaped."""
    name = "upload.html" if isinstance(page, UploadPage) else "receipt.html"
    return _ENVIRONMENT.get_template(name).render(page=page)


def _read(name: str) -> str:
    return resources.files("heldout.web").joinpath("templates", name).read_text("utf-8")


_ENVIRONMENT = Environment(
    loader=FunctionLoader(_read),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
