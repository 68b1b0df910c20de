"""Commands of `heldout prefer`."""
