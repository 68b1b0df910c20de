"""`heldout board publish-page`: put the page of a board on the web."""

from __future__ import annotations

import click
import msgspec

from heldout.cli.context import BoardPlace, next_facts
from heldout.cli.options import with_options


@click.command("publish-page")
@with_options
def publish_page(*, place: BoardPlace) -> None:
    """Publish the leaderboard on GitHub Pages or GitLab Pages.

    Writes the workflow of the board's forge and commits it. After each push, and once a day, the
    forge builds the page from the public log and publishes it. It needs no secret and no vault. A
    job named "due" fails when the page waits for something that only the vault can open.

    `heldout board new --forge URL --install URL` writes the workflow from the start.

    \b
    Example:
      heldout board publish-page
    """
    from heldout.board.organiser.web_page import publish_page as publish

    repository = place.board()
    with repository.locked():
        made = publish(repository, now=place.now)
    before = "" if made.changed or made.commit else "   (done before)"
    facts = [("workflow", f"{made.path}{before}")]
    if made.home:
        facts.append(("page", made.home))
    following = next_facts(repository, made.steps)
    place.answer(msgspec.to_builtins(made), [*facts, *following])
