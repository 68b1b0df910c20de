"""Forges behind one protocol: GitHub, GitLab, Forgejo, a folder, a bare git repository."""

from heldout.store.forge.access import TOKEN, read_token
from heldout.store.forge.comments import Comment, ScoreLine, format_comment
from heldout.store.forge.opening import Surroundings, new_client, open_forge
from heldout.store.forge.protocol import (
    Forge,
    ForgeError,
    Handle,
    LostAnswerError,
    Outcome,
    PullRequest,
)

__all__ = [
    "TOKEN",
    "Comment",
    "Forge",
    "ForgeError",
    "Handle",
    "LostAnswerError",
    "Outcome",
    "PullRequest",
    "ScoreLine",
    "Surroundings",
    "format_comment",
    "new_client",
    "open_forge",
    "read_token",
]
