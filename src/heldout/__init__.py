"""heldout: leaderboards for ranking and retrieval that stay valid."""

__all__ = ["__version__"]

__version__ = "0.1.0"
