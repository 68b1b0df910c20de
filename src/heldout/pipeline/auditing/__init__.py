"""Ends and proofs: the closing of a board, its archive, and what anybody can check of both."""
