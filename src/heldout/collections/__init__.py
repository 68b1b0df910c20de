"""Collections to rank: the embedded one, made from the standard library's docstrings."""
