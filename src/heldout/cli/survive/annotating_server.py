"""Serving a folder of questions to annotators."""

import os
import secrets
from dataclasses import dataclass
from typing import Annotated

from heldout.cli.listening import check_port
from heldout.cli.printing import messages, plural, print_facts
from heldout.errors import SetupError
from heldout.options import Opt
from heldout.store.question_folder import QuestionFolder

_TOKEN = "HELDOUT_ANNOTATOR_TOKEN"  # noqa: S105 - the variable's name
_GRACE_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Whether and where pages are served."""

    serve: Annotated[bool, Opt("Pages for annotators, served until interrupted.")] = False
    host: Annotated[str, Opt("Address to listen at, for --serve.")] = "127.0.0.1"
    port: Annotated[int, Opt("Port to listen at, for --serve.", least=1, most=65_535)] = 8000


def serve_questions(folder: QuestionFolder, pages: ServeOptions) -> None:
    """Serve a folder until interrupted.

    Raises:
        StoreError: it has no questions, or cannot be written to.
        InputError: its files contradict themselves.
        SetupError: the extra `web` is not installed, the token given is too short, or nobody can
            listen there.
    """
    try:
        import uvicorn  # noqa: PLC0415 - only for this

        from heldout.web.annotating import (  # noqa: PLC0415 - the same
            Annotating,
            make_annotating_app,
        )
        from heldout.web.app import utc_now  # noqa: PLC0415 - the same
        from heldout.web.connections import server_options  # noqa: PLC0415 - the same
        from heldout.web.signing_in import check_token  # noqa: PLC0415 - the same
    except ModuleNotFoundError as error:
        raise SetupError(
            f"the pages need {error.name}, which is not installed; pip install 'heldout[web]'"
        ) from error
    given = os.environ.get(_TOKEN, "")
    token = check_token(given) if given else secrets.token_urlsafe(24)
    questions = folder.questions()
    answers = folder.answers()
    check_port(pages.host, pages.port)
    annotating = Annotating(folder=folder, key=folder.key(), token=token, clock=utc_now)
    facts = [
        ("questions", f"{len(questions):,}, with {plural(len(answers), 'answer')}"),
        ("pages", f"http://{pages.host}:{pages.port}/"),
    ]
    if not given:  # one that was given is known, and logs are read by others
        facts.append(("token", token))
    facts.append(("stop", "Ctrl+C"))
    print_facts(messages(), facts)
    uvicorn.run(
        make_annotating_app(annotating),
        host=pages.host,
        port=pages.port,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        **server_options(),
    )
