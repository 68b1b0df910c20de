"""What `heldout serve` needs to take uploads: its options, and how worker processes get them.

Only the forms of names are taken from the envelope here, on the command line: the pages get texts
and reach no key.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from heldout.envelope.bundle import Form, file_names
from heldout.errors import SetupError, quote
from heldout.ids import SubmissionId

if TYPE_CHECKING:
    from heldout.web.intake import Intake

__all__ = ["UPLOADS", "UPLOADS_FORM", "intake_of", "upload_options"]

UPLOADS = "HELDOUT_UPLOADS"
"""Name of the variable with the folder that takes uploads; not set where none are taken."""

UPLOADS_FORM = "HELDOUT_UPLOADS_FORM"
"""Name of the variable with the envelope whose files are taken."""


def upload_options(command: click.decorators.FC) -> click.decorators.FC:
    """`--uploads DIR` and `--envelope`, for the arguments `uploads` and `envelope`."""
    folder = click.option(
        "--uploads",
        type=click.Path(path_type=Path, exists=True, file_okay=False, writable=True),
        envvar=UPLOADS,
        metavar="DIR",
        help="Also take sealed files and registrations at /upload, into this folder, for "
        "`heldout inbox --from DIR`.",
    )
    envelope = click.option(
        "--envelope",
        type=click.Choice(get_args(Form)),
        default="age",
        show_default=True,
        help="Of the board that they are for.",
    )
    return folder(envelope(command))


def intake_of(environ: Mapping[str, str]) -> "Intake | None":
    """The upload that the environment asks for; `None` where it asks for none.

    Raises:
        SetupError: there is no such folder or envelope.
    """
    folder = environ.get(UPLOADS, "")
    if not folder:
        return None
    form = environ.get(UPLOADS_FORM, "age")
    if form not in get_args(Form) or not Path(folder).is_dir():
        raise SetupError(f"no uploads: {quote(folder)} is no folder, or {quote(form)} no envelope")
    from heldout.store.registrations import is_team  # noqa: PLC0415 - only where it is served
    from heldout.store.uploads import UploadFolder  # noqa: PLC0415 - only where it is served
    from heldout.web.intake import Intake  # noqa: PLC0415 - heavy

    endings = file_names("age" if form == "age" else "openssl", SubmissionId("")).all
    return Intake(
        folder=UploadFolder(path=Path(folder), endings=endings, is_team=is_team),
        clock=lambda: datetime.now(UTC),
    )
