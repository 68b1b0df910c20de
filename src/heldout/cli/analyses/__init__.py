"""The commands of `heldout analyse`, a module for each analysis."""
