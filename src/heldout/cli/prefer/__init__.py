"""The commands of `heldout prefer`, one module each."""
