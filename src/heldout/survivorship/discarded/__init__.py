"""The queries that were left without a label: which they are, why, and who could answer them."""
