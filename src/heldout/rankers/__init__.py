"""Rankers that make the runs of the demo and of `heldout rank`."""
