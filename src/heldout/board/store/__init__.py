"""The board and its vault on disk, in git, and on a forge."""
